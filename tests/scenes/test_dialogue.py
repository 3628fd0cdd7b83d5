"""Records, JSON, delivery tags, transcripts, limits and bands."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.errors import DataError
from earwitness.scenes.bank import load_bank
from earwitness.scenes.bank_records import LimitsPart
from earwitness.scenes.dialogue import (
    Dialogue,
    EventMark,
    Utterance,
    band_range,
    count_words,
    default_limits,
    dialogue_from_json,
    dialogue_to_json,
    embedded_scenario,
    plain_text,
    render_transcript,
    spoken_seconds,
)
from earwitness.scenes.scenario import BANDS, scenario_to_json
from earwitness.scenes.tags import has_speech, split_tags, strip_tags, tag_of
from tests.scenes.dialogue_examples import FENCE, STAIRCASE, fence, staircase

BRACKETED = st.text(st.sampled_from("ab .,[]…—!\n"), max_size=60)


@pytest.mark.parametrize("dialogue", [staircase(), fence()])
def test_json_round_trip(dialogue: Dialogue) -> None:
    text = json.dumps(dialogue_to_json(dialogue))
    assert dialogue_from_json(json.loads(text)) == dialogue
    assert list(json.loads(text)) == ["scenario", "topic", "timeline"]


def test_keys_of_others_are_left_alone() -> None:
    value = {**dialogue_to_json(fence()), "writer": "x", "seed": 3}
    assert dialogue_from_json(value) == fence()


def test_a_scenario_may_come_along() -> None:
    value = {**dialogue_to_json(fence()), "scenario": scenario_to_json(FENCE)}
    assert dialogue_from_json(value) == fence()
    assert embedded_scenario(value) == FENCE
    assert embedded_scenario(dialogue_to_json(fence())) is None
    with pytest.raises(DataError, match="not a scenario"):
        embedded_scenario({"scenario": {"id": "x", "events": [{"id": 1}]}})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "dialogue: a list; wanted an object"),
        ({"topic": "t", "timeline": []}, "dialogue: scenario: nothing; wanted a string"),
        ({"scenario": "s", "topic": 3, "timeline": []}, "dialogue: topic: a number"),
        ({"scenario": "s", "topic": "t", "timeline": {}}, "dialogue: timeline: an object; wanted a list"),
        ({"scenario": "s", "topic": "t", "timeline": [3]}, r"timeline\[0\]: a number"),
        ({"scenario": "s", "topic": "t", "timeline": [{}]}, "an object with nothing in it"),
        (
            {"scenario": "s", "topic": "t", "timeline": [{"speaker": "A"}]},
            r"an object with speaker: a string; wanted \{",
        ),
        (
            {"scenario": "s", "topic": "t", "timeline": [{"speaker": "A", "text": None}]},
            "text: nothing",
        ),
        (
            {"scenario": "s", "topic": "t", "timeline": [{"event": True}]},
            "event: a truth value",
        ),
    ],
)  # fmt: skip
def test_what_is_no_dialogue_is_refused(value: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        dialogue_from_json(value)


def test_places_of_events() -> None:
    dialogue = staircase()
    assert dialogue.events == (("e1", 2), ("e2", 5), ("e3", 7))
    assert dialogue.position("e2") == 5
    assert dialogue.after("e3") == dialogue.utterances[7:]
    with pytest.raises(KeyError):
        dialogue.after("e4")


@pytest.mark.parametrize(
    ("text", "pieces", "plain"),
    [
        ("I just [sighs] don't know.", [("speech", "I just"), ("tag", "sighs"), ("speech", "don't know.")],
         "I just don't know."),
        ("[ Clears   Throat ] So.", [("tag", "clears throat"), ("speech", "So.")], "So."),
        ("Well [sighs], fine", [("speech", "Well"), ("tag", "sighs"), ("speech", ", fine")], "Well, fine"),
        ("[sighs][pauses]", [("tag", "sighs"), ("tag", "pauses")], ""),
        ("a [b c", [("speech", "a [b c")], "a [b c"),
        ("[]", [("tag", "")], ""),
        ("", [], ""),
    ],
)  # fmt: skip
def test_tags_are_split_from_speech(text: str, pieces: list[tuple[str, str]], plain: str) -> None:
    assert [(piece.kind, piece.content) for piece in split_tags(text)] == pieces
    assert strip_tags(text) == plain
    assert plain_text(Utterance("A", text)) == plain


@settings(derandomize=True, deadline=None, max_examples=200)
@given(BRACKETED)
def test_pieces_are_in_order_and_tags_leave_nothing_behind(text: str) -> None:
    pieces = split_tags(text)
    assert all(one.end <= two.start for one, two in pairwise(pieces))
    assert strip_tags(strip_tags(text)) == strip_tags(text) or "[" in strip_tags(text)
    assert has_speech(text) == (count_words(text) > 0)


def test_tags_of_a_bank() -> None:
    bank = load_bank()
    found = tag_of(bank, " Clears throat ")
    assert found is not None
    assert found.id == "throat"
    assert tag_of(bank, "throat") is None


def test_transcripts() -> None:
    bank = load_bank()
    heard = render_transcript(fence(), FENCE, bank=bank)
    assert (
        "\n[SOUND: e2]\nB: My cousin is a nurse and she [a sudden breath drawn in] sleeps" in heard
    )
    written = render_transcript(fence(), FENCE, tags="written", sound_marks=False, bank=bank)
    assert "she [gasps] sleeps" in written
    assert "SOUND" not in written
    bare = render_transcript(fence(), FENCE, tags="none", bank=bank)
    assert "she sleeps through anything" in bare
    assert len(bare.split("\n")) == 15


def test_what_is_not_planned_or_not_a_tag_is_not_heard() -> None:
    bank = load_bank()
    dialogue = Dialogue("s", "", (EventMark("e7"), Utterance("A", "Yes [twirls], yes.")))
    assert render_transcript(dialogue, STAIRCASE, bank=bank) == "A: Yes, yes."


def test_limits() -> None:
    limits = default_limits()
    assert limits.utterances(STAIRCASE) == (8, 13)
    assert limits.utterances(None) == (8, 13)
    assert limits.utterances(FENCE) == (8, 16)
    changed = limits.with_changes(LimitsPart(max_words=30))
    assert (changed.max_words, changed.min_utterances) == (30, 8)
    assert limits.with_changes(None) is limits


@pytest.mark.parametrize("count", range(30))
def test_bands_are_thirds_of_the_eligible_span(count: int) -> None:
    """The definition, walked: position ``k`` is in the band ``floor(3 (k - 1) / m)``."""
    eligible = max(count - 4, 0)
    for third, band in enumerate(BANDS):
        expected = [k for k in range(1, eligible + 1) if 3 * (k - 1) // eligible == third]
        assert list(band_range(count, band)) == expected


def test_bands_leave_what_limits_ask_for() -> None:
    assert [list(band_range(8, band, after=2)) for band in BANDS] == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's a well-known thing", 5),
        ("It’s [clears throat] fine", 2),
        ("40 euros", 2),
        ("…", 0),
        ("今日は", 3),
        ("Größe, naïve", 2),
    ],
)
def test_words_are_counted_as_spoken(text: str, words: int) -> None:
    assert count_words(text) == words


def test_seconds() -> None:
    def seconds(*texts: str) -> float:
        return spoken_seconds(Dialogue("s", "", tuple(Utterance("A", text) for text in texts)))

    limits = default_limits()
    assert seconds() == 0
    assert seconds("one two") == pytest.approx(2 / limits.words_per_second)
    assert seconds("one", "two") == pytest.approx(seconds("one two") + limits.seconds_between_turns)
    assert seconds("one… two") == pytest.approx(seconds("one two") + limits.seconds_per_break)
    assert seconds("one [sighs] two") == pytest.approx(seconds("one two") + limits.seconds_per_tag)
    # Scenes of the paper last 120.4 s; so do these two, nearly.
    assert 110 < spoken_seconds(staircase()) < 130
