"""The clips that travel with a report: copied beside it or embedded in it, only where the set's licence allows."""

from __future__ import annotations

import base64
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from earwitness.errors import DataError, LicenceError, UsageError
from earwitness.report.boards import ReportData, clips_of
from earwitness.tasks.records import Decision, System

MAX_EMBEDDED_BYTES = 150_000_000
"""Of audio in one page; browsers become slow beyond, and a folder does not."""

_MEDIA_TYPES = {
    ".wav": "audio/wav",
    ".flac": "audio/flac",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".opus": "audio/ogg",
    ".m4a": "audio/mp4",
}


@dataclass(frozen=True, slots=True)
class Players:
    """Where the page finds the sound of a clip.

    ``sources`` maps a clip's path to a relative address or ``data:`` URI; empty when no audio travels along.
    """

    sources: Mapping[Path, str] = field(default_factory=dict)
    kind: str = ""
    total_bytes: int = 0


def heard(decision: Decision) -> bool:
    """Whether the model got the recording itself, so that playing it is honest."""
    return decision.condition == "audio" and decision.audio_path is not None


def _clips(data: ReportData) -> dict[Path, str]:
    """Paths of all clips heard, with the item's id, in the order of the boards."""
    found: dict[Path, str] = {}
    for board in data.boards:
        for system in board.systems:
            for decision in system.decisions:
                if decision.audio_path is not None and heard(decision):
                    found.setdefault(decision.audio_path, decision.item_id)
    return found


def check_licence(data: ReportData, option: str) -> None:
    """Make sure that every set whose clips would travel may be passed on.

    Raises
    ------
    LicenceError: a set does not allow it, or says nothing.
    """
    for board in data.boards:
        for system in board.systems:
            if any(heard(decision) for decision in system.decisions):
                _check(system, clips_of(system), option)


def _check(system: System, clips: Mapping[str, Any], option: str) -> None:
    if clips.get("redistribute") is True:
        return
    name = " ".join(str(clips[key]) for key in ("name", "version") if clips.get(key))
    raise LicenceError(
        f"clip set {name!r}" if name else f"the clips of {system.name!r}",
        f"its licence ({clips.get('licence') or 'not named'}) is not marked as allowing copies",
        wanted=f"redistribute: true in the set's card for {option}",
        next_step=f"Leave {option} out (the page then names the clips' paths); if the licence does allow copies, "
        "set redistribute: true in the set's card.yaml and run again.",
    )


def bundle_clips(data: ReportData, folder: Path) -> Players:
    """Copy the clips of the report into ``folder/clips``.

    Raises
    ------
    LicenceError: a set does not allow it.
    DataError: a clip is gone.
    UsageError: the systems have no clips.
    """
    clips = _checked(data, "--bundle")
    target = folder / "clips"
    target.mkdir(parents=True, exist_ok=True)
    sources: dict[Path, str] = {}
    taken: set[str] = set()
    total = 0
    for path, item_id in clips.items():
        name = _file_name(item_id, path.suffix.lower(), taken)
        taken.add(name.lower())
        part = target / f".{name}.part"
        shutil.copyfile(path, part)
        part.replace(target / name)
        sources[path] = f"clips/{name}"
        total += (target / name).stat().st_size
    return Players(sources, "bundled", total)


def link_clips(data: ReportData, page: Path) -> Players:
    """Refer to the clips where they are; nothing is copied, so no licence is asked.

    Parameters
    ----------
    page: the page's path; addresses are relative to it.
    """
    sources = {path: address_of(path, page) for path in _clips(data) if path.is_file()}
    return Players(sources, "linked" if sources else "")


def address_of(file: Path, page: Path) -> str:
    """A file's address as seen from a page: relative, or absolute where they are on different drives."""
    file = file.resolve()
    try:
        return quote(Path(os.path.relpath(file, page.parent.resolve())).as_posix())
    except ValueError:
        return file.as_uri()


def embed_clips(data: ReportData) -> Players:
    """Read the clips of the report as ``data:`` URIs.

    Raises
    ------
    LicenceError, DataError, UsageError: as :func:`bundle_clips`; also UsageError above the size limit.
    """
    clips = _checked(data, "--embed-audio")
    total = sum(path.stat().st_size for path in clips)
    if total > MAX_EMBEDDED_BYTES:
        raise UsageError(
            "--embed-audio",
            f"{len(clips):,} clips are {total / 1e6:,.0f} MB",
            wanted=f"at most {MAX_EMBEDDED_BYTES / 1e6:,.0f} MB in one page",
            next_step="Use --bundle, which writes a folder.",
        )
    sources = {}
    for path in clips:
        media_type = _MEDIA_TYPES.get(path.suffix.lower(), "audio/wav")
        sources[path] = (
            f"data:{media_type};base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"
        )
    return Players(sources, "embedded", total)


def _checked(data: ReportData, option: str) -> dict[Path, str]:
    clips = _clips(data)
    if not clips:
        raise UsageError(
            option,
            "the systems name no audio files",
            next_step=f"Leave {option} out, or report runs instead of a table of predictions.",
        )
    check_licence(data, option)
    for path, item_id in clips.items():
        if not path.is_file():
            raise DataError(
                str(path),
                f"the clip of item {item_id!r} is missing",
                next_step=f"Put the clip set back where the run found it, or leave {option} out.",
            )
    return clips


def _file_name(item_id: str, suffix: str, taken: set[str]) -> str:
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", item_id).strip("_")[:80] or "clip"
    name, number = f"{stem}{suffix}", 2
    while name.lower() in taken:
        name, number = f"{stem}-{number}{suffix}", number + 1
    return name


def shown_path(decision: Decision, system: System) -> str:
    """A clip's path as the page names it: inside its set, never with the folders of the machine."""
    if decision.audio_path is None:
        return ""
    folder = clips_of(system).get("folder")
    if folder:
        try:
            return decision.audio_path.relative_to(Path(str(folder))).as_posix()
        except ValueError:
            pass
    return decision.audio_path.name
