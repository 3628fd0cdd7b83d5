"""From a vendor's JSON to native label, words or scores; nothing is mapped or renamed here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from earwitness.models.endpoint_schema import Answer
from earwitness.models.json_path import find, first

_KEPT_NUMBERS = 20_000
"""Window scores kept in a reply, so that another pooling can be tried offline; about 400 KB of JSON."""


class AnswerError(ValueError):
    """The answer does not have the form the description says."""


@dataclass(frozen=True, slots=True)
class Read:
    """What an answer says: exactly one of ``text`` and ``scores`` is set."""

    text: str | None
    scores: Mapping[str, float] | None
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Window:
    start_s: float | None
    end_s: float | None
    scores: Mapping[str, float]


def read_answer(answer: Answer, body: Any) -> Read:
    """Read one answer by its description.

    Raises
    ------
    AnswerError: what was promised is not there, or is of another kind.
    """
    if answer.scores_at is None:
        path = answer.label_at or answer.text_at
        value = first(body, path)
        if value is None and answer.empty_at is not None and _is_empty(body, answer.empty_at):
            return Read("", None, {})
        if not isinstance(value, str):
            what = "nothing" if value is None else f"a {type(value).__name__}"
            raise AnswerError(f"{what} at {path!r}; wanted text")
        return Read(value, None, {})
    if answer.windows_at is None:
        window = _Window(None, None, _scores(find(body, answer.scores_at), answer))
        windows = [window] if find(body, answer.scores_at) else []
    else:
        windows = [_window(each, answer) for each in find(body, answer.windows_at)]
    if not windows:
        if answer.empty_at is not None and _is_empty(body, answer.empty_at):
            return Read(None, {}, {"windows": []})
        raise AnswerError(f"nothing at {answer.windows_at or answer.scores_at!r}")
    pooled = pool(windows, answer)
    raw: dict[str, Any] = {}
    if answer.windows_at is not None:
        raw = _kept(windows) | {"pool": answer.pool}
    if answer.cutoff is not None:
        below = {label: score for label, score in pooled.items() if score < answer.cutoff}
        pooled = {label: score for label, score in pooled.items() if score >= answer.cutoff}
        raw |= {"cutoff": answer.cutoff, "below_cutoff": below}
    return Read(None, pooled, raw)


def pool(windows: Sequence[_Window], answer: Answer) -> dict[str, float]:
    """One score a label from the scores of all windows, labels in order of first appearance.

    A label absent from a window counts as 0 there (services leave out what is below their cutoff), or,
    with ``absent: skip``, the window does not count for it.
    """
    weights = [_weight(window, answer) for window in windows]
    labels = dict.fromkeys(label for window in windows for label in window.scores)
    pooled = {}
    for label in labels:
        pairs = [
            (window.scores.get(label, 0.0), weight)
            for window, weight in zip(windows, weights, strict=True)
            if label in window.scores or answer.absent == "zero"
        ]
        if answer.pool == "max":
            pooled[label] = max(score for score, _ in pairs)
            continue
        total = math.fsum(weight for _, weight in pairs)
        pooled[label] = (
            math.fsum(score * weight for score, weight in pairs) / total if total > 0 else 0.0
        )
    return pooled


def _weight(window: _Window, answer: Answer) -> float:
    if answer.pool != "duration_weighted":
        return 1.0
    if window.start_s is None or window.end_s is None:
        raise AnswerError(f"a window without {answer.start_key!r} and {answer.end_key!r}")
    if window.end_s < window.start_s:
        raise AnswerError(
            f"a window that ends ({window.end_s}) before it begins ({window.start_s})"
        )
    return window.end_s - window.start_s


def _window(value: Any, answer: Answer) -> _Window:
    assert answer.scores_at is not None
    return _Window(
        _number_or_none(first(value, answer.start_key)),
        _number_or_none(first(value, answer.end_key)),
        _scores(find(value, answer.scores_at), answer),
    )


def _scores(found: Sequence[Any], answer: Answer) -> dict[str, float]:
    """Scores from ``{label: score}``, from ``[{name: label, score: number}]``, or from such pairs found."""
    scores: dict[str, float] = {}
    for value in found:
        pairs = value if isinstance(value, list) else [value]
        for pair in pairs:
            if not isinstance(pair, dict):
                raise AnswerError(f"a {type(pair).__name__} at {answer.scores_at!r}; wanted scores")
            if isinstance(pair.get(answer.name_key), str):
                _add(scores, pair[answer.name_key], pair.get(answer.score_key))
            elif isinstance(value, list):
                raise AnswerError(f"a score without {answer.name_key!r} at {answer.scores_at!r}")
            else:
                for label, score in pair.items():
                    _add(scores, label, score)
    return scores


def _add(scores: dict[str, float], label: str, score: Any) -> None:
    number = _number_or_none(score)
    if number is None:
        raise AnswerError(f"the score of {label!r} is {str(score)[:40]!r}; wanted a finite number")
    if label in scores:
        raise AnswerError(f"{label!r} is scored twice; use windows_at if these are windows")
    scores[label] = number


def _number_or_none(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _is_empty(body: Any, path: str) -> bool:
    """Whether the place that would hold results is there and holds none."""
    found = find(body, path)
    return bool(found) and all(value in (None, "", [], {}) for value in found)


def _kept(windows: Sequence[_Window]) -> dict[str, Any]:
    if sum(len(window.scores) for window in windows) > _KEPT_NUMBERS:
        return {"windows": len(windows), "window_scores": "too many to keep"}
    return {
        "windows": [
            {"start": window.start_s, "end": window.end_s, "scores": dict(window.scores)}
            for window in windows
        ]
    }
