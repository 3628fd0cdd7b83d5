"""Word lists of the reader, ready to be looked up: one YAML file per language."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from earwitness.errors import UsageError

FOLDER = Path(__file__).parent


class Phrases:
    """Words and phrases that may occur in a sequence of words; a trailing star stands for any ending.

    Examples
    --------
    >>> Phrases(["there goes", "bark*"]).count(["there", "goes", "the", "barking"])
    2
    """

    def __init__(self, entries: Iterable[str]) -> None:
        self._starts: dict[str, list[tuple[str, ...]]] = {}
        self._prefixes: list[str] = []
        for entry in entries:
            words = tuple(entry.lower().split())
            if len(words) == 1 and entry.endswith("*"):
                self._prefixes.append(entry[:-1].lower())
            else:
                self._starts.setdefault(words[0], []).append(words)
        self._prefix = tuple(self._prefixes)

    def at(self, words: Sequence[str], place: int) -> int:
        """How many words from ``place`` on are an entry; 0 for none."""
        word = words[place]
        longest = 1 if self._prefix and word.startswith(self._prefix) else 0
        for entry in self._starts.get(word, ()):
            if len(entry) > longest and tuple(words[place : place + len(entry)]) == entry:
                longest = len(entry)
        return longest

    def places(self, words: Sequence[str]) -> list[int]:
        """Where entries begin."""
        return [place for place in range(len(words)) if self.at(words, place)]

    def count(self, words: Sequence[str]) -> int:
        """How many entries occur."""
        return len(self.places(words))

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.at([word], 0) > 0


@dataclass(frozen=True)
class Lexicon:
    """The lists of one language; ``en.yaml`` says what each is for."""

    perceiving: Phrases
    not_perceiving: Phrases
    pointing: Phrases
    outcry: Phrases
    sounding: Phrases
    sources: Phrases
    repairing: Phrases
    taking_back: Phrases
    demonstratives: frozenset[str]
    being: tuple[str, ...]
    dangling: frozenset[str]
    dangling_before_comma: frozenset[str]
    helpers: frozenset[str]
    pronouns: frozenset[str]
    adverbs: frozenset[str]
    joining: frozenset[str]
    repeats_allowed: frozenset[tuple[str, ...]]
    common: frozenset[str]
    remarks: tuple[str, ...]
    content: Any


@lru_cache(maxsize=4)
def load_lexicon(language: str) -> Lexicon:
    """The lists of a language (a BCP 47 tag; its region does not matter).

    Raises
    ------
    UsageError: the reader does not read it.
    """
    path = FOLDER / f"{language.lower().partition('-')[0]}.yaml"
    if not path.is_file():
        raise UsageError(
            "judge offline/reader",
            f"a bank in the language {language!r}",
            "a bank in English",
            "Use a language model as the judge: --judge openai/NAME -M family=NAME.",
        )
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    sets = (
        "perceiving",
        "pointing",
        "outcry",
        "sounding",
        "sources",
        "repairing",
        "taking_back",
        "not_perceiving",
    )
    return Lexicon(
        **{name: Phrases(content[name]) for name in sets},
        demonstratives=frozenset(content["demonstratives"]),
        being=tuple(content["being"]),
        helpers=frozenset(content["helpers"]),
        pronouns=frozenset(content["pronouns"]),
        joining=frozenset(content["joining"]),
        adverbs=frozenset(content["adverbs"]),
        dangling=frozenset(content["dangling"]),
        dangling_before_comma=frozenset(content["dangling_before_comma"]),
        repeats_allowed=frozenset(tuple(entry.split()) for entry in content["repeats_allowed"]),
        common=frozenset(content["common"]),
        remarks=tuple(content["remarks"]),
        content=content,
    )
