"""Where something of a person may be, and how it goes: each function finds, and removes if it is told to.

All of them may be run again: what is gone already is no error, so a withdrawal that was interrupted is finished by doing it
once more.
"""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from earwitness.audio.files import atomic_write_text, file_sha256
from earwitness.clips.corpus import (
    CARD_FILE,
    CLIPS_FILE,
    Clip,
    ClipSet,
    card_to_yaml,
    clip_path,
    clip_to_json,
    load_clip_set,
    write_clip_set,
)
from earwitness.clips.exporting_documents import (
    EXPORT,
    METADATA,
    SUMS,
    read_info,
    remove_documents,
    write_documents,
)
from earwitness.errors import DataError
from earwitness.runs.folder import ITEMS, LEDGER, find_runs
from earwitness.runs.jsonlines import JsonLines, read_lines

DATABASE = "review.db"
TEXTS = {
    ".html", ".json", ".md", ".txt", ".tex", ".yaml", ".svg", ".tsv", ".css", ".js",
}  # fmt: skip


@dataclass
class Traces:
    """All that tells a person's things from others'.

    ``names`` are accounts and the speaker, in lower case; ``recordings`` ids in the collection; ``audio`` SHA-256 of
    recordings and of clips made of them; ``clips`` ids in exported sets; ``files`` paths of their audio.
    """

    names: set[str] = field(default_factory=set)
    recordings: set[str] = field(default_factory=set)
    audio: set[str] = field(default_factory=set)
    clips: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)

    def add(self, other: Traces) -> None:
        """Take in another's."""
        for name in ("names", "recordings", "audio", "clips", "files"):
            getattr(self, name).update(getattr(other, name))

    def to_json(self) -> dict[str, list[str]]:
        """Ready for JSON."""
        return {
            name: sorted(getattr(self, name))
            for name in ("names", "recordings", "audio", "clips", "files")
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Iterable[str]]) -> Traces:
        """The inverse of :meth:`to_json`."""
        return cls(**{name: set(values) for name, values in value.items()})

    def owns(self, row: Mapping[str, Any]) -> bool:
        """Whether a table's row is about the person."""
        for name in ("account", "speaker", "owner", "cluster"):
            if str(row.get(name) or "").casefold() in self.names:
                return True
        if {str(row.get("id") or ""), str(row.get("recording") or "")} & (
            self.recordings | self.clips
        ):
            return True
        return str(row.get("sha256") or "") in self.audio

    @property
    def needles(self) -> set[str]:
        """What only the person's things are called by, as it stands in files."""
        return self.recordings | self.clips | self.audio


@dataclass(frozen=True, slots=True)
class Effect:
    """Something that goes, or would go. ``rebuild`` says what to make anew afterwards; empty for nothing."""

    path: str
    what: str
    count: int
    rebuild: str = ""


def filter_lines(path: Path, traces: Traces, what: str, *, do: bool) -> Iterator[Effect]:
    """Drop the person's rows from a file of JSON lines; an empty file goes."""
    if not path.exists():
        return
    kept, gone = [], 0
    for _, line in read_lines(path, what):
        if traces.owns(line):
            gone += 1
        else:
            kept.append(json.dumps(line, ensure_ascii=False) + "\n")
    if not gone:
        return
    if do:
        atomic_write_text(path, "".join(kept))
    yield Effect(str(path), what, gone)


def filter_table(path: Path, traces: Traces, what: str, *, do: bool) -> Iterator[Effect]:
    """Drop the person's rows from a CSV table."""
    if not path.exists():
        return
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
        names = list(reader.fieldnames or ())
    kept = [row for row in rows if not traces.owns(row)]
    if len(kept) == len(rows):
        return
    if do:
        out = io.StringIO(newline="")
        table = csv.DictWriter(out, names, lineterminator="\n")
        table.writeheader()
        table.writerows(kept)
        atomic_write_text(path, out.getvalue())
    yield Effect(str(path), what, len(rows) - len(kept))


def remove_files(traces: Traces, *, do: bool) -> Iterator[Effect]:
    """Delete the person's audio files, and folders that are empty then."""
    for name in sorted(traces.files):
        path = Path(name)
        if not path.exists():
            continue
        if do:
            path.unlink()
            if not any(path.parent.iterdir()):
                path.parent.rmdir()
        yield Effect(name, "audio file", 1)


def sets_in(folder: Path) -> list[Path]:
    """Clip sets in a folder: itself, or its splits."""
    found = [folder] if (folder / CLIPS_FILE).exists() else []
    return found + sorted(path.parent for path in folder.glob(f"*/{CLIPS_FILE}"))


def traces_in_set(folder: Path, traces: Traces) -> Traces:
    """Clips of a set that were made of the person's recordings."""
    found = Traces()
    for place in sets_in(folder):
        clip_set = load_clip_set(place, check_files=False)
        for clip in _theirs(clip_set, traces):
            found.clips.add(clip.id)
            found.audio.add(clip.sha256)
            found.files.add(str(clip_path(clip_set, clip).absolute()))
    return found


def _theirs(clip_set: ClipSet, traces: Traces) -> list[Clip]:
    return [
        clip
        for clip in clip_set.clips
        if clip.metadata.get("source_sha256") in traces.audio or clip.sha256 in traces.audio
    ]


def forget_in_set(folder: Path, traces: Traces, *, do: bool) -> Iterator[Effect]:
    """Take the person's clips out of a set and make its documents anew.

    Audio files went before, by :func:`remove_files`.
    """
    touched = False
    for place in sets_in(folder):
        clip_set = load_clip_set(place, check_files=False)
        gone = {clip.id for clip in _theirs(clip_set, traces)}
        if not gone and clip_set.card.counts:
            continue
        touched = True
        kept = [clip for clip in clip_set.clips if clip.id not in gone]
        if do and kept:
            _rewrite(place, clip_set, kept)
        elif do:
            (place / CLIPS_FILE).unlink()
        if not gone:
            continue
        yield Effect(
            str(place), "clips of the set", len(gone),
            f"{place}: {len(kept)} clips are left; select and export a new version, and publish that",
        )  # fmt: skip
        if clip_set.card.use != "evaluation-only":
            yield Effect(
                str(place), "training material", len(gone),
                f"models trained on {place}: train them again",
            )  # fmt: skip
    for card in (folder / CARD_FILE, *sorted(folder.glob(f"*/{CARD_FILE}"))):
        if do and not (card.parent / CLIPS_FILE).exists():
            for name in (METADATA, CARD_FILE):
                (card.parent / name).unlink(missing_ok=True)
    if (folder / EXPORT).exists():
        stale = _documents_stale(folder, traces)
        info = read_info(folder)
        if do and info is not None and not sets_in(folder):
            remove_documents(folder)
        elif do and info is not None and (touched or stale):
            write_documents(folder, info)
        if touched or stale:
            yield Effect(str(folder / SUMS), "data card, tables, Croissant file and hashes", 1)


def _rewrite(place: Path, clip_set: ClipSet, kept: list[Clip]) -> None:
    """Write the set with the clips that are left.

    The card goes without its counts meanwhile, so that it fits the old and the new table alike when a kill comes
    between the two.
    """
    bare = replace(clip_set.card, counts={})
    atomic_write_text(place / CARD_FILE, card_to_yaml(bare))
    atomic_write_text(place / CLIPS_FILE, "".join(clip_to_json(clip) + "\n" for clip in kept))
    write_clip_set(place, clip_set.card, kept)


def _documents_stale(folder: Path, traces: Traces) -> bool:
    """Whether a document still names one of the clips: the set was mended, and then a kill came."""
    for path in (folder / SUMS, *folder.glob(METADATA), *folder.glob(f"*/{METADATA}")):
        if path.exists() and any(name in path.read_text(encoding="utf-8") for name in traces.clips):
            return True
    return False


def forget_in_runs(folder: Path, traces: Traces, *, do: bool) -> Iterator[Effect]:
    """Take the person's items and replies out of run folders."""
    for run in find_runs([folder]):
        items = [line for _, line in read_lines(run / ITEMS, "a question")]
        gone = [
            line
            for line in items
            if line.get("id") in traces.clips | traces.recordings
            or str(line.get("audio") or "").partition(":")[0] in traces.audio
        ]
        keys = {str(line.get("key")) for line in gone}
        ids = {str(line.get("id")) for line in gone} | traces.clips
        replies = _forget_in_ledger(run / LEDGER, keys, ids, do=do)
        if do and gone:
            # The ledger first: its lines are found by the keys that stand in the items.
            kept = [line for line in items if str(line.get("key")) not in keys]
            text = "".join(json.dumps(x, ensure_ascii=False, sort_keys=True) + "\n" for x in kept)
            atomic_write_text(run / ITEMS, text)
        if gone or replies:
            yield Effect(
                str(run), "items and replies of the run", len(gone) + replies,
                f"{run}: make reports and tables from it again",
            )  # fmt: skip


def _forget_in_ledger(path: Path, keys: set[str], ids: set[str], *, do: bool) -> int:
    if not path.exists():
        return 0
    # Opened for writing, so that a run that is going on is not cut in two.
    with JsonLines(
        path, busy_step="End the run, or wait for it, and say it again.", read_only=not do
    ):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [x for x in lines if not _is_of(json.loads(x), keys, ids)]
        if do and len(kept) < len(lines):
            atomic_write_text(path, "".join(kept))
    return len(lines) - len(kept)


def _is_of(line: Mapping[str, Any], keys: set[str], ids: set[str]) -> bool:
    return str(line.get("key")) in keys or str(line.get("item")) in ids


def forget_in_review(folder: Path, traces: Traces, *, do: bool) -> Iterator[Effect]:
    """Take the person out of a folder of the review app: answers, consents, recordings, cache, exports."""
    if not (folder / DATABASE).exists():
        return
    yield from _forget_in_database(folder / DATABASE, traces, do=do)
    cache = folder / "cache"
    files = [path for path in sorted(cache.rglob("*")) if path.is_file()] if cache.is_dir() else []
    if files:
        if do:
            for path in files:
                path.unlink()
        yield Effect(str(cache), "cached audio of the review app", len(files))
    if (folder / "export").is_dir():
        yield from forget_in_derived(folder / "export", traces, do=do)


def _forget_in_database(path: Path, traces: Traces, *, do: bool) -> Iterator[Effect]:
    try:
        with closing(sqlite3.connect(path, timeout=5.0)) as db:
            tables = {
                row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type='table'")
            }
            items = _rows(db, tables, "items", ("id", "key", "cluster", "owner", "sha256"))
            item_ids = [row["id"] for row in items if traces.owns({**row, "id": row["key"]})]
            people = _rows(db, tables, "people", ("id", "name"))
            person_ids = [
                row["id"] for row in people if str(row["name"]).casefold() in traces.names
            ]
            if not item_ids and not person_ids:
                return
            total = 0
            # What was deleted is overwritten, not only unlinked.
            db.execute("PRAGMA secure_delete=ON")
            for table, column, ids in (
                *(
                    (t, "item", item_ids)
                    for t in ("assignments", "answers", "history", "recordings")
                ),
                *(
                    (t, "person", person_ids)
                    for t in ("assignments", "answers", "history", "consents")
                ),
                ("items", "id", item_ids),
                ("people", "id", person_ids),
            ):
                if table in tables:
                    for one in ids:
                        total += db.execute(
                            f"DELETE FROM {table} WHERE {column}=?", (one,)
                        ).rowcount
            if do:
                db.commit()
                db.execute("VACUUM")
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            else:
                db.rollback()
    except sqlite3.Error as error:
        raise DataError(
            str(path), f"cannot be changed ({error})", "a review database nobody is using",
            "Stop the review app and run the same command again.",
        ) from None  # fmt: skip
    yield Effect(str(path), "rows of the review database", total)


def _rows(
    db: sqlite3.Connection, tables: set[str], table: str, columns: tuple[str, ...]
) -> list[dict[str, Any]]:
    if table not in tables:
        return []
    found = db.execute(f"SELECT {', '.join(columns)} FROM {table}")
    return [dict(zip(columns, row, strict=True)) for row in found]


def forget_in_derived(folder: Path, traces: Traces, *, do: bool) -> Iterator[Effect]:
    """Remove what was made of the person's recordings in any folder: reports, tables, caches.

    Rows go from JSON lines and CSV tables; another file goes as a whole when it is a copy of the audio, is named
    after it, or names it inside.
    """
    needles = traces.needles
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.is_symlink():
            continue
        named = any(needle in path.name for needle in traces.clips | traces.audio)
        if named or file_sha256(path) in traces.audio:
            if do:
                path.unlink()
            yield Effect(str(path), "copy of audio", 1)
        elif path.suffix in (".jsonl", ".csv"):
            yield from _drop_lines(path, needles, do=do)
        elif path.suffix in TEXTS and _mentions(path, needles):
            if do:
                path.unlink()
            yield Effect(str(path), "file that names recordings", 1, f"{path}: make it again")


def _mentions(path: Path, needles: set[str]) -> bool:
    text = path.read_text(encoding="utf-8", errors="replace")
    return any(needle in text for needle in needles)


def _drop_lines(path: Path, needles: set[str], *, do: bool) -> Iterator[Effect]:
    text = path.read_text(encoding="utf-8", errors="replace")
    if not any(needle in text for needle in needles):
        return
    keep: Callable[[str], bool] = lambda part: not any(needle in part for needle in needles)  # noqa: E731
    if path.suffix == ".csv":
        # A cell may hold line breaks, so a row is what the CSV reader says it is.
        rows = list(csv.reader(io.StringIO(text, newline="")))
        left = [row for row in rows if keep("\x00".join(row))]
        out = io.StringIO(newline="")
        csv.writer(out, lineterminator="\n").writerows(left)
        new, gone = out.getvalue(), len(rows) - len(left)
    else:
        lines = text.splitlines(keepends=True)
        left_lines = [line for line in lines if keep(line)]
        new, gone = "".join(left_lines), len(lines) - len(left_lines)
    if do:
        atomic_write_text(path, new)
    yield Effect(str(path), "rows", gone, f"{path}: figures made from it must be made again")
