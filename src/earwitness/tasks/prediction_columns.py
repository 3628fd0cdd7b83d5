"""Tables as others write them: separators, encodings and names of columns."""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from earwitness.errors import DataError, UsageError

COLUMN_NAMES: Mapping[str, tuple[str, ...]] = {
    "id": (
        "id", "item_id", "clip_id", "audio_id", "utterance_id", "sample_id", "file_id", "uid", "clip",
        "filename", "file_name", "file", "audio_file", "audio_path", "path", "audio", "utterance", "name",
    ),
    "gold": (
        "gold", "gold_label", "true_label", "truth", "ground_truth", "y_true", "target", "target_label",
        "reference", "reference_label", "required_emotion", "expected", "expected_label", "actual",
        "correct_label", "emotion", "true_emotion", "label",
    ),
    "prediction": (
        "mapped_label", "mapped_prediction", "prediction", "predicted_label", "predicted_emotion",
        "predicted", "pred", "y_pred", "pred_label", "model_label", "model_output", "output", "answer",
        "response", "raw_reply", "reply", "raw_output", "raw_prediction", "raw_label", "raw",
    ),
    "model": ("model", "model_name", "model_id", "system", "system_name", "baseline", "provider"),
    "outcome": ("outcome",),
    "error": ("error", "error_message", "failure", "exception", "status", "error_type"),
    "condition": ("condition",),
    "speaker": ("speaker", "speaker_id", "actor", "actor_id", "speaker_account"),
    "language": ("language", "lang"),
    "sex": ("sex", "gender"),
    "reply": ("raw_reply", "reply", "raw_output", "raw_prediction", "raw_label", "raw", "response", "output"),
    "rule": ("rule",),
    "native": ("native",),
    "latency_s": ("latency_s",),
    "cost_usd": ("cost_usd",),
}  # fmt: skip
"""Fields and the names they are looked for under, the likeliest first."""

_SEPARATORS = (",", ";", "\t", "|")
_LARGEST_CELL = 16 * 1024 * 1024
_FIELD_LIMIT = threading.Lock()


@dataclass(frozen=True, slots=True)
class RawTable:
    """A table of text: ``rows`` are (line number, cells)."""

    header: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]


def read_table(path: Path) -> RawTable:
    """Read comma, semicolon, tab or bar separated text with a header, in UTF-8 or UTF-16 with a mark.

    Raises
    ------
    DataError: no such file, not text, no header, or a row of another width than the header.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(str(path), error.strerror or str(error), "a table of predictions") from None
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise DataError(
            str(path),
            f"is not {encoding.upper().removesuffix('-SIG')} text (byte {error.start})",
            "a table in UTF-8",
            "Save it as CSV UTF-8.",
        ) from None
    lines = text.lstrip("\r\n").splitlines()
    if not lines or not lines[0].strip():
        raise DataError(str(path), "is empty", "a header and one row a prediction")
    separator = max(_SEPARATORS, key=lambda sign: len(next(csv.reader([lines[0]], delimiter=sign))))
    with _FIELD_LIMIT:
        before = csv.field_size_limit(_LARGEST_CELL)
        try:
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
            # Positions of rows are line numbers of the file, as an editor shows them.
            everything = [(reader.line_num, tuple(row)) for row in reader if any(row)]
        except csv.Error as error:
            raise DataError(f"{path}:{reader.line_num}", str(error), "a table") from None
        finally:
            csv.field_size_limit(before)
    header = tuple(name.strip() for name in everything[0][1])
    rows = everything[1:]
    doubled = sorted({name for name in header if name and header.count(name) > 1})
    if doubled:
        raise DataError(str(path), f"has two columns named {doubled[0]!r}", "each name once")
    if not rows:
        raise DataError(str(path), "has a header and no row", "one row a prediction")
    for line, row in rows:
        if len(row) != len(header):
            raise DataError(
                f"{path}:{line}",
                f"has {len(row)} cells",
                f"{len(header)}, as the header",
                "Put quotes around cells with separators or line ends.",
            )
    return RawTable(header, tuple(rows))


def parse_columns(text: str) -> dict[str, str]:
    """``id=clip,gold=truth`` as a mapping from field to column.

    Raises
    ------
    UsageError: an unknown field, or a part without ``=``.
    """
    columns: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        field, sign, column = part.partition("=")
        if not sign or not column.strip():
            raise UsageError("--columns", f"found {part!r}", "FIELD=COLUMN,FIELD=COLUMN")
        columns[field.strip()] = column.strip()
    return columns


def choose_columns(
    table: RawTable, given: Mapping[str, str] | None, where: str, *, gold_elsewhere: bool
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Which column holds which field: as given, the rest guessed by name.

    Returns
    -------
    (field -> column, fields that were guessed)

    Raises
    ------
    UsageError: an unknown field, or a column that is not in the table.
    DataError: a needed field has no column.
    """
    given = given or {}
    for field, column in given.items():
        if field not in COLUMN_NAMES:
            raise UsageError(
                "--columns", f"unknown field {field!r}", f"some of {', '.join(COLUMN_NAMES)}"
            )
        if column not in table.header:
            raise UsageError(
                "--columns",
                f"{where} has no column {column!r}",
                f"one of {', '.join(table.header)}",
            )
    by_name = {name.casefold().replace(" ", "_").replace("-", "_"): name for name in table.header}
    chosen = dict(given)
    guessed = []
    for field, names in COLUMN_NAMES.items():
        taken = {column for key, column in chosen.items() if key != "reply"}
        for name in names if field not in chosen else ():
            found = by_name.get(name)
            if found is not None and (found not in taken or field == "reply"):
                chosen[field] = found
                guessed.append(field)
                break
    needed = ["id", "prediction"] + ([] if gold_elsewhere else ["gold"])
    for field in needed:
        if field not in chosen:
            hint = (
                " or --clips DIR, a clip set that has the labels by id" if field == "gold" else ""
            )
            raise DataError(
                where,
                f"no column looks like the {field} (columns: {', '.join(table.header)})",
                f"a column such as {', '.join(COLUMN_NAMES[field][:4])}",
                f"Name it: --columns {field}=COLUMN{hint}.",
            )
    return chosen, tuple(guessed)
