"""Small mechanisms, papers, bags and things that rub: clicks, ratchets, rustle and friction."""

from __future__ import annotations

import numpy as np

from earwitness.scenes.synth.blocks import (
    RATE,
    Recipe,
    Rng,
    Signal,
    band,
    between,
    buzz,
    curve,
    grains,
    length,
    noise,
    phase_of,
    place,
    random_modes,
    resonate,
    shaped_noise,
    silence,
    strike,
    swell,
    tick,
    times,
    tuned_modes,
    wander,
)


def _click(rng: Rng, low: float, high: float, t60_s: float, *, body: float = 0.0) -> Signal:
    """A switch or latch: two parts touch a few milliseconds apart, over a small box."""
    track = silence(0.12)
    part = random_modes(rng, 10, low, high, t60_s, tilt=0.1)
    for at, force in ((0.0, 0.6), (between(rng, 0.004, 0.014), 1.0)):
        place(track, strike(rng, part, hardness_hz=12000), at, force)
        place(track, tick(rng, 0.003, low, high * 1.2), at, force)
    if body:
        place(
            track, strike(rng, random_modes(rng, 8, 140, 700, 0.05), hardness_hz=800), 0.005, body
        )
    return track


def _clicks(rng: Rng, moments: list[float], low: float, high: float, t60_s: float, *, body: float = 0.0) -> Signal:  # fmt: skip
    variants = [_click(rng, low, high, t60_s, body=body) for _ in range(min(6, len(moments)))]
    track = silence(moments[-1] + 0.2)
    for n, at in enumerate(moments):
        place(track, variants[n % len(variants)], at, rng.uniform(0.6, 1.0))
    return track


def mouse_click(rng: Rng) -> Signal:
    """Down and up of a button, once or twice."""
    moments = [0.01, 0.01 + between(rng, 0.07, 0.13)]
    if rng.uniform() < 0.4:
        moments += [at + 0.24 for at in moments]
    return _clicks(rng, moments, 1800, 9000, 0.012)


def keyboard_typing(rng: Rng) -> Signal:
    """Keys at an uneven rhythm, each with its release; the space bar is lower."""
    seconds, at = between(rng, 2.5, 5.0), 0.02
    track = silence(seconds + 0.15)
    keys = [_click(rng, between(rng, 900, 1500), 7000, 0.025, body=0.5) for _ in range(8)]
    space = _click(rng, 500, 4000, 0.04, body=1.0)
    while at < seconds:
        stroke = space if rng.uniform() < 0.15 else keys[int(rng.integers(8))]
        place(track, stroke, at, rng.uniform(0.5, 1.0))
        place(track, keys[int(rng.integers(8))], at + between(rng, 0.06, 0.1), 0.25)
        at += float(np.exp(rng.normal(np.log(0.15), 0.35))) + (0.35 if rng.uniform() < 0.07 else 0)
    return track


def light_switch(rng: Rng) -> Signal:
    """One firm snap of a wall switch."""
    return np.concatenate([silence(0.02), _click(rng, 700, 6000, 0.035, body=0.9), silence(0.12)])


def torch_click(rng: Rng) -> Signal:
    """A push button: in, and out."""
    return _clicks(rng, [0.01, 0.01 + between(rng, 0.1, 0.25)], 1400, 8000, 0.02, body=0.3)


def seatbelt_click(rng: Rng) -> Signal:
    """A tongue slides into a buckle and locks."""
    track = silence(0.45)
    slide = band(noise(rng, length(0.12)), 1500, 9000) * swell(length(0.12), 0.08, 0.02)
    place(track, slide, 0.02, 0.08)
    place(track, _click(rng, 900, 7000, 0.05, body=0.6), 0.14)
    return track


def glovebox_latch(rng: Rng) -> Signal:
    """A latch gives way and the lid drops."""
    track = silence(0.7)
    place(track, _click(rng, 700, 5000, 0.04, body=0.7), 0.02)
    place(track, strike(rng, random_modes(rng, 16, 110, 900, 0.12), hardness_hz=600), between(rng, 0.18, 0.35), 0.9)  # fmt: skip
    return track


def tray_table(rng: Rng) -> Signal:
    """A table falls onto its stops with a knock of plastic."""
    track = silence(between(rng, 0.6, 1.1))
    place(track, _click(rng, 800, 4500, 0.04, body=0.5), 0.02, 0.7)
    at = between(rng, 0.22, 0.4)
    place(track, strike(rng, random_modes(rng, 20, 150, 1800, 0.12), hardness_hz=1200), at)
    place(track, tick(rng, 0.03, 400, 4500), at, 0.6)
    return track


def handbrake_pull(rng: Rng) -> Signal:
    """Teeth of a ratchet, ever more slowly."""
    gaps = np.linspace(0.035, between(rng, 0.06, 0.1), int(rng.integers(7, 12)))
    return _clicks(rng, [float(t) for t in 0.02 + np.cumsum(gaps)], 500, 5000, 0.03, body=0.5)


def ratchet_turn(rng: Rng) -> Signal:
    """A socket wrench: bursts of fast clicks."""
    moments, at = [], 0.02
    for _ in range(int(rng.integers(2, 5))):
        gap = between(rng, 0.018, 0.03)
        for _ in range(int(rng.integers(8, 16))):
            moments.append(at)
            at += gap * rng.uniform(0.9, 1.1)
        at += between(rng, 0.25, 0.4)
    return _clicks(rng, moments, 1500, 9000, 0.02, body=0.15)


def indicator_tick(rng: Rng) -> Signal:
    """A relay: tick and tock, one and a half times a second."""
    period = 60 / between(rng, 75, 100)
    high = _click(rng, 1300, 6000, 0.025, body=0.4)
    low = _click(rng, 900, 5000, 0.03, body=0.6)
    count = int(between(rng, 2.2, 5.0) / period)
    track = silence(count * period + 0.2)
    for n in range(count):
        place(track, high, 0.01 + n * period)
        place(track, low, 0.01 + (n + 0.48) * period, 0.8)
    return track


def stapler_click(rng: Rng) -> Signal:
    """The head comes down through the paper and springs back."""
    track = silence(0.5)
    place(track, _click(rng, 500, 5000, 0.04, body=1.0), 0.02)
    place(track, tick(rng, 0.02, 1500, 9000), 0.04, 0.5)
    place(track, _click(rng, 1200, 7000, 0.05), between(rng, 0.14, 0.25), 0.5)
    return track


def ticket_punch(rng: Rng) -> Signal:
    """Jaws of steel bite once and open."""
    track = silence(0.45)
    place(track, _click(rng, 1600, 9000, 0.05, body=0.3), 0.02)
    place(track, _click(rng, 1800, 8000, 0.03), between(rng, 0.1, 0.18), 0.5)
    return track


def label_gun(rng: Rng) -> Signal:
    """Two to four clacks of a plastic gun."""
    gap = between(rng, 0.3, 0.5)
    moments = [0.01 + n * gap for n in range(int(rng.integers(2, 5)))]
    return _clicks(rng, sorted([*moments, *(m + 0.07 for m in moments)]), 900, 6000, 0.03, body=0.5)


def camera_shutter(rng: Rng) -> Signal:
    """Mirror up, shutter, mirror down."""
    track = silence(0.4)
    for at, force in ((0.01, 0.8), (0.01 + between(rng, 0.05, 0.09), 1.0)):
        place(track, _click(rng, 1100, 9000, 0.02, body=0.35), at, force)
        place(track, tick(rng, 0.025, 2000, 10000), at + 0.006, 0.5 * force)
    whirr = band(noise(rng, length(0.12)), 1500, 5000) * swell(length(0.12), 0.02, 0.05)
    place(track, whirr, 0.14, 0.05)
    return track


def lighter_flick(rng: Rng) -> Signal:
    """A wheel scrapes on flint, then gas burns softly; at times it takes two tries."""
    tries = int(rng.integers(1, 4))
    track = silence(0.35 * tries + 0.35)
    for n in range(tries):
        m = length(between(rng, 0.05, 0.09))
        scrape = band(noise(rng, m), 2500, 14000) * np.abs(np.sin(phase_of(np.full(m, 90.0)))) * swell(m, 0.01, 0.02)  # fmt: skip
        place(track, scrape, 0.02 + 0.35 * n)
        place(track, tick(rng, 0.01, 2000, 12000), 0.06 + 0.35 * n, 0.7)
    flame = band(noise(rng, length(0.3)), 150, 900) * swell(length(0.3), 0.05, 0.2)
    place(track, flame, 0.35 * tries - 0.2, 0.12)
    return track


def match_strike(rng: Rng) -> Signal:
    """A scratch, then the flare of the head."""
    seconds = between(rng, 1.0, 2.0)
    n, m = length(seconds), length(between(rng, 0.18, 0.3))
    track = shaped_noise(rng, n, [(100, -25), (800, -8), (4000, 0), (14000, -8)]) * curve(
        n, [(0, 0), (m / RATE, 0), (m / RATE + 0.06, 1), (m / RATE + 0.35, 0.25), (seconds, 0)]
    )
    scratch = band(noise(rng, m), 1800, 13000) * np.abs(wander(rng, m, 120, 0.5)) * swell(m, 0.05, 0.03)  # fmt: skip
    place(track, scratch, 0, 1.0)
    return track + 0.5 * grains(rng, seconds, 20, [tick(rng, 0.004, 1500, 12000) for _ in range(6)])


def _zip(rng: Rng, seconds: float, teeth_per_s: float, low: float, high: float) -> Signal:
    """Teeth close at a rate that swells and falls: a buzz whose pitch follows the hand."""
    n = length(seconds)
    rate = teeth_per_s * curve(n, [(0, 0.5), (seconds * 0.4, 1.1), (seconds, 0.7)]) * wander(rng, n, 12, 0.08)  # fmt: skip
    phase = np.cumsum(rate) / RATE
    teeth = np.flatnonzero(np.diff(np.floor(phase)) > 0)
    clicks = np.zeros(n)
    clicks[teeth] = rng.uniform(0.5, 1.0, len(teeth))
    rough = 0.08 * noise(rng, n)
    x = resonate(clicks + rough * 0.2, [(low, low * 0.5, 3), ((low * high) ** 0.5, low, 3), (high, high * 0.4, 2)])  # fmt: skip
    return x * swell(n, 0.03, 0.03)


def bag_zip(rng: Rng) -> Signal:
    """The zip of a bag, open or shut."""
    return _zip(rng, between(rng, 0.5, 1.2), between(rng, 220, 420), 2600, 7500)


def tent_zip(rng: Rng) -> Signal:
    """A long zip in thin fabric, in two pulls."""
    first = _zip(rng, between(rng, 0.6, 1.1), between(rng, 150, 300), 1700, 6000)
    second = _zip(rng, between(rng, 0.4, 0.9), between(rng, 150, 300), 1700, 6000)
    return np.concatenate([first, silence(between(rng, 0.05, 0.2)), second])


def velcro_rip(rng: Rng) -> Signal:
    """Thousands of hooks let go: dense, bright grains."""
    seconds = between(rng, 0.5, 1.3)
    pieces = [tick(rng, between(rng, 0.001, 0.004), 1500, 16000) for _ in range(12)]
    rate = 900 * np.abs(wander(rng, 200, 30, 0.25))
    return grains(rng, seconds, rate, pieces) * swell(length(seconds), 0.04, 0.03)


def tape_pull(rng: Rng) -> Signal:
    """Adhesive tape comes off a roll in jerks, and is torn."""
    seconds = between(rng, 0.8, 1.6)
    n = length(seconds)
    stick = buzz(between(rng, 150, 260) * curve(n, [(0, 0.8), (seconds, 1.3)]) * wander(rng, n, 20, 0.15), -2, 40)  # fmt: skip
    rough = noise(rng, n) * np.abs(wander(rng, n, 60, 0.6))
    pulled = resonate(0.25 * stick + 0.3 * rough, [(1700, 1200, 1), (3800, 2500, 1.4), (8000, 4000, 1)])  # fmt: skip
    track = np.concatenate([pulled * swell(n, 0.03, 0.02), silence(0.25)])
    place(track, tick(rng, 0.05, 1500, 12000), seconds + 0.05, 0.5 * float(np.abs(pulled).max()))
    return track


def _rustle(rng: Rng, seconds: float, per_s: float, low: float, high: float, crackle: float) -> Signal:  # fmt: skip
    """Creases of a sheet: bursts of friction with crackling on top, as a hand moves."""
    n = length(seconds)
    hand = np.clip(wander(rng, n, 3.5, 0.75), 0.02, None) ** 1.5
    friction = band(noise(rng, n), low, high) * np.clip(wander(rng, n, 25, 0.6), 0, None)
    pieces = [tick(rng, between(rng, 0.002, 0.012), low, min(high * 1.3, 17000)) for _ in range(16)]
    coarse = hand[:: max(1, n // 400)]
    return (friction * 0.35 + crackle * grains(rng, seconds, per_s * coarse, pieces)[:n]) * np.minimum(hand, 3) * swell(n, 0.08, 0.1)  # fmt: skip


def paper_rustle(rng: Rng) -> Signal:
    """A page is turned or a sheet folded."""
    return _rustle(rng, between(rng, 1.0, 3.0), 60, 900, 9000, 0.8)


def plastic_bag_rustle(rng: Rng) -> Signal:
    """Thin film crackles: more, brighter and shorter grains than paper."""
    return _rustle(rng, between(rng, 1.2, 3.2), 170, 2000, 13000, 1.2)


def towel_shake(rng: Rng) -> Signal:
    """Cloth snaps in the air, twice or three times."""
    count, gap = int(rng.integers(2, 4)), between(rng, 0.4, 0.6)
    track = silence(gap * count + 0.35)
    for n in range(count):
        m = length(0.3)
        whoosh = shaped_noise(rng, m, [(60, -8), (300, 0), (1500, -8), (8000, -25)]) * swell(m, 0.15, 0.12)  # fmt: skip
        place(track, whoosh, gap * n, 0.5)
        place(track, tick(rng, 0.05, 200, 5000), gap * n + 0.16, 2.0)
    return track


def umbrella_open(rng: Rng) -> Signal:
    """The slide runs up, the cloth snaps tight, the catch clicks."""
    track = silence(between(rng, 0.7, 1.1))
    m = length(0.25)
    place(track, band(noise(rng, m), 600, 5000) * swell(m, 0.15, 0.03), 0.02, 0.3)
    place(track, tick(rng, 0.12, 80, 2500), 0.25, 2.2)
    place(track, shaped_noise(rng, length(0.2), [(80, 0), (600, -3), (5000, -20)]) * swell(length(0.2), 0.01, 0.17), 0.26, 0.5)  # fmt: skip
    place(track, _click(rng, 1000, 6000, 0.03), 0.33, 0.7)
    return track


def _strokes(rng: Rng, count: int, stroke_s: float, teeth_hz: float, peaks: list[tuple[float, float, float]], back: float) -> Signal:  # fmt: skip
    """To and fro over a rough face: noise broken up at the rate at which teeth pass, forth louder than back."""
    parts = []
    for n in range(count * 2):
        seconds = stroke_s * rng.uniform(0.85, 1.15)
        m = length(seconds)
        speed = np.sin(np.pi * times(m) / seconds) ** 0.7
        teeth = 0.6 + 0.4 * np.sin(phase_of(teeth_hz * (0.3 + speed)))
        x = noise(rng, m) * speed * teeth * (back if n % 2 else 1.0) * rng.uniform(0.8, 1.0)
        parts += [x, silence(0.02)]
    raw = np.concatenate(parts)
    return resonate(raw, peaks) + 0.03 * raw


def handsaw_strokes(rng: Rng) -> Signal:
    """A saw through wood."""
    f = between(rng, 1400, 2600)
    return _strokes(rng, int(rng.integers(4, 8)), between(rng, 0.22, 0.36), between(rng, 90, 170), [(f, 900, 2), (f * 2.2, 2500, 2), (380, 300, 0.8)], 0.5)  # fmt: skip


def sandpaper_rub(rng: Rng) -> Signal:
    """Paper over wood: even, bright strokes."""
    return _strokes(rng, int(rng.integers(4, 8)), between(rng, 0.18, 0.32), 400, [(3500, 3500, 2), (7500, 5000, 2)], 0.85)  # fmt: skip


def metal_file(rng: Rng) -> Signal:
    """A file over steel, which rings."""
    f = between(rng, 2200, 3800)
    return _strokes(rng, int(rng.integers(3, 6)), between(rng, 0.25, 0.4), between(rng, 500, 800), [(f, 120, 2), (f * 1.6, 180, 2), (f * 2.3, 900, 1.5)], 0.25)  # fmt: skip


def _squeal(rng: Rng, seconds: float, hz: float, glide: float, rough: float, slope_db: float = -6) -> Signal:  # fmt: skip
    """Stick and slip: a buzz whose pitch wanders, with noise where it sticks."""
    n = length(seconds)
    f0 = hz * curve(n, [(0, 1.0), (seconds, glide)]) * wander(rng, n, 9, 0.03)
    level = np.clip(wander(rng, n, 7, 0.4), 0.05, None)
    return (buzz(f0, slope_db, 24) + rough * band(noise(rng, n), hz, min(hz * 6, 18_000))) * level * swell(n, 0.06, 0.12)  # fmt: skip


def door_creak(rng: Rng) -> Signal:
    """A dry hinge: slow stick-slip pulses that speed up and down, through the resonances of a door."""
    seconds = between(rng, 1.2, 2.8)
    n = length(seconds)
    f0 = between(rng, 35, 90) * np.clip(wander(rng, n, 3, 0.35), 0.3, None) * curve(n, [(0, 0.7), (seconds / 2, 1.5), (seconds, 0.8)])  # fmt: skip
    pulses = buzz(f0, -1.5, 120)
    x = resonate(pulses, [(between(rng, 380, 600), 60, 1), (between(rng, 900, 1400), 80, 1.5), (between(rng, 2000, 2900), 160, 1.3), (4200, 400, 0.7)])  # fmt: skip
    return x * np.clip(wander(rng, n, 5, 0.4), 0.1, None) * swell(n, 0.1, 0.1)


def chair_scrape(rng: Rng) -> Signal:
    """Legs over a hard floor: a rough growl of a few hundred hertz."""
    seconds = between(rng, 0.7, 1.6)
    n = length(seconds)
    f0 = between(rng, 110, 210) * np.clip(wander(rng, n, 10, 0.15), 0.5, None)
    raw = buzz(f0, -3, 50) + 0.8 * noise(rng, n)
    x = resonate(raw, [(between(rng, 350, 600), 150, 2), (1200, 300, 1.5), (2600, 700, 1.5)])
    return x * np.clip(wander(rng, n, 8, 0.5), 0.1, None) * swell(n, 0.06, 0.1)


def swing_squeak(rng: Rng) -> Signal:
    """A chain squeaks at both ends of each swing, one higher than the other."""
    hz, half = between(rng, 900, 1700), between(rng, 0.85, 1.1)
    count = int(rng.integers(3, 6))
    track = silence(half * count + 0.6)
    for n in range(count):
        up = n % 2 == 0
        place(track, _squeal(rng, 0.4, hz * (1.0 if up else 0.78), 1.2 if up else 0.88, 0.05), 0.02 + n * half)  # fmt: skip
    return track


def bike_brakes(rng: Rng) -> Signal:
    """Rubber on a rim."""
    return _squeal(rng, between(rng, 0.8, 1.8), between(rng, 1500, 2400), 0.92, 0.1)


def brakes_squeal(rng: Rng) -> Signal:
    """A train comes to a stand: many high tones at once over a rumble."""
    seconds = between(rng, 2.2, 4.5)
    n = length(seconds)
    tones = sum(_squeal(rng, seconds, between(rng, 1800, 5200), between(rng, 0.9, 1.02), 0.05, -9) for _ in range(4))  # fmt: skip
    rumble = shaped_noise(rng, n, [(30, 0), (150, -3), (1000, -20), (6000, -35)]) * curve(n, [(0, 1), (seconds, 0.15)])  # fmt: skip
    return np.asarray(tones) + 0.35 * rumble


def wheel_squeal(rng: Rng) -> Signal:
    """Flanges in a tight curve, heard inside."""
    seconds = between(rng, 2.0, 4.0)
    tones = sum(_squeal(rng, seconds, between(rng, 900, 3400), between(rng, 0.95, 1.06), 0.08, -8) for _ in range(3))  # fmt: skip
    roll = shaped_noise(rng, length(seconds), [(40, 0), (200, -5), (2000, -25)])
    return np.asarray(tones) + 0.3 * roll


def tyre_screech(rng: Rng) -> Signal:
    """Rubber at the limit: a high, rough tone that sags."""
    return _squeal(rng, between(rng, 1.0, 2.4), between(rng, 900, 1500), between(rng, 0.7, 0.85), 0.4, -5)  # fmt: skip


def marker_squeak(rng: Rng) -> Signal:
    """A pen on a white board, stroke by stroke."""
    strokes = [_squeal(rng, between(rng, 0.1, 0.28), between(rng, 1400, 2600), between(rng, 0.8, 1.25), 0.35) for _ in range(int(rng.integers(4, 8)))]  # fmt: skip
    return np.concatenate([np.concatenate([s, silence(between(rng, 0.04, 0.14))]) for s in strokes])


def scissors_snip(rng: Rng) -> Signal:
    """Blades slide over each other and meet, a few times."""
    gap, count = between(rng, 0.35, 0.5), int(rng.integers(3, 6))
    track = silence(gap * count + 0.2)
    for n in range(count):
        m = length(between(rng, 0.12, 0.2))
        slide = resonate(noise(rng, m), [(4200, 1500, 1), (7500, 2500, 1.3)]) * swell(m, 0.08, 0.02)
        place(track, slide, gap * n + 0.02, 0.5)
        place(track, _click(rng, 3000, 11000, 0.04), gap * n + 0.02 + m / RATE, 0.5)
    return track


def twig_snap(rng: Rng) -> Signal:
    """Dry wood breaks: one crack with splinters around it."""
    track = silence(between(rng, 0.35, 0.7))
    place(track, strike(rng, random_modes(rng, 18, 500, 5000, 0.05), hardness_hz=6000), 0.05)
    place(track, tick(rng, 0.015, 800, 10000), 0.05, 2.0)
    for at in 0.03 + rng.exponential(0.06, int(rng.integers(4, 12))):
        place(track, tick(rng, 0.004, 1500, 12000), float(at), rng.uniform(0.2, 0.7))
    return track


def pebbles_crunch(rng: Rng) -> Signal:
    """Steps on shingle: each a burst of many stones."""
    gap, count = between(rng, 0.5, 0.65), int(rng.integers(3, 6))
    stones = [strike(rng, tuned_modes(rng, between(rng, 1200, 4500), (1, 1.7, 2.9), 0.02, tilt=0.3), hardness_hz=7000) for _ in range(12)]  # fmt: skip
    track = silence(gap * count + 0.3)
    for n in range(count):
        place(track, grains(rng, 0.32, np.array([60, 220, 160, 60, 20.0]), stones), gap * n + 0.02, rng.uniform(0.7, 1))  # fmt: skip
    return track


def egg_crack(rng: Rng) -> Signal:
    """A tap on the rim of a bowl, then the shell gives way."""
    track = silence(0.9)
    bowl = tuned_modes(rng, between(rng, 1400, 2600), (1, 1.8, 2.9), 0.1, tilt=0.4)
    place(track, strike(rng, bowl, hardness_hz=5000), 0.03, 0.8)
    place(track, tick(rng, 0.012, 1500, 9000), 0.03, 0.8)
    place(track, grains(rng, 0.22, 110, [tick(rng, 0.003, 2000, 12000) for _ in range(8)]), between(rng, 0.3, 0.45), 0.8)  # fmt: skip
    return track


def phone_vibration(rng: Rng) -> Signal:
    """A motor of 150 to 200 turns a second on a table, in pulses."""
    hz, buzz_s = between(rng, 140, 200), between(rng, 0.4, 0.7)
    n = length(buzz_s)
    f0 = hz * curve(n, [(0, 0.7), (0.06, 1.0), (buzz_s, 1.0)]) * wander(rng, n, 15, 0.01)
    pulse = (buzz(f0, -7, 25) + 0.15 * band(noise(rng, n), 400, 3000) * np.abs(np.sin(phase_of(f0) / 2))) * swell(n, 0.04, 0.05)  # fmt: skip
    gap = buzz_s + between(rng, 0.25, 0.5)
    count = int(rng.integers(2, 4))
    track = silence(gap * count)
    for k in range(count):
        place(track, pulse, gap * k)
    return track


def rail_clack(rng: Rng) -> Signal:
    """Pairs of axles over rail joints, felt more than heard."""
    gap = between(rng, 0.7, 1.1)
    count = max(2, int(between(rng, 2.0, 4.2) / gap))
    track = silence(gap * count + 0.4)
    for n in range(count):
        for at in (0.0, between(rng, 0.12, 0.16)):
            place(
                track,
                strike(rng, random_modes(rng, 14, 50, 500, 0.14), hardness_hz=300),
                0.02 + gap * n + at,
            )
            place(track, tick(rng, 0.04, 300, 2500), 0.02 + gap * n + at, 0.4)
    return track


RECIPES: dict[str, Recipe] = {
    recipe.__name__: recipe
    for recipe in (
        bag_zip, bike_brakes, brakes_squeal, camera_shutter, chair_scrape, door_creak, egg_crack,
        glovebox_latch, handbrake_pull, handsaw_strokes, indicator_tick, keyboard_typing, label_gun,
        light_switch, lighter_flick, marker_squeak, match_strike, metal_file, mouse_click, paper_rustle,
        pebbles_crunch, phone_vibration, plastic_bag_rustle, rail_clack, ratchet_turn, sandpaper_rub,
        scissors_snip, seatbelt_click, stapler_click, swing_squeak, tape_pull, tent_zip, ticket_punch,
        torch_click, towel_shake, tray_table, twig_snap, tyre_screech, umbrella_open, velcro_rip,
        wheel_squeal,
    )
}  # fmt: skip
