"""A chat model as a writer: a topic in one call, the dialogue in another, better ones with the reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from earwitness.runs.items import Item
from earwitness.scenes.bank import Bank
from earwitness.scenes.dialogue_records import Dialogue
from earwitness.scenes.rules.checking import check
from earwitness.scenes.rules.registry import Violation
from earwitness.scenes.scenario import Scenario
from earwitness.scenes.writers.calls import TASK, TextCaller
from earwitness.scenes.writers.extraction import NotUsableError, dialogue_in, text_in
from earwitness.scenes.writers.prompts import WriterPrompts
from earwitness.scenes.writing import Assignment, Draft, OnDone

TOPIC_ASKS = 2
"""Topics asked for in one attempt before the attempt counts as failed."""
_TOPIC_RULES = "D7"


class ChatWriter:
    """Writes by asking chat models.

    Parameters
    ----------
    dialogues: writes the dialogues.
    topics: writes the topics; may be the same.
    """

    def __init__(
        self,
        dialogues: TextCaller,
        topics: TextCaller,
        prompts: WriterPrompts,
        bank: Bank,
    ) -> None:
        self._dialogues = dialogues
        self._topics = topics
        self._prompts = prompts
        self._bank = bank
        self._known: dict[str, str] = {}
        self._refused: dict[str, tuple[Violation, ...]] = {}

    @property
    def name(self) -> str:
        """Of the model that writes the dialogues."""
        return self._dialogues.model.name

    @property
    def family(self) -> str | None:
        """As declared."""
        return self._dialogues.model.family

    @property
    def settings(self) -> Mapping[str, Any]:
        """Of the model that writes the dialogues."""
        return self._dialogues.model.settings

    @property
    def prompts(self) -> Mapping[str, str]:
        """Prompts in use, with their hashes."""
        return self._prompts.hashes("topic", "dialogue")

    async def write(
        self, assignments: Sequence[Assignment], on_done: OnDone | None = None
    ) -> list[Draft]:
        """One draft for every assignment; stored answers are used again."""
        failed = await self._write_topics(assignments)
        ready = [each for each in assignments if each.scenario.id in self._known]
        items = [self._dialogue_item(each) for each in ready]
        answers = await self._dialogues.ask(items, on_done)
        drafts: dict[str, Draft] = {}
        for each, answer in zip(ready, answers, strict=True):
            name = each.scenario.id
            if answer.reply is None:
                drafts[name] = Draft(failed=answer.failure)
                continue
            try:
                drafts[name] = Draft(dialogue_in(answer.reply, name, self._known[name]))
            except NotUsableError as error:
                drafts[name] = Draft(problems=(error.violation,))
        for each in assignments:
            name = each.scenario.id
            if name in failed:
                drafts[name] = Draft(failed=failed[name])
            elif name not in drafts:
                drafts[name] = Draft(problems=self._refused[name])
        return [drafts[each.scenario.id] for each in assignments]

    def _dialogue_item(self, assignment: Assignment) -> Item:
        name = assignment.scenario.id
        return Item(
            id=f"{name}#{assignment.attempt}",
            task=f"{TASK}.dialogue",
            task_version=self._prompts.version("dialogue"),
            prompt=self._prompts.dialogue(assignment, self._known[name]),
            condition="text",
        )

    async def _write_topics(self, assignments: Sequence[Assignment]) -> dict[str, str]:
        """Find a topic for every scenario that has none; the failures by scenario."""
        failed: dict[str, str] = {}
        todo = [each for each in assignments if each.scenario.id not in self._known]
        for ask in range(TOPIC_ASKS):
            if not todo:
                break
            items = [self._topic_item(each, ask) for each in todo]
            answers = await self._topics.ask(items)
            again = []
            for each, answer in zip(todo, answers, strict=True):
                name = each.scenario.id
                if answer.reply is None:
                    failed[name] = answer.failure
                    continue
                try:
                    topic = text_in(answer.reply, "topic")
                    problems = self._faults(topic, each.scenario)
                except NotUsableError as error:
                    problems = (error.violation,)
                if problems:
                    self._refused[name] = problems
                    again.append(each)
                else:
                    self._known[name] = topic
            todo = again
        return failed

    def _topic_item(self, assignment: Assignment, ask: int) -> Item:
        scenario = assignment.scenario
        problems = [reason.message for reason in self._refused.get(scenario.id, ())]
        return Item(
            id=f"{scenario.id}#{assignment.attempt}.{ask + 1}",
            task=f"{TASK}.topic",
            task_version=self._prompts.version("topic"),
            prompt=self._prompts.topic(scenario, assignment.template, problems),
            condition="text",
        )

    def _faults(self, topic: str, scenario: Scenario) -> tuple[Violation, ...]:
        """Broken rules of the topic; those of a dialogue that is not there yet are left out."""
        found = check(Dialogue(scenario.id, topic, ()), scenario, self._bank)
        return tuple(each for each in found if each.code.startswith(_TOPIC_RULES))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._dialogues.aclose()
        await self._topics.aclose()
