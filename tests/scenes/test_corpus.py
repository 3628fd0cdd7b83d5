"""The corpus folder: read with named errors, one process at a time, files whole or not at all."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from earwitness.errors import DataError, UsageError
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.corpus import (
    Abandoned,
    Corpus,
    TemplateText,
    locked,
    write_abandoned,
    write_dialogues,
    write_templates,
)
from earwitness.scenes.dialogue_records import Dialogue, EventMark, Utterance
from tests.scenes.writing_cases import small_corpus

GERMAN = Path(__file__).parent / "german_bank"


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


@pytest.fixture
def corpus(tmp_path: Path, bank: Bank) -> Corpus:
    return small_corpus(tmp_path / "c", bank, 2, 2).corpus


def test_a_planned_corpus_has_scenarios_and_nothing_else(corpus: Corpus) -> None:
    assert len(corpus.scenarios()) == 4
    assert corpus.dialogues() == corpus.refills() == corpus.templates() == corpus.abandoned() == ()
    assert corpus.config.judge is None
    assert not re.search(r"\d{4}-\d\d-\d\d", corpus.path("corpus.yaml").read_text())


def test_parts_come_back_as_they_were_written(corpus: Corpus) -> None:
    name = corpus.scenarios()[0].id
    talk = Dialogue(name, "Über Wände", (Utterance("A", "Ja [sighs]."), EventMark("e1")))
    text = TemplateText("repairs.01", "repairs", "test", "A tap", ("water", "cost"))
    gone = Abandoned(name, (("D101",), ("D101", "W101")), None)
    write_dialogues(corpus.path("dialogues.jsonl"), [talk])
    write_templates(corpus.path("templates.jsonl"), [text])
    write_abandoned(corpus.path("abandoned.jsonl"), [gone])
    assert corpus.dialogues() == (talk,)
    assert corpus.templates() == (text,)
    assert corpus.abandoned() == (gone,)
    assert corpus.scenes() == ((corpus.scenarios()[0], talk),)


def test_a_folder_without_a_corpus(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is no corpus.*made by: earwitness scenes plan"):
        Corpus(tmp_path)


@pytest.mark.parametrize(
    ("name", "line", "match"),
    [
        ("dialogues.jsonl", '{"scenario":"x","topic":"y","timeline":[3]}', r"dialogues\.jsonl:1: dia.*timeline\[0\]"),
        ("dialogues.jsonl", '{"scenario"', r"dialogues\.jsonl:1: is not JSON"),
        ("scenarios.jsonl", '{"id":"x"}', r"scenarios\.jsonl:1: is not a scenario"),
        ("templates.jsonl", '{"id":"x"}', r"templates\.jsonl:1: is not a template"),
        ("abandoned.jsonl", '{"scenario":"x"}', r"abandoned\.jsonl:1: is not an abandoned scenario"),
        ("refills.jsonl", "[]", r"refills\.jsonl:1: is no JSON object"),
    ],
)  # fmt: skip
def test_a_broken_part_is_named_with_its_line(
    corpus: Corpus, name: str, line: str, match: str
) -> None:
    corpus.path(name).write_text(line + "\n")
    with pytest.raises(DataError, match=match):
        getattr(corpus, name.partition(".")[0])()


def test_a_dialogue_of_no_scenario_is_named(corpus: Corpus) -> None:
    write_dialogues(corpus.path("dialogues.jsonl"), [Dialogue("nobody", "", ())])
    with pytest.raises(DataError, match=r"dialogues\.jsonl:1: a dialogue of 'nobody'"):
        corpus.scenes()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (": [", "is no valid YAML"),
        ("format: 1", r"corpus\.yaml: seed: Field required"),
        ("format: 2", r"corpus\.yaml: format"),
        ("[]", r"corpus\.yaml: the whole"),
    ],
)
def test_a_broken_configuration_is_named(corpus: Corpus, text: str, match: str) -> None:
    corpus.path("corpus.yaml").write_text(text)
    with pytest.raises(DataError, match=match):
        _ = Corpus(corpus.folder).config


def test_another_bank_is_refused(corpus: Corpus) -> None:
    with pytest.raises(UsageError, match=r"--bank: kleine_bank .*wanted default .*--bank DIR"):
        corpus.bank(GERMAN)


def test_one_process_at_a_time_and_shards_together(corpus: Corpus) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from earwitness.errors import UsageError\n"
        "from earwitness.scenes.corpus import locked\n"
        "try:\n"
        "    with locked(Path(sys.argv[1]), shared=sys.argv[2] == 'shared'): print('in')\n"
        "except UsageError as error: print(error)\n"
    )

    def other(how: str) -> str:
        arguments = [sys.executable, "-c", script, str(corpus.folder), how]
        return subprocess.run(arguments, capture_output=True, text=True, check=True).stdout

    with corpus.lock():
        assert "another process is working on this corpus" in other("alone")
        assert "another process is working on this corpus" in other("shared")
    with locked(corpus.folder, shared=True):
        assert other("shared") == "in\n"
        assert "another process" in other("alone")
    assert other("alone") == "in\n"
