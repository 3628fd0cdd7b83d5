"""The numbers of the rules: how many utterances, how long, and where an event may stand.

Conventions
-----------
An event's position is the number ``k`` of utterances before it. The eligible positions of a dialogue of ``n``
utterances are ``1 .. n - 4``: something has been said, and at least four utterances follow (CARES, arXiv
2610.10208, asks for four after a pivot; here it is so for every event, lest the place tell the reaction).
Their ``m = n - 4`` positions are cut in thirds: the ``i``-th (from 0) is early, middle or late as
``floor(3 i / m)`` is 0, 1 or 2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from earwitness.scenes.bank_records import LimitsPart
from earwitness.scenes.dialogue_records import Dialogue
from earwitness.scenes.rules.sentences import words_in
from earwitness.scenes.scenario import BANDS, Band, Scenario
from earwitness.scenes.tags import split_tags, strip_tags

FOLDER = Path(__file__).parent

SHORTEST_SENTENCE = 4
"""Words a sentence needs for its repetition to count: "Right." and "I don't know." belong to everybody."""

BREAK = re.compile(r"\.{2,}|…|[—–]|(?<!\w)-+(?!\w)|--+|(?<=\w)-+(?=\s|$)")
"""An ellipsis or a dash: the speech is held up here. A hyphen inside a word is none."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What ``rules/limits.yaml`` holds; its comments say what each number limits."""

    min_utterances: int
    max_utterances: int
    max_words: int
    max_turns_in_a_row: int
    min_share_of_turns: float
    min_share_of_words: float
    utterances_after_event: int
    utterances_between_reactions: int
    min_seconds: float
    max_seconds: float
    words_per_second: float
    seconds_between_turns: float
    seconds_per_break: float
    seconds_per_tag: float
    min_topic_words: int
    max_topic_words: int
    max_shared_sentences: float
    max_shared_shingles: float

    def utterances(self, scenario: Scenario | None) -> tuple[int, int]:
        """Fewest and most utterances of a scene: a pivot allows one more, and one more per event."""
        most = self.max_utterances
        if scenario is not None and scenario.count("pivot"):
            most += len(scenario.events) + 1
        return self.min_utterances, most

    def seconds(self, words: int, *, turns: int, breaks: int, tags: int) -> float:
        """How long so much would take to say, in seconds."""
        return (
            words / self.words_per_second
            + self.seconds_between_turns * max(turns - 1, 0)
            + self.seconds_per_break * breaks
            + self.seconds_per_tag * tags
        )

    def with_changes(self, part: LimitsPart | None) -> Limits:
        """These limits with those that are given in a part."""
        if part is None:
            return self
        changes = part.model_dump(exclude_none=True)
        return Limits(**{**{f.name: getattr(self, f.name) for f in fields(self)}, **changes})


@lru_cache(maxsize=1)
def default_limits() -> Limits:
    """The limits that ship with Earwitness (``rules/limits.yaml``)."""
    values: dict[str, Any] = yaml.safe_load((FOLDER / "limits.yaml").read_text(encoding="utf-8"))
    return Limits(**values)


def band_range(n_utterances: int, band: Band, *, after: int | None = None) -> range:
    """Return the positions of a band: numbers of utterances that may come before an event.

    Parameters
    ----------
    n_utterances: of the whole dialogue.
    band: ``early``, ``middle`` or ``late``.
    after: utterances that must follow an event; 4 unless limits say otherwise.

    Returns
    -------
    A range, empty where the dialogue is too short to have the band.

    Examples
    --------
    >>> [list(band_range(11, band)) for band in BANDS]
    [[1, 2, 3], [4, 5], [6, 7]]
    """
    rest = default_limits().utterances_after_event if after is None else after
    eligible = max(n_utterances - rest, 0)
    third = BANDS.index(band)
    # floor(3 i / m) == third  <=>  ceil(m third / 3) <= i < ceil(m (third + 1) / 3)
    return range(-(-eligible * third // 3) + 1, -(-eligible * (third + 1) // 3) + 1)


def count_words(text: str) -> int:
    """Count the words of an utterance, delivery tags apart.

    Examples
    --------
    >>> count_words("It's a well-known [sighs] thing.")
    5
    """
    return len(words_in(strip_tags(text)))


def spoken_seconds(dialogue: Dialogue, limits: Limits | None = None) -> float:
    """Estimate how long a scene will speak, in seconds.

    Words at ``words_per_second``, one pause between every two utterances, and a little for every ellipsis,
    dash and delivery tag. Sounds add nothing: they lie over the talk and its pauses.

    Examples
    --------
    >>> from earwitness.scenes.dialogue_records import Utterance
    >>> round(spoken_seconds(Dialogue("s", "t", (Utterance("A", "one two three"),) * 2)), 2)
    2.99
    """
    held = limits or default_limits()
    words = breaks = tags = 0
    for utterance in dialogue.utterances:
        words += count_words(utterance.text)
        for piece in split_tags(utterance.text):
            if piece.kind == "tag":
                tags += 1
            else:
                breaks += len(BREAK.findall(piece.content))
    return held.seconds(words, turns=len(dialogue.utterances), breaks=breaks, tags=tags)
