"""No speaker is ever on both sides."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.errors import DataError, UsageError
from earwitness.models.prosody.folds import speaker_folds

SPEAKERS = st.lists(st.sampled_from([f"s{i}" for i in range(9)]), min_size=2, max_size=80)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(speakers=SPEAKERS, folds=st.integers(2, 6), seed=st.integers(0, 5))
def test_speakers_are_whole_and_no_fold_is_empty(
    speakers: list[str], folds: int, seed: int
) -> None:
    if len(set(speakers)) < folds:
        with pytest.raises(DataError, match=f"speakers for {folds} folds"):
            speaker_folds(speakers, folds, seed)
        return
    found = speaker_folds(speakers, folds, seed)
    assert len(found) == len(speakers)
    assert set(found) == set(range(folds))
    assert len(set(zip(speakers, found, strict=True))) == len(set(speakers))


@settings(derandomize=True, deadline=None, max_examples=30)
@given(speakers=SPEAKERS, shuffle=st.integers(0, 99))
def test_the_order_of_clips_decides_nothing(speakers: list[str], shuffle: int) -> None:
    if len(set(speakers)) < 2:
        return
    mixed = random.Random(shuffle).sample(speakers, len(speakers))
    assert dict(zip(speakers, speaker_folds(speakers, 2), strict=True)) == dict(
        zip(mixed, speaker_folds(mixed, 2), strict=True)
    )


def test_folds_are_of_about_one_size() -> None:
    speakers = [f"s{i}" for i in range(16) for _ in range(15 + i % 5)]
    found = speaker_folds(speakers, 8)
    sizes = [found.count(k) for k in range(8)]
    assert max(sizes) - min(sizes) <= 4


def test_a_seed_draws_another_division() -> None:
    speakers = [f"s{i}" for i in range(16)]
    assert speaker_folds(speakers, 4, 0) == speaker_folds(speakers, 4, 0)
    assert speaker_folds(speakers, 4, 0) != speaker_folds(speakers, 4, 1)


def test_one_fold_is_no_division() -> None:
    with pytest.raises(UsageError, match="--folds: 1; wanted 2 or more"):
        speaker_folds(["a", "b"], 1)
