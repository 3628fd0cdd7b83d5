"""Motors, tools and vehicles: combustion and rotation as harmonic stacks, with the noise they make of air."""

from __future__ import annotations

import numpy as np

from earwitness.scenes.synth.blocks import (
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
    passing,
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
    wander,
)

AIR = ((80, -20), (500, -6), (2000, 0), (6000, -6), (16000, -20))


def _combustion(rng: Rng, firing: Signal, slope_db: float, rough: float) -> Signal:
    """Explosions in a cylinder: a stack on half the firing rate, uneven from stroke to stroke."""
    n = len(firing)
    uneven = wander(rng, n, 25, 0.1)
    half = harmonics(firing / 2, (0.35, 1.0, 0.25, 0.7, 0.15, 0.5, 0.1, 0.35))
    puffs = np.abs(np.sin(phase_of(firing) / 2)) ** 8
    breath = band(noise(rng, n), 60, 5000) * puffs
    made: Signal = (half + 0.7 * buzz(firing, slope_db, 40) + rough * 2.5 * breath) * uneven
    return made


def _electric(rng: Rng, hz: Signal, air: Points, tone: float) -> Signal:
    """A brush motor: whine of its turning and of its commutator, and the air it moves."""
    n = len(hz)
    whine = harmonics(hz, (0.6, 0.25, 0.15, 0.1, 0.05)) + 0.6 * harmonics(
        hz * 7.02, (0.5, 0.3, 0.2)
    )
    return tone * whine * wander(rng, n, 30, 0.08) + shaped_noise(rng, n, air) * wander(rng, n, 18, 0.05)  # fmt: skip


def motorcycle_pass(rng: Rng) -> Signal:
    """A motorcycle goes by, its pitch falling as it passes."""
    seconds = between(rng, 3.0, 5.5)
    n = length(seconds)
    firing = between(rng, 85, 150) * curve(n, [(0, 0.9), (seconds, 1.15)]) * wander(rng, n, 8, 0.02)
    x = _combustion(rng, firing, -4, 0.5)
    return passing(x, between(rng, 14, 22), between(rng, 3, 6)) * swell(n, 0.4, 0.6)


def tractor_pass(rng: Rng) -> Signal:
    """A diesel with its knock rolls past slowly."""
    seconds = between(rng, 4.5, 7.0)
    n = length(seconds)
    firing = between(rng, 28, 45) * wander(rng, n, 4, 0.02)
    knock = band(noise(rng, n), 700, 4000) * np.abs(np.sin(phase_of(firing) / 2)) ** 14
    x = _combustion(rng, firing, -3, 0.6) + 1.2 * knock
    return passing(x, between(rng, 4, 7), between(rng, 5, 9)) * swell(n, 0.6, 0.6)


def boat_motor(rng: Rng) -> Signal:
    """An outboard pulls away, half drowned in water."""
    seconds = between(rng, 3.5, 6.5)
    n = length(seconds)
    firing = between(rng, 55, 95) * curve(n, [(0, 0.7), (seconds * 0.4, 1.1), (seconds, 1.2)]) * wander(rng, n, 6, 0.02)  # fmt: skip
    wash = shaped_noise(rng, n, [(60, -6), (300, 0), (1500, -6), (8000, -22)]) * np.clip(wander(rng, n, 6, 0.3), 0.2, None)  # fmt: skip
    return (band(_combustion(rng, firing, -4, 0.4), 0, 3500) + 0.6 * wash) * curve(n, [(0, 0.6), (seconds * 0.35, 1), (seconds, 0.35)]) * swell(n, 0.3, 0.6)  # fmt: skip


def jet_ski(rng: Rng) -> Signal:
    """A small two-stroke whose pitch leaps as it jumps the waves."""
    seconds = between(rng, 3.0, 6.0)
    n = length(seconds)
    firing = between(rng, 130, 200) * np.clip(wander(rng, n, 2.5, 0.18), 0.6, None)
    spray = shaped_noise(rng, n, [(200, -8), (1500, 0), (9000, -10)]) * np.clip(wander(rng, n, 3, 0.6), 0.05, None)  # fmt: skip
    return (_combustion(rng, firing, -3, 0.3) + 0.5 * spray) * swell(n, 0.5, 0.7)


def lawnmower(rng: Rng) -> Signal:
    """One cylinder at 3,000 turns and a blade."""
    n = length(between(rng, 3.5, 6.5))
    firing = between(rng, 42, 56) * wander(rng, n, 3, 0.02)
    blade = shaped_noise(rng, n, AIR) * (1 + 0.4 * np.sin(phase_of(firing * 2)))
    return (_combustion(rng, firing, -3, 0.5) + 0.5 * blade) * swell(n, 0.4, 0.5)


def leaf_blower(rng: Rng) -> Signal:
    """A two-stroke that is revved, and a great deal of air."""
    seconds = between(rng, 3.0, 6.0)
    n = length(seconds)
    firing = between(rng, 95, 125) * curve(n, [(0, 0.7), (0.8, 1.05), (seconds, 1.0)]) * wander(rng, n, 2, 0.05)  # fmt: skip
    return (_combustion(rng, firing, -3, 0.3) + 0.9 * shaped_noise(rng, n, AIR)) * swell(
        n, 0.3, 0.4
    )


def engine_start(rng: Rng) -> Signal:
    """The starter turns the engine over, it catches, flares up and idles."""
    crank, run = between(rng, 0.6, 1.1), between(rng, 1.2, 2.2)
    m, n = length(crank), length(run)
    turn = between(rng, 7, 11)
    starter = harmonics(between(rng, 190, 260) * (1 + 0.12 * np.sin(2 * np.pi * turn * times(m))), (1, 0.6, 0.5, 0.3, 0.3, 0.2))  # fmt: skip
    starter = starter * (0.6 + 0.4 * np.sin(2 * np.pi * turn * times(m)) ** 2) + 0.3 * band(noise(rng, m), 500, 5000)  # fmt: skip
    firing = 30 * curve(n, [(0, 1.5), (0.3, 3.2), (0.9, 1.5), (run, 1.2)]) * wander(rng, n, 8, 0.03)
    engine = _combustion(rng, firing, -4, 0.6) * curve(n, [(0, 0.6), (0.3, 1.3), (run, 0.6)])
    return np.concatenate([0.8 * starter * swell(m, 0.02, 0.02), 1.2 * engine * swell(n, 0.02, 0.3)])  # fmt: skip


def vehicle_crash(rng: Rng) -> Signal:
    """Tyres, a bang of bending metal, glass that falls."""
    track = silence(between(rng, 2.0, 4.0))
    lead = between(rng, 0.4, 0.9)
    m = length(lead)
    skid = buzz(between(rng, 850, 1200) * wander(rng, m, 12, 0.05), -5, 15) + 2 * band(noise(rng, m), 800, 6000)  # fmt: skip
    place(track, skid * swell(m, 0.05, 0.02), 0.0, 0.25)
    for at, force in ((0.0, 1.0), (between(rng, 0.08, 0.2), 0.6), (between(rng, 0.3, 0.5), 0.3)):
        place(
            track,
            strike(rng, random_modes(rng, 30, 60, 3500, 0.5), hardness_hz=1800),
            lead + at,
            1.3 * force,
        )
        place(track, tick(rng, 0.3, 60, 7000), lead + at, 2.5 * force)
    for at in lead + 0.1 + rng.exponential(0.4, 40):
        place(track, strike(rng, random_modes(rng, 3, 2500, 9000, 0.06), hardness_hz=14000), float(at), rng.uniform(0.05, 0.3))  # fmt: skip
    return track


def helicopter_low(rng: Rng) -> Signal:
    """Blades slap 10 to 20 times a second over the roar of the turbine."""
    seconds = between(rng, 4.0, 7.5)
    n = length(seconds)
    blade = between(rng, 10, 20)
    beat = phase_of(np.full(n, blade) * wander(rng, n, 2, 0.01))
    slap = np.clip(np.sin(beat), 0, None) ** between(rng, 3, 9)
    thud = band(noise(rng, n), 40, 400) * slap
    dull = rng.uniform(0.8, 2.2)
    wash = shaped_noise(rng, n, [(40, -2), (150, 0), (600, -5 * dull), (3000, -12 * dull), (12000, -22 * dull)]) * (between(rng, 0.5, 1.3) + slap)  # fmt: skip
    whine = harmonics(np.full(n, between(rng, 900, 1600)), (1, 0.3)) * 0.03
    near = curve(n, [(0, between(rng, 0.3, 0.8)), (seconds / 2, 1), (seconds, between(rng, 0.3, 0.9))])  # fmt: skip
    made: Signal = 2.2 * thud / np.abs(thud).max() + 0.35 * wash + whine
    return made * near * swell(n, 0.15, 0.2)


def jet_flyover(rng: Rng) -> Signal:
    """Broad noise that swells and darkens as an aircraft passes over."""
    seconds = between(rng, 4.0, 7.5)
    n = length(seconds)
    roar = shaped_noise(rng, n, [(30, -4), (120, 0), (600, -4), (2500, -14), (10000, -34)])
    hiss = shaped_noise(rng, n, [(300, -20), (2500, 0), (7000, -5), (15000, -18)])
    whine = harmonics(curve(n, [(0, 2600), (seconds * 0.5, 2300), (seconds, 1500)]), (1, 0.3))
    near = np.exp(-(((times(n) - seconds * 0.5) / (seconds * 0.26)) ** 2))
    early = np.exp(-(((times(n) - seconds * 0.38) / (seconds * 0.2)) ** 2))
    return (roar * near + 0.4 * hiss * early + 0.12 * whine * early) * swell(n, 0.3, 0.4)


def train_pass(rng: Rng) -> Signal:
    """Another train at speed beyond the window: a blow of air, then wheels and roar."""
    seconds = between(rng, 2.4, 4.6)
    n = length(seconds)
    dull = rng.uniform(0.6, 1.5)
    roar = shaped_noise(
        rng,
        n,
        [
            (40, rng.uniform(-8, 0)),
            (200, 0),
            (500, rng.uniform(-4, 4)),
            (1000, -8 * dull),
            (5000, -22 * dull),
            (14000, -38 * dull),
        ],
    )
    axle = between(rng, 5, 9)
    beats = 0.7 + 0.5 * np.clip(np.sin(phase_of(np.full(n, axle) * wander(rng, n, 3, 0.05))), 0, None) ** 4  # fmt: skip
    gate = curve(n, [(0, 0), (0.1, 1.1), (seconds - 0.25, 1.0), (seconds, 0)])
    track = roar * beats * gate
    place(track, tick(rng, 0.4, 40, 500), 0.02, 4.0)
    return track


def train_depart(rng: Rng) -> Signal:
    """A rising hum of the motors, then wheels over joints, faster and faster."""
    seconds = between(rng, 5.0, 7.8)
    n = length(seconds)
    hum = buzz(curve(n, [(0, 90), (seconds * 0.5, 260), (seconds, 480)]), -8, 20)
    roll = shaped_noise(rng, n, [(40, 0), (200, -2), (1200, -14), (6000, -28)]) * curve(n, [(0, 0.1), (seconds, 1)])  # fmt: skip
    track = (0.35 * hum + roll) * swell(n, 0.4, 0.5)
    at, gap = 0.8, 0.9
    while at < seconds - 0.3:
        for late in (0.0, 0.14):
            place(track, strike(rng, random_modes(rng, 10, 60, 700, 0.12), hardness_hz=500), at + late, 1.2)  # fmt: skip
        at, gap = at + gap, gap * 0.87
    return track


def freight_pass(rng: Rng) -> Signal:
    """Many heavy wagons: rumble, joints, and screeching here and there."""
    seconds = between(rng, 5.0, 7.8)
    n = length(seconds)
    rumble = shaped_noise(rng, n, [(30, 0), (120, 1), (600, -6), (3000, -18), (12000, -34)])
    track = rumble * np.clip(wander(rng, n, 3, 0.2), 0.4, None) * swell(n, 0.8, 0.8)
    gap = between(rng, 0.5, 0.75)
    for k in range(int(seconds / gap)):
        for late in (0.0, 0.11, 0.26, 0.37):
            place(
                track,
                strike(rng, random_modes(rng, 12, 70, 1500, 0.12), hardness_hz=900),
                k * gap + late,
                0.9,
            )
    screech = buzz(np.full(n, between(rng, 1900, 3000)) * wander(rng, n, 4, 0.02), -10, 6)
    return track + 0.15 * screech * np.clip(wander(rng, n, 2, 0.8) - 1, 0, None)


def vacuum_cleaner(rng: Rng) -> Signal:
    """A motor that runs up, whines and draws air."""
    seconds = between(rng, 3.0, 6.5)
    n = length(seconds)
    hz = between(rng, 210, 330) * curve(n, [(0, 0.45), (0.8, 1.0), (seconds, 1.0)]) * wander(rng, n, 2, 0.01)  # fmt: skip
    air = [(80, -14), (250, -4), (800, 0), (3000, -2), (8000, -10), (16000, -24)]
    return _electric(rng, hz, air, 0.5) * curve(n, [(0, 0.3), (0.8, 1), (seconds, 1)]) * swell(n, 0.05, 0.3)  # fmt: skip


def power_drill(rng: Rng) -> Signal:
    """A drill runs up, bites into the wall and runs down, once or twice."""
    parts = []
    for _ in range(int(rng.integers(1, 3))):
        seconds = between(rng, 1.1, 2.4)
        n = length(seconds)
        hz = between(rng, 190, 300) * curve(n, [(0, 0.3), (0.25, 1.1), (0.5, 0.85), (seconds - 0.25, 0.8), (seconds, 0.3)])  # fmt: skip
        bite = band(noise(rng, n), 700, 8000) * np.abs(np.sin(phase_of(hz))) * curve(n, [(0, 0), (0.4, 0), (0.6, 1.4), (seconds - 0.2, 1.2), (seconds, 0)])  # fmt: skip
        parts += [(_electric(rng, hz, AIR, 1.6) * 0.6 + bite) * swell(n, 0.1, 0.2), silence(0.15)]
    return np.concatenate(parts)


def angle_grinder(rng: Rng) -> Signal:
    """Very high whine, and the scream of metal under the disc."""
    seconds = between(rng, 2.2, 5.0)
    n = length(seconds)
    hz = between(rng, 480, 620) * curve(n, [(0, 0.5), (0.5, 1.05), (0.9, 0.92), (seconds - 0.4, 0.92), (seconds, 0.8)]) * wander(rng, n, 6, 0.02)  # fmt: skip
    press = curve(n, [(0, 0), (0.7, 0), (0.9, 1), (seconds - 0.5, 1), (seconds - 0.3, 0)])
    spray = shaped_noise(rng, n, [(500, -18), (3000, -2), (8000, 0), (16000, -6)]) * press * np.clip(wander(rng, n, 20, 0.2), 0, None)  # fmt: skip
    return (_electric(rng, hz, AIR, 1.5) * 0.5 + 1.1 * spray) * swell(n, 0.15, 0.4)


def table_saw(rng: Rng) -> Signal:
    """A blade at idle, then the howl of a board going through."""
    seconds = between(rng, 3.0, 6.0)
    n = length(seconds)
    tooth = between(rng, 1100, 1900) * curve(n, [(0, 0.8), (0.6, 1), (1.0, 0.9), (seconds - 0.6, 0.9), (seconds, 0.97)])  # fmt: skip
    cut = curve(n, [(0, 0.05), (0.9, 0.05), (1.1, 1), (seconds - 0.7, 1), (seconds - 0.5, 0.05)])
    howl = buzz(tooth * wander(rng, n, 15, 0.01), -5, 12) + 0.8 * band(noise(rng, n), 900, 9000)
    return (0.4 * shaped_noise(rng, n, AIR) + 0.15 * buzz(tooth / 12, -5, 20) + 0.8 * howl * cut) * swell(n, 0.5, 0.5)  # fmt: skip


def jackhammer(rng: Rng) -> Signal:
    """Steel on concrete, 20 to 28 times a second, with exhausts of air."""
    seconds, rate = between(rng, 2.2, 5.0), between(rng, 19, 28)
    track = silence(seconds)
    chisel = [strike(rng, random_modes(rng, 24, 250, 6000, 0.07), hardness_hz=5000) for _ in range(5)]  # fmt: skip
    for k in range(int(seconds * rate) - 2):
        at = k / rate + 0.002 * rng.normal() + 0.02
        place(track, chisel[int(rng.integers(5))], at, rng.uniform(0.7, 1.0))
        place(track, tick(rng, 0.03, 150, 5000), at, 1.3)
    return track + 0.15 * shaped_noise(rng, len(track), AIR) * swell(len(track), 0.05, 0.1)


def nail_gun(rng: Rng) -> Signal:
    """A shot of compressed air drives a nail; one to three."""
    count, gap = int(rng.integers(1, 4)), between(rng, 0.6, 0.8)
    track = silence(gap * count)
    for k in range(count):
        place(
            track,
            strike(rng, random_modes(rng, 18, 120, 2500, 0.09), hardness_hz=2500),
            0.02 + gap * k,
            1.2,
        )
        place(track, tick(rng, 0.03, 300, 10000), 0.02 + gap * k, 2.0)
        m = length(0.18)
        place(track, band(noise(rng, m), 1500, 12000) * swell(m, 0.005, 0.15), 0.06 + gap * k, 0.35)
    return track


def bean_grinder(rng: Rng) -> Signal:
    """Burrs crush beans: a motor under load with crackling."""
    seconds = between(rng, 2.5, 5.0)
    n = length(seconds)
    hz = between(rng, 130, 210) * curve(n, [(0, 0.6), (0.3, 0.95), (seconds, 1.05)]) * wander(rng, n, 10, 0.02)  # fmt: skip
    crush = band(noise(rng, n), 900, 7000) * np.clip(wander(rng, n, 90, 0.7), 0, None) * curve(n, [(0, 1), (seconds * 0.8, 0.8), (seconds, 0.1)])  # fmt: skip
    return (_electric(rng, hz, AIR, 1.0) * 0.6 + 1.2 * crush) * swell(n, 0.08, 0.2)


def coffee_machine(rng: Rng) -> Signal:
    """A pump throbs at 50 Hz while coffee runs."""
    n = length(between(rng, 3.0, 6.0))
    pump = buzz(np.full(n, between(rng, 49, 51)) * wander(rng, n, 3, 0.004), -5, 30)
    flow = shaped_noise(rng, n, [(200, -14), (1200, 0), (5000, -6), (14000, -20)]) * np.clip(wander(rng, n, 15, 0.25), 0.1, None)  # fmt: skip
    return (0.6 * resonate(pump, [(220, 120, 2), (900, 400, 2)]) + 0.25 * flow) * swell(
        n, 0.15, 0.3
    )


def printer_run(rng: Rng) -> Signal:
    """A carriage goes to and fro and paper is drawn in."""
    seconds, stroke = between(rng, 3.0, 6.0), between(rng, 0.55, 0.85)
    n = length(seconds)
    t = times(n) / stroke
    move = np.abs(np.sin(np.pi * (t % 1))) ** 0.3
    tone = between(rng, 380, 620) * (0.9 + 0.2 * move) * np.where(t.astype(int) % 2, 1.0, 1.08)
    carriage = (harmonics(tone, (1, 0.5, 0.4, 0.3)) + 0.8 * band(noise(rng, n), 800, 6000)) * move
    track = carriage * swell(n, 0.05, 0.1)
    for k in range(1, int(seconds / stroke)):
        place(track, strike(rng, random_modes(rng, 10, 400, 4000, 0.04)), k * stroke, 1.0)
    return track


def shredder_run(rng: Rng) -> Signal:
    """Blades through paper: a growl with tearing."""
    seconds = between(rng, 2.2, 4.5)
    n = length(seconds)
    hz = between(rng, 95, 150) * curve(n, [(0, 0.8), (0.3, 1), (0.6, 0.85), (seconds, 1)])
    tear = band(noise(rng, n), 1200, 9000) * np.abs(np.sin(phase_of(hz / 3))) * curve(n, [(0, 0), (0.4, 0), (0.6, 1), (seconds - 0.5, 1), (seconds - 0.3, 0)])  # fmt: skip
    return (_electric(rng, hz, AIR, 1.2) * 0.5 + 1.2 * tear) * swell(n, 0.08, 0.2)


def washing_machine_spin(rng: Rng) -> Signal:
    """A drum runs up to its spin and shakes its box."""
    seconds = between(rng, 4.5, 7.5)
    n = length(seconds)
    turn = curve(n, [(0, 5), (seconds * 0.7, 17), (seconds, 18)])
    shake = np.sin(phase_of(turn)) ** 2
    return (_electric(rng, turn * 17, [(60, 0), (250, -3), (1200, -14), (6000, -30)], 0.7) * (0.5 + shake) + 0.6 * harmonics(turn * 3, (1, 0.6, 0.4, 0.3))) * swell(n, 0.4, 0.5)  # fmt: skip


def compressor_start(rng: Rng) -> Signal:
    """A piston pump starts and hammers air into a tank."""
    seconds = between(rng, 3.5, 6.5)
    n = length(seconds)
    firing = between(rng, 18, 26) * curve(n, [(0, 0.4), (0.8, 1), (seconds, 1)])
    return (_combustion(rng, firing, -3, 1.0) + 0.3 * shaped_noise(rng, n, AIR)) * swell(n, 0.1, 0.3)  # fmt: skip


def ventilation_burst(rng: Rng) -> Signal:
    """Fans of a carriage come on."""
    seconds = between(rng, 3.0, 6.5)
    n = length(seconds)
    air = shaped_noise(rng, n, [(80, -6), (400, 0), (2000, -5), (8000, -18), (16000, -32)])
    hum = harmonics(np.full(n, between(rng, 95, 125)), (1, 0.6, 0.3, 0.2)) * 0.4
    return (air + hum) * curve(n, [(0, 0), (seconds * 0.25, 1), (seconds * 0.75, 1), (seconds, 0)])


def skateboard_roll(rng: Rng) -> Signal:
    """Small hard wheels on slabs, with a clack at every joint, going by."""
    seconds = between(rng, 2.5, 5.0)
    n = length(seconds)
    roll = shaped_noise(rng, n, [(100, -6), (500, 0), (1800, -4), (7000, -16)]) * np.clip(wander(rng, n, 40, 0.25), 0.2, None)  # fmt: skip
    track = roll.copy()
    gap = between(rng, 0.22, 0.4)
    for k in range(int(seconds / gap)):
        for late in (0.0, 0.09):
            place(track, tick(rng, 0.03, 250, 4500), k * gap + late, 4.0)
    return passing(track, between(rng, 3, 5), 2.0) * swell(n, 0.3, 0.4)


def suitcase_wheels(rng: Rng) -> Signal:
    """A wheeled case over paving: a steady rattle."""
    seconds = between(rng, 3.0, 6.0)
    n = length(seconds)
    rattle = between(rng, 9, 16)
    roll = shaped_noise(rng, n, [(90, -4), (350, 0), (1500, -5), (6000, -18)]) * (0.5 + np.abs(np.sin(phase_of(rattle * np.clip(wander(rng, n, 3, 0.1), 0.5, None)))))  # fmt: skip
    return passing(roll, between(rng, 1.2, 1.8), 2.5) * swell(n, 0.4, 0.5)


def trolley_rattle(rng: Rng) -> Signal:
    """A basket of wire on four wheels, one of which flutters."""
    seconds = between(rng, 2.5, 5.0)
    n = length(seconds)
    track = 0.25 * shaped_noise(rng, n, [(90, -4), (400, 0), (2500, -8), (9000, -22)])
    wires = [strike(rng, random_modes(rng, 8, 900, 7000, 0.08), hardness_hz=8000) for _ in range(8)]
    at = 0.0
    while at < seconds:
        place(track, wires[int(rng.integers(8))], at, rng.uniform(0.2, 0.8))
        at += rng.exponential(0.03) + 0.01
    return track * np.clip(wander(rng, n, 2, 0.25), 0.3, None) * swell(n, 0.2, 0.3)


RECIPES: dict[str, Recipe] = {
    recipe.__name__: recipe
    for recipe in (
        angle_grinder, bean_grinder, boat_motor, coffee_machine, compressor_start, engine_start, freight_pass,
        helicopter_low, jackhammer, jet_flyover, jet_ski, lawnmower, leaf_blower, motorcycle_pass, nail_gun,
        power_drill, printer_run, shredder_run, skateboard_roll, suitcase_wheels, table_saw, tractor_pass,
        train_depart, train_pass, trolley_rattle, vacuum_cleaner, vehicle_crash, ventilation_burst,
        washing_machine_spin,
    )
}  # fmt: skip
