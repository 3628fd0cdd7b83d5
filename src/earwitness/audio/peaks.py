"""Sample peak and true peak (ITU-R BS.1770-5, Annex 2).

The true peak is the peak of the analogue wave between the samples: the recording is interpolated fourfold
(twofold from 96 kHz, not at all from 192 kHz). Only stretches that can hold the peak are interpolated: no
interpolated value exceeds :data:`HEADROOM_DB` over the largest sample under the filter, so quieter
stretches are passed over without changing the result.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from earwitness.audio.decibels import amplitude_from_db, db_from_amplitude

if TYPE_CHECKING:
    import numpy.typing as npt

    from earwitness.audio.types import Audio

    Floats = npt.NDArray[np.float64]

HALF_TAPS = 16
"""Samples on either side of an interpolated one."""

_KAISER_BETA = 6.0
_BLOCK = 256
_BLOCKS_AT_ONCE = 256


def sample_peak_dbfs(audio: Audio) -> float | None:
    """Level of the largest absolute sample of any channel in dBFS; ``None`` for zeros or no samples.

    Raises
    ------
    ValueError: samples that are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from earwitness.audio import Audio
    >>> sample_peak_dbfs(Audio(np.array([0.5, -1.0], np.float32), 16000))
    0.0
    """
    return db_from_amplitude(_sample_peak(audio))


def true_peak_dbtp(audio: Audio, only_above_dbfs: float | None = None) -> float | None:
    """Level of the highest peak between samples, in dBTP.

    Parameters
    ----------
    audio: any number of channels; the highest counts.
    only_above_dbfs: do not interpolate if no sample lies above this level, and return the sample peak. A true
        peak is never more than ``HEADROOM_DB`` (7.9 dB) over the sample peak, so with
        ``only_above_dbfs=ceiling - HEADROOM_DB`` the question "is it over the ceiling?" is answered rightly
        at the cost of a maximum. ``None``: always interpolate.

    Returns
    -------
    float or None: never below the sample peak; ``None`` for zeros or no samples.

    Raises
    ------
    ValueError: samples that are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from earwitness.audio import Audio
    >>> n = np.arange(4800)
    >>> wave = 0.5 * np.sin(2 * np.pi * n / 4 + np.pi / 4)   # its samples miss every crest by 3 dB
    >>> tone = Audio((np.hanning(4800) * wave).astype(np.float32), 48000)
    >>> round(sample_peak_dbfs(tone), 1), round(true_peak_dbtp(tone), 1)
    (-9.0, -6.0)
    """
    peak = _sample_peak(audio)
    factor = oversampling(audio.rate)
    if factor == 1 or peak == 0:
        return db_from_amplitude(peak)
    if only_above_dbfs is not None and peak <= amplitude_from_db(only_above_dbfs):
        return db_from_amplitude(peak)
    columns = audio.samples.reshape(audio.frames, audio.channels)
    for channel in range(audio.channels):
        peak = max(peak, _between(np.ascontiguousarray(columns[:, channel]), factor, peak))
    return db_from_amplitude(peak)


def oversampling(rate: int) -> int:
    """How many times a rate is interpolated, so that at least 192 kHz are looked at from 48 kHz on."""
    return 4 if rate < 96_000 else 2 if rate < 192_000 else 1


@functools.cache
def interpolators(factor: int) -> Floats:
    """Taps for each position between two samples: a sinc under a Kaiser window; shape (factor - 1, 32)."""
    places = np.arange(1, factor)[:, None] / factor
    # A value ``place`` after sample 0 is made of samples -15 to 16.
    distance = places - np.arange(1 - HALF_TAPS, HALF_TAPS + 1)[None, :]
    window = np.i0(_KAISER_BETA * np.sqrt(1 - (distance / HALF_TAPS) ** 2)) / np.i0(_KAISER_BETA)
    taps: Floats = np.sinc(distance) * window
    taps /= taps.sum(axis=1, keepdims=True)
    taps.flags.writeable = False
    return taps


def _bound(factor: int) -> float:
    return float(np.abs(interpolators(factor)).sum(axis=1).max())


HEADROOM_DB = 20 * math.log10(_bound(4))
"""Most by which a true peak can exceed the sample peak: the largest sum of absolute taps."""


def _sample_peak(audio: Audio) -> float:
    if not audio.frames:
        return 0.0
    peak = float(max(audio.samples.max(), -audio.samples.min()))
    if not math.isfinite(peak):
        raise ValueError("samples contain NaN or infinity; wanted finite audio")
    return peak


def _between(samples: npt.NDArray[np.float32], factor: int, peak: float) -> float:
    """The largest interpolated value of one channel that is over ``peak``, or something lower."""
    from scipy.fft import irfft, rfft

    count = -(-(len(samples) + 2 * HALF_TAPS) // _BLOCK)
    # Silence around the sound: its first and last samples ring into it.
    padded = np.zeros((count + 2) * _BLOCK, np.float32)
    padded[_BLOCK + HALF_TAPS : _BLOCK + HALF_TAPS + len(samples)] = samples
    blocks = padded.reshape(count + 2, _BLOCK)
    local = np.maximum(blocks.max(axis=1), -blocks.min(axis=1))
    near = np.maximum(np.maximum(local[:-2], local[1:-1]), local[2:])
    candidates = np.flatnonzero(near * _bound(factor) > peak) + 1
    found = 0.0
    width = _BLOCK + 2 * HALF_TAPS
    spectra = rfft(interpolators(factor)[:, ::-1].astype(np.float32), width, axis=1)
    offsets = np.arange(width) - HALF_TAPS
    for first in range(0, len(candidates), _BLOCKS_AT_ONCE):
        chosen = candidates[first : first + _BLOCKS_AT_ONCE]
        rows = rfft(padded[chosen[:, None] * _BLOCK + offsets], axis=1)
        for spectrum in spectra:
            # The first values wrap around; those after them are made of samples of the row.
            made = irfft(rows * spectrum, width, axis=1)[:, 2 * HALF_TAPS - 1 :]
            found = max(found, float(made.max()), -float(made.min()))
    return found
