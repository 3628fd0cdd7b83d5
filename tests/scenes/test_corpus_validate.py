"""Validation finds every promise that is broken, by its code."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from earwitness.scenes import corpus_writing
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.corpus import Corpus, write_dialogues, write_scenarios, write_templates
from earwitness.scenes.corpus_validate import validate_corpus
from earwitness.scenes.corpus_writing import WritingOrder, write_corpus
from earwitness.scenes.dialogue_records import EventMark, Utterance
from earwitness.scenes.writing import FunctionGate, Violation
from tests.scenes.writing_cases import ComposingWriter, small_corpus


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, bank: Bank) -> Path:
    """A filtered corpus with one refill."""
    folder = tmp_path_factory.mktemp("made") / "c"
    corpus = small_corpus(folder, bank, 3, 3).corpus
    hard = corpus.scenarios()[4].id
    gate = FunctionGate(
        lambda _, s: (s.id != hard, (Violation("R1", "No.", "e1"),)), {"judge": "x"}
    )
    with pytest.MonkeyPatch.context() as patch:
        writer = ComposingWriter(bank)
        patch.setattr(corpus_writing, "_open_writer", lambda *_: writer)
        order = WritingOrder("test/composer", workers=1)
        asyncio.run(write_corpus(corpus, bank, order, gate=gate))
    return folder


@pytest.fixture
def corpus(tmp_path: Path, made: Path) -> Corpus:
    return Corpus(shutil.copytree(made, tmp_path / "c"))


def codes(corpus: Corpus, bank: Bank) -> set[str]:
    return {found.code for found in validate_corpus(corpus, bank, workers=1).findings}


def test_a_corpus_that_keeps_its_promises(corpus: Corpus, bank: Bank) -> None:
    found = validate_corpus(corpus, bank, workers=1)
    assert found.findings == ()
    assert (found.scenarios, found.dialogues, found.refills) == (9, 9, 1)


def _other_location(corpus: Corpus) -> None:
    first, *rest = corpus.scenarios()
    other = "office" if first.location == "park" else "park"
    write_scenarios(corpus.path("scenarios.jsonl"), [replace(first, location=other), *rest])


def _fewer_scenarios(corpus: Corpus) -> None:
    write_scenarios(corpus.path("scenarios.jsonl"), corpus.scenarios()[:-1])


def _other_refill(corpus: Corpus) -> None:
    (taken,) = corpus.refills()
    write_scenarios(
        corpus.path("refills.jsonl"),
        [replace(taken, gender_a="M" if taken.gender_a == "F" else "F")],
    )


def _refill_of_nothing(corpus: Corpus) -> None:
    taken = corpus.refills()
    stray = replace(taken[0], id="nowhere.01.01.r1")
    write_scenarios(corpus.path("refills.jsonl"), [*taken, stray])


def _other_split(corpus: Corpus) -> None:
    (taken,) = corpus.refills()
    first = corpus.scenarios()[0]
    split = "test" if first.split == "train" else "train"
    write_scenarios(
        corpus.path("refills.jsonl"), [replace(taken, split=split, template=first.template)]
    )


def _dialogue_twice(corpus: Corpus) -> None:
    talks = corpus.dialogues()
    write_dialogues(corpus.path("dialogues.jsonl"), [talks[0], *talks])


def _wrong_order(corpus: Corpus) -> None:
    write_dialogues(corpus.path("dialogues.jsonl"), corpus.dialogues()[::-1])


def _stranger(corpus: Corpus) -> None:
    talks = corpus.dialogues()
    stray = replace(talks[0], scenario="nobody.01.01")
    write_dialogues(corpus.path("dialogues.jsonl"), [stray, *talks[1:]])


def _missing(corpus: Corpus) -> None:
    write_dialogues(corpus.path("dialogues.jsonl"), corpus.dialogues()[1:])


def _edited(corpus: Corpus) -> None:
    talks = list(corpus.dialogues())
    said = [
        Utterance(part.speaker, f"Uh, {part.text}") if isinstance(part, Utterance) else part
        for part in talks[2].timeline
    ]
    talks[2] = replace(talks[2], timeline=tuple(said))
    write_dialogues(corpus.path("dialogues.jsonl"), talks)


def _copied(corpus: Corpus) -> None:
    talks = list(corpus.dialogues())
    words = [part for part in talks[0].timeline if not isinstance(part, EventMark)]
    talks[1] = replace(talks[1], timeline=tuple(words))
    write_dialogues(corpus.path("dialogues.jsonl"), talks)


def _abandoned_one(corpus: Corpus) -> None:
    talks = list(corpus.dialogues())
    talks[4] = replace(talks[4], scenario=corpus.abandoned()[0].scenario)
    write_dialogues(corpus.path("dialogues.jsonl"), talks)


def _no_text(corpus: Corpus) -> None:
    write_templates(corpus.path("templates.jsonl"), corpus.templates()[1:])


def _text_twice(corpus: Corpus) -> None:
    first, second, *rest = corpus.templates()
    twin = replace(second, title=first.title, facets=first.facets)
    write_templates(corpus.path("templates.jsonl"), [first, twin, *rest])


def _unfiltered(corpus: Corpus) -> None:
    corpus.with_config(corpus.config.model_copy(update={"judge": None}))


@pytest.mark.parametrize(
    ("damage", "wanted"),
    [
        (_other_location, {"V101"}),
        (_fewer_scenarios, {"V101"}),
        (_other_refill, {"V102", "V207"}),
        (_refill_of_nothing, {"V102"}),
        (_other_split, {"V102", "V103"}),
        (_dialogue_twice, {"V201"}),
        (_wrong_order, {"V201"}),
        (_stranger, {"V201", "V202"}),
        (_missing, {"V202"}),
        (_edited, {"V203", "V206"}),
        (_copied, {"V204", "V206"}),
        (_abandoned_one, {"V205", "V206"}),
        (_no_text, {"V301"}),
        (_text_twice, {"V301"}),
        (_unfiltered, {"V401"}),
    ],
)
def test_each_broken_promise_is_found(
    corpus: Corpus, bank: Bank, damage: Callable[[Corpus], None], wanted: set[str]
) -> None:
    damage(corpus)
    assert wanted <= codes(Corpus(corpus.folder), bank)


def test_work_that_is_left_is_no_damage(corpus: Corpus, bank: Bank) -> None:
    _missing(corpus)
    _unfiltered(corpus)
    found = validate_corpus(Corpus(corpus.folder), bank, workers=1)
    assert found.errors == ()
    assert {each.code for each in found.unfinished} == {"V202", "V401"}


def test_verdicts_are_asked_about_when_there_is_somebody_who_can_tell(
    corpus: Corpus, bank: Bank
) -> None:
    found = validate_corpus(corpus, bank, workers=1, verdicts=lambda *_: ["no verdict on s1"])
    assert [(each.code, each.found) for each in found.findings] == [("V402", "no verdict on s1")]


def test_where_and_what_are_said(corpus: Corpus, bank: Bank) -> None:
    _edited(corpus)
    found = validate_corpus(corpus, bank, workers=1)
    rule = next(each for each in found.findings if each.code == "V203")
    assert "dialogues.jsonl:3: utterance 1" in rule.where
    assert rule.found.startswith("D307-filler: ")
    assert json.dumps(rule.found)
