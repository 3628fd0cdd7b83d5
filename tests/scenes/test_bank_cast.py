"""A corpus planned for a cast rests on no delivery tag that the cast cannot perform."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.bank_cast import bank_for, bank_in, renderable, tag_ids
from earwitness.scenes.corpus import Corpus, TemplateText
from earwitness.scenes.corpus_plan import plan_corpus, read_cast
from earwitness.scenes.corpus_validate import validate_corpus
from earwitness.scenes.corpus_writing import WritingOrder, write_corpus
from earwitness.scenes.dialogue import check
from earwitness.scenes.plan import PlanRequest, load_preset, plan
from earwitness.scenes.tags import split_tags, tag_of
from earwitness.scenes.voices_cast import choose, load_cast
from earwitness.scenes.voices_text import needs_of
from earwitness.scenes.writers.prompts import WriterPrompts
from earwitness.scenes.writing import Assignment
from tests.standins.writer_server import WriterServer

CAST = """\
voices:
  - {voice: made/f1, gender: F, tags: [gasp, sigh]}
  - {voice: made/f2, gender: F, tags: [gasp, laugh]}
  - {voice: made/m1, gender: M, tags: [gasp]}
  - {voice: made/m2, gender: M, tags: [gasp, gulp]}
"""


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


def planned(folder: Path, bank: Bank, templates: int) -> Corpus:
    """Planned for voices that can only gasp, all of them; two registers of the bank ask for more."""
    (folder / "cast.yaml").write_text(CAST)
    return plan_corpus(
        folder / "c", bank, templates=templates, per_template=10, seed=3,
        preset=load_preset("balanced"), cast=read_cast(folder / "cast.yaml", bank),
    ).corpus  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, bank: Bank) -> Corpus:
    """Written by the phrasebook, in several processes."""
    corpus = planned(tmp_path_factory.mktemp("cast"), bank, 8)
    asyncio.run(write_corpus(corpus, bank, WritingOrder(workers=2)))
    return Corpus(corpus.folder)


def written(corpus: Corpus) -> set[str]:
    return {
        piece.content
        for dialogue in corpus.dialogues()
        for utterance in dialogue.utterances
        for piece in split_tags(utterance.text)
        if piece.kind == "tag"
    }


def test_the_bank_of_a_cast(bank: Bank) -> None:
    assert bank_for(bank, None) is bank
    assert bank_for(bank, tag_ids(bank)) is bank
    told = bank_for(bank, {"gasp"})
    assert renderable(bank, {"gasp"}) == tag_ids(told) == ("gasp", "long_pause", "pause")
    assert tag_of(told, "gasps") is not None
    assert tag_of(told, "gulps") is None
    assert tag_of(bank, "gulps") is not None
    assert told.hash != bank.hash
    assert bank_in(None, tag_ids(told)) == told
    assert {t for r in told.registers for t in r.tags} == {"gasp"}
    assert {t for r in bank.registers for t in r.tags} > {"gasp"}


def test_a_phrasebook_corpus_for_a_cast_is_one_the_cast_can_speak(
    corpus: Corpus, bank: Bank
) -> None:
    assert written(corpus) == {"gasps"}
    cast = load_cast(str(corpus.folder.parent / "cast.yaml"))
    rests = 0
    for scenario, dialogue in corpus.scenes():
        needs = [
            (dialogue.utterances[need.turn].speaker, need)
            for need in needs_of(scenario, dialogue, bank)
        ]
        rests += len(needs)
        choose(cast, scenario, needs, seed=1)  # what `scenes speak` refuses a scene by
    assert rests >= 3
    assert not validate_corpus(corpus, bank, workers=1).errors


def test_a_tag_nobody_renders_breaks_a_rule(corpus: Corpus, bank: Bank, tmp_path: Path) -> None:
    corpus = Corpus(shutil.copytree(corpus.folder, tmp_path / "c"))
    path = corpus.path("dialogues.jsonl")
    path.write_text(path.read_text().replace("[gasps]", "[gulps]"))
    runner = CliRunner()
    found = runner.invoke(
        build_app(), ["scenes", "check", "--corpus", str(corpus.folder), "--json"]
    )
    counts = json.loads(found.stdout)["counts"]
    assert set(counts) == {"D306-unknown-tag", "D405-required-tag"}
    assert json.loads(found.stdout)["bank_hash"] == bank.hash
    codes = {finding.code for finding in validate_corpus(corpus, bank, workers=1).errors}
    assert codes == {"V203", "V206"}
    # With all of the bank's tags the same dialogues are in order.
    assert not [d for s, d in corpus.scenes() if check(d, s, bank)]


def test_a_model_is_told_of_no_other_tags(tmp_path: Path, bank: Bank) -> None:
    corpus = planned(tmp_path, bank, 4)
    with WriterServer(bank=corpus.for_cast(bank)) as server:
        order = WritingOrder(
            writer="openai/w", options={"base_url": server.url, "family": "w"}, workers=1
        )
        asyncio.run(write_corpus(corpus, bank, order))
        systems = {system for system, user in server.prompts if "stands_after_utterance" in user}
        users = [user for _, user in server.prompts]
    (system,) = systems
    assert "[gasps]" in system
    assert "[pauses]" in system
    others = [tag.written for tag in bank.tags if tag.id not in ("gasp", "pause", "long_pause")]
    assert not [tag for tag in others if f"[{tag}]" in system]
    assert any("holds one of [gasps] inside a phrase" in user for user in users)
    assert not [tag for tag in others if any(f"[{tag}]" in user for user in users)]


def test_a_bank_without_tags_lists_none(bank: Bank) -> None:
    scenario = plan(bank, PlanRequest(1, 1, seed=1, preset=load_preset("balanced")))[0]
    template = TemplateText("t.01", scenario.theme, scenario.split, "Mending the fence", ("wood",))
    silent = dataclasses.replace(bank, tags=(), hash="silent")
    system = WriterPrompts(silent, 1).dialogue(Assignment(scenario, template), "A fence.").system
    assert "only from this list" not in system
    assert "Nothing stands in square brackets." in system
