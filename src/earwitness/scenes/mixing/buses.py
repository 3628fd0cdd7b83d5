"""The buses of a scene before they are added: voice with its room, ambience, and every sound with its room.

Every filter and room works on a bus; gains are kept apart, so that twins can use those of the audible version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from earwitness.audio.convolution import convolve
from earwitness.audio.decibels import amplitude_from_db
from earwitness.audio.fades import duck_envelope, fade_curve
from earwitness.audio.filters import Filter, cascade, highpass, lowpass, peaking
from earwitness.audio.loudness import KWeighted, k_weighted
from earwitness.audio.rooms import with_wet_share
from earwitness.audio.types import Audio, samples_at
from earwitness.errors import DataError
from earwitness.scenes.mixing.acoustics import load_room
from earwitness.scenes.mixing.draws import distance_gain_db, distance_lowpass_hz, distance_wet
from earwitness.scenes.mixing.levels import below_loudest_db, salient_sample, stretch_lufs
from earwitness.scenes.mixing.limiter import limit
from earwitness.scenes.mixing.placement import Placed, TurnPlace
from earwitness.scenes.mixing.planning import PlannedSound, ScenePlan
from earwitness.scenes.mixing.preset import Bell, EventChain, VoiceChain
from earwitness.scenes.mixing.sources import VoiceSource, read_take

if TYPE_CHECKING:
    from earwitness.audio.types import Samples

EDGE_FADE_S = 0.005
"""At the natural ends of a take, against clicks."""
CUT_IN_S = 0.05
CUT_OUT_S = 0.4
"""Where something of a take is cut; at most half of what lies between the loudest moment and the cut."""
RING_S = 0.05
"""Kept after a sound for its filters to ring out."""
DUCK_RAMP_S = 0.08
RAISED_TO_DB = 0.05
"""Over the least margin, so that neither rounding nor the tolerance undercuts it."""
LEVEL_TOLERANCE_DB = 0.05
"""How near a limited sound comes to its level."""
LIMITER_TRIES = 6


class LevelError(DataError):
    """A sound, a voice or an ambience cannot be brought to its level; names and levels are in the text."""


class TooQuietError(LevelError):
    """A sound cannot be raised far enough over the ambience: ``lacking_db`` is what is wanting."""

    lacking_db: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class SoundBus:
    """A sound with its room: ``samples`` stand at ``placed.start`` and are at their level.

    ``energies`` are those of what is heard of the take, without the room's tail; ``off_db`` is how much louder it is
    elsewhere than at its salient moment.
    """

    plan: PlannedSound
    placed: Placed
    samples: Samples
    gain_db: float
    limited_db: float
    bus_lufs: float
    wanted_lufs: float
    raised_db: float
    ambience_lufs: float | None
    distance_gain_db: float
    wet: float
    lowpass_hz: float | None
    fade_in: int
    fade_out: int
    cut_start: int
    cut_end: int
    loudest: int
    off_db: float
    energies: KWeighted

    @property
    def over_ambience_db(self) -> float | None:
        """Loudness over the level of the ambience while it lasts; None over silence."""
        return None if self.ambience_lufs is None else self.bus_lufs - self.ambience_lufs

    @property
    def tail_end(self) -> int:
        return self.placed.start + len(self.samples)


def balance(
    voices: Sequence[VoiceSource], speakers: Sequence[str], rule: VoiceChain, where: str
) -> dict[str, float]:
    """Gain in dB for each speaker, so that both are equally loud, at the level of the voice bus.

    Raises
    ------
    LevelError: a speaker is silent, or too far from the other.
    """
    from earwitness.scenes.mixing.levels import speaker_levels

    parts: dict[str, list] = {}  # type: ignore[type-arg]
    for voice, speaker in zip(voices, speakers, strict=True):
        parts.setdefault(speaker, []).append(voice.energies)
    gains = {}
    for speaker, lufs in speaker_levels(parts).items():
        if lufs is None:
            raise LevelError(where, f"speaker {speaker} is silent", "voices that are heard")
        gains[speaker] = rule.lufs - lufs
    if len(gains) > 1 and max(gains.values()) - min(gains.values()) > rule.most_balance_db:
        shown = ", ".join(f"{who} {rule.lufs - gain:.1f} LUFS" for who, gain in gains.items())
        raise LevelError(
            where, f"the speakers' voices are at {shown}", f"at most {rule.most_balance_db:g} dB between them",
            "Look for a broken voice file, or raise voice.most_balance_db in the preset.",
        )  # fmt: skip
    return gains


def voice_bus(
    voices: Sequence[VoiceSource],
    places: Sequence[TurnPlace],
    gains_db: Sequence[float],
    frames: int,
    kernel: Samples,
    peak_dbfs: float | None,
    rate: int,
) -> tuple[Samples, float]:
    """All turns in their places, through the voice chain and the room at once, so that tails run through gaps.

    Returns
    -------
    The bus, and the largest reduction of its limiter in dB.
    """
    dry = np.zeros(frames, np.float32)
    for voice, place, gain_db in zip(voices, places, gains_db, strict=True):
        dry[place.start : place.end] += voice.samples * np.float32(amplitude_from_db(gain_db))
    made = convolve(Audio(dry, rate), kernel).samples[:frames]
    return made, 0.0 if peak_dbfs is None else limit(made, peak_dbfs, rate)


def voice_kernel(plan: ScenePlan, room_path: Path, room_sha256: str) -> Samples:
    """Voice chain and room as one response."""
    return _voice_kernel(plan.preset.voice, plan.voice_wet, room_path, room_sha256, plan.preset.rate_hz)  # fmt: skip


@lru_cache(maxsize=8)
def _voice_kernel(rule: VoiceChain, wet: float, path: Path, sha256: str, rate: int) -> Samples:
    response = with_wet_share(load_room(path, sha256), wet)
    chain = _chain(rule.highpass_hz, rule.bells, None, rate)
    padded = np.pad(response, (0, chain.ring_frames()))
    made = chain.apply(Audio(padded, rate)).samples
    made.flags.writeable = False
    return made


def _chain(
    highpass_hz: float | None, bells: Sequence[Bell], lowpass_hz: float | None, rate: int
) -> Filter:
    parts = [] if highpass_hz is None else [highpass(highpass_hz, rate)]
    parts += [peaking(bell.hz, bell.db, rate, bell.q) for bell in bells]
    if lowpass_hz is not None and lowpass_hz < 0.49 * rate:
        parts.append(lowpass(lowpass_hz, rate, order=2))
    return cascade(*parts) if parts else Filter(np.zeros((0, 6)), rate)


def sound_bus(
    sound: PlannedSound,
    placed: Placed,
    plan: ScenePlan,
    library: Path,
    room: Samples,
    ambience: Samples,
) -> SoundBus:
    """One sound: cut, faded, filtered, in its room, at its level.

    Parameters
    ----------
    room: the response at full wet share.
    ambience: the ambience bus at its level, over which the sound must stand.

    Raises
    ------
    LevelError: the take is silent where it is heard, or would have to be raised too far.
    """
    rate, rule = plan.preset.rate_hz, plan.preset.events
    take = read_take(library / sound.take.path, sound.take.sha256, rate)
    heard, fade_in, fade_out = _cut(take, placed, rate)
    made, wet, lowpass_hz = _in_room(heard, sound, plan, room)
    # A tail past the end of the scene is not heard by anybody.
    made = made[: len(ambience) - placed.start]
    length = placed.end - placed.start
    where = (
        f"scene {plan.id}, event {sound.event.id} ({sound.sound}) at {placed.start / rate:.3f} s"
    )
    raw = k_weighted(Audio(made[:length], rate))
    if raw.integrated().silent:
        raise LevelError(
            where, f"what is heard of take {sound.take.id} is silent", "a sound",
            "Run: earwitness sounds check",
        )  # fmt: skip
    gain_at = distance_gain_db(sound.draw.distance_m, sound.profile, rule.distance)
    wanted = _level(sound, rule) + gain_at
    bed = stretch_lufs(ambience, placed.start, placed.end, rate)
    floor = None if bed is None else bed + rule.over_ambience_db
    level = wanted if floor is None else max(wanted, floor + RAISED_TO_DB)
    if level - wanted > rule.most_raise_db:
        raise LevelError(
            where, f"would have to be raised by {level - wanted:.1f} dB to stand over the ambience",
            f"at most {rule.most_raise_db:g} dB", f"Take {plan.ambience.id} is too loud there: use an evener one.",
        )  # fmt: skip
    made, gain_db, energies, limited = _levelled(made, raw, level, rule)
    found = energies.integrated().lufs or level
    if floor is not None and found < floor:
        error = TooQuietError(
            where, f"its peaks allow {found:.1f} LUFS, {floor - found:.1f} dB too little over the ambience",
            f"{rule.over_ambience_db:g} dB over it",
            f"Take {sound.take.id} has little but a peak there: use another, or a quieter ambience.",
        )  # fmt: skip
        error.lacking_db = floor - found
        raise error
    return SoundBus(
        plan=sound,
        placed=placed,
        samples=made,
        gain_db=gain_db,
        limited_db=limited,
        bus_lufs=found,
        wanted_lufs=wanted,
        raised_db=level - wanted,
        ambience_lufs=bed,
        distance_gain_db=gain_at,
        wet=wet,
        lowpass_hz=lowpass_hz,
        fade_in=fade_in,
        fade_out=fade_out,
        cut_start=placed.take_from,
        cut_end=len(take) - placed.take_to,
        loudest=placed.start + salient_sample(made[:length], rate),
        off_db=below_loudest_db(made[:length], placed.salient - placed.start, rate),
        energies=energies,
    )


def salient_of(sound: PlannedSound, plan: ScenePlan, library: Path, room: Samples) -> int:
    """The sample of a take at which the whole of it is loudest as it is heard here: filtered, and in its room.

    Distance takes high frequencies away, so this need not be where the recording itself is loudest.

    Parameters
    ----------
    room: the response at full wet share.
    """
    rate = plan.preset.rate_hz
    take = read_take(library / sound.take.path, sound.take.sha256, rate)
    made, _, _ = _in_room(take, sound, plan, room)
    return salient_sample(made[: len(take)], rate)


def _in_room(
    heard: Samples, sound: PlannedSound, plan: ScenePlan, room: Samples
) -> tuple[Samples, float, float | None]:
    """A sound through its filters and the room, before its level; share of the room, corner of the low-pass."""
    rate, rule = plan.preset.rate_hz, plan.preset.events
    wet = distance_wet(sound.draw.distance_m, plan.voice_wet, rule.distance)
    lowpass_hz = distance_lowpass_hz(sound.draw.distance_m, rule.distance)
    chain = _chain(None if sound.low_frequency else rule.highpass_hz, rule.bells, lowpass_hz, rate)
    dry = chain.apply(Audio(np.pad(heard, (0, samples_at(RING_S, rate))), rate))
    return convolve(dry, with_wet_share(room, wet)).samples, wet, lowpass_hz


def _levelled(
    samples: Samples, raw: KWeighted, level: float, rule: EventChain
) -> tuple[Samples, float, KWeighted, float]:
    """A sound at a level, through its limiter: samples, gain, energies of what is heard, largest reduction in dB.

    What the limiter takes from the loudness is given back, as far as ``most_limited_db`` allows.
    """
    gain_db = raw.gain_db_to(level) or 0.0
    most = gain_db + rule.most_limited_db
    for _ in range(LIMITER_TRIES):
        made = samples * np.float32(amplitude_from_db(gain_db))
        limited = 0.0 if rule.peak_dbfs is None else limit(made, rule.peak_dbfs, raw.rate)
        if not limited:
            return made, gain_db, raw.amplified(gain_db), 0.0
        energies = k_weighted(Audio(made[: raw.frames], raw.rate))
        measured = energies.integrated().lufs
        found = level if measured is None else measured
        if found >= level - LEVEL_TOLERANCE_DB / 2 or gain_db >= most:
            break
        gain_db = min(gain_db + level - found, most)
    return made, gain_db, energies, limited


def _level(sound: PlannedSound, rule: EventChain) -> float:
    return rule.set_back_lufs if sound.draw.set_back else rule.lufs


def _cut(take: Samples, placed: Placed, rate: int) -> tuple[Samples, int, int]:
    """What is heard of a take, faded at both ends, and the lengths of the fades."""
    heard = take[placed.take_from : placed.take_to].copy()
    before, after = placed.salient - placed.start, placed.end - placed.salient
    edge = samples_at(EDGE_FADE_S, rate)
    cut_in = placed.take_from > 0
    cut_out = placed.take_to < len(take)
    fade_in = min(samples_at(CUT_IN_S, rate) if cut_in else edge, before // 2)
    fade_out = min(samples_at(CUT_OUT_S, rate) if cut_out else edge, after // 2)
    heard[:fade_in] *= fade_curve(fade_in)
    heard[len(heard) - fade_out :] *= fade_curve(fade_out)[::-1]
    return heard, fade_in, fade_out


@dataclass(frozen=True, slots=True)
class Ducking:
    """The voice goes down by ``depth_db`` from ``start`` to ``end``, with ramps outside."""

    start: int
    end: int
    depth_db: float


def ducking_of(
    bus: SoundBus, places: Sequence[TurnPlace], clear_start: int, plan: ScenePlan
) -> Ducking | None:
    """How far and when the reacting voice makes way for a sound; None where nothing is under it.

    The voice before the sound is left alone: ramps begin where it has ended.
    """
    rule = plan.preset.rule_for(bus.plan.event.reaction)
    depth = bus.plan.draw.duck_db
    if rule.duck_most_over_db is not None:
        depth = min(depth, rule.duck_most_over_db - (bus.bus_lufs - plan.preset.voice.lufs))
    rate = plan.preset.rate_hz
    ramp = samples_at(DUCK_RAMP_S, rate)
    start, end = max(bus.placed.start, clear_start + ramp), bus.placed.end
    spoken = any(p.speech_start < end and p.speech_end > start for p in places)
    if depth <= 0 or end <= start or not spoken:
        return None
    return Ducking(start, end, -depth)


def duck(samples: Samples, spans: Sequence[Ducking], rate: int) -> None:
    """Turn the voice bus down in place; where spans meet, the lower gain holds."""
    ramp = samples_at(DUCK_RAMP_S, rate)
    groups: list[list[Ducking]] = []
    for span in sorted(spans, key=lambda span: span.start):
        if groups and span.start - ramp < max(s.end for s in groups[-1]) + ramp:
            groups[-1].append(span)
        else:
            groups.append([span])
    for group in groups:
        first = max(min(s.start for s in group) - ramp, 0)
        last = min(max(s.end for s in group) + ramp, len(samples))
        gains = np.ones(last - first, np.float32)
        for span in group:
            local = ((span.start - first) / rate, (span.end - first) / rate)
            np.minimum(
                gains,
                duck_envelope(last - first, rate, [local], span.depth_db, DUCK_RAMP_S, DUCK_RAMP_S),
                out=gains,
            )
        samples[first:last] *= gains


def speaker_spans(
    places: Sequence[TurnPlace], speakers: Sequence[str]
) -> Mapping[str, list[tuple[int, int]]]:
    """Speaker -> when that speaker is heard."""
    found: dict[str, list[tuple[int, int]]] = {}
    for place, speaker in zip(places, speakers, strict=True):
        found.setdefault(speaker, []).append((place.speech_start, place.speech_end))
    return dict(sorted(found.items()))
