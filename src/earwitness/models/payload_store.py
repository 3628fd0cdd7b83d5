"""Encoded stimuli kept on disk for further calls: other conditions, models, prompts and sittings.

Content-addressed: the name of a file is a hash of what was heard and of how it was encoded, so that nothing in it can
go stale. Bounded: the least recently used go first. Several processes may use one folder. What is sent unchanged is
read from its own file and never kept here.

Encoding needs the samples as floating point, ten times what is sent; one at a time keeps memory flat.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from earwitness.models.payload import Payload

DEFAULT_LIMIT_BYTES = 1024 * 1024 * 1024
_SUFFIX = ".payload"
_HEAD_BYTES = 64 * 1024
_KEEP = 0.9
"""Part of the limit that is left after making room, so that not every new one makes room again."""


def default_folder() -> Path:
    """Where payloads are kept unless told otherwise: a folder of this user's, never inside a run."""
    from earwitness.models.assets import assets_home

    return assets_home() / "payloads"


def release_large_blocks(threshold_bytes: int = 2 * 1024 * 1024) -> bool:
    """Have the C library give large blocks back to the system as soon as they are freed, for this whole process.

    glibc raises its threshold for that whenever a large block is freed (mallopt(3), M_MMAP_THRESHOLD), so that what
    was decoded would stay in the heap of every thread that ever decoded: 380 MiB instead of 180 for two-minute
    scenes. For programs of one's own (the command line calls it); False where the C library has no such setting.
    """
    import ctypes

    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    return set_option is not None and bool(set_option(-3, threshold_bytes))


@dataclass(slots=True)
class StoreCounts:
    """How often something was found and how often it had to be encoded."""

    found: int = 0
    made: int = 0


class PayloadStore:
    """Keeps what was encoded. Safe for threads.

    Parameters
    ----------
    folder: None keeps nothing and only bounds how many encode at a time.
    limit_bytes: of the folder. One payload larger than it is not kept.
    encoders: how many may encode at a time.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        encoders: int = 1,
    ) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self.counts = StoreCounts()
        self._encoders = threading.BoundedSemaphore(encoders)
        self._guard = threading.Lock()
        self._busy: dict[str, threading.Lock] = {}
        self._bytes: int | None = None

    def __repr__(self) -> str:
        return f"PayloadStore({str(self.folder) if self.folder else 'nothing kept'})"

    def payload(self, described: str, make: Callable[[], Payload]) -> Payload:
        """The payload of a description: from the folder, or made now and kept.

        Parameters
        ----------
        described: everything the bytes depend on.
        make: encodes it; called in this thread.
        """
        if self.folder is None:
            with self._encoders:
                self.counts.made += 1
                return make()
        key = hashlib.sha256(described.encode()).hexdigest()
        with self._alone(key):
            found = self._read(key)
            if found is not None:
                self.counts.found += 1
                return found
            with self._encoders:
                self.counts.made += 1
                made = make()
                self._keep(key, made)
            return made

    @contextlib.contextmanager
    def _alone(self, key: str) -> Iterator[None]:
        """One thread at a time for one key: three questions about a scene encode it once."""
        with self._guard:
            lock = self._busy.setdefault(key, threading.Lock())
        with lock:
            yield
        with self._guard:
            if not lock.locked():
                self._busy.pop(key, None)

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{key}{_SUFFIX}"

    def _read(self, key: str) -> Payload | None:
        from earwitness.models.payload import Payload

        path = self._path(key)
        try:
            # Head and body apart: a copy of the whole for each call under way would add up.
            with path.open("rb") as file:
                head, body = file.readline(_HEAD_BYTES), file.read()
        except OSError:
            return None
        try:
            told = json.loads(head)
            if hashlib.sha256(body).hexdigest() != told["sha256"]:
                raise ValueError("damaged")
            found = Payload(body, told["format"], told["media_type"], told["seconds"], told["note"])
        except (ValueError, KeyError, TypeError):
            # Damaged by whatever: made anew.
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return found

    def _keep(self, key: str, made: Payload) -> None:
        told = {
            "format": made.format,
            "media_type": made.media_type,
            "seconds": made.seconds,
            "note": made.note,
            "sha256": hashlib.sha256(made.data).hexdigest(),
        }
        head = json.dumps(told, sort_keys=True).encode() + b"\n"
        size = len(head) + len(made.data)
        if size > self.limit_bytes:
            return
        # A full disk must not end a run for want of a convenience.
        with contextlib.suppress(OSError):
            self._make_room(size)
            self._write(self._path(key), head, made.data)

    def _write(self, path: Path, *pieces: bytes) -> None:
        """Beside its place, then moved in; not forced to the disk, as what is lost is made again."""
        descriptor, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                for piece in pieces:
                    file.write(piece)
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise

    def _make_room(self, size: int) -> None:
        assert self.folder is not None
        with self._guard:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self._bytes is None:
                self._bytes = sum(each[1] for each in self._kept())
            self._bytes += size
            if self._bytes <= self.limit_bytes:
                return
            kept = sorted(self._kept())
            total = size + sum(each[1] for each in kept)
            for _, length, path in kept:
                if total <= self.limit_bytes * _KEEP:
                    break
                with contextlib.suppress(OSError):
                    path.unlink()
                total -= length
            self._bytes = total

    def _kept(self) -> list[tuple[float, int, Path]]:
        assert self.folder is not None
        found = []
        # With what a killed process left half written: it is the least recently used one day.
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):
                seen = path.stat()
                found.append((seen.st_mtime, seen.st_size, path))
        return found
