"""A selection on disk, and what it looks like: ``selection.json`` with a report of balance and of what was left out."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from earwitness.audio.files import atomic_write_text
from earwitness.clips.pool import POOL, PoolEntry
from earwitness.clips.selecting import Selected, SelectionSettings, duration_thirds, third_of
from earwitness.errors import DataError

SELECTION = "selection.json"
REASONS: Mapping[str, str] = {
    "unreviewed": "not reviewed yet",
    "poor_audio": "poor sound",
    "no_match": "another emotion was heard",
    "unclear": "the emotion was not clear",
    "unassigned": "was not asked for",
    "superseded": "there is a later take",
    "duplicate": "the same recording as another",
    "missing": "the file is not there",
    "changed": "the file is another one than was recorded",
    "unusable": "the file cannot be used",
    "label_not_wanted": "its label was not asked for",
    "duration": "outside the bounds on duration",
    "label_full": "accepted, but its label had better balanced choices",
    "label_full_speaker_absent": "accepted, but its label is full and its speaker is not in the set",
}


@dataclass(frozen=True, slots=True)
class SelectionRecord:
    """A selection as it is kept. ``pool_sha256`` is of the pool it was made from."""

    chosen: tuple[str, ...]
    left_out: Mapping[str, str]
    settings: Mapping[str, Any]
    goals: Sequence[Mapping[str, Any]]
    report: Mapping[str, Any]
    pool_sha256: str


def pool_hash(collection: Path) -> str:
    """SHA-256 of ``pool.jsonl``."""
    return hashlib.sha256((collection / POOL).read_bytes()).hexdigest()


def report_of(
    entries: Sequence[PoolEntry], selected: Selected, settings: SelectionSettings
) -> dict[str, Any]:
    """Tables of a selection, ready for JSON: balance of what is in, reasons for what is out."""
    chosen = set(selected.chosen)
    inside = [e for e in entries if e.id in chosen]
    usable = [e for e in entries if e.accepted]
    cuts = duration_thirds(usable)
    labels = {}
    for label in settings.labels:
        mine = [e for e in inside if e.emotion == label]
        labels[label] = {
            "accepted": sum(e.emotion == label for e in usable),
            "chosen": len(mine),
            "speakers": len({e.speaker for e in mine}),
            "scripts": len({e.script_id for e in mine}),
            "sex": dict(sorted(Counter(e.sex or "unknown" for e in mine).items())),
            "durations": dict(Counter(third_of(e.seconds, cuts) for e in mine)),
            "mean_seconds": round(sum(e.seconds for e in mine) / len(mine), 3),
        }
    per_speaker = Counter(e.speaker for e in inside)
    out = Counter((reason, _emotion(entries)[key]) for key, reason in selected.left_out.items())
    left: dict[str, dict[str, int]] = {}
    for reason in REASONS:
        row = {label: out[reason, label] for label in settings.labels if out[reason, label]}
        if row:
            left[reason] = row
    return {
        "recordings": len(entries),
        "accepted": len(usable),
        "speakers_in_pool": len({e.speaker for e in entries}),
        "chosen": len(inside),
        "speakers": len(per_speaker),
        "clips_per_speaker": [min(per_speaker.values()), max(per_speaker.values())],
        "scripts": len({e.script_id for e in inside}),
        "seconds": round(sum(e.seconds for e in inside), 3),
        "duration_thirds_s": [round(cut, 3) for cut in cuts],
        "labels": labels,
        "left_out": left,
    }


def _emotion(entries: Sequence[PoolEntry]) -> Mapping[str, str]:
    return {entry.id: entry.emotion for entry in entries}


def write_selection(
    collection: Path,
    entries: Sequence[PoolEntry],
    selected: Selected,
    settings: SelectionSettings,
) -> SelectionRecord:
    """Put ``selection.json`` in place."""
    record = SelectionRecord(
        chosen=selected.chosen,
        left_out=dict(selected.left_out),
        settings=asdict(settings),
        goals=[asdict(goal) for goal in selected.goals],
        report=report_of(entries, selected, settings),
        pool_sha256=pool_hash(collection),
    )
    text = json.dumps(asdict(record), ensure_ascii=False, indent=1)
    atomic_write_text(collection / SELECTION, text + "\n")
    return record


def read_selection(collection: Path) -> SelectionRecord:
    """The selection of a collection.

    Raises
    ------
    DataError: there is none, or it is not what it should be.
    """
    path = collection / SELECTION
    if not path.exists():
        raise DataError(
            str(collection),
            f"has no {SELECTION}",
            "a collection with a selection",
            "Make it with: earwitness clips select COLLECTION",
        )
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return SelectionRecord(**{**values, "chosen": tuple(values["chosen"])})
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise DataError(str(path), f"is no selection ({error})") from None
