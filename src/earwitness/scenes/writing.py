"""Who writes and who decides: the protocols of the writing loop (see :mod:`earwitness.scenes.writing_loop`).

A :class:`Writer` turns assignments into drafts. Drafts that break a rule go back to it with the list of what
is wrong. A :class:`Gate` (the judge with its threshold) decides about those that break none; what it turns
down goes back in the same way. Neither knows of files, attempts or quotas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from earwitness.scenes.corpus import TemplateText
from earwitness.scenes.dialogue_records import Dialogue
from earwitness.scenes.rules.registry import Violation
from earwitness.scenes.scenario import Scenario

__all__ = ["Assignment", "Draft", "FunctionGate", "Gate", "Ruling", "Violation", "Writer"]

OnDone = Callable[[int], None]
"""Told how many of the things given are done."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """One dialogue to write.

    Attributes
    ----------
    attempt: 1 for the first.
    previous: the draft of the attempt before, where it was one.
    reasons: why that was turned down.
    """

    scenario: Scenario
    template: TemplateText
    attempt: int = 1
    previous: Dialogue | None = None
    reasons: tuple[Violation, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """What came of an assignment: a dialogue, or reasons why there is none, or a failure to ask at all.

    ``problems`` count as an attempt and go back to the writer; ``failed`` (no network, no quota) does not,
    and leaves the scene for the next run.
    """

    dialogue: Dialogue | None = None
    problems: tuple[Violation, ...] = ()
    failed: str | None = None


@runtime_checkable
class Writer(Protocol):
    """Writes dialogues. ``name`` is ``adapter/name``; the same assignment gives the same draft when asked again."""

    @property
    def name(self) -> str: ...

    @property
    def family(self) -> str | None:
        """Family of models, declared by the user; the judge must be of another."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that changes what is written; JSON-serialisable, no secrets."""
        ...

    @property
    def prompts(self) -> Mapping[str, str]:
        """Prompts used, by name and version, with their hashes."""
        ...

    async def write(
        self, assignments: Sequence[Assignment], on_done: OnDone | None = None
    ) -> Sequence[Draft]:
        """One draft for every assignment, in their order."""
        ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the gate decided. ``failed``: the judge could not be asked; the scene waits for the next run."""

    accepted: bool
    reasons: tuple[Violation, ...] = ()
    failed: str | None = None


@runtime_checkable
class Gate(Protocol):
    """Decides whether dialogues that keep the rules also carry what their scenarios plan."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """All the decision depends on (judge, family, prompts, embedder with hash, tau), for ``corpus.yaml``."""
        ...

    async def rule(
        self, cases: Sequence[tuple[Dialogue, Scenario]], on_done: OnDone | None = None
    ) -> Sequence[Ruling]:
        """One ruling for every case, in their order. The same case gets the same ruling when asked again."""
        ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True)
class FunctionGate:
    """A gate made of a plain function ``(dialogue, scenario) -> (accepted, reasons)``."""

    function: Callable[[Dialogue, Scenario], tuple[bool, tuple[Violation, ...]]]
    identity: Mapping[str, Any] = field(default_factory=dict)

    async def rule(
        self, cases: Sequence[tuple[Dialogue, Scenario]], on_done: OnDone | None = None
    ) -> Sequence[Ruling]:
        """Rule case by case."""
        rulings = []
        for number, (dialogue, scenario) in enumerate(cases, start=1):
            accepted, reasons = self.function(dialogue, scenario)
            rulings.append(Ruling(accepted, tuple(reasons)))
            if on_done:
                on_done(number)
        return rulings

    async def aclose(self) -> None:
        """Nothing to close."""
