"""``earwitness scenes plan``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.errors import EarwitnessError, UsageError


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(build_app(), ["scenes", *arguments])
    if isinstance(result.exception, EarwitnessError):
        raise result.exception
    return result.exit_code, result.output


def test_plan_and_grow(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    code, output = run("plan", "--templates", "10", "--per-template", "4", "--out", str(folder))
    assert code == 0
    assert f"{folder}: 40 scenarios" in output
    assert f"next: earwitness scenes write {folder}" in output
    before = (folder / "scenarios.jsonl").read_bytes()
    code, output = run("plan", "--templates", "12", "--out", str(folder))
    assert "48 scenarios, 8 of them new" in output
    assert (folder / "scenarios.jsonl").read_bytes().startswith(before)
    # With nothing said, everything is as it was.
    assert "48 scenarios, 0 of them new" in run("plan", "--out", str(folder))[1]
    with pytest.raises(UsageError, match="--seed was 0 and is 1"):
        run("plan", "--seed", "1", "--out", str(folder))


def test_plan_report_prints_and_draws(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    code, output = run("plan", "--templates", "20", "--out", str(folder), "--report")
    assert code == 0
    for title in (
        "Events in a scene", "Locations", "Role pairs", "Genders of A and B", "Registers, pivot",
        "Registers, verbal", "Registers, behavioral", "Ordinary sounds of each location",
        "Reaction by number of events in the scene", "Reaction by place among the scene's events",
        "Reaction by location", "Reaction by third of the talk", "Reaction by rarity of the sound",
        "Reaction by split",
    ):  # fmt: skip
        assert title in output
    page = (folder / "plan-report.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "Reaction by location" in page


def test_plan_for_scripts(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    code, output = run(
        "plan", "--templates", "10", "--preset", "paper", "--out", str(folder), "--report", "--json"
    )
    data = json.loads(output)
    assert code == 0
    assert (data["scenarios"], data["added"], data["preset"]) == (100, 100, "paper")
    assert data["report"]["joints"][0]["name"] == "reaction_by_split"
    assert len(data["bank"]["hash"]) == 64


def test_plan_with_a_library_and_a_cast(tmp_path: Path) -> None:
    from earwitness.scenes.bank import load_bank

    bank = load_bank()
    lines = [{"sound": sound.id, "split": ""} for sound in bank.sounds]
    (tmp_path / "takes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "cast.yaml").write_text("voices: [{id: a, tags: [pause]}]")
    code, _ = run(
        "plan", "--templates", "5", "--out", str(tmp_path / "c"), "--sounds", str(tmp_path),
        "--voices", str(tmp_path / "cast.yaml"),
    )  # fmt: skip
    assert code == 0
    # Growing needs neither at hand.
    code, output = run("plan", "--templates", "6", "--out", str(tmp_path / "c"))
    assert "60 scenarios, 10 of them new" in output
    with pytest.raises(UsageError, match="drawable sounds in train"):
        run("plan", "--out", str(tmp_path / "d"), "--sounds", str(tmp_path), "--min-takes", "2")


def test_schema() -> None:
    code, output = run("schema", "scenario")
    assert code == 0
    assert json.loads(output)["title"] == "Earwitness scenario"
    with pytest.raises(UsageError, match="schema 'songs': there is none"):
        run("schema", "songs")
