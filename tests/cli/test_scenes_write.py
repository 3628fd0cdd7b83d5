"""``earwitness scenes write`` and ``scenes validate``."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from earwitness.cli import build_app
from earwitness.errors import DataError, EarwitnessError, UsageError
from earwitness.scenes import writing_loop
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.writers import offline
from earwitness.scenes.writers.prompts import FOLDER as PROMPTS
from tests.scenes.writing_cases import small_corpus
from tests.standins.writer_server import WriterServer


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


@pytest.fixture
def folder(tmp_path: Path, bank: Bank) -> Path:
    return small_corpus(tmp_path / "c", bank, 2, 2).corpus.folder


@pytest.fixture
def server(bank: Bank) -> Iterator[WriterServer]:
    with WriterServer(bank=bank) as server:
        yield server


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(build_app(), ["scenes", *arguments])
    if isinstance(result.exception, EarwitnessError):
        raise result.exception
    return result


def by_model(server: WriterServer, *more: str) -> list[str]:
    return ["--writer", "openai/w", "-M", f"base_url={server.url}", "--workers", "1", *more]


def test_write_with_a_model_says_what_it_used(folder: Path, server: WriterServer) -> None:
    result = run("write", str(folder), *by_model(server, "--price", "input=1,output=2"))
    assert result.exit_code == 0
    assert "4 of 4 dialogues" in result.stdout
    assert "models: 8 calls, " in result.stdout
    assert "USD" in result.stdout
    assert "P-V-B-A" in result.stdout
    again = json.loads(run("write", str(folder), "--workers", "1", "--json").stdout)
    assert (again["dialogues"], again["calls"], again["failed"]) == (4, 0, {})
    assert again["acceptance"]["total"]["first"] == 4


def test_validate_by_exit_code(folder: Path, server: WriterServer) -> None:
    assert run("validate", str(folder)).exit_code == 3
    run("write", str(folder), *by_model(server))
    result = run("validate", str(folder))
    assert result.exit_code == 3
    assert "V401" in result.stdout
    assert "0 broken promises, 1 things left to do" in result.stdout
    assert run("validate", str(folder), "--unfinished-ok").exit_code == 0
    talks = (folder / "dialogues.jsonl").read_text().splitlines(keepends=True)
    (folder / "dialogues.jsonl").write_text("".join(talks[::-1]))
    broken = run("validate", str(folder), "--json")
    assert broken.exit_code == 1
    assert {each["code"] for each in json.loads(broken.stdout)["findings"]} == {"V201", "V401"}


def test_a_dead_service_leaves_scenes_waiting(folder: Path, bank: Bank) -> None:
    with WriterServer(bank=bank, dies_after=3) as server:
        result = run("write", str(folder), *by_model(server, "--max-retries", "0", "--json"))
        assert result.exit_code == 3
        assert "scenes wait" in result.stderr
        assert "Run the same command again" in result.stderr
        assert json.loads(result.stdout)["failed"]
        server.dies_after = None
        assert run("write", str(folder), *by_model(server)).exit_code == 0


def test_shards_from_the_command_line(folder: Path, server: WriterServer) -> None:
    for shard in ("1/2", "2/2"):
        result = run("write", str(folder), *by_model(server, "--shard", shard))
        assert result.exit_code == 0
        assert "logs of this shard: 2 of 2 dialogues" in result.stdout
    calls = len(server.calls)
    assert "4 of 4 dialogues" in run("write", str(folder), *by_model(server)).stdout
    assert len(server.calls) == calls


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--shard", "3/2"], "--shard: '3/2'; wanted a number from 1/2 to 2/2"),
        (["--shard", "2"], "wanted I/N, such as 1/8"),
        (["--shard", "1/2", "--limit", "3"], "--limit and --shard: both given"),
        (
            ["--writer", "offline/poet"],
            "there is no such offline writer; wanted offline/phrasebook",
        ),
        (["-M", "temperature=1"], "offline/phrasebook: option 'temperature'; wanted no options"),
        (["--topic-writer", "openai/x"], "composes situation, topic and talk together"),
        (["--writer", "opnai/x"], "Did you mean 'openai'"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    folder: Path, arguments: list[str], match: str
) -> None:
    with pytest.raises(UsageError, match=match):
        run("write", str(folder), *arguments)
    assert not (folder / "dialogues.jsonl").exists()


def test_no_corpus_is_a_named_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is no corpus"):
        run("write", str(tmp_path))
    with pytest.raises(DataError, match="is no corpus"):
        run("validate", str(tmp_path))


def test_the_phrasebook_writes_without_network_on_any_number_of_processes(
    tmp_path: Path, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offline, "FEW", 16)
    monkeypatch.setattr(writing_loop, "CHECK_CHUNK", 16)
    one = small_corpus(tmp_path / "one", bank, 6, 6).corpus.folder
    two = small_corpus(tmp_path / "two", bank, 6, 6).corpus.folder
    first = json.loads(run("write", str(one), "--workers", "1", "--json").stdout)
    second = json.loads(run("write", str(two), "--workers", "2", "--json").stdout)
    assert first["places"] == first["dialogues"] == 36
    assert first["calls"] == 0
    assert {**first, "corpus": ""} == {**second, "corpus": ""}
    for name in ("corpus.yaml", "dialogues.jsonl", "refills.jsonl", "templates.jsonl"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    assert run("validate", str(one), "--workers", "1", "--unfinished-ok").exit_code == 0
    part = small_corpus(tmp_path / "part", bank, 6, 6).corpus.folder
    run("write", str(part), "--workers", "1", "--limit", "20")
    whole = (one / "dialogues.jsonl").read_text().splitlines()
    assert (part / "dialogues.jsonl").read_text().splitlines() == whole[:20]


def own_prompts(folder: Path, version: str) -> Path:
    folder.mkdir()
    for path in PROMPTS.glob("*.yaml"):
        text = path.read_text()
        (folder / path.name).write_text(re.sub(r'version: "\d+"', f'version: "{version}"', text))
    return folder


def test_prompts_of_ones_own_are_kept_with_the_corpus(
    folder: Path, server: WriterServer, tmp_path: Path
) -> None:
    mine = own_prompts(tmp_path / "mine", "7")
    run(
        "write",
        str(folder),
        *by_model(server, "-M", "family=w", "--prompts", str(mine), "--limit", "2"),
    )
    assert "scene-dialogue/7" in (folder / "corpus.yaml").read_text()
    shutil.rmtree(mine)
    asked = len(server.calls)
    # Whoever goes on asks with the same words, though the folder is gone and nobody names it.
    done = json.loads(run("write", str(folder), "--workers", "1", "--json").stdout)
    assert done["dialogues"] == 4
    assert len(server.calls) == asked + 4
    assert "scene-dialogue/7" in (folder / "corpus.yaml").read_text()
    # The same holds for a stage that has scenes written again, however that ends.
    result = run("filter", str(folder), "--workers", "1", "--tau", "-1", "--limit", "1", "--json")
    assert json.loads(result.stdout)["places"] == 1
    assert "scene-dialogue/7" in (folder / "corpus.yaml").read_text()


def test_other_prompts_than_those_of_the_corpus_are_refused(
    folder: Path, server: WriterServer, tmp_path: Path
) -> None:
    run("write", str(folder), *by_model(server, "-M", "family=w"))
    other = own_prompts(tmp_path / "other", "8")
    with pytest.raises(
        UsageError,
        match=r"written with other prompts of the writer \(.*scene-dialogue/2 \w{8}.*\), and these are .*/8.*"
        r"Leave --prompts out to go on with those of the corpus",
    ):
        run("write", str(folder), "--prompts", str(other))
    assert not (folder / "prompts").exists()
    assert run("write", str(folder), "--prompts", str(other), "--replace").exit_code == 0
    assert (folder / "prompts" / "dialogue.yaml").read_bytes() == (
        other / "dialogue.yaml"
    ).read_bytes()
    # An edited copy is noticed; those that ship can be asked for again.
    (folder / "prompts" / "topic.yaml").write_text((PROMPTS / "topic.yaml").read_text())
    assert "V302" in run("validate", str(folder), "--workers", "1").stdout
    with pytest.raises(UsageError, match="other prompts"):
        run("write", str(folder))
    assert run("write", str(folder), "--prompts", "default", "--replace").exit_code == 0
    assert not list((folder / "prompts").iterdir())
    with pytest.raises(UsageError, match="given with offline/phrasebook, which asks nobody"):
        run("write", str(folder), "--writer", "offline/phrasebook", "--prompts", str(other))
