"""The tables of a report: ``leaderboard.csv``, ``.json``, ``.md`` and ``predictions.csv``.

A missing figure is an empty cell (CSV), ``null`` (JSON) or a dash (Markdown); never ``nan``.

Spreadsheet programs run a cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return as a formula, and a
model may reply anything. Such text gets an apostrophe in front, in every text column; nothing else is changed.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from earwitness.report.boards import Board, ReportData, clips_of
from earwitness.report.numbers import (
    clean,
    dollars,
    interval,
    p_value,
    percent,
    points,
    points_interval,
    seconds,
)
from earwitness.runs.outcomes import OUTCOME_KINDS
from earwitness.tasks.deafness import DeafnessSigns
from earwitness.tasks.records import Decision, Estimate, Scores

SCHEMA = "earwitness.leaderboard/1"
"""Name and version of the layout of ``leaderboard.json``; the version rises when a key changes its meaning."""

PREDICTION_COLUMNS = (
    "model",
    "id",
    "condition",
    "speaker",
    "label",
    "raw_reply",
    "mapped_label",
    "outcome",
    "rule",
    "native",
    "latency_s",
    "cost_usd",
)
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def safe_cell(text: str) -> str:
    """Text that no spreadsheet runs as a formula.

    Example
    -------
    >>> safe_cell("=HYPERLINK(1)"), safe_cell("anger")
    ("'=HYPERLINK(1)", 'anger')
    """
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else ""
    if isinstance(value, int):
        return str(value)
    return safe_cell(clean(str(value)))


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV; text that a spreadsheet would run is made safe."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerows([_cell(value) for value in row] for row in rows)
    return file.getvalue()


def _ends(name: str, estimate: Estimate | None) -> dict[str, Any]:
    if estimate is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def leaderboard_row(board: Board, scores: Scores) -> dict[str, Any]:
    """One line of ``leaderboard.csv``; shares are between 0 and 1.

    An incomplete run has bounds and no accuracy.
    """
    accuracy = {
        **_ends("accuracy", scores.accuracy),
        **_ends("accuracy_clustered", scores.accuracy_clustered),
    }
    if not scores.complete:
        accuracy = dict.fromkeys(accuracy)
    return {
        "model": scores.name,
        "clip_set": board.set_name,
        "condition": board.condition,
        "items": scores.n,
        "clusters": scores.n_clusters,
        "right": scores.right,
        "complete": scores.complete,
        **accuracy,
        "bound_low": scores.bounds[0],
        "bound_high": scores.bounds[1],
        **_ends("macro_recall", scores.macro_recall),
        **_ends("valence_accuracy", scores.valence.accuracy if scores.valence else None),
        "neutral_share_of_outputs": scores.neutral.share_of_outputs if scores.neutral else None,
        "neutral_share_of_errors": scores.neutral.share_of_errors if scores.neutral else None,
        **_ends("prior_weighted_accuracy", scores.prior_weighted),
        **{kind: scores.outcomes.get(kind, 0) for kind in OUTCOME_KINDS},
        "cost_usd": scores.cost_usd,
        "latency_median_s": scores.latency_median_s,
        "latency_p95_s": scores.latency_p95_s,
    }


def leaderboard_csv(data: ReportData) -> str:
    """All boards in one table, one line a system."""
    rows = [
        leaderboard_row(board, scores)
        for board in data.boards
        for scores in board.leaderboard.systems
    ]
    return csv_text([list(rows[0]), *(list(row.values()) for row in rows)])


def plain(value: Any) -> Any:
    """A record as JSON knows it: dataclasses as objects, tuples as arrays, NaN and infinities as null."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, int | bool):
        return value
    return clean(str(value))


def leaderboard_json(data: ReportData) -> str:
    """Everything: figures of every system and of their pool, comparisons, conditions, signs of not listening."""
    document = {
        "schema": SCHEMA,
        "task": data.task,
        "labels": list(data.labels),
        "complete": data.complete,
        "synthetic": data.synthetic,
        "boards": [
            {
                "clip_set": board.set_name,
                "condition": board.condition,
                "notes": list(board.leaderboard.notes),
                "systems": [
                    {
                        **plain(scores),
                        "origin": system.origin,
                        "synthetic": bool(clips_of(system).get("synthetic")),
                    }
                    for scores, system in zip(board.leaderboard.systems, board.systems, strict=True)
                ],
                "pooled": plain(board.leaderboard.pooled),
                "comparisons": plain(board.leaderboard.comparisons),
            }
            for board in data.boards
        ],
        "condition_differences": plain(data.differences),
        "listening": [signs_json(signs) for signs in data.signs],
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def signs_json(signs: DeafnessSigns) -> dict[str, Any]:
    """Signs of not listening with their flags; ``both`` and ``unchanged`` are of silence."""
    silence = signs.unchanged_under("silence")
    return {
        **plain(signs),
        "stuck": signs.stuck,
        "deaf": signs.deaf,
        "both": silence.both if silence else 0,
        "unchanged": silence.same if silence else 0,
        "flags": list(signs.flags),
        "findings": list(signs.findings()),
    }


def markdown_cell(text: str) -> str:
    """Text for a cell of a Markdown table."""
    return (
        clean(text)
        .replace("\\", "\\\\")
        .replace("|", "\\|")
        .replace("\n", " ")
        .replace("<", "&lt;")
    )


def leaderboard_md(data: ReportData) -> str:
    """The leaderboard for a README or an issue, percentages to one decimal."""
    parts = []
    for board in data.boards:
        title = f"{board.condition} on {board.set_name}" if board.set_name else board.condition
        lines = [
            f"### {data.task}: {markdown_cell(title)}",
            "",
            "| model | accuracy % | 95% (Wilson) | 95% (by cluster) | macro recall % | valence % | neutral % of outputs | no label | failed | cost $ | median s |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        ]
        for scores in board.leaderboard.systems:
            if scores.complete:
                cells = [
                    percent(scores.accuracy.value),
                    interval(scores.accuracy),
                    interval(scores.accuracy_clustered),
                ]
            else:
                cells = [
                    f"{percent(scores.bounds[0])} to {percent(scores.bounds[1])} (incomplete)",
                    "–",
                    "–",
                ]
            cells += [
                percent(scores.macro_recall.value),
                percent(scores.valence.accuracy.value if scores.valence else None),
                percent(scores.neutral.share_of_outputs if scores.neutral else None),
                str(without_label(scores)),
                str(scores.outcomes.get("failed", 0)),
                dollars(scores.cost_usd),
                seconds(scores.latency_median_s),
            ]
            lines.append(f"| {markdown_cell(scores.name)} | " + " | ".join(cells) + " |")
        lines.append("")
        if board.leaderboard.comparisons:
            lines += [
                "| pair | difference, points | 95% | p (sign-flip) | p (Holm) |",
                "| --- | ---: | ---: | ---: | ---: |",
            ]
            lines += [
                f"| {markdown_cell(pair.a)} − {markdown_cell(pair.b)} | {points(pair.difference.value)} | {points_interval(pair.difference)}"
                f" | {p_value(pair.p_sign_flip)} | {p_value(pair.p_holm)} |"
                for pair in board.leaderboard.comparisons
            ]
            lines.append("")
        notes = list(board.leaderboard.notes)
        lines += [f"- {markdown_cell(note)}" for note in notes] + ([""] if notes else [])
        parts.append("\n".join(lines))
    if data.synthetic:
        parts.insert(
            0, "**Synthetic clips: this tests plumbing. It is not emotion recognition.**\n"
        )
    return "\n".join(parts)


def without_label(scores: Scores) -> int:
    """Items whose reply gave no label; failed calls are not replies."""
    return scores.n - scores.outcomes.get("answered", 0) - scores.outcomes.get("failed", 0)


def answer_cells(decision: Decision) -> tuple[Any, ...]:
    """What both tables of predictions say of an answer, from its cluster to its cost."""
    outcome = decision.outcome
    return (
        decision.cluster,
        decision.gold,
        decision.reply,
        outcome.label,
        outcome.kind,
        outcome.rule,
        outcome.native,
        decision.latency_s,
        decision.cost_usd,
    )


def predictions_csv(data: ReportData) -> str:
    """Every decision, one line each, in the order of the boards and of the items.

    Read back with ``earwitness score --predictions``.
    """
    rows = (
        (system.name, decision.item_id, decision.condition, *answer_cells(decision))
        for board in data.boards
        for system in board.systems
        for decision in system.decisions
    )
    return csv_text([PREDICTION_COLUMNS, *rows])
