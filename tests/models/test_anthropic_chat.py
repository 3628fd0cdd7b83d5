"""``anthropic/NAME`` against a stand-in that speaks the Messages API."""

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
from tests.standins.anthropic_server import AnthropicServer, message
from tests.standins.loopback import json_act

MEETING = Meeting(AnthropicServer, "anthropic/m")
meet, fail = MEETING.meet, MEETING.fail


@pytest.fixture
def words() -> Request:
    """A question without audio and without a form."""
    return Request("item-1", Prompt("Which emotion?"), None)


def complete(url: str, messages: list[Message], schema: Any = None, **options: str) -> Reply:
    model = open_text_model("anthropic/m", {"base_url": url, **options})

    async def run() -> Reply:
        try:
            return await model.complete(messages, schema)
        finally:
            await model.aclose()

    return asyncio.run(run())


def test_words_with_words() -> None:
    turns = [
        Message("system", "S"),
        Message("user", "a"),
        Message("assistant", "b"),
        Message("user", "c"),
    ]
    with AnthropicServer(say="It is raining.") as server:
        reply = complete(
            server.url, turns, temperature="0.5", effort="low", price_in="3", price_out="15"
        )
        [asked] = server.asked
    assert (reply.text, reply.finish, reply.finish_raw) == ("It is raining.", "stop", "end_turn")
    assert (reply.provider_id, reply.provider_model) == ("msg_1", "claude-stand-in-20261101")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (10, 3)
    assert reply.usage.cost_usd == pytest.approx(75e-6)
    assert asked == {
        "model": "m", "system": "S", "max_tokens": 4096, "temperature": 0.5,
        "output_config": {"effort": "low"},
        "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],
    }  # fmt: skip


@pytest.mark.parametrize("form", ["json_schema", "tool"])
def test_a_form_is_kept_to(form: str, request_: Request) -> None:
    prompt = replace(PROMPT, schema=choice_schema(EMOTIONS))
    bare = replace(request_, audio=None, prompt=prompt)
    with AnthropicServer() as server:
        reply = open_and_ask(
            "anthropic/m", bare, base_url=server.url, structured=form, effort="low"
        )
        [asked] = server.asked
    assert json.loads(reply.text or "") == {"label": EMOTIONS[-1]}
    assert reply.finish == "stop"
    assert ("tools" in asked) == (form == "tool")
    assert asked["output_config"]["effort"] == "low"


def test_no_form(request_: Request) -> None:
    with AnthropicServer() as server:
        bare = replace(request_, audio=None)
        assert open_and_ask("anthropic/m", bare, base_url=server.url).text == "neutral"
        assert "output_config" not in server.asked[0]


@pytest.mark.parametrize(
    ("body", "text", "finish"),
    [
        (message("an", "ger"), "anger", "stop"),
        (message({"type": "thinking", "thinking": "hm", "signature": "x"}, "fear"), "fear", "stop"),
        (message("half", stop="max_tokens"), "half", "length"),
        (message(stop="max_tokens"), "", "length"),
        (message(stop="model_context_window_exceeded"), "", "length"),
        (message("I can't.", stop="refusal"), "I can't.", "refusal"),
        (message(stop="refusal", stop_details={"category": "cyber"}), "", "refusal"),
        (message(), "", "stop"),
        (message("x", stop="pause_turn"), "x", "unknown"),
        (message("x", stop=None), "x", "unknown"),
    ],
)
def test_answers_that_are_answers(words: Request, body: Any, text: str, finish: str) -> None:
    reply = meet(json_act(body), words)
    assert (reply.text, reply.finish) == (text, finish)


def test_what_is_kept_besides_words(words: Request) -> None:
    usage = {
        "input_tokens": 5,
        "output_tokens": 1,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 0,
    }
    body = message(
        {"type": "thinking", "thinking": "hm"},
        "x",
        stop="refusal",
        stop_details={"category": "bio"},
        usage=usage,
    )
    reply = meet(json_act(body), words)
    assert reply.raw == {
        "reasoning": "hm",
        "stop_details": {"category": "bio"},
        "cached_tokens": 100,
    }
    assert reply.usage.input_tokens == 105


def test_an_error_inside_a_200(words: Request) -> None:
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    problem = fail(json_act(overloaded), words)
    assert (problem.kind, problem.retryable, problem.status) == ("server", True, 529)


def test_a_wrong_key(words: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", "wrong-key-000")
    with (
        AnthropicServer(key=KEY) as server,
        pytest.raises(ModelError, match="the key is read from THE_KEY") as caught,
    ):
        open_and_ask("anthropic/m", words, base_url=server.url, api_key_env="THE_KEY")
    assert caught.value.kind == "auth"
    assert "wrong-key-000" not in caught.value.message


def test_refused_before_the_first_call(
    request_: Request, words: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(UsageError, match="ANTHROPIC_API_KEY is not set"):
        open_model("anthropic/m").preflight([words])  # type: ignore[attr-defined]
    local = {"base_url": "http://127.0.0.1:1/v1"}
    with pytest.raises(UsageError, match=r"takes words only, and item item-1 has audio.*cascade/"):
        open_model("anthropic/m", local).preflight([request_])  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match="takes words only"):
        open_and_ask("anthropic/m", request_, **local)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"thinking_budget": "5000"}, "less than max_tokens"),
        ({"extra": '{"system": "x"}'}, "sets system"),
        ({"max_tokens": "0"}, "at least 1"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, str], found: str) -> None:
    with pytest.raises(UsageError, match=found):
        open_model("anthropic/m", options)


def test_settings_hold_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    model = open_model("anthropic/m")
    assert KEY not in repr(model) + json.dumps(dict(model.settings))
