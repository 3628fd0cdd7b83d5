"""Word errors: counted by voice, with intervals over scenes, transcripts made once."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from earwitness.audio.convert import write_audio
from earwitness.audio.io import read_audio
from earwitness.audio.types import Audio
from earwitness.errors import DataError, UsageError
from earwitness.scenes import intelligibility
from earwitness.scenes.bank import load_bank
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.intelligibility import GAP_S, TRANSCRIPTS, count_errors, measure
from earwitness.scenes.voices import SpokenTurn, read_voices, speak_corpus
from earwitness.scenes.voices_cast import open_cast
from tests.scenes.voices_corpus import make_corpus

LISTENER = """
import sys, wave
with wave.open(sys.argv[1]) as file:
    key = str(file.getnframes())
for line in open(sys.argv[2], encoding="utf-8"):
    frames, text = line.rstrip("\\n").split("\\t")
    if frames == key:
        print(text)
        break
else:
    print("nothing known")
"""


def turn(voice: str, text: str, index: int = 0) -> SpokenTurn:
    return SpokenTurn("s1", index, "A", voice, text, "f", "h", 1, 1, (), (), ())


class TestCounting:
    turns = (turn("v1", "We could take the early train."), turn("v2", "It costs forty euros."))

    def test_all_understood(self) -> None:
        found = count_errors(self.turns, "we could take the early train, it costs 40 euros")
        assert found == {"v1": (0, 6), "v2": (0, 4)}

    @pytest.mark.parametrize(
        ("heard", "errors"),
        [
            ("we could take an early train it costs forty euros", (1, 0)),
            ("we could take the train it costs forty euros", (1, 0)),
            ("we could take the early train it it costs fourteen euros", (0, 2)),
            ("so we could take the early train it costs forty euros", (1, 0)),
            ("we could take the early train it costs forty euros each", (0, 1)),
            ("we could take the early train", (0, 4)),
            ("", (6, 4)),
            ("…", (6, 4)),
        ],
    )
    def test_errors_belong_to_who_was_misheard(self, heard: str, errors: tuple[int, int]) -> None:
        found = count_errors(self.turns, heard)
        # A repeated first word may count for either side of the boundary; the sum is what matters.
        assert sum(e for e, _ in found.values()) == sum(errors)
        if "it it" not in heard:
            assert (found["v1"][0], found["v2"][0]) == errors

    def test_two_turns_of_one_voice(self) -> None:
        turns = (*self.turns, turn("v1", "Yes."))
        heard = "we could take the early train it costs forty euros no"
        assert count_errors(turns, heard)["v1"] == (1, 7)

    def test_no_words(self) -> None:
        with pytest.raises(DataError, match="scene s1: has no words"):
            count_errors((turn("v1", "…"),), "anything")


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Three scenes, spoken, with mixes of two of them."""
    corpus = make_corpus(
        tmp_path_factory.mktemp("x") / "corpus", templates=3, utterances=9, cast="espeak"
    )
    cast, voices = open_cast("espeak")
    speak_corpus(corpus, cast, voices, load_bank(), workers=1)
    for scene, turns in list(read_voices(corpus.folder).items())[:2]:
        sounds = [read_audio(corpus.path(each.file)).samples for each in turns]
        mix = Audio(np.concatenate([*sounds, np.zeros(5000, np.float32)]), 22_050)
        write_audio(corpus.path(f"mixes/{scene}.wav"), mix)
    return corpus


@pytest.fixture
def listener(spoken: Corpus, tmp_path: Path) -> dict[str, str]:
    """A program that knows what is said in each recording by its length, and mishears every mix a little."""
    script, table = tmp_path / "listen.py", tmp_path / "known.tsv"
    script.write_text(LISTENER)
    lines = []
    for number, (scene, turns) in enumerate(read_voices(spoken.folder).items()):
        words = " ".join(each.text for each in turns)
        rate = max(each.rate for each in turns)
        frames = sum(each.frames for each in turns) + (len(turns) - 1) * round(GAP_S * rate)
        lines.append(f"{frames}\t{words}")
        mix = spoken.path(f"mixes/{scene}.wav")
        if mix.exists():
            misheard = words.replace("landlord", "man") if number else words
            lines.append(f"{read_audio(mix).frames}\t{misheard}")
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"run": f"{sys.executable} {script} {{file}} {table}", "rate": "22050"}


def test_mixes_against_clean_speech(spoken: Corpus, listener: dict[str, str]) -> None:
    found = measure(spoken, transcriber="command/known", options=listener, workers=1)
    clean, mix = found.overall["clean"], found.overall["mix"]
    assert (clean.errors, clean.scenes) == (0, 3)
    assert mix.scenes == 2
    assert mix.errors == 1
    assert mix.interval is not None
    assert mix.interval.low <= mix.wer <= mix.interval.high
    assert mix.few
    assert found.loss is not None
    assert found.loss[0] == pytest.approx(mix.wer)
    assert sum(part.errors for part in found.by_location["mix"].values()) == 1
    assert sum(part.words for part in found.by_voice["clean"].values()) == clean.words
    assert all(
        part.interval is None for part in found.by_location["mix"].values() if part.scenes == 1
    )
    assert found.worst[0][0] == "mix"


def test_transcripts_are_made_once(
    spoken: Corpus, listener: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = measure(spoken, transcriber="command/once", options=listener, workers=1)
    lines = spoken.path(TRANSCRIPTS).read_text()

    def never(_: object) -> None:
        raise AssertionError("transcribed again")

    monkeypatch.setattr(intelligibility, "_sound", never)
    assert measure(spoken, transcriber="command/once", options=listener, workers=1) == first
    assert spoken.path(TRANSCRIPTS).read_text() == lines


def test_two_processes_find_the_same(spoken: Corpus, listener: dict[str, str]) -> None:
    one = measure(
        spoken, transcriber="command/w", options=listener, conditions=["clean"], workers=1
    )
    spoken.path(TRANSCRIPTS).unlink()
    two = measure(
        spoken, transcriber="command/w", options=listener, conditions=["clean"], workers=2
    )
    assert one == two


def test_a_larger_sample_contains_the_smaller(spoken: Corpus) -> None:
    scenes = tuple(f"s{number}" for number in range(50))
    small, large = (set(intelligibility._sampled(scenes, n, 3)) for n in (10, 20))
    assert small < large
    assert intelligibility._sampled(scenes, 99, 3) == scenes
    assert set(intelligibility._sampled(scenes, 10, 4)) != small


def test_no_mixes(tmp_path: Path, spoken: Corpus, listener: dict[str, str]) -> None:
    hidden = spoken.path("mixes").rename(spoken.path("hidden"))
    try:
        with pytest.raises(
            DataError, match=r"mixes: has no mix of these scenes.*--condition clean"
        ):
            measure(
                spoken, transcriber="command/n", options=listener, conditions=["mix"], workers=1
            )
    finally:
        hidden.rename(spoken.path("mixes"))


def test_a_sample_of_nothing(spoken: Corpus, listener: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="--sample: 0; wanted at least 1"):
        measure(spoken, transcriber="command/n", options=listener, sample=0)
