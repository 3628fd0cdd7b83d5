"""A small composer of valid dialogues, for the stand-in writer: every sentence is drawn afresh."""

from __future__ import annotations

import random
from typing import Any

import yaml

from earwitness.scenes.bank import Bank
from earwitness.scenes.dialogue import (
    Dialogue,
    EventMark,
    Utterance,
    band_range,
    check,
    dialogue_to_json,
)
from earwitness.scenes.scenario import BANDS, PlannedEvent, Scenario


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NAMES = _words(
    "Ruth Karim Ilse Mateo Nadia Oskar Priya Jonas Leila Viktor Agnes Tomas Miriam Felix Sonja Amir Clara "
    "Hugo Irene Pavel Greta Samuel Yara Bruno Edith Rashid Helga Nils Olivia Marek Zoe Anton Birgit Kofi"
)
THINGS = _words(
    "estimate contract proposal budget schedule agreement application discount refund deposit invoice draft "
    "insurance permit subsidy allowance mortgage inheritance promotion vacancy deadline reference pension "
    "membership registration questionnaire brochure calendar itinerary reservation"
)
DAYS = _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = _words("January February March April May June July August September October November")
VERBS = _words(
    "mentioned doubted promised insisted calculated suggested believed admitted claimed guessed explained "
    "predicted complained hoped expected agreed worried regretted noticed repeated"
)
ADJECTIVES = _words(
    "generous reasonable confusing unfair optimistic outdated practical unusual modest ridiculous sensible "
    "complicated flexible temporary honest ambitious cautious realistic expensive provisional"
)


def _sentence(draw: random.Random) -> str:
    one, two, three = draw.sample(NAMES, 3)
    thing, other = draw.sample(THINGS, 2)
    adjective, second = draw.sample(ADJECTIVES, 2)
    day, month = draw.choice(DAYS), draw.choice(MONTHS)
    verb, figure = draw.choice(VERBS), draw.randrange(21, 980)
    return draw.choice(
        (
            f"{one} {verb} that {two}'s {thing} was {adjective}, {figure} euros below {three}'s {other} by {day}.",
            f"By {month} {one} wants {figure} for {two}'s {other}, and {three} {verb} it was {second}.",
            f"Honestly, {adjective} or {second}, {two}'s {thing} from {month} beats whatever {one} {verb} on {day}.",
            f"If {three} signs {one}'s {thing} before {day}, {two} gets {figure} back from that {second} {other}.",
            f"Last {month} {two} {verb} the {adjective} {other} would cost {one} about {figure} until {day}.",
            f"{three} and {one} {verb} on {day} that {figure} is {second} for {two}'s {adjective} {thing}.",
        )
    )


def scenario_in(brief: dict[str, Any], bank: Bank) -> Scenario:
    """The scenario a brief was made from, but for its id and template."""
    speakers = brief["speakers"]
    roles = next(pair for pair in bank.roles if pair.bond == speakers["bond"])
    events = []
    for event in brief["sounds"]:
        register = next(
            (r for r in bank.registers if " ".join(r.move.split()) == event.get("how")), None
        )
        places = event["stands_after_utterance"]
        band = next(b for b in BANDS if places[0] in band_range(brief["utterances"], b))
        sound = next(s for s in bank.sounds if s.name == event["sound"])
        events.append(
            PlannedEvent(
                event["id"],
                sound.id,
                register.reaction if register else "ambient",
                register.id if register else None,
                band,
                "unusual" in event,
            )
        )
    theme = next(t for c in bank.categories for t in c.themes if t.name == brief["theme"])
    place = next(p for p in bank.locations if p.phrase == brief["place"])
    genders = ["F" if speakers[s].endswith("woman") else "M" for s in ("A", "B")]
    return Scenario(
        "brief", "t", theme.id, "train", place.id, roles.id, genders[0], genders[1], tuple(events)
    )  # type: ignore[arg-type]


def topic_for(seed: str) -> str:
    draw = random.Random(seed)
    one, two = draw.sample(NAMES, 2)
    return (
        f"Whether {one} should accept the {draw.choice(ADJECTIVES)} {draw.choice(THINGS)} that {two} sent in "
        f"{draw.choice(MONTHS)} for {draw.randrange(20, 900)} euros"
    )


def compose(brief: dict[str, Any], bank: Bank) -> list[dict[str, Any]]:
    """A timeline for a brief that keeps every rule; checked, since a good writer checks."""
    scenario = scenario_in(brief, bank)
    seed = yaml.safe_dump(brief)
    timeline: tuple[Utterance | EventMark, ...] = ()
    for turn in range(60):
        timeline = _draft(scenario, brief, bank, random.Random(f"{seed}{turn}"))
        talk = Dialogue("brief", str(brief["topic"]), timeline)
        if not check(talk, scenario, bank):
            break
    shown: list[dict[str, Any]] = dialogue_to_json(Dialogue("brief", "", timeline))["timeline"]
    return shown


def _draft(
    scenario: Scenario, brief: dict[str, Any], bank: Bank, draw: random.Random
) -> tuple[Utterance | EventMark, ...]:
    count = brief["utterances"]
    after = {draw.choice(e["stands_after_utterance"]): e["id"] for e in brief["sounds"]}
    planned = {event.id: event for event in scenario.events}
    timeline: list[Utterance | EventMark] = []
    for number in range(count):
        text = f"{_sentence(draw)} {_sentence(draw)}"
        event = planned.get(after.get(number, ""))
        if event is not None:
            timeline.append(EventMark(event.id))
            text = f"{_conduct(event, bank, draw)} {_sentence(draw)}".strip()
        timeline.append(Utterance("AB"[number % 2], text))
    return tuple(timeline)


def _conduct(event: PlannedEvent, bank: Bank, draw: random.Random) -> str:
    if event.register is None:
        return _sentence(draw)
    register = bank.register(event.register)
    tags = [f"[{bank.tag(tag).written}]" for tag in register.tags]
    if event.reaction == "behavioral":
        name, thing = draw.choice(NAMES), draw.choice(THINGS)
        held = f" {tags[0]}" if tags else ""
        return (
            f"I told {name}, I told {name} about the{held} … the {thing} from {draw.choice(DAYS)}."
        )
    names = [n for n in bank.sound(event.sound).names if "*" not in n]
    named = draw.choice(names or [n.rstrip("*") for n in bank.sound(event.sound).names])
    held = f" {tags[0]}" if tags else ""
    if event.reaction == "verbal":
        return f"Some{held} {named} again, {draw.choice(DAYS)} as ever."
    return f"Wait,{held} {named}, and right here, which changes our {draw.choice(DAYS)} completely."
