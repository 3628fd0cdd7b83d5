"""Things that are struck, dropped or shut: struck modes and contact noise."""

from __future__ import annotations

import numpy as np

from earwitness.scenes.synth.blocks import (
    BAR,
    GLASS,
    Modes,
    Recipe,
    Rng,
    Signal,
    band,
    between,
    bounces,
    decay,
    length,
    noise,
    place,
    random_modes,
    silence,
    strike,
    tick,
    tuned_modes,
    unit,
)


def _wood(rng: Rng, low: float, high: float, t60_s: float = 0.09, count: int = 22) -> Modes:
    return random_modes(rng, count, low, high, t60_s, tilt=0.9)


def _series(rng: Rng, hits: list[tuple[float, float]], make: Recipe, tail_s: float) -> Signal:
    """Several strikes of one thing: a few variants, each hit a little different."""
    variants = [make(rng) for _ in range(min(4, len(hits)))]
    track = silence(hits[-1][0] + tail_s)
    for number, (at, force) in enumerate(hits):
        place(track, variants[number % len(variants)], at, force * rng.uniform(0.8, 1.1))
    return track


def _rhythm(rng: Rng, count: int, gap_s: float, loose: float = 0.1) -> list[tuple[float, float]]:
    gaps = gap_s * (1 + loose * rng.standard_normal(count))
    at = np.concatenate([[0.0], np.cumsum(np.maximum(gaps, gap_s * 0.4))[:-1]])
    return [(float(t), float(rng.uniform(0.7, 1.0))) for t in at]


def door_knock(rng: Rng) -> Signal:
    """Two to five raps of knuckles on a panel: low, dense, short modes."""
    modes = _wood(rng, between(rng, 90, 170), 1900, between(rng, 0.06, 0.12))
    hardness = between(rng, 500, 1100)

    def rap(rng: Rng) -> Signal:
        hit = strike(rng, modes, hardness_hz=hardness)
        place(hit, tick(rng, 0.012, 300, 2500), 0, 0.2)
        return hit

    return _series(rng, _rhythm(rng, int(rng.integers(3, 6)), between(rng, 0.14, 0.27)), rap, 0.38)


def door_slam(rng: Rng) -> Signal:
    """A leaf into its frame: a thump of air and panel, the latch, a short rattle."""
    track = silence(between(rng, 0.6, 1.1))
    place(track, strike(rng, _wood(rng, 45, 900, 0.35, 30), hardness_hz=220), 0.02)
    place(track, tick(rng, 0.12, 60, 1800), 0.02, 1.4)
    place(track, strike(rng, random_modes(rng, 12, 900, 6000, 0.12), hardness_hz=5000), 0.0, 0.25)
    for at, force in _rhythm(rng, 5, 0.035, 0.3):
        place(track, tick(rng, 0.03, 400, 3500), 0.07 + at, 0.15 * force)
    return track


def boot_slam(rng: Rng) -> Signal:
    """The lid of a car: duller and tighter than a house door, with a click of the lock."""
    track = silence(between(rng, 0.5, 1.0))
    place(track, strike(rng, _wood(rng, 55, 600, 0.55, 26), hardness_hz=260), 0.03)
    place(track, tick(rng, 0.08, 80, 1200), 0.03, 1.3)
    place(track, strike(rng, random_modes(rng, 8, 1500, 7000, 0.08)), 0.045, 0.3)
    return track


def pothole_thud(rng: Rng) -> Signal:
    """Two axles into a hole: double thump of the body with a rattle."""
    track = silence(between(rng, 0.5, 1.1))
    for at, force in ((0.02, 1.0), (between(rng, 0.12, 0.25), 0.8)):
        place(track, strike(rng, _wood(rng, 35, 260, 0.25, 14), hardness_hz=150), at, force)
        place(track, tick(rng, 0.07, 100, 900), at, 0.5 * force)
        place(track, tick(rng, 0.1, 900, 4500), at + 0.02, 0.12)
    return track


def glass_clink(rng: Rng) -> Signal:
    """Two glasses touch: both ring, a little out of tune with each other."""
    track = silence(between(rng, 0.7, 1.6))
    f0 = between(rng, 1500, 3400)
    for tune in (1.0, between(rng, 1.03, 1.22)):
        modes = tuned_modes(rng, f0 * tune, GLASS, between(rng, 0.5, 1.2), tilt=0.6)
        place(track, strike(rng, modes, hardness_hz=9000), 0.005)
    if rng.uniform() < 0.4:
        place(track, track[: len(track) // 2].copy(), between(rng, 0.06, 0.15), 0.5)
    return track


def glass_shatter(rng: Rng) -> Signal:
    """A bang of breaking, then shards that fall and ring ever more sparsely."""
    seconds = between(rng, 1.1, 2.4)
    track = silence(seconds)
    place(track, tick(rng, 0.25, 800, 16000), 0.01, 1.3)
    place(track, strike(rng, random_modes(rng, 24, 300, 5000, 0.15)), 0.01, 0.8)
    shards = [
        strike(rng, tuned_modes(rng, between(rng, 2500, 8000), GLASS[:3], between(rng, 0.04, 0.25), tilt=0.2), hardness_hz=14000)
        for _ in range(14)
    ]  # fmt: skip
    falls = 0.02 + seconds * 0.9 * rng.beta(0.8, 2.8, int(rng.integers(60, 130)))
    for at in falls:
        force = np.exp(-1.8 * at / seconds) * np.exp(0.6 * rng.normal())
        place(track, shards[int(rng.integers(len(shards)))], float(at), 0.35 * force)
    return track


def coin_drop(rng: Rng) -> Signal:
    """A coin bounces ever faster and rings high."""
    modes = tuned_modes(rng, between(rng, 3800, 7500), (1.0, 1.72, 2.31, 2.95), between(rng, 0.15, 0.45), tilt=0.3)  # fmt: skip
    hits = bounces(rng, between(rng, 0.28, 0.4), between(rng, 0.6, 0.72), int(rng.integers(6, 12)))
    track = _series(rng, hits, lambda r: strike(r, modes, hardness_hz=14000), 0.5)
    for at, force in hits:
        place(track, tick(rng, 0.006, 800, 6000), at, 0.5 * force)
    return track


def keys_jingle(rng: Rng) -> Signal:
    """Many small bars of metal against each other, in a few shakes."""
    seconds = between(rng, 1.0, 2.5)
    track = silence(seconds)
    clinks = [
        strike(rng, tuned_modes(rng, between(rng, 2800, 7000), (1, 1.6, 2.2, 2.9), between(rng, 0.03, 0.14), tilt=0.1), hardness_hz=15000)
        for _ in range(12)
    ]  # fmt: skip
    for at, _ in _rhythm(rng, max(2, int(seconds * between(rng, 2.5, 4))), 0.3, 0.3):
        for late in rng.exponential(0.05, int(rng.integers(5, 12))):
            place(track, clinks[int(rng.integers(12))], at + float(late), rng.uniform(0.2, 1.0))
    return track


def cup_on_saucer(rng: Rng) -> Signal:
    """China on china: one hit and a quick rattle."""
    modes = tuned_modes(rng, between(rng, 1700, 3000), (1, 1.55, 2.4, 3.3), between(rng, 0.08, 0.2), tilt=0.4)  # fmt: skip
    hits = bounces(rng, between(rng, 0.07, 0.12), 0.6, int(rng.integers(2, 5)))
    return _series(rng, hits, lambda r: strike(r, modes, hardness_hz=7000), 0.35)


def plates_stack(rng: Rng) -> Signal:
    """Several plates are set onto each other."""
    hits = _rhythm(rng, int(rng.integers(4, 9)), between(rng, 0.2, 0.38), 0.35)

    def plate(rng: Rng) -> Signal:
        modes = tuned_modes(rng, between(rng, 900, 1800), (1, 1.73, 2.33, 3.9, 5.1), between(rng, 0.12, 0.3), tilt=0.3)  # fmt: skip
        return strike(rng, modes, hardness_hz=8000)

    return _series(rng, hits, plate, 0.5)


def ice_in_glass(rng: Rng) -> Signal:
    """Cubes fall against the wall of a glass."""
    modes = tuned_modes(rng, between(rng, 1900, 3200), GLASS, between(rng, 0.15, 0.4), tilt=0.3)
    hits = _rhythm(rng, int(rng.integers(4, 9)), between(rng, 0.08, 0.17), 0.6)
    return _series(rng, hits, lambda r: strike(r, modes, hardness_hz=9000), 0.5)


def teaspoon_stir(rng: Rng) -> Signal:
    """A spoon goes round in a cup, touching the wall at each turn."""
    modes = tuned_modes(rng, between(rng, 2300, 3600), (1, 1.6, 2.7, 4.1), between(rng, 0.06, 0.14), tilt=0.3)  # fmt: skip
    hits = _rhythm(rng, int(rng.integers(8, 16)), between(rng, 0.13, 0.2), 0.2)
    return _series(rng, hits, lambda r: strike(r, modes, hardness_hz=9000), 0.25)


def _metal_fall(rng: Rng, low: float, high: float, t60_s: float, keep: float, first_s: float, count: int) -> Signal:  # fmt: skip
    modes = random_modes(rng, 26, low, high, t60_s, tilt=0.15)
    hits = bounces(rng, first_s, keep, count)
    track = _series(rng, hits, lambda r: strike(r, modes, hardness_hz=9000), min(1.2, t60_s * 1.1))
    for at, force in hits:
        place(track, tick(rng, 0.02, 500, 9000), at, 0.6 * force)
    return track


def pan_lid_clatter(rng: Rng) -> Signal:
    """A lid falls and wobbles to rest, its strikes running together."""
    return _metal_fall(rng, 450, 7500, 0.5, between(rng, 0.74, 0.82), between(rng, 0.2, 0.28), 11)


def spanner_drop(rng: Rng) -> Signal:
    """A bar of steel on concrete."""
    modes = tuned_modes(rng, between(rng, 1100, 2200), BAR, between(rng, 0.3, 0.6), tilt=0.2)
    hits = bounces(rng, between(rng, 0.14, 0.22), 0.6, int(rng.integers(3, 6)))
    track = _series(rng, hits, lambda r: strike(r, modes, hardness_hz=11000), 0.6)
    for at, force in hits:
        place(track, tick(rng, 0.03, 200, 5000), at, 0.9 * force)
    return track


def tray_drop(rng: Rng) -> Signal:
    """A tray with crockery hits the floor."""
    track = silence(between(rng, 1.4, 2.6))
    place(track, _metal_fall(rng, 250, 6000, 0.6, 0.72, 0.16, 8), 0.0, 1.2)
    place(track, plates_stack(rng), 0.02, 0.5)
    place(track, glass_shatter(rng), 0.05, 0.5)
    return track


def tins_topple(rng: Rng) -> Signal:
    """A stack of tins comes down, one after the other, and some roll on."""
    seconds = between(rng, 1.4, 2.8)
    track = silence(seconds)
    falls = np.sort(0.02 + seconds * 0.75 * rng.beta(1.2, 2.5, int(rng.integers(9, 17))))
    tins = [_metal_fall(rng, 380, 5200, 0.18, 0.55, 0.1, 3) for _ in range(4)]
    for at in falls:
        place(track, tins[int(rng.integers(4))], float(at), rng.uniform(0.4, 1.0))
    return track


def bottle_bank(rng: Rng) -> Signal:
    """Bottles fall through a slot: a hollow bang of the container and breaking glass."""
    track = silence(between(rng, 1.2, 2.5))
    for at, force in _rhythm(rng, int(rng.integers(1, 4)), 0.5, 0.2):
        place(track, strike(rng, random_modes(rng, 16, 130, 1200, 0.5), hardness_hz=900), at, 0.9)
        place(track, glass_shatter(rng), at + 0.03, 0.8 * force)
    return track


def plank_drop(rng: Rng) -> Signal:
    """A board falls flat and bounces on one end."""
    modes = _wood(rng, 110, 2200, 0.16, 26)
    hits = bounces(rng, between(rng, 0.12, 0.2), 0.55, int(rng.integers(2, 5)))
    return _series(rng, hits, lambda r: strike(r, modes, hardness_hz=1500), 0.35)


def hammer_blows(rng: Rng) -> Signal:
    """A hammer on a nail in wood: a ringing head over the knock of the board."""
    head = tuned_modes(rng, between(rng, 2300, 4200), BAR[:4], between(rng, 0.08, 0.2), tilt=0.2)
    board = _wood(rng, between(rng, 130, 240), 1600, 0.14)

    def blow(rng: Rng) -> Signal:
        hit = silence(0.3)
        place(hit, strike(rng, board, hardness_hz=1400), 0, 1.0)
        place(hit, strike(rng, head, hardness_hz=12000), 0, 0.5)
        place(hit, tick(rng, 0.02, 400, 7000), 0, 0.7)
        return hit

    return _series(rng, _rhythm(rng, int(rng.integers(3, 8)), between(rng, 0.32, 0.6), 0.08), blow, 0.35)  # fmt: skip


def peg_hammering(rng: Rng) -> Signal:
    """A mallet drives a metal peg into the ground; the tone rises a little with each blow."""
    f0, rise = between(rng, 700, 1300), between(rng, 1.02, 1.06)
    hits = _rhythm(rng, int(rng.integers(3, 8)), between(rng, 0.4, 0.7), 0.1)
    track = silence(hits[-1][0] + 0.4)
    for number, (at, force) in enumerate(hits):
        peg = tuned_modes(rng, f0 * rise**number, BAR[:4], 0.14, tilt=0.5, spread=0.0)
        place(track, strike(rng, peg, hardness_hz=6000), at, 0.7 * force)
        place(track, tick(rng, 0.05, 100, 1500), at, 0.8 * force)
    return track


def wood_chop(rng: Rng) -> Signal:
    """An axe into a log: a thud with a crack, sometimes the halves falling."""
    track = silence(between(rng, 0.6, 1.6))
    place(
        track,
        strike(rng, random_modes(rng, 26, 130, 1100, 0.16, tilt=0.25), hardness_hz=900),
        0.01,
        1.6,
    )
    place(track, tick(rng, 0.05, 300, 3500), 0.01, 0.9)
    for at in 0.03 + rng.exponential(0.03, int(rng.integers(3, 9))):
        place(track, tick(rng, 0.01, 1200, 8000), float(at), rng.uniform(0.1, 0.4))
    if rng.uniform() < 0.4:
        for _ in range(2):
            log = strike(rng, _wood(rng, 160, 1500, 0.1), hardness_hz=1200)
            place(track, log, between(rng, 0.25, 0.5), 0.4)
    return track


def gate_clang(rng: Rng) -> Signal:
    """An iron gate falls shut: big bars ring on."""
    track = silence(between(rng, 1.1, 1.9))
    bars = random_modes(rng, 40, between(rng, 160, 260), 4500, between(rng, 0.9, 1.6), tilt=0.35)
    for at, force in bounces(rng, between(rng, 0.09, 0.15), 0.5, 3):
        place(track, strike(rng, bars, hardness_hz=5000), at + 0.01, force)
        place(track, tick(rng, 0.02, 300, 6000), at + 0.01, 1.2 * force)
    return track


def manhole_clank(rng: Rng) -> Signal:
    """A wheel rocks a heavy cover: two dull strokes of iron."""
    iron = random_modes(rng, 30, between(rng, 180, 300), 3500, between(rng, 0.35, 0.6), tilt=0.5)
    hits = [(0.01, 1.0), (between(rng, 0.1, 0.25), 0.7)]
    return _series(rng, hits, lambda r: strike(r, iron, hardness_hz=3000), 0.7)


def bucket_clank(rng: Rng) -> Signal:
    """A metal bucket is set down and its handle falls."""
    track = silence(between(rng, 0.8, 1.6))
    tub = random_modes(rng, 24, between(rng, 280, 450), 4000, 0.35, tilt=0.4)
    place(track, strike(rng, tub, hardness_hz=4000), 0.01)
    place(track, tick(rng, 0.03, 200, 5000), 0.01, 0.8)
    for at, force in bounces(rng, between(rng, 0.07, 0.12), 0.6, 3):
        place(track, strike(rng, tub, hardness_hz=9000), between(rng, 0.2, 0.4) + at, 0.5 * force)
    return track


def rigging_clink(rng: Rng) -> Signal:
    """A halyard slaps a hollow mast, unevenly, in the wind."""
    mast = tuned_modes(rng, between(rng, 900, 1700), BAR, between(rng, 0.4, 0.8), tilt=0.25)
    hits = _rhythm(rng, int(rng.integers(4, 10)), between(rng, 0.35, 0.6), 0.4)
    return _series(rng, hits, lambda r: strike(r, mast, hardness_hz=9000), 0.7)


def cowbell_clank(rng: Rng) -> Signal:
    """A bell of sheet metal on a grazing cow."""
    bell = tuned_modes(rng, between(rng, 420, 800), (1, 1.48, 2.1, 2.8, 3.7, 4.6), between(rng, 0.3, 0.6), tilt=0.35)  # fmt: skip
    hits = _rhythm(rng, int(rng.integers(3, 8)), between(rng, 0.35, 0.6), 0.45)
    return _series(rng, hits, lambda r: strike(r, bell, hardness_hz=6000), 0.6)


def basketball_bounce(rng: Rng) -> Signal:
    """A hollow ball on asphalt: thump, and the ring of its air."""
    ring = between(rng, 850, 1050)
    hits = bounces(rng, between(rng, 0.55, 0.75), between(rng, 0.8, 0.92), int(rng.integers(3, 7)))

    def bounce(rng: Rng) -> Signal:
        hit = strike(rng, _wood(rng, 75, 420, 0.13, 10), hardness_hz=400)
        pad = silence(0.3)
        place(pad, hit, 0)
        ball = Modes(np.array([ring, ring * 2.02]), np.array([0.18, 0.09]), np.array([0.25, 0.08]))
        place(pad, strike(rng, ball), 0)
        place(pad, tick(rng, 0.02, 200, 3000), 0, 0.5)
        return pad

    return _series(rng, hits, bounce, 0.35)


def tennis_hit(rng: Rng) -> Signal:
    """Strings hit a ball: a short pock with the ring of the frame; sometimes the answer."""
    hits = [(0.01, 1.0)] + ([(between(rng, 0.9, 1.3), 0.6)] if rng.uniform() < 0.5 else [])

    def pock(rng: Rng) -> Signal:
        frame = Modes(np.array([between(rng, 420, 620), 1250.0, 2300.0]), np.array([0.13, 0.06, 0.04]), np.array([1, 0.5, 0.3]))  # fmt: skip
        pad = silence(0.25)
        place(pad, strike(rng, frame), 0)
        place(pad, tick(rng, 0.015, 700, 8000), 0, 0.7)
        return pad

    return _series(rng, hits, pock, 0.4)


def volleyball_hit(rng: Rng) -> Signal:
    """A flat hand or forearms on a soft ball."""
    hits = _rhythm(rng, int(rng.integers(1, 3)), 0.9, 0.1)

    def slap(rng: Rng) -> Signal:
        pad = silence(0.25)
        place(pad, strike(rng, _wood(rng, 130, 700, 0.09, 10), hardness_hz=500), 0)
        place(pad, tick(rng, 0.02, 300, 4000), 0, 0.7)
        return pad

    return _series(rng, hits, slap, 0.3)


def vegetable_chopping(rng: Rng) -> Signal:
    """A knife on a board, quick and even."""
    board = _wood(rng, between(rng, 230, 380), 2600, 0.08)

    def cut(rng: Rng) -> Signal:
        hit = strike(rng, board, hardness_hz=2000)
        place(hit, tick(rng, 0.02, 2000, 9000), 0, 0.35)
        return hit

    hits = _rhythm(rng, int(rng.integers(9, 22)), between(rng, 0.15, 0.26), 0.06)
    return _series(rng, hits, cut, 0.2)


def woodpecker_drum(rng: Rng) -> Signal:
    """A roll of 15 to 25 blows a second on hollow wood, getting softer."""
    trunk = _wood(rng, between(rng, 700, 1100), 3500, 0.05, 14)
    count, gap = int(rng.integers(10, 26)), 1 / between(rng, 15, 24)
    hits = [(n * gap, float(1 - 0.6 * n / count)) for n in range(count)]
    return _series(rng, hits, lambda r: strike(r, trunk, hardness_hz=4000), 0.4)


def hoof_clop(rng: Rng) -> Signal:
    """A horse walks or trots over cobbles."""
    f0 = between(rng, 650, 1000)
    hits, at, step = [], 0.0, between(rng, 0.2, 0.32)
    for n in range(int(rng.integers(8, 16))):
        hits.append((at, rng.uniform(0.6, 1.0)))
        at += step * (1.0 if n % 2 else 0.85) * rng.uniform(0.94, 1.06)

    def clop(rng: Rng) -> Signal:
        hollow = tuned_modes(rng, f0 * rng.uniform(0.9, 1.12), (1, 1.7, 2.6), 0.07, tilt=0.7)
        hit = strike(rng, hollow, hardness_hz=3000)
        place(hit, tick(rng, 0.02, 500, 5000), 0, 0.3)
        return hit

    return _series(rng, hits, clop, 0.2)


def gunshot(rng: Rng) -> Signal:
    """A shock of a millisecond, then the noise of the gas and the echo of the place."""
    n = length(between(rng, 0.8, 1.7))
    blast = noise(rng, n) * (decay(n, 0.06) + 0.08 * decay(n, between(rng, 0.6, 1.3)))
    blast = band(blast, 90, between(rng, 5000, 9000))
    boom = band(noise(rng, n), 40, 300) * decay(n, 0.25)
    return unit(blast) + 0.8 * unit(boom)


RECIPES: dict[str, Recipe] = {
    recipe.__name__: recipe
    for recipe in (
        basketball_bounce, boot_slam, bottle_bank, bucket_clank, coin_drop, cowbell_clank, cup_on_saucer,
        door_knock, door_slam, gate_clang, glass_clink, glass_shatter, gunshot, hammer_blows, hoof_clop,
        ice_in_glass, keys_jingle, manhole_clank, pan_lid_clatter, peg_hammering, plank_drop, plates_stack,
        pothole_thud, rigging_clink, spanner_drop, teaspoon_stir, tennis_hit, tins_topple, tray_drop,
        vegetable_chopping, volleyball_hit, wood_chop, woodpecker_drum,
    )
}  # fmt: skip
