"""A chat model as a judge: one call a transcript, asked again where the answer is no verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import ValidationError

from earwitness.errors import DataError
from earwitness.models.protocols import Prompt, Reply
from earwitness.runs.items import Item, digest
from earwitness.scenes.bank_records import REACTIONS, Reaction
from earwitness.scenes.recovery import Case, OnDone, Opinion, Verdict
from earwitness.scenes.writers.extraction import NotUsableError, json_in
from earwitness.scenes.writers.prompts import FOLDER, PromptFile

if TYPE_CHECKING:
    from earwitness.scenes.writers.calls import TextCaller

TASK = "scene-judging"
JUDGE_PROMPT = "judge"
"""Name of the prompt, a file beside those of writers."""
ASKS = 3
"""Times a transcript is put to the judge before it counts as one it gave no verdict on."""
_KEY_LENGTH = 16


class NoVerdictError(Exception):
    """An answer is no verdict; the text says why, as a sentence."""


def verdict_in(reply: Reply, events: Sequence[str]) -> Verdict:
    """The verdict in a reply.

    Parameters
    ----------
    events: ids of the sounds in the transcript; the verdict must have each once and no other.

    Raises
    ------
    NoVerdictError: declined, cut off, no JSON, no topic, ids missing or too many, or a label that is none.

    Examples
    --------
    >>> verdict_in(Reply(text='{"topic": "a bike", "sounds": [{"id": "e1", "reaction": "verbal"}]}'), ["e1"])
    Verdict(topic='a bike', reactions={'e1': 'verbal'})
    """
    try:
        value = json_in(reply, "topic")
    except NotUsableError as error:
        raise NoVerdictError(error.violation.message) from None
    topic = value["topic"]
    if not isinstance(topic, str) or len(topic.split()) < 2:
        raise NoVerdictError('"topic" is no phrase of two words or more.')
    sounds = value.get("sounds", [] if not events else None)
    if not isinstance(sounds, list):
        raise NoVerdictError('"sounds" is no list.')
    reactions: dict[str, Reaction] = {}
    for entry in sounds:
        event, reaction = _entry(entry)
        if event not in events:
            raise NoVerdictError(f'"sounds" has "{event}", which is no sound of this transcript.')
        if event in reactions:
            raise NoVerdictError(f'"sounds" has "{event}" twice.')
        reactions[event] = reaction
    missing = [event for event in events if event not in reactions]
    if missing:
        raise NoVerdictError(f'"sounds" has no entry for {", ".join(missing)}.')
    return Verdict(" ".join(topic.split()), {event: reactions[event] for event in events})


def _entry(entry: Any) -> tuple[str, Reaction]:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("id"), str):
        raise NoVerdictError('An entry of "sounds" has no "id".')
    label = entry.get("reaction")
    said = label.strip().casefold() if isinstance(label, str) else None
    for reaction in REACTIONS:
        if said == reaction:
            return entry["id"].strip().strip("[]").removeprefix("SOUND: "), reaction
    raise NoVerdictError(
        f'The reaction to "{entry["id"]}" is {label!r}, which is none of {", ".join(REACTIONS)}.'
    )


class ChatJudge:
    """Judges by asking a chat model.

    Parameters
    ----------
    caller: asks with the runner's patience and keeps every raw reply.
    folder: where ``judge.yaml`` is; None means the one that ships.
    asks: how often a transcript is put to it, each time with what was wrong before.
    """

    def __init__(self, caller: TextCaller, *, folder: Path | None = None, asks: int = ASKS) -> None:
        self._caller = caller
        self._path = (folder or FOLDER) / f"{JUDGE_PROMPT}.yaml"
        self._asks = asks
        _ = self._file

    @property
    def name(self) -> str:
        """Of the model."""
        return self._caller.model.name

    @property
    def family(self) -> str | None:
        """As declared."""
        return self._caller.model.family

    @property
    def settings(self) -> Mapping[str, Any]:
        """Of the model."""
        return self._caller.model.settings

    @property
    def prompts(self) -> Mapping[str, str]:
        """The prompt with its hash."""
        return {f"{self._file.id}/{self._file.version}": digest(self._file.model_dump())}

    async def judge(self, cases: Sequence[Case], on_done: OnDone | None = None) -> list[Opinion]:
        """One opinion for every case; stored replies are used again."""
        opinions: dict[int, Opinion] = {}
        problems: dict[int, str] = {}
        todo = list(range(len(cases)))
        for ask in range(1, self._asks + 1):
            items = [self._item(cases[n], ask, problems.get(n)) for n in todo]
            settled = len(opinions)
            watch = (lambda done, before=settled: on_done(before + done)) if on_done else None
            answers = await self._caller.ask(items, watch)
            again = []
            for n, answer in zip(todo, answers, strict=True):
                if answer.reply is None:
                    opinions[n] = Opinion(failed=answer.failure)
                    continue
                try:
                    opinions[n] = Opinion(verdict_in(answer.reply, cases[n].events))
                except NoVerdictError as error:
                    problems[n] = str(error)
                    again.append(n)
            todo = again
            if not todo:
                break
        for n in todo:
            opinions[n] = Opinion(failed=f"no verdict in {self._asks} answers: {problems[n]}")
        if on_done:
            on_done(len(cases))
        return [opinions[n] for n in range(len(cases))]

    def _item(self, case: Case, ask: int, problem: str | None) -> Item:
        key = digest([case.location, case.transcript])[:_KEY_LENGTH]
        return Item(
            id=f"{key}#{ask}",
            task=TASK,
            task_version=self._file.version,
            prompt=self._prompt(case, problem),
            condition="text",
        )

    def _prompt(self, case: Case, problem: str | None) -> Prompt:
        from jinja2 import StrictUndefined, TemplateError
        from jinja2.sandbox import SandboxedEnvironment

        environment = SandboxedEnvironment(
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
        )
        values = {
            "location": case.location,
            "events": list(case.events),
            "transcript": case.transcript,
            "problem": problem,
        }
        try:
            user = environment.from_string(self._file.user).render(values)
            system = environment.from_string(self._file.system).render()
        except TemplateError as error:
            raise DataError(
                str(self._path), f"cannot be filled in ({error})", "a prompt of judges"
            ) from error
        return Prompt(user.strip(), system.strip(), schema=verdict_schema(case.events))

    @cached_property
    def _file(self) -> PromptFile:
        try:
            return PromptFile.model_validate(yaml.safe_load(self._path.read_text(encoding="utf-8")))
        except OSError as error:
            raise DataError(
                str(self._path), f"cannot be read ({error.strerror})", "a prompt of judges"
            ) from None
        except (yaml.YAMLError, ValidationError) as error:
            reason = " ".join(str(error).split())
            raise DataError(
                str(self._path), f"is no prompt ({reason})", "id, version, system, user"
            ) from None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._caller.aclose()


def verdict_schema(events: Sequence[str]) -> dict[str, Any]:
    """JSON Schema of a verdict on a transcript with these sounds."""
    event: dict[str, Any] = {"type": "string"}
    if events:
        event["enum"] = list(events)
    sound = {
        "type": "object",
        "properties": {"id": event, "reaction": {"type": "string", "enum": list(REACTIONS)}},
        "required": ["id", "reaction"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "topic": {"type": "string"},
            "sounds": {"type": "array", "items": sound},
        },
        "required": ["topic", "sounds"],
        "additionalProperties": False,
    }
