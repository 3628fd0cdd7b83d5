"""Reading the answer of a chat-completions service, whatever it turns out to be.

An answer that says something, even "no", is a :class:`~earwitness.models.protocols.Reply`; one that says
nothing usable is a :class:`~earwitness.errors.ModelError`. These functions raise nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from earwitness.errors import ModelError
from earwitness.models.http import HttpAnswer, error_codes, error_from, is_blocked, parsed
from earwitness.models.protocols import FinishReason, Reply, Usage
from earwitness.models.redaction import LONG_RUN, Redactor

_FINISH: Mapping[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "prohibited_content": "content_filter",
    "refusal": "refusal",
}
_BROKEN_OFF = frozenset({"error", "abort", "aborted", "cancelled"})
_REASONING_CHARACTERS = 20_000
TYPE_STATUS: Mapping[str, int] = {
    "rate_limit_error": 429, "rate_limit_exceeded": 429, "too_many_requests": 429,
    "insufficient_quota": 429, "overloaded_error": 529, "authentication_error": 401,
    "server_error": 500, "session_expired": 500, "invalid_api_key": 401, "permission_error": 403,
    "invalid_request_error": 400,
    "badrequesterror": 400, "not_found_error": 404, "notfounderror": 404,
}  # fmt: skip


_GENERAL = frozenset({"invalid_request_error", "server_error"})


def status_of(words: set[str]) -> int | None:
    """The status that goes with the most particular of the words an error is named with."""
    known = sorted(words & set(TYPE_STATUS), key=lambda word: (word in _GENERAL, word))
    return TYPE_STATUS[known[0]] if known else None


def read_reply(service: str, answer: HttpAnswer, redact: Redactor, *, hint: str = "") -> Reply:
    """The reply inside an HTTP answer of any status.

    Parameters
    ----------
    service: the model's name, for messages.
    hint: what to do about a refused key.

    Raises
    ------
    ModelError: there is no reply in it.
    """
    if not 200 <= answer.status < 300:
        body = parsed(answer.text)
        if is_blocked(answer.status, error_codes(body), body):
            return _blocked(answer, body, redact)
        raise error_from(service, answer, redact, hint=hint)
    body = json_object(service, answer, redact)
    error = body.get("error")
    if error and not body.get("choices"):
        return _error_inside(service, answer, body, redact, hint)
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise bad_reply(service, answer, "holds no choices", redact)
    choice = choices[0]
    if choice.get("error"):
        return _error_inside(service, answer, choice, redact, hint)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise bad_reply(service, answer, "holds a choice without a message", redact)
    return _reply(service, answer, body, choice, message, redact)


def _reply(
    service: str,
    answer: HttpAnswer,
    body: dict[str, Any],
    choice: dict[str, Any],
    message: dict[str, Any],
    redact: Redactor,
) -> Reply:
    finish_raw = choice.get("finish_reason")
    word = finish_raw.lower() if isinstance(finish_raw, str) else ""
    if word in _BROKEN_OFF:
        raise ModelError(
            f"{service}: the service broke the answer off (finish_reason {word!r})",
            kind="server",
            retryable=True,
            status=answer.status,
            maybe_paid=True,
        )
    finish: FinishReason = _FINISH.get(word, "unknown")
    raw: dict[str, Any] = {}
    text = _content(message.get("content"))
    spoken = message.get("audio")
    if not text and isinstance(spoken, dict):
        text = text_or(spoken.get("transcript"))
    refusal = text_or(message.get("refusal")) or _refusal_part(message.get("content"))
    if refusal:
        raw["refusal"] = refusal
        text = text or refusal
        finish = "refusal" if finish != "content_filter" else finish
    reasoning = text_or(message.get("reasoning_content")) or text_or(message.get("reasoning"))
    if reasoning:
        raw["reasoning"] = reasoning[:_REASONING_CHARACTERS]
    for name in ("system_fingerprint", "provider", "service_tier"):
        if isinstance(body.get(name), str):
            raw[name] = body[name]
    usage, details = _usage(body.get("usage"))
    raw |= details
    return Reply(
        text=redact(text, run=LONG_RUN),
        finish=finish,
        finish_raw=redact(finish_raw) if isinstance(finish_raw, str) else None,
        usage=usage,
        latency_s=answer.seconds,
        provider_id=_id(body, answer, redact),
        provider_model=redact(text_or(body.get("model"))) or None,
        raw=redact.tree(raw, run=LONG_RUN),
    )


def _blocked(answer: HttpAnswer, body: Any, redact: Redactor) -> Reply:
    """A policy block is an outcome of the item: asking again would bring the same."""
    codes = sorted(error_codes(body))
    return Reply(
        text="",
        finish="content_filter",
        finish_raw=redact(", ".join(codes)) or None,
        latency_s=answer.seconds,
        provider_id=_id(body if isinstance(body, dict) else {}, answer, redact),
        raw={"status": answer.status, "message": redact.excerpt(answer.text)},
    )


def _error_inside(
    service: str, answer: HttpAnswer, holder: dict[str, Any], redact: Redactor, hint: str
) -> Reply:
    """An error object where an answer should be: classified by the status it names, if it names one."""
    error = holder["error"]
    codes = error_codes(holder)
    code = error.get("code") if isinstance(error, dict) else None
    status = _status(code)
    if status is None:
        status = status_of(codes) or 500
    if is_blocked(status if status < 500 else 200, codes, holder):
        return _blocked(answer, holder, redact)
    raise error_from(service, answer, redact, status=status, hint=hint)


def _status(code: Any) -> int | None:
    if isinstance(code, str) and code.isascii() and code.isdigit():
        code = int(code[:6])
    return code if isinstance(code, int) and 400 <= code <= 599 else None


def bad_reply(service: str, answer: HttpAnswer, what: str, redact: Redactor) -> ModelError:
    """A complete answer with a good status that is none; ``what`` goes on after "the answer"."""
    said = redact.excerpt(answer.text)
    kind = answer.media_type or "no content type"
    return ModelError(
        f"{service}: HTTP {answer.status}, but the answer {what} ({kind}): {said or '(empty)'}",
        kind="bad_reply",
        retryable=True,
        status=answer.status,
        maybe_paid=True,
    )


def json_object(service: str, answer: HttpAnswer, redact: Redactor) -> dict[str, Any]:
    """The JSON object an answer consists of; a stream of completions is joined into one.

    Raises
    ------
    ModelError: it is something else (a web page, broken JSON, nothing).
    """
    text = answer.text.lstrip("\ufeff \r\n\t")
    if not text:
        raise bad_reply(service, answer, "is empty", redact)
    if answer.media_type == "text/event-stream" or text.startswith(("data:", ":", "event:")):
        return _joined(service, answer, text, redact)
    body = parsed(text)
    if isinstance(body, dict):
        return body
    if answer.media_type == "text/html" or text[:1] == "<":
        raise bad_reply(service, answer, "is a web page", redact)
    what = "is not valid JSON" if body is None else "is no JSON object"
    raise bad_reply(service, answer, what, redact)


def _joined(service: str, answer: HttpAnswer, text: str, redact: Redactor) -> dict[str, Any]:
    """One completion out of a stream of server-sent events.

    Raises
    ------
    ModelError: an event that is no JSON, or the stream ends before the model did.
    """
    body: dict[str, Any] = {}
    message: dict[str, Any] = {"content": "", "refusal": "", "reasoning_content": ""}
    finish: str | None = None
    begun = done = False
    for line in text.splitlines():
        if not line.startswith("data:"):
            continue
        data = line[5:].strip()
        if data == "[DONE]":
            done = True
            break
        event = parsed(data)
        if not isinstance(event, dict):
            raise bad_reply(service, answer, "is a stream with a broken event", redact)
        if event.get("error"):
            return event
        body |= {
            name: value for name, value in event.items() if name != "choices" and value is not None
        }
        for choice in dicts_in(event.get("choices"))[:1]:
            begun = True
            finish = text_or(choice.get("finish_reason")) or finish
            delta = choice.get("delta")
            if isinstance(delta, dict):
                for name in message:
                    message[name] += _content(delta.get(name))
                message["reasoning_content"] += text_or(delta.get("reasoning"))
    if not begun:
        return body
    if finish is None and not done:
        raise bad_reply(service, answer, "is a stream that breaks off", redact)
    return body | {"choices": [{"message": message, "finish_reason": finish}]}


def dicts_in(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; none where there is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_or(value: Any) -> str:
    """A text, or an empty one for anything else."""
    return value if isinstance(value, str) else ""


def _content(content: Any) -> str:
    """Visible text of a message: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    return "".join(
        text_or(part.get("text"))
        for part in dicts_in(content)
        if part.get("type", "text") in ("text", "output_text")
    )


def _refusal_part(content: Any) -> str:
    return "".join(
        text_or(part.get("refusal")) for part in dicts_in(content) if part.get("type") == "refusal"
    )


def _id(body: dict[str, Any], answer: HttpAnswer, redact: Redactor) -> str | None:
    found = text_or(body.get("id")) or answer.headers.get("x-request-id", "")
    return redact(found) or None


def _usage(usage: Any) -> tuple[Usage, dict[str, Any]]:
    """Tokens and cost, and the details worth keeping (audio tokens show that audio arrived)."""
    if not isinstance(usage, dict):
        return Usage(), {}
    details: dict[str, Any] = {}
    for outer, inner, name in (
        ("prompt_tokens_details", "audio_tokens", "audio_tokens"),
        ("prompt_tokens_details", "cached_tokens", "cached_tokens"),
        ("prompt_tokens_details", "cache_write_tokens", "cache_written_tokens"),
        ("completion_tokens_details", "reasoning_tokens", "reasoning_tokens"),
    ):
        holder = usage.get(outer)
        count = count_or_none(holder.get(inner)) if isinstance(holder, dict) else None
        if count is not None:
            details[name] = count
    return (
        Usage(
            input_tokens=count_or_none(usage.get("prompt_tokens")),
            output_tokens=count_or_none(usage.get("completion_tokens")),
            cost_usd=_amount(usage.get("cost")),
            audio_tokens=details.get("audio_tokens"),
            cached_tokens=details.get("cached_tokens"),
            cache_written_tokens=details.get("cache_written_tokens"),
        ),
        details,
    )


def count_or_none(value: Any) -> int | None:
    """A whole number that is not negative, or None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _amount(value: Any) -> float | None:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12
    return float(value) if fits else None


def to_json(value: Any) -> str:
    """Compact JSON text, the form in which requests are sent."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
