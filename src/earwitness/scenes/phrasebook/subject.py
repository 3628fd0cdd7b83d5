"""What a scene is about: the title and facets of its template as noun phrases, and the topic in one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

from earwitness.scenes.bank import Bank, BankError, Situation, Theme
from earwitness.scenes.phrasebook.grammar import Book, Draws, Value, load_phrasebook
from earwitness.scenes.phrasebook.nouns import Noun, facet, is_plural, lower_first, title_kind
from earwitness.scenes.scenario import Scenario
from earwitness.stats.streams import stream

_NUMBER = re.compile(r"(\d+)$")


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of one scene.

    Attributes
    ----------
    title: as it goes on inside a sentence; None if it cannot be said here.
    kind: ``phrase``, ``line`` or ``question``; ``bare`` without a title.
    theme: the wider subject.
    facets: those of the situation first, in the order they are taken up, then some of the theme.
    """

    title: str | None
    kind: str
    theme: Noun
    facets: tuple[Noun, ...]

    @property
    def topic(self) -> Noun:
        """The subject as a noun phrase."""
        return Noun(self.title) if self.title and self.kind == "phrase" else self.theme


def compose_template_text(
    bank: Bank, template: str, theme: str | None = None, *, book: Book | None = None
) -> Situation:
    """Title and facets of a template, from the bank or, beyond its situations, made of the theme's facets.

    Parameters
    ----------
    template: id with a number at its end, such as ``home_cooking.12``.
    theme: id of its theme; else what stands before the number.

    Raises
    ------
    BankError: the bank has no such theme.
    DataError: there is no phrasebook for the bank's language.

    Examples
    --------
    >>> from earwitness.scenes.bank import load_bank
    >>> compose_template_text(load_bank(), "home_cooking.01").title
    'Cooking properly for one'
    >>> len(compose_template_text(load_bank(), "home_cooking.11").facets)
    3
    """
    match = _NUMBER.search(template)
    if match is None:
        raise BankError(f"template {template!r}", "no number at its end", "such as home_cooking.12")
    number = int(match.group(1))
    found = bank.theme(theme if theme is not None else template[: match.start()].rstrip(".-_"))
    if 1 <= number <= len(found.situations):
        return found.situations[number - 1]
    held = book or load_phrasebook(language=bank.language)
    return _new_situation(found, number - len(found.situations) - 1, held)


def _new_situation(theme: Theme, number: int, book: Book) -> Situation:
    """The ``number``-th situation beyond those of the bank: every pair of facets once for each pattern."""
    banned = set(book.language["no_facets"])
    facets = [text for text in theme.facets if text not in banned]
    pairs = list(combinations(range(len(facets)), 2)) or [(0, 0)]
    order = stream(0, "phrasebook", "templates", theme.id).permutation(len(pairs))
    turn, place = divmod(number, len(pairs))
    one, two = pairs[int(order[place])]
    patterns = book.variants("topics.new_title")
    values = {"f": Noun(facets[one]), "g": Noun(facets[two])}
    # Neighbours take different patterns; a pair comes back with another pattern in the next round.
    pattern = patterns[(turn + place) % len(patterns)].said
    title = pattern.expand(Draws(stream(0, "phrasebook", theme.id, str(number))), values)
    rest = [text for n, text in enumerate(facets) if n not in (one, two)]
    third = rest[number % len(rest)] if rest else facets[one]
    return Situation(title=title, facets=(facets[one], facets[two], third))


def subject_of(
    scenario: Scenario, bank: Bank, seed: int, book: Book, sayable: Callable[[str], bool]
) -> Subject:
    """The subject of a scenario, without what ``sayable`` refuses (words that would name a sound)."""
    language = book.language
    theme = bank.theme(scenario.theme)
    situation = compose_template_text(bank, scenario.template, scenario.theme, book=book)
    draws = Draws(stream(seed, "phrasebook", scenario.id, "subject"))
    banned = {str(text).lower() for text in language["no_facets"]}

    def usable(texts: tuple[str, ...]) -> list[Noun]:
        kept = [t for t in texts if t.lower() not in banned and sayable(t)]
        return [facet(kept.pop(draws.below(len(kept))), language) for _ in range(len(kept))]

    own, wider = usable(situation.facets), usable(theme.facets)
    taken = {noun.text for noun in own}
    facets = [*own, *(noun for noun in wider if noun.text not in taken)]
    name = lower_first(theme.name, language)
    if not sayable(name):
        name = facets[-1].text if facets else name
    title: str | None = lower_first(situation.title, language).rstrip(".?!")
    kind = title_kind(situation.title, language)
    if not sayable(situation.title):
        title, kind = None, "bare"
    return Subject(title, kind, Noun(name, is_plural(name, language)), tuple(facets))


def topic_sentence(subject: Subject, pair: str, book: Book, draws: Draws) -> str:
    """What the two talk about, in one sentence."""
    patterns = book.variants(f"topics.{subject.kind}")
    facets = [noun for noun in subject.facets if noun.text not in subject.theme.text]
    f, g = facets[0], facets[1 + draws.below(min(3, len(facets) - 1))]
    values: dict[str, Value] = {
        "pair": pair,
        "title": subject.title or "",
        "theme": subject.theme,
        "f": f,
        "g": g,
    }
    said = patterns[draws.below(len(patterns))].said.expand(draws, values)
    return f"{said}."
