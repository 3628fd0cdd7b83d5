"""Prompts of writers: versioned YAML files with a static part, sent first, and one that changes by scene.

The static part depends on the bank and its rules alone, so that services that keep the beginning of a prompt
can reuse it for a whole corpus. What a reaction is called in the plan is never said to a writer: the prompt
describes conduct, so that no label can find its way into a dialogue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment
from pydantic import BaseModel, ConfigDict, ValidationError

from earwitness.errors import DataError
from earwitness.models.protocols import Prompt
from earwitness.runs.items import digest
from earwitness.scenes.bank import Bank
from earwitness.scenes.bank_records import Reaction
from earwitness.scenes.corpus import TemplateText
from earwitness.scenes.dialogue_records import dialogue_to_json
from earwitness.scenes.rules.limits import Limits, band_range
from earwitness.scenes.rules.vocabulary import vocabulary_of
from earwitness.scenes.scenario import PlannedEvent, Scenario
from earwitness.scenes.writing import Assignment
from earwitness.stats.streams import stream

FOLDER = Path(__file__).parents[1] / "prompts" / "en"
NAMES = ("topic", "dialogue", "templates")
"""Prompts a corpus is written with."""
REWORDINGS = "rewordings"
TARGET_SECONDS = 120.0
"""The paper's mean length of a scene is 120.4 s (CARES, arXiv 2610.10208)."""


class PromptFile(BaseModel):
    """One prompt as data. ``texts`` are phrases that the templates look up."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    version: str
    system: str
    user: str
    texts: dict[str, dict[str, str]] = {}


@dataclass(frozen=True)
class WriterPrompts:
    """The prompts of one language, rendered for one bank."""

    bank: Bank
    seed: int
    folder: Path = FOLDER
    _environment: SandboxedEnvironment = field(
        default_factory=lambda: SandboxedEnvironment(
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
        ),
        repr=False,
    )

    @cached_property
    def _files(self) -> dict[str, PromptFile]:
        files = {name: _read(self.folder / f"{name}.yaml") for name in NAMES}
        own = self.folder / f"{REWORDINGS}.yaml"
        # Rewordings are no part of a corpus, so a folder of prompts for one need not have them.
        return files | {REWORDINGS: _read(own if own.is_file() else FOLDER / own.name)}

    @cached_property
    def _limits(self) -> Limits:
        return vocabulary_of(self.bank).limits

    def hashes(self, *names: str) -> dict[str, str]:
        """``id/version`` of the prompts named -> hash of their text."""
        files = [self._files[name] for name in names]
        return {f"{file.id}/{file.version}": digest(file.model_dump()) for file in files}

    def version(self, name: str) -> str:
        """Version of a prompt."""
        return self._files[name].version

    def topic(
        self, scenario: Scenario, template: TemplateText, problems: Sequence[str] = ()
    ) -> Prompt:
        """Ask for the topic of a scenario, one sentence."""
        values = {"brief": _yaml(self._who_and_where(scenario, template)), "problems": problems}
        return self._prompt("topic", values, _object_schema({"topic": {"type": "string"}}))

    def dialogue(self, assignment: Assignment, topic: str) -> Prompt:
        """Ask for the dialogue of a scenario, or for a better one."""
        scenario = assignment.scenario
        utterances = self.utterances(scenario)
        brief = {
            **self._who_and_where(scenario, assignment.template),
            "topic": topic,
            "utterances": utterances,
            "words_per_utterance": self._words(utterances),
            "sounds": [self._event(event, utterances) for event in scenario.events],
        }
        previous = assignment.previous
        draft = _json({"timeline": dialogue_to_json(previous)["timeline"]}) if previous else None
        values = {
            "brief": _yaml(brief),
            "draft": draft,
            "problems": [f"{reason.where}: {reason.message}" for reason in assignment.reasons],
        }
        return self._prompt("dialogue", values, _dialogue_schema(scenario))

    def templates(
        self, theme: str, number: int, taken: Sequence[str], problems: Sequence[str] = ()
    ) -> Prompt:
        """Ask for so many situations within a theme, unlike those there are."""
        found = self.bank.theme(theme)
        brief = {"theme": found.name, "facets_of_the_theme": list(found.facets), "number": number}
        values = {"brief": _yaml(brief), "taken": taken, "problems": problems}
        situation = _object_schema(
            {"title": {"type": "string"}, "facets": {"type": "array", "items": {"type": "string"}}}
        )
        schema = _object_schema({"situations": {"type": "array", "items": situation}})
        return self._prompt("templates", values, schema)

    def rewordings(self, topics: Sequence[str], problems: Sequence[str] = ()) -> Prompt:
        """Ask for a loose rewording of every topic."""
        entry = _object_schema({"number": {"type": "integer"}, "rewording": {"type": "string"}})
        schema = _object_schema({"rewordings": {"type": "array", "items": entry}})
        return self._prompt(REWORDINGS, {"topics": topics, "problems": problems}, schema)

    def utterances(self, scenario: Scenario) -> int:
        """How many utterances are asked for: the same spread whatever happens in the scene."""
        least, most = self._limits.min_utterances, self._limits.max_utterances
        low = min(max(least, most - 3), most)
        draw = stream(self.seed, "utterances", scenario.id)
        return int(draw.integers(low, most + 1))

    def _words(self, utterances: int) -> int:
        limits = self._limits
        speech_s = TARGET_SECONDS - limits.seconds_between_turns * (utterances - 1)
        return min(round(speech_s * limits.words_per_second / utterances), limits.max_words - 10)

    def _who_and_where(self, scenario: Scenario, template: TemplateText) -> dict[str, Any]:
        bank = self.bank
        roles = bank.role_pair(scenario.roles)
        genders = self._files["dialogue"].texts["genders"]
        return {
            "place": bank.location(scenario.location).phrase,
            "speakers": {
                "A": f"{roles.a}, {genders[scenario.gender_a]}",
                "B": f"{roles.b}, {genders[scenario.gender_b]}",
                "bond": roles.bond,
            },
            "theme": bank.theme(scenario.theme).name,
            "situation": template.title,
            "facets": list(template.facets),
        }

    def _event(self, event: PlannedEvent, utterances: int) -> dict[str, Any]:
        texts = self._files["dialogue"].texts
        after = self._limits.utterances_after_event
        places = list(band_range(utterances, event.band, after=after))
        brief: dict[str, Any] = {
            "id": event.id,
            "sound": self.bank.sound(event.sound).name,
            "stands_after_utterance": places,
            "what_happens": texts["conduct"][_key(event.reaction)],
        }
        if event.rare:
            brief["unusual"] = texts["rare"][_key(event.reaction)]
        if event.register is not None:
            register = self.bank.register(event.register)
            brief["how"] = " ".join(register.move.split())
            brief["naming"] = texts["naming"][register.naming]
            if register.tags:
                written = [f"[{self.bank.tag(tag).written}]" for tag in register.tags]
                brief["tag"] = texts["tags"]["required"].format(tags=" or ".join(written))
        return brief

    def _prompt(self, name: str, values: Mapping[str, Any], schema: dict[str, Any]) -> Prompt:
        file = self._files[name]
        tags = [{"written": tag.written, "heard": tag.heard} for tag in self.bank.tags]
        static = {"limits": self._limits, "language": self.bank.language, "tags": tags}
        try:
            system = self._environment.from_string(file.system).render(static)
            user = self._environment.from_string(file.user).render(values)
        except TemplateError as error:
            raise DataError(
                str(self.folder / f"{name}.yaml"), f"cannot be filled in ({error})", "a prompt"
            ) from error
        return Prompt(user.strip(), system.strip(), schema=schema)


def _key(reaction: Reaction) -> str:
    return str(reaction)


def _read(path: Path) -> PromptFile:
    try:
        return PromptFile.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise DataError(
            str(path), f"cannot be read ({error.strerror})", f"prompts {', '.join(NAMES)} as YAML"
        ) from None
    except (yaml.YAMLError, ValidationError) as error:
        reason = " ".join(str(error).split())
        raise DataError(
            str(path), f"is no prompt ({reason})", "id, version, system, user"
        ) from None


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1000).strip()


def _json(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def _object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _dialogue_schema(scenario: Scenario) -> dict[str, Any]:
    utterance = _object_schema(
        {"speaker": {"type": "string", "enum": ["A", "B"]}, "text": {"type": "string"}}
    )
    parts = [utterance]
    if scenario.events:
        ids = [event.id for event in scenario.events]
        parts.append(_object_schema({"event": {"type": "string", "enum": ids}}))
    items = {"anyOf": parts} if len(parts) > 1 else utterance
    return _object_schema({"timeline": {"type": "array", "items": items}})
