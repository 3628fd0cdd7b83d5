"""``clips validate`` from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from earwitness.cli.clips_validate import register_validate
from earwitness.errors import UsageError
from tests.audio.wavs import plain, tone

RUN = CliRunner()


@pytest.fixture
def app() -> typer.Typer:
    app, group = typer.Typer(), typer.Typer()
    app.add_typer(group, name="clips")
    register_validate(group)
    group.command("other")(lambda: None)
    return app


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.wav").write_bytes(plain(tone(900)))
    return tmp_path


def test_clean(app: typer.Typer, folder: Path) -> None:
    result = RUN.invoke(app, ["clips", "validate", str(folder)])
    assert result.exit_code == 0
    assert result.stdout.endswith(
        "(folder): 1 file, 0.0 min: 0 with errors, 0 with warnings only\n"
    )
    assert result.stderr == ""


def test_errors_are_listed_and_fail(app: typer.Typer, folder: Path) -> None:
    (folder / "-cut [1].wav").write_bytes(plain()[:2000])
    (folder / "song.m4a").write_bytes(b"\0\0\0\x1cftypM4A \0\0\0\0")
    result = RUN.invoke(app, ["clips", "validate", str(folder)])
    assert result.exit_code == 1
    flat = " ".join(result.stdout.replace("\u2502", " ").split())
    for words in ("-cut [1].wav", "truncated", "1244 of 3200 bytes", "ffmpeg -i"):
        assert words in flat
    assert "2 with errors, 0 with warnings only" in flat
    assert "By code: truncated 1, unsupported 1" in flat


def test_json_is_all_of_the_output(app: typer.Typer, folder: Path) -> None:
    (folder / "\u00fc.wav").write_bytes(b"")
    result = RUN.invoke(app, ["clips", "validate", str(folder), "--json"])
    assert result.exit_code == 1
    record = json.loads(result.stdout)
    assert (record["files"], record["errors"], record["warnings"], record["bad_files"]) == (
        2,
        1,
        0,
        1,
    )
    assert record["counts"] == {"not_audio": 1}
    assert record["problems"] == [
        {
            "file": "\u00fc.wav",
            "clip": "",
            "code": "not_audio",
            "severity": "error",
            "message": "the file is empty (0 bytes)",
            "next_step": "Fetch or export it again.",
        }
    ]


def test_strict_and_allow_truncated(app: typer.Typer, folder: Path) -> None:
    (folder / "cut.wav").write_bytes(plain()[:2000])
    arguments = ["clips", "validate", str(folder), "--allow-truncated", "--workers", "1"]
    assert RUN.invoke(app, arguments).exit_code == 0
    assert RUN.invoke(app, [*arguments, "--strict"]).exit_code == 1


def test_long_lists_are_cut_and_say_so(app: typer.Typer, folder: Path) -> None:
    for number in range(5):
        (folder / f"bad{number}.wav").write_bytes(b"")
    short = RUN.invoke(app, ["clips", "validate", str(folder), "--show", "2"])
    assert "... and 3 more (--show 0 lists all" in short.stdout
    whole = RUN.invoke(app, ["clips", "validate", str(folder), "--show", "0"])
    assert "more (" not in whole.stdout
    assert whole.stdout.count("not_audio") == 6


def test_no_folder(app: typer.Typer, tmp_path: Path) -> None:
    result = RUN.invoke(app, ["clips", "validate", str(tmp_path / "absent")])
    assert isinstance(result.exception, UsageError)
    assert "no such folder" in str(result.exception)


def test_help_teaches(app: typer.Typer) -> None:
    text = RUN.invoke(app, ["clips", "validate", "--help"]).stdout
    for words in ("--strict", "--json", "--allow-truncated", "earwitness clips validate"):
        assert words in text
