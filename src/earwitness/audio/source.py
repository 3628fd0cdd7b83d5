"""A file being looked at: random access to its bytes, and windows into them."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import BinaryIO


@dataclass(frozen=True, slots=True)
class Source:
    """An open file or bytes in memory, with the name used in messages."""

    name: str
    file: BinaryIO
    size: int

    def at(self, offset: int, count: int) -> bytes:
        """Up to ``count`` bytes from ``offset``; fewer at the end of the file."""
        if offset >= self.size:
            return b""
        self.file.seek(offset)
        return self.file.read(min(count, self.size - offset))


def source_of_bytes(data: bytes, name: str) -> Source:
    return Source(name, io.BytesIO(data), len(data))


class Window(io.RawIOBase):
    """A readable file made of a header of ours and a stretch of another file.

    This is how a decoder is given exactly the audio the rules of this project find in a file, whatever
    its own header says, without copying it.

    Parameters
    ----------
    source: the file behind.
    start: first byte of the stretch.
    length: number of its bytes.
    header: bytes that come before it.
    """

    def __init__(self, source: Source, start: int, length: int, header: bytes = b"") -> None:
        super().__init__()
        self._source = source
        self._start = start
        self._length = length
        self._header = header
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.total}[whence]
        self._position = max(0, base + offset)
        return self._position

    @property
    def total(self) -> int:
        return len(self._header) + self._length

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        wanted = min(len(buffer), max(0, self.total - self._position))
        done = 0
        if wanted and self._position < len(self._header):
            piece = self._header[self._position : self._position + wanted]
            buffer[: len(piece)] = piece
            done = len(piece)
        if done < wanted:
            offset = self._position + done - len(self._header)
            piece = self._source.at(self._start + offset, wanted - done)
            buffer[done : done + len(piece)] = piece
            done += len(piece)
        self._position += done
        return done
