"""Words that give an emotion away: a lexicon as data, with inflections, phrases and negation.

Conventions
-----------
A text is read word by word, without regard to case. A word matches an entry when it is the entry or one of
its inflected forms: endings are exchanged by the lexicon's rules, up to twice (``frighteningly`` to
``frightening`` to ``frighten``). ``*`` stands for any letters. The words of a phrase match the same way, one
after another. Negators reach over a few words of the same clause: what is harmless by itself may take a side
after one (``it did not work``), and what names an emotion names it after one as well (``not angry``).

A language is one file; see ``scripts_lexicon/en.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from earwitness.clips.language_files import read_language_file
from earwitness.runs.items import digest

FOLDER = Path(__file__).parent / "scripts_lexicon"
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_CLAUSE_END = re.compile(r"[.,;:?!—–]")


class Inflection(BaseModel):
    """Rules that lead from a form back to the word."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    endings: tuple[tuple[str, str], ...] = ()
    double: tuple[str, ...] = ()
    shortest: int = 3


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    version: str
    language: str
    inflection: Inflection = Inflection()
    negators: tuple[str, ...] = ()
    negation_reach: int = 3
    emotions: dict[str, tuple[str, ...]]
    valenced: dict[str, tuple[str, ...]] = {}
    negated: dict[str, tuple[str, ...]] = {}
    interjections: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    capitals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a text. ``clause`` counts clauses, so that negation does not reach across a comma."""

    text: str
    written: str
    clause: int


@dataclass(frozen=True, slots=True)
class Giveaway:
    """A word or phrase that takes a side.

    ``kind`` is ``emotion``, ``valenced``, ``negated`` or ``interjection``; ``side`` the emotion or valence;
    ``negator`` the word before it that negates it, empty if there is none.
    """

    kind: str
    side: str
    written: str
    entry: str
    negator: str = ""


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: str
    side: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Lexicon:
    """One language's giveaways. Opened by :func:`load_lexicon`."""

    id: str
    version: str
    language: str
    hash: str
    capitals: frozenset[str]
    _inflection: Inflection
    _negators: tuple[str, ...]
    _reach: int
    _by_word: Mapping[str, tuple[_Entry, ...]] = field(repr=False)
    _wild: tuple[_Entry, ...] = field(repr=False)
    _any_wild: re.Pattern[str] = field(repr=False)
    _negated: Mapping[str, str] = field(repr=False)
    _allowed: tuple[tuple[str, ...], ...] = field(repr=False)

    @property
    def name(self) -> str:
        """``id@version``."""
        return f"{self.id}@{self.version}"

    def find(self, text: str) -> tuple[Giveaway, ...]:
        """Everything in a text that gives an emotion away, in the order of the text.

        >>> [(g.kind, g.side, g.negator) for g in load_lexicon("en").find("I am not angry, it did not work.")]
        [('emotion', 'anger', 'not'), ('negated', 'negative', 'not')]
        """
        tokens = tokens_in(text)
        forms = [forms_of(token.text, self._inflection) for token in tokens]
        free = self._allowed_places(forms)
        found = []
        for place in range(len(tokens)):
            if place in free:
                continue
            hit = self._hit(forms, tokens, place)
            if hit is not None:
                found.append(hit)
        return tuple(found)

    def _hit(
        self, forms: Sequence[frozenset[str]], tokens: Sequence[Token], place: int
    ) -> Giveaway | None:
        candidates = [e for form in forms[place] for e in self._by_word.get(form, ())]
        if any(self._any_wild.fullmatch(form) for form in forms[place]):
            candidates += [e for e in self._wild if _matches(e.words[0], forms[place])]
        # The longest entry says most; ties by the order of kinds and sides.
        for entry in sorted(candidates, key=lambda e: (-len(e.words), e.kind, e.side, e.words)):
            end = place + len(entry.words)
            if end <= len(forms) and all(
                _matches(word, forms[place + n]) for n, word in enumerate(entry.words)
            ):
                written = " ".join(token.written for token in tokens[place:end])
                negator = self._negator_before(tokens, place)
                return Giveaway(entry.kind, entry.side, written, " ".join(entry.words), negator)
        for form in sorted(forms[place] & self._negated.keys()):
            if negator := self._negator_before(tokens, place):
                return Giveaway(
                    "negated", self._negated[form], tokens[place].written, form, negator
                )
        return None

    def _negator_before(self, tokens: Sequence[Token], place: int) -> str:
        here = tokens[place]
        for before in reversed(tokens[max(0, place - self._reach) : place]):
            if before.clause != here.clause:
                break
            if any(fnmatchcase(before.text, negator) for negator in self._negators):
                return before.written
        return ""

    def _allowed_places(self, forms: Sequence[frozenset[str]]) -> frozenset[int]:
        free: set[int] = set()
        for phrase in self._allowed:
            for place in range(len(forms) - len(phrase) + 1):
                if all(word in forms[place + n] for n, word in enumerate(phrase)):
                    free.update(range(place, place + len(phrase)))
        return frozenset(free)


def tokens_in(text: str) -> tuple[Token, ...]:
    """The words of a text, lower case, with typographic apostrophes made plain."""
    tokens = []
    clause, at = 0, 0
    for match in _WORD.finditer(text):
        clause += bool(_CLAUSE_END.search(text, at, match.start()))
        at = match.end()
        tokens.append(Token(match[0].replace("’", "'").casefold(), match[0], clause))
    return tuple(tokens)


@lru_cache(maxsize=1 << 14)
def forms_of(word: str, rules: Inflection) -> frozenset[str]:
    """A word and what it may be an inflected form of.

    >>> sorted(forms_of("sobbed", Inflection(endings=(("ed", ""),), double=("ed",))))
    ['sob', 'sobb', 'sobbed']
    """
    forms = {word}
    edge = {word}
    for _ in range(2):
        edge = {stem for form in edge for stem in _stems(form, rules)} - forms
        forms |= edge
    return frozenset(forms)


def _stems(word: str, rules: Inflection) -> Iterator[str]:
    for ending, other in rules.endings:
        if not word.endswith(ending):
            continue
        stem = word[: len(word) - len(ending)]
        if len(stem + other) < rules.shortest:
            continue
        yield stem + other
        if ending in rules.double and len(stem) > rules.shortest and stem[-1] == stem[-2]:
            yield stem[:-1]


def _matches(wanted: str, forms: frozenset[str]) -> bool:
    if "*" in wanted:
        return any(fnmatchcase(form, wanted) for form in forms)
    return wanted in forms


@lru_cache(maxsize=16)
def load_lexicon(name: str | Path = "en") -> Lexicon:
    """A lexicon by language, or a YAML file of your own.

    Raises
    ------
    DataError: there is none for the language, or the file is not what it should be.
    """
    data, _ = read_language_file(
        name,
        FOLDER,
        _File,
        what="lexicon",
        purpose="lexicon of giveaways",
        wanted="id, version, language, emotions",
        hint="Write one in the form of the English one and name it with --lexicon.",
    )
    return _lexicon(data)


def _lexicon(data: _File) -> Lexicon:
    entries = [
        _Entry(kind, side, tuple(text.casefold().split()))
        for kind, sides in (
            ("emotion", data.emotions),
            ("valenced", data.valenced),
            ("interjection", {"": data.interjections}),
        )
        for side, texts in sides.items()
        for text in texts
    ]
    wild = tuple(entry for entry in entries if "*" in entry.words[0])
    by_word: dict[str, list[_Entry]] = {}
    for entry in entries:
        if "*" not in entry.words[0]:
            by_word.setdefault(entry.words[0], []).append(entry)
    return Lexicon(
        id=data.id,
        version=data.version,
        language=data.language,
        hash=digest(data.model_dump()),
        capitals=frozenset(data.capitals),
        _inflection=data.inflection,
        _negators=tuple(word.casefold() for word in data.negators),
        _reach=data.negation_reach,
        _by_word={word: tuple(them) for word, them in by_word.items()},
        _wild=wild,
        _any_wild=re.compile("|".join(translate(entry.words[0]) for entry in wild) or r"(?!)"),
        _negated={w.casefold(): side for side, words in data.negated.items() for w in words},
        _allowed=tuple(tuple(text.casefold().split()) for text in data.allowed),
    )
