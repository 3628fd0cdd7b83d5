"""A stand-in for the Realtime API: a real WebSocket server, strict about events, with ways to misbehave.

Each connection takes the next word of ``script``; without one the server behaves well:

``twice`` every event twice · ``reordered`` the end before its parts · ``parts`` no words in the last event ·
``close`` closes in mid-answer, with ``close:CODE:REASON`` saying how · ``abort`` resets in mid-answer ·
``early`` closes before the question is complete · ``hang`` says nothing after the question · ``garbage`` sends
no JSON · ``other`` finishes somebody else's response first · ``error:TYPE:CODE:MESSAGE``, which names no event;
``turned_down:TYPE:CODE:MESSAGE`` names the one that asks for a response, ``begun:TYPE:CODE:MESSAGE`` comes when there is
one · ``failed:TYPE:CODE:MESSAGE`` · ``cancelled`` · ``incomplete:REASON`` · ``refusal`` · ``mute`` never answers a close ·
``rejects`` the second piece of sound, and answers all the same.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import soundfile
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from tests.standins.listening import Heard, answer, listen

RATE_HZ = 24_000


@dataclass
class Session:
    """What one connection was told: for assertions."""

    model: str
    headers: dict[str, str]
    session: dict[str, Any] = field(default_factory=dict)
    turns: list[tuple[str, str]] = field(default_factory=list)
    pieces: list[int] = field(default_factory=list)
    buffer: bytearray = field(default_factory=bytearray)
    heard: Heard | None = None
    response: dict[str, Any] = field(default_factory=dict)
    asked_by: str | None = None
    closed_politely: bool = False


class RealtimeServer:
    """Use as a context manager; ``url`` ends in ``/v1`` and is an http address, as users write it."""

    key_header, key_prefix, place = "Authorization", "Bearer ", "/v1/realtime?model="

    def __init__(self, *script: str, character: str = "neutral", key: str | None = None) -> None:
        self.script, self.character, self.key = deque(script), character, key
        self.sessions: list[Session] = []
        self.port = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._count = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the stand-in did not start")
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with serve(
            self._connection, "127.0.0.1", 0, process_request=self._check, max_size=15 << 20,
            close_timeout=5,
        ) as server:  # fmt: skip
            self.port = next(iter(server.sockets)).getsockname()[1]
            self._ready.set()
            await self._stop.wait()

    def _check(self, connection: ServerConnection, request: Request) -> Response | None:
        given = request.headers.get(self.key_header, "")
        if not request.path.startswith(self.place):
            return Response(404, "Not Found", Headers(), b"no such place")
        if self.key is not None and given != f"{self.key_prefix}{self.key}":
            said = {
                "error": {
                    "message": f"Incorrect API key provided: {given}",
                    "code": "invalid_api_key",
                }
            }
            kind = Headers({"Content-Type": "application/json"})
            return Response(401, "Unauthorized", kind, json.dumps(said).encode())
        return None

    async def _connection(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        path, headers = connection.request.path, connection.request.headers
        session = Session(
            path.partition("model=")[2], {k.lower(): v for k, v in headers.raw_items()}
        )
        self.sessions.append(session)
        how = self.script.popleft() if self.script else ""
        with contextlib.suppress(ConnectionClosed):
            await self._send(
                connection,
                how,
                {
                    "type": "session.created",
                    "session": {"id": "sess_1", "model": f"{session.model}-2026"},
                },
            )
            if how == "early":
                await connection.close(1011, "going away")
                return
            while not session.response:
                problem = self._take(session, json.loads(await connection.recv()))
                if (
                    how == "rejects"
                    and not problem
                    and len(session.pieces) == 2
                    and not session.heard
                ):
                    problem = "the piece was not taken" if len(session.buffer) else ""
                    session.buffer.clear()
                if problem:
                    await self._send(
                        connection,
                        how,
                        {
                            "type": "error",
                            "error": {
                                "type": "invalid_request_error",
                                "code": "invalid_value",
                                "message": problem,
                            },
                        },
                    )
            await self._respond(connection, session, how)
            if how == "mute":
                await self._stop.wait()
            await connection.recv()
        session.closed_politely = connection.close_code == 1000

    def _take(self, session: Session, event: dict[str, Any]) -> str:
        kind = event["type"]
        if kind == "session.update":
            if event["session"].get("type") != "realtime":
                return "session.type must be realtime"
            session.session = event["session"]
        elif kind == "conversation.item.create":
            item = event["item"]
            wanted = "output_text" if item["role"] == "assistant" else "input_text"
            [part] = item["content"]
            if part["type"] != wanted:
                return f"{item['role']} messages take {wanted}"
            session.turns.append((item["role"], part["text"]))
        elif kind == "input_audio_buffer.append":
            piece = base64.b64decode(event["audio"], validate=True)
            session.pieces.append(len(piece))
            session.buffer += piece
        elif kind == "input_audio_buffer.commit":
            if len(session.buffer) < RATE_HZ // 10 * 2:
                return "buffer too small: expected at least 100ms of audio"
            samples = np.frombuffer(bytes(session.buffer), "<i2")
            wave = io.BytesIO()
            soundfile.write(wave, samples, RATE_HZ, format="WAV", subtype="PCM_16")
            session.heard = listen(wave.getvalue())
            session.turns.append(("user", "(audio)"))
        elif kind == "response.create":
            session.response = event.get("response") or {"none": True}
            session.asked_by = event.get("event_id")
        else:
            return f"unknown event {kind}"
        return ""

    async def _send(self, connection: ServerConnection, how: str, event: dict[str, Any]) -> None:
        self._count += 1
        text = json.dumps({"event_id": f"event_{self._count}", **event})
        for _ in range(2 if how == "twice" else 1):
            await connection.send(text)

    async def _respond(self, connection: ServerConnection, session: Session, how: str) -> None:
        word, _, rest = how.partition(":")
        prompt = " ".join(text for _, text in session.turns)
        said = answer(self.character, session.heard, prompt)
        place = {
            "response_id": "resp_1",
            "item_id": "item_1",
            "output_index": 0,
            "content_index": 0,
        }
        start = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}
        deltas = [
            {"type": "response.output_text.delta", **place, "delta": piece}
            for piece in (said[:3], said[3:])
        ]
        whole = {"type": "response.output_text.done", **place, "text": said}
        done = self._done(session, said, word, rest)
        if word == "hang":
            await self._stop.wait()
            return
        if word in ("error", "turned_down", "begun"):
            kind, code, message = rest.split(":", 2)
            problem = {"type": kind, "code": code or None, "message": message, "event_id": None}
            if word == "turned_down":
                problem["event_id"] = session.asked_by
            if word == "begun":
                await self._send(connection, how, start)
            await self._send(connection, how, {"type": "error", "error": problem})
            return
        if word == "garbage":
            await connection.send('{"type": "response.do')
            return
        if word == "other":
            other = self._done(session, "anger", "", "")
            other["response"]["metadata"] = {"asked": "somebody else"}
            await self._send(connection, how, other)
        if word in ("close", "abort"):
            for event in (start, deltas[0]):
                await self._send(connection, how, event)
            if word == "abort":
                await asyncio.sleep(0.02)
                connection.transport.abort()
                return
            code, _, reason = rest.partition(":")
            await connection.close(int(code or 1000), reason)
            return
        events = [start, *deltas, whole, done]
        if word == "reordered":
            events = [deltas[1], deltas[0], done, start, whole]
        for event in events:
            await self._send(connection, how, event)

    def _done(self, session: Session, said: str, word: str, rest: str) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"type": "output_text", "text": said}]
        if word == "parts":
            content = []
        if word == "refusal":
            content = [{"type": "refusal", "refusal": "I can't."}]
        status = word if word in ("failed", "incomplete", "cancelled") else "completed"
        details: dict[str, Any] | None = None
        if word == "failed":
            kind, code, message = rest.split(":", 2)
            details = {
                "type": "failed",
                "error": {"type": kind, "code": code or None, "message": message},
            }
        elif word in ("incomplete", "cancelled"):
            details = {"type": word, "reason": rest or "turn_detected"}
        audio_tokens = round(session.heard.seconds * 10) if session.heard else 0
        return {
            "type": "response.done",
            "response": {
                "id": "resp_1", "status": status, "status_details": details,
                "metadata": session.response.get("metadata"),
                "output": [{"type": "message", "role": "assistant", "content": content}],
                "usage": {
                    "input_tokens": audio_tokens + 20, "output_tokens": 2,
                    "input_token_details": {"audio_tokens": audio_tokens, "text_tokens": 20, "cached_tokens": 0},
                },
            },
        }  # fmt: skip
