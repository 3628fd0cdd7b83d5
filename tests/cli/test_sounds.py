"""``earwitness sounds``."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from earwitness.audio import Audio, write_audio
from earwitness.cli import build_app
from earwitness.errors import DataError, UsageError
from earwitness.scenes.sound_splits import TooFewTakesError

SOME = ["--sound", "mouse_click", "--sound", "watch_beep"]


def run(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(build_app(), ["sounds", *map(str, words)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


@pytest.fixture
def library(tmp_path: Path) -> Path:
    code, out = run("synth", "--out", tmp_path / "lib", "--takes", "3", "--workers", "1", *SOME)
    assert code == 0
    assert "6 takes of 2 sounds and 0 ambiences, 6 synthetic" in out
    return tmp_path / "lib"


def test_help_teaches() -> None:
    code, out = run("--help")
    assert code == 0
    for word in ("synth", "import", "fetch", "check", "show", "takes.jsonl"):
        assert word in out


def test_what_can_be_made() -> None:
    _, out = run("synth", "--list", "--json")
    found = json.loads(out)
    assert len(found["sounds"]) == 180
    assert len(found["ambiences"]) == 13
    assert "public_piano" in found["without"]
    _, out = run("synth", "--list")
    assert out.startswith("180 of 219 sounds: air_release")


def test_show_and_check(library: Path) -> None:
    _, out = run("show", library, "--json")
    rows = json.loads(out)["classes"]
    assert [(row["of"], row["train"], row["validation"], row["test"]) for row in rows] == [
        ("mouse_click", 1, 1, 1),
        ("watch_beep", 1, 1, 1),
    ]
    _, out = run("show", library)
    assert "split policy disjoint; licences: CC0 1.0 (6)" in out
    code, out = run("check", library, "--workers", "1")
    assert code == 1
    assert "B601 library: locations[cafe], test: takes of 1 of its 33 sounds" in out
    code, out = run("check", library, "--json", "--workers", "1")
    found = json.loads(out)
    assert code == 1
    assert found["library"]["n_takes"] == 6
    assert {f["code"] for f in found["findings"]} == {"B601"}


def test_edits_are_accepted_when_asked(library: Path) -> None:
    table = library / "takes.jsonl"
    table.write_text(table.read_text().replace("CC0 1.0", "CC BY 4.0"))
    with pytest.raises(DataError, match="--accept-edits"):
        run("check", library)
    _, out = run("check", library, "--accept-edits", "--json", "--workers", "1")
    assert "S108" in {f["code"] for f in json.loads(out)["findings"]}


def test_import_of_a_folder(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = []
    for n in range(3):
        write_audio(
            tmp_path / f"rec/{n}.wav", Audio(rng.normal(0, 0.1, 22050).astype(np.float32), 22050)
        )
        rows.append({"file": f"{n}.wav", "class": "hound", "rights": "CC BY 4.0", "credit": "Anna"})
    rows.append({**rows[0], "class": "dragon"})
    with (tmp_path / "rec/t.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    (tmp_path / "map.yaml").write_text("sounds: {hound: dog_bark}\n")
    words = [
        "import",
        "folder",
        tmp_path / "rec",
        "--out",
        tmp_path / "lib",
        "--table",
        "t.csv",
        "--columns",
        "licence=rights, attribution=credit",
        "--map",
        tmp_path / "map.yaml",
        "--workers",
        "1",
    ]
    code, out = run(*words)
    assert code == 0
    assert "3 takes added, 0 were there" in out
    assert "classes the map does not know: dragon (1)" in out
    _, out = run(*words, "--json")
    found = json.loads(out)
    assert (found["added"], found["kept"]) == (0, 3)
    assert found["card"]["licences"] == {"CC BY 4.0": 3}


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["synth"], UsageError, "--out: nothing"),
        (["synth", "--out", "x", "--format", "mp3"], UsageError, "flac or wav"),
        (["synth", "--out", "x", "--split-policy", "none"], UsageError, "disjoint or shared"),
        (["synth", "--out", "x", "--sound", "dragon"], UsageError, "not a sound of the bank"),
        (
            ["import", "tape", ".", "--out", "x"],
            UsageError,
            "esc50, fsd50k, urbansound8k, folder, freesound",
        ),
        (["import", "folder", ".", "--out", "x"], UsageError, "--map: nothing"),
        (
            ["import", "esc50", ".", "--out", "x"],
            DataError,
            "no such file; wanted the table of this collection",
        ),
        (
            ["import", "folder", ".", "--out", "x", "--map", "esc50", "--columns", "file"],
            UsageError,
            "ours=theirs",
        ),
        (["fetch", "freesound", "--out", "x", "--allow", "all"], UsageError, "cc0, by, any"),
        (["fetch", "freesound", "--out", "x", "--sound", "dragon"], DataError, "no sound 'dragon'"),
        (["check", "nowhere"], DataError, "no such folder"),
    ],
)
def test_mistakes_are_named(
    words: list[str],
    error: type[Exception],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        run(*words)
    assert not any(tmp_path.rglob("*.flac"))


def test_too_few_takes_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(TooFewTakesError, match=r"mouse_click \(2\).*--split-policy shared"):
        run(
            "synth",
            "--out",
            tmp_path / "lib",
            "--takes",
            "2",
            "--workers",
            "1",
            "--sound",
            "mouse_click",
        )
    code, _ = run("synth", "--out", tmp_path / "lib", "--takes", "2", "--workers", "1", "--sound", "mouse_click", "--split-policy", "shared")  # fmt: skip
    assert code == 0


def test_freesound_without_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FREESOUND_API_KEY", raising=False)
    with pytest.raises(UsageError, match="FREESOUND_API_KEY"):
        run("fetch", "freesound", "--out", tmp_path)
