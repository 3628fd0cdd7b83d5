"""One file for every setting: defaults, other values, and what may change later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from earwitness.errors import UsageError
from earwitness.scenes.build_config import (
    BuildConfig,
    BuildConfigError,
    flat,
    parse_settings,
    per_template_for,
    read_build_config,
    require_same,
    with_settings,
)
from earwitness.scenes.schemas import schema_of


def test_the_printed_defaults_are_the_defaults_and_say_what_each_means(tmp_path: Path) -> None:
    text = BuildConfig().to_yaml()
    (tmp_path / "all.yaml").write_text(text)
    assert read_build_config(tmp_path / "all.yaml") == BuildConfig()
    (tmp_path / "none.yaml").write_text("\n")
    assert read_build_config(tmp_path / "none.yaml") == BuildConfig()
    lines = [line for line in text.splitlines() if line]
    assert all("  #" in line or " # " in line for line in lines)
    said = yaml.safe_load(text)
    assert sum(len(part) if isinstance(part, dict) else 1 for part in said.values()) == len(
        flat(BuildConfig())
    )


def test_values_that_need_quotes_survive_the_file(tmp_path: Path) -> None:
    config = with_settings(
        BuildConfig(),
        {"write.options": {"base_url": "http://x:1/v1", "family": "a # b"}, "filter.tau": "0.3", "run.price": "input=1"},
        "--set",
    )  # fmt: skip
    (tmp_path / "c.yaml").write_text(config.to_yaml())
    assert read_build_config(tmp_path / "c.yaml") == config


def test_the_schema_knows_every_setting() -> None:
    schema = schema_of("build")
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    parts = schema["$defs"]
    assert set(schema["properties"]) == set(BuildConfig.model_fields)
    assert set(parts["MixPart"]["properties"]) == set(type(BuildConfig().mix).model_fields)
    assert all("description" in each for each in parts["MixPart"]["properties"].values())
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    ("scenes", "per_template", "templates", "places"),
    [(1, 1, 1, 1), (20, 1, 20, 20), (39, 1, 39, 39), (41, 2, 21, 42), (100, 5, 20, 100), (1003, 10, 101, 1010)],
)  # fmt: skip
def test_scenes_come_in_whole_situations(
    scenes: int, per_template: int, templates: int, places: int
) -> None:
    config = BuildConfig(scenes=scenes)
    assert per_template_for(scenes) == per_template
    assert (config.per_template, config.templates, config.places) == (per_template, templates, places)  # fmt: skip
    assert config.resolved().plan.per_template == per_template
    assert with_settings(config, {"plan.per_template": 1}, "--set").places == scenes


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"mix.presets": "paper"}, "--set mix.presets: there is no such setting"),
        ({"mix.preset.id": "paper"}, "--set mix.preset.id: there is no such setting"),
        ({"tempo": 3}, "--set tempo: there is no such setting"),
        ({"scenes": 0}, "--set scenes: found 0; wanted input should be greater than or equal to 1"),
        ({"mix.format": "mp3"}, "--set mix.format: found 'mp3'; wanted input should be 'wav' or 'flac'"),
        ({"mix.mute": ["all", "all"]}, "mix.mute with each entry once"),
    ],
)  # fmt: skip
def test_other_values_are_refused_by_name(settings: dict[str, Any], match: str) -> None:
    with pytest.raises(UsageError, match=match.replace(".", r"\.")):
        with_settings(BuildConfig(), settings, "--set")


@pytest.mark.parametrize("text", ["mix.format", "=3", "mix.mute=[a"])
def test_what_is_no_setting_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--set"):
        parse_settings([text])


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("mix: {colour: red}", "mix.colour: found 'red'; wanted extra inputs are not permitted"),
        ("scenes: many", "scenes: found 'many'"),
        ("scenes: [", "not YAML"),
        ("- 3", "wanted input should be a valid dictionary"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path, text: str, match: str) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(BuildConfigError, match=match):
        read_build_config(tmp_path / "bad.yaml")
    with pytest.raises(BuildConfigError, match="no such file"):
        read_build_config(tmp_path / "none.yaml")


MADE = BuildConfig(scenes=40).resolved()


@pytest.mark.parametrize(
    "settings",
    [
        {"scenes": 60},
        {"run.workers": 3, "run.max_cost_usd": 2.5},
        {"labels.formats": [], "audit.strict": True},
        {"mix.swap_sound": ["each"], "mix.speech_only": True, "mix.stems": True},
        {"mix.mute": ["each", "all", "e1"]},
        {"write.max_refills": 30},
    ],
)
def test_a_corpus_may_get_more(settings: dict[str, Any]) -> None:
    require_same(MADE, with_settings(MADE, settings, "--set"), Path("corpus"))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"scenes": 20}, "scenes was 40 and is 20"),
        ({"seed": 1}, "seed was 0 and is 1"),
        ({"mix.mute": ["all"]}, r"mix.mute was \[each, all\] and is \[all\]"),
        ({"mix.preset": "paper", "filter.judge": None},
         "filter.judge was offline/reader and is null; mix.preset was balanced and is paper"),
        ({"plan.per_template": 4}, "plan.per_template was 2 and is 4"),
        ({"mix.allow_overlap": True}, "mix.allow_overlap was false and is true"),
    ],
)  # fmt: skip
def test_anything_else_is_refused_and_named(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=f"corpus: was made with other settings: {told}; wanted"):
        require_same(MADE, with_settings(MADE, settings, "--set"), Path("corpus"))
