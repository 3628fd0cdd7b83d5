"""What the page says of a corpus as a whole: its table, conditions, control, grounding, summaries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from earwitness.report.cards import batch_words
from earwitness.report.numbers import (
    MISSING,
    count,
    interval,
    known,
    p_value,
    percent,
    plural,
    points,
    points_interval,
)
from earwitness.report.published import PublishedTable
from earwitness.report.scene_boards import SceneBoard
from earwitness.report.scene_cells import (
    ALPHA,
    CONDITION_WORDS,
    HEADLINES,
    QUESTIONS,
    decimal,
    headline,
    main_condition,
)
from earwitness.report.scene_table import control_words, published_row, sentences, table_rows
from earwitness.runs.outcomes import OUTCOME_KINDS
from earwitness.scenes.bank_records import REACTIONS
from earwitness.tasks.cares_scores import CaresComparison, CaresScores
from earwitness.tasks.grounding import PAIRS, GroundingScores
from earwitness.tasks.summary import SummaryScores


def board_view(board: SceneBoard, published: PublishedTable | None) -> dict[str, Any]:
    """Everything the page shows of one corpus but its models one by one."""
    from earwitness.report import scene_figures
    from earwitness.report.scene_models import system_views

    first = next(iter(board.tasks), "reaction")
    wide = scene_figures.headline_figure(board, first, f"{board.key}-head")
    narrow = scene_figures.headline_figure(board, first, f"{board.key}-head-n", narrow=True)
    return {
        "id": board.key,
        "title": f"Scenes: {board.name}",
        "first": first,
        "sentences": sentences(board),
        "figure": wide.inline() if wide else "",
        "figure_narrow": narrow.inline() if narrow else "",
        "heat": [
            {"wide": heat.inline(), "title": title}
            for title, heat in scene_figures.recall_figures(board, f"{board.key}-heat")
        ],
        "cluster": board.table.cluster,
        "tasks": board.tasks,
        "incomplete": not board.complete,
        "rows": table_rows(board),
        "published": [published_row(row) for row in published.rows] if published else [],
        "published_source": published.source if published else "",
        "published_note": published.note if published else "",
        "control": control_words(board),
        "control_rows": control_rows(board),
        "conditions": [condition_view(board, task) for task in board.tasks],
        "condition_words": [(name, CONDITION_WORDS[name]) for name in board.conditions],
        "grounding": grounding_rows(board),
        "summary": summary_rows(board),
        "judge": _judge(board),
        "positions": position_rows(board),
        "outcomes": outcome_rows(board),
        "spread": spread_rows(board),
        "notes": board.notes,
        "systems": system_views(board),
    }


def control_rows(board: SceneBoard) -> list[dict[str, Any]]:
    """Every system's audio against the control, task by task."""
    return [
        _difference(board, found, system, "control", (found.task, system, "audio"))
        for task in board.tasks
        for system in board.systems
        if (found := board.against_control(task, system)) is not None
    ]


def _difference(
    board: SceneBoard,
    found: CaresComparison,
    system: str,
    other: str,
    *keys: tuple[str, str, str],
) -> dict[str, Any]:
    detectable = found.detectable if 0 < found.detectable < math.inf else None
    return {
        "system": system,
        "task": found.task,
        "other": other,
        "metric": found.metric,
        "n": count(found.n_items),
        "clusters": count(found.n_clusters),
        "points": points(found.difference.value),
        "interval": points_interval(found.difference),
        "flip": p_value(found.p_sign_flip),
        "holm": p_value(found.p_holm),
        "detectable": MISSING if detectable is None else f"{100 * detectable:.1f}",
        "apart": found.p_holm < ALPHA,
        "incomplete": any(key in board.bounds for key in keys),
    }


# --- conditions


def condition_view(board: SceneBoard, task: str) -> dict[str, Any]:
    """One task under every condition, with the differences to the recording."""
    rows = []
    differences = []
    for system in board.systems:
        if not any(key[:2] == (task, system) for key in board.table.scores):
            continue
        cells = []
        for condition in board.conditions:
            cell = headline(board, task, system, condition)
            found = board.against_condition(task, system, condition)
            keys = ((task, system, "audio"), (task, system, condition))
            if found is not None:
                row = _difference(board, found, system, condition, *keys)
                differences.append(row)
                # The table shows what the condition does to the score, so the sign is turned round.
                cell["delta"] = points(-found.difference.value)
                cell["holm"] = row["holm"]
                cell["apart"] = row["apart"] and not row["incomplete"]
            cells.append(cell)
        rows.append({"name": system, "cells": cells})
    chance = next(
        (
            percent(scores.chance, 0)
            for (name, _, _), scores in board.table.scores.items()
            if name == task and isinstance(scores, CaresScores)
        ),
        "",
    )
    return {
        "task": task,
        "question": QUESTIONS[task],
        "metric": HEADLINES[task],
        "chance": chance,
        "columns": board.conditions,
        "rows": rows,
        "differences": differences,
        "clusters": board.table.cluster,
    }


# --- grounding, summaries, places, outcomes


def grounding_rows(board: SceneBoard) -> list[dict[str, Any]]:
    """Hits, false alarms and d′ of every system and condition."""
    rows = []
    for system in board.systems:
        for condition in board.conditions:
            found = board.scores("grounding", system, condition)
            if not isinstance(found, GroundingScores):
                continue
            rows.append(
                {
                    "system": system,
                    "condition": condition,
                    "main": condition == main_condition(board, system),
                    "hits": percent(found.hits.value),
                    "hits_ci": interval(found.hits),
                    "alarms": percent(found.false_alarms.value),
                    "alarms_ci": interval(found.false_alarms),
                    "catch": percent(found.catch_alarms.value),
                    "d": headline(board, "grounding", system, condition),
                    "d_catch": decimal(found.d_prime_catch.value),
                    "criterion": decimal(found.criterion),
                    "both": percent(found.accuracy_paired.value),
                    "pairs": [count(found.paired.get(name, 0)) for name in PAIRS],
                    "flip": p_value(found.p_sign_flip),
                    "mcnemar": p_value(found.p_mcnemar),
                    "hears": found.hears,
                    "incomplete": ("grounding", system, condition) in board.bounds,
                }
            )
    return rows


def summary_rows(board: SceneBoard) -> list[dict[str, Any]]:
    """Recall of sounds by budget and reaction, beside how often absent sounds are "found"."""
    rows = []
    for system in board.systems:
        for condition in board.conditions:
            found = board.scores("summary", system, condition)
            if not isinstance(found, SummaryScores):
                continue
            for budget in dict.fromkeys(budget for budget, _ in found.recall):
                base = found.base_rate.get(budget)
                rows.append(
                    {
                        "system": system,
                        "condition": condition,
                        "main": condition == main_condition(board, system),
                        "budget": budget,
                        "all": percent(found.recall[budget, "all"].value),
                        "all_ci": interval(found.recall[budget, "all"]),
                        "reactions": [percent(found.recall[budget, r].value) for r in REACTIONS],
                        "base": percent(base.value) if base else MISSING,
                        "base_ci": interval(base) if base else MISSING,
                        "verdicts": _counts(found.verdicts.get(budget, {})),
                        "words": MISSING
                        if not known(found.median_words[budget])
                        else f"{found.median_words[budget]:g}",
                        "over": percent(found.over_budget[budget], 0),
                        "incomplete": not found.complete,
                    }
                )
    return rows


def _counts(verdicts: Mapping[str, int]) -> str:
    order = ("heard", "nature", "discussed", "absent")
    known_ones = [(name, verdicts[name]) for name in order if verdicts.get(name)]
    others = sorted((name, n) for name, n in verdicts.items() if name not in order)
    return ", ".join(f"{count(n)} {name}" for name, n in (*known_ones, *others)) or MISSING


def _judge(board: SceneBoard) -> str:
    return next((s.judge for s in board.table.scores.values() if isinstance(s, SummaryScores)), "")


def position_rows(board: SceneBoard) -> list[dict[str, Any]]:
    """Which place of the options is chosen, against where the truth stands."""
    rows = []
    for task in board.tasks:
        for system in board.systems:
            found = board.scores(task, system, main_condition(board, system))
            if not isinstance(found, CaresScores) or not known(found.positions.distance):
                continue
            n = sum(found.positions.chosen)
            rows.append(
                {
                    "task": task,
                    "system": system,
                    "chosen": [percent(k / n, 0) for k in found.positions.chosen],
                    "truths": [percent(k / n, 0) for k in found.positions.truths],
                    "n": count(n),
                    "distance": f"{found.positions.distance:.2f}",
                }
            )
    return rows


def outcome_rows(board: SceneBoard) -> list[dict[str, Any]]:
    """What became of every item, by task and system in its main condition."""
    rows = []
    for task in board.tasks:
        for system in board.systems:
            condition = main_condition(board, system)
            decisions = next(
                (
                    each.decisions
                    for each in board.answers
                    if (each.task, each.name, each.condition) == (task, system, condition)
                ),
                (),
            )
            if not decisions:
                continue
            kinds = [d.outcome.kind for d in decisions]
            rows.append(
                {
                    "task": task,
                    "system": system,
                    "condition": condition,
                    "n": count(len(kinds)),
                    "kinds": [count(kinds.count(kind)) for kind in OUTCOME_KINDS],
                }
            )
    return rows


def spread_rows(board: SceneBoard) -> list[dict[str, str]]:
    """By how much prompts of one model differ."""
    return [
        {
            "task": task,
            "model": model,
            "condition": condition,
            "spread": decimal(value) if task == "grounding" else f"{100 * value:.1f} points",
        }
        for (task, model, condition), value in board.table.spread.items()
    ]


def lead(boards: tuple[SceneBoard, ...]) -> str:
    """What was measured about scenes, on what, with how much."""
    first = boards[0]
    scenes = {d.cluster for board in boards for each in board.answers for d in each.decisions}
    names = {each.name for board in boards for each in board.answers}
    items = sum(
        len({d.item_id for each in board.answers if each.task == task for d in each.decisions})
        for board in boards
        for task in board.tasks
    )
    words = (
        f"{plural(len(names), 'system')} asked about {plural(len(scenes), 'scene')} of "
        + (first.name if len(boards) == 1 else plural(len(boards), "corpus", "corpora"))
        + f" in {plural(len(first.tasks), 'task')} ({', '.join(first.tasks)}), {count(items)} questions in all conditions."
    )
    controls = [name for name in first.conditions if name != "audio"]
    words += f" Controls: {', '.join(controls)}." if controls else ""
    return words + batch_words(
        (f"{each.task} of {each.name}", each.card) for board in boards for each in board.answers
    )
