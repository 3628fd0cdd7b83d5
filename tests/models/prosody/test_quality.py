"""Voice quality of voices made with known jitter, shimmer and formants."""

from __future__ import annotations

import numpy as np
import pytest

from earwitness.models.prosody.pitch import track_pitch
from earwitness.models.prosody.quality import CycleChanges, cycle_changes, runs, voice_quality
from tests.models.prosody.voices import RATE, pulses


def changes(voice: np.ndarray) -> CycleChanges:
    return cycle_changes(voice, RATE, track_pitch(voice, RATE))


@pytest.mark.parametrize("f0", [100.0, 160.0, 230.0])
def test_a_steady_voice_has_no_jitter_and_no_shimmer(f0: float) -> None:
    found = changes(pulses(f0))
    assert found.jitter < 0.004
    assert found.shimmer_db < 0.1
    assert found.cycles == pytest.approx(f0, rel=0.1)


@pytest.mark.parametrize("sigma", [0.005, 0.01, 0.02])
def test_jitter_is_that_of_the_pulses(sigma: float) -> None:
    found = changes(pulses(110, 3.0, jitter=sigma))
    # The mean |difference| of two independent normal periods is 2 sigma / sqrt(pi).
    assert found.jitter == pytest.approx(2 * sigma / np.sqrt(np.pi), rel=0.25)


@pytest.mark.parametrize("sigma_db", [0.5, 1.0])
def test_shimmer_is_that_of_the_pulses(sigma_db: float) -> None:
    found = changes(pulses(110, 3.0, shimmer_db=sigma_db))
    assert found.shimmer_db == pytest.approx(2 * sigma_db / np.sqrt(np.pi), rel=0.3)


@pytest.mark.parametrize(
    "formants",
    [
        ((600.0, 80.0), (1200.0, 100.0), (2500.0, 150.0)),
        ((750.0, 80.0), (1100.0, 100.0), (2600.0, 150.0)),
        ((400.0, 60.0), (2100.0, 120.0), (2900.0, 150.0)),
    ],
)
def test_formants_are_where_the_resonators_are(formants) -> None:
    voice = pulses(110, formants=formants)
    track = track_pitch(voice, RATE)
    found = voice_quality(voice, RATE, track, np.flatnonzero(track.voiced))
    middle = np.nanmedian(found.formants_hz, axis=0)
    for value, (centre, _) in zip(middle, formants, strict=True):
        assert value == pytest.approx(centre, abs=60)


def test_noise_lowers_the_cepstral_peak() -> None:
    voice = pulses(140)
    noisy = voice + 0.1 * np.random.default_rng(0).normal(size=len(voice))
    found = []
    for signal in (voice, noisy):
        track = track_pitch(signal, RATE)
        chosen = np.flatnonzero(track.voiced)
        found.append(voice_quality(signal, RATE, track, chosen).cpp_db.mean())
    assert found[0] > found[1] + 5


def test_the_first_two_harmonics_are_compared() -> None:
    at = np.arange(RATE) / RATE
    tone = np.sin(2 * np.pi * 200 * at) + 0.5 * np.sin(2 * np.pi * 400 * at)
    track = track_pitch(tone, RATE)
    found = voice_quality(tone, RATE, track, np.flatnonzero(track.voiced)[10:-10])
    assert found.h1_h2_db.mean() == pytest.approx(20 * np.log10(2), abs=0.2)


def test_silence_has_no_cycles() -> None:
    assert changes(np.zeros(RATE)) == CycleChanges(0.0, 0.0, 0)


def test_runs_of_nothing_and_of_everything() -> None:
    assert runs(np.zeros(3, dtype=bool)) == []
    assert runs(np.ones(3, dtype=bool)) == [(0, 3)]
    assert runs(np.zeros(0, dtype=bool)) == []
