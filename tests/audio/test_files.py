"""Hashes, and files that appear whole or not at all."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from earwitness.audio import atomic_write_bytes, atomic_write_text, file_sha256


def test_hash(tmp_path: Path) -> None:
    data = os.urandom(3_000_001)
    (tmp_path / "a").write_bytes(data)
    assert file_sha256(tmp_path / "a") == hashlib.sha256(data).hexdigest()


def test_writing_replaces_whole(tmp_path: Path) -> None:
    path = tmp_path / "x/y/a.txt"
    atomic_write_text(path, "one\n")
    atomic_write_text(path, "zwei \u00fc\n")
    assert path.read_bytes() == "zwei \u00fc\n".encode()
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]


def test_a_failure_leaves_the_old_file_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    atomic_write_bytes(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        atomic_write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    atomic_write_bytes(tmp_path / "new", b"")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    plain.chmod(0o640)
    atomic_write_bytes(plain, b"x")
    assert stat.S_IMODE(plain.stat().st_mode) == 0o640
