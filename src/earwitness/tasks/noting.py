"""What a leaderboard says in words: incomplete runs, few clusters, differing items, overlapping intervals."""

from __future__ import annotations

from collections.abc import Sequence

from earwitness.stats.intervals import FEW_CLUSTERS
from earwitness.tasks.comparing import shared_items
from earwitness.tasks.records import Estimate, Scores, System
from earwitness.tasks.tally import wilson_estimate


def notes(
    systems: Sequence[System], ranked: Sequence[Scores], cluster_name: str
) -> tuple[str, ...]:
    """Everything a reader of this leaderboard must know, one sentence each."""
    said = [_incomplete(row) for row in ranked if not row.complete]
    for row in ranked:
        accepted = row.outcomes["failed"] if row.complete else 0
        if accepted:
            said.append(
                f"{row.name}: {accepted} of {row.n} items failed and were accepted as not right"
            )
    said += _few_clusters(ranked, cluster_name)
    common = shared_items(systems, cluster_name).items
    if any(row.n != len(common) for row in ranked):
        sizes = ", ".join(f"{row.name} {row.n}" for row in ranked)
        said.append(
            f"item sets differ ({sizes}; {len(common)} in common): only the comparisons are on equal items"
        )
    said += [
        "intervals overlap: no order is claimed " + _listed(names) for names in _overlaps(ranked)
    ]
    return tuple(said)


def accuracy_without_failed(scores: Scores) -> Estimate:
    """The reading of scorers that drop failed requests: right / (N - failed). Show it only beside the bounds."""
    return wilson_estimate(
        scores.right, scores.n - scores.outcomes["failed"], "wilson, failed items dropped"
    )


def _incomplete(row: Scores) -> str:
    failed = row.outcomes["failed"]
    low, high = row.bounds
    dropped = accuracy_without_failed(row)
    reading = (
        ""
        if dropped.denominator == 0
        else f"; a scorer that drops failed items would say {row.right}/{dropped.denominator} = {dropped.value:.1%}"
    )
    return (
        f"{row.name}: incomplete run, {failed} of {row.n} items failed: "
        f"accuracy lies between {low:.1%} and {high:.1%}{reading}"
    )


def _few_clusters(ranked: Sequence[Scores], cluster_name: str) -> list[str]:
    few = sorted({row.n_clusters for row in ranked if row.n_clusters < FEW_CLUSTERS})
    notes = []
    for n in few:
        if n == 1:
            notes.append(
                f"only one {cluster_name}: intervals are by item and say nothing of other {cluster_name}s"
            )
        else:
            notes.append(f"only {n} {cluster_name}s: intervals by {cluster_name} are rough")
    return notes


def _overlaps(ranked: Sequence[Scores]) -> list[list[str]]:
    """Largest groups of systems whose intervals all overlap, in the order of the table.

    A system's interval is the wider of Wilson's and the clustered one on each side, and reaches to the upper
    bound of an incomplete run.
    """
    spans = [
        (
            row.name,
            min(row.accuracy.low, row.accuracy_clustered.low),
            max(row.accuracy.high, row.accuracy_clustered.high, row.bounds[1]),
        )
        for row in ranked
    ]
    groups: list[list[str]] = []
    # Intervals that overlap pairwise share a point, and such a point exists at one of the lower limits.
    for _, point, _ in sorted(spans, key=lambda span: -span[1]):
        group = [name for name, low, high in spans if low <= point <= high]
        if len(group) > 1 and not any(set(group) <= set(other) for other in groups):
            groups = [other for other in groups if not set(other) <= set(group)] + [group]
    return groups


def _listed(names: Sequence[str]) -> str:
    if len(names) == 2:
        return f"between {names[0]} and {names[1]}"
    return "among " + ", ".join(names[:-1]) + f" and {names[-1]}"
