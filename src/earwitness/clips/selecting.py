"""A balanced public set out of a reviewed pool, by integer optimisation.

Every label gets ``per_label`` accepted recordings. Among all such choices the best is found goal by goal; a later
goal never costs anything of an earlier one:

1. most speakers;
2. speakers evenly: fewest clips beyond a speaker's fair share, in all and within each label;
3. sexes evenly within each label;
4. scripts evenly, in all and within each label;
5. durations evenly: as many short, middle and long clips in each label (thirds of the accepted pool);
6. the draw: smallest sum of random numbers keyed by the seed and the recording's id.

A fair share is the even share, rounded up. Each goal is a mixed-integer program over one 0-1 variable a recording, solved to
proven optimality by HiGHS (``scipy.optimize.milp``); the last goal leaves one solution, so the result depends on the
pool's content, the settings and the seed, not on the order of files or the solver's taste.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from earwitness.clips.corpus import EMOTIONS
from earwitness.clips.pool import PoolEntry
from earwitness.errors import DataError, UsageError
from earwitness.stats.streams import stream

NODE_LIMIT = 20_000
"""Branches after which a goal is taken as it stands; a count, not a time, so that every machine does the same."""


@dataclass(frozen=True, slots=True)
class SelectionSettings:
    """What a selection must be. ``seconds`` are inclusive bounds, None for open."""

    per_label: int = 40
    seed: int = 0
    max_per_speaker: int | None = None
    seconds: tuple[float | None, float | None] | None = None
    labels: tuple[str, ...] = EMOTIONS


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal: what was reached, and whether that is proven to be the best."""

    name: str
    value: float
    proven: bool


@dataclass(frozen=True, slots=True)
class Selected:
    """Ids that were chosen, sorted; why each other recording was not; what the goals reached."""

    chosen: tuple[str, ...]
    left_out: Mapping[str, str]
    goals: tuple[Goal, ...]


class ShortageError(DataError):
    """The pool has no such selection; ``shortage`` says how many recordings each label lacks."""

    def __init__(self, where: str, found: str, shortage: Mapping[str, int], next_step: str) -> None:
        self.shortage = dict(shortage)
        lacking = ", ".join(f"{label} {n}" for label, n in shortage.items() if n)
        super().__init__(where, found, f"more recordings (short of: {lacking})", next_step)


def select(
    entries: Sequence[PoolEntry],
    settings: SelectionSettings,
    on_goal: Callable[[int, int], None] | None = None,
) -> Selected:
    """Choose.

    Raises
    ------
    ShortageError: a label has too few accepted recordings, or too few within the limits.
    """
    if settings.per_label < 1:
        raise UsageError("--per-label", f"found {settings.per_label}", "at least 1")
    usable = [
        e for e in entries if e.accepted and _fits(e, settings) and e.emotion in settings.labels
    ]
    _require_enough(usable, entries, settings)
    # In the order of the draw, so that nothing depends on the order of the pool's lines.
    draws = {e.id: float(stream(settings.seed, "select", e.id).random()) for e in usable}
    usable.sort(key=lambda e: (draws[e.id], e.id))
    program = _Program(usable, settings, draws)
    goals = program.solve(on_goal)
    chosen = {usable[i].id for i in program.chosen}
    return Selected(tuple(sorted(chosen)), _left_out(entries, chosen, settings), goals)


def _fits(entry: PoolEntry, settings: SelectionSettings) -> bool:
    low, high = settings.seconds or (None, None)
    return (low is None or entry.seconds >= low) and (high is None or entry.seconds <= high)


def _require_enough(
    usable: Sequence[PoolEntry], entries: Sequence[PoolEntry], settings: SelectionSettings
) -> None:
    wanted = settings.per_label
    have = Counter(e.emotion for e in usable)
    short = {label: max(0, wanted - have[label]) for label in settings.labels}
    if any(short.values()):
        found = ", ".join(f"{label} {have[label]}" for label in settings.labels if short[label])
        waiting = sum(e.status == "unreviewed" for e in entries)
        step = (
            f"Record and review more, or take --per-label {min(have[x] for x in settings.labels)}."
        )
        if waiting:
            step = f"{waiting} recordings are not reviewed yet. {step}"
        raise ShortageError("pool", f"{found} of {wanted} accepted a label", short, step)
    cap = settings.max_per_speaker
    if cap is not None:
        if cap < 1:
            raise UsageError("--max-per-speaker", f"found {cap}", "at least 1")
        reached = _most_under_cap(usable, settings, cap)
        short = {label: wanted - reached[label] for label in settings.labels}
        if any(short.values()):
            raise ShortageError(
                "pool",
                f"no selection of {wanted} a label has at most {cap} of a speaker",
                short,
                "Raise --max-per-speaker, lower --per-label, or record more speakers.",
            )


def _most_under_cap(
    usable: Sequence[PoolEntry], settings: SelectionSettings, cap: int
) -> Mapping[str, int]:
    """Most recordings that fit under the cap, by label."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    rows = []
    limits = []
    for members, limit in (
        *((m, settings.per_label) for m in _groups(usable, lambda e: e.emotion).values()),
        *((m, cap) for m in _groups(usable, lambda e: e.speaker).values()),
    ):
        row = np.zeros(len(usable))
        row[list(members)] = 1
        rows.append(row)
        limits.append(limit)
    solved = milp(
        -np.ones(len(usable)),
        constraints=LinearConstraint(np.array(rows), -np.inf, np.array(limits)),
        integrality=np.ones(len(usable), dtype=np.int64),
        bounds=Bounds(0, 1),
    )
    if solved.x is None:
        raise DataError("clips select", f"the solver gave up ({solved.message})")
    taken = np.flatnonzero(np.rint(solved.x))
    return Counter(usable[int(i)].emotion for i in taken)


def _groups(
    entries: Sequence[PoolEntry], key: Callable[[PoolEntry], Hashable]
) -> dict[Hashable, list[int]]:
    found: dict[Hashable, list[int]] = defaultdict(list)
    for number, entry in enumerate(entries):
        found[key(entry)].append(number)
    return found


def duration_thirds(entries: Sequence[PoolEntry]) -> tuple[float, float]:
    """Seconds that part the accepted pool into short, middle and long."""
    seconds = [entry.seconds for entry in entries]
    low, high = np.quantile(seconds, [1 / 3, 2 / 3])
    return float(low), float(high)


def third_of(seconds: float, cuts: tuple[float, float]) -> str:
    """``short``, ``middle`` or ``long``."""
    return ("short", "middle", "long")[int(seconds > cuts[0]) + int(seconds > cuts[1])]


@dataclass
class _Program:
    """Variables: one a recording (0 or 1), one a speaker (present), one a group (clips beyond its share)."""

    entries: Sequence[PoolEntry]
    settings: SelectionSettings
    draws: Mapping[str, float]
    chosen: tuple[int, ...] = ()
    _rows: list[tuple[list[int], list[float], float, float]] = field(default_factory=list)
    _costs: list[tuple[str, dict[int, float]]] = field(default_factory=list)
    _n: int = 0

    def __post_init__(self) -> None:
        each = self.settings.per_label
        total = each * len(self.settings.labels)
        entries = self.entries
        self._n = len(entries)
        for members in _groups(entries, lambda e: e.emotion).values():
            self._row(members, each, each)
        speakers = _groups(entries, lambda e: e.speaker)
        present: dict[int, float] = {}
        for members in speakers.values():
            if self.settings.max_per_speaker is not None:
                self._row(members, 0, self.settings.max_per_speaker)
            new = self._variable()
            present[new] = -1.0
            # Present only if at least one of its recordings is.
            self._row([*members, new], 0, np.inf, {new: -1.0})
        self._costs.append(("speakers", present))
        scripts = _groups(entries, lambda e: e.script_id)
        sexes = {e.sex for e in entries if e.sex}
        cuts = duration_thirds(entries)
        self._goal("clips beyond a speaker's fair share", [
            (speakers, total), (_groups(entries, lambda e: (e.speaker, e.emotion)), each),
        ], kinds=len(speakers))  # fmt: skip
        by_sex = _groups([e for e in entries if e.sex], lambda e: (e.sex, e.emotion))
        places = {e.id: n for n, e in enumerate(entries)}
        known_sex = [e for e in entries if e.sex]
        known = {key: [places[known_sex[n].id] for n in them] for key, them in by_sex.items()}
        self._goal("clips beyond a sex's fair share", [(known, each)], kinds=max(1, len(sexes)))
        self._goal("clips beyond a script's fair share", [
            (scripts, total), (_groups(entries, lambda e: (e.script_id, e.emotion)), each),
        ], kinds=len(scripts))  # fmt: skip
        thirds = _groups(entries, lambda e: (third_of(e.seconds, cuts), e.emotion))
        self._goal("clips beyond a duration's fair share", [(thirds, each)], kinds=3)
        self._costs.append(("draw", {n: self.draws[e.id] for n, e in enumerate(entries)}))

    def _variable(self) -> int:
        self._n += 1
        return self._n - 1

    def _row(
        self,
        members: Sequence[int],
        low: float,
        high: float,
        other: Mapping[int, float] | None = None,
    ) -> None:
        weights = [(other or {}).get(n, 1.0) for n in members]
        self._rows.append((list(members), weights, low, high))

    def _goal(
        self, name: str, groups: Sequence[tuple[Mapping[Hashable, list[int]], int]], kinds: int
    ) -> None:
        costs: dict[int, float] = {}
        for found, total in groups:
            share = -(-total // kinds)
            for members in found.values():
                if len(members) <= share:
                    continue
                beyond = self._variable()
                costs[beyond] = 1.0
                self._row([*members, beyond], -np.inf, share, {beyond: -1.0})
        self._costs.append((name, costs))

    def solve(self, on_goal: Callable[[int, int], None] | None) -> tuple[Goal, ...]:
        """Reach goal after goal, each within what the earlier ones reached."""
        from scipy.optimize import Bounds, milp

        n = len(self.entries)
        upper = np.full(self._n, np.inf)
        upper[: n + len(self._costs[0][1])] = 1
        whole = np.zeros(self._n, dtype=np.int64)
        whole[:n] = 1
        goals = []
        for number, (name, costs) in enumerate(self._costs, start=1):
            vector = np.zeros(self._n)
            vector[list(costs)] = list(costs.values())
            solved = milp(
                vector,
                constraints=self._constraints(),
                integrality=whole,
                bounds=Bounds(0, upper),
                options={"node_limit": NODE_LIMIT, "mip_rel_gap": 0.0},
            )
            if solved.x is None:
                raise DataError("clips select", f"the solver gave up ({solved.message})")
            self.chosen = tuple(int(i) for i in np.flatnonzero(np.rint(solved.x[:n])))
            reached = self._reached(costs, name)
            goals.append(Goal(name, abs(reached), solved.status == 0))
            if costs and name != "draw":
                self._rows.append((list(costs), list(costs.values()), -np.inf, reached + 1e-6))
            if on_goal:
                on_goal(number, len(self._costs))
        return tuple(goals)

    def _reached(self, costs: Mapping[int, float], name: str) -> float:
        """The goal's value at the rounded choice: whole numbers, whatever the solver's tolerance."""
        taken = set(self.chosen)
        if name == "draw":
            return float(sum(costs[i] for i in self.chosen))
        if name == "speakers":
            return -float(len({self.entries[i].speaker for i in taken}))
        total = 0.0
        for members, weights, low, high in self._rows:
            last = members[-1]
            if last in costs and low == -np.inf and weights[-1] == -1.0:
                total += max(0.0, sum(m in taken for m in members[:-1]) - high)
        return total

    def _constraints(self) -> Any:
        from scipy.optimize import LinearConstraint
        from scipy.sparse import coo_array

        places = [
            (r, c, w)
            for r, (m, ws, _, _) in enumerate(self._rows)
            for c, w in zip(m, ws, strict=True)
        ]
        rows, columns, weights = zip(*places, strict=True)
        matrix = coo_array((weights, (rows, columns)), shape=(len(self._rows), self._n)).tocsr()
        low = np.array([row[2] for row in self._rows])
        high = np.array([row[3] for row in self._rows])
        return LinearConstraint(matrix, low, high)


def _left_out(
    entries: Sequence[PoolEntry], chosen: set[str], settings: SelectionSettings
) -> dict[str, str]:
    """Why each recording that was not chosen was not."""
    taken = Counter(e.speaker for e in entries if e.id in chosen)
    reasons = {}
    for entry in sorted(entries, key=lambda e: e.id):
        if entry.id in chosen:
            continue
        if not entry.accepted:
            reasons[entry.id] = entry.status
        elif entry.emotion not in settings.labels:
            reasons[entry.id] = "label_not_wanted"
        elif not _fits(entry, settings):
            reasons[entry.id] = "duration"
        elif taken[entry.speaker] == 0:
            reasons[entry.id] = "label_full_speaker_absent"
        else:
            reasons[entry.id] = "label_full"
    return reasons
