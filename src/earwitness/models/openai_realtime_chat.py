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
    EXTRA,
    PRICES,
    SERVER,
    TIMEOUT,
    key_hint,
    refuse_fields,
    require_key,
    service_address,
    service_key,
    with_price,
)
from earwitness.models.http import (
    CONNECT_TIMEOUT_S,
    MAX_REPLY_BYTES,
    HttpAnswer,
    certificate_problem,
    classified,
    error_from,
    is_loopback,
    place_of,
)
from earwitness.models.openai_realtime_reply import Listener
from earwitness.models.openai_reply import bad_reply, status_of
from earwitness.models.options import Option, read_options
from earwitness.models.payload import encode_stimulus
from earwitness.models.protocols import AudioRef, Limits, Message, Prompt, Reply, Request
from earwitness.models.redaction import Redactor

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection
    from websockets.exceptions import ConnectionClosed

OPENAI_URL = "https://api.openai.com/v1"
RATE_HZ = 24_000
PIECE_BYTES = 96_000
"""Two seconds of sound in one event."""
GOODBYE_S = 1.0
_KEY_VARIABLES = {"api.openai.com": "OPENAI_API_KEY"}

OPTIONS: tuple[Option, ...] = (
    Option("base_url", "text", "address of the service, up to and with /v1", OPENAI_URL),
    Option(
        "api_key_env",
        "text",
        "environment variable that holds the key; empty: send none. Unset: OPENAI_API_KEY for OpenAI's "
        "host, none for other hosts",
    ),
    SERVER,
    Option("max_output_tokens", "integer", "most tokens of an answer", least=1),
    Option("audio_first", "yes/no", "put the audio before the words of the prompt", False),
    TIMEOUT,
    *PRICES,
    EXTRA,
    Option("max_seconds", "number", "longest clip the model takes, in seconds", least=0.0),
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


@dataclass(frozen=True, slots=True)
class _Sound:
    """A clip as the service wants it; ``note`` says what was done to the file."""

    pcm: bytes
    note: str


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
    _redact: Redactor

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
        note = {"format": "pcm16", "rate_hz": RATE_HZ, "bytes": len(sound.pcm)}
        return _with_raw(reply, {"stimulus": note | ({"note": sound.note} if sound.note else {})})

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

    async def _sound(self, ref: AudioRef) -> _Sound:
        try:
            return await asyncio.to_thread(_pcm, ref, self.limits)
        except EarwitnessError as error:
            raise ModelError(f"{self.name}: {error}", kind="audio", retryable=False) from error

    async def _session(
        self, system: str | None, turns: Sequence[str | Message], sound: _Sound | None
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
                    for text in self._events(system, turns, sound, mark):
                        await connection.send(text)
                    asked = True
                reply = await self._answer(connection, mark, began)
                return reply
        except ConnectionClosed as closed:
            raise self._closed(closed, paid=asked) from None
        except TimeoutError:
            raise ModelError(
                f"{self.name}: no complete answer within {self._values['timeout_s']:g} s",
                kind="timeout",
                retryable=True,
                maybe_paid=asked,
            ) from None
        finally:
            if connection is not None:
                await _part(connection, politely=reply is not None)

    async def _connected(self) -> ClientConnection:
        from websockets.exceptions import InvalidHandshake, InvalidStatus

        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        address = f"{self._url}/realtime?model={quote(self._model, safe='')}"
        try:
            return await _connect_once("ws" + address.removeprefix("http"), headers)
        except InvalidStatus as error:
            raise self._refused(error) from None
        except InvalidHandshake as error:
            said = self._redact.excerpt(str(error))
            raise self._unconnected(f"no WebSocket at {place_of(self._url)}: {said}") from None
        except (TimeoutError, OSError, EOFError) as error:
            if certificate_problem(error):
                said = self._redact.excerpt(str(error))
                raise self._unconnected(
                    f"the certificate of {place_of(self._url)} is not trusted: {said}", kind="tls"
                ) from None
            said = self._redact.excerpt(str(error)) or type(error).__name__
            raise self._unconnected(f"cannot connect to {place_of(self._url)}: {said}") from None

    async def _answer(self, connection: ClientConnection, mark: str, began: float) -> Reply:
        listener = Listener(self.name, self._redact, mark)
        while True:
            text = await connection.recv()
            event = _parsed(text)
            if event is None:
                raise ModelError(
                    f"{self.name}: an event that is no JSON object: "
                    f"{self._redact.excerpt(str(text)[:2000])}",
                    kind="bad_reply",
                    retryable=True,
                    maybe_paid=True,
                )
            reply = listener.take(event, time.perf_counter() - began)
            if reply is not None:
                return with_price(reply, self._values)

    def _events(
        self, system: str | None, turns: Sequence[str | Message], sound: _Sound | None, mark: str
    ) -> Iterator[str]:
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
        yield json.dumps({"type": "session.update", "session": session})
        words = [_turn(turn) for turn in turns]
        if not self._values["audio_first"]:
            yield from words
        if sound is not None:
            for at in range(0, len(sound.pcm), PIECE_BYTES):
                piece = base64.b64encode(sound.pcm[at : at + PIECE_BYTES]).decode("ascii")
                yield json.dumps({"type": "input_audio_buffer.append", "audio": piece})
            yield json.dumps({"type": "input_audio_buffer.commit"})
        if self._values["audio_first"]:
            yield from words
        response: dict[str, Any] = {"metadata": {"asked": mark}}
        if self._values["max_output_tokens"] is not None:
            response["max_output_tokens"] = self._values["max_output_tokens"]
        yield json.dumps({"type": "response.create", "response": response})

    def _refused(self, error: Any) -> ModelError:
        """An HTTP answer where the connection should have been upgraded."""
        headers = {name.lower(): value for name, value in error.response.headers.raw_items()}
        body = error.response.body or b""
        answer = HttpAnswer(error.response.status_code, headers, bytes(body), 0.0)
        if 200 <= answer.status < 300:
            problem = bad_reply(self.name, answer, "is no WebSocket", self._redact)
        else:
            problem = error_from(self.name, answer, self._redact, hint=key_hint(self._key_variable))
        problem.maybe_paid = False
        return problem

    def _unconnected(self, what: str, *, kind: str = "connection") -> ModelError:
        return ModelError(f"{self.name}: {what}", kind=kind, retryable=kind != "tls")

    def _closed(self, closed: ConnectionClosed, *, paid: bool) -> ModelError:
        """The connection ended before the answer; its reason may say why."""
        code = closed.rcvd.code if closed.rcvd else None
        reason = closed.rcvd.reason if closed.rcvd else ""
        words = set(reason.lower().replace(":", ".").split("."))
        status = status_of(words)
        kind, retryable = "connection", True
        if status is not None:
            kind, retryable = classified(status, words)
        elif code == 1009:
            kind, retryable = "too_large", False
        said = f"code {code}" if code is not None else "without a word"
        said += f": {self._redact.excerpt(reason)}" if reason else ""
        return ModelError(
            f"{self.name}: the connection was closed before the answer was complete ({said})",
            kind=kind,
            retryable=retryable,
            status=status,
            maybe_paid=paid,
        )


async def _connect_once(url: str, headers: Mapping[str, str]) -> ClientConnection:
    """One attempt; a redirect is an answer, as the key must not follow it."""
    from websockets.asyncio.client import connect

    class Once(connect):
        def process_redirect(self, exc: Exception) -> Exception | str:
            return exc

    return await Once(
        url,
        additional_headers=dict(headers),
        user_agent_header=_user_agent(),
        compression=None,
        proxy=None if is_loopback(url) else True,
        open_timeout=CONNECT_TIMEOUT_S,
        max_size=MAX_REPLY_BYTES,
    )


async def _part(connection: ClientConnection, *, politely: bool) -> None:
    """Close; a goodbye that is not answered must not cost the item its reply."""
    if politely:
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(GOODBYE_S):
                await connection.close()
    connection.transport.abort()


def _user_agent() -> str:
    from earwitness import __version__

    return f"earwitness/{__version__}"


def _pcm(ref: AudioRef, limits: Limits) -> _Sound:
    """A clip as mono PCM16 at 24 kHz. Blocking."""
    import numpy as np

    from earwitness.audio.io import decode_audio, to_mono

    payload = encode_stimulus(ref, limits)
    audio = decode_audio(payload.data, name=str(ref.path))
    notes = [payload.note] if payload.note else []
    if audio.samples.ndim > 1:
        notes.append("mixed to one channel")
    samples = np.asarray(to_mono(audio).samples, dtype=np.float64)
    whole = np.clip(np.rint(samples * 32_768.0), -32_768, 32_767).astype("<i2")
    return _Sound(whole.tobytes(), "; ".join(notes))


def _turn(turn: str | Message) -> str:
    """A message of the conversation."""
    role = "user" if isinstance(turn, str) else turn.role
    text = turn if isinstance(turn, str) else turn.text
    kind = "output_text" if role == "assistant" else "input_text"
    item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    return json.dumps({"type": "conversation.item.create", "item": item})


def _parsed(text: str | bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _with_raw(reply: Reply, more: Mapping[str, Any]) -> Reply:
    return replace(reply, raw={**reply.raw, **more})


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
        _redact=Redactor([key] if key else []),
    )
