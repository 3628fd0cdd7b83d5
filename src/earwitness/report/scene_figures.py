"""Figures about scenes: a task's headline by system, and recall by reaction. Every number stands as text as well."""

from __future__ import annotations

from collections.abc import Sequence

from earwitness.report.figures import DARK_SWITCH, LIGHT_SWITCH, shorten
from earwitness.report.numbers import known, percent
from earwitness.report.scene_boards import SceneBoard
from earwitness.report.svg import Canvas
from earwitness.scenes.bank_records import REACTIONS
from earwitness.tasks.cares_scores import CaresScores


def headline_figure(
    board: SceneBoard, task: str, name: str, *, narrow: bool = False
) -> Canvas | None:
    """A task's headline of every system with its interval, chance, and the text-only control as a line.

    None where no system was asked with sound, or the task has no scale from 0 to 1.
    """
    from earwitness.report.scene_cells import headline

    rows = [(system, board.scores(task, system)) for system in board.systems]
    shown = [(system, found) for system, found in rows if isinstance(found, CaresScores)]
    if not shown:
        return None
    control = None
    if board.control is not None:
        found = board.scores(task, *board.control)
        control = found.headline if isinstance(found, CaresScores) else None
    chance = shown[0][1].chance
    width = 320.0 if narrow else 760.0
    left, right = (12.0, 308.0) if narrow else (212.0, 576.0)
    row, top = (54.0, 44.0) if narrow else (34.0, 40.0)
    bottom = top + row * len(shown)
    described = "; ".join(
        f"{system} {_words(headline(board, task, system, 'audio'))}" for system, _ in shown
    )
    extra = f" Text-only control {percent(control.value)}." if control is not None else ""
    canvas = Canvas(
        name,
        width,
        bottom + 24,
        f"{task} with 95% intervals, the recording as it is",
        f"{described}. Chance is {percent(chance)}.{extra}",
    )

    def x(share: float) -> float:
        return left + (right - left) * min(max(share, 0), 1)

    lines = [(top - 6, bottom)]
    if narrow:
        lines = [(top + row * k + 30, top + row * k + 46) for k in range(len(shown))]
    for upper, lower in lines:
        for tick in (0, 0.25, 0.5, 0.75, 1):
            canvas.line(x(tick), upper, x(tick), lower, "rule")
        canvas.line(x(chance), upper, x(chance), lower, "chance")
        if control is not None:
            canvas.line(x(control.value), upper, x(control.value), lower, "control")
    for tick in (0, 0.25, 0.5, 0.75, 1):
        canvas.text(
            x(tick), bottom + 15, f"{100 * tick:.0f}" + "%" * (tick == 1), "m", anchor="middle"
        )
    _key(canvas, left, chance, None if control is None else control.value)
    for number, (system, scores) in enumerate(shown):
        start = top + row * number
        middle = start + (38 if narrow else row / 2)
        words = _words(headline(board, task, system, "audio"))
        if narrow:
            canvas.text(left, start + 13, shorten(system, 40), "b")
            canvas.text(left, start + 27, words, "m")
        else:
            canvas.text(left - 14, middle + 4, shorten(system, 26), "b", anchor="end")
            canvas.text(right + 14, middle + 4, words)
        bounds = board.bounds.get((task, system, "audio"))
        if bounds is not None:
            length = max(x(bounds.high) - x(bounds.low), 2)
            canvas.patterned(x(bounds.low), middle - 5, length, 10, "hatched")
            continue
        estimate = scores.headline
        if known(estimate.low) and known(estimate.high):
            canvas.line(x(estimate.low), middle, x(estimate.high), middle, "whisker")
            for end in (estimate.low, estimate.high):
                canvas.line(x(end), middle - 4, x(end), middle + 4, "whisker")
        if known(estimate.value):
            canvas.circle(x(estimate.value), middle, 4.5, "dot")
    return canvas


def _key(canvas: Canvas, left: float, chance: float, control: float | None) -> None:
    """What the two upright lines are."""
    canvas.line(left, 12, left + 18, 12, "chance")
    words = f"chance {percent(chance)}"
    canvas.text(left + 24, 16, words, "m")
    if control is not None:
        at = left + 40 + 6.2 * len(words)
        canvas.line(at, 12, at + 18, 12, "control")
        canvas.text(at + 24, 16, f"text-only control {percent(control)}", "m")


def _words(cell: dict[str, object]) -> str:
    if cell.get("incomplete"):
        return f"incomplete: {cell['value']}"
    return f"{cell['value']}% ({cell['interval']})"


def recall_figures(board: SceneBoard, name: str) -> list[tuple[str, Canvas]]:
    """Recall by reaction of every system, with sound and with the sound taken away."""
    found = []
    for condition, title in (("audio", "Recall by reaction"), ("muted", "The sound taken away")):
        rows = [
            (system, scores)
            for system in board.systems
            if isinstance(scores := board.scores("reaction", system, condition), CaresScores)
        ]
        if rows:
            found.append((title, _heat(rows, f"{name}-{condition}", title)))
    return found


def _heat(rows: Sequence[tuple[str, CaresScores]], name: str, title: str) -> Canvas:
    left, top, width, height = 138.0, 26.0, 58.0, 28.0
    words = "; ".join(
        f"{system}: "
        + ", ".join(
            f"{each.label} {percent(each.recall.value, 0)}" for each in scores.scores.per_class
        )
        for system, scores in rows
    )
    canvas = Canvas(
        name,
        left + width * len(REACTIONS) + 4,
        top + height * len(rows) + 20,
        title,
        f"In percent. {words}.",
    )
    for number, reaction in enumerate(REACTIONS):
        canvas.text(left + width * (number + 0.5), top - 9, reaction, "m", anchor="middle")
    for place, (system, scores) in enumerate(rows):
        y = top + height * place
        canvas.text(left - 8, y + height / 2 + 4, shorten(system, 19), anchor="end")
        by_label = {row.label: row.recall.value for row in scores.scores.per_class}
        for number, reaction in enumerate(REACTIONS):
            share = by_label[reaction]
            x = left + width * number
            value = share if known(share) else 0.0
            canvas.rect(
                x + 1, y + 1, width - 2, height - 2, "cell", opacity=max(value, 0.035), radius=2
            )
            css = (
                "c" + (" l" if value > LIGHT_SWITCH else "") + (" d" if value > DARK_SWITCH else "")
            )
            text = percent(share, 0) + (" ign." if reaction in scores.ignored else "")
            canvas.text(x + width / 2, y + height / 2 + 4, text, css, anchor="middle")
    canvas.text(left, top + height * len(rows) + 14, "ign.: ignored, recall at most 7%", "m")
    return canvas
