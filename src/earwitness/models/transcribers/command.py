"""``command/NAME``: any program that prints what is said in a WAV file.

Its arguments hold ``{file}``; what it prints is the text. No shell is involved, and there are no times.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from earwitness.audio.convert import resample, to_mono, write_audio
from earwitness.audio.types import Audio
from earwitness.errors import DataError, UsageError
from earwitness.models.options import Option, read_options
from earwitness.models.protocols import Transcript
from earwitness.models.voices.info import EngineInfo

OPTIONS = (
    Option("run", "text", "the program with its arguments; {file} is the recording"),
    Option("rate", "integer", "sample rate of the recording it gets, in Hz", 16_000, least=8000),
    Option("timeout_s", "number", "longest time for one recording, in seconds", 600.0, least=0.05),
)
INFO = EngineInfo(
    name="command",
    form="command/NAME",
    summary="Any program that prints what is said in a WAV file",
    options=OPTIONS,
)


class CommandTranscriber:
    """A program as a transcriber. Use :func:`open` to make one."""

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        self.name = f"command/{name}"
        self._arguments = shlex.split(values["run"])
        self._rate = values["rate"]
        self._timeout_s = values["timeout_s"]

    @property
    def settings(self) -> Mapping[str, Any]:
        """The command and the rate."""
        return {"run": self._arguments, "rate": self._rate}

    def transcribe(self, audio: Audio) -> Transcript:
        """Run the program once."""
        with tempfile.TemporaryDirectory(prefix="earwitness-") as folder:
            path = Path(folder) / "recording.wav"
            write_audio(path, resample(to_mono(audio), self._rate))
            filled = [argument.replace("{file}", str(path)) for argument in self._arguments]
            try:
                done = subprocess.run(
                    filled, capture_output=True, timeout=self._timeout_s, check=False
                )
            except subprocess.TimeoutExpired:
                raise DataError(self.name, f"no answer within {self._timeout_s:g} s") from None
            except OSError as error:
                raise DataError(
                    self.name, f"{filled[0]} cannot be run ({error.strerror})"
                ) from None
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
            raise DataError(self.name, f"ended with code {done.returncode}: {said[0][:300]}")
        return Transcript(" ".join(done.stdout.decode("utf-8", "replace").split()))


def open(name: str, options: Mapping[str, Any]) -> CommandTranscriber:  # noqa: A001
    """Open ``command/NAME``.

    Raises
    ------
    UsageError: no program, or no place for the recording.
    """
    full = f"command/{name}"
    values = read_options(full, options, OPTIONS)
    if "{file}" not in (values["run"] or ""):
        raise UsageError(full, "no program with {file} is given", "the option run with {file}")
    return CommandTranscriber(name, values)
