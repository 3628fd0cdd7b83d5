"""Topics and loose rewordings of them, written by hand: what a recovered topic is measured against.

A judge that reads a dialogue says what it is about in words of its own. How close to the planned topic is close
enough is found on pairs whose answer is known: a topic with a rewording by somebody who only overheard the
talk (these belong together), and a topic with another topic of the same template (these do not).

Source of the design: CARES, arXiv 2610.10208, "Filter" (gold topics paired with a loose rewording and with
another scenario's topic of the same template).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from earwitness.errors import DataError
from earwitness.scenes.bank_records import Id, Record, Text
from earwitness.scenes.yaml_records import read_yaml_record

TOPIC_REWORDINGS = Path(__file__).parent / "data" / "topic_rewordings.yaml"

MIN_TOPIC_WORDS = 6
MAX_TOPIC_WORDS = 30
"""The length a planned topic has (CARES: 6 to 30 words)."""


class TopicPairsError(DataError):
    """A file of topics and rewordings is not what it should be."""


class TopicPair(Record):
    """One planned topic, and the same in the words of somebody who only overheard the talk."""

    topic: Text
    rewording: Text

    @model_validator(mode="after")
    def _checked(self) -> TopicPair:
        words = len(self.topic.split())
        if not MIN_TOPIC_WORDS <= words <= MAX_TOPIC_WORDS:
            raise ValueError(
                f"a topic of {MIN_TOPIC_WORDS} to {MAX_TOPIC_WORDS} words, this one has {words}"
            )
        if normalised(self.topic) == normalised(self.rewording):
            raise ValueError("a rewording in other words than the topic")
        return self


class TopicGroup(Record):
    """The pairs of one template. Topics of one group are each other's negatives, so it takes two."""

    template: Annotated[str, Field(pattern=r"^[a-z0-9]+(_[a-z0-9]+)*-[0-9]{2,}$")]
    category: Id
    title: Text
    facets: tuple[Text, ...] = Field(min_length=1)
    pairs: tuple[TopicPair, ...] = Field(min_length=2)


class _File(Record):
    version: Literal[1]
    templates: tuple[TopicGroup, ...] = Field(min_length=1)


@dataclass(frozen=True)
class TopicPairs:
    """All pairs of a file.

    Attributes
    ----------
    groups: one per template, in the order of the file.
    hash: SHA-256 of what the file says (not of how it is laid out), 64 hexadecimal digits.
    """

    groups: tuple[TopicGroup, ...]
    hash: str

    @cached_property
    def pairs(self) -> tuple[TopicPair, ...]:
        """Every pair, in the order of the file."""
        return tuple(pair for group in self.groups for pair in group.pairs)

    @cached_property
    def positives(self) -> tuple[tuple[str, str], ...]:
        """``(topic, rewording)``: two texts that mean the same talk."""
        return tuple((pair.topic, pair.rewording) for pair in self.pairs)

    @cached_property
    def negatives(self) -> tuple[tuple[str, str], ...]:
        """``(topic, other topic)`` of the same template, each unordered couple once.

        A cosine does not depend on the order of its two texts, so the reverse would add nothing.
        """
        return tuple(
            (one.topic, other.topic)
            for group in self.groups
            for one, other in combinations(group.pairs, 2)
        )


def normalised(text: str) -> str:
    """Return a text in lower case with nothing but its words, for telling whether two say the same.

    Examples
    --------
    >>> normalised("Two cousins,  weighing it up.")
    'two cousins weighing it up'
    """
    kept = "".join(c if c.isalnum() or c == "'" else " " for c in text.replace("’", "'"))
    return " ".join(kept.casefold().split())


def load_topic_pairs(path: Path = TOPIC_REWORDINGS) -> TopicPairs:
    """Read a file of topics and rewordings.

    Parameters
    ----------
    path: YAML with ``version: 1`` and ``templates``; by default the file that comes with the package.

    Raises
    ------
    TopicPairsError: the file is missing or not YAML, a key is missing, unknown or of the wrong kind, a topic is
        too short or too long, or a topic, rewording or template occurs twice.

    Examples
    --------
    >>> pairs = load_topic_pairs()
    >>> len(pairs.positives) >= 150
    True
    """
    content = read_yaml_record(path, _File, TopicPairsError, "a YAML file of topics and rewordings")
    _refuse_repeats(path, content.templates)
    text = content.model_dump_json()
    return TopicPairs(content.templates, hashlib.sha256(text.encode()).hexdigest())


def _refuse_repeats(path: Path, groups: tuple[TopicGroup, ...]) -> None:
    templates: set[str] = set()
    first_use: dict[str, str] = {}
    for g, group in enumerate(groups):
        if group.template in templates:
            raise TopicPairsError(
                f"{path}: templates.{g}.template",
                f"the template {group.template!r} a second time",
                "each template once",
                "Put its pairs under the first.",
            )
        templates.add(group.template)
        for p, pair in enumerate(group.pairs):
            for key, text in (("topic", pair.topic), ("rewording", pair.rewording)):
                here = f"templates.{g}.pairs.{p}.{key}"
                there = first_use.setdefault(normalised(text), here)
                if there != here:
                    raise TopicPairsError(
                        f"{path}: {here}",
                        f"the same words as {there}: {text!r}",
                        "every topic and rewording once",
                    )
