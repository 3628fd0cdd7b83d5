"""The review folder: ``project.yaml`` says what people are asked, ``review.db`` keeps what they answer.

=====================  ==========================================================================
``project.yaml``       kind, title, seed, how many people each item gets, settings of the kind
``review.db``          items, people, assignments, answers (SQLite, WAL)
``recordings/``        ``<account>/<script_id>--<emotion>.wav``, of a record folder
``recordings.jsonl``   what was recorded, kept current by the app
``cache/``             audio without its metadata, made as it is asked for; may be deleted
``export/``            what ``earwitness review export`` wrote
=====================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from earwitness.audio.files import atomic_write_text
from earwitness.errors import DataError, UsageError

Kind = Literal["record", "review", "label"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Show = Literal["transcript", "audio", "both"]
SHOWN: tuple[Show, ...] = get_args(Show)

PROJECT = "project.yaml"
DATABASE = "review.db"
RECORDINGS = "recordings"
CACHE = "cache"
EXPORT = "export"

CONSENT_VERSION = "1"
CONSENT_TEXT = """\
You are asked to speak short texts aloud and to perform an emotion while you do.

What is kept: the sound of your voice, the text, the emotion you were asked for, the time, and the account name \
you were given. Your own name is not asked for.

What it is used for: a set of recordings with which programs that listen to speech are tested. People review the \
recordings, and the set may be passed on under its licence. Its licence does not allow anyone to copy your voice.

You take part of your own will. You may stop at any time, leave out any text, and have everything you recorded \
deleted by telling the person who gave you the link; recordings already passed on cannot be called back.
"""
"""What speakers agree to unless the organiser gives a text of their own."""


@dataclass(frozen=True, slots=True)
class Project:
    """What a review folder asks of people.

    Attributes
    ----------
    per_item: how many people answer each item; recordings are made by one.
    source: the clip set, corpus, record folder or assignments it was made from.
    blind: review only: choose among the seven emotions instead of confirming the asked one.
    show: label only: what a scene is labelled from.
    consent_version, consent_text: record only; a changed version is asked again.
    min_seconds, max_seconds: record only: shortest and longest recording.
    """

    kind: Kind
    title: str
    seed: int = 0
    per_item: int = 1
    source: str = ""
    blind: bool = False
    show: Show = "transcript"
    consent_version: str = ""
    consent_text: str = ""
    min_seconds: float = 0.5
    max_seconds: float = 30.0


def write_project(folder: Path, project: Project) -> None:
    """Put ``project.yaml`` in place, with the settings of its kind only."""
    import yaml

    values = asdict(project)
    for name, kinds in _ONLY.items():
        if project.kind not in kinds:
            del values[name]
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=100)
    atomic_write_text(folder / PROJECT, text)


_ONLY: Mapping[str, tuple[str, ...]] = {
    "blind": ("review",),
    "show": ("label",),
    "consent_version": ("record",),
    "consent_text": ("record",),
    "min_seconds": ("record",),
    "max_seconds": ("record",),
}
"""Settings that only some kinds have."""


def read_project(folder: Path) -> Project:
    """Read ``project.yaml`` and check every field of it.

    Raises
    ------
    DataError: it is missing, or a field is not what it should be; the field is named.
    """
    import yaml

    path = folder / PROJECT
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(
            str(folder),
            f"is no review folder (no {PROJECT})",
            "a folder made by: earwitness review create",
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise DataError(str(path), f"cannot be read ({' '.join(str(error).split())})") from error
    if not isinstance(data, dict):
        raise DataError(str(path), f"holds {type(data).__name__}", "kind, title and settings")
    known = {entry.name: entry for entry in fields(Project)}
    extra = sorted(str(name) for name in set(data) - set(known))
    if extra:
        raise DataError(str(path), f"unknown field {extra[0]!r}", f"only {', '.join(known)}")
    for name, entry in known.items():
        if name not in data and entry.default is MISSING:
            raise DataError(str(path), f"no field {name!r}")
    return checked(Project(**data), str(path))


def checked(project: Project, where: str) -> Project:
    """The project itself, once every field of it was looked at.

    Raises
    ------
    DataError: a field is not what it should be.
    """

    def refuse(name: str, wanted: str) -> None:
        raise DataError(f"{where}: {name}", f"found {getattr(project, name)!r}", wanted)

    if project.kind not in KINDS:
        refuse("kind", ", ".join(KINDS))
    if project.show not in SHOWN:
        refuse("show", ", ".join(SHOWN))
    for name in ("title", "source", "consent_version", "consent_text"):
        if not isinstance(getattr(project, name), str):
            refuse(name, "text")
    for name, least in (("seed", None), ("per_item", 1)):
        value = getattr(project, name)
        if isinstance(value, bool) or not isinstance(value, int) or (least and value < least):
            refuse(name, "a whole number" + (f" of at least {least}" if least else ""))
    if not isinstance(project.blind, bool):
        refuse("blind", "true or false")
    for name in ("min_seconds", "max_seconds"):
        value = getattr(project, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 600:
            refuse(name, "seconds, above 0 and up to 600")
    if project.min_seconds >= project.max_seconds:
        refuse("min_seconds", f"less than max_seconds ({project.max_seconds:g})")
    if project.kind == "record":
        if project.per_item != 1:
            refuse("per_item", "1: a speaker's script is recorded by that speaker")
        if not project.consent_text.strip() or not project.consent_version.strip():
            refuse("consent_text", "what speakers agree to, with its consent_version")
    return replace(
        project, min_seconds=float(project.min_seconds), max_seconds=float(project.max_seconds)
    )


def require_kind(project: Project, kinds: tuple[Kind, ...], what: str) -> None:
    """Refuse what this kind of work does not have.

    Raises
    ------
    UsageError: the project is of another kind.
    """
    if project.kind not in kinds:
        raise UsageError(what, f"the folder's kind is {project.kind}", " or ".join(kinds))


def folder_path(folder: Path, stored: str) -> Path:
    """Where a stored path leads: relative ones begin at the review folder."""
    path = Path(stored)
    return path if path.is_absolute() else folder / path


def stored_path(folder: Path, path: Path) -> str:
    """How a path is kept: relative for what lies inside the review folder, absolute otherwise."""
    resolved = path.resolve()
    root = folder.resolve()
    return resolved.relative_to(root).as_posix() if resolved.is_relative_to(root) else str(resolved)


def settings_of(project: Project) -> dict[str, Any]:
    """The settings of the project's kind, for ``status`` and reports."""
    values = asdict(project)
    return {
        name: value
        for name, value in values.items()
        if name not in ("consent_text",) and project.kind in _ONLY.get(name, KINDS)
    }
