"""The cells of a scene corpus's tables, and what its tasks and conditions are called in words."""

from __future__ import annotations

import math
from typing import Any

from earwitness.report.numbers import MISSING, interval, known, percent
from earwitness.report.scene_boards import SceneBoard
from earwitness.tasks.records import Estimate

ALPHA = 0.05
HEADLINES = {
    "reaction": "balanced accuracy, %",
    "location": "accuracy, %",
    "sound": "accuracy, %",
    "grounding": "d′",
    "summary": "sounds mentioned, %",
}
METRIC_WORDS = {
    "reaction": "balanced accuracy",
    "location": "accuracy",
    "sound": "accuracy",
    "grounding": "d′",
    "summary": "share of sounds mentioned",
}
QUESTIONS = {
    "reaction": "How do the speakers react to the sound?",
    "location": "Where are they?",
    "sound": "Which sound is it?",
    "grounding": "Is there a sound at this moment?",
    "summary": "What of it does a summary mention?",
}
CONDITION_WORDS = {
    "audio": "the recording",
    "muted": "the sound in question taken away",
    "swapped": "another sound in its place",
    "speech-only": "the voices alone, no sounds and no ambience",
    "asr": "a recogniser's transcript as text, no audio",
    "oracle": "the true script as text, no audio",
    "oracle-tags": "the true script with audible delivery (a sigh, a broken-off word), no audio",
    "blind": "the question alone",
    "silence": "silence of the same length",
}
"""What a model gets under each condition, in words."""


def decimal(value: float | None) -> str:
    """A d′ to two places."""
    if value is None or not math.isfinite(value):
        return MISSING
    text = f"{value:.2f}"
    return "0.00" if float(text) == 0 else text.replace("-", "−")


def decimal_interval(estimate: Estimate) -> str:
    if not (known(estimate.low) and known(estimate.high)):
        return MISSING
    return f"{decimal(estimate.low)} to {decimal(estimate.high)}"


def headline(board: SceneBoard, task: str, system: str, condition: str) -> dict[str, Any]:
    """A cell: figure with interval, the bounds of an incomplete run, or why there is none."""
    scores = board.scores(task, system, condition)
    if scores is None:
        why = board.not_asked(task, system, condition)
        return {"value": "", "interval": "", "short": "", "none": why, "incomplete": False}
    bounds = board.bounds.get((task, system, condition))
    figure = decimal if task == "grounding" else percent
    if bounds is not None:
        words = f"{figure(bounds.low)} to {figure(bounds.high)}"
        return {"value": words, "interval": "", "short": "", "none": "", "incomplete": True}
    estimate = scores.headline
    span = decimal_interval(estimate) if task == "grounding" else interval(estimate)
    short = span
    if span != MISSING:
        ends = (estimate.low, estimate.high)
        short = " to ".join(
            (f"{end:.1f}".replace("-", "−") if task == "grounding" else percent(end, 0))
            for end in ends
        )
    return {
        "value": figure(estimate.value),
        "interval": span,
        "short": short,
        "none": "",
        "incomplete": False,
    }


def main_condition(board: SceneBoard, system: str) -> str:
    """The condition a system's row is about: with sound if it was asked so."""
    asked = {condition for _, name, condition in board.table.scores if name == system}
    return next((name for name in board.conditions if name in asked), "audio")
