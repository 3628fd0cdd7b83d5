"""docs/models.md says nothing that is not so."""

from __future__ import annotations

import contextlib
import re
import shlex
from pathlib import Path

import yaml

from earwitness.errors import MissingExtraError
from earwitness.models.endpoint_schema import Description, load_description
from earwitness.models.options import Option, parse_options
from earwitness.models.registry import (
    adapter_info,
    list_adapters,
    open_model,
    read_models_file,
)

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
            assert given - {"threshold", "host", "model", "weights"} <= known[model[1]], line
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
        "hume-realtime",
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


def test_every_model_of_the_papers_has_a_line() -> None:
    start = TEXT.index("## The models of the two papers")
    rows = [
        line for line in TEXT[start : TEXT.index("### Kimi-Audio")].splitlines() if line[:2] == "| "
    ]
    for name in (
        "gemini_3_5_flash", "openai_realtime", "tr_voxtral_small", "tr_qwen3_5_omni_plus", "Hume", "Qwen3-Omni",
        "Audio Flamingo Next", "MOSS-Audio", "MiMo-Audio", "MiDashengLM", "Kimi-Audio", "Whisper large v3",
    ):  # fmt: skip
        assert any(name in row.split("|")[1] for row in rows), name
    assert "None was run against real weights" in TEXT


def test_the_models_of_the_papers_can_be_opened() -> None:
    """Names and options of every ``adapter/model -M ...`` in the tables of the papers' models."""
    start = TEXT.index("## The models of the two papers")
    table = TEXT[start : TEXT.index("### Kimi-Audio")]
    adapters = "google|openai|openai-realtime|mistral|cascade|hume-realtime|endpoint"
    named = re.findall(rf"`((?:{adapters})/[^`]+)`", table)
    assert len(named) >= 7
    for command in named:
        name, *words = shlex.split(command)
        pairs = [word for word in words if word != "-M"]
        # Weights that are not installed here come after the options have been read.
        with contextlib.suppress(MissingExtraError):
            open_model(name, parse_options(pairs))


def test_the_function_for_kimi_is_python_a_person_can_copy(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    [kimi] = [block for block in blocks if block.startswith("# kimi.py")]
    path = tmp_path / "kimi.py"
    path.write_text(kimi)
    model = open_model(f"python/{path}:predict", {"rate": "16000", "weights": "7B-Instruct"})
    assert model.settings["options"] == {"weights": "7B-Instruct"}
