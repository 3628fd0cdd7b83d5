"""``openai-realtime/NAME``: speech models behind OpenAI's Realtime API, asked over a WebSocket for text.

Every item has a connection, and so a conversation, of its own; what one was asked never colours another,
and a broken connection costs one item one attempt. The clip goes up as mono PCM16 at 24 kHz in pieces,
without turn detection, then the words, then one response is asked for. Documented forms as of November
2026: OpenAI Realtime API, "Realtime conversations" (GA events, ``session.type: realtime``,
``output_modalities``), "Client events", "Server events"; 60 minutes a session, 15 MiB an event.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from earwitness.errors import EarwitnessError, MissingExtraError, ModelError
from earwitness.models.adapter import AdapterInfo
from earwitness.models.chat_parts import (
    AUDIO_FIRST,
    EXTRA,
    LONGEST,
    PRICES,
    TIMEOUT,
    key_hint,
    refuse_fields,
    require_key,
    service_address,
    service_key,
    service_options,
    with_price,
)
from earwitness.models.openai_realtime_reply import Listener
from earwitness.models.options import Option, read_options
from earwitness.models.protocols import AudioRef, Limits, Message, Prompt, Reply, Request
from earwitness.models.redaction import Redactor
from earwitness.models.websocket import SocketCaller, Sound, part, read_pcm

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

OPENAI_URL = "https://api.openai.com/v1"
RATE_HZ = 24_000
PIECE_BYTES = 96_000
"""Two seconds of sound in one event."""
_KEY_VARIABLES = {"api.openai.com": "OPENAI_API_KEY"}

OPTIONS: tuple[Option, ...] = (
    *service_options(OPENAI_URL, "OPENAI_API_KEY", "OpenAI"),
    Option("max_output_tokens", "integer", "most tokens of an answer", least=1),
    AUDIO_FIRST,
    TIMEOUT,
    *PRICES,
    EXTRA,
    LONGEST,
)

INFO = AdapterInfo(
    name="openai-realtime",
    form="openai-realtime/MODEL",
    summary="Speech models over the Realtime API's WebSocket, answering in text",
    options=OPTIONS,
    limits=Limits(formats=("wav",), rates=(RATE_HZ,), min_seconds=0.1, max_seconds=3600.0),
    examples=("openai-realtime/gpt-realtime",),
    key_variable="OPENAI_API_KEY",
    extra="realtime",
    modules=("websockets",),
)


@dataclass(eq=False)
class OpenAIRealtime:
    """A realtime model. Use :func:`open` to make one."""

    name: str
    limits: Limits
    _model: str
    _url: str
    _values: Mapping[str, Any]
    _key_variable: str
    _key: str | None = field(repr=False)
    _caller: SocketCaller

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that may change an answer; the key and the time-out do not."""
        values = self._values
        settings: dict[str, Any] = {
            "server": values["server"] or self._url,
            "audio_first": values["audio_first"],
        }
        settings |= {
            name: values[name]
            for name in ("max_output_tokens", "extra")
            if values[name] is not None
        }
        return settings

    def preflight(self, requests: Sequence[Request]) -> None:
        """Refuse before the first call what would fail on every one.

        Raises
        ------
        UsageError: there is no key.
        """
        del requests
        require_key(self.name, self._key_variable, self._key)

    async def ask(self, request: Request) -> Reply:
        """Open a session, send clip and words, and wait for the answer.

        Raises
        ------
        ModelError: there is no reply.
        """
        sound = None
        if request.audio is not None:
            sound = await self._sound(request.audio)
        prompt = request.prompt
        reply = await self._session(prompt.system, [prompt.user], sound)
        if sound is None:
            return reply
        return replace(reply, raw={**reply.raw, "stimulus": sound.stimulus})

    async def complete(
        self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None
    ) -> Reply:
        """Answer text with text. A form cannot be forced in this protocol.

        Raises
        ------
        ModelError: there is no reply.
        """
        del schema
        system = "\n\n".join(each.text for each in messages if each.role == "system")
        prompt = Prompt("", system or None)
        turns = [each for each in messages if each.role != "system"]
        return await self._session(prompt.system, turns, None)

    async def aclose(self) -> None:
        """Nothing to close: a connection lives for one question."""

    async def _sound(self, ref: AudioRef) -> Sound:
        try:
            return await asyncio.to_thread(read_pcm, ref, self.limits, RATE_HZ)
        except EarwitnessError as error:
            raise ModelError(f"{self.name}: {error}", kind="audio", retryable=False) from error

    async def _session(
        self, system: str | None, turns: Sequence[str | Message], sound: Sound | None
    ) -> Reply:
        from websockets.exceptions import ConnectionClosed

        began = time.perf_counter()
        asked = False
        connection: ClientConnection | None = None
        reply: Reply | None = None
        try:
            async with asyncio.timeout(self._values["timeout_s"]):
                connection = await self._connected()
                mark = uuid.uuid4().hex
                # Where the other side closes while it is being sent to, what it said comes first.
                with contextlib.suppress(ConnectionClosed):
                    for event in self._events(system, turns, sound, mark):
                        await connection.send(json.dumps(event))
                    asked = True
                listener = Listener(self.name, self._caller.redact, mark, asked)
                reply = await self._answer(connection, listener, began)
                return reply
        except ConnectionClosed as closed:
            raise self._caller.closed(closed, paid=asked) from None
        except TimeoutError:
            raise self._caller.late(self._values["timeout_s"], paid=asked) from None
        finally:
            if connection is not None:
                await part(connection, politely=reply is not None)

    async def _connected(self) -> ClientConnection:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        address = f"{self._url}/realtime?model={quote(self._model, safe='')}"
        return await self._caller.connect(address, headers)

    async def _answer(
        self, connection: ClientConnection, listener: Listener, began: float
    ) -> Reply:
        while True:
            event = self._caller.event(await connection.recv())
            reply = listener.take(event, time.perf_counter() - began)
            if reply is not None:
                return with_price(reply, self._values)

    def _events(
        self, system: str | None, turns: Sequence[str | Message], sound: Sound | None, mark: str
    ) -> Iterator[dict[str, Any]]:
        """What is sent, event by event; no base64 text of the whole clip exists at any time."""
        session: dict[str, Any] = {
            "type": "realtime",
            "output_modalities": ["text"],
            "audio": {
                "input": {
                    "format": {"type": "audio/pcm", "rate": RATE_HZ},
                    "turn_detection": None,
                }
            },
        }
        if system:
            session["instructions"] = system
        session |= self._values["extra"] or {}
        yield {"type": "session.update", "session": session}
        words = [_turn(turn) for turn in turns]
        if not self._values["audio_first"]:
            yield from words
        if sound is not None:
            for at in range(0, len(sound.pcm), PIECE_BYTES):
                piece = base64.b64encode(sound.pcm[at : at + PIECE_BYTES]).decode("ascii")
                yield {"type": "input_audio_buffer.append", "audio": piece}
            yield {"type": "input_audio_buffer.commit"}
        if self._values["audio_first"]:
            yield from words
        response: dict[str, Any] = {"metadata": {"asked": mark}}
        if self._values["max_output_tokens"] is not None:
            response["max_output_tokens"] = self._values["max_output_tokens"]
        # An error names the event it is about: this one, or another.
        yield {"type": "response.create", "event_id": mark, "response": response}


def _turn(turn: str | Message) -> dict[str, Any]:
    """A message of the conversation."""
    role = "user" if isinstance(turn, str) else turn.role
    text = turn if isinstance(turn, str) else turn.text
    kind = "output_text" if role == "assistant" else "input_text"
    item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    return {"type": "conversation.item.create", "item": item}


def open(name: str, options: Mapping[str, Any]) -> OpenAIRealtime:  # noqa: A001
    """Open ``openai-realtime/NAME``.

    Raises
    ------
    MissingExtraError: the packages of [realtime] are not installed.
    UsageError: an unknown or unfit option.
    """
    from importlib.util import find_spec

    full = f"openai-realtime/{name}"
    values = read_options(full, options, OPTIONS)
    if find_spec("websockets") is None:
        raise MissingExtraError(full, "realtime")
    address = values["base_url"]
    if address.startswith(("ws://", "wss://")):
        address = "http" + address.removeprefix("ws")
    url = service_address(full, address, ends="/realtime")
    refuse_fields(full, values["extra"], {"type", "instructions", "output_modalities"})
    variable, key = service_key(full, url, values["api_key_env"], _KEY_VARIABLES)
    limits = INFO.limits
    if values["max_seconds"] is not None:
        limits = replace(limits, max_seconds=values["max_seconds"])
    return OpenAIRealtime(
        name=full,
        limits=limits,
        _model=name,
        _url=url,
        _values=values,
        _key_variable=variable,
        _key=key,
        _caller=SocketCaller(full, Redactor([key] if key else []), key_hint(variable)),
    )
