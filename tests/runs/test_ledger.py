"""The ledger: append-only, repaired after any accident, never asked twice, never silent about damage."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.errors import DataError, ModelError, UsageError
from earwitness.models.protocols import Reply, Usage
from earwitness.runs.ledger import Ledger, reply_from_json, reply_to_json


def write_some(path: Path) -> None:
    with Ledger(path) as ledger:
        for number in range(3):
            key = f"key{number}"
            ledger.started(key, item=f"clip-{number}", attempt=1)
            ledger.reply(key, Reply(text=f"anger {number}"), item=f"clip-{number}", attempts=1)
        ledger.started("key3", item="clip-3", attempt=1)
        error = ModelError("quota used up", kind="quota", retryable=False, status=429)
        ledger.attempt_failed("key3", error, item="clip-3", attempt=1)
        ledger.failed("key3", error, item="clip-3", attempts=1)


def test_replies_and_failures_come_back(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    write_some(path)
    with Ledger(path, read_only=True) as ledger:
        assert [ledger.has_reply(f"key{n}") for n in range(4)] == [True, True, True, False]
        reply, failure, _ = ledger.get_entry("key1")
        assert reply is not None
        assert reply.text == "anger 1"
        assert failure is None
        reply, failure, _ = ledger.get_entry("key3")
        assert reply is None
        assert failure is not None
        assert (failure.kind, failure.status, failure.message) == ("quota", 429, "quota used up")
        assert ledger.get_entry("never") == (None, None, None)
        counts = ledger.counts
    assert (counts.calls, counts.replies, counts.failed, counts.in_flight) == (4, 3, 1, 0)


def test_a_ledger_cut_at_every_byte_opens_and_keeps_all_whole_lines(tmp_path: Path) -> None:
    whole = tmp_path / "whole.jsonl"
    write_some(whole)
    data = whole.read_bytes()
    path = tmp_path / "cut.jsonl"
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        complete = data[:length].count(b"\n")
        with Ledger(path) as ledger:
            ledger.started("new", item="clip-new", attempt=1)
            ledger.reply("new", Reply(text="fear"), item="clip-new", attempts=1)
        lines = [json.loads(line) for line in path.read_bytes().splitlines()]
        # The line the cut fell into is kept only where nothing but its newline was missing.
        assert len(lines) - 2 in (complete, complete + 1)
        assert lines[: len(lines) - 2] == [
            json.loads(line) for line in data.splitlines()[: len(lines) - 2]
        ]
        assert lines[-1]["key"] == "new"


def test_damage_before_the_last_line_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    write_some(path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = b"\x00\x00\x00 not json\n"
    before = b"".join(lines)
    path.write_bytes(before)
    with pytest.raises(DataError, match=r"ledger\.jsonl:3: a line that is not a ledger entry"):
        Ledger(path)
    assert path.read_bytes() == before


def test_two_processes_cannot_write_one_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    script = (
        "import sys; from pathlib import Path; from earwitness.runs.ledger import Ledger\n"
        "from earwitness.errors import UsageError\n"
        "try:\n    Ledger(Path(sys.argv[1]))\nexcept UsageError as error:\n    sys.exit(str(error))\n"
    )
    with Ledger(path):
        done = subprocess.run(
            [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False
        )
    assert done.returncode == 1
    assert "another process is working on this run" in done.stderr


def test_reading_while_another_process_writes_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as writer:
        writer.reply("k", Reply(text="anger"), item="clip", attempts=1)
        with Ledger(path, read_only=True) as reader:
            assert reader.has_reply("k")


def test_reading_never_changes_a_torn_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    write_some(path)
    torn = path.read_bytes()[:-7]
    path.write_bytes(torn)
    with Ledger(path, read_only=True) as ledger:
        assert ledger.counts.replies == 3
    assert path.read_bytes() == torn


def test_calls_cut_off_by_a_kill_are_counted_as_possibly_paid_twice(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.started("a", item="clip-a", attempt=1)
    with Ledger(path) as ledger:
        assert ledger.counts.in_flight == 1
        ledger.started("a", item="clip-a", attempt=1)
        ledger.reply("a", Reply(text="joy"), item="clip-a", attempts=1)
        counts = ledger.counts
    assert (counts.in_flight, counts.maybe_paid_twice, counts.replies) == (0, 1, 1)


def test_a_second_reply_to_one_key_is_counted_and_the_first_stands(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.reply("a", Reply(text="first"), item="clip", attempts=1)
        ledger.reply("a", Reply(text="second"), item="clip", attempts=1)
        reply = ledger.get_reply("a")
        assert reply is not None
        assert reply.text == "first"
        assert ledger.counts.duplicate_replies == 1


@pytest.mark.parametrize("limit", [300, 512, 700])
def test_a_full_disk_is_a_named_error_and_leaves_whole_lines(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "ledger.jsonl"
    script = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from earwitness.errors import DataError\n"
        "from earwitness.models.protocols import Reply\n"
        "from earwitness.runs.ledger import Ledger\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))\n"
        "ledger = Ledger(Path(sys.argv[1]))\n"
        "try:\n"
        "    for n in range(9):\n"
        "        ledger.reply(f'k{n}', Reply(text='anger'), item='clip', attempts=1)\n"
        "except DataError as error:\n    sys.exit(str(error))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), str(limit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "cannot be written" in done.stderr
    assert "every reply stored so far is kept" in done.stderr
    data = path.read_bytes()
    assert data == b"" or data.endswith(b"\n")
    with Ledger(path) as ledger:
        assert ledger.counts.replies == data.count(b"\n")


numbers = st.floats(allow_nan=False, allow_infinity=False)
replies = st.builds(
    Reply,
    text=st.none() | st.text(),
    scores=st.none() | st.dictionaries(st.text(), numbers),
    finish=st.sampled_from(["stop", "length", "content_filter", "refusal", "unknown"]),
    finish_raw=st.none() | st.text(),
    usage=st.builds(Usage, input_tokens=st.none() | st.integers(0, 10**9)),
    latency_s=st.floats(0, 1000).map(lambda value: round(value, 6)),
    provider_id=st.none() | st.text(),
    provider_model=st.none() | st.text(),
    raw=st.dictionaries(st.text(), st.integers() | st.text()),
)


@given(replies)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_every_reply_survives_the_ledger_whole(reply: Reply) -> None:
    written = json.loads(json.dumps(reply_to_json(reply), ensure_ascii=False))
    assert reply_from_json(written) == reply


def test_the_lock_error_is_a_usage_error(tmp_path: Path) -> None:
    with (
        Ledger(tmp_path / "l.jsonl"),
        pytest.raises(UsageError, match="give this one another --out folder"),
    ):
        Ledger(tmp_path / "l.jsonl")
