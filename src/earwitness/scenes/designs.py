"""Experimental designs: which reactions a scene gets, in which order, by exact quotas.

Conventions
-----------
A design is an endless sequence per split; scenario number ``i`` of the split takes element ``i``. Nothing
depends on how many scenarios are asked for, so a longer plan begins with the shorter one, and every quota is
exact (within one) at every multiple of its cycle.

Balanced design
---------------
Cells (count of events, location) are walked so that each cycle has every cell once. Within the scenes of one
cell, groups of four are used in which **every place of the order has every reaction exactly once**. For
three events the 27 groups below hold each of the 108 cases of the target distribution (27 orders with one
pivot, three times each; 27 without) exactly once; for two events nine groups hold the 36 cases; for one event
there is one group.

The three-event groups are indexed by (i, p, q) over the integers modulo 3; with t = p + q the four scenes are

    (pivot,   q + i, t + i)
    (p + i,   pivot, t + 1 + i)
    (p + 1 + i, q + 1 + i, pivot)
    (p + 2 + i, q + 2 + i, t + 2 + i)

where 0, 1, 2 stand for the three other reactions. In each place the non-pivot entries are k, k + 1, k + 2, and
(q, t), (p, t + 1), (p + 1, q + 1) and the differences of the last row all run over every pair as (p, q) does.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np

from earwitness.scenes.bank_records import Reaction
from earwitness.stats.streams import Streams, stream

OTHERS: tuple[Reaction, ...] = ("verbal", "behavioral", "ambient")
Order = tuple[Reaction, ...]
GROUP = 4


@cache
def groups_of(count: int) -> tuple[tuple[Order, ...], ...]:
    """Every group of four orders for ``count`` events; each place of a group has each reaction once.

    Examples
    --------
    >>> [len(groups_of(count)) for count in (0, 1, 2, 3)]
    [1, 1, 9, 27]
    >>> sorted({order[1] for order in groups_of(3)[5]})
    ['ambient', 'behavioral', 'pivot', 'verbal']
    """
    if count == 0:
        return (((),) * GROUP,)
    if count == 1:
        return ((("pivot",), *((other,) for other in OTHERS)),)
    if count == 2:
        return tuple(_pair_group(a, b) for a, b in product(range(3), repeat=2))
    if count == 3:
        return tuple(_triple_group(i, p, q) for i, p, q in product(range(3), repeat=3))
    raise ValueError(f"no balanced design for {count} events in a scene")


def _other(number: int) -> Reaction:
    return OTHERS[number % 3]


def _pair_group(a: int, b: int) -> tuple[Order, ...]:
    return (
        ("pivot", _other(b)),
        (_other(a), "pivot"),
        (_other(a + 1), _other(b + 1)),
        (_other(a + 2), _other(b + 2)),
    )


def _triple_group(i: int, p: int, q: int) -> tuple[Order, ...]:
    t = p + q
    return (
        ("pivot", _other(q + i), _other(t + i)),
        (_other(p + i), "pivot", _other(t + 1 + i)),
        (_other(p + 1 + i), _other(q + 1 + i), "pivot"),
        (_other(p + 2 + i), _other(q + 2 + i), _other(t + 2 + i)),
    )


@cache
def compositions(counts: tuple[int, ...], max_pivots: int) -> tuple[tuple[int, int, int, int], ...]:
    """Every (pivot, verbal, behavioral, ambient) whose total is among ``counts``.

    Examples
    --------
    >>> len(compositions((0, 1, 2, 3), 1))
    30
    """
    most = max(counts)
    return tuple(
        cell
        for cell in product(range(max_pivots + 1), *(range(most + 1),) * 3)
        if sum(cell) in counts
    )


class Cycle:
    """An endless sequence over ``size`` cells: shuffled anew each time round, each cell once a round."""

    def __init__(self, size: int, seed: int, *names: str, streams: Streams | None = None) -> None:
        self.size = size
        self._seed = seed
        self._names = names
        self._streams = streams or Streams()
        self._rounds: dict[int, list[int]] = {}

    def round(self, turn: int) -> list[int]:
        """The order of the cells in one round."""
        order = self._rounds.get(turn)
        if order is None:
            draw = self._streams.stream(self._seed, *self._names, str(turn))
            order = self._rounds[turn] = draw.permutation(self.size).tolist()
        return order

    def __getitem__(self, number: int) -> int:
        turn, place = divmod(number, self.size)
        return self.round(turn)[place]


class Shuffles:
    """An endless sequence of independent permutations of ``size`` things, drawn many at a time."""

    BLOCK = 1024

    def __init__(self, size: int, seed: int, *names: str) -> None:
        self._size = size
        self._seed = seed
        self._names = names
        self._blocks: dict[int, list[list[int]]] = {}

    def __getitem__(self, number: int) -> list[int]:
        block, place = divmod(number, self.BLOCK)
        drawn = self._blocks.get(block)
        if drawn is None:
            draw = stream(self._seed, *self._names, str(block))
            keys = draw.random((self.BLOCK, self._size))
            drawn = self._blocks[block] = keys.argsort(axis=1, kind="stable").tolist()
        return drawn[place]


class BalancedDesign:
    """Counts, locations and orders of reactions of one split, jointly balanced."""

    def __init__(
        self,
        counts: tuple[int, ...],
        locations: int,
        seed: int,
        split: str,
        streams: Streams | None = None,
    ) -> None:
        self._streams = streams = streams or Streams()
        self._counts = counts
        self._locations = locations
        self._seed = seed
        self._split = split
        self._cells = len(counts) * locations
        self._common = int(np.lcm(len(counts), locations))
        self._count_orders = Cycle(len(counts), seed, "plan", split, "counts", streams=streams)
        self._place_orders = Cycle(locations, seed, "plan", split, "places", streams=streams)
        self._group_orders: dict[tuple[int, int], Cycle] = {}
        self._row_orders: dict[tuple[int, int, int], Cycle] = {}

    def cell(self, number: int) -> tuple[int, int, int]:
        """Count of events, location and how often this pair came before, for scenario ``number``."""
        turn, place = divmod(number, self._cells)
        # Both walks restart together at every common multiple; a shift then opens the next diagonal.
        shift = place // self._common
        count = self._counts[self._relabel(self._count_orders, turn, place, len(self._counts))]
        location = self._relabel(self._place_orders, turn, place + shift, self._locations)
        return count, location, turn

    @staticmethod
    def _relabel(orders: Cycle, turn: int, place: int, size: int) -> int:
        return orders[turn * size + place % size]

    def order(self, count: int, location: int, time: int) -> Order:
        """Reactions, in order, of the ``time``-th scene with so many events at this location.

        Four neighbouring locations walk the same group from different rows, so that the four of them
        together are balanced at every moment, and each alone after every fourth scene.
        """
        quartet, offset = divmod(location, GROUP)
        turn, step = divmod(time, GROUP)
        groups = groups_of(count)
        group_order = self._group_orders.get((count, quartet))
        if group_order is None:
            names = ("plan", self._split, "groups", str(count), str(quartet))
            group_order = Cycle(len(groups), self._seed, *names, streams=self._streams)
            self._group_orders[count, quartet] = group_order
        rows = self._row_orders.get((count, quartet, turn))
        if rows is None:
            row_names = ("plan", self._split, "rows", str(count), str(quartet), str(turn))
            rows = self._row_orders[count, quartet, turn] = Cycle(
                GROUP, self._seed, *row_names, streams=self._streams
            )
        return groups[group_order[turn]][rows[(step + offset) % GROUP]]
