"""``earwitness models``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.errors import UsageError

RUNNER = CliRunner()


def run(*words: str) -> str:
    result = RUNNER.invoke(build_app(), ["models", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "models.yaml").write_text("lab: {model: openai/x, options: {temperature: 0}}\n")
    return tmp_path


def test_the_list_names_adapters_what_is_missing_and_named_models(in_folder: Path) -> None:
    output = run("list")
    for word in (
        "openai/MODEL",
        "endpoint/FILE.yaml",
        "baseline/majority",
        "OPENAI_API_KEY",
        "lab: openai/x",
    ):
        assert word in output


def test_the_list_as_json(in_folder: Path) -> None:
    listed = json.loads(run("list", "--json"))
    adapters = {each["name"]: each for each in listed["adapters"]}
    assert adapters["openai"]["limits"]["formats"] == ["wav", "mp3"]
    assert "OPENAI_API_KEY" in adapters["openai"]["missing"]
    assert listed["entries"] == [
        {"name": "lab", "model": "openai/x", "options": {"temperature": 0}}
    ]


def test_show_a_model_without_its_key(in_folder: Path) -> None:
    output = run("show", "openai/gpt-audio", "-M", "max_seconds=30")
    assert "30.0" in output
    assert "-M temperature=" in output
    facts = json.loads(run("show", "lab", "--json"))
    assert facts["name"] == "lab"
    assert facts["settings"]["temperature"] == 0.0


def test_show_an_adapter_and_a_description(in_folder: Path) -> None:
    assert "-M base_url=" in run("show", "openai")
    assert json.loads(run("show", "openai", "--json"))["form"] == "openai/MODEL"
    assert "-M host=" in run("show", "endpoint/template-label")


def test_a_name_that_is_none(in_folder: Path) -> None:
    with pytest.raises(UsageError, match="Did you mean 'openai'"):
        run("show", "opnai/x")
