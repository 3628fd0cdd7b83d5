"""Which split a take belongs to: decided once, when it comes in.

Targets are the CARES proportions, 5 of 30 takes of a class for test and 5 for validation. New takes of a
class are served one after the other, in the order of their content, to the split that lacks most: first to
splits that have none, then by deficit. What has been decided before is only counted, never changed, so that
adding takes moves none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from earwitness.errors import DataError
from earwitness.scenes.scenario import SPLITS, Split
from earwitness.scenes.sounds import SHARED, Kind, SplitPolicy, Take, TakeSplit

SHARES: Mapping[Split, float] = {"train": 20 / 30, "validation": 5 / 30, "test": 5 / 30}
FIRST: tuple[Split, ...] = ("train", "test", "validation")
"""Who gets the first takes of a class, and who wins a draw."""


class TooFewTakesError(DataError):
    """Classes with fewer recordings than splits cannot be divided."""

    def __init__(self, few: Mapping[str, int]) -> None:
        self.few = dict(few)
        named = ", ".join(f"{of} ({n})" for of, n in sorted(few.items()))
        super().__init__(
            "splits",
            f"too few recordings of {named}",
            f"at least {len(SPLITS)} of each, one for every split",
            "Add recordings, leave these classes out with --skip-few, or let all splits "
            "share their takes: --split-policy shared (marked in the card).",
        )


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A take that needs a split: its class, the recording it was cut from, and a hash of its content."""

    of: str
    group: str
    sha256: str
    kind: Kind = "sound"


def class_of(take: Take | Newcomer) -> str:
    """Name of a class in counts and messages; a location may be called as a sound is."""
    return take.of if take.kind == "sound" else f"the ambience {take.of}"


def assign_splits(
    new: Sequence[Newcomer], existing: Iterable[Take] = (), policy: SplitPolicy = "disjoint"
) -> tuple[TakeSplit, ...]:
    """Split of every newcomer, in the order given.

    Parameters
    ----------
    new: takes without a split. Those of one ``group`` stay together, across classes too; an empty group
        is a recording of its own.
    existing: takes of the library, whose splits count and stay.
    policy: ``shared`` gives every newcomer to all splits.

    Returns
    -------
    The same for the same takes, whatever their order.

    Examples
    --------
    >>> takes = [Newcomer("dog_bark", "", f"{n:02d}") for n in range(30)]
    >>> sorted(Counter(assign_splits(takes)).items())
    [('test', 5), ('train', 20), ('validation', 5)]
    """
    if policy == "shared":
        return (SHARED,) * len(new)
    counts: dict[str, Counter[str]] = {}
    placed: dict[str, Split] = {}
    for take in existing:
        if take.split != SHARED:
            counts.setdefault(class_of(take), Counter())[take.split] += 1
            placed[take.group or take.sha256] = take.split
    members: dict[str, list[Newcomer]] = {}
    for newcomer in new:
        members.setdefault(newcomer.group or newcomer.sha256, []).append(newcomer)
    for group in sorted(members, key=lambda name: min((m.of, m.sha256) for m in members[name])):
        sizes = Counter(class_of(member) for member in members[group])
        if group not in placed:
            placed[group] = _neediest(sizes, counts)
        for of, size in sizes.items():
            counts.setdefault(of, Counter())[placed[group]] += size
    return tuple(placed[newcomer.group or newcomer.sha256] for newcomer in new)


def _neediest(sizes: Mapping[str, int], counts: Mapping[str, Counter[str]]) -> Split:
    """The split that a group serves best: of its largest class, empty ones first, then by deficit."""
    of = max(sorted(sizes), key=lambda name: sizes[name])
    have = counts.get(of, Counter())
    total = have.total() + sizes[of]
    empty = [split for split in FIRST if not have[split]]
    if empty:
        return empty[0]
    return max(FIRST, key=lambda split: SHARES[split] * total - have[split])


def too_few(new: Iterable[Newcomer], existing: Iterable[Take] = ()) -> dict[str, int]:
    """Classes that have fewer recordings than there are splits, with how many they have."""
    recordings: dict[str, set[str]] = {}
    for take in existing:
        recordings.setdefault(class_of(take), set()).add(take.group or take.sha256)
    for newcomer in new:
        recordings.setdefault(class_of(newcomer), set()).add(newcomer.group or newcomer.sha256)
    return {of: len(names) for of, names in sorted(recordings.items()) if len(names) < len(SPLITS)}
