"""Texts of templates: the bank's own situations, combinations of a theme's facets, or written by a model.

The plan needs only ids such as ``repairs.07`` (the seventh template of the theme ``repairs``) and never waits
for texts; a bank holds the first few of each theme.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from earwitness.errors import DataError
from earwitness.runs.items import Item
from earwitness.scenes.bank import Bank
from earwitness.scenes.corpus import TemplateText
from earwitness.scenes.scenario import Scenario, Split
from earwitness.scenes.writers.calls import TASK, TextCaller
from earwitness.scenes.writers.extraction import NOT_AS_ASKED, NotUsableError, json_in
from earwitness.scenes.writers.prompts import WriterPrompts
from earwitness.stats.streams import stream

PER_CALL = 10
MAX_ASKS = 5
TOO_CLOSE = 0.6
"""Share of words two titles may have in common (Jaccard index) before they are one situation."""
FACETS = 3
_WORD = re.compile(r"[^\W_]+")


def parse_template(identifier: str) -> tuple[str, int]:
    """Theme and number (from 1) of a template.

    Examples
    --------
    >>> parse_template("moving_house.03")
    ('moving_house', 3)
    """
    theme, _, number = identifier.rpartition(".")
    if not theme or not number.isdigit():
        raise DataError(f"template {identifier!r}", "is no id of a template", "such as repairs.07")
    return theme, int(number)


class BankTemplates:
    """Texts without a model: the bank's situations, and after those combinations of the theme's facets."""

    def __init__(self, bank: Bank, seed: int) -> None:
        self._bank = bank
        self._seed = seed

    async def texts(self, scenarios: Sequence[Scenario]) -> dict[str, TemplateText]:
        """Texts by id, in the order in which they are first needed.

        Raises
        ------
        DataError: a theme has fewer combinations than the plan has templates of it.
        """
        splits = {scenario.template: scenario.split for scenario in scenarios}
        return {name: self._text(name, split) for name, split in splits.items()}

    def _text(self, identifier: str, split: Split) -> TemplateText:
        name, number = parse_template(identifier)
        theme = self._bank.theme(name)
        if number <= len(theme.situations):
            situation = theme.situations[number - 1]
            return TemplateText(identifier, name, split, situation.title, situation.facets)
        chosen = list(combinations(theme.facets, min(FACETS, len(theme.facets))))
        place = number - len(theme.situations) - 1
        if place >= len(chosen):
            raise DataError(
                f"bank {self._bank.id}: theme {name}",
                f"{len(theme.situations)} situations and {len(chosen)} combinations of facets",
                wanted=f"{number} templates",
                next_step="Add situations or facets to the bank, plan fewer templates, or let a model "
                "write them with --templates-writer.",
            )
        order = stream(self._seed, "facets", name).permutation(len(chosen))
        facets = chosen[int(order[place])]
        title = f"{theme.name}: {facets[0]}, {facets[1]}" if len(facets) > 1 else theme.name
        return TemplateText(identifier, name, split, title, facets, source="facets")


@dataclass(frozen=True, slots=True)
class _Situation:
    title: str
    facets: tuple[str, ...]
    words: frozenset[str] = field(compare=False)


class ChatTemplates:
    """Texts by a model, ten of a theme at a time, each unlike all before it in the corpus.

    *Before* is by the order in which themes are planned: which texts a theme gets depends on those planned
    earlier and never on how much is asked for at a time.
    """

    def __init__(self, caller: TextCaller, prompts: WriterPrompts, themes: Sequence[str]) -> None:
        self._caller = caller
        self._prompts = prompts
        self._themes = tuple(themes)
        self._accepted: list[_Situation] = []
        self._of_theme: dict[str, list[_Situation]] = {theme: [] for theme in themes}
        self._done: set[tuple[int, str]] = set()

    async def texts(self, scenarios: Sequence[Scenario]) -> dict[str, TemplateText]:
        """Texts by id; those whose call failed, and all after them, are absent."""
        wanted = {scenario.template: scenario.split for scenario in scenarios}
        last = max((self._lot(name) for name in wanted), default=None)
        if last is not None:
            await self._write_to(last)
        found = {}
        for name, split in wanted.items():
            theme, number = parse_template(name)
            situations = self._of_theme[theme]
            if number <= len(situations):
                situation = situations[number - 1]
                found[name] = TemplateText(
                    name, theme, split, situation.title, situation.facets, self._caller.model.name
                )
        return found

    def _lot(self, identifier: str) -> tuple[int, int]:
        """The call that brings a template: block of ten, and the theme's place in the plan."""
        theme, number = parse_template(identifier)
        return (number - 1) // PER_CALL, self._themes.index(theme)

    def _lots_to(self, last: tuple[int, int]) -> Iterator[tuple[int, str]]:
        for block in range(last[0] + 1):
            for place, theme in enumerate(self._themes):
                if (block, place) <= last:
                    yield block, theme

    async def _write_to(self, last: tuple[int, int]) -> None:
        lots = [lot for lot in self._lots_to(last) if lot not in self._done]
        # All first answers at once, a block at a time: later blocks name what the earlier ones took.
        for block in sorted({block for block, _ in lots}):
            of_block = [lot for lot in lots if lot[0] == block]
            await self._caller.ask([self._item(lot, 1, (), PER_CALL) for lot in of_block])
            for lot in of_block:
                if not await self._settle(lot):
                    return
                self._done.add(lot)

    async def _settle(self, lot: tuple[int, str]) -> bool:
        """Fill one lot; False when a call failed.

        Raises
        ------
        DataError: the model did not find enough situations that differ.
        """
        theme = lot[1]
        goal = (lot[0] + 1) * PER_CALL
        problems: tuple[str, ...] = ()
        for ask in range(1, MAX_ASKS + 1):
            missing = goal - len(self._of_theme[theme])
            answers = await self._caller.ask([self._item(lot, ask, problems, missing)])
            reply = answers[0].reply
            if reply is None:
                return False
            try:
                problems = self._take(theme, json_in(reply, "situations"), missing)
            except NotUsableError as error:
                problems = (error.violation.message,)
            if len(self._of_theme[theme]) >= goal:
                return True
        raise DataError(
            f"templates of theme {theme}",
            f"{len(self._of_theme[theme]) % PER_CALL} of {PER_CALL} after {MAX_ASKS} answers of "
            f"{self._caller.model.name}; the last were turned down: {'; '.join(problems)[:300]}",
            wanted="situations that differ",
            next_step="Use another --templates-writer, or none: the bank's situations are used then.",
        )

    def _item(self, lot: tuple[int, str], ask: int, problems: Sequence[str], missing: int) -> Item:
        taken = [situation.title for situation in self._of_theme[lot[1]]]
        prompt = self._prompts.templates(lot[1], missing, taken, problems)
        version = self._prompts.version("templates")
        return Item(
            f"{lot[1]}#{lot[0] + 1}.{ask}", f"{TASK}.templates", version, prompt, None, "text"
        )

    def _take(self, theme: str, value: Mapping[str, object], missing: int) -> tuple[str, ...]:
        """Accept what is new; the reasons against the rest."""
        given = value["situations"]
        if not isinstance(given, list):
            raise NotUsableError(NOT_AS_ASKED, '"situations" is no list.')
        problems = []
        for entry in given[: 2 * missing]:
            situation = _situation(entry)
            if situation is None:
                problems.append(f"{str(entry)[:60]!r} has no title with two to four facets.")
                continue
            rival = next((s for s in self._accepted if _too_close(s, situation)), None)
            if rival is not None:
                problems.append(f'"{situation.title}" is too close to "{rival.title}".')
                continue
            self._accepted.append(situation)
            self._of_theme[theme].append(situation)
            missing -= 1
            if not missing:
                break
        return tuple(problems)


def _situation(entry: object) -> _Situation | None:
    if not isinstance(entry, dict):
        return None
    title, facets = entry.get("title"), entry.get("facets")
    if not isinstance(title, str) or not isinstance(facets, list):
        return None
    clean = tuple(" ".join(str(facet).split()) for facet in facets if str(facet).strip())
    heading = " ".join(title.split())
    if not heading or not 2 <= len(clean) <= 4:
        return None
    return _Situation(heading, clean, frozenset(_WORD.findall(heading.casefold())))


def _too_close(one: _Situation, other: _Situation) -> bool:
    either = one.words | other.words
    return set(one.facets) == set(other.facets) or (
        len(one.words & other.words) > TOO_CLOSE * len(either)
    )
