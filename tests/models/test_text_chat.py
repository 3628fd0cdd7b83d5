"""Text models by name, against a local server that speaks the protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from earwitness.errors import ModelError, UsageError
from earwitness.models.protocols import Message, Prompt, Reply, Request, TextModel
from earwitness.models.registry import DeclaredTextModel, open_text_model
from tests.standins.loopback import Call, error
from tests.standins.openai_server import OpenAIServer

SCHEMA = {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]}
REQUEST = Request("s1", Prompt("Say it.", "Be brief.", schema=SCHEMA), idempotency_key="k1")


def done(model: DeclaredTextModel, *calls: Coroutine[Any, Any, Reply]) -> list[Reply]:
    async def run() -> list[Reply]:
        try:
            return [await call for call in calls]
        finally:
            await model.aclose()

    return asyncio.run(run())


def test_a_prompt_goes_out_with_its_schema_and_key() -> None:
    with OpenAIServer() as server:
        model = open_text_model(
            "openai/m", {"base_url": server.url, "family": " Qwen ", "temperature": "0.9"}
        )
        assert isinstance(model, TextModel)
        assert model.family == "qwen"
        assert done(model, model.ask(REQUEST))[0].text == "neutral"
    call = server.calls[0]
    body = call.json()
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert body["temperature"] == 0.9
    assert call.headers["idempotency-key"] == "k1"
    assert b"qwen" not in call.body.lower()


def test_the_family_is_not_a_setting_and_nothing_of_audio_is() -> None:
    declared = open_text_model("openai/m", {"family": "a", "server": "s"})
    undeclared = open_text_model("openai/m", {"server": "s"})
    assert undeclared.family is None
    assert declared.settings == undeclared.settings == {"server": "s", "structured": "auto"}


@pytest.mark.parametrize("knows", ["json_object", "none"])
def test_a_service_that_cannot_force_a_form_is_asked_for_less(knows: str) -> None:
    def choose(call: Call) -> Any:
        form = json.loads(call.body).get("response_format", {}).get("type")
        if form == "json_schema" or (form == "json_object" and knows == "none"):
            return error(400, f"response_format {form} is not supported")
        return None

    with OpenAIServer(choose=choose) as server:
        model = open_text_model("openai/m", {"base_url": server.url})
        replies = done(model, model.ask(REQUEST), model.ask(REQUEST))
    assert [reply.text for reply in replies] == ["neutral", "neutral"]
    # Found out once, and not tried again.
    assert len(server.calls) == (3 if knows == "json_object" else 4)


def test_a_form_asked_for_by_name_is_never_given_up() -> None:
    with OpenAIServer(error(400, "response_format is not supported")) as server:
        model = open_text_model("openai/m", {"base_url": server.url, "structured": "json_schema"})
        with pytest.raises(ModelError, match="response_format is not supported"):
            done(model, model.ask(REQUEST))
    assert len(server.calls) == 1


def test_another_400_is_an_error_at_once() -> None:
    with OpenAIServer(error(400, "this model is asleep")) as server:
        model = open_text_model("openai/m", {"base_url": server.url})
        with pytest.raises(ModelError, match="this model is asleep"):
            done(model, model.ask(REQUEST))
    assert len(server.calls) == 1


def test_messages_without_a_schema() -> None:
    with OpenAIServer() as server:
        model = open_text_model("openai/m", {"base_url": server.url})
        done(model, model.complete([Message("user", "Hello?")]))
    assert "response_format" not in server.calls[0].json()


def test_options_of_audio_are_refused() -> None:
    with pytest.raises(UsageError, match="option audio_form, which is about audio"):
        open_text_model("openai/m", {"audio_form": "audio_url"})


def test_an_adapter_without_text_models_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"'baseline' has no text models; wanted one of anthropic/..., google/"
    ):
        open_text_model("baseline/uniform")


def test_an_entry_of_a_models_file(tmp_path: Path) -> None:
    file = tmp_path / "models.yaml"
    file.write_text(
        "poet: {model: openai/m, options: {server: here, family: poets, temperature: 1}}"
    )
    model = open_text_model("poet", {"temperature": "0.5"}, models_file=file)
    assert (model.name, model.family) == ("poet", "poets")
    assert model.settings["model"] == "openai/m"
    assert model.settings["temperature"] == 0.5


def test_without_a_key_nothing_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        open_text_model("openai/gpt").preflight()
