"""Gemini's Batch API: lines, states, results and errors, against a stand-in that speaks it."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.errors import ModelError, UsageError
from earwitness.models import google_batch, google_files
from earwitness.models.batching import Job, batches_of, read_line
from earwitness.models.google_batch import GoogleBatches
from earwitness.models.protocols import AudioRef, Request
from earwitness.models.registry import open_model
from tests.models.conftest import KEY, PROMPT, without_audio
from tests.standins.batch_plans import Plan
from tests.standins.google_batches import GoogleBatchServer
from tests.standins.google_server import generated, google_error
from tests.standins.loopback import Act, html, json_act

T = TypeVar("T")
NAMES = st.sampled_from(
    ["key", "custom_id", "response", "error", "metadata", "status_code", "body", "code", "message",
     "candidates", "content", "parts", "text", "finishReason", "choices", "usageMetadata", "details"]
)  # fmt: skip
MODELS = {name: open_model(name) for name in ("google/m", "mistral/m")}


def with_api(url: str, work: Callable[[GoogleBatches], Awaitable[T]], **options: str) -> T:
    """Does something with the batch API of a model."""

    async def run() -> T:
        model = open_model("google/m", {"base_url": url, **options})
        try:
            api = batches_of(model)
            assert isinstance(api, GoogleBatches)
            return await work(api)
        finally:
            await model.aclose()

    return asyncio.run(run())


async def job_of(api: GoogleBatches, *requests: Request, name: str = "job") -> tuple[Job, str]:
    """A job of questions whose keys are k0, k1, ..."""
    file = io.BytesIO()
    for number, request in enumerate(requests):
        await (await api.line(request, f"k{number}")).write(file)
    source = await api.upload(file, file.tell())
    return await api.create(name, source), source


def test_a_line_is_the_body_of_a_single_call_with_a_key(request_: Request) -> None:
    with GoogleBatchServer() as server:

        async def work(api: GoogleBatches) -> tuple[bytes, Any]:
            line = await api.line(request_, "the-key")
            length, file = line.length, io.BytesIO()
            await line.write(file)
            # Written, it holds the clip no more.
            assert length == len(file.getvalue()) > line.length
            await api.chat.ask(request_)
            return file.getvalue(), line.stimulus

        raw, stimulus = with_api(server.url, work, temperature="0")
        [call] = server.calls
    assert raw.endswith(b"}\n")
    assert raw.count(b"\n") == 1
    line = json.loads(raw)
    assert (line["key"], line["request"]) == ("the-key", call.json())
    assert stimulus["format"] == "wav"
    assert b"item-1" not in raw


def test_the_whole_way_of_a_job(request_: Request) -> None:
    with GoogleBatchServer(key=KEY, plans=(Plan(looks=1),), looks=1) as server:

        async def work(api: GoogleBatches) -> tuple[list[Job], bytes, Job | None]:
            job, source = await job_of(api, request_, without_audio(request_), name="mine")
            seen = [job, await api.look(job.id), await api.look(job.id)]
            sink = io.BytesIO()
            [output] = seen[-1].outputs
            await api.fetch(output, sink)
            found = await api.find("mine")
            await api.clean(source, ())
            assert await api.find("another") is None
            assert source not in server.files
            return seen, sink.getvalue(), found

        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("THE_KEY", KEY)
            patch.setattr(google_files, "LOOK_EVERY_S", 0.01)
            jobs, results, found = with_api(server.url, work, api_key_env="THE_KEY")
    assert [job.state for job in jobs] == ["queued", "running", "succeeded"]
    assert jobs[2].state_raw == "BATCH_STATE_SUCCEEDED"
    assert (jobs[2].total, jobs[2].succeeded, jobs[2].failed) == (2, 2, 0)
    assert jobs[0].name == "mine"
    assert found is not None
    assert found.id == jobs[0].id
    assert [json.loads(line)["key"] for line in results.splitlines()] == ["k0", "k1"]
    # The place an upload goes to is a permission in itself: no key there.
    assert all("x-goog-api-key" not in c.headers for c in server.calls if c.path.startswith("/put"))


def test_a_job_is_found_on_a_later_page_of_the_list(request_: Request) -> None:
    with GoogleBatchServer(page=2) as server:

        async def work(api: GoogleBatches) -> Job | None:
            for number in range(5):
                await job_of(api, without_audio(request_), name=f"job-{number}")
            return await api.find("job-4")

        found = with_api(server.url, work)
    assert found is not None
    assert found.id == "batches/b4"
    assert sum("batches?pageSize=100" in call.path for call in server.calls) == 3


def test_a_list_without_an_end_does_not_say_that_a_job_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(google_batch, "_PAGES", 3)
    page = json_act({"operations": [], "nextPageToken": "more"})
    with GoogleBatchServer(choose=lambda _: page) as server:
        with pytest.raises(ModelError, match="goes on after 3 pages") as raised:
            with_api(server.url, lambda api: api.find("job"))
        assert len(server.calls) == 3
    assert not raised.value.retryable


def test_results_that_come_with_the_job(request_: Request) -> None:
    acts = {1: google_error(500, "tripped")}
    with GoogleBatchServer(
        inlined=True, plans=(Plan(looks=0),), misbehave=lambda _, n: acts.get(n)
    ) as server:

        async def work(api: GoogleBatches) -> list[Any]:
            job, _ = await job_of(api, request_, request_)
            job = await api.look(job.id)
            assert job.outputs == ()
            return [api.result(line) for line in job.inlined]

        first, second = with_api(server.url, work)
    assert (first.key, first.reply.text) == ("k0", "neutral")
    assert (second.key, second.error.kind, second.error.retryable) == ("k1", "server", True)


def test_a_clip_too_large_for_a_line_is_uploaded_and_deleted_with_the_job(
    make_clip: Callable[..., AudioRef],
) -> None:
    request = Request("i", PROMPT, make_clip(seconds=2.0))
    with GoogleBatchServer(character="energy", plans=(Plan(looks=0),)) as server:

        async def work(api: GoogleBatches) -> Any:
            line = await api.line(request, "k0")
            file = io.BytesIO()
            await line.write(file)
            assert b"inlineData" not in file.getvalue()
            source = await api.upload(file, file.tell())
            job = await api.look((await api.create("j", source)).id)
            sink = io.BytesIO()
            await api.fetch(job.outputs[0], sink)
            assert len(server.files) == 3
            await api.clean(source, line.uploads)
            return api.result(read_line(sink.getvalue()) or {}), line

        result, line = with_api(server.url, work, inline_bytes="1000")
        assert set(server.files) == {"files/results-b0"}
    assert result.reply.text == "neutral"
    assert line.stimulus["uploaded"] is True
    assert len(line.uploads) == 1


@pytest.mark.parametrize(
    ("code", "kind", "retryable", "paid"),
    [
        (1, "cancelled", True, False),
        (3, "bad_request", False, False),
        (4, "timeout", True, True),
        (5, "missing", False, False),
        (7, "auth", False, False),
        (8, "rate_limit", True, False),
        (13, "server", True, False),
        (14, "server", True, False),
        (16, "auth", False, False),
        (400, "bad_request", False, False),
        (503, "server", True, False),
        (999, "server", True, False),
        ("13", "server", True, False),
        (None, "server", True, False),
    ],
)
def test_a_status_means_what_it_would_mean_as_an_answer(
    code: Any, kind: str, retryable: bool, paid: bool
) -> None:
    api = batches_of(open_model("google/m"))
    result = api.result({"key": "k", "error": {"code": code, "message": "what went wrong"}})
    assert result is not None
    assert result.error is not None
    assert (result.error.kind, result.error.retryable, result.error.maybe_paid) == (
        kind, retryable, paid,
    )  # fmt: skip
    assert "what went wrong" in result.error.message


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ({"key": "k", "response": {}}, "k"),
        ({"key": "k"}, "k"),
        ({"key": "k", "response": {"candidates": [{}]}}, "k"),
        ({"metadata": {"key": "k"}, "response": None}, "k"),
        ({"key": "k", "response": [], "error": "a word"}, "k"),
        ({"response": generated("anger")}, None),
        ({"key": 3, "metadata": []}, None),
    ],
)
def test_lines_that_answer_nothing(line: dict[str, Any], key: str | None) -> None:
    api = batches_of(open_model("google/m"))
    result = api.result(line)
    assert (result and result.key) == key
    if result is not None:
        assert result.error is not None
        assert result.error.kind == "bad_reply"


@pytest.mark.parametrize(
    ("operation", "state", "message"),
    [
        ({"metadata": {"state": "BATCH_STATE_PENDING"}}, "queued", ""),
        ({"metadata": {"state": "JOB_STATE_RUNNING"}}, "running", ""),
        ({"metadata": {"state": "BATCH_STATE_SOMETHING_NEW"}}, "running", ""),
        ({"metadata": {"state": "BATCH_STATE_SOMETHING_NEW"}, "done": True}, "succeeded", ""),
        ({"done": True, "error": {"code": 13, "message": "broke"}}, "failed", "broke"),
        ({"done": True, "error": {"code": 1, "message": "gone"}}, "cancelled", "gone"),
        ({"metadata": {"state": "BATCH_STATE_EXPIRED"}, "error": {"code": 4}}, "expired", ""),
        ({}, "running", ""),
        ({"metadata": [], "error": 3, "response": "x"}, "running", ""),
    ],
)
def test_states(operation: dict[str, Any], state: str, message: str) -> None:
    act = json_act({"name": "batches/b1", **operation})
    with GoogleBatchServer(act) as server:
        job = with_api(server.url, lambda api: api.look("batches/b1"))
    assert (job.state, job.message) == (state, message)


@pytest.mark.parametrize("act", [html(), json_act({}), json_act({"name": "x"}), Act(body=b"")])
def test_answers_that_name_no_job(act: Act) -> None:
    with GoogleBatchServer(act) as server, pytest.raises(ModelError) as raised:
        with_api(server.url, lambda api: api.create("name", "files/1"))
    assert (raised.value.kind, raised.value.maybe_paid) == ("bad_reply", True)


def test_a_key_that_is_quoted_back_is_cut_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    error = {"code": 13, "message": f"who is {KEY}?"}
    act = json_act({"name": "batches/b1", "done": True, "error": error})
    with GoogleBatchServer(act) as server:
        job = with_api(server.url, lambda api: api.look("batches/b1"), api_key_env="THE_KEY")
    assert KEY not in job.message
    assert "who is" in job.message


def test_a_job_that_has_ended_may_be_cancelled_all_the_same(request_: Request) -> None:
    with GoogleBatchServer(plans=(Plan(looks=0),)) as server:

        async def work(api: GoogleBatches) -> None:
            job, _ = await job_of(api, without_audio(request_))
            await api.look(job.id)
            await api.cancel(job.id)
            with pytest.raises(ModelError, match="404"):
                await api.cancel("batches/none")

        with_api(server.url, work)


def test_models_without_batches_say_why() -> None:
    with pytest.raises(UsageError, match="take words and images, and no audio"):
        batches_of(open_model("anthropic/m"))
    with pytest.raises(UsageError, match="answers at once or not at all"):
        batches_of(open_model("openai-realtime/m"))
    with pytest.raises(UsageError, match="knows no batch API"):
        batches_of(open_model("baseline/uniform", {"requests_per_minute": "3"}))
    assert batches_of(open_model("mistral/m", {"requests_per_minute": "3"}))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None)
@given(
    line=st.dictionaries(NAMES, VALUES, max_size=6),
    model=st.sampled_from(["google/m", "mistral/m"]),
)
def test_whatever_a_line_holds_it_is_a_reply_an_error_or_nothing(
    line: dict[str, Any], model: str
) -> None:
    result = batches_of(MODELS[model]).result(line)
    if result is not None:
        assert (result.reply is None) != (result.error is None)
