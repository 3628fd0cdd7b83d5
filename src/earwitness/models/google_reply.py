"""Reading the answer of Gemini's ``generateContent``: said, blocked, cut short, empty, or no answer at all.

Documented form: Gemini API reference, "GenerateContentResponse" (candidates, promptFeedback, usageMetadata)
and "Troubleshooting" (error codes), as of November 2026. These functions raise nothing but ModelError.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from earwitness.errors import ModelError
from earwitness.models.http import HttpAnswer, error_from, parsed
from earwitness.models.openai_reply import bad_reply, count_or_none, dicts_in, json_object, text_or
from earwitness.models.protocols import FinishReason, Reply, Usage
from earwitness.models.redaction import LONG_RUN, Redactor

_FINISH: Mapping[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "LANGUAGE": "content_filter",
}
"""What else there is (OTHER, MALFORMED_RESPONSE, ...) is kept raw and stays ``unknown``."""
_THOUGHT_CHARACTERS = 20_000
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")


def read_generated(service: str, answer: HttpAnswer, redact: Redactor, *, hint: str = "") -> Reply:
    """The reply inside an answer of any status.

    Raises
    ------
    ModelError: there is no reply in it; ``bad_reply`` where neither a candidate nor a block is named.
    """
    if not 200 <= answer.status < 300:
        raise google_error(service, answer, redact, hint=hint)
    body = json_object(service, answer, redact)
    if body.get("error") and not body.get("candidates"):
        raise google_error(service, answer, redact, hint=hint)
    usage, details = _usage(body.get("usageMetadata"))
    common: dict[str, Any] = {
        "usage": usage,
        "latency_s": answer.seconds,
        "provider_id": redact(text_or(body.get("responseId"))) or None,
        "provider_model": redact(text_or(body.get("modelVersion"))) or None,
    }
    feedback = body.get("promptFeedback")
    feedback = feedback if isinstance(feedback, dict) else {}
    blocked = text_or(feedback.get("blockReason"))
    candidates = dicts_in(body.get("candidates"))
    if blocked and not candidates:
        raw = {**details, "prompt_blocked": True, **_ratings(feedback)}
        return Reply(
            text="", finish="content_filter", finish_raw=redact(blocked),
            raw=redact.tree(raw, run=LONG_RUN), **common,
        )  # fmt: skip
    if not candidates:
        raise bad_reply(service, answer, "holds no candidates and names no block", redact)
    candidate = candidates[0]
    reason = text_or(candidate.get("finishReason"))
    content = candidate.get("content")
    parts = dicts_in(content.get("parts")) if isinstance(content, dict) else []
    if not parts and not reason:
        raise bad_reply(
            service, answer, "holds a candidate without content or finish reason", redact
        )
    said = "".join(text_or(part.get("text")) for part in parts if not part.get("thought"))
    thought = "".join(text_or(part.get("text")) for part in parts if part.get("thought"))
    finish: FinishReason = _FINISH.get(reason, "unknown")
    raw = dict(details)
    if thought:
        raw["reasoning"] = thought[:_THOUGHT_CHARACTERS]
    if text_or(candidate.get("finishMessage")):
        raw["finish_message"] = candidate["finishMessage"]
    if finish == "content_filter":
        raw |= _ratings(candidate)
    return Reply(
        text=redact(said, run=LONG_RUN),
        finish=finish,
        finish_raw=redact(reason) or None,
        raw=redact.tree(raw, run=LONG_RUN),
        **common,
    )


def google_error(
    service: str, answer: HttpAnswer, redact: Redactor, *, hint: str = ""
) -> ModelError:
    """What an error of a Google API means: its details say what the status alone does not.

    A wrong key comes as 400, the wait of a 429 stands in the body, and a day's quota is not a rate limit.
    """
    body = parsed(answer.text)
    inner = body.get("error") if isinstance(body, dict) else None
    fields = inner if isinstance(inner, dict) else {}
    code = fields.get("code")
    named = code if isinstance(code, int) and 400 <= code <= 599 else None
    status = named if named is not None else answer.status
    if 200 <= status < 300:
        status = 500
    details = dicts_in(fields.get("details"))
    wrong_key = any(
        detail.get("reason") in ("API_KEY_INVALID", "API_KEY_SERVICE_BLOCKED") for detail in details
    )
    if wrong_key or (status == 400 and "API key not valid" in text_or(fields.get("message"))):
        status = 401
    error = error_from(service, answer, redact, status=status, hint=hint)
    quotas = [
        text_or(violation.get("quotaId"))
        for detail in details
        for violation in dicts_in(detail.get("violations"))
    ]
    if status == 429 and any("PerDay" in quota for quota in quotas):
        error.kind, error.retryable, error.retry_after_s = "quota", False, None
    if error.retryable and error.retry_after_s is None:
        error.retry_after_s = _delay(details)
    return error


def _delay(details: list[dict[str, Any]]) -> float | None:
    """Seconds of a ``google.rpc.RetryInfo``."""
    for detail in details:
        found = _DELAY.fullmatch(text_or(detail.get("retryDelay")))
        if found:
            return float(found[1])
    return None


def _ratings(holder: Mapping[str, Any]) -> dict[str, Any]:
    """The safety ratings behind a block."""
    ratings = [
        {
            name: rating[name]
            for name in ("category", "probability", "blocked")
            if isinstance(rating.get(name), str | bool)
        }
        for rating in dicts_in(holder.get("safetyRatings"))
    ]
    return {"safety_ratings": ratings[:20]} if ratings else {}


def _usage(usage: Any) -> tuple[Usage, dict[str, Any]]:
    """Tokens; thinking is billed as output. Audio tokens show that audio arrived."""
    if not isinstance(usage, dict):
        return Usage(), {}
    said, thought = (
        count_or_none(usage.get(name)) for name in ("candidatesTokenCount", "thoughtsTokenCount")
    )
    details: dict[str, Any] = {}
    if thought is not None:
        details["reasoning_tokens"] = thought
    cached = count_or_none(usage.get("cachedContentTokenCount"))
    if cached is not None:
        details["cached_tokens"] = cached
    for detail in dicts_in(usage.get("promptTokensDetails")):
        tokens = count_or_none(detail.get("tokenCount"))
        if detail.get("modality") == "AUDIO" and tokens is not None:
            details["audio_tokens"] = tokens
    output = None if said is None and thought is None else (said or 0) + (thought or 0)
    return Usage(
        count_or_none(usage.get("promptTokenCount")),
        output,
        audio_tokens=details.get("audio_tokens"),
        cached_tokens=details.get("cached_tokens"),
    ), details
