"""Rate limits are shared by the processes that work on one run: none takes the full rate, none blocks the others."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from earwitness.errors import DataError
from earwitness.models.pace import Pace
from earwitness.runs.budgets import RateLimiter
from earwitness.runs.ledger import Ledger
from earwitness.runs.pace_file import PaceFile
from earwitness.runs.runner import Runner, RunnerSettings
from tests.runs.scripted import ScriptedModel, make_items
from tests.runs.test_several_processes import Counting, start, started, summary_of
from tests.standins.loopback import Act, Call

__all__ = ["started"]


class Timed(Counting):
    """Notes when every call arrived."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived: list[float] = []

    def respond(self, call: Call) -> Act:
        self.arrived.append(time.monotonic())
        return super().respond(call)


def wait_until(done: object, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not done() and time.monotonic() < until:  # type: ignore[operator]
        time.sleep(0.005)
    assert done()  # type: ignore[operator]


def test_two_processes_keep_one_rate(tmp_path: Path, started: list[subprocess.Popen[str]]) -> None:
    ledger = tmp_path / "ledger.jsonl"
    with Timed() as server:
        both = [start(started, ledger, server.url, 40, "requests_per_minute=600") for _ in range(2)]
        summaries = [summary_of(process) for process in both]
    assert [summary["failed"] for summary in summaries] == [0, 0]
    assert min(summary["calls"] for summary in summaries) >= 3
    times = sorted(server.arrived)
    assert len(times) == 40
    # A tenth of a second each, whoever asks; alone, each would have taken the full rate.
    # (A process's first call arrives late: it has a connection to make.)
    assert times[-1] - times[0] >= 39 * 0.1 - 0.6
    crowded = max(sum(0 <= other - at < 1.0 for other in times) for at in times)
    assert crowded <= 13


def test_a_killed_process_does_not_block_the_others(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    ledger = tmp_path / "ledger.jsonl"
    options = ("requests_per_minute=75", "concurrency=8")
    with Timed() as server:
        both = [start(started, ledger, server.url, 7, *options) for _ in range(2)]
        wait_until(lambda: len(server.arrived) >= 2)
        both[0].send_signal(signal.SIGKILL)
        killed_s = time.monotonic()
        summary = summary_of(both[1])
    assert summary["failed"] == summary["not_asked"] == 0
    # Eight of its workers were in the queue; none of them had taken a turn ahead.
    later = [at for at in server.arrived if at > killed_s]
    assert len(later) >= 4
    assert later[0] - killed_s <= 0.8 + 2.0
    assert later[-1] - killed_s <= len(later) * 0.8 + 2.5


def limiters(tmp_path: Path, pace: Pace) -> tuple[RateLimiter, RateLimiter]:
    path = tmp_path / "l.pace"
    return RateLimiter(pace=pace, path=path), RateLimiter(pace=pace, path=path)


def seconds_of(*steps: object) -> float:
    """How long calls of limiters take, one after the other: (limiter, tokens, seconds of audio)."""

    async def go() -> float:
        stop = asyncio.Event()
        begun = time.monotonic()
        for limiter, tokens, audio in steps:  # type: ignore[misc, attr-defined]
            await limiter.wait(stop, tokens=tokens, audio_seconds=audio)
        return time.monotonic() - begun

    return asyncio.run(go())


@pytest.mark.parametrize(
    ("pace", "expected_s"),
    [
        (Pace(requests_per_minute=600), 0.3),
        (Pace(tokens_per_minute=60_000), 0.3),
        (Pace(audio_seconds_per_minute=3_000), 0.3),
        (Pace(6_000, 60_000, 3_000), 0.3),
    ],
)
def test_every_limit_is_shared(tmp_path: Path, pace: Pace, expected_s: float) -> None:
    one, other = limiters(tmp_path, pace)
    calls = [(each, 100.0, 5.0) for each in (one, other, one, other)]
    assert expected_s - 0.01 <= seconds_of(*calls) <= expected_s + 2.0


def test_what_the_service_asks_of_one_holds_for_all_and_so_does_a_correction(
    tmp_path: Path,
) -> None:
    one, other = limiters(tmp_path, Pace(tokens_per_minute=60_000))
    one.hold_off(0.3)
    assert seconds_of((other, 1.0, 0.0)) >= 0.29
    one.correct(300.0)
    assert seconds_of((other, 1.0, 0.0)) >= 0.29


def test_calls_that_are_a_little_late_do_not_slow_down_the_rest(tmp_path: Path) -> None:
    [one, _] = limiters(tmp_path, Pace(requests_per_minute=600))

    async def go() -> float:
        stop = asyncio.Event()
        begun = time.monotonic()
        for _ in range(6):
            await one.wait(stop)
            await asyncio.sleep(0.06)
            time.sleep(0.05)
        return time.monotonic() - begun

    # Ten milliseconds late each time; the time lost is made up for, and an idle limit is owed nothing.
    assert asyncio.run(go()) <= 0.5 + 0.11 + 0.4
    time.sleep(0.5)
    assert seconds_of((one, 0.0, 0.0), (one, 0.0, 0.0), (one, 0.0, 0.0)) >= 0.19


def test_a_stopped_run_waits_for_no_turn(tmp_path: Path) -> None:
    one, other = limiters(tmp_path, Pace(requests_per_minute=1))

    async def go() -> float:
        stop = asyncio.Event()
        await one.wait(stop)
        queue = [asyncio.create_task(other.wait(stop)) for _ in range(5)]
        await asyncio.sleep(0.05)
        begun = time.monotonic()
        stop.set()
        await asyncio.gather(*queue)
        return time.monotonic() - begun

    assert asyncio.run(go()) < 1.0


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda line: {**line, "at": line["at"] + 1e6}, id="written-later-than-now"),
        pytest.param(lambda line: {**line, "boot": "another"}, id="before-a-restart"),
        pytest.param(lambda line: {**line, "times": {"calls": float("inf")}}, id="infinite"),
        pytest.param(lambda line: {**line, "times": {"calls": "soon"}}, id="a-word"),
        pytest.param(lambda line: {**line, "times": [1]}, id="a-list"),
        pytest.param(lambda line: [line], id="no-object"),
        pytest.param(lambda _: {}, id="nothing"),
    ],
)
def test_a_state_that_cannot_be_right_counts_as_nothing(tmp_path: Path, change: object) -> None:
    [one, other] = limiters(tmp_path, Pace(requests_per_minute=1))
    assert seconds_of((one, 0.0, 0.0)) < 1.0
    path = tmp_path / "l.pace"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))  # type: ignore[operator]
    assert seconds_of((other, 0.0, 0.0)) < 1.0


def test_a_state_cut_at_any_byte_blocks_nobody(tmp_path: Path) -> None:
    path = tmp_path / "l.pace"
    file = PaceFile(path)
    with file.exchange({}) as times:
        times["calls"] = 1.5
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with file.exchange({}) as times:
            assert times in ({}, {"calls": 1.5})
    file.close()


def test_whoever_holds_the_lock_for_long_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("earwitness.runs.pace_file.PATIENCE_S", 0.05)
    [one, _] = limiters(tmp_path, Pace(requests_per_minute=600))
    assert seconds_of((one, 0.0, 0.0)) < 1.0
    held = os.open(tmp_path / "l.pace", os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        # Its own limits are still kept.
        assert seconds_of((one, 0.0, 0.0), (one, 0.0, 0.0)) >= 0.19
    finally:
        os.close(held)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    limiter = RateLimiter(60, path=tmp_path / "missing" / "l.pace")
    with pytest.raises(DataError, match=r"l\.pace: cannot be written"):
        seconds_of((limiter, 0.0, 0.0))


@pytest.mark.parametrize(("rate", "shared"), [(None, True), (6_000.0, False), (6_000.0, True)])
def test_there_is_a_file_only_for_limits_that_are_shared(
    tmp_path: Path, rate: float | None, shared: bool
) -> None:
    path = tmp_path / "ledger.jsonl"

    async def go() -> None:
        with Ledger(path, shared=shared) as ledger:
            settings = RunnerSettings(calls_per_minute=rate)
            await Runner(ScriptedModel(), ledger, settings).run(make_items(3))

    asyncio.run(go())
    assert (tmp_path / "ledger.jsonl.pace").exists() == (rate is not None and shared)
