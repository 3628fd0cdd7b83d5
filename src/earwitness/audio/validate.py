"""Looking at every audio file of a folder before it costs anything: what is wrong, and what to do.

Each file is read in blocks, and none stops the others.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earwitness.audio.files import file_sha256
from earwitness.audio.io import inspect_audio
from earwitness.audio.sniff import AUDIO_SUFFIXES, sniff
from earwitness.audio.source import Source
from earwitness.audio.types import Inspection, Problem, Severity
from earwitness.errors import UsageError


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem, and the file it is about. ``path`` is relative to the folder and always printable."""

    path: str
    code: str
    severity: Severity
    message: str
    next_step: str = ""
    clip: str = ""

    def as_dict(self) -> dict[str, str]:
        return {
            "file": self.path,
            "clip": self.clip,
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "next_step": self.next_step,
        }


@dataclass(frozen=True, slots=True)
class Job:
    """One file to look at."""

    path: Path
    shown: str
    allow_truncated: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """What was seen of one file. ``sha256`` is empty where it could not be read."""

    shown: str
    inspection: Inspection
    sha256: str


Mapper = Callable[[Callable[[Job], Checked], Sequence[Job]], Iterable[Checked]]
"""Applies a function to many files, in order: the built-in ``map``, or one that works in parallel."""


@dataclass(frozen=True, slots=True)
class Validation:
    """Everything found in a folder. ``kind`` is ``folder`` or ``clip set``."""

    folder: str
    kind: str
    n_files: int
    seconds: float
    n_bytes: int
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.severity == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.severity == "warning")

    def passed(self, *, strict: bool = False) -> bool:
        """Whether the folder may be used; ``strict`` also minds warnings."""
        return not (self.findings if strict else self.errors)

    def counts(self) -> dict[str, int]:
        """Findings per code, in alphabetical order."""
        return dict(sorted(Counter(f.code for f in self.findings).items()))

    def as_dict(self) -> dict[str, Any]:
        """A record for scripts, JSON-serialisable."""
        return {
            "folder": self.folder,
            "kind": self.kind,
            "files": self.n_files,
            "seconds": round(self.seconds, 3) if math.isfinite(self.seconds) else None,
            "bytes": self.n_bytes,
            "errors": len(self.errors),
            "warnings": len(self.warnings),
            "bad_files": len({f.path for f in self.errors}),
            "counts": self.counts(),
            "problems": [f.as_dict() for f in self.findings],
        }


def printable(path: Path | str) -> str:
    """A path that any terminal and any JSON reader takes, whatever bytes its name has."""
    text = os.fsencode(str(path)).decode("utf-8", "backslashreplace").replace(os.sep, "/")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def find_audio_files(folder: Path) -> tuple[Path, ...]:
    """All files below a folder that are audio or claim to be, in the order of their names.

    Files with an audio suffix are all taken, so that a text named ``.wav`` is noticed; others only when
    their content is audio. Folders whose names begin with a dot are left out. Linked folders are
    followed, each once.
    """
    found: list[Path] = []
    seen: set[str] = set()
    for root, names, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(root)
        if real in seen:
            names.clear()
            continue
        seen.add(real)
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in files:
            path = Path(root, name)
            if path.suffix.lower() in AUDIO_SUFFIXES or _is_audio_inside(path):
                found.append(path)
    return tuple(sorted(found))


def _is_audio_inside(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            what = sniff(Source(str(path), file, path.stat().st_size))
    except OSError:
        return False
    if what.container == "MP3":
        # In other binary files a few bytes may look like MP3 frames by chance; not at the very start.
        return what.offset == 0
    unreadable = what.problem is not None and what.problem.code == "unsupported"
    return what.container is not None or unreadable


def check_file(job: Job) -> Checked:
    """Inspect and hash one file; never raises for a bad one."""
    inspection = inspect_audio(job.path, allow_truncated=job.allow_truncated)
    try:
        sha256 = file_sha256(job.path) if job.path.is_file() else ""
    except OSError:
        sha256 = ""
    return Checked(job.shown, inspection, sha256)


def findings_of(checked: Checked, clip: str = "") -> tuple[Finding, ...]:
    """The problems of one file as findings."""
    return tuple(finding(checked.shown, p, clip) for p in checked.inspection.problems)


def finding(path: str, problem: Problem, clip: str = "") -> Finding:
    return Finding(path, problem.code, problem.severity, problem.message, problem.next_step, clip)


def duplicates(hashes: Iterable[tuple[str, str]]) -> Mapping[str, tuple[str, ...]]:
    """Names that share a hash, for each hash that several have; empty hashes are left out."""
    names: dict[str, list[str]] = {}
    for name, sha256 in hashes:
        if sha256:
            names.setdefault(sha256, []).append(name)
    return {sha: tuple(group) for sha, group in names.items() if len(group) > 1}


def validate_folder(
    folder: Path,
    *,
    allow_truncated: bool = False,
    mapper: Mapper = map,
    on_start: Callable[[int], None] | None = None,
) -> Validation:
    """Look at every audio file of a plain folder, or at one file.

    Parameters
    ----------
    allow_truncated: a cut file is a warning rather than an error.
    mapper: how the work is spread; ``earwitness.clips.validate`` does it over processes.
    on_start: called once with the number of files.

    Raises
    ------
    UsageError: there is no such folder, or no audio file in it.
    """
    if not folder.exists():
        raise UsageError(printable(folder), "no such folder", "a folder of audio files")
    paths = find_audio_files(folder) if folder.is_dir() else (folder,)
    if not paths:
        raise UsageError(
            printable(folder), "no audio file in it or below it", "a folder of audio files"
        )
    if on_start:
        on_start(len(paths))
    base = folder if folder.is_dir() else folder.parent
    jobs = [Job(path, printable(path.relative_to(base)), allow_truncated) for path in paths]
    checked = tuple(mapper(check_file, jobs))
    found = [f for one in checked for f in findings_of(one)]
    for group in duplicates(
        (one.shown, one.sha256) for one in checked if one.inspection.ok
    ).values():
        found.extend(
            Finding(
                name,
                "duplicate",
                "warning",
                f"it has the same bytes as {group[0]}",
                "Keep one of them, or the recording counts twice.",
            )
            for name in group[1:]
        )
    return summarise(folder, "folder", checked, found)


def summarise(
    folder: Path, kind: str, checked: Sequence[Checked], found: Iterable[Finding]
) -> Validation:
    """Put findings in order: by file, errors first."""
    ordered = sorted(found, key=lambda f: (f.path, f.severity != "error", f.code, f.clip))
    return Validation(
        printable(folder),
        kind,
        len(checked),
        sum(one.inspection.seconds for one in checked),
        sum(one.inspection.bytes for one in checked),
        tuple(ordered),
    )
