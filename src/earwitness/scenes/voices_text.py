"""From an utterance with delivery tags to segments that a voice can say.

Conventions
-----------
* Nothing in square brackets is ever read out. A tag is rendered, or it is removed and counted, or, where the
  scene's label rests on it, the scene is refused.
* A pause is silence inside the phrase, whoever speaks: pause tags, and the dashes and ellipses that break a
  sentence off. Its length is drawn from the range of its kind.
* A tag for a manner (whispering, louder) holds until its sentence ends or another such tag comes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from earwitness.errors import DataError
from earwitness.models.protocols import Pause, Phrase, Segment, Vocalisation
from earwitness.scenes.bank import Bank, Tag
from earwitness.scenes.dialogue_records import Dialogue
from earwitness.scenes.rules.limits import BREAK
from earwitness.scenes.rules.sentences import sentences_in
from earwitness.scenes.scenario import Scenario
from earwitness.scenes.tags import even_spaces, split_tags, strip_tags, tag_of

PAUSE_S: Mapping[str, tuple[float, float]] = {
    "pause": (0.8, 1.2),
    "long_pause": (1.6, 2.4),
    "ellipsis": (0.5, 0.9),
    "dash": (0.3, 0.6),
}
"""Shortest and longest silence. The bank says "about one" and "about two seconds" of its pause tags; a pause
tag it does not have here is a ``pause``. Ellipses hold longer than dashes, and both longer than the pauses of
fluent speech (nearly all under 0.25 s: Goldman-Eisler, Psycholinguistics, 1968)."""

_SAID = re.compile(r"\w")
_RANGE = re.compile(r"\d\s*$")
_STRAY = re.compile(r"[\[\]]")


class RenderError(DataError):
    """A voice cannot perform what a scene's label rests on."""


@dataclass(frozen=True, slots=True)
class Line:
    """What one utterance comes to for one voice.

    Attributes
    ----------
    text: what is said, without tags.
    removed: ids (or, for tags the bank does not have, the words) of tags that are left out.
    """

    segments: tuple[Segment, ...]
    text: str
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Need:
    """An utterance whose label rests on a delivery tag: one of ``tags`` (ids) must be heard in it."""

    event: str
    turn: int
    tags: frozenset[str]


def needs_of(scenario: Scenario, dialogue: Dialogue, bank: Bank) -> tuple[Need, ...]:
    """Which utterances must have a tag rendered: the first after each event whose register asks for one.

    Only tags that stand in the utterance count.

    Raises
    ------
    RenderError: such an utterance has none of the tags of its register.
    """
    found = []
    planned = {event.id: event for event in scenario.events}
    for identifier, before in dialogue.events:
        event = planned.get(identifier)
        if event is None or event.register is None or before >= len(dialogue.utterances):
            continue
        wanted = frozenset(bank.register(event.register).tags)
        if not wanted:
            continue
        text = dialogue.utterances[before].text
        there = frozenset(
            tag.id
            for piece in split_tags(text)
            if piece.kind == "tag" and (tag := tag_of(bank, piece.content)) is not None
        )
        if not wanted & there:
            raise RenderError(
                f"scene {scenario.id}, event {event.id}",
                f"the next utterance has none of the tags of {event.register}: {text!r}",
                f"one of {', '.join(sorted(wanted))}",
                "Check the dialogues with: earwitness scenes check",
            )
        found.append(Need(event.id, before, wanted & there))
    return tuple(found)


def line_of(
    text: str,
    bank: Bank,
    renders: Collection[str],
    rng: np.random.Generator,
    where: str = "utterance",
) -> Line:
    """Turn an utterance into segments.

    Parameters
    ----------
    renders: ids of the tags the voice renders; pauses are rendered whatever it says.
    rng: lengths of pauses are drawn from it, one draw for every pause.

    Raises
    ------
    DataError: nothing would be said, or a bracket has no partner.

    Examples
    --------
    >>> from earwitness.scenes.bank import load_bank
    >>> from earwitness.stats.streams import stream
    >>> line = line_of("I just [sighs] don't know.", load_bank(), frozenset(), stream(0, "s"))
    >>> line.segments, line.removed
    ((Phrase(text="I just don't know.", manner=None),), ('sigh',))
    """
    parts, removed = _parts(text, bank, renders)
    if any(isinstance(part, str) and _STRAY.search(part) for part in parts):
        raise DataError(where, f"a bracket without a partner in {text!r}", "tags such as [sighs]")
    segments: list[Segment] = []
    manner: Tag | None = None
    last = len(parts) - 1
    for number, part in enumerate(parts):
        if isinstance(part, str):
            rest = any(
                isinstance(later, str) and _SAID.search(later) for later in parts[number + 1 :]
            )
            manner = _add_speech(segments, part, manner, rng, final=number == last or not rest)
        elif part.renders == "pause":
            _add_pause(segments, part.id, rng)
        elif part.renders == "emotion":
            manner = part
        else:
            segments.append(Vocalisation(part.id, part.written))
    segments = _without_edge_pauses(segments)
    if not any(isinstance(segment, Phrase) for segment in segments):
        raise DataError(where, f"there is nothing to say in {text!r}", "words")
    return Line(tuple(segments), strip_tags(text), tuple(removed))


def _parts(text: str, bank: Bank, renders: Collection[str]) -> tuple[list[str | Tag], list[str]]:
    """Speech and rendered tags in order; speech around a removed tag grows together."""
    parts: list[str | Tag] = []
    removed: list[str] = []
    for piece in split_tags(text):
        if piece.kind == "tag":
            tag = tag_of(bank, piece.content)
            if tag is None or not (tag.renders == "pause" or tag.id in renders):
                removed.append(piece.content if tag is None else tag.id)
                continue
            parts.append(tag)
        elif parts and isinstance(parts[-1], str):
            parts[-1] = even_spaces(f"{parts[-1]} {piece.content}")
        else:
            parts.append(piece.content)
    return parts, removed


def _add_speech(
    segments: list[Segment], text: str, manner: Tag | None, rng: np.random.Generator, *, final: bool
) -> Tag | None:
    """Add one stretch of speech, broken where it breaks; returns the manner that holds after it."""
    if not _SAID.search(text):
        # Marks that are left when a tag stood before them belong to the words before.
        for number in range(len(segments) - 1, -1, -1):
            segment = segments[number]
            if isinstance(segment, Phrase):
                segments[number] = Phrase(segment.text + text.strip(), segment.manner)
                break
        return None if re.search(r"[.!?]", text) else manner
    if manner is not None:
        spans = sentences_in(text)
        first = text[: spans[0][1]]
        ended = len(spans) > 1 or re.search(r"[.!?][\"'”’)]*$", first.rstrip()) is not None
        _add_phrases(segments, first, manner.id, rng, final=final and len(spans) == 1)
        if len(spans) > 1:
            _add_phrases(segments, text[spans[0][1] :], None, rng, final=final)
        return None if ended else manner
    _add_phrases(segments, text, None, rng, final=final)
    return None


def _add_phrases(
    segments: list[Segment], text: str, manner: str | None, rng: np.random.Generator, *, final: bool
) -> None:
    at = 0
    for match in BREAK.finditer(text):
        before, after = text[at : match.start()], text[match.end() :]
        if _RANGE.search(before) and after[:1].isdigit():
            continue
        if final and not _SAID.search(after):
            # The turn ends here: the gap after it belongs to the mixer.
            break
        if not _SAID.search(before):
            at = match.end()
            continue
        segments.append(Phrase(even_spaces(text[at : match.end()]), manner))
        kind = "ellipsis" if match[0][0] in ".…" else "dash"
        _add_pause(segments, kind, rng)
        at = match.end()
    rest = even_spaces(text[at:])
    if _SAID.search(rest):
        segments.append(Phrase(rest, manner))


def _add_pause(segments: list[Segment], kind: str, rng: np.random.Generator) -> None:
    low, high = PAUSE_S.get(kind, PAUSE_S["pause"])
    seconds = round(float(rng.uniform(low, high)), 3)
    if segments and isinstance(segments[-1], Pause):
        # A dash and a pause tag are one silence, not two.
        segments[-1] = Pause(max(segments[-1].seconds, seconds))
    else:
        segments.append(Pause(seconds))


def _without_edge_pauses(segments: list[Segment]) -> list[Segment]:
    """Silence before the first and after the last sound is a gap between turns, which others make."""
    while segments and isinstance(segments[0], Pause):
        segments = segments[1:]
    while segments and isinstance(segments[-1], Pause):
        segments = segments[:-1]
    return segments
