"""eSpeak NG: many voices, robotic, 0.002 CPU-seconds per second of speech.

The engine is GPL-3 and is called in a child process (:mod:`earwitness.models.voices.espeak_child`); the
library and its data come from the package ``espeakng-loader`` of the extra ``[espeak]``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

from earwitness.errors import DataError, MissingExtraError


@dataclass(frozen=True, slots=True)
class Manner:
    """How something is said. ``rate_wpm`` in words a minute; the others 0 to 99, volume 0 to 200."""

    rate_wpm: int = 160
    pitch: int = 50
    pitch_range: int = 50
    volume: int = 100


class Espeak:
    """eSpeak NG in a child process; a context manager.

    Raises
    ------
    MissingExtraError: ``espeakng-loader`` is not installed.
    DataError: the voice does not exist or the engine ended.
    """

    def __init__(self) -> None:
        if find_spec("espeakng_loader") is None:
            raise MissingExtraError("espeak voices", "espeak")
        self._child = subprocess.Popen(
            [sys.executable, "-m", "earwitness.models.voices.espeak_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def speak(self, text: str, voice: str, path: Path, manner: Manner | None = None) -> float:
        """Write ``text`` as a 22,050 Hz mono WAV file and return its seconds.

        ``text`` may hold SSML; ``voice`` is a name such as ``en-us+f2``.
        """
        manner = manner or Manner()
        request = {
            "text": text,
            "voice": voice,
            "path": str(path),
            "parameters": {
                "rate_wpm": manner.rate_wpm,
                "pitch": manner.pitch,
                "pitch_range": manner.pitch_range,
                "volume": manner.volume,
            },
        }
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        try:
            self._child.stdin.write(json.dumps(request) + "\n")
            self._child.stdin.flush()
            line = self._child.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise DataError("espeak", f"the engine ended (exit code {self._child.poll()})")
        answer = json.loads(line)
        if not answer["ok"]:
            raise DataError("espeak", answer["error"], wanted="a voice such as en-us+f2")
        return float(answer["seconds"])

    def close(self) -> None:
        if self._child.stdin is not None:
            self._child.stdin.close()
        if self._child.stdout is not None:
            self._child.stdout.close()
        self._child.wait(timeout=10)

    def __enter__(self) -> Espeak:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
