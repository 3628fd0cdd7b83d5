"""Phrases, pauses and breaths in a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from earwitness.audio.types import Audio
from earwitness.errors import DataError
from earwitness.models.protocols import Mark, Pause, Phrase, Spoken, Vocalisation, Voice, Word
from earwitness.models.voices.pieces import MARGIN_S, PieceVoice, trimmed

RATE = 16_000


def tone(seconds: float, peak: float = 0.3, rate: int = RATE) -> np.ndarray:
    at = np.arange(round(seconds * rate)) / rate
    return (peak * np.sin(2 * np.pi * 200 * at)).astype(np.float32)


class Hummer(PieceVoice):
    """0.2 s of silence, a hum of 0.1 s a word, 0.3 s of silence."""

    name = "test/hummer"
    renders = frozenset({"pause", "sigh"})

    def __init__(self, peak: float = 0.3, rate: int = RATE, timed: bool = True) -> None:
        self.peak, self.rate, self.timed = peak, rate, timed

    @property
    def settings(self) -> Mapping[str, Any]:
        return {}

    def say(self, phrase: Phrase, seed: int) -> Spoken:
        names = phrase.text.split()
        sound = tone(0.1 * len(names), self.peak, self.rate) if phrase.text != "(mute)" else tone(0)
        edges = (
            np.zeros(round(0.2 * self.rate), np.float32),
            np.zeros(round(0.3 * self.rate), np.float32),
        )
        words = tuple(
            Word(name, 0.2 + 0.1 * n, 0.3 + 0.1 * n) for n, name in enumerate(names) if self.timed
        )
        return Spoken(Audio(np.concatenate([edges[0], sound, edges[1]]), self.rate), words)

    def vocalise(self, sound: Vocalisation, seed: int) -> Audio:
        return Audio(tone(0.25, 0.05, 24_000), 24_000)


def test_it_is_a_voice() -> None:
    assert isinstance(Hummer(), Voice)


def test_a_pause_is_exactly_its_length_of_digital_silence() -> None:
    spoken = Hummer().speak([Phrase("one two"), Pause(0.8), Phrase("three")])
    (mark,) = spoken.marks
    assert mark == Mark("pause", 0.26, 1.06)
    quiet = spoken.audio.samples[round(mark.start_s * RATE) : round(mark.end_s * RATE)]
    assert not quiet.any()
    assert spoken.audio.seconds == pytest.approx(0.26 + 0.8 + 0.16, abs=0.011)


def test_words_move_along_with_what_is_trimmed_and_put_in() -> None:
    spoken = Hummer().speak([Phrase("one two"), Pause(0.8), Phrase("three")])
    assert [word.text for word in spoken.words] == ["one", "two", "three"]
    assert spoken.words[0].start_s == pytest.approx(MARGIN_S, abs=0.011)
    assert spoken.words[2].start_s == pytest.approx(1.06 + MARGIN_S, abs=0.011)
    for word in spoken.words:
        middle = round((word.start_s + word.end_s) / 2 * RATE)
        assert np.abs(spoken.audio.samples[middle - 100 : middle + 100]).max() > 0.2


def test_one_phrase_without_times_leaves_the_utterance_without() -> None:
    class Forgetful(Hummer):
        def say(self, phrase: Phrase, seed: int) -> Spoken:
            said = super().say(phrase, seed)
            return said if phrase.text == "one" else Spoken(said.audio)

    assert Forgetful().speak([Phrase("one")]).words
    assert Forgetful().speak([Phrase("one"), Pause(0.3), Phrase("two")]).words == ()


def test_a_vocalisation_and_a_manner_are_marked() -> None:
    spoken = Hummer().speak(
        [Phrase("one"), Vocalisation("sigh", "sighs"), Phrase("two", "whisper")]
    )
    assert [mark.kind for mark in spoken.marks] == ["sigh", "whisper"]
    assert spoken.audio.rate == 24_000  # The higher rate of the two.
    assert spoken.marks[0].end_s - spoken.marks[0].start_s == pytest.approx(0.25, abs=0.001)
    assert [word.text for word in spoken.words] == ["one", "two"]


def test_too_loud_is_turned_down_as_a_whole() -> None:
    loud = Hummer(peak=1.6).speak([Phrase("one"), Pause(0.5), Phrase("two")])
    assert np.abs(loud.audio.samples).max() == pytest.approx(0.98, abs=1e-3)
    soft = Hummer(peak=0.5).speak([Phrase("one")])
    assert np.abs(soft.audio.samples).max() == pytest.approx(0.5, abs=1e-3)


def test_silence_for_words_is_refused() -> None:
    with pytest.raises(
        DataError, match=r"test/hummer: gave no sound for '\(mute\)'; wanted speech"
    ):
        Hummer().speak([Phrase("(mute)")])


def test_nothing_to_say_is_refused() -> None:
    with pytest.raises(DataError, match="was given nothing to say"):
        Hummer().speak([Pause(0.5)])


def test_a_tag_nobody_declared_is_refused() -> None:
    class Plain(Hummer):
        def vocalise(self, sound: Vocalisation, seed: int) -> Audio:
            return PieceVoice.vocalise(self, sound, seed)

    with pytest.raises(DataError, match=r"test/hummer: cannot render \[coughs\]"):
        Plain().speak([Phrase("one"), Vocalisation("cough", "coughs")])


def test_two_channels_become_one() -> None:
    class Stereo(Hummer):
        def say(self, phrase: Phrase, seed: int) -> Spoken:
            said = super().say(phrase, seed)
            both = np.stack([said.audio.samples] * 2, axis=1)
            return Spoken(Audio(both, said.audio.rate), said.words)

    assert Stereo().speak([Phrase("one")]).audio.channels == 1


def test_soft_onsets_survive_the_trim() -> None:
    soft = tone(0.05, 0.01)  # 30 dB under the rest: a fricative.
    samples = np.concatenate([np.zeros(RATE // 2, np.float32), soft, tone(0.4)])
    kept = trimmed(Spoken(Audio(samples, RATE)))
    assert kept.audio.seconds == pytest.approx(0.05 + 0.4 + MARGIN_S, abs=0.011)


def test_marks_are_moved_with_the_trim() -> None:
    samples = np.concatenate([np.zeros(RATE // 2, np.float32), tone(0.5)])
    moved = trimmed(Spoken(Audio(samples, RATE), (), (Mark("pause", 0.6, 0.7),)))
    assert moved.marks[0].start_s == pytest.approx(0.6 - 0.5 + MARGIN_S, abs=0.011)
