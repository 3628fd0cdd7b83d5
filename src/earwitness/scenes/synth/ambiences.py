"""Ambiences of the default bank's locations: beds of shaped noise with sparse, wordless life in them.

Every bed is a loop: its noise is periodic, its modulations have whole numbers of cycles, and what hangs over the
end comes in at the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from earwitness.scenes.synth.animals import songbird
from earwitness.scenes.synth.blocks import (
    RATE,
    Points,
    Rng,
    Signal,
    between,
    buzz,
    curve,
    decay,
    length,
    loop_length,
    noise,
    place_around,
    random_modes,
    resonate,
    shaped_noise,
    strike,
    swell,
    tick,
    times,
    tuned_modes,
    unit,
)

Bed = Callable[[Rng, int], Signal]

SECONDS = (30.0, 40.0)
ROOM: Points = ((30, 0), (120, -5), (500, -16), (2000, -30), (8000, -44), (18000, -56))
TRAFFIC: Points = (
    (30, -4),
    (80, 0),
    (300, -5),
    (1000, -10),
    (3000, -22),
    (9000, -38),
    (18000, -54),
)


def tide(rng: Rng, n: int, slowest_s: float, depth: float, waves: int = 4) -> Signal:
    """A smooth curve around 1 that is periodic in ``n``: a few sines with whole numbers of cycles."""
    t = np.linspace(0, 1, 4096)
    most = max(2, int(n / RATE / slowest_s))
    total = np.zeros(len(t))
    for _ in range(waves):
        total += np.sin(2 * np.pi * (int(rng.integers(1, most + 1)) * t + rng.uniform()))
    smooth = np.interp(np.arange(n) / n, t, total)
    made: Signal = np.clip(1 + depth * smooth / np.sqrt(waves), 0.05, None)
    return made


def hum(rng: Rng, n: int, hz: float, levels: Sequence[float]) -> Signal:
    """Harmonics with whole numbers of cycles in ``n``, made in the frequency domain."""
    from scipy.fft import irfft

    cycles = round(hz * n / RATE)
    lines = np.zeros(n // 2 + 1, complex)
    for k, level in enumerate(levels, start=1):
        lines[k * cycles] = level * n / 2 * np.exp(1j * rng.uniform(0, 2 * np.pi))
    made: Signal = irfft(lines, n)
    return made


def sprinkle(
    rng: Rng, n: int, per_s: float, pieces: Sequence[Signal], spread: float = 0.6
) -> Signal:
    """Pieces at random places of a loop."""
    track = np.zeros(n)
    for at in rng.integers(0, n, rng.poisson(per_s * n / RATE)):
        piece = pieces[int(rng.integers(len(pieces)))]
        place_around(track, piece, int(at), float(np.exp(spread * rng.normal())))
    return track


def rms(x: Signal, level: float) -> Signal:
    """Scaled to an RMS."""
    return unit(x) * level


def far(x: Signal, t60_s: float, rng: Rng, corner_hz: float = 2500) -> Signal:
    """A piece with the diffuse tail of a room and its high frequencies lost on the way."""
    from scipy.signal import fftconvolve

    tail = noise(rng, length(t60_s)) * decay(length(t60_s), t60_s)
    wet = fftconvolve(x, tail)
    return resonate(wet, [(corner_hz * 0.4, corner_hz, 1.0)])


def _murmur(rng: Rng, n: int, voices: int) -> Signal:
    """Talk without words: buzzes with formants that jump at the pace of syllables, many at once."""
    track = np.zeros(n)
    syllables: list[Signal] = []
    for _ in range(40):
        hz = between(rng, 95, 230)
        m = length(between(rng, 0.12, 0.32))
        f0 = hz * curve(m, [(0, 1.05), (m / RATE, between(rng, 0.85, 1.05))])
        f1, f2 = between(rng, 300, 750), between(rng, 850, 2100)
        syllables.append(resonate(buzz(f0, -5, 25), [(f1, 90, 1), (f2, 140, 0.5), (2600, 250, 0.15)]) * swell(m, 0.03, 0.06))  # fmt: skip
    for _ in range(voices):
        at = int(rng.integers(0, n))
        end = at + n
        while at < end:
            place_around(track, syllables[int(rng.integers(40))], at, rng.uniform(0.4, 1))
            pause = rng.exponential(0.9) if rng.uniform() < 0.12 else 0.0
            at += length(between(rng, 0.14, 0.26) + pause)
    return track


def _car_by(rng: Rng) -> Signal:
    n = length(between(rng, 5, 9))
    t = times(n) - n / RATE / 2
    near = 1 / (1 + (t / between(rng, 0.8, 1.6)) ** 2)
    return shaped_noise(rng, n, TRAFFIC) * near * swell(n, 1.0, 1.0)


def _steps(rng: Rng, hard: float) -> list[Signal]:
    made = []
    for _ in range(6):
        gap, count = between(rng, 0.45, 0.6), int(rng.integers(4, 9))
        track = np.zeros(length(gap * count + 0.2))
        for k in range(count):
            at = length(gap * k * rng.uniform(0.98, 1.02) + 0.001)
            piece = tick(rng, 0.035, 180, hard)
            track[at : at + len(piece)] += piece * rng.uniform(0.6, 1)
        made.append(track * np.sin(np.pi * np.linspace(0.05, 0.95, len(track))))
    return made


def cafe(rng: Rng, n: int) -> Signal:
    """Murmur of guests, soft clatter, room tone."""
    dishes = [far(strike(rng, tuned_modes(rng, between(rng, 1500, 3600), (1, 1.6, 2.5), 0.12, tilt=0.3)), 0.5, rng, 6000) for _ in range(10)]  # fmt: skip
    talk = _murmur(rng, n, int(rng.integers(10, 16)))
    return rms(talk, 1.0) + rms(shaped_noise(rng, n, ROOM), 0.35) + rms(sprinkle(rng, n, between(rng, 0.5, 1.0), dishes), 0.16)  # fmt: skip


def office(rng: Rng, n: int) -> Signal:
    """Ventilation, computer fans, a murmur from the far end."""
    air = shaped_noise(
        rng, n, [(40, -4), (120, 0), (500, -7), (2000, -16), (8000, -32), (18000, -50)]
    )
    fans = hum(rng, n, between(rng, 110, 180), (0.5, 0.3, 0.25, 0.15, 0.1))
    talk = resonate(_murmur(rng, n, 3), [(500, 600, 1.0)])
    keys = [tick(rng, 0.012, 800, 5000) for _ in range(8)]
    return (
        rms(air, 1.0) + rms(fans, 0.18) + rms(talk, 0.16) + rms(sprinkle(rng, n, 2.0, keys), 0.03)
    )


def kitchen(rng: Rng, n: int) -> Signal:
    """Hum of a fridge, room tone, the street behind glass."""
    fridge = hum(rng, n, 50, (0.5, 1.0, 0.4, 0.5, 0.15, 0.2))
    street = shaped_noise(rng, n, [(30, 0), (100, -2), (300, -14), (1000, -34), (6000, -60)]) * tide(rng, n, 4, 0.35)  # fmt: skip
    room = shaped_noise(rng, n, [(40, 0), (200, -6), (1000, -14), (4000, -22), (16000, -36)])
    return rms(fridge, 0.8) + rms(street, 0.6) + rms(room, 0.5)


def car(rng: Rng, n: int) -> Signal:
    """Tyres, an even engine, wind at speed."""
    road = shaped_noise(rng, n, [(25, 2), (60, 4), (150, 0), (500, -9), (1500, -18), (5000, -32), (16000, -52)]) * tide(rng, n, 2, 0.12)  # fmt: skip
    engine = hum(rng, n, between(rng, 55, 90), (1.0, 0.7, 0.4, 0.3, 0.2, 0.15))
    wind = shaped_noise(rng, n, [(150, -10), (600, 0), (2000, -8), (7000, -24), (16000, -42)]) * tide(rng, n, 1.5, 0.2)  # fmt: skip
    return rms(road, 1.0) + rms(engine, 0.3) + rms(wind, 0.2)


def train_carriage(rng: Rng, n: int) -> Signal:
    """Rolling, air along the windows, ventilation."""
    roll = shaped_noise(rng, n, [(30, 0), (90, 3), (250, -2), (800, -12), (3000, -26), (12000, -46)]) * tide(rng, n, 1.2, 0.2)  # fmt: skip
    air = shaped_noise(rng, n, [(200, -6), (900, 0), (3000, -8), (10000, -26)]) * tide(
        rng, n, 3, 0.15
    )
    joints = [strike(rng, random_modes(rng, 10, 55, 420, 0.12), hardness_hz=300) for _ in range(4)]
    track = np.zeros(n)
    beats = max(1, round(n / RATE / between(rng, 1.1, 1.7)))
    for k in range(beats):
        for late in (0.0, 0.13):
            place_around(track, joints[k % 4], round(k * n / beats) + length(late))
    motor = hum(rng, n, between(rng, 180, 260), (0.5, 0.3, 0.2))
    return rms(roll, 1.0) + rms(air, 0.3) + rms(track, 0.28) + rms(motor, 0.06)


def street(rng: Rng, n: int) -> Signal:
    """Steady traffic, cars that pass, steps, the hum of the town."""
    base = shaped_noise(rng, n, TRAFFIC) * tide(rng, n, 3, 0.15)
    cars = sprinkle(rng, n, between(rng, 0.18, 0.3), [_car_by(rng) for _ in range(4)], 0.4)
    return rms(base, 1.0) + rms(cars, 0.8) + rms(sprinkle(rng, n, 0.12, _steps(rng, 3500)), 0.07)


def station(rng: Rng, n: int) -> Signal:
    """A long echo, many steps, engines that idle far away."""
    steps = [far(walk, 2.2, rng, 2500) for walk in _steps(rng, 3000)]
    talk = far(_murmur(rng, n, 7)[: n // 2], 2.0, rng, 1500)
    diesel = hum(rng, n, between(rng, 28, 38), (0.6, 1.0, 0.5, 0.5, 0.3, 0.2)) * tide(
        rng, n, 2, 0.1
    )
    hall = shaped_noise(rng, n, [(30, 0), (150, -2), (600, -9), (2500, -22), (9000, -42)])
    echo = np.zeros(n)
    for at in (0, n // 2):
        place_around(echo, talk, at)
    return (
        rms(hall, 0.8) + rms(diesel, 0.3) + rms(echo, 0.45) + rms(sprinkle(rng, n, 1.3, steps), 0.4)
    )


def supermarket(rng: Rng, n: int) -> Signal:
    """Cooling units, a wide hall, faint steps and wheels."""
    cooling = hum(rng, n, 100, (1.0, 0.5, 0.35, 0.2, 0.15, 0.1)) * tide(rng, n, 6, 0.08)
    air = shaped_noise(rng, n, [(60, -2), (250, 0), (1000, -8), (4000, -20), (14000, -40)])
    wheels = [shaped_noise(rng, length(3.5), [(150, 0), (700, -4), (3000, -16)]) * swell(length(3.5), 1.2, 1.2) for _ in range(3)]  # fmt: skip
    steps = [far(walk, 1.1, rng, 3000) for walk in _steps(rng, 3000)]
    return rms(air, 1.0) + rms(cooling, 0.25) + rms(sprinkle(rng, n, 0.2, wheels), 0.16) + rms(sprinkle(rng, n, 0.5, steps), 0.12)  # fmt: skip


def workshop(rng: Rng, n: int) -> Signal:
    """A strip light's hum, an extractor, a bare room."""
    light = hum(rng, n, 100, (1.0, 0.6, 0.5, 0.35, 0.3, 0.2, 0.2, 0.1))
    fan = hum(rng, n, between(rng, 70, 95), (1.0, 0.6, 0.4, 0.3)) * tide(rng, n, 3, 0.05)
    air = shaped_noise(rng, n, [(50, 0), (200, 1), (800, -5), (3000, -14), (12000, -34)])
    return rms(air, 1.0) + rms(fan, 0.35) + rms(light, 0.14)


def _leaves(rng: Rng, n: int, depth: float) -> Signal:
    return shaped_noise(rng, n, [(150, -22), (700, -10), (2500, -1), (5000, 0), (10000, -6), (18000, -18)]) * tide(rng, n, 2.5, depth, 6)  # fmt: skip


def _birds(rng: Rng, n: int, per_s: float) -> Signal:
    songs = [far(songbird(rng), 0.35, rng, 9000) for _ in range(6)]
    return sprinkle(rng, n, per_s, songs, 0.7)


def park(rng: Rng, n: int) -> Signal:
    """Leaves, small birds, the town at a distance."""
    town = shaped_noise(rng, n, [(30, 0), (120, -3), (400, -12), (1500, -28), (8000, -54)]) * tide(rng, n, 5, 0.15)  # fmt: skip
    return rms(town, 0.9) + rms(_leaves(rng, n, 0.4), 0.35) + rms(_birds(rng, n, between(rng, 0.35, 0.7)), 0.3)  # fmt: skip


def seaside(rng: Rng, n: int) -> Signal:
    """Small waves, one after the other, and a breeze."""
    count = max(3, round(n / RATE / between(rng, 5.0, 7.5)))
    foam = shaped_noise(
        rng, n, [(80, -8), (300, -2), (1200, 0), (4000, -3), (10000, -10), (18000, -22)]
    )
    t = (np.arange(n) / n * count) % 1
    wave = 0.18 + np.interp(t, [0, 0.35, 0.5, 0.8, 1], [0.05, 0.7, 1.0, 0.25, 0.05])
    breeze = shaped_noise(rng, n, [(40, 0), (200, -3), (700, -14), (3000, -34)]) * tide(
        rng, n, 2, 0.3
    )
    return rms(foam * wave * tide(rng, n, 4, 0.2), 1.0) + rms(breeze, 0.3)


def _crickets(rng: Rng, n: int) -> Signal:
    """A few crickets: each chirps in groups of pulses on its own pitch and at its own pace."""
    track = np.zeros(n)
    for _ in range(int(rng.integers(3, 6))):
        hz, pulses = between(rng, 4000, 5400), int(rng.integers(3, 5))
        m = length(0.014)
        pulse = np.sin(2 * np.pi * hz * times(m)) * swell(m, 0.004, 0.007)
        chirp = np.zeros(length(0.026 * pulses))
        for k in range(pulses):
            at = length(0.026 * k)
            end = min(len(chirp), at + m)
            chirp[at:end] += pulse[: end - at]
        chirps, level = round(n / RATE * between(rng, 1.6, 2.8)), rng.uniform(0.3, 1.0)
        start = int(rng.integers(0, n))
        for k in range(chirps):
            place_around(track, chirp, (start + round(k * n / chirps) + int(rng.normal(0, 300))) % n, level)  # fmt: skip
    return track


def campsite(rng: Rng, n: int) -> Signal:
    """Crickets, leaves, night air."""
    night = shaped_noise(rng, n, [(30, 0), (150, -5), (600, -16), (3000, -28), (14000, -44)])
    return rms(night, 0.8) + rms(_leaves(rng, n, 0.5), 0.22) + rms(_crickets(rng, n), 0.35)


def farmyard(rng: Rng, n: int) -> Signal:
    """Open air between buildings, insects, machinery far away."""
    air = shaped_noise(rng, n, [(30, 0), (120, -1), (500, -11), (2000, -24), (9000, -44)]) * tide(rng, n, 3, 0.2)  # fmt: skip
    machine = hum(rng, n, between(rng, 24, 34), (0.4, 1.0, 0.5, 0.6, 0.3, 0.25, 0.15)) * tide(rng, n, 5, 0.25)  # fmt: skip
    flies = [resonate(buzz(np.full(m, between(rng, 170, 240)), -3, 30), [(600, 700, 1)]) * swell(m, m / RATE / 2, m / RATE / 2) for m in (length(between(rng, 1, 2.5)) for _ in range(4))]  # fmt: skip
    return rms(air, 1.0) + rms(machine, 0.2) + rms(sprinkle(rng, n, 0.3, flies), 0.14) + rms(_birds(rng, n, 0.3), 0.2)  # fmt: skip


BEDS: dict[str, Bed] = {
    bed.__name__: bed
    for bed in (
        cafe, campsite, car, farmyard, kitchen, office, park, seaside, station, street, supermarket,
        train_carriage, workshop,
    )
}  # fmt: skip


def make_ambience(location: str, rng: Rng) -> Signal:
    """One ambience of a location, 30 to 40 s, seamless when looped."""
    return BEDS[location](rng, loop_length(rng.uniform(*SECONDS)))
