"""The synthetic library: every recipe and every ambience, several takes each, as files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from earwitness.audio import Audio, encode_audio
from earwitness.errors import UsageError
from earwitness.jobs import pool_map
from earwitness.scenes.bank import Bank
from earwitness.scenes.sound_growing import GrowingLibrary, Made, Origin, store_take
from earwitness.scenes.sound_measure import trim
from earwitness.scenes.sounds import Kind, SoundLibrary, SplitPolicy
from earwitness.scenes.synth.blocks import RATE, Recipe, Signal, finish, length, recorded
from earwitness.stats.streams import stream

VERSION = 1
"""Goes up with every change to what a recipe sounds like; part of every take's origin."""

LICENCE = "CC0 1.0"
SOURCE = "made by earwitness sounds synth"
SPARE = 0.95
"""A take may be this much shorter than the bank's shortest before its dying away is kept."""

LOUDEST_LUFS = -12.0

AMBIENCE_LUFS = -30.0
"""All ambiences are written at one loudness, so that libraries are easy to listen through."""


@dataclass(frozen=True, slots=True)
class SynthJob:
    """One take to make."""

    folder: Path
    kind: Kind
    of: str
    number: int
    seed: int
    shortest_s: float = 0.0

    @property
    def key(self) -> str:
        """What the take depends on; its ``origin``."""
        text = f"earwitness synth {VERSION}|{self.seed}|{self.kind}|{self.of}|{self.number}|{self.shortest_s:g}"
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def stem(self) -> str:
        return f"synth-s{self.seed}-{self.number:02d}"


@cache
def recipes() -> dict[str, Recipe]:
    """Every sound that can be made, by its id in the default bank, sorted."""
    from earwitness.scenes.synth import animals, elements, engines, impacts, mechanisms, tones

    found: dict[str, Recipe] = {}
    for module in (animals, elements, engines, impacts, mechanisms, tones):
        found.update(module.RECIPES)
    return dict(sorted(found.items()))


def make_sound(sound: str, seed: int, number: int, shortest_s: float = 0.0) -> Audio:
    """One take of a sound: mono at 44.1 kHz, peak between -6 and -2 dB of full scale.

    Parameters
    ----------
    shortest_s: keep at least so much of what dies away.

    Raises
    ------
    UsageError: there is no recipe for this sound.

    Examples
    --------
    >>> make_sound("door_knock", seed=1, number=1).rate
    44100
    """
    if sound not in recipes():
        raise UsageError(f"sound {sound!r}", "no recipe", "one of " + ", ".join(recipes()))
    rng = stream(seed, "synth", "sound", sound, str(number))
    # A little silence first, so that no fade takes the edge off a stroke.
    raw = np.concatenate([np.zeros(length(0.01)), recorded(rng, recipes()[sound](rng))])
    made = finish(rng, raw)
    samples = trim(Audio(made.astype(np.float32), RATE)).samples.astype(np.float64)
    if len(samples) < length(shortest_s):
        padded = np.pad(made, (0, length(shortest_s)))
        start = int(np.flatnonzero(np.abs(made) > np.abs(made).max() / 100)[0])
        samples = padded[max(0, start - length(0.02)) :][: length(shortest_s)]
    return not_too_loud(Audio(finish_edges(samples).astype(np.float32), RATE))


def not_too_loud(audio: Audio) -> Audio:
    """Turned down to :data:`LOUDEST_LUFS` if louder: a steady tone at full scale is no recording."""
    from earwitness.audio.loudness import integrated_loudness

    gain = integrated_loudness(audio).gain_db_to(LOUDEST_LUFS)
    if gain is None or gain >= 0:
        return audio
    return Audio((audio.samples * np.float64(10 ** (gain / 20))).astype(np.float32), audio.rate)


def finish_edges(x: Signal) -> Signal:
    """Fades of 3 and 20 ms, so that what was trimmed neither begins nor ends with a click."""
    from earwitness.scenes.synth.blocks import swell

    return x * swell(len(x), 0.003, 0.02)


def make_bed(location: str, seed: int, number: int) -> Audio:
    """One ambience: mono at 44.1 kHz, -30 LUFS, its end joining its beginning."""
    from earwitness.audio.loudness import integrated_loudness
    from earwitness.scenes.synth.ambiences import make_ambience

    rng = stream(seed, "synth", "ambience", location, str(number))
    raw = make_ambience(location, rng)
    audio = Audio((raw / np.abs(raw).max() / 2).astype(np.float32), RATE)
    gain = integrated_loudness(audio).gain_db_to(AMBIENCE_LUFS)
    return Audio((audio.samples * np.float64(10 ** ((gain or 0.0) / 20))).astype(np.float32), RATE)


def make_one(job: SynthJob, form: str = "flac") -> Made:
    """Make, measure and store one take; a function of its job alone."""
    if job.kind == "sound":
        exact = make_sound(job.of, job.seed, job.number, job.shortest_s)
    else:
        exact = make_bed(job.of, job.seed, job.number)
    audio = Audio(np.rint(exact.samples * np.float32(32768)) / np.float32(32768), exact.rate)
    data = encode_audio(audio, "flac" if form == "flac" else "wav")
    origin = Origin(SOURCE, LICENCE, group="", sha256=job.key, synthetic=True)
    take = store_take(job.folder, job.kind, job.of, job.stem, data, f".{form}", origin, "", audio)
    return Made(job.key, () if isinstance(take, str) else (take,), take if isinstance(take, str) else "")  # fmt: skip


def synthesise_library(
    folder: Path,
    bank: Bank,
    *,
    seed: int = 0,
    takes: int = 6,
    ambience_takes: int = 3,
    sounds: Sequence[str] | None = None,
    policy: SplitPolicy | None = None,
    form: str = "flac",
    workers: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> SoundLibrary:
    """Write a library of synthetic takes of every sound and location of a bank that can be made.

    The same seed gives the same takes whatever else is made, with any number of workers; a run that was stopped
    goes on where it was; more takes added later change none.

    Parameters
    ----------
    bank: its sounds and locations are matched with the recipes by id.
    takes, ambience_takes: of each; at least 3 each unless the splits are shared.
    sounds: only these.

    Raises
    ------
    UsageError: a sound that has no recipe or is not of the bank; nothing to make.
    TooFewTakesError: fewer takes than splits.
    """
    from earwitness.scenes.synth.ambiences import BEDS

    known = {sound.id for sound in bank.sounds}
    for sound in sounds or ():
        if sound not in known or sound not in recipes():
            raise UsageError(
                f"sound {sound!r}", "no recipe" if sound in known else "not a sound of the bank",
                "sounds of: earwitness sounds synth --list",
            )  # fmt: skip
    chosen = sorted(sounds or known & set(recipes()))
    places = sorted({x.id for x in bank.locations} & set(BEDS)) if not sounds else []
    shortest = {sound.id: sound.duration_s[0] * SPARE for sound in bank.sounds}
    jobs = [SynthJob(folder, "sound", of, n, seed, shortest[of]) for of in chosen for n in range(1, takes + 1)]  # fmt: skip
    jobs += [SynthJob(folder, "ambience", of, n, seed) for of in places for n in range(1, ambience_takes + 1)]  # fmt: skip
    if not jobs:
        raise UsageError(f"bank {bank.id}", "none of its sounds can be made", "a bank with ids of the default bank")  # fmt: skip
    with GrowingLibrary(folder, policy=policy) as growing:
        waiting = [job for job in jobs if not growing.has(job.key)]
        ready = len(jobs) - len(waiting)
        made = pool_map(partial(make_one, form=form), waiting, workers=workers, chunk=8)
        for done, one in enumerate(made, start=1):
            growing.add(one)
            if on_progress:
                on_progress(ready + done, len(jobs))
        return growing.finish([job.key for job in jobs], name=f"synthetic-{bank.id}")
