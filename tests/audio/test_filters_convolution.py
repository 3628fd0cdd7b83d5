"""Convolution: the exact sum, its tail, in any size."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from earwitness.audio import Audio
from earwitness.audio.convolution import convolve, fft_size
from tests.audio.libebur128 import noise

QUICK = settings(max_examples=40, deadline=None, derandomize=True)


def sound(frames: int, seed: int) -> np.ndarray:
    return noise(frames, 1, seed)[:, 0].astype(np.float32)


def direct(samples: np.ndarray, response: np.ndarray) -> np.ndarray:
    return np.convolve(samples.astype(np.float64), response.astype(np.float64))


@QUICK
@given(st.integers(1, 6_000), st.integers(1, 3_000), st.integers(0, 100))
@example(1, 1, 0)
@example(1, 3_000, 1)
@example(6_000, 1, 2)
@example(5_000, 100, 3)
def test_it_is_the_sum_itself(frames: int, taps: int, seed: int) -> None:
    samples, response = sound(frames, seed), sound(taps, seed + 1)
    out = convolve(Audio(samples, 16_000), response).samples
    assert out.shape == (frames + taps - 1,)
    assert out.dtype == np.float32
    scale = np.abs(response).sum() * np.abs(samples).max()
    np.testing.assert_allclose(out, direct(samples, response), atol=1e-6 * scale)


def test_many_blocks_are_the_sum_itself() -> None:
    samples, response = sound(150_000, 3), sound(700, 4)
    assert fft_size(150_000, 700) < 30_000, "the test is about overlapping blocks"
    out = convolve(Audio(samples, 16_000), response).samples
    expected = direct(samples, response)
    np.testing.assert_allclose(out, expected, atol=1e-6 * np.abs(expected).max())


@QUICK
@given(st.floats(-3, 3), st.floats(-3, 3), st.integers(0, 100))
def test_it_is_linear(a: float, b: float, seed: int) -> None:
    x, y, response = sound(2_000, seed), sound(2_000, seed + 1), sound(300, seed + 2)

    def run(samples: np.ndarray) -> np.ndarray:
        return convolve(Audio(samples.astype(np.float32), 16_000), response).samples

    np.testing.assert_allclose(run(a * x + b * y), a * run(x) + b * run(y), atol=3e-4)


def test_an_impulse_gives_the_response_back_at_its_place() -> None:
    click = np.zeros(9_000, np.float32)
    click[8_500] = 1
    response = sound(2_000, 5)
    out = convolve(Audio(click, 16_000), response).samples
    np.testing.assert_allclose(out[8_500:10_500], response, atol=1e-6)
    np.testing.assert_allclose(out[:8_500], 0, atol=1e-6)


def test_each_channel_is_convolved_alone() -> None:
    both = np.stack([sound(3_000, 1), sound(3_000, 2)], axis=1)
    response = sound(100, 3)
    out = convolve(Audio(both, 16_000), response).samples
    assert out.shape == (3_099, 2)
    np.testing.assert_array_equal(
        out[:, 1], convolve(Audio(both[:, 1].copy(), 16_000), response).samples
    )


def test_memory_grows_with_the_result_only() -> None:
    audio, response = Audio(sound(2_000_000, 1), 44_100), sound(10_000, 2)
    convolve(Audio(audio.samples[:50_000].copy(), 44_100), response)
    tracemalloc.start()
    out = convolve(audio, response)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < out.samples.nbytes + 8e6


def test_nothing_makes_nothing() -> None:
    assert convolve(Audio(np.zeros(0, np.float32), 16_000), sound(5, 1)).frames == 0
    assert convolve(Audio(sound(5, 1), 16_000), np.zeros(0, np.float32)).frames == 0


def test_what_is_no_response_is_refused() -> None:
    audio = Audio(sound(10, 1), 16_000)
    with pytest.raises(ValueError, match=r"shape \(2, 5\); wanted \(m,\)"):
        convolve(audio, np.zeros((2, 5), np.float32))
    with pytest.raises(TypeError, match="float64; wanted float32"):
        convolve(audio, np.zeros(5))


@pytest.mark.parametrize("sounding", [0, 1, 40])
def test_silence_after_the_last_sound_of_a_response_changes_nothing(sounding: int) -> None:
    rng = np.random.default_rng(sounding)
    samples = rng.standard_normal(50_000).astype(np.float32)
    response = np.zeros(26_460, np.float32)
    response[:sounding] = rng.standard_normal(sounding)
    made = convolve(Audio(samples, 16_000), response).samples
    exact = np.convolve(samples.astype(np.float64), response[: max(sounding, 1)])
    assert len(made) == len(samples) + len(response) - 1
    scale = max(float(np.abs(response).sum()), 1.0) * float(np.abs(samples).max())
    np.testing.assert_allclose(made[: len(exact)], exact, atol=1e-6 * scale)
    np.testing.assert_allclose(made[len(exact) :], 0, atol=1e-6 * scale)
