"""Transcribers: any program always; Whisper where it is installed."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from earwitness.audio.types import Audio
from earwitness.errors import DataError, MissingExtraError, UsageError
from earwitness.models.assets import asset_of, is_installed
from earwitness.models.protocols import Phrase, Transcriber
from earwitness.models.transcribers import whisper
from earwitness.models.transcribers.registry import list_transcribers, open_transcriber
from earwitness.models.transcribers.wording import comparable_words
from earwitness.models.voices.registry import open_voice

SOUND = Audio(np.sin(np.arange(48_000) / 9).astype(np.float32) / 2, 24_000)


def test_any_program_that_prints(tmp_path: Path) -> None:
    script = tmp_path / "listen.py"
    script.write_text(
        "import sys, wave\nf = wave.open(sys.argv[1])\n"
        "print(f.getframerate(), f.getnchannels(), round(f.getnframes() / f.getframerate(), 2))\n"
    )
    engine = open_transcriber("command/mine", {"run": f"{sys.executable} {script} {{file}}"})
    assert isinstance(engine, Transcriber)
    stereo = Audio(np.stack([SOUND.samples] * 2, axis=1), SOUND.rate)
    assert engine.transcribe(stereo).text == "16000 1 2.0"


@pytest.mark.parametrize(
    ("run", "what"),
    [
        ("no-such-program-here {file}", "cannot be run"),
        (
            f"{sys.executable} -c \"import sys; sys.exit('deaf')\" {{file}}",
            "ended with code 1: deaf",
        ),
    ],
)
def test_programs_that_fail(run: str, what: str) -> None:
    with pytest.raises(DataError, match=what):
        open_transcriber("command/mine", {"run": run}).transcribe(SOUND)


def test_names_that_are_none() -> None:
    with pytest.raises(
        UsageError, match=r"transcriber 'wisper/base': there is none; wanted whisper/"
    ):
        open_transcriber("wisper/base")
    with pytest.raises(UsageError, match=r"no program with \{file\} is given"):
        open_transcriber("command/mine", {"run": "listen"})


def test_whisper_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whisper, "find_spec", lambda _: None)
    with pytest.raises(
        MissingExtraError, match=r"whisper/base: needs the optional packages of \[local\]"
    ):
        open_transcriber("whisper/base")


def test_the_list_says_what_is_missing() -> None:
    found = {info.name: missing for info, missing in list_transcribers()}
    assert set(found) == {"whisper", "pocketsphinx", "command"}
    assert found["command"] == ""
    if find_spec("faster_whisper") is None:
        assert found["whisper"] == 'packages: pip install "earwitness[local]"'


def test_whisper_understands_the_default_voice() -> None:
    if find_spec("faster_whisper") is None or not is_installed(asset_of("whisper-base")):
        pytest.skip(
            'Whisper is not installed here: pip install "earwitness[local]", earwitness asr install'
        )
    text = "The landlord says the boiler will be replaced before the end of the month."
    spoken = open_voice("hibari/heart-m1").speak([Phrase(text)])
    engine = open_transcriber("whisper/base")
    found = engine.transcribe(spoken.audio)
    assert comparable_words(found.text) == comparable_words(text)
    assert len(found.words) == len(text.split())
    for heard, said in zip(found.words, spoken.words, strict=True):
        assert abs(heard.start_s - said.start_s) < 0.35
    assert engine.transcribe(spoken.audio) == found
    assert len(engine.settings["weights"]) == 64
