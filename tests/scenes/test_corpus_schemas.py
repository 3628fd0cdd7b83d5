"""The published schemas accept what Earwitness writes and refuse what it would not."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.errors import UsageError
from earwitness.runs.jsonlines import read_lines
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.corpus import (
    Abandoned,
    TemplateText,
    write_abandoned,
    write_dialogues,
    write_templates,
)
from earwitness.scenes.dialogue_records import Dialogue, EventMark, Utterance
from earwitness.scenes.schemas import SCHEMAS, schema_of
from tests.scenes.writing_cases import small_corpus


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


@pytest.fixture
def examples(tmp_path: Path, bank: Bank) -> dict[str, list[Any]]:
    corpus = small_corpus(tmp_path / "c", bank, 6, 3).corpus
    talk = Dialogue(
        "s", "A tap", (Utterance("A", "Well."), EventMark("e1"), Utterance("B", "Yes."))
    )
    write_dialogues(corpus.path("dialogues.jsonl"), [talk])
    write_templates(
        corpus.path("templates.jsonl"), [TemplateText("r.01", "r", "test", "A tap", ("water",))]
    )
    write_abandoned(corpus.path("abandoned.jsonl"), [Abandoned("s", (("D101",),), None)])
    files = {"scenario": "scenarios", "dialogue": "dialogues", "template": "templates"}
    files["abandoned"] = "abandoned"
    found: dict[str, list[Any]] = {
        name: [line for _, line in read_lines(corpus.path(f"{file}.jsonl"))]
        for name, file in files.items()
    }
    found["corpus"] = [yaml.safe_load(corpus.path("corpus.yaml").read_text())]
    return found


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_schemas_are_schemas(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema_of(name))


def test_what_is_written_is_valid(examples: dict[str, list[Any]]) -> None:
    for name, values in examples.items():
        validator = jsonschema.Draft202012Validator(schema_of(name))
        for value in values:
            validator.validate(value)
            with pytest.raises(jsonschema.ValidationError):
                validator.validate({**value, "extra": 1})
            for key in value:
                if key in schema_of(name)["required"]:
                    with pytest.raises(jsonschema.ValidationError):
                        validator.validate({k: v for k, v in value.items() if k != key})


def test_an_ambient_event_has_no_register_and_no_other_lacks_one(
    examples: dict[str, list[Any]],
) -> None:
    validator = jsonschema.Draft202012Validator(schema_of("scenario"))
    seen = set()
    for value in examples["scenario"]:
        for number, event in enumerate(value["events"]):
            wrong = copy.deepcopy(value)
            ambient = event["reaction"] == "ambient"
            seen.add(ambient)
            wrong["events"][number]["register"] = "some_register" if ambient else None
            with pytest.raises(jsonschema.ValidationError):
                validator.validate(wrong)
    assert seen == {True, False}


def test_an_unknown_schema_is_refused() -> None:
    with pytest.raises(UsageError, match="one of scenario, dialogue, template, abandoned, corpus"):
        schema_of("songs")


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_schemas_from_the_command_line(name: str) -> None:
    runner, app = CliRunner(), build_app()
    printed = runner.invoke(app, ["schema", name])
    assert json.loads(printed.stdout) == schema_of(name)
    assert runner.invoke(app, ["scenes", "schema", name]).stdout == printed.stdout
