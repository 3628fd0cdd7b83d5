"""Every draw of a scene, each from a stream of its own.

A stream is keyed by (corpus seed, scenario, event or ``scene``, purpose). Takes are not drawn by their place in a
list: each is ranked by a number of its own, and the lowest rank is taken. So another take in the library changes a
scene only where it wins, and never what else is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from earwitness.scenes.bank_records import DistanceProfile
from earwitness.scenes.mixing.preset import Anchor, Distance, MixPreset
from earwitness.scenes.scenario import PlannedEvent
from earwitness.stats.streams import stream

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class EventDraw:
    """What is drawn for one event. ``place`` is 0 to 1 within what the anchor leaves open."""

    anchor: Anchor
    place: float
    longest_s: float | None
    end_gap_s: float
    duck_db: float
    set_back: bool
    distance_m: float


@dataclass(frozen=True, slots=True)
class SceneDraw:
    """What is drawn for a scene: gaps before the first utterance, between all, and after the last."""

    gaps_s: tuple[float, ...]
    ambience_start: float
    ambience_jitter_db: float
    room: int


def uniform(seed: int, names: Sequence[str], low: float = 0.0, high: float = 1.0) -> float:
    """One draw from a stream of its own."""
    return float(stream(seed, "mix", *names).uniform(low, high))


def lowest(seed: int, names: Sequence[str], candidates: Mapping[str, _T]) -> _T:
    """The candidate whose own number is lowest: adding others changes it only where one of them wins."""
    ranked = min(candidates, key=lambda name: (uniform(seed, (*names, name)), name))
    return candidates[ranked]


def draw_event(
    seed: int,
    scenario: str,
    event: PlannedEvent,
    profile: DistanceProfile,
    preset: MixPreset,
    variant: str = "",
) -> EventDraw:
    """All draws of one event.

    Parameters
    ----------
    variant: makes another distance, for a sound that stands in for the planned one. Everything else is kept.
    """
    rule = preset.rule_for(event.reaction)

    def draw(purpose: str, low: float = 0.0, high: float = 1.0) -> float:
        return uniform(seed, (scenario, event.id, purpose), low, high)

    longest = None if rule.longest_s is None else draw("length", *rule.longest_s)
    return EventDraw(
        anchor=_weighted(draw("anchor"), rule.anchors),
        place=draw("place"),
        longest_s=longest,
        end_gap_s=draw("end gap", *rule.end_gap_s),
        duck_db=draw("duck", *rule.duck_db),
        set_back=draw("level") < preset.events.set_back_share,
        distance_m=draw("distance" + variant, profile.near_m, profile.far_m),
    )


def draw_scene(seed: int, scenario: str, turns: int, rooms: int, preset: MixPreset) -> SceneDraw:
    """All draws of a scene that belong to no event."""
    jitter = preset.ambience.jitter_db
    return SceneDraw(
        gaps_s=tuple(
            uniform(seed, (scenario, "scene", "gap", str(n)), *preset.gap_s)
            for n in range(turns + 1)
        ),
        ambience_start=uniform(seed, (scenario, "scene", "ambience start")),
        ambience_jitter_db=uniform(seed, (scenario, "scene", "ambience level"), -jitter, jitter),
        room=int(stream(seed, "mix", scenario, "scene", "room").integers(rooms)),
    )


def _weighted(draw: float, weights: Mapping[Anchor, float]) -> Anchor:
    ordered = sorted(weights.items())
    left = draw * sum(weights.values())
    for name, weight in ordered:
        left -= weight
        if left < 0:
            return name
    return ordered[-1][0]


def distance_gain_db(distance_m: float, profile: DistanceProfile, rule: Distance) -> float:
    """Level over that at the reference distance: the inverse law, clamped.

    Examples
    --------
    >>> profile = DistanceProfile(id="room", near_m=1, far_m=8, reference_m=2)
    >>> [round(distance_gain_db(d, profile, Distance()), 2) for d in (1, 4, 8)]
    [4.0, -6.02, -9.0]
    """
    low, high = rule.level_db
    return min(max(-20.0 * math.log10(distance_m / float(profile.reference_m)), low), high)


def distance_wet(distance_m: float, voice_wet: float, rule: Distance) -> float:
    """Share of energy in the reflections: it grows with the square of the distance over the critical one.

    The critical distance is where a room of this kind, with its share at the reference, would reach one half.
    """
    base = min(rule.wet_at_reference * voice_wet / 0.06, 0.9)
    if base <= 0:
        return 0.0
    critical_m = rule.wet_reference_m * math.sqrt(1.0 / base - 1.0)
    return min(1.0 / (1.0 + (critical_m / distance_m) ** 2), rule.most_wet)


def distance_lowpass_hz(distance_m: float, rule: Distance) -> float | None:
    """Corner of the low-pass that stands for air and obstacles; None within 2 m."""
    if distance_m <= 2.0:
        return None
    falling: float = (2.0 / distance_m) ** rule.lowpass_power
    return max(rule.lowpass_hz * falling, rule.least_lowpass_hz)


def ranked(seed: int, names: Sequence[str], candidates: Iterable[str]) -> tuple[str, ...]:
    """Names by their own numbers, lowest first."""
    return tuple(sorted(candidates, key=lambda name: (uniform(seed, (*names, name)), name)))
