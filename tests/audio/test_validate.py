"""Looking at whole folders of audio."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from earwitness.audio.validate import find_audio_files, printable, validate_folder
from earwitness.errors import UsageError
from tests.audio.wavs import plain, tone


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub/.git").mkdir(parents=True)
    (tmp_path / "b.wav").write_bytes(plain(tone(800)))
    (tmp_path / "sub/a.WAV").write_bytes(plain(tone(900)))
    (tmp_path / "sub/copy").write_bytes(plain(tone(800)))
    (tmp_path / "sub/cut.wav").write_bytes(plain(tone(800))[:1000])
    (tmp_path / "sub/page.mp3").write_bytes(b"<html></html>")
    (tmp_path / "sub/song").write_bytes(b"\0\0\0\x1cftypM4A \0\0\0\0")
    (tmp_path / "sub/.git/x.wav").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("no audio, and not named so")
    (tmp_path / "data.bin").write_bytes(b"\0" * 64 + b"\xff\xfb\x90\x00" * 50)
    return tmp_path


def test_which_files_are_looked_at(folder: Path) -> None:
    found = [str(p.relative_to(folder)) for p in find_audio_files(folder)]
    assert found == ["b.wav", "sub/a.WAV", "sub/copy", "sub/cut.wav", "sub/page.mp3", "sub/song"]


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no links here")
def test_a_link_in_a_circle_ends(folder: Path) -> None:
    (folder / "sub/loop").symlink_to(folder, target_is_directory=True)
    assert len(find_audio_files(folder)) == 6


def test_what_is_found(folder: Path) -> None:
    counted: list[int] = []
    result = validate_folder(folder, on_start=counted.append)
    assert [(f.path, f.code, f.severity) for f in result.findings] == [
        ("sub/copy", "duplicate", "warning"),
        ("sub/cut.wav", "truncated", "error"),
        ("sub/page.mp3", "not_audio", "error"),
        ("sub/song", "unsupported", "error"),
    ]
    assert result.n_files == 6
    assert counted == [6]
    assert result.counts() == {"duplicate": 1, "not_audio": 1, "truncated": 1, "unsupported": 1}
    assert not result.passed()


def test_warnings_fail_only_if_asked(tmp_path: Path) -> None:
    for name in ("a.wav", "b.wav"):
        (tmp_path / name).write_bytes(plain())
    result = validate_folder(tmp_path)
    assert result.passed()
    assert not result.passed(strict=True)


def test_a_cut_may_be_allowed(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(plain()[:3000])
    assert not validate_folder(tmp_path).passed()
    allowed = validate_folder(tmp_path, allow_truncated=True)
    assert allowed.passed()
    assert "244 of 3200 bytes" in allowed.findings[0].message


def test_one_file(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(plain())
    result = validate_folder(tmp_path / "a.wav")
    assert (result.n_files, result.findings) == (1, ())


def test_nothing_to_look_at(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no audio file in it"):
        validate_folder(tmp_path)
    with pytest.raises(UsageError, match="no such folder"):
        validate_folder(tmp_path / "absent")


def test_any_name_can_be_printed() -> None:
    assert printable("a/\udcff\x1b[31m\u00fc.wav") == "a/\\xff\\x1b[31m\u00fc.wav"


def test_a_broken_link_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "gone.wav").symlink_to(tmp_path / "nowhere")
    result = validate_folder(tmp_path)
    assert [(f.code, f.message) for f in result.findings] == [("unreadable", "no such file")]


def test_samples_do_not_travel_between_processes(tmp_path: Path) -> None:
    import pickle

    from earwitness.audio.validate import Job, check_file

    (tmp_path / "a.wav").write_bytes(plain(np.tile(tone(1600), (50, 1))))
    assert len(pickle.dumps(check_file(Job(tmp_path / "a.wav", "a.wav")))) < 2000
