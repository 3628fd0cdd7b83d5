"""``replay/FILE``: answers that were given before, from a run's ledger or a table (CSV).

Nothing is asked and nothing is heard. A ledger's replies are found by the key of the reply where it is the
same, else by the item's id; a table's rows by a column of item ids. An item without an answer fails, so that
it stays in the denominator.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, get_args

from earwitness.errors import DataError, ModelError, UsageError
from earwitness.models.adapter import AdapterInfo
from earwitness.models.options import Option, read_options
from earwitness.models.protocols import FinishReason, Limits, Reply, Request, Usage

ID_COLUMNS = ("item", "item_id", "id", "clip", "clip_id", "audio_id", "file", "filename")
TEXT_COLUMNS = (
    "text", "reply", "answer", "raw_output", "output", "response", "prediction", "mapped_label", "label",
)  # fmt: skip
LEDGER = "ledger.jsonl"

OPTIONS: tuple[Option, ...] = (
    Option("id_column", "text", f"CSV: column of the items' ids; unset: one of {', '.join(ID_COLUMNS)}"),
    Option("text_column", "text", f"CSV: column of the answers; unset: one of {', '.join(TEXT_COLUMNS)}"),
    Option("score_columns", "list", "CSV: columns of scores, in place of words"),
    Option("finish_column", "text", "CSV: column that says stop, length, content_filter, refusal or unknown"),
    Option("where", "json", 'CSV: only rows with these values, such as {"model": "x"}'),
)  # fmt: skip

INFO = AdapterInfo(
    name="replay",
    form="replay/LEDGER.jsonl | RUN_FOLDER | TABLE.csv",
    summary="Answers given before: a run's ledger, or a table of item ids and words or scores",
    options=OPTIONS,
    limits=Limits(formats=("wav", "flac", "mp3", "ogg", "aiff", "m4a")),
    examples=(
        "replay/runs/emotion_openai_gpt-audio",
        'replay/predictions.csv -M where={"model":"x"}',
    ),
)


@dataclass
class _Answers:
    """Replies by item and by key; ``unclear`` items have several that differ."""

    by_item: dict[str, Reply] = field(default_factory=dict)
    by_key: dict[str, Reply] = field(default_factory=dict)
    unclear: set[str] = field(default_factory=set)

    def add(self, item: str, reply: Reply) -> None:
        known = self.by_item.get(item)
        if known is not None and not _same(known, reply):
            self.unclear.add(item)
        self.by_item.setdefault(item, reply)

    def find(self, request: Request) -> Reply | None:
        if request.idempotency_key and request.idempotency_key in self.by_key:
            return self.by_key[request.idempotency_key]
        return None if request.item_id in self.unclear else self.by_item.get(request.item_id)


@dataclass(eq=False)
class Replay:
    """Stored answers as a model. Use :func:`open` to make one."""

    name: str
    limits: Limits
    _sha256: str
    _values: Mapping[str, Any]
    _answers: _Answers

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def settings(self) -> Mapping[str, Any]:
        """The content of the file and how it was read; not where it lies."""
        given = {name: value for name, value in self._values.items() if value is not None}
        return {
            "file_sha256": self._sha256,
            **{name: list(v) if isinstance(v, tuple) else v for name, v in given.items()},
        }

    def preflight(self, requests: Sequence[Request]) -> None:
        """Refuse a file that cannot be meant.

        Raises
        ------
        UsageError: it answers none of the items, or one of them in several ways.
        """
        for request in requests:
            if request.item_id in self._answers.unclear and self._answers.find(request) is None:
                raise UsageError(
                    self.name,
                    f"several answers that differ for item {request.item_id}",
                    "one answer an item",
                    'Choose rows of a table with -M where={"column":"value"}.',
                )
        if requests and all(self._answers.find(request) is None for request in requests):
            stored = ", ".join(list(self._answers.by_item)[:3]) or "none"
            raise UsageError(
                self.name,
                f"answers none of the {len(requests)} items (it has {stored}; asked: {requests[0].item_id})",
                "answers under the items' ids",
                "Name the column of ids with -M id_column=NAME.",
            )

    async def ask(self, request: Request) -> Reply:
        """The stored answer.

        Raises
        ------
        ModelError: kind ``missing``, there is none.
        """
        reply = self._answers.find(request)
        if reply is None:
            raise ModelError(
                f"{self.name}: no answer is stored for item {request.item_id}",
                kind="missing",
                retryable=False,
            )
        return reply

    async def aclose(self) -> None:
        """Nothing to close."""


def _same(first: Reply, second: Reply) -> bool:
    return (first.text, first.scores, first.finish) == (second.text, second.scores, second.finish)


def open(name: str, options: Mapping[str, Any]) -> Replay:  # noqa: A001
    """Open ``replay/FILE``.

    Raises
    ------
    UsageError: an option that is none, or that is about tables for a ledger.
    DataError: the file is not there, or is no ledger and no table.
    """
    full = f"replay/{name}"
    values = read_options(full, options, OPTIONS)
    path = Path(name)
    if path.is_dir():
        path = path / LEDGER
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(
            str(path), f"cannot be read ({error.strerror})", "a ledger, a run folder or a table"
        ) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(str(path), f"is no UTF-8 text (byte {error.start})", "UTF-8") from None
    if path.suffix.lower() in (".csv", ".tsv"):
        answers = _read_table(path, text, values)
    else:
        about_tables = [option for option in values if values[option] is not None]
        if about_tables:
            raise UsageError(full, f"option {about_tables[0]}, which is for tables", "a .csv file")
        answers = _read_ledger(path, text)
    return Replay(full, INFO.limits, hashlib.sha256(data).hexdigest(), values, answers)


def _read_ledger(path: Path, text: str) -> _Answers:
    """Replies of a ledger. A torn last line is left out, as a run that goes on would cut it off."""
    answers = _Answers()
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        # What follows the last line feed is empty, or was being written when the process ended.
        if number == len(lines) or not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            entry = json.loads(line)
            if entry["kind"] != "reply":
                continue
            key, item, reply = str(entry["key"]), str(entry["item"]), _stored(entry["reply"])
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                where,
                f"is no entry of a ledger ({type(error).__name__}: {error})",
                "a run's ledger",
            ) from None
        if key not in answers.by_key:
            answers.by_key[key] = reply
            answers.add(item, reply)
    return answers


def _stored(value: Mapping[str, Any]) -> Reply:
    """A reply as the ledger keeps it; a repeated answer is not paid for again."""
    usage = value.get("usage") or {}
    return Reply(
        text=value["text"],
        scores=value.get("scores"),
        finish=value["finish"],
        finish_raw=value.get("finish_raw"),
        usage=Usage(
            input_tokens=usage.get("input_tokens"),
            output_tokens=usage.get("output_tokens"),
            audio_seconds=usage.get("audio_seconds"),
        ),
        latency_s=float(value.get("latency_s") or 0.0),
        provider_id=value.get("provider_id"),
        provider_model=value.get("provider_model"),
        raw=value.get("raw") or {},
    )


def _read_table(path: Path, text: str, values: Mapping[str, Any]) -> _Answers:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    columns = list(reader.fieldnames or [])
    id_column = _column(path, columns, values["id_column"], ID_COLUMNS, "id_column")
    score_columns = values["score_columns"] or ()
    text_column = ""
    if not score_columns:
        text_column = _column(path, columns, values["text_column"], TEXT_COLUMNS, "text_column")
    wanted = {str(name): str(value) for name, value in (values["where"] or {}).items()}
    for name in (*score_columns, *wanted, *filter(None, [values["finish_column"]])):
        _column(path, columns, name, (), "an option")
    answers = _Answers()
    try:
        for row in reader:
            if any((row[name] or "") != value for name, value in wanted.items()):
                continue
            where = f"{path}, line {reader.line_num}"
            item = (row[id_column] or "").strip()
            if not item:
                raise DataError(where, f"has no id in column {id_column!r}", "an item's id")
            finish = (row[values["finish_column"]] or "").strip() if values["finish_column"] else ""
            if finish and finish not in get_args(FinishReason):
                allowed = ", ".join(get_args(FinishReason))
                raise DataError(where, f"has the finish {finish!r}", f"one of {allowed}")
            made: Any = finish or "stop"
            if score_columns:
                scores = _scores(where, row, score_columns)
                # A row without a number is an answer that was not given.
                if scores:
                    _add(answers, item, Reply(scores=scores, finish=made))
                continue
            _add(answers, item, Reply(text=row[text_column] or "", finish=made))
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}", f"is no CSV ({error})") from None
    return answers


def _add(answers: _Answers, item: str, reply: Reply) -> None:
    """Under the id as it stands, and under its bare name where it is the name of a file."""
    answers.add(item, reply)
    bare = PurePath(item).stem
    if bare != item and PurePath(item).suffix.lower() in (".wav", ".flac", ".mp3", ".ogg", ".m4a"):
        answers.add(bare, reply)


def _scores(where: str, row: Mapping[str, Any], columns: Iterable[str]) -> dict[str, float]:
    scores = {}
    for name in columns:
        value = (row[name] or "").strip()
        if not value:
            continue
        try:
            scores[name] = float(value)
        except ValueError:
            raise DataError(where, f"has {value!r} in column {name!r}", "a number") from None
        if not math.isfinite(scores[name]):
            raise DataError(where, f"has {value!r} in column {name!r}", "a finite number")
    return scores


def _column(
    path: Path, columns: Sequence[str], given: str | None, usual: Sequence[str], option: str
) -> str:
    if given is not None:
        if given in columns:
            return given
        raise UsageError(
            f"{path}: {option}", f"there is no column {given!r}", f"one of {', '.join(columns)}"
        )
    by_name = {name.strip().lower(): name for name in reversed(columns)}
    for name in usual:
        if name in by_name:
            return by_name[name]
    raise UsageError(
        str(path), f"has none of the columns {', '.join(usual)}", f"the option {option}",
        f"It has {', '.join(columns) or 'no columns'}.",
    )  # fmt: skip
