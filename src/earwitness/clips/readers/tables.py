"""Clips of one's own: a CSV or JSONL table with a column mapping, or folders named after the emotions."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from earwitness.clips.corpus import safe_id
from earwitness.clips.readers.listing import (
    Listing,
    Options,
    SourceClip,
    Terms,
    audio_files,
    without_copies,
)
from earwitness.errors import DataError, UsageError

OWN = Terms(
    name="",
    licence="unspecified",
    use="evaluation-only",
    label_map="generic",
    source="clips of one's own",
)

FIELDS = ("path", "emotion", "id", "speaker", "language", "licence")
"""Fields of ours that a column may be mapped to; every other column becomes metadata."""

_REQUIRED = ("path", "emotion")


def parse_columns(text: str) -> dict[str, str]:
    """Read a mapping such as ``path=file,emotion=label``; a comma in a name is written ``\\,``.

    Raises
    ------
    UsageError: not of that form, an unknown field, a field given twice.

    >>> parse_columns("path=file,emotion=label")
    {'path': 'file', 'emotion': 'label'}
    """
    columns: dict[str, str] = {}
    for part in re.split(r"(?<!\\),", text):
        ours, equals, theirs = part.replace("\\,", ",").partition("=")
        ours, theirs = ours.strip(), theirs.strip()
        if not equals or not theirs:
            raise UsageError(
                "--map", f"found {part!r}", "OURS=THEIRS, such as path=file,emotion=label"
            )
        if ours not in FIELDS:
            raise UsageError("--map", f"unknown field {ours!r}", f"one of {', '.join(FIELDS)}")
        if ours in columns:
            raise UsageError("--map", f"{ours!r} is given twice", "each field once")
        columns[ours] = theirs
    return columns


def read_csv(source: Path, options: Options) -> Listing:
    """A CSV (comma, semicolon or tab) with a header; paths are relative to the file."""
    _need_file(source, "a CSV file")
    return _from_rows(_csv_rows(source), source, options)


def read_jsonl(source: Path, options: Options) -> Listing:
    """One JSON object a line; paths are relative to the file. Lists and objects are kept as JSON text."""
    _need_file(source, "a JSONL file")
    return _from_rows(json_rows(source), source, options)


def read_audiofolder(source: Path, options: Options) -> Listing:
    """Folders named after the emotions; or a folder with ``metadata.csv`` or ``metadata.jsonl``.

    Without a table, the label is the name of the folder a file is in. ``--map emotion=part1,speaker=part2``
    takes other parts of the path, counted from the source folder. With a table, the path stands in
    ``file_name`` unless mapped otherwise.
    """
    if not source.is_dir():
        raise UsageError(str(source), "no such folder", "a folder with one sub-folder per emotion")
    for name, rows in (("metadata.csv", _csv_rows), ("metadata.jsonl", json_rows)):
        table = source / name
        if table.is_file():
            columns = {"path": "file_name", **options.columns}
            return _from_rows(
                rows(table), table, Options(columns, options.revision, options.audio_root)
            )
    clips = []
    for path in audio_files(source):
        parts = path.relative_to(source).parts
        values = {
            ours: _part(theirs, parts, path)
            for ours, theirs in options.columns.items()
            if ours != "path"
        }
        if "emotion" not in values:
            if len(parts) < 2:
                raise DataError(
                    str(path),
                    "lies in no sub-folder",
                    "a folder named after the emotion, or a metadata.csv",
                )
            values["emotion"] = parts[-2]
        clips.append(
            SourceClip(
                id=values.get("id") or stable_id(path.relative_to(source).as_posix()),
                file=path,
                source_label=values["emotion"],
                speaker=values.get("speaker", ""),
                language=values.get("language", ""),
                licence=values.get("licence", ""),
            )
        )
    if not clips:
        raise DataError(str(source), "no audio file in it", "EMOTION/file.wav, or a metadata.csv")
    return _unique(clips, str(source))


def stable_id(path: str) -> str:
    """A clip id from a relative path: the suffix goes, separators become ``__``, unusable characters ``_``.

    The id depends on nothing but the path, so that adding files renames none.

    >>> stable_id("angry/take 1.wav")
    'angry__take 1'
    """
    stem = path.rsplit(".", 1)[0] if "." in path.rsplit("/", 1)[-1][1:] else path
    cleaned = re.sub(r'[\\:*?"<>|\x00-\x1f\x7f]', "_", stem.strip().replace("/", "__"))
    return re.sub(r"^[.\s]+", "_", cleaned).strip()


def json_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a JSONL file with their line numbers; every value as text, null as empty text.

    Raises
    ------
    DataError: names the line that is not a JSON object.
    """
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(
                f"{path}:{number}", f"not JSON ({error})", "one JSON object a line"
            ) from error
        if not isinstance(row, dict):
            raise DataError(
                f"{path}:{number}", f"found {type(row).__name__}", "one JSON object a line"
            )
        yield number, {key: _as_text(value) for key, value in row.items()}


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    text = _text(path)
    if not text.strip():
        raise DataError(str(path), "is empty", "a header line and one line a clip")
    delimiter = max(",;\t", key=text.split("\n", 1)[0].count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    names = reader.fieldnames or []
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"{path}:1", f"the column {twice[0]!r} is there twice", "each column once")
    try:
        for row in reader:
            number = reader.line_num
            if None in row or None in row.values():
                raise DataError(
                    f"{path}:{number}",
                    "has more or fewer cells than the header",
                    f"{len(names)} cells separated by {delimiter!r}",
                )
            yield number, {key: value.strip() for key, value in row.items()}
    except csv.Error as error:
        raise DataError(
            f"{path}:{reader.line_num}", f"not CSV ({error})", "quoted cells closed"
        ) from error


def _from_rows(
    rows: Iterator[tuple[int, dict[str, str]]], table: Path, options: Options
) -> Listing:
    columns = {field: field for field in FIELDS} | dict(options.columns)
    root = options.audio_root or table.parent
    clips = []
    for number, row in rows:
        where = f"{table}:{number}"
        for field in FIELDS:
            asked = field in options.columns or field in _REQUIRED
            if asked and columns[field] not in row:
                raise DataError(
                    where,
                    f"no column {columns[field]!r} for {field}; there are {', '.join(row)}",
                    f"--map {field}=COLUMN",
                )
        values = {field: row.get(columns[field], "") for field in FIELDS}
        for field in _REQUIRED:
            if not values[field]:
                raise DataError(where, f"{columns[field]!r} is empty", f"the {field} of the clip")
        used = {columns[field] for field in FIELDS}
        clips.append(
            SourceClip(
                id=values["id"] or stable_id(values["path"]),
                file=root / values["path"],
                source_label=values["emotion"],
                speaker=values["speaker"],
                language=values["language"],
                licence=values["licence"],
                metadata={key: text for key, text in row.items() if key not in used and text},
            )
        )
        problem = safe_id(clips[-1].id)
        if problem:
            raise DataError(where, f"the id {clips[-1].id!r} {problem}", "a short plain name")
    if not clips:
        raise DataError(str(table), "no row in it", "one row a clip")
    return _unique(clips, str(table))


def _unique(clips: list[SourceClip], where: str) -> Listing:
    missing = [clip for clip in clips if not clip.file.is_file()]
    if missing:
        raise DataError(
            where,
            f"{len(missing)} of {len(clips)} files are not there, the first is {missing[0].file}",
            "paths relative to the table",
            "Say where they are with --audio-root.",
        )
    labels: dict[str, str] = {}
    for clip in clips:
        first = labels.setdefault(clip.id.casefold(), clip.source_label)
        if first != clip.source_label:
            raise DataError(
                where,
                f"{clip.id!r} is labelled {first!r} and {clip.source_label!r}",
                "one label a clip",
            )
    kept, again = without_copies(clips)
    ignored: Mapping[str, int] = (
        {"the same recording under the same name again": again} if again else {}
    )
    return Listing(tuple(kept), ignored)


def _part(spec: str, parts: tuple[str, ...], path: Path) -> str:
    match = re.fullmatch(r"part(\d+)", spec)
    if match is None or int(match[1]) < 1:
        raise UsageError(
            "--map", f"found {spec!r}", "part1, part2, ... for a folder without a table"
        )
    number = int(match[1])
    if number > len(parts) - 1:
        raise DataError(str(path), f"has {len(parts) - 1} folders above it", f"{spec}")
    return parts[number - 1]


def _need_file(path: Path, wanted: str) -> None:
    if not path.is_file():
        raise UsageError(str(path), "no such file", wanted)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise DataError(f"{path}:{line}", "not UTF-8 text", "a table saved as UTF-8") from error


def _as_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
