"""The run card: everything a run depends on, in one record."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from earwitness import __version__
from earwitness.models.protocols import AudioModel

CARD_VERSION = 1
_REPORTED = ("numpy", "scipy", "soundfile", "soxr", "httpx", "scikit-learn")


def software_versions() -> dict[str, str]:
    """Versions of what a figure may depend on."""
    versions = {"earwitness": __version__, "python": platform.python_version()}
    for package in _REPORTED:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def now() -> str:
    """This moment in UTC, to the second, as cards write it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def make_card(
    *,
    name: str,
    task: str,
    task_version: str,
    model: AudioModel,
    prompt: Mapping[str, Any],
    conditions: Sequence[str],
    stimuli: Mapping[str, Any],
    n_items: int,
    extra: Mapping[str, Any],
) -> dict[str, Any]:
    """Build a run card.

    Parameters
    ----------
    name: the row's name in a leaderboard.
    prompt: id, version, text and hash of the prompt.
    stimuli: the clip set or corpus: name, version, revision, hash, licence, permitted use.
    extra: what the task adds (parser version, label map).
    """
    return {
        "card_version": CARD_VERSION,
        "name": name,
        "task": task,
        "task_version": task_version,
        "model": model.name,
        "settings": dict(model.settings),
        "limits": asdict(model.limits),
        "prompt": dict(prompt),
        "conditions": list(conditions),
        "clips": dict(stimuli),
        "n_items": n_items,
        "started": now(),
        "finished": None,
        "versions": software_versions(),
        **extra,
    }
