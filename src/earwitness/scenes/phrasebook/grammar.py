"""Sentences as data: lists of patterns, read once and expanded by drawing alternatives and filling slots.

A pattern is a sentence with ``(one|other)`` alternatives, which do not nest, and ``{slots}``. ``{x~is/are}``
takes the first form where the slot ``x`` is singular and the second where it is plural. A bar between spaces
divides what one speaker says from what the other answers. Expansion is a single pass: patterns never name other
patterns, so nothing can recurse.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from earwitness.errors import DataError
from earwitness.scenes.phrasebook.nouns import Noun

FOLDER = Path(__file__).parent
PARTS = ("talk", "topics", "roles", "pools", "behavioral", "verbal", "pivot", "language")
"""Files of a phrasebook folder, each ``PART.yaml``."""

_GROUP = re.compile(r"\(([^()]*)\)")
_SLOT = re.compile(r"\{([^{}]*)\}")
_GROUPS = 3
"""One group of variants per split, dealt in turns in the order of a hash."""

Value = str | Noun


class Draws:
    """Uniform draws of one stream, taken in blocks because single ones cost more than the rest."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._block: list[float] = []

    def uniform(self) -> float:
        """One number from 0 up to and without 1."""
        if not self._block:
            self._block = self._rng.random(256).tolist()
        return self._block.pop()

    def below(self, n: int) -> int:
        """An integer from 0 to ``n - 1``."""
        return int(self.uniform() * n)

    def normal(self, mean: float, sd: float) -> float:
        """A draw near a normal one: twelve uniform draws summed, none beyond six deviations."""
        return mean + sd * (sum(self.uniform() for _ in range(12)) - 6)


@dataclass(frozen=True, slots=True)
class Slot:
    """A place to fill; with ``forms`` the one that agrees in number."""

    name: str
    forms: tuple[str, str] | None

    def fill(self, value: Value) -> str:
        """The text that goes here."""
        if self.forms is not None:
            return self.forms[1 if isinstance(value, Noun) and value.plural else 0]
        return value.text if isinstance(value, Noun) else value


Run = tuple["str | Slot", ...]
"""Texts and slots that follow one another."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern taken apart: groups of alternatives, each a run; plain text is a group of one."""

    text: str
    groups: tuple[tuple[Run, ...], ...]
    slots: frozenset[str]

    def expand(self, draws: Draws, values: Mapping[str, Value]) -> str:
        """Fill the slots and draw one of each group of alternatives."""
        out = []
        for group in self.groups:
            run = group[draws.below(len(group))] if len(group) > 1 else group[0]
            out.append(_filled(run, values))
        return tidy("".join(out))

    def expansions(self, values: Mapping[str, Value]) -> Iterator[str]:
        """Every text it can become with these values."""
        for chosen in product(*self.groups):
            yield tidy("".join(_filled(run, values) for run in chosen))


def _filled(run: Run, values: Mapping[str, Value]) -> str:
    return "".join(p if isinstance(p, str) else p.fill(values[p.name]) for p in run)


@dataclass(frozen=True, slots=True)
class Variant:
    """One entry of a list: what is said and, if the entry has a bar, what the other answers."""

    id: str
    group: int
    said: Pattern
    answer: Pattern | None


_SPACES = re.compile(r" {2,}")
_BEFORE_MARK = re.compile(r" +([,.!?])")
_START = re.compile(r"(?:^|(?<=[^.][.!?] ))([^\W\d_])")


def tidy(text: str) -> str:
    """Even out spaces and begin every sentence with a capital.

    Examples
    --------
    >>> tidy("it is  so , yes. a year")
    'It is so, yes. A year'
    """
    even = _BEFORE_MARK.sub(r"\1", _SPACES.sub(" ", text)).strip()
    return _START.sub(lambda match: match.group(1).upper(), even)


def parse(text: str, where: str) -> Pattern:
    """Take a pattern apart.

    Raises
    ------
    DataError: brackets do not pair or nest, or a slot is empty.
    """
    groups: list[tuple[Run, ...]] = []
    at = 0
    for match in _GROUP.finditer(text):
        if match.start() > at:
            groups.append((_run(text[at : match.start()], where),))
        groups.append(tuple(_run(part, where) for part in match.group(1).split("|")))
        at = match.end()
    if at < len(text):
        groups.append((_run(text[at:], where),))
    slots = {piece.name for g in groups for run in g for piece in run if isinstance(piece, Slot)}
    return Pattern(text, tuple(groups), frozenset(slots))


def _run(text: str, where: str) -> Run:
    pieces: list[str | Slot] = []
    at = 0
    for match in _SLOT.finditer(text):
        pieces += [text[at : match.start()], _slot(match.group(1), where)]
        at = match.end()
    pieces.append(text[at:])
    if set("(){}") & set("".join(p for p in pieces if isinstance(p, str))):
        raise DataError(where, f"brackets that do not pair in {text!r}", "(this|that) and {slot}")
    return tuple(piece for piece in pieces if piece)


def _slot(text: str, where: str) -> Slot:
    name, tilde, rest = text.partition("~")
    forms = rest.split("/")
    if not name or (tilde and len(forms) != 2):
        raise DataError(where, f"a slot {{{text}}}", "{name} or {name~is/are}")
    return Slot(name, (forms[0], forms[1]) if tilde else None)


def _variants(where: str, texts: Sequence[Any], *, grouped: bool) -> tuple[Variant, ...]:
    made = []
    for text in texts:
        if not isinstance(text, str):
            raise DataError(where, f"{text!r}", "a sentence in quotation marks")
        # A bar inside alternatives has no spaces around it.
        said, bar, answer = text.partition(" | ")
        made.append((text, parse(said, where), parse(answer, where) if bar else None))
    ranked = sorted(
        made, key=lambda entry: hashlib.sha256(f"{where}\n{entry[0]}".encode()).digest()
    )
    group = {entry[0]: n % _GROUPS if grouped else -1 for n, entry in enumerate(ranked)}
    if len(group) != len(made):
        raise DataError(where, "the same sentence twice", "each sentence once")
    return tuple(Variant(f"{where}\n{t}", group[t], said, answer) for t, said, answer in made)


@dataclass(frozen=True)
class Book:
    """A phrasebook, ready for use.

    Attributes
    ----------
    lists: variants by ``part.list`` or ``part.register.list``.
    pools: words for slots by name; by kind of sound for ``kin``.
    language: what the language needs, ``language.yaml``.
    """

    folder: Path
    lists: Mapping[str, tuple[Variant, ...]]
    pools: Mapping[str, tuple[str, ...]]
    language: Mapping[str, Any]

    def variants(self, key: str, group: int | None = None) -> tuple[Variant, ...]:
        """A list; with a group only its variants of that group.

        Raises
        ------
        DataError: the phrasebook has no such list.
        """
        return _of_group(self, key, group)

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


@lru_cache(maxsize=4096)
def _of_group(book: Book, key: str, group: int | None) -> tuple[Variant, ...]:
    found = book.lists.get(key)
    if not found:
        raise DataError(str(book.folder), f"no sentences for {key!r}", f"a list {key!r}")
    if group is None:
        return found
    own = tuple(variant for variant in found if variant.group == group)
    if not own:
        raise DataError(str(book.folder), f"too few sentences for {key!r}", "three or more")
    return own


def load_phrasebook(folder: Path | str | None = None, *, language: str = "en") -> Book:
    """Read a phrasebook folder; without one, that of a language.

    Parameters
    ----------
    folder: with one YAML file for each of :data:`PARTS` (see ``docs/phrasebook.md``).
    language: BCP 47 tag; its first part chooses among the phrasebooks that ship.

    Raises
    ------
    DataError: there is none, or a file cannot be used; the text says which and where.

    Examples
    --------
    >>> len(load_phrasebook().variants("verbal.label_and_return", 0)) >= 12
    True
    """
    path = FOLDER / language.split("-")[0].lower() if folder is None else Path(folder)
    if not path.is_dir():
        known = ", ".join(sorted(f.parent.name for f in FOLDER.glob("*/talk.yaml")))
        raise DataError(
            str(path),
            f"no phrasebook for {language!r}" if folder is None else "no such folder",
            f"one of {known}",
            "Write one (docs/phrasebook.md), or let a model write the dialogues.",
        )
    return _load(path)


@lru_cache(maxsize=8)
def _load(folder: Path) -> Book:
    lists: dict[str, tuple[Variant, ...]] = {}
    pools: dict[str, tuple[str, ...]] = {}
    language: Mapping[str, Any] = {}
    for part in PARTS:
        content = _read(folder / f"{part}.yaml")
        if part == "language":
            language = content
        elif part == "pools":
            pools |= {key: tuple(map(str, words)) for key, words in content.items()}
        else:
            for key, entries in content.items():
                for name, texts in _nested(key, entries):
                    where = f"{part}.{name}"
                    grouped = part in ("behavioral", "verbal", "pivot")
                    if name.startswith("kin."):
                        pools[name] = tuple(map(str, texts))
                    else:
                        lists[where] = _variants(where, texts, grouped=grouped)
    return Book(folder, lists, pools, language)


def _nested(key: str, entries: Any) -> Iterable[tuple[str, Sequence[Any]]]:
    if isinstance(entries, Mapping):
        return [(f"{key}.{name}", texts) for name, texts in entries.items()]
    return [(key, entries)]


def _read(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        raise DataError(str(path), "no such file", "a part of the phrasebook")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        value = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
    except yaml.YAMLError as error:
        raise DataError(str(path), f"is not YAML: {error}") from error
    if not isinstance(value, dict):
        raise DataError(str(path), "no lists of sentences", "a mapping of lists")
    return value
