"""The plan: scenarios with fixed ground truth, before any words or sound exist.

Conventions
-----------
Pure and deterministic. Template number ``t`` and its ``m``-th scenario get the same content however many
templates are asked for, so that a corpus can grow and nothing that exists changes. Quotas are walked, never
drawn and rejected (see :mod:`earwitness.scenes.designs`). Design and definitions follow CARES
(arXiv 2610.10208); the ``balanced`` design is our own.

Splits are by template, 8 : 1 : 1 in every ten templates of a round and in every ten of a theme.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from earwitness.errors import DataError, UsageError
from earwitness.scenes.bank import Bank
from earwitness.scenes.bank_cast import renderable
from earwitness.scenes.bank_records import REACTED_TO, REACTIONS, Reaction
from earwitness.scenes.designs import BalancedDesign, Cycle, Shuffles, compositions
from earwitness.scenes.scenario import BANDS, SPLITS, Band, Gender, PlannedEvent, Scenario, Split
from earwitness.stats.streams import Streams, stream

PRESETS = Path(__file__).parent / "presets"
SPLIT_CYCLE = 10
GENDERS: tuple[tuple[Gender, Gender], ...] = (("F", "F"), ("F", "M"), ("M", "F"), ("M", "M"))


class InfeasiblePlanError(UsageError):
    """What was asked for cannot be planned; the message says what is missing."""


class Preset(BaseModel):
    """How reactions, counts and rare sounds are distributed (``scenes/presets/*.yaml``).

    ``floors`` says how much a group of features gives away by design (see :mod:`earwitness.scenes.audit`):
    a balanced accuracy, or null where nothing is promised; 0.25 for a group that is not named.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    version: str
    design: Literal["balanced", "compositions"]
    counts: tuple[int, ...]
    max_pivots: int = 1
    rare_share_of_events: float = 0.0
    rare_share_of_scenes: float = 0.0
    pivot_bands: tuple[Band, ...] = BANDS
    floors: dict[str, float | None] = {}


def load_preset(name: str) -> Preset:
    """A preset that ships with Earwitness, or a YAML file of the user's.

    Raises
    ------
    DataError: there is no such preset, or the file is not one.
    """
    path = PRESETS / f"{name}.yaml" if (PRESETS / f"{name}.yaml").exists() else Path(name)
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in PRESETS.glob("*.yaml")))
        raise DataError("--preset", f"no preset {name!r}", wanted=f"{known} or a YAML file")
    try:
        return Preset.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, ValidationError) as error:
        raise DataError(str(path), f"is not a preset: {error}") from error


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What is asked for.

    ``takes`` says how many takes of each sound a library has per split (None: no library, all drawable).
    ``tags`` are the delivery tags that the cast can render (None: all). ``without`` are locations where no scene
    may be.
    """

    templates: int
    per_template: int
    seed: int
    preset: Preset
    takes: Mapping[Split, Mapping[str, int]] | None = None
    min_takes: int = 1
    tags: frozenset[str] | None = None
    without: frozenset[str] = frozenset()


@dataclass(slots=True)
class _SplitState:
    """What one split has used so far; grows scenario by scenario."""

    design: BalancedDesign
    scenes: int = 0
    pivots: int = 0
    reacted: Counter[Reaction] = field(default_factory=Counter)
    events: Counter[Reaction] = field(default_factory=Counter)
    band_uses: Counter[tuple[int, Reaction]] = field(default_factory=Counter)
    rest: dict[tuple[str, bool], list[str]] = field(default_factory=dict)
    rounds: Counter[tuple[str, bool]] = field(default_factory=Counter)
    uses_with: dict[Reaction, dict[str, int]] = field(
        default_factory=lambda: {reaction: {} for reaction in REACTIONS}
    )


def template_order(bank: Bank, seed: int) -> Iterator[tuple[str, str, Split]]:
    """Template id, theme and split, endlessly: round by round over all themes.

    Beyond the situations a bank holds, ids go on counting: their texts are for a writer to make.
    """
    themes = [theme.id for category in bank.categories for theme in category.themes]
    order = [themes[i] for i in stream(seed, "plan", "themes").permutation(len(themes))]
    labels: tuple[Split, ...] = (*("train",) * 8, "validation", "test")
    number = 0
    while True:
        turn = number // SPLIT_CYCLE
        for place, theme in enumerate(order):
            block, offset = divmod(place, SPLIT_CYCLE)
            shuffled = stream(seed, "plan", "splits", str(block), str(turn)).permutation(
                SPLIT_CYCLE
            )
            split = labels[int(shuffled[(offset + number) % SPLIT_CYCLE])]
            yield f"{theme}.{number + 1:02d}", theme, split
        number += 1


class Planner:
    """Allocates scenarios one after another."""

    def __init__(self, bank: Bank, request: PlanRequest) -> None:
        self.bank = bank
        self.request = request
        self.registers = self._feasible_registers()
        self._locations = [
            location.id for location in bank.locations if location.id not in request.without
        ]
        if not self._locations:
            raise InfeasiblePlanError(
                f"plan with preset {request.preset.id}",
                "no location of the bank has an ambience in every split",
                next_step="Add ambiences to the library.",
            )
        self.pools = {split: self._pools(split) for split in SPLITS}
        self._roles = [pair.id for pair in bank.roles]
        self._cells = compositions(request.preset.counts, request.preset.max_pivots)
        self._with_pivot = sum(cell[0] > 0 for cell in self._cells) / len(self._cells)
        self._streams = Streams()
        self._cycles: dict[tuple[str, ...], Cycle] = {}
        self._rank_rounds: dict[tuple[Split, str, bool, int], dict[str, int]] = {}
        self._drawn: dict[tuple[str, ...], Shuffles] = {}
        self._states = {
            split: _SplitState(
                BalancedDesign(
                    request.preset.counts,
                    len(self._locations),
                    request.seed,
                    split,
                    self._streams,
                )
                if request.preset.design == "balanced"
                else BalancedDesign((0,), 1, request.seed, split, self._streams)
            )
            for split in SPLITS
        }
        self._refuse_the_infeasible()

    def _feasible_registers(self) -> dict[Reaction, tuple[str, ...]]:
        """Registers per reaction whose conduct the cast can render."""
        given = self.request.tags
        tags = None if given is None else frozenset(renderable(self.bank, given))

        def renders(required: Sequence[str]) -> bool:
            return tags is None or not required or not tags.isdisjoint(required)

        return {
            reaction: tuple(
                register.id
                for register in self.bank.registers_of(reaction)
                if renders(register.tags)
            )
            for reaction in REACTED_TO
        }

    def _pools(self, split: Split) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        """Ordinary and rare sounds of each location that have enough takes in this split."""
        takes = None if self.request.takes is None else self.request.takes.get(split, {})

        def enough(sounds: Sequence[str]) -> tuple[str, ...]:
            if takes is None:
                return tuple(sounds)
            return tuple(s for s in sounds if takes.get(s, 0) >= self.request.min_takes)

        return {
            location: (enough(self.bank.sounds_at(location)), enough(self.bank.rare_at(location)))
            for location in self._locations
        }

    def _refuse_the_infeasible(self) -> None:
        """Say at once, and all together, what cannot be planned."""
        preset = self.request.preset
        missing = [f"no {r} register can be rendered" for r in REACTED_TO if not self.registers[r]]
        # Two more than a scene holds, so that a location does not repeat the same few sounds for ever.
        least = max(preset.counts) + 2
        rare_wanted = preset.rare_share_of_events > 0 or preset.rare_share_of_scenes > 0
        for split in self._splits_in_use():
            for location, (ordinary, rare) in self.pools[split].items():
                if len(ordinary) < least:
                    missing.append(
                        f"{location} has {len(ordinary)} drawable sounds in {split}, {least} needed"
                    )
                if rare_wanted and not rare:
                    missing.append(f"{location} has no rare sound in {split}")
        if missing:
            raise InfeasiblePlanError(
                f"plan with preset {preset.id}",
                "; ".join(missing),
                next_step="Add takes to the library, voices to the cast, or use another bank or preset.",
            )

    def _splits_in_use(self) -> tuple[Split, ...]:
        order = template_order(self.bank, self.request.seed)
        seen = {next(order)[2] for _ in range(self.request.templates)}
        return tuple(split for split in SPLITS if split in seen)

    def _cycle(self, size: int, *names: str) -> Cycle:
        cycle = self._cycles.get(names)
        if cycle is None:
            cycle = self._cycles[names] = Cycle(
                size, self.request.seed, "plan", *names, streams=self._streams
            )
        return cycle

    def _shuffles(self, size: int, *names: str) -> Shuffles:
        shuffles = self._drawn.get(names)
        if shuffles is None:
            shuffles = self._drawn[names] = Shuffles(size, self.request.seed, "plan", *names)
        return shuffles

    def scenarios(self) -> Iterator[Scenario]:
        """Every scenario of the plan, template by template."""
        order = template_order(self.bank, self.request.seed)
        for _ in range(self.request.templates):
            template, theme, split = next(order)
            for number in range(self.request.per_template):
                yield self._scenario(f"{template}.{number + 1:02d}", template, theme, split)

    def _scenario(self, identifier: str, template: str, theme: str, split: Split) -> Scenario:
        state = self._states[split]
        number = state.scenes
        state.scenes += 1
        location, reactions, rare = self._reactions(split, number)
        bands = self._bands(split, number, reactions)
        # Bands give the order in time; the design's order is kept among events, band by band.
        places = sorted(range(len(reactions)), key=lambda place: BANDS.index(bands[place]))
        chosen: list[str] = []
        events: list[PlannedEvent] = []
        for place in places:
            reaction = reactions[place]
            sound = self._sound(split, location, reaction, chosen, rare=rare[place])
            chosen.append(sound)
            events.append(
                PlannedEvent(
                    id=f"e{len(events) + 1}",
                    sound=sound,
                    reaction=reaction,
                    register=self._register(split, reaction),
                    band=bands[place],
                    rare=rare[place],
                )
            )
        gender_a, gender_b = GENDERS[self._cycle(len(GENDERS), split, "genders")[number]]
        return Scenario(
            id=identifier,
            template=template,
            theme=theme,
            split=split,
            location=location,
            roles=self._roles[self._cycle(len(self._roles), split, "roles")[number]],
            gender_a=gender_a,
            gender_b=gender_b,
            events=tuple(events),
        )

    def _reactions(
        self, split: Split, number: int
    ) -> tuple[str, tuple[Reaction, ...], tuple[bool, ...]]:
        """Location, reactions in order, and which of the events are rare."""
        state = self._states[split]
        preset = self.request.preset
        if preset.design == "balanced":
            count, place, time = state.design.cell(number)
            reactions = state.design.order(count, place, time)
            return self._locations[place], reactions, self._rare_events(split, reactions)
        location = self._locations[self._cycle(len(self._locations), split, "places")[number]]
        cell = self._cells[self._cycle(len(self._cells), split, "compositions")[number]]
        ordered = [reaction for reaction, n in zip(REACTIONS, cell, strict=True) for _ in range(n)]
        shuffle = self._shuffles(len(ordered), split, "order", str(len(ordered)))[number]
        reactions = tuple(ordered[i] for i in shuffle)
        return location, reactions, self._rare_pivots(split, reactions)

    def _rare_events(self, split: Split, reactions: Sequence[Reaction]) -> tuple[bool, ...]:
        """A fixed share of the events of every reaction alike, so that rarity tells nothing."""
        share = self.request.preset.rare_share_of_events
        state = self._states[split]
        flags = []
        for reaction in reactions:
            flags.append(self._is_due(share, state.events[reaction], split, "rare", reaction))
            state.events[reaction] += 1
        return tuple(flags)

    def _rare_pivots(self, split: Split, reactions: Sequence[Reaction]) -> tuple[bool, ...]:
        """A fixed share of the scenes, all among those with a pivot; the rare sound is the pivot."""
        preset = self.request.preset
        share = preset.rare_share_of_scenes / self._with_pivot if self._with_pivot else 0.0
        state = self._states[split]
        flags = []
        for reaction in reactions:
            due = reaction == "pivot" and self._is_due(share, state.pivots, split, "rare", "pivot")
            state.pivots += reaction == "pivot"
            flags.append(due)
        return tuple(flags)

    def _is_due(self, share: float, number: int, *names: str) -> bool:
        """Whether the ``number``-th of a sequence is among the share, exact in every round of twenty."""
        if share <= 0:
            return False
        return self._cycle(20, *names)[number] < round(20 * share)

    def _bands(self, split: Split, number: int, reactions: Sequence[Reaction]) -> tuple[Band, ...]:
        """A band of its own for each event, reactions spread evenly over bands."""
        count = len(reactions)
        if self.request.preset.design == "balanced":
            return self._even_bands(split, number, reactions)
        choices = list(combinations(BANDS, count))
        bands = list(choices[self._cycle(len(choices), split, "bands", str(count))[number]])
        return self._with_early_pivot(reactions, bands)

    def _even_bands(
        self, split: Split, number: int, reactions: Sequence[Reaction]
    ) -> tuple[Band, ...]:
        """Of the sets of bands, the one whose (band, reaction) pairs were used least so far."""
        uses = self._states[split].band_uses
        choices = list(combinations(range(len(BANDS)), len(reactions)))
        ranks = self._shuffles(len(choices), split, "bands", str(len(choices)))[number]
        best = min(
            range(len(choices)),
            key=lambda c: (
                sum(uses[pair] for pair in zip(choices[c], reactions, strict=True)),
                ranks[c],
            ),
        )
        for pair in zip(choices[best], reactions, strict=True):
            uses[pair] += 1
        return tuple(BANDS[band] for band in choices[best])

    def _with_early_pivot(
        self, reactions: Sequence[Reaction], bands: list[Band]
    ) -> tuple[Band, ...]:
        """Move a pivot out of a band where the preset allows none.

        It changes places with the first event in an allowed band, else takes the first free one.
        """
        allowed = self.request.preset.pivot_bands
        for place, reaction in enumerate(reactions):
            if reaction != "pivot" or bands[place] in allowed:
                continue
            partner = next((other for other, band in enumerate(bands) if band in allowed), None)
            if partner is not None:
                bands[place], bands[partner] = bands[partner], bands[place]
            else:
                bands[place] = next(band for band in allowed if band not in bands)
        return tuple(bands)

    def _register(self, split: Split, reaction: Reaction) -> str | None:
        if reaction == "ambient":
            return None
        registers = self.registers[reaction]
        state = self._states[split]
        number = state.reacted[reaction]
        state.reacted[reaction] += 1
        return registers[self._cycle(len(registers), split, "registers", reaction)[number]]

    def _sound(
        self, split: Split, location: str, reaction: Reaction, taken: Sequence[str], *, rare: bool
    ) -> str:
        """A sound not yet used in the location's round; among those, the rarest with this reaction."""
        state = self._states[split]
        pool = self.pools[split][location][rare]
        rest = state.rest.setdefault((location, rare), [])
        free = [sound for sound in rest if sound not in taken]
        if not free:
            # The next round begins; what this scene already has stays for later scenes.
            state.rounds[location, rare] += 1
            rest.extend(pool)
            free = [sound for sound in rest if sound not in taken]
        turn = state.rounds[location, rare]
        ranks = self._ranks(split, location, rare, turn)
        uses = state.uses_with[reaction]
        keys = [uses.get(sound, 0) * len(pool) + ranks[sound] for sound in free]
        sound = free[keys.index(min(keys))]
        rest.remove(sound)
        uses[sound] = uses.get(sound, 0) + 1
        return sound

    def _ranks(self, split: Split, location: str, rare: bool, turn: int) -> dict[str, int]:
        """The round's own order of a pool, which decides among equals."""
        key = (split, location, rare, turn)
        ranks = self._rank_rounds.get(key)
        if ranks is None:
            pool = self.pools[split][location][rare]
            names = ("sounds", split, location, str(rare))
            order = self._cycle(len(pool), *names).round(turn)
            ranks = self._rank_rounds[key] = dict(zip(pool, order, strict=True))
        return ranks


def plan(bank: Bank, request: PlanRequest) -> tuple[Scenario, ...]:
    """Allocate a whole plan.

    Raises
    ------
    InfeasiblePlanError: sounds, registers or rare sounds are missing; all that is missing is named.
    UsageError: numbers that make no plan.

    Examples
    --------
    >>> from earwitness.scenes.bank import load_bank
    >>> request = PlanRequest(10, 10, seed=1, preset=load_preset("balanced"))
    >>> scenarios = plan(load_bank(), request)
    >>> len(scenarios), sum(scenario.split == "train" for scenario in scenarios)
    (100, 80)
    """
    if request.templates < 1 or request.per_template < 1:
        raise UsageError(
            "plan", "no scenarios", wanted="--templates and --per-template of 1 or more"
        )
    return tuple(Planner(bank, request).scenarios())
