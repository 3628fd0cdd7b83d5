"""D5: who may name which sound, and when.

Names, hints and weak words are those of the bank (see :mod:`earwitness.scenes.bank_names`). Weak words give a
sound away in the first sentence after it and nowhere else. They are words of everyday talk, so they never count as
naming where that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from earwitness.scenes.bank_names import TIERS
from earwitness.scenes.rules.reading import Line, Placed, Reading
from earwitness.scenes.rules.registry import Fault, rule, shown

NAMED_WITHIN = {"pivot": 2, "verbal": 1}
"""Utterances after the sound of which one has to name it: a pivot may first only stop the talk."""

DROPPED_AFTER = 2
"""A sound that is named in passing is not named after this many utterances: the talk is back by then."""


@rule(
    "D501-not-named",
    "A sound whose register asks for it is named right after it occurs.",
    needs_scenario=True,
)
def not_named(reading: Reading) -> Iterator[Fault]:
    for placed in reading.placed:
        within = NAMED_WITHIN.get(placed.event.reaction)
        if within is None or placed.naming != "required":
            continue
        lines = reading.following(placed, within)
        if not any(reading.mentions(line, placed, ("name", "hint")) for line in lines):
            words = ", ".join(placed.sound.names[:4])
            place = "the next utterance" if within == 1 else f"the next {within} utterances"
            yield placed.where, f"Nobody names the sound in {place}; say for instance: {words}."


@rule("D502-named-before", "No sound is named before it occurs.", needs_scenario=True)
def named_before(reading: Reading) -> Iterator[Fault]:
    for placed in reading.placed:
        if placed.spoken_of:
            for line in reading.lines[: placed.before]:
                yield from _told(
                    reading, line, placed, "names the sound of event {id} before it occurs"
                )


def _told(reading: Reading, line: Line, placed: Placed, text: str) -> Iterator[Fault]:
    for mention in reading.mentions(line, placed, ("name",)):
        said = shown(line.plain[mention.start : mention.end])
        yield line.where, f"{said} {text.format(id=placed.event.id)}."


@rule(
    "D503-named-though-forbidden",
    "Where the register forbids it, a sound that is spoken of is not named.",
    needs_scenario=True,
)
def named_though_forbidden(reading: Reading) -> Iterator[Fault]:
    for placed in reading.placed:
        if placed.spoken_of and placed.naming == "forbidden":
            for line in reading.lines[placed.before :]:
                yield from _told(
                    reading,
                    line,
                    placed,
                    "names the sound of event {id}, whose register forbids it",
                )


@rule(
    "D504-ambient-alluded",
    "Nobody names or alludes to an ambient sound, anywhere in the dialogue.",
    needs_scenario=True,
)
def ambient_alluded(reading: Reading) -> Iterator[Fault]:
    yield from _alluded(reading, "ambient", "Nobody takes notice of it")


@rule(
    "D505-behavioral-alluded",
    "Nobody names or alludes to a sound that disturbs the talk, anywhere in the dialogue.",
    needs_scenario=True,
)
def behavioral_alluded(reading: Reading) -> Iterator[Fault]:
    yield from _alluded(reading, "behavioral", "It disturbs the talk and is never spoken of")


def _alluded(reading: Reading, reaction: str, why: str) -> Iterator[Fault]:
    for placed in reading.placed:
        if placed.event.reaction != reaction:
            continue
        where = f"the sound of event {placed.event.id} ({placed.event.sound})"
        for line in reading.lines:
            found = reading.mentions(line, placed, ("name", "hint"))
            if line.index == placed.before:
                # All tiers together, so that words inside another sound's weak words are that one's.
                weak = reading.mentions(line, placed, TIERS, span=line.first_sentence)
                found += tuple(mention for mention in weak if mention.tier == "weak")
            seen: list[tuple[int, int]] = []
            for mention in found:
                if any(start < mention.end and mention.start < end for start, end in seen):
                    continue
                seen.append((mention.start, mention.end))
                said = shown(line.plain[mention.start : mention.end])
                verb = "names" if mention.tier == "name" else "gives away"
                yield line.where, f"{said} {verb} {where}. {why}."


@rule(
    "D506-named-on",
    "A sound that is named in passing is dropped by the third utterance after it.",
    needs_scenario=True,
)
def named_on(reading: Reading) -> Iterator[Fault]:
    for placed in reading.placed:
        if placed.event.reaction == "verbal" and placed.naming != "forbidden":
            for line in reading.lines[placed.before + DROPPED_AFTER :]:
                yield from _told(
                    reading,
                    line,
                    placed,
                    "still names the sound of event {id}, which is only named in passing",
                )


@rule(
    "D507-sound-talk",
    "Nobody speaks of sounds in general, except where a sound is reacted to in words.",
    needs_scenario=True,
)
def sound_talk(reading: Reading) -> Iterator[Fault]:
    free: set[int] = set()
    for placed in reading.placed:
        if placed.event.reaction == "pivot":
            free.update(range(placed.before, len(reading.lines)))
        elif placed.event.reaction == "verbal":
            free.update(range(placed.before, placed.before + DROPPED_AFTER))
    # Right after a sound nobody takes notice of, such words would be about that one.
    free -= {p.before for p in reading.placed if p.event.reaction == "ambient"}
    for line in reading.lines:
        if line.index not in free:
            for hit in line.sound_talk:
                yield (
                    line.where,
                    f"{shown(line.plain[hit.start : hit.end])} speaks of a sound where none is spoken of.",
                )


RULES = (
    not_named,
    named_before,
    named_though_forbidden,
    ambient_alluded,
    behavioral_alluded,
    named_on,
    sound_talk,
)
