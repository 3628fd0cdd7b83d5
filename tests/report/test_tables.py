from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from earwitness.clips.corpus import EMOTIONS
from earwitness.report import tables
from earwitness.report.boards import ReportData, build
from earwitness.runs.outcomes import OUTCOME_KINDS, Outcome
from earwitness.tasks.records import Decision, System
from tests.report.making import make_system


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def one(reply: str | None, outcome: Outcome, name: str = "m") -> ReportData:
    return build([System(name, (Decision("a", "fear", outcome, "s1", reply=reply),))], EMOTIONS)


def test_leaderboard_csv_has_a_line_a_system_and_no_nan(data: ReportData) -> None:
    text = tables.leaderboard_csv(data)
    rows = rows_of(text)
    assert [row["model"] for row in rows] == [
        scores.name for board in data.boards for scores in board.leaderboard.systems
    ]
    assert "nan" not in text.lower()
    first = rows[0]
    assert float(first["accuracy"]) == pytest.approx(
        int(first["right"]) / int(first["items"]), rel=1e-5
    )
    assert sum(int(first[kind]) for kind in OUTCOME_KINDS) == int(first["items"])


def test_incomplete_run_has_bounds_and_no_accuracy(data: ReportData) -> None:
    row = next(row for row in rows_of(tables.leaderboard_csv(data)) if row["model"] == "unlucky")
    assert row["complete"] == "no"
    assert row["accuracy"] == row["accuracy_low"] == row["accuracy_clustered"] == ""
    assert float(row["bound_high"]) - float(row["bound_low"]) == pytest.approx(9 / 140, rel=1e-4)
    line = next(
        line for line in tables.leaderboard_md(data).splitlines() if line.startswith("| unlucky")
    )
    assert "(incomplete)" in line


def test_json_holds_everything_and_is_strict(data: ReportData) -> None:
    document = json.loads(tables.leaderboard_json(data), parse_constant=pytest.fail)
    assert document["schema"] == "earwitness.leaderboard/1"
    assert document["complete"] is False
    board = document["boards"][0]
    system = board["systems"][0]
    assert {"per_class", "confusion", "by_group", "rules", "outcomes", "bounds"} <= set(system)
    assert len(board["comparisons"]) == 10
    assert {row["system"] for row in document["listening"] if row["deaf"]} == {"deaf"}
    assert document["condition_differences"]


def test_missing_precision_is_null_in_json() -> None:
    document = json.loads(tables.leaderboard_json(one("", Outcome("empty"))))
    assert document["boards"][0]["systems"][0]["per_class"][0]["precision"]["value"] is None


def test_predictions_csv_columns_and_order(data: ReportData) -> None:
    rows = rows_of(tables.predictions_csv(data))
    assert tuple(rows[0]) == tables.PREDICTION_COLUMNS
    assert len(rows) == 7 * 140
    failed = [row for row in rows if row["outcome"] == "failed"]
    assert len(failed) == 9
    assert {row["raw_reply"] for row in failed} == {row["mapped_label"] for row in failed} == {""}
    assert {row["latency_s"] for row in failed} == {""}


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_is_a_formula(start: str) -> None:
    reply = start + "cmd|' /C calc'!A0"
    data = one(reply, Outcome("unmapped", rule=start + "x", native=reply), name=start + "model")
    (row,) = rows_of(tables.predictions_csv(data).replace("\r", "\\r"))
    for column in ("model", "raw_reply", "rule", "native"):
        assert row[column].startswith("'")
    assert rows_of(tables.leaderboard_csv(data).replace("\r", "\\r"))[0]["model"].startswith("'")


def test_numbers_are_not_quoted_as_formulas() -> None:
    assert tables._cell(-0.5) == "-0.5"
    assert tables._cell(float("nan")) == ""
    assert tables._cell(float("inf")) == ""


def test_replies_survive_csv() -> None:
    reply = 'one, "two"\nthree\u2028 \ud800'
    (row,) = rows_of(tables.predictions_csv(one(reply, Outcome("unmapped"))))
    assert row["raw_reply"] == 'one, "two"\nthree\u2028 ?'
    tables.predictions_csv(one(reply, Outcome("unmapped"))).encode()


def test_markdown_escapes_names() -> None:
    text = tables.leaderboard_md(one("fear", Outcome("answered", "fear"), name="a|b<i>\nc"))
    assert "| a\\|b&lt;i> c |" in text


def test_synthetic_is_said_in_markdown() -> None:
    data = build([make_system("m", n_items=14, synthetic=True)], EMOTIONS)
    assert tables.leaderboard_md(data).startswith("**Synthetic clips: this tests plumbing.")
    assert json.loads(tables.leaderboard_json(data))["synthetic"] is True


def test_same_systems_same_bytes() -> None:
    systems = [make_system("a", n_items=28), make_system("b", n_items=28)]
    first, second = build(systems, EMOTIONS), build([replace(s) for s in systems], EMOTIONS)
    assert tables.leaderboard_json(first) == tables.leaderboard_json(second)
    assert tables.predictions_csv(first) == tables.predictions_csv(second)
