"""``anthropic/NAME``: Claude as a text model, for writers, judges and the text-only control.

Speaks ``POST {base_url}/messages`` with the key in ``x-api-key``. The Messages API takes no audio, so items
with audio are refused before the first call. Documented forms as of November 2026: Claude API reference
"Messages" (version 2023-06-01), "Errors" (529 overloaded), "Structured outputs" (``output_config.format``),
"Prompt caching" (``cache_control`` on a block, at most four a request; ``ttl`` 5m or 1h, renewed by every use).

What is said to the system is the same for every call of a role, so that it is marked as the end of what the service
keeps. A write costs 1.25 times the input price (2 times for an hour), a read 0.1 times or less. The least that is kept
differs by model, from 512 tokens (Claude Opus 5) to 4,096 (Haiku 4.5); a mark on less is ignored and costs nothing. The
form of an answer stands before the system's words there: another schema is another entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from earwitness.errors import ModelError, UsageError
from earwitness.models.adapter import AdapterInfo
from earwitness.models.anthropic_reply import read_message
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
from earwitness.models.http import Body, HttpCaller
from earwitness.models.openai_reply import to_json
from earwitness.models.options import Option, read_options
from earwitness.models.prices import text_tokens
from earwitness.models.protocols import Limits, Message, Prompt, Reply, Request
from earwitness.models.redaction import Redactor

ANTHROPIC_URL = "https://api.anthropic.com/v1"
API_VERSION = "2023-06-01"
_KEY_VARIABLES = {"api.anthropic.com": "ANTHROPIC_API_KEY"}
_TOOL = "answer"
LEAST_CACHED_TOKENS = 512
"""The smallest that any of the models keeps; below it a mark would say nothing."""
CACHE_READ = 0.1
"""What a token read from the cache costs at most, as a part of the input price ("Pricing", November 2026)."""

OPTIONS: tuple[Option, ...] = (
    *service_options(ANTHROPIC_URL, "ANTHROPIC_API_KEY", "Anthropic"),
    Option("max_tokens", "integer", "most tokens of an answer; thinking counts too", 4096, least=1),
    *SAMPLING_IF_TAKEN,
    Option("thinking_budget", "integer", "tokens of thinking before the answer", least=1024),
    Option("effort", "text", "how much work goes into an answer: low, medium, high, ..."),
    Option(
        "structured",
        "text",
        "how a form is forced where one is asked: json_schema, tool (a call the model must make) or none",
        "json_schema",
        choices=("json_schema", "tool", "none"),
    ),
    Option(
        "cache",
        "text",
        "how long the service keeps the instructions that all calls share, at a lower price: off, 5m or 1h",
        "5m",
        choices=("off", "5m", "1h"),
    ),
    TIMEOUT,
    *PRICES,
    EXTRA,
)

INFO = AdapterInfo(
    name="anthropic",
    form="anthropic/MODEL",
    summary="Claude, words only: writer, judge, text-only control",
    options=OPTIONS,
    limits=Limits(formats=()),
    examples=("anthropic/claude-sonnet-4-6",),
    key_variable="ANTHROPIC_API_KEY",
)
_SENT = ("max_tokens", "temperature", "top_p")


@dataclass(eq=False)
class AnthropicChat:
    """A Claude model. Use :func:`open` to make one."""

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
        names = (*_SENT, "thinking_budget", "effort", "structured", "extra")
        settings = {name: self._values[name] for name in names if self._values[name] is not None}
        settings["server"] = self._values["server"] or self._url
        return settings

    def preflight(self, requests: Sequence[Request]) -> None:
        """Refuse before the first call what would fail on every one.

        Raises
        ------
        UsageError: no key, or an item with audio, which this service does not take.
        """
        require_key(self.name, self._key_variable, self._key)
        for request in requests:
            if request.audio is not None:
                raise UsageError(
                    self.name,
                    f"takes words only, and item {request.item_id} has audio",
                    "a model that hears",
                    "Use it as a text model, or behind cascade/... with a transcriber.",
                )

    async def ask(self, request: Request) -> Reply:
        """Ask a question without audio. A form is forced where the prompt has a schema, not for choices alone.

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
        return await self.complete([*system, Message("user", prompt.user)], prompt.schema)

    async def complete(
        self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None
    ) -> Reply:
        """Answer text with text; with a schema the text is JSON of its form.

        Raises
        ------
        ModelError: there is no reply.
        """
        form = self._values["structured"] if schema is not None else "none"
        fields = self._fields(messages)
        if form == "json_schema":
            described = {"type": "json_schema", "schema": dict(schema or {})}
            fields["output_config"] = {**fields.get("output_config", {}), "format": described}
        elif form == "tool":
            fields["tools"] = [
                {
                    "name": _TOOL,
                    "description": "Give the answer.",
                    "input_schema": dict(schema or {}),
                }
            ]
            fields["tool_choice"] = {"type": "tool", "name": _TOOL}
        body = Body("application/json", to_json(fields).encode())
        answer = await self._caller.send("POST", f"{self._url}/messages", self._headers(), body)
        reply = read_message(
            self.name,
            answer,
            self._caller.redact,
            hint=key_hint(self._key_variable),
            tool=_TOOL if form == "tool" else "",
        )
        return with_price(reply, self._values, cached=CACHE_READ)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._caller.aclose()

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json", "anthropic-version": API_VERSION}
        if self._key:
            headers["x-api-key"] = self._key
        return headers

    def _kept(self, system: str) -> str | list[dict[str, Any]]:
        """The system's words, marked as the end of what is worth keeping where they are long enough."""
        life = self._values["cache"]
        if life == "off" or text_tokens(Prompt(system)) < LEAST_CACHED_TOKENS:
            return system
        # Five minutes is what the service takes a mark without a time for.
        mark = {"type": "ephemeral", **({"ttl": life} if life != "5m" else {})}
        return [{"type": "text", "text": system, "cache_control": mark}]

    def _fields(self, messages: Sequence[Message]) -> dict[str, Any]:
        values = self._values
        fields: dict[str, Any] = {
            "model": self._model,
            "messages": [
                {"role": message.role, "content": message.text}
                for message in messages
                if message.role != "system"
            ],
        }
        system = "\n\n".join(message.text for message in messages if message.role == "system")
        if system:
            fields["system"] = self._kept(system)
        fields |= {name: values[name] for name in _SENT if values[name] is not None}
        if values["thinking_budget"] is not None:
            fields["thinking"] = {"type": "enabled", "budget_tokens": values["thinking_budget"]}
        if values["effort"]:
            fields["output_config"] = {"effort": values["effort"]}
        return fields | (values["extra"] or {})


def open(name: str, options: Mapping[str, Any]) -> AnthropicChat:  # noqa: A001
    """Open ``anthropic/NAME``.

    Raises
    ------
    UsageError: an unknown or unfit option.

    Examples
    --------
    >>> open("claude-sonnet-4-6", {}).settings["max_tokens"]
    4096
    """
    full = f"anthropic/{name}"
    values = read_options(full, options, OPTIONS)
    url = service_address(full, values["base_url"], ends="/messages")
    refuse_fields(full, values["extra"], {"model", "messages", "system"})
    budget = values["thinking_budget"]
    if budget is not None and budget >= values["max_tokens"]:
        raise UsageError(
            f"{full}: option thinking_budget",
            f"{budget}, with max_tokens={values['max_tokens']}",
            "less than max_tokens, which counts thinking and answer",
        )
    variable, key = service_key(full, url, values["api_key_env"], _KEY_VARIABLES)
    return AnthropicChat(
        name=full,
        limits=INFO.limits,
        _model=name,
        _url=url,
        _values=values,
        _key_variable=variable,
        _key=key,
        _caller=HttpCaller(full, values["timeout_s"], Redactor([key] if key else [])),
    )
