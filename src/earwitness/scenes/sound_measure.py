"""What a take measures, and the rule by which silence around it is cut away.

Conventions
-----------
- The *envelope* is the RMS of 10 ms blocks of the mono sum.
- *Trimmed*: from the first to the last block within 40 dB of the loudest one, with 30 ms left on both sides.
- The *loudest moment* is the centre of the loudest 100 ms after K-weighting's high-pass of about 60 Hz, so that
  rumble nobody hears does not choose it.
- The *bandwidth* is the upper edge of the highest 200 Hz band whose energy, over the whole take, is within 60 dB
  of the strongest band. Below 10 kHz a take is *band-limited*: dull, whether it was recorded at a low rate or
  is such a sound. A class whose takes of one kind are all dull gives that kind away.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from earwitness.audio.types import Audio, samples_at

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

BLOCK_S = 0.01
TRIM_DB = 40.0
PAD_S = 0.03
PEAK_BLOCKS = 10
BAND_HZ = 200.0
BANDWIDTH_DB = 60.0
BAND_LIMITED_HZ = 10_000.0
GAP_S = 0.5
CUT_FADE_S = 0.05
LEAD_S = 0.25
"""Kept before the loudest moment when a long take is cut."""


@dataclass(frozen=True, slots=True)
class Measures:
    """Figures of one take. ``loudness_lufs`` is None where nothing is above -70 LUFS."""

    duration_s: float
    loudness_lufs: float | None
    bandwidth_hz: float
    band_limited: bool
    peak_time_s: float
    peak: float


def envelope(audio: Audio) -> Floats:
    """RMS of every 10 ms, the last block padded with zeros; shape (blocks,)."""
    block = samples_at(BLOCK_S, audio.rate)
    mono = _mono(audio)
    padded = np.pad(mono, (0, -len(mono) % block)).reshape(-1, block)
    levels: Floats = np.sqrt(np.mean(np.square(padded), axis=1))
    return levels


def _mono(audio: Audio) -> Floats:
    wide = audio.samples.astype(np.float64)
    return wide if wide.ndim == 1 else wide.mean(axis=1)


def measure_take(audio: Audio) -> Measures:
    """Measure a take of any rate and number of channels.

    Examples
    --------
    >>> tone = Audio(np.sin(np.arange(44100) * 2 * np.pi * 1000 / 44100).astype(np.float32), 44100)
    >>> measures = measure_take(tone)
    >>> round(measures.duration_s, 3), measures.band_limited
    (1.0, True)
    """
    from earwitness.audio.loudness import integrated_loudness

    band = bandwidth_hz(audio)
    loudness = integrated_loudness(audio, channel_weights=(1.0,) * audio.channels)
    return Measures(
        duration_s=round(audio.seconds, 6),
        loudness_lufs=None if loudness.lufs is None else round(loudness.lufs, 3),
        bandwidth_hz=band,
        band_limited=band < BAND_LIMITED_HZ,
        peak_time_s=peak_time_s(audio),
        peak=float(np.abs(audio.samples).max(initial=0.0)),
    )


def peak_time_s(audio: Audio) -> float:
    """Centre of the loudest 100 ms in seconds, rounded to 1 ms."""
    from scipy.signal import sosfilt

    mono = _mono(audio)
    high = sosfilt(_rumble_filter(audio.rate), mono)
    blocks = np.square(envelope(Audio(high.astype(np.float32), audio.rate)))
    width = min(PEAK_BLOCKS, len(blocks))
    power = np.convolve(blocks, np.ones(width), "valid")
    centre = (int(np.argmax(power)) + width / 2) * BLOCK_S
    return round(min(centre, audio.seconds), 3)


@cache
def _rumble_filter(rate: int) -> Floats:
    from scipy.signal import butter

    made: Floats = butter(2, min(60.0, rate / 4), "highpass", fs=rate, output="sos")
    return made


def bandwidth_hz(audio: Audio) -> float:
    """Highest frequency with energy within 60 dB of the strongest 200 Hz band; 0 for silence."""
    mono = _mono(audio)
    size = 1024 if audio.rate > 16_000 else 256
    if len(mono) < size:
        mono = np.pad(mono, (0, size - len(mono)))
    hop = size // 2
    frames = np.lib.stride_tricks.sliding_window_view(mono, size)[::hop]
    window = np.hanning(size)
    power = np.zeros(size // 2 + 1)
    for first in range(0, len(frames), 2048):
        power += np.square(np.abs(np.fft.rfft(frames[first : first + 2048] * window))).sum(axis=0)
    if not power.any():
        return 0.0
    width = max(1, round(BAND_HZ * size / audio.rate))
    bands = np.add.reduceat(power, np.arange(0, len(power), width))
    heard = np.flatnonzero(bands >= bands.max() * 10 ** (-BANDWIDTH_DB / 10))
    return round(min((int(heard[-1]) + 1) * width * audio.rate / size, audio.rate / 2), 1)


def sounding_blocks(audio: Audio, below_db: float = TRIM_DB) -> npt.NDArray[np.intp]:
    """Indices of the 10 ms blocks within ``below_db`` of the loudest; empty for silence."""
    levels = envelope(audio)
    top = float(levels.max(initial=0.0))
    if top <= 0:
        return np.zeros(0, np.intp)
    return np.flatnonzero(levels >= top * 10 ** (-below_db / 20))


def trim(audio: Audio) -> Audio:
    """Cut silence away at both ends; see the module for the rule. Silence is returned as it is."""
    loud = sounding_blocks(audio)
    if not len(loud):
        return audio
    first = max(0.0, int(loud[0]) * BLOCK_S - PAD_S)
    last = (int(loud[-1]) + 1) * BLOCK_S + PAD_S
    start, end = samples_at(first, audio.rate), min(audio.frames, samples_at(last, audio.rate))
    return Audio(np.ascontiguousarray(audio.samples[start:end]), audio.rate)


def split_events(audio: Audio, gap_s: float = GAP_S) -> tuple[Audio, ...]:
    """Divide a recording at every stretch of ``gap_s`` or more that is 40 dB under its loudest block.

    Returns
    -------
    The trimmed parts, in order; one part where there is no such gap.
    """
    loud = sounding_blocks(audio)
    if not len(loud):
        return (audio,)
    breaks = np.flatnonzero(np.diff(loud) > gap_s / BLOCK_S)
    starts = loud[np.concatenate([[0], breaks + 1])]
    ends = loud[np.concatenate([breaks, [len(loud) - 1]])] + 1
    parts = []
    for start, end in zip(starts, ends, strict=True):
        first = max(0.0, start * BLOCK_S - PAD_S)
        last = end * BLOCK_S + PAD_S
        piece = audio.samples[samples_at(first, audio.rate) : samples_at(last, audio.rate)]
        parts.append(Audio(np.ascontiguousarray(piece), audio.rate))
    return tuple(parts)


def cut_long(audio: Audio, longest_s: float) -> Audio:
    """Shorten a take to ``longest_s`` around its loudest moment, with fades of 50 ms where it was cut."""
    if audio.seconds <= longest_s:
        return audio
    length = samples_at(longest_s, audio.rate)
    start = samples_at(max(0.0, peak_time_s(audio) - LEAD_S), audio.rate)
    start = min(start, audio.frames - length)
    samples = audio.samples[start : start + length].copy()
    fade = samples_at(CUT_FADE_S, audio.rate)
    ramp = (0.5 - 0.5 * np.cos(np.pi * (np.arange(fade) + 0.5) / fade)).astype(np.float32)
    ramp = ramp if samples.ndim == 1 else ramp[:, None]
    if start > 0:
        samples[:fade] *= ramp
    if start + length < audio.frames:
        samples[-fade:] *= ramp[::-1]
    return Audio(samples, audio.rate)
