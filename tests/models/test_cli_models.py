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
    assert adapters["openai"]["installed"] is True
    described = {each["name"]: each for each in listed["descriptions"]}
    assert described["hume"]["limits"]["rates"] == [16000]
    assert described["template-label"]["template"] is True
    assert listed["entries"] == [
        {"name": "lab", "model": "openai/x", "options": {"temperature": 0}}
    ]


def test_limits_and_what_is_missing_are_said_in_words(
    in_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("ORUK_API_KEY", "x")
    monkeypatch.delenv("HUME_API_KEY", raising=False)
    output = run("list")
    assert "wav at 16000 Hz, up to 480 s" in output
    assert "wav at 24000 Hz, from 0.1 s, up to 3600 s" in output
    assert "words only" in output
    [hume] = [line for line in output.splitlines() if line.startswith("  endpoint/hume:")]
    assert hume.endswith(
        "takes wav at 16000 Hz, up to 24.9 MB; missing: the environment variable HUME_API_KEY"
    )
    [oruk] = [line for line in output.splitlines() if line.startswith("  endpoint/oruk:")]
    assert oruk.endswith("up to 3600 s, up to 30 MB; missing: nothing")
    assert "endpoint/template-label: a template to copy" in output


def test_packages_that_are_not_there(in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    listed = json.loads(run("list", "--json"))
    adapters = {each["name"]: each for each in listed["adapters"]}
    assert adapters["openai-realtime"]["installed"] is False
    missing = adapters["openai-realtime"]["missing"]
    assert missing.startswith('packages: pip install "earwitness[realtime]"; the environment')


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
