"""Somebody else's predictions, scored like our own runs.

Conventions:

* One row is one prediction. A ``model`` column makes several systems; without one the file's name is the model.
* The column ``mapped_label`` goes before raw words where both are there; name another with ``--columns``.
* Words are read as replies are: by a label map if one is given, else by the parser of closed labels.
* An empty cell is ``empty``, and ``failed`` where an error column says that the call failed. Both stay in
  the denominator. A row that one model lacks and another has is ``failed`` too: leaving requests that failed
  out of a table is the commonest way in which they vanish from an accuracy.
* The cluster is the speaker if the table or the clip set names one, else the item itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from earwitness.clips.corpus import EMOTIONS, Clip, ClipSet, clip_path, load_clip_set
from earwitness.errors import DataError
from earwitness.runs.outcomes import OUTCOME_KINDS, Outcome, OutcomeKind
from earwitness.tasks.closed_label import parse_text
from earwitness.tasks.emotion import describe
from earwitness.tasks.label_lexicon import Lexicon, build_lexicon, load_lexicon
from earwitness.tasks.prediction_columns import RawTable, choose_columns, read_table
from earwitness.tasks.records import Decision, System

if TYPE_CHECKING:
    from earwitness.clips.labels import LabelMap

_BLANK = frozenset({"", "nan", "null", "n/a", "na", "-"})
_FINE = frozenset(
    {"", "nan", "none", "null", "n/a", "na", "0", "false", "no", "ok", "success", "succeeded", "complete",
     "completed", "done", "scored", "answered", "200", "stop"}
)  # fmt: skip
"""What an error or status column says where nothing went wrong."""
_GUARDED = re.compile(r"'(?=[=+\-@\t\r])")
"""Spreadsheet-safe tables put an apostrophe before such cells."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """Systems of a table, and what a reader must know of how it was read.

    ``columns`` maps fields to columns, ``guessed`` are the fields not given by the user.
    """

    systems: tuple[System, ...]
    columns: Mapping[str, str]
    guessed: tuple[str, ...]
    notes: tuple[str, ...]


def read_predictions(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    label_map: LabelMap | None = None,
    labels: Sequence[str] = EMOTIONS,
    clips: Path | None = None,
) -> tuple[System, ...]:
    """The systems of a table of predictions; see :func:`load_predictions`."""
    return load_predictions(
        path, columns=columns, label_map=label_map, labels=labels, clips=clips
    ).systems


def load_predictions(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    label_map: LabelMap | None = None,
    labels: Sequence[str] = EMOTIONS,
    clips: Path | None = None,
) -> Predictions:
    """Read a table of predictions.

    Parameters
    ----------
    path: text with a header, separated by commas, semicolons, tabs or bars.
    columns: field -> column (``id``, ``gold``, ``prediction``, ``model``, ``error``, ``speaker`` ...); the
        rest is guessed from common names.
    label_map: for the words of predictions and gold labels.
    labels: the closed set.
    clips: folder of a clip set that gives label, speaker and audio by id.

    Raises
    ------
    DataError: the table or its labels do not fit; a model has an item twice; gold labels contradict.
    UsageError: ``columns`` names something that is not there.
    """
    table = read_table(path)
    clip_set = load_clip_set(clips, check_files=False) if clips is not None else None
    chosen, guessed = choose_columns(table, columns, str(path), gold_elsewhere=clip_set is not None)
    reader = _Reader(path, table, chosen, label_map, _lexicon(tuple(labels)), clip_set)
    by_model: dict[str, dict[tuple[str, str], Decision]] = {}
    lines: dict[tuple[str, str, str], int] = {}
    for line, cells in table.rows:
        row = reader.fields(cells)
        decision = reader.decision(row, line)
        model = row.get("model") or path.stem
        key = (decision.item_id, decision.condition)
        if key in by_model.setdefault(model, {}):
            raise DataError(
                f"{path}:{line}",
                f"{model} has {decision.item_id!r} already in line {lines[(model, *key)]}",
                "each item once for each model",
                "Name the column that tells the models apart: --columns model=COLUMN.",
            )
        by_model[model][key] = decision
        lines[(model, *key)] = line
    gold = _one_gold(by_model, str(path))
    filled, notes = _filled(by_model, gold)
    notes = [*reader.notes(), *notes, *_coverage(clip_set, gold)]
    card = _card(path, chosen, label_map, clip_set)
    systems = tuple(
        System(name=model, decisions=decisions, origin="predictions", card=card)
        for model, decisions in sorted(filled.items())
    )
    return Predictions(systems, chosen, guessed, tuple(notes))


def _lexicon(labels: tuple[str, ...]) -> Lexicon:
    if set(labels) == set(EMOTIONS):
        return load_lexicon("emotion")
    return build_lexicon("labels", "1", dict.fromkeys(labels, ()))


class _Reader:
    """Turns rows of one table into decisions."""

    def __init__(
        self,
        path: Path,
        table: RawTable,
        columns: Mapping[str, str],
        label_map: LabelMap | None,
        lexicon: Lexicon,
        clip_set: ClipSet | None,
    ) -> None:
        self.path = path
        self.places = {field: table.header.index(column) for field, column in columns.items()}
        self.label_map = label_map
        self.lexicon = lexicon
        self.clip_set = clip_set
        self.clips = _by_any_name(clip_set) if clip_set is not None else {}
        self.unclustered = 0
        self.contradicting = 0

    def fields(self, cells: Sequence[str]) -> dict[str, str]:
        return {
            field: _GUARDED.sub("", cells[place].strip(), count=1)
            if cells[place].lstrip().startswith("'")
            else cells[place].strip()
            for field, place in self.places.items()
        }

    def decision(self, row: Mapping[str, str], line: int) -> Decision:
        where = f"{self.path}:{line}"
        item = row["id"]
        if not item:
            raise DataError(where, "has no id", "an id in every row")
        clip = self._clip(item, where)
        gold = self._gold(row, clip, where)
        speaker = row.get("speaker") or (clip.speaker if clip else "")
        self.unclustered += not speaker
        groups = {
            name: value
            for name, value in (
                ("language", row.get("language") or (clip.language if clip else "")),
                ("sex", row.get("sex") or (clip.metadata.get("sex", "") if clip else "")),
            )
            if value
        }
        return Decision(
            item_id=item,
            gold=gold,
            outcome=self._outcome(row),
            cluster=speaker or item,
            condition=row.get("condition") or "audio",
            groups=groups,
            seconds=clip.seconds if clip else 0.0,
            reply=row.get("reply") or row["prediction"] or None,
            latency_s=_number(row.get("latency_s", ""), where),
            cost_usd=_number(row.get("cost_usd", ""), where),
            audio_path=clip_path(self.clip_set, clip) if self.clip_set and clip else None,
        )

    def _clip(self, item: str, where: str) -> Clip | None:
        if self.clip_set is None:
            return None
        clip = self.clips.get(item) or self.clips.get(_stem(item.partition("|")[0]))
        if clip is None:
            raise DataError(
                where,
                f"the clip set {self.clip_set.card.name} has no clip {item!r}",
                "ids, paths or file names of the set",
            )
        return clip

    def _gold(self, row: Mapping[str, str], clip: Clip | None, where: str) -> str:
        cell = row.get("gold", "")
        if clip is not None and not cell:
            return clip.emotion
        label = self.label_map.map(cell)[0] if self.label_map else None
        label = label or self.lexicon.label_of(cell)
        if label is None:
            raise DataError(
                where,
                f"the gold label {cell!r}",
                f"a word for one of {', '.join(self.lexicon.labels)}",
                "Name the right column with --columns gold=COLUMN, or give a --label-map.",
            )
        if clip is not None and label != clip.emotion:
            raise DataError(
                where,
                f"calls {row['id']!r} {label}, the clip set {clip.emotion}",
                "one truth",
                "Drop the column with another table, or score without --clips.",
            )
        return label

    def _outcome(self, row: Mapping[str, str]) -> Outcome:
        cell = row["prediction"]
        kind = _kind(row.get("outcome", ""))
        if kind is not None and kind != "answered":
            return Outcome(kind, rule=row.get("rule", ""), native=row.get("native") or None)
        trouble = row.get("error", "")
        if cell.casefold() in _BLANK:
            if trouble.casefold() not in _FINE:
                return Outcome("failed", rule="error column", detail=trouble)
            return Outcome("empty", rule="empty cell")
        self.contradicting += trouble.casefold() not in _FINE
        if self.label_map is not None:
            label, rule = self.label_map.map(cell)
            if label is not None:
                return Outcome("answered", label, f"map: {rule}", cell)
        outcome = parse_text(cell, self.lexicon)
        if kind == "answered" and outcome.label and row.get("rule"):
            return replace(outcome, rule=row["rule"], native=row.get("native") or cell)
        return outcome

    def notes(self) -> list[str]:
        notes = []
        if self.unclustered:
            notes.append("no speaker is named: intervals treat every item as independent")
        if self.contradicting:
            notes.append(
                f"{self.contradicting} rows have an error and a prediction; the prediction counts (a "
                "fall-back label for failed calls would hide here)"
            )
        return notes


def _kind(text: str) -> OutcomeKind | None:
    return next((kind for kind in OUTCOME_KINDS if kind == text), None)


def _number(cell: str, where: str) -> float | None:
    if cell.casefold() in _BLANK:
        return None
    try:
        return float(cell)
    except ValueError:
        raise DataError(where, f"found {cell!r}", "a number") from None


def _stem(name: str) -> str:
    return PurePosixPath(name.replace("\\", "/")).stem


def _by_any_name(clip_set: ClipSet) -> dict[str, Clip]:
    """Clips by id, path and, where it is unique, file name without ending."""
    stems = Counter(_stem(clip.path) for clip in clip_set.clips)
    names = {_stem(clip.path): clip for clip in clip_set.clips if stems[_stem(clip.path)] == 1}
    names |= {clip.path: clip for clip in clip_set.clips}
    return names | {clip.id: clip for clip in clip_set.clips}


_Rows = Mapping[str, Mapping[tuple[str, str], Decision]]


def _one_gold(by_model: _Rows, where: str) -> dict[tuple[str, str], Decision]:
    """Every item once, with the one truth that all models share."""
    gold: dict[tuple[str, str], Decision] = {}
    for model, decisions in by_model.items():
        for key, decision in decisions.items():
            first = gold.setdefault(key, decision)
            if first.gold != decision.gold:
                raise DataError(
                    where,
                    f"{key[0]!r} is {first.gold} in one row and {decision.gold} for {model}",
                    "one gold label an item",
                )
    return gold


def _filled(
    by_model: _Rows, gold: Mapping[tuple[str, str], Decision]
) -> tuple[dict[str, tuple[Decision, ...]], list[str]]:
    """Give every model the items that others have, as failed; say so."""
    notes = []
    filled: dict[str, tuple[Decision, ...]] = {}
    for model, decisions in sorted(by_model.items()):
        conditions = {condition for _, condition in decisions}
        wanted = [key for key in gold if key[1] in conditions]
        missing = sorted(key for key in wanted if key not in decisions)
        if missing:
            notes.append(
                f"{model} has no row for {len(missing)} of {len(wanted)} items that other models have "
                f"(the first: {missing[0][0]}); they count as failed"
            )
        lacking = Outcome("failed", rule="no row", detail="no row in the table")
        rows = [
            decisions.get(key)
            or replace(gold[key], outcome=lacking, reply=None, latency_s=None, cost_usd=None)
            for key in wanted
        ]
        filled[model] = tuple(sorted(rows, key=lambda row: (row.condition, row.item_id)))
    return filled, notes


def _coverage(clip_set: ClipSet | None, gold: Mapping[tuple[str, str], Decision]) -> list[str]:
    if clip_set is None:
        return []
    covered = len({decision.audio_path for decision in gold.values()})
    if covered == len(clip_set.clips):
        return []
    return [
        f"the table covers {covered} of the {len(clip_set.clips)} clips of {clip_set.card.name}"
    ]


def _card(
    path: Path,
    columns: Mapping[str, str],
    label_map: LabelMap | None,
    clip_set: ClipSet | None,
) -> dict[str, object]:
    card: dict[str, object] = {"predictions": path.name, "columns": dict(columns)}
    if label_map is not None:
        card["label_map"] = {
            "id": label_map.id,
            "version": label_map.version,
            "hash": label_map.hash,
        }
    if clip_set is not None:
        card["clips"] = describe(clip_set)
    return card
