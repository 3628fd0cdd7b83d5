"""Filters: gains where they are promised, delays, exact lengths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.audio import Audio
from earwitness.audio.filters import (
    Filter,
    cascade,
    high_shelf,
    highpass,
    low_shelf,
    lowpass,
    peaking,
)
from tests.audio.libebur128 import noise

QUICK = settings(max_examples=25, deadline=None, derandomize=True)
RATE = 44_100
NOISE = (0.5 * noise(30_000, 1, 1))[:, 0].astype(np.float32)
EVERY = {
    "low-pass": lowpass(3_000, RATE),
    "high-pass": highpass(80, RATE),
    "bell": peaking(250, -1.5, RATE, 0.7),
    "low shelf": low_shelf(200, 4, RATE),
    "high shelf": high_shelf(5_000, -6, RATE),
    "chain": cascade(highpass(80, RATE), peaking(250, -1.5, RATE, 0.7), peaking(3_000, 1.5, RATE, 0.7)),
}  # fmt: skip


def gain_db(made: Filter, *frequencies_hz: float) -> list[float]:
    return [float(level) for level in made.response_db(np.array(frequencies_hz))]


@pytest.mark.parametrize(("order", "octave_db"), [(1, 7.0), (2, 12.3), (4, 24.1)])
def test_butterworth_gains(order: int, octave_db: float) -> None:
    low = lowpass(200, RATE, order)
    assert gain_db(low, 1, 200) == pytest.approx([0, -3.0103], abs=1e-3)
    assert gain_db(low, 400)[0] == pytest.approx(-octave_db, abs=0.1)
    high = highpass(200, RATE, order)
    assert gain_db(high, 20_000, 200) == pytest.approx([0, -3.0103], abs=1e-3)
    assert gain_db(high, 100)[0] == pytest.approx(-octave_db, abs=0.1)


@pytest.mark.parametrize("level", [-12.0, -1.5, 3.0])
def test_bells_and_shelves_gains(level: float) -> None:
    bell = peaking(1_000, level, RATE, 0.7)
    assert gain_db(bell, 1_000, 1, 22_000) == pytest.approx([level, 0, 0], abs=0.01)
    low = low_shelf(500, level, RATE)
    assert gain_db(low, 1, 500, 22_000) == pytest.approx([level, level / 2, 0], abs=0.01)
    high = high_shelf(4_000, level, RATE)
    assert gain_db(high, 1, 4_000, 22_049) == pytest.approx([0, level / 2, level], abs=0.01)


def test_cookbook_coefficients() -> None:
    # A bell worked out by hand: 1/4 of the rate, Q 1, 12.04 dB (A = 2): cos 0, alpha 0.5.
    bell = peaking(RATE / 4, 40 * np.log10(2), RATE, 1.0)
    np.testing.assert_allclose(bell.sos, [[1.6, 0, 0, 1, 0, 0.6]], atol=1e-12)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("zero_phase", [False, True])
def test_what_comes_out_has_the_promised_spectrum(name: str, zero_phase: bool) -> None:
    made = EVERY[name]
    click = np.zeros(1 << 16, np.float32)
    click[1 << 15] = 1
    out = made.apply(Audio(click, RATE), zero_phase=zero_phase).samples
    frequencies = np.fft.rfftfreq(len(out), 1 / RATE)
    heard = (frequencies > 30) & (frequencies < 10_000)
    found = 20 * np.log10(np.abs(np.fft.rfft(out.astype(np.float64)))[heard])
    expected = (2 if zero_phase else 1) * made.response_db(frequencies[heard])
    # Below -80 dB float32 itself begins to be heard by the comparison.
    np.testing.assert_allclose(np.maximum(found, -80), np.maximum(expected, -80), atol=0.02)


@pytest.mark.parametrize("name", EVERY)
def test_zero_phase_is_the_same_both_ways_and_delays_nothing(name: str) -> None:
    made = EVERY[name]
    click = np.zeros(20_001, np.float32)
    click[10_000] = 1
    out = made.apply(Audio(click, RATE), zero_phase=True).samples
    np.testing.assert_allclose(out, out[::-1], atol=1e-6)
    forward = made.apply(Audio(NOISE, RATE), zero_phase=True).samples
    backward = made.apply(Audio(NOISE[::-1].copy(), RATE), zero_phase=True).samples
    np.testing.assert_allclose(forward, backward[::-1], atol=1e-6)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("frequency_hz", [120.0, 900.0])
def test_group_delay_is_the_delay_of_an_envelope(name: str, frequency_hz: float) -> None:
    made = EVERY[name]
    t = np.arange(4 * RATE) / RATE
    slow = 1 + np.cos(2 * np.pi * 0.25 * (t - 2))
    packet = Audio((0.2 * slow * np.sin(2 * np.pi * frequency_hz * t)).astype(np.float32), RATE)
    power = np.square(made.apply(packet).samples, dtype=np.float64)
    before = np.square(packet.samples, dtype=np.float64)
    shift = (power @ t) / power.sum() - (before @ t) / before.sum()
    assert shift == pytest.approx(made.delay_s(frequency_hz), abs=2e-5)


@QUICK
@given(
    st.integers(0, 2_000),
    st.sampled_from(sorted(EVERY)),
    st.booleans(),
    st.sampled_from([None, 1, 2, 3]),
)
def test_length_type_and_layout_are_kept(
    frames: int, name: str, zero_phase: bool, channels: int | None
) -> None:
    shape = (frames,) if channels is None else (frames, channels)
    audio = Audio(np.resize(NOISE, shape).astype(np.float32), RATE)
    out = EVERY[name].apply(audio, zero_phase=zero_phase)
    assert out.samples.shape == shape
    assert out.samples.dtype == np.float32
    assert out.rate == RATE
    if channels and frames:
        alone = EVERY[name].apply(Audio(audio.samples[:, -1].copy(), RATE), zero_phase=zero_phase)
        np.testing.assert_array_equal(out.samples[:, -1], alone.samples)


@QUICK
@given(st.integers(0, 300), st.floats(-2, 2), st.booleans(), st.sampled_from(sorted(EVERY)))
def test_filters_are_linear_and_do_not_care_for_time(
    shift: int, factor: float, zero_phase: bool, name: str
) -> None:
    made = EVERY[name]

    def run(samples: np.ndarray) -> np.ndarray:
        return made.apply(Audio(samples.astype(np.float32), RATE), zero_phase=zero_phase).samples

    a, b = np.copy(NOISE[:6_000]), NOISE[6_000:12_000]
    # A sound with room on both sides: what rings over the edges is cut off.
    a[:2_000] = a[4_000:] = 0
    np.testing.assert_allclose(run(a + factor * b), run(a) + factor * run(b), atol=3e-6)
    np.testing.assert_allclose(run(np.roll(a, shift))[shift:], run(a)[: 6_000 - shift], atol=1e-6)


def test_chunks_do_not_show() -> None:
    long = np.resize(NOISE, (1 << 18) + 5_000).astype(np.float32)
    from scipy.signal import sosfilt

    made = EVERY["chain"]
    expected = sosfilt(made.sos, long.astype(np.float64))
    np.testing.assert_allclose(made.apply(Audio(long, RATE)).samples, expected, atol=1e-6)


def test_a_cascade_is_its_parts_in_a_row() -> None:
    parts = [highpass(80, RATE), peaking(3_000, 1.5, RATE)]
    one = cascade(*parts).apply(Audio(NOISE, RATE)).samples
    two = parts[1].apply(parts[0].apply(Audio(NOISE, RATE))).samples
    np.testing.assert_allclose(one, two, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lowpass(22_050, RATE), "filter frequency is 22050 Hz; wanted between 0 and 22050 Hz"),
        (lambda: highpass(0, RATE), "filter frequency is 0 Hz"),
        (lambda: peaking(1_000, 3, RATE, 0), "filter Q is 0; wanted more than 0"),
        (lambda: lowpass(100, RATE, 0), "filter order is 0; wanted at least 1"),
        (lambda: cascade(), "filters of 0 rates"),
        (lambda: cascade(lowpass(100, 8_000), lowpass(100, 16_000)), "filters of 2 rates"),
        (lambda: lowpass(100, 8_000).apply(Audio(NOISE, RATE)), "8000 Hz met a recording of 44100 Hz"),
        (lambda: Filter(np.zeros((1, 5)), RATE), r"wanted \(sections, 6\)"),
        (lambda: Filter(np.array([[1, 0, 0, 1, 0, 1.1]]), RATE), "not stable"),
    ],
)  # fmt: skip
def test_what_makes_no_filter_is_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make()


def test_filters_do_not_share_their_sections() -> None:
    first, second = lowpass(4000, 16_000), lowpass(4000, 16_000)
    first.sos[0, 0] = 5.0
    assert second.sos[0, 0] != 5.0
    assert lowpass(4000, 16_000).sos[0, 0] == second.sos[0, 0]
