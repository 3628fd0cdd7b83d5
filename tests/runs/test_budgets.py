"""Limits on calls and money stop before they are exceeded; rate limits by calls, tokens and audio; totals add up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from earwitness.models.pace import Pace
from earwitness.models.prices import Price
from earwitness.models.protocols import Reply, Usage
from earwitness.runs.budgets import RateLimiter, Spending
from earwitness.runs.items import Item
from earwitness.runs.ledger import Ledger
from earwitness.runs.runner import Runner, RunnerSettings, RunSummary
from tests.runs.scripted import ScriptedModel, failure, make_audio, make_items

FAST = RunnerSettings(first_wait_s=0.0, longest_wait_s=0.05)
DEAR = Reply(text="anger", usage=Usage(input_tokens=1_000, output_tokens=0))


def run(
    path: Path,
    model: ScriptedModel,
    items: Sequence[Item],
    settings: RunnerSettings,
    spending: Spending | None = None,
) -> RunSummary:
    async def go() -> RunSummary:
        with Ledger(path, shared=True) as ledger:
            return await Runner(model, ledger, settings, spending=spending).run(items)

    return asyncio.run(go())


def priced(reply: Reply, items: Sequence[Item], **options: float) -> ScriptedModel:
    return ScriptedModel({item.id: [reply] for item in items}, **options)  # type: ignore[arg-type]


def test_money_is_never_exceeded_by_calls_under_way(tmp_path: Path) -> None:
    items = make_items(40)
    price = Price(input=1.0, reply_tokens=0)
    # The prompt's words are estimated at a few tokens; the service counts a thousand: known after the first reply.
    settings = replace(FAST, concurrency=8, max_cost_usd=0.0205, price=price)
    summary = run(tmp_path / "l.jsonl", priced(DEAR, items, delay_s=0.005), items, settings)
    assert summary.cost_usd <= 0.0205
    assert summary.replied == 20
    assert summary.stopped == "the next call could exceed the limit of 0.0205 USD"


def test_an_estimate_that_is_too_high_does_not_stop_a_run_that_can_go_on(tmp_path: Path) -> None:
    items = make_items(10)
    cheap = Reply(text="anger", usage=Usage(input_tokens=100, output_tokens=10))
    # Ten calls of 0.01 as estimated, of 0.0002 in truth: one at a time fits, and all of them do in the end.
    settings = replace(
        FAST, concurrency=10, max_cost_usd=0.012, price=Price(output=10.0, input=1.0, reply_tokens=1_000)
    )  # fmt: skip
    model = priced(cheap, items, delay_s=0.002)
    summary = run(tmp_path / "l.jsonl", model, items, settings)
    assert summary.complete
    assert summary.cost_usd == pytest.approx(10 * 0.0002)
    assert model.most_at_once == 1


def test_without_a_price_the_first_call_goes_alone_and_the_service_must_state_its_cost(
    tmp_path: Path,
) -> None:
    items = make_items(12)
    stated = Reply(text="anger", usage=Usage(cost_usd=0.01))
    model = priced(stated, items, delay_s=0.005)
    settings = replace(FAST, concurrency=6, max_cost_usd=0.055)
    summary = run(tmp_path / "a.jsonl", model, items, settings)
    assert summary.replied == 5
    assert summary.cost_usd == pytest.approx(0.05)
    silent = priced(Reply(text="anger"), items, delay_s=0.005)
    summary = run(tmp_path / "b.jsonl", silent, items, settings)
    assert summary.replied == 1
    assert silent.most_at_once == 1
    assert summary.stopped is not None
    assert "give --price or --prices" in summary.stopped


def test_a_call_that_may_have_been_charged_counts_against_the_limit_and_is_told(
    tmp_path: Path,
) -> None:
    items = make_items(30)
    lost = failure("timeout", maybe_paid=True)
    model = ScriptedModel({item.id: [lost, DEAR] for item in items})
    price = Price(input=1.0, reply_tokens=0, call=0.001)
    settings = replace(FAST, concurrency=1, max_cost_usd=0.02, price=price)
    path = tmp_path / "l.jsonl"
    summary = run(path, model, items, settings)
    assert summary.maybe_paid > 0
    assert summary.cost_usd + summary.maybe_cost_usd <= 0.02
    with Ledger(path, read_only=True) as ledger:
        counts = ledger.counts
    assert counts.maybe_paid_twice == summary.maybe_paid
    assert counts.maybe_cost_usd == pytest.approx(summary.maybe_cost_usd)
    assert counts.cost_usd == pytest.approx(summary.cost_usd)
    assert counts.calls == summary.calls == summary.replied + summary.maybe_paid


def test_calls_cut_off_by_a_kill_keep_their_estimate(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.started("a", item="clip-a", attempt=1, estimate_usd=0.25)
    with Ledger(path) as ledger:
        assert (ledger.counts.in_flight, ledger.counts.maybe_cost_usd) == (1, 0.25)
        ledger.started("a", item="clip-a", attempt=1, estimate_usd=0.25)
        ledger.reply("a", Reply(text="joy"), item="clip-a", attempts=1, cost_usd=0.2)
        counts = ledger.counts
    assert (counts.maybe_paid_twice, counts.maybe_cost_usd, counts.cost_usd) == (1, 0.25, 0.2)


def test_the_limits_hold_for_the_runs_of_a_command_together(tmp_path: Path) -> None:
    spending = Spending(max_calls=7)
    items = make_items(5)
    first = run(tmp_path / "a.jsonl", ScriptedModel(), items, FAST, spending)
    second = run(tmp_path / "b.jsonl", ScriptedModel(), items, FAST, spending)
    third = run(tmp_path / "c.jsonl", ScriptedModel(), items, FAST, spending)
    assert [each.calls for each in (first, second, third)] == [5, 2, 0]
    assert third.not_asked == 5
    assert third.stopped == "the limit of 7 calls is reached"


def test_a_refused_call_is_not_written_as_begun(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    run(path, ScriptedModel(), make_items(20), replace(FAST, max_calls=3))
    with Ledger(path, read_only=True) as ledger:
        assert (ledger.counts.calls, ledger.counts.in_flight) == (3, 0)


@pytest.mark.parametrize(
    ("pace", "expected_s"),
    [
        (Pace(requests_per_minute=1200), 0.35),
        # 2 s of audio at 25 tokens a second, about 5 of words and 500 of an answer: 555 a call
        (Pace(tokens_per_minute=555 * 1200), 0.30),
        (Pace(audio_seconds_per_minute=2.0 * 1200), 0.35),
    ],
)
def test_calls_keep_each_limit(tmp_path: Path, pace: Pace, expected_s: float) -> None:
    items = make_items(8, make_audio(tmp_path, seconds=2.0))
    begun = time.monotonic()
    run(tmp_path / "l.jsonl", ScriptedModel(), items, replace(FAST, pace=pace))
    assert time.monotonic() - begun >= expected_s


def test_the_pace_of_a_model_and_of_the_command_both_hold(tmp_path: Path) -> None:
    model = ScriptedModel()
    model.pace = Pace(requests_per_minute=1200)  # type: ignore[attr-defined]
    begun = time.monotonic()
    run(tmp_path / "l.jsonl", model, make_items(8), replace(FAST, calls_per_minute=1e6))
    assert time.monotonic() - begun >= 0.35


def test_tokens_that_were_reckoned_wrongly_are_made_up_for() -> None:
    async def go() -> float:
        limiter = RateLimiter(pace=Pace(tokens_per_minute=60_000.0))
        stop = asyncio.Event()
        begun = time.monotonic()
        await limiter.wait(stop, tokens=100.0)
        limiter.correct(150.0)
        await limiter.wait(stop, tokens=100.0)
        return time.monotonic() - begun

    assert asyncio.run(go()) >= 0.25


def test_what_other_processes_spend_is_counted() -> None:
    spending = Spending(max_calls=3, max_cost_usd=1.0)
    spending.note_other({"kind": "started", "key": "a", "estimate_usd": 0.4})
    assert spending.refusal(0.5) is None
    assert spending.refusal(0.7) is not None
    spending.note_other({"kind": "reply", "key": "a", "cost_usd": 0.1})
    assert spending.refusal(0.7) is None
    spending.note_other({"kind": "started", "key": "b", "estimate_usd": 0.4})
    spending.note_other({"kind": "attempt_failed", "key": "b", "maybe_paid": True})
    spending.note_other({"kind": "failed", "key": "b"})
    assert spending.maybe_usd == 0.4
    spending.note_other({"kind": "started", "key": "c"})
    refusal = spending.refusal(0.0)
    assert refusal is not None
    assert refusal.reason == "the limit of 3 calls is reached"
