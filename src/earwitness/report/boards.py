"""From systems to what a report shows: one board per clip set and condition, controls beside the real thing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from earwitness.tasks.deafness import DeafnessSigns, signs
from earwitness.tasks.records import Comparison, Decision, Leaderboard, System
from earwitness.tasks.scene_predictions import origin_of

CONTROL_SUFFIX = re.compile(r"[@#:|/](audio|silence|muted|swapped|asr|blind|oracle|speech-only)$")
"""How an item's id may carry its condition; the same clip has one id without it."""


@dataclass(frozen=True, slots=True)
class Board:
    """Everything about one clip set under one condition.

    ``set_name`` is empty for tables of predictions that name no set. ``systems`` are in the leaderboard's order.
    """

    key: str
    set_name: str
    condition: str
    systems: tuple[System, ...]
    leaderboard: Leaderboard


@dataclass(frozen=True, slots=True)
class ConditionDifference:
    """One system under two conditions, paired by clip: ``comparison.difference`` is first minus second."""

    system: str
    set_name: str
    first: str
    second: str
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class ReportData:
    """All a report is made of."""

    task: str
    labels: tuple[str, ...]
    boards: tuple[Board, ...]
    differences: tuple[ConditionDifference, ...]
    signs: tuple[DeafnessSigns, ...]

    @property
    def complete(self) -> bool:
        return all(scores.complete for board in self.boards for scores in board.leaderboard.systems)

    @property
    def synthetic(self) -> bool:
        """Whether any system was asked about a set that only tests plumbing."""
        return any(
            bool(clips_of(system).get("synthetic"))
            for board in self.boards
            for system in board.systems
        )


def clips_of(system: System) -> Mapping[str, Any]:
    """The clip set's part of a system's card; empty for predictions."""
    clips = system.card.get("clips")
    return clips if isinstance(clips, Mapping) else {}


def base_id(decision: Decision) -> str:
    """The clip behind an item, whatever its condition."""
    return CONTROL_SUFFIX.sub("", decision.item_id)


def _split(systems: Sequence[System]) -> list[System]:
    """One system per condition: a table of decisions under several conditions falls apart into them."""
    parts: list[System] = []
    for system in systems:
        conditions = sorted({decision.condition for decision in system.decisions})
        if len(conditions) <= 1:
            parts.append(system)
            continue
        for condition in conditions:
            chosen = tuple(d for d in system.decisions if d.condition == condition)
            parts.append(replace(system, decisions=chosen))
    return parts


def condition_of(system: System) -> str:
    return system.decisions[0].condition if system.decisions else "audio"


def _set_key(system: System) -> str:
    clips = clips_of(system)
    return str(clips.get("sha256") or clips.get("name") or "")


def set_name(system: System) -> str:
    """Name and version of the clip set, as a reader calls it."""
    clips = clips_of(system)
    return " ".join(str(clips[key]) for key in ("name", "version") if clips.get(key))


def _as_people(system: System) -> System:
    """Rows of a table that name people are theirs."""
    if system.origin == "predictions" and origin_of(system.name) == "people":
        return replace(system, origin="people")
    return system


def _named_apart(systems: Sequence[System]) -> list[System]:
    """Systems of one board under names that differ: by prompt, else by a number."""
    names = Counter(system.name for system in systems)
    taken: set[str] = set()
    out = []
    for system in systems:
        name = system.name
        if names[name] > 1:
            prompt = system.card.get("prompt")
            if isinstance(prompt, Mapping) and prompt.get("id"):
                name = f"{name} [{prompt['id']}]"
        candidate, number = name, 2
        while candidate in taken:
            candidate, number = f"{name} ({number})", number + 1
        taken.add(candidate)
        out.append(replace(system, name=candidate))
    return out


def grouped(systems: Sequence[System]) -> list[tuple[str, str, list[System]]]:
    """Systems by clip set and condition, sound before controls; systems without items are left to the caller.

    A table of predictions names no clip set. It joins the set with which it shares most of its items.
    """
    parts = [_as_people(part) for part in _split(systems) if part.decisions]
    known_sets: dict[str, set[str]] = {}
    for part in parts:
        if _set_key(part):
            known_sets.setdefault(_set_key(part), set()).update(map(base_id, part.decisions))
    groups: dict[tuple[str, str], list[System]] = {}
    for part in parts:
        key = _set_key(part)
        if not key:
            own = set(map(base_id, part.decisions))
            shared = {name: len(own & ids) for name, ids in known_sets.items()}
            best = max(sorted(shared), key=lambda name: shared[name], default="")
            if best and shared[best] >= 0.5 * len(own):
                key = best
        groups.setdefault((key, condition_of(part)), []).append(part)
    order = sorted(groups, key=lambda key: (key[0] == "", key[0], key[1] != "audio", key[1]))
    out = []
    for place in order:
        members = _named_apart(groups[place])
        title = next((set_name(member) for member in members if set_name(member)), "")
        out.append((title, place[1], members))
    return out


def build(
    systems: Sequence[System],
    labels: Sequence[str],
    *,
    task: str = "emotion",
    priors: Mapping[str, float] | None = None,
    seed: int = 0,
) -> ReportData:
    """Score everything once.

    Raises
    ------
    UsageError: there is no system with an item.
    """
    from earwitness.errors import UsageError
    from earwitness.tasks.scoring import leaderboard

    groups = grouped(systems)
    if not groups:
        raise UsageError(
            "report",
            "there is nothing to report: no system has an item",
            next_step="Name run folders or a table of predictions.",
        )
    boards = []
    for number, (title, condition, members) in enumerate(groups, start=1):
        table = leaderboard(
            members, tuple(labels), task=task, condition=condition, priors=priors, seed=seed
        )
        by_name = {member.name: member for member in members}
        boards.append(
            Board(
                key=f"board-{number}",
                set_name=title,
                condition=condition,
                systems=tuple(by_name[scores.name] for scores in table.systems),
                leaderboard=table,
            )
        )
    return ReportData(
        task=task,
        labels=tuple(labels),
        boards=tuple(boards),
        differences=condition_differences(boards, seed=seed),
        signs=tuple(
            listening_signs(system, _partner(boards, board, system, "silence"))
            for board in boards
            if board.condition == "audio"
            for system in board.systems
        ),
    )


def _partner(
    boards: Sequence[Board], board: Board, system: System, condition: str
) -> System | None:
    for other in boards:
        if other.condition == condition and other.set_name == board.set_name:
            return next((mate for mate in other.systems if mate.name == system.name), None)
    return None


def condition_differences(
    boards: Sequence[Board], *, seed: int = 0
) -> tuple[ConditionDifference, ...]:
    """Every system's accuracy with sound minus its accuracy under each control, paired by clip.

    Holm's correction runs over all of them.
    """
    from earwitness.stats.tests import holm
    from earwitness.tasks.scoring import compare

    found: list[ConditionDifference] = []
    for board in boards:
        if board.condition != "audio":
            continue
        for other in boards:
            if other.set_name != board.set_name or other.condition == "audio":
                continue
            for system in board.systems:
                mate = _partner(boards, board, system, other.condition)
                if mate is None:
                    continue
                pair = (
                    _plain(system, f"{system.name} · {board.condition}"),
                    _plain(mate, f"{system.name} · {other.condition}"),
                )
                found += [
                    ConditionDifference(
                        system.name, board.set_name, board.condition, other.condition, comparison
                    )
                    for comparison in compare(pair, seed=seed)
                ]
    adjusted = holm([row.comparison.p_sign_flip for row in found]) if found else ()
    family = f"sound against controls, {len(found)} pairs"
    return tuple(
        replace(row, comparison=replace(row.comparison, p_holm=float(p), family=family))
        for row, p in zip(found, adjusted, strict=True)
    )


def _plain(system: System, name: str) -> System:
    """A system whose items are called by their clips, so that conditions pair up."""
    decisions = tuple(
        replace(decision, item_id=base_id(decision), condition="audio")
        for decision in system.decisions
    )
    return replace(system, name=name, decisions=decisions)


def listening_signs(system: System, silent: System | None) -> DeafnessSigns:
    """Count what hints at a system that does not listen; see :mod:`earwitness.tasks.deafness`."""
    plain = _plain(system, system.name)
    others = {} if silent is None else {"silence": _plain(silent, silent.name).decisions}
    return signs(system.name, "emotion", plain.decisions, others, prompts=prompts_of(system.card))


def prompts_of(card: Mapping[str, Any]) -> tuple[str, ...]:
    """The fixed texts that a run's card says were sent; empty for tables of predictions."""
    prompt = card.get("prompt")
    if not isinstance(prompt, Mapping):
        return ()
    return tuple(str(prompt[key]) for key in ("text", "system") if prompt.get(key))
