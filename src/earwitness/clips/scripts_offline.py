"""The offline writer of scripts: a phrasebook as data, drawn from with a seed.

A script is a situation's sentences in the phrasebook's shape, each from a list of patterns. What is drawn
for a script depends on the seed, its number and the attempt, so a longer list begins with the shorter one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict

from earwitness.clips.language_files import read_language_file
from earwitness.errors import DataError
from earwitness.runs.items import digest
from earwitness.stats.streams import stream

FOLDER = Path(__file__).parent / "scripts_phrasebook"
_GROUP = re.compile(r"\(([^()]*)\)")
_SLOT = re.compile(r"\{([^{}]*)\}")


class Situation(BaseModel):
    """Something ordinary that happened. ``title`` is what other writers are told of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    title: str
    opening: tuple[str, ...]
    middle: tuple[str, ...]
    turn: tuple[str, ...]

    def part(self, name: str) -> tuple[str, ...]:
        """Patterns of a part."""
        found: tuple[str, ...] = getattr(self, name)
        return found


class Phrasebook(BaseModel):
    """Situations, sentences that go with all of them, and pools for their slots."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    version: str
    language: str
    shape: tuple[str, ...]
    pools: dict[str, tuple[str, ...]]
    distinct: tuple[tuple[str, ...], ...] = ()
    shared: dict[str, tuple[str, ...]] = {}
    situations: tuple[Situation, ...]

    @property
    def name(self) -> str:
        """``id@version``."""
        return f"{self.id}@{self.version}"

    @property
    def hash(self) -> str:
        """Hash of the content."""
        return digest(self.model_dump())

    def situation_of(self, number: int, seed: int) -> Situation:
        """The situation of the script with a number: all of them come before any comes again."""
        round_, place = divmod(number, len(self.situations))
        order = stream(seed, "clip-script", "situations", str(round_)).permutation(
            len(self.situations)
        )
        return self.situations[int(order[place])]

    def write(self, number: int, attempt: int, seed: int) -> str:
        """The text drawn for a script and an attempt.

        >>> book = load_phrasebook("en")
        >>> book.write(3, 1, 0) == book.write(3, 1, 0) != book.write(3, 2, 0)
        True
        """
        rng = stream(seed, "clip-script", "text", str(number), str(attempt))
        situation = self.situation_of(number, seed)
        values = self._values(rng)
        left: dict[str, list[str]] = {}
        sentences = []
        for part in self.shape:
            if part not in left:
                left[part] = list(self._patterns(part, situation))
            # Without replacement: no pattern comes twice in one script.
            pattern = left[part].pop(int(rng.integers(len(left[part]))))
            sentences.append(_expand(pattern, values, rng))
        return " ".join(sentence[0].upper() + sentence[1:] for sentence in sentences)

    def _patterns(self, part: str, situation: Situation) -> Sequence[str]:
        shared, dot, name = part.partition(".")
        return self.shared[name] if dot and shared == "shared" else situation.part(part)

    def _values(self, rng: np.random.Generator) -> Mapping[str, str]:
        values = {
            name: str(pool[int(rng.integers(len(pool)))]) for name, pool in self.pools.items()
        }
        for names in self.distinct:
            for n, name in enumerate(names):
                taken = {values[before] for before in names[:n]}
                free = [value for value in self.pools[name] if value not in taken]
                if values[name] in taken and free:
                    values[name] = str(free[int(rng.integers(len(free)))])
        return values


def _expand(pattern: str, values: Mapping[str, str], rng: np.random.Generator) -> str:
    def choose(match: re.Match[str]) -> str:
        options = match[1].split("|")
        return options[int(rng.integers(len(options)))]

    return _SLOT.sub(lambda match: values[match[1]], _GROUP.sub(choose, pattern))


@lru_cache(maxsize=16)
def load_phrasebook(name: str | Path = "en") -> Phrasebook:
    """A phrasebook by language, or a YAML file of your own.

    Raises
    ------
    DataError: there is none for the language, or the file is not what it should be.
    """
    book, place = read_language_file(
        name,
        FOLDER,
        Phrasebook,
        what="phrasebook",
        purpose="phrasebook",
        wanted="pools, shape, situations",
        hint="Write one in the form of the English one (--phrasebook), or let a model write (--writer).",
    )
    _check(book, place)
    return book


def _check(book: Phrasebook, where: str) -> None:
    if not book.situations:
        raise DataError(f"{where}: situations", "is empty", "at least one")
    need = {part: book.shape.count(part) for part in book.shape}
    for part, times in need.items():
        shared, dot, name = part.partition(".")
        lists = (
            {f"shared.{name}": book.shared.get(name, ())}
            if dot and shared == "shared"
            else {f"situation {s.id}: {part}": getattr(s, part, ()) for s in book.situations}
        )
        for place, patterns in lists.items():
            if len(patterns) < times:
                raise DataError(
                    f"{where}: {place}", f"{len(patterns)} patterns", f"at least {times}"
                )
    texts = [p for s in book.situations for p in (*s.opening, *s.middle, *s.turn)]
    texts += [p for patterns in book.shared.values() for p in patterns]
    for text in texts:
        for slot in _SLOT.findall(text):
            if not book.pools.get(slot):
                raise DataError(
                    f"{where}: {text!r}",
                    f"slot {{{slot}}} has no pool",
                    f"one of {', '.join(book.pools)}",
                )
