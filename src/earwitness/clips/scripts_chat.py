"""A text model as the writer of scripts: one call a draft, with what was wrong with the one before."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from earwitness.clips.corpus import EMOTIONS
from earwitness.clips.scripts import Draft, OnDone, Task
from earwitness.clips.scripts_checks import Fault, Limits
from earwitness.clips.scripts_offline import Phrasebook
from earwitness.errors import DataError
from earwitness.models.json_text import json_values, without_thinking
from earwitness.models.protocols import Prompt, Reply
from earwitness.runs.items import Item, digest
from earwitness.runs.text_calls import TextCaller
from earwitness.stats.streams import stream

TASK = "clip-script"
PROMPT = Path(__file__).parent / "scripts_prompts" / "en.yaml"
NO_ANSWER = "W101-no-answer"
CUT_OFF = "W102-cut-off"
NO_JSON = "W103-no-json"
NOT_AS_ASKED = "W104-not-as-asked"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


class ScriptPrompt(BaseModel):
    """The prompt as data."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    version: str
    system: str
    user: str

    @property
    def hash(self) -> str:
        """Hash of its text."""
        return digest(self.model_dump())


@dataclass(frozen=True)
class ChatWriter:
    """Asks a model for every draft.

    Parameters
    ----------
    book: where situations come from; its sentences are not shown to the model.
    """

    caller: TextCaller
    book: Phrasebook
    seed: int
    language: str
    limits: Limits = field(default_factory=Limits)
    prompt: ScriptPrompt = field(default_factory=lambda: load_prompt())

    @property
    def name(self) -> str:
        return f"{self.caller.model.name} {self.prompt.id}@{self.prompt.version}"

    async def write(self, tasks: Sequence[Task], on_done: OnDone | None = None) -> Sequence[Draft]:
        """One draft for every task."""
        items = [self._item(task) for task in tasks]
        answers = await self.caller.ask(items, on_done)
        drafts = []
        for task, answer in zip(tasks, answers, strict=True):
            situation = self.book.situation_of(task.number, self.seed).id
            if answer.reply is None:
                drafts.append(Draft(situation=situation, failed=answer.failure))
                continue
            text, fault = text_in(answer.reply)
            drafts.append(Draft(text, situation, (fault,) if fault else ()))
        return drafts

    async def aclose(self) -> None:
        """Close the model's connections."""
        await self.caller.aclose()

    def _item(self, task: Task) -> Item:
        return Item(
            id=f"{task.id}/attempt-{task.attempt}",
            task=TASK,
            task_version=self.prompt.version,
            prompt=self._prompt(task),
            condition="text",
        )

    def _prompt(self, task: Task) -> Prompt:
        from jinja2 import StrictUndefined, TemplateError
        from jinja2.sandbox import SandboxedEnvironment

        environment = SandboxedEnvironment(
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
        )
        static = {"emotions": EMOTIONS, "language": self.language, **_limits(self.limits)}
        values = {
            "brief": yaml.safe_dump(self._brief(task), sort_keys=False, allow_unicode=True).strip(),
            "draft": json.dumps({"text": task.previous}, ensure_ascii=False)
            if task.previous
            else "",
            "problems": [fault.message for fault in task.faults],
        }
        try:
            system = environment.from_string(self.prompt.system).render(static)
            user = environment.from_string(self.prompt.user).render(values)
        except TemplateError as error:
            raise DataError(
                f"prompt {self.prompt.id}", f"cannot be filled in ({error})", "a prompt"
            ) from error
        return Prompt(user.strip(), system.strip(), schema=SCHEMA)

    def _brief(self, task: Task) -> dict[str, Any]:
        """What sets one script apart from another; drawn with the seed, whatever the attempt."""
        rng = stream(self.seed, "clip-script", "brief", str(task.number))
        drawn = {name: pool[int(rng.integers(len(pool)))] for name, pool in self.book.pools.items()}
        return {
            "script": task.id,
            "situation": self.book.situation_of(task.number, self.seed).title,
            "words_to_work_in": [drawn[name] for name in sorted(drawn)[:3]],
        }


def _limits(limits: Limits) -> dict[str, int]:
    return {
        "min_words": limits.min_words,
        "max_words": limits.max_words,
        "min_sentences": limits.min_sentences,
    }


def text_in(reply: Reply) -> tuple[str, Fault | None]:
    """The script in a reply, on one line, or what is wrong with the answer.

    >>> text_in(Reply(text='Here: {"text": "So the parcel was there."}'))
    ('So the parcel was there.', None)
    """
    said = without_thinking(reply.text or "")
    if reply.finish in ("refusal", "content_filter"):
        return "", Fault(NO_ANSWER, "The answer was declined or blocked.")
    objects = [value for value in json_values(said) if isinstance(value, dict)]
    for value in objects:
        if "text" in value:
            text = value["text"]
            if isinstance(text, str) and text.strip():
                return " ".join(text.split()), None
            return "", Fault(NOT_AS_ASKED, '"text" is no text.')
    if not said:
        return "", Fault(NO_ANSWER, "The answer was empty.")
    if reply.finish == "length":
        return "", Fault(CUT_OFF, "The answer ended at the limit of tokens.")
    if objects:
        return "", Fault(NOT_AS_ASKED, 'The JSON object has no key "text".')
    return "", Fault(NO_JSON, "There was no JSON object in the answer.")


def load_prompt(path: Path | None = None) -> ScriptPrompt:
    """The prompt that ships, or one of your own.

    Raises
    ------
    DataError: the file is not what it should be.
    """
    path = path or PROMPT
    try:
        return ScriptPrompt.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise DataError(
            str(path), f"cannot be read ({error.strerror})", "a prompt as YAML"
        ) from None
    except (yaml.YAMLError, ValidationError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise DataError(
            str(path), f"is no prompt ({reason})", "id, version, system, user"
        ) from None
