"""The eight outcomes: every item ends in exactly one of them, and none ever leaves the denominator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, get_args

OutcomeKind = Literal[
    "answered", "unmapped", "ambiguous", "refused", "blocked", "truncated", "empty", "failed"
]
OUTCOME_KINDS: tuple[OutcomeKind, ...] = get_args(OutcomeKind)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a reply amounts to.

    ``label`` is set exactly when ``kind`` is ``answered``. ``rule`` names the parser or label-map rule that
    decided. ``native`` is the label or words the model used. ``scores`` are mapped scores over the task's
    labels (mass kept as the model gave it) where the model returned numbers. ``detail`` explains a failure.
    """

    kind: OutcomeKind
    label: str | None = None
    rule: str = ""
    native: str | None = None
    scores: dict[str, float] = field(default_factory=dict)
    detail: str = ""

    def __post_init__(self) -> None:
        if (self.kind == "answered") != (self.label is not None):
            raise ValueError(f"outcome {self.kind!r} with label {self.label!r}")


def count(outcomes: Iterable[Outcome]) -> dict[OutcomeKind, int]:
    """Number of outcomes of each kind, all eight kinds present."""
    seen = Counter(outcome.kind for outcome in outcomes)
    return {kind: seen.get(kind, 0) for kind in OUTCOME_KINDS}
