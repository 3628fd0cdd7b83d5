"""Fades, cross-fades, loops and ducking: exact lengths, no clicks, bounded gains."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from earwitness.audio import Audio, samples_at
from earwitness.audio.fades import (
    apply_gain,
    concatenate,
    duck_envelope,
    fade,
    fade_curve,
    gain_ramp,
    loop_to,
)
from tests.audio.libebur128 import noise

QUICK = settings(max_examples=60, deadline=None, derandomize=True)
RATE = 16_000


def ones(frames: int) -> Audio:
    return Audio(np.ones(frames, np.float32), RATE)


def sound(frames: int, seed: int = 1) -> Audio:
    return Audio(noise(frames, 1, seed)[:, 0].astype(np.float32), RATE)


def smooth(frames: int, seed: int = 1) -> Audio:
    """Noise under 200 Hz or so, whose steps are far smaller than its swing."""
    kernel = np.hanning(160) / 80
    return Audio(
        np.convolve(sound(frames + 159, seed).samples, kernel, "valid").astype(np.float32), RATE
    )


@pytest.mark.parametrize("shape", ["linear", "raised_cosine", "equal_power"])
@pytest.mark.parametrize("frames", [0, 1, 2, 3, 160, 4_001])
def test_a_curve_and_its_reverse_complete_each_other(shape: str, frames: int) -> None:
    curve = fade_curve(frames, shape)  # type: ignore[arg-type]
    assert curve.shape == (frames,)
    assert curve.dtype == np.float32
    power = 2 if shape == "equal_power" else 1
    np.testing.assert_allclose(curve**power + curve[::-1] ** power, 1, atol=1e-6)
    assert (np.diff(curve) > 0).all()
    assert ((curve > 0) & (curve <= 1)).all()


@QUICK
@given(st.integers(0, 400), st.floats(0, 0.03), st.floats(0, 0.03))
def test_a_fade_touches_its_ends_only(frames: int, in_s: float, out_s: float) -> None:
    out = fade(ones(frames), in_s, out_s).samples
    rising, falling = samples_at(in_s, RATE), samples_at(out_s, RATE)
    assert out.shape == (frames,)
    assert ((out >= 0) & (out <= 1)).all()
    assert (out[rising : max(frames - falling, rising)] == 1).all()
    if rising and frames > rising:
        assert out[0] < 0.5 or rising == 1


def test_fades_are_the_same_for_every_channel() -> None:
    both = Audio(np.stack([sound(900, 1).samples, sound(900, 2).samples], axis=1), RATE)
    out = fade(both, 0.01, 0.02)
    for channel in range(2):
        alone = fade(Audio(both.samples[:, channel].copy(), RATE), 0.01, 0.02)
        np.testing.assert_array_equal(out.samples[:, channel], alone.samples)


def test_fading_leaves_the_original_alone() -> None:
    original = ones(100)
    fade(original, 0.001, 0.001)
    assert (original.samples == 1).all()


@QUICK
@given(st.lists(st.integers(0, 500), min_size=1, max_size=5), st.floats(0, 0.02))
def test_concatenation_has_the_length_of_its_parts_less_the_overlaps(
    lengths: list[int], crossfade_s: float
) -> None:
    wanted = samples_at(crossfade_s, RATE)
    overlaps = [min(wanted, a // 2, b // 2) for a, b in itertools.pairwise(lengths)]
    out = concatenate([ones(n) for n in lengths], crossfade_s, "equal_gain")
    assert out.frames == sum(lengths) - sum(overlaps)
    np.testing.assert_allclose(out.samples, 1, atol=1e-6)


def test_without_a_crossfade_the_samples_are_just_joined() -> None:
    a, b = sound(50, 1), sound(70, 2)
    joined = concatenate([a, b]).samples
    np.testing.assert_array_equal(joined, np.concatenate([a.samples, b.samples]))


def test_equal_power_keeps_the_power_of_unrelated_noise() -> None:
    a, b = sound(40_000, 1), sound(40_000, 2)
    blend = concatenate([a, b], 1.0).samples[24_000:40_000]
    powers = np.square(blend).reshape(8, -1).mean(axis=1)
    np.testing.assert_allclose(powers, np.square(a.samples).mean(), rtol=0.1)


@QUICK
@given(
    st.integers(1, 900),
    st.integers(0, 5_000),
    st.floats(0, 0.06),
    st.integers(0, 2_000),
    st.sampled_from(["equal_power", "equal_gain"]),
)
def test_loops_have_the_exact_length(
    frames: int, wanted: int, crossfade_s: float, start: int, law: str
) -> None:
    out = loop_to(sound(frames), wanted, crossfade_s, start, law)  # type: ignore[arg-type]
    assert out.samples.shape == (wanted,)
    assert np.abs(out.samples).max(initial=0) <= np.sqrt(2) * 1.001
    if law == "equal_gain":
        steady = loop_to(ones(frames), wanted, crossfade_s, start, "equal_gain").samples
        np.testing.assert_allclose(steady, 1, atol=1e-6)


@QUICK
@given(st.integers(600, 3_000), st.integers(0, 9_000), st.integers(0, 3_000), st.integers(0, 50))
def test_loops_do_not_click(frames: int, wanted: int, start: int, seed: int) -> None:
    recording = smooth(frames, seed)
    overlap = min(samples_at(0.02, RATE), frames // 2)
    out = loop_to(recording, wanted, 0.02, start).samples.astype(np.float64)
    # A blend adds two recordings' steps, each times at most 1, and the movement of the gains themselves.
    step = np.abs(np.diff(recording.samples.astype(np.float64))).max()
    peak = float(np.abs(recording.samples).max())
    bound = np.sqrt(2) * step + 2 * peak * np.pi / 2 / overlap
    assert np.abs(np.diff(out)).max(initial=0) <= bound * 1.0001
    swing = np.abs(recording.samples[0] - recording.samples[-1])
    if swing > 3 * bound and wanted > frames:
        bare = np.tile(recording.samples, 1 + wanted // frames)
        assert np.abs(np.diff(bare)).max() > bound, "the test would not hear a click"


def test_the_loop_test_hears_clicks() -> None:
    recording = Audio(np.linspace(-1, 1, 2_000, dtype=np.float32), RATE)
    blended = loop_to(recording, 6_000, 0.02).samples
    bare = loop_to(recording, 6_000, 0.0).samples
    assert np.abs(np.diff(bare)).max() == pytest.approx(2)
    assert np.abs(np.diff(blended)).max() < 0.02


def test_a_loop_repeats_itself() -> None:
    recording = sound(1_000)
    out = loop_to(recording, 5_000, 0.01).samples
    turn = 1_000 - 160
    np.testing.assert_array_equal(out[:turn], recording.samples[:turn])
    np.testing.assert_array_equal(out[turn : 2 * turn], out[2 * turn : 3 * turn])
    np.testing.assert_array_equal(out[turn + 160 : 2 * turn], recording.samples[160:turn])
    np.testing.assert_array_equal(
        loop_to(recording, 300, start=200).samples, recording.samples[200:500]
    )


def test_loops_keep_channels_and_level() -> None:
    stereo = Audio(np.stack([sound(20_000, 1).samples, sound(20_000, 2).samples], axis=1), RATE)
    out = loop_to(stereo, 70_001)
    assert out.samples.shape == (70_001, 2)
    level = np.square(out.samples).reshape(-1)[:140_000].reshape(14, -1).mean(axis=1)
    np.testing.assert_allclose(level, np.square(stereo.samples).mean(), rtol=0.1)


@QUICK
@given(
    st.integers(0, 4_000),
    st.lists(st.tuples(st.floats(-0.1, 0.4), st.floats(0, 0.2)), max_size=4),
    st.floats(-24, 0),
    st.floats(0, 0.1),
    st.floats(0, 0.1),
)
def test_ducking_is_bounded_full_inside_and_gone_outside(
    frames: int,
    drawn: list[tuple[float, float]],
    depth_db: float,
    attack_s: float,
    release_s: float,
) -> None:
    spans = [(start, start + length) for start, length in drawn]
    gains = duck_envelope(frames, RATE, spans, depth_db, attack_s, release_s)
    depth = np.float32(10 ** (depth_db / 20))
    assert gains.shape == (frames,)
    assert gains.dtype == np.float32
    assert ((gains >= depth * np.float32(0.999999)) & (gains <= 1)).all()
    touched = np.zeros(frames, bool)
    for start_s, end_s in spans:
        start, end = samples_at(start_s, RATE), samples_at(end_s, RATE)
        np.testing.assert_allclose(gains[max(start, 0) : max(end, 0)], depth, rtol=1e-6)
        first = max(start - samples_at(attack_s, RATE), 0)
        touched[first : max(end + samples_at(release_s, RATE), 0)] = True
    assert (gains[~touched] == 1).all()
    order = duck_envelope(frames, RATE, spans[::-1], depth_db, attack_s, release_s)
    np.testing.assert_array_equal(gains, order)


@QUICK
@given(st.floats(-24, -0.1), st.floats(0.005, 0.1))
def test_ducking_moves_in_even_steps_of_decibels(depth_db: float, ramp_s: float) -> None:
    gains = duck_envelope(RATE, RATE, [(0.4, 0.6)], depth_db, ramp_s, 2 * ramp_s)
    levels = 20 * np.log10(gains.astype(np.float64))
    steps = np.diff(levels)
    assert np.abs(steps).max() <= -depth_db / (ramp_s * RATE) * 1.01 + 1e-4
    assume(ramp_s > 0.01)
    middle = samples_at(0.4 - ramp_s / 2, RATE)
    assert levels[middle] == pytest.approx(depth_db / 2, abs=0.02 * -depth_db)


def test_ramps_and_gains() -> None:
    np.testing.assert_allclose(
        gain_ramp(3, 0, -12), [1, 10 ** (-6 / 20), 10 ** (-12 / 20)], rtol=1e-6
    )
    assert gain_ramp(0, 0, -6).shape == (0,)
    a = sound(100)
    np.testing.assert_array_equal(apply_gain(a, 0.5).samples, a.samples * np.float32(0.5))
    curve = gain_ramp(100, 0, -6)
    stereo = Audio(np.stack([a.samples, -a.samples], axis=1), RATE)
    np.testing.assert_array_equal(apply_gain(stereo, curve).samples[:, 1], -a.samples * curve)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fade_curve(3, "exponential"), "fade shape is 'exponential'"),
        (lambda: fade(ones(5), in_s=-1), "a fade of -16000 samples"),
        (lambda: concatenate([]), "nothing to concatenate"),
        (lambda: concatenate([ones(5), Audio(np.ones(5, np.float32), 8_000)]), "different rates"),
        (lambda: concatenate([ones(9), ones(9)], 1, "steep"), "law of the blend is 'steep'"),
        (lambda: loop_to(ones(0), 5), "nothing to loop"),
        (lambda: loop_to(ones(5), -1), "loop of -1 samples"),
        (lambda: duck_envelope(5, RATE, [], 3.0, 0, 0), "ducking by 3 dB"),
        (lambda: duck_envelope(5, RATE, [(1, 0.5)], -3.0, 0, 0), "ends before it starts"),
        (lambda: apply_gain(ones(5), np.ones(4, np.float32)), r"gain has shape \(4,\) for 5"),
    ],
)
def test_what_makes_no_sense_is_refused(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=message):
        call()
