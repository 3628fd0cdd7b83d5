"""The balanced subset: seeded, independent of order, with as many speakers as can be."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.clips.selection import Candidate, choose_clips, choose_speakers, draw
from earwitness.errors import DataError, UsageError

LABELS = ("anger", "fear", "sadness")


def corpus(speakers: int = 6, takes: int = 4) -> list[Candidate]:
    return [
        Candidate(f"{label}-{speaker}-{take}", label, f"s{speaker}")
        for label, speaker, take in itertools.product(LABELS, range(speakers), range(takes))
    ]


def by_label(ids: frozenset[str], candidates: list[Candidate]) -> Counter[str]:
    return Counter(c.label for c in candidates if c.id in ids)


def test_every_label_gets_its_number_and_the_order_of_candidates_does_not_matter():
    candidates = corpus()
    chosen = choose_clips(candidates, 5, seed=1)
    assert by_label(chosen, candidates) == dict.fromkeys(LABELS, 5)
    assert chosen == choose_clips(candidates[::-1], 5, seed=1)
    assert chosen != choose_clips(candidates, 5, seed=2)


def test_a_label_repeats_a_speaker_only_when_it_has_all_of_them():
    candidates = corpus(speakers=6)
    chosen = choose_clips(candidates, 8, seed=3)
    for label in LABELS:
        speakers = Counter(c.speaker for c in candidates if c.id in chosen and c.label == label)
        assert len(speakers) == 6
        assert set(speakers.values()) == {1, 2}


def test_a_draw_depends_on_its_name_alone():
    assert draw(1, "clip/a") == draw(1, "clip/a")
    assert len({draw(seed, name) for seed in (1, 2) for name in ("clip/a", "clip/b")}) == 4


def test_speakers_are_kept_apart_even_when_only_a_few_choices_allow_it():
    # Taking s2 for anger would leave fear with s2 alone and one speaker in all.
    candidates = [
        Candidate("a1", "anger", "s1"),
        Candidate("a2", "anger", "s2"),
        Candidate("f2", "fear", "s2"),
    ]
    for seed in range(20):
        assert choose_clips(candidates, 1, seed=seed) == {"a1", "f2"}


def test_labels_that_compete_for_speakers_leave_none_out():
    # Filling label by label would often take s1 and s3 first and leave sadness with speakers used before.
    have = {"anger": ("s1", "s2"), "fear": ("s3", "s4"), "sadness": ("s1", "s3")}
    candidates = [Candidate(f"{label}-{s}", label, s) for label, ss in have.items() for s in ss]
    speaker = {c.id: c.speaker for c in candidates}
    for seed in range(20):
        chosen = choose_clips(candidates, 1, seed=seed)
        assert len({speaker[i] for i in chosen}) == 3


def test_a_speaker_who_fills_another_label_is_still_heard_in_this_one():
    candidates = [Candidate(f"anger-{n}", "anger", "s2") for n in range(3)]
    candidates += [Candidate(f"fear-{s}-{n}", "fear", s) for s in ("s1", "s2") for n in range(3)]
    for seed in range(10):
        chosen = choose_clips(candidates, 3, seed=seed)
        assert {i.split("-")[1] for i in chosen if i.startswith("fear")} == {"s1", "s2"}


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    have=st.lists(
        st.tuples(st.sampled_from(LABELS[:2]), st.integers(0, 3)),
        min_size=1,
        max_size=7,
        unique=True,
    ),
    per_label=st.integers(1, 2),
    seed=st.integers(0, 5),
)
def test_no_choice_of_the_same_size_has_more_speakers(have, per_label, seed):
    candidates = [Candidate(f"{label}{speaker}", label, f"s{speaker}") for label, speaker in have]
    labels = sorted({c.label for c in candidates})
    pools = [[c for c in candidates if c.label == label] for label in labels]
    if any(len(pool) < per_label for pool in pools):
        with pytest.raises(DataError, match="clips a label"):
            choose_clips(candidates, per_label, seed=seed)
        return
    best = max(
        len({c.speaker for part in choice for c in part})
        for choice in itertools.product(*(itertools.combinations(p, per_label) for p in pools))
    )
    chosen = choose_clips(candidates, per_label, seed=seed)
    assert len({c.speaker for c in candidates if c.id in chosen}) == best
    assert by_label(chosen, candidates) == dict.fromkeys(labels, per_label)


def test_clips_without_speakers_count_as_speakers_of_their_own():
    candidates = [Candidate(f"c{n}", "anger") for n in range(5)]
    assert len(choose_clips(candidates, 3, seed=0)) == 3


def test_too_few_clips_are_said_by_label():
    with pytest.raises(
        DataError, match=r"anger has 24, fear has 24.*wanted 25 clips a label. Try 24"
    ):
        choose_clips(corpus(), 25, seed=0)
    with pytest.raises(UsageError, match="--per-label"):
        choose_clips(corpus(), 0, seed=0)


def test_speakers_with_the_most_labels_come_first():
    candidates = [*corpus(speakers=3), Candidate("x", "anger", "alone")]
    for seed in range(10):
        assert "alone" not in choose_speakers(candidates, 3, seed=seed)
    chosen = {choose_speakers(corpus(), 2, seed=seed) for seed in range(20)}
    assert len(chosen) > 1
    assert choose_speakers(corpus(), 2, seed=4) == choose_speakers(corpus()[::-1], 2, seed=4)


def test_too_few_or_unknown_speakers_are_refused():
    with pytest.raises(DataError, match="6 speakers; wanted 7"):
        choose_speakers(corpus(), 7, seed=0)
    with pytest.raises(DataError, match=r"does not say who speaks in 1 of 2 clips"):
        choose_speakers([Candidate("a", "fear"), Candidate("b", "fear", "s")], 1, seed=0)
