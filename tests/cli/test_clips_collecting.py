"""From scripts to a public set and back out of it: what a user types and sees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from demo.make_recordings import simulate
from earwitness.cli import build_app
from earwitness.clips.assignment import read_assignments
from earwitness.errors import DataError, UsageError


@pytest.fixture(scope="module")
def app():
    return build_app()


def run(app, *arguments: object, code: int = 0):
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, [*map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def test_the_whole_way(app, tmp_path: Path) -> None:
    folder, out = tmp_path / "c", tmp_path / "set"
    said = run(app, "clips", "script", folder, "-n", 12).stdout
    assert f"{folder}: 12 scripts, 12 of them new, from 12 drafts" in said
    said = run(app, "clips", "assign", folder, "--accounts", 10, "--audit").stdout
    assert "10 accounts, 90 recordings to make, 90 of them new" in said
    assert "the words alone do not tell the emotion" in said
    said = run(app, "clips", "assign", folder, "--accounts", 12, "--json").stdout
    assert json.loads(said)["new"] == 18
    simulate(folder, read_assignments(folder), turned_down=10, seconds=(0.2, 0.25))
    made = json.loads(run(app, "clips", "pool", folder, "--workers", 1, "--json").stdout)
    assert made["recordings"] == 108
    assert sum(made["statuses"]["accepted"].values()) == 98
    said = run(app, "clips", "select", folder, "--per-label", 3).stdout
    assert "accepted, but its label had better balanced choices" in said
    assert "speakers: 12" in said
    assert f"{folder}: 21 clips of 12 speakers (1 to 2 each)" in said
    export = ("clips", "export", folder, "-o", out, "--name", "ours", "--workers", 1)
    assert "21 clips of 12 speakers; anger 3, disgust 3" in run(app, *export).stdout
    run(
        app,
        "run",
        "emotion",
        "--clips",
        out,
        "--model",
        "baseline/uniform",
        "--out",
        tmp_path / "runs",
    )
    assert run(app, "clips", "audit", folder, "--of", "selection").exit_code == 0
    assert json.loads(run(app, "clips", "audit", out, "--json").stdout)["ok"]
    forget = ("clips", "forget", "a003", "--in", folder, "--set", out, "--runs", tmp_path / "runs")
    said = run(app, *forget).stdout
    assert f"would go: 9 audio files in {folder / 'recordings' / 'a003'}" in said
    assert "Nothing was changed. Say it again with --yes to do it." in said
    gone = json.loads(run(app, *forget, "--yes", "--json").stdout)
    assert gone["done"]
    assert gone["rebuild"]
    with pytest.raises(DataError, match="withdrew consent"):
        run(app, "clips", "assign", folder, "--account", "A003")
    # A number that was somebody's is not given to somebody else.
    run(app, "clips", "assign", folder, "--accounts", 12)
    assert {a.account for a in read_assignments(folder)} == {
        f"a{n:03}" for n in range(1, 14) if n != 3
    }
    run(app, "clips", "select", folder, "--per-label", 3)
    assert "clips of" in run(app, *export, "--overwrite", "--version", "1.0.1").stdout


def test_a_leak_and_a_shortage_end_with_a_code(app, tmp_path: Path) -> None:
    run(app, "clips", "script", tmp_path, "-n", 8)
    run(app, "clips", "assign", tmp_path, "--accounts", 12)
    path = tmp_path / "assignments.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row["text"] += f" So {row['emotion']} it is."
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = run(app, "clips", "audit", tmp_path, code=1).stdout
    assert "the words alone tell the emotion better than chance" in said
    with pytest.raises(DataError, match=r"has no pool\.jsonl"):
        run(app, "clips", "select", tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("script", "X", "--words", "9"), "--words: found '9'"),
        (("script", "X", "-M", "a=b"), "the phrasebook has no options"),
        (("assign", "C"), "no accounts"),
        (("select", "C", "--label", "joy"), "--label: found 'joy'"),
        (("pool", "C", "--rule", "most"), "--rule: found 'most'"),
        (("export", "C", "-o", "O", "--name", "n", "--split", "Test=1"), "--split: found 'Test=1'"),
        (("export", "C", "-o", "O", "--name", "n", "--use", "all"), "--use: found 'all'"),
        (("forget", "--in", "C"), "one of them"),
        (("forget", "x", "--resume", "--in", "C"), "one of them"),
        (("audit", "C", "--of", "words"), "--of: found 'words'"),
    ],
)
def test_mistakes_are_one_line(app, tmp_path: Path, arguments, message) -> None:
    run(app, "clips", "script", tmp_path / "C", "-n", 3)
    with pytest.raises(UsageError, match=message):
        run(app, "clips", *(str(tmp_path / a) if a in ("C", "X", "O") else a for a in arguments))


@pytest.mark.parametrize(
    "name", ["script", "assign", "audit", "pool", "select", "export", "forget"]
)
def test_help_teaches(app, name: str) -> None:
    said = run(app, "clips", name, "--help").stdout
    assert f"earwitness clips {name} " in said
    assert "Examples" in said
