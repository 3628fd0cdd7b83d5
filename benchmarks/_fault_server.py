"""A chat-completions server that misbehaves by a script: which item meets which fault is fixed by its number.

``python -m benchmarks._fault_server SHARE DELAY_S`` prints its URL and serves until it is ended; ``SHARE`` of the items
meet a fault. ``GET /counts`` tells how often each item was asked.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
import sys
import time
from collections import Counter
from email.utils import formatdate

BLOCK = 1 << 18
LABELS = ("anger", "disgust", "fear", "happiness", "neutral", "sadness", "surprise")
_ITEM = re.compile(rb"item (\d{6})")

PASSING = (
    "429", "429-seconds", "429-date", "408", "409", "500", "502", "503", "529", "hang", "drip", "reset_before",
    "reset_mid", "close", "truncate", "html", "wrong_type", "empty_body", "half_json", "no_choices", "list",
)  # fmt: skip
"""Faults of the first call; the second is answered."""
LASTING = ("400", "401", "403", "404", "413", "415", "422", "402", "500-always")
"""Faults of every call: the item fails."""
SAID = {
    "blocked": (None, "content_filter", {}),
    "truncated": ("", "length", {}),
    "empty": ("", "stop", {}),
    "refused": (None, "stop", {"refusal": "I cannot help with that."}),
    "ambiguous": ("either fear or surprise", "stop", {}),
    "unmapped": ("boredom", "stop", {}),
}
"""Answers that are no label: outcome -> content, finish reason, more of the message."""
KINDS = (*PASSING, *LASTING, *SAID)


def fault_of(number: int, share: float) -> str:
    """What happens to an item, empty for nothing. Spread over the items, each kind in turn."""
    # Every n-th item, n = 1/share, so that the share is exact and the kinds take turns.
    every = round(1 / share) if share else 0
    if not every or number % every:
        return ""
    return KINDS[(number // every) % len(KINDS)]


def outcome_of(number: int, share: float) -> tuple[str, str | None]:
    """The scripted outcome of an item: kind and label."""
    fault = fault_of(number, share)
    if fault in SAID:
        return fault, None
    return ("failed", None) if fault in LASTING else ("answered", LABELS[number % 7])


def _reply(content: str | None, finish: str = "stop", **message: str) -> bytes:
    body = {
        "id": "chatcmpl-soak",
        "object": "chat.completion",
        "model": "soak",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, **message},
                "finish_reason": finish,
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101},
    }
    return json.dumps(body).encode()


def _answer(status: int, body: bytes, kind: str = "application/json", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"Date: {formatdate(usegmt=True)}", f"Content-Type: {kind}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join([*lines, f"Content-Length: {len(body)}"]) + "\r\n\r\n").encode() + body


def _error(status: int, **headers: str) -> bytes:
    body = {"error": {"message": f"scripted {status}", "type": "error", "code": None}}
    return _answer(status, json.dumps(body).encode(), **headers)


class Service:
    """Answers and counts."""

    def __init__(self, share: float, delay_s: float) -> None:
        self.share = share
        self.delay_s = delay_s
        self.asked: Counter[int] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if head.startswith(b"GET"):
                    writer.write(_answer(200, json.dumps(self.asked).encode()))
                    continue
                number = await self._number(reader, head)
                self.asked[number] += 1
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                if not await self._act(writer, number):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _number(self, reader: asyncio.StreamReader, head: bytes) -> int:
        """Which item a request is about; its words come before its audio."""
        length = re.search(rb"content-length: (\d+)", head.lower())
        assert length is not None
        left, number = int(length[1]), -1
        while left:
            block = await reader.read(min(BLOCK, left))
            if not block:
                raise asyncio.IncompleteReadError(b"", left)
            left -= len(block)
            if number < 0 and (found := _ITEM.search(block)):
                number = int(found[1])
        return number

    async def _act(self, writer: asyncio.StreamWriter, number: int) -> bool:
        """Answer, or misbehave; False when the connection is over."""
        fault = fault_of(number, self.share)
        if fault in SAID:
            content, finish, more = SAID[fault]
            writer.write(_answer(200, _reply(content, finish, **more)))
        elif fault in LASTING:
            status = int(fault.removesuffix("-always"))
            writer.write(_error(status))
        elif not fault or self.asked[number] > 1:
            writer.write(_answer(200, _reply(LABELS[number % 7])))
        else:
            return await self._fail(writer, fault, _reply(LABELS[number % 7]))
        await writer.drain()
        return True

    async def _fail(self, writer: asyncio.StreamWriter, fault: str, good: bytes) -> bool:
        status, _, wait = fault.partition("-")
        if status.isdigit():
            told = {"seconds": "0", "date": formatdate(time.time(), usegmt=True)}.get(wait)
            writer.write(_error(int(status), **({"Retry_After": told} if told else {})))
        elif fault == "hang":
            await asyncio.sleep(120.0)
            return False
        elif fault == "drip":
            whole = _answer(200, good)
            for start in range(0, len(whole), 64):
                writer.write(whole[start : start + 64])
                await writer.drain()
                await asyncio.sleep(0.005)
        elif fault in ("reset_mid", "truncate"):
            whole = _answer(200, good)
            writer.write(whole[: len(whole) // 2])
            await writer.drain()
            if fault == "reset_mid":
                _reset(writer)
            return False
        elif fault == "reset_before":
            _reset(writer)
            return False
        elif fault == "close":
            return False
        else:
            writer.write(_SENT[fault])
        await writer.drain()
        return True


_SENT = {
    "html": _answer(200, b"<html><body>Sign in</body></html>", "text/html"),
    "wrong_type": _answer(200, b"\x00\x01\x02 not text", "application/octet-stream"),
    "empty_body": _answer(200, b""),
    "half_json": _answer(200, b'{"id": "x", "choices": [{"mess'),
    "no_choices": _answer(200, b'{"id": "x", "choices": []}'),
    "list": _answer(200, b"[]"),
}


def _reset(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def main(share: float, delay_s: float) -> None:
    service = Service(share, delay_s)
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0, limit=BLOCK, backlog=512)
    port = server.sockets[0].getsockname()[1]
    sys.stdout.write(f"http://127.0.0.1:{port}/v1\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]), float(sys.argv[2])))
