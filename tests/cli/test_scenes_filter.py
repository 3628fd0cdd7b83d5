"""``earwitness scenes filter``, ``calibrate-topic`` and ``judge-test``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from earwitness.cli import build_app
from earwitness.errors import EarwitnessError, MissingExtraError, UsageError
from earwitness.models.embedders import packaged
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.corpus import COMPARED, Corpus
from earwitness.scenes.recovery import JudgeFamilyError, case_of
from earwitness.scenes.recovery_gate import check_verdicts
from earwitness.scenes.recovery_threshold import ThresholdError
from earwitness.scenes.writers.prompts import FOLDER as PROMPTS
from tests.scenes.writing_cases import small_corpus
from tests.standins.embedding_server import EmbeddingServer
from tests.standins.judge_server import JudgeServer
from tests.standins.writer_server import WriterServer

GOLDEN = Path(__file__).parents[1] / "golden"
SNIPPETS = """\
version: 1
snippets:
- id: bark
  location: a park
  sounds: {e1: a dog}
  reactions: {e1: verbal}
  timeline: |
    A: We should sell the boat.
    [SOUND: e1]
    B: That dog. I would sell it in spring.
  note: named in passing
- id: nothing
  location: a park
  sounds: {e1: a dog}
  reactions: {e1: ambient}
  hard: fluent_topic_change
  timeline: |
    A: We should sell the boat.
    [SOUND: e1]
    B: What is for supper?
  note: another subject
"""


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(build_app(), ["scenes", *arguments])
    if isinstance(result.exception, EarwitnessError):
        raise result.exception
    return result


@pytest.fixture
def written(tmp_path: Path, bank: Bank) -> Path:
    """A corpus a model wrote, four scenes; the writer is gone and its replies are stored."""
    folder = small_corpus(tmp_path / "c", bank, 2, 2).corpus.folder
    with WriterServer(bank=bank) as server:
        run(
            "write", str(folder), "--writer", "openai/w", "-M", f"base_url={server.url}",
            "-M", "server=writer", "-M", "family=w", "--workers", "1",
        )  # fmt: skip
    return folder


Truths = Callable[[str], tuple[str, Mapping[str, str]]]


def truth_of(folder: Path, bank: Bank) -> Truths:
    """Reads the accepted dialogues as planned."""
    known = {
        case_of(dialogue, scenario, bank).transcript: (scenario, dialogue)
        for scenario, dialogue in Corpus(folder).scenes()
    }

    def truth(shown: str) -> tuple[str, Mapping[str, str]]:
        scenario, dialogue = next(v for text, v in known.items() if text in shown)
        return dialogue.topic, {event.id: event.reaction for event in scenario.events}

    return truth


def by(server: JudgeServer, *more: str, family: str = "j") -> list[str]:
    return [
        "--judge", "openai/j", "-M", f"base_url={server.url}", "-M", "server=judge",
        "-M", f"family={family}", "--embedder", "offline/hashed", "--workers", "1", *more,
    ]  # fmt: skip


def test_a_judge_over_http_accepts_what_it_recovers(written: Path, bank: Bank) -> None:
    with JudgeServer(truth_of(written, bank)) as server:
        result = run("filter", str(written), *by(server, "--tau", "0.9"))
        assert result.exit_code == 0, result.output
        assert "first drafts accepted      100.0%" in result.stdout
        assert "distribution: as planned" in result.stdout
        assert "4 of 4 dialogues" in result.stdout
        assert len(server.shown) == 4
    corpus = Corpus(written)
    judge = corpus.config.judge
    assert judge is not None
    assert (judge["judge"], judge["family"], judge["tau"]) == ("openai/j", "j", 0.9)
    assert judge["embedder"] == "offline/hashed"
    assert list(judge["prompts"]) == ["scene-judge/1"]
    assert list(check_verdicts(corpus, bank)) == []
    assert run("validate", str(written), "--workers", "1").exit_code == 0
    figures = json.loads((written / "recovery.json").read_text())
    assert figures["as_planned"] is True
    compared = {name: (written / name).read_bytes() for name in ("corpus.yaml", "dialogues.jsonl")}
    # Nobody is there any more, and nobody is needed: verdicts are kept by content.
    with JudgeServer(lambda _: pytest.fail("judged twice")) as server:
        again = json.loads(
            run("filter", str(written), *by(server, "--tau", "0.9", "--json")).stdout
        )
        assert (again["judged_now"], again["calls"]) == (0, 0)
    for name, data in compared.items():
        assert (written / name).read_bytes() == data


def test_a_judge_that_misreads_empties_places_and_says_so(written: Path, bank: Bank) -> None:
    with JudgeServer(truth_of(written, bank), "wrong") as server:
        result = run(
            "filter", str(written), *by(server, "--tau", "0", "--json"),
            "--max-attempts", "1", "--max-refills", "0",
        )  # fmt: skip
    summary = json.loads(result.stdout)
    eventless = sum(not scenario.events for scenario in Corpus(written).scenarios())
    assert summary["dialogues"] == eventless
    assert len(summary["lost"]) == 4 - eventless
    assert summary["recovery"]["as_planned"] is False
    assert result.exit_code == 1
    assert "places stay empty" in result.output


def test_a_judge_that_gives_no_verdict_leaves_scenes_waiting(written: Path, bank: Bank) -> None:
    truth = truth_of(written, bank)
    with JudgeServer(truth, "refusing") as server:
        result = run("filter", str(written), *by(server, "--tau", "0", "--asks", "2"))
        assert result.exit_code == 3
        assert "4 scenes wait" in result.output
        assert "no verdict in 2 answers: The answer was declined" in result.output
        assert len(server.shown) == 8
    with JudgeServer(truth) as server:
        assert run("filter", str(written), *by(server, "--tau", "0", "--asks", "3")).exit_code == 0


def test_relatives_and_undeclared_families_are_refused_before_any_call(
    written: Path, bank: Bank
) -> None:
    with JudgeServer(truth_of(written, bank)) as server:
        with pytest.raises(JudgeFamilyError, match=r"is of the family 'w', as is the writer"):
            run("filter", str(written), *by(server, family="w"))
        with pytest.raises(JudgeFamilyError, match=r"judge openai/j: its family is not declared"):
            run(
                "filter", str(written), "--judge", "openai/j", "-M", f"base_url={server.url}",
                "--embedder", "offline/hashed", "--tau", "0",
            )  # fmt: skip
        assert not server.calls


def test_a_corpus_that_was_not_written(tmp_path: Path, bank: Bank) -> None:
    folder = small_corpus(tmp_path / "c", bank, 2, 2).corpus.folder
    with pytest.raises(UsageError, match=r"has no dialogues yet.*scenes write"):
        run("filter", str(folder))


def test_offline_from_writing_to_filtering(tmp_path: Path, bank: Bank) -> None:
    folder = small_corpus(tmp_path / "c", bank, 2, 1).corpus.folder
    run("write", str(folder), "--workers", "1")
    result = run("filter", str(folder), "--workers", "1", "--tau", "-1", "--json")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary["dialogues"] == 2
    assert summary["recovery"]["judge"]["family"] == "reader"
    assert summary["recovery"]["as_planned"] is True
    assert not (folder / "judge_calls.jsonl").exists()


def test_tau_is_kept_and_refused_with_another_embedder(
    written: Path, bank: Bank, tmp_path: Path
) -> None:
    tau = tmp_path / "tau.json"
    result = run("calibrate-topic", "--out", str(tau), "--plot", str(tmp_path / "tau.svg"))
    assert result.exit_code == 0
    assert "180 rewordings, 270 other topics, 45 templates" in result.stdout
    assert "AUC          0.729" in result.stdout
    assert (tmp_path / "tau.svg").read_text().startswith("<?xml")
    with JudgeServer(truth_of(written, bank)) as server:
        with pytest.raises(ThresholdError, match=r"a threshold for local/minilm .*offline/hashed"):
            run("filter", str(written), *by(server, "--tau", str(tau)))
        with pytest.raises(ThresholdError, match=r"none.json: cannot be read"):
            run("filter", str(written), *by(server, "--tau", str(tmp_path / "none.json")))
        with pytest.raises(ThresholdError, match=r"does not tell rewordings"):
            run("filter", str(written), *by(server))
        assert not server.calls
        arguments = [a if a != "offline/hashed" else "local/minilm" for a in by(server)]
        result = run("filter", str(written), *arguments)
        assert result.exit_code == 0, result.output
        assert (
            json.loads((written / "topic_threshold.json").read_text())["tau"]
            == (json.loads(tau.read_text())["tau"])
        )


def test_calibrating_with_a_service(tmp_path: Path) -> None:
    out = tmp_path / "t.json"
    with EmbeddingServer() as server:
        arguments = ["--embedder", "openai/bge", "-E", f"base_url={server.url}", "--json"]
        result = CliRunner().invoke(
            build_app(), ["scenes", "calibrate-topic", *arguments, "--out", str(out)]
        )
    # It hashes words and knows no meaning, so its figures are printed and its tau is not kept.
    assert json.loads(result.stdout)["embedder"] == "openai/bge"
    assert isinstance(result.exception, ThresholdError)
    assert not out.exists()
    with pytest.raises(EarwitnessError, match=r"embedder openai/bge: .*cannot connect"):
        run(
            "calibrate-topic", "--embedder", "openai/bge", "-E", "base_url=http://127.0.0.1:9/v1",
            "-E", "max_retries=0",
        )  # fmt: skip


def test_judge_test_of_the_reader() -> None:
    result = run(
        "judge-test", "--judge", "offline/reader",
        "--snippets", str(GOLDEN / "reaction_snippets.yaml"),
    )  # fmt: skip
    assert result.exit_code == 0
    assert "balanced accuracy  70.4% (64.4% to 76.2%) of 220; chance is 25 %" in result.stdout
    assert "late_mention" in result.stdout
    assert "planned \\ read as" in result.stdout


def test_judge_test_of_a_model_goes_on_from_its_ledger(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(SNIPPETS)
    store = tmp_path / "replies.jsonl"

    def truth(shown: str) -> tuple[str, Mapping[str, str]]:
        return "selling a boat", {"e1": "verbal" if "dog" in shown else "ambient"}

    def ask(server: JudgeServer, *more: str) -> Result:
        return run(
            "judge-test", "--judge", "openai/j", "-M", f"base_url={server.url}",
            "-M", "server=s", "--snippets", str(path), "--store", str(store), *more,
        )  # fmt: skip

    with JudgeServer(truth, dies_after=1) as server:
        result = ask(server, "--max-retries", "0", "--concurrency", "1")
        assert result.exit_code == 3
        assert "no verdict on 1 snippets" in result.output
    with JudgeServer(truth) as server:
        found = json.loads(ask(server, "--json").stdout)
        assert len(server.shown) == 1
    assert found["balanced_accuracy"]["value"] == 1.0
    assert found["hard"]["fluent_topic_change"]["of"] == 1
    assert found["confusion"][1] == [0, 1, 0, 0, 0]


def test_without_the_extra_the_reader_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from earwitness.models.embedders import static

    monkeypatch.setattr(static, "package_folder", lambda: None)
    monkeypatch.setattr(packaged, "available", lambda: False)
    with pytest.raises(MissingExtraError, match=r'pip install "earwitness\[local\]"'):
        run(
            "judge-test",
            "-j",
            "offline/reader",
            "--snippets",
            str(GOLDEN / "reaction_snippets.yaml"),
        )


def compared(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in COMPARED}


def test_shards_together_give_what_one_run_gives(tmp_path: Path, bank: Bank) -> None:
    whole = small_corpus(tmp_path / "whole", bank, 3, 2).corpus.folder
    run("write", str(whole), "--workers", "1")
    parts = shutil.copytree(whole, tmp_path / "parts")
    options = ["--workers", "1", "--tau", "0.2", "--embedder", "local/wordllama"]
    run("filter", str(whole), *options)
    # Something was written again, else shards would have nothing to agree on.
    assert '"rejected"' in (whole / "attempts.jsonl").read_text()
    written = compared(parts)
    for shard in ("2/2", "1/2"):
        result = run("filter", str(parts), *options, "--shard", shard)
        assert "3 of 3 dialogues" in result.stdout
    # Shards only add to logs of their own.
    assert compared(parts) == written
    assert not (parts / "recovery.json").exists()
    assert not (parts / "verdicts.jsonl").exists()
    joined = json.loads(run("filter", str(parts), *options, "--json").stdout)
    assert joined["judged_now"] == 0
    assert compared(parts) == compared(whole)
    assert (parts / "recovery.json").read_bytes() == (whole / "recovery.json").read_bytes()
    assert run("validate", str(parts), "--workers", "1").exit_code == 0
    with pytest.raises(UsageError, match="--limit and --shard"):
        run("filter", str(parts), "--shard", "1/2", "--limit", "3")


def test_shards_of_a_model_judge_buy_no_verdict_twice(written: Path, bank: Bank) -> None:
    with JudgeServer(truth_of(written, bank)) as server:
        for shard in ("1/2", "2/2"):
            run("filter", str(written), *by(server, "--tau", "0.9", "--shard", shard))
        assert len(server.shown) == 4
        # Verdicts gone, raw replies left: even then nobody is asked.
        for path in (written / "shards").glob("*/verdicts.jsonl"):
            path.unlink()
        assert run("filter", str(written), *by(server, "--tau", "0.9")).exit_code == 0
        assert len(server.shown) == 4
    assert len(Corpus(written).dialogues()) == 4


def test_a_judges_prompt_is_kept_with_the_corpus(written: Path, bank: Bank, tmp_path: Path) -> None:
    shipped = (PROMPTS / "judge.yaml").read_text()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "judge.yaml").write_text(shipped.replace('version: "1"', 'version: "9"'))
    with JudgeServer(truth_of(written, bank)) as server:
        options = by(server, "--tau", "0.9")
        run("filter", str(written), *options, "--prompts", str(tmp_path / "mine"))
        first = (written / "corpus.yaml").read_bytes()
        assert b"scene-judge/9" in first
        again = json.loads(run("filter", str(written), *options, "--json").stdout)
        assert again["judged_now"] == 0
        assert (written / "corpus.yaml").read_bytes() == first
        run("filter", str(written), *options, "--prompts", "default")
        assert b"scene-judge/1" in (written / "corpus.yaml").read_bytes()
        assert not (written / "prompts" / "judge.yaml").exists()
    with pytest.raises(UsageError, match="given with offline/reader, which asks nobody"):
        run("filter", str(written), "--prompts", str(tmp_path / "mine"))
