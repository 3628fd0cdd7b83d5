"""``espeak/VOICE``: eSpeak NG, many voices, robotic, 0.002 CPU-seconds per second of speech.

The engine is GPL-3 and is called in a child process (:mod:`earwitness.models.voices.espeak_child`); the
library and its data come from the package ``espeakng-loader`` of the extra ``[espeak]``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

from earwitness.audio.io import read_audio
from earwitness.errors import DataError, MissingExtraError
from earwitness.models.options import Option, read_options
from earwitness.models.protocols import Gender, Phrase, Spoken, Word
from earwitness.models.voices.info import EngineInfo, VoiceInfo
from earwitness.models.voices.pieces import PieceVoice

LANGUAGES = {
    "en-us": "en-US",
    "en": "en-GB",
    "en-gb-scotland": "en-GB",
    "en-gb-x-rp": "en-GB",
    "en-gb-x-gbclan": "en-GB",
    "en-gb-x-gbcwmd": "en-GB",
    "en-029": "en-029",
}
VARIANTS: Mapping[str, Gender] = {
    **{f"m{n}": "M" for n in range(1, 9)},
    **{f"f{n}": "F" for n in range(1, 6)},
}
"""Variants of a voice that ship with eSpeak NG, with the gender its own files give them."""

OPTIONS = (
    Option("rate_wpm", "integer", "words a minute", 160, least=80),
    Option("pitch", "integer", "0 to 99", 50, least=0),
    Option("pitch_range", "integer", "0 to 99", 50, least=0),
)

INFO = EngineInfo(
    name="espeak",
    form="espeak/LANGUAGE+VARIANT",
    summary="eSpeak NG in a child process: many robotic voices, the fastest there is",
    options=OPTIONS,
    voices=tuple(
        VoiceInfo(f"{base}+{variant}", gender, LANGUAGES[base])
        for base in ("en-us", "en")
        for variant, gender in VARIANTS.items()
    ),
    extra="espeak",
    modules=("espeakng_loader",),
    licence="GPL-3.0-or-later (engine, run apart)",
)


@dataclass(frozen=True, slots=True)
class Manner:
    """How something is said. ``rate_wpm`` in words a minute; the others 0 to 99, volume 0 to 200."""

    rate_wpm: int = 160
    pitch: int = 50
    pitch_range: int = 50
    volume: int = 100


@dataclass(frozen=True, slots=True)
class Said:
    """What the child answered: seconds of sound, and per word its place in the text and its start in seconds."""

    seconds: float
    words: tuple[tuple[int, float], ...] = ()


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
        return self.ask(text, voice, path, manner, ssml=True, afresh=False).seconds

    def ask(
        self,
        text: str,
        voice: str,
        path: Path,
        manner: Manner | None = None,
        *,
        ssml: bool = False,
        afresh: bool = True,
    ) -> Said:
        """Like :meth:`speak`, with the words' times; plain text unless ``ssml``.

        ``afresh`` says it as if nothing had been said before, so that it repeats.
        """
        manner = manner or Manner()
        request = {
            "text": text,
            "voice": voice,
            "path": str(path),
            "ssml": ssml,
            "afresh": afresh,
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
        words = tuple((int(place), float(start)) for place, start in answer["words"])
        return Said(float(answer["seconds"]), words)

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


class EspeakVoice(PieceVoice):
    """One eSpeak NG voice. Use :func:`open` to make one."""

    def __init__(self, voice: str, values: Mapping[str, Any]) -> None:
        base, _, variant = voice.partition("+")
        self.name = f"espeak/{voice}"
        self.gender = VARIANTS.get(variant, "M" if not variant else None)
        self.language = LANGUAGES.get(base, base.split("-")[0])
        self.deterministic = hasattr(os, "fork")
        self._voice = voice
        self._manner = Manner(values["rate_wpm"], values["pitch"], values["pitch_range"])
        self._engine: Espeak | None = None

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """The engine's version and the manner."""
        from importlib import metadata

        return {
            "engine": f"espeakng-loader {metadata.version('espeakng-loader')}",
            "rate_wpm": self._manner.rate_wpm,
            "pitch": self._manner.pitch,
            "pitch_range": self._manner.pitch_range,
        }

    def say(self, phrase: Phrase, seed: int) -> Spoken:
        """Say one phrase, with its words' times."""
        del seed
        if self._engine is None:
            self._engine = Espeak()
        with tempfile.TemporaryDirectory(prefix="earwitness-") as folder:
            path = Path(folder) / "said.wav"
            said = self._engine.ask(phrase.text, self._voice, path, self._manner)
            audio = read_audio(path, require_sound=False)
        return Spoken(audio, words_from_starts(phrase.text, said.words, said.seconds))

    def close(self) -> None:
        """End the child process."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None


def words_from_starts(
    text: str, starts: Sequence[tuple[int, float]], seconds: float
) -> tuple[Word, ...]:
    """Words of a text from the times that the engine gives for places in it.

    The engine speaks some short words as one ("of the"); they share its span by their letters. A word ends
    where the next begins.

    Examples
    --------
    >>> words_from_starts("of the end", [(0, 0.0), (7, 0.5)], 1.0)[1]
    Word(text='the', start_s=0.2, end_s=0.5)
    """
    from earwitness.models.voices.words import spoken_tokens

    tokens = spoken_tokens(text)
    if not tokens or not starts:
        return ()
    groups: list[tuple[float, list[tuple[str, int]]]] = []
    for token, place in tokens:
        own = [start for at, start in starts if place <= at < place + len(token)]
        if own or not groups:
            groups.append((own[0] if own else 0.0, []))
        groups[-1][1].append((token, place))
    words = []
    for number, (start, members) in enumerate(groups):
        end = groups[number + 1][0] if number + 1 < len(groups) else seconds
        letters = sum(len(token) for token, _ in members)
        at = start
        for token, _ in members:
            until = at + (end - start) * len(token) / letters
            words.append(Word(token, round(at, 4), round(until, 4)))
            at = until
    return tuple(words)


def open(name: str, options: Mapping[str, Any]) -> EspeakVoice:  # noqa: A001
    """Open ``espeak/NAME``, such as ``espeak/en-us+m3``.

    Raises
    ------
    MissingExtraError: ``espeakng-loader`` is not installed.
    UsageError: an unknown option.
    """
    if find_spec("espeakng_loader") is None:
        raise MissingExtraError(f"espeak/{name}", "espeak")
    return EspeakVoice(name, read_options(f"espeak/{name}", options, OPTIONS))
