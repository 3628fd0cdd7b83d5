"""Append-only files of JSON objects, one a line, flushed line by line.

A torn last line (the process was killed while writing) is cut off on opening. Anything unreadable before
the last line is an error: nothing is skipped in silence. One process may write a file at a time, or several
of one machine that open it as shared; any number may read it meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from earwitness.errors import DataError, UsageError
from earwitness.runs.locks import ByteLocks, flock_within

SHARING_PATIENCE_S = 2.0
"""How long a process that alone has the file may take to say that it shares it."""

Note = Callable[[Mapping[str, Any], int], None]
"""Called with every line and the offset it begins at: those there on opening, then those appended."""


class JsonLines:
    """A file open for appending (by one process, or by several that share it) or for reading.

    Parameters
    ----------
    locks: given, the file is shared: every append is made under their latch, after reading what others appended.
    keys: what every line must have.
    entry: what a line is called in an error.
    fits: whether a line with all keys is what it should be; None takes every one.
    note: told of every line, so that an index can be kept without keeping the lines.
    busy_step: what to do when another process has the file.

    Raises
    ------
    DataError: a line other than the last cannot be read.
    UsageError: another process has the file open for writing.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, JsonLines(Path(folder) / "log.jsonl") as log:
    ...     offset = log.append({"scenario": "s1"})
    ...     log.read(offset)
    {'scenario': 's1'}
    """

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        keys: tuple[str, ...] = (),
        entry: str = "an entry",
        note: Note | None = None,
        busy: str = "another process is writing to it",
        busy_step: str = "Wait for it to end.",
        kept: str = "everything written so far is kept",
        locks: ByteLocks | None = None,
        fits: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> None:
        self.path = path
        self.read_only = read_only
        self.repaired_bytes = 0
        self._keys = keys
        self._entry = entry
        self._note = note or _ignore
        self._kept = kept
        self._locks = locks
        self._fits = fits or _any
        self._writer: int | None = None
        if not read_only:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Unbuffered: what a failed write leaves behind must not be flushed again later.
            self._writer = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._busy = UsageError(str(path), busy, next_step=busy_step)
            if not (self._take_alone() if locks is None else self._take_shared()):
                os.close(self._writer)
                raise self._busy
        self._reader: IO[bytes] = path.open("rb")
        try:
            with self._latched():
                self._end = self._scan()
        except BaseException:
            self.close()
            raise

    def _take_alone(self) -> bool:
        assert self._writer is not None
        try:
            fcntl.flock(self._writer, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _take_shared(self) -> bool:
        assert self._writer is not None
        return flock_within(self._writer, fcntl.LOCK_SH, SHARING_PATIENCE_S, 0.01)

    def is_alone(self) -> bool:
        """Whether no other process has the file open for writing at this moment.

        Raises
        ------
        UsageError: one that does not share it came in between.
        """
        if self._locks is None or self._writer is None:
            return True
        with self._latched():
            alone = self._take_alone()
            # An attempt may cost the shared lock, whether it succeeds or not (flock(2)).
            if not self._take_shared():
                raise self._busy
        return alone

    def _latched(self) -> contextlib.AbstractContextManager[None]:
        shared = self._locks is not None and self._writer is not None
        return self._locks.latched() if shared and self._locks else contextlib.nullcontext()

    def catch_up(self) -> None:
        """Note what other processes have appended, and cut off what one of them left half written.

        Raises
        ------
        DataError: the file has become shorter, or a line cannot be read.
        """
        if self._writer is None or self._locks is None:
            return
        if os.fstat(self._writer).st_size == self._end:
            return
        with self._latched():
            size = os.fstat(self._writer).st_size
            if size < self._end:
                raise DataError(
                    str(self.path),
                    f"has become {self._end - size} bytes shorter while it was in use",
                    "a file that only this program writes to",
                    "Restore it from a copy and run the same command again.",
                )
            added = os.pread(self._writer, size - self._end, self._end)
            for raw in io.BytesIO(added):
                line = self._parse(raw)
                if line is None:
                    if self._end + len(raw) < size:
                        raise self._damaged(f"byte {self._end}", raw)
                    # Nobody else writes now: the process that began this line is gone.
                    os.ftruncate(self._writer, self._end)
                    return
                self._note(line, self._end)
                self._end += len(raw)
                if not raw.endswith(b"\n"):
                    self._end += os.write(self._writer, b"\n")

    def _damaged(self, where: str, raw: bytes) -> DataError:
        wanted = " and ".join(self._keys)
        return DataError(
            f"{self.path}:{where}",
            f"a line that is not {self._entry}: {raw[:60]!r}",
            wanted="one JSON object" + (f" with {wanted}" if wanted else ""),
            next_step="Restore the file from a copy; nothing was changed.",
        )

    def _scan(self) -> int:
        """Note every line; cut a torn last one. Returns the length of what is whole."""
        offset = 0
        for number, raw in enumerate(self._reader, start=1):
            line = self._parse(raw)
            if line is None:
                if self._reader.read(1):
                    raise self._damaged(str(number), raw)
                self.repaired_bytes = len(raw)
                if self._writer is not None:
                    os.ftruncate(self._writer, offset)
                return offset
            self._note(line, offset)
            offset += len(raw)
            if not raw.endswith(b"\n") and self._writer is not None:
                os.write(self._writer, b"\n")
                offset += 1
        return offset

    def _parse(self, raw: bytes) -> dict[str, Any] | None:
        try:
            line = json.loads(raw)
        except (ValueError, RecursionError):
            return None
        if isinstance(line, dict) and all(key in line for key in self._keys):
            return line if self._fits(line) else None
        return None

    def append(self, line: Mapping[str, Any]) -> int:
        """Write one line and return the offset it begins at.

        Raises
        ------
        DataError: the disk is full or the file cannot be written; no half line stays behind.
        UsageError: the file is open for reading only.
        """
        if self._writer is None:
            raise UsageError(str(self.path), "is open for reading only", wanted="a file to write")
        data = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        # Lone surrogates can come out of a model's broken JSON; they must not stop a run.
        encoded = data.encode("utf-8", errors="backslashreplace") + b"\n"
        with self._latched():
            self.catch_up()
            offset = self._write(encoded)
        self._note(line, offset)
        return offset

    def _write(self, encoded: bytes) -> int:
        assert self._writer is not None
        try:
            written = os.write(self._writer, encoded)
            if written < len(encoded):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            # A half-written line must not become the start of the next one.
            with contextlib.suppress(OSError):
                os.ftruncate(self._writer, self._end)
            raise DataError(
                str(self.path),
                f"cannot be written: {error.strerror or error}",
                next_step="Free space or fix the permissions and run the same command again: "
                f"{self._kept}.",
            ) from error
        offset, self._end = self._end, self._end + len(encoded)
        return offset

    def make_durable(self) -> None:
        """Have the system put on the disk what was written; a loss of power cannot take it back then."""
        if self._writer is not None:
            os.fsync(self._writer)

    def read(self, offset: int) -> dict[str, Any]:
        """The line that begins at an offset."""
        self._reader.seek(offset)
        line: dict[str, Any] = json.loads(self._reader.readline())
        return line

    def close(self) -> None:
        """Let go of the file; written lines are made durable first."""
        if hasattr(self, "_reader"):
            self._reader.close()
        if self._writer is not None:
            os.fsync(self._writer)
            os.close(self._writer)
            self._writer = None

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _any(line: Mapping[str, Any]) -> bool:
    del line
    return True


def _ignore(line: Mapping[str, Any], offset: int) -> None:
    del line, offset


def read_lines(path: Path, entry: str = "an entry") -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and object of every line of a finished file; a torn line is an error here.

    Raises
    ------
    DataError: the file is missing, or a line is not one JSON object; file and line are named.
    """
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                try:
                    line = json.loads(raw)
                except (ValueError, RecursionError) as error:
                    raise DataError(
                        f"{path}:{number}", f"is not JSON ({error})", wanted=entry
                    ) from None
                if not isinstance(line, dict):
                    raise DataError(f"{path}:{number}", "is no JSON object", wanted=entry)
                yield number, line
    except FileNotFoundError:
        raise DataError(str(path), "is missing", wanted=f"lines of {entry}") from None
    except OSError as error:
        raise DataError(str(path), f"cannot be read ({error.strerror})") from error
