"""A small corpus and writers for tests of writing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from earwitness.scenes.bank import Bank
from earwitness.scenes.corpus_config import LoopUsed
from earwitness.scenes.corpus_plan import PlannedCorpus, plan_corpus
from earwitness.scenes.dialogue_records import Dialogue, dialogue_from_json
from earwitness.scenes.plan import load_preset
from earwitness.scenes.scenario import Scenario
from earwitness.scenes.writers.prompts import WriterPrompts
from earwitness.scenes.writers.templates import BankTemplates
from earwitness.scenes.writing import Assignment, Draft, Gate, OnDone, Violation
from earwitness.scenes.writing_loop import WritingLoop, WritingResult
from tests.standins.composing import compose, topic_for

SEED = 11
Answer = Callable[[Assignment, Draft], Draft]


def small_corpus(
    folder: Path, bank: Bank, templates: int = 3, per_template: int = 2
) -> PlannedCorpus:
    return plan_corpus(
        folder,
        bank,
        templates=templates,
        per_template=per_template,
        seed=SEED,
        preset=load_preset("balanced"),
    )


class ComposingWriter:
    """Writes valid dialogues; ``answer`` may change what comes of an assignment."""

    def __init__(self, bank: Bank, answer: Answer | None = None) -> None:
        self.bank = bank
        self.answer = answer or (lambda _, draft: draft)
        self.assignments: list[Assignment] = []
        self._prompts = WriterPrompts(bank, SEED)

    name = "test/composer"
    family: str | None = "composer"
    settings: Mapping[str, Any] = {}
    prompts: Mapping[str, str] = {}

    async def write(
        self, assignments: Sequence[Assignment], on_done: OnDone | None = None
    ) -> list[Draft]:
        self.assignments += assignments
        return [self.answer(each, Draft(self.dialogue(each))) for each in assignments]

    def dialogue(self, assignment: Assignment) -> Dialogue:
        """The first draft differs from the second, as a model's would."""
        topic = topic_for(assignment.scenario.id)
        bare = replace(assignment, previous=None, reasons=())
        brief = yaml.safe_load(self._prompts.dialogue(bare, topic).user)
        brief["attempt"] = assignment.attempt
        timeline = compose(brief, self.bank)
        return dialogue_from_json(
            {"scenario": assignment.scenario.id, "topic": topic, "timeline": timeline}
        )

    async def aclose(self) -> None:
        pass


class MemoryJournal:
    def __init__(self) -> None:
        self.lines: list[tuple[str, int, str, tuple[str, ...]]] = []

    def candidate(self, dialogue: Dialogue, attempt: int) -> None:
        pass

    def attempt(
        self, scenario: str, attempt: int, outcome: str, reasons: Sequence[Violation]
    ) -> None:
        self.lines.append((scenario, attempt, outcome, tuple(r.code for r in reasons)))


def run_loop(
    scenarios: Sequence[Scenario],
    bank: Bank,
    writer: ComposingWriter,
    *,
    gate: Gate | None = None,
    loop: LoopUsed | None = None,
    journal: MemoryJournal | None = None,
) -> WritingResult:
    made = WritingLoop(
        scenarios,
        bank,
        writer,
        BankTemplates(bank, SEED),
        journal or MemoryJournal(),
        seed=SEED,
        loop=loop or LoopUsed(max_attempts=3, max_refills=2),
        gate=gate,
        workers=1,
    )
    return asyncio.run(made.run())
