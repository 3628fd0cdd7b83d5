"""Who speaks what how: scripts and emotions for every speaker account.

Each account gets ``scripts`` scripts, each to be performed in ``emotions`` different emotions.

Conventions
-----------
Accounts are taken in the order they join. An account's scripts are those given out least so far. Its
emotions are the cheapest way (a min-cost flow, solved exactly) to give every script its number of different
emotions, where an emotion that the account has already costs most, one that has been given out more often
costs less, and one that this script has been given more often costs least. So within an account emotions differ in number by
at most one, overall by about one, and every script goes through all of them. Ties are drawn, keyed by
the seed, account, script and emotion. What an account gets depends on those before it and on nothing that
comes later, so accounts can be added at any time.

``assignments.jsonl`` has a line for every recording to make: account, script_id, text, emotion.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from earwitness.audio.files import atomic_write_text
from earwitness.clips.corpus import EMOTIONS
from earwitness.clips.scripts import Script
from earwitness.errors import DataError, UsageError
from earwitness.runs.jsonlines import read_lines
from earwitness.stats.streams import stream

ASSIGNMENTS = "assignments.jsonl"
DESIGN = "assignments.yaml"
_ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

_ACCOUNT_COST = 1e6
_TOTAL_COST = 1e3
_SCRIPT_COST = 10.0
"""An emotion again within an account, once more overall, once more for its script; draws are below 1."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """One recording to make."""

    account: str
    script_id: str
    text: str
    emotion: str


@dataclass(frozen=True, slots=True)
class Design:
    """How recordings are given out; fixed once the first account has its own."""

    seed: int = 0
    scripts: int = 3
    emotions: int = 3
    labels: tuple[str, ...] = EMOTIONS


@dataclass(frozen=True, slots=True)
class Balance:
    """How even an assignment is: fewest and most of each kind."""

    accounts: int
    recordings: int
    labels: dict[str, int]
    scripts_used: int
    per_script: tuple[int, int]
    per_account_label: tuple[int, int]


def check_account(name: str, where: str = "account") -> str:
    """An account's name, if it can name a folder.

    Raises
    ------
    UsageError: it cannot.
    """
    if not _ACCOUNT.fullmatch(name) or name.endswith("."):
        raise UsageError(
            where,
            f"found {name!r}",
            "1 to 64 letters, digits, dots, dashes or underscores, the first a letter or digit",
            "Use a made-up name: it is shown to people who review recordings.",
        )
    return name


def assign(
    accounts: Sequence[str],
    scripts: Sequence[Script],
    design: Design,
    before: Sequence[Assignment] = (),
    on_done: Callable[[int], None] | None = None,
) -> tuple[Assignment, ...]:
    """Recordings for new accounts.

    Parameters
    ----------
    accounts: new ones, in the order they join.
    before: what has been given out; it stays.

    Returns
    -------
    The new assignments alone, account by account.

    Raises
    ------
    UsageError: an account twice, or a design that cannot be.
    DataError: fewer scripts than an account gets.
    """
    _check(accounts, scripts, design, before)
    used = Counter(script for _, script in {(a.account, a.script_id) for a in before})
    totals = Counter(a.emotion for a in before)
    cells = Counter((a.script_id, a.emotion) for a in before)
    made: list[Assignment] = []
    for done, account in enumerate(accounts, start=1):
        draws = {
            script.id: float(stream(design.seed, "assign", account, script.id).random())
            for script in scripts
        }
        ranked = sorted(scripts, key=lambda s: (used[s.id], draws[s.id], s.id))
        chosen = ranked[: design.scripts]
        costs = np.empty((len(chosen), len(design.labels)))
        for row, script in enumerate(chosen):
            noise = stream(design.seed, "assign", account, script.id, "emotions").random(
                len(design.labels)
            )
            counts = [cells[script.id, label] for label in design.labels]
            overall = [totals[label] - min(totals[name] for name in design.labels) for label in design.labels]  # fmt: skip
            costs[row] = _TOTAL_COST * np.array(overall) + _SCRIPT_COST * np.array(counts) + noise
        given = _cheapest(costs, design.emotions)
        for row, script in enumerate(chosen):
            used[script.id] += 1
            for column in np.flatnonzero(given[row]):
                label = design.labels[int(column)]
                totals[label] += 1
                cells[script.id, label] += 1
                made.append(Assignment(account, script.id, script.text, label))
        if on_done:
            on_done(done)
    return tuple(made)


def _cheapest(costs: np.ndarray[Any, Any], per_row: int) -> np.ndarray[Any, Any]:
    """The 0-1 matrix with ``per_row`` ones a row that costs least, columns as even as can be.

    A transport problem with convex column costs: its constraint matrix is totally unimodular, so the corner that the
    simplex method ends in is whole.
    """
    from scipy.optimize import linprog

    rows, columns = costs.shape
    cells = rows * columns
    # The n-th use of a column costs n squared: even use is cheapest, and its marginals rise.
    steps = np.array([(2 * n + 1) * _ACCOUNT_COST for n in range(rows)])
    objective = np.concatenate([costs.ravel(), np.tile(steps, columns)])
    equal = np.zeros((rows + columns, cells + rows * columns))
    for row in range(rows):
        equal[row, row * columns : (row + 1) * columns] = 1
    for column in range(columns):
        equal[rows + column, column:cells:columns] = 1
        equal[rows + column, cells + column * rows : cells + (column + 1) * rows] = -1
    wanted = np.concatenate([np.full(rows, per_row), np.zeros(columns)])
    solved = linprog(objective, A_eq=equal, b_eq=wanted, bounds=(0, 1), method="highs-ds")
    if solved.x is None:
        raise DataError("assign", f"no solution ({solved.message})")
    whole = np.rint(solved.x[:cells]).astype(bool)
    return np.asarray(whole.reshape(rows, columns))


def _check(
    accounts: Sequence[str],
    scripts: Sequence[Script],
    design: Design,
    before: Sequence[Assignment],
) -> None:
    if not 1 <= design.emotions <= len(design.labels):
        raise UsageError(
            "--emotions", f"found {design.emotions}", f"1 to {len(design.labels)} of a script"
        )
    if design.scripts < 1:
        raise UsageError("--scripts", f"found {design.scripts}", "at least 1")
    if len(scripts) < design.scripts:
        raise DataError(
            "scripts.jsonl",
            f"{len(scripts)} scripts",
            f"at least {design.scripts}, as many as an account gets",
            "Write more: earwitness clips script COLLECTION --number N",
        )
    there = {a.account.casefold() for a in before}
    for account in accounts:
        check_account(account)
        # Folders are named after accounts, and not every file system tells case apart.
        if account.casefold() in there:
            raise UsageError("account", f"{account!r} is there already", "names of new accounts")
        there.add(account.casefold())


def balance(assignments: Sequence[Assignment], labels: Sequence[str] = EMOTIONS) -> Balance:
    """How even an assignment is."""
    found = Counter(a.emotion for a in assignments)
    scripts = Counter(s for _, s in {(a.account, a.script_id) for a in assignments})
    cells = Counter((a.account, a.emotion) for a in assignments)
    accounts = sorted({a.account for a in assignments})
    spread = [cells[account, label] for account in accounts for label in labels] or [0]
    return Balance(
        accounts=len(accounts),
        recordings=len(assignments),
        labels={label: found[label] for label in labels},
        scripts_used=len(scripts),
        per_script=(min(scripts.values(), default=0), max(scripts.values(), default=0)),
        per_account_label=(min(spread), max(spread)),
    )


def read_assignments(folder: Path) -> tuple[Assignment, ...]:
    """Assignments of a collection; none if there is no file yet.

    Raises
    ------
    DataError: a line is not what it should be; file and line are named.
    """
    path = folder / ASSIGNMENTS
    if not path.exists():
        return ()
    found = []
    for number, line in read_lines(path, "an assignment"):
        try:
            assignment = Assignment(**line)
        except TypeError as error:
            raise DataError(
                f"{path}:{number}",
                f"is no assignment ({error})",
                "account, script_id, text, emotion",
            ) from None
        if assignment.emotion not in EMOTIONS:
            raise DataError(
                f"{path}:{number}: emotion",
                f"found {assignment.emotion!r}",
                f"one of {', '.join(EMOTIONS)}",
            )
        found.append(assignment)
    return tuple(found)


def write_assignments(folder: Path, assignments: Sequence[Assignment], design: Design) -> None:
    """Put ``assignments.yaml`` and ``assignments.jsonl`` in place."""
    import yaml

    settings = {**asdict(design), "labels": list(design.labels)}
    atomic_write_text(folder / DESIGN, yaml.safe_dump(settings, sort_keys=False))
    lines = (json.dumps(asdict(each), ensure_ascii=False) + "\n" for each in assignments)
    atomic_write_text(folder / ASSIGNMENTS, "".join(lines))


def read_design(folder: Path) -> Design | None:
    """The design of a collection; None if nothing was given out yet.

    Raises
    ------
    DataError: the file is not what it should be.
    """
    import yaml

    path = folder / DESIGN
    if not path.exists():
        return None
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        design = Design(**{**values, "labels": tuple(values.get("labels", EMOTIONS))})
    except (yaml.YAMLError, TypeError, AttributeError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise DataError(
            str(path), f"is no design ({reason})", "seed, scripts, emotions, labels"
        ) from None
    numbers = (design.seed, design.scripts, design.emotions)
    if not all(isinstance(n, int) for n in numbers) or not set(design.labels) <= set(EMOTIONS):
        raise DataError(str(path), "is no design", "whole numbers, and labels of the seven")
    return design


def add_accounts(
    folder: Path,
    accounts: Sequence[str],
    scripts: Sequence[Script],
    design: Design,
    on_done: Callable[[int], None] | None = None,
) -> tuple[Assignment, ...]:
    """Give recordings to new accounts of a collection; returns the new ones.

    Raises
    ------
    UsageError: another design than that of the collection.
    """
    before = read_assignments(folder)
    fixed = read_design(folder)
    if fixed is not None and fixed != design and before:
        raise UsageError(
            str(folder / DESIGN),
            f"recordings were given out with seed {fixed.seed}, {fixed.scripts} scripts, {fixed.emotions} emotions",
            "the same for accounts that are added",
            "Leave those options out, or begin another collection.",
        )
    made = assign(accounts, scripts, design, before, on_done)
    write_assignments(folder, (*before, *made), design)
    return made
