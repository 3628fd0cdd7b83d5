"""The card says what a corpus is, who wrote and judged it, and how good they are known to be."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.corpus_card import corpus_card, reader_trial
from earwitness.scenes.corpus_validate import validate_corpus
from earwitness.scenes.corpus_writing import WritingOrder, order_of, write_corpus
from earwitness.scenes.reader.judge import VERSION
from earwitness.scenes.recovery_filter import JudgeOrder, filter_corpus
from tests.scenes.writing_cases import small_corpus
from tests.standins.text_services import text_service
from tests.standins.writer_server import WriterServer


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


def card_of(folder: Path) -> str:
    return (folder / "CARD.md").read_text()


def test_from_plan_to_filter(tmp_path: Path, bank: Bank) -> None:
    folder = small_corpus(tmp_path / "c", bank, 2, 2).corpus.folder
    planned = card_of(folder)
    assert planned.startswith("# A corpus of scenes: 4 planned, 0 written")
    assert "no dialogues yet" in planned
    assert f"hash `{bank.hash[:12]}`" in planned
    corpus = Corpus(folder)
    asyncio.run(write_corpus(corpus, bank, WritingOrder(workers=1)))
    written = card_of(folder)
    assert "dialogues stand in 4 of their places" in written
    assert "`offline/phrasebook`" in written
    assert "This is the **embedded default**" in written
    assert "Not filtered yet" in written
    corpus = Corpus(folder)
    by = JudgeOrder(tau="-1", embedder="local/wordllama")
    asyncio.run(filter_corpus(corpus, bank, order_of(corpus, workers=1), by))
    filtered = card_of(folder)
    assert "judge `offline/reader`, family reader" in filtered
    assert (
        "on 220 labelled sounds in 188 hand-written snippets it was not fitted to, its balanced accuracy is "
        "70.4% (64.4% to 76.2%); chance is 25 %" in filtered
    )
    assert "the distribution is exactly as planned" in filtered
    assert "| planned, read as | pivot | verbal | behavioral | ambient | recovered |" in filtered
    assert corpus_card(Corpus(folder), bank) == filtered
    assert not validate_corpus(Corpus(folder), bank, workers=1).findings
    (folder / "CARD.md").write_text(filtered.replace("70.4%", "90.4%"))
    assert [f.code for f in validate_corpus(Corpus(folder), bank, workers=1).findings] == ["V303"]


def test_models_are_named_with_what_they_were_asked(tmp_path: Path, bank: Bank) -> None:
    folder = small_corpus(tmp_path / "c", bank, 1, 1).corpus.folder
    writer = WriterServer(bank=bank)
    with text_service("openai", lambda _, user: json.dumps(writer._write(user)[1])) as server:
        options = {"base_url": server.url, "server": "here", "family": "w", "temperature": "0.9"}
        order = WritingOrder(writer="openai/w", options=options, workers=1)
        asyncio.run(write_corpus(Corpus(folder), bank, order))
    card = card_of(folder)
    assert "`openai/w` (temperature 0.9, server here, structured auto), family w" in card
    assert "scene-dialogue/2 `" in card
    assert "situations: those of the bank" in card
    assert "embedded default" not in card
    assert "The terms of the models that wrote may bind the words." in card


def test_the_figure_of_the_reader_is_that_of_the_version_that_ships() -> None:
    # Its value is held against the test set by test_recovery_reader.
    assert reader_trial()["version"] == VERSION
