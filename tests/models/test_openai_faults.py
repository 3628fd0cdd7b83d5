"""Every fault a service can have, met by the real client over loopback HTTP."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable
from typing import Any

import pytest

from earwitness.errors import ModelError
from earwitness.models import http
from earwitness.models.protocols import AudioRef, Reply, Request
from tests.models.conftest import KEY, PROMPT, open_and_ask
from tests.standins.loopback import (
    CLOSE,
    EMPTY,
    HANG,
    INVALID_JSON,
    RESET_BEFORE,
    RESET_UNREAD,
    Act,
    error,
    html,
    json_act,
    retry_date,
)
from tests.standins.openai_server import OpenAIServer, as_stream, completion


def meet(act: Act, request: Request, **options: Any) -> Reply:
    with OpenAIServer(act) as server:
        return open_and_ask("openai/m", request, base_url=server.url, **options)


def fail(act: Act, request: Request, **options: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        meet(act, request, **options)
    return caught.value


@pytest.mark.parametrize(
    ("status", "code", "kind", "retryable"),
    [
        (400, None, "bad_request", False),
        (400, "context_length_exceeded", "too_large", False),
        (400, "arrearage", "quota", False),
        (401, "invalid_api_key", "auth", False),
        (402, None, "quota", False),
        (403, None, "auth", False),
        (404, "model_not_found", "missing", False),
        (405, None, "bad_request", False),
        (408, None, "timeout", True),
        (409, None, "conflict", True),
        (410, None, "missing", False),
        (413, None, "too_large", False),
        (415, None, "bad_request", False),
        (422, None, "bad_request", False),
        (425, None, "server", True),
        (429, "rate_limit_exceeded", "rate_limit", True),
        (429, "insufficient_quota", "quota", False),
        (500, None, "server", True),
        (501, None, "server", False),
        (502, None, "server", True),
        (503, None, "server", True),
        (504, None, "timeout", True),
        (524, None, "timeout", True),
        (529, "overloaded_error", "server", True),
    ],
)
def test_statuses(
    request_: Request, status: int, code: str | None, kind: str, retryable: bool
) -> None:
    problem = fail(error(status, "what went wrong", code), request_)
    assert (problem.kind, problem.retryable, problem.status) == (kind, retryable, status)
    assert problem.message.startswith(f"openai/m: HTTP {status}: ")
    assert "what went wrong" in problem.message
    assert problem.maybe_paid == (status in (408, 502, 504, 524))


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "Retry-After": "2"}, 1.5),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({}, None),
    ],
)
def test_the_wait_a_service_asks_for(
    request_: Request, headers: dict[str, str], wait_s: float | None
) -> None:
    assert fail(error(429, **headers), request_).retry_after_s == wait_s


def test_the_wait_as_a_date(request_: Request) -> None:
    problem = fail(error(503, **{"Retry-After": retry_date(30)}), request_)
    assert problem.retry_after_s == pytest.approx(30, abs=2)


def test_a_used_up_quota_asks_for_no_wait(request_: Request) -> None:
    problem = fail(error(429, code="insufficient_quota", **{"Retry-After": "1"}), request_)
    assert problem.retry_after_s is None


@pytest.mark.parametrize(
    ("advice", "status", "retryable"), [("false", 500, False), ("true", 400, True)]
)
def test_a_service_may_say_whether_to_try_again(
    request_: Request, advice: str, status: int, retryable: bool
) -> None:
    assert fail(error(status, **{"x-should-retry": advice}), request_).retryable is retryable


def test_too_large_is_heard_although_the_body_was_not_read(
    make_clip: Callable[..., AudioRef],
) -> None:
    clip = make_clip(seconds=60.0)
    act = error(413, "Maximum content size limit exceeded", how="early")
    problem = fail(act, Request("i", PROMPT, clip))
    assert (problem.kind, problem.retryable, problem.maybe_paid) == ("too_large", False, False)


def test_a_redirect_is_not_followed(request_: Request) -> None:
    act = Act(status=307, headers={"Location": "https://elsewhere.example/v1"})
    problem = fail(act, request_)
    assert (problem.kind, problem.retryable) == ("bad_request", False)
    assert "leads elsewhere (https://elsewhere.example/v1)" in problem.message


@pytest.mark.parametrize("act", [HANG, Act("drip", pause_s=0.05)], ids=["hang", "slow drip"])
def test_patience_has_an_end(request_: Request, act: Act) -> None:
    problem = fail(act, request_, timeout_s="0.4")
    assert (problem.kind, problem.retryable, problem.maybe_paid) == ("timeout", True, True)
    assert "no complete answer within 0.4 s" in problem.message


def test_a_drip_that_ends_in_time_is_an_answer(request_: Request) -> None:
    assert meet(Act("drip", pause_s=0.0), request_).text == "neutral"


@pytest.mark.parametrize("how", ["reset", "truncate"])
def test_an_answer_cut_in_the_middle(request_: Request, how: str) -> None:
    problem = fail(Act(how), request_)
    assert (problem.kind, problem.retryable, problem.maybe_paid) == ("connection", True, True)


@pytest.mark.parametrize("act", [RESET_BEFORE, CLOSE], ids=["reset", "closed"])
def test_no_answer_at_all(request_: Request, act: Act) -> None:
    problem = fail(act, request_)
    assert (problem.kind, problem.retryable, problem.maybe_paid) == ("connection", True, True)


def test_a_request_that_did_not_get_out_whole_is_not_paid(
    make_clip: Callable[..., AudioRef],
) -> None:
    clip = make_clip(seconds=600.0)
    problem = fail(RESET_UNREAD, Request("i", PROMPT, clip))
    assert (problem.kind, problem.retryable, problem.maybe_paid) == ("connection", True, False)


def test_nobody_there(request_: Request) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(ModelError, match=r"cannot connect to http://127\.0\.0\.1") as caught:
            open_and_ask("openai/m", request_, base_url=f"http://127.0.0.1:{port}/v1")
    problem = caught.value
    assert (problem.kind, problem.retryable, problem.maybe_paid) == ("connection", True, False)


def test_tls_where_there_is_none(request_: Request) -> None:
    with OpenAIServer() as server, pytest.raises(ModelError) as caught:
        open_and_ask("openai/m", request_, base_url=server.url.replace("http:", "https:"))
    assert (caught.value.kind, caught.value.maybe_paid) == ("connection", False)


def test_a_certificate_nobody_vouches_for_will_not_get_better() -> None:
    inner = ssl.SSLCertVerificationError("self-signed certificate")
    outer = RuntimeError("outer")
    outer.__cause__ = inner
    assert http.certificate_problem(outer)
    assert not http.certificate_problem(RuntimeError("refused"))


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (html(), "is a web page"),
        (INVALID_JSON, "is not valid JSON"),
        (EMPTY, "is empty"),
        (Act(body=b"[]"), "is no JSON object"),
        (Act(body=b"\xff\xfe\x00"), "is not valid JSON"),
        (json_act({"id": "x"}), "holds no choices"),
        (json_act({"choices": []}), "holds no choices"),
        (json_act({"choices": None}), "holds no choices"),
        (json_act({"choices": [{}]}), "a choice without a message"),
        (
            Act(
                body=as_stream(completion("anger"), finish=False, done=False),
                media_type="text/event-stream",
            ),
            "breaks off",
        ),
        (Act(body=b'data: {"choi\n\n', media_type="text/event-stream"), "a broken event"),
        (Act(body=b": keep-alive\n\n", media_type="text/event-stream"), "holds no choices"),
    ],
)
def test_answers_that_are_none(request_: Request, act: Act, words: str) -> None:
    problem = fail(act, request_)
    assert (problem.kind, problem.retryable, problem.maybe_paid) == ("bad_reply", True, True)
    assert words in problem.message


def test_an_answer_in_broken_compression(request_: Request) -> None:
    problem = fail(Act(body=b"not gzip", headers={"Content-Encoding": "gzip"}), request_)
    assert (problem.kind, problem.retryable) == ("bad_reply", True)


def test_an_answer_without_end(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_REPLY_BYTES", 1000)
    problem = fail(json_act(completion("x" * 2000)), request_)
    assert (problem.kind, problem.retryable, problem.maybe_paid) == ("bad_reply", False, True)


@pytest.mark.parametrize(
    ("inner", "kind", "retryable"),
    [
        ({"code": 429, "message": "slow down"}, "rate_limit", True),
        ({"code": "502", "message": "upstream"}, "server", True),
        ({"code": 401, "message": "who"}, "auth", False),
        ({"type": "invalid_request_error", "message": "what"}, "bad_request", False),
        ({"message": "no idea"}, "server", True),
        ("a plain text", "server", True),
    ],
)
def test_an_error_inside_a_200(request_: Request, inner: Any, kind: str, retryable: bool) -> None:
    problem = fail(json_act({"error": inner}), request_)
    assert (problem.kind, problem.retryable) == (kind, retryable)


def test_an_error_inside_a_choice_or_a_stream(request_: Request) -> None:
    body = completion("", "error")
    body["choices"][0]["error"] = {"code": 502, "message": "upstream"}
    assert fail(json_act(body), request_).kind == "server"
    stream = b'data: {"error": {"code": 429, "message": "slow"}}\n\n'
    assert fail(Act(body=stream, media_type="text/event-stream"), request_).kind == "rate_limit"


@pytest.mark.parametrize("word", ["error", "abort"])
def test_an_answer_the_service_broke_off(request_: Request, word: str) -> None:
    assert fail(json_act(completion("ang", word)), request_).kind == "server"


@pytest.mark.parametrize(
    ("act", "text", "finish"),
    [
        (json_act(completion("anger")), "anger", "stop"),
        (json_act(completion("anger", None)), "anger", "unknown"),
        (json_act(completion("anger", "tool_calls")), "anger", "unknown"),
        (json_act(completion("", "stop")), "", "stop"),
        (json_act(completion(None, "stop")), "", "stop"),
        (json_act(completion("", "length")), "", "length"),
        (json_act(completion("The speaker sou", "length")), "The speaker sou", "length"),
        (json_act(completion("", "content_filter")), "", "content_filter"),
        (json_act(completion(None, "stop", refusal="I can't.")), "I can't.", "refusal"),
        (json_act(completion([{"type": "refusal", "refusal": "No."}])), "No.", "refusal"),
        (json_act(completion([{"type": "text", "text": "fe"}, {"type": "text", "text": "ar"}])), "fear", "stop"),
        (json_act(completion(None, audio={"data": "QUJD" * 500, "transcript": "sadness"})), "sadness", "stop"),
        (error(400, "flagged", "content_policy_violation"), "", "content_filter"),
        (error(400, "flagged", "content_filter"), "", "content_filter"),
        (error(400, "inappropriate", "data_inspection_failed"), "", "content_filter"),
        (json_act({"error": {"code": 403, "message": "flagged", "metadata": {"flagged_input": "x"}}}, 403), "", "content_filter"),
        (json_act({"error": {"code": "content_filter", "message": "flagged"}}), "", "content_filter"),
        (Act(body=as_stream(completion("happiness")), media_type="text/event-stream"), "happiness", "stop"),
    ],
)  # fmt: skip
def test_answers_that_are_answers(request_: Request, act: Act, text: str, finish: str) -> None:
    reply = meet(act, request_)
    assert (reply.text, reply.finish) == (text, finish)


def test_a_reasoning_model_that_ran_out_of_words(request_: Request) -> None:
    body = completion(
        None, "length", reasoning_content="The pitch falls ...",
        usage={"prompt_tokens": 5, "completion_tokens": 64, "completion_tokens_details": {"reasoning_tokens": 64}},
    )  # fmt: skip
    reply = meet(json_act(body), request_)
    assert (reply.text, reply.finish) == ("", "length")
    assert reply.raw["reasoning"] == "The pitch falls ..."
    assert reply.raw["reasoning_tokens"] == 64


BASE64 = "UklGRiQAAABXQVZFZm10IBAAAAABAAEA" * 40
LEAKS = [
    error(401, f"Incorrect API key provided: {KEY}"),
    error(400, f"cannot read data {BASE64}"),
    error(400, f"you sent Authorization: Bearer {KEY}"),
    error(500, f"request was data:audio/wav;base64,{BASE64}"),
    Act(body=f"<html>{KEY} {BASE64}".encode(), media_type="text/html"),
    json_act({"error": {"code": 500, "message": f"{KEY} {BASE64}"}}),
    json_act({"choices": f"{KEY}{BASE64}"}),
    Act(status=302, headers={"Location": f"http://x/?key={KEY}"}),
    error(400, f"{KEY} {BASE64}", "content_filter"),
    json_act(
        completion(f"neutral {KEY} {BASE64}", refusal=f"{KEY}{BASE64}", reasoning_content=KEY)
    ),
    json_act(completion("x", model=KEY) | {"id": KEY, "system_fingerprint": KEY}),
]


@pytest.mark.parametrize("act", LEAKS)
def test_neither_key_nor_audio_is_ever_repeated(
    request_: Request, act: Act, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    try:
        said = repr(meet(act, request_, api_key_env="THE_KEY"))
    except ModelError as problem:
        said = problem.message + repr(problem) + repr(problem.__cause__)
    assert len(said) < 5000
    assert KEY not in said
    assert "SECRET" not in said
    assert not re.search(r"[A-Za-z0-9+/]{80,}", said)


def test_an_unknown_key_is_named_by_its_variable(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", "wrong-key-000")
    with (
        OpenAIServer(key=KEY) as server,
        pytest.raises(ModelError, match="the key is read from THE_KEY") as caught,
    ):
        open_and_ask("openai/m", request_, base_url=server.url, api_key_env="THE_KEY")
    assert caught.value.kind == "auth"
    assert "wrong-key-000" not in caught.value.message


def test_after_a_fault_the_same_model_goes_on(request_: Request) -> None:
    import asyncio

    from earwitness.models.registry import open_model

    with OpenAIServer(RESET_BEFORE, error(500), Act("truncate")) as server:
        model = open_model("openai/m", {"base_url": server.url})

        async def run() -> list[str]:
            said = []
            for _ in range(4):
                try:
                    said.append((await model.ask(request_)).text or "")
                except ModelError as problem:
                    said.append(problem.kind)
            await model.aclose()
            return said

        assert asyncio.run(run()) == ["connection", "server", "connection", "neutral"]
