"""Chat models as writers of scripts: the real client, real HTTP, a stand-in in every temper."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.clips.scripts import ATTEMPTS, CALLS, SCRIPTS, read_scripts
from earwitness.clips.scripts_chat import text_in
from earwitness.models.protocols import Reply
from tests.standins.script_server import ScriptServer


def write(server: ScriptServer, folder: Path, *more: str, code: int = 0):
    arguments = [
        "clips", "script", str(folder), "--writer", "openai/writer", "-M", f"base_url={server.url}",
        "--max-retries", "0", "--json", *more,
    ]  # fmt: skip
    result = CliRunner().invoke(build_app(), arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("temper", ["good", "prose"])
def test_a_good_writer_writes_each_script_once(tmp_path: Path, temper: str) -> None:
    with ScriptServer(temper) as server:
        summary = write(server, tmp_path, "-n", "10")
    assert (summary["scripts"], summary["calls"], summary["drafts"]) == (10, 10, 10)
    assert 'with or without "not"' in server.systems[0]
    assert all("anger" not in user for user in server.users)
    scripts = read_scripts(tmp_path)
    assert scripts[0].writer == "openai/writer clip-script@1"


def test_a_sloppy_writer_is_told_and_obeys(tmp_path: Path) -> None:
    with ScriptServer("sloppy") as server:
        summary = write(server, tmp_path, "-n", "10")
    assert summary["scripts"] == 10
    assert set(summary["rejected"]) == {
        "S101-emotion", "S102-valence", "S201-length", "S202-sentences", "S203-marks", "S301-duplicate",
    }  # fmt: skip
    told = [user for user in server.users if "turned down" in user]
    assert len(told) == summary["calls"] - 10
    assert any('"happy" gives happiness away; leave it out.' in user for user in told)
    assert all("Your last text was:" in user for user in told)
    assert len((tmp_path / ATTEMPTS).read_text().splitlines()) == len(told)


def test_a_refusing_writer_is_given_up_and_says_why(tmp_path: Path) -> None:
    with ScriptServer("refusing") as server:
        summary = write(server, tmp_path, "-n", "40", "--max-attempts", "2", code=3)
    assert summary["scripts"] == 0
    assert len(server.calls) == 16
    assert "most often W101-no-answer" in next(iter(summary["failed"].values()))


def test_a_stubborn_writer_leaves_places_empty(tmp_path: Path) -> None:
    with ScriptServer("stubborn") as server:
        summary = write(server, tmp_path, "-n", "3", "--max-attempts", "2", code=1)
    assert summary["empty"] == ["s0001", "s0002", "s0003"]


def test_a_writer_that_dies_loses_nothing_and_is_paid_once(tmp_path: Path) -> None:
    with ScriptServer(dies_after=5) as server:
        summary = write(server, tmp_path / "a", "-n", "12", "--concurrency", "1", code=3)
    assert summary["scripts"] == 5
    assert len(summary["failed"]) == 7
    with ScriptServer() as server:
        more = write(server, tmp_path / "a", "-n", "12")
        assert (more["scripts"], len(server.calls)) == (12, 7)
        write(server, tmp_path / "b", "-n", "12")
    assert (tmp_path / "a" / SCRIPTS).read_bytes() == (tmp_path / "b" / SCRIPTS).read_bytes()
    # Nothing is left to ask: the ledger is not touched.
    before = (tmp_path / "a" / CALLS).read_bytes()
    with ScriptServer() as server:
        write(server, tmp_path / "a", "-n", "12")
        assert server.calls == []
    assert (tmp_path / "a" / CALLS).read_bytes() == before


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(text=""), "W101-no-answer"),
        (Reply(text='{"text": "a', finish="length"), "W102-cut-off"),
        (Reply(text="no"), "W103-no-json"),
        (Reply(text='{"script": "a"}'), "W104-not-as-asked"),
        (Reply(text='{"text": 3}'), "W104-not-as-asked"),
    ],
)
def test_an_answer_without_a_script_says_what_is_wrong(reply: Reply, code: str) -> None:
    text, fault = text_in(reply)
    assert text == ""
    assert fault is not None
    assert fault.code == code
