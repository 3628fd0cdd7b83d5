"""JSON Schemas (draft 2020-12) of the files of a corpus, for editors, other programs and CI."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from earwitness.errors import UsageError
from earwitness.scenes.bank_records import REACTIONS, bank_schema
from earwitness.scenes.corpus_config import CorpusConfig
from earwitness.scenes.scenario import BANDS, SPLITS

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(name: str) -> dict[str, Any]:
    """The schema of one kind of file.

    Parameters
    ----------
    name: ``scenario`` (a line of ``scenarios.jsonl`` and ``refills.jsonl``), ``dialogue`` (of
        ``dialogues.jsonl``), ``template``, ``abandoned``, ``corpus`` (``corpus.yaml``), ``bank`` or ``build`` (the
        settings of ``scenes build``).

    Raises
    ------
    UsageError: there is no schema of this name.

    Examples
    --------
    >>> schema_of("dialogue")["required"]
    ['scenario', 'topic', 'timeline']
    """
    if name not in SCHEMAS:
        raise UsageError(f"schema {name!r}", "there is none", f"one of {', '.join(SCHEMAS)}")
    return SCHEMAS[name]()


def _object(title: str, properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "$schema": _DRAFT,
        "title": title,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        **more,
    }


def _part(properties: dict[str, Any]) -> dict[str, Any]:
    whole = _object("", properties)
    return {key: whole[key] for key in whole if key not in ("$schema", "title")}


_ID = {"type": "string", "minLength": 1}
_GENDER = {"enum": ["F", "M"]}


def _scenario() -> dict[str, Any]:
    event = _part(
        {
            "id": {"type": "string", "pattern": "^e[1-9][0-9]*$"},
            "sound": {**_ID, "description": "A sound of the bank."},
            "reaction": {"enum": list(REACTIONS)},
            "register": {
                "type": ["string", "null"],
                "description": "A register of the bank; null exactly where the reaction is ambient.",
            },
            "band": {"enum": list(BANDS), "description": "Third of the talk it occurs in."},
            "rare": {"type": "boolean"},
        }
    )
    ambient = {"properties": {"reaction": {"const": "ambient"}}}
    event["if"] = ambient
    event["then"] = {"properties": {"register": {"type": "null"}}}
    event["else"] = {"properties": {"register": {"type": "string"}}}
    return _object(
        "Earwitness scenario",
        {
            "id": _ID,
            "template": _ID,
            "theme": _ID,
            "split": {"enum": list(SPLITS)},
            "location": _ID,
            "roles": _ID,
            "gender_a": _GENDER,
            "gender_b": _GENDER,
            "events": {"type": "array", "items": event, "description": "In the order of time."},
        },
    )


def _dialogue() -> dict[str, Any]:
    utterance = _part(
        {
            "speaker": {"enum": ["A", "B"]},
            "text": {
                "type": "string",
                "minLength": 1,
                "description": "What is said; delivery tags in square brackets.",
            },
        }
    )
    event = _part({"event": {"type": "string", "description": "Id of a planned event."}})
    return _object(
        "Earwitness dialogue",
        {
            "scenario": {**_ID, "description": "Id of the scenario it carries out."},
            "topic": {"type": "string", "description": "What the two talk about, one sentence."},
            "timeline": {
                "type": "array",
                "items": {"anyOf": [utterance, event]},
                "minItems": 1,
                "description": "Utterances and events in the order of time.",
            },
        },
    )


def _template() -> dict[str, Any]:
    return _object(
        "Earwitness template",
        {
            "id": _ID,
            "theme": _ID,
            "split": {"enum": list(SPLITS)},
            "title": {"type": "string", "minLength": 1},
            "facets": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "source": {"type": "string", "description": "bank, facets or a model's name."},
        },
    )


def _abandoned() -> dict[str, Any]:
    codes = {"type": "array", "items": {"type": "string"}}
    return _object(
        "Earwitness abandoned scenario",
        {
            "scenario": _ID,
            "attempts": {"type": "integer", "minimum": 1},
            "reasons": {"type": "array", "items": codes, "description": "Codes, by attempt."},
            "refill": {
                "type": ["string", "null"],
                "description": "Scenario that took its place; null where the place stays empty.",
            },
        },
    )


def _corpus() -> dict[str, Any]:
    schema = CorpusConfig.model_json_schema()
    return {"$schema": _DRAFT, **schema, "title": "Earwitness corpus, format 1"}


def _build() -> dict[str, Any]:
    from earwitness.scenes.build_config import BuildConfig

    schema = BuildConfig.model_json_schema()
    return {"$schema": _DRAFT, **schema, "title": "Settings of earwitness scenes build, format 1"}


SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "scenario": _scenario,
    "dialogue": _dialogue,
    "template": _template,
    "abandoned": _abandoned,
    "corpus": _corpus,
    "bank": bank_schema,
    "build": _build,
}
"""Every schema by name."""
