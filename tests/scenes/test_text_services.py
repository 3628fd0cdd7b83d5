"""Every adapter that speaks text writes and judges scenes, in its own protocol."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from earwitness.cli import build_app
from earwitness.errors import EarwitnessError
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.recovery import case_of
from tests.scenes.writing_cases import small_corpus
from tests.standins.text_services import ADAPTERS, Say, text_service
from tests.standins.writer_server import WriterServer


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(build_app(), ["scenes", *arguments])
    if isinstance(result.exception, EarwitnessError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def writing(bank: Bank) -> Say:
    """Says what a good writer says, fenced as models like it."""
    writer = WriterServer(bank=bank)

    def say(system: str, user: str) -> str:
        assert "Answer with one JSON object" in system
        return json.dumps(writer._write(user)[1])

    return say


def truths(folder: Path, bank: Bank) -> dict[str, Any]:
    """Transcript of every accepted dialogue -> the verdict of somebody who knows."""
    return {
        case_of(dialogue, scenario, bank).transcript: {
            "topic": dialogue.topic,
            "sounds": [{"id": e.id, "reaction": e.reaction} for e in scenario.events],
        }
        for scenario, dialogue in Corpus(folder).scenes()
    }


def judging(known: Mapping[str, Any]) -> Say:
    def say(system: str, user: str) -> str:
        assert "pivot" in system
        return json.dumps(next(known[text] for text in known if text in user))

    return say


FIRMEST = {
    "openai": "json_schema",
    "openai-responses": "json_schema",
    "mistral": "json_schema",
    "anthropic": "json_schema",
    "google": "responseJsonSchema",
}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_chat_service_writes_topics_and_dialogues_and_judges(
    adapter: str, tmp_path: Path, bank: Bank
) -> None:
    folder = small_corpus(tmp_path / "c", bank, 1, 2).corpus.folder
    with text_service(adapter, writing(bank)) as server:
        run(
            "write", str(folder), "--writer", f"{adapter}/w", "--topic-writer", f"{adapter}/t",
            "-M", f"base_url={server.url}", "-M", "server=here", "-M", "family=w", "--workers", "1",
        )  # fmt: skip
    assert set(server.forms) == {FIRMEST[adapter]}
    assert len(server.forms) == 4
    used = Corpus(folder).config
    assert used.writer is not None
    assert used.topic_writer is not None
    assert (used.writer.name, used.topic_writer.name) == (f"{adapter}/w", f"{adapter}/t")
    with text_service(adapter, judging(truths(folder, bank))) as server:
        run(
            "filter", str(folder), "--judge", f"{adapter}/j", "-M", f"base_url={server.url}",
            "-M", "family=j", "--embedder", "offline/hashed", "--tau", "0.9", "--workers", "1",
        )  # fmt: skip
    assert set(server.forms) == {FIRMEST[adapter]}
    assert len(Corpus(folder).dialogues()) == 2
    judge = Corpus(folder).config.judge
    assert judge is not None
    assert judge["judge"] == f"{adapter}/j"


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_model_that_forces_no_form_is_asked_for_plain_json(
    adapter: str, tmp_path: Path, bank: Bank
) -> None:
    folder = small_corpus(tmp_path / "c", bank, 1, 1).corpus.folder
    with text_service(adapter, writing(bank), knows=frozenset()) as server:
        run(
            "write", str(folder), "--writer", f"{adapter}/w", "-M", f"base_url={server.url}",
            "-M", "family=w", "--workers", "1", "--concurrency", "1",
        )  # fmt: skip
    # From the firmest form down to none, once; then none at once.
    assert len(server.forms) == 4
    assert server.forms[0] == FIRMEST[adapter]
    assert server.forms[1] not in ("", FIRMEST[adapter])
    assert server.forms[2:] == ["", ""]


def test_a_function_and_a_program_of_ones_own(tmp_path: Path, bank: Bank) -> None:
    folder = small_corpus(tmp_path / "c", bank, 1, 2).corpus.folder
    function = tmp_path / "mine.py"
    function.write_text(
        "import json\n"
        "from earwitness.scenes.bank import load_bank\n"
        "from tests.standins.writer_server import WriterServer\n"
        "writer = WriterServer(bank=load_bank())\n"
        "def write(audio, prompt):\n"
        "    assert audio is None and 'Answer with one JSON object' in prompt\n"
        "    brief = prompt.rpartition('\\n\\n')[2] if 'place:' in prompt.rpartition('\\n\\n')[2] else prompt\n"
        "    return 'Gladly: ' + json.dumps(writer._write(brief[brief.index('place:'):])[1])\n"
    )
    run(
        "write", str(folder), "--writer", f"python/{function}:write", "-M", "family=mine",
        "--workers", "1",
    )  # fmt: skip
    (tmp_path / "known.json").write_text(json.dumps(truths(folder, bank)))
    program = tmp_path / "judge.py"
    program.write_text(
        "import json, pathlib, sys\n"
        "asked = json.load(sys.stdin)\n"
        "assert asked['audio'] is None and 'pivot' in asked['system']\n"
        f"known = json.loads(pathlib.Path({str(tmp_path / 'known.json')!r}).read_text())\n"
        "print(json.dumps(next(known[text] for text in known if text in asked['prompt'])))\n"
    )
    run(
        "filter", str(folder), "--judge", "command/judge", "-M", f"run={sys.executable} {program}",
        "-M", "family=program", "--embedder", "offline/hashed", "--tau", "0.9", "--workers", "1",
    )  # fmt: skip
    assert len(Corpus(folder).dialogues()) == 2
    judge = Corpus(folder).config.judge
    assert judge is not None
    assert (judge["judge"], judge["family"]) == ("command/judge", "program")
