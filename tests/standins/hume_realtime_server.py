"""A stand-in for Hume's audio stream: a real WebSocket server, strict about frames, with ways to misbehave.

Each connection takes the next word of ``script``; without one the server behaves well:

``twice`` every event twice · ``reordered`` the totals before the measurements · ``new`` events of kinds nobody knows ·
``mute`` hears no speech · ``error:CODE`` that error at the third frame, ``fatal:CODE`` and the end of the session with
it · ``drops`` takes no second frame, without a word · ``lost`` tells of a measurement that never comes ·
``close:CODE:REASON`` closes at the third frame · ``abort`` resets there · ``ended:REASON`` ends the session there ·
``hang`` never closes · ``garbage`` sends no JSON · ``totals`` closes without totals · ``odd`` a score without a number
"""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import soundfile
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from tests.standins.listening import Heard, listen
from tests.standins.realtime_server import RealtimeServer

RATE_HZ = 16_000


@dataclass
class Stream:
    """What one connection was sent: for assertions."""

    headers: dict[str, str]
    timer_ms: int = 3000
    frames: list[int] = field(default_factory=list)
    buffer: bytearray = field(default_factory=bytearray)
    heard: Heard | None = None
    closed_politely: bool = False


class HumeRealtimeServer(RealtimeServer):
    """Measures every three seconds of sound, and its rest."""

    key_header, key_prefix, place = "X-Hume-Api-Key", "", "/v1/expression/audio/realtime"

    def __init__(self, *script: str, key: str | None = None) -> None:
        super().__init__(*script, key=key)
        self.streams: list[Stream] = []

    async def _connection(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        headers = {name.lower(): text for name, text in connection.request.headers.raw_items()}
        stream = Stream(headers)
        self.streams.append(stream)
        how = self.script.popleft() if self.script else ""
        with contextlib.suppress(ConnectionClosed):
            await self._tell(
                connection, how, {"type": "session.created", "session_id": "session-1", "audio": {}}
            )
            if how == "garbage":
                await connection.send('{"type": "measurement.re')
            while not await self._take(connection, stream, await connection.recv(), how):
                pass
            await self._finish(connection, stream, how)
            await connection.close()
        stream.closed_politely = connection.close_code == 1000

    async def _tell(self, connection: ServerConnection, how: str, event: dict[str, Any]) -> None:
        for _ in range(2 if how == "twice" else 1):
            await connection.send(json.dumps(event))

    async def _take(
        self, connection: ServerConnection, stream: Stream, message: str | bytes, how: str
    ) -> bool:
        """True when the client has asked for the end."""
        if isinstance(message, str):
            event = json.loads(message)
            if event["type"] == "session.close":
                return True
            if event["type"] != "session.update" or stream.frames:
                await self._error(connection, "config_invalid")
            stream.timer_ms = event["measurement_timer_ms"]
            await self._tell(connection, how, {**event, "type": "session.updated"})
            return False
        if not message or len(message) % 2 or len(message) > 10 * RATE_HZ * 2:
            await self._error(connection, "invalid_audio_frame")
            return False
        if how == "drops" and len(stream.frames) == 1:
            stream.frames.append(0)
            return False
        stream.frames.append(len(message))
        stream.buffer += message
        if len(stream.frames) == 3:
            await self._misbehave(connection, how)
        return False

    async def _misbehave(self, connection: ServerConnection, how: str) -> None:
        word, _, rest = how.partition(":")
        if word in ("error", "fatal"):
            await self._error(connection, rest)
        if word in ("ended", "fatal"):
            reason = rest if word == "ended" else "error"
            await self._tell(connection, how, _closed(reason, 3, 0))
            await connection.close()
        if word == "close":
            code, _, reason = rest.partition(":")
            await connection.close(int(code), reason)
        if word == "abort":
            connection.transport.abort()

    async def _error(self, connection: ServerConnection, code: str) -> None:
        code, _, said = code.partition(":")
        event = {"type": "error", "code": code, "message": said or "no", "retryable": False}
        await connection.send(json.dumps(event))

    async def _finish(self, connection: ServerConnection, stream: Stream, how: str) -> None:
        if how == "hang":
            await self._stop.wait()
        wave = io.BytesIO()
        samples = np.frombuffer(bytes(stream.buffer), "<i2")
        soundfile.write(wave, samples, RATE_HZ, format="WAV", subtype="PCM_16")
        stream.heard = listen(wave.getvalue())
        events = [] if how == "mute" else _measured(stream)
        if how == "odd":
            events[1]["expressions"][0]["probability"] = "much"
        if how == "new":
            events.insert(0, {"type": "weather.report", "measurement_id": 99})
        frames = sum(size > 0 for size in stream.frames)
        made = sum(each["type"] == "measurement.result" for each in events)
        closed = _closed("client_request", frames, made + (how == "lost"))
        if how == "totals":
            closed = {"type": "session.closed", "reason": "client_request"}
        order = [closed, *reversed(events)] if how == "reordered" else [*events, closed]
        for event in order:
            await self._tell(connection, how, event)


def _closed(reason: str, frames: int, measurements: int) -> dict[str, Any]:
    return {
        "type": "session.closed", "session_id": "session-1", "reason": reason,
        "received": {"audio_duration_ms": frames * 100, "frames": frames},
        "produced": {"utterances": min(measurements, 1), "measurements": measurements},
    }  # fmt: skip


def _measured(stream: Stream) -> list[dict[str, Any]]:
    """One utterance, measured at every turn of the timer and at its end: joy grows with it."""
    length_ms = round(len(stream.buffer) / 2 / RATE_HZ * 1000)
    ends = [*range(stream.timer_ms, length_ms, stream.timer_ms), length_ms]
    results = [
        {
            "type": "measurement.result", "measurement_id": number, "utterance_id": 0,
            "audio_start_ms": 0, "audio_end_ms": end, "trigger": "interval",
            "expressions": [{"name": "joy", "probability": round(0.2 * (number + 1), 3)}],
            "voice_attributes": [{"name": "husky", "probability": 0.9}],
        }
        for number, end in enumerate(ends)
    ]  # fmt: skip
    place = {"utterance_id": 0, "audio_start_ms": 0}
    return [
        {"type": "utterance.start", **place},
        *results,
        {"type": "utterance.end", **place, "audio_end_ms": length_ms},
    ]
