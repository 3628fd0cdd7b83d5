"""Mistral's batch API: multipart upload, states, output and error lines, against a stand-in that speaks it."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from earwitness.errors import ModelError
from earwitness.models.batching import Job, batches_of
from earwitness.models.mistral_batch import MistralBatches
from earwitness.models.protocols import Request
from earwitness.models.registry import open_model
from tests.models.conftest import KEY, without_audio
from tests.standins.batch_plans import Plan
from tests.standins.loopback import Act, html, json_act
from tests.standins.mistral_batches import MistralBatchServer
from tests.standins.mistral_server import mistral_error
from tests.standins.openai_server import completion

T = TypeVar("T")


def with_api(url: str, work: Callable[[MistralBatches], Awaitable[T]], **options: str) -> T:
    """Does something with the batch API of a model."""

    async def run() -> T:
        model = open_model("mistral/m", {"base_url": url, **options})
        try:
            api = batches_of(model)
            assert isinstance(api, MistralBatches)
            return await work(api)
        finally:
            await model.aclose()

    return asyncio.run(run())


async def job_of(api: MistralBatches, *requests: Request, name: str = "job") -> tuple[Job, str]:
    file = io.BytesIO()
    for number, request in enumerate(requests):
        await (await api.line(request, f"k{number}")).write(file)
    source = await api.upload(file, file.tell())
    return await api.create(name, source), source


def test_a_line_is_the_body_of_a_single_call_with_an_id(request_: Request) -> None:
    with MistralBatchServer() as server:

        async def work(api: MistralBatches) -> bytes:
            line = await api.line(request_, "the-key")
            length, file = line.length, io.BytesIO()
            await line.write(file)
            assert length == len(file.getvalue()) > line.length
            await api.chat.ask(request_)
            return file.getvalue()

        raw = with_api(server.url, work, temperature="0")
        [call] = server.calls
    line = json.loads(raw)
    assert (line["custom_id"], line["body"]) == ("the-key", call.json())
    assert raw.count(b"\n") == 1
    assert b"item-1" not in raw


def test_the_whole_way_of_a_job(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    acts = {1: mistral_error(422, "no such voice")}
    with MistralBatchServer(
        key=KEY, plans=(Plan(looks=1),), misbehave=lambda _, n: acts.get(n)
    ) as server:

        async def work(api: MistralBatches) -> tuple[list[Job], list[Any], Job | None]:
            job, source = await job_of(api, request_, request_, name="mine")
            seen = [job, await api.look(job.id), await api.look(job.id)]
            results = []
            for output in seen[-1].outputs:
                sink = io.BytesIO()
                await api.fetch(output, sink)
                results += [api.result(json.loads(line)) for line in sink.getvalue().splitlines()]
            found = await api.find("mine")
            await api.clean(source, ())
            await api.clean(source, ())
            assert source not in server.files
            return seen, results, found

        jobs, results, found = with_api(server.url, work, api_key_env="THE_KEY")
        [made] = [call for call in server.calls if call.path == "/v1/batch/jobs"]
    assert [job.state for job in jobs] == ["queued", "running", "succeeded"]
    assert (jobs[2].total, jobs[2].succeeded, jobs[2].failed) == (2, 1, 1)
    assert [result.key for result in results] == ["k0", "k1"]
    assert results[0].reply.text == "neutral"
    assert (results[1].error.kind, results[1].error.status) == ("bad_request", 422)
    assert "no such voice" in results[1].error.message
    assert found is not None
    assert found.id == jobs[0].id
    sent = made.json()
    sent.pop("input_files")
    assert sent == {
        "model": "m", "endpoint": "/v1/chat/completions", "metadata": {"earwitness_job": "mine"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "kind", "retryable"),
    [
        ({"response": {"status_code": 429, "body": {"message": "slow"}}}, "rate_limit", True),
        ({"response": {"status_code": 500, "body": "oops"}}, "server", True),
        ({"response": None, "error": {"code": 503, "message": "later"}}, "server", True),
        ({"response": None, "error": {"code": "422", "message": "bad"}}, "bad_request", False),
        ({"response": None, "error": "a word"}, "server", True),
        (
            {"error": {"message": "x"}, "response": {"status_code": 400, "body": {}}},
            "bad_request",
            False,
        ),
        ({"response": {"status_code": 200, "body": {}}}, "bad_reply", True),
        ({"response": {"status_code": 200, "body": {"choices": []}}}, "bad_reply", True),
        ({"response": None}, "bad_reply", True),
        ({"response": {"status_code": "200", "body": [1]}}, "bad_reply", True),
        ({}, "bad_reply", True),
    ],
)
def test_lines_that_are_errors(line: dict[str, Any], kind: str, retryable: bool) -> None:
    api = batches_of(open_model("mistral/m"))
    result = api.result({"custom_id": "k", **line})
    assert result is not None
    assert result.error is not None
    assert (result.key, result.error.kind, result.error.retryable) == ("k", kind, retryable)


def test_lines_that_are_replies_and_lines_without_an_id() -> None:
    api = batches_of(open_model("mistral/m"))
    said = completion([{"type": "text", "text": "fear"}])
    for body in (said, json.dumps(said)):
        found = api.result({"custom_id": "k", "response": {"status_code": 200, "body": body}})
        assert found is not None
        assert found.reply is not None
        assert found.reply.text == "fear"
    assert api.result({"response": {"status_code": 200, "body": said}}) is None
    assert api.result({"custom_id": 3}) is None


@pytest.mark.parametrize(
    ("raw", "state"),
    [
        ("QUEUED", "queued"),
        ("RUNNING", "running"),
        ("CANCELLATION_REQUESTED", "running"),
        ("TIMEOUT_EXCEEDED", "expired"),
        ("CANCELLED", "cancelled"),
        ("FAILED", "failed"),
        ("A_NEW_WORD", "running"),
    ],
)
def test_states(raw: str, state: str) -> None:
    fields = {"id": "j", "status": raw, "errors": [{"message": "why"}], "metadata": None}
    with MistralBatchServer(json_act(fields)) as server:
        job = with_api(server.url, lambda api: api.look("j"))
    assert (job.state, job.message, job.name, job.outputs) == (state, "why", "", ())


@pytest.mark.parametrize("act", [html(), json_act({}), json_act({"id": "x"}), Act(body=b"")])
def test_answers_that_name_no_job(act: Act) -> None:
    with MistralBatchServer(act) as server, pytest.raises(ModelError) as raised:
        with_api(server.url, lambda api: api.create("name", "file"))
    assert (raised.value.kind, raised.value.maybe_paid) == ("bad_reply", True)


def test_an_upload_is_never_counted_as_paid() -> None:
    for act in (json_act({}), Act("reset_before"), html()):
        with MistralBatchServer(act) as server, pytest.raises(ModelError) as raised:
            with_api(server.url, lambda api: api.upload(io.BytesIO(b"{}\n"), 3))
        assert not raised.value.maybe_paid


def test_jobs_are_listed_page_by_page(request_: Request) -> None:
    names = [f"job-{number}" for number in range(103)]

    def listed(page: int) -> Act:
        jobs = [
            {"id": name, "status": "RUNNING", "metadata": {"earwitness_job": name}}
            for name in names[page * 100 : (page + 1) * 100]
        ]
        return json_act({"data": jobs, "object": "list", "total": len(names)})

    for wanted, calls in (("job-102", 2), ("job-3", 1), ("none", 2)):
        with MistralBatchServer(listed(0), listed(1)) as server:
            found = with_api(server.url, lambda api, name=wanted: api.find(name))
            assert (found.id if found else "none") == wanted
            assert len(server.calls) == calls
            assert "page=0&page_size=100&order_by=-created" in server.calls[0].path


@pytest.mark.parametrize("body", [{}, {"detail": "x"}, {"data": {}, "total": 3}])
def test_a_list_that_is_none_does_not_say_that_a_job_is_missing(body: Any) -> None:
    with (
        MistralBatchServer(json_act(body)) as server,
        pytest.raises(ModelError, match="is no list of jobs"),
    ):
        with_api(server.url, lambda api: api.find("job"))
    with MistralBatchServer(json_act({"object": "list", "total": 0})) as server:
        assert with_api(server.url, lambda api: api.find("job")) is None


def test_a_job_that_has_ended_may_be_cancelled_all_the_same(request_: Request) -> None:
    with MistralBatchServer(plans=(Plan(looks=0),)) as server:

        async def work(api: MistralBatches) -> None:
            job, _ = await job_of(api, without_audio(request_))
            await api.look(job.id)
            await api.cancel(job.id)
            with pytest.raises(ModelError, match="404"):
                await api.cancel("none")

        with_api(server.url, work)
