"""From a corpus, a bank and a library to plans of scenes: everything decided that needs no audio."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from earwitness.errors import DataError
from earwitness.runs.items import digest
from earwitness.scenes.bank import Bank
from earwitness.scenes.bank_records import DistanceProfile
from earwitness.scenes.dialogue_records import Dialogue
from earwitness.scenes.mixing.acoustics import RoomChoice, choose_room, rooms_of
from earwitness.scenes.mixing.draws import (
    EventDraw,
    SceneDraw,
    draw_event,
    draw_scene,
    lowest,
    ranked,
    uniform,
)
from earwitness.scenes.mixing.preset import MixPreset
from earwitness.scenes.scenario import PlannedEvent, Scenario, scenario_to_json
from earwitness.scenes.sounds import Kind, SoundLibrary, Take
from earwitness.scenes.voices import SpokenTurn

FORM = 3
"""Of how plans become sound; raised when the same inputs would sound different."""


@dataclass(frozen=True, slots=True)
class PlannedSound:
    """A sound of a scene: which take, how far away, and how it is placed.

    ``boundary`` is the number of utterances before it; ``sound`` is what is heard (another one than planned
    where sounds are swapped).
    """

    event: PlannedEvent
    sound: str
    boundary: int
    take: Take
    draw: EventDraw
    profile: DistanceProfile
    low_frequency: bool


@dataclass(frozen=True, slots=True)
class ScenePlan:
    """Everything of a scene but its samples."""

    scenario: Scenario
    seed: int
    preset: MixPreset
    turns: tuple[SpokenTurn, ...]
    sounds: tuple[PlannedSound, ...]
    draw: SceneDraw
    ambience: Take
    room: RoomChoice
    voice_wet: float
    catch_draws: Mapping[int, float]
    swaps: tuple[PlannedSound, ...] = ()

    @property
    def id(self) -> str:
        return self.scenario.id

    @property
    def inputs(self) -> str:
        """Hash of everything the audible scene and its manifest depend on."""
        return digest(
            {
                "form": FORM,
                "scenario": scenario_to_json(self.scenario),
                "seed": self.seed,
                "preset": self.preset.hash,
                "turns": [_turn_inputs(turn) for turn in self.turns],
                "sounds": [_sound_inputs(sound) for sound in self.sounds],
                "draw": asdict(self.draw),
                "ambience": [self.ambience.id, self.ambience.sha256],
                "room": self.room.key,
                "voice_wet": self.voice_wet,
            }
        )

    def swap_inputs(self, event: str) -> str:
        """As :attr:`inputs`, of the twin in which an event's sound is swapped."""
        return digest([self.inputs, [_sound_inputs(s) for s in self.swaps if s.event.id == event]])


def _turn_inputs(turn: SpokenTurn) -> Any:
    pauses = [[mark.kind, mark.start_s, mark.end_s] for mark in turn.marks]
    return [turn.speaker, turn.voice, turn.text, turn.sha256, pauses]


def _sound_inputs(sound: PlannedSound) -> Any:
    return [
        sound.event.id, sound.sound, sound.boundary, sound.take.id, sound.take.sha256, sound.take.peak_time_s,
        asdict(sound.draw), sound.profile.model_dump(mode="json"), sound.low_frequency,
    ]  # fmt: skip


def needed(scenes: Iterable[tuple[Scenario, Dialogue]]) -> Iterator[tuple[Kind, str, str]]:
    """What a library must have for these scenes, as :meth:`SoundLibrary.require` takes it."""
    for scenario, _ in scenes:
        yield "ambience", scenario.location, scenario.split
        for event in scenario.events:
            yield "sound", event.sound, scenario.split


def plan_scene(
    scenario: Scenario,
    dialogue: Dialogue,
    turns: Sequence[SpokenTurn],
    bank: Bank,
    library: SoundLibrary,
    preset: MixPreset,
    seed: int,
    swap: Sequence[str] = (),
) -> ScenePlan:
    """Decide everything about a scene that needs no audio.

    Parameters
    ----------
    turns: its spoken turns, in order.
    swap: events for which another sound is planned beside.

    Raises
    ------
    DataError: voices, dialogue and plan do not belong together.
    MissingTakesError: the library has no take of something.
    """
    _check(scenario, dialogue, turns)
    location = bank.location(scenario.location)
    library.require(needed([(scenario, dialogue)]))
    events = {event.id: event for event in scenario.events}
    sounds = tuple(
        _sound(scenario, events[name], events[name].sound, before, bank, library, preset, seed)
        for name, before in dialogue.events
    )
    numbers = rooms_of(location, scenario.split)
    draw = draw_scene(seed, scenario.id, len(turns), len(numbers), preset)
    ambiences = {take.id: take for take in library.ambiences(scenario.location, scenario.split)}
    taken = {sound.boundary for sound in sounds}
    plan = ScenePlan(
        scenario=scenario,
        seed=seed,
        preset=preset,
        turns=tuple(turns),
        sounds=sounds,
        draw=draw,
        ambience=lowest(seed, (scenario.id, "scene", "ambience"), ambiences),
        room=choose_room(location, scenario.split, draw.room, seed, preset.rate_hz),
        voice_wet=location.room.voice_wet,
        catch_draws={
            n: uniform(seed, (scenario.id, "scene", "catch", str(n)))
            for n in range(1, len(turns))
            if n not in taken
        },
    )
    if not swap:
        return plan
    present = {event.sound for event in scenario.events}
    swaps = []
    for sound in sounds:
        if sound.event.id in swap:
            other = _other_sound(scenario, sound.event, present, bank, library, seed)
            swaps.append(
                _sound(scenario, sound.event, other, sound.boundary, bank, library, preset, seed)
            )
    return replace(plan, swaps=tuple(swaps))


def _check(scenario: Scenario, dialogue: Dialogue, turns: Sequence[SpokenTurn]) -> None:
    where = f"scene {scenario.id}"
    step = "Run: earwitness scenes speak"
    if not turns:
        raise DataError(where, "has no spoken turns", "its voices", step)
    said = [utterance.speaker for utterance in dialogue.utterances]
    spoken = [turn.speaker for turn in turns]
    if said != spoken or [turn.index for turn in turns] != list(range(len(turns))):
        raise DataError(
            where, f"{len(spoken)} spoken turns of {'-'.join(spoken)[:40]}",
            f"the {len(said)} utterances of the dialogue", step,
        )  # fmt: skip
    planned, marked = {event.id for event in scenario.events}, [e for e, _ in dialogue.events]
    if planned != set(marked) or len(marked) != len(planned):
        raise DataError(
            where, f"the dialogue marks events {', '.join(marked) or 'none'}",
            ", ".join(sorted(planned)) or "none",
        )  # fmt: skip


def _sound(
    scenario: Scenario,
    event: PlannedEvent,
    sound: str,
    boundary: int,
    bank: Bank,
    library: SoundLibrary,
    preset: MixPreset,
    seed: int,
) -> PlannedSound:
    profile = bank.distance_of(sound, scenario.location)
    takes = {take.id: take for take in library.sounds(sound, scenario.split)}
    variant = "" if sound == event.sound else f" of {sound}"
    return PlannedSound(
        event=event,
        sound=sound,
        boundary=boundary,
        take=lowest(seed, (scenario.id, event.id, "take" + variant), takes),
        draw=draw_event(seed, scenario.id, event, profile, preset, variant),
        profile=profile,
        low_frequency=bank.sound(sound).low_frequency,
    )


def _other_sound(
    scenario: Scenario,
    event: PlannedEvent,
    present: set[str],
    bank: Bank,
    library: SoundLibrary,
    seed: int,
) -> str:
    """Another sound of the location, rare for rare, that is not in the scene and has takes."""
    pool = bank.rare_at if event.rare else bank.sounds_at
    candidates = [
        sound
        for sound in pool(scenario.location)
        if sound not in present and library.sounds(sound, scenario.split)
    ]
    if not candidates:
        raise DataError(
            f"scene {scenario.id}, event {event.id}",
            f"no other sound of {scenario.location} has takes in {scenario.split}",
            "at least one to swap with",
        )
    return ranked(seed, (scenario.id, event.id, "swap"), candidates)[0]


def voice_path(corpus: Path, turn: SpokenTurn) -> Path:
    """Where a turn's file is."""
    return corpus / turn.file
