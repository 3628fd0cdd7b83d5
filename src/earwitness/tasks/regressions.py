"""Is a run worse than another one? The gate of ``earwitness compare``.

Conventions:

* The first run is the reference, the second the candidate; differences are candidate less reference.
* Items are paired by id. Both must have asked the same: same items, same truth, same audio by content, same options.
  What only one of them has is an error, or left out and said (``common``).
* The gate is on the metric of the headline: accuracy for emotion, location and sound, balanced accuracy for reaction,
  right yes and no of pairs for grounding (d' of both stands beside it), sounds mentioned for summary.
* A task is *worse* where the loss is at least the given number of points and its lower bound is above zero. The bound
  is one-sided, from a bootstrap of whole clusters (speakers; scenes or templates), at a level of 1 - 0.05 / k with k
  tasks compared, so that two runs of one quality pass with at least 95 % however many tasks there are.
* *Power*: the smallest loss that would be found with 80 %, from the differences as they are. No loss can be found
  whose own items alone would not suffice, so it is never less than what a loss of exactly the given size, by items
  that differ in nothing else, would need.
* Classes are the gold labels (for summary, the reactions), with sign-flip tests over clusters and Holm over a task's
  classes. They explain; they do not gate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from earwitness.errors import DataError, UsageError
from earwitness.stats.intervals import FEW_CLUSTERS, RESAMPLES, percentile_interval, resample_sums
from earwitness.stats.streams import stream
from earwitness.stats.tests import (
    holm,
    planned_detectable_difference,
    sign_flip,
    smallest_detectable_difference,
)
from earwitness.tasks.cares_scores import BALANCED, METRICS, base_id, compared
from earwitness.tasks.pairing import Paired, pair_up, widened
from earwitness.tasks.records import Decision, Estimate

ALPHA = 0.05
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Side:
    """One run on one task under one condition.

    Attributes
    ----------
    asked: by id of each question, what identifies it beyond that: audio by content, and options.
    unit: what a cluster is, in words.
    d_prime: of grounding, else None.
    """

    name: str
    task: str
    prompt: str
    condition: str
    decisions: tuple[Decision, ...]
    asked: Mapping[str, tuple[str, str]]
    unit: str
    task_version: str = ""
    d_prime: float | None = None


@dataclass(frozen=True, slots=True)
class ClassDifference:
    """Difference of a class's recall. ``p_holm`` is over the classes of the task."""

    label: str
    n_items: int
    n_clusters: int
    a: float
    b: float
    difference: Estimate
    p_sign_flip: float
    p_holm: float


@dataclass(frozen=True, slots=True)
class TaskDifference:
    """Candidate ``b`` less reference ``a`` on one task.

    Attributes
    ----------
    a, b: the metric of each side.
    differing: items that only one of them has right.
    bound_level: of ``loss_bound``, the lower limit of the loss ``a - b``.
    p_worse: sign-flip over clusters, one-sided: is ``b`` worse?
    detectable: smallest loss that these clusters would show with 80 %.
    d_prime: of both, for grounding.
    """

    task: str
    metric: str
    a: float
    b: float
    n_items: int
    n_clusters: int
    differing: int
    difference: Estimate
    loss_bound: float
    bound_level: float
    p_worse: float
    detectable: float
    classes: tuple[ClassDifference, ...]
    d_prime: tuple[float, float] | None = None

    def worse(self, points: float) -> bool:
        """Whether the loss is at least ``points`` and its lower bound above zero."""
        # A loss of 2.0 points is 2.0 points however its fraction is rounded.
        return -100 * self.difference.value >= points - 1e-9 and self.loss_bound > 0


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Everything said of two runs. ``fail_if_worse`` is in points, None where nothing gates."""

    a: str
    b: str
    condition: str
    fail_if_worse: float | None
    tasks: tuple[TaskDifference, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def worse(self) -> tuple[str, ...]:
        """Tasks on which the candidate is worse, by the gate."""
        points = self.fail_if_worse
        return () if points is None else tuple(t.task for t in self.tasks if t.worse(points))


def compare_sides(
    reference: Sequence[Side],
    candidate: Sequence[Side],
    *,
    fail_if_worse: float | None = None,
    common: bool = False,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> RunComparison:
    """Pair two runs task by task.

    Parameters
    ----------
    reference, candidate: one side a task.
    fail_if_worse: points of loss from which a task is worse; None compares only.
    common: compare what both have, and say what was left out.

    Raises
    ------
    UsageError: they have other tasks, items or audio, or nothing in common.
    DataError: they give an item another truth or cluster, or ask it in another version of the task.
    """
    if fail_if_worse is not None and not 0 <= fail_if_worse <= 100:
        raise UsageError("--fail-if-worse", f"found {fail_if_worse:g}", "points, from 0 to 100")
    firsts = {side.task: side for side in reference}
    seconds = {side.task: side for side in candidate}
    notes = _task_notes(firsts, seconds, common)
    tasks = [task for task in firsts if task in seconds]
    level = 1 - ALPHA / len(tasks)
    found: list[TaskDifference] = []
    warnings: list[str] = []
    for task in tasks:
        a, b = firsts[task], seconds[task]
        items, left_out = _common_items(a, b, common)
        notes += left_out
        if a.prompt != b.prompt:
            notes.append(f"{task}: the prompts differ ({a.prompt}, {b.prompt})")
        difference = _task(a, b, items, level, fail_if_worse, seed, resamples)
        found.append(difference)
        warnings += _warnings(difference, a.unit, fail_if_worse)
    names = [" + ".join(dict.fromkeys(s.name for s in sides)) for sides in (reference, candidate)]
    return RunComparison(
        names[0],
        names[1],
        firsts[tasks[0]].condition,
        fail_if_worse,
        tuple(found),
        tuple(notes),
        tuple(warnings),
    )


def _task_notes(firsts: Mapping[str, Side], seconds: Mapping[str, Side], common: bool) -> list[str]:
    only = [sorted(firsts.keys() - seconds.keys()), sorted(seconds.keys() - firsts.keys())]
    if not firsts.keys() & seconds.keys():
        raise UsageError(
            "compare",
            f"the reference has {', '.join(firsts)}, the candidate {', '.join(seconds)}",
            "a task both were asked",
        )
    if not any(only):
        return []
    text = "; ".join(
        f"only the {side} has {', '.join(tasks)}"
        for side, tasks in zip(("reference", "candidate"), only, strict=True)
        if tasks
    )
    if not common:
        raise UsageError(
            "compare", text, "the same tasks in both",
            "Compare what both have with --common, or choose with --tasks.",
        )  # fmt: skip
    return [f"tasks left out: {text}"]


def _common_items(a: Side, b: Side, common: bool) -> tuple[list[str], list[str]]:
    """Ids both were asked alike, and notes on what is left out."""
    if a.task_version != b.task_version:
        raise DataError(
            f"{a.task}", f"versions {a.task_version} and {b.task_version} of the task", "one version",
            "Run the older one again.",
        )  # fmt: skip
    first, second = _by_id(a), _by_id(b)
    both = sorted(first.keys() & second.keys())
    other = [item for item in both if not _asked_alike(a, b, first[item])]
    kept = [item for item in both if item not in set(other)]
    reasons = _reasons(
        sorted(first.keys() - second.keys()), sorted(second.keys() - first.keys()), other
    )
    if not kept:
        raise UsageError(
            f"compare, {a.task}",
            "no item in common: " + "; ".join(reasons),
            "two runs over the same clips or scenes",
        )
    if reasons and not common:
        raise UsageError(
            f"compare, {a.task}",
            "; ".join(reasons),
            "two runs over the same items",
            f"Compare the {len(kept)} common items with --common, or run both over the same set.",
        )
    for item in kept:
        one, two = first[item], second[item]
        for what, x, y in (("truth", one.gold, two.gold), ("cluster", one.cluster, two.cluster)):
            if x != y:
                raise DataError(
                    f"{a.task}, item {item!r}", f"{what} {x!r} in {a.name} and {y!r} in {b.name}",
                    f"one {what} for one item", "Run both over the same set.",
                )  # fmt: skip
    note = [f"{a.task}: {len(kept)} common items; " + "; ".join(reasons)] if reasons else []
    return kept, note


def _reasons(only_a: Sequence[str], only_b: Sequence[str], other: Sequence[str]) -> list[str]:
    found = []
    for what, items in (
        ("only in the reference", only_a),
        ("only in the candidate", only_b),
        ("of other audio or other options in both", other),
    ):
        if items:
            more = ", ..." if len(items) > _SHOWN else ""
            found.append(f"{len(items)} {what} ({', '.join(items[:_SHOWN])}{more})")
    return found


def _by_id(side: Side) -> dict[str, Decision]:
    return {base_id(d.item_id): d for d in compared(side.decisions)}


def _asked_alike(a: Side, b: Side, decision: Decision) -> bool:
    """Whether audio and options are the same; a run that does not say which audio it heard passes."""
    item = decision.groups.get("_summary", base_id(decision.item_id))
    one, two = a.asked.get(item, ("", "")), b.asked.get(item, ("", ""))
    heard = one[0] == two[0] or not one[0] or not two[0]
    return heard and one[1] == two[1]


def _task(
    a: Side,
    b: Side,
    items: Sequence[str],
    level: float,
    fail_if_worse: float | None,
    seed: int,
    resamples: int,
) -> TaskDifference:
    first, second = _by_id(a), _by_id(b)
    clusters = [first[item].cluster for item in items]
    alone = len(set(clusters)) == 1 and len(items) > 1
    if alone:
        clusters = list(items)
    right = [(_right(second[item]), _right(first[item])) for item in items]
    classes = [_class(first[item]) for item in items]
    both = pair_up(right, classes, clusters, balanced=a.task in BALANCED)
    drawn = resample_sums(both.flat, resamples, stream(seed, "compare-runs", a.task))
    n = both.n_clusters
    unit = "item" if alone or clusters == list(items) else a.unit
    few = ", few" if n < FEW_CLUSTERS else ""
    method = f"bootstrap by {unit} ({n}{few}{f'; one {a.unit}' if alone else ''})"
    metric = both.difference()
    value = np.asarray(metric(both.flat.sum(axis=0)))
    samples = metric(drawn)
    low, high, _ = percentile_interval(samples, value, n)
    # The upper limit of b - a, one-sided: that of a two-sided interval with twice the tail.
    _, top, _ = percentile_interval(samples, value, n, 2 * level - 1)
    _, most = (
        widened(float(value), float(top), float(top), n) if top == value else (0.0, float(top))
    )
    differing = sum(x != y for x, y in right)
    return TaskDifference(
        task=a.task,
        metric="balanced accuracy" if a.task in BALANCED else METRICS.get(a.task, "accuracy"),
        a=both.value(1),
        b=both.value(0),
        n_items=len(items),
        n_clusters=n,
        differing=differing,
        difference=Estimate(
            float(value), *widened(float(value), float(low), float(high), n), method
        ),
        loss_bound=-most,
        bound_level=level,
        p_worse=sign_flip(
            both.moved, stream(seed, "compare-runs", a.task, "p"), alternative="less"
        ).p,
        detectable=_detectable(both, level, fail_if_worse),
        classes=_classes(both, drawn, method, seed, a.task),
        d_prime=None if a.d_prime is None or b.d_prime is None else (a.d_prime, b.d_prime),
    )


def _detectable(both: Paired, level: float, fail_if_worse: float | None) -> float:
    alpha = 2 * (1 - level)  # the tests' levels are two-sided, the bound is not
    found = smallest_detectable_difference(both.moved, both.sizes, alpha=alpha)
    if fail_if_worse:
        least = planned_detectable_difference(
            both.n_items, discordant=min(1.0, fail_if_worse / 100), alpha=alpha
        )
        found = max(found, least)
    return found


def _classes(
    both: Paired,
    drawn: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    method: str,
    seed: int,
    task: str,
) -> tuple[ClassDifference, ...]:
    metric = both.by_class()
    counts = both.table.sum(axis=0)
    values = metric(both.flat.sum(axis=0))
    low, high, _ = percentile_interval(metric(drawn), values, both.n_clusters)
    found = []
    for k, label in enumerate(both.labels):
        with_it = both.table[both.table[:, k, 2] > 0, k]
        n = len(with_it)
        gap = with_it[:, 0] - with_it[:, 1]
        p = sign_flip(gap, stream(seed, "compare-runs", task, label)).p
        limits = widened(float(values[k]), float(low[k]), float(high[k]), n)
        found.append(
            ClassDifference(
                label,
                int(counts[k, 2]),
                n,
                float(counts[k, 1] / counts[k, 2]),
                float(counts[k, 0] / counts[k, 2]),
                Estimate(float(values[k]), *limits, method),
                p,
                p,
            )
        )
    adjusted = holm([each.p_sign_flip for each in found])
    return tuple(replace(e, p_holm=float(p)) for e, p in zip(found, adjusted, strict=True))


def _class(decision: Decision) -> str:
    """The class an item belongs to: its gold label; of judged sounds the reaction."""
    return decision.groups.get("reaction", "all") if "kind" in decision.groups else decision.gold


def _right(decision: Decision) -> bool:
    return decision.outcome.label == decision.gold


def _warnings(found: TaskDifference, unit: str, fail_if_worse: float | None) -> list[str]:
    warnings = []
    if fail_if_worse is not None and 100 * found.detectable > fail_if_worse:
        smallest = (
            "no loss at all"
            if math.isinf(found.detectable)
            else f"only a loss of {100 * found.detectable:.1f} points or more"
        )
        warnings.append(
            f"{found.task}: with {found.n_items} items of {found.n_clusters} {unit}s, {smallest} would be "
            f"found four times in five; a loss of {fail_if_worse:g} points may pass unseen"
        )
    if found.n_clusters < FEW_CLUSTERS:
        warnings.append(f"{found.task}: {found.n_clusters} {unit}s are few; the bound is rough")
    return warnings
