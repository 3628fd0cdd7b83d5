"""``openai-responses/NAME``: OpenAI's Responses API for the roles that read and write (writer, judge, control).

Speaks ``POST {base_url}/responses`` with ``store: false``, so that nothing is kept by the service. Documented
form as of November 2026: OpenAI API reference "Create a model response" (``text.format``, ``reasoning``,
``incomplete_details``). Audio goes to ``openai/...`` (chat completions) or ``openai-realtime/...``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from earwitness.errors import ModelError, UsageError
from earwitness.models.adapter import AdapterInfo
from earwitness.models.chat_parts import (
    EXTRA,
    PRICES,
    SAMPLING_IF_TAKEN,
    TIMEOUT,
    key_hint,
    refuse_fields,
    require_key,
    service_address,
    service_key,
    service_options,
    with_price,
)
from earwitness.models.http import (
    Body,
    HttpAnswer,
    HttpCaller,
    error_codes,
    error_from,
    is_blocked,
    parsed,
)
from earwitness.models.openai_cache import CACHE, cache_choice, cache_fields, ends_shared_part
from earwitness.models.openai_reply import (
    bad_reply,
    count_or_none,
    dicts_in,
    json_object,
    status_of,
    text_or,
    to_json,
)
from earwitness.models.options import Option, read_options
from earwitness.models.protocols import FinishReason, Limits, Message, Reply, Request, Usage
from earwitness.models.redaction import LONG_RUN, Redactor

OPENAI_URL = "https://api.openai.com/v1"
_KEY_VARIABLES = {"api.openai.com": "OPENAI_API_KEY"}

OPTIONS: tuple[Option, ...] = (
    *service_options(OPENAI_URL, "OPENAI_API_KEY", "OpenAI"),
    *SAMPLING_IF_TAKEN,
    Option(
        "max_output_tokens", "integer", "most tokens of an answer; reasoning counts too", least=1
    ),
    Option("reasoning_effort", "text", "none, minimal, low, medium, high, ... as the model has them"),
    Option("verbosity", "text", "low, medium or high, for models that have it"),
    Option(
        "structured",
        "text",
        "how a form is forced where one is asked",
        "json_schema",
        choices=("json_schema", "json_object", "none"),
    ),
    CACHE,
    TIMEOUT,
    *PRICES,
    EXTRA,
)  # fmt: skip

INFO = AdapterInfo(
    name="openai-responses",
    form="openai-responses/MODEL",
    summary="The Responses API, words only: writer, judge, text-only control",
    options=OPTIONS,
    limits=Limits(formats=()),
    examples=("openai-responses/gpt-5.2 -M reasoning_effort=low",),
    key_variable="OPENAI_API_KEY",
)
_SENT = ("temperature", "top_p", "max_output_tokens")
_REASONING_CHARACTERS = 20_000


@dataclass(eq=False)
class OpenAIResponses:
    """A model behind the Responses API. Use :func:`open` to make one."""

    name: str
    limits: Limits
    _model: str
    _url: str
    _values: Mapping[str, Any]
    _key_variable: str
    _key: str | None = field(repr=False)
    _caller: HttpCaller

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that may change an answer; the key, the time-out and the cache do not."""
        names = (*_SENT, "reasoning_effort", "verbosity", "structured", "extra")
        settings = {name: self._values[name] for name in names if self._values[name] is not None}
        settings["server"] = self._values["server"] or self._url
        return settings

    def preflight(self, requests: Sequence[Request]) -> None:
        """Refuse before the first call what would fail on every one.

        Raises
        ------
        UsageError: no key, or an item with audio.
        """
        require_key(self.name, self._key_variable, self._key)
        for request in requests:
            if request.audio is not None:
                raise UsageError(
                    self.name,
                    f"takes words only, and item {request.item_id} has audio",
                    "a model that hears",
                    "Audio goes to openai/... or openai-realtime/...",
                )

    async def ask(self, request: Request) -> Reply:
        """Ask a question without audio.

        Raises
        ------
        ModelError: there is no reply.
        """
        if request.audio is not None:
            raise ModelError(
                f"{self.name}: takes words only, and this item has audio",
                kind="bad_request",
                retryable=False,
            )
        prompt = request.prompt
        system = [Message("system", prompt.system)] if prompt.system else []
        messages = [*system, Message("user", prompt.user)]
        return await self._call(messages, prompt.schema, request.idempotency_key)

    async def complete(
        self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None
    ) -> Reply:
        """Answer text with text; with a schema the text is JSON of its form.

        Raises
        ------
        ModelError: there is no reply.
        """
        return await self._call(messages, schema, None)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._caller.aclose()

    async def _call(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None,
        idempotency_key: str | None,
    ) -> Reply:
        headers = {"Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        if idempotency_key:
            headers["Idempotency-Key"] = idempotency_key
        body = Body("application/json", to_json(self._fields(messages, schema)).encode())
        answer = await self._caller.send("POST", f"{self._url}/responses", headers, body)
        hint = key_hint(self._key_variable)
        return with_price(
            read_response(self.name, answer, self._caller.redact, hint=hint), self._values
        )

    def _fields(
        self, messages: Sequence[Message], schema: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        values = self._values
        fields: dict[str, Any] = {
            "model": self._model,
            "store": False,
            "input": [
                {"role": message.role, "content": message.text}
                for message in messages
                if message.role != "system"
            ],
        }
        system = "\n\n".join(message.text for message in messages if message.role == "system")
        mark = ends_shared_part(values["cache"], system)
        if mark:
            # Instructions are plain text, which has no place for a mark.
            shared = {"type": "input_text", "text": system, **mark}
            fields["input"].insert(0, {"role": "system", "content": [shared]})
        elif system:
            fields["instructions"] = system
        fields |= cache_fields(values["cache"], system)
        fields |= {name: values[name] for name in _SENT if values[name] is not None}
        if values["reasoning_effort"]:
            fields["reasoning"] = {"effort": values["reasoning_effort"]}
        text: dict[str, Any] = {}
        if schema is not None and values["structured"] == "json_schema":
            text["format"] = {
                "type": "json_schema", "name": "answer", "strict": True, "schema": dict(schema),
            }  # fmt: skip
        elif schema is not None and values["structured"] == "json_object":
            text["format"] = {"type": "json_object"}
        if values["verbosity"]:
            text["verbosity"] = values["verbosity"]
        if text:
            fields["text"] = text
        return fields | (values["extra"] or {})


def read_response(service: str, answer: HttpAnswer, redact: Redactor, *, hint: str = "") -> Reply:
    """The reply inside an answer of any status.

    Raises
    ------
    ModelError: there is no reply in it.
    """
    if not 200 <= answer.status < 300:
        body = parsed(answer.text)
        if is_blocked(answer.status, error_codes(body), body):
            return _blocked(answer, error_codes(body), redact)
        raise error_from(service, answer, redact, hint=hint)
    body = json_object(service, answer, redact)
    status = text_or(body.get("status"))
    if body.get("error"):
        codes = error_codes(body)
        if is_blocked(200, codes, body):
            return _blocked(answer, codes, redact)
        raise error_from(service, answer, redact, status=status_of(codes) or 500, hint=hint)
    if not isinstance(body.get("output"), list):
        raise bad_reply(service, answer, "holds no output", redact)
    if status in ("failed", "cancelled", "queued", "in_progress"):
        raise ModelError(
            f"{service}: the response ended as {status!r}",
            kind="server",
            retryable=True,
            status=answer.status,
            maybe_paid=True,
        )
    reason = _reason(body)
    finish: FinishReason = "stop" if status == "completed" else "unknown"
    if status == "incomplete":
        endings: dict[str, FinishReason] = {
            "max_output_tokens": "length",
            "content_filter": "content_filter",
        }
        finish = endings.get(reason, "unknown")
    text, refusal, thought = _said(body["output"])
    raw: dict[str, Any] = {}
    if refusal:
        raw["refusal"] = refusal
        text = text or refusal
        finish = "refusal" if finish != "content_filter" else finish
    if thought:
        raw["reasoning"] = thought[:_REASONING_CHARACTERS]
    usage, counts = _usage(body.get("usage"))
    return Reply(
        text=redact(text, run=LONG_RUN),
        finish=finish,
        finish_raw=redact(": ".join(filter(None, (status, reason)))) or None,
        usage=usage,
        latency_s=answer.seconds,
        provider_id=redact(text_or(body.get("id"))) or None,
        provider_model=redact(text_or(body.get("model"))) or None,
        raw=redact.tree(raw | counts, run=LONG_RUN),
    )


def _blocked(answer: HttpAnswer, codes: set[str], redact: Redactor) -> Reply:
    return Reply(
        text="",
        finish="content_filter",
        finish_raw=redact(", ".join(sorted(codes))) or None,
        latency_s=answer.seconds,
        raw={"status": answer.status, "message": redact.excerpt(answer.text)},
    )


def _reason(body: Mapping[str, Any]) -> str:
    details = body.get("incomplete_details")
    return text_or(details.get("reason")) if isinstance(details, dict) else ""


def _said(output: Any) -> tuple[str, str, str]:
    """Words, refusals and summaries of reasoning."""
    words, refusals, thoughts = [], [], []
    for item in dicts_in(output):
        if item.get("type") == "reasoning":
            thoughts += [text_or(part.get("text")) for part in dicts_in(item.get("summary"))]
        if item.get("type") != "message":
            continue
        for part in dicts_in(item.get("content")):
            if part.get("type") == "output_text":
                words.append(text_or(part.get("text")))
            elif part.get("type") == "refusal":
                refusals.append(text_or(part.get("refusal")))
    return "".join(words), "".join(refusals), "\n".join(thoughts)


def _usage(usage: Any) -> tuple[Usage, dict[str, Any]]:
    if not isinstance(usage, dict):
        return Usage(), {}
    counts = {}
    for outer, inner, name in (
        ("input_tokens_details", "cached_tokens", "cached_tokens"),
        ("input_tokens_details", "cache_write_tokens", "cache_written_tokens"),
        ("output_tokens_details", "reasoning_tokens", "reasoning_tokens"),
    ):
        holder = usage.get(outer)
        count = count_or_none(holder.get(inner)) if isinstance(holder, dict) else None
        if count is not None:
            counts[name] = count
    return (
        Usage(
            count_or_none(usage.get("input_tokens")),
            count_or_none(usage.get("output_tokens")),
            cached_tokens=counts.get("cached_tokens"),
            cache_written_tokens=counts.get("cache_written_tokens"),
        ),
        counts,
    )


def open(name: str, options: Mapping[str, Any]) -> OpenAIResponses:  # noqa: A001
    """Open ``openai-responses/NAME``.

    Raises
    ------
    UsageError: an unknown or unfit option.

    Examples
    --------
    >>> open("gpt-5.2", {"reasoning_effort": "low"}).settings["reasoning_effort"]
    'low'
    """
    full = f"openai-responses/{name}"
    values = read_options(full, options, OPTIONS)
    url = service_address(full, values["base_url"], ends="/responses")
    refuse_fields(full, values["extra"], {"model", "input", "instructions"})
    values["cache"] = cache_choice(values["cache"], url)
    variable, key = service_key(full, url, values["api_key_env"], _KEY_VARIABLES)
    return OpenAIResponses(
        name=full,
        limits=INFO.limits,
        _model=name,
        _url=url,
        _values=values,
        _key_variable=variable,
        _key=key,
        _caller=HttpCaller(full, values["timeout_s"], Redactor([key] if key else [])),
    )
