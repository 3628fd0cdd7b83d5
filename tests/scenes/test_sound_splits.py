"""Splits: the published proportions, stable under growth, recordings whole."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.scenes.sound_splits import Newcomer, assign_splits, too_few
from earwitness.scenes.sounds import Take


def bark(n: int, group: str = "", of: str = "dog_bark") -> Newcomer:
    return Newcomer(of, group, f"{n:064x}")


def taken(newcomer: Newcomer, split: str) -> Take:
    return Take(
        kind="sound", of=newcomer.of, path=f"sounds/{newcomer.of}/{newcomer.sha256}.flac",
        sha256=newcomer.sha256, source="", licence="", attribution="", author="", duration_s=1,
        loudness_lufs=-20, bandwidth_hz=1, band_limited=False, peak_time_s=0, sample_rate=44100,
        channels=1, synthetic=False, split=split, group=newcomer.group,  # type: ignore[arg-type]
    )  # fmt: skip


def test_thirty_takes_give_five_for_test() -> None:
    splits = Counter(assign_splits([bark(n) for n in range(30)]))
    assert splits == {"train": 20, "validation": 5, "test": 5}


def test_three_takes_serve_three_splits() -> None:
    assert set(assign_splits([bark(n) for n in range(3)])) == {"train", "validation", "test"}


def test_shared_policy_and_classes_that_are_too_small() -> None:
    assert assign_splits([bark(1)], policy="shared") == ("shared",)
    assert too_few([bark(1), bark(2), bark(3, of="cat_meow")], [taken(bark(9), "train")]) == {
        "cat_meow": 1
    }
    assert too_few([bark(1, "one"), bark(2, "one"), bark(3, "one")]) == {"dog_bark": 1}


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 10_000), st.sampled_from("abc")),
        unique_by=lambda x: x[0],
        max_size=40,
    ),
    st.integers(0, 40),
    st.randoms(use_true_random=False),
)
def test_adding_takes_moves_none_and_order_does_not_count(
    numbers: list[tuple[int, str]], cut: int, random: object
) -> None:
    new = [bark(n, of=of) for n, of in numbers]
    first, later = new[:cut], new[cut:]
    before = dict(zip(first, assign_splits(first), strict=True))
    existing = [taken(newcomer, split) for newcomer, split in before.items()]
    after = dict(zip(later, assign_splits(later, existing), strict=True))
    shuffled = list(later)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert dict(zip(shuffled, assign_splits(shuffled, existing), strict=True)) == after
    for of in "abc":
        splits = Counter(s for n, s in {**before, **after}.items() if n.of == of)
        total = splits.total()
        # Never further than one take from the published proportions, once every split has one.
        if total >= 6:
            assert abs(splits["test"] - total / 6) <= 1.01
            assert abs(splits["validation"] - total / 6) <= 1.01


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 10_000), st.integers(0, 8), st.sampled_from("ab")),
        unique_by=lambda x: x[0],
    )
)
def test_takes_of_one_recording_stay_together(numbers: list[tuple[int, int, str]]) -> None:
    new = [bark(n, f"rec{g}", of) for n, g, of in numbers]
    splits: dict[str, set[str]] = {}
    for newcomer, split in zip(new, assign_splits(new), strict=True):
        splits.setdefault(newcomer.group, set()).add(split)
    assert all(len(found) == 1 for found in splits.values())


def test_a_recording_that_comes_later_in_parts_joins_its_split(tmp_path: Path) -> None:
    existing = [taken(bark(1, "one"), "test")]
    assert assign_splits([bark(2, "one"), bark(3, "two")], existing)[0] == "test"
