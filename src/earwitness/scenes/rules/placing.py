"""D4: where events stand, and that each reaction has a place of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from earwitness.scenes.rules.limits import band_range
from earwitness.scenes.rules.reading import Line, Placed, Reading, TagMark
from earwitness.scenes.rules.registry import Fault, rule, shown


@rule(
    "D401-band",
    "Every event stands in the planned third of the eligible span.",
    needs_scenario=True,
)
def band(reading: Reading) -> Iterator[Fault]:
    count = len(reading.lines)
    for placed in reading.placed:
        allowed = band_range(count, placed.event.band, after=reading.limits.utterances_after_event)
        if placed.before not in allowed:
            yield placed.where, f"The event must come {_places(allowed, placed.event.band, count)}."


def _places(allowed: range, name: str, count: int) -> str:
    if not allowed:
        return f"{name}, and {count} utterances are too few to have such a place"
    if len(allowed) == 1:
        return f"after utterance {allowed[0]} to be {name} among {count}"
    return f"after one of utterances {allowed[0]} to {allowed[-1]} to be {name} among {count}"


@rule("D402-too-late", "At least four utterances follow every event.")
def too_late(reading: Reading) -> Iterator[Fault]:
    for identifier, before in reading.dialogue.events:
        left = len(reading.lines) - before
        if left < reading.limits.utterances_after_event:
            yield (
                f"event {identifier} after utterance {before}",
                f"Only {left} utterances follow; {reading.limits.utterances_after_event} are needed.",
            )


@rule(
    "D403-close-reactions",
    "At least one utterance lies between the reactions to two sounds.",
    needs_scenario=True,
)
def close_reactions(reading: Reading) -> Iterator[Fault]:
    reacted = [placed for placed in reading.placed if placed.reacted_to]
    for one, two in pairwise(reacted):
        between = two.before - one.before - 1
        if between < reading.limits.utterances_between_reactions:
            yield (
                two.where,
                f"It is reacted to {'in the same utterance as' if between < 0 else 'right after'} event "
                f"{one.event.id}; leave {reading.limits.utterances_between_reactions} utterance between.",
            )


@rule("D404-shared-sentence", "No sentence reacts to two sounds.", needs_scenario=True)
def shared_sentence(reading: Reading) -> Iterator[Fault]:
    named = [p for p in reading.placed if p.spoken_of and p.naming != "forbidden"]
    for one, two in pairwise(named):
        for line in reading.lines[two.before :]:
            for span in line.sentences:
                if all(reading.mentions(line, p, ("name", "hint"), span=span) for p in (one, two)):
                    yield (
                        line.where,
                        f"{shown(line.plain[span[0] : span[1]])} names the sounds of events "
                        f"{one.event.id} and {two.event.id} at once.",
                    )


@rule(
    "D405-required-tag",
    "A register's delivery tag stands inside a phrase of the first utterance after the sound.",
    needs_scenario=True,
)
def required_tag(reading: Reading) -> Iterator[Fault]:
    for placed in reading.placed:
        if placed.register is None or not placed.register.tags:
            continue
        written = " or ".join(f"[{reading.bank.tag(tag).written}]" for tag in placed.register.tags)
        for line in reading.following(placed, 1):
            marks = [m for m in line.tags if m.tag is not None and m.tag.id in placed.register.tags]
            if not marks:
                yield (
                    line.where,
                    f"{written} is missing: event {placed.event.id} is reacted to with it.",
                )
            elif not any(_inside(line, mark, placed) for mark in marks):
                first = " of its first sentence" if placed.event.reaction == "behavioral" else ""
                yield (
                    line.where,
                    f"[{marks[0].written}] must stand between two words{first}, with the phrase going on "
                    "after it.",
                )


def _inside(line: Line, mark: TagMark, placed: Placed) -> bool:
    """Whether the sentence around a tag has words before and after it."""
    sentences = (line.first_sentence,) if placed.event.reaction == "behavioral" else line.sentences
    for start, end in sentences:
        before = any(start <= word.start and word.end <= mark.place for word in line.words)
        after = any(mark.place <= word.start and word.end <= end for word in line.words)
        if before and after:
            return True
    return False


RULES = (band, too_late, close_reactions, shared_sentence, required_tag)
