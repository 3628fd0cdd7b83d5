"""Pitch of signals whose pitch is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.models.prosody.pitch import centred_frames, track_pitch
from tests.models.prosody.voices import RATE, pulses

AT = np.arange(RATE) / RATE


@pytest.mark.parametrize("hz", [70, 80, 110, 163.7, 220, 351.3, 500, 620])
def test_a_tone_has_its_frequency_within_a_permille(hz: float) -> None:
    track = track_pitch(np.sin(2 * np.pi * hz * AT), RATE)
    middle = track.f0_hz[5:-5]
    assert np.all(np.abs(middle / hz - 1) < 0.001)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(hz=st.floats(75, 450), first_formant=st.floats(300, 900), level=st.floats(1e-4, 1.0))
def test_a_voice_has_its_pitch_within_one_percent_in_nearly_every_frame(
    hz: float, first_formant: float, level: float
) -> None:
    formants = ((first_formant, 90.0), (1500.0, 120.0), (2600.0, 150.0))
    track = track_pitch(level * pulses(hz, 0.6, formants=formants), RATE)
    # Where the pulses begin and end, a resonator rings at its own frequency.
    heard = track.f0_hz[track.voiced][5:-5]
    assert len(heard) > 40
    assert np.mean(np.abs(heard / hz - 1) < 0.01) > 0.95


def test_a_glide_is_followed() -> None:
    hz = 120 * 2**AT  # an octave up in one second
    track = track_pitch(np.sin(2 * np.pi * np.cumsum(hz) / RATE), RATE)
    expected = 120 * 2 ** (np.arange(len(track.f0_hz)) * track.step_s)
    assert np.all(np.abs(track.f0_hz[5:-5] / expected[5:-5] - 1) < 0.01)


def test_a_missing_fundamental_is_heard() -> None:
    tone = sum(np.sin(2 * np.pi * 150 * k * AT) for k in (3, 4, 5, 6))
    track = track_pitch(np.asarray(tone), RATE)
    assert np.median(track.f0_hz[track.voiced]) == pytest.approx(150, rel=0.01)


def test_silence_and_noise_have_no_pitch() -> None:
    assert not track_pitch(np.zeros(RATE), RATE).voiced.any()
    noise = np.random.default_rng(1).normal(size=RATE)
    assert track_pitch(noise, RATE).voiced.mean() < 0.05


def test_voiced_is_told_from_unvoiced_at_the_right_time() -> None:
    signal = np.concatenate([np.zeros(4800), pulses(150, 0.4), np.zeros(4800)])
    voiced = track_pitch(signal, RATE).voiced
    assert not voiced[:27].any()
    assert voiced[35:62].all()
    assert not voiced[-27:].any()


def test_the_level_changes_nothing() -> None:
    voice = pulses(130, 0.5)
    loud, quiet = track_pitch(voice, RATE), track_pitch(voice * 1e-4, RATE)
    assert np.allclose(loud.f0_hz, quiet.f0_hz, rtol=1e-9)


@pytest.mark.parametrize("snr_db", [10.0, 20.0])
def test_the_harmonics_to_noise_ratio_is_that_of_the_mixture(snr_db: float) -> None:
    tone = np.sin(2 * np.pi * 200 * AT)
    # The tracker listens below about 2.5 kHz; the noise lies there whole.
    noise = np.random.default_rng(0).normal(size=RATE)
    spectrum = np.fft.rfft(noise) * (np.fft.rfftfreq(RATE, 1 / RATE) < 1000)
    noise = np.fft.irfft(spectrum)
    noise *= np.sqrt(np.mean(tone**2) / np.mean(noise**2)) * 10 ** (-snr_db / 20)
    assert track_pitch(tone + noise, RATE).hnr_db.mean() == pytest.approx(snr_db, abs=2.5)


@pytest.mark.parametrize("n", [1, 7, 159, 160, 161, 16_001])
def test_frames_are_centred_on_every_step(n: int) -> None:
    samples = np.arange(1, n + 1, dtype=float)
    frames = centred_frames(samples, 401, 160)
    assert frames.shape == (1 + n // 160, 401)
    centres = np.arange(len(frames)) * 160
    inside = centres < n
    assert np.array_equal(frames[inside, 200], samples[centres[inside]])


def test_of_equally_good_octaves_the_higher_is_taken() -> None:
    noise = 0.2 * np.random.default_rng(0).normal(size=RATE)
    track = track_pitch(np.sin(2 * np.pi * 600 * AT) + noise, RATE)
    assert np.mean(np.abs(track.f0_hz[5:-5] / 600 - 1) < 0.01) > 0.98


def test_a_few_creaky_cycles_are_no_leap_of_an_octave() -> None:
    heights = np.ones(200)
    heights[100:108:2] = 0.4  # every second of eight pulses in the middle is weaker
    signal = np.zeros(RATE)
    signal[np.arange(200) * (RATE // 200)] = heights
    track = track_pitch(signal, RATE)
    assert np.all(np.abs(track.f0_hz[5:-5] / 200 - 1) < 0.01)


def test_in_noise_the_path_keeps_to_its_neighbours() -> None:
    noise = 0.5 * np.random.default_rng(0).normal(size=RATE)
    track = track_pitch(np.sin(2 * np.pi * 400 * AT) + noise, RATE)
    heard = track.f0_hz[5:-5]
    assert np.mean(np.abs(heard / 400 - 1) < 0.03) > 0.9
    leaps = np.abs(np.diff(np.log2(heard[heard > 0]))) > 0.4
    assert leaps.mean() < 0.02
