"""What the page says of each board and system: figures as text, sentences, and the pictures beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from earwitness.report import figures
from earwitness.report.boards import Board
from earwitness.report.numbers import (
    MISSING,
    count,
    dollars,
    interval,
    known,
    p_value,
    percent,
    plural,
    points,
    points_interval,
    seconds,
)
from earwitness.report.tables import without_label
from earwitness.runs.outcomes import OUTCOME_KINDS
from earwitness.tasks.records import ClassScores, Comparison, Scores, System

ALPHA = 0.05
"""Level of the "apart" mark, after Holm."""

PAIRS_SHOWN = 200
"""Comparisons on the page; ``leaderboard.json`` has them all."""


def cluster_word(board: Board) -> str:
    """What intervals resample, as their method names it (``bootstrap by speaker (16)``).

    It is ``item`` where every item is a cluster of its own.
    """
    if all(scores.n_clusters == scores.n for scores in board.leaderboard.systems):
        return "item"
    for scores in board.leaderboard.systems:
        method = scores.accuracy_clustered.method
        if " by " in method:
            return method.split(" by ", 1)[1].split(" (")[0].strip().split(" ")[0] or "speaker"
    return "speaker"


def board_title(board: Board) -> str:
    kind = "Leaderboard" if board.condition == "audio" else "Control"
    return f"{kind}: {board.condition}" + (f", {board.set_name}" if board.set_name else "")


def board_view(board: Board) -> dict[str, Any]:
    """Everything the page shows of one board."""
    table = board.leaderboard
    systems = table.systems
    valence = figures.valence_figure(systems, f"{board.key}-lean")
    narrow_valence = figures.valence_figure(systems, f"{board.key}-lean-n", narrow=True)
    incomplete = {scores.name for scores in systems if not scores.complete}
    neutral = next((scores.neutral.label for scores in systems if scores.neutral), "")
    return {
        "id": board.key,
        "title": board_title(board),
        "summary": summary(board),
        "cluster_word": cluster_word(board),
        "incomplete": any(not scores.complete for scores in systems),
        "figure": figures.leaderboard_figure(table, f"{board.key}-acc").inline(),
        "figure_narrow": figures.leaderboard_figure(
            table, f"{board.key}-acc-n", narrow=True
        ).inline(),
        "rows": [_row(scores, table.comparisons, systems[0].name) for scores in systems],
        "has_valence": any(scores.valence for scores in systems),
        "has_neutral": bool(neutral),
        "neutral_label": neutral,
        "has_priors": any(scores.prior_weighted for scores in systems),
        "notes": list(table.notes),
        "valence": valence.inline() if valence else "",
        "valence_narrow": narrow_valence.inline() if narrow_valence else "",
        "pooled": _pooled(board) if table.pooled is not None and len(systems) > 1 else None,
        "pairs": [_pair(pair, incomplete) for pair in table.comparisons[:PAIRS_SHOWN]],
        "pairs_summary": _pairs_summary(table.comparisons),
        "systems": [
            _system(board, scores, system, number)
            for number, (scores, system) in enumerate(
                zip(systems, board.systems, strict=True), start=1
            )
        ],
    }


def _against_first(
    comparisons: Sequence[Comparison], first: str, name: str
) -> tuple[float, float] | None:
    """Difference of a system to the first one of the table, and its p after Holm."""
    for pair in comparisons:
        if (pair.a, pair.b) == (name, first):
            return pair.difference.value, pair.p_holm
        if (pair.a, pair.b) == (first, name):
            return -pair.difference.value, pair.p_holm
    return None


def summary(board: Board) -> str:
    """The finding in two sentences, claiming no order that the tests do not carry."""
    systems = board.leaderboard.systems
    closed = [scores for scores in systems if scores.complete and known(scores.accuracy.value)]
    if not closed:
        return "No run is complete, so there are bounds and no accuracy yet."
    best = closed[0]
    words = (
        f"Highest accuracy: {best.name} with {percent(best.accuracy.value)}% of {count(best.n)} items"
        f" ({interval(best.accuracy)}); chance is {percent(1 / len(board.leaderboard.labels))}%."
    )
    rest = [scores.name for scores in closed[1:]]
    tested = [
        (name, found)
        for name in rest
        if (found := _against_first(board.leaderboard.comparisons, best.name, name)) is not None
    ]
    if tested:
        level = [name for name, (_, holm) in tested if not (known(holm) and holm < ALPHA)]
        words += (
            " Every other system is apart from it after Holm."
            if not level
            else f" Not distinguishable from it here: {', '.join(level)}."
        )
    return words


def _row(scores: Scores, comparisons: Sequence[Comparison], first: str) -> dict[str, Any]:
    against = "first" if scores.name == first else MISSING
    at_least = "" if scores.complete else "≥ "
    if scores.complete and (found := _against_first(comparisons, first, scores.name)) is not None:
        against = f"{points(found[0])} (p {p_value(found[1])})"
    return {
        "name": scores.name,
        "complete": scores.complete,
        "accuracy": percent(scores.accuracy.value),
        "wilson": interval(scores.accuracy),
        "clustered": interval(scores.accuracy_clustered),
        "bounds": f"{percent(scores.bounds[0])} to {percent(scores.bounds[1])}",
        "macro": at_least + percent(scores.macro_recall.value),
        "valence": (at_least if scores.valence else "")
        + percent(scores.valence.accuracy.value if scores.valence else None),
        "neutral": percent(scores.neutral.share_of_outputs if scores.neutral else None),
        "priors": _with_interval(scores),
        "against": against,
        "cost": dollars(scores.cost_usd),
        "latency": seconds(scores.latency_median_s),
        "n": count(scores.n),
        "right": count(scores.right),
        "outcomes": [count(scores.outcomes.get(kind, 0)) for kind in OUTCOME_KINDS],
    }


def _with_interval(scores: Scores) -> str:
    if scores.prior_weighted is None or not known(scores.prior_weighted.value):
        return MISSING
    return f"{percent(scores.prior_weighted.value)} ({interval(scores.prior_weighted)})"


def _class(row: ClassScores) -> dict[str, str]:
    return {
        "label": row.label,
        "support": count(row.support),
        "predicted": count(row.predicted),
        "correct": count(row.correct),
        "precision": percent(row.precision.value),
        "precision_ci": interval(row.precision),
        "recall": percent(row.recall.value),
        "recall_ci": interval(row.recall),
        "f1": percent(row.f1.value),
        "f1_ci": interval(row.f1),
    }


def _top_confusions(scores: Scores) -> list[dict[str, str]]:
    from earwitness.tasks.scoring import top_confusions

    return [
        {
            "gold": row.gold,
            "answer": row.predicted,
            "count": count(row.count),
            "share": percent(row.share, 0),
        }
        for row in top_confusions(scores, 6)
    ]


def _pooled(board: Board) -> dict[str, Any]:
    pool = board.leaderboard.pooled
    assert pool is not None
    systems = board.leaderboard.systems
    closed = [s.accuracy.value for s in systems if s.complete and known(s.accuracy.value)]
    words = f"{count(pool.right)} right of {count(pool.n)} answers asked for."
    if closed:
        words += f" Mean accuracy of the complete systems {percent(sum(closed) / len(closed))}%."
    words += f" {_neutral_sentence(pool)}"
    return {
        "summary": words.strip(),
        "confusion": figures.confusion_figure(pool, f"{board.key}-pool-conf").inline(),
        "classes_figure": figures.class_figure(
            pool.per_class, f"{board.key}-pool-class", "Precision and recall, all models"
        ).inline(),
        "classes": [_class(row) for row in pool.per_class],
        "top": _top_confusions(pool),
    }


def _neutral_sentence(scores: Scores) -> str:
    bias = scores.neutral
    if bias is None or not bias.outputs:
        return ""
    words = (
        f"{bias.label.capitalize()} was the answer {count(bias.predicted)} times in {count(bias.outputs)}"
        f" ({percent(bias.share_of_outputs)}%)"
    )
    if bias.errors:
        words += f" and is {count(bias.wrong)} of {plural(bias.errors, 'error')} ({percent(bias.share_of_errors)}%)"
        labelled = bias.outputs - scores.right
        if 0 < labelled != bias.errors:
            words += f", or {percent(bias.wrong / labelled)}% of the {count(labelled)} wrong labels"
    return words + "."


def _pairs_summary(pairs: Sequence[Comparison]) -> str:
    if not pairs:
        return ""
    apart = sum(pair.p_holm < ALPHA for pair in pairs)
    words = (
        f"{count(apart)} of {plural(len(pairs), 'pair')} differ at 5% after Holm over the family"
        f" “{pairs[0].family}”."
    )
    if len(pairs) > PAIRS_SHOWN:
        words += f" The first {PAIRS_SHOWN} are shown; leaderboard.json has all."
    return words


def _pair(pair: Comparison, incomplete: set[str]) -> dict[str, Any]:
    return {
        "a": pair.a,
        "b": pair.b,
        "n": count(pair.n_items),
        "clusters": count(pair.n_clusters),
        "points": points(pair.difference.value),
        "interval": points_interval(pair.difference),
        "flip": p_value(pair.p_sign_flip),
        "holm": p_value(pair.p_holm),
        "mcnemar": p_value(pair.p_mcnemar),
        "apart": pair.p_holm < ALPHA,
        "incomplete": bool({pair.a, pair.b} & incomplete),
    }


def _system(board: Board, scores: Scores, system: System, number: int) -> dict[str, Any]:
    name = f"{board.key}-m{number}"
    view: dict[str, Any] = {
        "id": name,
        "name": scores.name,
        "line": figures.accuracy_words(scores)
        + ("" if system.origin == "run" else f" · from {system.origin}"),
        "sentences": _sentences(scores),
        "confusion": figures.confusion_figure(scores, f"{name}-conf").inline(),
        "classes_figure": figures.class_figure(
            scores.per_class, f"{name}-class", f"Precision and recall of {scores.name}"
        ).inline(),
        "classes": [_class(row) for row in scores.per_class],
        "groups": [
            {
                "name": group,
                "rows": [
                    {
                        "value": value or "(not given)",
                        "n": MISSING
                        if estimate.denominator is None
                        else count(estimate.denominator),
                        "accuracy": percent(estimate.value),
                        "interval": interval(estimate),
                    }
                    for value, estimate in sorted(values.items())
                ],
            }
            for group, values in sorted(scores.by_group.items())
        ],
        "rules": [
            (rule, count(number))
            for rule, number in sorted(
                scores.rules.items(), key=lambda entry: (-entry[1], entry[0])
            )
        ],
        "reliability": "",
    }
    if scores.calibration is not None and scores.calibration.n:
        view |= {
            "reliability": figures.reliability_figure(scores.calibration, f"{name}-rel").inline(
                "square"
            ),
            "risk": figures.risk_coverage_figure(scores.calibration, f"{name}-risk").inline(
                "square"
            ),
            "calibrated": count(scores.calibration.n),
            "ece": percent(scores.calibration.ece),
        }
    return view


def _sentences(scores: Scores) -> str:
    parts = [f"{count(scores.right)} right of {plural(scores.n, 'item')}."]
    if without_label(scores):
        parts.append(f"{plural(without_label(scores), 'reply', 'replies')} gave no label.")
    if scores.outcomes.get("failed", 0):
        parts.append(f"{plural(scores.outcomes['failed'], 'item')} never answered by the model.")
    parts.append(_neutral_sentence(scores))
    if scores.valence is not None and known(scores.valence.accuracy.value):
        leaning = f"; its answers lean {scores.valence.leaning}" if scores.valence.leaning else ""
        parts.append(
            f"Valence is right in {percent(scores.valence.accuracy.value)}%"
            f" ({interval(scores.valence.accuracy)}){leaning}."
        )
    if known(scores.latency_p95_s):
        parts.append(
            f"Latency: median {seconds(scores.latency_median_s)} s, 95% within {seconds(scores.latency_p95_s)} s."
        )
    return " ".join(part for part in parts if part)
