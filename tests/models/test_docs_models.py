"""docs/models.md says nothing that is not so."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from earwitness.models.endpoint_schema import Description, load_description
from earwitness.models.options import Option
from earwitness.models.registry import adapter_info, list_adapters, read_models_file

TEXT = (Path(__file__).parents[2] / "docs" / "models.md").read_text("utf-8")


def names(options: tuple[Option, ...]) -> set[str]:
    return {option.name for option in options}


def test_every_option_in_a_command_exists() -> None:
    known = {
        each.info.name: names(each.info.options)
        for each in list_adapters()
        if each.origin == "built in"
    }
    seen = 0
    for line in TEXT.splitlines():
        model = re.search(r"(?:--model|probe) ([\w-]+)/", line)
        given = set(re.findall(r"-M (\w+)=", line))
        if model and given:
            seen += 1
            assert given - {"threshold", "host", "model"} <= known[model[1]], line
    assert seen >= 5
    stray = set(re.findall(r"-M (\w+)=", TEXT)) - {"key", "threshold", "host", "model"}
    assert stray <= set().union(*known.values())


def test_every_option_of_chat_models_is_mentioned() -> None:
    for adapter in (
        "openai",
        "google",
        "anthropic",
        "mistral",
        "openai-realtime",
        "openai-responses",
    ):
        for name in names(adapter_info(adapter).options) - {"timeout_s", "min_seconds"}:
            assert f"{name}" in TEXT, (adapter, name)


def test_every_adapter_has_its_place() -> None:
    for each in list_adapters():
        if each.origin == "built in":
            assert f"[`{each.info.name}/" in TEXT, each.info.name


def test_the_examples_in_yaml_are_valid(tmp_path: Path) -> None:
    blocks = list(re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL))
    models = tmp_path / "models.yaml"
    models.write_text(blocks[0])
    assert set(read_models_file(models)) == {"lab-qwen", "floor"}
    vendor = tmp_path / "vendor.yaml"
    vendor.write_text(blocks[1])
    assert load_description(str(vendor)).id == "my-vendor"


def test_every_field_of_a_description_is_mentioned() -> None:
    def fields(model: type) -> set[str]:
        return set(model.model_fields)  # type: ignore[attr-defined]

    parts = [
        Description,
        *(Description.model_fields[name].annotation for name in ("body", "limits", "answer")),
    ]
    for part in parts:
        for name in fields(part):  # type: ignore[arg-type]
            assert f"`{name}" in TEXT or f".{name}`" in TEXT, name


def test_the_schema_of_the_templates_is_yaml_a_person_can_copy() -> None:
    folder = Path(load_description.__code__.co_filename).parent / "endpoints"
    for path in folder.glob("*.yaml"):
        text = path.read_text("utf-8")
        is_template = bool(yaml.safe_load(text).get("template"))
        assert path.stem.startswith("template-") == is_template == text.startswith("# A template")
