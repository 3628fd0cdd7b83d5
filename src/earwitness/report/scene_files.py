"""The tables about scenes: ``scenes.csv``, ``scenes.json``, ``scenes.md`` and ``scene-predictions.csv``.

The rules are those of :mod:`earwitness.report.tables`: missing figures are empty, null or a dash, and no text is run
as a formula.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from earwitness.report.scene_boards import SceneBoard
from earwitness.report.scene_models import findings
from earwitness.report.scene_table import table_rows
from earwitness.report.tables import answer_cells, csv_text, markdown_cell, plain, signs_json
from earwitness.runs.outcomes import OUTCOME_KINDS
from earwitness.scenes.bank_records import REACTIONS
from earwitness.tasks.cares_scores import CaresScores
from earwitness.tasks.cares_table import table_to_json
from earwitness.tasks.grounding import PAIRS, GroundingScores
from earwitness.tasks.records import Estimate
from earwitness.tasks.summary import SummaryScores

SCHEMA = "earwitness.scenes/1"
"""Name and version of the layout of ``scenes.json``."""
PREDICTION_COLUMNS = (
    "model", "task", "id", "condition", "scene", "label", "raw_reply", "mapped_label", "outcome", "rule", "native",
    "latency_s", "cost_usd",
)  # fmt: skip


def scenes_csv(boards: Sequence[SceneBoard]) -> str:
    """One line for every corpus, task, system and condition; shares between 0 and 1, d′ as it is."""
    rows = [
        _row(board, task, system, condition)
        for board in boards
        for task in board.tasks
        for system in board.systems
        for condition in board.conditions
        if (task, system, condition) in board.table.scores
    ]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return csv_text([columns, *([row.get(name) for name in columns] for row in rows)])


def _ends(name: str, estimate: Estimate | None) -> dict[str, Any]:
    if estimate is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _row(board: SceneBoard, task: str, system: str, condition: str) -> dict[str, Any]:
    scores = board.table.scores[task, system, condition]
    bounds = board.bounds.get((task, system, condition))
    figure = _ends("headline", scores.headline)
    if bounds is not None:
        figure = dict.fromkeys(figure)
    against = board.against_condition(task, system, condition)
    control = board.against_control(task, system) if condition == "audio" else None
    row: dict[str, Any] = {
        "corpus": board.name,
        "task": task,
        "model": system,
        "condition": condition,
        "origin": board.origins.get(system, "run"),
        "complete": bounds is None,
        **figure,
        "bound_low": bounds.low if bounds else None,
        "bound_high": bounds.high if bounds else None,
        "audio_minus_condition": against.difference.value if against else None,
        "audio_minus_condition_p_holm": against.p_holm if against else None,
        "audio_minus_control": control.difference.value if control else None,
        "audio_minus_control_p_holm": control.p_holm if control else None,
        **_counts(board, task, system, condition),
    }
    if isinstance(scores, CaresScores):
        row["chance"] = scores.chance
        row["position_bias"] = scores.positions.distance
        if task == "reaction":
            row["ignored"] = " ".join(scores.ignored)
            for each in scores.scores.per_class:
                row[f"precision_{each.label}"] = each.precision.value
                row[f"recall_{each.label}"] = each.recall.value
    elif isinstance(scores, GroundingScores):
        row |= _ends("hits", scores.hits) | _ends("false_alarms", scores.false_alarms)
        row |= {"catch_alarms": scores.catch_alarms.value, "p_sign_flip": scores.p_sign_flip}
        row |= {f"pairs_{name.replace(' ', '_')}": scores.paired.get(name, 0) for name in PAIRS}
    elif isinstance(scores, SummaryScores):
        for (budget, reaction), estimate in scores.recall.items():
            row[f"mentioned_{budget}_{reaction}"] = estimate.value
        for budget, estimate in scores.base_rate.items():
            row[f"base_rate_{budget}"] = estimate.value
        row["judge"] = scores.judge
    return row


def _counts(board: SceneBoard, task: str, system: str, condition: str) -> dict[str, int]:
    for each in board.answers:
        if (each.task, each.name, each.condition) == (task, system, condition):
            kinds = [d.outcome.kind for d in each.decisions]
            scenes = len({d.cluster for d in each.decisions})
            return {
                "items": len(kinds),
                "scenes": scenes,
                **{kind: kinds.count(kind) for kind in OUTCOME_KINDS},
            }
    return {}


def scenes_document(boards: Sequence[SceneBoard]) -> dict[str, Any]:
    """Everything about scenes, as plain JSON values."""
    return {
        "schema": SCHEMA,
        "complete": all(board.complete for board in boards),
        "boards": [
            {
                "corpus": board.name,
                "sha256": board.corpus.get("sha256"),
                "systems": list(board.systems),
                "origins": dict(board.origins),
                "conditions": list(board.conditions),
                "tasks": list(board.tasks),
                "control": list(board.control) if board.control else None,
                "notes": list(board.notes),
                **table_to_json(board.table),
                "bounds": [
                    {"task": task, "model": system, "condition": condition, **plain(asdict(bounds))}
                    for (task, system, condition), bounds in board.bounds.items()
                ],
                "listening": [signs_json(signs) for signs in board.signs],
                "findings": {
                    system: [[row["task"], row["text"]] for row in findings(board, system)]
                    for system in board.systems
                },
            }
            for board in boards
        ],
    }


def scenes_json(boards: Sequence[SceneBoard]) -> str:
    """:func:`scenes_document` as text."""
    document = scenes_document(boards)
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def scenes_md(boards: Sequence[SceneBoard]) -> str:
    """The table in the paper's layout for a README or an issue."""
    parts = []
    for board in boards:
        columns = ["model"]
        if "reaction" in board.tasks:
            columns += ["reaction %", *(f"{name} P/R" for name in REACTIONS)]
        columns += [name for name in ("location %", "sound %") if name[:-2] in board.tasks]
        columns += ["grounding d′"] if "grounding" in board.tasks else []
        if "summary" in board.tasks:
            columns.append("mentioned % (" + " / ".join(REACTIONS) + ")")
        lines = [
            f"### Scenes: {markdown_cell(board.name)}",
            "",
            "| " + " | ".join(columns) + " |",
            "| --- |" + " ---: |" * (len(columns) - 1),
        ]
        for row in table_rows(board):
            name = markdown_cell(row["name"])
            name += f" ({row['condition']})" if row["condition"] else ""
            cells = [name + (" **text-only control**" if row["control"] else "")]
            for task in board.tasks:
                if task == "summary":
                    cells.append(" / ".join(row["summary"]))
                    continue
                cells.append(_md_cell(row["cells"][task], row["marks"][task]))
                if task == "reaction":
                    cells += [f"{c['precision']}/{c['recall']}" for c in row["classes"]]
            lines.append("| " + " | ".join(cells) + " |")
        lines += [
            "",
            "▲ significantly above the text-only control, ▼ below it (p < 0.05 after Holm).",
            "",
        ]
        lines += [f"- {markdown_cell(note)}" for note in board.notes] + [""] * bool(board.notes)
        parts.append("\n".join(lines))
    return "\n".join(parts)


def _md_cell(cell: dict[str, Any], mark: str) -> str:
    if cell["none"]:
        return "–" if cell["none"] == "not asked" else str(cell["none"])
    if cell["incomplete"]:
        return f"{cell['value']} (incomplete)"
    sign = {"above": " ▲", "below": " ▼"}.get(mark, "")
    return f"{cell['value']}{sign} ({cell['interval']})"


def scene_predictions_csv(boards: Sequence[SceneBoard]) -> str:
    """Every answer, one line each; ``earwitness report`` reads it back beside a run of the same corpus."""
    rows = (
        (each.name, each.task, decision.item_id, each.condition, *answer_cells(decision))
        for board in boards
        for each in board.answers
        for decision in each.decisions
    )
    return csv_text([PREDICTION_COLUMNS, *rows])
