"""Voice quality of the voiced frames: formants, cepstral peak, harmonics, cycle-to-cycle changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earwitness.models.prosody.pitch import STEP_S, Floats, PitchTrack, centred_frames

_WIDTH_S = 0.04
_SIZE = 1024
_FORMANT_RATE_HZ = 11_000  # three to five formants of an adult lie below half of it
_LPC_ORDER = 12
_LPC_SIZE = 512


@dataclass(frozen=True, slots=True)
class VoiceQuality:
    """One value a voiced frame; NaN where a formant was not found.

    Attributes
    ----------
    formants_hz: (n, 3) centre frequencies of F1 to F3.
    cpp_db: (n,) cepstral peak prominence (Hillenbrand & Houde 1996).
    h1_h2_db: (n,) first over second harmonic.
    h1_a3_db: (n,) first harmonic over the strongest partial near F3.
    """

    formants_hz: Floats
    cpp_db: Floats
    h1_h2_db: Floats
    h1_a3_db: Floats


@dataclass(frozen=True, slots=True)
class CycleChanges:
    """Cycle-to-cycle perturbation: ``jitter`` as a share of the period, ``shimmer_db`` of the peaks."""

    jitter: float
    shimmer_db: float
    cycles: int


def voice_quality(
    samples: Floats, rate: int, track: PitchTrack, chosen: NDArray[np.intp]
) -> VoiceQuality:
    """Describe the frames whose indices are in ``chosen``; all of them must be voiced."""
    width = round(rate * _WIDTH_S)
    frames = centred_frames(samples, width, round(rate * STEP_S))[chosen]
    f0 = track.f0_hz[chosen]
    frames = frames * np.hanning(width)
    spectrum = np.fft.rfft(frames, _SIZE, axis=1)
    power = np.abs(spectrum) ** 2
    formants = _formants(power, rate)
    first = _harmonic_db(frames, f0, rate)
    second = _harmonic_db(frames, 2 * f0, rate)
    return VoiceQuality(
        formants_hz=formants,
        cpp_db=_cepstral_peak(power, f0, rate),
        h1_h2_db=np.clip(first - second, -40, 40),
        h1_a3_db=np.clip(first - _strongest_near(power, formants[:, 2], f0, rate), -40, 80),
    )


def _formants(power: Floats, rate: int) -> Floats:
    """Peaks of a linear-prediction envelope of the band up to 5.5 kHz (selective LP, Makhoul 1975)."""
    bins = round(_SIZE * _FORMANT_RATE_HZ / rate / 2) + 1
    hz = np.arange(bins) * rate / _SIZE
    # Pre-emphasis of 6 dB an octave above 50 Hz, on the power spectrum.
    band = power[:, :bins] * (1 + (hz / 50.0) ** 2)
    correlation = np.fft.irfft(band, axis=1)[:, : _LPC_ORDER + 1]
    envelope = -np.abs(np.fft.rfft(_levinson(correlation), _LPC_SIZE, axis=1))
    step = 2 * hz[-1] / _LPC_SIZE
    left, middle, right = envelope[:, :-2], envelope[:, 1:-1], envelope[:, 2:]
    centre = (np.arange(middle.shape[1]) + 1) * step
    is_peak = (middle > left) & (middle >= right) & (centre > 180) & (centre < 5000)
    bend = left - 2 * middle + right
    shift = 0.5 * (left - right) / np.where(bend == 0, 1.0, bend)
    refined = np.where(is_peak, centre + shift * step, np.inf)
    lowest = np.sort(refined, axis=1)[:, :3]
    return np.where(np.isfinite(lowest), lowest, np.nan)


def _levinson(correlation: Floats) -> Floats:
    """Prediction polynomials of many frames at once; shape (n, order + 1), first column 1."""
    count, terms = correlation.shape
    polynomial = np.zeros((count, terms))
    polynomial[:, 0] = 1.0
    error = correlation[:, 0] * (1 + 1e-9) + 1e-12
    for i in range(1, terms):
        lagged = correlation[:, i:0:-1]
        reflection = -np.sum(polynomial[:, :i] * lagged, axis=1) / error
        polynomial[:, 1 : i + 1] += reflection[:, None] * polynomial[:, i - 1 :: -1][:, :i]
        error = np.maximum(error * (1 - reflection**2), 1e-12)
    return polynomial


def _cepstral_peak(power: Floats, f0: Floats, rate: int) -> Floats:
    """Height of the cepstrum at the pitch period over a line fitted through it, in dB."""
    log_power = 10 * np.log10(np.maximum(power, power.max(axis=1, keepdims=True) * 1e-8 + 1e-20))
    cepstrum = np.abs(np.fft.irfft(log_power, axis=1))
    low, high = round(rate * 0.001), round(rate * 0.0166)
    part = 20 * np.log10(np.maximum(cepstrum[:, low:high], 1e-6))
    x = np.arange(low, high, dtype=np.float64)
    x_centred = x - x.mean()
    slope = part @ x_centred / np.sum(x_centred**2)
    near = np.abs(x[None, :] - (rate / f0)[:, None]) <= np.maximum(2, 0.1 * rate / f0)[:, None]
    place = np.where(near, part, -np.inf).argmax(axis=1)
    line = part.mean(axis=1) + slope * x_centred[place]
    return np.asarray(part[np.arange(len(part)), place] - line)


def _harmonic_db(windowed: Floats, hz: Floats, rate: int) -> Floats:
    """Level of one partial of each frame, by a single-frequency Fourier sum."""
    time = np.arange(windowed.shape[1]) / rate
    wave = np.exp(-2j * np.pi * hz[:, None] * time[None, :])
    amplitude = np.abs(np.einsum("ij,ij->i", windowed, wave))
    return np.asarray(20 * np.log10(np.maximum(amplitude, 1e-9)))


def _strongest_near(power: Floats, hz: Floats, f0: Floats, rate: int) -> Floats:
    """Level of the strongest bin within one harmonic of ``hz``; NaN where ``hz`` is."""
    bins = np.arange(power.shape[1]) * rate / _SIZE
    near = np.abs(bins[None, :] - np.nan_to_num(hz)[:, None]) <= f0[:, None]
    strongest = np.where(near, power, 0.0).max(axis=1)
    return np.where(np.isnan(hz), np.nan, 10 * np.log10(np.maximum(strongest, 1e-18)))


def cycle_changes(samples: Floats, rate: int, track: PitchTrack) -> CycleChanges:
    """Jitter and shimmer (both "local") from the waveform's highest point in each cycle.

    Peaks are followed from one to the next at the tracked period, give or take a fifth; times between
    them are refined by a parabola. Of neighbouring periods that differ by a factor above 1.3 nothing is
    counted, as in Praat's definition.

    Examples
    --------
    A steady tone has neither:

    >>> import numpy as np
    >>> from earwitness.models.prosody.pitch import track_pitch
    >>> tone = np.sin(2 * np.pi * 150 * np.arange(16000) / 16000)
    >>> cycle_changes(tone, 16000, track_pitch(tone, 16000)).jitter < 0.002
    True
    """
    periods: list[Floats] = []
    peaks: list[Floats] = []
    for start, stop in runs(track.voiced):
        if stop - start < 3:
            continue
        times, heights = _follow_peaks(samples, rate, track, start, stop)
        if len(times) > 3:
            periods.append(np.diff(times))
            peaks.append(heights)
    differences = [np.abs(np.diff(t)) for t in periods]
    plausible = [np.maximum(t[1:], t[:-1]) < 1.3 * np.minimum(t[1:], t[:-1]) for t in periods]
    kept = np.concatenate(
        [d[k] for d, k in zip(differences, plausible, strict=True)] or [np.zeros(0)]
    )
    steps = np.concatenate(
        [np.abs(np.diff(20 * np.log10(np.maximum(h, 1e-9)))) for h in peaks] or [np.zeros(0)]
    )
    steps = steps[steps < 20 * np.log10(1.6)]
    if len(kept) < 3 or len(steps) < 3:
        return CycleChanges(0.0, 0.0, 0)
    period = float(np.concatenate(periods).mean())
    return CycleChanges(float(kept.mean()) / period, float(steps.mean()), len(kept))


def _follow_peaks(
    samples: Floats, rate: int, track: PitchTrack, start: int, stop: int
) -> tuple[Floats, Floats]:
    """Times (in samples) and heights of the peaks of one voiced stretch, frames ``start`` to ``stop``."""
    step = rate * STEP_S
    begin, end = max(1, int(start * step)), min(len(samples) - 2, int((stop - 1) * step))
    stretch = samples[begin:end]
    if len(stretch) < 3:
        return np.zeros(0), np.zeros(0)
    # The polarity with the sharper excursions has the better defined peaks.
    signal = -samples if -stretch.min() > stretch.max() else samples
    period = rate / track.f0_hz[start:stop]
    here = begin + int(np.argmax(signal[begin : begin + int(period[0]) + 1]))
    times: list[float] = []
    heights: list[float] = []
    while here < end:
        before, at, after = (float(signal[here + i]) for i in (-1, 0, 1))
        bend = before - 2 * at + after
        shift = 0.5 * (before - after) / bend if bend < 0 else 0.0
        shift = min(0.5, max(-0.5, shift))
        times.append(here + shift)
        heights.append(at - 0.25 * (before - after) * shift)
        expected = period[min(len(period) - 1, max(0, round(here / step) - start))]
        low, high = here + int(0.8 * expected), here + int(1.2 * expected) + 2
        if high >= end:
            break
        here = low + int(np.argmax(signal[low:high]))
    return np.asarray(times), np.asarray(heights)


def runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Stretches of True as (start, stop) pairs.

    >>> import numpy as np
    >>> runs(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    edges = np.diff(np.concatenate([[0], flags.astype(np.int8), [0]]))
    starts, stops = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    return [(int(a), int(b)) for a, b in zip(starts, stops, strict=True)]
