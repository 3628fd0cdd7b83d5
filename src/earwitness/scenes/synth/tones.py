"""Things with a pitch: beepers, ringers, bells, horns, sirens and whistles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from earwitness.scenes.synth.blocks import (
    BELL,
    RATE,
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
    phase_of,
    place,
    resonate,
    shaped_noise,
    silence,
    strike,
    swell,
    times,
    tuned_modes,
    wander,
)


def _beep(hz: float, seconds: float, levels: Sequence[float] = (1.0, 0.0, 0.25, 0.0, 0.1)) -> Signal:  # fmt: skip
    n = length(seconds)
    return harmonics(np.full(n, hz), levels) * swell(n, 0.004, 0.006)


def _chime(rng: Rng, hz: float, t60_s: float) -> Signal:
    """A soft struck tone, as loudspeakers of stations, cars and telephones play it."""
    modes = tuned_modes(rng, hz, (1, 2.0, 3.0, 4.0), t60_s, tilt=1.4, spread=0.001)
    return strike(rng, modes, hardness_hz=5000)


def _notes(pieces: Sequence[tuple[float, Signal]], tail_s: float = 0.0) -> Signal:
    track = silence(max(at + len(piece) / RATE for at, piece in pieces) + tail_s)
    for at, piece in pieces:
        place(track, piece, at)
    return track


def _repeat(piece: Signal, count: int, every_s: float) -> Signal:
    return _notes([(n * every_s, piece) for n in range(count)])


def watch_beep(rng: Rng) -> Signal:
    """Short double beeps of a piezo at about 4 kHz."""
    hz, beep = between(rng, 3600, 4300), between(rng, 0.06, 0.09)
    pair = _notes([(0.0, _beep(hz, beep, (1, 0.15, 0.1))), (beep * 1.6, _beep(hz, beep, (1, 0.15, 0.1)))])  # fmt: skip
    return _repeat(pair, int(rng.integers(2, 4)), between(rng, 0.5, 0.8))


def checkout_beep(rng: Rng) -> Signal:
    """A scanner confirms: plain beeps between 2 and 3 kHz at uneven times."""
    hz, beep = between(rng, 2000, 2900), between(rng, 0.08, 0.14)
    at, notes = 0.0, []
    for _ in range(int(rng.integers(1, 4))):
        notes.append((at, _beep(hz, beep)))
        at += between(rng, 0.6, 1.1)
    return _notes(notes, 0.25)


def microwave_beep(rng: Rng) -> Signal:
    """Three to five long beeps at about 2 kHz."""
    piece = _beep(between(rng, 1850, 2300), between(rng, 0.35, 0.6), (1, 0.1, 0.3, 0.05, 0.1))
    return _repeat(piece, int(rng.integers(3, 5)), between(rng, 0.8, 1.1))


def oven_timer(rng: Rng) -> Signal:
    """Groups of quick beeps, or a mechanical bell that runs down."""
    if rng.uniform() < 0.5:
        beep = _beep(between(rng, 2500, 3300), 0.07)
        group = _repeat(beep, 4, 0.13)
        return _repeat(group, int(rng.integers(2, 4)), between(rng, 0.9, 1.2))
    return _ringer(rng, between(rng, 1800, 2600), between(rng, 14, 20), between(rng, 1.2, 2.5))


def lorry_reverse(rng: Rng) -> Signal:
    """A beep of about 1.2 kHz, on and off by half seconds."""
    piece = _beep(between(rng, 1050, 1350), between(rng, 0.38, 0.5), (1, 0.15, 0.35, 0.1, 0.18, 0, 0.1))  # fmt: skip
    return _repeat(piece, int(rng.integers(4, 8)), between(rng, 0.85, 1.0))


def parking_sensor(rng: Rng) -> Signal:
    """Beeps that come faster as the wall comes nearer."""
    piece, gap, at, notes = _beep(between(rng, 900, 1500), 0.07), 0.5, 0.0, []
    for _ in range(int(rng.integers(6, 13))):
        notes.append((at, piece))
        at += gap
        gap *= between(rng, 0.78, 0.88)
    return _notes(notes)


def seatbelt_chime(rng: Rng) -> Signal:
    """Soft bongs, once a second."""
    piece = _chime(rng, between(rng, 580, 920), 0.7)
    return _repeat(piece, int(rng.integers(2, 6)), between(rng, 0.7, 1.0))


def message_chime(rng: Rng) -> Signal:
    """Two or three rising notes of a telephone."""
    hz, steps = between(rng, 880, 1500), ((1, 1.335), (1, 1.26, 1.498), (1, 1.498))
    tune = steps[int(rng.integers(len(steps)))]
    gap = between(rng, 0.09, 0.15)
    return _notes([(n * gap, _chime(rng, hz * step, 0.5)) for n, step in enumerate(tune)])


def phone_ringtone(rng: Rng) -> Signal:
    """A short melody of marimba-like notes, or the warble of two tones, played twice."""
    if rng.uniform() < 0.5:
        hz, warble = between(rng, 900, 1300), between(rng, 15, 22)
        n = length(between(rng, 0.8, 1.2))
        f0 = np.where(np.sin(2 * np.pi * warble * times(n)) > 0, hz, hz * 1.25)
        ring = harmonics(f0, (1, 0.3, 0.3, 0.1, 0.1)) * swell(n, 0.005, 0.01)
        return _repeat(ring, 2, between(rng, 1.6, 2.2))
    scale = np.array([1, 1.125, 1.25, 1.5, 1.667, 2.0]) * between(rng, 520, 800)
    gap = between(rng, 0.12, 0.19)
    tune = [(n * gap, _chime(rng, float(rng.choice(scale)), 0.35)) for n in range(8)]
    melody = _notes(tune)
    return _repeat(melody, 2, 8 * gap + between(rng, 0.2, 0.6))


def desk_phone_ring(rng: Rng) -> Signal:
    """A bell struck twenty times a second, in bursts; or an electronic trill."""
    if rng.uniform() < 0.6:
        ring = _ringer(rng, between(rng, 800, 1500), between(rng, 18, 24), between(rng, 0.9, 1.4))
    else:
        n = length(between(rng, 0.8, 1.2))
        f0 = np.where(np.sin(2 * np.pi * between(rng, 11, 16) * times(n)) > 0, 1.0, 1.22)
        ring = harmonics(f0 * between(rng, 700, 1000), (1, 0.5, 0.35, 0.2, 0.15))
    return _repeat(ring, 2, len(ring) / RATE + between(rng, 0.3, 1.0))


def _ringer(rng: Rng, hz: float, per_s: float, seconds: float) -> Signal:
    """A clapper between two gongs a third apart."""
    gongs = [
        strike(
            rng, tuned_modes(rng, hz * tune, (1, 2.3, 3.9, 5.6), 0.5, tilt=0.5), hardness_hz=9000
        )
        for tune in (1.0, 1.19)
    ]
    track = silence(seconds + 0.4)
    for n in range(int(seconds * per_s)):
        place(track, gongs[n % 2], n / per_s, float(rng.uniform(0.8, 1.0)))
    return track


def doorbell(rng: Rng) -> Signal:
    """Ding-dong on two bars, or an electric buzzer's trill."""
    hz = between(rng, 560, 760)
    if rng.uniform() < 0.75:
        bars = [tuned_modes(rng, f, (1, 2.76, 5.4), 1.3, tilt=1.5, spread=0.002) for f in (hz, hz * 0.794)]  # fmt: skip
        return _notes([(0.0, strike(rng, bars[0])), (between(rng, 0.4, 0.6), strike(rng, bars[1]))])
    return _ringer(rng, hz * 1.3, between(rng, 22, 30), between(rng, 0.6, 1.2))


def lift_ding(rng: Rng) -> Signal:
    """One clear note of a lift."""
    return _chime(rng, between(rng, 900, 1500), between(rng, 0.9, 1.6))


def announcement_chime(rng: Rng) -> Signal:
    """Three or four notes before an announcement, from loudspeakers."""
    hz = between(rng, 380, 520)
    tunes = ((1, 1.26, 1.5), (1.5, 1.26, 1, 1.335), (1, 1.335, 1.682), (1.5, 1))
    gap = between(rng, 0.35, 0.55)
    tune = tunes[int(rng.integers(len(tunes)))]
    return _notes([(n * gap, _chime(rng, hz * step, 1.2)) for n, step in enumerate(tune)])


def counter_bell(rng: Rng) -> Signal:
    """A reception bell: one or two bright strokes."""
    gong = tuned_modes(rng, between(rng, 2100, 3000), (1, 2.1, 3.4, 4.9), between(rng, 1.0, 1.7), tilt=0.5)  # fmt: skip
    piece = strike(rng, gong, hardness_hz=11000)
    return _repeat(piece, int(rng.integers(1, 3)), between(rng, 0.25, 0.4))


def entrance_bell(rng: Rng) -> Signal:
    """A small bell on a spring over a shop door."""
    small = tuned_modes(rng, between(rng, 2300, 3600), (1, 1.5, 2.6, 3.8), 0.6, tilt=0.3)
    piece = strike(rng, small, hardness_hz=12000)
    at, notes = 0.0, []
    for _ in range(int(rng.integers(4, 9))):
        notes.append((at, piece * rng.uniform(0.4, 1.0)))
        at += between(rng, 0.07, 0.16)
    return _notes(notes)


def bicycle_bell(rng: Rng) -> Signal:
    """Ring-ring: a wheel of clappers strikes a small gong quickly, once or twice."""
    gong = tuned_modes(rng, between(rng, 2000, 3300), (1, 1.8, 2.7, 3.9), between(rng, 0.35, 0.7), tilt=0.3)  # fmt: skip
    piece = strike(rng, gong, hardness_hz=12000)
    burst = _repeat(piece, int(rng.integers(4, 8)), 1 / between(rng, 18, 30))
    return _repeat(burst, int(rng.integers(1, 3)), between(rng, 0.35, 0.5))


def church_bell(rng: Rng) -> Signal:
    """A cast bell with its hum, prime, minor third, fifth and nominal; two to four strokes."""
    bell = tuned_modes(rng, between(rng, 260, 460), BELL, between(rng, 3.5, 6.0), tilt=0.25, spread=0.003)  # fmt: skip
    piece = strike(rng, bell, hardness_hz=3500)
    return _repeat(piece, int(rng.integers(2, 4)), between(rng, 1.5, 2.2))


def wall_clock_chime(rng: Rng) -> Signal:
    """Rods struck by small hammers: a quarter's tune or the hours."""
    hz, gap = between(rng, 380, 520), between(rng, 0.7, 1.0)
    rods = (1.0, 1.26, 1.125, 0.75)
    count = int(rng.integers(3, 6))
    same = rng.uniform() < 0.5
    notes = []
    for n in range(count):
        modes = tuned_modes(rng, hz * (0.8 if same else rods[n % 4]), (1, 2.76, 5.4, 8.9), 2.0, tilt=0.8)  # fmt: skip
        notes.append((n * gap, strike(rng, modes, hardness_hz=4000)))
    return _notes(notes)


def tram_bell(rng: Rng) -> Signal:
    """A foot gong, struck quickly two to six times."""
    gong = tuned_modes(rng, between(rng, 750, 1200), (1, 1.7, 2.5, 3.4, 4.7), between(rng, 0.6, 1.1), tilt=0.4)  # fmt: skip
    piece = strike(rng, gong, hardness_hz=7000)
    return _repeat(piece, int(rng.integers(2, 7)), between(rng, 0.16, 0.28))


def crossing_bell(rng: Rng) -> Signal:
    """The bell of a level crossing goes by: even strokes, their pitch falling as the train passes."""
    gong = tuned_modes(rng, between(rng, 900, 1400), (1, 1.6, 2.4, 3.5), 0.6, tilt=0.4)
    piece, gap = strike(rng, gong, hardness_hz=7000), between(rng, 0.25, 0.42)
    count = int(rng.integers(6, 11))
    track = _repeat(piece, count, gap)
    n = len(track)
    near = 1 / np.sqrt(1 + ((times(n) - n / RATE / 2) / 0.8) ** 2)
    stretched = np.interp(np.cumsum(curve(n, [(0, 1.06), (n / RATE, 0.94)])), np.arange(n), track)
    return stretched * near


def crossing_signal(rng: Rng) -> Signal:
    """A pedestrian light ticks slowly, then fast."""
    tickle = strike(rng, tuned_modes(rng, between(rng, 800, 1100), (1, 2.1, 3.3), 0.05, tilt=0.4))
    slow, fast = between(rng, 0.5, 0.8), between(rng, 0.11, 0.16)
    at, notes = 0.0, []
    for gap, count in ((slow, int(rng.integers(2, 4))), (fast, int(rng.integers(10, 22)))):
        for _ in range(count):
            notes.append((at, tickle))
            at += gap
    return _notes(notes)


def security_gate_alarm(rng: Rng) -> Signal:
    """Fast two-tone alarm at a shop's door."""
    n = length(between(rng, 1.5, 3.0))
    hz = between(rng, 1700, 2600)
    f0 = np.where((times(n) * between(rng, 5, 9)) % 1 < 0.5, hz, hz * between(rng, 1.15, 1.4))
    return harmonics(f0, (1, 0.2, 0.4, 0.1, 0.2)) * swell(n, 0.005, 0.02)


def fire_alarm(rng: Rng) -> Signal:
    """Three loud pulses and a pause at 3 kHz, a slow whoop, or an electric bell."""
    kind = rng.uniform()
    if kind < 0.4:
        beep = _beep(between(rng, 2900, 3300), 0.5, (1, 0.2, 0.3, 0.1, 0.1))
        return _repeat(_repeat(beep, 3, 1.0), int(rng.integers(1, 3)), 3.8)
    n = length(between(rng, 3.0, 6.0))
    if kind < 0.7:
        sweep = (times(n) / between(rng, 1.2, 3.0)) % 1
        return harmonics(between(rng, 500, 800) * (1 + sweep), (1, 0.5, 0.5, 0.3, 0.3, 0.2, 0.2))
    return _ringer(rng, between(rng, 900, 1500), between(rng, 15, 20), n / RATE)


def car_alarm(rng: Rng) -> Signal:
    """The usual cycle: yelps, hi-lo, rapid pulses."""
    n = length(between(rng, 3.0, 6.0))
    t = times(n)
    third, rate = n / RATE / 3, between(rng, 2.5, 4)
    hz = between(rng, 1000, 1500)
    yelp = hz * (1 + 0.6 * ((t * rate) % 1))
    hilo = np.where((t * 2.2) % 1 < 0.5, hz * 1.5, hz * 1.1)
    pulses = np.full(n, hz * 1.3)
    part = np.minimum((t / third).astype(int), 2)
    order = rng.permutation(3)
    f0 = np.choose(order[part], [yelp, hilo, pulses])
    gate = np.where((order[part] == 2) & ((t * 6) % 1 > 0.6), 0.0, 1.0)
    return buzz(f0, -7, 12) * gate


def emergency_siren(rng: Rng) -> Signal:
    """Wail, yelp or two tones, with the harmonics of an overdriven horn, coming nearer or going."""
    n = length(between(rng, 4.0, 7.0))
    t, kind = times(n), int(rng.integers(3))
    low, high = between(rng, 520, 720), between(rng, 1300, 1650)
    if kind == 0:
        period = between(rng, 3.0, 4.5)
        f0 = low + (high - low) * (0.5 - 0.5 * np.cos(2 * np.pi * (t / period + rng.uniform())))
    elif kind == 1:
        f0 = low + (high - low) * (0.5 - 0.5 * np.cos(2 * np.pi * t * between(rng, 2.6, 3.6)))
    else:
        tone = between(rng, 420, 480)
        f0 = np.where((t / between(rng, 0.45, 0.7)) % 2 < 1, tone, tone * 1.335)
    f0 = f0 * curve(n, [(0, 1.02), (n / RATE, between(rng, 0.95, 1.0))])
    horn = np.tanh(1.6 * harmonics(f0, (1, 0.35, 0.3, 0.15, 0.1)))
    near = curve(n, [(0, between(rng, 0.25, 0.8)), (n / RATE / 2, 1.0), (n / RATE, between(rng, 0.25, 0.9))])  # fmt: skip
    return (
        resonate(
            horn,
            [
                (between(rng, 700, 1600), 900, 1.0),
                (between(rng, 1800, 2900), 1200, rng.uniform(0.3, 1.2)),
            ],
        )
        * near
        + 0.3 * horn * near
    )


def _horn(rng: Rng, pitches: Sequence[float], n: int, slope_db: float, attack_s: float) -> Signal:
    total = np.zeros(n)
    for hz in pitches:
        total += buzz(np.full(n, hz) * wander(rng, n, 6, 0.001), slope_db)
    return total * swell(n, attack_s, 0.05)


def car_horn(rng: Rng) -> Signal:
    """Two discs about a third apart, rich in harmonics up to 8 kHz; one or two blasts."""
    hz = between(rng, 330, 450)
    pitches = (hz, hz * between(rng, 1.19, 1.27)) if rng.uniform() < 0.8 else (hz,)
    body = [(between(rng, 1400, 2600), 700, 2.0), (between(rng, 3000, 4200), 1200, 1.5)]
    notes, at = [], 0.0
    for _ in range(int(rng.integers(1, 3))):
        blast = _horn(rng, pitches, length(between(rng, 0.3, 1.1)), -3, 0.015)
        notes.append((at, 0.3 * blast + resonate(blast, body)))
        at = at + len(blast) / RATE + between(rng, 0.08, 0.2)
    return _notes(notes)


def ship_horn(rng: Rng) -> Signal:
    """A very low, long blast, with a slow onset and the air it is blown with."""
    n = length(between(rng, 2.5, 5.0))
    hz = between(rng, 75, 135)
    tone = _horn(rng, (hz, hz * between(rng, 1.49, 1.51)), n, -5, 0.25)
    air = band(noise(rng, n), 200, 1500) * swell(n, 0.2, 0.3)
    return tone + 0.15 * air


def train_horn(rng: Rng) -> Signal:
    """A chord of air horns."""
    n = length(between(rng, 1.0, 2.8))
    hz = between(rng, 280, 370)
    chord = (hz, hz * 1.26, hz * 1.5) if rng.uniform() < 0.6 else (hz, hz * 1.19)
    tone = _horn(rng, chord, n, -3.5, 0.07)
    return resonate(tone, [(900, 700, 1.0), (1900, 900, 1.0)]) + 0.2 * tone


def _pea_whistle(rng: Rng, n: int, hz: float, trill: float) -> Signal:
    """A whistle whose ball breaks the tone up: frequency and level wobble together."""
    wobble = np.sin(phase_of(trill * wander(rng, n, 8, 0.12)))
    f0 = hz * (1 + 0.012 * wobble) * wander(rng, n, 5, 0.004)
    tone = harmonics(f0, (1.0, 0.12, 0.05)) * (0.7 + 0.3 * wobble)
    return (tone + 0.15 * band(noise(rng, n), hz * 0.7, hz * 1.5)) * swell(n, 0.02, 0.03)


def guard_whistle(rng: Rng) -> Signal:
    """One long trilled blast of a guard."""
    return _pea_whistle(rng, length(between(rng, 0.7, 1.6)), between(rng, 2700, 3300), between(rng, 28, 42))  # fmt: skip


def lifeguard_whistle(rng: Rng) -> Signal:
    """Two or three short trilled blasts."""
    hz, trill = between(rng, 2900, 3700), between(rng, 30, 50)
    blast = _pea_whistle(rng, length(between(rng, 0.25, 0.45)), hz, trill)
    return _repeat(blast, int(rng.integers(2, 4)), between(rng, 0.5, 0.65))


def kettle_whistle(rng: Rng) -> Signal:
    """Steam through a whistle: hiss first, then a tone that rises and steadies."""
    seconds = between(rng, 3.0, 6.0)
    n = length(seconds)
    hz = between(rng, 1900, 2900)
    rise = curve(n, [(0, 0.72), (seconds * 0.3, 0.95), (seconds, 1.0)])
    f0 = hz * rise * wander(rng, n, 7, 0.004)
    tone = harmonics(f0, (1, 0.5, 0.12, 0.06)) * curve(n, [(0, 0.02), (seconds * 0.35, 1), (seconds, 1)])  # fmt: skip
    steam = shaped_noise(rng, n, [(100, -40), (1000, -12), (5000, 0), (16000, -6)])
    return (tone * wander(rng, n, 12, 0.08) + 0.22 * steam) * swell(n, 0.3, 0.15)


def ice_cream_van(rng: Rng) -> Signal:
    """A tinkling tune over a small loudspeaker, from far."""
    scale = between(rng, 780, 1050) * np.array([1, 1.125, 1.26, 1.335, 1.498, 1.682, 2.0])
    gap = between(rng, 0.2, 0.28)
    notes, place_in_scale = [], 2
    for n in range(int(between(rng, 3.5, 6.0) / gap)):
        place_in_scale = int(np.clip(place_in_scale + rng.integers(-2, 3), 0, 6))
        notes.append((n * gap, _chime(rng, float(scale[place_in_scale]), 0.6)))
    return band(_notes(notes), 500, 5000)


RECIPES: dict[str, Recipe] = {
    recipe.__name__: recipe
    for recipe in (
        announcement_chime, bicycle_bell, car_alarm, car_horn, checkout_beep, church_bell, counter_bell,
        crossing_bell, crossing_signal, desk_phone_ring, doorbell, emergency_siren, entrance_bell, fire_alarm,
        guard_whistle, ice_cream_van, kettle_whistle, lifeguard_whistle, lift_ding, lorry_reverse,
        message_chime, microwave_beep, oven_timer, parking_sensor, phone_ringtone, seatbelt_chime,
        security_gate_alarm, ship_horn, train_horn, tram_bell, wall_clock_chime, watch_beep,
    )
}  # fmt: skip
