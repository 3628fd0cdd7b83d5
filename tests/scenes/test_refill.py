"""Refills: another subject, the same allocation, whatever the size of the plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.plan import PlanRequest, load_preset, plan, template_order
from earwitness.scenes.refill import original_of, refill, same_allocation
from earwitness.scenes.scenario import Scenario

GERMAN = Path(__file__).parent / "german_bank"
SEED = 3


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


@pytest.fixture(scope="module")
def scenarios(bank: Bank) -> tuple[Scenario, ...]:
    return plan(bank, PlanRequest(120, 2, SEED, load_preset("balanced")))


def test_nothing_that_is_measured_changes(bank: Bank, scenarios: tuple[Scenario, ...]) -> None:
    for scenario in scenarios:
        fresh = refill(scenario, 1, bank, SEED)
        assert same_allocation(scenario, fresh)
        assert fresh.template != scenario.template
        assert fresh.id == f"{scenario.id}.r1"
        assert original_of(fresh.id) == scenario.id


def test_the_new_template_is_of_the_same_split(bank: Bank, scenarios: tuple[Scenario, ...]) -> None:
    order = template_order(bank, SEED)
    splits = {}
    for _ in range(400):
        name, theme, split = next(order)
        splits[name] = (theme, split)
    for scenario in scenarios:
        for number in (1, 2, 3):
            fresh = refill(scenario, number, bank, SEED)
            assert splits[fresh.template] == (fresh.theme, scenario.split)


def test_refills_of_one_place_differ_and_refills_are_spread(
    bank: Bank, scenarios: tuple[Scenario, ...]
) -> None:
    for scenario in scenarios[:20]:
        taken = {refill(scenario, n, bank, SEED).template for n in (1, 2, 3, 4)}
        assert len(taken) == 4
    train = [s for s in scenarios if s.split == "train"]
    first = [refill(scenario, 1, bank, SEED).template for scenario in train]
    assert len(set(first)) > len(first) / 3


def test_a_refill_depends_on_seed_and_scenario_alone(
    bank: Bank, scenarios: tuple[Scenario, ...]
) -> None:
    longer = plan(bank, PlanRequest(300, 2, SEED, load_preset("balanced")))
    for one, other in zip(scenarios[::10], longer[::10], strict=False):
        assert refill(one, 1, bank, SEED) == refill(other, 1, bank, SEED)
    assert any(
        refill(s, 1, bank, SEED).template != refill(s, 1, bank, SEED + 1).template
        for s in scenarios[:5]
    )


def test_a_bank_with_few_themes_still_has_a_template_to_give() -> None:
    german = load_bank(GERMAN)
    themes = sum(len(category.themes) for category in german.categories)
    name, theme, split = next(template_order(german, SEED))
    scenario = Scenario(f"{name}.01", name, theme, split, "x", "y", "F", "M", ())
    assert themes < 10
    assert refill(scenario, 1, german, SEED).template != name


def test_only_what_ends_like_a_refill_is_one() -> None:
    assert original_of("rooms.r2.01.03") == "rooms.r2.01.03"
    assert original_of("rooms.01.03.r12") == "rooms.01.03"
