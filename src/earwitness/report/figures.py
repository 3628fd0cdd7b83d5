"""The figures of a report: intervals always drawn, every number also as text, nothing told by colour alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from earwitness.report.numbers import count, interval, known, percent
from earwitness.report.svg import Canvas
from earwitness.tasks.records import Calibration, ClassScores, Estimate, Leaderboard, Scores
from earwitness.tasks.tally import NO_LABEL_NAME
from earwitness.tasks.valence import NO_VALENCE

LIGHT_SWITCH = 0.706
"""Share from which a heat-map cell carries light text on the light page (equal contrast of both, 4.6 to 1)."""
DARK_SWITCH = 0.556
"""Share from which a heat-map cell carries dark text on the dark page."""

Scale = Callable[[float], float]
"""From a share to a coordinate."""

VALENCES = ("negative", "neutral", "positive", NO_VALENCE, NO_LABEL_NAME)
"""Parts of a valence bar, in this order; the last two are surprise and replies without a label."""

_SHARE_STYLES = ("bar", "hatched", "bar-soft", "dotted", "bar-empty")


def shorten(name: str, length: int) -> str:
    """A name that fits, cut in its middle, where model names differ least.

    Example
    -------
    >>> shorten("openai/gpt-audio-2025-08-28", 17)
    'openai/g…25-08-28'
    """
    if len(name) <= length:
        return name
    kept = length - 1
    return f"{name[: kept // 2]}…{name[-(kept - kept // 2) :]}"


def accuracy_words(scores: Scores) -> str:
    """Accuracy with its interval, or the bounds of an incomplete run, in words."""
    if not scores.complete:
        low, high = scores.bounds
        return f"incomplete: {percent(low)} to {percent(high)}%"
    return f"{percent(scores.accuracy.value)}% ({interval(scores.accuracy)})"


def leaderboard_figure(board: Leaderboard, name: str, *, narrow: bool = False) -> Canvas:
    """Accuracy of every system with both intervals and the line of chance.

    The wide form has names at the left and figures at the right; the narrow one, for phones, has them
    above the intervals.
    """
    systems = board.systems
    chance = 1 / len(board.labels)
    width = 320.0 if narrow else 760.0
    left, right = (12.0, 308.0) if narrow else (212.0, 576.0)
    row = 54.0 if narrow else 34.0
    top = 26.0
    bottom = top + row * len(systems)
    words = "; ".join(f"{scores.name} {accuracy_words(scores)}" for scores in systems)
    canvas = Canvas(
        name,
        width,
        bottom + 24,
        f"Accuracy with 95% intervals, condition {board.condition}",
        f"{words}. Chance is {percent(chance)}%.",
    )

    def x(share: float) -> float:
        return left + (right - left) * min(max(share, 0), 1)

    strips = [(top + row * number + 30, top + row * number + 46) for number in range(len(systems))]
    for upper, lower in strips if narrow else [(top - 6, bottom)]:
        for tick in (0, 0.25, 0.5, 0.75, 1):
            canvas.line(x(tick), upper, x(tick), lower, "rule")
        canvas.line(x(chance), upper, x(chance), lower, "chance")
    for tick in (0, 0.25, 0.5, 0.75, 1):
        words = f"{100 * tick:.0f}" + ("%" if tick == 1 else "")
        canvas.text(x(tick), bottom + 15, words, "m", anchor="middle")
    if narrow:
        canvas.text(left, top - 11, f"dashed: chance, {percent(chance)}%", "m")
    else:
        canvas.text(x(chance), top - 11, f"chance {percent(chance)}", "m", anchor="middle")
    for number, scores in enumerate(systems):
        start = top + row * number
        middle = start + (38 if narrow else row / 2)
        if narrow:
            canvas.text(left, start + 13, shorten(scores.name, 40), "b")
            canvas.text(left, start + 27, accuracy_words(scores), "m")
        else:
            canvas.text(left - 14, middle + 4, shorten(scores.name, 26), "b", anchor="end")
            canvas.text(right + 14, middle + 4, accuracy_words(scores))
        _intervals(canvas, scores, x, middle)
    return canvas


def _intervals(canvas: Canvas, scores: Scores, at: Scale, middle: float) -> None:
    if not scores.complete:
        low, high = scores.bounds
        canvas.patterned(at(low), middle - 5, max(at(high) - at(low), 2), 10, "hatched")
        return
    clustered = scores.accuracy_clustered
    if known(clustered.low) and known(clustered.high):
        canvas.rect(
            at(clustered.low),
            middle - 6,
            max(at(clustered.high) - at(clustered.low), 1),
            12,
            "band",
            radius=2,
        )
    _whisker(canvas, scores.accuracy, at, middle, "whisker", 4)
    if known(scores.accuracy.value):
        canvas.circle(at(scores.accuracy.value), middle, 4.5, "dot")


def _whisker(
    canvas: Canvas, estimate: Estimate, at: Scale, middle: float, css: str, cap: float
) -> None:
    if not (known(estimate.low) and known(estimate.high)):
        return
    canvas.line(at(estimate.low), middle, at(estimate.high), middle, css)
    for end in (estimate.low, estimate.high):
        canvas.line(at(end), middle - cap, at(end), middle + cap, css)


def class_figure(per_class: Sequence[ClassScores], name: str, title: str) -> Canvas:
    """Precision and recall of every label: two marks of different shape and line, with intervals."""
    left, right, row, top = 84.0, 254.0, 32.0, 24.0
    bottom = top + row * len(per_class)
    words = "; ".join(
        f"{scores.label}: precision {percent(scores.precision.value)}%, recall {percent(scores.recall.value)}%"
        for scores in per_class
    )
    canvas = Canvas(name, 340, bottom + 22, title, words + ".")

    def x(share: float) -> float:
        return left + (right - left) * min(max(share, 0), 1)

    canvas.circle(left + 4, 10, 4, "dot")
    canvas.text(left + 12, 14, "precision", "m")
    canvas.rect(left + 84, 6, 8, 8, "diamond")
    canvas.text(left + 97, 14, "recall", "m")
    canvas.text(300, 14, "prec.", "m", anchor="end")
    canvas.text(338, 14, "recall", "m", anchor="end")
    for tick in (0, 0.25, 0.5, 0.75, 1):
        canvas.line(x(tick), top, x(tick), bottom, "rule")
        canvas.text(x(tick), bottom + 14, f"{100 * tick:.0f}", "m", anchor="middle")
    for number, scores in enumerate(per_class):
        upper = top + row * number + 10
        lower = upper + 12
        canvas.text(left - 8, upper + 10, shorten(scores.label, 12), anchor="end")
        _whisker(canvas, scores.precision, x, upper, "whisker", 3)
        _whisker(canvas, scores.recall, x, lower, "whisker-2", 3)
        if known(scores.precision.value):
            canvas.circle(x(scores.precision.value), upper, 4, "dot")
        if known(scores.recall.value):
            canvas.rect(x(scores.recall.value) - 3.5, lower - 3.5, 7, 7, "diamond")
        canvas.text(300, upper + 10, percent(scores.precision.value), anchor="end")
        canvas.text(338, upper + 10, percent(scores.recall.value), anchor="end")
    return canvas


def confusion_figure(scores: Scores, name: str) -> Canvas:
    """Counts of every gold label (rows) by answer (columns), shaded by the share of the row.

    The diagonal is outlined; every cell carries its count.
    """
    confusion = scores.confusion
    columns, rows = len(confusion.columns), len(confusion.rows)
    longest = max(len(shorten(label, 10)) for label in confusion.columns)
    top = 52.0 if longest < 10 else 60.0
    left, cell_width, cell_height = 76.0, max(244 / columns, 29), 27.0
    largest = max((value for row in confusion.counts for value in row), default=0)
    cell_width = max(cell_width, 8 * len(str(largest)) + 4.0)
    words = "; ".join(
        f"{gold}: "
        + (
            ", ".join(
                f"{answer} {value}"
                for answer, value in zip(confusion.columns, row, strict=True)
                if value
            )
            or "nothing"
        )
        for gold, row in zip(confusion.rows, confusion.counts, strict=True)
    )
    canvas = Canvas(
        name,
        left + cell_width * columns + 30,
        top + cell_height * rows + 20,
        f"Confusion of {scores.name}: gold label by answer",
        f"Answers by gold label. {words}.",
    )
    for number, label in enumerate(confusion.columns):
        canvas.text(
            left + cell_width * (number + 0.5) + 3, top - 6, shorten(label, 10), "m", turn=-45
        )
    for i, (gold, row) in enumerate(zip(confusion.rows, confusion.counts, strict=True)):
        y = top + cell_height * i
        total = sum(row)
        canvas.text(left - 7, y + cell_height / 2 + 4, shorten(gold, 11), anchor="end")
        for j, value in enumerate(row):
            share = value / total if total else 0.0
            x = left + cell_width * j
            canvas.rect(
                x + 0.5,
                y + 0.5,
                cell_width - 1,
                cell_height - 1,
                "cell",
                opacity=max(share, 0.035),
                radius=2,
            )
            css = (
                "c" + (" l" if share > LIGHT_SWITCH else "") + (" d" if share > DARK_SWITCH else "")
            )
            canvas.text(
                x + cell_width / 2, y + cell_height / 2 + 4, str(value), css, anchor="middle"
            )
    for i, gold in enumerate(confusion.rows):
        if gold in confusion.columns:
            j = confusion.columns.index(gold)
            canvas.rect(
                left + cell_width * j + 1,
                top + cell_height * i + 1,
                cell_width - 2,
                cell_height - 2,
                "diagonal",
                radius=2,
            )
    canvas.text(left, top + cell_height * rows + 14, "answer →   (rows: gold label)", "m")
    return canvas


def share_name(key: str) -> str:
    """A part of a valence bar as a reader calls it."""
    return "no valence" if key == NO_VALENCE else key


def share_order(shares: Mapping[str, float]) -> tuple[str, ...]:
    """Valences in their usual order, then whatever else a task has."""
    return tuple(key for key in VALENCES if key in shares) + tuple(
        sorted(key for key in shares if key not in VALENCES)
    )


def valence_figure(systems: Sequence[Scores], name: str, *, narrow: bool = False) -> Canvas | None:
    """Share of each valence in a system's outputs, as one bar a system; None where no task has a valence."""
    rated = [scores for scores in systems if scores.valence is not None]
    if not rated:
        return None
    keys = share_order(
        {
            key: 0.0
            for scores in rated
            for key in (scores.valence.output_shares if scores.valence else ())
        }
    )
    width = 320.0 if narrow else 760.0
    left, right = (2.0, 318.0) if narrow else (212.0, 746.0)
    row, top = (48.0, 46.0) if narrow else (32.0, 28.0)
    words = "; ".join(
        f"{scores.name}: "
        + ", ".join(
            f"{share_name(key)} {percent(scores.valence.output_shares.get(key))}%" for key in keys
        )
        for scores in rated
        if scores.valence is not None
    )
    canvas = Canvas(
        name, width, top + row * len(rated) + 4, "Valence of the answers given", words + "."
    )
    at, line = left, 4.0
    for number, key in enumerate(keys):
        words = share_name(key)
        needed = 30 + 6.4 * len(words)
        if at + needed > right + 8:
            at, line = left, line + 18
        _share(canvas, number, at, line, 12, 12)
        canvas.text(at + 17, line + 10, words, "m")
        at += needed
    for number, scores in enumerate(rated):
        if scores.valence is None:
            continue
        y = top + row * number
        if narrow:
            canvas.text(left, y + 13, shorten(scores.name, 44), "b")
            y += 18
        else:
            canvas.text(left - 14, y + 17, shorten(scores.name, 26), "b", anchor="end")
            y += 2
        x = left
        for place, key in enumerate(keys):
            share = scores.valence.output_shares.get(key, float("nan"))
            if not known(share) or share <= 0:
                continue
            length = (right - left) * share
            _share(canvas, place, x, y, length, 22)
            words = percent(share, 0)
            if length > 24:
                canvas.rect(x + length / 2 - 10, y + 4, 20, 14, "ground", radius=2)
                canvas.text(x + length / 2, y + 15, words, anchor="middle")
            x += length
        if x == left:
            canvas.text(left, y + 15, "no answer with a valence", "m")
    return canvas


def _share(canvas: Canvas, place: int, x: float, y: float, width: float, height: float) -> None:
    style = _SHARE_STYLES[place % len(_SHARE_STYLES)]
    if style in ("hatched", "dotted"):
        canvas.patterned(x, y, width, height, style)
    else:
        canvas.rect(x, y, width, height, style)


def reliability_figure(calibration: Calibration, name: str) -> Canvas:
    """Accuracy against mean confidence in bins; the diagonal is perfect calibration."""
    words = "; ".join(
        f"confidence {percent(confidence)}%, right {percent(accuracy)}% of {count(number)}"
        for confidence, accuracy, number in calibration.bins
        if number
    )
    canvas, x, y = _square(
        name,
        f"Reliability: expected calibration error {percent(calibration.ece)}%",
        words + ".",
        "confidence, %",
        "right, %",
    )
    canvas.line(x(0), y(0), x(1), y(1), "chance")
    filled = [row for row in calibration.bins if row[2]]
    canvas.path([(x(confidence), y(accuracy)) for confidence, accuracy, _ in filled], "curve")
    most = max((row[2] for row in filled), default=1)
    for confidence, accuracy, number in filled:
        canvas.circle(x(confidence), y(accuracy), 3 + 4 * (number / most) ** 0.5, "dot")
    return canvas


def risk_coverage_figure(calibration: Calibration, name: str) -> Canvas:
    """Error rate among the most confident answers, by the share of answers kept."""
    rows = thinned(calibration.risk_coverage, 200)
    marks = (
        [min(rows, key=lambda row: abs(row[0] - wanted)) for wanted in (0.25, 0.5, 1.0)]
        if rows
        else []
    )
    words = "; ".join(
        f"keeping {percent(kept, 0)}%: {percent(risk)}% wrong" for kept, risk in marks
    )
    canvas, x, y = _square(name, "Risk and coverage", words + ".", "answers kept, %", "wrong, %")
    canvas.path([(x(kept), y(risk)) for kept, risk in rows], "curve")
    for kept, risk in marks:
        canvas.circle(x(kept), y(risk), 4, "dot")
    return canvas


def thinned(rows: Sequence[tuple[float, float]], most: int) -> list[tuple[float, float]]:
    """At most ``most`` rows at even steps, first and last among them."""
    if len(rows) <= most:
        return list(rows)
    step = (len(rows) - 1) / (most - 1)
    return [rows[round(number * step)] for number in range(most)]


def _square(
    name: str, title: str, description: str, below: str, beside: str
) -> tuple[Canvas, Scale, Scale]:
    canvas = Canvas(name, 280, 262, title, description)
    left, right, top, bottom = 48.0, 268.0, 10.0, 222.0

    def x(share: float) -> float:
        return left + (right - left) * min(max(share, 0), 1)

    def y(share: float) -> float:
        return bottom - (bottom - top) * min(max(share, 0), 1)

    for tick in (0, 0.25, 0.5, 0.75, 1):
        canvas.line(x(tick), top, x(tick), bottom, "rule")
        canvas.line(left, y(tick), right, y(tick), "rule")
        canvas.text(x(tick), bottom + 15, f"{100 * tick:.0f}", "m", anchor="middle")
        canvas.text(left - 6, y(tick) + 4, f"{100 * tick:.0f}", "m", anchor="end")
    canvas.text((left + right) / 2, bottom + 32, below, "m", anchor="middle")
    canvas.text(13, (top + bottom) / 2, beside, "m", anchor="middle", turn=-90)
    return canvas, x, y
