"""The writing loop: every place of the plan gets a dialogue that keeps the rules and passes the gate.

A *place* is a planned scenario. It is tried up to ``max_attempts`` times, each time with what was wrong
before; then the scenario is abandoned and a refill (:mod:`earwitness.scenes.refill`) takes the place.

Conventions
-----------
The outcome is a function of the plan, the writer's answers and the gate's, and of nothing else: not of the
order of work, of kills, of shards or of how much is written at a time. The dialogue of a place is the first of
its attempts that passes and is no near-duplicate of the dialogue of an *earlier* place. Answers are kept by
content where they cost something, so a run after a kill replays to where it was and goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from earwitness.jobs import pool_map
from earwitness.scenes.bank import Bank
from earwitness.scenes.bank_cast import bank_in, tag_ids
from earwitness.scenes.corpus import Abandoned, TemplateText
from earwitness.scenes.corpus_config import LoopUsed
from earwitness.scenes.dialogue_records import Dialogue
from earwitness.scenes.refill import refill
from earwitness.scenes.rules.checking import check
from earwitness.scenes.rules.corpus import NearDuplicates
from earwitness.scenes.rules.vocabulary import vocabulary_of
from earwitness.scenes.scenario import Scenario
from earwitness.scenes.writing import Assignment, Draft, Gate, Violation, Writer

PILOT = 16
"""Places tried before all others, so that a writer that cannot do it is noticed before it has cost much."""
LOT = 2048
"""Places worked on at a time after that."""
HOPELESS = 8
"""Scenarios abandoned without a single acceptance after which the writer is given up."""
CHECK_CHUNK = 64
"""Dialogues below which checking stays in this process: starting another takes longer."""


class Journal(Protocol):
    """Where the loop tells what happens: logs on disk, or nowhere."""

    def candidate(self, dialogue: Dialogue, attempt: int) -> None: ...

    def attempt(
        self, scenario: str, attempt: int, outcome: str, reasons: Sequence[Violation]
    ) -> None: ...


class TemplateSource(Protocol):
    """Gives the texts of templates."""

    async def texts(self, scenarios: Sequence[Scenario]) -> dict[str, TemplateText]:
        """Texts by template id; one that could not be had now (a failed call) is absent."""
        ...


@dataclass(slots=True)
class LoopProgress:
    """Where the loop stands; handed to the progress callback after every change."""

    places: int
    stage: str = ""
    done: int = 0
    of: int = 0
    accepted: int = 0
    abandoned: int = 0
    lost: int = 0
    failed: int = 0
    rejected: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True, eq=False)
class Place:
    """One place of the plan, what has been tried for it and what stands there now.

    ``occupants`` are the scenarios tried, the planned one first; ``history`` holds the codes that ended each
    attempt of the present one.
    """

    occupants: list[Scenario]
    attempt: int = 1
    attempts: int = 0
    dialogue: Dialogue | None = None
    previous: Dialogue | None = None
    reasons: tuple[Violation, ...] = ()
    history: list[tuple[str, ...]] = field(default_factory=list)
    abandoned: list[Abandoned] = field(default_factory=list)
    failed: str | None = None
    lost: bool = False
    waiting: bool = False

    @property
    def planned(self) -> Scenario:
        return self.occupants[0]

    @property
    def scenario(self) -> Scenario:
        return self.occupants[-1]

    @property
    def open(self) -> bool:
        """Whether it needs another draft now."""
        return self.dialogue is None and self.failed is None and not self.lost


@dataclass(frozen=True, slots=True)
class WritingResult:
    """What the loop made of every place, in the order of the plan."""

    places: tuple[Place, ...]
    templates: tuple[TemplateText, ...]

    @property
    def dialogues(self) -> tuple[Dialogue, ...]:
        """Accepted dialogues."""
        return tuple(
            place.dialogue for place in self.places if place.dialogue and not place.waiting
        )

    @property
    def refills(self) -> tuple[Scenario, ...]:
        """Scenarios that took, or tried to take, the place of planned ones."""
        return tuple(scenario for place in self.places for scenario in place.occupants[1:])

    @property
    def abandoned(self) -> tuple[Abandoned, ...]:
        """Scenarios given up."""
        return tuple(entry for place in self.places for entry in place.abandoned)

    @property
    def lost(self) -> tuple[str, ...]:
        """Planned scenarios whose place stays empty although refills were tried."""
        return tuple(place.planned.id for place in self.places if place.lost)

    @property
    def failed(self) -> dict[str, str]:
        """Scenarios that wait for the next run, and why."""
        waits = "waits for an earlier place that failed"
        return {
            place.scenario.id: place.failed or waits
            for place in self.places
            if place.failed or place.waiting
        }

    @property
    def complete(self) -> bool:
        """Whether every place has its dialogue."""
        return len(self.dialogues) == len(self.places)


class WritingLoop:
    """Runs writer, rules and gate until every place is settled.

    Parameters
    ----------
    scenarios: the places, in the order of the plan.
    gate: None accepts what keeps the rules.
    bank_folder: where worker processes load the bank from; None means the one that ships.
    workers: processes that check rules; None means one per processor.
    """

    def __init__(
        self,
        scenarios: Sequence[Scenario],
        bank: Bank,
        writer: Writer,
        templates: TemplateSource,
        journal: Journal,
        *,
        seed: int,
        loop: LoopUsed,
        gate: Gate | None = None,
        bank_folder: Path | None = None,
        workers: int | None = None,
        on_progress: Callable[[LoopProgress], None] | None = None,
    ) -> None:
        self.places = [Place([scenario]) for scenario in scenarios]
        self.progress = LoopProgress(len(self.places))
        self._bank = bank
        self._writer = writer
        self._templates = templates
        self._texts: dict[str, TemplateText] = {}
        self._journal = journal
        self._seed = seed
        self._loop = loop
        self._gate = gate
        self._bank_folder = bank_folder
        self._workers = workers
        self._on_progress = on_progress or _unwatched
        limits = vocabulary_of(bank).limits
        self._sharing = {
            "max_shared_sentences": limits.max_shared_sentences,
            "max_shared_shingles": limits.max_shared_shingles,
        }
        self._settled = NearDuplicates(**self._sharing)
        self._settled_to = 0

    async def run(self) -> WritingResult:
        """Settle every place.

        Raises
        ------
        EarwitnessError: writer or gate cannot go on at all.
        """
        end = 0
        while end < len(self.places):
            end = min(end + (LOT if end else PILOT), len(self.places))
            await self._settle_to(end)
        used = {scenario.template for place in self.places for scenario in place.occupants}
        texts = tuple(self._texts[name] for name in self._texts if name in used)
        return WritingResult(tuple(self.places), texts)

    async def _settle_to(self, end: int) -> None:
        """Settle the first so many places."""
        while True:
            while todo := [place for place in self.places[:end] if place.open]:
                if self._is_hopeless():
                    self._give_up()
                    return
                await self._draft(todo)
            if not self._reject_near_duplicates(end):
                return

    def _is_hopeless(self) -> bool:
        return self.progress.accepted == 0 and self.progress.abandoned >= HOPELESS

    def _give_up(self) -> None:
        often = ", ".join(code for code, _ in self.progress.rejected.most_common(3))
        reason = (
            f"given up: {self.progress.abandoned} scenarios were tried {self._loop.max_attempts} times each "
            f"and no draft was acceptable (most often {often}); attempts.jsonl has every reason"
        )
        for place in self.places:
            if place.open:
                place.failed = reason
        self._count()

    async def _draft(self, todo: Sequence[Place]) -> None:
        """One attempt for each of these places."""
        texts = await self._templates.texts([place.scenario for place in todo])
        self._texts |= texts
        ready = []
        for place in todo:
            if place.scenario.template in texts:
                ready.append(place)
            else:
                place.failed = "the text of its template could not be had"
        assignments = [
            Assignment(
                place.scenario,
                texts[place.scenario.template],
                place.attempt,
                place.previous,
                place.reasons,
            )
            for place in ready
        ]
        self._begin("writing", len(ready))
        drafts = await self._writer.write(assignments, self._done)
        drafted = []
        for place, draft in zip(ready, drafts, strict=True):
            if self._take(place, draft):
                drafted.append(place)
        kept = self._check_rules(drafted)
        await self._pass_gate(kept)
        self._count()

    def _take(self, place: Place, draft: Draft) -> bool:
        """Note a draft; whether there is a dialogue in it."""
        if draft.failed is not None:
            place.failed = draft.failed
            return False
        place.previous = draft.dialogue
        if draft.dialogue is None:
            self._reject(place, draft.problems)
            return False
        self._journal.candidate(draft.dialogue, place.attempt)
        return True

    def _check_rules(self, places: Sequence[Place]) -> list[Place]:
        self._begin("checking", len(places))
        cases = [(_previous(place), place.scenario) for place in places]
        found = check_all(cases, self._bank, self._bank_folder, self._workers, self._done)
        kept = []
        for place, violations in zip(places, found, strict=True):
            if violations:
                self._reject(place, violations)
            else:
                kept.append(place)
        return kept

    async def _pass_gate(self, places: Sequence[Place]) -> None:
        if self._gate is None or not places:
            for place in places:
                self._accept(place)
            return
        self._begin("judging", len(places))
        cases = [(_previous(place), place.scenario) for place in places]
        rulings = await self._gate.rule(cases, self._done)
        for place, ruling in zip(places, rulings, strict=True):
            if ruling.failed is not None:
                place.failed = ruling.failed
            elif ruling.accepted:
                self._accept(place)
            else:
                self._reject(place, ruling.reasons)

    def _accept(self, place: Place) -> None:
        place.dialogue = place.previous
        self._journal.attempt(place.scenario.id, place.attempt, "accepted", ())

    def _reject(self, place: Place, reasons: Sequence[Violation]) -> None:
        """End an attempt; the next one, or a refill, or an empty place follows."""
        codes = tuple(dict.fromkeys(reason.code for reason in reasons))
        self.progress.rejected.update(codes)
        self._journal.attempt(place.scenario.id, place.attempt, "rejected", reasons)
        place.dialogue = None
        place.attempts += 1
        place.history.append(codes)
        if place.attempt < self._loop.max_attempts:
            place.attempt += 1
            place.reasons = tuple(reasons)
            return
        number = len(place.occupants)
        place.lost = number > self._loop.max_refills
        fresh = None if place.lost else refill(place.planned, number, self._bank, self._seed)
        place.abandoned.append(
            Abandoned(place.scenario.id, tuple(place.history), fresh.id if fresh else None)
        )
        place.attempt, place.previous, place.reasons, place.history = 1, None, (), []
        if fresh is not None:
            place.occupants.append(fresh)

    def _reject_near_duplicates(self, end: int) -> bool:
        """Compare each of the first so many places with earlier ones; whether any must be written anew.

        A place is settled once all before it are. Only what is too close to a settled one is turned down; what
        is too close to one that may still change waits, since that one may go.
        """
        tentative = NearDuplicates(**self._sharing)
        rejected = False
        all_settled = True
        for number in range(self._settled_to, end):
            place = self.places[number]
            place.waiting = False
            if place.dialogue is None:
                # An empty place takes nothing away; one that failed may still get a dialogue.
                all_settled = all_settled and place.lost
            elif violation := self._settled.find(place.dialogue):
                self._reject(place, (violation,))
                rejected, all_settled = True, False
            elif all_settled:
                self._settled.add(place.dialogue)
            else:
                place.waiting = tentative.add(place.dialogue) is not None
            if all_settled:
                self._settled_to = number + 1
        self._count()
        return rejected

    def _begin(self, stage: str, of: int) -> None:
        self.progress.stage, self.progress.done, self.progress.of = stage, 0, of
        self._on_progress(self.progress)

    def _done(self, number: int) -> None:
        self.progress.done = number
        self._on_progress(self.progress)

    def _count(self) -> None:
        progress = self.progress
        progress.accepted = sum(place.dialogue is not None for place in self.places)
        progress.abandoned = sum(len(place.abandoned) for place in self.places)
        progress.lost = sum(place.lost for place in self.places)
        progress.failed = sum(place.failed is not None for place in self.places)
        self._on_progress(progress)


def _unwatched(progress: LoopProgress) -> None:
    del progress


def _previous(place: Place) -> Dialogue:
    assert place.previous is not None
    return place.previous


def check_all(
    cases: Sequence[tuple[Dialogue, Scenario]],
    bank: Bank,
    bank_folder: Path | None = None,
    workers: int | None = None,
    on_done: Callable[[int], None] | None = None,
) -> list[tuple[Violation, ...]]:
    """Broken rules of many dialogues, on several processes where there are enough of them."""
    if len(cases) <= CHECK_CHUNK or workers == 1:
        return [check(dialogue, scenario, bank) for dialogue, scenario in cases]
    tags = tag_ids(bank)
    given = [(dialogue, scenario, bank_folder, tags) for dialogue, scenario in cases]
    return list(pool_map(_check, given, workers=workers, chunk=16, on_done=on_done))


def _check(
    case: tuple[Dialogue, Scenario, Path | None, tuple[str, ...]],
) -> tuple[Violation, ...]:
    dialogue, scenario, folder, tags = case
    return check(dialogue, scenario, bank_in(folder, tags))
