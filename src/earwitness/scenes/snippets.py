"""Snippets of labelled talk: the test set for whoever reads reactions out of a transcript.

A snippet is a few utterances of two speakers with the marks of one or more sounds between them, and the reaction
to each sound as a person labelled it. Snippets are written by hand and belong to no plan, so a judge's score
on them says what it can read outside the dialogues it is meant to judge. ``docs/reader-test-set.md`` has
the definitions and the notation.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field

from earwitness.errors import DataError
from earwitness.scenes.bank import Bank, Reaction
from earwitness.scenes.bank_records import Record, Text
from earwitness.scenes.dialogue_records import SPEAKERS, EventMark, Utterance
from earwitness.scenes.yaml_records import read_yaml_record

HEARD_MARKS: Mapping[str, str] = MappingProxyType(
    {
        "pause": "pause",
        "long pause": "long_pause",
        "sighs": "sigh",
        "laughs": "laugh",
        "chuckles": "chuckle",
        "gasps": "gasp",
        "clears throat": "throat",
        "coughs": "cough",
        "sniffs": "sniff",
        "swallows": "gulp",
        "groans": "groan",
        "breathes in": "inhale",
        "louder": "loud",
        "whispering": "whisper",
    }
)
"""What may stand in round brackets in a snippet, each with the bank's tag that is heard like it."""

_UTTERANCE = re.compile(r"^([A-Za-z]+): (\S.*)$")
_MARK = re.compile(r"^\[SOUND: (\S+)\]$")
_BRACKET = re.compile(r"\(([^()]*)\)")
_SLUG = r"^[a-z0-9]+(-[a-z0-9]+)*$"


class SnippetError(DataError):
    """A file of labelled snippets is not what it should be."""


class _Entry(Record):
    id: Annotated[str, Field(pattern=_SLUG, max_length=60)]
    location: Text
    sounds: dict[str, Text] = Field(min_length=1)
    reactions: dict[str, Reaction] = Field(min_length=1)
    hard: Annotated[str, Field(pattern=r"^[a-z]+(_[a-z]+)*$")] | None = None
    timeline: Text
    note: Text


class _File(Record):
    version: Literal[1]
    snippets: tuple[_Entry, ...] = Field(min_length=1)


@dataclass(frozen=True)
class Snippet:
    """A labelled piece of talk.

    Attributes
    ----------
    id: names it in reports. No judge may see it, nor ``sounds``, ``reactions``, ``hard`` or ``note``.
    location: where the two are, as a phrase such as ``a home kitchen``.
    sounds: what sounded, by event id.
    timeline: utterances and marks in the order of time; round brackets in an utterance hold a heard mark.
    reactions: the label of each event.
    hard: the kind of difficulty it was written for, or None.
    note: why the label is what it is.
    """

    id: str
    location: str
    sounds: Mapping[str, str]
    timeline: tuple[Utterance | EventMark, ...]
    reactions: Mapping[str, Reaction]
    hard: str | None
    note: str

    @cached_property
    def utterances(self) -> tuple[Utterance, ...]:
        """The utterances alone, in order."""
        return tuple(part for part in self.timeline if isinstance(part, Utterance))

    @cached_property
    def events(self) -> tuple[str, ...]:
        """The ids of the events in the order of time."""
        return tuple(part.id for part in self.timeline if isinstance(part, EventMark))

    def transcript(self, bank: Bank | None = None) -> str:
        """Return what a judge reads: one line per utterance, each sound as ``[SOUND: e1]``.

        Parameters
        ----------
        bank: with one, what is heard is worded and bracketed as in the transcripts of a corpus of that bank
            (``(sighs)`` becomes ``[a long breath let out]``); a mark the bank has no tag for stays as it is.
        """
        words = {} if bank is None else {tag.id: tag.heard for tag in bank.tags}

        def shown(match: re.Match[str]) -> str:
            heard = words.get(HEARD_MARKS[match.group(1)])
            return match.group(0) if heard is None else f"[{heard}]"

        return "\n".join(
            f"[SOUND: {part.id}]"
            if isinstance(part, EventMark)
            else f"{part.speaker}: {_BRACKET.sub(shown, part.text)}"
            for part in self.timeline
        )


@dataclass(frozen=True)
class SnippetSet:
    """A whole test set.

    Attributes
    ----------
    snippets: in the order of the file.
    hash: SHA-256 of the content, which a report states beside the figures.
    """

    snippets: tuple[Snippet, ...]
    hash: str

    @cached_property
    def labels(self) -> tuple[tuple[str, str, Reaction], ...]:
        """``(snippet id, event id, reaction)`` of every sound, in order."""
        return tuple(
            (snippet.id, event, snippet.reactions[event])
            for snippet in self.snippets
            for event in snippet.events
        )


def load_snippets(path: Path) -> SnippetSet:
    """Read a file of labelled snippets.

    Parameters
    ----------
    path: YAML with ``version: 1`` and ``snippets``.

    Raises
    ------
    SnippetError: the file is missing or not YAML, a key is missing, unknown or of the wrong kind, a line of a
        timeline is neither an utterance nor a mark, marks, sounds and reactions do not belong together, a
        sound has no talk before or after it, a bracket holds something that is not a heard mark, or an
        id occurs twice.
    """
    content = read_yaml_record(path, _File, SnippetError, "a YAML file of labelled snippets")
    ids: set[str] = set()
    found = []
    for entry in content.snippets:
        where = f"{path}: {entry.id}"
        if entry.id in ids:
            raise SnippetError(where, "this id a second time", "each id once")
        ids.add(entry.id)
        found.append(_snippet(where, entry))
    canonical = json.dumps(content.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
    return SnippetSet(tuple(found), hashlib.sha256(canonical.encode()).hexdigest())


def _snippet(where: str, entry: _Entry) -> Snippet:
    timeline = tuple(
        _part(f"{where}: line {n} of the timeline", line)
        for n, line in enumerate(entry.timeline.splitlines(), start=1)
    )
    marks = [part.id for part in timeline if isinstance(part, EventMark)]
    if len(set(marks)) < len(marks):
        raise SnippetError(where, f"the marks {', '.join(marks)}", "each sound marked once")
    for name, keys in (("sounds", entry.sounds), ("reactions", entry.reactions)):
        if set(keys) != set(marks):
            raise SnippetError(
                f"{where}: {name}",
                f"{', '.join(sorted(keys))}",
                f"the sounds marked in the timeline: {', '.join(marks) or 'none'}",
            )
    if isinstance(timeline[0], EventMark) or isinstance(timeline[-1], EventMark):
        raise SnippetError(
            where,
            "a sound at the edge of the timeline",
            "talk before the first sound and after the last",
            "Without it nobody can say what the sound did to the talk.",
        )
    return Snippet(
        entry.id,
        entry.location,
        MappingProxyType(entry.sounds),
        timeline,
        MappingProxyType(entry.reactions),
        entry.hard,
        entry.note,
    )


def _part(where: str, line: str) -> Utterance | EventMark:
    mark = _MARK.match(line)
    if mark:
        return EventMark(mark.group(1))
    said = _UTTERANCE.match(line)
    if said is None or said.group(1) not in SPEAKERS:
        raise SnippetError(where, repr(line), "'A: ...', 'B: ...' or '[SOUND: e1]'")
    text = said.group(2)
    for bracket in _BRACKET.findall(text):
        if bracket not in HEARD_MARKS:
            raise SnippetError(
                where, f"({bracket})", f"one of {', '.join(f'({mark})' for mark in HEARD_MARKS)}"
            )
    if re.search(r"[()\[\]]", _BRACKET.sub("", text)):
        raise SnippetError(where, repr(text), "brackets in pairs, round ones, around a heard mark")
    return Utterance(said.group(1), text)
