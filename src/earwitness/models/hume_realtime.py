"""``hume-realtime/audio``: Hume's Expression Measurement, streamed over a WebSocket.

The clip goes up as frames of 100 ms at the pace it would be played, as the service demands; it measures each
stretch of speech every few seconds and at its end. What it says is read as the answer of an upload
(``endpoint/hume``) is, so that both come to the same scores. Written from the vendor's reference, "Audio realtime",
"Sessions" and "Stream audio" as of November 2026, and its Python SDK 0.1.0; never run against the service, whose
release is limited.

Nothing is lost in silence: a session in which a frame was turned away, or that told of more measurements than came,
is a failed attempt and no reply.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from earwitness.errors import EarwitnessError, MissingExtraError, ModelError, UsageError
from earwitness.models.adapter import AdapterInfo
from earwitness.models.chat_parts import (
    LONGEST,
    key_hint,
    require_key,
    service_address,
    service_key,
    service_options,
)
from earwitness.models.openai_reply import count_or_none, text_or
from earwitness.models.options import Option, read_options
from earwitness.models.protocols import AudioRef, Limits, Reply, Request
from earwitness.models.redaction import Redactor
from earwitness.models.websocket import SocketCaller, Sound, part, read_pcm

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

HUME_URL = "https://api.cloud.hume.ai/v1"
RATE_HZ = 16_000
FRAME_S = 0.1
FRAME_BYTES = round(FRAME_S * RATE_HZ) * 2
PLACE = "/expression/audio/realtime"
_KEY_VARIABLES = {"api.cloud.hume.ai": "HUME_API_KEY"}
_ERRORS: Mapping[str, tuple[str, bool]] = {
    "rate_limited": ("rate_limit", True),
    "internal_error": ("server", True),
    "config_invalid": ("bad_request", False),
    "message_invalid": ("bad_request", False),
    "invalid_audio_frame": ("bad_request", False),
    "message_too_large": ("too_large", False),
}
"""Kind of an error and whether another session may help; one with another name is the server's."""
_ENDINGS: Mapping[str, str] = {"server_shutdown": "connection", "idle_timeout": "timeout"}

OPTIONS: tuple[Option, ...] = (
    *service_options(HUME_URL, "HUME_API_KEY", "Hume"),
    Option(
        "measurement_timer_ms",
        "integer",
        "milliseconds of speech between two measurements, 3000 to 10000; unset: the service decides (3000)",
        least=3000,
    ),
    Option(
        "speed",
        "number",
        "seconds of sound sent a second; the service takes no more than 1",
        1.0,
        least=0.1,
    ),
    Option(
        "timeout_s",
        "number",
        "longest wait for the answer, in seconds, besides the time the clip takes to be sent",
        60.0,
        least=0.05,
    ),
    LONGEST,
)

INFO = AdapterInfo(
    name="hume-realtime",
    form="hume-realtime/audio",
    summary="Hume Expression Measurement over a WebSocket: a clip takes as long as it lasts",
    options=OPTIONS,
    # The service sets no longest session; a call of a run ends after ten minutes.
    limits=Limits(formats=("wav",), rates=(RATE_HZ,), max_seconds=480.0, needs_audio=True),
    examples=("hume-realtime/audio",),
    key_variable="HUME_API_KEY",
    extra="realtime",
    modules=("websockets",),
)


@dataclass
class Session:
    """What a session has said so far. ``sent`` counts the frames that went out, of ``frames`` in all."""

    service: str
    redact: Redactor
    frames: int
    sent: int = 0
    identity: str | None = None
    measurements: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    promised: int | None = None
    """Measurements the service says it made; None until it has closed the session."""

    def take(self, event: Mapping[str, Any]) -> bool:
        """True once all is said; events of kinds that are not known are let be.

        Raises
        ------
        ModelError: the event says that there will be no whole answer.
        """
        kind = text_or(event.get("type"))
        if kind == "session.created":
            self.identity = text_or(event.get("session_id")) or None
        elif kind == "measurement.result":
            number = count_or_none(event.get("measurement_id"))
            if number is None:
                raise self.failed("a measurement without its number", "bad_reply")
            self.measurements.setdefault(number, event)
        elif kind == "error":
            code = text_or(event.get("code"))
            said = self.redact.excerpt(f"{code or 'error'}: {text_or(event.get('message'))}")
            found, retryable = _ERRORS.get(code, ("server", True))
            raise self.failed(f"the service reports {said}", found, retryable=retryable)
        elif kind == "session.closed":
            self._close(event)
        return self.promised is not None and len(self.measurements) >= self.promised

    def _close(self, event: Mapping[str, Any]) -> None:
        reason = text_or(event.get("reason"))
        if reason != "client_request":
            said = self.redact.excerpt(reason or "no reason")
            raise self.failed(
                f"the service ended the session ({said})", _ENDINGS.get(reason, "server")
            )
        taken, made = _inner(event, "received", "frames"), _inner(event, "produced", "measurements")
        if taken is None or made is None:
            raise self.failed("the session was closed without its totals", "bad_reply")
        if taken != self.frames:
            what = f"the service took {taken} of the clip's {self.frames} frames"
            raise self.failed(what, "bad_reply")
        self.promised = made

    def failed(self, what: str, kind: str, *, retryable: bool = True) -> ModelError:
        """An error; the service charges for sound it took, whatever came of it."""
        return ModelError(
            f"{self.service}: {what}", kind=kind, retryable=retryable, maybe_paid=self.sent > 0
        )


@dataclass(eq=False)
class HumeRealtime:
    """The service. Use :func:`open` to make one."""

    name: str
    limits: Limits
    _url: str
    _values: Mapping[str, Any]
    _key_variable: str
    _key: str | None = field(repr=False)
    _caller: SocketCaller

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that may change an answer; how fast a clip is sent does not."""
        timer = self._values["measurement_timer_ms"]
        settings: dict[str, Any] = {"server": self._values["server"] or self._url}
        return settings | ({} if timer is None else {"measurement_timer_ms": timer})

    @property
    def label_map(self) -> str | None:
        """The label map proposed for its native labels, which are those of an upload."""
        return "vendor-default"

    def preflight(self, requests: Sequence[Request]) -> None:
        """Refuse before the first call what would fail on every one.

        Raises
        ------
        UsageError: there is no key.
        """
        del requests
        require_key(self.name, self._key_variable, self._key)

    async def ask(self, request: Request) -> Reply:
        """Stream one clip and gather what is measured; the words of the question are not sent.

        Raises
        ------
        ModelError: there is no reply.
        """
        if request.audio is None:
            raise ModelError(
                f"{self.name}: takes audio, and this item has none",
                kind="bad_request",
                retryable=False,
            )
        sound = await self._sound(request.audio)
        frames = -(-len(sound.pcm) // FRAME_BYTES)
        session = Session(self.name, self._caller.redact, frames)
        began = time.perf_counter()
        await self._listen(session, sound)
        reply = self._reply(session)
        return replace(
            reply,
            latency_s=time.perf_counter() - began,
            provider_id=self._caller.redact(session.identity) if session.identity else None,
            raw={**reply.raw, "stimulus": sound.stimulus},
        )

    async def aclose(self) -> None:
        """Nothing to close: a connection lives for one clip."""

    async def _sound(self, ref: AudioRef) -> Sound:
        try:
            return await asyncio.to_thread(read_pcm, ref, self.limits, RATE_HZ)
        except EarwitnessError as error:
            raise ModelError(f"{self.name}: {error}", kind="audio", retryable=False) from error

    async def _listen(self, session: Session, sound: Sound) -> None:
        """Send the clip and take in what is said meanwhile and after it."""
        from websockets.exceptions import ConnectionClosed

        # A loaded machine sends more slowly than the clip plays; that must not count against the answer.
        patience_s = 1.5 * sound.seconds / self._values["speed"] + self._values["timeout_s"]
        headers = {"X-Hume-Api-Key": self._key} if self._key else {}
        connection: ClientConnection | None = None
        sender: asyncio.Task[None] | None = None
        done = False
        try:
            async with asyncio.timeout(patience_s):
                connection = await self._caller.connect(f"{self._url}{PLACE}", headers)
                sender = asyncio.create_task(self._send(connection, session, sound))
                while not done:
                    done = session.take(self._caller.event(await connection.recv()))
        except ConnectionClosed as closed:
            raise self._caller.closed(closed, paid=session.sent > 0) from None
        except TimeoutError:
            raise self._caller.late(patience_s, paid=session.sent > 0) from None
        finally:
            if sender is not None:
                sender.cancel()
                await asyncio.gather(sender, return_exceptions=True)
            if connection is not None:
                await part(connection, politely=done)

    async def _send(self, connection: ClientConnection, session: Session, sound: Sound) -> None:
        timer = self._values["measurement_timer_ms"]
        if timer is not None:
            # Only before the first frame; the service ends a session that changes its mind.
            await connection.send(
                json.dumps({"type": "session.update", "measurement_timer_ms": timer})
            )
        for at in range(0, len(sound.pcm), FRAME_BYTES):
            session.sent += 1
            await connection.send(sound.pcm[at : at + FRAME_BYTES])
            # Never to catch up: a frame that comes faster than it plays is turned away.
            await asyncio.sleep(FRAME_S / self._values["speed"])
        await connection.send(json.dumps({"type": "session.close"}))

    def _reply(self, session: Session) -> Reply:
        from earwitness.models.endpoint_answer import AnswerError, read_answer
        from earwitness.models.endpoint_schema import load_description

        measured = [session.measurements[number] for number in sorted(session.measurements)]
        try:
            read = read_answer(load_description("hume").answer, {"measurements": measured})
        except AnswerError as problem:
            said = self._caller.redact.excerpt(str(problem))
            raise session.failed(f"the measurements have {said}", "bad_reply") from None
        redact = self._caller.redact
        raw = {**read.raw, "voice_attributes": [each.get("voice_attributes") for each in measured]}
        scores = {redact(name): score for name, score in (read.scores or {}).items()}
        return Reply(text=None, scores=scores, raw=redact.tree(raw))


def _inner(event: Mapping[str, Any], outer: str, name: str) -> int | None:
    inner = event.get(outer)
    return count_or_none(inner.get(name)) if isinstance(inner, dict) else None


def open(name: str, options: Mapping[str, Any]) -> HumeRealtime:  # noqa: A001
    """Open ``hume-realtime/audio``.

    Raises
    ------
    MissingExtraError: the packages of [realtime] are not installed.
    UsageError: another name, or an unknown or unfit option.
    """
    from importlib.util import find_spec

    full = f"hume-realtime/{name}"
    if name != "audio":
        raise UsageError(f"model {full!r}", "there is no such stream", "hume-realtime/audio")
    values = read_options(full, options, OPTIONS)
    if find_spec("websockets") is None:
        raise MissingExtraError(full, "realtime")
    address = values["base_url"]
    if address.startswith(("ws://", "wss://")):
        address = "http" + address.removeprefix("ws")
    url = service_address(full, address, ends=PLACE)
    variable, key = service_key(full, url, values["api_key_env"], _KEY_VARIABLES)
    limits = INFO.limits
    if values["max_seconds"] is not None:
        limits = replace(limits, max_seconds=values["max_seconds"])
    return HumeRealtime(
        name=full,
        limits=limits,
        _url=url,
        _values=values,
        _key_variable=variable,
        _key=key,
        _caller=SocketCaller(full, Redactor([key] if key else []), key_hint(variable)),
    )
