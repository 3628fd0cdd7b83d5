"""The leaderboard in a terminal: readable at 80 columns, intervals drawn in text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from earwitness.report.figures import shorten
from earwitness.report.numbers import (
    dollars,
    interval,
    known,
    p_value,
    percent,
    points,
    points_interval,
    seconds,
)
from earwitness.runs.outcomes import OUTCOME_KINDS
from earwitness.tasks.records import Leaderboard, Scores

if TYPE_CHECKING:
    from rich.console import Console

    from earwitness.report.boards import ReportData
    from earwitness.report.scene_boards import SceneBoard

BAR_WIDTH = 21
"""Characters of an interval bar: one for every five percent, from 0 to 100."""

UNITS = {
    "reaction": "bal. acc.",
    "location": "accuracy",
    "sound": "accuracy",
    "grounding": "d′",
    "summary": "mentioned",
}
"""Headlines of the tasks about scenes, short enough for 80 columns."""

MAX_PAIRS = 10
"""Comparisons printed; the files have them all."""


def interval_bar(
    scores: Scores, chance: float, *, width: int = BAR_WIDTH, plain: bool = False
) -> str:
    """Accuracy and its interval on a line from 0 to 100%, chance marked.

    An incomplete run shows its bounds as a row of ``?``.

    Example
    -------
    ``··:···├─●─┤··········``
    """
    ground, mark, left, right, dash, dot = ".:[]-o" if plain else "·┊├┤─●"

    def place(share: float) -> int:
        return round(min(max(share, 0), 1) * (width - 1))

    cells = [ground] * width
    cells[place(chance)] = mark
    if not scores.complete:
        for at in range(place(scores.bounds[0]), place(scores.bounds[1]) + 1):
            cells[at] = "?"
        return "".join(cells)
    if known(scores.accuracy.low) and known(scores.accuracy.high):
        low, high = place(scores.accuracy.low), place(scores.accuracy.high)
        for at in range(low, high + 1):
            cells[at] = dash
        cells[low], cells[high] = left, right
    if known(scores.accuracy.value):
        cells[place(scores.accuracy.value)] = dot
    return "".join(cells)


def print_leaderboard(console: Console, board: Leaderboard) -> None:
    """Print systems, outcome counts, comparisons and notes."""
    from rich import box

    chance = 1 / len(board.labels)
    plain = not console.encoding.lower().startswith("utf")
    name_width = max(12, min(24, console.width - 56))
    table = Table(
        box=box.ASCII if plain else box.SIMPLE_HEAD,
        title=Text(f"{board.task} · condition {board.condition}"),
        title_justify="left",
        pad_edge=False,
        padding=(0, 1),
    )
    table.add_column("model", no_wrap=True)
    table.add_column("acc %", justify="right", no_wrap=True)
    table.add_column("95%", justify="left", no_wrap=True)
    table.add_column(f"0 {'chance ' + percent(chance, 0) + '%':^15} 100", no_wrap=True)
    table.add_column("recall", justify="right", no_wrap=True)
    for scores in board.systems:
        low, high = scores.bounds
        table.add_row(
            Text(shorten(scores.name, name_width)),
            percent(scores.accuracy.value) if scores.complete else "–",
            interval(scores.accuracy) if scores.complete else f"{percent(low)} to {percent(high)}",
            Text(interval_bar(scores, chance, plain=plain)),
            percent(scores.macro_recall.value),
        )
    console.print(table)
    for scores in board.systems:
        console.print(Text(_counts_line(scores)), soft_wrap=False)
    incomplete = [scores.name for scores in board.systems if not scores.complete]
    if incomplete:
        console.print(
            Text(
                f"INCOMPLETE: {', '.join(incomplete)}. Items the model never answered may be right or wrong; the bounds "
                "show both. Run the same command again, or close the run with --accept-failed.",
                style="bold yellow",
            )
        )
    if board.comparisons:
        _print_pairs(console, board)
    for note in board.notes:
        console.print(Text(f"note: {note}", style="dim"))


def _counts_line(scores: Scores) -> str:
    counts = ", ".join(
        f"{scores.outcomes.get(kind, 0):,} {kind}"
        for kind in OUTCOME_KINDS
        if scores.outcomes.get(kind, 0)
    )
    extra = [f"{scores.right:,} right of {scores.n:,}", counts or "no outcome"]
    if scores.neutral is not None and known(scores.neutral.share_of_outputs):
        extra.append(
            f"{scores.neutral.label} {percent(scores.neutral.share_of_outputs, 0)}% of answers"
        )
    if scores.cost_usd is not None:
        extra.append(f"${dollars(scores.cost_usd)}")
    if scores.latency_median_s is not None:
        extra.append(f"{seconds(scores.latency_median_s)} s")
    return f"  {scores.name}: " + " · ".join(extra)


def _print_pairs(console: Console, board: Leaderboard) -> None:
    from rich import box

    plain = not console.encoding.lower().startswith("utf")
    table = Table(
        box=box.ASCII if plain else box.SIMPLE_HEAD,
        title=Text("pairwise, same items, sign-flip by cluster"),
        title_justify="left",
        pad_edge=False,
    )
    table.add_column("pair", no_wrap=True)
    table.add_column("points", justify="right", no_wrap=True)
    table.add_column("95%", no_wrap=True)
    table.add_column("p Holm", justify="right", no_wrap=True)
    width = max(8, (console.width - 46) // 2)
    ordered = sorted(board.comparisons, key=lambda pair: (pair.p_holm, pair.a, pair.b))
    for pair in ordered[:MAX_PAIRS]:
        table.add_row(
            Text(f"{shorten(pair.a, width)} − {shorten(pair.b, width)}"),
            points(pair.difference.value),
            points_interval(pair.difference),
            p_value(pair.p_holm),
        )
    console.print(table)
    if len(ordered) > MAX_PAIRS:
        console.print(
            Text(f"note: {len(ordered) - MAX_PAIRS} more pairs in leaderboard.json", style="dim")
        )


def print_boards(console: Console, data: ReportData, *, rules: bool = False) -> None:
    """Print every leaderboard of a report with what must be known beside the figures.

    ``rules`` adds, for each system, which rule decided how many replies.
    """
    for board in data.boards:
        if board.set_name:
            console.print(Text(board.set_name, style="bold"))
        print_leaderboard(console, board.leaderboard)
        for scores in board.leaderboard.systems if rules else ():
            table = Table("rule", "replies", title=Text(scores.name), title_justify="left")
            for rule, count in sorted(scores.rules.items(), key=lambda pair: (-pair[1], pair[0])):
                table.add_row(Text(rule), str(count))
            console.print(table)
    if data.synthetic:
        warning = "Synthetic clips: plumbing only. This is not emotion recognition."
        console.print(Text(warning, style="bold yellow"))
    for signs in data.signs:
        for line in signs.findings():
            console.print(Text(f"note: {signs.system}: {line}", style="yellow"))


def print_scene_boards(console: Console, boards: Sequence[SceneBoard]) -> None:
    """Print every corpus: headlines by system and task, the findings in words, and what a reader must know."""
    from rich import box

    from earwitness.report.scene_table import control_words, sentences, table_rows

    plain = not console.encoding.lower().startswith("utf")
    for board in boards:
        table = Table(
            box=box.ASCII if plain else box.SIMPLE_HEAD,
            title=Text(f"scenes of {board.name} · percent, 95% intervals by {board.table.cluster}"),
            title_justify="left",
            pad_edge=False,
            padding=(0, 1),
        )
        table.add_column("model", no_wrap=True)
        for task in board.tasks:
            table.add_column(f"{task}\n{UNITS[task]}", justify="right", no_wrap=True)
        for row in table_rows(board):
            name = shorten(row["name"], 17) + (f"\n{row['condition']}" if row["condition"] else "")
            cells = [_scene_cell(row["cells"][task], row["marks"][task]) for task in board.tasks]
            table.add_row(Text(name), *cells)
        console.print(table)
        for line in (*sentences(board), control_words(board)):
            console.print(Text(line))
        for line in _doubts(board):
            console.print(Text(f"note: {line}", style="yellow"))
        for note in board.notes:
            console.print(Text(f"note: {note}", style="dim"))
        if not board.complete:
            console.print(
                Text(
                    "INCOMPLETE: items were never answered; bounds show what they may come to. Run the same command"
                    " again, or close the run with --accept-failed.",
                    style="bold yellow",
                )
            )


def _doubts(board: SceneBoard) -> list[str]:
    """What is a reason to look, one line a system: each flag with the tasks it was found in."""
    lines = []
    for system in board.systems:
        flags: dict[str, list[str]] = {}
        for signs in board.signs:
            for flag in signs.flags if signs.system == system else ():
                flags.setdefault(flag, []).append(signs.task)
        scores = board.scores("reaction", system)
        if ignored := getattr(scores, "ignored", ()):
            flags[f"ignores {', '.join(ignored)}"] = ["reaction"]
        if flags:
            found = "; ".join(f"{flag} ({', '.join(tasks)})" for flag, tasks in flags.items())
            lines.append(f"{system}: {found}")
    return lines


def _scene_cell(cell: Mapping[str, Any], mark: str) -> Text:
    if cell["none"]:
        return Text("–" if cell["none"] == "not asked" else str(cell["none"]), style="dim")
    sign = {"above": " ▲", "below": " ▼"}.get(mark, "")
    if cell["incomplete"]:
        return Text(str(cell["value"]), style="yellow")
    return Text(f"{cell['value']}{sign}\n{cell['short']}")
