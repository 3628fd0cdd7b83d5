"""The clip set: a folder with audio files, ``clips.jsonl`` and ``card.yaml``.

``clips.jsonl`` has one JSON object a line, sorted by id; ``path`` is relative to the folder, with forward
slashes, so that a set can be moved. ``card.yaml`` says what the set is and what it may be used for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Emotion = Literal["anger", "disgust", "fear", "happiness", "neutral", "sadness", "surprise"]
EMOTIONS: tuple[Emotion, ...] = (
    "anger",
    "disgust",
    "fear",
    "happiness",
    "neutral",
    "sadness",
    "surprise",
)
"""The seven labels, in alphabetical order, which is the order of every table."""

Use = Literal["any", "non-commercial", "evaluation-only"]


@dataclass(frozen=True, slots=True)
class Clip:
    """One single-speaker recording with its label."""

    id: str
    path: str
    sha256: str
    emotion: Emotion
    speaker: str
    language: str
    seconds: float
    rate: int
    channels: int
    source_label: str
    licence: str
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetCard:
    """What a clip set is and what may be done with it.

    ``redistribute`` says whether the licence lets a report carry the audio along (``--bundle``,
    ``--embed-audio``). ``synthetic`` marks sets that test plumbing and say nothing of emotion recognition.
    """

    name: str
    version: str
    licence: str
    use: Use
    revision: str = ""
    redistribute: bool = False
    synthetic: bool = False
    language: str = ""
    source: str = ""
    label_map: str = ""
    conversion: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClipSet:
    """A set as read from its folder. ``sha256`` is of ``clips.jsonl``."""

    folder: Path
    card: SetCard
    clips: tuple[Clip, ...]
    sha256: str
