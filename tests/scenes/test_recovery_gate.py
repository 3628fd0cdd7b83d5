"""The gate in the writing loop: nothing is judged twice, and what stands is distributed as planned."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from earwitness.errors import ModelError, UsageError
from earwitness.models.embedders.hashed import HashedEmbedder
from earwitness.models.embedders.hashes import embedder_hash
from earwitness.models.protocols import Embedder
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.corpus import DIALOGUES, VERDICTS, Corpus, write_dialogues, write_scenarios
from earwitness.scenes.corpus_config import LoopUsed
from earwitness.scenes.recovery import Case, Judge, Verdict
from earwitness.scenes.recovery_gate import RecoveryGate, check_verdicts
from earwitness.scenes.recovery_report import report
from earwitness.scenes.recovery_threshold import Threshold, ThresholdError
from earwitness.scenes.writing_loop import WritingResult
from tests.scenes.recovery_cases import Memory, TableJudge
from tests.scenes.writing_cases import ComposingWriter, run_loop, small_corpus

TAU = 0.5
LOOP = LoopUsed(max_attempts=2, max_refills=3)


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


@pytest.fixture
def corpus(tmp_path: Path, bank: Bank) -> Corpus:
    return small_corpus(tmp_path / "c", bank, 3, 4).corpus


def gate_for(
    corpus: Corpus, bank: Bank, judge: Judge, embedder: Embedder | None = None, tau: float = TAU
) -> RecoveryGate:
    compared_by = embedder or HashedEmbedder()
    threshold = Threshold(tau, compared_by.name, embedder_hash(compared_by))
    return RecoveryGate(bank, judge, compared_by, threshold, corpus.path(VERDICTS))


def run(
    corpus: Corpus, bank: Bank, memory: Memory, gate: RecoveryGate, loop: LoopUsed = LOOP
) -> WritingResult:
    try:
        writer = ComposingWriter(bank, memory.note)
        return run_loop(corpus.scenarios(), bank, writer, gate=gate, loop=loop)
    finally:
        asyncio.run(gate.aclose())


def test_what_is_read_as_planned_stands_and_is_never_judged_again(
    corpus: Corpus, bank: Bank
) -> None:
    memory = Memory(bank)
    judge = TableJudge(memory.planned)
    result = run(corpus, bank, memory, gate_for(corpus, bank, judge))
    assert result.complete
    assert len(judge.asked) == 12
    again = TableJudge(lambda _: pytest.fail("judged twice"))
    repeated = gate_for(corpus, bank, again)
    assert run(corpus, bank, memory, repeated).dialogues == result.dialogues
    assert repeated.judged == 0
    assert len(repeated.rulings) == 12


def test_another_judge_or_other_words_are_judged_anew(corpus: Corpus, bank: Bank) -> None:
    memory = Memory(bank)
    run(corpus, bank, memory, gate_for(corpus, bank, TableJudge(memory.planned)))
    other = TableJudge(memory.planned, temperature=1)
    run(corpus, bank, memory, gate_for(corpus, bank, other))
    assert len(other.asked) == 12


def test_what_is_misread_is_written_again_with_the_reasons(corpus: Corpus, bank: Bank) -> None:
    memory = Memory(bank)

    def first_misread(case: Case) -> Verdict:
        verdict = memory.planned(case)
        if memory.attempt(case) > 1:
            return verdict
        return Verdict("quite something else", verdict.reactions)

    gate = gate_for(corpus, bank, TableJudge(first_misread))
    writer = ComposingWriter(bank, memory.note)
    result = run_loop(corpus.scenarios(), bank, writer, gate=gate, loop=LOOP)
    asyncio.run(gate.aclose())
    assert result.complete
    second = [each for each in writer.assignments if each.attempt == 2]
    assert len(second) == 12
    assert {reason.code for each in second for reason in each.reasons} == {"R101-topic-lost"}
    figures = report(result, gate.rulings, TAU)
    assert figures.accepted.value == figures.topic.value == 0
    assert figures.mean_attempts == 2
    assert figures.as_planned


def test_refills_keep_the_planned_distribution(corpus: Corpus, bank: Bank) -> None:
    """A judge that takes every pivot of planned scenes for a remark: refills fill their places."""
    memory = Memory(bank)

    def blind(case: Case) -> Verdict:
        verdict = memory.planned(case)
        if ".r" in memory.scenario(case).id:
            return verdict
        read = {e: "verbal" if r == "pivot" else r for e, r in verdict.reactions.items()}
        return Verdict(verdict.topic, read)  # type: ignore[arg-type]

    gate = gate_for(corpus, bank, TableJudge(blind))
    result = run(corpus, bank, memory, gate)
    pivots = sum(scenario.count("pivot") > 0 for scenario in corpus.scenarios())
    assert pivots
    assert result.complete
    assert len(result.abandoned) == len(result.refills) == pivots
    figures = report(result, gate.rulings, TAU)
    assert figures.as_planned
    assert set(figures.distribution.values()) == {0}
    planned_pivots = figures.confusion[0]
    assert planned_pivots[1] == pivots
    assert planned_pivots[0] == pivots  # those of the refills
    assert figures.recovered["pivot"].value == 0.5
    for key, share in figures.compositions.items():
        assert share.value == (0.5 if key.startswith("1") else 1.0)
    assert json.dumps(figures.to_json())


def test_an_empty_place_is_not_as_planned(corpus: Corpus, bank: Bank) -> None:
    memory = Memory(bank)

    def never(case: Case) -> Verdict:
        verdict = memory.planned(case)
        lost = memory.scenario(case).template == corpus.scenarios()[0].template
        return Verdict("nothing of the kind" if lost else verdict.topic, verdict.reactions)

    gate = gate_for(corpus, bank, TableJudge(never))
    result = run(corpus, bank, memory, gate, LoopUsed(max_attempts=1, max_refills=0))
    assert len(result.lost) == 4
    figures = report(result, gate.rulings, TAU)
    assert not figures.as_planned
    assert figures.distribution["composition"] == 4


def test_a_judge_without_a_verdict_leaves_the_scene_for_later(corpus: Corpus, bank: Bank) -> None:
    memory = Memory(bank)
    silent = {corpus.scenarios()[2].id, corpus.scenarios()[5].id}
    half = TableJudge(
        lambda case: None if memory.scenario(case).id in silent else memory.planned(case)
    )
    result = run(corpus, bank, memory, gate_for(corpus, bank, half))
    assert set(result.failed) == silent
    assert "test/table: no verdict: silence" in result.failed[corpus.scenarios()[2].id]
    assert not result.abandoned
    whole = TableJudge(memory.planned)
    assert run(corpus, bank, memory, gate_for(corpus, bank, whole)).complete
    assert len(whole.asked) == 2


class Failing(HashedEmbedder):
    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        raise ModelError("the service is away", kind="connection", retryable=True)


def test_an_embedding_service_that_fails_leaves_scenes_waiting(corpus: Corpus, bank: Bank) -> None:
    memory = Memory(bank)
    result = run(
        corpus, bank, memory, gate_for(corpus, bank, TableJudge(memory.planned), Failing())
    )
    assert len(result.failed) == 12
    assert "connection: the service is away" in next(iter(result.failed.values()))
    # The verdicts were kept, so only the comparison is made up for.
    judge = TableJudge(lambda _: pytest.fail("judged twice"))
    assert run(corpus, bank, memory, gate_for(corpus, bank, judge)).complete


def test_the_same_words_twice_are_judged_once(corpus: Corpus, bank: Bank) -> None:
    scenario = corpus.scenarios()[0]
    memory = Memory(bank)
    writer = ComposingWriter(bank, memory.note)
    from earwitness.scenes.writers.templates import BankTemplates
    from earwitness.scenes.writing import Assignment

    texts = asyncio.run(BankTemplates(bank, 11).texts([scenario]))
    dialogue = writer.dialogue(Assignment(scenario, texts[scenario.template]))
    memory.keep(dialogue, scenario)
    judge = TableJudge(memory.planned)
    gate = gate_for(corpus, bank, judge)
    done: list[int] = []
    rulings = asyncio.run(gate.rule([(dialogue, scenario)] * 3, done.append))
    asyncio.run(gate.aclose())
    assert [ruling.accepted for ruling in rulings] == [True] * 3
    assert len(judge.asked) == 1
    assert done == [3]


def test_a_threshold_of_another_embedder_is_refused(corpus: Corpus, bank: Bank) -> None:
    with pytest.raises(ThresholdError, match=r"--tau: a threshold for x/y"):
        RecoveryGate(
            bank,
            TableJudge(lambda _: None),
            HashedEmbedder(),
            Threshold(0.5, "x/y", "0" * 64),
            corpus.path(VERDICTS),
        )


def test_two_filters_do_not_write_to_one_log(corpus: Corpus, bank: Bank) -> None:
    gate = gate_for(corpus, bank, TableJudge(lambda _: None))
    with pytest.raises(UsageError, match=r"another process is filtering"):
        gate_for(corpus, bank, TableJudge(lambda _: None))
    asyncio.run(gate.aclose())


def test_verdicts_bear_out_what_was_accepted(corpus: Corpus, bank: Bank) -> None:
    assert list(check_verdicts(corpus, bank)) == []  # nothing filtered, nothing promised
    memory = Memory(bank)
    gate = gate_for(corpus, bank, TableJudge(memory.planned))
    result = run(corpus, bank, memory, gate)
    write_dialogues(corpus.path(DIALOGUES), result.dialogues)
    write_scenarios(corpus.path("refills.jsonl"), result.refills)
    judged = corpus.with_config(corpus.config.model_copy(update={"judge": dict(gate.identity)}))
    assert list(check_verdicts(judged, bank)) == []

    stricter = {**gate.identity, "tau": 1.5}
    strict = corpus.with_config(corpus.config.model_copy(update={"judge": stricter}))
    assert all("R101-topic-lost" in found for found in check_verdicts(strict, bank))
    other = {**gate.identity, "judge": "openai/other"}
    stranger = corpus.with_config(corpus.config.model_copy(update={"judge": other}))
    found = list(check_verdicts(stranger, bank))
    assert len(found) == 12
    assert "openai/other has no verdict on these words" in found[0]
    unlike = {**gate.identity, "embedder_hash": "0" * 64}
    uncompared = corpus.with_config(corpus.config.model_copy(update={"judge": unlike}))
    assert "never compared" in next(iter(check_verdicts(uncompared, bank)))
