"""Names, options, plug-ins and named models."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from earwitness.errors import DataError, UsageError
from earwitness.models.options import Option, read_options
from earwitness.models.protocols import AudioModel, Preflight
from earwitness.models.registry import (
    list_adapters,
    open_model,
    parse_options,
    read_models_file,
)


def test_the_first_slash_parts_adapter_and_name() -> None:
    model = open_model("openai/org/model/v2", {"base_url": "http://localhost:1/v1"})
    assert model.name == "openai/org/model/v2"
    assert isinstance(model, AudioModel)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "opnai/x",
            r"there is no adapter 'opnai'; wanted one of anthropic/.*Did you mean 'openai'",
        ),
        ("whisper", r"there is no such model; wanted one of .*earwitness models list"),
        ("openai", r"names an adapter but no model; wanted openai/MODEL. Such as openai/gpt-audio"),
        ("openai/", "names an adapter but no model"),
        (
            "baseline/mayority",
            "there is no such baseline; wanted one of majority, uniform, neutral, prosody",
        ),
    ],
)
def test_names_that_are_none(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_model(name)


def test_options_are_split_at_the_first_equals_sign() -> None:
    assert parse_options(["a-b= 1", "url=http://x?y=z", "e="]) == {
        "a_b": "1",
        "url": "http://x?y=z",
        "e": "",
    }
    assert parse_options(["a=1", "a=1"]) == {"a": "1"}


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["a"], "wanted key=value"),
        (["=1"], "wanted key=value"),
        (["a=1", "a=2"], "given twice: '1' and '2'"),
    ],
)
def test_options_that_are_none(pairs: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_options(pairs)


KNOWN = (
    Option("count", "integer", "how many", 3, least=1),
    Option("share", "number", "how much"),
    Option("loud", "yes/no", "whether", False),
    Option("names", "list", "which"),
    Option("more", "json", "what else"),
    Option("word", "text", "say", choices=("a", "b")),
)


def test_options_take_their_types_from_text_and_from_yaml() -> None:
    text = read_options(
        "m",
        {
            "count": "5",
            "share": "0.5",
            "loud": "Yes",
            "names": "x, y,",
            "more": '{"a": 1}',
            "word": "b",
        },
        KNOWN,
    )
    yaml = read_options(
        "m",
        {
            "count": 5,
            "share": 0.5,
            "loud": True,
            "names": ["x", "y"],
            "more": {"a": 1},
            "word": "b",
        },
        KNOWN,
    )
    assert text == yaml
    assert text == {
        "count": 5,
        "share": 0.5,
        "loud": True,
        "names": ("x", "y"),
        "more": {"a": 1},
        "word": "b",
    }
    assert read_options("m", {}, KNOWN)["count"] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cuont": "1"}, r"m: unknown option 'cuont'; wanted one of count, .*Did you mean 'count'"),
        ({"count": "1.5"}, "option count='1.5'; wanted a whole number. how many."),
        ({"count": True}, "wanted a whole number"),
        ({"count": "0"}, "wanted at least 1"),
        ({"share": "nan"}, "wanted a number"),
        ({"loud": "perhaps"}, "wanted yes or no"),
        ({"names": {"a": 1}}, "wanted names separated by commas"),
        ({"more": "{"}, "wanted a JSON object"),
        ({"word": "c"}, "wanted one of a, b"),
        ({"word": ["a"]}, "wanted text"),
    ],
)
def test_options_of_the_wrong_kind(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_options("m", options, KNOWN)


def test_an_adapter_without_options_says_so() -> None:
    with pytest.raises(UsageError, match="unknown option 'seed'; wanted no options"):
        open_model("baseline/neutral", {"seed": "1"})


@pytest.fixture
def models_file(tmp_path: Path) -> Path:
    path = tmp_path / "models.yaml"
    path.write_text(
        "lab:\n  model: openai/Qwen/Qwen2.5-Omni-7B\n"
        "  options: {base_url: 'http://localhost:8000/v1', temperature: 0, rates: [16000], seed: }\n"
        "floor: baseline/uniform\n"
    )
    return path


def test_a_named_model_has_its_name_and_shows_what_is_behind(models_file: Path) -> None:
    model = open_model("lab", models_file=models_file)
    assert model.name == "lab"
    assert model.settings["model"] == "openai/Qwen/Qwen2.5-Omni-7B"
    assert model.settings["temperature"] == 0.0
    assert model.limits.rates == (16_000,)
    assert isinstance(model, AudioModel)
    assert isinstance(model, Preflight)


def test_options_on_the_command_line_go_before_those_of_the_entry(models_file: Path) -> None:
    model = open_model("lab", {"temperature": "1"}, models_file=models_file)
    assert model.settings["temperature"] == 1.0


def test_two_entries_of_one_model_stay_apart(models_file: Path) -> None:
    assert open_model("floor", models_file=models_file).name == "floor"
    assert open_model("baseline/uniform", models_file=models_file).name == "baseline/uniform"


def test_models_yaml_of_the_current_folder_is_found(
    models_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(models_file.parent)
    assert open_model("lab").name == "lab"
    with pytest.raises(UsageError, match=r"an entry of the models file \(floor, lab\)"):
        open_model("nab")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a", "holds a list; wanted a mapping of names"),
        ("a: {options: {}}", "entry 'a': has no model"),
        ("a: {model: b/c, optoins: {}}", "has unknown fields optoins"),
        ("a: {model: b/c, options: [1]}", "options that are no mapping"),
        ("a: [", "is no valid YAML"),
    ],
)
def test_models_files_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_models_file(path)


def test_an_empty_models_file(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.touch()
    assert read_models_file(path) == {}


def test_a_plug_in_brings_an_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("acme", "tests.models.plugin:open_acme", "earwitness.models"),
        EntryPoint("openai", "tests.models.plugin:open_acme", "earwitness.models"),
        EntryPoint("broken", "tests.models.no_such:open", "earwitness.models"),
    ]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: points)
    assert open_model("acme/best").name == "acme/best"
    assert open_model("openai/x").name == "openai/x"
    with pytest.raises(UsageError, match="adapter 'broken': cannot be loaded"):
        open_model("broken/x")
    listed = {each.info.name: each for each in list_adapters()}
    assert listed["acme"].origin == "a plug-in"
    assert listed["openai"].origin == "built in"
    assert "no_such" in listed["broken"].missing


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    listed = {each.info.name: each for each in list_adapters()}
    assert set(listed) >= {"openai", "endpoint", "python", "baseline"}
    assert "OPENAI_API_KEY" in listed["openai"].missing
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    assert {each.info.name: each for each in list_adapters()}["openai"].missing == ""
