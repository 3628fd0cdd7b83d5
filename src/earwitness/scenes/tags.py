"""Delivery tags: the words in square brackets that a voice performs and nobody reads out.

``I just [sighs] don't know.`` has two pieces of speech with a tag between them. Which tags exist, and what
is heard of each, is said by the bank (``tags.yaml``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from earwitness.scenes.bank import Bank, Tag

_TAG = re.compile(r"\[([^\[\]]*)\]")
_SPACES = re.compile(r"\s+")
_SPACE_BEFORE = re.compile(r" ([,.!?;:…])")
_PERFORMED = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch ``text[start:end]`` of an utterance.

    ``content`` is what is said, or what stands between the brackets of a tag, spaces evened out.
    """

    kind: Literal["speech", "tag"]
    content: str
    start: int
    end: int


def split_tags(text: str) -> tuple[Piece, ...]:
    """Split an utterance into speech and tags, in order; blank stretches are left out.

    Brackets that do not pair are part of the speech (and a fault, see rule D305).

    Examples
    --------
    >>> [(piece.kind, piece.content) for piece in split_tags("I just [sighs] don't know.")]
    [('speech', 'I just'), ('tag', 'sighs'), ('speech', "don't know.")]
    """
    pieces = []
    at = 0
    for match in _TAG.finditer(text):
        pieces.append(_speech(text, at, match.start()))
        pieces.append(Piece("tag", normalise_tag(match.group(1)), match.start(), match.end()))
        at = match.end()
    pieces.append(_speech(text, at, len(text)))
    return tuple(piece for piece in pieces if piece.kind == "tag" or piece.content)


def _speech(text: str, start: int, end: int) -> Piece:
    return Piece("speech", _SPACES.sub(" ", text[start:end]).strip(), start, end)


def strip_tags(text: str) -> str:
    """Return what is said, without tags, spaces evened out.

    Examples
    --------
    >>> strip_tags("Well [sighs], I [pauses] know.")
    'Well, I know.'
    """
    return even_spaces(_TAG.sub(" ", text))


def even_spaces(text: str) -> str:
    """Return a text with single spaces, and none before a mark that ends something."""
    return _SPACE_BEFORE.sub(r"\1", _SPACES.sub(" ", text).strip())


def normalise_tag(written: str) -> str:
    """Return what stands between the brackets in lower case, spaces evened out."""
    return _SPACES.sub(" ", written).strip().casefold()


def has_speech(text: str) -> bool:
    """Whether anything would be spoken: a letter or digit outside tags."""
    return _PERFORMED.search(_TAG.sub(" ", text)) is not None


def tag_of(bank: Bank, written: str) -> Tag | None:
    """The bank's tag that is written so between its brackets; None if there is none.

    Examples
    --------
    >>> from earwitness.scenes.bank import load_bank
    >>> tag_of(load_bank(), "Clears  throat").id
    'throat'
    """
    return _written(_ByHash(bank)).get(normalise_tag(written))


@dataclass(frozen=True, slots=True, eq=False)
class _ByHash:
    """A bank as a cheap cache key: its content hash says it all."""

    bank: Bank

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByHash) and other.bank.hash == self.bank.hash

    def __hash__(self) -> int:
        return hash(self.bank.hash)


@lru_cache(maxsize=8)
def _written(key: _ByHash) -> dict[str, Tag]:
    return {normalise_tag(tag.written): tag for tag in key.bank.tags}
