"""Chat models as writers: the real client, real HTTP, a stand-in in every temper."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from earwitness.errors import DataError, UsageError
from earwitness.runs.budgets import Price
from earwitness.runs.runner import RunnerSettings
from earwitness.scenes.bank import REACTIONS, Bank, load_bank
from earwitness.scenes.corpus import COMPARED, Corpus
from earwitness.scenes.corpus_config import LoopUsed
from earwitness.scenes.corpus_validate import validate_corpus
from earwitness.scenes.corpus_writing import WritingOrder, order_of, write_corpus
from earwitness.scenes.plan import PlanRequest, load_preset, plan
from earwitness.scenes.rules.checking import check
from earwitness.scenes.writers.calls import Meter, call_totals
from earwitness.scenes.writers.prompts import WriterPrompts
from earwitness.scenes.writers.templates import BankTemplates
from earwitness.scenes.writing import Assignment, FunctionGate, Violation
from earwitness.scenes.writing_loop import WritingResult
from tests.scenes.writing_cases import SEED, small_corpus
from tests.standins.scene_faults import SCENE_FAULTS, TOPIC_FAULTS
from tests.standins.writer_server import FAULTS, WriterServer

QUICK = RunnerSettings(first_wait_s=0.01, longest_wait_s=0.05, max_retries=1)


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


def order(server: WriterServer, **changes: Any) -> WritingOrder:
    # The port changes from run to run; what the run is compared by must not.
    options = {"base_url": server.url, "server": "stand-in", "family": "stand-in"}
    values = {"writer": "openai/writer", "options": options, "calls": QUICK, "workers": 1}
    return WritingOrder(**{**values, **changes})


def written(corpus: Corpus, bank: Bank, by: WritingOrder, **more: Any) -> WritingResult:
    return asyncio.run(write_corpus(corpus, bank, by, **more))


def compared(corpus: Corpus) -> dict[str, bytes]:
    """The compared files; of the configuration, all but the address of a stand-in."""
    files = {name: corpus.path(name).read_bytes() for name in COMPARED}
    lines = files["corpus.yaml"].splitlines()
    files["corpus.yaml"] = b"\n".join(line for line in lines if b"base_url" not in line)
    return files


@pytest.mark.parametrize("temper", ["good", "prose", "fenced", "plain_only"])
def test_answers_in_any_dress_are_read(tmp_path: Path, bank: Bank, temper: str) -> None:
    corpus = small_corpus(tmp_path / "c", bank, 2, 2).corpus
    with WriterServer(temper=temper, bank=bank) as server:
        result = written(corpus, bank, order(server))
    assert result.complete
    assert server.asked == {"topic": 4, "dialogue": 4}
    done = Corpus(corpus.folder)
    assert len(done.dialogues()) == 4
    assert done.config.writer is not None
    assert done.config.writer.family == "stand-in"
    assert set(done.config.writer.prompts) == {"scene-topic/1", "scene-dialogue/2"}
    assert [f.code for f in validate_corpus(done, bank, workers=1).findings] == ["V401"]


def test_a_writer_that_breaks_every_rule_in_turn_obeys_when_it_is_told(
    tmp_path: Path, bank: Bank
) -> None:
    corpus = small_corpus(tmp_path / "c", bank, 9, 6).corpus
    with WriterServer(temper="each", bank=bank) as server:
        result = written(corpus, bank, order(server))
    assert result.complete
    codes = {*FAULTS, *SCENE_FAULTS, *TOPIC_FAULTS}
    assert set(server.broken.values()) == codes
    log = corpus.path("attempts.jsonl").read_text(encoding="utf-8")
    attempts = [json.loads(line) for line in log.splitlines()]
    drafts = codes - set(TOPIC_FAULTS)
    outcomes = Counter((line["attempt"], line["outcome"]) for line in attempts)
    assert outcomes[1, "rejected"] == outcomes[2, "accepted"] == len(drafts)
    found: dict[str, str] = {}
    for line in attempts:
        for reason in line["reasons"]:
            found.setdefault(reason["code"].partition("-")[0], reason["message"])
    # Each fault was noticed under its own code, and its message went back with the draft.
    assert drafts <= set(found)
    for code in drafts:
        told = [user for _, user in server.prompts if found[code] in user]
        assert told, code
        assert all("Your last draft was:" in user and '{"timeline"' in user for user in told)
    topics = [user for _, user in server.prompts if "An earlier topic was turned down" in user]
    assert len(topics) == len(TOPIC_FAULTS)


def test_a_cut_off_answer_is_asked_for_again(tmp_path: Path, bank: Bank) -> None:
    corpus = small_corpus(tmp_path / "c", bank, 1, 2).corpus
    with WriterServer(temper="truncated", bank=bank) as server:
        result = written(corpus, bank, order(server))
    assert result.complete
    assert "W102-cut-off" in corpus.path("attempts.jsonl").read_text()
    assert any("limit of tokens" in user for _, user in server.prompts)


def test_a_refusing_writer_is_given_up_and_says_why(tmp_path: Path, bank: Bank) -> None:
    corpus = small_corpus(tmp_path / "c", bank, 10, 4).corpus
    with WriterServer(temper="refusing", bank=bank) as server:
        result = written(corpus, bank, order(server, loop=LoopUsed(max_attempts=2)))
    assert result.dialogues == ()
    assert len(result.failed) == 40
    assert "most often W101-no-answer" in next(iter(result.failed.values()))
    assert len(server.calls) <= 16 * 2 * 2


def test_every_attempt_is_a_call_of_its_own_even_with_the_same_words(
    tmp_path: Path, bank: Bank
) -> None:
    corpus = small_corpus(tmp_path / "c", bank, 1, 1).corpus
    loop = LoopUsed(max_attempts=4, max_refills=0)
    with WriterServer(temper="stubborn", bank=bank) as server:
        result = written(corpus, bank, order(server, loop=loop))
    assert server.asked == {"topic": 1, "dialogue": 4}
    assert result.lost == (corpus.scenarios()[0].id,)


def test_a_writer_that_dies_is_gone_on_with_and_nothing_is_bought_twice(
    tmp_path: Path, bank: Bank
) -> None:
    calm = small_corpus(tmp_path / "calm", bank, 2, 3).corpus
    with WriterServer(temper="sloppy", bank=bank) as server:
        written(calm, bank, order(server))
        bought = len(server.calls)
    corpus = small_corpus(tmp_path / "c", bank, 2, 3).corpus
    answered = 0
    for _ in range(6):
        with WriterServer(temper="sloppy", bank=bank, dies_after=5) as server:
            result = written(corpus, bank, order(server))
            answered += sum(server.asked.values())
        if result.complete:
            break
        assert result.failed
    assert result.complete
    assert answered == bought
    assert compared(corpus) == compared(calm)


def test_a_second_run_asks_nothing(tmp_path: Path, bank: Bank) -> None:
    corpus = small_corpus(tmp_path / "c", bank, 2, 2).corpus
    with WriterServer(bank=bank) as server:
        written(corpus, bank, order(server))
        before, calls = compared(corpus), len(server.calls)
        meter = Meter()
        written(corpus, bank, order(server), meter=meter)
        assert len(server.calls) == calls
    assert meter.calls == 0
    assert compared(corpus) == before


def test_growing_the_plan_keeps_every_dialogue(tmp_path: Path, bank: Bank) -> None:
    corpus = small_corpus(tmp_path / "c", bank, 2, 2).corpus
    with WriterServer(bank=bank) as server:
        written(corpus, bank, order(server))
        before, calls = corpus.path("dialogues.jsonl").read_bytes(), len(server.calls)
        grown = small_corpus(tmp_path / "c", bank, 4, 2)
        assert (grown.before, len(grown.scenarios)) == (4, 8)
        assert written(grown.corpus, bank, order(server)).complete
        assert len(server.calls) == 2 * calls
    assert corpus.path("dialogues.jsonl").read_bytes().startswith(before)


def test_shards_and_a_run_that_gathers_them_make_the_same_corpus(
    tmp_path: Path, bank: Bank
) -> None:
    whole = small_corpus(tmp_path / "whole", bank, 3, 2).corpus
    parts = small_corpus(tmp_path / "parts", bank, 3, 2).corpus
    with WriterServer(temper="sloppy", bank=bank) as server:
        written(whole, bank, order(server))
        for number in (1, 2):
            result = written(parts, bank, order(server, shard=(number, 2)))
            assert len(result.places) == 3
        assert not parts.path("dialogues.jsonl").exists()
        calls = len(server.calls)
        written(parts, bank, order(server))
        assert len(server.calls) == calls
    assert compared(parts) == compared(whole)


def test_topics_and_situations_by_other_models(tmp_path: Path, bank: Bank) -> None:
    corpus = small_corpus(tmp_path / "c", bank, 4, 1).corpus
    with WriterServer(bank=bank) as server, WriterServer(bank=bank) as other:
        by = order(server, topic_writer="openai/muse", templates_writer="openai/muse")
        options = {**by.options, "topic.base_url": other.url, "templates.base_url": other.url}
        options["topic.temperature"] = "1.1"
        result = written(corpus, bank, order(server, options=options, topic_writer="openai/muse",
                                             templates_writer="openai/muse"))  # fmt: skip
    assert result.complete
    assert set(server.asked) == {"dialogue"}
    assert set(other.asked) == {"topic", "templates"}
    config = Corpus(corpus.folder).config
    assert config.topic_writer is not None
    assert config.topic_writer.settings["temperature"] == 1.1
    assert config.writer is not None
    assert "temperature" not in config.writer.settings
    assert {text.source for text in corpus.templates()} == {"openai/muse"}


def test_situations_are_distinct_across_the_corpus_or_asked_for_again(
    tmp_path: Path, bank: Bank
) -> None:
    corpus = small_corpus(tmp_path / "c", bank, 4, 1).corpus
    with WriterServer(temper="sloppy", bank=bank) as server:
        by = order(server, templates_writer="openai/muse")
        assert written(corpus, bank, by).complete
    titles = [text.title.casefold() for text in corpus.templates()]
    assert len(set(titles)) == len(titles) == 4
    told = [user for _, user in server.prompts if "is too close to" in user]
    assert told
    assert any("has no title with two to four facets" in user for user in told)


def test_limits_on_calls_and_money_stop_the_run_and_it_goes_on(tmp_path: Path, bank: Bank) -> None:
    corpus = small_corpus(tmp_path / "c", bank, 2, 2).corpus
    with WriterServer(bank=bank) as server:
        meter = Meter()
        by = order(server, calls=RunnerSettings(max_calls=5, concurrency=1))
        result = written(corpus, bank, by, meter=meter)
        assert meter.stopped == "the limit of 5 calls is reached"
        assert len(server.calls) == 5
        assert all("not asked: the limit of 5 calls" in why for why in result.failed.values())
        assert len(result.failed) == 3
        # The limit on money holds over topics and dialogues together, too.
        price = Price(call=1.0)
        by = order(server, calls=RunnerSettings(max_cost_usd=1.5, price=price, concurrency=1))
        assert len(written(corpus, bank, by).failed) == 2
        assert len(server.calls) == 6
        assert written(corpus, bank, order(server)).complete
        assert len(server.calls) == 8
    totals = call_totals([corpus.path("calls.jsonl")])
    assert (totals.calls, totals.replies) == (8, 8)
    assert totals.input_tokens > 1000


def test_another_writer_is_refused_unless_it_is_to_replace(tmp_path: Path, bank: Bank) -> None:
    corpus = small_corpus(tmp_path / "c", bank, 1, 1).corpus
    with WriterServer(bank=bank) as server:
        written(corpus, bank, order(server))
        corpus = Corpus(corpus.folder)
        with pytest.raises(UsageError, match=r"was written with openai/writer.*wanted the same"):
            written(corpus, bank, order(server, writer="openai/other"))
        assert written(corpus, bank, order(server, writer="openai/other", replace=True)).complete
    assert order_of(Corpus(corpus.folder)).writer == "openai/other"


def test_a_gate_is_recorded_and_its_rejections_are_written_anew(tmp_path: Path, bank: Bank) -> None:
    corpus = small_corpus(tmp_path / "c", bank, 2, 2).corpus
    target = corpus.scenarios()[2].id

    def judge(dialogue: Any, scenario: Any) -> tuple[bool, tuple[Violation, ...]]:
        return scenario.id != target, (Violation("R1", "Nobody would see that.", "e1"),)

    with WriterServer(bank=bank) as server:
        written(corpus, bank, order(server))
        first = corpus.dialogues()
        by = order_of(Corpus(corpus.folder), calls=QUICK, workers=1)
        gate = FunctionGate(judge, {"judge": "test/judge", "tau": 0.5})
        assert written(Corpus(corpus.folder), bank, by, gate=gate).complete
    done = Corpus(corpus.folder)
    assert done.config.judge == {"judge": "test/judge", "tau": 0.5}
    assert [d.scenario for d in done.dialogues()][2] == f"{target}.r1"
    assert done.dialogues()[:2] == first[:2]
    assert done.abandoned()[0].reasons == (("R1",),) * 5
    assert any("Nobody would see that." in user for _, user in server.prompts)
    assert validate_corpus(done, bank, workers=1).findings == ()


def test_prompts_never_say_what_a_reaction_is_called(bank: Bank) -> None:
    scenarios = plan(bank, PlanRequest(60, 10, SEED, load_preset("balanced")))
    assert {event.register for s in scenarios for event in s.events} >= {
        register.id for register in bank.registers
    }
    texts = asyncio.run(BankTemplates(bank, SEED).texts(scenarios))
    prompts = WriterPrompts(bank, SEED)
    systems = set()
    for scenario in scenarios[::4]:
        template = texts[scenario.template]
        for prompt in (
            prompts.dialogue(Assignment(scenario, template), "a topic"),
            prompts.topic(scenario, template),
        ):
            systems.add(prompt.system)
            said = f"{prompt.system} {prompt.user}".casefold()
            assert not [word for word in (*REACTIONS, "behaviour") if word in said]
            assert not any(r.id in said for r in bank.registers)
    # The static part is the same for all, so that a provider can keep it.
    assert len(systems) == 2


def test_how_long_a_scene_is_asked_to_be_does_not_depend_on_what_happens(bank: Bank) -> None:
    prompts = WriterPrompts(bank, SEED)
    scenarios = plan(bank, PlanRequest(60, 10, SEED, load_preset("balanced")))
    with_pivot = [prompts.utterances(s) for s in scenarios if s.count("pivot")]
    without = [prompts.utterances(s) for s in scenarios if not s.count("pivot")]
    assert set(with_pivot) == set(without) == {10, 11, 12, 13}
    assert abs(sum(with_pivot) / len(with_pivot) - sum(without) / len(without)) < 0.2


def test_prompts_of_ones_own(tmp_path: Path, bank: Bank) -> None:
    with pytest.raises(DataError, match=r"topic\.yaml: cannot be read"):
        WriterPrompts(bank, SEED, tmp_path).hashes("topic")
    for name in ("topic", "dialogue", "templates"):
        (tmp_path / f"{name}.yaml").write_text(
            f"{{id: my-{name}, version: '7', system: 'Be short.', user: '{{{{ nothing }}}}'}}"
        )
    prompts = WriterPrompts(bank, SEED, tmp_path)
    assert list(prompts.hashes("topic")) == ["my-topic/7"]
    with pytest.raises(DataError, match=r"cannot be filled in \('nothing' is undefined\)"):
        prompts.templates("repairs", 3, ())


def test_the_stand_ins_composer_keeps_the_rules_for_every_register(bank: Bank) -> None:
    from tests.scenes.writing_cases import ComposingWriter

    scenarios = plan(bank, PlanRequest(30, 10, SEED, load_preset("balanced")))
    texts = asyncio.run(BankTemplates(bank, SEED).texts(scenarios))
    writer = ComposingWriter(bank)
    for scenario in scenarios[::10]:
        dialogue = writer.dialogue(Assignment(scenario, texts[scenario.template]))
        assert check(dialogue, scenario, bank) == ()
