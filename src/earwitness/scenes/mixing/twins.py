"""Twins of a scene: the same in everything but one thing.

``mute-<event>``, ``mute-all``: sounds left out. ``swap-<event>``: another sound of the location at the same moment.
``speech-only``: the voices alone. Gains, fades and ducking are those of the audible version, so that a twin is
bit-identical to it outside the spans of the sounds in question, their room's tail included (``speech-only``, which
has no ambience, differs everywhere).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from earwitness.audio.decibels import amplitude_from_db
from earwitness.audio.peaks import true_peak_dbtp
from earwitness.audio.types import Audio
from earwitness.errors import DataError, UsageError
from earwitness.scenes.mixing.buses import LevelError, SoundBus
from earwitness.scenes.mixing.levels import PEAK_MARGIN_DB, peak_near
from earwitness.scenes.mixing.render import Scene, add_buses, swapped

if TYPE_CHECKING:
    from earwitness.audio.types import Samples

AUDIBLE = "audible"
SPEECH_ONLY = "speech-only"
MUTE_ALL = "mute-all"
EACH = "each"

_TRIES = 4
"""How often a swapped sound is turned down: what one bus loses, the sum does not lose exactly."""


@dataclass(frozen=True, slots=True, eq=False)
class Twin:
    """A twin's samples, the sounds in it as they are heard, and where it differs (in samples).

    ``sounds`` has the audible version's sounds, with swapped ones in their place; ``muted`` lists those left out.
    """

    variant: str
    samples: Samples
    sounds: tuple[SoundBus, ...]
    muted: frozenset[str]
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class TwinRequest:
    """Which twins are asked for: event ids, ``all`` or ``each`` to mute; ids or ``each`` to swap."""

    mute: tuple[str, ...] = ()
    swap: tuple[str, ...] = ()
    speech_only: bool = False

    def variants(self, events: Iterable[str]) -> tuple[str, ...]:
        """The twins of a scene with these events, in a fixed order; one that has none of them has none."""
        known = tuple(events)
        found: list[str] = []
        for name in self.mute:
            if name == "all":
                found += [MUTE_ALL] if known else []
            else:
                found += [f"mute-{event}" for event in known if name in (event, EACH)]
        for name in self.swap:
            found += [f"swap-{event}" for event in known if name in (event, EACH)]
        if self.speech_only:
            found.append(SPEECH_ONLY)
        return tuple(dict.fromkeys(found))

    def check(self, events: Iterable[str]) -> None:
        """Refuse names that no scene has.

        Raises
        ------
        UsageError: a name that is no event of any scene.
        """
        known = set(events)
        for option, names, words in (
            ("--mute", self.mute, ("all", EACH)),
            ("--swap-sound", self.swap, (EACH,)),
        ):
            for name in names:
                if name not in known and name not in words:
                    shown = ", ".join(sorted(known)) or "none"
                    raise UsageError(
                        option, f"no scene has an event {name!r}", f"{', '.join(words)} or one of {shown}"
                    )  # fmt: skip


def swap_events(variants: Sequence[str]) -> tuple[str, ...]:
    """Events whose sound is swapped in one of these twins."""
    return tuple(v.removeprefix("swap-") for v in variants if v.startswith("swap-"))


def make_twin(scene: Scene, variant: str) -> Twin:
    """A twin of a mastered scene.

    Raises
    ------
    DataError: no such twin of this scene.
    PlacementError, LevelError: a swapped sound does not fit, or leaving a sound out would clip.
    """
    if variant == SPEECH_ONLY:
        spans: tuple[tuple[int, int], ...] = ((0, scene.timeline.frames),)
        muted = frozenset(bus.plan.event.id for bus in scene.sounds)
        return _checked(scene, Twin(variant, _sum(scene, (), ambience=False), scene.sounds, muted, spans))  # fmt: skip
    action, _, event = variant.partition("-")
    if action == "mute":
        left_out = [b for b in scene.sounds if event in ("all", b.plan.event.id)]
        if left_out:
            kept = [bus for bus in scene.sounds if bus not in left_out]
            spans = tuple((bus.placed.start, bus.tail_end) for bus in left_out)
            muted = frozenset(bus.plan.event.id for bus in left_out)
            return _checked(scene, Twin(variant, _sum(scene, kept), scene.sounds, muted, spans))
    if action == "swap" and any(bus.plan.event.id == event for bus in scene.sounds):
        return _swap(scene, variant, event)
    raise DataError(f"scene {scene.plan.id}", f"has no twin {variant!r}")


def _sum(scene: Scene, sounds: Sequence[SoundBus], *, ambience: bool = True) -> Samples:
    samples = add_buses(scene, sounds, ambience=ambience)
    samples *= np.float32(amplitude_from_db(scene.master.gain_db))
    return samples


def _checked(scene: Scene, twin: Twin) -> Twin:
    peak = float(np.abs(twin.samples).max())
    if peak > 1.0:
        raise LevelError(
            f"scene {scene.plan.id}, twin {twin.variant}", f"its peak is {peak:.3f} of full scale",
            "at most 1", "The sound it lacks cancels a peak: give the scene another seed.",
        )  # fmt: skip
    return twin


def _swap(scene: Scene, variant: str, event: str) -> Twin:
    """The other sound, turned down on its own bus where the whole would be over the ceiling."""
    old = next(bus for bus in scene.sounds if bus.plan.event.id == event)
    new = swapped(scene, event)
    ceiling = scene.plan.preset.master.ceiling_dbtp
    margin = scene.plan.preset.events.over_ambience_db
    for _ in range(_TRIES):
        sounds = tuple(new if bus is old else bus for bus in scene.sounds)
        samples = _sum(scene, sounds)
        first = min(old.placed.start, new.placed.start)
        last = max(old.tail_end, new.tail_end)
        audio = Audio(samples, scene.rate)
        sample_peak = 20 * float(np.log10(max(float(np.abs(samples).max()), 1e-9)))
        true = peak_near(audio, sample_peak, ceiling)
        if true is None or true <= ceiling:
            return _checked(scene, Twin(variant, samples, sounds, frozenset(), ((first, last),)))
        own = true_peak_dbtp(Audio(new.samples, scene.rate)) or 0.0
        own += scene.master.gain_db
        # What is over the ceiling in the sum has to go from this bus alone.
        over = 10 ** (true / 20) - 10 ** ((ceiling - PEAK_MARGIN_DB) / 20)
        left = max(10 ** (own / 20) - over, 1e-6)
        new = _turned(new, 20 * float(np.log10(left)) - own)
        if new.over_ambience_db is not None and new.over_ambience_db < margin:
            break
    raise LevelError(
        f"scene {scene.plan.id}, twin {variant}",
        f"with {new.plan.sound} from take {new.plan.take.id} it is over {ceiling:g} dBTP",
        f"a sound that fits under it and stands {margin:g} dB over the ambience",
        "Swap another event, or add takes to the library.",
    )


def _turned(bus: SoundBus, gain_db: float) -> SoundBus:
    return replace(
        bus,
        samples=bus.samples * np.float32(amplitude_from_db(gain_db)),
        gain_db=bus.gain_db + gain_db,
        bus_lufs=bus.energies.amplified(gain_db).integrated().lufs or bus.bus_lufs + gain_db,
        energies=bus.energies.amplified(gain_db),
    )
