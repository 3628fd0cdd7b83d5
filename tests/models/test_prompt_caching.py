"""Instructions that all calls share are kept by the service: valid requests, counted, priced, and the same question."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from earwitness.errors import UsageError
from earwitness.models.prices import Price, load_prices, parse_price
from earwitness.models.protocols import Message, Prompt, Reply, Usage
from earwitness.models.registry import open_text_model
from earwitness.runs.items import Item, reply_key
from earwitness.runs.ledger import Ledger
from earwitness.runs.runner import RunnerSettings
from earwitness.runs.text_calls import TextCaller
from tests.standins.anthropic_server import AnthropicServer
from tests.standins.openai_server import OpenAIServer
from tests.standins.responses_server import ResponsesServer

LONG = "Write two minutes of talk between two adults, and do as you are told. " * 60
"""About 1,050 tokens of instructions."""
SHORT = "Answer with one word."
OPUS = Price(input=4.0, output=20.0, cached_input=0.2, cache_write=5.0, cache_write_1h=8.0)


def items(count: int, system: str = LONG) -> list[Item]:
    return [
        Item(f"scene-{n:04d}", "write", "1", Prompt(f"brief number {n}", system), condition="text")
        for n in range(count)
    ]


def write(
    path: Path, server: Any, count: int, adapter: str = "anthropic/m", **options: str
) -> list[Reply]:
    """Ask for so many scenes, as writers do, one after the other."""
    model = open_text_model(adapter, {"base_url": server.url, "server": "s", **options})

    async def run() -> list[Reply]:
        with Ledger(path) as ledger:
            caller = TextCaller(model, ledger, RunnerSettings(concurrency=1, price=OPUS))
            try:
                answers = await caller.ask(items(count))
            finally:
                await caller.aclose()
        return [answer.reply for answer in answers if answer.reply is not None]

    return asyncio.run(run())


def cost(path: Path) -> float:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return float(sum(line["cost_usd"] for line in lines if line["kind"] == "reply"))


def test_shared_instructions_are_paid_once_and_then_at_a_twentieth(tmp_path: Path) -> None:
    with AnthropicServer() as server:
        off = write(tmp_path / "off.jsonl", server, 100, cache="off")
        kept = write(tmp_path / "on.jsonl", server, 100)
    assert all(reply.usage.cached_tokens is None for reply in off)
    first, *rest = (reply.usage for reply in kept)
    prefix = first.cache_written_tokens or 0
    assert prefix >= len(LONG) // 4
    assert (first.cached_tokens, first.cache_written_1h_tokens) == (None, None)
    assert {(usage.cached_tokens, usage.cache_written_tokens) for usage in rest} == {(prefix, None)}
    briefs = sum((usage.input_tokens or 0) - prefix for usage in (first, *rest))
    assert cost(tmp_path / "on.jsonl") == pytest.approx(
        (prefix * 5.0 + 99 * prefix * 0.2 + briefs * 4.0 + 300 * 20.0) / 1e6
    )
    # The stand-in counts no tokens where nothing is marked: what the same words would have cost.
    whole = (100 * prefix + briefs) * 4.0 / 1e6 + 300 * 20.0 / 1e6
    assert cost(tmp_path / "on.jsonl") < 0.1 * whole


def test_the_mark_stands_at_the_end_of_what_is_shared(tmp_path: Path) -> None:
    with AnthropicServer() as server:
        for cache in ("5m", "1h", "off"):
            write(tmp_path / f"{cache}.jsonl", server, 1, cache=cache)
        minutes, hour, off = (body["system"] for body in server.asked)
    assert minutes == [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]
    assert hour[0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert off == LONG


def test_short_instructions_are_not_marked() -> None:
    model = open_text_model("anthropic/m", {"base_url": "http://127.0.0.1:1/v1"})
    chat = next(iter(model._model._by_mode.values()))  # type: ignore[attr-defined]
    assert chat._fields([Message("system", SHORT), Message("user", "x")])["system"] == SHORT
    assert "system" not in chat._fields([Message("user", "x" * 10_000)])


def test_an_hour_is_written_at_its_own_price(tmp_path: Path) -> None:
    with AnthropicServer() as server:
        [reply] = write(tmp_path / "l.jsonl", server, 1, cache="1h")
    usage = reply.usage
    assert usage.cache_written_1h_tokens == usage.cache_written_tokens
    written = usage.cache_written_tokens or 0
    rest = (usage.input_tokens or 0) - written
    assert cost(tmp_path / "l.jsonl") == pytest.approx((written * 8 + rest * 4 + 3 * 20) / 1e6)


def test_less_than_the_model_keeps_is_priced_as_input(tmp_path: Path) -> None:
    with AnthropicServer(least_cached=4096) as server:
        [reply] = write(tmp_path / "l.jsonl", server, 1)
    assert reply.usage.cached_tokens is reply.usage.cache_written_tokens is None
    assert cost(tmp_path / "l.jsonl") == pytest.approx(
        ((reply.usage.input_tokens or 0) * 4 + 60) / 1e6
    )


@pytest.mark.parametrize("adapter", ["anthropic/m", "openai/m", "openai-responses/m"])
def test_a_stored_reply_answers_the_same_question_whatever_the_cache(adapter: str) -> None:
    choices = ("off", "5m", "1h") if adapter.startswith("anthropic") else ("off", "key", "explicit")
    [item] = items(1)
    keys = set()
    for cache in choices:
        model = open_text_model(adapter, {"base_url": "http://127.0.0.1:1/v1", "cache": cache})
        keys.add(reply_key(item, model.name, model.settings))
    assert len(keys) == 1


def test_price_options_count_reads_and_writes_apart(tmp_path: Path) -> None:
    model_options = {"price_in": "4", "price_out": "20"}
    with AnthropicServer() as server:
        model = open_text_model("anthropic/m", {"base_url": server.url, **model_options})

        async def both() -> list[Usage]:
            turns = [Message("system", LONG), Message("user", "four")]
            try:
                return [(await model.complete(turns)).usage for _ in range(2)]
            finally:
                await model.aclose()

        first, second = asyncio.run(both())
    written = first.cache_written_tokens or 0
    assert first.cost_usd == pytest.approx((written * 5 + 4 + 60) / 1e6)
    assert second.cost_usd == pytest.approx((written * 0.4 + 4 + 60) / 1e6)


def test_openai_is_told_which_calls_share_their_beginning(tmp_path: Path) -> None:
    with OpenAIServer() as server:
        for cache in ("off", "key", "explicit"):
            write(tmp_path / f"{cache}.jsonl", server, 2, "openai/m", cache=cache)
        bodies = [asked.body for asked in server.asked]
        assert {asked.system for asked in server.asked} == {LONG}
    off, key, explicit = bodies[0], bodies[2], bodies[4]
    assert not {name for name in off if name.startswith("prompt_cache")}
    assert key["prompt_cache_key"] == bodies[3]["prompt_cache_key"] == explicit["prompt_cache_key"]
    assert "prompt_cache_options" not in key
    assert key["messages"][0] == {"role": "system", "content": LONG}
    assert explicit["prompt_cache_options"] == {"mode": "explicit"}
    [part] = explicit["messages"][0]["content"]
    assert part == {"type": "text", "text": LONG, "prompt_cache_breakpoint": {"mode": "explicit"}}


def test_responses_are_told_the_same(tmp_path: Path) -> None:
    with ResponsesServer() as server:
        for cache in ("off", "key", "explicit"):
            write(tmp_path / f"{cache}.jsonl", server, 1, "openai-responses/m", cache=cache)
        off, key, explicit = server.asked
    assert off["instructions"] == key["instructions"] == LONG
    assert "prompt_cache_key" not in off
    assert key["prompt_cache_key"] == explicit["prompt_cache_key"]
    assert "instructions" not in explicit
    assert explicit["input"][0]["role"] == "system"
    [part] = explicit["input"][0]["content"]
    assert part["text"] == LONG
    assert part["prompt_cache_breakpoint"] == {"mode": "explicit"}


@pytest.mark.parametrize("adapter", ["anthropic/m", "openai/m", "openai-responses/m"])
def test_an_unknown_choice_is_refused(adapter: str) -> None:
    with pytest.raises(UsageError, match="option cache='2h'"):
        open_text_model(adapter, {"cache": "2h"})


def test_writes_without_a_price_cost_what_input_does() -> None:
    usage = Usage(
        1_000, 0, cached_tokens=400, cache_written_tokens=500, cache_written_1h_tokens=500
    )
    assert Price(input=2.0).of(usage, 0.0) == pytest.approx(0.002)
    assert Price(input=2.0, cache_write=2.5).of(usage, 0.0) == pytest.approx(0.00225)
    hour = parse_price("input=2,output=10,cached_input=0.2,cache_write=2.5,cache_write_1h=4")
    assert hour.of(usage, 0.0) == pytest.approx((100 * 2 + 400 * 0.2 + 500 * 4) / 1e6)


def test_estimates_reckon_with_a_write() -> None:
    asked = Prompt("x" * 300, LONG)
    plain = Price(input=4.0, reply_tokens=0).estimate(asked, 0.0)
    dear = OPUS.estimate(asked, 0.0, 0)
    assert dear == pytest.approx(plain + len(LONG) / 3 * 1.0 / 1e6)


@pytest.mark.parametrize(
    "entry", [each for each in load_prices().entries if "anthropic" in each.models[0]]
)
def test_claude_writes_cost_what_the_reference_says(entry: Any) -> None:
    price = entry.price
    assert price.cache_write == pytest.approx(price.input * 1.25)
    assert price.cache_write_1h == pytest.approx(price.input * 2)
    assert 0 < price.cached_input <= price.input * 0.1 + 1e-9


def test_a_text_role_is_priced_by_the_table_where_no_price_is_given(tmp_path: Path) -> None:
    options = {"server": "https://api.anthropic.com/v1"}
    with AnthropicServer() as server:
        model = open_text_model("anthropic/claude-opus-5-5", {"base_url": server.url, **options})

        async def run() -> float:
            with Ledger(tmp_path / "l.jsonl") as ledger:
                caller = TextCaller(model, ledger, RunnerSettings(concurrency=1))
                await caller.ask(items(3))
                await caller.aclose()
                assert caller.meter.cached_tokens > 2_000
                return caller.meter.cost_usd

        spent = asyncio.run(run())
    assert spent == pytest.approx(cost(tmp_path / "l.jsonl"))
    assert spent > 0
