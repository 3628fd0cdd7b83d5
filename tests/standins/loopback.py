"""A small real HTTP/1.1 server on the loopback interface, with every way of misbehaving a service has.

It runs in a thread with an event loop of its own, reads requests from the wire and can be told, call by
call, to answer, to fail or to break the connection at a chosen point.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any, Self

UNTRUSTED = Path(__file__).with_name("untrusted.pem")
SECRET_WORDS = "the body of this page is not for you"


@dataclass(frozen=True)
class Call:
    """One request as it came over the wire. ``number`` counts from 0."""

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Act:
    """What to do with one call.

    ``how``: ``answer`` sends everything; ``early`` answers before the request's body has been read and
    closes; ``hang`` says nothing; ``drip`` sends a byte every ``pause_s``; ``truncate`` promises more bytes
    than it sends and closes; ``reset`` sends half and resets the connection; ``reset_before`` resets it
    without an answer, ``reset_unread`` without even reading the request; ``close`` closes without an answer.
    """

    how: str = "answer"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    media_type: str = "application/json"
    pause_s: float = 0.02


def json_act(value: Any, status: int = 200, how: str = "answer", **headers: str) -> Act:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Act(how, status, named, json.dumps(value).encode())


def error(
    status: int, message: str = "no", code: str | None = None, how: str = "answer", **headers: str
) -> Act:
    """An error in the form OpenAI gives it."""
    body = {"error": {"message": message, "type": "error", "param": None, "code": code}}
    return json_act(body, status, how, **headers)


def html(status: int = 200) -> Act:
    page = f"<!doctype html><html><body><h1>Sign in</h1>{SECRET_WORDS}</body></html>"
    return Act(status=status, body=page.encode(), media_type="text/html; charset=utf-8")


def retry_date(seconds: float) -> str:
    return formatdate(time.time() + seconds, usegmt=True)


HANG = Act("hang")
RESET_BEFORE = Act("reset_before")
RESET_UNREAD = Act("reset_unread")
CLOSE = Act("close")
EMPTY = Act(body=b"")
INVALID_JSON = Act(body=b'{"id": "chatcmpl-1", "choices": [{"message": {"content": "ang')


class LoopbackServer:
    """Base of the stand-ins. Subclasses implement :meth:`respond`.

    Use as a context manager; ``url`` is ready inside. ``script`` holds acts for the next calls, first come
    first served; ``choose`` may pick an act for a call; without either the server behaves well.
    """

    prefix = ""
    untrusted = False
    """Speak TLS with a certificate nobody vouches for."""

    def __init__(
        self, *acts: Act, choose: Callable[[Call], Act | None] | None = None, port: int = 0
    ) -> None:
        self.script: deque[Act] = deque(acts)
        self.choose = choose
        self.calls: list[Call] = []
        self.keep_bodies = True
        self._wanted_port = port
        self._count = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self.port = 0

    # -- what a subclass does -------------------------------------------------

    def respond(self, call: Call) -> Act:
        """A good service's answer."""
        raise NotImplementedError

    def well(self, call: Call) -> Act:
        """The good answer, whatever happens to it on the way (for acts that carry no body)."""
        return self.respond(call)

    # -- life -----------------------------------------------------------------

    @property
    def url(self) -> str:
        scheme = "https" if self.untrusted else "http"
        return f"{scheme}://127.0.0.1:{self.port}{self.prefix}"

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the stand-in did not start")
        return self

    def __exit__(self, *_: object) -> None:
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()

        async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                await self._connection(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass
            finally:
                tasks.discard(task)
                writer.close()
                with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                    await writer.wait_closed()

        context = None
        if self.untrusted:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(UNTRUSTED)
        server = await asyncio.start_server(
            connection, "127.0.0.1", self._wanted_port, limit=1 << 20, backlog=512, ssl=context
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()

    # -- one connection -------------------------------------------------------

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                first_byte = await reader.readexactly(1)
                if first_byte == b"\x16":
                    # A TLS handshake on a plain port: say so in plain HTTP, as nginx does.
                    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                    return
                head = first_byte + await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            first, *lines = head.decode("latin-1").split("\r\n")
            method, path, _ = first.split(" ", 2)
            headers = {
                name.strip().lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines if line)
            }
            number, self._count = self._count, self._count + 1
            act = self.script.popleft() if self.script else None
            if act is not None and act.how == "early":
                await self._early(reader, writer, act)
                return
            if act is not None and act.how == "reset_unread":
                self._reset(writer)
                return
            body = await self._body(reader, headers)
            call = Call(number, method, path, headers, body)
            self.calls.append(
                call if self.keep_bodies else Call(number, method, path, headers, b"")
            )
            if act is None and self.choose is not None:
                act = self.choose(call)
            if act is None:
                act = self.respond(call)
            if not await self._perform(writer, act, call):
                return

    async def _body(self, reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            return await reader.readexactly(int(headers.get("content-length", "0")))
        pieces = []
        while size := int((await reader.readline()).split(b";")[0], 16):
            pieces.append(await reader.readexactly(size))
            await reader.readline()
        await reader.readline()
        return b"".join(pieces)

    async def _early(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, act: Act
    ) -> None:
        writer.write(self._head(act, len(act.body)) + act.body)
        await writer.drain()
        # As nginx's lingering close: go on reading for a moment, or the answer would be lost to a reset.
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(0.5):
                while await reader.read(1 << 16):
                    pass

    async def _perform(self, writer: asyncio.StreamWriter, act: Act, call: Call) -> bool:
        """Do it; False when the connection is over."""
        assert self._stop is not None
        body = act.body
        if act.how in ("drip", "truncate", "reset") and not body:
            body = self.well(call).body
        if act.how == "hang":
            await self._stop.wait()
            return False
        if act.how == "reset_before":
            self._reset(writer)
            return False
        if act.how == "close":
            return False
        if act.how == "drip":
            writer.write(self._head(act, len(body)))
            for byte in body:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(act.pause_s)
            return True
        if act.how in ("truncate", "reset"):
            writer.write(self._head(act, len(body)) + body[: len(body) // 2])
            await writer.drain()
            if act.how == "reset":
                await asyncio.sleep(0.02)
                self._reset(writer)
            return False
        writer.write(self._head(act, len(body)) + body)
        await writer.drain()
        return True

    def _head(self, act: Act, length: int) -> bytes:
        lines = [f"HTTP/1.1 {act.status} Status", f"Date: {formatdate(usegmt=True)}"]
        lines += [f"Content-Type: {act.media_type}"] if act.media_type else []
        lines += [f"Content-Length: {length}"]
        lines += [f"{name}: {value}" for name, value in act.headers.items()]
        if act.how == "early":
            lines.append("Connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    @staticmethod
    def _reset(writer: asyncio.StreamWriter) -> None:
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
