"""``earwitness score`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.errors import DataError, UsageError
from earwitness.models.protocols import Reply
from earwitness.runs.folder import RunFolder
from earwitness.runs.items import reply_key
from earwitness.runs.ledger import Ledger
from earwitness.tasks import emotion
from tests.tasks.test_emotion import clip_set

TABLE = "id,gold,prediction,speaker\n" + "".join(
    f"x{n},{gold},{said},s{n % 4}\n"
    for n, (gold, said) in enumerate(
        [
            ("anger", "angry"),
            ("fear", "calm"),
            ("sadness", "sad"),
            ("neutral", "neutral"),
            ("fear", "fear"),
        ]
        * 4
    )
)


def call(*arguments: str | Path):
    return CliRunner().invoke(build_app(), ["score", *map(str, arguments)])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "theirs.csv"
    path.write_text(TABLE, encoding="utf-8")
    return path


def run_folder(folder: Path, *, unasked: int = 0, name: str = "scripted/model") -> Path:
    questions = emotion.items(clip_set(14), conditions=("audio", "silence"))
    run = RunFolder(folder)
    card = {
        "task": "emotion",
        "name": name,
        "conditions": ["audio", "silence"],
        "clips": {"name": "x"},
    }
    run.write(card, questions, name, {})
    with Ledger(run.ledger_path) as ledger:
        for question in questions[unasked:]:
            key = reply_key(question.item, name, {})
            ledger.reply(key, Reply(text="Answer: calm"), item=question.item.id, attempts=1)
    return folder


def test_a_table_is_scored_and_said_how_it_was_read(table):
    result = call("--predictions", table)
    assert result.exit_code == 0, result.output
    assert "theirs" in result.stdout
    assert "80.0" in result.stdout
    assert (
        "columns guessed: --columns id=id,gold=gold,prediction=prediction,speaker=speaker"
        in result.stderr
    )


def test_json_is_all_that_standard_output_has(table):
    result = call("--predictions", table, "--json")
    document = json.loads(result.stdout)
    assert document["labels"][0] == "anger"


def test_a_label_map_changes_what_words_mean(table):
    plain = json.loads(call("--predictions", table, "--json").stdout)
    mapped = json.loads(
        call("--predictions", table, "--label-map", "vendor-default", "--json").stdout
    )
    assert plain != mapped


def test_rules_are_counted(table):
    result = call("--predictions", table, "--rules")
    assert "bare: angry -> anger" in result.stdout
    assert "outside the labels" in result.stdout


def test_names_in_brackets_are_shown_whole(tmp_path):
    folder = run_folder(tmp_path / "one", name="scripted/model [p2]")
    result = call(folder, "--condition", "audio", "--rules")
    assert result.stdout.count("scripted/model [p2]") >= 2


def test_a_report_is_written(table, tmp_path):
    out = tmp_path / "report"
    result = call("--predictions", table, "--out", out)
    assert result.exit_code == 0, result.output
    for name in (
        "report.html",
        "leaderboard.csv",
        "leaderboard.json",
        "leaderboard.md",
        "predictions.csv",
    ):
        assert (out / name).stat().st_size > 0
    assert "report.html" in result.stdout
    again = call("--predictions", out / "predictions.csv", "--json")
    assert again.exit_code == 0, again.output


def test_stored_replies_are_read_again(tmp_path):
    folder = run_folder(tmp_path / "runs" / "one")
    before = (folder / "ledger.jsonl").read_bytes()
    result = call(tmp_path / "runs")
    assert result.exit_code == 0, result.output
    assert "audio" in result.stdout
    assert "silence" in result.stdout
    assert (folder / "ledger.jsonl").read_bytes() == before
    mapped = call(folder, "--label-map", "vendor-default", "--rules", "--condition", "audio")
    assert "map: calm -> neutral" in mapped.stdout
    assert "silence" not in mapped.stdout


def test_failed_calls_leave_bounds_and_exit_3(tmp_path):
    folder = run_folder(tmp_path / "one", unasked=3)
    result = call(folder, "--condition", "audio")
    assert result.exit_code == 3
    assert "0.0 to 21.4" in result.stdout
    assert "incomplete: calls have failed" in result.stderr
    closed = call(folder, "--condition", "audio", "--accept-failed")
    assert closed.exit_code == 0
    assert "incomplete: calls have failed" not in closed.stderr


def test_runs_and_tables_side_by_side(tmp_path, table):
    folder = run_folder(tmp_path / "one")
    document = json.loads(call(folder, "--predictions", table, "--json").stdout)
    text = json.dumps(document)
    assert "scripted/model" in text
    assert "theirs" in text


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ([], UsageError, "score: nothing to score; wanted run folders, or --predictions FILE.csv"),
        (["--columns", "id=x", "."], UsageError, "--columns and --clips go with --predictions"),
        (["no-such-folder"], DataError, "holds no run"),
    ],
)
def test_mistakes_are_named(arguments, error, message):
    result = call(*arguments)
    assert isinstance(result.exception, error)
    assert message in str(result.exception)


def test_a_condition_nobody_was_asked_under(tmp_path, table):
    folder = run_folder(tmp_path / "one")
    result = call(folder, "--condition", "blind")
    assert isinstance(result.exception, UsageError)
    assert "no run was asked under 'blind'; wanted one of: audio, silence" in str(result.exception)
    result = call("--predictions", table, "--condition", "blind")
    assert "no table has rows under 'blind'" in str(result.exception)
