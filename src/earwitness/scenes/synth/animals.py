"""Animals: a buzzing or whistling source, its pitch contour and the formants of a throat.

Contours and spectra follow published descriptions: barks and meows as source and filter with a fundamental of
300 to 1,000 Hz; cocks with four syllables; owls and wolves close to pure tones.
"""

from __future__ import annotations

import numpy as np

from earwitness.scenes.synth.blocks import (
    RATE,
    Points,
    Recipe,
    Rng,
    Signal,
    band,
    between,
    buzz,
    curve,
    harmonics,
    length,
    noise,
    place,
    resonate,
    silence,
    swell,
    times,
    wander,
)

Formants = list[tuple[float, float, float]]


def _call(
    rng: Rng, seconds: float, pitch: Points, level: Points, formants: Formants, *,
    slope_db: float = -4.0, rough: float = 0.1, breath: float = 0.1, growl_hz: float = 0.0, moves: Formants | None = None,
) -> Signal:  # fmt: skip
    """One vocalisation. Points are (share of the length, value); ``moves`` are formants at its end."""
    n = length(seconds)
    f0 = curve(n, [(at * seconds, hz) for at, hz in pitch]) * wander(
        rng, n, 30, 0.01 + 0.02 * rough
    )
    source = buzz(f0, slope_db, 40) + breath * noise(rng, n)
    if growl_hz:
        source = source * (1 + rough * np.sign(np.sin(2 * np.pi * growl_hz * times(n))))
    else:
        source = source * (1 + rough * (wander(rng, n, 90, 1.0) - 1))
    throat = resonate(source, formants)
    if moves:
        share = np.linspace(0, 1, n)
        throat = (1 - share) * throat + share * resonate(source, moves)
    return throat * np.clip(curve(n, [(at * seconds, value) for at, value in level]), 0, None)


def _sequence(rng: Rng, calls: list[Signal], gap_s: float, loose: float = 0.2) -> Signal:
    parts: list[Signal] = []
    for call in calls:
        parts += [call, silence(max(0.02, gap_s * (1 + loose * rng.normal())))]
    return np.concatenate(parts[:-1])


def dog_bark(rng: Rng) -> Signal:
    """One to five barks: 0.1 to 0.25 s, pitch up and down, hoarse, with strong formants near 1 and 2 kHz."""
    size = between(rng, 0.75, 1.5)
    f1, f2, f3 = 620 * size, 1250 * size, 2500 * size
    hz, dur = between(rng, 230, 480) * size, between(rng, 0.12, 0.24)

    def bark() -> Signal:
        up = between(rng, 1.25, 1.7)
        return _call(
            rng, dur * rng.uniform(0.9, 1.15),
            [(0, hz), (0.25, hz * up), (0.55, hz * up * 0.9), (1, hz * 0.65)],
            [(0, 0), (0.12, 1), (0.45, 0.8), (1, 0)],
            [(f1 * 0.7, 160, 1.0), (f2 * 0.8, 220, 1.2), (f3, 400, 0.5)],
            moves=[(f1, 180, 1.0), (f2, 260, 1.0), (f3, 420, 0.4)],
            slope_db=-2.5, rough=between(rng, 0.4, 0.9), breath=between(rng, 0.5, 1.2),
        )  # fmt: skip

    return _sequence(rng, [bark() for _ in range(int(rng.integers(2, 6)))], between(rng, 0.22, 0.5), 0.3)  # fmt: skip


def cat_meow(rng: Rng) -> Signal:
    """Rises, stays, sinks; the mouth opens and shuts, so formants go up and come back."""
    seconds, hz = between(rng, 0.7, 1.4), between(rng, 520, 840)
    opened: Formants = [(1150, 220, 1.0), (2200, 300, 0.9), (4200, 500, 0.4)]
    closed: Formants = [(650, 160, 1.0), (1500, 260, 0.4), (3500, 500, 0.15)]
    pitch = [(0, hz * 0.85), (0.3, hz * 1.15), (0.7, hz * 1.1), (1, hz * 0.75)]
    first = _call(rng, seconds, pitch, [(0, 0), (0.15, 0.6), (0.5, 1), (1, 0)], closed, moves=opened, slope_db=-3, rough=0.05, breath=0.05)  # fmt: skip
    second = _call(rng, seconds, pitch, [(0, 0), (0.3, 0.9), (0.6, 1), (1, 0)], opened, moves=closed, slope_db=-3, rough=0.05, breath=0.05)  # fmt: skip
    return first + 0.7 * second


def rooster_crow(rng: Rng) -> Signal:
    """Four syllables, the third highest and the fourth long and sinking; strong harmonics from 500 to 4,000 Hz."""
    hz = between(rng, 430, 600)
    throat: Formants = [
        (between(rng, 900, 1500), 260, 1.6),
        (between(rng, 1900, 2600), 450, 0.6),
        (3300, 700, 0.25),
    ]
    plan = (
        (between(rng, 0.14, 0.22), [(0, hz * 0.8), (0.5, hz * 1.1), (1, hz)]),
        (between(rng, 0.1, 0.18), [(0, hz), (0.5, hz * 1.3), (1, hz * 1.2)]),
        (between(rng, 0.2, 0.35), [(0, hz * 1.2), (0.4, hz * 1.7), (1, hz * 1.5)]),
        (
            between(rng, 0.9, 1.5),
            [(0, hz * 1.35), (0.2, hz * 1.55), (0.7, hz * 1.35), (1, hz * 0.75)],
        ),
    )
    calls = [_call(rng, s, p, [(0, 0), (0.12, 1), (0.75, 0.9), (1, 0)], throat, slope_db=-2.5, rough=0.3, breath=0.1) for s, p in plan]  # fmt: skip
    return _sequence(rng, calls, 0.05, 0.3)


def crow_caw(rng: Rng) -> Signal:
    """Two to four harsh caws: a rough source and formants near 1.5 kHz."""
    hz, dur = between(rng, 380, 560), between(rng, 0.26, 0.42)
    calls = [
        _call(
            rng, dur * rng.uniform(0.9, 1.1), [(0, hz * 0.9), (0.3, hz * 1.1), (1, hz * 0.85)],
            [(0, 0), (0.1, 1), (0.7, 0.9), (1, 0)], [(1300, 350, 1.0), (2000, 500, 0.9), (3500, 900, 0.4)],
            slope_db=-1, rough=0.8, breath=0.7, growl_hz=between(rng, 55, 90),
        )
        for _ in range(int(rng.integers(2, 5)))
    ]  # fmt: skip
    return _sequence(rng, calls, between(rng, 0.22, 0.4))


def duck_quack(rng: Rng) -> Signal:
    """Nasal, buzzing, each quack softer than the one before."""
    hz, dur = between(rng, 190, 280), between(rng, 0.14, 0.24)
    count = int(rng.integers(3, 7))
    calls = [
        (1 - 0.12 * k) * _call(
            rng, dur, [(0, hz * 1.1), (0.5, hz), (1, hz * 0.85)], [(0, 0), (0.08, 1), (0.7, 0.8), (1, 0)],
            [(1150, 180, 1.0), (2100, 260, 1.1), (3300, 500, 0.5)], slope_db=-0.5, rough=0.3, breath=0.2,
        )
        for k in range(count)
    ]  # fmt: skip
    return _sequence(rng, calls, between(rng, 0.12, 0.24))


def goose_honk(rng: Rng) -> Signal:
    """Brassy honks that break upwards."""
    hz, dur = between(rng, 330, 450), between(rng, 0.22, 0.38)
    calls = [
        _call(
            rng, dur, [(0, hz * 0.75), (0.2, hz), (0.3, hz * 1.35), (1, hz * 1.15)], [(0, 0), (0.1, 1), (0.7, 0.8), (1, 0)],
            [(900, 200, 1.0), (1700, 300, 1.1), (2700, 500, 0.6)], slope_db=-1, rough=0.25, breath=0.15,
        )
        for _ in range(int(rng.integers(2, 6)))
    ]  # fmt: skip
    return _sequence(rng, calls, between(rng, 0.2, 0.45))


def gull_cry(rng: Rng) -> Signal:
    """A series of falling, piercing cries, the first long."""
    hz = between(rng, 850, 1250)
    count = int(rng.integers(2, 6))
    calls = [
        _call(
            rng, (0.7 if k == 0 else 0.35) * rng.uniform(0.85, 1.1),
            [(0, hz * 0.9), (0.15, hz * 1.35), (0.6, hz * 1.1), (1, hz * 0.75)], [(0, 0), (0.12, 1), (0.7, 0.8), (1, 0)],
            [(1700, 500, 1.0), (2900, 700, 1.0), (4500, 1000, 0.5)], slope_db=-2, rough=0.2, breath=0.08,
        )
        for k in range(count)
    ]  # fmt: skip
    return _sequence(rng, calls, between(rng, 0.1, 0.25))


def sheep_bleat(rng: Rng) -> Signal:
    """A vowel that trembles nine to twelve times a second."""
    seconds, hz = between(rng, 0.8, 1.5), between(rng, 210, 330)
    x = _call(rng, seconds, [(0, hz), (0.2, hz * 1.12), (1, hz * 0.92)], [(0, 0), (0.1, 1), (0.8, 0.8), (1, 0)], [(750, 160, 1), (1600, 220, 0.9), (2600, 400, 0.5)], slope_db=-2, rough=0.2, breath=0.15)  # fmt: skip
    return x * (1 + 0.65 * np.sin(2 * np.pi * between(rng, 8.5, 12) * times(len(x))))


def cow_moo(rng: Rng) -> Signal:
    """Starts closed and dark, opens and rises, sinks at the end."""
    seconds, hz = between(rng, 1.5, 2.8), between(rng, 95, 150)
    closed: Formants = [(220, 90, 1.2), (550, 160, 0.5), (1300, 300, 0.15)]
    opened: Formants = [(480, 140, 1.2), (950, 200, 0.8), (2000, 400, 0.3)]
    return _call(rng, seconds, [(0, hz * 0.8), (0.4, hz), (0.75, hz * 1.35), (1, hz * 0.9)], [(0, 0), (0.12, 0.7), (0.6, 1), (1, 0)], closed, moves=opened, slope_db=-3, rough=0.15, breath=0.06)  # fmt: skip


def pig_grunt(rng: Rng) -> Signal:
    """Short, low, pulsed grunts."""
    calls = [
        _call(
            rng, between(rng, 0.12, 0.28), [(0, 75), (0.4, 105), (1, 70)], [(0, 0), (0.15, 1), (0.6, 0.7), (1, 0)],
            [(420, 130, 1.2), (1150, 280, 0.8), (2400, 600, 0.4)], slope_db=-1, rough=0.6, breath=0.8, growl_hz=between(rng, 24, 36),
        )
        for _ in range(int(rng.integers(3, 7)))
    ]  # fmt: skip
    return _sequence(rng, calls, between(rng, 0.1, 0.28), 0.4)


def hen_cluck(rng: Rng) -> Signal:
    """Clucks, then one that is drawn out and jumps up."""
    hz = between(rng, 420, 560)
    throat: Formants = [(950, 260, 1.0), (1900, 400, 1.0), (3000, 700, 0.5)]
    calls = [_call(rng, between(rng, 0.05, 0.1), [(0, hz * 1.15), (1, hz * 0.85)], [(0, 0), (0.15, 1), (1, 0)], throat, slope_db=-1.5, rough=0.35, breath=0.25) for _ in range(int(rng.integers(4, 9)))]  # fmt: skip
    last = _call(rng, between(rng, 0.35, 0.6), [(0, hz), (0.3, hz * 1.7), (0.7, hz * 1.5), (1, hz)], [(0, 0), (0.3, 1), (1, 0)], throat, slope_db=-1.5, rough=0.4, breath=0.25)  # fmt: skip
    return _sequence(rng, [*calls, last], between(rng, 0.15, 0.28), 0.3)


def horse_neigh(rng: Rng) -> Signal:
    """High, shaken and falling into a snort."""
    seconds, hz = between(rng, 1.2, 2.2), between(rng, 800, 1150)
    x = _call(rng, seconds, [(0, hz * 0.8), (0.15, hz * 1.2), (0.6, hz * 0.9), (1, hz * 0.35)], [(0, 0), (0.1, 1), (0.7, 0.8), (1, 0)], [(1100, 300, 1), (2200, 500, 1), (3600, 800, 0.6)], slope_db=-2, rough=0.3, breath=0.25)  # fmt: skip
    shaken = x * (1 + 0.5 * np.sin(2 * np.pi * between(rng, 9, 13) * times(len(x))))
    m = length(0.45)
    snort = resonate(noise(rng, m), [(500, 300, 1), (1500, 800, 0.8)]) * swell(m, 0.03, 0.3) * (1 + 0.8 * np.sin(2 * np.pi * 26 * times(m)))  # fmt: skip
    return np.concatenate([shaken / np.abs(shaken).max(), 0.35 * snort / np.abs(snort).max()])


def donkey_bray(rng: Rng) -> Signal:
    """In and out, squeaking in and roaring out, three to five times."""
    calls: list[Signal] = []
    for _ in range(int(rng.integers(2, 5))):
        hz = between(rng, 500, 650)
        inward = _call(rng, between(rng, 0.35, 0.5), [(0, hz), (1, hz * 1.3)], [(0, 0), (0.2, 0.7), (1, 0)], [(1300, 400, 1), (2600, 700, 0.7)], rough=0.3, breath=0.7)  # fmt: skip
        outward = _call(rng, between(rng, 0.5, 0.75), [(0, hz * 0.6), (1, hz * 0.38)], [(0, 0), (0.1, 1), (0.7, 0.9), (1, 0)], [(650, 200, 1.2), (1400, 300, 1), (2500, 600, 0.5)], slope_db=-1, rough=0.7, breath=0.4, growl_hz=45)  # fmt: skip
        calls += [inward, outward * 1.5]
    return _sequence(rng, calls, 0.06, 0.2)


def owl_hoot(rng: Rng) -> Signal:
    """Nearly pure tones at 350 to 480 Hz: one, a pause, then a wavering long one."""
    hz = between(rng, 330, 470)

    def hoot(seconds: float, shake: float) -> Signal:
        n = length(seconds)
        f0 = hz * curve(n, [(0, 0.96), (seconds * 0.3, 1.02), (seconds, 0.94)])
        tone = harmonics(f0, (1, 0.09, 0.04)) * (1 - shake * 0.5 * (1 + np.sin(2 * np.pi * 13 * times(n))))  # fmt: skip
        return (tone + 0.02 * band(noise(rng, n), 200, 1500)) * swell(n, 0.07, 0.15)

    parts = [hoot(between(rng, 0.3, 0.5), 0.0), silence(between(rng, 0.4, 0.9))]
    parts += [hoot(0.12, 0.0), silence(0.12), hoot(between(rng, 0.8, 1.3), 0.35)]
    return np.concatenate(parts)


def wolf_howl(rng: Rng) -> Signal:
    """Glides up by a fourth, holds with small waves, sinks away."""
    seconds, hz = between(rng, 3.0, 5.5), between(rng, 340, 480)
    n = length(seconds)
    f0 = hz * curve(n, [(0, 0.65), (0.5, 1.0), (seconds * 0.4, 1.08), (seconds * 0.75, 1.0), (seconds, 0.7)]) * wander(rng, n, 4, 0.012)  # fmt: skip
    tone = harmonics(f0, (1.0, 0.45, 0.16, 0.08, 0.03)) + 0.03 * noise(rng, n)
    return resonate(tone, [(700, 300, 1.0), (1400, 500, 0.5)]) * swell(n, 0.3, 1.0) + 0.15 * tone * swell(n, 0.4, 1.2)  # fmt: skip


def fox_cry(rng: Rng) -> Signal:
    """A hoarse scream, three times."""
    hz = between(rng, 620, 880)
    calls = [
        _call(
            rng, between(rng, 0.4, 0.65), [(0, hz * 0.8), (0.3, hz * 1.2), (1, hz * 0.8)], [(0, 0), (0.2, 1), (0.7, 0.9), (1, 0)],
            [(1400, 350, 1), (2400, 500, 1), (4000, 900, 0.5)], slope_db=-1, rough=0.9, breath=0.9,
        )
        for _ in range(int(rng.integers(2, 4)))
    ]  # fmt: skip
    return _sequence(rng, calls, between(rng, 0.35, 0.6))


def frog_croak(rng: Rng) -> Signal:
    """Trains of pulses through two resonances, a few croaks."""
    pulses, hz = between(rng, 32, 60), between(rng, 500, 1100)
    calls = []
    for _ in range(int(rng.integers(2, 6))):
        n = length(between(rng, 0.25, 0.5))
        train = buzz(np.full(n, pulses) * wander(rng, n, 10, 0.03), 0, 150)
        calls.append(resonate(train, [(hz, 110, 1.0), (hz * 2.3, 260, 0.8)]) * swell(n, 0.08, 0.1))
    return _sequence(rng, calls, between(rng, 0.2, 0.45))


def bee_buzz(rng: Rng) -> Signal:
    """Wings at 180 to 250 beats a second come near and go, bending as the bee turns."""
    seconds = between(rng, 1.8, 4.0)
    n = length(seconds)
    f0 = between(rng, 175, 250) * wander(rng, n, 4, 0.05)
    near = np.clip(wander(rng, n, 1.8, 0.5), 0.08, None) * np.sin(np.pi * times(n) / seconds)
    return resonate(buzz(f0, -3, 40), [(450, 400, 1), (1300, 900, 0.8), (3000, 2000, 0.5)]) * near


def baby_cry(rng: Rng) -> Signal:
    """Wails of 0.6 to 1.2 s at 350 to 550 Hz with open vowels, and a gasp between them."""
    hz = between(rng, 370, 520)
    parts: list[Signal] = []
    for k in range(int(rng.integers(2, 5))):
        seconds = between(rng, 0.6, 1.2)
        wail = _call(
            rng, seconds, [(0, hz * 0.8), (0.2, hz * 1.15), (0.7, hz * 1.05), (1, hz * 0.7)],
            [(0, 0), (0.12, 1), (0.75, 0.9), (1, 0)],
            [(1100, 220, 1.0), (1750, 260, 0.9), (3300, 450, 0.8), (5200, 900, 0.4)],
            slope_db=-1.5, rough=0.15 + 0.1 * k, breath=0.12,
        )  # fmt: skip
        m = length(between(rng, 0.15, 0.3))
        gasp = resonate(noise(rng, m), [(1500, 700, 1), (3500, 1200, 0.8)]) * swell(m, 0.1, 0.05)
        parts += [wail / np.abs(wail).max(), silence(0.05), 0.12 * gasp / np.abs(gasp).max(), silence(0.03)]  # fmt: skip
    return np.concatenate(parts[:-3])


def songbird(rng: Rng) -> Signal:
    """A phrase of quick sweeps between 2.5 and 6 kHz, for ambiences."""
    track = silence(between(rng, 0.7, 1.8))
    hz, at = between(rng, 2600, 4800), 0.02
    while at < len(track) / RATE - 0.2:
        n = length(between(rng, 0.05, 0.16))
        f0 = hz * curve(n, [(0, between(rng, 0.8, 1.2)), (n / RATE, between(rng, 0.75, 1.35))])
        place(track, harmonics(f0, (1, 0.08)) * swell(n, 0.015, 0.03), at, rng.uniform(0.4, 1))
        at += n / RATE + between(rng, 0.02, 0.12)
    return track


RECIPES: dict[str, Recipe] = {
    recipe.__name__: recipe
    for recipe in (
        baby_cry, bee_buzz, cat_meow, cow_moo, crow_caw, dog_bark, donkey_bray, duck_quack, fox_cry, frog_croak,
        goose_honk, gull_cry, hen_cluck, horse_neigh, owl_hoot, pig_grunt, rooster_crow, sheep_bleat, wolf_howl,
    )
}  # fmt: skip
