"""The Item protocol: all the runner knows of a task."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from earwitness.models.protocols import AudioRef, Prompt


@dataclass(frozen=True, slots=True)
class Moment:
    """The time in a recording that a question is about, in seconds.

    ``prompt_at`` is the same question with the moment at another time, for when only part of the recording is sent.
    """

    seconds: float
    prompt_at: Callable[[float], Prompt]


@dataclass(frozen=True, slots=True)
class Item:
    """One question about one audio file.

    ``id`` is unique in a run. ``condition`` names the input (``audio``, ``silence``, ...).
    ``metadata`` is what a local model may know; the gold label is never in here. ``moment`` is what the question is
    about, None where it is about the whole recording.
    """

    id: str
    task: str
    task_version: str
    prompt: Prompt
    audio: AudioRef | None = None
    condition: str = "audio"
    metadata: Mapping[str, str] = field(default_factory=dict)
    moment: Moment | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Part:
    """One of several items that a question about a long recording was divided into; ``index`` counts from 1."""

    of: str
    index: int
    count: int


@dataclass(frozen=True, slots=True)
class Question:
    """An item with its truth, which stays on this side: the runner and the models never see it.

    ``cluster`` is what intervals resample (speaker, scene); ``groups`` are attributes to split results by. ``part``
    is set where the item is one of several that stand for one.
    """

    item: Item
    gold: str
    cluster: str
    groups: Mapping[str, str] = field(default_factory=dict)
    part: Part | None = None


def digest(value: Any) -> str:
    """SHA-256 of a JSON-serialisable value, independent of key order and white space."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def prompt_hash(prompt: Prompt) -> str:
    """Hash of everything the model reads."""
    return digest(
        {
            "system": prompt.system,
            "user": prompt.user,
            "choices": list(prompt.choices),
            "schema": prompt.schema,
        }
    )


def reply_key(item: Item, model_name: str, settings: Mapping[str, Any]) -> str:
    """Key under which an item's reply is stored: change any part of it and the item is asked anew."""
    return digest(
        {
            "task": item.task,
            "task_version": item.task_version,
            "item": item.id,
            "condition": item.condition,
            "audio": item.audio.identity if item.audio else None,
            "prompt": prompt_hash(item.prompt),
            "model": model_name,
            "settings": dict(settings),
        }
    )
