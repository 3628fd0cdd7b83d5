"""D1 and D2: what the timeline is made of, who speaks when, and how much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from earwitness.scenes.bank import BankError
from earwitness.scenes.dialogue_records import SPEAKERS
from earwitness.scenes.rules.limits import BREAK, SHORTEST_SENTENCE
from earwitness.scenes.rules.reading import Line, Reading
from earwitness.scenes.rules.registry import Fault, rule, shown


@rule("D101-speakers", "Every utterance is spoken by A or B.")
def speakers(reading: Reading) -> Iterator[Fault]:
    for line in reading.lines:
        if line.speaker not in SPEAKERS:
            yield line.where, f"The speaker is {shown(line.speaker)}; only A and B speak."


@rule("D102-scenario", "The dialogue names the scenario it carries out.")
def scenario(reading: Reading) -> Iterator[Fault]:
    planned = reading.scenario
    if planned is None:
        yield (
            "dialogue",
            f"Nothing is known of the scenario {shown(reading.dialogue.scenario)}, so its events "
            "cannot be checked.",
        )
    elif planned.id != reading.dialogue.scenario:
        yield (
            "dialogue",
            f"It is for the scenario {shown(reading.dialogue.scenario)} and is checked against "
            f"{shown(planned.id)}.",
        )


@rule("D103-unknown-event", "The timeline has no event that is not planned.", needs_scenario=True)
def unknown_event(reading: Reading) -> Iterator[Fault]:
    known = {event.id for event in reading.planned}
    for identifier, before in reading.dialogue.events:
        if identifier not in known:
            plan = ", ".join(sorted(known)) or "no events"
            yield (
                f"event {identifier} after utterance {before}",
                f"The event is not planned; the scenario has {plan}.",
            )


@rule("D104-missing-event", "Every planned event occurs.", needs_scenario=True)
def missing_event(reading: Reading) -> Iterator[Fault]:
    present = {identifier for identifier, _ in reading.dialogue.events}
    for event in reading.planned:
        if event.id not in present:
            yield "timeline", f"The planned event {event.id} ({event.sound}) does not occur."


@rule("D105-event-twice", "No event occurs more than once.")
def event_twice(reading: Reading) -> Iterator[Fault]:
    for identifier, count in Counter(e for e, _ in reading.dialogue.events).items():
        if count > 1:
            yield f"event {identifier}", f"The event occurs {count} times; it must occur once."


@rule("D106-event-order", "Events occur in the planned order.", needs_scenario=True)
def event_order(reading: Reading) -> Iterator[Fault]:
    present = list(dict.fromkeys(identifier for identifier, _ in reading.dialogue.events))
    planned = [event.id for event in reading.planned if event.id in set(present)]
    found = [identifier for identifier in present if identifier in set(planned)]
    if found != planned:
        yield (
            "timeline",
            f"The events come as {', '.join(found)}; planned is {', '.join(planned)}.",
        )


@rule(
    "D107-unknown-sound", "The bank has every sound and register of the plan.", needs_scenario=True
)
def unknown_sound(reading: Reading) -> Iterator[Fault]:
    for event in reading.planned:
        try:
            reading.bank.sound(event.sound)
            if event.register is not None:
                reading.bank.register(event.register)
        except BankError as error:
            yield (
                f"event {event.id}",
                f"The bank {reading.bank.id} has {error.found}, so what is said of it cannot be checked.",
            )


@rule(
    "D201-utterances", "A scene has 8 to 13 utterances; with a pivot, one more and one per event."
)
def utterances(reading: Reading) -> Iterator[Fault]:
    least, most = reading.limits.utterances(reading.scenario)
    count = len(reading.lines)
    if not least <= count <= most:
        yield "dialogue", f"It has {count} utterances; this scene needs {least} to {most}."


@rule("D202-turns-in-a-row", "Nobody speaks three times in a row.")
def turns_in_a_row(reading: Reading) -> Iterator[Fault]:
    run: list[Line] = []
    for line in reading.lines:
        run = [*run, line] if run and run[-1].speaker == line.speaker else [line]
        if len(run) == reading.limits.max_turns_in_a_row + 1:
            yield (
                line.where,
                f"{line.speaker} has {len(run)} utterances in a row; at most "
                f"{reading.limits.max_turns_in_a_row} may be one speaker's.",
            )


@rule("D203-empty", "Every utterance says something besides delivery tags.")
def empty(reading: Reading) -> Iterator[Fault]:
    for line in reading.lines:
        if not line.words:
            yield line.where, f"Nothing is said in {shown(line.text)}; a tag alone is no utterance."


@rule("D204-long-utterance", "No utterance has more than 60 words.")
def long_utterance(reading: Reading) -> Iterator[Fault]:
    for line in reading.lines:
        if len(line.words) > reading.limits.max_words:
            yield (
                line.where,
                f"It has {len(line.words)} words; at most {reading.limits.max_words} are allowed.",
            )


@rule("D205-scene-length", "The scene speaks for about two minutes (80 to 165 s by the estimate).")
def scene_length(reading: Reading) -> Iterator[Fault]:
    limits = reading.limits
    words = sum(len(line.words) for line in reading.lines)
    seconds = limits.seconds(
        words,
        turns=len(reading.lines),
        breaks=sum(len(BREAK.findall(line.plain)) for line in reading.lines),
        tags=sum(len(line.tags) for line in reading.lines),
    )
    if not limits.min_seconds <= seconds <= limits.max_seconds:
        bound = limits.min_seconds if seconds < limits.min_seconds else limits.max_seconds
        change = abs(round((bound - seconds) * limits.words_per_second)) or 1
        verb = "add" if seconds < limits.min_seconds else "cut"
        yield (
            "dialogue",
            f"Its {words} words would speak for about {seconds:.0f} s; wanted are {limits.min_seconds:g} to "
            f"{limits.max_seconds:g} s: {verb} at least {change} words.",
        )


@rule(
    "D206-both-speakers", "Both take part: at least 30 % of the turns and 20 % of the words each."
)
def both_speakers(reading: Reading) -> Iterator[Fault]:
    if not reading.lines:
        return
    turns = Counter(line.speaker for line in reading.lines)
    words = Counter(dict.fromkeys(SPEAKERS, 0))
    for line in reading.lines:
        words[line.speaker] += len(line.words)
    for what, counts, least in (
        ("utterances", turns, reading.limits.min_share_of_turns),
        ("words", words, reading.limits.min_share_of_words),
    ):
        total = sum(counts.values())
        for speaker in SPEAKERS:
            if total and counts[speaker] < least * total:
                yield (
                    f"speaker {speaker}",
                    f"{speaker} has {counts[speaker]} of {total} {what}; at least {least:.0%} are needed.",
                )


@rule("D207-repeated-sentence", "No sentence of four words or more is said twice.")
def repeated_sentence(reading: Reading) -> Iterator[Fault]:
    first: dict[tuple[str, ...], Line] = {}
    for line in reading.lines:
        for (start, end), words in zip(line.sentences, line.sentence_words, strict=True):
            key = tuple(word.text for word in words)
            if len(key) < SHORTEST_SENTENCE:
                continue
            if key not in first:
                first[key] = line
                continue
            earlier = first[key]
            if not _asked_to_repeat(reading, earlier, line):
                yield (
                    line.where,
                    f"{shown(line.plain[start:end])} was said before in {earlier.where}.",
                )


def _asked_to_repeat(reading: Reading, earlier: Line, later: Line) -> bool:
    """A sound may drown the words just before it, which are then said again within three utterances."""
    return any(
        placed.reacted_to and earlier.index == placed.before - 1 and later.index < placed.before + 3
        for placed in reading.placed
    )


RULES = (
    speakers,
    scenario,
    unknown_event,
    missing_event,
    event_twice,
    event_order,
    unknown_sound,
    utterances,
    turns_in_a_row,
    empty,
    long_utterance,
    scene_length,
    both_speakers,
    repeated_sentence,
)
