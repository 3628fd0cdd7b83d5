"""The table in the paper's layout, its text-only control, and what can be said of it in sentences."""

from __future__ import annotations

from typing import Any

from earwitness.report.numbers import MISSING, known, percent
from earwitness.report.published import PublishedRow
from earwitness.report.scene_boards import SceneBoard
from earwitness.report.scene_cells import (
    ALPHA,
    CONDITION_WORDS,
    HEADLINES,
    METRIC_WORDS,
    headline,
    main_condition,
)
from earwitness.scenes.bank_records import REACTIONS
from earwitness.tasks.cares_scores import CaresComparison, CaresScores
from earwitness.tasks.summary import SummaryScores


def table_rows(board: SceneBoard) -> list[dict[str, Any]]:
    """One row a system in its main condition; the control stands last, under its own."""
    rows = [(system, main_condition(board, system)) for system in board.systems]
    if board.control is not None:
        rows = [row for row in rows if row != board.control] + [board.control]
    return [_table_row(board, system, condition) for system, condition in rows]


def _table_row(board: SceneBoard, system: str, condition: str) -> dict[str, Any]:
    reaction = board.scores("reaction", system, condition)
    summary = board.scores("summary", system, condition)
    marks = {
        task: _mark(board.against_control(task, system) if condition == "audio" else None)
        for task in board.tasks
    }
    return {
        "name": system,
        "condition": "" if condition == "audio" else condition,
        "control": (system, condition) == board.control,
        "origin": "" if board.origins.get(system) == "run" else board.origins.get(system, ""),
        "cells": {task: headline(board, task, system, condition) for task in board.tasks},
        "marks": marks,
        "classes": _class_cells(reaction, ("reaction", system, condition) in board.bounds),
        "summary": _summary_cells(summary),
    }


def _mark(found: CaresComparison | None) -> str:
    if found is None or not found.p_holm < ALPHA:
        return ""
    return "above" if found.difference.value > 0 else "below"


def _class_cells(found: Any, incomplete: bool) -> list[dict[str, Any]]:
    if not isinstance(found, CaresScores):
        return [{"precision": MISSING, "recall": MISSING, "ignored": False} for _ in REACTIONS]
    by_label = {row.label: row for row in found.scores.per_class}
    at_least = "≥ " if incomplete else ""
    return [
        {
            "precision": percent(by_label[name].precision.value),
            "recall": at_least + percent(by_label[name].recall.value),
            "ignored": name in found.ignored,
        }
        for name in REACTIONS
    ]


def _summary_cells(found: Any) -> list[str]:
    if not isinstance(found, SummaryScores):
        return [MISSING for _ in REACTIONS]
    largest = max((budget for budget, _ in found.recall), key=int)
    return [percent(found.recall[largest, name].value) for name in REACTIONS]


def published_row(row: PublishedRow) -> dict[str, Any]:
    def span(value: tuple[float, float]) -> dict[str, Any]:
        return {
            "value": f"{value[0]:.1f}",
            "interval": f"± {value[1]:g}",
            "none": "",
            "incomplete": False,
        }

    return {
        "name": row.name,
        "text_only": row.text_only,
        "marks": dict.fromkeys(HEADLINES, ""),
        "cells": {
            "reaction": span(row.reaction),
            "location": span(row.location),
            "sound": span(row.sound),
        },
        "classes": [
            {
                "precision": MISSING if precision is None else f"{precision:.1f}",
                "recall": f"{recall:.1f}",
                "ignored": recall <= 7,
            }
            for precision, recall in (row.reactions[name] for name in REACTIONS)
        ],
        "summary": [f"{row.summary[name]:.1f}" for name in REACTIONS],
    }


def sentences(board: SceneBoard) -> list[str]:
    """The findings in words, claiming no order that the tests do not carry."""
    found = []
    for task in board.tasks[:1]:
        closed = [
            (system, scores)
            for system in board.systems
            if (scores := board.scores(task, system)) is not None
            and (task, system, "audio") not in board.bounds
            and known(scores.headline.value)
        ]
        if closed:
            value = closed[0][1].headline.value
            best = [system for system, scores in closed if scores.headline.value == value]
            cell = headline(board, task, best[0], "audio")
            unit = "" if task == "grounding" else "%"
            metric = METRIC_WORDS[task]
            words = f"Highest {metric} in {task}: {', '.join(best)} with {cell['value']}{unit} ({cell['interval']})"
            if isinstance(closed[0][1], CaresScores):
                words += f"; chance is {percent(closed[0][1].chance)}%"
            found.append(words + ".")
    if board.control is not None and (words := _against_control_words(board)):
        found.append(words)
    if words := _muting_words(board):
        found.append(words)
    if not found:
        found.append("No system was asked with sound, or no run is complete.")
    return found


def _against_control_words(board: SceneBoard) -> str:
    assert board.control is not None
    task = next(iter(board.tasks))
    pairs = [
        (system, found)
        for system in board.systems
        if (found := board.against_control(task, system)) is not None
    ]
    if not pairs:
        return ""
    above = [system for system, found in pairs if _mark(found) == "above"]
    level = [system for system, found in pairs if not _mark(found)]
    name = " under ".join(board.control)
    words = f"Significantly above the text-only control ({name}) in {task}: {', '.join(above) or 'none'}."
    if level:
        words += f" Not distinguishable from it: {', '.join(level)}."
    return words


def _muting_words(board: SceneBoard) -> str:
    task = next(iter(board.tasks))
    pairs = [
        (system, found)
        for system in board.systems
        if (found := board.against_condition(task, system, "muted")) is not None
    ]
    if not pairs:
        return ""
    moved = [system for system, found in pairs if found.p_holm < ALPHA]
    still = [system for system, found in pairs if not found.p_holm < ALPHA]
    words = f"Taking the sound away moves {task} significantly for: {', '.join(moved) or 'none'}."
    return words + (f" Not for: {', '.join(still)}." if still else "")


def control_words(board: SceneBoard) -> str:
    """Which text-only control stands in the table, and why that one."""
    if board.control is None:
        return "No system was asked under asr or oracle, so there is no text-only control."
    system, condition = board.control
    how = "as asked for" if board.chosen else "the best of those that were asked so"
    if not board.chosen and main_condition(board, system) == condition:
        how = "which is never asked with sound"
    return f"Text-only control: {system} under {condition} ({CONDITION_WORDS[condition]}), {how}."
