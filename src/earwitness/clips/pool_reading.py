"""What comes into a pool: recordings from the app or as files, and reviews.

The recording app keeps ``recordings.jsonl`` beside ``recordings/<account>/<script_id>--<emotion>.wav``. Files of such
names without a line there are taken as well; their text comes from the assignments, and consent, speaker, sex and
language from options and ``speakers.csv`` (columns account, speaker, sex, language).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earwitness.clips.assignment import Assignment
from earwitness.clips.corpus import EMOTIONS
from earwitness.errors import DataError
from earwitness.runs.jsonlines import read_lines

RECORDINGS = "recordings.jsonl"
AUDIO = "recordings"
SPEAKERS = "speakers.csv"
SUFFIXES = (".wav", ".flac")


@dataclass(frozen=True, slots=True)
class Recording:
    """One take as it came in. ``sha256`` is empty where nobody wrote it down."""

    id: str
    file: Path
    sha256: str
    account: str
    speaker: str
    script_id: str
    text: str
    emotion: str
    consent_version: str
    recorded_at: str = ""
    sex: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class Review:
    """One reviewer's word on one recording. ``match`` is yes, no or unclear."""

    recording: str
    reviewer: str
    good: bool
    match: str
    perceived: str = ""
    note: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class SpeakerRow:
    """What ``speakers.csv`` says of an account."""

    speaker: str = ""
    sex: str = ""
    language: str = ""


def read_speakers(path: Path) -> dict[str, SpeakerRow]:
    """Rows of ``speakers.csv`` by account; none if there is no file.

    Raises
    ------
    DataError: no column ``account``, or one account twice.
    """
    if not path.exists():
        return {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(str(path), f"cannot be read ({error})", "a CSV table") from None
    found: dict[str, SpeakerRow] = {}
    for number, row in enumerate(rows, start=2):
        account = (row.get("account") or "").strip()
        if not account or account in found:
            raise DataError(
                f"{path}:{number}: account",
                f"found {account!r}{' again' if account else ''}",
                "a table with account, speaker, sex, language, each account once",
            )
        found[account] = SpeakerRow(
            *((row.get(name) or "").strip() for name in ("speaker", "sex", "language"))
        )
    return found


def read_recordings(
    folder: Path,
    assignments: Sequence[Assignment],
    speakers: Mapping[str, SpeakerRow],
    *,
    consent: str = "",
    language: str = "",
) -> tuple[Recording, ...]:
    """Recordings of a folder: those listed, then files that are not.

    Parameters
    ----------
    consent: version of the text that speakers of files agreed to; those of the app carry their own.

    Raises
    ------
    DataError: a line or a file's name is not what it should be.
    """
    texts = {(a.account, a.script_id): a.text for a in assignments}
    found = [
        _listed(line, f"{folder / RECORDINGS}:{number}", folder)
        for number, line in _lines(folder / RECORDINGS)
    ]
    listed = {recording.file.resolve() for recording in found}
    root = folder / AUDIO
    for path in sorted(root.rglob("*")) if root.is_dir() else ():
        hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
        if hidden or path.suffix.lower() not in SUFFIXES or path.resolve() in listed:
            continue
        account, script, emotion = _named(path, root)
        found.append(
            Recording(
                id=f"{account}/{script}--{emotion}",
                file=path,
                sha256="",
                account=account,
                speaker=account,
                script_id=script,
                text=texts.get((account, script), ""),
                emotion=emotion,
                consent_version=consent,
            )
        )
    return tuple(_completed(each, speakers, language) for each in found)


def _completed(
    recording: Recording, speakers: Mapping[str, SpeakerRow], language: str
) -> Recording:
    from dataclasses import replace

    row = speakers.get(recording.account, SpeakerRow())
    return replace(
        recording,
        speaker=row.speaker or recording.speaker,
        sex=recording.sex or row.sex,
        language=recording.language or row.language or language,
    )


def _lines(path: Path) -> list[tuple[int, dict[str, Any]]]:
    return list(read_lines(path, "a recording")) if path.exists() else []


def _listed(line: Mapping[str, Any], where: str, folder: Path) -> Recording:
    values = {}
    for name in ("id", "path", "account", "script_id", "text", "emotion", "consent_version"):
        value = line.get(name)
        if not isinstance(value, str) or (not value and name != "consent_version"):
            raise DataError(f"{where}: {name}", f"found {value!r}", "text")
        values[name] = value
    if values["emotion"] not in EMOTIONS:
        raise DataError(
            f"{where}: emotion", f"found {values['emotion']!r}", f"one of {', '.join(EMOTIONS)}"
        )
    file = folder / values.pop("path")
    if not file.resolve().is_relative_to(folder.resolve()):
        raise DataError(f"{where}: path", f"found {line['path']!r}", "a path inside the folder")
    optional = {
        name: str(line.get(name) or "") for name in ("sha256", "recorded_at", "sex", "language")
    }
    return Recording(
        **values, file=file, speaker=str(line.get("speaker") or values["account"]), **optional
    )


def _named(path: Path, root: Path) -> tuple[str, str, str]:
    parts = path.relative_to(root).parts
    script, dashes, emotion = path.stem.rpartition("--")
    if len(parts) != 2 or not dashes or not script or emotion not in EMOTIONS:
        raise DataError(
            str(path),
            "its name does not say what it is",
            f"{AUDIO}/ACCOUNT/SCRIPT--EMOTION.wav, with one of {', '.join(EMOTIONS)}",
        )
    return parts[0], script, emotion


def read_reviews(path: Path) -> tuple[Review, ...]:
    """Reviews of a file as ``earwitness review export`` writes it.

    A blind review has ``perceived_emotion`` and no ``match``; whether it matches is then seen from the recording.

    Raises
    ------
    DataError: a line is not a review; file and line are named.
    """
    found = []
    for number, line in read_lines(path, "a review"):
        where = f"{path}:{number}"
        values = {name: line.get(name) for name in ("recording", "reviewer")}
        for name, value in values.items():
            if not isinstance(value, str) or not value:
                raise DataError(f"{where}: {name}", f"found {value!r}", "text")
        quality, match = line.get("audio_quality"), line.get("match")
        perceived = line.get("perceived_emotion")
        if quality not in ("good", "poor"):
            raise DataError(f"{where}: audio_quality", f"found {quality!r}", "good or poor")
        if match not in ("yes", "no", "unclear", None):
            raise DataError(f"{where}: match", f"found {match!r}", "yes, no, unclear or null")
        if perceived not in (*EMOTIONS, None) or (match is None and perceived is None):
            raise DataError(
                f"{where}: perceived_emotion",
                f"found {perceived!r}",
                "one of the seven, or null where match is given",
            )
        found.append(
            Review(
                str(values["recording"]),
                str(values["reviewer"]),
                quality == "good",
                match or "",
                perceived or "",
                str(line.get("note") or ""),
                str(line.get("at") or ""),
            )
        )
    return tuple(found)
