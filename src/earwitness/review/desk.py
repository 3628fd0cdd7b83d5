"""What a running server has at hand: the folder, its database, its pages, and what it allows."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from earwitness.errors import UsageError
from earwitness.review.project import CACHE, Project, folder_path, read_project
from earwitness.review.recordings import recover, write_list
from earwitness.review.security import Allowance
from earwitness.review.store import connect
from earwitness.review.writer import Writer


class Desk:
    """State of one server on one folder.

    Parameters
    ----------
    secure: served over TLS; cookies are then for TLS alone.

    Raises
    ------
    DataError: it is no review folder.
    UsageError: another process serves it.
    """

    def __init__(self, folder: Path, *, secure: bool = False) -> None:
        self.folder = folder
        self.project: Project = read_project(folder)
        self._lock = _locked(folder)
        self.secure = secure
        self.db = connect(folder)
        self.db.execute("PRAGMA query_only=ON")
        self.writer = Writer(folder)
        if self.project.kind == "record":
            recover(folder)
            write_list(folder)
        # A person needs seconds for an item; a burst lets a script of the organiser's own work too.
        self.answering = Allowance(rate=20, burst=200)
        self.uploading = Allowance(rate=1, burst=20)
        self.guessing = Allowance(rate=0.5, burst=20)
        self.kept_state: tuple[float, dict[str, Any]] | None = None

    def close(self) -> None:
        """Finish what is queued."""
        self.writer.close()
        self.db.close()
        os.close(self._lock)

    @cached_property
    def templates(self) -> Any:
        """The pages, escaped by default."""
        from jinja2 import Environment, PackageLoader, StrictUndefined

        return Environment(
            loader=PackageLoader("earwitness.review", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    @cached_property
    def words(self) -> Mapping[str, Mapping[str, str]]:
        """Definitions shown beside the questions."""
        return load_words()

    def audio_file(self, item: int, stored: str) -> Path:
        """The audio of an item as browsers get it: sound alone.

        Metadata inside a file can name its emotion, and so can a chunk after the samples; a WAV of nothing but 16-bit
        samples is served as it is, everything else is decoded and written anew, once.

        Raises
        ------
        UsageError: the file is gone.
        AudioFileError: it cannot be decoded.
        """
        path = folder_path(self.folder, stored)
        if not path.is_file():
            raise UsageError(str(path), "no such file", "the audio of an item")
        if _is_plain(path):
            return path
        from earwitness.audio.files import atomic_write_bytes
        from earwitness.audio.io import encode_audio, read_audio

        state = path.stat()
        kept = self.folder / CACHE / f"{item}-{state.st_mtime_ns}-{state.st_size}.wav"
        if not kept.is_file():
            kept.parent.mkdir(exist_ok=True)
            atomic_write_bytes(kept, encode_audio(read_audio(path, require_sound=False)))
        return kept


def _locked(folder: Path) -> int:
    """One server on a folder: a second one would take what the first is receiving for left over."""
    handle = os.open(folder / ".serve.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise UsageError(
            str(folder), "another process serves this folder", "one server at a time"
        ) from None
    return handle


def load_words() -> Mapping[str, Mapping[str, str]]:
    """Definitions of emotions and reactions."""
    from importlib import resources

    import yaml

    from earwitness.tasks.reaction import load_prompt

    text = resources.files("earwitness.review").joinpath("data", "words.yaml").read_text("utf-8")
    return {
        "emotions": yaml.safe_load(text)["emotions"],
        "reactions": dict(load_prompt("time").definitions),
    }


def shown_of(text: str) -> dict[str, Any]:
    """What a page may show of an item."""
    shown: dict[str, Any] = json.loads(text)
    return shown


def _is_plain(path: Path) -> bool:
    """Whether a file is RIFF with a 16-bit PCM format chunk, samples, and not a byte more."""
    import struct

    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(44)
    if len(head) < 44 or head[:4] != b"RIFF" or head[8:16] != b"WAVEfmt " or head[36:40] != b"data":
        return False
    length, tag = struct.unpack("<IH", head[16:22])
    (bits,) = struct.unpack("<H", head[34:36])
    (data,) = struct.unpack("<I", head[40:44])
    return bool(length == 16 and tag == 1 and bits == 16 and data + 44 == size)
