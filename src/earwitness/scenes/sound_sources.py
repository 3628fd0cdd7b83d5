"""Readers of collections: from their layout on disk to a list of recordings with class, licence and credit.

Sources: ESC-50 (github.com/karolpiczak/ESC-50: ``meta/esc50.csv``, ``audio/``), FSD50K (zenodo 4060432:
``FSD50K.ground_truth``, ``FSD50K.metadata``, ``FSD50K.*_audio``), UrbanSound8K (``metadata/UrbanSound8K.csv``,
``audio/fold*/``).
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from earwitness.errors import DataError, UsageError

AUDIO_SUFFIXES = frozenset({".wav", ".flac", ".ogg", ".oga", ".mp3", ".aif", ".aiff", ".opus"})

TABLE_COLUMNS = (
    "file",
    "class",
    "licence",
    "attribution",
    "author",
    "source",
    "group",
    "kind",
    "synthetic",
)
"""What a table may say of a recording; ``file`` and ``class`` it must."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One file of a collection. ``labels`` are its classes, the most specific first."""

    path: Path
    labels: tuple[str, ...]
    source: str
    licence: str
    attribution: str = ""
    author: str = ""
    group: str = ""
    kind: str = ""
    synthetic: bool = False


@dataclass(slots=True)
class Listing:
    """What a reader found. ``left_out`` counts recordings by the reason they are no use."""

    recordings: list[Recording]
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """For folders and tables: columns of theirs by ours, and what holds for all files."""

    table: Path | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    licence: str = ""
    attribution: str = ""
    source: str = ""


Reader = Callable[[Path, ReaderOptions], Listing]

_LICENCES = {
    "publicdomain/zero/1.0": "CC0 1.0",
    "publicdomain/mark/1.0": "Public domain",
    "licenses/by/": "CC BY {}",
    "licenses/by-nc/": "CC BY-NC {}",
    "licenses/by-sa/": "CC BY-SA {}",
    "licenses/by-nc-sa/": "CC BY-NC-SA {}",
    "licenses/by-nd/": "CC BY-ND {}",
    "licenses/sampling+/1.0": "Sampling Plus 1.0",
}


def licence_name(address: str) -> str:
    """Short name of a Creative Commons licence from its address; other texts are returned as they are.

    Examples
    --------
    >>> licence_name("http://creativecommons.org/licenses/by-nc/3.0/")
    'CC BY-NC 3.0'
    """
    for part, name in _LICENCES.items():
        if part in address:
            return name.format(address.split(part, 1)[1].strip("/") or "?")
    return address.strip()


def _rows(path: Path, needed: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    if not path.is_file():
        raise DataError(
            str(path), "no such file", "the table of this collection",
            "SRC is the folder that the collection unpacks to.",
        )  # fmt: skip
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        absent = [name for name in needed if name not in (reader.fieldnames or ())]
        if absent:
            raise DataError(
                str(path), f"no column {absent[0]!r} among {', '.join(reader.fieldnames or ('none',))}",
                ", ".join(needed), "Name columns with --columns ours=theirs.",
            )  # fmt: skip
        for row in reader:
            yield reader.line_num, {k: (v or "").strip() for k, v in row.items() if k is not None}


def _found(path: Path, where: str) -> Path:
    if not path.is_file():
        raise DataError(where, f"{path} is missing", "every file of the table")
    return path


def esc50(folder: Path, options: ReaderOptions) -> Listing:
    """ESC-50. Clips of one Freesound recording stay together; the ESC-10 part is CC BY."""
    del options
    table = folder / "meta" / "esc50.csv"
    made = []
    for line, row in _rows(table, ("filename", "category", "esc10", "src_file")):
        clip = row["src_file"]
        made.append(
            Recording(
                _found(folder / "audio" / row["filename"], f"{table}: line {line}"),
                (row["category"],),
                source=f"ESC-50 {row['filename']}, freesound.org/s/{clip}",
                licence="CC BY 3.0" if row["esc10"].lower() == "true" else "CC BY-NC 3.0",
                attribution=f"ESC-50 by Karol J. Piczak; Freesound recording {clip}",
                group=f"freesound:{clip}",
            )
        )
    return Listing(made)


def urbansound8k(folder: Path, options: ReaderOptions) -> Listing:
    """UrbanSound8K: slices in the foreground only; slices of one recording stay together."""
    del options
    table = folder / "metadata" / "UrbanSound8K.csv"
    made, left = [], Counter[str]()
    for line, row in _rows(table, ("slice_file_name", "fsID", "salience", "fold", "class")):
        if row["salience"] != "1":
            left["in the background of its recording"] += 1
            continue
        path = folder / "audio" / f"fold{row['fold']}" / row["slice_file_name"]
        made.append(
            Recording(
                _found(path, f"{table}: line {line}"),
                (row["class"],),
                source=f"UrbanSound8K {row['slice_file_name']}, freesound.org/s/{row['fsID']}",
                licence="CC BY-NC 3.0",
                attribution=f"UrbanSound8K by Justin Salamon, Christopher Jacoby and Juan Pablo Bello; Freesound recording {row['fsID']}",
                group=f"freesound:{row['fsID']}",
            )
        )
    return Listing(made, left)


def fsd50k(folder: Path, options: ReaderOptions) -> Listing:
    """FSD50K, development and evaluation part, with the licence and uploader of every clip."""
    del options
    listing = Listing([])
    for part in ("dev", "eval"):
        table = folder / "FSD50K.ground_truth" / f"{part}.csv"
        if not table.is_file() and listing.recordings:
            continue
        info = _json(folder / "FSD50K.metadata" / f"{part}_clips_info_FSD50K.json")
        for line, row in _rows(table, ("fname", "labels")):
            clip = row["fname"]
            about = info.get(clip)
            if not isinstance(about, dict):
                raise DataError(f"{table}: line {line}", f"nothing about clip {clip}", "its licence in the clips info")  # fmt: skip
            author = str(about.get("uploader", ""))
            licence = licence_name(str(about.get("license", "")))
            listing.recordings.append(
                Recording(
                    _found(folder / f"FSD50K.{part}_audio" / f"{clip}.wav", f"{table}: line {line}"),
                    tuple(label.strip() for label in row["labels"].split(",")),
                    source=f"FSD50K {part}/{clip}, freesound.org/s/{clip}",
                    licence=licence,
                    attribution="" if licence.startswith("CC0") else f"{about.get('title', clip)!s} by {author} (freesound.org/s/{clip}), {licence}",
                    author=author,
                    group=f"freesound:{clip}",
                )
            )  # fmt: skip
    return listing


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(str(path), "no such file", "licences of the clips") from error
    except ValueError as error:
        raise DataError(str(path), "not JSON", "licences of the clips") from error
    if not isinstance(value, dict):
        raise DataError(str(path), type(value).__name__, "an object by clip")
    return value


def folder_of_classes(folder: Path, options: ReaderOptions) -> Listing:
    """Any folder: ``<class>/<file>``, or a table that says class, licence and credit of each file."""
    return _from_table(folder, options) if options.table else _from_folders(folder, options)


def _from_folders(folder: Path, options: ReaderOptions) -> Listing:
    if not options.licence:
        raise UsageError(
            str(folder), "no licence is known", "--licence TEXT, or a table with a licence for each file",
            "A library says under which licence every take is.",
        )  # fmt: skip
    made = [
        Recording(
            path, (path.parent.name,), source=options.source or f"{folder.name}/{path.relative_to(folder)}",
            licence=options.licence, attribution=options.attribution,
        )
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in AUDIO_SUFFIXES and path.parent != folder
    ]  # fmt: skip
    return Listing(made)


def _from_table(folder: Path, options: ReaderOptions) -> Listing:
    if strange := sorted(set(options.columns) - set(TABLE_COLUMNS)):
        raise UsageError("--columns", f"{strange[0]!r}", ", ".join(TABLE_COLUMNS))
    column = {name: options.columns.get(name, name) for name in TABLE_COLUMNS}
    table = options.table or folder
    table = table if table.is_file() else folder / table
    made, left = [], Counter[str]()
    for line, row in _rows(table, (column["file"], column["class"])):
        where = f"{table}: line {line}"
        values = {name: row.get(theirs, "") for name, theirs in column.items()}
        licence = licence_name(values["licence"]) or options.licence
        if not licence:
            raise DataError(where, "no licence", "one in the table, or --licence for all files")
        path = _found(folder / values["file"], where)
        made.append(
            Recording(
                path, (values["class"],), source=values["source"] or options.source or values["file"],
                licence=licence, attribution=values["attribution"] or options.attribution,
                author=values["author"], group=values["group"], kind=values["kind"],
                synthetic=values["synthetic"].lower() in ("1", "true", "yes"),
            )
        )  # fmt: skip
    return Listing(made, left)


READERS: Mapping[str, Reader] = {
    "esc50": esc50,
    "fsd50k": fsd50k,
    "urbansound8k": urbansound8k,
    "folder": folder_of_classes,
}
