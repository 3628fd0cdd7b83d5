"""Chat services in their own protocols that say what they are told to: writers and judges for tests.

The stand-ins check what they are sent as strictly as ever; only the words of the answer are given.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.standins.anthropic_server import AnthropicServer, anthropic_error, message
from tests.standins.google_server import GoogleServer, generated, google_error
from tests.standins.loopback import Act, Call, LoopbackServer, error, json_act
from tests.standins.mistral_server import MistralServer, mistral_error
from tests.standins.openai_server import OpenAIServer, completion
from tests.standins.responses_server import ResponsesServer, response

Say = Callable[[str, str], str]
"""From the system's part and the user's to what is answered."""


def form_of(body: dict[str, Any]) -> str:
    """What form of answer a request asks for, in the service's own word; empty for none."""
    if "tools" in body:
        return "tool"
    config = body.get("generationConfig", {})
    if "responseJsonSchema" in config or "responseSchema" in config:
        return "responseJsonSchema" if "responseJsonSchema" in config else "responseSchema"
    form = (
        body.get("response_format")
        or body.get("text", {}).get("format")
        or body.get("output_config", {}).get("format")
        or {}
    )
    return str(form.get("type", ""))


class _Speaking(LoopbackServer):
    """Answers in the words of ``tell``; ``knows``: forms it can force, others are refused with its own 400."""

    tell: Say
    knows: frozenset[str] | None
    forms: list[str]
    tells_usage = False

    def respond(self, call: Call) -> Act:
        act = super().respond(call)
        if act.status != 200:
            return act
        body = call.json()
        form = form_of(body)
        self.forms.append(form)
        if form and self.knows is not None and form not in self.knows:
            return self.refusal(form)
        dressed = self.dressed(self.tell(*self.words(body)), form)
        if self.tells_usage:
            dressed["usage"] = json.loads(act.body)["usage"]
        return json_act(dressed)

    def words(self, body: dict[str, Any]) -> tuple[str, str]:
        turns = {turn["role"]: turn["content"] for turn in body["messages"]}
        return turns["system"], turns["user"]

    def dressed(self, text: str, form: str) -> dict[str, Any]:
        raise NotImplementedError

    def refusal(self, form: str) -> Act:
        return error(400, f"response_format of type {form} is not supported with this model")


class _OpenAI(_Speaking, OpenAIServer):
    def dressed(self, text: str, form: str) -> dict[str, Any]:
        return completion(text)


class _Mistral(_Speaking, MistralServer):
    def dressed(self, text: str, form: str) -> dict[str, Any]:
        return completion(text)

    def refusal(self, form: str) -> Act:
        return mistral_error(422, f"response_format: {form} is not permitted for this model")


class _Responses(_Speaking, ResponsesServer):
    def words(self, body: dict[str, Any]) -> tuple[str, str]:
        return body["instructions"], body["input"][-1]["content"]

    def dressed(self, text: str, form: str) -> dict[str, Any]:
        return response(text)

    def refusal(self, form: str) -> Act:
        return error(400, f"Invalid parameter: 'text.format' of type '{form}' is not supported")


class _Anthropic(_Speaking, AnthropicServer):
    tells_usage = True

    def words(self, body: dict[str, Any]) -> tuple[str, str]:
        system = body["system"]
        said = system if isinstance(system, str) else system[0]["text"]
        content = body["messages"][-1]["content"]
        return said, content if isinstance(content, str) else content[0]["text"]

    def dressed(self, text: str, form: str) -> dict[str, Any]:
        if form != "tool":
            return message(text)
        block = {"type": "tool_use", "id": "t", "name": "answer", "input": json.loads(text)}
        return message(block, stop="tool_use")

    def refusal(self, form: str) -> Act:
        return anthropic_error(400, "output_config.format: this model does not support it")


class _Google(_Speaking, GoogleServer):
    def words(self, body: dict[str, Any]) -> tuple[str, str]:
        system = body["systemInstruction"]["parts"][0]["text"]
        return system, body["contents"][-1]["parts"][0]["text"]

    def dressed(self, text: str, form: str) -> dict[str, Any]:
        return generated(text)

    def refusal(self, form: str) -> Act:
        said = f"Invalid JSON payload received. Unknown name \"{form}\" at 'generation_config'"
        return google_error(400, said, "INVALID_ARGUMENT")


_SERVERS: dict[str, type[_Speaking]] = {
    "openai": _OpenAI,
    "openai-responses": _Responses,
    "mistral": _Mistral,
    "anthropic": _Anthropic,
    "google": _Google,
}
ADAPTERS = tuple(_SERVERS)


def text_service(adapter: str, say: Say, knows: frozenset[str] | None = None) -> _Speaking:
    """A server that an adapter's text models can be pointed at; ``forms`` notes what was asked for."""
    server = _SERVERS[adapter]()
    server.tell, server.knows, server.forms = say, knows, []
    return server
