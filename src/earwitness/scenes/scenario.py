"""The scenario: a fully allocated plan of one scene, before any words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from earwitness.scenes.bank_records import Reaction

Band = Literal["early", "middle", "late"]
BANDS: tuple[Band, ...] = ("early", "middle", "late")
"""Thirds of the eligible span: the utterances an event may follow, so that four more come after it."""

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
Gender = Literal["F", "M"]


@dataclass(frozen=True, slots=True)
class PlannedEvent:
    """One sound that will occur. ``register`` is None exactly for ambient events."""

    id: str
    sound: str
    reaction: Reaction
    register: str | None
    band: Band
    rare: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything fixed before words exist; ``events`` are in the order they will occur."""

    id: str
    template: str
    theme: str
    split: Split
    location: str
    roles: str
    gender_a: Gender
    gender_b: Gender
    events: tuple[PlannedEvent, ...]

    def count(self, reaction: Reaction) -> int:
        """How many events have this reaction."""
        return sum(event.reaction == reaction for event in self.events)

    @property
    def composition(self) -> tuple[int, int, int, int]:
        """Numbers of pivot, verbal, behavioral and ambient events."""
        return (
            self.count("pivot"),
            self.count("verbal"),
            self.count("behavioral"),
            self.count("ambient"),
        )


def scenario_to_json(scenario: Scenario) -> dict[str, Any]:
    """A scenario as plain JSON values, keys in reading order."""
    return {
        "id": scenario.id,
        "template": scenario.template,
        "theme": scenario.theme,
        "split": scenario.split,
        "location": scenario.location,
        "roles": scenario.roles,
        "gender_a": scenario.gender_a,
        "gender_b": scenario.gender_b,
        "events": [
            {
                "id": event.id,
                "sound": event.sound,
                "reaction": event.reaction,
                "register": event.register,
                "band": event.band,
                "rare": event.rare,
            }
            for event in scenario.events
        ],
    }


def scenario_from_json(value: Mapping[str, Any]) -> Scenario:
    """Read what :func:`scenario_to_json` wrote."""
    events = tuple(PlannedEvent(**event) for event in value["events"])
    return Scenario(**{**value, "events": events})


def to_lines(scenarios: Sequence[Scenario]) -> str:
    """Scenarios as JSON lines."""
    return "".join(
        json.dumps(scenario_to_json(scenario), ensure_ascii=False, separators=(",", ":")) + "\n"
        for scenario in scenarios
    )
