"""What a judge is shown, what counts as its verdict, who may judge whom, and when a dialogue is accepted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from earwitness.errors import DataError, UsageError
from earwitness.models.protocols import Reply
from earwitness.models.registry import open_text_model
from earwitness.runs.ledger import Ledger
from earwitness.runs.runner import RunnerSettings
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.dialogue_records import Dialogue, EventMark, Utterance
from earwitness.scenes.recovery import (
    Author,
    Case,
    JudgeFamilyError,
    Opinion,
    Verdict,
    case_of,
    judge_identity,
    reasons_against,
    refuse_related,
    verdict_key,
)
from earwitness.scenes.recovery_chat import ChatJudge, NoVerdictError, verdict_in, verdict_schema
from earwitness.scenes.scenario import PlannedEvent, Scenario
from earwitness.scenes.writers.calls import Meter, TextCaller
from tests.scenes.recovery_cases import TableJudge
from tests.standins.judge_server import JudgeServer

PLAN = Scenario(
    "s1", "stairs.01", "stairs", "test", "park", "friends", "F", "M",
    (
        PlannedEvent("e1", "dog_bark", "verbal", "label_and_return", "early"),
        PlannedEvent("e2", "car_horn", "behavioral", "breath_in_the_middle", "late"),
    ),
)  # fmt: skip
TALK = Dialogue(
    "s1",
    "two friends selling a boat",
    (
        Utterance("A", "We should sell the boat."),
        EventMark("e1"),
        Utterance("B", "That dog again. I would sell it in spring."),
        EventMark("e2"),
        Utterance("A", "In spring the [gasps] harbour is full."),
    ),
)
CASE = Case("a park", "A: Hi.\n[SOUND: e1]\nB: Yes.\n[SOUND: e2]\nA: No.", ("e1", "e2"))


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


def test_a_judge_is_shown_what_a_listener_hears_and_no_more(bank: Bank) -> None:
    case = case_of(TALK, PLAN, bank)
    assert case.events == ("e1", "e2")
    assert case.location == bank.location("park").name
    assert "[SOUND: e1]" in case.transcript
    assert f"[{bank.tag('gasp').heard}]" in case.transcript
    for hidden in ("gasps", "dog_bark", "car_horn", "verbal", "behavioral", "breath", TALK.topic):
        told = case.transcript.replace(bank.tag("gasp").heard, "")
        assert hidden not in told


def test_keys_change_with_the_words_and_with_the_judge(bank: Bank) -> None:
    case = case_of(TALK, PLAN, bank)
    identity = judge_identity(TableJudge(lambda _: None))
    key = verdict_key(case, identity)
    assert key == verdict_key(case_of(TALK, PLAN, bank), identity)
    others = [
        verdict_key(replace(case, transcript=case.transcript + "!"), identity),
        verdict_key(replace(case, location="a harbour"), identity),
        verdict_key(case, judge_identity(TableJudge(lambda _: None, temperature=1))),
        verdict_key(case, {**identity, "prompts": {"p/2": "x"}}),
    ]
    assert len({key, *others}) == 5


@pytest.mark.parametrize(
    ("reactions", "cosine", "codes"),
    [
        ({"e1": "verbal", "e2": "behavioral"}, 0.8, []),
        ({"e1": "verbal", "e2": "behavioral"}, 0.7999, ["R101-topic-lost"]),
        ({"e1": "verbal", "e2": "behavioral"}, float("nan"), ["R101-topic-lost"]),
        # No rescue: the tag is there, and still it was read as nothing.
        ({"e1": "verbal", "e2": "ambient"}, 0.9, ["R102-reaction-lost"]),
        ({"e1": "pivot"}, 0.1, ["R101-topic-lost", "R102-reaction-lost", "R102-reaction-lost"]),
    ],
)
def test_accepted_only_when_topic_and_every_reaction_are_recovered(
    reactions: Mapping[str, Any], cosine: float, codes: list[str]
) -> None:
    found = reasons_against(PLAN, Verdict("a boat for sale", reactions), cosine, 0.8)
    assert [reason.code for reason in found] == codes


def test_reasons_describe_conduct_and_name_no_label() -> None:
    found = reasons_against(PLAN, Verdict("a boat", {"e1": "pivot", "e2": "ambient"}), 0.1, 0.8)
    assert [reason.where for reason in found] == ["topic", "e1", "e2"]
    assert 'the talk is about "a boat"' in found[0].message
    assert "stayed with it; it must show that somebody mentioned the sound in passing" in (
        found[1].message
    )
    for label in ("pivot", "verbal", "behavioral", "ambient"):
        assert not any(label in reason.message for reason in found)


@pytest.mark.parametrize(
    ("family", "authors", "match"),
    [
        (None, [], r"judge j: its family is not declared.*-M family=NAME"),
        ("gpt", [Author("writer", "w", None)], r"writer w: its family is not declared.*--replace"),
        ("gpt", [Author("writer", "w", "GPT ")], r"judge j: is of the family 'gpt', as is the writer w"),
        (
            "gpt",
            [Author("writer", "w", "llama"), Author("topic writer", "t", "gpt")],
            r"as is the topic writer t",
        ),
        ("phrasebook", [Author("writer", "offline/phrasebook", "phrasebook")], r"another family"),
    ],
)  # fmt: skip
def test_relatives_and_strangers_do_not_judge(
    family: str | None, authors: Sequence[Author], match: str
) -> None:
    with pytest.raises(JudgeFamilyError, match=match):
        refuse_related("j", family, authors)


def test_another_family_judges() -> None:
    refuse_related("j", "gpt", [Author("writer", "w", "llama")])


def reply(value: object, **fields: Any) -> Reply:
    return Reply(text=value if isinstance(value, str) else json.dumps(value), **fields)


def sounds(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"id": event, "reaction": reaction} for event, reaction in pairs]


def test_a_verdict_in_any_wrapping() -> None:
    good = {"topic": "a  boat\nfor sale", "sounds": sounds(("e2", " Pivot "), ("e1", "ambient"))}
    wanted = Verdict("a boat for sale", {"e1": "ambient", "e2": "pivot"})
    text = json.dumps(good)
    for said in (text, f"Sure!\n```json\n{text}\n```", f"<think>e1: pivot?</think>{text} Done."):
        assert verdict_in(reply(said), ("e1", "e2")) == wanted
    assert list(verdict_in(reply(text), ("e1", "e2")).reactions) == ["e1", "e2"]
    assert verdict_in(reply({"topic": "a boat"}), ()) == Verdict("a boat", {})


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        (reply("", finish="refusal"), r"declined or blocked"),
        (reply(""), r"empty"),
        (reply('{"topic": "a bo', finish="length"), r"limit of tokens"),
        (reply("It is about a boat."), r"no complete JSON object"),
        (reply({"sounds": []}), r'no key "topic"'),
        (reply({"topic": "boat", "sounds": sounds(("e1", "pivot"))}), r"two words or more"),
        (reply({"topic": 7, "sounds": []}), r"two words or more"),
        (reply({"topic": "a boat"}), r'"sounds" is no list'),
        (reply({"topic": "a boat", "sounds": sounds(("e1", "pivot"))}), r"no entry for e2"),
        (
            reply({"topic": "a boat", "sounds": sounds(("e1", "pivot"), ("e1", "ambient"))}),
            r'"e1" twice',
        ),
        (
            reply({"topic": "a boat", "sounds": sounds(("e1", "pivot"), ("e7", "ambient"))}),
            r'"e7", which is no sound',
        ),
        (
            reply({"topic": "a boat", "sounds": sounds(("e1", "startle"), ("e2", "ambient"))}),
            r"'startle', which is none of pivot, verbal, behavioral, ambient",
        ),
        (reply({"topic": "a boat", "sounds": ["e1"]}), r'no "id"'),
    ],
)
def test_what_is_no_verdict_is_never_completed(answer: Reply, match: str) -> None:
    with pytest.raises(NoVerdictError, match=match):
        verdict_in(answer, ("e1", "e2"))


def test_the_schema_allows_the_sounds_of_the_transcript_alone() -> None:
    item = verdict_schema(("e1", "e2"))["properties"]["sounds"]["items"]
    assert item["properties"]["id"]["enum"] == ["e1", "e2"]
    assert "enum" not in verdict_schema(())["properties"]["sounds"]["items"]["properties"]["id"]


# -- a chat model over HTTP -------------------------------------------------


def truth(shown: str) -> tuple[str, Mapping[str, str]]:
    return "two people selling a boat", {"e1": "verbal", "e2": "behavioral"}


def ask(
    server: JudgeServer, ledger: Path, cases: Sequence[Case] = (CASE,), asks: int = 3, **caller: Any
) -> tuple[list[Opinion], Meter]:
    meter = Meter()
    settings = RunnerSettings(max_retries=caller.pop("max_retries", 1), first_wait_s=0.0)

    async def work() -> list[Opinion]:
        model = open_text_model("openai/j", {"base_url": server.url, "family": "j"})
        with Ledger(ledger) as book:
            judge = ChatJudge(TextCaller(model, book, settings, meter=meter), asks=asks)
            try:
                return await judge.judge(cases)
            finally:
                await judge.aclose()

    return asyncio.run(work()), meter


def test_a_good_judge_is_asked_once_and_never_again(tmp_path: Path) -> None:
    with JudgeServer(truth) as server:
        found, meter = ask(server, tmp_path / "calls.jsonl")
        assert found == [Opinion(Verdict(*truth("")))]
        assert meter.calls == 1
        body = server.calls[0].json()
        form = body["response_format"]["json_schema"]["schema"]
        assert form == verdict_schema(("e1", "e2"))
        assert "Place: a park" in server.shown[0]
        assert CASE.transcript in server.shown[0]
        for word in ("pivot", "verbal", "behavioral", "ambient"):
            assert f"- {word}:" in server.systems[0]
        again, meter = ask(server, tmp_path / "calls.jsonl")
        assert again == found
        assert meter.calls == 0


def test_a_judge_without_structured_output(tmp_path: Path) -> None:
    with JudgeServer(truth, "plain_only") as server:
        assert ask(server, tmp_path / "c.jsonl")[0][0].verdict is not None


@pytest.mark.parametrize("temper", ["malformed", "missing"])
def test_an_answer_that_is_no_verdict_is_asked_for_again_with_the_reason(
    temper: str, tmp_path: Path
) -> None:
    with JudgeServer(truth, temper) as server:
        found, meter = ask(server, tmp_path / "c.jsonl")
        assert found[0].verdict == Verdict(*truth(""))
        assert meter.calls == 2
        assert "An earlier answer could not be used:" in server.shown[1]
        assert "An earlier answer" not in server.shown[0]


@pytest.mark.parametrize(
    ("temper", "match"),
    [
        ("refusing", r"no verdict in 2 answers: The answer was declined"),
        ("hopeless", r"no verdict in 2 answers: There was no complete JSON"),
        ("spurious", r'"e9", which is no sound'),
        ("mislabels", r"'startled', which is none of"),
    ],
)
def test_a_judge_that_gives_no_verdict_fails_with_the_reason(
    temper: str, match: str, tmp_path: Path
) -> None:
    import re

    with JudgeServer(truth, temper) as server:
        found, meter = ask(server, tmp_path / "c.jsonl", asks=2)
    assert found[0].verdict is None
    assert re.search(match, found[0].failed or "")
    assert meter.calls == 2


def test_a_judge_that_dies_fails_what_it_was_not_asked_and_goes_on_later(tmp_path: Path) -> None:
    cases = [replace(CASE, transcript=f"A: Number {n}.\n{CASE.transcript}") for n in range(6)]
    with JudgeServer(truth, dies_after=2) as server:
        found, _ = ask(server, tmp_path / "c.jsonl", cases)
        stored = sum(opinion.verdict is not None for opinion in found)
        assert stored == 2
        assert all(o.failed for o in found if o.verdict is None)
        server.dies_after = None
        found, meter = ask(server, tmp_path / "c.jsonl", cases)
        assert all(opinion.verdict for opinion in found)
        assert meter.calls == 4


def test_a_broken_prompt_is_named(tmp_path: Path) -> None:
    model = open_text_model("openai/j", {"base_url": "http://127.0.0.1:1/v1", "family": "j"})
    with Ledger(tmp_path / "c.jsonl") as book:
        caller = TextCaller(model, book)
        with pytest.raises(DataError, match=r"judge.yaml: cannot be read"):
            ChatJudge(caller, folder=tmp_path)
        (tmp_path / "judge.yaml").write_text("id: x\n")
        with pytest.raises(DataError, match=r"is no prompt"):
            ChatJudge(caller, folder=tmp_path)
        (tmp_path / "judge.yaml").write_text("{id: x, version: '1', system: s, user: '{{ nope }}'}")
        judge = ChatJudge(caller, folder=tmp_path)
        assert list(judge.prompts) == ["x/1"]
        with pytest.raises(DataError, match=r"cannot be filled in"):
            asyncio.run(judge.judge([CASE]))


def test_no_such_offline_judge(tmp_path: Path, bank: Bank) -> None:
    from earwitness.scenes.recovery_opening import opened_judge

    with (
        pytest.raises(UsageError, match=r"no such offline judge; wanted offline/reader"),
        opened_judge("offline/oracle", {}, bank, tmp_path / "c.jsonl"),
    ):
        pass
    with (
        pytest.raises(UsageError, match=r"option 'family'; wanted no options"),
        opened_judge("offline/reader", {"family": "x"}, bank, tmp_path / "c.jsonl"),
    ):
        pass
    assert not (tmp_path / "c.jsonl").exists()
