"""Dialogues: their records, how they are shown, and the rules they must keep.

Definitions follow CARES (arXiv 2610.10208): a dialogue is a timeline of utterances by two speakers and of
events, and what a script can check of it is checked by :func:`check`. ``docs/dialogue-rules.md`` lists the rules.
"""

from __future__ import annotations

from typing import Literal

from earwitness.scenes.bank import Bank
from earwitness.scenes.dialogue_records import (
    SPEAKERS,
    Dialogue,
    EventMark,
    Utterance,
    dialogue_from_json,
    dialogue_to_json,
    embedded_scenario,
)
from earwitness.scenes.rules.checking import RULES, Checker, check
from earwitness.scenes.rules.corpus import NearDuplicates
from earwitness.scenes.rules.limits import (
    Limits,
    band_range,
    count_words,
    default_limits,
    spoken_seconds,
)
from earwitness.scenes.rules.registry import Rule, Violation
from earwitness.scenes.rules.vocabulary import Vocabulary, load_vocabulary, vocabulary_of
from earwitness.scenes.scenario import Scenario
from earwitness.scenes.tags import even_spaces, split_tags, strip_tags, tag_of

__all__ = [
    "RULES",
    "SPEAKERS",
    "Checker",
    "Dialogue",
    "EventMark",
    "Limits",
    "NearDuplicates",
    "Rule",
    "TagStyle",
    "Utterance",
    "Violation",
    "Vocabulary",
    "band_range",
    "check",
    "count_words",
    "default_limits",
    "dialogue_from_json",
    "dialogue_to_json",
    "embedded_scenario",
    "load_vocabulary",
    "plain_text",
    "render_transcript",
    "spoken_seconds",
    "vocabulary_of",
]

TagStyle = Literal["heard", "written", "none"]


def plain_text(utterance: Utterance) -> str:
    """Return what is said, without delivery tags."""
    return strip_tags(utterance.text)


def render_transcript(
    dialogue: Dialogue,
    scenario: Scenario,
    *,
    sound_marks: bool = True,
    tags: TagStyle = "heard",
    bank: Bank,
) -> str:
    """Return the dialogue as a reader gets it: one line per utterance, sounds on lines of their own.

    Parameters
    ----------
    scenario: its events are marked; a mark it does not plan is left out.
    sound_marks: whether sounds show, as ``[SOUND: e1]``.
    tags: ``heard`` puts what a listener would hear in a tag's place, ``written`` leaves tags as the writer
        wrote them, ``none`` leaves them out. A tag the bank does not have is heard by nobody.
    bank: says what is heard of a tag.

    Examples
    --------
    >>> from earwitness.scenes.bank import load_bank
    >>> from earwitness.scenes.scenario import PlannedEvent, Scenario
    >>> plan = Scenario("s", "t", "t", "test", "park", "friends", "F", "M",
    ...     (PlannedEvent("e1", "dog_bark", "ambient", None, "early"),))
    >>> talk = Dialogue("s", "", (Utterance("A", "Well."), EventMark("e1"), Utterance("B", "I [sighs] know.")))
    >>> print(render_transcript(talk, plan, bank=load_bank()))
    A: Well.
    [SOUND: e1]
    B: I [a long breath let out] know.
    """
    planned = {event.id for event in scenario.events}
    lines = []
    for part in dialogue.timeline:
        if isinstance(part, Utterance):
            lines.append(f"{part.speaker}: {_shown(part.text, tags, bank)}")
        elif sound_marks and part.id in planned:
            lines.append(f"[SOUND: {part.id}]")
    return "\n".join(lines)


def _shown(text: str, style: TagStyle, bank: Bank) -> str:
    if style == "written":
        return text
    if style == "none":
        return strip_tags(text)
    shown = []
    for piece in split_tags(text):
        tag = tag_of(bank, piece.content) if piece.kind == "tag" else None
        if piece.kind == "speech":
            shown.append(piece.content)
        elif tag is not None:
            shown.append(f"[{tag.heard}]")
    return even_spaces(" ".join(shown))
