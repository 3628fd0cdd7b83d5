"""``mistral/NAME`` against a stand-in that speaks Mistral's dialect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from earwitness.errors import ModelError, UsageError
from earwitness.models.protocols import AudioRef, Message, Request
from earwitness.models.registry import open_model, open_text_model
from tests.models.conftest import KEY, PROMPT, open_and_ask
from tests.models.faults import Meeting
from tests.standins.loopback import json_act
from tests.standins.mistral_server import MistralServer
from tests.standins.openai_server import completion

MEETING = Meeting(MistralServer, "mistral/m")


def test_a_question_with_its_audio(make_clip: Callable[..., AudioRef]) -> None:
    request = Request("i", PROMPT, make_clip(hz=400, peak=0.9))
    with MistralServer(character="energy") as server:
        reply = open_and_ask(
            "mistral/voxtral-small-latest", request, base_url=server.url, temperature="0",
            random_seed="3", max_tokens="20", price_in="1", price_out="1",
        )  # fmt: skip
        [asked] = server.asked
    assert (reply.text, reply.finish) == ("surprise", "stop")
    assert asked.audio is not None
    assert {name: asked.body[name] for name in ("model", "random_seed", "max_tokens")} == {
        "model": "voxtral-small-latest", "random_seed": 3, "max_tokens": 20,
    }  # fmt: skip
    assert asked.body["messages"][0]["content"][0]["type"] == "input_audio"
    assert reply.raw["stimulus"]["format"] == "wav"
    assert reply.usage.cost_usd is not None


def test_words_first_and_a_form(request_: Request) -> None:
    with MistralServer() as server:
        open_and_ask(
            "mistral/m", request_, base_url=server.url, audio_first="no", structured="json_schema"
        )
        [asked] = server.asked
    assert asked.body["messages"][0]["content"][0]["type"] == "text"
    assert asked.body["response_format"]["json_schema"]["schema"]["required"] == ["label"]


@pytest.mark.parametrize(
    ("body", "text", "finish"),
    [
        (completion("anger"), "anger", "stop"),
        (completion("ang", "length"), "ang", "length"),
        (completion("", "model_length"), "", "length"),
        (completion([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "fear"}]), "fear", "stop"),
    ],
)  # fmt: skip
def test_answers_that_are_answers(request_: Request, body: Any, text: str, finish: str) -> None:
    reply = MEETING.meet(json_act(body), request_)
    assert (reply.text, reply.finish) == (text, finish)


def test_an_answer_broken_off(request_: Request) -> None:
    assert MEETING.fail(json_act(completion("x", "error")), request_).kind == "server"


def test_the_key(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    with pytest.raises(UsageError, match="MISTRAL_API_KEY is not set"):
        open_model("mistral/m").preflight([request_])  # type: ignore[attr-defined]
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)
    with MistralServer(key=KEY) as server:
        with pytest.raises(ModelError, match="no key was sent"):
            open_and_ask("mistral/m", request_, base_url=server.url)
        said = open_and_ask(
            "mistral/m", request_, base_url=server.url, api_key_env="MISTRAL_API_KEY"
        )
    assert said.text == "neutral"


def test_what_openai_has_and_mistral_has_not() -> None:
    with pytest.raises(UsageError, match=r"unknown option 'seed'.*Did you mean"):
        open_model("mistral/m", {"seed": "1"})
    with pytest.raises(UsageError, match="sets model"):
        open_model("mistral/m", {"extra": '{"model": "x"}'})


def test_as_a_text_model() -> None:
    with MistralServer() as server:
        model = open_text_model(
            "mistral/mistral-small-latest", {"base_url": server.url, "random_seed": "1"}
        )

        async def run() -> str | None:
            try:
                return (await model.complete([Message("user", "a")])).text
            finally:
                await model.aclose()

        assert asyncio.run(run()) == "neutral"
