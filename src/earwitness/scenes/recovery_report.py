"""How the filter went: acceptance, what was read as what, attempts, and whether the plan's distribution stands.

Acceptance is counted over *first* drafts that reached the judge: later ones were written with the reasons in hand, and
abandoned scenarios are replaced, so shares over all drafts would flatter or punish as the loop was set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from earwitness.scenes.bank_records import REACTIONS
from earwitness.scenes.recovery_gate import Ruled
from earwitness.scenes.recovery_trial import Share
from earwitness.scenes.refill import same_allocation
from earwitness.scenes.scenario import Scenario
from earwitness.scenes.writing_loop import WritingResult
from earwitness.scenes.writing_report import Acceptance, acceptance
from earwitness.stats.confusion import accuracy, confusion_counts
from earwitness.stats.intervals import cluster_bootstrap, wilson
from earwitness.stats.streams import stream

SEED = 0
MARGINALS: Mapping[str, Callable[[Scenario], Sequence[str]]] = {
    "composition": lambda s: ["-".join(map(str, s.composition))],
    "location": lambda s: [s.location],
    "roles": lambda s: [s.roles],
    "genders": lambda s: [s.gender_a + s.gender_b],
    "split": lambda s: [s.split],
    "reaction": lambda s: [e.reaction for e in s.events],
    "register": lambda s: [e.register or "none" for e in s.events],
    "sound": lambda s: [e.sound for e in s.events],
    "reaction and sound": lambda s: [f"{e.reaction} {e.sound}" for e in s.events],
    "reaction and position": lambda s: [f"{e.reaction} {e.band}" for e in s.events],
}
"""What must be distributed as planned, with how it is counted."""


@dataclass(frozen=True)
class RecoveryReport:
    """Figures of a filter's run.

    Attributes
    ----------
    accepted: first drafts accepted, of those judged; interval by template.
    topic: first drafts whose topic was recovered.
    recovered: by planned reaction, share of sounds of first drafts read as planned.
    compositions: first drafts accepted by pivot-verbal-behavioral-ambient.
    confusion: sounds of first drafts, rows planned, columns read.
    cosine: 5th, 50th and 95th percentile over first drafts.
    mean_attempts: drafts written per place that stands, those of abandoned scenarios included.
    distribution: for each marginal, how many accepted events or scenes lie otherwise than planned (0 everywhere
        when the corpus is full).
    same_allocation: whether every scene has the allocation of the place it stands in.
    """

    judged: int
    accepted: Share
    topic: Share
    recovered: Mapping[str, Share]
    compositions: Mapping[str, Share]
    confusion: tuple[tuple[int, ...], ...]
    cosine: tuple[float, float, float]
    mean_attempts: float
    distribution: Mapping[str, int]
    same_allocation: bool
    writing: Acceptance

    @property
    def as_planned(self) -> bool:
        """Whether the accepted corpus has exactly the planned distribution."""
        return self.same_allocation and not any(self.distribution.values())

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        values = asdict(self)
        values["writing"] = self.writing.to_json()
        return {**values, "as_planned": self.as_planned, "reactions": list(REACTIONS)}


def report(result: WritingResult, rulings: Sequence[Ruled], tau: float) -> RecoveryReport:
    """Count what a filter did.

    Parameters
    ----------
    rulings: of the gate, in the order they were made.
    """
    first: dict[str, Ruled] = {}
    for ruled in rulings:
        first.setdefault(ruled.scenario.id, ruled)
    drafts = list(first.values())
    written = acceptance(result)
    filled = [place for place in result.places if place.dialogue and not place.waiting]
    planned = [place.planned for place in result.places]
    standing = [place.scenario for place in filled]
    return RecoveryReport(
        judged=len(rulings),
        accepted=_share(drafts, lambda r: r.accepted, "accepted"),
        topic=_share(drafts, lambda r: r.cosine >= tau, "topic"),
        recovered=_recovered(drafts),
        compositions=_by_composition(drafts),
        confusion=_confusion(drafts),
        cosine=_percentiles([ruled.cosine for ruled in drafts]),
        mean_attempts=round(written.attempts / len(filled), 4) if filled else 0.0,
        distribution={
            name: _difference(planned, standing, count) for name, count in MARGINALS.items()
        },
        same_allocation=all(
            place.scenario == place.planned or same_allocation(place.planned, place.scenario)
            for place in filled
        ),
        writing=written,
    )


def _share(drafts: Sequence[Ruled], good: Callable[[Ruled], bool], name: str) -> Share:
    """A share of drafts with an interval that draws whole templates."""
    if not drafts:
        return Share(0.0, 0.0, 0.0, 0)
    templates = sorted({ruled.scenario.template for ruled in drafts})
    place = {template: n for n, template in enumerate(templates)}
    counts = np.zeros((len(templates), 1, 2), dtype=np.int64)
    for ruled in drafts:
        counts[place[ruled.scenario.template], 0, 0 if good(ruled) else 1] += 1
    if len(templates) < 2:
        right = int(counts[:, 0, 0].sum())
        return Share(right / len(drafts), *wilson(right, len(drafts)), len(drafts))
    found = cluster_bootstrap(counts, accuracy, stream(SEED, "filter", name))
    return Share(float(found.value), float(found.low), float(found.high), len(drafts))


def _recovered(drafts: Sequence[Ruled]) -> dict[str, Share]:
    right: Counter[str] = Counter()
    of: Counter[str] = Counter()
    for ruled in drafts:
        for event in ruled.scenario.events:
            of[event.reaction] += 1
            right[event.reaction] += ruled.verdict.reactions.get(event.id) == event.reaction
    return {
        name: Share(right[name] / of[name], *wilson(right[name], of[name]), of[name])
        for name in REACTIONS
        if of[name]
    }


def _by_composition(drafts: Sequence[Ruled]) -> dict[str, Share]:
    groups: dict[str, list[bool]] = {}
    for ruled in drafts:
        key = "-".join(map(str, ruled.scenario.composition))
        groups.setdefault(key, []).append(ruled.accepted)
    return {
        key: Share(sum(group) / len(group), *wilson(sum(group), len(group)), len(group))
        for key, group in sorted(groups.items())
    }


def _confusion(drafts: Sequence[Ruled]) -> tuple[tuple[int, ...], ...]:
    couples = [
        (REACTIONS.index(event.reaction), REACTIONS.index(ruled.verdict.reactions[event.id]))
        for ruled in drafts
        for event in ruled.scenario.events
        if event.id in ruled.verdict.reactions
    ]
    gold = np.array([g for g, _ in couples], dtype=np.int64)
    read = np.array([r for _, r in couples], dtype=np.int64)
    return tuple(tuple(map(int, row[:-1])) for row in confusion_counts(gold, read, len(REACTIONS)))


def _percentiles(values: Sequence[float]) -> tuple[float, float, float]:
    if not values:
        return 0.0, 0.0, 0.0
    low, middle, high = np.percentile(values, [5, 50, 95])
    return round(float(low), 4), round(float(middle), 4), round(float(high), 4)


def _difference(
    planned: Sequence[Scenario],
    standing: Sequence[Scenario],
    count: Callable[[Scenario], Sequence[str]],
) -> int:
    """Cases by which two counts differ, over all values."""
    wanted = Counter(value for scenario in planned for value in count(scenario))
    found = Counter(value for scenario in standing for value in count(scenario))
    return sum(abs(wanted[value] - found[value]) for value in wanted.keys() | found.keys())
