"""The parts that synthetic sounds are made of.

Everything is float64 mono at :data:`RATE`; lengths are in samples, times in seconds, frequencies in Hz. Each draw
comes from the generator that is passed in.

Sources: modal synthesis after Cook, *Real Sound Synthesis for Interactive Applications* (2002) and Farnell, *Designing
Sound* (2010); ratios of bars, bells and glasses from Fletcher and Rossing, *The Physics of Musical Instruments*.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from earwitness.audio.types import samples_at

Signal = npt.NDArray[np.float64]
Rng = np.random.Generator
Recipe = Callable[[Rng], Signal]
Points = Sequence[tuple[float, float]]

RATE = 44_100
CACHED = 8192
COLOUR_DB = 2.5
TILT_DB = 1.0
FLOOR_DB = (-56.0, -40.0)
FLOOR_SHAPE_DB = (4.0, 0.0, -6.0, -14.0, -24.0)
"""How much recordings of one thing differ by place and microphone, and their noise under the sound's own level."""

BAR = (1.0, 2.756, 5.404, 8.933, 13.34)
GLASS = (1.0, 2.32, 4.25, 6.63, 9.38)
BELL = (0.5, 1.0, 1.2, 1.5, 2.0, 2.51, 2.66, 3.01, 4.17, 5.43, 6.8)


def length(seconds: float) -> int:
    """Number of samples of a duration, at least 1."""
    return max(1, samples_at(seconds, RATE))


def silence(seconds: float) -> Signal:
    """Zeros to place things on."""
    return np.zeros(length(seconds))


def times(n: int) -> Signal:
    """Times of ``n`` samples in seconds."""
    return np.arange(n) / RATE


def between(rng: Rng, low: float, high: float) -> float:
    """A draw from a range, evenly on a logarithmic scale when the range is wide and positive."""
    if low > 0 and high / low > 2.5:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))
    return float(rng.uniform(low, high))


def noise(rng: Rng, n: int) -> Signal:
    """White noise of unit variance."""
    return rng.standard_normal(n)


def shaped_noise(rng: Rng, n: int, spectrum: Points) -> Signal:
    """Noise with a spectrum given as (Hz, dB), interpolated over log frequency; RMS 1.

    For the lengths of :func:`loop_length` the result is periodic: its end joins its beginning without a seam.
    """
    from scipy.fft import irfft, next_fast_len

    wanted, n = n, int(next_fast_len(n, real=True))
    bins = n // 2 + 1
    hz, db = np.array(spectrum, dtype=float).T
    gain = _gains(n, hz, db)
    gain[0] = 0.0
    half = rng.standard_normal((2, bins))
    made: Signal = irfft((half[0] + 1j * half[1]) * gain, n)[:wanted]
    return unit(made)


def _gains(n: int, hz: Signal, db: Signal) -> Signal:
    """Linear gains of the bins of a real transform of length ``n``, interpolated over log frequency."""
    bins = n // 2 + 1
    # On a coarse grid first: exp and log of a million bins would cost more than the transform.
    coarse = np.unique(np.geomspace(1, bins, min(bins, 1024)).astype(int)) - 1
    level = np.interp(np.log(np.maximum(coarse * RATE / n, 1.0)), np.log(hz), db)
    made: Signal = np.interp(np.arange(bins), coarse, 10 ** (level / 20))
    return made


def unit(x: Signal) -> Signal:
    """Scaled to an RMS of 1."""
    return np.multiply(x, 1 / (float(np.sqrt(np.mean(np.square(x)))) + 1e-12))


def loop_length(seconds: float) -> int:
    """A length near a duration at which shaped noise is periodic."""
    from scipy.fft import next_fast_len

    return int(next_fast_len(length(seconds), real=True))


def band(x: Signal, low: float, high: float) -> Signal:
    """Band-pass of two biquads, 12 dB an octave; ``low`` 0 makes it a low-pass, ``high`` from 20 kHz a high-pass."""
    from scipy.signal import sosfilt

    sections = []
    if low > 0:
        sections.append(_biquad(low, high_pass=True))
    if high < 20_000:
        sections.append(_biquad(high, high_pass=False))
    made: Signal = sosfilt(np.array(sections), x)
    return made


def _biquad(hz: float, *, high_pass: bool) -> list[float]:
    """Second-order Butterworth section by the bilinear transform; scipy designs it 100 times more slowly."""
    k = np.tan(np.pi * min(hz, 0.49 * RATE) / RATE)
    norm = 1 / (1 + np.sqrt(2) * k + k * k)
    b = [norm, -2 * norm, norm] if high_pass else [k * k * norm, 2 * k * k * norm, k * k * norm]
    return [*b, 1.0, 2 * (k * k - 1) * norm, (1 - np.sqrt(2) * k + k * k) * norm]


def resonate(x: Signal, peaks: Sequence[tuple[float, float, float]]) -> Signal:
    """A parallel bank of two-pole resonators given as (Hz, bandwidth in Hz, gain); formants, bodies, pipes."""
    from scipy.signal import lfilter

    total = np.zeros_like(x)
    for hz, width, gain in peaks:
        radius = np.exp(-np.pi * width / RATE)
        theta = 2 * np.pi * min(hz, 0.45 * RATE) / RATE
        norm = (1 - radius) * np.sqrt(1 - 2 * radius * np.cos(2 * theta) + radius**2)
        total += gain * lfilter([norm], [1.0, -2 * radius * np.cos(theta), radius**2], x)
    return total


def curve(n: int, points: Points) -> Signal:
    """Straight lines through (second, value)."""
    at, values = np.array(points, dtype=float).T
    made: Signal = np.interp(times(n), at, values)
    return made


def decay(n: int, t60_s: float) -> Signal:
    """Exponential decay by 60 dB in ``t60_s``."""
    return np.exp(-6.91 / t60_s * times(n))


def swell(n: int, attack_s: float, release_s: float) -> Signal:
    """Raised-cosine flanks around a level of 1."""
    level = np.ones(n)
    for seconds, end in ((attack_s, slice(None)), (release_s, slice(None, None, -1))):
        flank = min(n, max(1, samples_at(seconds, RATE)))
        level[end][:flank] *= np.sin(np.pi / 2 * np.arange(flank) / flank) ** 2
    return level


def wander(rng: Rng, n: int, hz: float, depth: float) -> Signal:
    """A smooth random curve around 1 that changes about ``hz`` times a second by about ``depth``."""
    knots = max(4, int(np.ceil(n / RATE * hz)) + 2)
    values = 1 + depth * rng.standard_normal(knots)
    place = np.linspace(0, knots - 1.001, n)
    low = place.astype(int)
    weight = place - low
    weight = weight * weight * (3 - 2 * weight)
    made: Signal = values[low] * (1 - weight) + values[np.minimum(low + 1, knots - 1)] * weight
    return made


def phase_of(f0: Signal) -> Signal:
    """Phase in radians of an oscillator whose frequency is ``f0`` at every sample."""
    return 2 * np.pi * np.cumsum(f0) / RATE


def harmonics(f0: Signal, levels: Sequence[float]) -> Signal:
    """A stack of partials at multiples of ``f0`` with linear ``levels``; none above 19 kHz."""
    count = min(len(levels), int(19_000 / max(float(f0.max()), 1.0)))
    phase = phase_of(f0)
    total = np.zeros(len(f0))
    # sin(k x) = 2 cos(x) sin((k-1) x) - sin((k-2) x), in blocks that stay in the cache.
    for first in range(0, len(f0), CACHED if count else len(f0)):
        x = phase[first : first + CACHED]
        twice, before, now = 2 * np.cos(x), np.zeros(len(x)), np.sin(x)
        block = total[first : first + CACHED]
        for level in levels[:count]:
            if level:
                block += level * now
            before, now = now, twice * now - before
    return total


def buzz(f0: Signal, slope_db: float, limit: int = 60) -> Signal:
    """A harmonic stack that falls by ``slope_db`` per octave: glottis, reed, combustion."""
    count = int(min(limit, 18_000 / float(f0.max())))
    return harmonics(f0, [k ** (slope_db / 6.02) for k in range(1, count + 1)])


class Modes(NamedTuple):
    """What rings when something is struck: frequencies, decay times to -60 dB and amplitudes."""

    hz: Signal
    t60_s: Signal
    level: Signal


def tuned_modes(
    rng: Rng,
    f0: float,
    ratios: Sequence[float],
    t60_s: float,
    *,
    tilt: float = 1.0,
    spread: float = 0.01,
) -> Modes:
    """Modes at ratios of a fundamental; higher ones are weaker (power ``tilt``) and shorter."""
    ratio = np.array(ratios) * (1 + spread * rng.standard_normal(len(ratios)))
    hz = f0 * ratio
    relative = np.maximum(ratio / ratio[0], 0.3)
    level = relative**-tilt * rng.uniform(0.5, 1.0, len(ratio))
    return Modes(hz, t60_s / relative**0.6, level)


def random_modes(
    rng: Rng, count: int, low: float, high: float, t60_s: float, *, tilt: float = 0.5
) -> Modes:
    """Modes strewn over a range, as plates, boxes and boards have them."""
    hz = np.sort(np.exp(rng.uniform(np.log(low), np.log(high), count)))
    level = (hz / low) ** -tilt * rng.uniform(0.2, 1.0, count)
    return Modes(hz, t60_s * (low / hz) ** 0.4 * rng.uniform(0.6, 1.4, count), level)


def strike(rng: Rng, modes: Modes, *, hardness_hz: float = 8000.0, force: float = 1.0) -> Signal:
    """Ring some modes with a hammer whose contact excites frequencies up to about ``hardness_hz``."""
    n = length(min(3.0, float(modes.t60_s.max()) * 1.05 + 0.01))
    total = np.zeros(n)
    for hz, t60, level in zip(*modes, strict=True):
        if hz > 19_000:
            continue
        m = min(n, length(t60 * 1.05))
        gain = force * level / (1 + (hz / hardness_hz) ** 2)
        total[:m] += gain * _ringing(hz, t60, rng.uniform(0, 2 * np.pi), m)
    attack = min(n, 24)
    total[:attack] *= np.linspace(0, 1, attack)
    return total


def _ringing(hz: float, t60_s: float, phase: float, n: int) -> Signal:
    """A damped sine, from one block of powers of its complex pole times the powers of that block."""
    pole = (-6.91 / t60_s + 2j * np.pi * hz) / RATE
    size = 256
    block = np.exp(pole * np.arange(size))
    steps = np.exp(pole * size * np.arange(-(-n // size)) + 1j * phase)
    made: Signal = (steps.imag[:, None] * block.real + steps.real[:, None] * block.imag).reshape(-1)
    return made[:n]


def tick(rng: Rng, seconds: float, low: float, high: float) -> Signal:
    """A short burst of band-limited noise: contact, click, drop."""
    n = length(seconds)
    return band(noise(rng, n), low, high) * decay(n, seconds)


def place(track: Signal, piece: Signal, at_s: float, gain: float = 1.0) -> None:
    """Add a piece to a track; what hangs over its end is left out."""
    start = samples_at(at_s, RATE)
    if start >= len(track):
        return
    end = min(len(track), start + len(piece))
    track[start:end] += gain * piece[: end - start]


def place_around(track: Signal, piece: Signal, at: int, gain: float = 1.0) -> None:
    """Add a piece to a track that is a loop: what hangs over its end comes in at its beginning."""
    for first in range(0, len(piece), len(track)):
        part = piece[first : first + len(track)]
        start = (at + first) % len(track)
        head = min(len(part), len(track) - start)
        track[start : start + head] += gain * part[:head]
        track[: len(part) - head] += gain * part[head:]


def poisson_times(rng: Rng, per_s: float, seconds: float) -> Signal:
    """Moments of a Poisson process."""
    return np.sort(rng.uniform(0, seconds, rng.poisson(per_s * seconds)))


def grains(rng: Rng, seconds: float, per_s: float | Signal, pieces: Sequence[Signal]) -> Signal:
    """Many pieces at random moments with log-normal strengths; ``per_s`` may follow a curve of any length."""
    track = silence(seconds)
    rate = np.atleast_1d(np.asarray(per_s, dtype=float))
    for at in poisson_times(rng, float(rate.max()), seconds):
        local = rate[min(len(rate) - 1, int(at / seconds * len(rate)))]
        if rng.uniform() * rate.max() <= local:
            place(
                track, pieces[int(rng.integers(len(pieces)))], at, float(np.exp(0.5 * rng.normal()))
            )
    return track


def bounces(rng: Rng, first_s: float, keep: float, count: int) -> list[tuple[float, float]]:
    """Moments and strengths of something that bounces, losing ``1 - keep`` of its speed each time."""
    at, gap, force, made = 0.0, first_s, 1.0, []
    for _ in range(count):
        made.append((at, force))
        at += gap * rng.uniform(0.9, 1.1)
        gap *= keep
        force *= keep
    return made


def passing(x: Signal, speed_m_s: float, nearest_m: float, at_share: float = 0.5) -> Signal:
    """A source that drives past: 1/r level and the Doppler shift that its distance makes."""
    t = times(len(x))
    along = speed_m_s * (t - at_share * t[-1])
    distance = np.sqrt(nearest_m**2 + along**2)
    heard = np.interp(t - (distance - distance.min()) / 343.0, t, x)
    made: Signal = heard * nearest_m / distance
    return made


def recorded(rng: Rng, x: Signal) -> Signal:
    """As a microphone somewhere would have it: coloured by its place and distance, over a faint noise of its own."""
    from scipy.fft import irfft, next_fast_len, rfft

    n = int(next_fast_len(len(x), real=True))
    knots = np.array([60.0, 250.0, 1000.0, 4000.0, 14_000.0])
    colour_db = rng.normal(0, COLOUR_DB, 5) + rng.normal(0, TILT_DB) * np.log2(knots / 1000)
    heard = rfft(x, n) * _gains(n, knots, colour_db)
    half = rng.standard_normal((2, len(heard)))
    floor = (half[0] + 1j * half[1]) * _gains(n, knots, np.array(FLOOR_SHAPE_DB))
    # Levels by Parseval's theorem, so that one transform makes both.
    share = np.sqrt(np.square(np.abs(heard)).sum() / np.square(np.abs(floor)).sum())
    made: Signal = irfft(heard + floor * share * 10 ** (rng.uniform(*FLOOR_DB) / 20), n)
    return made[: len(x)]


def finish(rng: Rng, x: Signal, *, fade_s: float = 0.005, release_s: float = 0.03) -> Signal:
    """Remove the offset, fade both ends, bring the peak to between -6 and -2 dB of full scale."""
    x = x - x.mean()
    peak = float(np.abs(x).max()) or 1.0
    return x * swell(len(x), fade_s, release_s) / peak * 10 ** (rng.uniform(-6, -2) / 20)
