"""What a rule is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from earwitness.scenes.rules.reading import Reading

Fault = tuple[str, str]
"""Where, and what is wrong there as a whole sentence."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule. ``code`` is stable; ``message`` is a sentence a writer can act on."""

    code: str
    message: str
    where: str

    def __str__(self) -> str:
        return f"{self.code} {self.where}: {self.message}"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its stable code and what it asks for. ``needs_scenario`` rules say nothing without one."""

    code: str
    sentence: str
    needs_scenario: bool
    find: Callable[[Reading], Iterator[Fault]]

    def violations(self, reading: Reading) -> Iterator[Violation]:
        """Yield what in a dialogue breaks this rule."""
        if self.needs_scenario and reading.scenario is None:
            return
        for where, message in self.find(reading):
            yield Violation(self.code, message, where)


def rule(
    code: str, sentence: str, *, needs_scenario: bool = False
) -> Callable[[Callable[[Reading], Iterator[Fault]]], Rule]:
    """Make a function that yields faults into a :class:`Rule`."""

    def make(find: Callable[[Reading], Iterator[Fault]]) -> Rule:
        return Rule(code, sentence, needs_scenario, find)

    return make


def shown(text: str, limit: int = 60) -> str:
    """A quotation that fits a line."""
    short = text if len(text) <= limit else text[: limit - 3].rstrip() + "..."
    return f'"{short}"'
