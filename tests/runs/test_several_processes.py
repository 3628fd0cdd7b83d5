"""Several real processes on one ledger: nothing is asked twice, nothing is lost, a killed one's items are taken over."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from earwitness.errors import UsageError
from earwitness.models.protocols import Reply
from earwitness.runs.items import reply_key
from earwitness.runs.ledger import Ledger
from earwitness.runs.locks import ByteLocks, claim_place
from tests.runs.processes import items_of
from tests.standins.loopback import Act, Call, LoopbackServer, json_act
from tests.standins.openai_server import completion

SETTINGS_OF_STANDIN = "openai/stand-in"


class Counting(LoopbackServer):
    """Answers ``anger`` after a moment, counts what it was asked about, and holds back what ``hold`` names."""

    prefix = "/v1"

    def __init__(self, hold: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()
        self.hold = hold
        self.held = threading.Event()

    def respond(self, call: Call) -> Act:
        found = re.search(r"item (clip-\d+)", call.body.decode())
        assert found is not None
        name = found[1]
        self.asked[name] += 1
        if name in self.hold and self.asked[name] == 1:
            self.held.set()
            return Act("hang")
        return json_act(completion("anger"))


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes of a test, all gone afterwards."""
    running: list[subprocess.Popen[str]] = []
    yield running
    for process in running:
        process.kill()
        process.communicate()


def start(
    started: list[subprocess.Popen[str]], ledger: Path, url: str, count: int, *options: str
) -> subprocess.Popen[str]:
    words = ["-m", "tests.runs.processes", str(ledger), url, str(count), *options]
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    started.append(process)
    return process


def summary_of(process: subprocess.Popen[str]) -> dict[str, int]:
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    found: dict[str, int] = json.loads(out)
    return found


def test_two_processes_share_a_run_and_ask_every_item_once(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    ledger = tmp_path / "ledger.jsonl"
    with Counting() as server:
        both = [start(started, ledger, server.url, 120) for _ in range(2)]
        one, other = (summary_of(process) for process in both)
    assert set(server.asked.values()) == {1}
    assert len(server.asked) == 120
    assert one["replied"] + other["replied"] == one["calls"] + other["calls"] == 120
    for summary in (one, other):
        assert summary["already_stored"] + summary["replied"] == 120
        assert (summary["failed"], summary["not_asked"]) == (0, 0)
    with Ledger(ledger, read_only=True) as book:
        counts = book.counts
    assert (counts.calls, counts.replies, counts.duplicate_replies) == (120, 120, 0)
    assert (counts.in_flight, counts.maybe_paid_twice) == (0, 0)


def test_the_items_of_a_killed_process_are_taken_over(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    ledger = tmp_path / "ledger.jsonl"
    with Counting(hold=frozenset({"clip-000"})) as server:
        victim = start(started, ledger, server.url, 40)
        assert server.held.wait(60)
        other = start(started, ledger, server.url, 40)
        # The other one asks all that is free, and then waits for the claimed item rather than asking it.
        waited = time.monotonic() + 60
        while len(server.asked) < 40 and time.monotonic() < waited:
            time.sleep(0.01)
        time.sleep(0.5)
        assert server.asked["clip-000"] == 1
        assert other.poll() is None
        victim.send_signal(signal.SIGKILL)
        summary = summary_of(other)
    assert summary["already_stored"] + summary["replied"] == 40
    assert server.asked.pop("clip-000") == 2
    assert set(server.asked.values()) == {1}
    with Ledger(ledger, read_only=True) as book:
        counts = book.counts
    # The call that was under way at the kill may have been paid for: it is counted.
    assert (counts.replies, counts.in_flight, counts.maybe_paid_twice) == (40, 0, 1)


def test_the_limit_of_calls_holds_for_all_processes_together(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    ledger = tmp_path / "ledger.jsonl"
    ledger.touch()
    with Counting(hold=frozenset({"clip-000"})) as server:
        # Held back on its first call, this one has seen the other from its start.
        first = start(started, ledger, server.url, 60, "max_calls=20", "concurrency=1")
        assert server.held.wait(60)
        second = start(started, ledger, server.url, 60, "max_calls=20", "concurrency=4")
        made = summary_of(second)
        assert made["calls"] == 20
        first.kill()
        first.wait()
    assert sum(server.asked.values()) == 21


def test_a_process_joins_only_a_run_with_the_same_items(tmp_path: Path) -> None:
    from earwitness.runs.folder import RunFolder
    from earwitness.runs.items import Question
    from earwitness.tasks.running import PlannedRun, carry_out
    from tests.runs.scripted import ScriptedModel

    def planned(count: int) -> PlannedRun:
        questions = tuple(Question(item, "anger", "c") for item in items_of(count))
        return PlannedRun(tmp_path / "run", "m", {"task": "t"}, questions, ScriptedModel())

    import asyncio

    from earwitness.runs.runner import RunnerSettings

    asyncio.run(carry_out(planned(4), RunnerSettings()))
    with Ledger(RunFolder(tmp_path / "run").ledger_path, shared=True):
        assert asyncio.run(carry_out(planned(4), RunnerSettings())).already_stored == 4
        with pytest.raises(UsageError, match="another process is working on this run with other"):
            asyncio.run(carry_out(planned(5), RunnerSettings()))
    assert asyncio.run(carry_out(planned(5), RunnerSettings())).replied == 1


def test_who_does_not_share_keeps_others_out(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path), pytest.raises(UsageError, match="another process is working on this run"):
        Ledger(path, shared=True)
    with Ledger(path, shared=True), pytest.raises(UsageError, match="another process"):
        Ledger(path)
    with Ledger(path, shared=True) as one, Ledger(path, shared=True) as other:
        assert not one.is_alone()
        assert not other.is_alone()
    with Ledger(path, shared=True) as one:
        assert one.is_alone()


def test_what_one_appends_the_other_knows(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    seen: list[str] = []
    with Ledger(path, shared=True) as one, Ledger(path, shared=True) as other:
        other.on_others = lambda line: seen.append(str(line["kind"]))
        one.reply("a", Reply(text="first"), item="i", attempts=1)
        other.reply("b", Reply(text="second"), item="j", attempts=1)
        one.sync()
        for ledger in (one, other):
            texts = [reply.text for key in "ab" if (reply := ledger.get_reply(key))]
            assert texts == ["first", "second"]
    assert seen == ["reply"]
    assert path.read_bytes().count(b"\n") == 2


def test_a_claim_keeps_others_off_until_it_is_released(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path, shared=True) as one, Ledger(path, shared=True) as other:
        assert one.claim("k")
        assert not other.claim("k")
        assert not one.claim("k")
        assert other.claim("another")
        one.release("k")
        assert other.claim("k")
    with Ledger(path) as alone:
        assert alone.claim("k")


def test_a_line_half_written_by_a_killed_process_is_cut_by_the_next_who_writes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path, shared=True) as one:
        one.reply("a", Reply(text="kept"), item="i", attempts=1)
        with path.open("ab") as torn:
            torn.write(b'{"kind":"reply","key":"b","re')
        one.reply("c", Reply(text="after"), item="j", attempts=1)
        assert one.has_reply("c")
        with path.open("ab") as whole:
            whole.write(b'{"kind":"started","key":"d","item":"x","attempt":1}')
        one.sync()
        assert one.counts.in_flight == 1
    keys = [json.loads(line)["key"] for line in path.read_text().splitlines()]
    assert keys == ["a", "c", "d"]


def test_damage_by_another_program_is_named(tmp_path: Path) -> None:
    from earwitness.errors import DataError

    path = tmp_path / "ledger.jsonl"
    with Ledger(path, shared=True) as one:
        one.reply("a", Reply(text="kept"), item="i", attempts=1)
        with path.open("ab") as other:
            other.write(b"not a line\nnor this\n")
        with pytest.raises(DataError, match=r"ledger\.jsonl:byte \d+: a line that is not"):
            one.sync()
    path.write_bytes(b"")
    with Ledger(path, shared=True) as one:
        one.reply("a", Reply(text="kept"), item="i", attempts=1)
        path.write_bytes(b"")
        with pytest.raises(DataError, match=r"has become \d+ bytes shorter"):
            one.sync()


def test_a_failure_of_another_process_is_not_asked_again_in_this_sitting(tmp_path: Path) -> None:
    import asyncio

    from earwitness.runs.runner import Runner
    from tests.runs.scripted import ScriptedModel, failure, make_items

    path = tmp_path / "ledger.jsonl"
    items = make_items(3)
    key = reply_key(items[1], "scripted/model", {})
    model = ScriptedModel()
    with Ledger(path, shared=True) as mine, Ledger(path, shared=True) as other:
        other.failed(key, failure(), item=items[1].id, attempts=6)
        summary = asyncio.run(Runner(model, mine).run(items))
    assert dict(model.asked) == {"clip-000": 1, "clip-002": 1}
    assert (summary.replied, summary.failed, summary.not_asked) == (2, 1, 0)
    # The next sitting asks it.
    with Ledger(path, shared=True) as mine:
        assert asyncio.run(Runner(model, mine).run(items)).complete


def test_bytes_stand_for_keys() -> None:
    places = {claim_place(f"key-{number}") for number in range(10_000)}
    assert len(places) == 10_000
    assert min(places) > 0


def test_the_latch_nests_and_keeps_others_out(tmp_path: Path) -> None:
    one, other = ByteLocks(tmp_path / "x"), ByteLocks(tmp_path / "x")
    with one.latched(), one.latched():
        assert not other.take(0)
    assert other.take(0)
    one.close()
    other.close()


def test_questions_that_cannot_be_read_are_written_anew(tmp_path: Path) -> None:
    import asyncio

    from earwitness.runs.folder import RunFolder
    from earwitness.runs.items import Question
    from earwitness.runs.runner import RunnerSettings
    from earwitness.tasks.running import PlannedRun, carry_out
    from tests.runs.scripted import ScriptedModel

    questions = tuple(Question(item, "anger", "c") for item in items_of(3))
    run = PlannedRun(tmp_path / "run", "m", {"task": "t"}, questions, ScriptedModel())
    asyncio.run(carry_out(run, RunnerSettings()))
    (tmp_path / "run" / "items.jsonl").write_text('{"of": "another version"}\n')
    assert asyncio.run(carry_out(run, RunnerSettings())).already_stored == 3
    assert len(RunFolder(tmp_path / "run").questions()) == 3
