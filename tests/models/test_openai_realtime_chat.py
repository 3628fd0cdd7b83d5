"""``openai-realtime/NAME`` against a real WebSocket server, and against servers that speak plain HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from earwitness.errors import MissingExtraError, ModelError, UsageError
from earwitness.models import openai_realtime_chat, websocket
from earwitness.models.openai_realtime_reply import Listener
from earwitness.models.protocols import AudioRef, Message, Reply, Request
from earwitness.models.redaction import Redactor
from earwitness.models.registry import open_model, open_text_model
from tests.models.conftest import KEY, PROMPT, open_and_ask, without_audio
from tests.models.faults import BASE64
from tests.standins.loopback import (
    CLOSE,
    EMPTY,
    HANG,
    RESET_BEFORE,
    Act,
    Call,
    LoopbackServer,
    error,
    html,
)
from tests.standins.realtime_server import RealtimeServer

NAME = "openai-realtime/m"


class PlainServer(LoopbackServer):
    """Knows nothing of WebSockets."""

    prefix = "/v1"

    def respond(self, call: Call) -> Act:
        return html()


def meet(how: str, request: Request, **options: str) -> Reply:
    with RealtimeServer(how) as server:
        return open_and_ask(NAME, request, base_url=server.url, **options)


def fail(how: str, request: Request, **options: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        meet(how, request, **options)
    return caught.value


def test_a_question_with_its_audio(make_clip: Callable[..., AudioRef]) -> None:
    clip = make_clip(seconds=5.0, rate=16_000, channels=2, hz=400, peak=0.9)
    request = Request("secret-name", replace(PROMPT, system="Listen."), clip)
    with RealtimeServer(character="energy") as server:
        reply = open_and_ask(
            "openai-realtime/gpt-realtime", request, base_url=server.url, max_output_tokens="50",
            price_in="1", price_out="1",
        )  # fmt: skip
        [session] = server.sessions
    assert (reply.text, reply.finish, reply.finish_raw) == ("surprise", "stop", "completed")
    assert (reply.provider_id, reply.provider_model) == ("resp_1", "gpt-realtime-2026")
    assert session.heard is not None
    assert (session.heard.seconds, session.heard.rate) == (5.0, 24_000)
    assert session.pieces == [96_000, 96_000, 48_000]
    assert session.turns == [("user", PROMPT.user), ("user", "(audio)")]
    assert session.session == {
        "type": "realtime", "output_modalities": ["text"], "instructions": "Listen.",
        "audio": {"input": {"format": {"type": "audio/pcm", "rate": 24_000}, "turn_detection": None}},
    }  # fmt: skip
    assert session.response["max_output_tokens"] == 50
    assert reply.raw["audio_tokens"] == 50
    assert reply.raw["stimulus"] == {
        "format": "pcm16", "rate_hz": 24_000, "bytes": 240_000,
        "note": "resampled from 16000 to 24000 Hz; mixed to one channel",
    }  # fmt: skip
    assert reply.usage.cost_usd == pytest.approx(72e-6)
    assert "secret-name" not in repr(session)


def test_audio_before_the_words_and_none_at_all(request_: Request) -> None:
    with RealtimeServer() as server:
        open_and_ask(NAME, request_, base_url=server.url, audio_first="yes")
        open_and_ask(NAME, without_audio(request_), base_url=server.url.replace("http", "ws"))
        first, bare = server.sessions
    assert [text for _, text in first.turns] == ["(audio)", PROMPT.user]
    assert (bare.heard, bare.turns) == (None, [("user", PROMPT.user)])


def test_every_item_has_a_conversation_of_its_own_and_connects_anew(request_: Request) -> None:
    with RealtimeServer("close:1011", "", "abort", "") as server:
        model = open_model(NAME, {"base_url": server.url})

        async def run() -> list[str]:
            said = []
            for _ in range(4):
                try:
                    said.append((await model.ask(request_)).text or "")
                except ModelError as problem:
                    said.append(problem.kind)
            await model.aclose()
            return said

        assert asyncio.run(run()) == ["connection", "neutral", "connection", "neutral"]
    # What the server saw is whole when it has ended.
    assert [len(session.turns) for session in server.sessions] == [2, 2, 2, 2]
    assert [s.closed_politely for s in server.sessions if s.response][1::2] == [True, True]


@pytest.mark.parametrize("how", ["twice", "reordered", "parts", "other", ""])
def test_events_in_any_order_and_number(how: str, make_clip: Callable[..., AudioRef]) -> None:
    clip = make_clip(hz=400, peak=0.9)
    with RealtimeServer(how, character="energy") as server:
        reply = open_and_ask(NAME, Request("i", PROMPT, clip), base_url=server.url)
    assert (reply.text, reply.finish) == ("surprise", "stop")


@pytest.mark.parametrize(
    ("how", "text", "finish"),
    [
        ("incomplete:max_output_tokens", "neutral", "length"),
        ("incomplete:content_filter", "neutral", "content_filter"),
        ("incomplete:a_new_reason", "neutral", "unknown"),
        ("refusal", "I can't.", "refusal"),
        ("failed:invalid_request_error:content_policy_violation:flagged", "", "content_filter"),
        ("error:invalid_request_error:content_filter:flagged", "", "content_filter"),
    ],
)
def test_answers_that_are_answers(request_: Request, how: str, text: str, finish: str) -> None:
    reply = meet(how, request_)
    assert (reply.text, reply.finish) == (text, finish)


@pytest.mark.parametrize(
    ("how", "kind", "retryable", "paid", "words"),
    [
        ("close", "connection", True, True, "closed before the answer was complete (code 1000)"),
        ("close:1011:internal error", "connection", True, True, "(code 1011: internal error)"),
        ("close:1009:too big", "too_large", False, True, "code 1009"),
        ("close:3000:invalid_request_error.invalid_api_key", "auth", False, True, "invalid_api_key"),
        ("close:3000:invalid_request_error.session_expired", "server", True, True, "session_expired"),
        ("abort", "connection", True, True, "(without a word)"),
        ("garbage", "bad_reply", True, True, "no JSON object"),
        ("cancelled", "server", True, True, "cancelled (turn_detected)"),
        ("failed:server_error::out of order", "server", True, True, "out of order"),
        ("failed:requests:rate_limit_exceeded:slow down", "rate_limit", True, True, "slow down"),
        ("failed:insufficient_quota:insufficient_quota:pay", "quota", False, True, "pay"),
        # An error that names no event, or one before the question's end, does not keep a response from being made.
        ("error:invalid_request_error:invalid_value:no such voice", "bad_request", False, True, "no such voice"),
        ("error:invalid_request_error:session_expired:60 minutes", "server", True, True, "60 minutes"),
        ("error:server_error::oops", "server", True, True, "oops"),
        ("error:invalid_request_error:invalid_api_key:who", "auth", False, False, "who"),
        ("error:insufficient_quota:insufficient_quota:pay", "quota", False, False, "pay"),
        ("error:requests:rate_limit_exceeded:slow down", "rate_limit", True, False, "slow down"),
        ("turned_down:invalid_request_error:invalid_value:too many", "bad_request", False, False, "too many"),
        ("turned_down:server_error::oops", "server", True, True, "oops"),
        ("begun:requests:rate_limit_exceeded:slow down", "rate_limit", True, True, "slow down"),
        ("begun:invalid_request_error:invalid_value:late", "bad_request", False, True, "late"),
    ],
)  # fmt: skip
def test_answers_that_fail(
    request_: Request, how: str, kind: str, retryable: bool, paid: bool, words: str
) -> None:
    problem = fail(how, request_)
    assert (problem.kind, problem.retryable, problem.maybe_paid) == (kind, retryable, paid)
    assert words in problem.message


def test_a_question_that_was_never_whole_cannot_have_been_paid(
    make_clip: Callable[..., AudioRef],
) -> None:
    # More than the buffers of both sides hold, so that the end is seen while there is still sound to send.
    long = Request("i", PROMPT, make_clip(seconds=300))
    problem = fail("early", long)
    assert (problem.kind, problem.retryable, problem.maybe_paid) == ("connection", True, False)
    assert "(code 1011: going away)" in problem.message


def test_what_a_server_says_before_it_closes_comes_first(
    make_clip: Callable[..., AudioRef], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clip too short to commit: the server's error is the outcome, not the closed connection."""
    monkeypatch.setattr(openai_realtime_chat, "PIECE_BYTES", 1000)
    problem = fail("", Request("i", PROMPT, make_clip(seconds=0.05)))
    assert (problem.kind, problem.retryable) == ("bad_request", False)
    assert "at least 100ms" in problem.message


def test_an_error_while_sending_is_the_end_although_an_answer_follows(
    make_clip: Callable[..., AudioRef],
) -> None:
    """What is answered then is not the clip that was to be heard."""
    problem = fail("rejects", Request("i", PROMPT, make_clip(seconds=5.0)))
    # The response that was asked for is being made all the same.
    assert (problem.kind, problem.retryable, problem.maybe_paid) == ("bad_request", False, True)
    assert "the piece was not taken" in problem.message


def test_an_error_of_a_question_that_was_never_whole_is_not_paid() -> None:
    listener = Listener("m", Redactor([]), "mark", asked=False)
    with pytest.raises(ModelError) as caught:
        listener.take({"type": "error", "error": {"type": "server_error", "message": "x"}}, 0.1)
    assert caught.value.maybe_paid is False


def test_somebody_elses_response_is_not_ours() -> None:
    listener = Listener("m", Redactor([]), "mark")
    other = {"id": "r", "status": "completed", "metadata": {"asked": "another"}}
    listener.take({"type": "response.created", "response": other}, 0.1)
    error = {"type": "invalid_request_error", "message": "no", "event_id": "mark"}
    with pytest.raises(ModelError) as caught:
        listener.take({"type": "error", "error": error}, 0.1)
    assert caught.value.maybe_paid is False


def test_patience_has_an_end(request_: Request) -> None:
    problem = fail("hang", request_, timeout_s="0.5")
    assert (problem.kind, problem.retryable, problem.maybe_paid) == ("timeout", True, True)


def test_a_goodbye_without_answer_does_not_cost_the_reply(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "GOODBYE_S", 0.1)
    assert meet("mute", request_, timeout_s="20").text == "neutral"


@pytest.mark.parametrize(
    ("act", "kind", "retryable", "status"),
    [
        (error(400, "what"), "bad_request", False, 400),
        (error(401, "who", "invalid_api_key"), "auth", False, 401),
        (error(403, "no"), "auth", False, 403),
        (error(404, "model_not_found"), "missing", False, 404),
        (error(408, "slow"), "timeout", True, 408),
        (error(413, "big"), "too_large", False, 413),
        (error(429, "slow down", **{"Retry-After": "7"}), "rate_limit", True, 429),
        (error(429, "pay", "insufficient_quota"), "quota", False, 429),
        (error(500, "oops"), "server", True, 500),
        (error(503, "busy"), "server", True, 503),
        (error(529, "busy"), "server", True, 529),
        (html(), "bad_reply", True, 200),
        (EMPTY, "bad_reply", True, 200),
        (Act(status=302, headers={"Location": "ws://elsewhere.example/"}), "bad_request", False, 302),
        (RESET_BEFORE, "connection", True, None),
        (CLOSE, "connection", True, None),
        (HANG, "timeout", True, None),
    ],
)  # fmt: skip
def test_a_server_that_does_not_upgrade(
    request_: Request, act: Act, kind: str, retryable: bool, status: int | None
) -> None:
    with PlainServer(act) as server, pytest.raises(ModelError) as caught:
        open_and_ask(NAME, request_, base_url=server.url, timeout_s="0.5" if act is HANG else "20")
    problem = caught.value
    assert (problem.kind, problem.retryable, problem.status) == (kind, retryable, status)
    assert problem.maybe_paid is False
    assert (problem.retry_after_s == 7.0) == ("Retry-After" in act.headers)


def test_nobody_there(request_: Request) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(ModelError, match=r"cannot connect to http://127\.0\.0\.1") as caught:
            open_and_ask(NAME, request_, base_url=f"http://127.0.0.1:{port}/v1")
    assert (caught.value.kind, caught.value.maybe_paid) == ("connection", False)


@pytest.mark.parametrize(
    "how",
    [
        f"error:invalid_request_error:x:bad audio {BASE64} and {KEY}",
        f"failed:server_error::{KEY} {BASE64}",
        f"close:1011:{KEY}",
    ],
)
def test_nothing_leaks(request_: Request, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    problem = fail(how, request_, api_key_env="THE_KEY")
    said = problem.message + repr(problem) + repr(problem.__cause__)
    assert KEY not in said
    assert not re.search(r"[A-Za-z0-9+/]{80,}", said)


def test_the_key(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("THE_KEY", "wrong-key-000")
    with RealtimeServer(key=KEY) as server:
        with pytest.raises(ModelError, match=r"HTTP 401.*the key is read from THE_KEY") as caught:
            open_and_ask(NAME, request_, base_url=server.url, api_key_env="THE_KEY")
        assert "wrong-key-000" not in caught.value.message
        with pytest.raises(ModelError, match="no key was sent"):
            open_and_ask(NAME, request_, base_url=server.url)
        assert open_and_ask(NAME, request_, base_url=server.url, api_key_env="OPENAI_API_KEY").text
    model = open_model(NAME)
    assert KEY not in repr(model) + json.dumps(dict(model.settings))
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        open_model(NAME).preflight([request_])  # type: ignore[attr-defined]


def test_as_a_text_model() -> None:
    with RealtimeServer() as server:
        model = open_text_model(NAME, {"base_url": server.url})
        turns = [
            Message("system", "S"),
            Message("user", "a"),
            Message("assistant", "b"),
            Message("user", "c"),
        ]
        assert asyncio.run(model.complete(turns)).text == "neutral"
        [session] = server.sessions
    assert session.session["instructions"] == "S"
    assert session.turns == [("user", "a"), ("assistant", "b"), ("user", "c")]


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"earwitness\[realtime\]"):
        open_model(NAME)


def test_options_that_do_not_fit() -> None:
    with pytest.raises(UsageError, match="sets instructions"):
        open_model(NAME, {"extra": '{"instructions": "x"}'})
    assert open_model(NAME, {"max_seconds": "60"}).limits.max_seconds == 60.0


def test_settings_name_the_server(make_clip: Any) -> None:
    assert open_model(NAME, {"server": "lab", "max_output_tokens": "5"}).settings == {
        "server": "lab", "audio_first": False, "max_output_tokens": 5,
    }  # fmt: skip


def test_a_part_that_comes_twice_is_said_once() -> None:
    listener = Listener(NAME, Redactor(), "mark")
    part = {"event_id": "e1", "type": "response.output_text.delta", "delta": "fear"}
    assert listener.take(part, 0.0) is None
    assert listener.take(part, 0.0) is None
    done = {
        "event_id": "e2",
        "type": "response.done",
        "response": {"status": "completed", "output": []},
    }
    reply = listener.take(done, 0.1)
    assert reply is not None
    assert reply.text == "fear"
