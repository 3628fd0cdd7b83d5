"""What people answered, as files others read: JSON lines, CSV, and predictions for the leaderboard.

``recordings``  what was recorded: id, path, sha256, account, speaker, script_id, text, emotion, seconds, consent_version,
                recorded_at (a record folder)
``reviews``     recording, reviewer, audio_quality, match, perceived_emotion, note, at (a review folder)
``labels``      scene, sound, label, annotator, reaction, note, at (a label folder); ``label`` is the data set's own
``history``     every version of every answer, and what was taken back

Spreadsheet programs run a cell that begins with ``=``, ``+``, ``-`` or ``@`` as a formula. In CSV such text, and text
that hides it behind white space, gets an apostrophe in front; JSON lines have it as it was typed.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from earwitness.audio.files import atomic_write_text
from earwitness.errors import UsageError
from earwitness.review.project import EXPORT, Project, read_project
from earwitness.review.recordings import recordings_of
from earwitness.review.store import opened, rows
from earwitness.stats.agreement import MISSING
from earwitness.stats.agreement_labels import majority

Row = Mapping[str, Any]
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with their columns in order."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def tables(folder: Path) -> dict[str, Table]:
    """The tables a folder has, by name."""
    project = read_project(folder)
    found: dict[str, Callable[[Path], Table]] = {
        "record": _recordings,
        "review": _reviews,
        "label": _labels,
    }
    names = {"record": "recordings", "review": "reviews", "label": "labels"}
    return {names[project.kind]: found[project.kind](folder), "history": _history(folder)}


def export(folder: Path, out: Path | None = None) -> tuple[Path, ...]:
    """Write every table as JSON lines and CSV, each whole or not at all, into ``export/`` or ``out``."""
    target = out if out is not None else folder / EXPORT
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for name, table in tables(folder).items():
        for suffix, text in (("jsonl", to_jsonl(table)), ("csv", to_csv(table))):
            path = target / f"{name}.{suffix}"
            atomic_write_text(path, text)
            written.append(path)
    return tuple(written)


def to_jsonl(table: Table) -> str:
    """One JSON object a line."""
    return "".join(
        json.dumps({c: row[c] for c in table.columns}, ensure_ascii=False) + "\n"
        for row in table.rows
    )


def to_csv(table: Table) -> str:
    """Comma separated, with a header, no cell of it a formula."""
    return _csv([table.columns, *([row[c] for c in table.columns] for row in table.rows)])


def safe_cell(text: str) -> str:
    """Text that no spreadsheet runs.

    Examples
    --------
    >>> safe_cell("=1+1"), safe_cell("  @SUM(A1)"), safe_cell("a = b")
    ("'=1+1", "'  @SUM(A1)", 'a = b')
    """
    return f"'{text}" if text.startswith("\t") or text.lstrip().startswith(FORMULA_STARTS) else text


def _csv(lines: Iterable[Sequence[Any]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerows([_cell(value) for value in line] for line in lines)
    return file.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:.10g}"
    if isinstance(value, Mapping):
        return safe_cell(json.dumps(value, ensure_ascii=False, sort_keys=True))
    # A carriage return alone is not put into quotes by the writer, and would begin a line with what follows it.
    return safe_cell(str(value).replace("\r\n", "\n").replace("\r", "\n"))


_ANSWERS = (
    "SELECT i.key, i.gold, p.name, s.payload, s.at, s.seconds FROM answers s JOIN items i ON i.id=s.item"
    " JOIN people p ON p.id=s.person ORDER BY i.key, p.name"
)


def _recordings(folder: Path) -> Table:
    columns = (
        "id", "path", "sha256", "account", "speaker", "script_id", "text", "emotion", "seconds", "consent_version",
        "recorded_at", "rate", "takes", "capture",
    )  # fmt: skip
    return Table(columns, tuple(recordings_of(folder)))


def _reviews(folder: Path) -> Table:
    columns = (
        "recording", "reviewer", "audio_quality", "match", "perceived_emotion", "note", "at", "seconds",
    )  # fmt: skip
    found = []
    with opened(folder) as db:
        for key, _, person, payload, at, seconds in rows(db, _ANSWERS):
            answer = json.loads(payload)
            found.append(
                {"recording": key, "reviewer": person, **answer, "at": at, "seconds": seconds}
            )
    return Table(columns, tuple(found))


def _labels(folder: Path) -> Table:
    columns = ("scene", "sound", "label", "annotator", "reaction", "note", "at", "seconds")
    found = []
    with opened(folder) as db:
        for key, gold, person, payload, at, seconds in rows(db, _ANSWERS):
            answer, known = json.loads(payload), json.loads(gold)
            found += [
                {
                    "scene": key,
                    "sound": sound,
                    "label": known[sound],
                    "annotator": person,
                    "reaction": reaction,
                    "note": answer["note"],
                    "at": at,
                    "seconds": seconds,
                }
                for sound, reaction in sorted(answer["labels"].items())
            ]
    return Table(columns, tuple(found))


def _history(folder: Path) -> Table:
    with opened(folder) as db:
        found = rows(
            db,
            "SELECT i.key, p.name, h.act, h.payload, h.at FROM history h JOIN items i ON i.id=h.item"
            " JOIN people p ON p.id=h.person ORDER BY h.id",
        )
    columns = ("item", "person", "act", "answer", "at")
    return Table(
        columns,
        tuple(
            dict(zip(columns, (k, p, a, json.loads(v), at), strict=True))
            for k, p, a, v, at in found
        ),
    )


def predictions(folder: Path, *, each: bool = False) -> dict[str, Table]:
    """People as systems, in the columns ``earwitness score --predictions`` reads.

    Parameters
    ----------
    each: also one table a person, of what that person answered.

    Returns
    -------
    ``people`` holds one system, ``people, n = N``, with the label most people gave each item of the folder; items with
    a tie are ``ambiguous`` and items nobody answered are ``failed``, so that neither leaves the denominator.

    Raises
    ------
    UsageError: the answers are no labels (recordings, a review that is not blind), or there are none.
    """
    project = read_project(folder)
    question = _predicted(project)
    from earwitness.review.results import studies

    with opened(folder) as db:
        study = next((s for s in studies(db, project) if s.question == question), None)
        items = rows(db, "SELECT key, cluster, gold FROM items ORDER BY key")
    if study is None:
        raise UsageError(str(folder), "nobody has answered yet", "answers to export")
    ratings = study.ratings
    place = {item: row for row, item in enumerate(ratings.items)}
    vote = majority(ratings.codes, len(ratings.labels))
    most = int((ratings.codes != MISSING).sum(axis=1).max())
    units = [
        (f"{key}#{sound}" if project.kind == "label" else key, cluster, label)
        for key, cluster, gold in items
        for sound, label in sorted(json.loads(gold).items())
    ]
    columns = ("id", "gold", "prediction", "model", "speaker", "outcome", "error")
    people = []
    for unit, cluster, gold in units:
        row = place.get(unit)
        code = MISSING if row is None else int(vote[row])
        people.append(
            {
                "id": unit,
                "gold": gold,
                "prediction": ratings.labels[code] if code != MISSING else "",
                "model": f"people, n = {most}",
                "speaker": cluster,
                "outcome": "failed"
                if row is None
                else "ambiguous"
                if code == MISSING
                else "answered",
                "error": "nobody answered" if row is None else "",
            }
        )
    found = {"people": Table(columns, tuple(people))}
    if each:
        known = {unit: (cluster, gold) for unit, cluster, gold in units}
        for column, person in enumerate(ratings.raters):
            own = np.flatnonzero(ratings.codes[:, column] != MISSING)
            found[person] = Table(
                columns,
                tuple(
                    {
                        "id": ratings.items[row],
                        "gold": known[ratings.items[row]][1],
                        "prediction": ratings.labels[ratings.codes[row, column]],
                        "model": f"person {person}",
                        "speaker": known[ratings.items[row]][0],
                        "outcome": "answered",
                        "error": "",
                    }
                    for row in own
                ),
            )
    return found


def _predicted(project: Project) -> str:
    if project.kind == "label":
        return "reaction"
    if project.kind == "review" and project.blind:
        return "emotion"
    raise UsageError(
        "--predictions",
        "these answers are no labels" if project.kind == "review" else "these are recordings",
        "a label folder, or a review made with --blind",
    )
