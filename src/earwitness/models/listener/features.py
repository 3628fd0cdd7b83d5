"""What the listener hears of a scene: levels in 24 bands, every 10 ms, and figures made of them.

Everything is in decibels of full scale, mono, at 16 kHz. The *floor* of a band is the level it is above in nine frames
of ten, over the whole recording: with speech in half of the time that is the ambience. *Excess* is the power above it.

Each figure is finite for every input: silence, one sample, two minutes of noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

VERSION = "listener-1"
RATE_HZ = 16_000
FRAME = 400
HOP = 160
N_FFT = 512
BANDS = 24
LOWEST_HZ, HIGHEST_HZ = 60.0, 7_800.0
SILENT_DB = -100.0
"""Power below this is no power."""
FLOOR_SHARE = 0.1
SPEECH_HZ = (250.0, 4_000.0)
SPEECH_OVER_DB = 12.0
"""Frames this far over the floor in the bands of speech are speech, or something as loud."""
CLEAR_S = 0.16
"""Half of the stretch around a sound's loudest moment in which nobody speaks."""
AROUND_S = 4.0
"""How far before and after the moment the talk is looked at."""
RANGE_DB = 35.0
"""Bands further below the strongest one say nothing of a sound."""
HOP_S = HOP / RATE_HZ
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Levels:
    """Levels of a recording. ``bands`` is (frames, 24) in dB; ``floor`` is (24,); ``speech`` says which frames are loud."""

    bands: FloatArray
    floor: FloatArray
    speech: NDArray[np.bool_]

    def frame(self, moment_s: float) -> int:
        """The frame at a moment, within the recording."""
        return int(min(max(round(moment_s / HOP_S), 0), len(self.bands) - 1))


def levels_of(samples: NDArray[np.float32]) -> Levels:
    """Levels of samples, (n,) mono at 16 kHz."""
    padded = np.zeros(max(len(samples), 1) + FRAME, dtype=np.float32)
    padded[FRAME // 2 : FRAME // 2 + len(samples)] = samples
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[::HOP]
    bands = np.empty((len(frames), BANDS))
    window = np.hanning(FRAME).astype(np.float32)
    scale = 2.0 / float((window**2).sum() * N_FFT)
    for start in range(0, len(frames), 4_000):
        spectrum = np.abs(np.fft.rfft(frames[start : start + 4_000] * window, N_FFT)) ** 2
        power = spectrum @ _filters() * scale
        bands[start : start + 4_000] = 10 * np.log10(np.maximum(power, 10 ** (SILENT_DB / 10)))
    floor = np.quantile(bands, FLOOR_SHARE, axis=0)
    voiced = _speech_bands()
    loud = _total(bands[:, voiced])
    return Levels(bands, floor, loud > _total(floor[voiced][None])[0] + SPEECH_OVER_DB)


def presence(levels: Levels, moment_s: float) -> FloatArray:
    """Is there something at this moment? How far the clear window stands over the floor, (50,)."""
    part = _window(levels, moment_s, CLEAR_S)
    over = part - levels.floor
    highest = np.sort(over, axis=0)[-max(1, len(over) // 4) :].mean(axis=0)
    total = _total(part) - _total(levels.floor[None])[0]
    return np.concatenate((over.mean(axis=0), highest, [total.mean(), total.max()]))


def spectrum(levels: Levels, moment_s: float) -> FloatArray:
    """What is it? Shape of the excess in the clear window, mean and peak, and how it rises and falls, (63,)."""
    part = _window(levels, moment_s, CLEAR_S)
    power = np.maximum(10 ** (part / 10) - 10 ** (levels.floor / 10), 10 ** (SILENT_DB / 10))
    total = power.sum(axis=1)
    peak = int(total.argmax())
    near = power[max(0, peak - 1) : peak + 2].mean(axis=0)
    pieces = np.array_split(10 * np.log10(total), 11)
    envelope = np.array([piece.mean() if piece.size else SILENT_DB for piece in pieces])
    flat = 10 * np.log10(power)
    roughness = np.abs(np.diff(10 * np.log10(total))).mean() if len(total) > 1 else 0.0
    moving = np.abs(np.diff(np.clip(flat, flat.max() - RANGE_DB, None), axis=0))
    return np.concatenate(
        (
            _shape(power.mean(axis=0)),
            _shape(near),
            np.clip(envelope - envelope.max(), -RANGE_DB, 0.0),
            [
                roughness,
                moving.mean() if moving.size else 0.0,
                _flatness(power.mean(axis=0)),
                _flatness(near),
            ],
        )
    )


def place(levels: Levels) -> FloatArray:
    """Where is it? Shape and restlessness of the ambience: the quietest tenth and third, (73,)."""
    shape = levels.floor - levels.floor.mean()
    total = _total(levels.bands)
    quiet = levels.bands[total <= np.quantile(total, 0.3)]
    middle = np.median(quiet, axis=0)
    return np.concatenate(
        (
            shape,
            middle - middle.mean(),
            quiet.std(axis=0),
            [_total(levels.floor[None])[0] - float(np.median(total))],
        )
    )


def conduct(levels: Levels, moment_s: float) -> FloatArray:
    """How does the talk go on? Gaps, lengths and levels around the moment, (16,). No words, no voices."""
    at = levels.frame(moment_s)
    clear, reach = round(CLEAR_S / HOP_S), round(AROUND_S / HOP_S)
    total = _total(levels.bands)
    usual = float(np.median(total[levels.speech])) if levels.speech.any() else SILENT_DB
    before = levels.speech[max(0, at - reach) : max(0, at - clear)][::-1]
    after = levels.speech[at + clear : at + reach]
    loud_before = total[max(0, at - reach) : max(0, at - clear)][::-1]
    loud_after = total[at + clear : at + reach]
    figures = [float(total[at]) - usual, float(total[at]) - float(_total(levels.floor[None])[0])]
    for speaking, loud in ((before, loud_before), (after, loud_after)):
        runs = _runs(speaking)
        silent = (
            next((length for is_on, length in runs if not is_on), 0)
            if not speaking[:1].any()
            else 0
        )
        first = next((length for is_on, length in runs if is_on), 0)
        voiced = loud[speaking] if speaking.any() else np.array([usual])
        edge = voiced[:15]
        figures += [
            min(silent * HOP_S, 2.0),
            min(first * HOP_S, AROUND_S),
            float(sum(1 for is_on, length in runs if not is_on and length >= 12)),
            float(speaking.mean()) if speaking.size else 0.0,
            float(voiced.mean()) - usual,
            float(edge.mean()) - float(voiced.mean()),
            float(voiced.std()),
        ]
    return np.asarray(np.nan_to_num(np.array(figures)))


def _window(levels: Levels, moment_s: float, half_s: float) -> FloatArray:
    at, half = levels.frame(moment_s), round(half_s / HOP_S)
    return levels.bands[max(0, at - half) : at + half + 1]


def _runs(speaking: NDArray[np.bool_]) -> list[tuple[bool, int]]:
    """Stretches of frames with and without speech, breaks of fewer than 60 ms bridged."""
    found: list[tuple[bool, int]] = []
    for is_on in speaking.tolist():
        if found and found[-1][0] == is_on:
            found[-1] = (is_on, found[-1][1] + 1)
        else:
            found.append((is_on, 1))
    bridged: list[tuple[bool, int]] = []
    for is_on, length in found:
        kept = is_on or length >= 6
        if bridged and bridged[-1][0] == (is_on or not kept):
            bridged[-1] = (bridged[-1][0], bridged[-1][1] + length)
        else:
            bridged.append((is_on or not kept, length))
    return bridged


def _shape(power: FloatArray) -> FloatArray:
    level = 10 * np.log10(np.maximum(power, 10 ** (SILENT_DB / 10)))
    level = np.clip(level, level.max() - RANGE_DB, None)
    return np.asarray(level - level.mean())


def _flatness(power: FloatArray) -> float:
    floored = np.maximum(power, 10 ** (SILENT_DB / 10))
    return float(np.log(floored).mean() - np.log(floored.mean()))


def _total(bands: FloatArray) -> FloatArray:
    return np.asarray(10 * np.log10((10 ** (bands / 10)).sum(axis=1)))


def _mel(hz: FloatArray | float) -> FloatArray:
    return np.asarray(2595 * np.log10(1 + np.asarray(hz) / 700))


@lru_cache(maxsize=1)
def _edges_hz() -> FloatArray:
    points = np.linspace(_mel(LOWEST_HZ), _mel(HIGHEST_HZ), BANDS + 2)
    return np.asarray(700 * (10 ** (points / 2595) - 1))


@lru_cache(maxsize=1)
def _filters() -> NDArray[np.float32]:
    """(bins, bands) triangles; each band holds at least its nearest bin."""
    bins = np.fft.rfftfreq(N_FFT, 1 / RATE_HZ)
    edges = _edges_hz()
    out = np.zeros((bins.size, BANDS), dtype=np.float32)
    for k in range(BANDS):
        low, middle, high = edges[k : k + 3]
        rise, fall = (bins - low) / (middle - low), (high - bins) / (high - middle)
        out[:, k] = np.clip(np.minimum(rise, fall), 0, None)
        if not out[:, k].any():
            out[int(np.abs(bins - middle).argmin()), k] = 1.0
    return out


@lru_cache(maxsize=1)
def _speech_bands() -> NDArray[np.bool_]:
    centres = _edges_hz()[1:-1]
    return np.asarray((centres >= SPEECH_HZ[0]) & (centres <= SPEECH_HZ[1]))
