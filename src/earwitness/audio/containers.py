"""Other containers: how much audio their headers promise, and whether the file holds it.

Each function returns what it found; decoding is left to libsndfile, which reads most cut files without
a word.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from earwitness.audio.source import Source
from earwitness.audio.types import Problem

MAX_CHUNKS = 10_000
AGAIN = "Fetch or export the recording again."
AIFF_STREAM_SIZE = 0x7F000000
"""Sizes from here on are what programs write that stream AIFF to a pipe."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What a header promises: ``frames`` if it says so, and the problems seen without decoding."""

    frames: int | None = None
    problems: tuple[Problem, ...] = ()


def _truncated(missing: int, declared: int, what: str = "bytes of audio") -> Promise:
    return Promise(
        None, (Problem("truncated", "error", f"{missing} of {declared} {what} are missing", AGAIN),)
    )


def _broken(message: str) -> Promise:
    return Promise(None, (Problem("broken_header", "error", message, AGAIN),))


def _stream(found: str) -> Promise:
    return Promise(
        None,
        (
            Problem(
                "stream_sizes",
                "warning",
                f"{found}: it was streamed and its header never filled in; read to the end of the file",
                "Whether its end is missing cannot be known from such a file; re-write it to fix the header.",
            ),
        ),
    )


def promise_of(container: str, source: Source, offset: int) -> Promise:
    """What the header of a file other than WAV promises."""
    look = {
        "FLAC": _flac,
        "OGG": _ogg,
        "MP3": _mp3,
        "AIFF": _aiff,
        "AU": _au,
        "CAF": _caf,
        "W64": _w64,
    }.get(container)
    return look(source, offset) if look else Promise()


def _flac(source: Source, offset: int) -> Promise:
    position = offset + 4
    frames: int | None = None
    last = False
    while not last:
        head = source.at(position, 4)
        if len(head) < 4:
            return _broken(f"the file ends after {source.size} bytes, inside its FLAC header")
        last, kind = bool(head[0] & 0x80), head[0] & 0x7F
        size = int.from_bytes(head[1:], "big")
        if position + 4 + size > source.size:
            return _broken(
                f"a FLAC metadata block claims {size} bytes and the file ends after {source.size}"
            )
        if kind == 0 and size >= 34:
            packed = int.from_bytes(source.at(position + 14, 8), "big")
            frames = packed & 0xFFFFFFFFF
            if packed >> 44 == 0:
                return _broken("its sample rate is 0 Hz")
        position += 4 + size
    if frames is None:
        return _broken("its FLAC header has no STREAMINFO block")
    if position >= source.size and frames:
        return _truncated(frames, frames, "frames")
    return Promise(frames) if frames else _stream("its number of samples is 0")


def _ogg(source: Source, offset: int) -> Promise:
    """A whole Ogg stream ends with a complete page that carries the end mark (RFC 3533, section 6)."""
    largest_page = 27 + 255 + 255 * 255
    start = max(offset, source.size - 2 * largest_page)
    tail = source.at(start, 2 * largest_page)
    at = tail.rfind(b"OggS")
    cut = Problem("truncated", "error", "", AGAIN)
    while at >= 0 and len(tail) > at + 4 and tail[at + 4] != 0:
        at = tail.rfind(b"OggS", 0, at)
    if at < 0:
        return Promise(
            None, (_say(cut, "no Ogg page is found near its end: it is cut or damaged"),)
        )
    segments = tail[at + 26] if len(tail) > at + 26 else None
    table = tail[at + 27 : at + 27 + segments] if segments is not None else b""
    if segments is None or len(table) < segments:
        return Promise(None, (_say(cut, "the file ends inside the header of an Ogg page"),))
    missing = at + 27 + segments + sum(table) - len(tail)
    if missing > 0:
        return Promise(
            None, (_say(cut, f"at least {missing} bytes of its last Ogg page are missing"),)
        )
    if not tail[at + 5] & 4:
        return Promise(
            None,
            (_say(cut, "its last Ogg page lacks the end mark: what came after it is missing"),),
        )
    return Promise()


def _say(problem: Problem, message: str) -> Problem:
    return Problem(problem.code, problem.severity, message, problem.next_step)


# MPEG audio frame headers (ISO/IEC 11172-3 and 13818-3), layer III only.
_KBITS = {
    True: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    False: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_MP3_RATES = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}


def _mp3_frame(head: bytes) -> int | None:
    """Bytes of the layer III frame that begins with these four, or None. Free format is not read."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return None
    version, layer = head[1] >> 3 & 3, head[1] >> 1 & 3
    kbit, rate = head[2] >> 4, head[2] >> 2 & 3
    if version == 1 or layer != 1 or kbit in (0, 15) or rate == 3:
        return None
    first = version == 3
    return (144 if first else 72) * _KBITS[first][kbit] * 1000 // _MP3_RATES[version][rate] + (
        head[2] >> 1 & 1
    )


def find_mp3(source: Source, offset: int) -> int | None:
    """Where MP3 frames begin: three in a row (or all up to the end) at or near the offset."""
    head = source.at(offset, 1 << 16)
    at = head.find(b"\xff")
    while 0 <= at < len(head) - 3:
        position, frames = at, 0
        while frames < 3 and (size := _mp3_frame(head[position : position + 4])):
            position += size
            frames += 1
        # At the very beginning one frame that fills the rest of the file is enough.
        if frames == 3 or (at == 0 and frames and position >= len(head)):
            return offset + at
        at = head.find(b"\xff", at + 1)
    return None


def _mp3(source: Source, offset: int) -> Promise:
    first = source.at(offset, 512)
    # The Xing or Info tag sits after the side information of the first frame; its place depends on layout.
    tag = max(first.find(b"Xing", 0, 64), first.find(b"Info", 0, 64))
    promised: int | None = None
    if tag > 0:
        flags, count, size = struct.unpack(">III", first[tag + 4 : tag + 16].ljust(12, b"\0"))
        promised = count if flags & 1 else None
        total = (size if flags & 1 else count) if flags & 2 else 0
        if total > source.size - offset:
            return _truncated(total - (source.size - offset), total)
    position, frames = offset, 0
    while step := _mp3_frame(source.at(position, 4)):
        if position + step > source.size:
            missing = position + step - source.size
            message = f"at least {missing} bytes of its last MP3 frame are missing"
            return Promise(None, (Problem("truncated", "error", message, AGAIN),))
        position, frames = position + step, frames + 1
    if promised is not None and frames < promised and position >= source.size:
        return _truncated(promised - frames, promised, "MP3 frames")
    if 0 < source.size - position < 4 and source.at(position, 1) == b"\xff":
        message = "the file ends inside the header of an MP3 frame"
        return Promise(None, (Problem("truncated", "error", message, AGAIN),))
    return Promise()


def _aiff(source: Source, offset: int) -> Promise:
    position = offset + 12
    frames: int | None = None
    for _ in range(MAX_CHUNKS):
        head = source.at(position, 8)
        if len(head) < 8:
            return _broken(f"the file ends after {source.size} bytes, before any audio")
        size = int.from_bytes(head[4:], "big")
        body = position + 8
        if head[:4] == b"COMM":
            frames = int.from_bytes(source.at(body + 2, 4), "big")
        if head[:4] == b"SSND":
            present = source.size - body
            if size >= AIFF_STREAM_SIZE and size > present:
                return _stream(f"its sound chunk claims {size} bytes")
            if size > present:
                return _truncated(size - present, size)
            return Promise(frames)
        position = body + size + size % 2
    return _broken("it has no audio among its first chunks")


def _au(source: Source, offset: int) -> Promise:
    head = source.at(offset, 24)
    if len(head) < 24:
        return _broken(f"the file ends after {source.size} bytes, inside its header")
    order = ">" if head[:4] == b".snd" else "<"
    start, size = struct.unpack(order + "II", head[4:12])
    present = source.size - offset - start
    if start < 24 or present < 0:
        return _broken(f"its audio shall begin at byte {start} of {source.size}")
    if (size == 0 and present > 0) or (size >= 0x7FFF0000 and size > present):
        return _stream(f"its data size is 0x{size:X}")
    return _truncated(size - present, size) if size > present else Promise()


def _caf(source: Source, offset: int) -> Promise:
    position = offset + 8
    for _ in range(MAX_CHUNKS):
        head = source.at(position, 12)
        if len(head) < 12:
            return _broken(f"the file ends after {source.size} bytes, before any audio")
        size = int.from_bytes(head[4:], "big", signed=True)
        body = position + 12
        if head[:4] == b"data":
            present = source.size - body
            if size == -1:
                return _stream("its data size is -1")
            return _truncated(size - present, size) if size > present else Promise()
        if size < 0:
            return _broken(f"a chunk claims {size} bytes")
        position = body + size
    return _broken("it has no audio among its first chunks")


def _w64(source: Source, offset: int) -> Promise:
    position = offset + 40
    for _ in range(MAX_CHUNKS):
        head = source.at(position, 24)
        if len(head) < 24:
            return _broken(f"the file ends after {source.size} bytes, before any audio")
        size = int.from_bytes(head[16:], "little") - 24
        body = position + 24
        if head[:4] == b"data":
            present = source.size - body
            if (size <= 0 and present > 0) or (size >= 1 << 62):
                return _stream(f"its data size is {size}")
            return _truncated(size - present, size) if size > present else Promise()
        if size < 0:
            return _broken(f"a chunk claims {size} bytes")
        position = body + size + -size % 8
    return _broken("it has no audio among its first chunks")
