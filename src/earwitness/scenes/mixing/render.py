"""One scene: from its plan to buses at their levels, and from buses to the samples of the mix or of a twin.

After the buses are added there is one static gain, the scene's fades, and rounding. Buses are always added in one
order (voice, ambience, sounds as they occur), so that leaving a sound out changes no sample outside its span.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from earwitness.audio.decibels import amplitude_from_db
from earwitness.audio.fades import fade_curve
from earwitness.audio.loudness import KWeighted, combined_loudness, k_weighted
from earwitness.audio.types import Audio, samples_at
from earwitness.errors import DataError
from earwitness.scenes.mixing.acoustics import load_room, store_room
from earwitness.scenes.mixing.buses import (
    RAISED_TO_DB,
    Ducking,
    LevelError,
    SoundBus,
    TooQuietError,
    balance,
    duck,
    ducking_of,
    salient_of,
    sound_bus,
    voice_bus,
    voice_kernel,
)
from earwitness.scenes.mixing.levels import MasterGain, master_gain
from earwitness.scenes.mixing.placement import (
    Clear,
    Placed,
    PlacementError,
    TurnPlace,
    TurnSound,
    Wanted,
    break_stretch,
    catch_moments,
    fit,
    gap_stretch,
    length_of,
    place_sounds,
    place_turns,
)
from earwitness.scenes.mixing.planning import PlannedSound, ScenePlan
from earwitness.scenes.mixing.sources import amplify, bed_of, read_bed, read_voice

if TYPE_CHECKING:
    from earwitness.audio.types import Samples


PLACEMENTS = 3
"""How often a scene is laid out until every sound is loudest where it was placed."""
MOVED_DB = 1.0
"""A sound that is so much louder elsewhere is placed anew: moments within 0.5 dB count as one, and fades change a little."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Where everything stands, in samples."""

    frames: int
    fade: int
    gaps: tuple[int, ...]
    turns: tuple[TurnPlace, ...]
    wanted: tuple[Wanted, ...]
    sounds: tuple[Placed, ...]
    catch: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BedBus:
    """The ambience at its level, and how it came to it. ``wanted_lufs`` is what was drawn, before it made way."""

    samples: Samples
    gain_db: float
    bus_lufs: float
    wanted_lufs: float
    energies: KWeighted
    start: int
    looped: bool


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A scene before its buses are added. ``voice`` is ducked; all buses are at their levels."""

    plan: ScenePlan
    timeline: Timeline
    voice: Samples
    voice_energies: KWeighted
    """Before ducking."""
    voice_lufs: float
    voice_gain_db: float
    voice_limited_db: float
    turn_gains_db: tuple[float, ...]
    speakers_lufs: Mapping[str, float | None]
    bed: BedBus
    sounds: tuple[SoundBus, ...]
    ducks: tuple[Ducking | None, ...]
    master: MasterGain
    room_sha256: str
    corpus: Path
    library: Path

    @property
    def rate(self) -> int:
        return self.plan.preset.rate_hz


def timeline_of(plan: ScenePlan, voices: Sequence[TurnSound], salient: Sequence[int]) -> Timeline:
    """Place turns and sounds.

    Parameters
    ----------
    salient: of each sound, the sample of its take at which it is loudest as heard.

    Raises
    ------
    PlacementError: something cannot be placed.
    """
    preset, rate = plan.preset, plan.preset.rate_hz
    gaps = tuple(samples_at(gap, rate) for gap in plan.draw.gaps_s)
    fade = samples_at(preset.master.fade_s, rate)
    turns = place_turns(voices, gaps, fade)
    wanted = tuple(
        wanted_of(sound, plan, turns, gaps, peak)
        for sound, peak in zip(plan.sounds, salient, strict=True)
    )
    try:
        sounds = place_sounds(
            wanted,
            first=fade,
            separation=samples_at(preset.separation_s, rate),
            rate=rate,
            overlap=preset.allow_overlap,
        )
    except PlacementError as error:
        raise PlacementError(
            f"scene {plan.id}, {error.where}", error.found, error.wanted, error.next_step
        ) from None
    catch = catch_moments(
        turns,
        gaps,
        sounds,
        plan.catch_draws,
        samples_at(preset.clear_window_s, rate),
        samples_at(preset.catch_distance_s, rate),
    )
    return Timeline(length_of(turns, gaps, sounds, fade), fade, gaps, turns, wanted, sounds, catch)


def wanted_of(
    sound: PlannedSound,
    plan: ScenePlan,
    turns: Sequence[TurnPlace],
    gaps: Sequence[int],
    salient: int,
) -> Wanted:
    """A planned sound, with the salient sample of its take, as placement takes it."""
    preset, rate = plan.preset, plan.preset.rate_hz
    rule = preset.rule_for(sound.event.reaction)
    window = samples_at(preset.clear_window_s, rate)
    clear: Clear | None = None
    if sound.draw.anchor == "break" and sound.boundary < len(turns):
        pauses = [
            (samples_at(mark.start_s, rate), samples_at(mark.end_s, rate))
            for mark in plan.turns[sound.boundary].marks
            if mark.kind == "pause"
        ]
        clear = break_stretch(turns[sound.boundary], sound.boundary, pauses, window)
    # What resampling makes of the file, by the same rule: frames * rate / own rate, half rounded up.
    own = sound.take.sample_rate
    frames = (2 * samples_at(sound.take.duration_s, own) * rate + own) // (2 * own)
    longest, lead = sound.draw.longest_s, rule.most_lead_s
    return Wanted(
        name=f"event {sound.event.id} ({sound.sound})",
        clear=clear or gap_stretch(turns, gaps, sound.boundary),
        window=window,
        frames=frames,
        peak=min(salient, frames - 1),
        anchor=sound.draw.anchor,
        place=sound.draw.place,
        end_gap=samples_at(sound.draw.end_gap_s, rate),
        most_lead=None if lead is None else samples_at(lead, rate),
        longest=None if longest is None else samples_at(longest, rate),
    )


def make_scene(plan: ScenePlan, corpus: Path, library: Path) -> Scene:
    """Read, place, filter and level everything of a scene.

    Parameters
    ----------
    corpus: folder with voice files (and rooms, made where missing).
    library: folder of the sound library.

    Raises
    ------
    PlacementError, LevelError: something cannot be placed, or cannot be brought to its level.
    SourceError, AudioFileError: a source is missing, changed or unreadable.
    """
    preset, rate = plan.preset, plan.preset.rate_hz
    where = f"scene {plan.id}"
    room_sha256 = store_room(corpus, plan.room)
    voices = [read_voice(corpus / turn.file, turn.sha256, rate) for turn in plan.turns]
    speakers = [turn.speaker for turn in plan.turns]
    gains = balance(voices, speakers, preset.voice, where)
    room = load_room(corpus / plan.room.file, room_sha256)
    lengths = [TurnSound(len(v.samples), v.heard_from, v.heard_to) for v in voices]
    line, bed, sounds = _placed(plan, lengths, library, room)
    turn_gains = [gains[speaker] for speaker in speakers]
    kernel = voice_kernel(plan, corpus / plan.room.file, room_sha256)
    voice, voice_limited = voice_bus(
        voices, line.turns, turn_gains, line.frames, kernel, preset.voice.peak_dbfs, rate
    )
    del voices
    energies = k_weighted(Audio(voice, rate))
    voice_gain = energies.gain_db_to(preset.voice.lufs)
    if voice_gain is None:
        raise LevelError(where, "the voices are silent", "voices that are heard")
    amplify(voice, voice_gain)
    energies = energies.amplified(voice_gain)
    ducks = tuple(
        ducking_of(
            bus, line.turns, gap_stretch(line.turns, line.gaps, bus.plan.boundary).start, plan
        )
        for bus in sounds
    )
    duck(voice, [span for span in ducks if span is not None], rate)
    levels = _speakers(energies, line.turns, speakers)
    return Scene(
        plan=plan,
        timeline=line,
        voice=voice,
        voice_energies=energies,
        voice_lufs=energies.integrated().lufs or preset.voice.lufs,
        voice_gain_db=voice_gain,
        voice_limited_db=voice_limited,
        turn_gains_db=tuple(turn_gains),
        speakers_lufs=levels,
        bed=bed,
        sounds=sounds,
        ducks=ducks,
        master=MasterGain(0.0, None, None, None, False),
        room_sha256=room_sha256,
        corpus=corpus,
        library=library,
    )


def _placed(
    plan: ScenePlan, voices: Sequence[TurnSound], library: Path, room: Samples
) -> tuple[Timeline, BedBus, tuple[SoundBus, ...]]:
    """Where everything stands, and ambience and sounds at their levels.

    Two things are known only when a sound is made. Its limiter may leave it loudest elsewhere than it was: then it is
    placed anew by that moment. And its peaks may not let it stand over the ambience: then the ambience makes way, as
    far as ``most_lowered_db`` allows.
    """
    salient = [salient_of(sound, plan, library, room) for sound in plan.sounds]
    lowered = 0.0
    moves = PLACEMENTS - 1
    while True:
        line = timeline_of(plan, voices, salient)
        bed = _bed(plan, library, line.frames, lowered)
        try:
            sounds = tuple(
                sound_bus(sound, placed, plan, library, room, bed.samples)
                for sound, placed in zip(plan.sounds, line.sounds, strict=True)
            )
        except TooQuietError as error:
            lowered += error.lacking_db + RAISED_TO_DB
            if lowered > plan.preset.ambience.most_lowered_db:
                raise
            continue
        moved = [n for n, bus in enumerate(sounds) if bus.off_db > MOVED_DB]
        if not moved or not moves:
            return line, bed, sounds
        moves -= 1
        for n in moved:
            placed = sounds[n].placed
            salient[n] = placed.take_from + sounds[n].loudest - placed.start


def _bed(plan: ScenePlan, library: Path, frames: int, lowered_db: float) -> BedBus:
    preset = plan.preset
    rule = preset.ambience
    take = plan.ambience
    source = read_bed(
        library / take.path, take.sha256, preset.rate_hz, rule.lowpass_hz, rule.crossfade_s
    )
    audio, start, energies = bed_of(source, frames, plan.draw.ambience_start, rule.crossfade_s)
    wanted = rule.lufs + plan.draw.ambience_jitter_db
    gain = energies.gain_db_to(wanted - lowered_db)
    if gain is None:
        raise LevelError(
            f"scene {plan.id}", f"ambience {take.id} is silent there", "an even ambience"
        )
    energies = energies.amplified(gain)
    return BedBus(
        amplify(audio.samples, gain),
        gain,
        energies.integrated().lufs or wanted - lowered_db,
        wanted,
        energies,
        start,
        source.audio.frames < start + frames,
    )


def _speakers(
    energies: KWeighted, turns: Sequence[TurnPlace], speakers: Sequence[str]
) -> dict[str, float | None]:
    """Loudness of each speaker in the voice bus, from the 100 ms that lie whole in that speaker's turns."""
    hop = energies.hop_frames
    parts: dict[str, list[KWeighted]] = {}
    for place, speaker in zip(turns, speakers, strict=True):
        first, last = -(-place.speech_start // hop), place.speech_end // hop
        hops = energies.hop_energies[first:last]
        if len(hops):
            part = KWeighted(energies.rate, len(hops) * hop, hops, float(hops.sum()))
            parts.setdefault(speaker, []).append(part)
    found = {}
    for speaker in sorted(set(speakers)):
        found[speaker] = combined_loudness(parts.get(speaker, ())).lufs
    return found


def add_buses(
    scene: Scene, sounds: Sequence[SoundBus] | None = None, *, ambience: bool = True
) -> Samples:
    """The sum of the buses under the scene's fades, before the master gain; float32, shape (frames,).

    Parameters
    ----------
    sounds: those that are heard, in the order of the scene; None: all.
    """
    made = scene.voice + scene.bed.samples if ambience else scene.voice.copy()
    for bus in scene.sounds if sounds is None else sounds:
        made[bus.placed.start : bus.tail_end] += bus.samples
    _fade(made, scene.timeline.fade)
    return made


def _fade(samples: Samples, frames: int) -> None:
    curve = fade_curve(min(frames, len(samples)))
    samples[: len(curve)] *= curve
    samples[len(samples) - len(curve) :] *= curve[::-1]


def mastered(scene: Scene) -> tuple[Scene, Samples]:
    """The audible version: its samples, and the scene with the master gain they need.

    Raises
    ------
    LevelError: the mix is silent.
    """
    samples = add_buses(scene)
    rule = scene.plan.preset.master
    try:
        gain = master_gain(Audio(samples, scene.rate), rule.lufs, rule.ceiling_dbtp)
    except ValueError as error:
        raise LevelError(f"scene {scene.plan.id}", str(error), "sound") from None
    return replace(scene, master=gain), amplify(samples, gain.gain_db)


def stems_of(scene: Scene) -> dict[str, Samples]:
    """Every bus as it is in the finished mix: their sum is the mix before rounding, within 1e-6."""
    gain = np.float32(amplitude_from_db(scene.master.gain_db))
    stems = {"voice": scene.voice * gain, "ambience": scene.bed.samples * gain}
    for bus in scene.sounds:
        stem = np.zeros(scene.timeline.frames, np.float32)
        stem[bus.placed.start : bus.tail_end] = bus.samples * gain
        stems[f"event-{bus.plan.event.id}"] = stem
    for stem in stems.values():
        _fade(stem, scene.timeline.fade)
    return stems


def swapped(scene: Scene, event: str) -> SoundBus:
    """Another sound in the place of an event's: the same moment, between the same neighbours.

    Raises
    ------
    DataError: the event was not planned to be swapped.
    PlacementError, LevelError: the other sound does not fit.
    """
    number, bus = next(
        ((n, bus) for n, bus in enumerate(scene.sounds) if bus.plan.event.id == event), (None, None)
    )
    other = next((sound for sound in scene.plan.swaps if sound.event.id == event), None)
    if number is None or bus is None or other is None:
        raise DataError(f"scene {scene.plan.id}", f"no swap is planned for event {event!r}")
    line = scene.timeline
    separation = samples_at(scene.plan.preset.separation_s, scene.rate)
    low, high = line.fade, line.frames - line.fade
    if not scene.plan.preset.allow_overlap:
        if number:
            low = max(low, line.sounds[number - 1].end + separation)
        if number + 1 < len(line.sounds):
            high = min(high, line.sounds[number + 1].start - separation)
    room = load_room(scene.corpus / scene.plan.room.file, scene.room_sha256)
    salient = salient_of(other, scene.plan, scene.library, room)
    wanted = wanted_of(other, scene.plan, line.turns, line.gaps, salient)
    placed = fit(wanted, bus.placed.salient, low, high, scene.rate)
    return sound_bus(other, placed, scene.plan, scene.library, room, scene.bed.samples)
