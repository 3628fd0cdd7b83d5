"""``offline/phrasebook`` as a writer: no model, no network, the same words on every machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from earwitness.jobs import pool_map
from earwitness.scenes.bank import Bank
from earwitness.scenes.bank_cast import bank_in, tag_ids
from earwitness.scenes.corpus import TemplateText
from earwitness.scenes.dialogue_records import Dialogue
from earwitness.scenes.scenario import Scenario
from earwitness.scenes.writing import Assignment, Draft, OnDone
from earwitness.stats.streams import stream

NAME = "offline/phrasebook"
CHUNK = 16
FEW = 64
"""Dialogues below which composing stays in this process: starting another takes longer."""


def attempt_seed(seed: int, attempt: int) -> int:
    """The seed of an attempt: that of the corpus for the first, another for each further one.

    Examples
    --------
    >>> attempt_seed(7, 1)
    7
    """
    if attempt == 1:
        return seed
    return int(stream(seed, "attempt", str(attempt)).integers(2**62))


class PhrasebookWriter:
    """Composes dialogues from the phrasebook.

    Parameters
    ----------
    bank_folder: where worker processes load the bank from; None means the one that ships.
    workers: processes; None means one per processor.
    """

    def __init__(
        self,
        bank: Bank,
        seed: int,
        *,
        bank_folder: Path | None = None,
        workers: int | None = None,
    ) -> None:
        self._bank = bank
        self._seed = seed
        self._bank_folder = bank_folder
        self._workers = workers

    @property
    def name(self) -> str:
        """``offline/phrasebook``."""
        return NAME

    @property
    def family(self) -> str | None:
        """It is a family of its own."""
        return "phrasebook"

    @property
    def settings(self) -> Mapping[str, Any]:
        """The version of the phrasebook."""
        from earwitness.scenes import phrasebook

        return {"version": phrasebook.VERSION}

    @property
    def prompts(self) -> Mapping[str, str]:
        """None."""
        return {}

    async def write(
        self, assignments: Sequence[Assignment], on_done: OnDone | None = None
    ) -> list[Draft]:
        """One draft for every assignment, on several processes where there are many."""
        seed = self._seed
        if self._workers == 1 or len(assignments) <= FEW:
            from earwitness.scenes.phrasebook import compose

            drafts = []
            for number, each in enumerate(assignments, start=1):
                drafts.append(
                    Draft(compose(each.scenario, self._bank, attempt_seed(seed, each.attempt)))
                )
                if on_done:
                    on_done(number)
            return drafts
        folder, tags = self._bank_folder, tag_ids(self._bank)
        cases = [
            (each.scenario, attempt_seed(seed, each.attempt), folder, tags) for each in assignments
        ]
        made = pool_map(_compose, cases, workers=self._workers, chunk=CHUNK, on_done=on_done)
        return [Draft(dialogue) for dialogue in made]

    async def aclose(self) -> None:
        """Nothing to close."""


class PhrasebookTemplates:
    """Texts of templates as the phrasebook takes them: of the bank, and beyond it of its own making."""

    def __init__(self, bank: Bank) -> None:
        self._bank = bank

    async def texts(self, scenarios: Sequence[Scenario]) -> dict[str, TemplateText]:
        """Texts by id, in the order in which they are first needed."""
        from earwitness.scenes.phrasebook import compose_template_text

        found: dict[str, TemplateText] = {}
        for scenario in scenarios:
            name, theme = scenario.template, scenario.theme
            if name in found:
                continue
            situation = compose_template_text(self._bank, name, theme)
            own = situation in self._bank.theme(theme).situations
            found[name] = TemplateText(
                name,
                theme,
                scenario.split,
                situation.title,
                tuple(situation.facets),
                "bank" if own else NAME,
            )
        return found


def _compose(case: tuple[Scenario, int, Path | None, tuple[str, ...]]) -> Dialogue:
    from earwitness.scenes.phrasebook import compose

    scenario, seed, folder, tags = case
    return compose(scenario, bank_in(folder, tags), seed)
