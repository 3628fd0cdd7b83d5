"""JSON out of what a model said: alone, between fences, inside prose, after thinking aloud, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from earwitness.errors import DataError
from earwitness.models.json_text import json_values, without_thinking
from earwitness.models.protocols import Reply
from earwitness.scenes.dialogue_records import Dialogue, dialogue_from_json
from earwitness.scenes.rules.registry import Violation

NO_ANSWER = "W101-no-answer"
CUT_OFF = "W102-cut-off"
NO_JSON = "W103-no-json"
NOT_AS_ASKED = "W104-not-as-asked"
CODES: tuple[tuple[str, str], ...] = (
    (NO_ANSWER, "The writer answers (it does not decline, and its service does not block it)."),
    (CUT_OFF, "The answer is whole, not cut off at the limit of tokens."),
    (NO_JSON, "The answer holds one JSON object."),
    (NOT_AS_ASKED, "The JSON object is of the form asked for."),
)
"""What can be wrong with an answer before there is anything to check, by code."""


class NotUsableError(Exception):
    """There is nothing to work with in an answer; ``violation`` says why in words a writer can act on."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.violation = Violation(code, message, "answer")


def json_in(reply: Reply, key: str) -> dict[str, Any]:
    """The JSON object with ``key`` in a reply.

    A list where the object was asked for is taken as the value of its key.

    Raises
    ------
    NotUsableError: declined, blocked, cut off, or nothing like it inside.

    Examples
    --------
    >>> json_in(Reply(text='Here you are:\\n```json\\n{"topic": "a bike"}\\n```'), "topic")
    {'topic': 'a bike'}
    """
    if reply.finish in ("refusal", "content_filter"):
        said = (reply.text or "").strip()[:120]
        raise NotUsableError(NO_ANSWER, f"The answer was declined or blocked{_quoted(said)}.")
    text = without_thinking(reply.text or "")
    for value in json_values(text):
        if isinstance(value, dict) and key in value:
            return value
        if isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
            return {key: value}
    if not text:
        raise NotUsableError(NO_ANSWER, "The answer was empty.")
    if reply.finish == "length":
        raise NotUsableError(
            CUT_OFF, "The answer ended at the limit of tokens before its JSON object was complete."
        )
    if any(isinstance(value, dict) for value in json_values(text)):
        raise NotUsableError(NOT_AS_ASKED, f'The JSON object has no key "{key}".')
    raise NotUsableError(
        NO_JSON,
        f"There was no complete JSON object in the answer, which began{_quoted(text[:80])}.",
    )


def _quoted(text: str) -> str:
    return f' "{" ".join(text.split())}"' if text else ""


def dialogue_in(reply: Reply, scenario: str, topic: str) -> Dialogue:
    """The dialogue in a reply to the dialogue prompt.

    Raises
    ------
    NotUsableError: there is none.
    """
    value = json_in(reply, "timeline")
    timeline = value["timeline"]
    if not isinstance(timeline, list):
        raise NotUsableError(NOT_AS_ASKED, '"timeline" is no list.')
    parts = [_without_empty(part) for part in timeline]
    try:
        return dialogue_from_json({"scenario": scenario, "topic": topic, "timeline": parts})
    except DataError as error:
        raise NotUsableError(
            NOT_AS_ASKED, f"{error.where} is {error.found}; wanted {error.wanted}."
        ) from None


def _without_empty(part: Any) -> Any:
    """An entry without keys that hold nothing: forced forms fill what they may not leave out."""
    if not isinstance(part, Mapping):
        return part
    return {key: value for key, value in part.items() if value is not None}


def text_in(reply: Reply, key: str) -> str:
    """The text under ``key`` in a reply, on one line.

    Raises
    ------
    NotUsableError: there is none.
    """
    value = json_in(reply, key)[key]
    if not isinstance(value, str) or not value.strip():
        raise NotUsableError(NOT_AS_ASKED, f'"{key}" is no text.')
    return " ".join(value.split())
