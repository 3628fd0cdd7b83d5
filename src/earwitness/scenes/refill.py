"""Quota refill: a fresh scenario with the allocation of an abandoned one.

What is measured stays (location, roles, genders, events with sounds, reactions, registers and bands, split);
what the two talk about changes: another template of the same split. The accepted corpus has therefore the
planned distribution, whatever was hard to write.

Conventions
-----------
The place of a scenario in the plan may be taken by the scenario itself, else by its first refill
``<id>.r1``, else by ``<id>.r2`` and so on. Which template a refill takes depends on the corpus seed, the
scenario's id and the number alone: not on how large the plan is, so that a plan can still grow.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import count, islice

from earwitness.scenes.bank import Bank
from earwitness.scenes.plan import template_order
from earwitness.scenes.scenario import Scenario
from earwitness.stats.streams import stream

_MARK = ".r"


def original_of(identifier: str) -> str:
    """The id of the planned scenario whose place a scenario takes.

    Examples
    --------
    >>> original_of("repairs.01.03.r2"), original_of("repairs.01.03")
    ('repairs.01.03', 'repairs.01.03')
    """
    head, mark, number = identifier.rpartition(_MARK)
    return head if mark and number.isdigit() else identifier


def refill(scenario: Scenario, number: int, bank: Bank, seed: int) -> Scenario:
    """The ``number``-th (from 1) scenario that may take the place of a planned one.

    Parameters
    ----------
    scenario: as planned, not itself a refill.
    seed: of the corpus.

    Returns
    -------
    The same allocation about another template of the same split; different numbers take different templates
    while there are any.
    """
    pool = _templates_near(bank, seed, scenario.template, scenario.split)
    order = stream(seed, "refill", scenario.id).permutation(len(pool))
    template, theme = pool[int(order[(number - 1) % len(pool)])]
    return replace(scenario, id=f"{scenario.id}{_MARK}{number}", template=template, theme=theme)


def same_allocation(scenario: Scenario, other: Scenario) -> bool:
    """Whether two scenarios differ in nothing but id, template and theme."""
    return scenario == replace(
        other, id=scenario.id, template=scenario.template, theme=scenario.theme
    )


class _Key:
    """A bank and a seed as a cheap cache key."""

    def __init__(self, bank: Bank, seed: int) -> None:
        self.bank = bank
        self.seed = seed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and (other.bank.hash, other.seed) == (
            self.bank.hash,
            self.seed,
        )

    def __hash__(self) -> int:
        return hash((self.bank.hash, self.seed))


def _templates_near(bank: Bank, seed: int, template: str, split: str) -> list[tuple[str, str]]:
    """Templates of a split, with themes, in the first whole rounds that hold this one and another."""
    for rounds in count(1):
        known = _of_rounds(_Key(bank, seed), rounds)
        if template in {name for name, _, _ in known}:
            others = [
                (name, theme) for name, theme, of in known if of == split and name != template
            ]
            if others:
                return others
    raise AssertionError("rounds are endless")


@lru_cache(maxsize=16)
def _of_rounds(key: _Key, rounds: int) -> tuple[tuple[str, str, str], ...]:
    themes = sum(len(category.themes) for category in key.bank.categories)
    return tuple(islice(template_order(key.bank, key.seed), themes * rounds))
