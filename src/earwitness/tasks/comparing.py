"""Two systems on the same items: difference, sign-flip over clusters, McNemar, Holm over all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from earwitness.errors import DataError, UsageError
from earwitness.stats.intervals import FEW_CLUSTERS, percentile_interval, resample_sums
from earwitness.stats.streams import stream
from earwitness.stats.tests import holm, mcnemar_exact, sign_flip
from earwitness.tasks.records import Comparison, Decision, Estimate, System


@dataclass(frozen=True, slots=True)
class Shared:
    """Several systems on the items all of them have. ``right`` is (systems, items)."""

    items: tuple[str, ...]
    right: NDArray[np.bool_]
    cluster: NDArray[np.int64]
    n_clusters: int
    unit: str


def compare(
    systems: Sequence[System],
    *,
    family: str = "all pairs",
    seed: int = 0,
    resamples: int = 10_000,
    cluster_name: str = "speaker",
) -> tuple[Comparison, ...]:
    """Every two systems on their common items.

    Parameters
    ----------
    systems: with different names; items are matched by id.
    family: name of the comparisons Holm's method runs over, which are all pairs given here.

    Returns
    -------
    One comparison for each pair with common items, in the order of ``systems``. ``difference`` is ``a - b``
    in accuracy with a paired cluster bootstrap; an item without a usable label counts as not right on
    either side. With a single cluster, items are drawn and flipped, and the method says so.

    Raises
    ------
    UsageError: two systems have the same name.
    DataError: two systems give an item different gold labels or clusters.

    Examples
    --------
    >>> from earwitness.runs.outcomes import Outcome
    >>> def system(name, labels):
    ...     return System(name, tuple(
    ...         Decision(f"clip{k}", "fear", Outcome("answered", label), f"speaker{k}")
    ...         for k, label in enumerate(labels)))
    >>> found = compare([system("a", ["fear"] * 6), system("b", ["anger"] * 6)])[0]
    >>> found.difference.value, found.p_sign_flip
    (1.0, 0.03125)
    """
    check_names(systems)
    # Systems on the same items share their draws; only a pair with items of its own needs new ones.
    whole = shared_items(systems, cluster_name) if len(systems) > 1 else None
    same = whole is not None and all(len(s.decisions) == len(whole.items) for s in systems)
    sums = (
        _resampled(whole, seed, resamples) if whole is not None and whole.items and same else None
    )
    pairs: list[Comparison] = []
    for i, j in combinations(range(len(systems)), 2):
        a, b = systems[i], systems[j]
        if whole is not None and sums is not None:
            pairs.append(_pair(a.name, b.name, whole, sums, (i, j), family, seed))
            continue
        both = shared_items((a, b), cluster_name)
        if both.items:
            drawn = _resampled(both, seed, resamples)
            pairs.append(_pair(a.name, b.name, both, drawn, (0, 1), family, seed))
    adjusted = holm([pair.p_sign_flip for pair in pairs])
    return tuple(
        Comparison(
            pair.a,
            pair.b,
            pair.n_items,
            pair.n_clusters,
            pair.difference,
            pair.p_sign_flip,
            float(p),
            pair.p_mcnemar,
            pair.family,
        )
        for pair, p in zip(pairs, adjusted, strict=True)
    )


def shared_items(systems: Sequence[System], cluster_name: str) -> Shared:
    """Align systems on the items all of them have, sorted by id.

    A table without speakers has every item as its own cluster; beside a run that knows the speakers, those
    of the run are used.
    """
    by_id = [{decision.item_id: decision for decision in system.decisions} for system in systems]
    common = set(by_id[0]).intersection(*by_id[1:])
    items = tuple(sorted(common))
    clusters = [_cluster_of(item, systems, by_id) for item in items]
    names = sorted(set(clusters))
    place = {name: k for k, name in enumerate(names)}
    return Shared(
        items=items,
        right=np.array(
            [[rows[item].outcome.label == rows[item].gold for item in items] for rows in by_id],
            dtype=bool,
        ).reshape(len(systems), len(items)),
        cluster=np.array([place[name] for name in clusters], dtype=np.int64),
        n_clusters=len(names),
        unit="item" if clusters == list(items) else cluster_name,
    )


def check_names(systems: Sequence[System]) -> None:
    """Refuse systems that cannot be told apart.

    Raises
    ------
    UsageError: two systems have the same name.
    """
    seen: set[str] = set()
    for system in systems:
        if system.name in seen:
            raise UsageError(
                "leaderboard",
                f"two systems named {system.name!r}",
                "a name for each",
                "Name runs of one model apart, for example by prompt set or settings.",
            )
        seen.add(system.name)


def _cluster_of(item: str, systems: Sequence[System], by_id: Sequence[dict[str, Decision]]) -> str:
    found = [rows[item] for rows in by_id]
    for system, decision in zip(systems, found, strict=True):
        if decision.gold != found[0].gold:
            raise DataError(
                f"item {item!r}",
                f"gold label {found[0].gold!r} in {systems[0].name} and {decision.gold!r} in {system.name}",
                "one truth for one item",
                "Score both against the same clip set and label map.",
            )
    known = {decision.cluster for decision in found if decision.cluster != item}
    if len(known) > 1:
        raise DataError(
            f"item {item!r}",
            "different speakers or scenes in different systems: " + ", ".join(sorted(known)),
            "one cluster for one item",
        )
    return known.pop() if known else item


def _units(shared: Shared) -> tuple[NDArray[np.int64], int, str]:
    """What is drawn and flipped: clusters, or items where there is a single cluster."""
    if shared.n_clusters == 1 and len(shared.items) > 1:
        n = len(shared.items)
        return np.arange(n, dtype=np.int64), n, f"bootstrap by item ({n}; one {shared.unit})"
    few = ", few" if shared.n_clusters < FEW_CLUSTERS else ""
    return (
        shared.cluster,
        shared.n_clusters,
        f"bootstrap by {shared.unit} ({shared.n_clusters}{few})",
    )


def _per_unit(shared: Shared) -> NDArray[np.int64]:
    """(units, systems + 1): items right in each system, then number of items."""
    unit, n_units, _ = _units(shared)
    out = np.empty((n_units, shared.right.shape[0] + 1), dtype=np.int64)
    for k, row in enumerate(shared.right):
        out[:, k] = np.bincount(unit[row], minlength=n_units)
    out[:, -1] = np.bincount(unit, minlength=n_units)
    return out


def _resampled(shared: Shared, seed: int, resamples: int) -> NDArray[np.float64]:
    return resample_sums(_per_unit(shared), resamples, stream(seed, "compare"))


def _pair(
    a: str,
    b: str,
    shared: Shared,
    drawn: NDArray[np.float64],
    rows: tuple[int, int],
    family: str,
    seed: int,
) -> Comparison:
    i, j = rows
    _, n_units, method = _units(shared)
    counts = _per_unit(shared)
    gap = counts[:, i] - counts[:, j]
    value = np.asarray(gap.sum() / len(shared.items))
    samples = (drawn[:, i] - drawn[:, j]) / drawn[:, -1]
    low, high, _ = percentile_interval(samples, value, n_units)
    p = sign_flip(gap, stream(seed, "sign-flip", a, b)).p
    only_a = int((shared.right[i] & ~shared.right[j]).sum())
    only_b = int((shared.right[j] & ~shared.right[i]).sum())
    return Comparison(
        a=a,
        b=b,
        n_items=len(shared.items),
        n_clusters=shared.n_clusters,
        difference=Estimate(float(value), float(low), float(high), method),
        p_sign_flip=p,
        p_holm=p,
        p_mcnemar=mcnemar_exact(only_a, only_b),
        family=family,
    )
