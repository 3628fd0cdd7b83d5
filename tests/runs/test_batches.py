"""Whole runs in batch jobs: the real clients against stand-ins that speak the services' batch protocols."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from earwitness.errors import DataError, UsageError
from earwitness.models.batching import BatchLimits
from earwitness.models.prices import Price
from earwitness.models.registry import open_model
from earwitness.runs import batch_desk, batch_making, batches
from earwitness.runs.batch_jobs import JobBook
from earwitness.runs.batches import BatchOptions, BatchRunner
from earwitness.runs.items import Item, reply_key
from earwitness.runs.ledger import Ledger
from earwitness.runs.runner import Runner, RunnerSettings, RunSummary
from tests.runs.scripted import make_audio, make_items
from tests.standins.batch_plans import Plan
from tests.standins.google_batches import GoogleBatchServer
from tests.standins.google_server import generated, google_error
from tests.standins.loopback import Act, Call, json_act
from tests.standins.mistral_batches import MistralBatchServer
from tests.standins.mistral_server import mistral_error
from tests.standins.openai_server import completion

SETTINGS = RunnerSettings(first_wait_s=0.0, longest_wait_s=0.05, max_retries=2)
KEY = "sk-batch-test-0123456789abcdefSECRET"
SERVERS: dict[str, tuple[Any, str, Callable[..., Act]]] = {
    "google": (GoogleBatchServer, "google/m", google_error),
    "mistral": (MistralBatchServer, "mistral/m", mistral_error),
}
each_service = pytest.mark.parametrize("service", sorted(SERVERS))


@pytest.fixture
def items(tmp_path: Path) -> list[Item]:
    """Seven questions about a second of sound."""
    return make_items(7, make_audio(tmp_path))


@dataclass
class Sitting:
    """One command's work on a run folder."""

    folder: Path
    service: str
    url: str
    key: str = ""

    def model(self, **options: str) -> Any:
        if self.key:
            os.environ["BATCH_KEY"] = self.key
            options["api_key_env"] = "BATCH_KEY"
        name = SERVERS[self.service][1]
        return open_model(name, {"base_url": self.url, "server": "stand-in", **options})

    def ask(
        self,
        items: Sequence[Item],
        settings: RunnerSettings = SETTINGS,
        *,
        limits: BatchLimits | None = None,
        watch: Callable[[BatchRunner], Callable[[Any], None]] | None = None,
        **options: Any,
    ) -> RunSummary:
        """Ask in batch jobs."""

        async def work() -> RunSummary:
            model = self.model()
            with (
                Ledger(self.folder / "ledger.jsonl", shared=True) as ledger,
                JobBook(self.folder) as jobs,
            ):
                runner = BatchRunner(
                    model, ledger, settings, jobs=jobs,
                    options=BatchOptions(**{"look_every_s": 0.01, **options}),
                )  # fmt: skip
                if limits is not None:
                    runner._api = replace(runner._api, limits=limits)
                    runner._most_requests = min(runner._most_requests, limits.max_requests)
                if watch is not None:
                    runner._on_progress = watch(runner)
                try:
                    return await runner.run(items)
                finally:
                    await model.aclose()

        return asyncio.run(work())

    def ask_live(self, items: Sequence[Item]) -> RunSummary:
        async def work() -> RunSummary:
            model = self.model()
            with Ledger(self.folder / "ledger.jsonl", shared=True) as ledger:
                try:
                    return await Runner(model, ledger, SETTINGS).run(items)
                finally:
                    await model.aclose()

        return asyncio.run(work())

    def ledger(self) -> Ledger:
        return Ledger(self.folder / "ledger.jsonl", read_only=True)

    def lines(self, kind: str = "") -> list[dict[str, Any]]:
        text = (self.folder / "ledger.jsonl").read_text()
        return [line for line in map(json.loads, text.splitlines()) if kind in ("", line["kind"])]

    def book(self, kind: str) -> list[dict[str, Any]]:
        text = (self.folder / "batches.jsonl").read_text()
        return [line for line in map(json.loads, text.splitlines()) if line["kind"] == kind]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., tuple[Any, Sitting]]]:
    """Starts a service; a sitting on it with a folder of its own."""
    running: list[Any] = []

    def start(service: str, *acts: Act, key: str = "", **more: Any) -> tuple[Any, Sitting]:
        if key:
            more["key"] = key
        server = SERVERS[service][0](*acts, **more)
        server.__enter__()
        running.append(server)
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        return server, Sitting(folder, service, server.url, key)

    yield start
    for server in running:
        server.__exit__(None, None, None)


def gist(summary: RunSummary) -> tuple[int, int, int, int]:
    return summary.already_stored, summary.replied, summary.failed, summary.not_asked


@each_service
def test_one_job_answers_everything_as_single_calls_would(
    service: str, begin: Any, items: list[Item]
) -> None:
    server, sitting = begin(service, character="energy", key=KEY, plans=(Plan(looks=3),))
    summary = sitting.ask(items)
    assert gist(summary) == (0, 7, 0, 0)
    assert summary.complete
    assert (summary.calls, summary.stopped, summary.under_way) == (7, None, 0)
    assert len(server.jobs) == 1
    assert len(server.asked) == 7
    assert all(asked.audio is not None for asked in server.asked)
    in_batches = sitting.lines("reply")
    # The input is gone from the service, the run is known to it by no name of an item.
    sent = b"".join(call.body for call in server.calls)
    assert b"clip-00" not in sent
    assert next(iter(server.jobs.values())).source not in server.files
    # A stored reply is not bought again, whichever way it came.
    assert gist(sitting.ask_live(items)) == (7, 0, 0, 0)
    assert gist(sitting.ask(items)) == (7, 0, 0, 0)
    live = Sitting(sitting.folder / "live", service, server.url, KEY)
    live.folder.mkdir()
    live.ask_live(items)
    singly = live.lines("reply")
    assert {line["key"] for line in in_batches} == {line["key"] for line in singly}
    for line in (*in_batches, *singly):
        raw = line["reply"]["raw"]
        assert ("batch" in raw) == (line in in_batches)
        raw.pop("batch", None)
        for name in ("latency_s", "provider_id"):
            line["reply"].pop(name)
    by_key = {line["key"]: line["reply"] for line in singly}
    assert all(line["reply"] == by_key[line["key"]] for line in in_batches)


@each_service
def test_a_reader_killed_among_the_results_begins_anew_and_skips_what_is_there(
    service: str, begin: Any, items: list[Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, sitting = begin(service, plans=(Plan(looks=0),))
    kept = BatchRunner._keep

    def killed(self: BatchRunner, *given: Any) -> None:
        kept(self, *given)
        if self.progress.done == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(BatchRunner, "_keep", killed)
        with pytest.raises(KeyboardInterrupt):
            sitting.ask(items)
    assert gist(sitting.ask(items)) == (3, 4, 0, 0)
    assert len(server.jobs) == 1
    [closed] = sitting.book("closed")
    assert (closed["replies"], "repeated" in closed) == (7, False)


@each_service
def test_no_secret_and_no_audio_is_on_disk(service: str, begin: Any, items: list[Item]) -> None:
    _, sitting = begin(service, key=KEY, plans=(Plan(looks=1, answered=3),))
    sitting.ask(items, wait=False)
    sitting.ask(items)
    written = b"".join(path.read_bytes() for path in sitting.folder.rglob("*") if path.is_file())
    audio = items[0].audio
    assert audio is not None
    coded = base64.b64encode(audio.path.read_bytes())
    assert KEY.encode() not in written
    assert coded[200:260] not in written
    assert {path.name for path in sitting.folder.iterdir()} <= {
        "ledger.jsonl", "ledger.jsonl.locks", "ledger.jsonl.pace", "batches.jsonl",
        "batches.jsonl.locks",
    }  # fmt: skip


@each_service
def test_jobs_are_cut_by_requests_and_by_bytes(service: str, begin: Any, items: list[Item]) -> None:
    server, sitting = begin(service)
    assert sitting.ask(items, max_requests=3).complete
    assert [len(job.lines) for job in server.jobs.values()] == [3, 3, 1]
    size = max(len(call.body) for call in server.calls)
    other = Sitting(sitting.folder / "bytes", service, server.url)
    other.folder.mkdir()
    # A line is a third of the largest file so far, and two fit.
    limits = BatchLimits(100, int(size / 3 * 2.5), 100)
    assert other.ask(items, limits=limits).complete
    assert [len(job.lines) for job in list(server.jobs.values())[3:]] == [2, 2, 2, 1]


@each_service
def test_a_request_that_fits_into_no_job_fails_alone(
    service: str, begin: Any, items: list[Item]
) -> None:
    _, sitting = begin(service)
    summary = sitting.ask(items[:2], limits=BatchLimits(100, 1000, 100))
    assert gist(summary) == (0, 0, 2, 0)
    assert {line["error"] for line in sitting.lines("failed")} == {"too_large"}


def test_clips_that_cannot_be_read_end_a_run_as_they_do_singly(
    begin: Any, items: list[Item]
) -> None:
    server, sitting = begin("google")
    audio = items[0].audio
    assert audio is not None
    audio.path.write_bytes(b"another clip")
    summary = sitting.ask(items)
    assert (summary.failed, summary.not_asked, len(server.jobs)) == (5, 2, 0)
    assert summary.stopped is not None
    assert "5 items in a row failed" in summary.stopped
    assert {line["error"] for line in sitting.lines("failed")} == {"audio"}


@each_service
def test_no_more_jobs_than_allowed_are_under_way(
    service: str, begin: Any, items: list[Item]
) -> None:
    server, sitting = begin(service, plans=(Plan(looks=4), Plan(looks=1)))
    most = 0

    def watch(runner: BatchRunner) -> Callable[[Any], None]:
        def look(_: Any) -> None:
            nonlocal most
            going = [job for job in server.jobs.values() if job.state in ("queued", "running")]
            most = max(most, len(going))

        return look

    limits = BatchLimits(2, 10_000_000, 2)
    assert sitting.ask(items, limits=limits, watch=watch).complete
    assert (most, len(server.jobs)) == (2, 4)


@each_service
def test_leaving_without_waiting_and_fetching_later(
    service: str, begin: Any, items: list[Item]
) -> None:
    server, sitting = begin(service, plans=(Plan(looks=2), Plan(looks=0)))
    first = sitting.ask(items, wait=False, max_requests=4)
    assert gist(first) == (0, 0, 0, 7)
    assert (first.under_way, len(first.batch_jobs), first.stopped) == (7, 2, None)
    assert set(first.batch_jobs) == set(server.jobs)
    with sitting.ledger() as ledger:
        assert ledger.counts.in_flight == 7
    # The second job is ready at the first look, the first is not.
    second = sitting.ask(items, wait=False)
    assert gist(second) == (0, 3, 0, 4)
    assert second.under_way == 4
    third = sitting.ask(items)
    assert gist(third) == (3, 4, 0, 0)
    assert (third.complete, len(server.jobs)) == (True, 2)
    with sitting.ledger() as ledger:
        assert (ledger.counts.in_flight, ledger.counts.maybe_paid_twice) == (0, 0)


@each_service
def test_a_stop_leaves_the_jobs_to_the_next_command(
    service: str, begin: Any, items: list[Item]
) -> None:
    server, sitting = begin(service, plans=(Plan(looks=10_000),))

    def watch(runner: BatchRunner) -> Callable[[Any], None]:
        def look(progress: Any) -> None:
            if "next look" in progress.waiting:
                runner.stop("interrupted")

        return look

    summary = sitting.ask(items, watch=watch)
    assert (summary.stopped, summary.under_way) == ("interrupted", 7)
    [job] = server.jobs.values()
    job.plan = Plan(looks=0)
    assert gist(sitting.ask(items)) == (0, 7, 0, 0)
    assert len(server.jobs) == 1


@each_service
def test_failures_inside_a_job_are_asked_in_a_further_one(
    service: str, begin: Any, items: list[Item]
) -> None:
    error = SERVERS[service][2]

    def misbehave(job: int, number: int) -> Act | None:
        if job == 0 and number == 1:
            return error(500, "the model tripped")
        if job == 0 and number == 3:
            return error(429, "too many")
        if number == 4 and job == 0:
            return error(400, "this clip is no good")
        if job == 1 and number == 0:
            return error(503, "again")
        return None

    server, sitting = begin(service, misbehave=misbehave)
    summary = sitting.ask(items)
    assert gist(summary) == (0, 6, 1, 0)
    assert [len(job.lines) for job in server.jobs.values()] == [7, 2, 1]
    assert (summary.retries, summary.calls) == (3, 10)
    [given_up] = sitting.lines("failed")
    assert (given_up["item"], given_up["error"]) == ("clip-004", "bad_request")
    assert "no good" in given_up["message"]
    assert sorted(line["attempts"] for line in sitting.lines("reply")) == [1, 1, 1, 1, 2, 3]
    assert len(sitting.lines("attempt_failed")) == 4
    with sitting.ledger() as ledger:
        assert (ledger.counts.in_flight, ledger.counts.maybe_paid_twice) == (0, 0)
    # The next command asks only what failed, in a job or in a single call.
    assert gist(sitting.ask_live(items)) == (6, 1, 0, 0)


@each_service
def test_a_request_is_asked_no_more_often_than_allowed(
    service: str, begin: Any, items: list[Item]
) -> None:
    error = SERVERS[service][2]
    server, sitting = begin(service, misbehave=lambda _, n: None if n else error(500, "always"))
    assert gist(sitting.ask(items[:3])) == (0, 2, 1, 0)
    assert [len(job.lines) for job in server.jobs.values()] == [3, 1, 1]
    [given_up] = sitting.lines("failed")
    assert given_up["attempts"] == 3


@each_service
def test_outcomes_that_are_answers_stay_answers(
    service: str, begin: Any, items: list[Item]
) -> None:
    if service == "google":
        acts = [
            json_act(generated("ang", finish="MAX_TOKENS")),
            json_act({"promptFeedback": {"blockReason": "SAFETY"}}),
            json_act(generated(finish="SAFETY")),
        ]
        wanted = ["length", "content_filter", "content_filter"]
    else:
        acts = [
            json_act(completion("ang", "length")),
            json_act(completion("", "model_length")),
            mistral_error(422, "x"),
        ]
        wanted = ["length", "length"]
    _, sitting = begin(service, misbehave=lambda _, n: acts[n] if n < 3 else None)
    sitting.ask(items)
    with sitting.ledger() as ledger:
        settings = sitting.model().settings
        found = [
            ledger.get_reply(reply_key(item, SERVERS[service][1], settings)) for item in items[:3]
        ]
    assert [reply.finish for reply in found if reply is not None] == wanted


EDITS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "reordered": lambda lines: [lines[n] for n in (3, 0, 6, 1, 5, 2, 4)],
    "doubled": lambda lines: [*lines, lines[2], lines[0]],
    "unknown ids": lambda lines: (
        [lines[0].replace(b'": "', b'": "x', 1), *lines]
        if b'{"key' in lines[0]
        else [lines[0].replace(b'custom_id": "', b'custom_id": "x'), *lines]
    ),
    "a line missing": lambda lines: lines[:2] + lines[3:],
    "cut off": lambda lines: [*lines[:-1], lines[-1][:20]],
    "an empty file": lambda lines: lines[:0],
    "no JSON lines": lambda lines: [b"<html>\n", b"[1, 2]\n", b"\xff\xfe\n", *lines],
}
LOST = {"a line missing": 1, "cut off": 1, "an empty file": 7}


@each_service
@pytest.mark.parametrize("kind", EDITS)
def test_results_that_are_not_as_they_should_be(
    service: str, kind: str, begin: Any, items: list[Item]
) -> None:
    server, sitting = begin(service, plans=(Plan(edit=EDITS[kind]),))
    summary = sitting.ask(items)
    assert gist(summary) == (0, 7, 0, 0)
    lost = LOST.get(kind, 0)
    assert [len(job.lines) for job in server.jobs.values()] == [7, lost][: 1 + bool(lost)]
    # A request without a result was worked on all the same.
    assert summary.maybe_paid == lost
    with sitting.ledger() as ledger:
        assert (ledger.counts.replies, ledger.counts.duplicate_replies) == (7, 0)
        assert ledger.counts.maybe_paid_twice == lost
    closed = sitting.book("closed")[0]
    odd = {
        "doubled": ("repeated", 2),
        "unknown ids": ("unknown", 1),
        "no JSON lines": ("unreadable", 3),
    }
    if kind in odd:
        name, count = odd[kind]
        assert closed[name] == count


@each_service
def test_results_that_are_named_late_are_waited_for(
    service: str, begin: Any, items: list[Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, sitting = begin(service, plans=(Plan(late=4),))
    summary = sitting.ask(items)
    assert gist(summary) == (0, 7, 0, 0)
    assert (len(server.jobs), summary.maybe_paid) == (1, 0)
    # Not for ever.
    monkeypatch.setattr(batches, "LOOKS_FOR_RESULTS", 3)
    server.plans = [Plan(), Plan(late=99)]
    other = Sitting(sitting.folder / "never", service, server.url)
    other.folder.mkdir()
    assert (other.ask(items).replied, len(server.jobs)) == (7, 3)


@each_service
@pytest.mark.parametrize("ends", ["failed", "expired", "cancelled"])
def test_a_job_that_ends_badly_keeps_what_it_has_answered(
    service: str, ends: str, begin: Any, items: list[Item]
) -> None:
    plan = Plan(ends=ends, message="the reason why", answered=3)
    server, sitting = begin(service, plans=(plan,))
    summary = sitting.ask(items, max_requests=5)
    # The other job was made before the first one's end was seen, and is waited for.
    assert gist(summary) == (0, 5, 2, 0)
    assert summary.stopped is not None
    assert ends in summary.stopped
    assert {line["error"] for line in sitting.lines("failed")} == {f"batch_{ends}"}
    assert gist(sitting.ask(items)) == (5, 2, 0, 0)
    assert [len(job.lines) for job in server.jobs.values()] == [5, 2, 2]


@each_service
def test_a_job_refused_as_a_whole_is_not_sent_again_and_again(
    service: str, begin: Any, items: list[Item]
) -> None:
    server, sitting = begin(service, plans=(Plan(ends="failed", message="no audio here"),) * 9)
    summary = sitting.ask(items)
    assert gist(summary) == (0, 0, 7, 0)
    assert summary.stopped is not None
    assert len(server.jobs) == 1
    assert summary.maybe_paid == 0


# --- the moment of submission -----------------------------------------------------------------------------


def creation(call: Call) -> bool:
    return call.method == "POST" and (
        call.path.endswith(":batchGenerateContent") or call.path == "/v1/batch/jobs"
    )


class Once:
    """Does something to the first calls of a kind."""

    def __init__(self, fits: Callable[[Call], bool], *acts: Act) -> None:
        self.fits, self.acts, self.met = fits, list(acts), 0

    def __call__(self, call: Call) -> Act | None:
        if not self.fits(call):
            return None
        self.met += 1
        return self.acts.pop(0) if self.acts else None


@each_service
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_creation_that_is_refused_is_tried_again_with_the_same_file(
    service: str, status: int, begin: Any, items: list[Item]
) -> None:
    once = Once(creation, SERVERS[service][2](status, "not now"), SERVERS[service][2](status))
    server, sitting = begin(service, choose=once)
    summary = sitting.ask(items)
    assert gist(summary) == (0, 7, 0, 0)
    assert (once.met, len(server.jobs), summary.calls, summary.maybe_paid) == (3, 1, 7, 0)


@each_service
@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_creation_that_is_forbidden_fails_once(
    service: str, status: int, begin: Any, items: list[Item]
) -> None:
    once = Once(creation, SERVERS[service][2](status, "you may not"))
    server, sitting = begin(service, choose=once)
    summary = sitting.ask(items, max_requests=3)
    assert (summary.failed, summary.not_asked, once.met) == (3, 4, 1)
    assert summary.stopped is not None
    assert "you may not" in summary.stopped
    assert server.files == {}
    assert gist(sitting.ask(items)) == (0, 7, 0, 0)
    assert len(server.jobs) == 1


@each_service
def test_a_job_whose_answer_was_lost_is_found_and_not_made_again(
    service: str, begin: Any, items: list[Item]
) -> None:
    # The service makes the job, and the connection breaks in the middle of its answer.
    once = Once(creation, Act("reset"), Act("truncate"))
    server, sitting = begin(service, choose=once)
    summary = sitting.ask(items, max_requests=4)
    assert gist(summary) == (0, 7, 0, 0)
    assert (once.met, len(server.jobs), summary.maybe_paid) == (2, 2, 0)
    with sitting.ledger() as ledger:
        assert ledger.counts.maybe_paid_twice == 0


@each_service
def test_a_job_that_cannot_be_found_is_counted_and_made_anew(
    service: str, begin: Any, items: list[Item]
) -> None:
    once = Once(creation, Act("reset_before"))
    server, sitting = begin(service, choose=once)
    summary = sitting.ask(items)
    assert gist(summary) == (0, 7, 0, 0)
    assert (len(server.jobs), summary.maybe_paid) == (1, 7)
    with sitting.ledger() as ledger:
        assert ledger.counts.maybe_paid_twice == 7


def listing(call: Call) -> bool:
    return call.method == "GET" and ("/batches?" in call.path or "/jobs?" in call.path)


@each_service
def test_nothing_is_sent_anew_while_the_service_does_not_say_what_it_has(
    service: str, begin: Any, items: list[Item]
) -> None:
    once = Once(creation, Act("reset"))
    lists = Once(listing, *[SERVERS[service][2](500, "no list today")] * 3)
    server, sitting = begin(service, choose=lambda call: once(call) or lists(call))
    summary = sitting.ask(items)
    assert gist(summary) == (0, 0, 0, 7)
    assert summary.under_way == 7
    assert summary.stopped is not None
    assert "is not known" in summary.stopped
    assert gist(sitting.ask(items)) == (0, 7, 0, 0)
    assert len(server.jobs) == 1


@each_service
def test_a_job_left_unclear_that_was_never_made_is_counted_and_made_by_the_next_command(
    service: str, begin: Any, items: list[Item]
) -> None:
    once = Once(creation, Act("reset_before"))
    lists = Once(listing, *[SERVERS[service][2](500, "no list today")] * 3)
    server, sitting = begin(service, choose=lambda call: once(call) or lists(call))
    assert sitting.ask(items).under_way == 7
    assert len(server.jobs) == 0
    summary = sitting.ask(items)
    assert gist(summary) == (0, 7, 0, 0)
    assert (len(server.jobs), summary.maybe_paid) == (1, 7)
    assert [line["state"] for line in sitting.book("closed")] == ["lost", "succeeded"]
    assert set(server.files) == {job.output for job in server.jobs.values()}
    with sitting.ledger() as ledger:
        assert ledger.counts.maybe_paid_twice == 7


@each_service
def test_an_upload_that_fails_costs_nothing_and_asks_nobody(
    service: str, begin: Any, items: list[Item]
) -> None:
    def uploading(call: Call) -> bool:
        return call.method == "POST" and call.path in ("/upload/v1beta/files", "/v1/files")

    error = SERVERS[service][2]
    once = Once(uploading, error(500), error(500), error(413, "too much"))
    server, sitting = begin(service, choose=once)
    summary = sitting.ask(items)
    assert (summary.failed, summary.maybe_paid, len(server.jobs)) == (7, 0, 0)
    assert gist(sitting.ask(items)) == (0, 7, 0, 0)


def test_a_service_full_of_jobs_is_waited_for(begin: Any, items: list[Item]) -> None:
    server, sitting = begin("google", most_jobs=1)
    # What was refused has asked nobody, and takes nothing of a limit on calls.
    summary = sitting.ask(items, replace(SETTINGS, max_calls=7), max_requests=3)
    assert gist(summary) == (0, 7, 0, 0)
    assert (len(server.jobs), summary.calls, summary.maybe_paid) == (3, 7, 0)
    assert set(server.files) == {job.output for job in server.jobs.values()}


@each_service
def test_looks_and_downloads_that_fail_do_not_cost_the_job(
    service: str, begin: Any, items: list[Item]
) -> None:
    error = SERVERS[service][2]

    def looking(call: Call) -> bool:
        return call.method == "GET" and not listing(call)

    acts = [error(500), Act("reset"), error(429), Act(body=b"<html>"), Act("truncate"), error(503)]
    once = Once(looking, *acts)
    server, sitting = begin(service, choose=once)
    assert gist(sitting.ask(items)) == (0, 7, 0, 0)
    assert len(server.jobs) == 1
    # Now the download breaks off again and again.
    fetching = Once(
        lambda call: "download" in call.path or "/content" in call.path, *[Act("reset")] * 2
    )
    server.choose = fetching
    other = Sitting(sitting.folder / "two", service, server.url)
    other.folder.mkdir()
    assert gist(other.ask(items)) == (0, 7, 0, 0)
    assert fetching.met == 3
    # Half a file that came before is no part of the results.
    assert not {"repeated", "unreadable", "unknown"} & set(other.book("closed")[0])


@each_service
def test_a_job_the_service_does_not_know_any_more(
    service: str, begin: Any, items: list[Item]
) -> None:
    server, sitting = begin(service)
    sitting.ask(items, wait=False, max_requests=4)
    del server.jobs[next(iter(server.jobs))]
    # The other one is fetched all the same.
    summary = sitting.ask(items)
    assert summary.stopped is not None
    assert "--batch-cancel gives it up" in summary.stopped
    assert (summary.under_way, summary.replied) == (4, 3)
    given_up = sitting.ask(items, cancel=True)
    assert (given_up.under_way, given_up.maybe_paid, given_up.not_asked) == (0, 4, 4)
    assert gist(sitting.ask(items)) == (3, 4, 0, 0)


@each_service
def test_cancelling_keeps_what_was_answered(service: str, begin: Any, items: list[Item]) -> None:
    server, sitting = begin(service, plans=(Plan(looks=99, answered=2), Plan(looks=0)))
    sitting.ask(items, wait=False, max_requests=5)
    summary = sitting.ask(items, cancel=True)
    states = [job.state for job in server.jobs.values()]
    assert states in (["cancelled", "cancelled"], ["cancelled", "succeeded"])
    assert summary.under_way == 0
    assert (summary.failed, len(server.jobs)) == (0, 2)
    assert summary.replied + summary.not_asked == 7
    assert summary.replied >= 2
    again = sitting.ask(items)
    assert again.complete
    assert again.already_stored == summary.replied


# --- money --------------------------------------------------------------------------------------------------


PRICED = Price(call=0.01, batch=0.5)


def test_a_budget_cuts_the_job_before_it_is_sent(begin: Any, items: list[Item]) -> None:
    server, sitting = begin("google")
    summary = sitting.ask(items, replace(SETTINGS, price=PRICED, max_cost_usd=0.0201))
    assert gist(summary) == (0, 4, 0, 3)
    assert summary.cost_usd == pytest.approx(0.02)
    assert summary.stopped == "the next call could exceed the limit of 0.0201 USD"
    assert [len(job.lines) for job in server.jobs.values()] == [4]
    assert [line["cost_usd"] for line in sitting.lines("reply")] == [0.005] * 4


def test_calls_are_counted_before_they_are_sent(begin: Any, items: list[Item]) -> None:
    server, sitting = begin("mistral")
    summary = sitting.ask(items, replace(SETTINGS, max_calls=5))
    assert gist(summary) == (0, 5, 0, 2)
    assert [len(job.lines) for job in server.jobs.values()] == [5]
    assert sitting.ask(items, replace(SETTINGS, max_calls=5)).complete


def test_jobs_taken_up_count_with_what_they_were_reckoned_with(
    begin: Any, items: list[Item]
) -> None:
    server, sitting = begin("google", plans=(Plan(looks=3),))
    settings = replace(SETTINGS, price=PRICED, max_cost_usd=0.03)
    sitting.ask(items[:4], settings, wait=False)
    summary = sitting.ask(items, settings)
    assert gist(summary) == (0, 6, 0, 1)
    assert summary.cost_usd == pytest.approx(0.03)
    assert [len(job.lines) for job in server.jobs.values()] == [4, 2]


def test_without_a_price_a_limit_on_cost_sends_one_request_first(
    begin: Any, items: list[Item]
) -> None:
    server, sitting = begin("google")
    summary = sitting.ask(items, replace(SETTINGS, max_cost_usd=1.0))
    assert (summary.replied, summary.not_asked) == (1, 6)
    assert summary.stopped is not None
    assert "no price is known" in summary.stopped
    assert [len(job.lines) for job in server.jobs.values()] == [1]


# --- several processes, kills --------------------------------------------------------------------------------


def test_items_in_a_job_are_claimed_while_it_is_under_way(begin: Any, items: list[Item]) -> None:
    server, sitting = begin("google", plans=(Plan(looks=20),))
    seen: list[bool] = []

    def watch(runner: BatchRunner) -> Callable[[Any], None]:
        def look(progress: Any) -> None:
            if "next look" in progress.waiting and not seen:
                key = reply_key(items[0], "google/m", sitting.model().settings)
                with (
                    Ledger(sitting.folder / "ledger.jsonl", shared=True) as other,
                    JobBook(sitting.folder) as jobs,
                ):
                    seen.append(other.claim(key))
                    [job] = jobs.open_jobs()
                    seen.append(jobs.claim(job.name))
                    seen.append(jobs.asks(key))

        return look

    assert sitting.ask(items, watch=watch).complete
    assert seen == [False, False, True]
    assert len(server.jobs) == 1


def test_a_job_that_another_process_left_meanwhile_is_taken_up(
    begin: Any, items: list[Item]
) -> None:
    server, sitting = begin("google", plans=(Plan(looks=2),))
    left: list[RunSummary] = []

    def watch(runner: BatchRunner) -> Callable[[Any], None]:
        def look(progress: Any) -> None:
            if "sending" in progress.waiting and not left:
                # Another command asks two of the items that this one has not come to yet, and is gone.
                thread = threading.Thread(
                    target=lambda: left.append(sitting.ask(items[5:], wait=False))
                )
                thread.start()
                thread.join()

        return look

    summary = sitting.ask(items, watch=watch, max_requests=3)
    assert summary.complete
    assert [each.under_way for each in left] == [2]
    assert sorted(len(job.lines) for job in server.jobs.values()) == [2, 2, 3]
    assert len(server.asked) == 7


def test_two_processes_share_the_work(begin: Any, items: list[Item]) -> None:
    server, sitting = begin("google", plans=(Plan(looks=9),))
    inner: list[RunSummary] = []

    def watch(runner: BatchRunner) -> Callable[[Any], None]:
        def look(progress: Any) -> None:
            if "next look" in progress.waiting and not inner:
                inner.append(None)  # type: ignore[arg-type]
                words = [sys.executable, "-m", "tests.runs.batch_process", str(sitting.folder)]
                process = subprocess.Popen(
                    [*words, server.url, "7", "2"], stdout=subprocess.PIPE, text=True
                )
                processes.append(process)

        return look

    processes: list[subprocess.Popen[str]] = []
    summary = sitting.ask(items_of_process(4, sitting.folder), watch=watch, look_every_s=0.2)
    out, _ = processes[0].communicate(timeout=60)
    other = json.loads(out)
    assert summary.complete
    assert (other["replied"], other["elsewhere"], other["not_asked"]) == (3, 4, 0)
    asked = [len(job.lines) for job in server.jobs.values()]
    assert (asked[0], sum(asked)) == (4, 7)


def items_of_process(count: int, folder: Path) -> list[Item]:
    from tests.runs.batch_process import items_in

    return items_in(folder, count)


def test_killed_at_any_moment_no_request_is_paid_twice(begin: Any) -> None:
    server, sitting = begin("google", plans=tuple(Plan(looks=4) for _ in range(50)))
    moments = random.Random(11)
    items = items_of_process(12, sitting.folder)
    words = [
        sys.executable,
        "-m",
        "tests.runs.batch_process",
        str(sitting.folder),
        server.url,
        "12",
        "5",
    ]
    kills = 0
    for _ in range(4):
        before = len(server.calls)
        child = subprocess.Popen(words, stdout=subprocess.PIPE)
        while child.poll() is None and len(server.calls) == before:
            time.sleep(0.005)
        time.sleep(moments.uniform(0.0, 0.08))
        if child.poll() is None:
            os.kill(child.pid, signal.SIGKILL)
            kills += 1
        child.communicate()
    summary = sitting.ask(items)
    assert kills >= 3
    assert summary.already_stored + summary.replied == 12
    with sitting.ledger() as ledger:
        assert (ledger.counts.replies, ledger.counts.duplicate_replies) == (12, 0)
        paid = sum(job.succeeded for job in server.jobs.values())
        assert 12 <= paid <= 12 + ledger.counts.maybe_paid_twice


@each_service
def test_killed_between_submission_and_the_first_look_the_job_is_taken_up(
    service: str, begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service answers the creation after the process is gone: its name alone is on disk."""
    gone: list[subprocess.Popen[bytes]] = []
    server, sitting = begin(service)
    respond = server.respond

    def killing(call: Call) -> Act:
        act = respond(call)
        if creation(call) and gone:
            gone.pop().send_signal(signal.SIGKILL)
            time.sleep(0.05)
        return act

    monkeypatch.setattr(server, "respond", killing)
    items = items_of_process(6, sitting.folder)
    words = [
        sys.executable,
        "-m",
        "tests.runs.batch_process",
        str(sitting.folder),
        server.url,
        "6",
        "9",
    ]
    child = subprocess.Popen([*words, service], stdout=subprocess.PIPE)
    gone.append(child)
    child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL
    assert len(server.jobs) == 1
    assert (len(sitting.book("sending")), sitting.book("submitted")) == (1, [])
    summary = sitting.ask(items)
    assert gist(summary) == (0, 6, 0, 0)
    assert (len(server.jobs), summary.maybe_paid) == (1, 0)
    with sitting.ledger() as ledger:
        assert ledger.counts.maybe_paid_twice == 0


@each_service
def test_items_of_a_job_that_another_process_left_are_not_asked_singly(
    service: str, begin: Any, items: list[Item]
) -> None:
    server, sitting = begin(service, plans=(Plan(looks=99),))

    async def work(model: Any) -> RunSummary:
        # Open before the job was made: a process that asks call by call and comes to its items later.
        with (
            Ledger(sitting.folder / "ledger.jsonl", shared=True) as ledger,
            JobBook(sitting.folder) as jobs,
        ):
            await asyncio.to_thread(sitting.ask, items[:4], wait=False)
            try:
                return await Runner(model, ledger, SETTINGS, held=jobs.asks).run(items)
            finally:
                await model.aclose()

    summary = asyncio.run(work(sitting.model()))
    assert gist(summary) == (0, 3, 0, 4)
    assert len(server.asked) == 3
    [job] = server.jobs.values()
    job.plan = Plan(looks=0)
    assert gist(sitting.ask(items)) == (3, 4, 0, 0)


# --- refusals -----------------------------------------------------------------------------------------------


def test_jobs_of_another_server_are_not_mixed_up(begin: Any, items: list[Item]) -> None:
    _, sitting = begin("google", plans=(Plan(looks=9),))
    sitting.ask(items, wait=False)
    model = open_model("google/m", {"base_url": sitting.url, "server": "elsewhere"})

    async def work() -> None:
        with (
            Ledger(sitting.folder / "ledger.jsonl", shared=True) as ledger,
            JobBook(sitting.folder) as jobs,
        ):
            await BatchRunner(model, ledger, SETTINGS, jobs=jobs).run(items)

    with pytest.raises(UsageError, match="is with stand-in, not with elsewhere"):
        asyncio.run(work())


@pytest.mark.parametrize(("module", "what"), [(batch_making, "requests"), (batch_desk, "results")])
def test_a_full_disk_is_named(
    module: Any, what: str, begin: Any, items: list[Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, sitting = begin("google")
    made = tempfile.TemporaryFile

    def full(**given: Any) -> Any:
        if what == "requests" or server.jobs:
            raise OSError(28, "No space left on device")
        return made(**given)

    with monkeypatch.context() as patched:
        patched.setattr(module.tempfile, "TemporaryFile", full)
        with pytest.raises(
            DataError, match=rf"the {what} of a batch job.*No space left.*--batch-size"
        ):
            sitting.ask(items)
    assert gist(sitting.ask(items)) == (0, 7, 0, 0)
    assert len(server.jobs) == 1
