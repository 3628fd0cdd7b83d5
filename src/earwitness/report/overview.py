"""What the page says of all boards together: its lead, its warnings, conditions and signs of not listening."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from earwitness.report.boards import ReportData, clips_of
from earwitness.report.cards import batch_words
from earwitness.report.figures import shorten
from earwitness.report.numbers import (
    MISSING,
    count,
    p_value,
    percent,
    plural,
    points,
    points_interval,
)
from earwitness.report.scene_boards import SceneBoard
from earwitness.report.views import cluster_word
from earwitness.tasks.deafness import DeafnessSigns, Unchanged


def lead(data: ReportData) -> str:
    """What was measured, on what, with how much."""
    first = data.boards[0]
    names = {system.name for board in data.boards for system in board.systems}
    most = max(scores.n for scores in first.leaderboard.systems)
    clusters = max(scores.n_clusters for scores in first.leaderboard.systems)
    task = (
        "the emotion a voice expresses, one of "
        if data.task == "emotion"
        else f"{data.task}, one of "
    )
    where = plural(most, "clip")
    if (word := cluster_word(first)) != "item":
        where += f" by {plural(clusters, word)}"
    if first.set_name:
        licence = next(
            (str(clips_of(s)["licence"]) for s in first.systems if clips_of(s).get("licence")), ""
        )
        where += f" of {first.set_name}" + (f" ({licence})" if licence else "")
    words = f"{plural(len(names), 'system')} asked for {task}{len(data.labels)} labels, on {where}."
    controls = sorted({board.condition for board in data.boards} - {"audio"})
    if controls:
        words += f" Controls: {', '.join(controls)}."
    words += _cut_recordings(data) + batch_words(
        (system.name, system.card) for board in data.boards for system in board.systems
    )
    days = sorted(
        str(system.card[key])[:10]
        for board in data.boards
        for system in board.systems
        for key in ("started", "finished")
        if system.card.get(key)
    )
    if days:
        words += (
            f" Asked on {days[0]}."
            if days[0] == days[-1]
            else f" Asked from {days[0]} to {days[-1]}."
        )
    return words


def _cut_recordings(data: ReportData) -> str:
    """What was done with recordings longer than a model takes; empty where nothing was."""
    told: dict[str, str] = {}
    for board in data.boards:
        for system in board.systems:
            cut = system.card.get("long_audio")
            if isinstance(cut, dict):
                parts = (
                    [f"{cut['cropped']} cropped around their moment"] if cut.get("cropped") else []
                )
                if cut.get("chunked"):
                    parts.append(f"{cut['chunked']} asked in {cut['chunks']} chunks")
                told[system.name] = " and ".join(parts)
    named = "; ".join(f"{name}: {what}" for name, what in told.items())
    return f" Items too long for a model ({named}); the rule is in its run card." if named else ""


def warnings(data: ReportData) -> list[dict[str, str]]:
    """The badges at the top of the page."""
    found = []
    if data.synthetic:
        found.append(
            {
                "css": "synthetic",
                "title": "Synthetic clips: plumbing only. This is not emotion recognition.",
                "text": "The clips were made by a speech synthesiser to show that every part works. "
                "No figure here says anything about how well a model hears emotion.",
            }
        )
    open_runs = [
        (scores, board)
        for board in data.boards
        for scores in board.leaderboard.systems
        if not scores.complete
    ]
    if open_runs:
        listed = "; ".join(
            f"{scores.name} ({board.condition}): {plural(scores.outcomes.get('failed', 0), 'item')} never answered, accuracy"
            f" between {percent(scores.bounds[0])} and {percent(scores.bounds[1])}%"
            for scores, board in open_runs
        )
        found.append(
            {
                "css": "incomplete",
                "title": f"Incomplete: {plural(len(open_runs), 'run')} with items the model never answered.",
                "text": listed + ". Run the same command again to ask only those.",
            }
        )
    return found


def scene_warnings(boards: Sequence[SceneBoard]) -> list[dict[str, str]]:
    """Badges about scenes: runs with items that were never answered, with what their headlines may become."""
    from earwitness.report.scene_cells import headline

    listed = [
        f"{system}, {task} ({condition}): {plural(bounds.failed, 'item')} never answered, "
        f"{headline(board, task, system, condition)['value']}"
        for board in boards
        for (task, system, condition), bounds in board.bounds.items()
    ]
    if not listed:
        return []
    return [
        {
            "css": "incomplete",
            "title": f"Incomplete: {plural(len(listed), 'part')} of runs about scenes with items the model never answered.",
            "text": "; ".join(listed) + ". Run the same command again to ask only those.",
        }
    ]


def difference_views(data: ReportData) -> list[dict[str, str]]:
    several = len({row.set_name for row in data.differences}) > 1
    return [
        {
            "system": row.system + (f" ({row.set_name})" if several else ""),
            "control": row.second,
            "n": count(row.comparison.n_items),
            "points": points(row.comparison.difference.value),
            "interval": points_interval(row.comparison.difference),
            "flip": p_value(row.comparison.p_sign_flip),
            "holm": p_value(row.comparison.p_holm),
            "mcnemar": p_value(row.comparison.p_mcnemar),
        }
        for row in data.differences
    ]


def sign_views(signs: Sequence[DeafnessSigns]) -> list[dict[str, Any]]:
    """The table of signs of not listening, one row a system and task."""
    return [
        {
            "system": row.system,
            "task": row.task,
            "flags": row.flags,
            "findings": row.findings(),
            "distinct": f"{count(row.distinct)} of {count(row.replies)}",
            "top": shorten(" ".join(row.top_reply.split()), 60) or MISSING,
            "share": percent(row.top_count / row.replies if row.replies else None),
            "copied": count(row.copied),
            "echoes": MISSING if row.echoes is None else count(row.echoes),
            "declined": count(row.declined),
            **{
                name: _pair_view(row.unchanged_under(name))
                for name in ("silence", "muted", "speech-only")
            },
        }
        for row in signs
    ]


def _pair_view(pair: Unchanged | None) -> str:
    """``120 of 140 (86%; chance 31%)``."""
    if pair is None or not pair.both:
        return MISSING
    return (
        f"{count(pair.same)} of {count(pair.both)}"
        f" ({percent(pair.share, 0)}%; chance {percent(pair.by_chance, 0)}%)"
    )
