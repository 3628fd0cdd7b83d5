"""Locks on single bytes of a file: many claims in one file, each of which dies with its process.

On Linux they are open-file-description locks (fcntl(2), F_OFD_SETLK), which belong to the open file and not to
the process: two openings in one process keep each other out, and closing another descriptor of the same file
lets go of nothing. Elsewhere they are POSIX record locks, which is why the file is one nobody else opens.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from earwitness.errors import UsageError

_OFD_SETLK: int | None = getattr(fcntl, "F_OFD_SETLK", None)
_IS_64_BIT = struct.calcsize("P") == 8
LATCH = 0
"""The byte whose holder may write."""
_FIRST_CLAIM = 16
_CLAIMS = 1 << 62
PATIENCE_S = 60.0
"""A holder of the latch writes one line; one that holds it a minute is stopped, not slow."""


def claim_place(key: str) -> int:
    """The byte that stands for a key. Two keys of a million share one with a chance of 1e-7.

    >>> claim_place("a") != claim_place("b")
    True
    """
    number = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")
    return _FIRST_CLAIM + number % (_CLAIMS - _FIRST_CLAIM)


def flock_within(file: int, how: int, patience_s: float, every_s: float) -> bool:
    """Take a lock on a whole file (``LOCK_EX`` or ``LOCK_SH``), or say that somebody kept it that long."""
    until = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(every_s)
        else:
            return True


class ByteLocks:
    """Byte locks in one file. A byte taken here is taken for this object too: claims do not nest.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     one, other = (ByteLocks(Path(folder) / "x.locks") for _ in range(2))
    ...     first, second = one.take(20), other.take(20)
    ...     one.close(); third = other.take(20)
    ...     other.close()
    ...     (first, second, third)
    (True, False, True)
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._held: set[int] = set()
        self._depth = 0

    def take(self, at: int) -> bool:
        """Take a byte, or say that somebody has it."""
        if at in self._held or not self._set(at, fcntl.F_WRLCK):
            return False
        self._held.add(at)
        return True

    def release(self, at: int) -> None:
        """Let go of a byte."""
        if at in self._held:
            self._held.discard(at)
            self._set(at, fcntl.F_UNLCK)

    @contextlib.contextmanager
    def latched(self) -> Iterator[None]:
        """Be the only one to write until the block ends; may be nested.

        Raises
        ------
        UsageError: another process has kept the latch for a minute.
        """
        if self._depth == 0:
            until = time.monotonic() + PATIENCE_S
            while not self.take(LATCH):
                if time.monotonic() > until:
                    raise UsageError(
                        str(self.path),
                        f"another process has held it for {PATIENCE_S:g} s (is it suspended?)",
                        next_step="Resume or end that process and run the same command again.",
                    )
                time.sleep(0.0005)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self.release(LATCH)

    def _set(self, at: int, kind: int) -> bool:
        try:
            if _OFD_SETLK is not None and _IS_64_BIT:
                flock = struct.pack("hhqqi0q", kind, os.SEEK_SET, at, 1, 0)
                fcntl.fcntl(self._file, _OFD_SETLK, flock)
            else:
                how = fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB
                fcntl.lockf(self._file, how, 1, at)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
            raise
        return True

    def close(self) -> None:
        """Let go of everything."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            self._held.clear()
