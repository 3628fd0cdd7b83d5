"""Noun phrases: facets of a topic and names of sounds, made fit for a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from earwitness.scenes.bank_names import TIERS, Namer
from earwitness.scenes.bank_records import Sound


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun phrase with its grammatical number."""

    text: str
    plural: bool = False


def is_plural(phrase: str, language: Mapping[str, Any]) -> bool:
    """Whether a noun phrase is plural, by its first words, its head's ending, and a list of exceptions.

    Examples
    --------
    >>> from earwitness.scenes.phrasebook.grammar import load_phrasebook
    >>> rules = load_phrasebook().language
    >>> is_plural("sweets from childhood", rules), is_plural("a jar of plums", rules)
    (True, False)
    """
    words = phrase.split()
    if not words or words[0].lower() in language["singular_starts"]:
        return False
    if words[0].lower() in language["plural_starts"]:
        return True
    if " and " in f" {phrase} ":
        return True
    head = words
    for n, word in enumerate(words[1:], start=1):
        if word in language["after_head"]:
            head = words[:n]
            break
    last = head[-1].lower().strip(",")
    if last in language["plurals"]:
        return True
    if last in language["no_plurals"] or _is_gerund(words[0].lower(), language):
        return False
    return last.endswith(language["plural_ending"]) and not last.endswith(
        tuple(language["singular_endings"])
    )


def _is_gerund(word: str, language: Mapping[str, Any]) -> bool:
    return word.endswith(language["gerund_ending"]) and word not in language["ing_adjectives"]


def facet(text: str, language: Mapping[str, Any]) -> Noun:
    """A facet as it is first mentioned."""
    first = text.split()[0].lower()
    if first in language["needs_definite"] and not is_plural(text, language):
        return Noun(f"{language['definite']} {text}")
    return Noun(text, is_plural(text, language))


def known(noun: Noun, language: Mapping[str, Any]) -> Noun:
    """A facet as something both have spoken of before: "a late return" becomes "the late return".

    Examples
    --------
    >>> from earwitness.scenes.phrasebook.grammar import load_phrasebook
    >>> known(Noun("a jar called Walter"), load_phrasebook().language).text
    'the jar called Walter'
    """
    first, _, rest = noun.text.partition(" ")
    if first in language["indefinite"] and rest:
        return Noun(f"{language['definite']} {rest}", noun.plural)
    return noun


def the(noun: Noun, language: Mapping[str, Any]) -> Noun:
    """A facet with the definite article wherever it can take one."""
    told = known(noun, language)
    first = told.text.split()[0].lower()
    bare = (
        first not in language["determiners"]
        and not _is_gerund(first, language)
        and "'" not in told.text.split()[0]
        and not told.text[0].isupper()
    )
    return Noun(f"{language['definite']} {told.text}", told.plural) if bare else told


def lower_first(text: str, language: Mapping[str, Any]) -> str:
    """A sentence as it goes on inside another: its first letter small, unless the word wants a capital."""
    first = re.split(r"[\s,]", text, maxsplit=1)[0]
    stem = first.split("'")[0]
    if stem in language["keep_capital"] or (len(stem) > 1 and stem.isupper()):
        return text
    return text[:1].lower() + text[1:]


def title_kind(title: str, language: Mapping[str, Any]) -> str:
    """Whether a title is a ``question``, a ``phrase`` that can be talked about, or a whole ``line``."""
    words = title.lower().replace(",", " ").split()
    if words[0] in language["question_starts"]:
        return "question"
    if words[0].endswith(language["gerund_ending"]) and words[0] not in language["no_gerunds"]:
        return "line" if set(words) & set(language["finite"]) or "," in title else "phrase"
    return "line"


@dataclass(frozen=True, slots=True)
class SoundWords:
    """How a sound is called: with an article, pointed at, known, and the noun alone."""

    sound: Noun
    that: Noun
    the: Noun
    bare: Noun

    def values(self) -> dict[str, Noun]:
        """For the slots of a pattern."""
        return {"sound": self.sound, "that": self.that, "the": self.the, "bare": self.bare}


def sound_words(
    sound: Sound, namer: Namer, language: Mapping[str, Any], others: Iterable[str] = ()
) -> SoundWords:
    """The words for a sound: its display name if that names it, and its first name as the noun.

    ``others`` are sounds that may be spoken of too: what names one of them does not name this one.

    A phrasebook may give another noun for a sound (``sounds`` in ``language.yaml``), which must name it too.
    """
    own = language.get("sounds", {}).get(sound.id)

    def names_it(text: str) -> bool:
        # "rain" is no name for the rain where an umbrella, of which rain is a weak word, is spoken of too.
        free = namer.mentions(text, sound.id, tiers=TIERS, explained_by=others)
        return any(mention.tier == "name" for mention in free)

    nouns = [own, *sound.names] if own else [*sound.names]
    noun = next((text for text in nouns if names_it(text)), nouns[0])
    plural = is_plural(noun, language)
    if names_it(sound.name):
        shown = Noun(sound.name, is_plural(sound.name, language))
    else:
        vowel = noun[0].lower() in language["vowels"]
        article = "" if plural else language["article_vowel" if vowel else "article"] + " "
        shown = Noun(article + noun, plural)
    definite, near, far = language["definite"], language["that"], language["those"]
    return SoundWords(
        sound=shown,
        that=Noun(f"{far if plural else near} {noun}", plural),
        the=Noun(f"{definite} {noun}", plural),
        bare=Noun(noun, plural),
    )
