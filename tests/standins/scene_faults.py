"""What a sloppy writer may do to a dialogue: for every rule a model can break, a way of breaking it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from earwitness.scenes.bank import Bank
from earwitness.scenes.rules.vocabulary import vocabulary_of
from earwitness.scenes.scenario import PlannedEvent, Scenario

Timeline = list[dict[str, Any]]
SceneFault = Callable[[Timeline, Scenario, Bank], Timeline | None]
"""Breaks one rule (perhaps with others) in a copy of a good timeline; None where the scene has no place for it."""


def _spoken(timeline: Timeline) -> list[dict[str, Any]]:
    return [part for part in timeline if "text" in part]


def _before(timeline: Timeline, event: str) -> int:
    """How many utterances come before an event."""
    at = next(n for n, part in enumerate(timeline) if part.get("event") == event)
    return len(_spoken(timeline[:at]))


def _moved(timeline: Timeline, event: str, before: int) -> Timeline:
    """The event put after so many utterances."""
    rest = [part for part in timeline if part.get("event") != event]
    spoken = 0
    made: Timeline = []
    for part in rest:
        if spoken == before and "text" in part and {"event": event} not in made:
            made.append({"event": event})
        made.append(part)
        spoken += "text" in part
    return made


def _of(scenario: Scenario, *reactions: str) -> PlannedEvent | None:
    return next((event for event in scenario.events if event.reaction in reactions), None)


def _name(event: PlannedEvent, bank: Bank) -> str:
    return bank.sound(event.sound).names[0].rstrip("*")


def _dropped(timeline: Timeline, scenario: Scenario, bank: Bank) -> Timeline | None:
    if not scenario.events:
        return None
    return [part for part in timeline if part.get("event") != scenario.events[0].id]


def _twice(timeline: Timeline, scenario: Scenario, bank: Bank) -> Timeline | None:
    return [*timeline, {"event": scenario.events[0].id}] if scenario.events else None


def _swapped(timeline: Timeline, scenario: Scenario, bank: Bank) -> Timeline | None:
    if len(scenario.events) < 2:
        return None
    other = {
        scenario.events[0].id: scenario.events[1].id,
        scenario.events[1].id: scenario.events[0].id,
    }
    return [
        {"event": other.get(part["event"], part["event"])} if "event" in part else part
        for part in timeline
    ]


def _too_long(timeline: Timeline, scenario: Scenario, bank: Bank) -> Timeline:
    for number, part in enumerate(_spoken(timeline)):
        words = len(part["text"].split())
        extra = " ".join(f"item{number}x{n}" for n in range(54 - words))
        part["text"] += f" We took {extra}." if words < 54 else ""
    return timeline


def _one_talks(timeline: Timeline, scenario: Scenario, bank: Bank) -> Timeline:
    for part in _spoken(timeline):
        if part["speaker"] == "B":
            part["text"] = "Right."
    return timeline


def _elsewhere(timeline: Timeline, scenario: Scenario, bank: Bank) -> Timeline | None:
    if not scenario.events:
        return None
    event = scenario.events[0]
    return _moved(timeline, event.id, len(_spoken(timeline)) - 4 if event.band == "early" else 1)


def _close(timeline: Timeline, scenario: Scenario, bank: Bank) -> Timeline | None:
    reacted = [event for event in scenario.events if event.reaction != "ambient"]
    if len(reacted) < 2 or "pivot" in (reacted[0].reaction, reacted[1].reaction):
        return None
    return _moved(timeline, reacted[1].id, _before(timeline, reacted[0].id) + 1)


def _together(timeline: Timeline, scenario: Scenario, bank: Bank) -> Timeline | None:
    spoken_of = [event for event in scenario.events if event.reaction in ("pivot", "verbal")]
    if len(spoken_of) < 2:
        return None
    part = _spoken(timeline)[_before(timeline, spoken_of[1].id)]
    part["text"] += f" It was the {_name(spoken_of[0], bank)} and the {_name(spoken_of[1], bank)}."
    return timeline


def _untagged(timeline: Timeline, scenario: Scenario, bank: Bank) -> Timeline | None:
    for event in scenario.events:
        tags = bank.register(event.register).tags if event.register else ()
        if tags:
            part = _spoken(timeline)[_before(timeline, event.id)]
            for tag in bank.tags:
                part["text"] = part["text"].replace(f"[{tag.written}] ", "")
            return timeline
    return None


def _unnamed(timeline: Timeline, scenario: Scenario, bank: Bank) -> Timeline | None:
    for event in scenario.events:
        if event.reaction == "verbal" and bank.register(event.register or "").naming == "required":
            part = _spoken(timeline)[_before(timeline, event.id)]
            part["text"] = "There it goes again, and I would still ask Marta before Friday."
            return timeline
    return None


def _named(where: Callable[[Timeline, PlannedEvent], int], *reactions: str) -> SceneFault:
    """Says the name of a sound in an utterance."""

    def spoil(timeline: Timeline, scenario: Scenario, bank: Bank) -> Timeline | None:
        event = _of(scenario, *reactions)
        if event is None:
            return None
        at = where(timeline, event)
        spoken = _spoken(timeline)
        if at >= len(spoken):
            return None
        spoken[at]["text"] += f" That {_name(event, bank)} is new to me."
        return timeline

    return spoil


def _fluent(timeline: Timeline, scenario: Scenario, bank: Bank) -> Timeline | None:
    for event in scenario.events:
        if event.reaction == "behavioral" and not bank.register(event.register or "").tags:
            part = _spoken(timeline)[_before(timeline, event.id)]
            part["text"] = "My sister would rather ask Marta about it before Friday."
            return timeline
    return None


def _explained(timeline: Timeline, scenario: Scenario, bank: Bank) -> Timeline | None:
    event = _of(scenario, "behavioral")
    if event is None:
        return None
    cause = vocabulary_of(bank).lists["causes"][0].rstrip("*")
    _spoken(timeline)[_before(timeline, event.id)]["text"] += f" Sorry, {cause}."
    return timeline


def _stumbling(timeline: Timeline, scenario: Scenario, bank: Bank) -> Timeline | None:
    event = _of(scenario, "ambient")
    if event is None:
        return None
    part = _spoken(timeline)[_before(timeline, event.id)]
    part["text"] = "I would, I would ask ... ask Marta about it. " + part["text"]
    return timeline


SCENE_FAULTS: dict[str, SceneFault] = {
    "D104": _dropped,
    "D105": _twice,
    "D106": _swapped,
    "D205": _too_long,
    "D206": _one_talks,
    "D401": _elsewhere,
    "D403": _close,
    "D404": _together,
    "D405": _untagged,
    "D501": _unnamed,
    "D502": _named(lambda *_: 0, "verbal", "pivot"),
    "D504": _named(lambda *_: 0, "ambient"),
    "D505": _named(lambda *_: 0, "behavioral"),
    "D506": _named(lambda timeline, event: _before(timeline, event.id) + 3, "verbal"),
    "D601": _fluent,
    "D602": _explained,
    "D603": _stumbling,
}
"""Code of a rule about events, lengths or shares -> what breaks it."""

TOPIC_FAULTS: dict[str, str] = {
    "D701": "A talk.",
    "D702": "They talk about [the fence]. And then they talk about the gate of the neighbour.",
    "D703": "Two people who wonder what that loud noise was and whether it was a gunshot",
}
"""Code of a rule about topics -> a topic that breaks it."""
