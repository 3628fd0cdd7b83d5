"""Measures of takes, trimming, dividing, cutting."""

from __future__ import annotations

import numpy as np
import pytest

from earwitness.audio import Audio, resample
from earwitness.scenes.sound_measure import (
    bandwidth_hz,
    cut_long,
    measure_take,
    peak_time_s,
    split_events,
    trim,
)

RATE = 44100


def noise(seconds: float, level: float = 0.1, rate: int = RATE, seed: int = 0) -> np.ndarray:
    made = np.random.default_rng(seed).normal(0, level, round(seconds * rate))
    return made.astype(np.float32)


def silence(seconds: float) -> np.ndarray:
    return np.zeros(round(seconds * RATE), np.float32)


def joined(*parts: np.ndarray) -> Audio:
    return Audio(np.concatenate(parts), RATE)


def test_white_noise_has_the_whole_band_and_a_known_loudness() -> None:
    measures = measure_take(Audio(noise(2), RATE))
    assert measures.bandwidth_hz > 21_000
    assert not measures.band_limited
    assert measures.duration_s == 2
    assert measures.loudness_lufs == pytest.approx(-17.6, abs=1.5)


def test_a_take_from_a_low_rate_is_band_limited_whatever_its_own_rate() -> None:
    low = resample(Audio(noise(2, rate=11025), 11025), RATE)
    assert bandwidth_hz(low) == pytest.approx(5500, abs=400)
    assert measure_take(low).band_limited


def test_stereo_and_short_and_silent_takes_are_measured() -> None:
    stereo = np.stack([noise(1), noise(1, seed=1)], axis=1)
    assert measure_take(Audio(stereo, RATE)).loudness_lufs is not None
    assert measure_take(Audio(noise(0.03), RATE)).loudness_lufs is not None
    silent = measure_take(Audio(silence(1), RATE))
    assert silent.loudness_lufs is None
    assert silent.bandwidth_hz == 0


def test_the_loudest_moment_is_heard_not_rumble() -> None:
    rumble = (0.9 * np.sin(2 * np.pi * 12 * np.arange(RATE) / RATE)).astype(np.float32)
    audio = joined(rumble, silence(0.5), noise(0.2, 0.2), silence(0.5))
    assert peak_time_s(audio) == pytest.approx(1.6, abs=0.06)


def test_trim_leaves_thirty_milliseconds() -> None:
    audio = joined(silence(0.4), noise(0.5), silence(1.0))
    assert trim(audio).seconds == pytest.approx(0.56, abs=0.021)
    assert trim(Audio(silence(1), RATE)).seconds == 1


def test_trim_is_idempotent() -> None:
    once = trim(joined(silence(0.4), noise(0.5), silence(1.0)))
    assert trim(once).frames == pytest.approx(once.frames, abs=RATE // 100)


def test_events_are_divided_at_long_gaps_only() -> None:
    audio = joined(noise(0.3), silence(0.2), noise(0.3), silence(0.9), noise(0.4), silence(0.3))
    parts = split_events(audio)
    assert [round(part.seconds, 1) for part in parts] == [0.8, 0.5]
    assert len(split_events(Audio(silence(1), RATE))) == 1


def test_long_takes_are_cut_around_their_loudest_moment_with_fades() -> None:
    audio = joined(noise(4, 0.05), noise(0.3, 0.5), noise(4, 0.05))
    short = cut_long(audio, 2.0)
    assert short.seconds == 2
    assert peak_time_s(short) == pytest.approx(0.25, abs=0.1)
    assert abs(short.samples[0]) < 1e-3
    assert abs(short.samples[-1]) < 1e-3
    assert cut_long(audio, 20) is audio


def test_a_cut_at_the_very_end_fades_in_only() -> None:
    audio = joined(noise(4, 0.05), noise(0.3, 0.5))
    short = cut_long(audio, 2.0)
    assert np.array_equal(short.samples[-100:], audio.samples[-100:])
