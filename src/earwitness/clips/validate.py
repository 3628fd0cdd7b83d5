"""Looking at a clip set before it costs anything: its audio, and whether its records are true."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from earwitness.audio.validate import (
    Checked,
    Finding,
    Job,
    Mapper,
    Validation,
    check_file,
    duplicates,
    find_audio_files,
    findings_of,
    printable,
    summarise,
    validate_folder,
)
from earwitness.clips.corpus import CLIPS_FILE, Clip, clip_path, load_clip_set
from earwitness.jobs import pool_map

SECONDS_TOLERANCE = 0.01
"""Records may be rounded; a difference above 10 ms is another recording."""


def validate(
    folder: Path,
    *,
    allow_truncated: bool = False,
    workers: int | None = None,
    on_start: Callable[[int], None] | None = None,
    on_done: Callable[[int], None] | None = None,
) -> Validation:
    """Look at a clip set, or at any folder of audio files where there is no ``clips.jsonl``.

    Parameters
    ----------
    allow_truncated: a cut file is a warning rather than an error.
    workers: processes; None means one per processor.
    on_start, on_done: told the number of files, and how many are done.

    Raises
    ------
    UsageError: no such folder, or no audio in it.
    DataError: ``clips.jsonl`` or the set card cannot be read.
    """
    mapper = partial(pool_map, workers=workers, on_done=on_done)
    if (folder / CLIPS_FILE).is_file():
        return _validate_set(
            folder,
            allow_truncated=allow_truncated,
            mapper=mapper,
            on_start=on_start,
        )
    return validate_folder(
        folder,
        allow_truncated=allow_truncated,
        mapper=mapper,
        on_start=on_start,
    )


def _validate_set(
    folder: Path,
    *,
    allow_truncated: bool,
    mapper: Mapper,
    on_start: Callable[[int], None] | None,
) -> Validation:
    clip_set = load_clip_set(folder, check_files=False)
    jobs: list[Job] = []
    present: list[Clip] = []
    found: list[Finding] = []
    root = folder.resolve()
    for clip in clip_set.clips:
        path = clip_path(clip_set, clip)
        if path.is_file() and not path.resolve().is_relative_to(root):
            found.append(_outside(clip))
        elif path.is_file():
            jobs.append(Job(path, printable(clip.path), allow_truncated))
            present.append(clip)
        else:
            found.append(_missing(clip))
    listed = {clip_path(clip_set, clip).resolve() for clip in clip_set.clips}
    extra = [path for path in find_audio_files(folder) if path.resolve() not in listed]
    if on_start:
        on_start(len(jobs))
    checked = tuple(mapper(check_file, jobs))
    for clip, one in zip(present, checked, strict=True):
        found.extend(findings_of(one, clip.id))
        found.extend(_against_record(clip, one))
    found.extend(
        _repeated(dict(zip((c.id for c in present), present, strict=True)), present, checked)
    )
    found.extend(
        Finding(
            printable(path.relative_to(folder)),
            "unlisted",
            "warning",
            f"it is in the folder and not in {CLIPS_FILE}; it will not be used",
            "Import the set again, or remove the file.",
        )
        for path in extra
    )
    return summarise(folder, "clip set", checked, found)


def _missing(clip: Clip) -> Finding:
    return Finding(
        printable(clip.path),
        "missing",
        "error",
        "the file is not there",
        "Import the set again: what is there is kept.",
        clip.id,
    )


def _outside(clip: Clip) -> Finding:
    return Finding(
        printable(clip.path),
        "outside",
        "error",
        "it is a link that leads out of the folder",
        "Import the set again, so that it can be moved.",
        clip.id,
    )


def _against_record(clip: Clip, one: Checked) -> Iterator[Finding]:
    """Differences between a file and what the set says of it."""
    name, seen = one.shown, one.inspection
    if one.sha256 and one.sha256 != clip.sha256:
        yield Finding(
            name,
            "changed",
            "error",
            f"its SHA-256 is {one.sha256[:12]}..., the record says {clip.sha256[:12]}...",
            "Import the set again; results of the two files must not be mixed.",
            clip.id,
        )
    if not seen.rate:
        return
    wrong = []
    if seen.rate != clip.rate:
        wrong.append(f"{seen.rate} Hz, the record says {clip.rate} Hz")
    if seen.channels != clip.channels:
        plural = "s" * (seen.channels > 1)
        wrong.append(f"{seen.channels} channel{plural}, the record says {clip.channels}")
    if seen.frames and abs(seen.seconds - clip.seconds) > SECONDS_TOLERANCE:
        wrong.append(f"{seen.seconds:.3f} s, the record says {clip.seconds:.3f} s")
    if wrong:
        yield Finding(
            name,
            "record_mismatch",
            "error",
            "it has " + "; ".join(wrong),
            "Import the set again.",
            clip.id,
        )


def _repeated(
    by_id: Mapping[str, Clip], present: list[Clip], checked: tuple[Checked, ...]
) -> Iterator[Finding]:
    """Clips that are the same recording; an error where their labels differ."""
    hashes = ((clip.id, one.sha256) for clip, one in zip(present, checked, strict=True))
    for group in duplicates(hashes).values():
        first = by_id[group[0]]
        labels = {by_id[name].emotion for name in group}
        for name in group[1:]:
            clip = by_id[name]
            if len(labels) > 1:
                yield Finding(
                    printable(clip.path),
                    "label_conflict",
                    "error",
                    f"it is the same recording as {first.id}, and the set labels it {' and '.join(sorted(labels))}",
                    "Find out which label is right.",
                    clip.id,
                )
            else:
                yield Finding(
                    printable(clip.path),
                    "duplicate",
                    "warning",
                    f"it is the same recording as {first.id}",
                    "Keep one of them, or the recording counts twice.",
                    clip.id,
                )
