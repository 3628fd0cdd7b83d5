"""``openai/NAME``: chat completions with audio.

Speaks ``POST {base_url}/chat/completions`` with an ``input_audio`` or ``audio_url`` content part, as OpenAI,
vLLM, SGLang, the llama.cpp server, OpenRouter and DashScope understand it. Documented forms as of November
2026: OpenAI API reference "Create chat completion"; vLLM "Multimodal inputs"; Alibaba Model Studio
"Qwen-Omni" (answers only as a stream; base64 behind ``data:;base64,``); OpenRouter "Audio inputs".
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from earwitness.errors import EarwitnessError, ModelError, UsageError
from earwitness.models.adapter import AdapterInfo
from earwitness.models.chat_parts import (
    AUDIO_FIRST,
    EXTRA,
    PRICES,
    SAMPLING,
    SERVER,
    STRUCTURED,
    TIMEOUT,
    asked_schema,
    key_hint,
    refuse_fields,
    require_key,
    require_schema,
    service_address,
    service_key,
    with_price,
    with_stimulus,
)
from earwitness.models.http import Body, HttpAnswer, HttpCaller
from earwitness.models.openai_cache import CACHE, cache_choice, cache_fields, ends_shared_part
from earwitness.models.openai_reply import read_reply, to_json
from earwitness.models.options import LIMIT_OPTIONS, Option, limits_from, read_options
from earwitness.models.payload import Payload, encode_stimulus
from earwitness.models.protocols import Limits, Message, Reply, Request
from earwitness.models.redaction import Redactor

OPENAI_URL = "https://api.openai.com/v1"
_KEY_VARIABLES = {
    "api.openai.com": "OPENAI_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
}
"""A key goes only to the host it belongs to, unless ``api_key_env`` says otherwise."""
_DASHSCOPE = (
    "dashscope.aliyuncs.com",
    "dashscope-intl.aliyuncs.com",
    "dashscope-us.aliyuncs.com",
)
_DASHSCOPE_WORKSPACES = ".maas.aliyuncs.com"
"""A workspace has a host of its own, such as ``ID.cn-beijing.maas.aliyuncs.com``."""

OPTIONS: tuple[Option, ...] = (
    Option("base_url", "text", "address of the service, up to and with /v1", OPENAI_URL),
    Option(
        "api_key_env",
        "text",
        "environment variable that holds the key; empty: send none. Unset: OPENAI_API_KEY for OpenAI, "
        "OPENROUTER_API_KEY, DASHSCOPE_API_KEY for theirs, none for other hosts",
    ),
    SERVER,
    *SAMPLING,
    Option("seed", "integer", "seed for sampling, where the service has one"),
    Option("max_tokens", "integer", "most tokens of an answer, sent as max_tokens", least=1),
    Option(
        "max_completion_tokens",
        "integer",
        "the same as newer models call it; reasoning counts too",
        least=1,
    ),
    Option(
        "reasoning_effort", "text", "none, minimal, low, medium, high, ... as the model has them"
    ),
    Option("modalities", "list", "answer modalities, such as text"),
    Option(
        "audio_form",
        "text",
        "how the audio is sent: input_audio (base64), input_audio_uri (base64 behind data:;base64,) or "
        "audio_url (a data: URL)",
        choices=("input_audio", "input_audio_uri", "audio_url"),
    ),
    AUDIO_FIRST,
    Option(
        "prefer",
        "text",
        "format for clips that must be converted; mp3 makes all clips lossy",
        "wav",
        choices=("wav", "flac", "mp3"),
    ),
    STRUCTURED,
    Option("stream", "yes/no", "receive the answer as a stream, for services that give no other"),
    CACHE,
    TIMEOUT,
    *PRICES,
    EXTRA,
    *LIMIT_OPTIONS,
)

INFO = AdapterInfo(
    name="openai",
    form="openai/MODEL",
    summary="Chat completions with audio: OpenAI, vLLM, SGLang, llama.cpp, OpenRouter, DashScope",
    options=OPTIONS,
    limits=Limits(formats=("wav", "mp3")),
    examples=(
        "openai/gpt-audio",
        "openai/Qwen/Qwen2.5-Omni-7B -M base_url=http://localhost:8000/v1",
    ),
    key_variable="OPENAI_API_KEY",
)

_SENT = ("temperature", "top_p", "seed", "max_tokens", "max_completion_tokens", "reasoning_effort")


@dataclass(eq=False)
class OpenAIChat:
    """A model behind a chat-completions service. Use :func:`open` to make one."""

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
        values = self._values
        settings = {name: values[name] for name in _SENT if values[name] is not None}
        settings["server"] = values["server"] or self._url
        for name in ("audio_form", "audio_first", "structured"):
            settings[name] = values[name]
        if values["modalities"]:
            settings["modalities"] = list(values["modalities"])
        if values["extra"]:
            settings["extra"] = values["extra"]
        settings["formats"] = list(self.limits.formats)
        if self.limits.rates:
            settings["rates"] = list(self.limits.rates)
        settings["prefer"] = values["prefer"]
        return settings

    def preflight(self, requests: Sequence[Request]) -> None:
        """Refuse before the first call what would fail on every one.

        Raises
        ------
        UsageError: no key, or a forced form without anything to force.
        """
        require_key(self.name, self._key_variable, self._key)
        if self._values["structured"] == "json_schema":
            require_schema(self.name, requests, "json_schema")

    async def ask(self, request: Request) -> Reply:
        """Send one question with its audio.

        Raises
        ------
        ModelError: there is no reply.
        """
        body, payload = await self.question(request)
        return with_stimulus(await self._call(body, request.idempotency_key), payload)

    async def question(self, request: Request) -> tuple[Body, Payload | None]:
        """The body that asks a question, and what was made of its clip.

        Raises
        ------
        ModelError: the clip cannot be read or encoded.
        """
        payload = None
        if request.audio is not None:
            payload = await stimulus(self.name, request, self.limits, self._values["prefer"])
        messages: list[dict[str, Any]] = []
        if request.prompt.system:
            messages.append({"role": "system", "content": request.prompt.system})
        mark = uuid.uuid4().hex
        content: Any = request.prompt.user
        if payload is not None:
            words = {"type": "text", "text": request.prompt.user}
            sound = self._audio_part(payload, mark)
            content = [sound, words] if self._values["audio_first"] else [words, sound]
        messages.append({"role": "user", "content": content})
        text = to_json(self._fields(messages, asked_schema(request.prompt)))
        if payload is None:
            return Body("application/json", text.encode()), None
        before, _, after = text.partition(mark)
        return Body("application/json", before.encode(), payload.data, after.encode()), payload

    def read(self, answer: HttpAnswer) -> Reply:
        """The reply in an answer, with its cost where prices are given.

        Raises
        ------
        ModelError: there is none in it.
        """
        hint = key_hint(self._key_variable)
        reply = read_reply(self.name, answer, self._caller.redact, hint=hint)
        return with_price(reply, self._values)

    async def complete(
        self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None
    ) -> Reply:
        """Answer text with text, for writers, judges and the text-only control.

        Raises
        ------
        ModelError: there is no reply.
        """
        plain = [{"role": message.role, "content": message.text} for message in messages]
        text = to_json(self._fields(plain, schema))
        return await self._call(Body("application/json", text.encode()), None)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._caller.aclose()

    def headers(self) -> dict[str, str]:
        """Headers of a call, the key among them."""
        headers = {"Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return headers

    async def _call(self, body: Body, idempotency_key: str | None) -> Reply:
        headers = self.headers()
        if idempotency_key:
            headers["Idempotency-Key"] = idempotency_key
        return self.read(
            await self._caller.send("POST", f"{self._url}/chat/completions", headers, body)
        )

    def _audio_part(self, payload: Payload, data: str) -> dict[str, Any]:
        form = self._values["audio_form"]
        if form == "audio_url":
            url = f"data:{payload.media_type};base64,{data}"
            return {"type": "audio_url", "audio_url": {"url": url}}
        prefix = "data:;base64," if form == "input_audio_uri" else ""
        return {
            "type": "input_audio",
            "input_audio": {"data": prefix + data, "format": payload.format},
        }

    def _fields(
        self, messages: list[dict[str, Any]], schema: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        values = self._values
        system = messages[0]["content"] if messages and messages[0]["role"] == "system" else None
        mark = ends_shared_part(values["cache"], system)
        if mark:
            shared = {"role": "system", "content": [{"type": "text", "text": system, **mark}]}
            messages = [shared, *messages[1:]]
        fields: dict[str, Any] = {"model": self._model, "messages": messages}
        fields |= cache_fields(values["cache"], system)
        fields |= {name: values[name] for name in _SENT if values[name] is not None}
        if values["modalities"]:
            fields["modalities"] = list(values["modalities"])
        if values["structured"] == "json_object":
            fields["response_format"] = {"type": "json_object"}
        elif values["structured"] == "json_schema" and schema is not None:
            form = {"name": "answer", "strict": True, "schema": dict(schema)}
            fields["response_format"] = {"type": "json_schema", "json_schema": form}
        if values["stream"]:
            fields |= {"stream": True, "stream_options": {"include_usage": True}}
        return fields | (values["extra"] or {})


async def stimulus(name: str, request: Request, limits: Limits, prefer: str = "wav") -> Payload:
    """The payload of a request, read and encoded in a thread.

    Raises
    ------
    ModelError: kind ``audio``, the clip cannot be read or encoded.
    """
    assert request.audio is not None
    try:
        return await asyncio.to_thread(encode_stimulus, request.audio, limits, prefer=prefer)
    except EarwitnessError as error:
        raise ModelError(f"{name}: {error}", kind="audio", retryable=False) from error


def open(name: str, options: Mapping[str, Any]) -> OpenAIChat:  # noqa: A001
    """Open ``openai/NAME``.

    Parameters
    ----------
    name: the model as the service calls it; may hold slashes.
    options: see :data:`OPTIONS`.

    Raises
    ------
    UsageError: an unknown or unfit option.
    """
    full = f"openai/{name}"
    values = read_options(full, options, OPTIONS)
    url = service_address(full, values["base_url"], ends="/chat/completions")
    host = urlsplit(url).hostname or ""
    if values["max_tokens"] is not None and values["max_completion_tokens"] is not None:
        raise UsageError(full, "max_tokens and max_completion_tokens are both set", "one of them")
    refuse_fields(full, values["extra"], {"model", "messages"})
    # The service answers in streams alone, and wants a data: prefix before base64.
    stream_only = host in _DASHSCOPE or host.endswith(_DASHSCOPE_WORKSPACES)
    values["cache"] = cache_choice(values["cache"], url)
    if values["stream"] is None:
        values["stream"] = stream_only
    if values["audio_form"] is None:
        values["audio_form"] = "input_audio_uri" if stream_only else "input_audio"
    if values["modalities"] is None and stream_only:
        values["modalities"] = ("text",)
    hosts = {**_KEY_VARIABLES, **({host: "DASHSCOPE_API_KEY"} if stream_only else {})}
    variable, key = service_key(full, url, values["api_key_env"], hosts)
    redact = Redactor([key] if key else [])
    return OpenAIChat(
        name=full,
        limits=limits_from(values, INFO.limits),
        _model=name,
        _url=url,
        _values=values,
        _key_variable=variable,
        _key=key,
        _caller=HttpCaller(full, values["timeout_s"], redact),
    )
