"""Files: their hash, and writing them so that no half of one is ever seen."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

BLOCK_BYTES = 1 << 20


def file_sha256(path: Path | str) -> str:
    """SHA-256 of a file's bytes, in hexadecimal, read in blocks.

    Raises
    ------
    OSError: the file cannot be read.
    """
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def atomic_write_bytes(path: Path | str, data: bytes) -> None:
    """Write a file that appears whole or not at all, under its name by an atomic rename.

    The bytes are on the disk before the rename. An existing file is replaced and keeps its permissions.
    Parent folders are made.

    Raises
    ------
    OSError: the disk is full, or the folder cannot be written; nothing is left behind.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=".earwitness-", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(_mode_for(path))
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def atomic_write_text(path: Path | str, text: str) -> None:
    """Like :func:`atomic_write_bytes`, for text in UTF-8 with the line ends it has."""
    atomic_write_bytes(path, text.encode("utf-8"))


def _mode_for(path: Path) -> int:
    """Permissions a plain ``open`` would give; a temporary file would be readable by its owner only."""
    try:
        return path.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
