"""Times of words."""

from __future__ import annotations

from earwitness.models.protocols import Word
from earwitness.models.voices.espeak import words_from_starts
from earwitness.models.voices.words import spoken_tokens, words_from_phonemes


def letters(character: str) -> bool:
    return character.isalpha()


def test_tokens_without_sound_are_no_words() -> None:
    assert spoken_tokens(" — no… 'never', 42! ") == (("no", 3), ("never", 8), ("42", 16))
    assert spoken_tokens("") == ()


def test_each_group_of_phonemes_is_a_word() -> None:
    words = words_from_phonemes(
        "so it is.", "so it is.", [2, 3, 1, 1, 2, 4, 1, 2, 9], 0.5, letters, len
    )
    assert words == (Word("so", 0.0, 2.5), Word("it", 3.0, 4.5), Word("is", 6.5, 8.0))


def test_a_figure_takes_as_many_groups_as_it_is_spoken_in() -> None:
    phonemes = "in a b c"
    steps = [1.0] * len(phonemes)
    counts = {"in": 1, "2024": 3}
    words = words_from_phonemes("in 2024", phonemes, steps, 1.0, letters, counts.__getitem__)
    assert words == (Word("in", 0.0, 2.0), Word("2024", 3.0, 8.0))


def test_no_times_are_better_than_wrong_ones() -> None:
    assert words_from_phonemes("one two", "a b c", [1.0] * 5, 1.0, letters, lambda _: 1) == ()


def test_words_spoken_as_one_share_their_span() -> None:
    words = words_from_starts("out of the way", [(0, 0.0), (4, 0.4), (11, 1.0)], 1.5)
    assert [word.text for word in words] == ["out", "of", "the", "way"]
    assert words[1].start_s == 0.4
    assert words[1].end_s == words[2].start_s == 0.64
    assert words[3] == Word("way", 1.0, 1.5)


def test_nothing_is_known_without_events() -> None:
    assert words_from_starts("hello", [], 1.0) == ()
    assert words_from_starts("—", [(0, 0.0)], 1.0) == ()
