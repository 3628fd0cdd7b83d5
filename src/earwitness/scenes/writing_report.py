"""How writing went, composition by composition: what was accepted, how soon, and what was given up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from earwitness.scenes.writing_loop import WritingResult


@dataclass(slots=True)
class AcceptanceRow:
    """One composition (pivot, verbal, behavioral, ambient events) over its places.

    ``first`` counts places whose very first draft stood; ``attempts`` all drafts, those of abandoned scenarios
    included.
    """

    composition: str
    places: int = 0
    filled: int = 0
    first: int = 0
    attempts: int = 0
    abandoned: int = 0

    @property
    def first_share(self) -> float:
        """Share of places whose first draft stood."""
        return self.first / self.places if self.places else 0.0


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Acceptance per composition, in all, and the reasons of every rejection by code."""

    rows: tuple[AcceptanceRow, ...]
    total: AcceptanceRow
    reasons: Mapping[str, int]

    @property
    def attempts(self) -> int:
        """All drafts."""
        return self.total.attempts

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "compositions": [asdict(row) for row in self.rows],
            "total": asdict(self.total),
            "reasons": dict(self.reasons),
        }


def acceptance(result: WritingResult) -> Acceptance:
    """Count what became of every place.

    Places and filled places are by the planned composition; since a refill has the allocation of the scenario
    it replaces, a full corpus has ``filled == places`` in every row: the planned distribution.
    """
    rows: defaultdict[str, AcceptanceRow] = defaultdict(lambda: AcceptanceRow(""))
    total = AcceptanceRow("all")
    reasons: Counter[str] = Counter()
    for place in result.places:
        key = "-".join(map(str, place.planned.composition))
        row = rows[key]
        row.composition = key
        filled = place.dialogue is not None and not place.waiting
        for counted in (row, total):
            counted.places += 1
            counted.filled += filled
            counted.first += filled and place.attempts == 0
            counted.attempts += place.attempts + filled
            counted.abandoned += len(place.abandoned)
        for codes in (*(c for entry in place.abandoned for c in entry.reasons), *place.history):
            reasons.update(codes)
    ordered = tuple(rows[key] for key in sorted(rows))
    return Acceptance(ordered, total, dict(reasons.most_common()))
