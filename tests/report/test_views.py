from __future__ import annotations

from dataclasses import replace

from earwitness.report.boards import ReportData
from earwitness.report.views import board_view


def test_apart_is_said_after_holm_and_never_of_incomplete_runs(data: ReportData) -> None:
    board = data.boards[0]
    pairs = board.leaderboard.comparisons
    assert any(pair.p_sign_flip < 0.05 <= pair.p_holm for pair in pairs), "the case must occur"
    rows = board_view(board)["pairs"]
    assert [row["apart"] for row in rows] == [pair.p_holm < 0.05 for pair in pairs]
    assert [row["incomplete"] for row in rows] == ["unlucky" in (p.a, p.b) for p in pairs]


def test_an_incomplete_run_is_not_set_against_the_first(data: ReportData) -> None:
    rows = {row["name"]: row for row in board_view(data.boards[0])["rows"]}
    assert rows["unlucky"]["against"] == "–"
    assert rows["unlucky"]["macro"].startswith("≥ ")
    assert rows["deaf"]["against"].startswith("−")


def test_no_complete_run_claims_no_winner(data: ReportData) -> None:
    board = data.boards[0]
    table = board.leaderboard
    opened = tuple(replace(scores, complete=False) for scores in table.systems)
    summary = board_view(replace(board, leaderboard=replace(table, systems=opened)))["summary"]
    assert summary == "No run is complete, so there are bounds and no accuracy yet."
