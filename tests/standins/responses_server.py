"""A stand-in for OpenAI's Responses API, strict about what it is sent."""

from __future__ import annotations

import json
from typing import Any

from tests.standins.loopback import Act, Call, LoopbackServer, error, json_act

FIELDS = {
    "model", "input", "instructions", "store", "temperature", "top_p", "max_output_tokens", "reasoning", "text",
    "prompt_cache_key", "prompt_cache_options",
}  # fmt: skip


def response(
    *parts: Any, status: str = "completed", reason: str | None = None, **fields: Any
) -> dict[str, Any]:
    """A response's body; a part may be a text."""
    made = [
        {"type": "output_text", "text": part, "annotations": []} if isinstance(part, str) else part
        for part in parts
    ]
    return {
        "id": "resp_1", "object": "response", "status": status, "error": None, "model": "stand-in-2026-11-01",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": [{"type": "message", "role": "assistant", "content": made}] if made else [],
        "usage": {
            "input_tokens": 10, "output_tokens": 6, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 4},
        }, **fields,
    }  # fmt: skip


class ResponsesServer(LoopbackServer):
    """Speaks ``POST /v1/responses``."""

    prefix = "/v1"

    def __init__(self, *acts: Act, key: str | None = None) -> None:
        super().__init__(*acts)
        self.key = key
        self.asked: list[dict[str, Any]] = []

    def respond(self, call: Call) -> Act:
        if self.key is not None and call.headers.get("authorization") != f"Bearer {self.key}":
            return error(
                401, f"Incorrect API key: {call.headers.get('authorization')}", "invalid_api_key"
            )
        if (call.method, call.path) != ("POST", "/v1/responses"):
            return error(404, "Not found")
        body = json.loads(call.body)
        unknown = set(body) - FIELDS
        if unknown or body["store"] is not False:
            return error(400, f"Unknown parameter: {sorted(unknown)}", "unknown_parameter")
        if any(turn["role"] not in ("system", "user", "assistant") for turn in body["input"]):
            return error(400, "unknown role")
        self.asked.append(body)
        form = body.get("text", {}).get("format")
        if form and form["type"] == "json_schema":
            made = {
                name: inner.get("enum", ["x"])[-1]
                for name, inner in form["schema"]["properties"].items()
            }
            return json_act(response(json.dumps(made)))
        return json_act(response("neutral"))
