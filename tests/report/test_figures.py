from __future__ import annotations

import math
import re
from importlib import resources
from xml.etree import ElementTree

import pytest

from earwitness.clips.corpus import EMOTIONS
from earwitness.report import figures
from earwitness.report.boards import ReportData, build
from earwitness.report.svg import Canvas
from earwitness.runs.outcomes import Outcome
from earwitness.tasks.records import Calibration, Decision, System
from tests.report.making import make_system

SVG = "{http://www.w3.org/2000/svg}"


def drawn(canvas: Canvas) -> ElementTree.Element:
    return ElementTree.fromstring(canvas.standalone())


def words(canvas: Canvas) -> list[str]:
    return [element.text or "" for element in drawn(canvas).iter(f"{SVG}text")]


def every_figure(data: ReportData) -> list[Canvas]:
    found: list[Canvas] = []
    for board in data.boards:
        table = board.leaderboard
        for narrow in (False, True):
            found.append(figures.leaderboard_figure(table, "f", narrow=narrow))
            lean = figures.valence_figure(table.systems, "f", narrow=narrow)
            assert lean is not None
            found.append(lean)
        for scores in table.systems:
            found.append(figures.confusion_figure(scores, "f"))
            found.append(figures.class_figure(scores.per_class, "f", "t"))
            if scores.calibration:
                found.append(figures.reliability_figure(scores.calibration, "f"))
                found.append(figures.risk_coverage_figure(scores.calibration, "f"))
    return found


def test_every_figure_is_xml_with_text_title_and_description(data: ReportData) -> None:
    found = every_figure(data)
    assert len(found) > 20
    for canvas in found:
        root = drawn(canvas)
        assert root.get("role") == "img"
        ids = [element.get("id") for element in root.iter() if element.get("id")]
        assert len(ids) == len(set(ids))
        assert (root.get("aria-labelledby") or "").split() == ids[:2]
        assert root.findtext(f"{SVG}title") or ""
        assert root.findtext(f"{SVG}desc") or ""
        assert words(canvas)
        assert "nan" not in canvas.standalone().lower()


def test_nothing_is_drawn_outside_the_picture(data: ReportData) -> None:
    for canvas in every_figure(data):
        for element in drawn(canvas).iter(f"{SVG}rect"):
            if element.get("x") is None:
                continue
            assert float(element.get("x", 0)) >= 0
            assert float(element.get("x", 0)) + float(element.get("width", 0)) <= canvas.width + 0.1
        for element in drawn(canvas).iter(f"{SVG}text"):
            assert 0 <= float(element.get("x", 0)) <= canvas.width
            assert 0 <= float(element.get("y", 0)) <= canvas.height


def test_leaderboard_figure_says_its_numbers(data: ReportData) -> None:
    table = data.boards[0].leaderboard
    best = table.systems[0]
    for narrow in (False, True):
        said = words(figures.leaderboard_figure(table, "f", narrow=narrow))
        assert best.name in said
        assert figures.accuracy_words(best) in said
        assert any("chance" in text and "14.3" in text for text in said)
        assert any(text.startswith("incomplete: ") for text in said)


def test_intervals_are_drawn_where_they_are() -> None:
    data = build([make_system("m", n_items=70)], EMOTIONS)
    scores = data.boards[0].leaderboard.systems[0]
    canvas = figures.leaderboard_figure(data.boards[0].leaderboard, "f")
    whisker = next(e for e in drawn(canvas).iter(f"{SVG}line") if e.get("class") == "whisker")
    left, right = 212, 576
    assert float(whisker.get("x1", 0)) == pytest.approx(
        left + (right - left) * scores.accuracy.low, abs=0.06
    )
    assert float(whisker.get("x2", 0)) == pytest.approx(
        left + (right - left) * scores.accuracy.high, abs=0.06
    )


def test_confusion_shows_every_count(data: ReportData) -> None:
    scores = data.boards[0].leaderboard.systems[0]
    canvas = figures.confusion_figure(scores, "f")
    cells = [
        e.text for e in drawn(canvas).iter(f"{SVG}text") if (e.get("class") or "").startswith("c")
    ]
    assert cells == [str(value) for row in scores.confusion.counts for value in row]
    outlined = [e for e in drawn(canvas).iter(f"{SVG}rect") if e.get("class") == "diagonal"]
    assert len(outlined) == 7


def test_large_counts_widen_the_cells() -> None:
    data = build([make_system("m", n_items=14)], EMOTIONS)
    scores = data.boards[0].leaderboard.systems[0]
    wide = figures.confusion_figure(_with_count(scores, 1_234_567), "f")
    assert wide.width > figures.confusion_figure(scores, "f").width


def _with_count(scores, value):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    counts = ((value, *scores.confusion.counts[0][1:]), *scores.confusion.counts[1:])
    return replace(scores, confusion=replace(scores.confusion, counts=counts))


def test_a_label_nobody_answered_has_no_precision_mark() -> None:
    decision = Decision("a", "fear", Outcome("refused"), "s")
    data = build([System("m", (decision,))], EMOTIONS)
    per_class = data.boards[0].leaderboard.systems[0].per_class
    canvas = figures.class_figure(per_class, "f", "t")
    assert words(canvas).count("–") >= 7
    marks = [e for e in drawn(canvas).iter(f"{SVG}circle") if e.get("class") == "dot"]
    assert len(marks) == 1, "only the legend's"


def test_calibration_figures() -> None:
    calibration = Calibration(
        0.1,
        ((0.2, 0.1, 5), (math.nan, math.nan, 0), (0.9, 0.7, 20)),
        tuple((k / 999, 0.3) for k in range(1000)),
        25,
    )
    reliability = figures.reliability_figure(calibration, "f")
    assert "confidence 20.0%, right 10.0% of 5" in reliability.description
    assert "nan" not in reliability.standalone()
    risk = drawn(figures.risk_coverage_figure(calibration, "f"))
    (curve,) = list(risk.iter(f"{SVG}polyline"))
    assert len((curve.get("points") or "").split()) == 200


def test_thinning_keeps_both_ends() -> None:
    rows = [(float(k), 0.0) for k in range(1001)]
    thin = figures.thinned(rows, 11)
    assert [row[0] for row in thin] == [0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]


def test_names_are_shortened_in_the_middle() -> None:
    assert figures.shorten("openai/gpt-audio-2025-08-28", 17) == "openai/g…25-08-28"
    assert figures.shorten("short", 17) == "short"


def test_hostile_names_stay_text() -> None:
    canvas = Canvas("f", 10, 10, "</title><script>", "& <b>")
    canvas.text(0, 0, "<script>alert(1)</script>")
    root = drawn(canvas)
    assert root.findtext(f"{SVG}title") == "</title><script>"
    assert not list(root.iter(f"{SVG}script"))


def _luminance(colour: tuple[float, ...]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    low, high = sorted((_luminance(a), _luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("scheme", "switch"), [(0, figures.LIGHT_SWITCH), (1, figures.DARK_SWITCH)]
)
def test_numbers_in_cells_are_readable_on_every_shade(scheme: int, switch: float) -> None:
    css = resources.files("earwitness.report").joinpath("templates/figures.css").read_text("utf-8")
    colours = {
        name: tuple(int(found[scheme][k : k + 2], 16) / 255 for k in (1, 3, 5))
        for name in ("surface", "heat", "on-heat", "off-heat")
        if (found := re.findall(rf"--{name}: (#[0-9a-f]{{6}})", css))
    }
    for step in range(101):
        share = step / 100
        shade = tuple(
            s * (1 - share) + h * share
            for s, h in zip(colours["surface"], colours["heat"], strict=True)
        )
        text = colours["on-heat"] if share > switch else colours["off-heat"]
        assert _contrast(shade, text) >= 4.5, share
