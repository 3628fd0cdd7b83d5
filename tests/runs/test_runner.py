"""The runner: bounded, patient, resumable; every item ends as a reply, a failure, or honestly unasked."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from earwitness.errors import DataError, EarwitnessError, LicenceError, UsageError
from earwitness.models.protocols import Limits, Reply, Request, Usage
from earwitness.runs.budgets import Price, parse_price
from earwitness.runs.items import Item
from earwitness.runs.ledger import Ledger
from earwitness.runs.preflight import preflight
from earwitness.runs.runner import Progress, Runner, RunnerSettings, RunSummary
from tests.runs.scripted import ScriptedModel, failure, make_audio, make_items

FAST = RunnerSettings(first_wait_s=0.0, longest_wait_s=0.05)


def run(
    path: Path,
    model: ScriptedModel,
    items: Sequence[Item],
    settings: RunnerSettings = FAST,
    seen: list[Progress] | None = None,
) -> RunSummary:
    def watch(progress: Progress) -> None:
        if seen is not None:
            seen.append(progress)

    async def go() -> RunSummary:
        with Ledger(path) as ledger:
            return await Runner(model, ledger, settings, watch).run(items)

    return asyncio.run(go())


def lines(path: Path, kind: str) -> list[dict[str, object]]:
    read = map(json.loads, path.read_text().splitlines())
    return [line for line in read if line["kind"] == kind]


def test_every_item_is_asked_once_and_stored(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    model = ScriptedModel()
    summary = run(path, model, make_items(20))
    assert summary.complete
    assert (summary.replied, summary.calls, summary.failed) == (20, 20, 0)
    assert len(lines(path, "reply")) == len(lines(path, "started")) == 20


def test_stored_replies_are_never_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    run(path, ScriptedModel(), make_items(5))
    again = ScriptedModel()
    summary = run(path, again, make_items(8))
    assert dict(again.asked) == {"clip-005": 1, "clip-006": 1, "clip-007": 1}
    assert summary.already_stored == 5
    assert summary.complete


@pytest.mark.parametrize("change", ["settings", "prompt", "audio", "version"])
def test_a_changed_question_is_asked_anew(tmp_path: Path, change: str) -> None:
    from dataclasses import replace

    path = tmp_path / "ledger.jsonl"
    audio = make_audio(tmp_path)
    items = make_items(3, audio)
    run(path, ScriptedModel(), items)
    model = ScriptedModel(settings={"temperature": 1} if change == "settings" else None)
    if change == "prompt":
        items = [replace(item, prompt=replace(item.prompt, user="Which one?")) for item in items]
    if change == "audio":
        items = [replace(item, audio=replace(audio, transform="silence")) for item in items]
    if change == "version":
        items = [replace(item, task_version="2") for item in items]
    summary = run(path, model, items)
    assert summary.already_stored == 0
    assert sum(model.asked.values()) == 3


def test_the_place_of_a_file_is_not_part_of_the_question(tmp_path: Path) -> None:
    from dataclasses import replace

    path = tmp_path / "ledger.jsonl"
    audio = make_audio(tmp_path)
    run(path, ScriptedModel(), make_items(3, audio))
    moved = tmp_path / "elsewhere.wav"
    moved.write_bytes(audio.path.read_bytes())
    summary = run(path, ScriptedModel(), make_items(3, replace(audio, path=moved)))
    assert summary.already_stored == 3


def test_a_passing_fault_is_retried_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    model = ScriptedModel({"clip-001": [failure(), failure(), Reply(text="fear")]})
    summary = run(path, model, make_items(3))
    assert summary.complete
    assert (summary.calls, summary.retries) == (5, 2)
    assert len(lines(path, "attempt_failed")) == 2


def test_a_lasting_fault_is_given_up_after_the_allowed_retries(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    model = ScriptedModel({"clip-001": [failure()]})
    settings = RunnerSettings(max_retries=2, first_wait_s=0.0)
    summary = run(path, model, make_items(3), settings)
    assert (summary.failed, model.asked["clip-001"]) == (1, 3)
    assert not summary.complete
    assert summary.stopped is None


def test_a_hard_fault_is_not_retried(tmp_path: Path) -> None:
    model = ScriptedModel({"clip-001": [failure("too_large", retryable=False, status=413)]})
    summary = run(tmp_path / "l.jsonl", model, make_items(3))
    assert (summary.failed, summary.replied, model.asked["clip-001"]) == (1, 2, 1)


def test_failed_items_are_asked_again_by_the_next_run_and_only_those(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    run(path, ScriptedModel({"clip-001": [failure(retryable=False)]}), make_items(3))
    model = ScriptedModel()
    summary = run(path, model, make_items(3))
    assert dict(model.asked) == {"clip-001": 1}
    assert summary.complete
    with Ledger(path, read_only=True) as ledger:
        assert ledger.counts.failed == 0


def test_retry_after_is_honoured_and_holds_all_calls_off(tmp_path: Path) -> None:
    wait_s = 0.3
    model = ScriptedModel(
        {"clip-000": [failure("rate_limit", status=429, retry_after_s=wait_s), Reply(text="fear")]}
    )
    settings = RunnerSettings(concurrency=1, first_wait_s=0.0, longest_wait_s=5.0)
    begun = time.monotonic()
    summary = run(tmp_path / "l.jsonl", model, make_items(3), settings)
    assert summary.complete
    assert time.monotonic() - begun >= wait_s


def test_a_service_closed_for_hours_fails_at_once_instead_of_hanging(tmp_path: Path) -> None:
    model = ScriptedModel({"clip-000": [failure("rate_limit", status=429, retry_after_s=7200.0)]})
    summary = run(tmp_path / "l.jsonl", model, make_items(1))
    assert (summary.failed, summary.calls) == (1, 1)


def test_the_same_hard_failure_in_a_row_stops_the_run_and_shows_the_first_whole(
    tmp_path: Path,
) -> None:
    wrong_key = failure("auth", retryable=False, status=401, message="Incorrect API key (req 17)")
    items = make_items(50)
    model = ScriptedModel({item.id: [wrong_key] for item in items})
    settings = RunnerSettings(concurrency=1, stop_after_identical=5)
    summary = run(tmp_path / "l.jsonl", model, items, settings)
    assert summary.failed == 5
    assert summary.not_asked == 45
    assert summary.stopped is not None
    assert "Incorrect API key (req 17)" in summary.stopped


def test_failures_between_successes_do_not_stop_the_run(tmp_path: Path) -> None:
    items = make_items(40)
    broken = {item.id: [failure(retryable=False)] for item in items[::2]}
    settings = RunnerSettings(concurrency=1, stop_after_identical=3)
    summary = run(tmp_path / "l.jsonl", ScriptedModel(broken), items, settings)
    assert (summary.failed, summary.replied, summary.stopped) == (20, 20, None)


def test_no_more_calls_at_once_than_allowed(tmp_path: Path) -> None:
    model = ScriptedModel(delay_s=0.005)
    run(tmp_path / "l.jsonl", model, make_items(30), RunnerSettings(concurrency=4))
    assert model.most_at_once == 4


def test_audio_in_flight_stays_under_its_limit(tmp_path: Path) -> None:
    audio = make_audio(tmp_path, seconds=1.0)
    size = audio.path.stat().st_size
    model = ScriptedModel(delay_s=0.005)
    settings = RunnerSettings(concurrency=16, bytes_in_flight=int(2.5 * size))
    summary = run(tmp_path / "l.jsonl", model, make_items(20, audio), settings)
    assert summary.complete
    assert model.most_at_once <= 2
    assert summary.peak_bytes <= int(2.5 * size)


def test_one_payload_larger_than_the_limit_is_let_in_alone(tmp_path: Path) -> None:
    audio = make_audio(tmp_path, seconds=1.0)
    settings = RunnerSettings(concurrency=4, bytes_in_flight=100)
    model = ScriptedModel(delay_s=0.002)
    assert run(tmp_path / "l.jsonl", model, make_items(5, audio), settings).complete
    assert model.most_at_once == 1


def test_calls_keep_the_rate(tmp_path: Path) -> None:
    settings = RunnerSettings(calls_per_minute=1200, concurrency=8)
    begun = time.monotonic()
    run(tmp_path / "l.jsonl", ScriptedModel(), make_items(8), settings)
    assert time.monotonic() - begun >= 7 * 0.05


def test_a_reply_that_never_comes_times_out_and_may_have_been_paid(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    settings = RunnerSettings(call_timeout_s=0.05, max_retries=1, first_wait_s=0.0)
    summary = run(path, ScriptedModel(delay_s=5.0), make_items(1), settings)
    assert (summary.failed, summary.calls) == (1, 2)
    assert all(line["maybe_paid"] for line in lines(path, "attempt_failed"))
    with Ledger(path, read_only=True) as ledger:
        assert ledger.counts.maybe_paid_twice == 2


def test_a_bug_in_an_adapter_is_a_failure_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    model = ScriptedModel({"clip-000": [ZeroDivisionError("division by zero")]})
    summary = run(path, model, make_items(2))
    assert (summary.failed, summary.replied) == (1, 1)
    [line] = lines(path, "failed")
    assert line["error"] == "bug"
    assert "ZeroDivisionError: division by zero" in str(line["message"])


def test_the_limit_of_calls_stops_cleanly(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    settings = RunnerSettings(concurrency=4, max_calls=7)
    summary = run(path, ScriptedModel(delay_s=0.001), make_items(20), settings)
    assert (summary.calls, summary.replied, summary.not_asked) == (7, 7, 13)
    assert summary.stopped == "the limit of 7 calls is reached"
    assert len(lines(path, "started")) == 7


def test_the_limit_of_cost_stops_before_it_is_exceeded(tmp_path: Path) -> None:
    reply = Reply(text="anger", usage=Usage(input_tokens=1000, output_tokens=0))
    items = make_items(30)
    model = ScriptedModel({item.id: [reply] for item in items})
    settings = RunnerSettings(concurrency=1, max_cost_usd=0.0105, price=Price(input=1.0))
    summary = run(tmp_path / "l.jsonl", model, items, settings)
    assert summary.replied == 10
    assert summary.cost_usd == pytest.approx(0.010)


def test_a_stop_does_not_wait_out_a_long_back_off(tmp_path: Path) -> None:
    model = ScriptedModel({"clip-000": [failure("rate_limit", retry_after_s=60.0)]})
    settings = RunnerSettings(longest_wait_s=120.0)

    async def go() -> RunSummary:
        with Ledger(tmp_path / "l.jsonl") as ledger:
            runner = Runner(model, ledger, settings)
            asyncio.get_running_loop().call_later(0.1, runner.stop, "interrupted")
            return await runner.run(make_items(1))

    begun = time.monotonic()
    summary = asyncio.run(go())
    assert time.monotonic() - begun < 10
    assert (summary.not_asked, summary.stopped) == (1, "interrupted")


def test_an_unwritable_ledger_ends_the_run_with_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    async def go() -> None:
        with Ledger(tmp_path / "l.jsonl") as ledger:
            monkeypatch.setattr(os, "write", full)
            try:
                await Runner(ScriptedModel(), ledger, FAST).run(make_items(5))
            finally:
                monkeypatch.undo()

    with pytest.raises(DataError, match="No space left on device"):
        asyncio.run(go())


def test_progress_ends_with_everything_done(tmp_path: Path) -> None:
    seen: list[Progress] = []
    run(tmp_path / "l.jsonl", ScriptedModel(), make_items(5), seen=seen)
    assert (seen[-1].total, seen[-1].done) == (5, 5)


def test_preflight_names_items_outside_the_limits_before_any_call(tmp_path: Path) -> None:
    items = make_items(7, make_audio(tmp_path, seconds=2.0))
    model = ScriptedModel(limits=Limits(max_seconds=1.0))
    with pytest.raises(
        UsageError, match=r"cannot take 7 of 7 items: clip-000 is 2\.0 s long"
    ) as caught:
        preflight(items, model)
    assert "and 2 more" in str(caught.value)
    assert not model.asked


def test_preflight_finds_missing_files_sizes_and_items_without_audio(tmp_path: Path) -> None:
    audio = make_audio(tmp_path)
    with pytest.raises(UsageError, match=r"bytes as sent, the model takes at most 1000"):
        preflight(make_items(1, audio), ScriptedModel(limits=Limits(max_bytes=1000)))
    with pytest.raises(UsageError, match="has no audio, and the model needs some"):
        preflight(make_items(1), ScriptedModel(limits=Limits(needs_audio=True)))
    audio.path.unlink()
    with pytest.raises(UsageError, match="its audio file is missing"):
        preflight(make_items(1, audio), ScriptedModel())


def test_a_model_may_refuse_the_whole_run() -> None:
    class Picky(ScriptedModel):
        def preflight(self, requests: Sequence[Request]) -> None:
            raise LicenceError("scripted/model", f"will not take {len(requests)} requests")

    with pytest.raises(EarwitnessError, match="will not take 3 requests"):
        preflight(make_items(3), Picky())


def test_prices_are_read_with_a_clear_refusal() -> None:
    assert parse_price("input=2.5, output=10,call=0.1") == Price(input=2.5, output=10, call=0.1)
    for wrong in ("inptu=1", "input=cheap", "7"):
        with pytest.raises(UsageError, match="input=NUMBER or output=NUMBER"):
            parse_price(wrong)


def test_price_of_a_reply() -> None:
    price = Price(input=1.0, output=2.0, audio_minute=0.6, call=0.01)
    usage = Usage(input_tokens=500_000, output_tokens=250_000)
    assert price.of(usage, audio_seconds=30.0) == pytest.approx(0.5 + 0.5 + 0.3 + 0.01)
    assert price.of(Usage(cost_usd=0.2), audio_seconds=30.0) == 0.2
