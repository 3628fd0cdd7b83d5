"""Somebody else's answers about scenes, people among them, scored like our own runs.

Conventions:

* One row is one answer to one item of a run. Columns: ``task``, ``id``, ``prediction`` (or another name for it, see
  :mod:`earwitness.tasks.prediction_columns`), and as one likes ``model``, ``condition``, ``outcome``, ``error``.
* Truth, options and scene come from a run about the same corpus that asked this item; without one there is nothing to
  score against. A label, its letter or a whole reply is read as a model's reply would be.
* What several people said must be one row an item already: whom to believe is not for a scorer to decide.
* Only what the table has is counted. Where it has several models, an item that one of them lacks is ``failed`` for it. A
  grounding pair of which one half is missing is left out, and said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from earwitness.errors import DataError
from earwitness.models.protocols import Reply
from earwitness.runs.outcomes import OUTCOME_KINDS, Outcome
from earwitness.tasks.cares_runs import TASKS, CaresAnswers, task_module
from earwitness.tasks.cares_scores import base_id
from earwitness.tasks.choices import OPTIONS_KEY, all_options, lexicon_of, options_from_text
from earwitness.tasks.prediction_columns import choose_columns, read_table
from earwitness.tasks.records import Decision
from earwitness.tasks.scene_conditions import CONDITIONS

_PEOPLE = re.compile(r"\s*(people|humans?|listeners?|annotators?)\b", re.IGNORECASE)
_BLANK = frozenset({"", "nan", "null", "none", "n/a", "na", "-"})


def origin_of(model: str) -> str:
    """``people`` for rows that name people, else ``predictions``.

    >>> origin_of("people, n = 3"), origin_of("peopleware-7b")
    ('people', 'predictions')
    """
    return "people" if _PEOPLE.match(model) else "predictions"


def is_scene_table(path: Path) -> bool:
    """Whether a table has a column ``task`` that names a task about scenes."""
    table = read_table(path)
    names = [name.casefold() for name in table.header]
    if "task" not in names:
        return False
    place = names.index("task")
    return all(cells[place].strip() in TASKS for _, cells in table.rows)


@dataclass(frozen=True, slots=True)
class _Known:
    """Items that runs have asked: by task, item without condition, and condition."""

    decisions: Mapping[tuple[str, str, str], Decision]
    any_condition: Mapping[tuple[str, str], Decision]
    cards: Mapping[str, Mapping[str, object]]
    options: Mapping[str, frozenset[tuple[str, str]]]


def _known(runs: Sequence[CaresAnswers]) -> _Known:
    exact: dict[tuple[str, str, str], Decision] = {}
    loose: dict[tuple[str, str], Decision] = {}
    cards: dict[str, Mapping[str, object]] = {}
    for run in runs:
        cards.setdefault(run.task, run.card)
        for decision in run.decisions:
            base = base_id(decision.item_id)
            exact.setdefault((run.task, base, run.condition), decision)
            if run.condition != "swapped":  # its truth is another sound
                loose.setdefault((run.task, base), decision)
    options = {
        task: all_options(d.groups for (t, _, _), d in exact.items() if t == task)
        for task in ("location", "sound")
    }
    return _Known(exact, loose, cards, options)


def read_scene_predictions(
    path: Path, runs: Sequence[CaresAnswers], *, columns: Mapping[str, str] | None = None
) -> tuple[CaresAnswers, ...]:
    """Answers of a table, one :class:`CaresAnswers` for every model, task and condition.

    Parameters
    ----------
    runs: answers of runs about the same corpus, for truth and options.
    columns: field -> column; the rest is guessed from common names.

    Raises
    ------
    DataError: a row names an item no run asked, an item twice, or an unknown task or condition.
    """
    table = read_table(path)
    chosen, _ = choose_columns(table, columns, str(path), gold_elsewhere=True)
    places = {field: table.header.index(column) for field, column in chosen.items()}
    task_place = [name.casefold() for name in table.header].index("task")
    known = _known(runs)
    found: dict[tuple[str, str, str], dict[str, Decision]] = {}
    for line, cells in table.rows:
        where = f"{path}:{line}"
        row = {field: cells[place].strip() for field, place in places.items()}
        task = cells[task_place].strip()
        model = row.get("model") or path.stem
        item, _, suffix = row["id"].partition("|")
        condition = row.get("condition") or suffix or "audio"
        _check(where, task, condition)
        asked = _asked(where, known, task, item, condition)
        rows = found.setdefault((model, task, condition), {})
        if item in rows:
            raise DataError(where, f"{model} has {item!r} twice in {task}", "each item once")
        name = item if condition == "audio" else f"{item}|{condition}"
        rows[item] = replace(
            asked,
            item_id=name,
            condition=condition,
            outcome=_outcome(task, row, asked, known),
            reply=_said(task, row) or None,
            latency_s=None,
            cost_usd=None,
        )
    return tuple(
        _answers(path, model, task, condition, rows, found, known)
        for (model, task, condition), rows in found.items()
    )


def _check(where: str, task: str, condition: str) -> None:
    if task not in TASKS:
        raise DataError(where, f"the task {task!r}", f"one of {', '.join(TASKS)}")
    if condition not in CONDITIONS:
        raise DataError(where, f"the condition {condition!r}", f"one of {', '.join(CONDITIONS)}")


def _asked(where: str, known: _Known, task: str, item: str, condition: str) -> Decision:
    decision = known.decisions.get((task, item, condition)) or (
        known.any_condition.get((task, item)) if condition != "swapped" else None
    )
    if decision is None:
        raise DataError(
            where,
            f"no run asked the {task} item {item!r}",
            "an id of a run's items.jsonl",
            "Report a run about the same corpus with it: truth and options come from there.",
        )
    return decision


def _said(task: str, row: Mapping[str, str]) -> str:
    """The words to read: a summary itself, otherwise the answer."""
    if task == "summary":
        return row.get("reply") or row["prediction"]
    return row["prediction"] or row.get("reply", "")


def _outcome(task: str, row: Mapping[str, str], asked: Decision, known: _Known) -> Outcome:
    kind = next((kind for kind in OUTCOME_KINDS if kind == row.get("outcome")), None)
    if kind is not None and kind != "answered":
        return Outcome(kind, rule=row.get("rule", ""), native=row.get("native") or None)
    text = _said(task, row)
    if text.casefold() in _BLANK:
        trouble = row.get("error", "")
        return (
            Outcome("failed", rule="error column", detail=trouble)
            if trouble
            else Outcome("empty", rule="empty cell")
        )
    options = asked.groups.get(OPTIONS_KEY)
    if options and text in {option.label for option in options_from_text(options)}:
        return Outcome("answered", text, rule="label", native=text)
    module = task_module(task)
    reply = Reply(text=text)
    outcome: Outcome = (
        module.parse(reply, asked.groups, lexicon_of(task, known.options[task]))
        if task in known.options
        else module.parse(reply, asked.groups)
    )
    return outcome


def _answers(
    path: Path,
    model: str,
    task: str,
    condition: str,
    rows: Mapping[str, Decision],
    found: Mapping[tuple[str, str, str], Mapping[str, Decision]],
    known: _Known,
) -> CaresAnswers:
    notes = []
    wanted = {
        item: decision
        for (_, t, c), others in found.items()
        if (t, c) == (task, condition)
        for item, decision in others.items()
    }
    missing = sorted(wanted.keys() - rows.keys())
    lacking = Outcome("failed", rule="no row", detail="no row in the table")
    decisions = dict(rows) | {
        item: replace(wanted[item], outcome=lacking, reply=None) for item in missing
    }
    if missing:
        notes.append(
            f"{model} has no row for {len(missing)} of {len(wanted)} items of {task} that others of"
            f" {path.name} have; they count as failed."
        )
    if task == "grounding":
        halves = _unpaired(decisions)
        if halves:
            notes.append(
                f"{model}: {len(halves)} halves of grounding pairs have no other half and are left out."
            )
        decisions = {item: d for item, d in decisions.items() if item not in halves}
        if not decisions:
            raise DataError(
                str(path), f"{model} has no pair of grounding items", "the recording and its twin"
            )
    total = len({item for (t, item, c) in known.decisions if (t, c) == (task, condition)})
    if total and len(decisions) < total:
        notes.append(
            f"{model} has answers to {len(decisions):,} of {total:,} items of {task} under {condition};"
            " only those are counted for it."
        )
    card = known.cards[task]
    clips = card.get("clips")
    return CaresAnswers(
        model,
        task,
        condition,
        tuple(decisions[item] for item in sorted(decisions)),
        {
            "task": task,
            "name": model,
            "origin": origin_of(model),
            "predictions": path.name,
            "clips": clips if isinstance(clips, Mapping) else {},
            "conditions": [condition],
            "notes": notes,
        },
    )


def _unpaired(decisions: Mapping[str, Decision]) -> set[str]:
    """Items of grounding pairs of which the other half is missing."""
    other = {"present": "absent", "absent": "present"}
    found = set()
    for item in decisions:
        base, _, kind = item.rpartition("/")
        if kind in other and f"{base}/{other[kind]}" not in decisions:
            found.add(item)
    return found
