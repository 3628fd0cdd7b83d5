"""Fundamental frequency of one voice: normalised autocorrelation, then the cheapest path.

The method is that of Boersma (1993), "Accurate short-term analysis of the fundamental frequency and the
harmonics-to-noise ratio of a sampled sound", IFA Proceedings 17, 97-110: the autocorrelation of a windowed
frame is divided by that of the window, its maxima are candidates, and dynamic programming picks one
candidate or "unvoiced" per frame. The costs below are the ones published there. A second pass narrows
the range to what this voice does, which removes most octave errors (Hirst 2011, "The analysis by
synthesis of speech melody", JoSS 1, 55-83, uses the same idea with quartiles).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STEP_S = 0.01
FLOOR_HZ = 65.0
CEILING_HZ = 650.0

_WINDOW_S = 0.045  # three periods of the floor
_CANDIDATES = 6
_SMOOTH_HZ = 2500.0
_OVERSAMPLE = 2  # lags at twice the sample rate: maxima of bright voices are narrow
_VOICING_THRESHOLD = 0.45
_SILENCE_THRESHOLD = 0.03
_OCTAVE_COST = 0.01
_OCTAVE_JUMP_COST = 0.35
_VOICED_UNVOICED_COST = 0.14
# The second pass: from this share of the lower to this multiple of the upper quartile.
_NARROW_BELOW = 0.6
_NARROW_ABOVE = 2.2


@dataclass(frozen=True, slots=True)
class PitchTrack:
    """Pitch of every frame.

    Attributes
    ----------
    f0_hz: (n,) fundamental frequency, 0 where unvoiced.
    strength: (n,) normalised autocorrelation at the chosen lag, 0 to 1; 0 where unvoiced.
    step_s: time between frames; frame ``i`` is centred on ``i * step_s``.
    """

    f0_hz: Floats
    strength: Floats
    step_s: float = STEP_S

    @property
    def voiced(self) -> Bools:
        return self.f0_hz > 0

    @property
    def hnr_db(self) -> Floats:
        """Harmonics-to-noise ratio of the voiced frames (Boersma 1993, equation 4), in dB."""
        strength = np.clip(self.strength[self.voiced], 1e-3, 1 - 1e-4)
        return np.asarray(10 * np.log10(strength / (1 - strength)))


def centred_frames(samples: Floats, width: int, step: int) -> Floats:
    """Frames of ``width`` samples centred on 0, step, 2 step, ...; zeros beyond both ends.

    Returns
    -------
    A read-only view of shape (1 + len(samples) // step, width).
    """
    count = 1 + len(samples) // step
    before = width // 2
    after = max(0, (count - 1) * step + width - before - len(samples))
    padded = np.pad(samples, (before, after))
    return sliding_window_view(padded, width)[::step][:count]


def track_pitch(
    samples: Floats, rate: int, *, floor_hz: float = FLOOR_HZ, ceiling_hz: float = CEILING_HZ
) -> PitchTrack:
    """Pitch of a mono signal every 10 ms.

    Parameters
    ----------
    samples: (n,) mono signal of any level.
    rate: sample rate in Hz, 8000 or more.
    floor_hz, ceiling_hz: the range looked at.

    Examples
    --------
    >>> import numpy as np
    >>> tone = np.sin(2 * np.pi * 220 * np.arange(16000) / 16000)
    >>> track = track_pitch(tone, 16000)
    >>> round(float(np.median(track.f0_hz)))
    220
    """
    step = round(rate * STEP_S)
    correlation, loudness = _normalised_autocorrelation(samples, rate, step, floor_hz)
    lag_rate = rate * _OVERSAMPLE
    track = _best_path(correlation, loudness, lag_rate, floor_hz, ceiling_hz)
    heard = track.f0_hz[track.voiced]
    if len(heard) < 5:
        return track
    lower, upper = np.percentile(heard, [25, 75])
    return _best_path(
        correlation,
        loudness,
        lag_rate,
        max(floor_hz, float(lower) * _NARROW_BELOW),
        min(ceiling_hz, float(upper) * _NARROW_ABOVE),
    )


def _normalised_autocorrelation(
    samples: Floats, rate: int, step: int, floor_hz: float
) -> tuple[Floats, Floats]:
    """Autocorrelation over lags 0..1/floor at the oversampled rate, and the frames' relative peaks."""
    width = round(rate * _WINDOW_S)
    frames = centred_frames(samples, width, step)
    peak = float(np.max(np.abs(samples))) if len(samples) else 0.0
    # Relative to the loudest sample, so that the result does not depend on the level.
    frames = frames / (peak or 1.0)
    frames = frames - frames.mean(axis=1, keepdims=True)
    middle = slice(width // 2 - step, width // 2 + step)
    loudness = np.max(np.abs(frames[:, middle]), axis=1)
    window = np.hanning(width)
    lags = int(rate * _OVERSAMPLE / floor_hz) + 3
    size = 1 << int(np.ceil(np.log2(width + lags // _OVERSAMPLE + 1)))
    power = np.abs(np.fft.rfft(frames * window, size, axis=1)) ** 2
    # Above the first formants there is breath and sampling error rather than pitch.
    hz = np.fft.rfftfreq(size, 1 / rate)
    power *= np.exp(-((hz / _SMOOTH_HZ) ** 2))
    correlation = np.fft.irfft(power, size * _OVERSAMPLE, axis=1)[:, :lags]
    of_window = np.fft.irfft(
        np.abs(np.fft.rfft(window, size)) ** 2 * np.exp(-((hz / _SMOOTH_HZ) ** 2)),
        size * _OVERSAMPLE,
    )[:lags]
    energy = correlation[:, :1]
    # Far below 16-bit resolution there is nothing periodic left to find.
    audible = energy > 1e-10
    correlation = np.where(audible, correlation / np.where(audible, energy, 1.0), 0.0)
    return correlation / (of_window / of_window[0]), loudness


def _best_path(
    correlation: Floats, loudness: Floats, lag_rate: int, floor_hz: float, ceiling_hz: float
) -> PitchTrack:
    """Viterbi over the candidates of all frames; candidate 0 is "unvoiced"."""
    hz, strength, score = _candidates(correlation, lag_rate, floor_hz, ceiling_hz)
    relative = loudness / (float(loudness.max()) or 1.0)
    quiet = 2.0 - relative / (_SILENCE_THRESHOLD / (1.0 + _VOICING_THRESHOLD))
    score[:, 0] = _VOICING_THRESHOLD + np.maximum(0.0, quiet)
    octaves = np.log2(np.where(hz > 0, hz, 1.0))
    voiced = hz > 0
    # Boersma states the transition costs per 10 ms step, which is ours.
    jump = _OCTAVE_JUMP_COST * np.abs(octaves[1:, :, None] - octaves[:-1, None, :])
    both = voiced[1:, :, None] & voiced[:-1, None, :]
    either = voiced[1:, :, None] ^ voiced[:-1, None, :]
    cost = np.where(both, jump, np.where(either, _VOICED_UNVOICED_COST, 0.0))
    count = len(score)
    total = score[0]
    back = np.zeros((count, score.shape[1]), dtype=np.intp)
    rows = np.arange(score.shape[1])
    for i in range(1, count):
        through = total[None, :] - cost[i - 1]
        best = through.argmax(axis=1)
        back[i] = best
        total = through[rows, best] + score[i]
    path = np.zeros(count, dtype=np.intp)
    path[-1] = int(total.argmax())
    for i in range(count - 1, 0, -1):
        path[i - 1] = back[i, path[i]]
    index = np.arange(count)
    return PitchTrack(f0_hz=hz[index, path], strength=strength[index, path])


def _candidates(
    correlation: Floats, lag_rate: int, floor_hz: float, ceiling_hz: float
) -> tuple[Floats, Floats, Floats]:
    """The strongest maxima of each frame, refined by a parabola; column 0 is left for "unvoiced"."""
    shortest = max(2, int(np.ceil(lag_rate / ceiling_hz)))
    longest = min(correlation.shape[1] - 2, int(lag_rate / floor_hz))
    count = len(correlation)
    shape = (count, _CANDIDATES + 1)
    hz, strength, score = np.zeros(shape), np.zeros(shape), np.full(shape, -np.inf)
    left = correlation[:, shortest - 1 : longest]
    middle = correlation[:, shortest : longest + 1]
    right = correlation[:, shortest + 1 : longest + 2]
    lags = np.arange(shortest, longest + 1)
    preference = _OCTAVE_COST * np.log2(floor_hz * lags / lag_rate)
    is_peak = (middle > left) & (middle >= right) & (middle > 0.2)
    worth = np.where(is_peak, middle - preference, -np.inf)
    few = min(_CANDIDATES, worth.shape[1])
    order = np.argpartition(-worth, few - 1, axis=1)[:, :few]
    order.sort(axis=1)
    row = np.arange(count)[:, None]
    y0, y1, y2 = left[row, order], middle[row, order], right[row, order]
    found = is_peak[row, order]
    bend = y0 - 2 * y1 + y2
    shift = np.where(found, 0.5 * (y0 - y2) / np.where(bend == 0, 1.0, bend), 0.0)
    lag = lags[order] + shift
    height = y1 - 0.25 * (y0 - y2) * shift
    # Above 1 is an artefact of dividing by the window; reflected as Boersma does.
    height = np.where(height > 1, 1 / np.maximum(height, 1.0), height)
    cost = _OCTAVE_COST * np.log2(floor_hz * lag / lag_rate)
    hz[:, 1 : few + 1] = np.where(found, lag_rate / lag, 0.0)
    strength[:, 1 : few + 1] = np.where(found, height, 0.0)
    score[:, 1 : few + 1] = np.where(found, height - cost, -np.inf)
    return hz, strength, score
