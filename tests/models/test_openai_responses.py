"""``openai-responses/NAME`` against a stand-in that speaks the Responses API."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from earwitness.errors import ModelError, UsageError
from earwitness.models.chat_parts import choice_schema
from earwitness.models.protocols import Message, Prompt, Reply, Request
from earwitness.models.registry import open_model, open_text_model
from tests.models.conftest import EMOTIONS, KEY, PROMPT, open_and_ask
from tests.models.faults import Meeting
from tests.standins.loopback import error, json_act
from tests.standins.responses_server import ResponsesServer, response

MEETING = Meeting(ResponsesServer, "openai-responses/m")
meet, fail = MEETING.meet, MEETING.fail


@pytest.fixture
def words() -> Request:
    """A question without audio."""
    return Request("item-1", Prompt("Which emotion?"), None, idempotency_key="the-key-of-the-reply")


def test_words_with_words() -> None:
    turns = [
        Message("system", "S"),
        Message("user", "a"),
        Message("assistant", "b"),
        Message("user", "c"),
    ]
    with ResponsesServer() as server:
        options = {
            "base_url": server.url,
            "reasoning_effort": "low",
            "verbosity": "low",
            "max_output_tokens": "99",
        }
        model = open_text_model(
            "openai-responses/m", {**options, "price_in": "1", "price_out": "2"}
        )

        async def run() -> Reply:
            try:
                return await model.complete(turns)
            finally:
                await model.aclose()

        reply = asyncio.run(run())
        [asked] = server.asked
    assert (reply.text, reply.finish, reply.finish_raw) == ("neutral", "stop", "completed")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (10, 6)
    assert reply.usage.cost_usd == pytest.approx(22e-6)
    assert reply.raw == {"cached_tokens": 0, "reasoning_tokens": 4}
    assert asked == {
        "model": "m", "store": False, "instructions": "S", "max_output_tokens": 99,
        "reasoning": {"effort": "low"}, "text": {"verbosity": "low"},
        "input": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],
    }  # fmt: skip


def test_forms(words: Request) -> None:
    formed = replace(words, prompt=replace(PROMPT, schema=choice_schema(EMOTIONS)))
    with ResponsesServer() as server:
        reply = open_and_ask("openai-responses/m", formed, base_url=server.url)
        open_and_ask("openai-responses/m", formed, base_url=server.url, structured="json_object")
        open_and_ask("openai-responses/m", formed, base_url=server.url, structured="none")
        first, second, third = server.asked
        assert server.calls[0].headers["idempotency-key"] == "the-key-of-the-reply"
    assert json.loads(reply.text or "") == {"label": EMOTIONS[-1]}
    assert first["text"]["format"]["strict"] is True
    assert second["text"]["format"] == {"type": "json_object"}
    assert "text" not in third


@pytest.mark.parametrize(
    ("body", "text", "finish"),
    [
        (response("an", "ger"), "anger", "stop"),
        (response(), "", "stop"),
        (response("half", status="incomplete", reason="max_output_tokens"), "half", "length"),
        (response(status="incomplete", reason="max_output_tokens"), "", "length"),
        (response(status="incomplete", reason="content_filter"), "", "content_filter"),
        (response(status="incomplete", reason="new"), "", "unknown"),
        (response({"type": "refusal", "refusal": "No."}), "No.", "refusal"),
        (response(status="failed", error={"code": "content_policy_violation", "message": "flagged"}), "", "content_filter"),
    ],
)  # fmt: skip
def test_answers_that_are_answers(words: Request, body: Any, text: str, finish: str) -> None:
    reply = meet(json_act(body), words)
    assert (reply.text, reply.finish) == (text, finish)


def test_a_block_as_an_error(words: Request) -> None:
    assert meet(error(400, "flagged", "content_policy_violation"), words).finish == "content_filter"


def test_reasoning_is_kept(words: Request) -> None:
    body = response("fear")
    body["output"].insert(
        0, {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    )
    assert meet(json_act(body), words).raw["reasoning"] == "hm"


@pytest.mark.parametrize(
    ("body", "kind", "retryable"),
    [
        (response(status="failed", error={"code": "server_error", "message": "oops"}), "server", True),
        (response(status="failed", error={"code": "rate_limit_exceeded", "message": "slow"}), "rate_limit", True),
        (response(status="in_progress"), "server", True),
        (response(status="cancelled"), "server", True),
        (response() | {"output": None}, "bad_reply", True),
    ],
)  # fmt: skip
def test_failures_inside_a_200(words: Request, body: Any, kind: str, retryable: bool) -> None:
    problem = fail(json_act(body), words)
    assert (problem.kind, problem.retryable) == (kind, retryable)


def test_refused_before_the_first_call(
    request_: Request, words: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        open_model("openai-responses/m").preflight([words])  # type: ignore[attr-defined]
    local = {"base_url": "http://127.0.0.1:1/v1"}
    with pytest.raises(UsageError, match="takes words only, and item item-1 has audio"):
        open_model("openai-responses/m", local).preflight([request_])  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match="takes words only"):
        open_and_ask("openai-responses/m", request_, **local)
    with pytest.raises(UsageError, match="sets input"):
        open_model("openai-responses/m", {"extra": '{"input": "x"}'})


def test_the_key(words: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    with ResponsesServer(key=KEY) as server:
        assert open_and_ask(
            "openai-responses/m", words, base_url=server.url, api_key_env="THE_KEY"
        ).text
        with pytest.raises(ModelError, match="no key was sent"):
            open_and_ask("openai-responses/m", words, base_url=server.url)
