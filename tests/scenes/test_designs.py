"""The designs: exact quotas at every prefix, by construction."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.scenes.bank_records import REACTIONS
from earwitness.scenes.designs import BalancedDesign, Cycle, compositions, groups_of


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_place_of_a_group_has_every_reaction_once(count: int) -> None:
    for group in groups_of(count):
        for place in range(count):
            assert {order[place] for order in group} == set(REACTIONS)


@pytest.mark.parametrize(("count", "with_pivot", "without"), [(1, 1, 1), (2, 6, 9), (3, 27, 27)])
def test_all_groups_together_hold_the_target_distribution(
    count: int, with_pivot: int, without: int
) -> None:
    orders = Counter(order for group in groups_of(count) for order in group)
    pivot = {order: uses for order, uses in orders.items() if "pivot" in order}
    plain = {order: uses for order, uses in orders.items() if "pivot" not in order}
    assert sum(pivot.values()) / orders.total() == count / 4
    assert all(order.count("pivot") == 1 for order in pivot)
    if count > 1:
        assert (len(pivot), len(plain)) == (with_pivot, without)
        assert len(set(pivot.values())) == len(set(plain.values())) == 1


def test_thirty_compositions_with_at_most_one_pivot() -> None:
    cells = compositions((0, 1, 2, 3), 1)
    assert len(cells) == 30
    assert Counter(sum(cell) for cell in cells) == {0: 1, 1: 4, 2: 9, 3: 16}


@given(
    locations=st.integers(1, 30),
    scenes=st.integers(1, 600),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_counts_and_locations_are_even_at_every_length(
    locations: int, scenes: int, seed: int
) -> None:
    design = BalancedDesign((0, 1, 2, 3), locations, seed, "train")
    cells = [design.cell(number) for number in range(scenes)]
    for marginal in (
        Counter(count for count, _, _ in cells),
        Counter(location for _, location, _ in cells),
    ):
        assert max(marginal.values()) - min(marginal.values()) <= 2
    pairs = Counter((count, location) for count, location, _ in cells)
    assert max(pairs.values()) - scenes // (4 * locations) <= 1
    times = Counter((count, location, time) for count, location, time in cells)
    assert max(times.values()) == 1


@pytest.mark.parametrize("locations", [1, 4, 13, 26])
def test_reactions_are_even_within_each_location_after_every_fourth_scene(locations: int) -> None:
    design = BalancedDesign((0, 1, 2, 3), locations, 7, "test")
    for count in (1, 2, 3):
        for location in range(locations):
            orders = [design.order(count, location, time) for time in range(12)]
            for place in range(count):
                seen = Counter(order[place] for order in orders)
                assert set(seen.values()) == {3}


def test_four_neighbouring_locations_are_balanced_together_at_every_moment() -> None:
    design = BalancedDesign((0, 1, 2, 3), 12, 3, "test")
    for time in range(9):
        for first in (0, 4, 8):
            orders = [design.order(3, location, time) for location in range(first, first + 4)]
            for place in range(3):
                assert {order[place] for order in orders} == set(REACTIONS)


def test_a_cycle_holds_every_cell_once_a_round_and_is_shuffled_anew() -> None:
    cycle = Cycle(24, 5, "roles")
    rounds = [[cycle[24 * turn + place] for place in range(24)] for turn in range(3)]
    assert all(sorted(one) == list(range(24)) for one in rounds)
    assert rounds[0] != rounds[1]
