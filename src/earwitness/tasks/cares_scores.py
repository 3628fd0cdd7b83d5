"""Scores of the tasks about scenes, and paired comparisons of them.

Conventions
-----------
* ``reaction``: the headline is balanced accuracy, the mean of the four recalls. A class with a recall of at most
  7 % counts as *ignored* (arXiv 2610.10208, Table 1). ``location`` and ``sound``: the headline is accuracy.
* Items without a usable label stay in the denominator, everywhere.
* Position bias: how often each place of the options is chosen, against how often the truth stands there (balanced).
  ``distance`` is half the sum of absolute differences of the two distributions: 0 without bias, 0.75 where one of
  four places is always chosen.
* Intervals draw whole scenes (or templates, see :func:`by_template`). Differences are paired by item, with the
  items' conditions left out; the sign-flip test over scenes is applied to what the headline is made of, so for
  balanced accuracy an item weighs 1 / (classes x items of its class).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from earwitness.errors import DataError
from earwitness.stats.intervals import (
    FEW_CLUSTERS,
    RESAMPLES,
    percentile_interval,
    resample_sums,
)
from earwitness.stats.streams import stream
from earwitness.stats.tests import holm, sign_flip, smallest_detectable_difference
from earwitness.tasks import scoring
from earwitness.tasks.choices import LETTERS, OPTIONS_KEY, options_from_text, place_of
from earwitness.tasks.pairing import pair_up, widened
from earwitness.tasks.records import Decision, Estimate, Scores
from earwitness.tasks.scene_items import public_groups

IGNORED_AT = 0.07
"""A class recalled at most this often counts as ignored."""
BALANCED = ("reaction",)
"""Tasks whose headline is balanced accuracy."""
METRICS = {"grounding": "right yes and no of pairs", "summary": "sounds mentioned"}
"""What differences are of, where it is not accuracy."""


@dataclass(frozen=True, slots=True)
class PositionBias:
    """Answers by place of the options. ``truths`` and ``chosen`` are counts; only answered items are counted."""

    places: tuple[str, ...]
    truths: tuple[int, ...]
    chosen: tuple[int, ...]

    @property
    def distance(self) -> float:
        """0: the places chosen are those of the truth; NaN where nothing was answered."""
        n = sum(self.chosen)
        if not n:
            return float("nan")
        return 0.5 * sum(abs(c - t) / n for c, t in zip(self.chosen, self.truths, strict=True))


@dataclass(frozen=True, slots=True)
class CaresScores:
    """What is said of one system on one task under one condition.

    ``scores`` are over the reactions for ``reaction`` and over the four places otherwise; its ``by_group`` has
    accuracy by location, sound, register, margin and so on. ``ignored`` names classes.
    """

    name: str
    task: str
    headline: Estimate
    chance: float
    scores: Scores
    positions: PositionBias
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CaresComparison:
    """A paired difference ``a - b`` of the headline of a task, by scene.

    ``p_holm`` is ``p_sign_flip`` after Holm over ``family``. ``detectable`` is the smallest true difference these
    scenes would show with 80 % power.
    """

    a: str
    b: str
    task: str
    metric: str
    n_items: int
    n_clusters: int
    difference: Estimate
    p_sign_flip: float
    p_holm: float
    family: str
    detectable: float

    @property
    def above(self) -> bool:
        """Whether ``a`` is significantly above ``b`` in its family, at 5 %."""
        return self.difference.value > 0 and self.p_holm < 0.05


def balanced_accuracy_of(recalls: Sequence[float]) -> float:
    """Mean recall, in the unit of the recalls.

    >>> round(balanced_accuracy_of([0.3, 65.0, 0.7, 52.7]), 1)
    29.7
    """
    if not recalls:
        raise DataError("balanced accuracy", "no recalls", "one a class")
    return float(sum(recalls) / len(recalls))


def score_choices(
    name: str,
    task: str,
    decisions: Sequence[Decision],
    labels: Sequence[str],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    cluster_name: str = "scene",
    accept_failed: bool = False,
) -> CaresScores:
    """Score decisions over a closed set of labels.

    Raises
    ------
    DataError: no decisions, an item twice, or a label outside ``labels``.
    """
    plain = [replace(d, groups=public_groups(d.groups)) for d in decisions]
    found = scoring.score(
        name,
        plain,
        labels,
        neutral=None,
        seed=seed,
        resamples=resamples,
        cluster_name=cluster_name,
        accept_failed=accept_failed,
    )
    ignored = tuple(
        each.label for each in found.per_class if each.support and each.recall.value <= IGNORED_AT
    )
    return CaresScores(
        name,
        task,
        found.accuracy_clustered,
        1 / len(labels),
        found,
        position_bias(decisions),
        ignored,
    )


def score_positions(
    name: str,
    task: str,
    decisions: Sequence[Decision],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    cluster_name: str = "scene",
    accept_failed: bool = False,
) -> CaresScores:
    """Score decisions whose options differ from item to item, by the place of the option."""
    found = score_choices(
        name, task, [at_place(d) for d in decisions], LETTERS, seed=seed, resamples=resamples,
        cluster_name=cluster_name, accept_failed=accept_failed,
    )  # fmt: skip
    return replace(found, ignored=(), positions=position_bias(decisions))


def at_place(decision: Decision) -> Decision:
    """The decision with letters of places for labels.

    Raises
    ------
    DataError: the truth is not among the options.
    """
    options = options_from_text(decision.groups[OPTIONS_KEY])
    gold = place_of(decision.gold, options)
    if gold is None:
        raise DataError(
            f"item {decision.item_id!r}", f"the truth {decision.gold!r} is no option", "it is one"
        )
    outcome = decision.outcome
    if outcome.label is not None:
        outcome = replace(outcome, label=place_of(outcome.label, options))
    return replace(decision, gold=gold, outcome=outcome)


def position_bias(decisions: Sequence[Decision]) -> PositionBias:
    """Places chosen and places of the truth over the answered items."""
    truths, chosen = dict.fromkeys(LETTERS, 0), dict.fromkeys(LETTERS, 0)
    for decision in decisions:
        if OPTIONS_KEY not in decision.groups or decision.outcome.label is None:
            continue
        options = options_from_text(decision.groups[OPTIONS_KEY])
        said, true = place_of(decision.outcome.label, options), place_of(decision.gold, options)
        if said is not None and true is not None:
            chosen[said] += 1
            truths[true] += 1
    return PositionBias(LETTERS, tuple(truths.values()), tuple(chosen.values()))


def by_template(
    decisions: Sequence[Decision], templates: Mapping[str, str]
) -> tuple[Decision, ...]:
    """The decisions clustered by the template of their scene, for wider claims.

    Raises
    ------
    DataError: a scene has no template in the run's card.
    """
    for decision in decisions:
        if decision.cluster not in templates:
            raise DataError(
                f"scene {decision.cluster!r}", "has no template in the run's card", "one a scene"
            )
    return tuple(replace(d, cluster=templates[d.cluster]) for d in decisions)


def base_id(item_id: str) -> str:
    """Id of an item without its condition, by which conditions are paired.

    >>> base_id("s1/e1~r2|muted")
    's1/e1~r2'
    """
    return item_id.partition("|")[0]


def compared(decisions: Sequence[Decision]) -> list[Decision]:
    """Decisions a difference of the headline is made of.

    Of judged sounds those that are there, with the largest budget; of grounding the pairs; else all.
    """
    budgets = [int(d.groups["budget"]) for d in decisions if "budget" in d.groups]
    largest = str(max(budgets, default=0))
    return [
        d
        for d in decisions
        if d.groups.get("kind", "present") == "present"
        and d.groups.get("budget", largest) == largest
        and not base_id(d.item_id).endswith("/catch")
    ]


def compare_pairs(
    pairs: Sequence[tuple[str, Sequence[Decision], str, Sequence[Decision]]],
    task: str,
    *,
    family: str,
    seed: int = 0,
    resamples: int = RESAMPLES,
    cluster_name: str = "scene",
) -> tuple[CaresComparison, ...]:
    """Paired differences of a task's headline, Holm over all of them.

    Parameters
    ----------
    pairs: (name, decisions, name, decisions), such as a model and the text control, or audible and muted.
    family: what Holm's method runs over, in words.

    Raises
    ------
    DataError: two of a pair have no item in common.

    Examples
    --------
    >>> from earwitness.runs.outcomes import Outcome
    >>> def said(label):
    ...     return [Decision(f"s{k}/e1", "pivot", Outcome("answered", label), f"s{k}") for k in range(6)]
    >>> found = compare_pairs([("a", said("pivot"), "b", said("ambient"))], "reaction", family="one")[0]
    >>> found.difference.value, found.p_sign_flip
    (1.0, 0.03125)
    """
    found = [
        _pair(a, da, b, db, task, family, seed, resamples, cluster_name) for a, da, b, db in pairs
    ]
    adjusted = holm([each.p_sign_flip for each in found])
    return tuple(replace(e, p_holm=float(p)) for e, p in zip(found, adjusted, strict=True))


def _pair(
    a: str,
    decisions_a: Sequence[Decision],
    b: str,
    decisions_b: Sequence[Decision],
    task: str,
    family: str,
    seed: int,
    resamples: int,
    cluster_name: str,
) -> CaresComparison:
    first = {base_id(d.item_id): d for d in decisions_a}
    second = {base_id(d.item_id): d for d in decisions_b}
    items = sorted(first.keys() & second.keys())
    if not items:
        raise DataError(f"{a} and {b}", f"no {task} item in common", "the same scenes")
    balanced = task in BALANCED
    both = pair_up(
        [(_right(first[item]), _right(second[item])) for item in items],
        [first[item].gold if balanced else "" for item in items],
        [first[item].cluster for item in items],
        balanced=balanced,
    )
    metric, n_clusters = both.difference(), both.n_clusters
    value = np.asarray(metric(both.flat.sum(axis=0)))
    drawn = resample_sums(both.flat, resamples, stream(seed, "cares-compare", task))
    low, high, _ = percentile_interval(metric(drawn), value, n_clusters)
    limits = widened(float(value), float(low), float(high), n_clusters)
    p = sign_flip(both.moved, stream(seed, "sign-flip", task)).p
    few = ", few" if n_clusters < FEW_CLUSTERS else ""
    return CaresComparison(
        a=a,
        b=b,
        task=task,
        metric="balanced accuracy" if balanced else METRICS.get(task, "accuracy"),
        n_items=len(items),
        n_clusters=n_clusters,
        difference=Estimate(
            float(value),
            *limits,
            f"bootstrap by {cluster_name} ({n_clusters}{few})",
        ),
        p_sign_flip=p,
        p_holm=p,
        family=family,
        detectable=smallest_detectable_difference(both.moved, both.sizes),
    )


def _right(decision: Decision) -> bool:
    return decision.outcome.label == decision.gold
