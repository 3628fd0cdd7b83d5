"""Judges and cases for tests of recovery."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from earwitness.scenes.bank import Bank
from earwitness.scenes.dialogue_records import Dialogue
from earwitness.scenes.recovery import Case, OnDone, Opinion, Verdict, case_of
from earwitness.scenes.scenario import Scenario
from earwitness.scenes.writing import Assignment, Draft

Reads = Callable[[Case], Verdict | None]


class TableJudge:
    """Reads what a function says; keeps what it was asked."""

    name = "test/table"
    family: str | None = "table"
    prompts: Mapping[str, str] = {}

    def __init__(self, reads: Reads, **settings: Any) -> None:
        self.reads = reads
        self.settings: Mapping[str, Any] = settings
        self.asked: list[Case] = []

    async def judge(self, cases: Sequence[Case], on_done: OnDone | None = None) -> list[Opinion]:
        self.asked += cases
        read = [self.reads(case) for case in cases]
        return [Opinion(v) if v else Opinion(failed="no verdict: silence") for v in read]

    async def aclose(self) -> None:
        pass


class Memory:
    """Knows whose every transcript is: put between writer and loop, it reads as planned or as told."""

    def __init__(self, bank: Bank) -> None:
        self._bank = bank
        self.known: dict[str, tuple[Scenario, Dialogue, int]] = {}

    def note(self, assignment: Assignment, draft: Draft) -> Draft:
        """An ``answer`` of the composing writer."""
        assert draft.dialogue is not None
        self.keep(draft.dialogue, assignment.scenario, assignment.attempt)
        return draft

    def keep(self, dialogue: Dialogue, scenario: Scenario, attempt: int = 1) -> None:
        shown = case_of(dialogue, scenario, self._bank).transcript
        self.known[shown] = (scenario, dialogue, attempt)

    def planned(self, case: Case) -> Verdict:
        """The verdict a perfect reader gives."""
        scenario, dialogue, _ = self.known[case.transcript]
        return Verdict(dialogue.topic, {e.id: e.reaction for e in scenario.events})

    def attempt(self, case: Case) -> int:
        return self.known[case.transcript][2]

    def scenario(self, case: Case) -> Scenario:
        return self.known[case.transcript][0]
