"""What an answer may be. Everything a browser sends is read here, and nothing else of it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from earwitness.clips.corpus import EMOTIONS
from earwitness.review.project import Project
from earwitness.scenes.bank_records import REACTIONS

QUALITIES = ("good", "poor")
MATCHES = ("yes", "no", "unclear")
LONGEST_NOTE = 2000

Quality = Literal["good", "poor"]


class AnswerError(ValueError):
    """An answer that cannot be kept. The message is for the person who gave it."""


def read_answer(
    project: Project, shown: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """The answer in the form it is kept in.

    Parameters
    ----------
    shown: what the page showed of the item.
    given: fields of a form or of a JSON object. A review has ``audio_quality``, ``match`` or ``perceived_emotion``;
        labels are ``label.s1`` and so on, or a mapping ``labels``; each may have a ``note``.

    Raises
    ------
    AnswerError: a question was left out, or an answer is none of those offered.

    Examples
    --------
    >>> from earwitness.review.project import Project
    >>> read_answer(Project("label", ""), {"sounds": [{"id": "s1"}]}, {"label.s1": "pivot"})
    {'labels': {'s1': 'pivot'}, 'note': ''}
    """
    if project.kind == "label":
        return _labels(shown, given)
    if project.kind == "review":
        return _review(project, given)
    raise AnswerError("Recordings are sent as audio.")


def _labels(shown: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    nested = given.get("labels")
    table = nested if isinstance(nested, Mapping) else {}
    labels = {}
    for number, sound in enumerate(shown["sounds"], start=1):
        name = sound["id"]
        value = table.get(name, given.get(f"label.{name}"))
        if value is None or value == "":
            raise AnswerError(f"Sound {number} has no answer yet.")
        labels[name] = _one_of(value, REACTIONS, f"Sound {number}")
    unknown = sorted(str(name) for name in table if name not in labels)
    if unknown:
        raise AnswerError("There is no such sound here.")
    return {"labels": labels, "note": _note(given)}


def _review(project: Project, given: Mapping[str, Any]) -> dict[str, Any]:
    quality = given.get("audio_quality")
    if quality is None or quality == "":
        raise AnswerError("Say whether the sound is good enough.")
    answer: dict[str, Any] = {
        "audio_quality": _one_of(quality, QUALITIES, "Sound"),
        "match": None,
        "perceived_emotion": None,
        "note": _note(given),
    }
    if given.get("labels", {}) != {}:
        raise AnswerError("There are no sounds to label here.")
    # What is not asked here is not kept, but must be what it would have to be elsewhere.
    name, known = ("match", MATCHES) if project.blind else ("perceived_emotion", EMOTIONS)
    if given.get(name) not in (None, ""):
        _one_of(given[name], known, name)
    if project.blind:
        heard = given.get("perceived_emotion")
        if heard is None or heard == "":
            raise AnswerError("Choose the emotion you hear.")
        answer["perceived_emotion"] = _one_of(heard, EMOTIONS, "Emotion")
        return answer
    match = given.get("match")
    if match is None or match == "":
        raise AnswerError("Say whether the performance fits the emotion.")
    answer["match"] = _one_of(match, MATCHES, "Performance")
    return answer


def _one_of(value: Any, known: tuple[str, ...], what: str) -> str:
    if not isinstance(value, str) or value not in known:
        raise AnswerError(f"{what}: the answer must be one of {', '.join(known)}.")
    return value


def _note(given: Mapping[str, Any]) -> str:
    note = given.get("note", "")
    if note is None:
        return ""
    if not isinstance(note, str):
        raise AnswerError("The note must be text.")
    # Control characters and lone surrogates have no place in a table or a page.
    kept = "".join(c for c in note if c.isprintable() or c == "\n").strip()
    if len(kept) > LONGEST_NOTE:
        raise AnswerError(f"The note is longer than {LONGEST_NOTE} characters.")
    return kept


def read_seconds(given: Mapping[str, Any]) -> float | None:
    """How long the page was open, if the browser tells something believable."""
    value = given.get("seconds")
    try:
        seconds = float(value) if isinstance(value, int | float | str) else -1.0
    except ValueError:
        return None
    return round(seconds, 1) if 0 <= seconds <= 24 * 3600 else None
