"""One WebSocket connection for one question, and what its failures mean.

Shared by the adapters of realtime services. A connection is attempted once; what stands in its way, and how it
ended, is raised as :class:`~earwitness.errors.ModelError` of the same kinds as over HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from earwitness.errors import ModelError
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
from earwitness.models.openai_reply import bad_reply, status_of
from earwitness.models.payload import encode_stimulus
from earwitness.models.protocols import AudioRef, Limits
from earwitness.models.redaction import Redactor

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection
    from websockets.exceptions import ConnectionClosed

GOODBYE_S = 1.0


@dataclass(frozen=True, slots=True)
class Sound:
    """A clip as mono PCM16, ``rate_hz`` samples a second; ``note`` says what was done to the file."""

    pcm: bytes
    rate_hz: int
    note: str

    @property
    def stimulus(self) -> dict[str, Any]:
        """What is kept with a reply of what was sent."""
        about = {"format": "pcm16", "rate_hz": self.rate_hz, "bytes": len(self.pcm)}
        return about | ({"note": self.note} if self.note else {})

    @property
    def seconds(self) -> float:
        return len(self.pcm) / 2 / self.rate_hz


@dataclass(frozen=True)
class SocketCaller:
    """Opens connections for one model.

    Parameters
    ----------
    service: the model's name, for messages.
    redact: cleans everything that is quoted.
    hint: what the user can do about a key that is refused.
    """

    service: str
    redact: Redactor
    hint: str

    async def connect(self, url: str, headers: Mapping[str, str]) -> ClientConnection:
        """Connect to an http(s) URL's WebSocket, once.

        Raises
        ------
        ModelError: there is no connection, which cannot have been paid for.
        """
        from websockets.exceptions import InvalidHandshake, InvalidStatus

        try:
            return await _connect_once("ws" + url.removeprefix("http"), headers)
        except InvalidStatus as error:
            raise self._refused(error) from None
        except InvalidHandshake as error:
            said = self.redact.excerpt(str(error))
            raise self._unconnected(f"no WebSocket at {place_of(url)}: {said}") from None
        except (TimeoutError, OSError, EOFError) as error:
            said = self.redact.excerpt(str(error)) or type(error).__name__
            if certificate_problem(error):
                what = f"the certificate of {place_of(url)} is not trusted: {said}"
                raise self._unconnected(what, kind="tls") from None
            raise self._unconnected(f"cannot connect to {place_of(url)}: {said}") from None

    def event(self, text: str | bytes) -> dict[str, Any]:
        """An event of the service.

        Raises
        ------
        ModelError: it is no JSON object.
        """
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict):
            said = self.redact.excerpt(str(text)[:2000])
            raise ModelError(
                f"{self.service}: an event that is no JSON object: {said}",
                kind="bad_reply",
                retryable=True,
                maybe_paid=True,
            )
        return event

    def late(self, seconds: float, *, paid: bool) -> ModelError:
        """What it is when patience ended."""
        return ModelError(
            f"{self.service}: no complete answer within {seconds:g} s",
            kind="timeout",
            retryable=True,
            maybe_paid=paid,
        )

    def closed(self, closed: ConnectionClosed, *, paid: bool) -> ModelError:
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
        said += f": {self.redact.excerpt(reason)}" if reason else ""
        return ModelError(
            f"{self.service}: the connection was closed before the answer was complete ({said})",
            kind=kind,
            retryable=retryable,
            status=status,
            maybe_paid=paid,
        )

    def _refused(self, error: Any) -> ModelError:
        """An HTTP answer where the connection should have been upgraded."""
        headers = {name.lower(): value for name, value in error.response.headers.raw_items()}
        body = error.response.body or b""
        answer = HttpAnswer(error.response.status_code, headers, bytes(body), 0.0)
        if 200 <= answer.status < 300:
            problem = bad_reply(self.service, answer, "is no WebSocket", self.redact)
        else:
            problem = error_from(self.service, answer, self.redact, hint=self.hint)
        problem.maybe_paid = False
        return problem

    def _unconnected(self, what: str, *, kind: str = "connection") -> ModelError:
        return ModelError(f"{self.service}: {what}", kind=kind, retryable=kind != "tls")


async def _connect_once(url: str, headers: Mapping[str, str]) -> ClientConnection:
    """One attempt; a redirect is an answer, as the key must not follow it."""
    from websockets.asyncio.client import connect

    from earwitness import __version__

    # At its lowest level the library logs headers and frames: the key, and the sound.
    logger = logging.getLogger(__name__)
    logger.setLevel(logging.INFO)

    class Once(connect):
        def process_redirect(self, exc: Exception) -> Exception | str:
            return exc

    return await Once(
        url,
        additional_headers=dict(headers),
        user_agent_header=f"earwitness/{__version__}",
        compression=None,
        proxy=None if is_loopback(url) else True,
        open_timeout=CONNECT_TIMEOUT_S,
        max_size=MAX_REPLY_BYTES,
        logger=logger,
    )


async def part(connection: ClientConnection, *, politely: bool) -> None:
    """Close; a goodbye that is not answered must not cost the item its reply."""
    if politely:
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(GOODBYE_S):
                await connection.close()
    connection.transport.abort()


def read_pcm(ref: AudioRef, limits: Limits, rate_hz: int) -> Sound:
    """A clip as mono PCM16; ``limits`` must accept ``rate_hz`` alone. Blocking.

    Raises
    ------
    EarwitnessError: it cannot be read, or not be sent.
    """
    import numpy as np

    from earwitness.audio.io import decode_audio, to_mono

    payload = encode_stimulus(ref, limits)
    audio = decode_audio(payload.data, name=str(ref.path))
    notes = [payload.note] if payload.note else []
    if audio.samples.ndim > 1:
        notes.append("mixed to one channel")
    samples = np.asarray(to_mono(audio).samples, dtype=np.float64)
    whole = np.clip(np.rint(samples * 32_768.0), -32_768, 32_767).astype("<i2")
    return Sound(whole.tobytes(), rate_hz, "; ".join(notes))
