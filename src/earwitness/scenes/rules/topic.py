"""D7: the topic, one sentence that says what the two talk about."""

from __future__ import annotations

from collections.abc import Iterator

from earwitness.scenes.bank_names import Tier
from earwitness.scenes.rules.reading import Reading
from earwitness.scenes.rules.registry import Fault, rule, shown
from earwitness.scenes.rules.style import DIRECTION, MARKUP, unspeakable


@rule("D701-topic-length", "The topic has 4 to 60 words.")
def topic_length(reading: Reading) -> Iterator[Fault]:
    least, most = reading.limits.min_topic_words, reading.limits.max_topic_words
    count = len(reading.topic.words)
    if not least <= count <= most:
        yield "topic", f"It has {count} words; wanted are {least} to {most}."


@rule("D702-topic-style", "The topic is one sentence of plain words.")
def topic_style(reading: Reading) -> Iterator[Fault]:
    line = reading.topic
    if len(line.sentences) > 1:
        yield "topic", f"It has {len(line.sentences)} sentences; wanted is one."
    if line.tags or "[" in line.text or "]" in line.text:
        yield "topic", "It has square brackets; delivery tags belong to what is said."
    if DIRECTION.search(line.plain) or MARKUP.search(line.text):
        yield "topic", f"{shown(line.text)} has markup or remarks; wanted are plain words."
    if any(unspeakable(c) for c in line.text):
        yield "topic", "It has emoji, pictographs or control characters."


@rule("D703-topic-sound", "The topic speaks of no sound of the scene, nor of sounds in general.")
def topic_sound(reading: Reading) -> Iterator[Fault]:
    for placed in reading.placed:
        tiers: tuple[Tier, ...] = ("name",) if placed.spoken_of else ("name", "hint")
        for mention in reading.mentions_in_topic(placed, tiers):
            said = shown(reading.topic.plain[mention.start : mention.end])
            yield (
                "topic",
                f"{said} names the sound of event {placed.event.id} ({placed.event.sound}).",
            )
    for hit in reading.topic.sound_talk:
        yield "topic", f"{shown(reading.topic.plain[hit.start : hit.end])} speaks of a sound."


RULES = (topic_length, topic_style, topic_sound)
