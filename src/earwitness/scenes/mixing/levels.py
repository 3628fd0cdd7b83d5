"""Levels inside a mix: how loud a stretch of one bus is, and the one gain of the master."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from earwitness.audio.decibels import amplitude_from_db, db_from_amplitude
from earwitness.audio.filters import highpass
from earwitness.audio.loudness import (
    FLOOR_LUFS,
    OFFSET_DB,
    KWeighted,
    k_weighted,
    k_weighting_sos,
)
from earwitness.audio.peaks import HEADROOM_DB, sample_peak_dbfs, true_peak_dbtp
from earwitness.audio.types import Audio, samples_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from earwitness.audio.types import Samples

PREROLL_S = 0.2
"""Filtered before a stretch, so that the K-weighting has settled where it begins."""
NEAR_DB = 2.0
"""A true peak further under the ceiling is not looked for."""
_BLOCK = 256
SALIENT_S = 0.1
SALIENT_STEP_S = 0.01
SALIENT_TIE_DB = 0.5
"""A steady sound has many moments that are all but equally loud: the first within so much of the loudest counts."""
RUMBLE_HZ = 60.0
PEAK_MARGIN_DB = 0.001
"""Under the ceiling, as rounding to 16 bits may add half a step."""


def stretch_lufs(samples: Samples, start: int, end: int, rate: int) -> float | None:
    """K-weighted level of a stretch, ungated: what stands under or over a sound while it lasts.

    Returns
    -------
    float or None: in LUFS; None under -120 LUFS.
    """
    return stretches_lufs(samples, ((start, end),), rate)


def stretches_lufs(samples: Samples, spans: Iterable[tuple[int, int]], rate: int) -> float | None:
    """As :func:`stretch_lufs`, of several stretches taken together."""
    from scipy.signal import sosfilt

    sos = k_weighting_sos(rate)
    energy, count = 0.0, 0
    for start, end in spans:
        first, last = max(start, 0), min(end, len(samples))
        if last <= first:
            continue
        before = max(first - samples_at(PREROLL_S, rate), 0)
        filtered = sosfilt(sos, samples[before:last].astype(np.float64))[first - before :]
        energy += float(np.einsum("i,i->", filtered, filtered))
        count += last - first
    if not count or energy <= 0:
        return None
    level = OFFSET_DB + 10 * math.log10(energy / count)
    return level if level > FLOOR_LUFS else None


def salient_sample(samples: Samples, rate: int) -> int:
    """The salient moment of a sound: the centre of its loudest 100 ms, in steps of 10 ms.

    Of moments within :data:`SALIENT_TIE_DB` of each other the first is taken. Rumble under 60 Hz does not count, as in
    :func:`earwitness.scenes.sound_measure.peak_time_s`.

    Examples
    --------
    >>> import numpy as np
    >>> wave = np.zeros(44100, np.float32)
    >>> wave[22050:24255] = np.sin(np.arange(2205))
    >>> salient_sample(wave, 44100) / 44100
    0.5
    """
    levels = salient_levels_db(samples, rate)
    first = int(np.argmax(levels >= levels.max() - SALIENT_TIE_DB))
    centre = first * SALIENT_STEP_S + min(SALIENT_S, len(samples) / rate) / 2
    return min(samples_at(centre, rate), len(samples) - 1)


def salient_levels_db(samples: Samples, rate: int) -> NDArray[np.float64]:
    """Energy of 100 ms, every 10 ms, in dB; one value for what is shorter. Rumble under 60 Hz does not count."""
    step = samples_at(SALIENT_STEP_S, rate)
    high = highpass(RUMBLE_HZ, rate).apply(Audio(samples, rate)).samples
    powers = np.add.reduceat(np.square(high, dtype=np.float64), np.arange(0, len(high), step))
    width = min(round(SALIENT_S / SALIENT_STEP_S), len(powers))
    sums = np.convolve(powers, np.ones(width), "valid")
    made: NDArray[np.float64] = 10 * np.log10(np.maximum(sums, 1e-30))
    return made


def below_loudest_db(samples: Samples, at: int, rate: int) -> float:
    """How far the 100 ms around a sample are under the loudest 100 ms."""
    levels = salient_levels_db(samples, rate)
    # Half a window before the moment begins the window whose centre it is.
    place = round((at / rate - SALIENT_S / 2) / SALIENT_STEP_S)
    return float(levels.max() - levels[min(max(place, 0), len(levels) - 1)])


@dataclass(frozen=True, slots=True)
class MasterGain:
    """The static gain of a scene, and why it is what it is.

    ``lufs`` is after the gain; peaks are before it, and ``true_peak_dbtp`` is None where it is more than 2 dB under the
    ceiling after the gain.
    """

    gain_db: float
    lufs: float | None
    sample_peak_dbfs: float | None
    true_peak_dbtp: float | None
    peak_limited: bool


def master_gain(audio: Audio, target_lufs: float, ceiling_dbtp: float) -> MasterGain:
    """The gain that brings a mix to a loudness, or as near as the ceiling allows.

    Raises
    ------
    ValueError: the mix is silent.
    """
    energies = k_weighted(audio)
    gain = energies.gain_db_to(target_lufs)
    if gain is None:
        raise ValueError("the mix is silent")
    sample = sample_peak_dbfs(audio)
    true = peak_near(audio, sample, ceiling_dbtp - gain)
    limit = math.inf if true is None else ceiling_dbtp - PEAK_MARGIN_DB - true
    used = min(gain, limit)
    lufs = energies.amplified(used).integrated().lufs
    return MasterGain(used, lufs, sample, true, gain > limit)


def peak_near(audio: Audio, sample_dbfs: float | None, ceiling_dbtp: float) -> float | None:
    """The true peak, if it is within :data:`NEAR_DB` of the ceiling or over it; otherwise None.

    Interpolated values are bounded by the samples around them, so only what stands near samples that are loud
    enough is interpolated; the rest is blanked, which can only lower what is found there.
    """
    least = ceiling_dbtp - NEAR_DB
    if sample_dbfs is None or sample_dbfs <= least - HEADROOM_DB:
        return None
    loud = _around(audio.samples, amplitude_from_db(least - HEADROOM_DB))
    found = true_peak_dbtp(Audio(loud, audio.rate))
    return found if found is not None and found > least else None


def _around(samples: Samples, least: float) -> Samples:
    """What lies within a block of samples over an amplitude, one stretch after the other, silence between."""
    whole = len(samples) // _BLOCK * _BLOCK
    table = samples[:whole].reshape(-1, _BLOCK)
    over = np.maximum(table.max(axis=1), -table.min(axis=1)) > least
    rest = samples[whole:]
    over = np.append(over, bool(len(rest)) and float(np.abs(rest).max()) > least)
    near = over.copy()
    near[1:] |= over[:-1]
    near[:-1] |= over[1:]
    parts = []
    silence = np.zeros(_BLOCK, np.float32)
    edges = np.flatnonzero(np.diff(near.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
    for first, last in edges:
        parts += [samples[first * _BLOCK : last * _BLOCK], silence]
    return np.concatenate(parts) if parts else silence


def speaker_levels(parts: dict[str, list[KWeighted]]) -> dict[str, float | None]:
    """Loudness of each speaker's turns, gated together."""
    from earwitness.audio.loudness import combined_loudness

    return {who: combined_loudness(each).lufs for who, each in sorted(parts.items())}


__all__ = [
    "MasterGain",
    "amplitude_from_db",
    "below_loudest_db",
    "db_from_amplitude",
    "master_gain",
    "peak_near",
    "salient_levels_db",
    "salient_sample",
    "speaker_levels",
    "stretch_lufs",
    "stretches_lufs",
]
