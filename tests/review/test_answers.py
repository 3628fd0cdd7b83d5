"""Whatever is sent, only well-formed answers are kept."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.clips.corpus import EMOTIONS
from earwitness.review.answers import AnswerError, read_answer, read_seconds
from earwitness.review.project import Project
from earwitness.scenes.bank_records import REACTIONS

LABEL = Project("label", "t")
BLIND = Project("review", "t", blind=True)
OPEN = Project("review", "t")
SHOWN = {"sounds": [{"id": "s1"}, {"id": "s2"}]}

anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.sampled_from([*REACTIONS, *EMOTIONS, "good"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
fields = st.dictionaries(
    st.sampled_from(["labels", "label.s1", "label.s2", "note", "audio_quality", "match", "perceived_emotion", "x"]),
    anything | st.dictionaries(st.sampled_from(["s1", "s2", "s3"]), anything),
)  # fmt: skip


@settings(max_examples=60)
@given(sent=fields, project=st.sampled_from([LABEL, BLIND, OPEN]))
def test_an_answer_is_well_formed_or_refused(sent: dict[str, Any], project: Project) -> None:
    try:
        kept = read_answer(project, SHOWN, sent)
    except AnswerError:
        return
    assert isinstance(kept["note"], str)
    assert len(kept["note"]) <= 2000
    kept["note"].encode("utf-8")
    if project.kind == "label":
        assert set(kept) == {"labels", "note"}
        assert set(kept["labels"]) == {"s1", "s2"}
        assert set(kept["labels"].values()) <= set(REACTIONS)
    else:
        assert set(kept) == {"audio_quality", "match", "perceived_emotion", "note"}
        assert kept["audio_quality"] in ("good", "poor")
        assert (kept["match"] is None) == project.blind
        assert (kept["perceived_emotion"] in EMOTIONS) == project.blind


def test_forms_and_objects_give_the_same_answer() -> None:
    form = read_answer(LABEL, SHOWN, {"label.s1": "pivot", "label.s2": "ambient", "note": " hm "})
    json = read_answer(LABEL, SHOWN, {"labels": {"s1": "pivot", "s2": "ambient"}, "note": "hm"})
    assert form == json == {"labels": {"s1": "pivot", "s2": "ambient"}, "note": "hm"}


def test_what_is_missing_is_named() -> None:
    with pytest.raises(AnswerError, match="Sound 2 has no answer yet"):
        read_answer(LABEL, SHOWN, {"label.s1": "pivot"})
    with pytest.raises(AnswerError, match="must be one of pivot, verbal, behavioral, ambient"):
        read_answer(LABEL, SHOWN, {"labels": {"s1": "pivot", "s2": "loud"}})
    with pytest.raises(AnswerError, match="Choose the emotion you hear"):
        read_answer(BLIND, {}, {"audio_quality": "good", "match": "yes"})
    with pytest.raises(AnswerError, match="whether the performance fits"):
        read_answer(OPEN, {}, {"audio_quality": "good", "perceived_emotion": "fear"})


@pytest.mark.parametrize("seconds", [-1, 1e9, "x", None, float("nan"), [], float("inf")])
def test_times_nobody_believes_are_dropped(seconds: object) -> None:
    assert read_seconds({"seconds": seconds}) is None


def test_a_time_is_kept() -> None:
    assert read_seconds({"seconds": "12.34"}) == 12.3


@pytest.mark.parametrize(
    ("project", "sent"),
    [
        (BLIND, {"audio_quality": "good", "perceived_emotion": "anger", "match": {}}),
        (OPEN, {"audio_quality": "good", "match": "yes", "perceived_emotion": "rage"}),
    ],
)
def test_what_is_not_asked_must_still_be_well_formed(
    project: Project, sent: dict[str, Any]
) -> None:
    with pytest.raises(AnswerError, match="must be one of"):
        read_answer(project, SHOWN, sent)


@pytest.mark.parametrize("labels", [{"s1": "pivot"}, None, []])
def test_a_clip_has_no_sounds_to_label(labels: object) -> None:
    sent = {"audio_quality": "good", "match": "yes", "labels": labels}
    with pytest.raises(AnswerError, match="no sounds to label"):
        read_answer(OPEN, SHOWN, sent)
