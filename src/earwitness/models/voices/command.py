"""``command/NAME``: any program that writes a sound file.

The program gets the words on standard input, or where ``{text}`` stands in its arguments, and writes the file
named by ``{out}``, or the file's bytes to standard output. No shell is involved.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from earwitness.audio.files import file_sha256
from earwitness.audio.io import decode_audio
from earwitness.errors import AudioFileError, DataError, UsageError
from earwitness.models.options import Option, read_options
from earwitness.models.protocols import Phrase, Spoken
from earwitness.models.voices.info import EngineInfo
from earwitness.models.voices.pieces import PieceVoice

OPTIONS = (
    Option("run", "text", "the program with its arguments; {out} and {text} are filled in"),
    Option("gender", "text", "of this voice, where no cast file says it", choices=("F", "M")),
    Option("language", "text", "BCP 47 tag", "en"),
    Option("weights", "list", "files the sound depends on; their hashes become part of the voice"),
    Option("repeats", "yes/no", "the same words give the same samples", False),
    Option("timeout_s", "number", "longest time for one phrase, in seconds", 120.0, least=0.05),
)

INFO = EngineInfo(
    name="command",
    form="command/NAME",
    summary="Any program that writes a sound file; pauses only",
    options=OPTIONS,
)


class CommandVoice(PieceVoice):
    """A program as a voice. Use :func:`open` to make one."""

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        self.name = f"command/{name}"
        self.gender = values["gender"]
        self.language = values["language"]
        self.deterministic = values["repeats"]
        self._arguments = shlex.split(values["run"])
        self._weights = tuple(Path(path) for path in values["weights"] or ())
        self._timeout_s = values["timeout_s"]

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """The command and the hashes of its weights."""
        try:
            weights = {path.name: file_sha256(path) for path in self._weights}
        except OSError as error:
            raise DataError(
                f"{self.name}: option weights", f"{error.filename}: {error.strerror}"
            ) from None
        return {"run": self._arguments, "weights": weights}

    def say(self, phrase: Phrase, seed: int) -> Spoken:
        """Run the program once."""
        del seed
        with tempfile.TemporaryDirectory(prefix="earwitness-") as folder:
            out = Path(folder) / "said.wav"
            filled = [
                argument.replace("{out}", str(out)).replace("{text}", phrase.text)
                for argument in self._arguments
            ]
            try:
                done = subprocess.run(
                    filled,
                    input=phrase.text.encode(),
                    capture_output=True,
                    timeout=self._timeout_s,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise DataError(self.name, f"said nothing within {self._timeout_s:g} s") from None
            except OSError as error:
                raise DataError(
                    self.name, f"{filled[0]} cannot be run ({error.strerror})", "a program"
                ) from None
            if done.returncode:
                said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
                raise DataError(self.name, f"ended with code {done.returncode}: {said[0][:300]}")
            data = out.read_bytes() if out.exists() else done.stdout
            try:
                return Spoken(decode_audio(data, name=self.name))
            except AudioFileError as error:
                raise DataError(self.name, f"wrote no usable sound: {error.found}") from error


def open(name: str, options: Mapping[str, Any]) -> CommandVoice:  # noqa: A001
    """Open ``command/NAME``.

    Raises
    ------
    UsageError: no program given, or an unknown option.
    """
    full = f"command/{name}"
    values = read_options(full, options, OPTIONS)
    if not (values["run"] or "").strip():
        raise UsageError(
            full, "no program is given", "the option run", 'Such as -M run="espeak-ng -w {out}".'
        )
    return CommandVoice(name, values)
