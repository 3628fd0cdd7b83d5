"""What a plan holds, as tables: every marginal, and every joint distribution a shortcut could hide in.

Conventions
-----------
Each table of reactions carries ``guess``: the balanced accuracy somebody would reach over this very plan who
knows nothing but the row, that is, the mean over reactions of the share of their events whose row has that
reaction as its most telling one, ``1/R sum_rows max_r P(row | r)``. It is the most any classifier could get from
that feature here; 25 % is nothing. A feature with many values exceeds that by chance alone, so ``chance`` is
the mean over ``SHUFFLES`` plans whose reactions were dealt out anew: a guess that is not above it tells nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from earwitness.scenes.bank import Bank
from earwitness.scenes.bank_records import REACTED_TO, REACTIONS
from earwitness.scenes.scenario import BANDS, SPLITS, PlannedEvent, Scenario
from earwitness.stats.streams import stream

CHANCE = 0.25
"""Balanced accuracy of somebody who knows nothing at all."""
SHUFFLES = 20
_Row = Callable[[tuple[Scenario, PlannedEvent]], Hashable]


@dataclass(frozen=True, slots=True)
class PlanTable:
    """One table of counts.

    Attributes
    ----------
    counts: rows by columns.
    guess, chance: see the module; None where the columns are no reactions.
    """

    name: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    guess: float | None = None
    chance: float | None = None

    @property
    def total(self) -> int:
        """Sum of all cells."""
        return sum(map(sum, self.counts))


@dataclass(frozen=True, slots=True)
class PlanReport:
    """All tables of a plan."""

    scenarios: int
    events: int
    templates: int
    marginals: tuple[PlanTable, ...]
    joints: tuple[PlanTable, ...]

    @property
    def tables(self) -> tuple[PlanTable, ...]:
        """Marginals, then joints."""
        return (*self.marginals, *self.joints)

    def table(self, name: str) -> PlanTable:
        """One table by name."""
        return next(table for table in self.tables if table.name == name)

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        return asdict(self)


def plan_report(scenarios: Sequence[Scenario], bank: Bank) -> PlanReport:
    """Tabulate a plan.

    Examples
    --------
    >>> from earwitness.scenes.bank import load_bank
    >>> from earwitness.scenes.plan import PlanRequest, load_preset, plan
    >>> bank = load_bank()
    >>> report = plan_report(plan(bank, PlanRequest(100, 10, 1, load_preset("balanced"))), bank)
    >>> report.table("reaction_by_band").guess < 0.27
    True
    """
    pairs = [(scenario, event) for scenario in scenarios for event in scenario.events]
    return PlanReport(
        scenarios=len(scenarios),
        events=len(pairs),
        templates=len({scenario.template for scenario in scenarios}),
        marginals=_marginals(scenarios, bank),
        joints=_joints(pairs, bank),
    )


def _marginals(scenarios: Sequence[Scenario], bank: Bank) -> tuple[PlanTable, ...]:
    categories = {
        theme.id: category.id for category in bank.categories for theme in category.themes
    }
    of_scene: tuple[tuple[str, str, Callable[[Scenario], Hashable], Sequence[str]], ...] = (
        ("events", "Events in a scene", lambda s: len(s.events), ()),
        ("composition", "Pivot, verbal, behavioral, ambient events", _composition, ()),
        ("location", "Locations", lambda s: s.location, [place.id for place in bank.locations]),
        ("roles", "Role pairs", lambda s: s.roles, [pair.id for pair in bank.roles]),
        ("genders", "Genders of A and B", lambda s: s.gender_a + s.gender_b, ()),
        ("category", "Categories of themes", lambda s: categories[s.theme], ()),
    )
    tables = [
        _cross(name, title, scenarios, row, lambda s: s.split, order, SPLITS)
        for name, title, row, order in of_scene
    ]
    events = [(s, event) for s in scenarios for event in s.events]
    for reaction in REACTED_TO:
        mine = [pair for pair in events if pair[1].reaction == reaction]
        tables.append(
            _cross(
                f"registers_{reaction}",
                f"Registers, {reaction}",
                mine,
                lambda pair: str(pair[1].register),
                lambda pair: pair[0].split,
                [register.id for register in bank.registers_of(reaction)],
                SPLITS,
            )
        )
    tables.append(_sounds_per_location(events, bank))
    return tuple(tables)


def _composition(scenario: Scenario) -> str:
    return "-".join(map(str, scenario.composition))


def _joints(pairs: Sequence[tuple[Scenario, PlannedEvent]], bank: Bank) -> tuple[PlanTable, ...]:
    features: tuple[tuple[str, str, _Row, Sequence[str]], ...] = (
        ("split", "split", lambda p: p[0].split, SPLITS),
        ("count", "number of events in the scene", lambda p: len(p[0].events), ()),
        ("order", "place among the scene's events", lambda p: p[0].events.index(p[1]) + 1, ()),
        ("count_order", "number and place", lambda p: f"{p[0].events.index(p[1]) + 1} of {len(p[0].events)}", ()),
        ("band", "third of the talk", lambda p: p[1].band, BANDS),
        ("location", "location", lambda p: p[0].location, [place.id for place in bank.locations]),
        ("rarity", "rarity of the sound", lambda p: "rare" if p[1].rare else "ordinary", ("ordinary", "rare")),
        ("loudness", "loudness of the sound at its source", lambda p: bank.sound(p[1].sound).loudness, ()),
        ("genders", "genders", lambda p: p[0].gender_a + p[0].gender_b, ()),
        ("closeness", "closeness of the role pair", lambda p: bank.role_pair(p[0].roles).closeness, ()),
        ("sound", "sound", lambda p: p[1].sound, ()),
    )  # fmt: skip
    return tuple(
        _cross(
            f"reaction_by_{name}",
            f"Reaction by {title}",
            pairs,
            row,
            lambda pair: pair[1].reaction,
            order,
            REACTIONS,
            guess=True,
        )
        for name, title, row, order in features
    )


def _sounds_per_location(pairs: Sequence[tuple[Scenario, PlannedEvent]], bank: Bank) -> PlanTable:
    """For every location and split: how often its ordinary sounds occur, rarest and most frequent."""
    columns = []
    uses: Mapping[tuple[str, str], Counter[str]] = {
        (place.id, split): Counter() for place in bank.locations for split in SPLITS
    }
    for scenario, event in pairs:
        if not event.rare:
            uses[scenario.location, scenario.split][event.sound] += 1
    rows = []
    for place in bank.locations:
        row: list[int] = []
        for split in SPLITS:
            seen = uses[place.id, split]
            row += [len(seen), min(seen.values(), default=0), max(seen.values(), default=0)]
        rows.append(tuple(row))
    for split in SPLITS:
        columns += [f"{split}: sounds", "fewest uses", "most uses"]
    return PlanTable(
        "sounds_per_location",
        "Ordinary sounds of each location",
        tuple(place.id for place in bank.locations),
        tuple(columns),
        tuple(rows),
    )


def _cross(
    name: str,
    title: str,
    things: Sequence[Any],
    row: Callable[[Any], Hashable],
    column: Callable[[Any], Hashable],
    row_order: Sequence[str],
    columns: Sequence[str],
    *,
    guess: bool = False,
) -> PlanTable:
    counts = Counter((str(row(thing)), str(column(thing))) for thing in things)
    seen = {key for key, _ in counts}
    rows = [key for key in row_order if key in seen] or sorted(seen)
    table = tuple(tuple(counts[key, label] for label in columns) for key in rows)
    if not guess or not things:
        return PlanTable(name, title, tuple(rows), tuple(columns), table)
    chance = _chance(name, [str(row(thing)) for thing in things], [column(t) for t in things])
    return PlanTable(name, title, tuple(rows), tuple(columns), table, _guess(table), chance)


def _chance(name: str, rows: Sequence[str], reactions: Sequence[Hashable]) -> float:
    """Mean guess when the same reactions are dealt out over the same rows by lot."""
    row_codes = np.unique(np.asarray(rows), return_inverse=True)[1]
    codes = np.unique(np.asarray([str(each) for each in reactions]), return_inverse=True)[1]
    width = int(codes.max()) + 1
    draw = stream(0, "plan report", name)
    found = []
    for _ in range(SHUFFLES):
        cells = row_codes * width + draw.permutation(codes)
        table = np.bincount(cells, minlength=(int(row_codes.max()) + 1) * width)
        shares = table.reshape(-1, width) / table.reshape(-1, width).sum(axis=0)
        found.append(float(shares.max(axis=1).sum() / width))
    return sum(found) / len(found)


def _guess(counts: Sequence[Sequence[int]]) -> float | None:
    totals = (
        [sum(row[column] for row in counts) for column in range(len(counts[0]))] if counts else []
    )
    present = [column for column, total in enumerate(totals) if total]
    if not present:
        return None
    best = sum(max(row[column] / totals[column] for column in present) for row in counts)
    return best / len(present)
