from __future__ import annotations

import io

import pytest
from rich.console import Console

from earwitness.clips.corpus import EMOTIONS
from earwitness.report.boards import ReportData, build
from earwitness.report.terminal import interval_bar, print_leaderboard
from tests.report.making import make_system


def printed(data: ReportData, width: int = 80) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width, color_system=None, legacy_windows=False)
    print_leaderboard(console, data.boards[0].leaderboard)
    return file.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_fits_the_terminal(data: ReportData, width: int) -> None:
    text = printed(data, width)
    assert max(map(len, text.splitlines())) <= width
    assert "gpt-audio-large" in text
    for scores in data.boards[0].leaderboard.systems:
        if scores.complete:
            assert f"{100 * scores.accuracy.value:.1f}" in text
    assert "9 failed" in text
    assert "INCOMPLETE: unlucky." in text
    assert "nan" not in text.lower()


def test_bar_shows_point_interval_and_chance(data: ReportData) -> None:
    scores = next(s for s in data.boards[0].leaderboard.systems if s.name == "gpt-audio-large")
    bar = interval_bar(scores, 1 / 7, width=101)
    assert len(bar) == 101
    assert bar.index("●") == round(100 * scores.accuracy.value)
    assert bar.index("├") == round(100 * scores.accuracy.low)
    assert bar.index("┤") == round(100 * scores.accuracy.high)
    assert bar.index("┊") == 14


def test_bar_of_an_incomplete_run_shows_bounds(data: ReportData) -> None:
    scores = next(s for s in data.boards[0].leaderboard.systems if s.name == "unlucky")
    bar = interval_bar(scores, 1 / 7, width=101)
    low, high = (round(100 * bound) for bound in scores.bounds)
    assert bar[low : high + 1] == "?" * (high - low + 1)
    assert "●" not in bar


def test_plain_bar_is_ascii(data: ReportData) -> None:
    for scores in data.boards[0].leaderboard.systems:
        assert interval_bar(scores, 1 / 7, plain=True).isascii()


def test_names_are_not_read_as_markup() -> None:
    text = printed(build([make_system("[red]m[/] [x]", n_items=14)], EMOTIONS))
    assert "[red]m[/] [x]" in text
