"""``hume-realtime/audio`` against a real WebSocket server, and against one that speaks plain HTTP."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.errors import MissingExtraError, ModelError, UsageError
from earwitness.models.hume_realtime import Session
from earwitness.models.protocols import AudioRef, Reply, Request
from earwitness.models.redaction import Redactor
from earwitness.models.registry import open_model
from tests.models.conftest import KEY, PROMPT, open_and_ask, without_audio
from tests.models.faults import BASE64
from tests.standins.hume_realtime_server import HumeRealtimeServer
from tests.standins.listening import listen

NAME = "hume-realtime/audio"
FAST = {"speed": "1000"}


def meet(how: str, request: Request, **options: str) -> Reply:
    with HumeRealtimeServer(how) as server:
        return open_and_ask(NAME, request, base_url=server.url, **{**FAST, **options})


def fail(how: str, request: Request, **options: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        meet(how, request, **options)
    return caught.value


def test_a_clip_and_what_is_measured(make_clip: Callable[..., AudioRef]) -> None:
    clip = make_clip("secret-name.wav", seconds=7.25, rate=48_000, channels=2, hz=400, peak=0.9)
    with HumeRealtimeServer() as server:
        reply = open_and_ask(NAME, Request("secret", PROMPT, clip), base_url=server.url, **FAST)
        [stream] = server.streams
    # 0.2 at three seconds, 0.4 at six, 0.6 at the end.
    assert reply.scores == pytest.approx({"joy": 0.4})
    assert (reply.text, reply.provider_id) == (None, "session-1")
    assert [each["end"] for each in reply.raw["windows"]] == [3000.0, 6000.0, 7250.0]
    assert reply.raw["voice_attributes"][0] == [{"name": "husky", "probability": 0.9}]
    assert reply.raw["stimulus"]["rate_hz"] == 16_000
    assert "48000 to 16000 Hz" in reply.raw["stimulus"]["note"]
    assert "one channel" in reply.raw["stimulus"]["note"]
    assert stream.frames == [3200] * 72 + [1600]
    assert stream.heard is not None
    assert (stream.heard.seconds, stream.heard.rate) == (7.25, 16_000)
    assert stream.closed_politely
    assert "x-hume-api-key" not in stream.headers


def test_what_is_heard_is_the_clip(make_clip: Callable[..., AudioRef]) -> None:
    clip = make_clip(seconds=1.0, rate=16_000, hz=300, peak=0.5)
    with HumeRealtimeServer() as server:
        open_and_ask(NAME, Request("i", PROMPT, clip), base_url=server.url, **FAST)
        [stream] = server.streams
    assert stream.heard == listen(clip.path.read_bytes())


@pytest.mark.parametrize("how", ["", "twice", "reordered", "new"])
def test_events_in_any_order_and_number(how: str, make_clip: Callable[..., AudioRef]) -> None:
    reply = meet(how, Request("i", PROMPT, make_clip(seconds=4.0)))
    assert reply.scores == pytest.approx({"joy": 0.3})
    assert [each["end"] for each in reply.raw["windows"]] == [3000.0, 4000.0]


def test_no_speech_is_an_answer(request_: Request) -> None:
    assert meet("mute", request_).scores == {}


def test_another_interval(make_clip: Callable[..., AudioRef]) -> None:
    reply = meet("", Request("i", PROMPT, make_clip(seconds=6.0)), measurement_timer_ms="4000")
    assert [each["end"] for each in reply.raw["windows"]] == [4000.0, 6000.0]
    with pytest.raises(UsageError, match="at least 3000"):
        open_model(NAME, {"measurement_timer_ms": "100"})


def test_it_is_sent_no_faster_than_it_plays(make_clip: Callable[..., AudioRef]) -> None:
    reply = meet("", Request("i", PROMPT, make_clip(seconds=0.4)), speed="1")
    assert reply.latency_s >= 0.4


@pytest.mark.parametrize(
    ("how", "kind", "retryable", "words"),
    [
        ("error:rate_limited", "rate_limit", True, "reports rate_limited: no"),
        ("error:invalid_audio_frame", "bad_request", False, "reports invalid_audio_frame"),
        ("fatal:internal_error", "server", True, "reports internal_error"),
        ("fatal:config_invalid", "bad_request", False, "reports config_invalid"),
        ("fatal:message_too_large", "too_large", False, "reports message_too_large"),
        ("fatal:something_new", "server", True, "reports something_new"),
        ("drops", "bad_reply", True, "took 9 of the clip's 10 frames"),
        ("lost", "connection", True, "closed before the answer was complete"),
        ("totals", "bad_reply", True, "closed without its totals"),
        ("garbage", "bad_reply", True, "no JSON object"),
        ("odd", "bad_reply", True, "the score of 'joy' is 'much'"),
        ("ended:server_shutdown", "connection", True, r"ended the session \(server_shutdown\)"),
        ("ended:idle_timeout", "timeout", True, r"ended the session \(idle_timeout\)"),
        ("ended:error", "server", True, r"ended the session \(error\)"),
        ("ended:client_request", "bad_reply", True, "took 3 of the clip's 10 frames"),
        ("close:1011:internal error", "connection", True, r"\(code 1011: internal error\)"),
        ("close:1009:too big", "too_large", False, "code 1009"),
        ("abort", "connection", True, "without a word"),
    ],
)  # fmt: skip
def test_sessions_that_fail(
    request_: Request, how: str, kind: str, retryable: bool, words: str
) -> None:
    # Some of these come while the clip is still being sent.
    problem = fail(how, request_, speed="20")
    assert (problem.kind, problem.retryable, problem.maybe_paid) == (kind, retryable, True)
    assert re.search(words, problem.message), problem.message


WORDS = st.sampled_from(
    [
        "session.created", "measurement.result", "session.closed", "error", "utterance.end", "client_request",
        "rate_limited", "idle_timeout", "joy",
    ]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats(allow_nan=True) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
NAMES = (
    "type", "code", "message", "reason", "measurement_id", "expressions", "voice_attributes", "received",
    "produced", "session_id", "audio_start_ms",
)  # fmt: skip
EVENTS = st.fixed_dictionaries({"type": WORDS | VALUES}, optional=dict.fromkeys(NAMES[1:], VALUES))


@given(st.lists(EVENTS, max_size=5), st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_whatever_is_said_is_a_measurement_or_a_named_failure(
    events: list[dict[str, Any]], frames: int
) -> None:
    model = open_model(NAME, {"base_url": "http://127.0.0.1:1/v1"})
    session = Session(NAME, Redactor(), frames, frames)
    try:
        for event in events:
            if session.take(event):
                break
        reply = model._reply(session)  # type: ignore[attr-defined]
    except ModelError:
        return
    assert all(math.isfinite(score) for score in reply.scores.values())
    json.dumps(reply.raw)


def test_patience_has_an_end(request_: Request) -> None:
    problem = fail("hang", request_, timeout_s="0.3")
    assert (problem.kind, problem.retryable, problem.maybe_paid) == ("timeout", True, True)


def test_a_broken_session_costs_one_attempt(request_: Request) -> None:
    with HumeRealtimeServer("abort", "error:rate_limited") as server:
        model = open_model(NAME, {"base_url": server.url, **FAST})

        async def run() -> list[Any]:
            said: list[Any] = []
            for _ in range(3):
                try:
                    said.append(dict((await model.ask(request_)).scores or {}))
                except ModelError as problem:
                    said.append(problem.kind)
            return said

        assert asyncio.run(run()) == ["connection", "rate_limit", {"joy": 0.2}]


def test_nothing_leaks(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    for how in (f"fatal:internal_error:{KEY} {BASE64}", f"ended:{KEY}", f"close:1011:{KEY}"):
        problem = fail(how, request_, api_key_env="THE_KEY")
        said = problem.message + repr(problem) + repr(problem.__cause__)
        assert KEY not in said
        assert not re.search(r"[A-Za-z0-9+/]{80,}", said)


def test_the_key(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUME_API_KEY", KEY)
    monkeypatch.setenv("THE_KEY", "wrong-key-000")
    with HumeRealtimeServer(key=KEY) as server:
        given = {"base_url": server.url, **FAST}
        with pytest.raises(ModelError, match=r"HTTP 401.*the key is read from THE_KEY") as caught:
            open_and_ask(NAME, request_, **given, api_key_env="THE_KEY")
        assert "wrong-key-000" not in caught.value.message
        assert (caught.value.kind, caught.value.maybe_paid) == ("auth", False)
        # Hume's own key goes to Hume's own host.
        with pytest.raises(ModelError, match="no key was sent"):
            open_and_ask(NAME, request_, **given)
        assert open_and_ask(NAME, request_, **given, api_key_env="HUME_API_KEY").scores
    model = open_model(NAME)
    assert KEY not in repr(model) + repr(vars(model)["_caller"]) + json.dumps(dict(model.settings))
    monkeypatch.delenv("HUME_API_KEY")
    with pytest.raises(UsageError, match="HUME_API_KEY is not set"):
        open_model(NAME).preflight([request_])  # type: ignore[attr-defined]


def test_what_cannot_be_opened_or_asked(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="there is no such stream"):
        open_model("hume-realtime/video")
    with pytest.raises(ModelError, match="takes audio, and this item has none"):
        open_and_ask(NAME, without_audio(request_))
    assert open_model(NAME, {"max_seconds": "60"}).limits.max_seconds == 60.0
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"earwitness\[realtime\]"):
        open_model(NAME)


def test_settings_are_what_may_change_an_answer() -> None:
    given = {"server": "lab", "speed": "2", "timeout_s": "5", "measurement_timer_ms": "5000"}
    model = open_model(NAME, given)
    assert model.settings == {"server": "lab", "measurement_timer_ms": 5000}
    assert getattr(model, "label_map") == "vendor-default"  # noqa: B009
