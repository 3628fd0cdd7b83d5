"""Utterances as segments: what is said, what is performed, what is silence, and what is removed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.errors import DataError
from earwitness.models.protocols import Pause, Phrase, Segment, Vocalisation
from earwitness.scenes.bank import load_bank
from earwitness.scenes.dialogue_records import Dialogue, EventMark, Utterance
from earwitness.scenes.scenario import PlannedEvent, Scenario
from earwitness.scenes.voices_text import PAUSE_S, Line, RenderError, line_of, needs_of
from earwitness.stats.streams import stream

BANK = load_bank()
ALL = frozenset(tag.id for tag in BANK.tags)
NONE: frozenset[str] = frozenset()


def line(text: str, renders: frozenset[str] = NONE, seed: int = 0) -> Line:
    return line_of(text, BANK, renders, stream(seed, "test"))


def shape(segments: tuple[Segment, ...]) -> list[object]:
    """Segments without the lengths of pauses."""
    return [
        "pause" if isinstance(s, Pause) else s.tag if isinstance(s, Vocalisation)
        else s.text if s.manner is None else (s.manner, s.text)
        for s in segments
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fine by me.", ["Fine by me."]),
        ("Well [pauses] we could go.", ["Well", "pause", "we could go."]),
        ("I told her — I told her twice.", ["I told her —", "pause", "I told her twice."]),
        ("I- I told her.", ["I-", "pause", "I told her."]),
        ("We could... [long pause] go.", ["We could...", "pause", "go."]),
        ("[pauses] So we left.", ["So we left."]),
        ("So we left [pauses].", ["So we left."]),
        ("…so we left…", ["so we left…"]),
        ("We left and—", ["We left and—"]),
        (
            "From 2010–2012 it was a well-known place.",
            ["From 2010–2012 it was a well-known place."],
        ),
        ("I just [sighs] don't know.", ["I just don't know."]),
        ("I just [hums a tune] don't know.", ["I just don't know."]),
        ("Well [sighs], yes.", ["Well, yes."]),
    ],
)
def test_a_voice_that_renders_pauses_only(text: str, expected: list[object]) -> None:
    assert shape(line(text).segments) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I just [sighs] don't know.", ["I just", "sigh", "don't know."]),
        ("[Sighs] I know.", ["sigh", "I know."]),
        ("I know [laughs].", ["I know.", "laugh"]),
        (
            "We should [whispers] keep quiet. Then he came.",
            ["We should", ("whisper", "keep quiet."), "Then he came."],
        ),
        (
            "Go [whispers] now — please [pauses] do. Fine.",
            [
                "Go",
                ("whisper", "now —"),
                "pause",
                ("whisper", "please"),
                "pause",
                ("whisper", "do."),
                "Fine.",
            ],
        ),
        (
            "[tired] Not today, [whispers] not here. No.",
            [("tired", "Not today,"), ("whisper", "not here."), "No."],
        ),
        ("Yes [gasps] [pauses] no.", ["Yes", "gasp", "pause", "no."]),
    ],
)
def test_a_voice_that_renders_everything(text: str, expected: list[object]) -> None:
    found = line(text, ALL)
    assert shape(found.segments) == expected
    assert found.removed == ()


def test_what_is_removed_is_counted() -> None:
    found = line("[sighs] I [hums] just [pauses] know [laughs].", frozenset({"laugh"}))
    assert found.removed == ("sigh", "hums")
    assert found.text == "I just know."


def test_pauses_have_the_length_of_their_kind_and_repeat() -> None:
    kinds = {"[pauses]": "pause", "[long pause]": "long_pause", "...": "ellipsis", " —": "dash"}
    for written, kind in kinds.items():
        seconds = set()
        for seed in range(30):
            (pause,) = [
                s for s in line(f"Yes{written} no.", seed=seed).segments if isinstance(s, Pause)
            ]
            low, high = PAUSE_S[kind]
            assert low <= pause.seconds <= high
            seconds.add(pause.seconds)
            assert line(f"Yes{written} no.", seed=seed) == line(f"Yes{written} no.", seed=seed)
        assert len(seconds) > 20


@pytest.mark.parametrize("text", ["I [sighs know.", "I sighs] know."])
def test_brackets_without_a_partner_are_refused(text: str) -> None:
    with pytest.raises(DataError, match="utterance: a bracket without a partner in 'I"):
        line(text)


@pytest.mark.parametrize("text", ["[sighs]", "…", "[pauses] — ."])
def test_nothing_to_say_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="there is nothing to say"):
        line(text, ALL)


_PARTS = st.sampled_from(
    ["I know", "well-known", "and then", "No.", "Yes!", "—", "...", "[sighs]", "[pauses]", "[whispers]",
     "[long pause]", "[hums]", ",", "42", "[Clears  throat]", "[]"]
)  # fmt: skip


@given(st.lists(_PARTS, min_size=1, max_size=12), st.sets(st.sampled_from(sorted(ALL))))
@settings(derandomize=True, max_examples=300, deadline=None)
def test_whatever_is_written(parts: list[str], renders: set[str]) -> None:
    text = "Well " + " ".join(parts)
    found = line(text, frozenset(renders))
    said = [s for s in found.segments if isinstance(s, Phrase)]
    # Nothing in brackets is read out, and nothing else is lost.
    assert not any("[" in s.text or "]" in s.text for s in said)
    words = re.findall(r"[\w'-]*\w", re.sub(r"\[[^\]]*\]", " ", text))
    assert [w for s in said for w in re.findall(r"[\w'-]*\w", s.text)] == words
    for before, after in zip(found.segments, found.segments[1:], strict=False):
        assert not (isinstance(before, Pause) and isinstance(after, Pause))
    assert not isinstance(found.segments[0], Pause)
    assert not isinstance(found.segments[-1], Pause)
    for segment in found.segments:
        if isinstance(segment, Vocalisation):
            assert segment.tag in renders
        if isinstance(segment, Phrase) and segment.manner is not None:
            assert segment.manner in renders


def scene(
    register: str | None, text: str, reaction: str = "behavioral"
) -> tuple[Scenario, Dialogue]:
    event = PlannedEvent("e1", "dog_bark", reaction, register, "early")  # type: ignore[arg-type]
    scenario = Scenario("s1", "t", "t", "test", "park", "friends", "F", "M", (event,))
    timeline = (
        Utterance("A", "Hello."),
        EventMark("e1"),
        Utterance("B", text),
        Utterance("A", "Yes."),
    )
    return scenario, Dialogue("s1", "", timeline)


def test_what_a_label_rests_on() -> None:
    (need,) = needs_of(*scene("laugh_out_of_place", "I [laughs] know [sighs]."), BANK)
    assert (need.event, need.turn, need.tags) == ("e1", 1, frozenset({"laugh"}))
    assert needs_of(*scene("wait_it_out", "I … know."), BANK) == ()
    assert needs_of(*scene(None, "I know.", "ambient"), BANK) == ()


def test_a_register_without_its_tag() -> None:
    with pytest.raises(
        RenderError, match=r"scene s1, event e1: the next utterance has none of the tags"
    ):
        needs_of(*scene("laugh_out_of_place", "I know."), BANK)
