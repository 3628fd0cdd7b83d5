"""Decisions made to order, for the tests of scoring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from earwitness.runs.outcomes import Outcome
from earwitness.tasks.records import Decision


def decision(
    item: str,
    gold: str,
    said: str | None,
    cluster: str | None = None,
    *,
    kind: str = "refused",
    scores: Mapping[str, float] | None = None,
    groups: Mapping[str, str] | None = None,
    **more: object,
) -> Decision:
    """One decision; ``said`` None ends as ``kind``. Without a cluster the item is its own."""
    outcome = (
        Outcome(kind, rule=f"{kind} rule")  # type: ignore[arg-type]
        if said is None
        else Outcome("answered", said, rule="exact", scores=dict(scores or {}))
    )
    return Decision(item, gold, outcome, cluster or item, groups=groups or {}, **more)  # type: ignore[arg-type]


def decisions_of(
    gold: Sequence[str], said: Sequence[str | None], clusters: Sequence[str] | None = None
) -> tuple[Decision, ...]:
    return tuple(
        decision(f"clip{k:04}", g, s, clusters[k] if clusters else None)
        for k, (g, s) in enumerate(zip(gold, said, strict=True))
    )


def decisions_from_counts(
    counts: Sequence[Sequence[int]], labels: Sequence[str], speakers: int, turn: int = 0
) -> tuple[Decision, ...]:
    """Decisions with exactly these confusion counts (last column: no label).

    Clips of a label are the same for every table; ``turn`` rotates which of them get which answer, and
    speakers are dealt out over the clips in turn.
    """
    found = []
    number = 0
    for i, row in enumerate(counts):
        said = np.repeat(np.arange(len(row)), row)
        said = np.roll(said, turn * 7 + i)
        for j in said:
            label = labels[j] if j < len(labels) else None
            found.append(
                decision(
                    f"clip{number:04}",
                    labels[i],
                    label,
                    f"speaker{number % speakers:02}",
                    kind="unmapped",
                )
            )
            number += 1
    return tuple(found)
