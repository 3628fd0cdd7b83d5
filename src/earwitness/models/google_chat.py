"""``google/NAME``: Gemini's ``generateContent`` with audio, inline or by the Files API.

Speaks ``POST {base_url}/models/{model}:generateContent`` with the key in ``x-goog-api-key``. Documented
forms as of November 2026: Gemini API reference "Generating content" and "Files", guides "Audio
understanding" (formats, 9.5 hours a prompt), "Files API" (upload above 100 MB a request; it was 20 MB
before, which is where uploading begins here) and "Structured outputs".
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from earwitness.errors import UsageError
from earwitness.models.adapter import AdapterInfo
from earwitness.models.chat_parts import (
    AUDIO_FIRST,
    EXTRA,
    PREFER,
    PRICES,
    SAMPLING,
    TIMEOUT,
    asked_schema,
    key_hint,
    refuse_fields,
    require_key,
    require_schema,
    service_address,
    service_key,
    service_options,
    with_price,
    with_stimulus,
)
from earwitness.models.google_files import Files, Uploaded
from earwitness.models.google_reply import read_generated
from earwitness.models.google_schema import response_schema
from earwitness.models.http import Body, HttpAnswer, HttpCaller
from earwitness.models.openai_chat import stimulus
from earwitness.models.openai_reply import to_json
from earwitness.models.options import LIMIT_OPTIONS, Option, limits_from, read_options
from earwitness.models.payload import Payload
from earwitness.models.protocols import Limits, Message, Reply, Request
from earwitness.models.redaction import Redactor

if TYPE_CHECKING:
    from earwitness.models.google_batch import GoogleBatches

GOOGLE_URL = "https://generativelanguage.googleapis.com/v1beta"
_KEY_VARIABLES = {"generativelanguage.googleapis.com": "GEMINI_API_KEY"}
INLINE_BYTES = 20_000_000
"""Bytes of a whole request up to which audio is sent along: within both limits the guide has named."""
_MEDIA_TYPES = {"mp3": "audio/mp3"}

OPTIONS: tuple[Option, ...] = (
    *service_options(GOOGLE_URL, "GEMINI_API_KEY", "Google", upto="the version"),
    *SAMPLING,
    Option("top_k", "integer", "sample among the k likeliest", least=1),
    Option("seed", "integer", "seed for sampling"),
    Option(
        "max_output_tokens", "integer", "most tokens of an answer; thinking counts too", least=1
    ),
    Option("thinking_level", "text", "how much the model thinks: minimal, low, medium, high"),
    Option("thinking_budget", "integer", "tokens of thinking, for models that have a budget"),
    AUDIO_FIRST,
    PREFER,
    Option(
        "structured",
        "text",
        "ask the service to force the answer's form: response_schema (its own subset) or json_schema",
        "none",
        choices=("none", "response_schema", "json_schema"),
    ),
    Option(
        "safety",
        "text",
        "threshold of all adjustable safety filters, such as BLOCK_NONE; unset: the service's own",
        choices=(
            "BLOCK_NONE",
            "BLOCK_ONLY_HIGH",
            "BLOCK_MEDIUM_AND_ABOVE",
            "BLOCK_LOW_AND_ABOVE",
            "OFF",
        ),
    ),
    Option(
        "inline_bytes",
        "integer",
        "requests larger than this upload their audio by the Files API first",
        INLINE_BYTES,
        least=0,
    ),
    Option("keep_files", "yes/no", "leave uploaded clips with the service (48 hours)", False),
    TIMEOUT,
    *PRICES,
    EXTRA,
    *LIMIT_OPTIONS,
)

INFO = AdapterInfo(
    name="google",
    form="google/MODEL",
    summary="Gemini with audio: inline, or by the Files API above the inline limit",
    options=OPTIONS,
    limits=Limits(
        formats=("wav", "mp3", "aiff", "ogg", "flac"),
        max_seconds=34_200.0,
        max_bytes=2_000_000_000,
    ),
    examples=("google/gemini-3.5-flash", "google/gemini-2.5-pro -M temperature=0"),
    key_variable="GEMINI_API_KEY",
)

_SAMPLING = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
    "max_output_tokens": "maxOutputTokens",
}
_SAFETY_CATEGORIES = ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT")


@dataclass(frozen=True, slots=True)
class Question:
    """The body that asks a question, what was made of its clip, and the file where that was uploaded."""

    body: Body
    payload: Payload | None = None
    file: Uploaded | None = None


@dataclass(eq=False)
class GoogleChat:
    """A Gemini model. Use :func:`open` to make one."""

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
        """All that may change an answer. Where the audio travels does not."""
        values = self._values
        names = (*_SAMPLING, "thinking_level", "thinking_budget", "safety", "extra")
        settings = {name: values[name] for name in names if values[name] is not None}
        settings["server"] = values["server"] or self._url
        settings |= {name: values[name] for name in ("audio_first", "structured", "prefer")}
        settings["formats"] = list(self.limits.formats)
        if self.limits.rates:
            settings["rates"] = list(self.limits.rates)
        return settings

    def preflight(self, requests: Sequence[Request]) -> None:
        """Refuse before the first call what would fail on every one.

        Raises
        ------
        UsageError: no key, or a forced form without anything to force or that cannot be said.
        """
        require_key(self.name, self._key_variable, self._key)
        structured = self._values["structured"]
        if structured == "none":
            return
        require_schema(self.name, requests, structured)
        for request in requests:
            self._form(asked_schema(request.prompt))

    async def ask(self, request: Request) -> Reply:
        """Send one question with its audio.

        Raises
        ------
        ModelError: there is no reply.
        """
        question = await self.question(request)
        deleted = False
        try:
            reply = await self._call(question.body)
        finally:
            if question.file is not None:
                deleted = await self.forget(question.file.name)
        if question.file is None:
            return with_stimulus(reply, question.payload)
        return with_stimulus(reply, question.payload, uploaded=True, deleted=deleted)

    async def question(self, request: Request) -> Question:
        """What asks a question, with its audio in it or, where that is too large, uploaded first.

        Raises
        ------
        ModelError: the audio cannot be read or uploaded.
        """
        payload = None
        if request.audio is not None:
            payload = await stimulus(self.name, request, self.limits, self._values["prefer"])
        system = request.prompt.system
        mark = uuid.uuid4().hex
        words: dict[str, Any] = {"text": request.prompt.user}
        sound: dict[str, Any] | None = None
        if payload is not None:
            media_type = _media_type(payload)
            sound = {"inlineData": {"mimeType": media_type, "data": mark}}
        schema = asked_schema(request.prompt)
        text = to_json(self._fields(self._turn(words, sound), system, schema))
        if payload is None:
            return Question(Body("application/json", text.encode()))
        before, _, after = text.partition(mark)
        body = Body("application/json", before.encode(), payload.data, after.encode())
        if body.length <= self._values["inline_bytes"]:
            return Question(body, payload)
        file = await self.files().upload(payload.data, _media_type(payload))
        sound = {"fileData": {"mimeType": _media_type(payload), "fileUri": file.uri}}
        text = to_json(self._fields(self._turn(words, sound), system, schema))
        return Question(Body("application/json", text.encode()), payload, file)

    def read(self, answer: HttpAnswer) -> Reply:
        """The reply in an answer, with its cost where prices are given.

        Raises
        ------
        ModelError: there is none in it.
        """
        hint = key_hint(self._key_variable)
        reply = read_generated(self.name, answer, self._caller.redact, hint=hint)
        return with_price(reply, self._values)

    def batches(self) -> GoogleBatches:
        """The Batch API of this model."""
        from earwitness.models.google_batch import GoogleBatches

        return GoogleBatches(
            self, self._caller, self._url, self._model, key_hint(self._key_variable)
        )

    async def complete(
        self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None
    ) -> Reply:
        """Answer text with text, for writers, judges and the text-only control.

        Raises
        ------
        ModelError: there is no reply.
        """
        system = "\n\n".join(message.text for message in messages if message.role == "system")
        turns = [
            {
                "role": "model" if message.role == "assistant" else "user",
                "parts": [{"text": message.text}],
            }
            for message in messages
            if message.role != "system"
        ]
        text = to_json(self._fields(turns, system or None, schema))
        return await self._call(Body("application/json", text.encode()))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._caller.aclose()

    async def forget(self, name: str) -> bool:
        """Delete an uploaded clip, unless it is to be kept; False where it is still there."""
        return False if self._values["keep_files"] else await self.files().delete(name)

    def files(self) -> Files:
        """The Files API, as this model's key may use it."""
        return Files(
            self.name, self._url, self.headers(), self._caller, self._values["timeout_s"],
            key_hint(self._key_variable),
        )  # fmt: skip

    def headers(self) -> dict[str, str]:
        """Headers of a call, the key among them."""
        headers = {"Accept": "application/json"}
        if self._key:
            headers["x-goog-api-key"] = self._key
        return headers

    async def _call(self, body: Body) -> Reply:
        url = f"{self._url}/models/{self._model}:generateContent"
        return self.read(await self._caller.send("POST", url, self.headers(), body))

    def _turn(self, words: dict[str, Any], sound: dict[str, Any] | None) -> list[dict[str, Any]]:
        parts = [words]
        if sound is not None:
            parts = [sound, words] if self._values["audio_first"] else [words, sound]
        return [{"role": "user", "parts": parts}]

    def _fields(
        self, turns: list[dict[str, Any]], system: str | None, schema: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        values = self._values
        fields: dict[str, Any] = {"contents": turns}
        if system:
            fields["systemInstruction"] = {"parts": [{"text": system}]}
        config = {
            field: values[name] for name, field in _SAMPLING.items() if values[name] is not None
        }
        thinking: dict[str, Any] = {}
        if values["thinking_level"] is not None:
            thinking["thinkingLevel"] = values["thinking_level"]
        if values["thinking_budget"] is not None:
            thinking["thinkingBudget"] = values["thinking_budget"]
        if thinking:
            config["thinkingConfig"] = thinking
        config |= self._form(schema)
        if config:
            fields["generationConfig"] = config
        if values["safety"]:
            fields["safetySettings"] = [
                {"category": f"HARM_CATEGORY_{name}", "threshold": values["safety"]}
                for name in _SAFETY_CATEGORIES
            ]
        extra = dict(values["extra"] or {})
        if isinstance(extra.get("generationConfig"), Mapping):
            # Beside what the options set, not in place of it.
            extra["generationConfig"] = {**config, **extra["generationConfig"]}
        return fields | extra

    def _form(self, schema: Mapping[str, Any] | None) -> dict[str, Any]:
        structured = self._values["structured"]
        if structured == "none" or schema is None:
            return {}
        if structured == "json_schema":
            form: dict[str, Any] = {"responseJsonSchema": dict(schema)}
        else:
            try:
                form = {"responseSchema": response_schema(schema)}
            except ValueError as error:
                raise UsageError(
                    self.name,
                    f"structured=response_schema, but {error}",
                    "a schema without",
                    "Use -M structured=json_schema.",
                ) from None
        return {"responseMimeType": "application/json", **form}


def _media_type(payload: Payload) -> str:
    return _MEDIA_TYPES.get(payload.format, payload.media_type)


def open(name: str, options: Mapping[str, Any]) -> GoogleChat:  # noqa: A001
    """Open ``google/NAME``.

    Parameters
    ----------
    name: the model as the service calls it, with or without ``models/``.
    options: see :data:`OPTIONS`.

    Raises
    ------
    UsageError: an unknown or unfit option.

    Examples
    --------
    >>> open("gemini-3.5-flash", {"temperature": "0"}).settings["temperature"]
    0.0
    """
    full = f"google/{name}"
    values = read_options(full, options, OPTIONS)
    url = service_address(full, values["base_url"])
    refuse_fields(full, values["extra"], {"contents", "systemInstruction"})
    model = name.removeprefix("models/")
    if any(sign in model for sign in "?#: "):
        raise UsageError(
            f"model {full!r}", "is no name of a model", "such as google/gemini-3.5-flash"
        )
    variable, key = service_key(full, url, values["api_key_env"], _KEY_VARIABLES)
    return GoogleChat(
        name=full,
        limits=limits_from(values, INFO.limits),
        _model=model,
        _url=url,
        _values=values,
        _key_variable=variable,
        _key=key,
        _caller=HttpCaller(full, values["timeout_s"], Redactor([key] if key else [])),
    )
