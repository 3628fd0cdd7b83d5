"""A set at a glance: how many clips of what, how long, and what does not fit."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from earwitness.audio.files import file_sha256
from earwitness.clips.corpus import EMOTIONS, Clip, ClipSet, clip_path, missing_files


def summarise(clip_set: ClipSet, *, verify: bool = False) -> dict[str, Any]:
    """Counts, lengths and problems of a set, ready for JSON.

    Parameters
    ----------
    verify: also compare every file with its hash (reads them all).

    Returns
    -------
    dict: ``card``, ``sha256``, ``clips``, ``labels``, ``speakers``, ``languages`` (each name -> clips and
    seconds), ``seconds`` (total, min, median, max) and ``problems`` (sentences).
    """
    clips = clip_set.clips
    lengths = [clip.seconds for clip in clips]
    return {
        "folder": str(clip_set.folder),
        "sha256": clip_set.sha256,
        "card": asdict(clip_set.card),
        "clips": len(clips),
        "labels": _by(clips, lambda clip: clip.emotion),
        "speakers": _by(clips, lambda clip: clip.speaker),
        "languages": _by(clips, lambda clip: clip.language),
        "seconds": {
            "total": round(sum(lengths), 3),
            "min": min(lengths),
            "median": statistics.median(lengths),
            "max": max(lengths),
        },
        "problems": problems_of(clip_set, verify=verify),
    }


def problems_of(clip_set: ClipSet, *, verify: bool = False) -> list[str]:
    """What does not fit, one sentence each; what cannot be *heard* is for ``clips validate``."""
    missing = missing_files(clip_set)
    found = [f"{path}: the file is missing or leads out of the folder" for path in missing]
    seen: dict[str, Clip] = {}
    for clip in clip_set.clips:
        first = seen.setdefault(clip.sha256, clip)
        if first is not clip:
            what = (
                "and label"
                if first.emotion == clip.emotion
                else f"but not label ({first.emotion}, {clip.emotion})"
            )
            found.append(f"{clip.path}: the same bytes {what} as {first.path}")
        if verify and clip.path not in missing:
            sha256 = file_sha256(clip_path(clip_set, clip))
            if sha256 != clip.sha256:
                found.append(f"{clip.path}: its hash is {sha256[:12]}, wanted {clip.sha256[:12]}")
    absent = [label for label in EMOTIONS if not any(c.emotion == label for c in clip_set.clips)]
    if len(absent) == len(EMOTIONS) - 1:
        found.append("all clips have one label: nothing can be told apart")
    return found


def _by(clips: tuple[Clip, ...], key: Callable[[Clip], str]) -> dict[str, dict[str, float]]:
    rows: dict[str, dict[str, float]] = {}
    for name in sorted({key(clip) for clip in clips}):
        chosen = [clip for clip in clips if key(clip) == name]
        rows[name] = {"clips": len(chosen), "seconds": round(sum(c.seconds for c in chosen), 3)}
    return rows
