"""From a rendered scene to its manifest: every figure is measured on the buses or on the finished samples."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from earwitness.audio.loudness import KWeighted, k_weighted
from earwitness.audio.peaks import sample_peak_dbfs
from earwitness.audio.types import Audio
from earwitness.scenes.mixing.buses import Ducking, SoundBus
from earwitness.scenes.mixing.levels import peak_near, stretch_lufs
from earwitness.scenes.mixing.manifest import (
    FORMAT,
    Manifest,
    MixedAmbience,
    MixedAudio,
    MixedEvent,
    MixedLevels,
    MixedRoom,
    MixedTurn,
    Span,
)
from earwitness.scenes.mixing.render import Scene

if TYPE_CHECKING:
    from earwitness.audio.types import Samples


def describe_audio(file: str, data: bytes, frames: int, rate: int) -> MixedAudio:
    """The record of a 16-bit mono file."""
    return MixedAudio(
        file=file,
        sha256=hashlib.sha256(data).hexdigest(),
        bytes=len(data),
        rate_hz=rate,
        channels=1,
        bits=16,
        frames=frames,
        duration_s=frames / rate,
    )


def describe(
    scene: Scene,
    audio: MixedAudio,
    *,
    inputs: str,
    variant: str,
    samples: Samples | None = None,
    sounds: Sequence[SoundBus] | None = None,
    muted: frozenset[str] = frozenset(),
    audible_sha256: str | None = None,
    spans: Sequence[tuple[int, int]] = (),
    stems: Mapping[str, str] | None = None,
) -> Manifest:
    """The manifest of the audible version or of a twin.

    Parameters
    ----------
    samples: of a twin, whose levels are measured anew; None: the audible version, whose levels are known.
    sounds: as they are heard; None: those of the scene.
    """
    plan, line, rate = scene.plan, scene.timeline, scene.rate

    def at(position: int) -> float:
        return position / rate

    gain = scene.master.gain_db
    heard = scene.sounds if sounds is None else sounds
    return Manifest(
        format=FORMAT,
        scene=plan.id,
        variant=variant,
        split=plan.scenario.split,
        location=plan.scenario.location,
        seed=plan.seed,
        preset=plan.preset.id,
        preset_version=plan.preset.version,
        preset_hash=plan.preset.hash,
        audio=audio,
        turns=tuple(
            MixedTurn(
                index=turn.index,
                speaker=turn.speaker,
                voice=turn.voice,
                start_s=at(place.speech_start),
                end_s=at(place.speech_end),
                file_start_s=at(place.start),
                file=turn.file,
                sha256=turn.sha256,
                gain_db=turn_gain + scene.voice_gain_db + gain,
            )
            for turn, place, turn_gain in zip(
                plan.turns, line.turns, scene.turn_gains_db, strict=True
            )
        ),
        gaps_s=tuple(map(at, line.gaps)),
        events=tuple(
            _event(scene, bus, n, muted=bus.plan.event.id in muted) for n, bus in enumerate(heard)
        ),
        ambience=MixedAmbience(
            take=plan.ambience.id,
            take_sha256=plan.ambience.sha256,
            start_s=at(scene.bed.start),
            looped=scene.bed.looped,
            gain_db=scene.bed.gain_db + gain,
            loudness_lufs=_lufs_after(scene.bed.energies, gain, scene.bed.bus_lufs),
            bus_lufs=scene.bed.bus_lufs,
            wanted_bus_lufs=scene.bed.wanted_lufs,
            lowpass_hz=plan.preset.ambience.lowpass_hz,
        ),
        room=MixedRoom(
            plan.room.location, plan.room.number, plan.room.file, scene.room_sha256, plan.voice_wet
        ),
        levels=_levels(scene, samples),
        fade_s=at(line.fade),
        catch_times_s=tuple(map(at, line.catch)),
        inputs=inputs,
        audible_sha256=audible_sha256,
        differs=tuple((at(start), at(end)) for start, end in spans),
        stems=stems,
    )


def _levels(scene: Scene, samples: Samples | None) -> MixedLevels:
    master, rule = scene.master, scene.plan.preset.master
    gain = master.gain_db

    def after(level: float | None) -> float | None:
        return None if level is None else level + gain

    if samples is None:
        lufs = master.lufs
        sample, true = after(master.sample_peak_dbfs), after(master.true_peak_dbtp)
    else:
        audio = Audio(samples, scene.rate)
        lufs = k_weighted(audio).integrated().lufs
        sample = sample_peak_dbfs(audio)
        true = peak_near(audio, sample, rule.ceiling_dbtp)
    return MixedLevels(
        loudness_lufs=lufs,
        wanted_lufs=rule.lufs,
        master_gain_db=gain,
        peak_limited=master.peak_limited,
        sample_peak_dbfs=sample,
        true_peak_dbtp=true,
        ceiling_dbtp=rule.ceiling_dbtp,
        voice_lufs=_lufs_after(scene.voice_energies, gain, scene.voice_lufs),
        voice_bus_lufs=scene.voice_lufs,
        voice_gain_db=scene.voice_gain_db,
        voice_limited_db=scene.voice_limited_db,
        speakers_lufs={who: after(level) for who, level in scene.speakers_lufs.items()},
    )


def _event(scene: Scene, bus: SoundBus, number: int, *, muted: bool) -> MixedEvent:
    rate, gain = scene.rate, scene.master.gain_db
    plan, placed, event = bus.plan, bus.placed, bus.plan.event
    clear = scene.timeline.wanted[number].clear
    ducking = scene.ducks[number]
    voice = stretch_lufs(scene.voice, placed.start, placed.end, rate)
    return MixedEvent(
        id=event.id,
        sound=event.sound,
        reaction=event.reaction,
        register=event.register,
        band=event.band,
        rare=event.rare,
        heard=None if muted else plan.sound,
        before=plan.boundary,
        start_s=placed.start / rate,
        end_s=placed.end / rate,
        tail_end_s=bus.tail_end / rate,
        salient_s=placed.salient / rate,
        loudest_s=bus.loudest / rate,
        clear=(clear.start / rate, clear.end / rate),
        loudness_lufs=_lufs_after(bus.energies, gain, bus.bus_lufs),
        over_ambience_db=bus.over_ambience_db,
        over_voice_db=None if voice is None else bus.bus_lufs - voice,
        bus_lufs=bus.bus_lufs,
        wanted_bus_lufs=bus.wanted_lufs,
        raised_db=bus.raised_db,
        limited_db=bus.limited_db,
        gain_db=bus.gain_db + gain,
        set_back=plan.draw.set_back,
        distance_m=plan.draw.distance_m,
        distance_profile=plan.profile.id,
        distance_gain_db=bus.distance_gain_db,
        wet=bus.wet,
        lowpass_hz=bus.lowpass_hz,
        take=plan.take.id,
        take_sha256=plan.take.sha256,
        take_from_s=placed.take_from / rate,
        take_to_s=placed.take_to / rate,
        cut_start_s=bus.cut_start / rate,
        cut_end_s=bus.cut_end / rate,
        fade_in_s=bus.fade_in / rate,
        fade_out_s=bus.fade_out / rate,
        anchor=plan.draw.anchor,
        end_gap_s=plan.draw.end_gap_s,
        duck_db=0.0 if ducking is None else -ducking.depth_db,
        ducked=_ducked(ducking, rate),
    )


def _lufs_after(energies: KWeighted, gain_db: float, before_lufs: float) -> float:
    """Loudness after a gain, its gate applied at that level; nothing but the gain where all falls under the gate."""
    return energies.amplified(gain_db).integrated().lufs or before_lufs + gain_db


def _ducked(ducking: Ducking | None, rate: int) -> Span | None:
    return None if ducking is None else (ducking.start / rate, ducking.end / rate)
