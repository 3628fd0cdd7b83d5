"""Sample and true peak, and decibels."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.audio import Audio
from earwitness.audio.decibels import (
    amplitude_from_db,
    db_from_amplitude,
    db_from_power,
    power_from_db,
)
from earwitness.audio.peaks import (
    HEADROOM_DB,
    interpolators,
    oversampling,
    sample_peak_dbfs,
    true_peak_dbtp,
)
from tests.audio.libebur128 import CASES, GOLDEN, noise

QUICK = settings(max_examples=25, deadline=None, derandomize=True)
REFERENCE = json.loads(GOLDEN.read_text())["cases"]


def wide(samples: np.ndarray) -> float:
    """True peak without passing over anything: every value between all samples."""
    taps = interpolators(4)
    half = taps.shape[1] // 2
    padded = np.pad(samples.astype(np.float64), 2 * half)
    between = [np.abs(np.correlate(padded, phase)).max() for phase in taps]
    return 20 * math.log10(max(float(np.abs(samples).max()), *map(float, between)))


@pytest.mark.parametrize("name", [name for name in CASES if "noise" not in name and "nearly" not in name])  # fmt: skip
def test_true_peak_is_near_that_of_libebur128(name: str) -> None:
    # White noise is left out: the library's 12 taps lose what is near half the rate, up to 1.3 dB of it.
    assert true_peak_dbtp(CASES[name]()) == pytest.approx(REFERENCE[name]["true_peak_db"], abs=0.1)


@QUICK
@given(st.integers(0, 5_000), st.integers(1, 3_000))
def test_passing_over_quiet_stretches_changes_nothing(seed: int, frames: int) -> None:
    steep = noise(frames, 1, seed)[:, 0] ** 7 * 10 ** (-noise(frames, 1, seed + 1)[:, 0])
    samples = steep.astype(np.float32)
    if samples.any():
        assert true_peak_dbtp(Audio(samples, 44_100)) == pytest.approx(wide(samples), abs=2e-5)


@QUICK
@given(st.integers(0, 5_000))
def test_true_peak_lies_between_sample_peak_and_headroom(seed: int) -> None:
    audio = Audio(noise(2_000, 2, seed).astype(np.float32), 16_000)
    sample, true = sample_peak_dbfs(audio), true_peak_dbtp(audio)
    assert sample is not None
    assert true is not None
    assert sample <= true <= sample + HEADROOM_DB + 2e-5


def test_the_headroom_is_the_worst_wave_there_is() -> None:
    middle = interpolators(4)[1]
    worst = np.sign(middle).astype(np.float32)
    assert true_peak_dbtp(Audio(worst, 48_000)) == pytest.approx(HEADROOM_DB, abs=2e-5)


def test_interpolation_is_exact_for_sines_up_to_0_4_of_the_rate() -> None:
    taps = interpolators(4)
    n = np.arange(-15, 17)
    for cycles in (0.01, 0.1, 0.25, 0.4):
        for place, phase in zip((0.25, 0.5, 0.75), taps, strict=True):
            expected = np.cos(2 * np.pi * cycles * place + 0.3)
            assert phase @ np.cos(2 * np.pi * cycles * n + 0.3) == pytest.approx(expected, abs=2e-3)


def test_below_the_given_level_the_sample_peak_is_returned() -> None:
    n = np.arange(4_000)
    wave = 0.5 * np.hanning(4_000) * np.sin(np.pi * n / 2 + np.pi / 4)
    tone = Audio(wave.astype(np.float32), 48_000)
    sample, true = sample_peak_dbfs(tone), true_peak_dbtp(tone)
    assert sample is not None
    assert true == pytest.approx(-6.02, abs=0.02)
    assert true_peak_dbtp(tone, only_above_dbfs=-6.0) == sample
    assert true_peak_dbtp(tone, only_above_dbfs=-12.0) == true


@pytest.mark.parametrize(("rate", "factor"), [(16_000, 4), (48_000, 4), (96_000, 2), (192_000, 1)])
def test_high_rates_need_less_interpolation(rate: int, factor: int) -> None:
    assert oversampling(rate) == factor
    audio = Audio(noise(999, 1, 3)[:, 0].astype(np.float32), rate)
    true, sample = true_peak_dbtp(audio), sample_peak_dbfs(audio)
    assert true is not None
    assert sample is not None
    assert (true == sample) == (factor == 1)


@pytest.mark.parametrize("at", [0, 1, 255, 256, 499])
def test_a_click_at_any_place_counts(at: int) -> None:
    samples = np.zeros(500, np.float32)
    samples[at] = -0.5
    assert true_peak_dbtp(Audio(samples, 48_000)) == pytest.approx(-6.0206, abs=1e-4)


@pytest.mark.parametrize("samples", [np.zeros(0), np.zeros(5), np.zeros((7, 2))])
def test_nothing_has_no_peak(samples: np.ndarray) -> None:
    audio = Audio(samples.astype(np.float32), 16_000)
    assert sample_peak_dbfs(audio) is None
    assert true_peak_dbtp(audio) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_peak_that_is_not_finite_is_refused(bad: float) -> None:
    audio = Audio(np.array([0, bad, 1], np.float32), 16_000)
    for measure in (sample_peak_dbfs, true_peak_dbtp):
        with pytest.raises(ValueError, match="NaN or infinity"):
            measure(audio)


@QUICK
@given(st.floats(-200, 60))
def test_decibels_go_back_and_forth(level_db: float) -> None:
    assert db_from_amplitude(amplitude_from_db(level_db)) == pytest.approx(level_db, abs=1e-9)
    assert db_from_power(power_from_db(level_db)) == pytest.approx(level_db, abs=1e-9)
    assert amplitude_from_db(level_db) ** 2 == pytest.approx(power_from_db(level_db))


def test_nothing_has_no_decibels() -> None:
    assert db_from_amplitude(0.0) is None
    assert db_from_power(0.0) is None
    with pytest.raises(ValueError, match=r"power is -1\.0"):
        db_from_power(-1.0)
    with pytest.raises(ValueError, match="amplitude is nan"):
        db_from_amplitude(math.nan)
