"""What a user decides about an import, and whether it may be so: terms, licence, target folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from earwitness.clips.conversion import STATE_FOLDER, TARGET_RATE
from earwitness.clips.corpus import CARD_FILE, CLIPS_FILE, ClipSet, Use, load_clip_set
from earwitness.clips.labels import LabelMap
from earwitness.clips.readers import Reader, Terms
from earwitness.errors import DataError, LicenceError, UsageError
from earwitness.runs.items import digest

AUDIO_FOLDER = "audio"
_STRICTNESS: Mapping[Use, int] = {"any": 0, "non-commercial": 1, "evaluation-only": 2}


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a user may decide about an import. None means what the kind of source says.

    ``seconds`` are inclusive bounds, None for open; ``rate`` is None to copy files as they are.
    """

    name: str | None = None
    licence: str | None = None
    use: Use | None = None
    redistribute: bool | None = None
    synthetic: bool = False
    language: str | None = None
    label_map: str | None = None
    seconds: tuple[float | None, float | None] | None = None
    speakers: int | None = None
    per_label: int | None = None
    seed: int = 0
    rate: int | None = TARGET_RATE
    columns: Mapping[str, str] = field(default_factory=dict)
    revision: str = ""
    audio_root: Path | None = None
    skip_bad: bool = False
    overwrite: bool = False


def terms_for(reader: Reader, settings: Settings, source: Path) -> Terms:
    """The source's terms with the user's words in them, which may be stricter but never looser.

    Raises
    ------
    LicenceError: the user's words allow more than the source does.
    """
    terms = reader.terms
    use = settings.use or terms.use
    if not reader.own and _STRICTNESS[use] < _STRICTNESS[terms.use]:
        raise LicenceError(
            f"--use {use}",
            f"{terms.name} is {terms.use} ({terms.licence})",
            f"{terms.use} or stricter",
        )
    redistribute = terms.redistribute if settings.redistribute is None else settings.redistribute
    if redistribute and not reader.own and not terms.redistribute:
        raise LicenceError(
            "--redistribute", f"{terms.name} ({terms.licence}) is not passed on in reports"
        )
    return replace(
        terms,
        name=settings.name or terms.name or source.stem,
        licence=settings.licence or terms.licence,
        use=use,
        redistribute=redistribute,
        language=terms.language if settings.language is None else settings.language,
    )


def import_key(kind: str, terms: Terms, label_map: LabelMap, settings: Settings) -> str:
    """A hash of all that decides what an import makes, except the source's content."""
    return digest(
        {
            "kind": kind,
            "name": terms.name,
            "licence": terms.licence,
            "use": terms.use,
            "redistribute": terms.redistribute,
            "synthetic": settings.synthetic,
            "language": terms.language,
            "label_map": label_map.hash,
            "seconds": settings.seconds,
            "speakers": settings.speakers,
            "per_label": settings.per_label,
            "seed": settings.seed,
            "rate": settings.rate,
            "columns": dict(settings.columns),
            "revision": settings.revision,
            "skip_bad": settings.skip_bad,
        }
    )


def prepare(folder: Path, source: Path, key: str, settings: Settings) -> ClipSet | None:
    """Look at the target folder before any work; returns the set that is already there."""
    if source.exists():
        inside, outside = folder.resolve(), source.resolve()
        if inside == outside or inside.is_relative_to(outside):
            raise UsageError(
                f"--out {folder}", f"lies in the source {source}", "a folder outside the source"
            )
    if not folder.exists():
        return None
    if not folder.is_dir():
        raise UsageError(f"--out {folder}", "is a file", "a folder")
    if (folder / CLIPS_FILE).is_file():
        try:
            before = load_clip_set(folder, check_files=False)
        except DataError:
            if settings.overwrite:
                return None
            raise
        if before.card.import_key != key and not settings.overwrite:
            raise UsageError(
                f"--out {folder}",
                f"holds the set {before.card.name!r} from another import or other options",
                "a new folder",
                "Choose another --out, or replace it with --overwrite.",
            )
        return before
    others = [p for p in folder.iterdir() if p.name not in (STATE_FOLDER, AUDIO_FOLDER, CARD_FILE)]
    started = (folder / STATE_FOLDER).is_dir()
    if any(folder.iterdir()) and not started and not settings.overwrite:
        found = (others or list(folder.iterdir()))[0].name
        raise UsageError(
            f"--out {folder}", f"is not empty ({found}) and no clip set", "a new or empty folder"
        )
    return None


def parse_seconds(text: str) -> tuple[float | None, float | None]:
    """Read ``MIN-MAX``, ``MIN-`` or ``-MAX``.

    Raises
    ------
    UsageError: not of that form, or the bounds are the wrong way round.

    >>> parse_seconds("1.5-10")
    (1.5, 10.0)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)?\s*-\s*(\d+(?:\.\d+)?)?\s*", text)
    if match is None or not (match[1] or match[2]):
        raise UsageError("--seconds", f"found {text!r}", "MIN-MAX, MIN- or -MAX, such as 1-10")
    low = float(match[1]) if match[1] else None
    high = float(match[2]) if match[2] else None
    if low is not None and high is not None and low > high:
        raise UsageError("--seconds", f"found {text!r}", "the shorter length first")
    return low, high
