"""A stand-in for Anthropic's Messages API, strict about what it is sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from tests.standins.loopback import Act, Call, LoopbackServer, json_act

TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error",
    504: "timeout_error", 529: "overloaded_error",
}  # fmt: skip
FIELDS = {
    "model", "messages", "system", "max_tokens", "temperature", "top_p", "thinking", "output_config",
    "tools", "tool_choice",
}  # fmt: skip


def anthropic_error(status: int, message: str = "no", word: str = "", **headers: str) -> Act:
    """An error in the form Anthropic gives it."""
    inner = {"type": word or TYPES.get(status, "api_error"), "message": message}
    return json_act({"type": "error", "error": inner, "request_id": "req_1"}, status, **headers)


def message(*blocks: Any, stop: str | None = "end_turn", **fields: Any) -> dict[str, Any]:
    """A message's body; a block may be a text."""
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-stand-in-20261101",
        "content": [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks],
        "stop_reason": stop, "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 3}, **fields,
    }  # fmt: skip


class AnthropicServer(LoopbackServer):
    """Speaks ``POST /v1/messages``. ``say`` is what it says; a form that is asked for is kept to.

    What is marked in the system's part is kept, with the form before it, from ``least_cached`` tokens on (a token is
    four characters); usage tells what was read, written and neither.
    """

    prefix = "/v1"

    def __init__(
        self, *acts: Act, say: str = "neutral", key: str | None = None,
        choose: Callable[[Call], Act | None] | None = None, least_cached: int = 512,
    ) -> None:  # fmt: skip
        super().__init__(*acts, choose=choose)
        self.say, self.key = say, key
        self.asked: list[dict[str, Any]] = []
        self.least_cached = least_cached
        self._cache: set[str] = set()
        self._caching = threading.Lock()

    def respond(self, call: Call) -> Act:
        if self.key is not None and call.headers.get("x-api-key") != self.key:
            return anthropic_error(401, f"invalid x-api-key {call.headers.get('x-api-key')}")
        if (call.method, call.path) != ("POST", "/v1/messages"):
            return anthropic_error(404, "Not Found")
        if call.headers.get("anthropic-version") != "2023-06-01":
            return anthropic_error(400, "anthropic-version: header is required")
        body = json.loads(call.body)
        wrong = self._problem(body)
        if wrong:
            return anthropic_error(400, wrong)
        self.asked.append(body)
        if "tools" in body:
            name = body["tool_choice"]["name"]
            made = _example(body["tools"][0]["input_schema"])
            block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": made}
            return json_act(message(block, stop="tool_use", **self._used(body)))
        form = body.get("output_config", {}).get("format")
        said = json.dumps(_example(form["schema"])) if form else self.say
        return json_act(message(said, **self._used(body)))

    def _used(self, body: dict[str, Any]) -> dict[str, Any]:
        """Usage where something is marked; the fixed one of a message elsewhere."""
        system = body.get("system")
        if not isinstance(system, list):
            return {}
        form = json.dumps([body.get("tools"), body.get("output_config", {}).get("format")])
        words = form + system[0]["text"]
        mark = system[0].get("cache_control")
        counted = [turn["content"] for turn in body["messages"]]
        usage = {"input_tokens": sum(map(len, counted)) // 4, "output_tokens": 3}
        prefix = len(words) // 4
        if mark is None or prefix < self.least_cached:
            return {"usage": {**usage, "input_tokens": usage["input_tokens"] + prefix}}
        with self._caching:
            known = words in self._cache
            self._cache.add(words)
        hour = mark.get("ttl") == "1h"
        written = 0 if known else prefix
        return {
            "usage": {
                **usage,
                "cache_read_input_tokens": prefix if known else 0,
                "cache_creation_input_tokens": written,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 0 if hour else written,
                    "ephemeral_1h_input_tokens": written if hour else 0,
                },
            }
        }

    def _problem(self, body: dict[str, Any]) -> str:
        unknown = set(body) - FIELDS
        if unknown:
            return f"{sorted(unknown)[0]}: Extra inputs are not permitted"
        if not isinstance(body.get("max_tokens"), int):
            return "max_tokens: Field required"
        for block in body["system"] if isinstance(body.get("system"), list) else []:
            if block["type"] != "text" or set(block) - {"type", "text", "cache_control"}:
                return "system.0: Extra inputs are not permitted"
            mark = block.get("cache_control", {"type": "ephemeral"})
            if mark["type"] != "ephemeral" or mark.get("ttl", "5m") not in ("5m", "1h"):
                return "system.0.cache_control: unknown form"
        turns = body.get("messages")
        if (
            not turns
            or turns[0]["role"] != "user"
            or any(turn["role"] == "system" for turn in turns)
        ):
            return "messages: first message must use the user role"
        form = body.get("output_config", {}).get("format")
        if form is not None and (
            form["type"] != "json_schema" or form["schema"].get("type") != "object"
        ):
            return "output_config.format: unknown form"
        return ""


def _example(schema: dict[str, Any]) -> dict[str, Any]:
    """An object of the schema's form: the last of every enumeration."""
    return {
        name: inner["enum"][-1] if "enum" in inner else "x"
        for name, inner in schema.get("properties", {}).items()
    }
