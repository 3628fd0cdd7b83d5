"""A transcript as the reader takes it in: turns, sentences, words, and what is heard between them.

A line is ``A: ...`` or ``[SOUND: e1]``. Anything else in brackets, round or square, is something heard beside
the words; what it is called tells the reader nothing, only where it stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_LINE = re.compile(r"^(\S+?): (.*)$")
_MARK = re.compile(r"^\[SOUND: (\S+)\]$")
_HEARD = re.compile(r"\[[^\[\]]*\]|\([^()]*\)")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+")
# A sentence ends at . ! ? before a capital. Three dots end one only there too; before a small letter they break it.
_END = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+(?=[\"'“‘(\[]*[A-Z0-9])")
_TITLES = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|Prof)\.$")
HEARD = "\u241f"
"""Stands where something is heard in :attr:`Sentence.text`."""


@dataclass(frozen=True)
class Sentence:
    """One sentence; ``text`` has :data:`HEARD` for each thing heard."""

    text: str

    @cached_property
    def plain(self) -> str:
        """Its words and marks, nothing heard."""
        return " ".join(self.text.replace(HEARD, " ").split())

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Words in lower case."""
        return tuple(word.lower().replace("’", "'") for word in _WORD.findall(self.plain))


@dataclass(frozen=True)
class Turn:
    """What one speaker says in one go."""

    speaker: str
    text: str

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """In order; a turn has at least one."""
        text = " ".join(_HEARD.sub(f" {HEARD} ", self.text).split())
        pieces: list[str] = []
        for piece in _END.split(text):
            if pieces and _TITLES.search(pieces[-1]):
                pieces[-1] += f" {piece}"
            else:
                pieces.append(piece)
        return tuple(Sentence(piece) for piece in pieces)

    @cached_property
    def plain(self) -> str:
        """Words and marks alone."""
        return " ".join(sentence.plain for sentence in self.sentences)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Words in lower case."""
        return tuple(word for sentence in self.sentences for word in sentence.words)


@dataclass(frozen=True)
class Read:
    """A transcript taken apart. ``events`` are ``(id, number of turns before it)`` in order."""

    turns: tuple[Turn, ...]
    events: tuple[tuple[str, int], ...]

    def window(self, number: int) -> tuple[int, int]:
        """Turns that belong to an event: from the one after it to the next event's place, or the end."""
        start = self.events[number][1]
        later = [at for _, at in self.events[number + 1 :] if at > start]
        return start, later[0] if later else len(self.turns)


def read(transcript: str) -> Read:
    """Take a transcript apart; lines that are neither turn nor mark go on the turn before.

    Examples
    --------
    >>> talk = read("A: Well, yes.\\n[SOUND: e1]\\nB: I (sighs) know. Do you?")
    >>> talk.events, len(talk.turns[1].sentences)
    ((('e1', 1),), 2)
    """
    turns: list[Turn] = []
    events: list[tuple[str, int]] = []
    for raw in transcript.splitlines():
        line = raw.strip()
        if mark := _MARK.match(line):
            events.append((mark.group(1), len(turns)))
        elif said := _LINE.match(line):
            turns.append(Turn(said.group(1), said.group(2)))
        elif line and turns:
            last = turns.pop()
            turns.append(Turn(last.speaker, f"{last.text} {line}"))
    return Read(tuple(turns), tuple(events))
