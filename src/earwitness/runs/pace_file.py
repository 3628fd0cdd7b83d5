"""What the processes of one machine that work on one run keep of its rate limits: one line in a file beside the ledger.

The file holds when the next call may start, by limit, in the system's monotonic clock, which all processes of a machine
share and which no change of the time of day moves. It is read and written under ``flock``, which dies with its process,
for microseconds at a time, and nothing is reserved ahead: whoever is killed leaves at most the spacing of its last
call. What is unreadable, or was written before the machine started anew, counts as nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from earwitness.errors import DataError
from earwitness.runs.locks import flock_within

PACE_SUFFIX = ".pace"
PATIENCE_S = 1.0
"""Whoever holds the lock longer is suspended; the others go on by what they know."""
_RECORD_BYTES = 512
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class PaceFile:
    """The shared state of a run's rate limits.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     one, other = (PaceFile(Path(folder) / "ledger.jsonl.pace") for _ in range(2))
    ...     with one.exchange({}) as times:
    ...         times["calls"] = 12.5
    ...     with other.exchange({}) as times:
    ...         found = dict(times)
    ...     one.close(), other.close()
    ...     found
    (None, None)
    {'calls': 12.5}
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = -1

    @contextlib.contextmanager
    def exchange(self, known: dict[str, float]) -> Iterator[dict[str, float]]:
        """What all processes know, to be changed in the block and written after it.

        Parameters
        ----------
        known: what this process knows by itself; used, and nothing written, where a suspended process has the lock.

        Raises
        ------
        DataError: the file cannot be written.
        """
        try:
            if self._file < 0:
                self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            if not flock_within(self._file, fcntl.LOCK_EX, PATIENCE_S, 0.0005):
                yield known
                return
            try:
                times = self._read()
                yield times
                self._write(times)
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)
        except OSError as error:
            raise DataError(
                str(self.path), f"cannot be written ({error.strerror})", "room and permission"
            ) from None

    def _read(self) -> dict[str, float]:
        try:
            line = json.loads(os.pread(self._file, _RECORD_BYTES, 0))
            at, times = float(line["at"]), line["times"]
            usable = line["boot"] == _boot() and at <= time.monotonic() and isinstance(times, dict)
            read = {str(name): float(value) for name, value in times.items()} if usable else {}
        except (ValueError, KeyError, TypeError, RecursionError):
            return {}
        return read if all(map(math.isfinite, read.values())) else {}

    def _write(self, times: dict[str, float]) -> None:
        line = json.dumps({"boot": _boot(), "at": time.monotonic(), "times": times})
        # Of one length, so that one write replaces all of it.
        os.pwrite(self._file, (line.ljust(_RECORD_BYTES - 1) + "\n").encode(), 0)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


@cache
def _boot() -> str:
    """Which start of the machine this is; empty where the system does not say."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return ""
