"""Reading the answer of Anthropic's Messages API, whatever it turns out to be.

Documented form: Claude API reference "Messages", "Handling stop reasons", "Prompt caching" (usage) and "Errors", as of
November 2026.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from earwitness.models.http import HttpAnswer, error_codes, error_from
from earwitness.models.openai_reply import bad_reply, count_or_none, dicts_in, json_object, text_or
from earwitness.models.protocols import FinishReason, Reply, Usage
from earwitness.models.redaction import LONG_RUN, Redactor

_FINISH: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_STATUS = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402,
    "permission_error": 403, "not_found_error": 404, "request_too_large": 413,
    "rate_limit_error": 429, "api_error": 500, "timeout_error": 504, "overloaded_error": 529,
}  # fmt: skip
_REASONING_CHARACTERS = 20_000


def read_message(
    service: str, answer: HttpAnswer, redact: Redactor, *, hint: str = "", tool: str = ""
) -> Reply:
    """The reply inside an answer of any status.

    Parameters
    ----------
    tool: name of the tool the model was made to call; its input is the answer then, as JSON text.

    Raises
    ------
    ModelError: there is no reply in it.
    """
    if not 200 <= answer.status < 300:
        raise error_from(service, answer, redact, hint=hint)
    body = json_object(service, answer, redact)
    if body.get("error") and not body.get("content"):
        status = next((_STATUS[word] for word in sorted(error_codes(body)) if word in _STATUS), 500)
        raise error_from(service, answer, redact, status=status, hint=hint)
    if not isinstance(body.get("content"), list):
        raise bad_reply(service, answer, "holds no content", redact)
    blocks = dicts_in(body["content"])
    text = "".join(text_or(block.get("text")) for block in blocks if block.get("type") == "text")
    called = [
        block.get("input")
        for block in blocks
        if block.get("type") == "tool_use" and tool and block.get("name") == tool
    ]
    reason = text_or(body.get("stop_reason"))
    finish: FinishReason = _FINISH.get(reason, "unknown")
    if called:
        text = json.dumps(called[0], ensure_ascii=False)
        finish = "stop" if reason == "tool_use" else finish
    raw: dict[str, Any] = {}
    thought = "".join(
        text_or(block.get("thinking")) for block in blocks if block.get("type") == "thinking"
    )
    if thought:
        raw["reasoning"] = thought[:_REASONING_CHARACTERS]
    details = body.get("stop_details")
    if isinstance(details, dict):
        raw["stop_details"] = {
            name: value for name, value in details.items() if isinstance(value, str)
        }
    usage, more = _usage(body.get("usage"))
    return Reply(
        text=redact(text, run=LONG_RUN),
        finish=finish,
        finish_raw=redact(reason) or None,
        usage=usage,
        latency_s=answer.seconds,
        provider_id=redact(text_or(body.get("id")) or answer.headers.get("request-id", "")) or None,
        provider_model=redact(text_or(body.get("model"))) or None,
        raw=redact.tree(raw | more, run=LONG_RUN),
    )


def _usage(usage: Any) -> tuple[Usage, dict[str, Any]]:
    """Tokens; what was written to or read from a cache is input too, at prices of its own."""
    if not isinstance(usage, dict):
        return Usage(), {}
    given = count_or_none(usage.get("input_tokens"))
    written, read = (
        count_or_none(usage.get(name))
        for name in ("cache_creation_input_tokens", "cache_read_input_tokens")
    )
    by_life = usage.get("cache_creation")
    by_life = by_life if isinstance(by_life, dict) else {}
    hour = count_or_none(by_life.get("ephemeral_1h_input_tokens"))
    details = {
        name: count
        for name, count in (
            ("cached_tokens", read),
            ("cache_written_tokens", written),
            ("cache_written_1h_tokens", hour),
        )
        if count
    }
    total = None if given is None else given + (written or 0) + (read or 0)
    return Usage(total, count_or_none(usage.get("output_tokens")), **details), dict(details)
