"""``earwitness clips``: what a user types and sees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.errors import DataError, UsageError
from tests.clips.making import ravdess, record


@pytest.fixture(scope="module")
def app():
    return build_app()


def run(app, *arguments: object, code: int = 0):
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["clips", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def made(app, tmp_path: Path) -> Path:
    folder = ravdess(tmp_path / "corpus", actors=2)
    record(folder / "03-01-02-01-01-01-01.wav", 70)
    run(app, "import", "ravdess", folder, "--out", tmp_path / "set", "--workers", 1)
    return tmp_path / "set"


def test_import_says_what_came_in_and_what_did_not(app, tmp_path):
    folder = ravdess(tmp_path / "corpus", actors=2)
    record(folder / "03-01-02-01-01-01-01.wav", 70)
    record(folder / "03-02-01-01-01-01-01.wav", 71)
    (folder / "03-01-08-01-01-01-09.wav").write_bytes(b"not audio at all")
    result = run(
        app, "import", "ravdess", folder, "-o", tmp_path / "set", "--skip-bad", "--workers", 1
    )
    assert "RAVDESS: 14 clips in" in result.stdout
    assert "(14 converted, 0 kept)" in result.stdout
    assert "anger 2, disgust 2" in result.stdout
    assert "CC BY-NC-SA 4.0; use: non-commercial" in result.stdout
    assert "left out by the map: calm 1" in result.stdout
    assert "files ignored: song 1" in result.stdout
    assert "bad files left out: 1" in result.stdout
    assert "03-01-08-01-01-01-09.wav: NotAudioError" in result.stdout


def test_import_lists_every_bad_file_and_fails(app, tmp_path):
    folder = ravdess(tmp_path / "corpus", actors=1)
    for emotion in ("07", "08"):
        (folder / f"03-01-{emotion}-01-01-01-09.wav").write_bytes(b"")
    with pytest.raises(DataError, match="2 of 9 recordings cannot be used"):
        run(app, "import", "ravdess", folder, "-o", tmp_path / "set", "--workers", 1)


def test_import_as_json(app, tmp_path):
    for label in ("angry", "sad"):
        record(tmp_path / "in" / label / "a.wav", len(label))
    table = tmp_path / "in" / "list.csv"
    table.write_text("file,label,spk\nangry/a.wav,angry,s1\nsad/a.wav,sad,s2\n", encoding="utf-8")
    result = run(
        app, "import", "csv", table, "-o", tmp_path / "set", "--map", "path=file,emotion=label,speaker=spk",
        "--name", "Ours", "--licence", "CC0", "--use", "any", "--redistribute", "--per-label", 1, "--seed", 3,
        "--workers", 1, "--json",
    )  # fmt: skip
    summary = json.loads(result.stdout)
    assert summary["counts"] == {"anger": 1, "sadness": 1}
    assert (summary["name"], summary["licence"], summary["use"]) == ("Ours", "CC0", "any")
    assert summary["redistribute"] is True
    assert summary["selection"] == "1 clips a label; seed 3"


def test_import_of_ones_own_says_what_it_assumed(app, tmp_path):
    record(tmp_path / "in" / "angry" / "a.wav", 1)
    result = run(
        app, "import", "audiofolder", tmp_path / "in", "-o", tmp_path / "set", "--workers", 1
    )
    assert "no --use given: marked evaluation-only" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("ravdes",), "kind 'ravdes': unknown; wanted one of"),
        (
            ("ravdess", "--use", "all"),
            "--use: found 'all'; wanted any, non|--use: found 'all'; wanted one of any",
        ),
        (("ravdess", "--rate", "fast"), "--rate: found 'fast'; wanted keep, or Hz"),
        (("ravdess", "--rate", "16"), "--rate: found '16'"),
        (("ravdess", "--seconds", "long"), "--seconds: found 'long'"),
        (("ravdess", "--map", "file"), "--map: found 'file'"),
    ],
)
def test_options_that_do_not_fit(app, tmp_path, arguments, match):
    kind, *rest = arguments
    with pytest.raises(UsageError, match=match):
        run(app, "import", kind, tmp_path, "-o", tmp_path / "set", *rest)


def test_show(app, made):
    text = run(app, "show", made, "--verify").stdout
    for part in (
        "CC BY-NC-SA 4.0",
        "calm 1",
        "ravdess_02",
        "14 clips, 0.1 minutes",
        "0.30 to 0.30 s",
    ):
        assert part in text
    summary = json.loads(run(app, "show", made, "--json").stdout)
    assert summary["labels"]["anger"] == {"clips": 2, "seconds": 0.6}
    assert summary["speakers"]["ravdess_01"]["clips"] == 7
    assert summary["languages"]["en"]["clips"] == 14
    assert summary["problems"] == []


def test_show_fails_when_something_is_wrong(app, made):
    next((made / "audio").iterdir()).unlink()
    result = run(app, "show", made, code=1)
    assert "problem audio/" in result.stdout
    assert "the file is missing" in result.stdout


def test_labels(app, tmp_path):
    text = run(app, "labels").stdout
    for name in ("ravdess@1", "emodb@1", "vendor-default@1", "own-words@1"):
        assert name in text
    text = run(app, "labels", "emodb").stdout
    assert "anger" in text
    assert "langeweile" in text
    rules = json.loads(run(app, "labels", "ravdess", "--json").stdout)
    assert rules["words"]["anger"] == ["angry", "05"]
    assert "calm" in rules["dropped"]
    assert {m["id"] for m in json.loads(run(app, "labels", "--json").stdout)} >= {"ravdess", "tess"}


def test_help_teaches(app):
    text = run(app, "import", "--help").stdout
    for part in ("sets/ravdess", "--map", "--per-label", "--skip-bad", "evaluation-only"):
        assert part in text
    assert "validate" in run(app, "--help").stdout
