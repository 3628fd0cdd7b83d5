"""All rules, and a checker that applies them to one dialogue."""

from __future__ import annotations

from functools import lru_cache

from earwitness.scenes.bank import Bank
from earwitness.scenes.bank_names import Namer
from earwitness.scenes.dialogue_records import Dialogue
from earwitness.scenes.rules import conduct, naming, placing, structure, style, topic
from earwitness.scenes.rules.reading import Reading
from earwitness.scenes.rules.registry import Rule, Violation
from earwitness.scenes.rules.vocabulary import Vocabulary, vocabulary_of
from earwitness.scenes.scenario import Scenario

RULES: tuple[Rule, ...] = (
    *structure.RULES,
    *style.RULES,
    *placing.RULES,
    *naming.RULES,
    *conduct.RULES,
    *topic.RULES,
)
"""Every rule for one dialogue, by code. Those for a whole corpus are in :mod:`.corpus`."""


class Checker:
    """The rules, ready for the dialogues of one bank.

    Parameters
    ----------
    vocabulary: words and limits; those of the bank and its language unless given.
    """

    def __init__(self, bank: Bank, vocabulary: Vocabulary | None = None) -> None:
        self.bank = bank
        self.vocabulary = vocabulary_of(bank) if vocabulary is None else vocabulary
        self._namer = Namer(bank)

    def check(self, dialogue: Dialogue, scenario: Scenario | None) -> tuple[Violation, ...]:
        """Return every broken rule, in the order of the codes; nothing for a dialogue that passes.

        Without a scenario D102 is broken, and rules about events are left out.
        """
        reading = Reading(dialogue, scenario, self.bank, self.vocabulary, self._namer)
        return tuple(
            dict.fromkeys(violation for rule in RULES for violation in rule.violations(reading))
        )


class _Key:
    """A bank and a vocabulary as a cheap cache key."""

    __slots__ = ("bank", "vocabulary")

    def __init__(self, bank: Bank, vocabulary: Vocabulary | None) -> None:
        self.bank = bank
        self.vocabulary = vocabulary

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Key)
            and self.bank.hash == other.bank.hash
            and self.vocabulary is other.vocabulary
        )

    def __hash__(self) -> int:
        return hash((self.bank.hash, id(self.vocabulary)))


@lru_cache(maxsize=4)
def _checker(key: _Key) -> Checker:
    return Checker(key.bank, key.vocabulary)


def check(
    dialogue: Dialogue,
    scenario: Scenario | None,
    bank: Bank,
    *,
    vocabulary: Vocabulary | None = None,
) -> tuple[Violation, ...]:
    """Return every rule a dialogue breaks, in the order of the codes; nothing if it passes.

    Pure and deterministic; never raises, whatever the dialogue says.

    Parameters
    ----------
    scenario: the plan it should carry out. With None, D102 is broken and rules about events are left out.
    vocabulary: words and limits; those of the bank and its language unless given.

    Examples
    --------
    >>> from earwitness.scenes.bank import load_bank
    >>> from earwitness.scenes.dialogue_records import Utterance
    >>> talk = Dialogue("s1", "two friends on a bike repair", (Utterance("A", "Uh, hi."),))
    >>> [violation.code for violation in check(talk, None, load_bank())][-1]
    'D307-filler'
    """
    return _checker(_Key(bank, vocabulary)).check(dialogue, scenario)
