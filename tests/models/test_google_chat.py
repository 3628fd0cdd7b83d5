"""``google/NAME`` against a stand-in that speaks generateContent and the Files API."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from earwitness.errors import ModelError, UsageError
from earwitness.models import google_files
from earwitness.models.google_schema import response_schema
from earwitness.models.protocols import AudioRef, Message, Prompt, Request
from earwitness.models.registry import open_model, open_text_model
from tests.models.conftest import KEY, PROMPT, open_and_ask, without_audio
from tests.models.faults import Meeting
from tests.standins.google_server import (
    GoogleServer,
    generated,
    google_error,
    quota_failure,
    retry_info,
)
from tests.standins.loopback import RESET_BEFORE, Act, html, json_act

MEETING = Meeting(GoogleServer, "google/m")
meet, fail = MEETING.meet, MEETING.fail


def test_a_question_with_its_audio(make_clip: Callable[..., AudioRef]) -> None:
    request = Request("secret-name", replace(PROMPT, system="Listen."), make_clip(hz=400, peak=0.9))
    with GoogleServer(character="energy") as server:
        reply = open_and_ask(
            "google/m", request, base_url=server.url, temperature="0", max_output_tokens="64",
            thinking_budget="0", safety="BLOCK_NONE", price_in="1", price_out="2",
        )  # fmt: skip
        [asked] = server.asked
        [call] = server.calls
    assert (reply.text, reply.finish, reply.provider_model) == (
        "surprise",
        "stop",
        "stand-in-2026-11",
    )
    assert asked.inline
    assert asked.audio is not None
    assert asked.audio.seconds == 1.0
    assert (asked.system, asked.prompt) == ("Listen.", PROMPT.user)
    assert asked.body["generationConfig"] == {
        "temperature": 0.0, "maxOutputTokens": 64, "thinkingConfig": {"thinkingBudget": 0},
    }  # fmt: skip
    assert {each["threshold"] for each in asked.body["safetySettings"]} == {"BLOCK_NONE"}
    assert reply.usage.output_tokens == 7
    assert (reply.raw["audio_tokens"], reply.raw["reasoning_tokens"]) == (32, 5)
    assert reply.usage.cost_usd == pytest.approx((reply.usage.input_tokens or 0) * 1e-6 + 14e-6)
    assert reply.raw["stimulus"]["format"] == "wav"
    assert b"secret-name" not in call.body
    assert call.path == "/v1beta/models/m:generateContent"


def test_words_without_audio_and_words_after_it(request_: Request) -> None:
    with GoogleServer() as server:
        open_and_ask("google/models/m", without_audio(request_), base_url=server.url)
        open_and_ask("google/m", request_, base_url=server.url, audio_first="yes")
        bare, first = server.asked
    assert (bare.audio, bare.model) == (None, "m")
    assert "inlineData" in first.body["contents"][0]["parts"][0]


def test_a_large_clip_is_uploaded_named_and_deleted(
    make_clip: Callable[..., AudioRef], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(google_files, "LOOK_EVERY_S", 0.01)
    monkeypatch.setenv("THE_KEY", KEY)
    clip = make_clip("the-name-of-a-speaker.wav", seconds=2.0)
    with GoogleServer(looks=2, key=KEY, character="energy") as server:
        reply = open_and_ask(
            "google/m", Request("i", PROMPT, clip), base_url=server.url, inline_bytes="1000",
            api_key_env="THE_KEY",
        )  # fmt: skip
        [asked] = server.asked
        put = next(call for call in server.calls if call.path.startswith("/put/"))
    assert (reply.text, asked.inline) == ("neutral", False)
    assert asked.audio is not None
    assert asked.audio.seconds == 2.0
    assert put.body == clip.path.read_bytes()
    assert "x-goog-api-key" not in put.headers
    assert server.files == {}
    assert (reply.raw["stimulus"]["uploaded"], reply.raw["stimulus"]["deleted"]) == (True, True)
    assert [call.method for call in server.calls] == [
        "POST",
        "POST",
        "GET",
        "GET",
        "POST",
        "DELETE",
    ]
    assert not any(b"the-name" in call.body for call in server.calls)


def test_an_uploaded_clip_may_stay(request_: Request) -> None:
    with GoogleServer() as server:
        reply = open_and_ask(
            "google/m", request_, base_url=server.url, inline_bytes="0", keep_files="yes"
        )
        assert len(server.files) == 1
    assert reply.raw["stimulus"]["deleted"] is False


@pytest.mark.parametrize(
    ("act", "kind", "words"),
    [
        (google_error(503, "upload overloaded"), "server", "upload overloaded"),
        (RESET_BEFORE, "connection", "connection broke"),
        (json_act({}), "bad_reply", "names no place to upload to"),
        (html(), "bad_reply", "names no place"),
    ],
)
def test_an_upload_that_fails_costs_nothing(
    request_: Request, act: Act, kind: str, words: str
) -> None:
    problem = fail(act, request_, inline_bytes="0")
    assert (problem.kind, problem.retryable, problem.maybe_paid) == (kind, True, False)
    assert words in problem.message


def test_a_file_the_service_cannot_read_or_is_slow_with(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        GoogleServer(file_fails=True) as server,
        pytest.raises(ModelError, match="could not read the uploaded") as caught,
    ):
        open_and_ask("google/m", request_, base_url=server.url, inline_bytes="0")
    assert (caught.value.kind, caught.value.retryable) == ("bad_request", False)
    monkeypatch.setattr(google_files, "LOOK_EVERY_S", 0.05)
    with (
        GoogleServer(looks=1000) as server,
        pytest.raises(ModelError, match="not ready after") as caught,
    ):
        open_and_ask("google/m", request_, base_url=server.url, inline_bytes="0", timeout_s="0.3")
    assert (caught.value.kind, caught.value.maybe_paid) == ("timeout", False)


def test_a_look_at_a_file_that_fails_in_passing_is_followed_by_another(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(google_files, "LOOK_EVERY_S", 0.01)
    faults = [google_error(503), google_error(429, **{"Retry-After": "1"})]

    def choose(call: Any) -> Act | None:
        return faults.pop() if faults and call.method == "GET" else None

    started = time.monotonic()
    with GoogleServer(looks=2, choose=choose) as server:
        open_and_ask("google/m", request_, base_url=server.url, inline_bytes="0")
        uploads = sum(call.path.startswith("/put/") for call in server.calls)
    assert (uploads, faults) == (1, [])
    assert time.monotonic() - started >= 1


def test_a_failed_question_leaves_no_file_behind(request_: Request) -> None:
    def choose(call: Any) -> Act | None:
        return google_error(500) if call.path.endswith(":generateContent") else None

    with GoogleServer(choose=choose) as server:
        with pytest.raises(ModelError, match="HTTP 500"):
            open_and_ask("google/m", request_, base_url=server.url, inline_bytes="0")
        assert server.files == {}


@pytest.mark.parametrize(
    ("body", "text", "finish", "raw"),
    [
        (generated("anger"), "anger", "stop", "STOP"),
        (generated("fe", "ar"), "fear", "stop", "STOP"),
        (generated({"text": "hm", "thought": True}, "fear"), "fear", "stop", "STOP"),
        (generated("The spea", finish="MAX_TOKENS"), "The spea", "length", "MAX_TOKENS"),
        (generated(finish="MAX_TOKENS"), "", "length", "MAX_TOKENS"),
        (generated(finish="STOP"), "", "stop", "STOP"),
        (generated(finish="SAFETY"), "", "content_filter", "SAFETY"),
        (generated("half", finish="RECITATION"), "half", "content_filter", "RECITATION"),
        (generated(finish="PROHIBITED_CONTENT"), "", "content_filter", "PROHIBITED_CONTENT"),
        (generated(finish="SPII"), "", "content_filter", "SPII"),
        (generated("x", finish="OTHER"), "x", "unknown", "OTHER"),
        (generated("x", finish="A_NEW_REASON"), "x", "unknown", "A_NEW_REASON"),
        (generated("x", finish=None), "x", "unknown", None),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "", "content_filter", "SAFETY"),
        ({"promptFeedback": {"blockReason": "OTHER"}, "candidates": []}, "", "content_filter", "OTHER"),
    ],
)  # fmt: skip
def test_answers_that_are_answers(
    request_: Request, body: dict[str, Any], text: str, finish: str, raw: str | None
) -> None:
    reply = meet(json_act(body), request_)
    assert (reply.text, reply.finish, reply.finish_raw) == (text, finish, raw)


def test_a_block_says_whether_the_question_was_meant(request_: Request) -> None:
    ratings = [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "HIGH", "blocked": True}]
    asked = meet(
        json_act({"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": ratings}}), request_
    )
    assert asked.raw["prompt_blocked"] is True
    assert asked.raw["safety_ratings"] == ratings
    answered = meet(json_act(generated(finish="SAFETY", safetyRatings=ratings)), request_)
    assert "prompt_blocked" not in answered.raw
    assert answered.raw["safety_ratings"] == ratings


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"candidates": []}, "no candidates and names no block"),
        ({"usageMetadata": {}}, "no candidates and names no block"),
        ({"promptFeedback": {}}, "no candidates and names no block"),
        ({"candidates": [{"index": 0}]}, "without content or finish reason"),
    ],
)
def test_missing_candidates_are_no_block(
    request_: Request, body: dict[str, Any], words: str
) -> None:
    problem = fail(json_act(body), request_)
    assert (problem.kind, problem.retryable) == ("bad_reply", True)
    assert words in problem.message


def test_waits_of_its_own_kind(request_: Request) -> None:
    assert fail(google_error(429, details=[retry_info("34.5s")]), request_).retry_after_s == 34.5
    spent = [quota_failure("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), retry_info("3s")]
    problem = fail(google_error(429, details=spent), request_)
    assert (problem.kind, problem.retryable, problem.retry_after_s) == ("quota", False, None)


def test_a_wrong_key_comes_as_400(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", "wrong-key-000")
    with (
        GoogleServer(key=KEY) as server,
        pytest.raises(ModelError, match="the key is read from THE_KEY") as caught,
    ):
        open_and_ask("google/m", request_, base_url=server.url, api_key_env="THE_KEY")
    assert (caught.value.kind, caught.value.status) == ("auth", 401)
    assert "wrong-key-000" not in caught.value.message


def test_without_a_key_nothing_is_asked(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    model = open_model("google/gemini-3.5-flash")
    with pytest.raises(UsageError, match="the environment variable GEMINI_API_KEY is not set"):
        model.preflight([request_])  # type: ignore[attr-defined]


def test_the_key_does_not_go_to_other_hosts(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    with GoogleServer() as server:
        open_and_ask("google/m", request_, base_url=server.url)
        assert "x-goog-api-key" not in server.calls[0].headers


def test_forms(request_: Request) -> None:
    for form, field in (
        ("response_schema", "responseSchema"),
        ("json_schema", "responseJsonSchema"),
    ):
        with GoogleServer() as server:
            open_and_ask("google/m", request_, base_url=server.url, structured=form)
            config = server.asked[0].body["generationConfig"]
        assert config["responseMimeType"] == "application/json"
        assert list(config[field]["properties"]) == ["label"]
    free = Request("i", Prompt("Describe."), request_.audio)
    with pytest.raises(UsageError, match="neither schema nor choices"):
        open_model(
            "google/m", {"structured": "json_schema", "base_url": "http://127.0.0.1:1/v1"}
        ).preflight([free])  # type: ignore[attr-defined]


def test_a_schema_in_googles_words() -> None:
    assert response_schema(
        {
            "type": "object",
            "properties": {
                "a": {"type": "array", "items": {"type": "integer"}},
                "b": {"const": "x"},
            },
            "required": ["a"],
            "additionalProperties": False,
        }
    ) == {
        "type": "OBJECT",
        "required": ["a"],
        "properties": {
            "a": {"type": "ARRAY", "items": {"type": "INTEGER"}},
            "b": {"type": "STRING", "enum": ["x"]},
        },
        "propertyOrdering": ["a", "b"],
    }
    with pytest.raises(ValueError, match=re.escape("$ref")):
        response_schema({"$ref": "#/$defs/a"})


def test_as_a_text_model() -> None:
    with GoogleServer() as server:
        model = open_text_model(
            "google/m",
            {
                "base_url": server.url,
                "extra": '{"generationConfig": {"topK": 3}}',
                "temperature": "1",
            },
        )

        async def run() -> str | None:
            try:
                reply = await model.complete(
                    [
                        Message("system", "S"),
                        Message("user", "a"),
                        Message("assistant", "b"),
                        Message("user", "c"),
                    ]
                )
            finally:
                await model.aclose()
            return reply.text

        assert asyncio.run(run()) == "neutral"
        [asked] = server.asked
    assert asked.system == "S"
    assert [turn["role"] for turn in asked.body["contents"]] == ["user", "model", "user"]
    assert asked.body["generationConfig"] == {"temperature": 1.0, "topK": 3}


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("google/a:b", {}, "is no name of a model"),
        ("google/m", {"extra": '{"contents": []}'}, "sets contents"),
        ("google/m", {"base_url": "http://x/v1?key=1"}, "has a query"),
        ("google/m", {"structured": "yes"}, "one of none, response_schema, json_schema"),
    ],
)
def test_names_and_options_that_do_not_fit(name: str, options: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        open_model(name, options)
