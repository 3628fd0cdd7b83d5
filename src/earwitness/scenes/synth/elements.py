"""Water, air, fire and explosions: shaped noise, bubbles and grains."""

from __future__ import annotations

import numpy as np

from earwitness.scenes.synth.blocks import (
    RATE,
    Recipe,
    Rng,
    Signal,
    between,
    buzz,
    curve,
    decay,
    grains,
    length,
    noise,
    phase_of,
    place,
    random_modes,
    shaped_noise,
    silence,
    strike,
    swell,
    tick,
    times,
    tuned_modes,
    wander,
)


def bubble(rng: Rng, hz: float) -> Signal:
    """One bubble: a damped sine that rises (Minnaert; van den Doel, "Physically based models for liquid sounds", 2005)."""
    t60 = 6.91 / (0.13 * hz + 0.0072 * hz**1.5 / 10)
    n = length(min(0.25, t60))
    f0 = hz * (1 + between(rng, 0.5, 3.0) * times(n))
    return np.sin(phase_of(f0)) * decay(n, max(t60, 0.01)) * swell(n, 0.001, 0.002)


def _bubbles(rng: Rng, low: float, high: float, count: int = 24) -> list[Signal]:
    made = []
    for _ in range(count):
        hz = between(rng, low, high)
        made.append(bubble(rng, hz) * (low / hz) ** 0.6)
    return made


def _running(rng: Rng, seconds: float, per_s: float, low: float, high: float, hiss_db: float, spectrum: list[tuple[float, float]]) -> Signal:  # fmt: skip
    """Flowing water: very many bubbles over the hiss of the surface."""
    n = length(seconds)
    flow = shaped_noise(rng, n, spectrum) * np.clip(wander(rng, n, 14, 0.15), 0.1, None)
    drops = grains(rng, seconds, per_s, _bubbles(rng, low, high))[:n]
    drops /= np.sqrt(np.mean(np.square(drops))) + 1e-9
    return drops + flow * 10 ** (hiss_db / 20)


def rain_burst(rng: Rng) -> Signal:
    """Heavy rain on a roof: a flat hiss made of countless drops, some of them near and hard."""
    seconds = between(rng, 4.0, 7.5)
    n = length(seconds)
    hiss = shaped_noise(
        rng,
        n,
        [
            (60, rng.uniform(-22, -10)),
            (300, rng.uniform(-12, -4)),
            (1200, -3),
            (4000, 0),
            (9000, rng.uniform(-9, -1)),
            (18000, rng.uniform(-22, -8)),
        ],
    )
    drops = [tick(rng, between(rng, 0.002, 0.009), between(rng, 500, 3500), 14000) for _ in range(20)]  # fmt: skip
    taps = grains(rng, seconds, between(rng, 120, 420), drops)[:n]
    taps /= np.sqrt(np.mean(np.square(taps)))
    gust = np.clip(wander(rng, n, 0.8, 0.1), 0.5, None)
    return (hiss + between(rng, 0.25, 0.6) * taps) * gust * swell(n, between(rng, 0.1, 0.3), 0.25)


def wind_gust(rng: Rng) -> Signal:
    """A gust: noise whose level and centre rise and fall together, howling a little."""
    seconds = between(rng, 3.5, 7.0)
    n = length(seconds)
    gust = np.clip(wander(rng, n, 0.9, 0.35), 0.15, None) * np.sin(np.pi * times(n) / seconds)
    low = shaped_noise(rng, n, [(30, 0), (150, 0), (500, -9), (2000, -26), (8000, -48)])
    high = shaped_noise(rng, n, [(100, -14), (400, 0), (1000, -5), (3000, -20), (12000, -42)])
    whistle = buzz(between(rng, 260, 520) * (0.75 + 0.5 * np.clip(gust, 0, 1.4)), -14, 3)
    airy = whistle * (0.5 + 0.5 * noise(rng, n) * 0.3)
    return low * gust**1.2 + 0.9 * high * gust**2 + between(rng, 0.0, 0.12) * airy * gust**3


def wave_crash(rng: Rng) -> Signal:
    """A breaker: a roar that swells, bursts into foam and runs out with a hiss."""
    seconds = between(rng, 4.5, 7.5)
    n = length(seconds)
    crest = seconds * between(rng, 0.3, 0.42)
    roar = shaped_noise(rng, n, [(40, -6), (150, 0), (600, -2), (2500, -10), (9000, -26)])
    foam = shaped_noise(rng, n, [(150, -16), (1000, -4), (3500, 0), (9000, -5), (17000, -16)])
    rise = curve(n, [(0, 0.05), (crest, 1.0), (crest + 0.8, 0.55), (seconds, 0.03)])
    late = curve(n, [(0, 0.02), (crest, 0.35), (crest + 0.5, 0.8), (seconds * 0.8, 0.3), (seconds, 0.05)])  # fmt: skip
    return roar * rise * np.clip(wander(rng, n, 5, 0.15), 0.3, None) + 0.8 * foam * late * np.clip(wander(rng, n, 11, 0.12), 0.3, None)  # fmt: skip


def water_splash(rng: Rng) -> Signal:
    """Something falls in: a slap, a spray of noise, bubbles coming up."""
    seconds = between(rng, 1.0, 2.4)
    n = length(seconds)
    spray = shaped_noise(rng, n, [(150, -10), (700, 0), (3000, -3), (9000, -12), (16000, -24)])
    spray *= curve(n, [(0, 0), (0.02, 1), (0.15, 0.55), (seconds * 0.5, 0.14), (seconds, 0)])
    wake = grains(rng, seconds, 160 * np.exp(-np.linspace(0, 3.5, 60)), _bubbles(rng, 300, 2600))[
        :n
    ]
    track = spray + 0.9 * wake
    place(track, tick(rng, 0.06, 90, 2500), 0.0, 1.6)
    if rng.uniform() < 0.4:
        place(track, tick(rng, 0.05, 200, 3000), between(rng, 0.15, 0.4), 0.8)
    return track


def fish_splash(rng: Rng) -> Signal:
    """A small, quick splash with a plop."""
    seconds = between(rng, 0.6, 1.3)
    n = length(seconds)
    track = shaped_noise(rng, n, [(300, -12), (1500, 0), (6000, -6), (14000, -18)]) * curve(n, [(0, 0), (0.03, 0.5), (0.14, 0.15), (seconds, 0)])  # fmt: skip
    for at in (0.02, between(rng, 0.08, 0.2)):
        place(track, bubble(rng, between(rng, 350, 800)), at, 1.1)
    return track + 0.5 * grains(rng, seconds, 70 * np.exp(-np.linspace(0, 4, 40)), _bubbles(rng, 700, 3500))[:n]  # fmt: skip


def tap_running(rng: Rng) -> Signal:
    """A kitchen tap into a sink of steel: bubbles, hiss and a little ring."""
    seconds = between(rng, 3.0, 6.5)
    x = _running(rng, seconds, between(rng, 500, 900), 500, 4200, between(rng, -3, 3), [(100, -20), (400, -6), (1500, -1), (5000, 0), (12000, -8), (18000, -18)])  # fmt: skip
    n = len(x)
    return x * curve(n, [(0, 0.2), (0.25, 1), (seconds - 0.2, 1), (seconds, 0.1)]) * swell(n, 0.05, 0.1)  # fmt: skip


def water_pour(rng: Rng) -> Signal:
    """A vessel fills: bubbles and a resonance that climbs as the air above the water shortens."""
    seconds = between(rng, 1.8, 4.2)
    x = _running(rng, seconds, 330, 450, 3000, -9, [(150, -14), (700, 0), (3000, -8), (12000, -24)])
    n = len(x)
    f0 = between(rng, 380, 600) * curve(n, [(0, 1.0), (seconds * 0.7, 1.7), (seconds, 2.6)])
    resonance = np.sin(phase_of(f0 * wander(rng, n, 30, 0.05))) * np.clip(
        wander(rng, n, 35, 0.6), 0, None
    )
    return (x + 0.35 * resonance) * swell(n, 0.15, 0.2)


def water_cooler_gurgle(rng: Rng) -> Signal:
    """Big bubbles rise in a bottle."""
    seconds = between(rng, 1.2, 2.6)
    track = silence(seconds)
    at = 0.03
    while at < seconds - 0.25:
        for late in np.cumsum(rng.exponential(0.02, 4)):
            place(track, bubble(rng, between(rng, 130, 420)), at + float(late), rng.uniform(0.5, 1))
        at += between(rng, 0.12, 0.26)
    return track + 0.2 * grains(rng, seconds, 40, _bubbles(rng, 400, 1200))


def vacuum_flush(rng: Rng) -> Signal:
    """A rush of water, then a violent suck of air that stops short."""
    seconds = between(rng, 2.2, 4.0)
    n = length(seconds)
    air = shaped_noise(rng, n, [(80, -10), (400, 0), (1500, -2), (6000, -8), (15000, -22)])
    water = shaped_noise(rng, n, [(200, -10), (1500, 0), (8000, -10)])
    suck = curve(n, [(0, 0), (seconds * 0.35, 0.1), (seconds * 0.45, 1), (seconds * 0.8, 0.9), (seconds * 0.9, 0.05), (seconds, 0)])  # fmt: skip
    pour = curve(n, [(0, 0), (0.15, 0.35), (seconds * 0.5, 0.3), (seconds * 0.7, 0), (seconds, 0)])
    return air * suck + water * pour


def sprinkler_burst(rng: Rng) -> Signal:
    """An impulse sprinkler: puffs of spray with a clack, five a second."""
    seconds, gap = between(rng, 3.0, 5.5), between(rng, 0.16, 0.26)
    n = length(seconds)
    saw = (times(n) / gap) % 1
    spray = shaped_noise(rng, n, [(300, -16), (2000, -2), (6000, 0), (16000, -8)]) * (0.25 + np.exp(-5 * saw))  # fmt: skip
    for k in range(int(seconds / gap)):
        place(spray, strike(rng, random_modes(rng, 6, 900, 5000, 0.03)), k * gap, 1.2)
    return spray * swell(n, 0.1, 0.2)


def frying_sizzle(rng: Rng) -> Signal:
    """Water boils off in hot fat: a bright hiss with snaps, loud at first."""
    seconds = between(rng, 3.0, 6.5)
    n = length(seconds)
    hiss = shaped_noise(rng, n, [(300, -22), (1500, -8), (5000, 0), (11000, -1), (18000, -8)]) * np.clip(wander(rng, n, 20, 0.2), 0.2, None)  # fmt: skip
    snaps = grains(rng, seconds, 130, [tick(rng, between(rng, 0.001, 0.004), 1500, 14000) for _ in range(16)])[:n]  # fmt: skip
    return (0.35 * hiss + 1.1 * snaps) * curve(n, [(0, 0.3), (0.3, 1.0), (seconds, 0.6)]) * swell(n, 0.05, 0.3)  # fmt: skip


def milk_steam(rng: Rng) -> Signal:
    """Steam into milk: a hoarse hiss whose resonance sinks as the foam rises."""
    seconds = between(rng, 2.5, 5.5)
    n = length(seconds)
    hiss = shaped_noise(rng, n, [(150, -16), (700, -4), (2500, 0), (7000, -4), (16000, -14)])
    f0 = between(rng, 420, 700) * curve(n, [(0, 1.3), (seconds, 0.85)]) * wander(rng, n, 25, 0.08)
    gurgle = buzz(f0, -3, 14) * np.clip(wander(rng, n, 45, 0.8), 0, None)
    return (0.9 * hiss * np.clip(wander(rng, n, 30, 0.3), 0.1, None) + 0.6 * gurgle) * swell(
        n, 0.08, 0.15
    )


def spray_can(rng: Rng) -> Signal:
    """The ball rattles, then the nozzle hisses."""
    shakes = int(rng.integers(4, 9))
    hiss_s = between(rng, 0.5, 1.4)
    track = silence(0.14 * shakes + 0.25 + hiss_s)
    can = tuned_modes(rng, between(rng, 1500, 2600), (1, 1.6, 2.5, 3.6), 0.06, tilt=0.2)
    for k in range(shakes):
        place(track, strike(rng, can, hardness_hz=8000), 0.01 + k * 0.14 * rng.uniform(0.92, 1.05), rng.uniform(0.6, 1))  # fmt: skip
    m = length(hiss_s)
    hiss = shaped_noise(rng, m, [(500, -26), (2500, -6), (7000, 0), (18000, -4)]) * swell(
        m, 0.02, 0.04
    )
    place(track, hiss, 0.14 * shakes + 0.2, 0.45)
    return track


def sunscreen_spray(rng: Rng) -> Signal:
    """Two to four short puffs."""
    gap, count = between(rng, 0.45, 0.65), int(rng.integers(2, 5))
    track = silence(gap * count)
    for k in range(count):
        m = length(between(rng, 0.18, 0.35))
        place(track, shaped_noise(rng, m, [(500, -26), (3000, -5), (9000, 0), (18000, -4)]) * swell(m, 0.015, 0.05), gap * k + 0.01)  # fmt: skip
    return track


def air_release(rng: Rng) -> Signal:
    """Brakes let off compressed air: a hard onset and a long hiss."""
    seconds = between(rng, 0.9, 2.4)
    n = length(seconds)
    hiss = shaped_noise(rng, n, [(150, -22), (1000, -6), (4000, 0), (12000, -3), (19000, -12)])
    return hiss * (0.12 + decay(n, seconds * 1.3)) * swell(n, 0.004, 0.08)


def can_open(rng: Rng) -> Signal:
    """A ring pull: snap, burst of gas, the tear of the lid."""
    track = silence(between(rng, 0.8, 1.3))
    place(track, strike(rng, random_modes(rng, 12, 1200, 9000, 0.05), hardness_hz=12000), 0.02, 0.7)
    m = length(between(rng, 0.25, 0.45))
    place(track, shaped_noise(rng, m, [(500, -18), (3000, -3), (8000, 0), (18000, -4)]) * decay(m, 0.4) * swell(m, 0.002, 0.03), 0.03, 1.0)  # fmt: skip
    for at in 0.25 + np.cumsum(rng.exponential(0.02, 7)):
        place(track, tick(rng, 0.01, 1500, 9000), float(at), rng.uniform(0.5, 1.2))
    return track


def bottle_open(rng: Rng) -> Signal:
    """A crown cap: a metallic click and a short hiss, the cap falling."""
    track = silence(between(rng, 0.9, 1.6))
    place(track, strike(rng, random_modes(rng, 10, 1500, 8000, 0.06), hardness_hz=12000), 0.02)
    m = length(between(rng, 0.2, 0.4))
    place(track, shaped_noise(rng, m, [(400, -16), (2500, 0), (9000, -2), (18000, -8)]) * decay(m, 0.3) * swell(m, 0.002, 0.03), 0.03, 0.7)  # fmt: skip
    cap = tuned_modes(rng, between(rng, 3200, 5200), (1, 1.7, 2.6), 0.09, tilt=0.2)
    at, gap = between(rng, 0.4, 0.55), 0.14
    for _ in range(5):
        place(track, strike(rng, cap, hardness_hz=12000), at, 0.35)
        at, gap = at + gap, gap * 0.65
    return track


def cork_pop(rng: Rng) -> Signal:
    """A Helmholtz pop, falling, and what fizzes after it."""
    n = length(between(rng, 0.5, 1.1))
    f0 = between(rng, 420, 700) * curve(n, [(0, 1.4), (0.03, 1.0), (n / RATE, 0.9)])
    pop = np.sin(phase_of(f0)) * decay(n, 0.09)
    fizz = shaped_noise(rng, n, [(1000, -20), (6000, 0), (17000, -4)]) * curve(n, [(0, 0), (0.04, 1), (n / RATE, 0.1)])  # fmt: skip
    track = pop + between(rng, 0.0, 0.06) * fizz
    place(track, tick(rng, 0.01, 300, 6000), 0, 0.8)
    return track


def fire_crackle(rng: Rng) -> Signal:
    """A camp fire: snaps of all sizes, in bunches, over a soft roar."""
    seconds = between(rng, 3.5, 7.5)
    n = length(seconds)
    pieces = [tick(rng, between(rng, 0.0015, 0.02), between(rng, 400, 2500), between(rng, 6000, 16000)) for _ in range(24)]  # fmt: skip
    bunch = between(rng, 14, 32) * np.clip(wander(rng, 240, 40, 0.9), 0.05, None) ** 2
    snaps = grains(rng, seconds, bunch, pieces)[:n]
    roar = shaped_noise(rng, n, [(30, -4), (100, 0), (400, -10), (2000, -24), (9000, -40)]) * np.clip(wander(rng, n, 4, 0.3), 0.2, None)  # fmt: skip
    hiss = shaped_noise(rng, n, [(800, -14), (5000, 0), (15000, -6)])
    return snaps + between(rng, 0.04, 0.1) * roar + between(rng, 0.008, 0.03) * hiss


def thunder_clap(rng: Rng) -> Signal:
    """A near stroke: cracks, then a roll that goes down in pitch for seconds."""
    seconds = between(rng, 4.0, 7.5)
    n = length(seconds)
    roll = shaped_noise(rng, n, [(20, 0), (80, 0), (200, -8), (800, -24), (4000, -46)])
    claps = np.clip(wander(rng, n, 3.5, 0.7), 0.05, None) * curve(n, [(0, 0.1), (0.25, 1.0), (1.2, 0.7), (seconds, 0.02)])  # fmt: skip
    track = roll * claps
    for at in 0.05 + rng.exponential(0.14, int(rng.integers(3, 7))):
        m = length(between(rng, 0.3, 0.7))
        crack = shaped_noise(rng, m, [(60, -4), (300, 0), (1500, -6), (6000, -16), (15000, -32)]) * decay(m, 0.5)  # fmt: skip
        place(track, crack, float(at), between(rng, 0.5, 1.5))
    return track


def explosion(rng: Rng) -> Signal:
    """A blast: a pressure front, a low boom, debris."""
    seconds = between(rng, 2.2, 4.5)
    n = length(seconds)
    front = shaped_noise(rng, n, [(40, 0), (400, 0), (3000, -6), (12000, -20)]) * decay(n, 0.35)
    boom = shaped_noise(rng, n, [(20, 0), (70, 2), (250, -10), (1500, -34)]) * decay(
        n, seconds * 0.8
    )
    track = 1.2 * front + 1.5 * boom
    debris = grains(rng, seconds, 45 * np.exp(-np.linspace(0, 3, 50)), [tick(rng, 0.02, 200, 4000) for _ in range(10)])[:n]  # fmt: skip
    return (track + 0.25 * debris) * swell(n, 0.002, 0.3)


def firework_bang(rng: Rng) -> Signal:
    """Up with a whistle at times, a bang, a crackle of stars."""
    lead = between(rng, 0.5, 1.0) if rng.uniform() < 0.5 else 0.02
    seconds = lead + between(rng, 1.3, 2.6)
    n = length(seconds)
    track = np.zeros(n)
    if lead > 0.1:
        m = length(lead - 0.05)
        whistle = np.sin(phase_of(curve(m, [(0, 1900), (lead, 3100)]) * wander(rng, m, 20, 0.01))) * swell(m, 0.2, 0.05)  # fmt: skip
        place(track, whistle, 0.0, 0.15)
    m = length(1.0)
    bang = shaped_noise(rng, m, [(40, 0), (300, 0), (2000, -7), (9000, -18)]) * (decay(m, 0.25) + 0.06 * decay(m, 1.2))  # fmt: skip
    place(track, bang, lead)
    if rng.uniform() < 0.7:
        stars = grains(
            rng, seconds - lead - 0.3, 55, [tick(rng, 0.006, 800, 12000) for _ in range(10)]
        )
        place(track, stars * swell(len(stars), 0.05, 0.5), lead + 0.25, 0.5)
    return track


def shelf_collapse(rng: Rng) -> Signal:
    """A board gives, then boxes, tins and boards come down on each other."""
    seconds = between(rng, 1.6, 3.4)
    track = silence(seconds)
    place(track, tick(rng, 0.06, 300, 5000), 0.02, 1.5)
    for at in 0.1 + (seconds - 0.5) * rng.beta(1.3, 2.5, int(rng.integers(14, 26))):
        low = between(rng, 70, 500)
        piece = strike(rng, random_modes(rng, 16, low, low * 14, between(rng, 0.08, 0.3), tilt=0.6), hardness_hz=between(rng, 700, 5000))  # fmt: skip
        place(track, piece, float(at), rng.uniform(0.4, 1.2))
        place(track, tick(rng, 0.05, 150, 5000), float(at), rng.uniform(0.3, 1.2))
    return track


def tree_crash(rng: Rng) -> Signal:
    """Fibres tear ever faster, branches rush, the trunk hits the ground."""
    seconds = between(rng, 3.0, 5.0)
    n = length(seconds)
    hit = seconds * 0.68
    tear = grains(rng, hit, between(rng, 50, 90) * np.linspace(0.15, 1, 50) ** 2, [tick(rng, between(rng, 0.004, 0.03), 300, 7000) for _ in range(14)])  # fmt: skip
    track = np.zeros(n)
    place(track, tear, 0.0, 0.8)
    rush = shaped_noise(rng, n, [(200, -14), (1500, -2), (5000, 0), (14000, -10)]) * curve(n, [(0, 0), (hit * 0.5, 0.05), (hit, 0.5), (hit + 0.4, 0.2), (seconds, 0)])  # fmt: skip
    m = length(seconds - hit)
    thud = shaped_noise(rng, m, [(25, 0), (90, 2), (300, -8), (2000, -26)]) * decay(m, 0.9)
    place(track, thud, hit, 2.0)
    place(track, tick(rng, 0.2, 100, 5000), hit, 1.5)
    return track + rush


def kite_flap(rng: Rng) -> Signal:
    """Cloth in the wind: quick slaps that come and go."""
    seconds = between(rng, 2.5, 5.0)
    n = length(seconds)
    rate = between(rng, 9, 16) * np.clip(wander(rng, n, 2, 0.25), 0.4, None)
    slap = np.abs(np.sin(phase_of(rate) / 2)) ** 6
    cloth = shaped_noise(rng, n, [(60, -8), (250, 0), (1200, -4), (6000, -16), (15000, -34)])
    return cloth * (0.1 + slap) * np.clip(wander(rng, n, 1.5, 0.5), 0.1, None) * swell(n, 0.2, 0.3)


def pigeon_flutter(rng: Rng) -> Signal:
    """Wings clap eight to ten times a second as a bird takes off."""
    seconds = between(rng, 1.1, 2.4)
    n = length(seconds)
    rate = curve(n, [(0, between(rng, 8, 10)), (seconds, between(rng, 9, 12))])
    beat = np.abs(np.sin(phase_of(rate) / 2)) ** 5
    air = shaped_noise(rng, n, [(120, -10), (600, 0), (2500, -3), (9000, -14)])
    made: Signal = air * beat * curve(n, [(0, 1), (seconds, 0.15)]) * swell(n, 0.02, 0.2)
    return made


RECIPES: dict[str, Recipe] = {
    recipe.__name__: recipe
    for recipe in (
        air_release, bottle_open, can_open, cork_pop, explosion, fire_crackle, firework_bang, fish_splash,
        frying_sizzle, kite_flap, milk_steam, pigeon_flutter, rain_burst, shelf_collapse, spray_can,
        sprinkler_burst, sunscreen_spray, tap_running, thunder_clap, tree_crash, vacuum_flush,
        water_cooler_gurgle, water_pour, water_splash, wave_crash, wind_gust,
    )
}  # fmt: skip
