"""``earwitness scenes check``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from earwitness.cli.scenes_check import register_check
from earwitness.errors import DataError, EarwitnessError, UsageError
from earwitness.scenes.dialogue import RULES, Utterance, dialogue_to_json
from earwitness.scenes.scenario import to_lines
from tests.scenes.dialogue_examples import FENCE, STAIRCASE, edited, fence, staircase

GERMAN = Path(__file__).parents[1] / "scenes" / "german_bank"


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    register_check(app)
    app.command("other")(lambda: None)
    return app


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A corpus of two dialogues that keep every rule."""
    (tmp_path / "scenarios.jsonl").write_text(to_lines([STAIRCASE, FENCE]), encoding="utf-8")
    write(tmp_path / "dialogues.jsonl", dialogue_to_json(staircase()), dialogue_to_json(fence()))
    return tmp_path


def write(path: Path, *values: object) -> None:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")


def run(app: typer.Typer, *arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["check", *map(str, arguments)], env={"COLUMNS": "200"})
    if isinstance(result.exception, EarwitnessError):
        raise result.exception
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_dialogues_that_keep_the_rules(app: typer.Typer, corpus: Path) -> None:
    code, out = run(app, "--corpus", corpus)
    assert code == 0
    assert "2 dialogues, all keep the rules" in out
    code, out = run(app, corpus / "dialogues.jsonl", "--scenarios", corpus / "scenarios.jsonl")
    assert code == 0


def test_broken_rules_are_told_with_line_place_and_count(app: typer.Typer, corpus: Path) -> None:
    bad = edited(staircase(), 4, "Uh, [sigh] three days, [b]er[/b] no.")
    write(corpus / "dialogues.jsonl", dialogue_to_json(fence()), dialogue_to_json(bad))
    code, out = run(app, "--corpus", corpus)
    assert code == 1
    assert "D307-filler" in out
    assert f"dialogues.jsonl:2 {STAIRCASE.id}, utterance 4 (B):" in out
    assert "[sigh]; did you mean [sighs]?" in out
    row = next(line for line in out.splitlines() if "No sounds of hesitation" in line)
    assert row.split()[:2] == ["D307-filler", "2"]
    assert "2 dialogues, 1 break a rule" in out


def test_as_json(app: typer.Typer, corpus: Path) -> None:
    bad = edited(staircase(), 4, "Uh, three days is what it takes them.")
    write(corpus / "dialogues.jsonl", dialogue_to_json(bad), {"scenario": 3})
    code, out = run(app, "--corpus", corpus, "--json")
    assert code == 1
    data = json.loads(out)
    assert data["dialogues"] == data["faulty"] == 2
    assert data["counts"] == {"D100-unreadable": 1, "D307-filler": 1}
    first = data["violations"][0]
    assert (first["line"], first["scenario"], first["where"]) == (
        1,
        STAIRCASE.id,
        "utterance 4 (B)",
    )
    assert data["lists_missing"] == []


def test_without_a_plan_it_says_what_is_missing(app: typer.Typer, corpus: Path) -> None:
    code, out = run(app, corpus / "dialogues.jsonl")
    assert code == 1
    assert "Rules about events need the plan: --scenarios FILE or --corpus DIR." in out


def test_a_language_without_words_is_told(app: typer.Typer, tmp_path: Path) -> None:
    talk = dataclasses.replace(staircase(), timeline=(Utterance("A", "Ja."),))
    write(tmp_path / "d.jsonl", dialogue_to_json(talk))
    code, out = run(app, tmp_path / "d.jsonl", "--bank", GERMAN)
    assert code == 1
    assert "There are no words for de in fillers, " in out


def test_the_rules_are_listed(app: typer.Typer) -> None:
    code, out = run(app, "--rules")
    assert code == 0
    assert len(out.splitlines()) == len(RULES) + 4
    assert all(rule.code in out and rule.sentence in out for rule in RULES)
    _, out = run(app, "--rules", "--json")
    assert json.loads(out)[1] == {
        "code": "D101-speakers",
        "rule": "Every utterance is spoken by A or B.",
    }


def test_the_page_explains_every_rule() -> None:
    page = (Path(__file__).parents[2] / "docs" / "dialogue-rules.md").read_text(encoding="utf-8")
    assert [rule.code for rule in RULES if f"`{rule.code}`" not in page] == []


def test_wrong_use(app: typer.Typer, corpus: Path) -> None:
    with pytest.raises(UsageError, match="nothing to check; wanted a file of dialogues"):
        run(app)
    with pytest.raises(UsageError, match="both given"):
        run(app, "x", "--corpus", corpus, "--scenarios", "y")
    with pytest.raises(DataError, match="none: No such file"):
        run(app, corpus / "none")
