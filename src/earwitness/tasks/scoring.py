"""Scores of closed-label tasks: one system, several pooled, a leaderboard with every paired comparison.

Conventions
-----------
* The headline is right / **all** items, with Wilson's interval. An item without a usable label (refused,
  unmapped, ambiguous, blocked, truncated, empty, failed) stays in the denominator and in its row of the
  confusion table, under ``no label``.
* While an item is ``failed`` (the model never answered it) the run is incomplete and its accuracy lies in
  the bounds right/N to (right + failed)/N. Accepting the failures closes the run: both bounds become right/N.
* ``accuracy_clustered`` and all other intervals draw whole speakers or scenes; :mod:`earwitness.tasks.tally`
  says which interval a figure gets, and each estimate's ``method`` repeats it.
* Aggregate tables, valence and neutral bias follow VocalAffectBench (arXiv:2608.28932).
* Draws depend on the seed and on what is estimated, not on the name of the system or the order of items:
  the same decisions always give the same figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from earwitness.clips.corpus import EMOTIONS
from earwitness.errors import DataError, UsageError
from earwitness.runs.outcomes import count
from earwitness.stats import confusion
from earwitness.stats.intervals import RESAMPLES
from earwitness.stats.streams import stream
from earwitness.tasks.comparing import check_names, compare
from earwitness.tasks.figures import (
    by_group,
    calibration_of,
    label_bias,
    per_class,
    prior_weighted,
    valence_scores,
)
from earwitness.tasks.noting import accuracy_without_failed, notes
from earwitness.tasks.records import (
    Confusion,
    Decision,
    Estimate,
    Leaderboard,
    Scores,
    System,
)
from earwitness.tasks.tally import (
    NO_LABEL_NAME,
    resampled,
    tally,
    wilson_estimate,
)
from earwitness.tasks.valence import VALENCE

__all__ = [
    "TopConfusion",
    "accuracy_without_failed",
    "compare",
    "leaderboard",
    "neutral_error_shares",
    "pool",
    "score",
    "top_confusions",
]


@dataclass(frozen=True, slots=True)
class TopConfusion:
    """Items of ``gold`` answered as ``predicted``; ``share`` is of the items of ``gold``."""

    gold: str
    predicted: str
    count: int
    share: float


def score(
    name: str,
    decisions: Sequence[Decision],
    labels: Sequence[str],
    *,
    valence: Mapping[str, str] | None = None,
    neutral: str | None = "neutral",
    priors: Mapping[str, float] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    accept_failed: bool = False,
    cluster_name: str = "speaker",
) -> Scores:
    """Score one system.

    Parameters
    ----------
    decisions: one for each item, in any order.
    labels: the closed set of labels, in the order of the tables.
    valence: direction of each label that has one (:data:`earwitness.tasks.valence.VALENCE`); None leaves
        valence out.
    neutral: the label whose share of outputs and errors is reported; ignored where it is not a label.
    priors: weight of each label in the user's own traffic; labels not named weigh nothing.
    accept_failed: close an incomplete run, counting failed items as not right.
    cluster_name: what ``Decision.cluster`` is, for the names of methods (``speaker``, ``scene``).

    Raises
    ------
    DataError: no decisions, an item twice, an unknown label, or priors that do not fit.

    Examples
    --------
    >>> from earwitness.runs.outcomes import Outcome
    >>> said = ["fear", "neutral", None, "neutral"]
    >>> decisions = [
    ...     Decision(f"clip{k}", gold, Outcome("answered", label) if label else Outcome("refused"), f"clip{k}")
    ...     for k, (gold, label) in enumerate(zip(["fear", "fear", "neutral", "neutral"], said))]
    >>> found = score("example", decisions, ["fear", "neutral"])
    >>> found.right, found.n, found.accuracy.value, found.accuracy.method
    (2, 4, 0.5, 'wilson')
    >>> found.confusion.counts
    ((1, 1, 0), (0, 1, 1))
    """
    twice = [item for item, times in Counter(d.item_id for d in decisions).items() if times > 1]
    if twice:
        others = f" (and {len(twice) - 1} other items)" if len(twice) > 1 else ""
        raise DataError(
            name,
            f"item {twice[0]!r} more than once{others}",
            "each item once",
            "Score one condition and one prompt at a time.",
        )
    failed = sum(decision.outcome.kind == "failed" for decision in decisions)
    return _scores(
        name,
        decisions,
        labels,
        open_failed=0 if accept_failed else failed,
        headline="wilson",
        valence=valence,
        neutral=neutral,
        priors=priors,
        seed=seed,
        resamples=resamples,
        cluster_name=cluster_name,
    )


def pool(
    systems: Sequence[System],
    labels: Sequence[str],
    *,
    name: str = "pooled",
    valence: Mapping[str, str] | None = None,
    neutral: str | None = "neutral",
    priors: Mapping[str, float] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    cluster_name: str = "speaker",
) -> Scores:
    """Score all decisions of several systems together, as aggregate tables do.

    The accuracy is the mean over systems where they have the same number of items. Systems answer the same
    clips, so the decisions are not independent: Wilson's interval is labelled, and the clustered ones draw
    a speaker (or clip) with everything all systems said of it. Confidences of different systems do not
    compare, so there is no pooled calibration.

    Raises
    ------
    DataError: as for :func:`score`, and where systems disagree on the truth or cluster of an item.
    """
    check_names(systems)
    if not systems:
        raise DataError(name, "no systems to pool", "at least one")
    decisions = _with_common_clusters(systems)
    open_failed = sum(
        decision.outcome.kind == "failed"
        for system in systems
        if not system.accept_failed
        for decision in system.decisions
    )
    found = _scores(
        name,
        decisions,
        labels,
        open_failed=open_failed,
        headline="wilson" if len(systems) == 1 else "wilson, decisions taken as independent",
        valence=valence,
        neutral=neutral,
        priors=priors,
        seed=seed,
        resamples=resamples,
        cluster_name=cluster_name,
    )
    return found if len(systems) == 1 else replace(found, calibration=None)


def leaderboard(
    systems: Sequence[System],
    labels: Sequence[str],
    *,
    task: str,
    condition: str,
    priors: Mapping[str, float] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    valence: Mapping[str, str] | None = None,
    neutral: str | None = "neutral",
    cluster_name: str = "speaker",
) -> Leaderboard:
    """Score systems on one task and condition, pool them, and compare every two.

    Parameters
    ----------
    valence: by default the one of the seven emotions where ``labels`` are emotions, otherwise none.

    Returns
    -------
    Systems sorted by accuracy, then name; the pool where there are at least two; ``notes`` say in words what
    a reader must know (incomplete runs, few speakers, differing items, overlapping intervals).

    Raises
    ------
    UsageError: no system, two of one name, or a decision of another condition.
    DataError: as for :func:`score` and :func:`pool`.
    """
    if not systems:
        raise UsageError("leaderboard", "no systems", "at least one run or table of predictions")
    check_names(systems)
    for system in systems:
        other = next((d.condition for d in system.decisions if d.condition != condition), None)
        if other is not None:
            raise UsageError(
                f"leaderboard of condition {condition!r}",
                f"decisions of condition {other!r} in {system.name}",
                "one condition at a time",
            )
    if valence is None and set(labels) <= set(EMOTIONS):
        valence = VALENCE
    options: dict[str, Any] = {
        "valence": valence,
        "neutral": neutral,
        "priors": priors,
        "seed": seed,
        "resamples": resamples,
        "cluster_name": cluster_name,
    }
    rows = [
        score(s.name, s.decisions, labels, accept_failed=s.accept_failed, **options)
        for s in systems
    ]
    ranked = tuple(sorted(rows, key=lambda row: (-row.accuracy.value, row.name)))
    pairs = len(systems) * (len(systems) - 1) // 2
    comparisons = compare(
        systems,
        family=f"all {pairs} pairs on {task}/{condition}",
        seed=seed,
        resamples=resamples,
        cluster_name=cluster_name,
    )
    return Leaderboard(
        task=task,
        condition=condition,
        labels=tuple(labels),
        systems=ranked,
        pooled=pool(systems, labels, **options) if len(systems) > 1 else None,
        comparisons=comparisons,
        notes=notes(systems, ranked, cluster_name),
    )


def top_confusions(scores: Scores, k: int | None = None) -> tuple[TopConfusion, ...]:
    """The largest confusions of one label with another, largest first; ``no label`` is not a confusion.

    Ties are in the order of the labels; pairs that never occur are left out.
    """
    table = scores.confusion
    found = [
        TopConfusion(gold, predicted, row[j], row[j] / sum(row))
        for gold, row in zip(table.rows, table.counts, strict=True)
        for j, predicted in enumerate(table.columns[: len(table.rows)])
        if predicted != gold and row[j] > 0
    ]
    return tuple(sorted(found, key=lambda each: -each.count)[:k])


def neutral_error_shares(scores: Scores) -> tuple[Estimate, Estimate]:
    """Share of the neutral label in the errors: among all items not right, and among wrong labels only.

    The two differ by the items without a label, which are errors but can never be neutral. Published tables
    use the second.

    Raises
    ------
    UsageError: the scores have no neutral label.
    """
    bias = scores.neutral
    if bias is None:
        raise UsageError(
            scores.name, "no neutral label in these scores", "a task with a neutral label"
        )
    labelled = bias.outputs - scores.right
    return wilson_estimate(bias.wrong, bias.errors), wilson_estimate(bias.wrong, labelled)


def _scores(
    name: str,
    decisions: Sequence[Decision],
    labels: Sequence[str],
    *,
    open_failed: int,
    headline: str,
    valence: Mapping[str, str] | None,
    neutral: str | None,
    priors: Mapping[str, float] | None,
    seed: int,
    resamples: int,
    cluster_name: str,
) -> Scores:
    data = tally(name, decisions, labels, cluster_name)
    drawn = resampled(data, resamples, stream(seed, "score"))
    right = int(data.right.sum())
    rules = Counter(decision.outcome.rule or f"({decision.outcome.kind})" for decision in decisions)
    latencies = [d.latency_s for d in decisions if d.latency_s is not None]
    costs = [d.cost_usd for d in decisions if d.cost_usd is not None]
    columns = (*data.labels, NO_LABEL_NAME)
    counts = drawn.counts.astype(np.int64).tolist()
    return Scores(
        name=name,
        n=data.n,
        right=right,
        outcomes=count(decision.outcome for decision in decisions),
        complete=open_failed == 0,
        bounds=(right / data.n, (right + open_failed) / data.n),
        accuracy=wilson_estimate(right, data.n, headline),
        accuracy_clustered=drawn.estimate(confusion.accuracy),
        macro_recall=drawn.estimate(confusion.macro_recall),
        per_class=per_class(data, drawn),
        confusion=Confusion(data.labels, columns, tuple(tuple(row) for row in counts)),
        neutral=label_bias(data, neutral, right),
        valence=valence_scores(data, valence, resamples, seed),
        by_group=by_group(data, decisions, resamples, seed),
        calibration=calibration_of(decisions),
        prior_weighted=None
        if priors is None
        else prior_weighted(name, data, drawn, priors, resamples, seed),
        rules=dict(sorted(rules.items(), key=lambda each: (-each[1], each[0]))),
        latency_median_s=float(np.median(latencies)) if latencies else None,
        latency_p95_s=float(np.quantile(latencies, 0.95)) if latencies else None,
        cost_usd=float(sum(sorted(costs))) if costs else None,
        n_clusters=data.n_clusters,
    )


def _with_common_clusters(systems: Sequence[System]) -> list[Decision]:
    """All decisions, each item under one cluster: the speaker where any system knows it."""
    cluster: dict[str, str] = {}
    gold: dict[str, tuple[str, str]] = {}
    for system in systems:
        for d in system.decisions:
            truth, first = gold.setdefault(d.item_id, (d.gold, system.name))
            if truth != d.gold:
                raise DataError(
                    f"item {d.item_id!r}",
                    f"gold label {truth!r} in {first} and {d.gold!r} in {system.name}",
                    "one truth for one item",
                    "Score both against the same clip set and label map.",
                )
            if d.cluster == d.item_id:
                continue
            if cluster.setdefault(d.item_id, d.cluster) != d.cluster:
                raise DataError(
                    f"item {d.item_id!r}",
                    f"cluster {cluster[d.item_id]!r} and {d.cluster!r} in different systems",
                    "one cluster for one item",
                )
    return [
        d
        if (known := cluster.get(d.item_id, d.cluster)) == d.cluster
        else replace(d, cluster=known)
        for system in systems
        for d in system.decisions
    ]
