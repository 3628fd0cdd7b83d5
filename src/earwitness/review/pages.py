"""What pages show, as plain values. Labels of the data set are not within reach here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from html import escape
from typing import Any

from markupsafe import Markup

from earwitness.clips.corpus import EMOTIONS
from earwitness.review.answers import MATCHES, QUALITIES
from earwitness.review.desk import Desk
from earwitness.review.recordings import path_of
from earwitness.review.store import Person, answer_of, next_open, progress_of, withdrawn_of
from earwitness.scenes.bank_records import REACTIONS

FRONT = "Open the link you were given: it leads to your own list. Nothing can be seen without one."

TITLES: Mapping[int, str] = {
    401: "Who are you?",
    403: "Not accepted",
    404: "Not found",
    409: "Not now",
    413: "Too large",
    422: "Not kept",
    429: "Too fast",
}

MATCH_WORDS: Mapping[str, str] = {"yes": "Yes", "no": "No", "unclear": "Unclear"}
QUALITY_WORDS: Mapping[str, str] = {"good": "Good", "poor": "Poor"}
REACTION_KEYS = "1234"
EMOTION_KEYS = "1234567"


def text_hash(text: str) -> str:
    """Which text somebody agreed to."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def start(desk: Desk, person: Person, done: int, given: int) -> dict[str, Any]:
    """The first page: what to do and how far one is."""
    return {
        "person": person.name,
        "done": done,
        "given": given,
        "next": next_open(desk.db, person.id),
        "reactions": _defined(REACTIONS, desk.words["reactions"], REACTION_KEYS),
        "emotions": _defined(EMOTIONS, desk.words["emotions"], EMOTION_KEYS),
        "consent_hash": text_hash(desk.project.consent_text),
    }


def item(
    desk: Desk,
    person: Person,
    position: int,
    identifier: int,
    shown: Mapping[str, Any],
    has_audio: bool,
) -> dict[str, Any]:
    """A page that asks about one item; what was answered before is filled in."""
    done, given = progress_of(desk.db, person.id)
    before = answer_of(desk.db, person.id, identifier)
    begun = before or withdrawn_of(desk.db, person.id, identifier) or {}
    context: dict[str, Any] = {
        "person": person.name,
        "position": position,
        "done": done,
        "given": given,
        "answered": before is not None,
        "note": begun.get("note", ""),
        "audio": f"/work/item/{position}/audio" if has_audio else "",
    }
    kind = desk.project.kind
    if kind == "label":
        return {**context, **_label(desk, shown, begun)}
    if kind == "review":
        return {**context, **_review(desk, shown, begun)}
    return {**context, **_record(desk, position, shown, before)}


def _label(desk: Desk, shown: Mapping[str, Any], begun: Mapping[str, Any]) -> dict[str, Any]:
    labels = begun.get("labels", {})
    sounds = [
        {**sound, "number": number, "chosen": labels.get(sound["id"], "")}
        for number, sound in enumerate(shown["sounds"], start=1)
    ]
    by_id = {sound["id"]: sound for sound in sounds}
    # Stretches of talk with the sounds between them.
    parts: list[dict[str, Any]] = [{"talk": []}] if "lines" in shown else []
    for line in shown.get("lines", ()):
        if "sound" in line:
            parts += [{"sound": by_id[line["sound"]]}, {"talk": []}]
        else:
            parts[-1]["talk"].append(_line(line))
    for part in parts:
        if "talk" in part:
            part["talk"] = Markup("".join(part["talk"]))
    return {
        "sounds": sounds,
        "stretches": parts,
        "reactions": _defined(REACTIONS, desk.words["reactions"], REACTION_KEYS),
    }


def _line(line: Mapping[str, Any]) -> str:
    """An utterance as a list entry. Most of a page is these, so they are put together here; all text is escaped."""
    said = "".join(
        escape(text)
        if kind == "speech"
        else f'{" " if text[:1] == " " else ""}<i class="heard">[{escape(text.strip())}]</i>'
        for kind, text in line["said"]
    )
    speaker = escape(line["speaker"])
    return f'<li class="says {speaker}"><b class="speaker">{speaker}</b><p>{said}</p></li>\n'


def _review(desk: Desk, shown: Mapping[str, Any], begun: Mapping[str, Any]) -> dict[str, Any]:
    emotion = shown.get("emotion", "")
    return {
        "asked": emotion,
        "asked_words": desk.words["emotions"].get(emotion, ""),
        "script": shown.get("text", ""),
        "emotions": _defined(EMOTIONS, desk.words["emotions"], EMOTION_KEYS),
        "qualities": [
            {"name": q, "word": QUALITY_WORDS[q], "key": k}
            for q, k in zip(QUALITIES, "gp", strict=True)
        ],
        "matches": [
            {"name": m, "word": MATCH_WORDS[m], "key": k}
            for m, k in zip(MATCHES, "123", strict=True)
        ],
        "quality": begun.get("audio_quality", ""),
        "match": begun.get("match") or "",
        "perceived": begun.get("perceived_emotion") or "",
    }


def _record(
    desk: Desk, position: int, shown: Mapping[str, Any], before: Mapping[str, Any] | None
) -> dict[str, Any]:
    return {
        "script": shown["text"],
        "asked": shown["emotion"],
        "asked_words": desk.words["emotions"][shown["emotion"]],
        "recorded": f"/work/item/{position}/audio" if before else "",
    }


def own_recording(desk: Desk, identifier: int) -> str:
    """Where the recording of an item is, as it is kept; empty if there is none."""
    row = desk.db.execute(
        "SELECT i.key FROM items i JOIN recordings r ON r.item=i.id WHERE i.id=?", (identifier,)
    ).fetchone()
    return str(path_of(desk.folder, row[0]).resolve()) if row else ""


def _defined(names: tuple[str, ...], words: Mapping[str, str], keys: str) -> list[dict[str, str]]:
    return [
        {"name": name, "words": words[name], "key": key}
        for name, key in zip(names, keys, strict=True)
    ]
