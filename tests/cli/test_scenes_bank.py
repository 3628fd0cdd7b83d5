"""``earwitness scenes bank``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from earwitness.cli.scenes_bank import register_bank
from earwitness.errors import EarwitnessError, UsageError
from earwitness.scenes.bank import load_bank

GERMAN = Path(__file__).parents[1] / "scenes" / "german_bank"


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    register_bank(app)
    app.command("other")(lambda: None)
    return app


def run(app: typer.Typer, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["bank", *arguments])
    if isinstance(result.exception, EarwitnessError):
        raise result.exception
    return result.exit_code, result.output


def test_check_of_the_bank_that_ships(app: typer.Typer) -> None:
    code, output = run(app, "check")
    assert code == 0
    assert "no faults" in output


def test_check_says_code_place_found_and_wanted(app: typer.Typer, tmp_path: Path) -> None:
    run(app, "new", str(tmp_path / "mine"))
    roles = tmp_path / "mine" / "roles.yaml"
    roles.write_text(roles.read_text(encoding="utf-8").replace("a: cousin,", "aa: cousin,", 1))
    code, output = run(app, "check", str(tmp_path / "mine"))
    assert code == 1
    assert (
        "B102 roles.yaml: roles[1 cousins].aa: the unknown key 'aa'; wanted one of id, name, a, b"
        in output
    )
    assert "B103 roles.yaml: roles[1 cousins].a: nothing" in output
    assert "2 errors, 0 warnings" in output


def test_check_for_scripts(app: typer.Typer, tmp_path: Path) -> None:
    (tmp_path / "takes.jsonl").write_text('{"sound": "toaster", "split": ""}\n', encoding="utf-8")
    code, output = run(app, "check", str(GERMAN), "--sounds", str(tmp_path), "--json")
    assert code == 1
    data = json.loads(output)
    assert data["bank"] == "kleine_bank"
    assert data["hash"] == load_bank(GERMAN).hash
    assert data["errors"] == 2
    assert [f["path"] for f in data["findings"]] == ["locations[kueche]", "locations[strasse]"]
    assert data["counts"]["sounds_by_pool"] == {"general": 4, "own": 16, "rare": 1}


def test_warnings_fail_only_when_strict(app: typer.Typer, tmp_path: Path) -> None:
    run(app, "new", str(tmp_path / "mine"))
    words = tmp_path / "mine" / "common_words.yaml"
    words.write_text("words: [siren]\n", encoding="utf-8")
    code, output = run(app, "check", str(tmp_path / "mine"))
    assert code == 0
    assert "B203 sounds/rare.yaml: sounds[emergency_siren].names: 'siren'" in output
    assert run(app, "check", str(tmp_path / "mine"), "--strict")[0] == 1


def test_show_counts(app: typer.Typer) -> None:
    code, output = run(app, "show")
    assert code == 0
    for expected in (
        "13 locations, 219 sounds",
        "24 role pairs",
        "1000 situations in 100 themes of 12",
    ):
        assert expected in output
    data = json.loads(run(app, "show", "--json")[1])
    assert data["sounds_at"]["office"] == len(load_bank().sounds_at("office"))
    assert data["hash"] == load_bank().hash


def test_show_one_location(app: typer.Typer) -> None:
    code, output = run(app, "show", "--location", "car")
    assert code == 0
    assert "a moving car" in output
    assert "indicator_tick" in output
    data = json.loads(run(app, "show", "--location", "car", "--json")[1])
    assert data["room"]["size_m"] == [2.6, 1.5, 1.25]
    assert {s["id"]: s["distance"] for s in data["sounds"]}["thunder_clap"] == "sky"
    with pytest.raises(EarwitnessError, match="no location 'cart'; wanted one of car"):
        run(app, "show", "--location", "cart")


def test_new_never_writes_over_anything(app: typer.Typer, tmp_path: Path) -> None:
    code, output = run(app, "new", str(tmp_path / "mine"))
    assert code == 0
    assert "scenes bank check" in output
    assert load_bank(tmp_path / "mine").hash == load_bank().hash
    with pytest.raises(UsageError, match="exists already"):
        run(app, "new", str(tmp_path / "mine"))


def test_schema(app: typer.Typer) -> None:
    schema = json.loads(run(app, "schema")[1])
    assert "locations" in schema["properties"]
    assert schema["$defs"]["Sound"]["additionalProperties"] is False
