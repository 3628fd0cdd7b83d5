"""docs/models.md says nothing that is not so."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from earwitness.errors import MissingExtraError
from earwitness.models.endpoint_schema import Description, load_description
from earwitness.models.options import Option, parse_options
from earwitness.models.protocols import AudioRef, Request
from earwitness.models.registry import (
    adapter_info,
    list_adapters,
    open_model,
    open_text_model,
    read_models_file,
)
from tests.models.conftest import open_and_ask
from tests.standins.openai_server import OpenAIServer

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
    # ``family`` belongs to every model that writes or judges.
    stray = set(re.findall(r"-M (\w+)=", TEXT)) - {"key", "threshold", "host", "model", "family"}
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


def open_weights() -> list[str]:
    """What stands behind ``openai/`` in the table of open weights, one command a row."""
    table = TEXT[TEXT.index("### Open weights on a server of yours") :]
    rows = [
        line
        for line in table[: table.index("What no server takes")].splitlines()
        if line[:2] == "| "
    ]
    return [re.findall(r"`([^`]+)`", row.split(" | ")[2])[0] for row in rows[2:]]


@pytest.mark.parametrize("command", open_weights())
def test_open_weights_are_asked_as_their_row_says(
    command: str, request_: Request, make_clip: Callable[..., AudioRef]
) -> None:
    model, *words = shlex.split(command)
    options = parse_options([word for word in words if word != "-M"])
    assert re.fullmatch(r"http://localhost:(8000|30000)/v1", options.pop("base_url"))
    clip = make_clip(seconds=2.0, rate=44_100)
    with OpenAIServer() as server:
        reply = open_and_ask(
            f"openai/{model}", replace(request_, audio=clip), base_url=server.url, **options
        )
        [asked] = server.asked
    assert reply.text == "neutral"
    assert asked.model == model
    assert asked.audio is not None
    assert asked.audio.rate == (16_000 if "rates" in options else 44_100)
    [turn] = asked.body["messages"]
    kinds = [part["type"] for part in turn["content"]]
    assert (kinds[0] != "text") == (options.get("audio_first") == "yes")
    assert options.get("audio_form", "input_audio") in kinds
    for name in ("max_tokens", "temperature"):
        given = options.get(name)
        assert asked.body.get(name) == (None if given is None else float(given))


def test_sampling_of_the_papers_reaches_the_server(request_: Request) -> None:
    start = TEXT.index("## The models of the two papers")
    table = TEXT[start : TEXT.index("### Kimi-Audio")]
    given = [shlex.split(found) for found in re.findall(r"`(-M [^`]+)`", table)]
    pairs = [word for words in given for word in words if word != "-M"]
    seen: dict[str, object] = {}
    for pair in pairs:
        options = parse_options([pair])
        with OpenAIServer() as server:
            open_and_ask("openai/m", request_, base_url=server.url, **options)
            seen |= server.asked[0].body
    assert (seen["repetition_penalty"], seen["top_k"]) == (1.2, 50)
    assert (seen["temperature"], seen["top_p"], seen["max_tokens"]) == (0.7, 0.9, 2048)


def test_the_models_that_made_a_corpus_can_be_opened() -> None:
    start = TEXT.index("The models that made CARES and judged it")
    table = TEXT[start : TEXT.index("### Kimi-Audio")]
    commands = [shlex.split(found) for found in re.findall(r"`(earwitness [^`]+)`", table)]
    assert len(commands) == 3
    opened = set()
    for words in commands:
        options = parse_options(
            [
                words[at + 1]
                for at, word in enumerate(words)
                if word == "-M" and "topic." not in words[at + 1]
            ]
        )
        for flag in ("--writer", "--topic-writer", "--judge"):
            if flag in words:
                name = words[words.index(flag) + 1]
                mine = {} if flag == "--topic-writer" else options
                opened.add(open_text_model(name, mine).name)
    assert {name.partition("/")[0] for name in opened} == {"anthropic", "openai"}
    assert len(opened) == 4


def test_the_function_for_kimi_is_python_a_person_can_copy(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    [kimi] = [block for block in blocks if block.startswith("# kimi.py")]
    path = tmp_path / "kimi.py"
    path.write_text(kimi)
    model = open_model(f"python/{path}:predict", {"rate": "16000", "weights": "7B-Instruct"})
    assert model.settings["options"] == {"weights": "7B-Instruct"}
