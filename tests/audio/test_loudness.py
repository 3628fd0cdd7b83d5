"""Loudness beside libebur128, and the laws it must obey."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.audio import Audio
from earwitness.audio.loudness import (
    HIGHPASS_48K,
    SHELF_48K,
    Loudness,
    combined_loudness,
    integrated_loudness,
    k_weighted,
    k_weighting_sos,
    measure_loudness,
)
from tests.audio.libebur128 import CASES, GOLDEN, noise, speechlike

QUICK = settings(max_examples=25, deadline=None, derandomize=True)
REFERENCE = json.loads(GOLDEN.read_text())["cases"]
SPEECH = speechlike(6, 16_000, 1, 21)
RATES = [8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 88_200, 96_000, 192_000]


def scaled(audio: Audio, gain_db: float) -> Audio:
    return Audio((audio.samples * 10 ** (gain_db / 20)).astype(np.float32), audio.rate)


def lufs(audio: Audio) -> float:
    found = integrated_loudness(audio).lufs
    assert found is not None
    return found


@pytest.mark.parametrize("name", CASES)
def test_every_figure_is_that_of_libebur128(name: str) -> None:
    expected = REFERENCE[name]
    audio = CASES[name]()
    energies = k_weighted(audio)
    found = measure_loudness(audio)
    assert found.integrated.lufs == pytest.approx(expected["loudness_global"], abs=1e-3)
    assert found.max_momentary_lufs == pytest.approx(expected["max_momentary"], abs=1e-3)
    assert found.max_short_term_lufs == pytest.approx(expected["max_short_term"], abs=1e-3)
    assert found.sample_peak_dbfs == pytest.approx(expected["sample_peak_db"], abs=1e-4)
    spread = energies.range_lu(step_hops=10)
    # The library says 0 where nothing is above the gate.
    assert (spread or 0.0) == pytest.approx(expected["loudness_range"], abs=0.01)


def test_it_is_that_of_libebur128_with_a_silent_case_among_them() -> None:
    assert REFERENCE["nearly silent"]["loudness_global"] is None
    assert integrated_loudness(CASES["nearly silent"]()) == Loudness(None, "gated")


def test_biquads_at_48_khz_are_the_tables_of_the_recommendation() -> None:
    np.testing.assert_allclose(
        k_weighting_sos(48_000), [SHELF_48K, HIGHPASS_48K], rtol=0, atol=1e-12
    )


def test_biquads_at_44100_hz_are_those_published_for_libebur128() -> None:
    shelf = [1.5308412300503478, -2.6509799951547297, 1.1690790799215869, 1, -1.6636551132560204, 0.7125954280732254]  # fmt: skip
    highpass = [1, -2, 1, 1, -1.9891696736297957, 0.9891990357870394]
    np.testing.assert_allclose(k_weighting_sos(44_100), [shelf, highpass], rtol=0, atol=1e-9)


def response_db(rate: int, frequencies_hz: np.ndarray) -> np.ndarray:
    z = np.exp(-2j * np.pi * frequencies_hz / rate)
    total = np.ones(len(z), complex)
    for row in k_weighting_sos(rate):
        total *= np.polyval(row[2::-1], z) / np.polyval(row[:2:-1], z)
    return 20 * np.log10(np.abs(total))


@pytest.mark.parametrize("rate", RATES)
def test_k_weighting_has_the_same_response_at_every_rate(rate: int) -> None:
    # From the tables at 48 kHz. The double pole is at 38 Hz; the shelf rises by 4 dB from 1 to 3 kHz.
    frequencies = np.array([20.0, 38.13547, 100.0, 500.0, 997.0, 1681.974])
    expected = np.array([-13.2754, -5.9716, -1.1335, 0.0425, 0.691, 2.4827])
    tolerance = 1e-3 if rate == 48_000 else 0.06 if rate >= 22_050 else 0.35
    np.testing.assert_allclose(response_db(rate, frequencies), expected, atol=tolerance)


@pytest.mark.parametrize("rate", RATES)
def test_a_997_hz_sine_of_full_scale_reads_minus_3_01(rate: int) -> None:
    t = np.arange(2 * rate) / rate
    tone = Audio(np.sin(2 * np.pi * 997 * t).astype(np.float32), rate)
    # Below 16 kHz the bilinear transform squeezes the shelf's upper half; so it does in every meter.
    assert lufs(tone) == pytest.approx(-3.01, abs=0.05 if rate >= 22_050 else 0.15)


@QUICK
@given(st.floats(-30, 10))
def test_a_gain_in_db_moves_loudness_by_itself(gain_db: float) -> None:
    # The quiet third lies under the relative gate, and no block crosses the absolute one.
    steady = (0.5 * noise(48_000, 1, 5))[:, 0].astype(np.float32)
    stairs = steady * np.repeat(np.float32([1, 0.4, 0.05]), 16_000)
    for audio in (Audio(steady, 16_000), Audio(stairs, 16_000)):
        assert lufs(scaled(audio, gain_db)) - lufs(audio) == pytest.approx(gain_db, abs=1e-4)


@QUICK
@given(st.floats(0.03, 0.399), st.floats(-30, 10))
def test_short_sounds_scale_as_well(seconds: float, gain_db: float) -> None:
    sound = Audio((0.5 * noise(round(seconds * 16_000), 1, 5))[:, 0].astype(np.float32), 16_000)
    found = integrated_loudness(scaled(sound, gain_db))
    assert found.rule == "one_block"
    assert found.lufs is not None
    assert found.lufs - lufs(sound) == pytest.approx(gain_db, abs=1e-4)


def test_polarity_does_not_matter() -> None:
    assert lufs(Audio(-SPEECH.samples, SPEECH.rate)) == lufs(SPEECH)


@QUICK
@given(st.integers(0, 80), st.integers(0, 80))
def test_silence_around_it_in_whole_hops_does_not_matter(before: int, after: int) -> None:
    # Ends that are quiet themselves: blocks that reach half into silence are gated out or the same.
    hop = SPEECH.rate // 10
    long = np.concatenate([np.zeros(4 * hop), SPEECH.samples, np.zeros(4 * hop)]).astype(np.float32)
    around = np.concatenate([np.zeros(before * hop), long, np.zeros(after * hop)]).astype(
        np.float32
    )
    assert lufs(Audio(around, SPEECH.rate)) == pytest.approx(
        lufs(Audio(long, SPEECH.rate)), abs=1e-3
    )


def test_a_steady_sound_is_as_loud_whatever_its_length() -> None:
    steady = (0.2 * noise(48_000 * 3, 1, 9))[:, 0].astype(np.float32)
    levels = [lufs(Audio(steady[:n], 48_000)) for n in (9_600, 19_199, 19_200, 24_001, 144_000)]
    assert max(levels) - min(levels) < 0.15


def test_the_rule_changes_at_400_ms() -> None:
    sound = (0.2 * noise(48_000, 1, 9))[:, 0].astype(np.float32)
    assert integrated_loudness(Audio(sound[:19_199], 48_000)).rule == "one_block"
    assert integrated_loudness(Audio(sound[:19_200], 48_000)).rule == "gated"


def test_a_short_sound_is_its_energy_over_its_own_length() -> None:
    sound = (0.2 * noise(9_000, 1, 9))[:, 0].astype(np.float32)
    energies = k_weighted(Audio(sound, 48_000))
    power = energies.total_energy / 9_000
    assert lufs(Audio(sound, 48_000)) == pytest.approx(-0.691 + 10 * math.log10(power), abs=1e-9)


@pytest.mark.parametrize("frames", [0, 1, 100, 4_000, 6_400, 16_000, 64_000])
def test_silence_is_a_value(frames: int) -> None:
    found = measure_loudness(Audio(np.zeros(frames, np.float32), 16_000))
    assert found.integrated.silent
    assert found.integrated.lufs is None
    assert found.integrated.gain_db_to(-20) is None
    assert found.max_momentary_lufs is None
    assert found.max_short_term_lufs is None
    assert found.range_lu is None
    assert found.sample_peak_dbfs is None


@pytest.mark.parametrize("seconds", [0.2, 2.0])
def test_what_is_under_the_gate_is_silent_whatever_its_length(seconds: float) -> None:
    hiss = noise(round(seconds * 48_000), 1, 4)[:, 0]
    level = 0.1 * hiss
    offset = -70 - lufs(Audio(level.astype(np.float32), 48_000))
    just_under = Audio((level * 10 ** ((offset - 0.1) / 20)).astype(np.float32), 48_000)
    just_over = Audio((level * 10 ** ((offset + 0.5) / 20)).astype(np.float32), 48_000)
    assert integrated_loudness(just_under).silent
    assert not integrated_loudness(just_over).silent


def test_no_level_is_infinite_in_the_arrays() -> None:
    half = np.concatenate([0.1 * noise(80_000, 1, 3)[:, 0], np.zeros(80_000)]).astype(np.float32)
    energies = k_weighted(Audio(half, 16_000))
    for levels, blocks in ((energies.momentary_lufs(), 97), (energies.short_term_lufs(), 71)):
        assert levels.shape == (blocks,)
        assert not np.isinf(levels).any()
        assert np.isnan(levels[-1])
        assert np.isfinite(levels[0])


def test_channels_add_their_powers() -> None:
    a = (0.3 * noise(48_000, 1, 1))[:, 0].astype(np.float32)
    mono = lufs(Audio(a, 48_000))
    assert lufs(Audio(np.stack([a, a], axis=1), 48_000)) == pytest.approx(mono + 3.0103, abs=1e-3)
    six = np.zeros((48_000, 6), np.float32)
    six[:, 3] = a
    assert integrated_loudness(Audio(six, 48_000)).silent, (
        "the low-frequency channel does not count"
    )
    six[:, 4] = a
    assert lufs(Audio(six, 48_000)) == pytest.approx(mono + 10 * math.log10(1.41), abs=1e-6)


def test_loudness_of_several_recordings_is_gated_together() -> None:
    loud, quiet = SPEECH, scaled(SPEECH, -60)
    parts = [k_weighted(loud), k_weighted(quiet)]
    assert combined_loudness(parts).lufs == pytest.approx(lufs(loud), abs=1e-6)
    twice = combined_loudness([parts[0], parts[0]])
    assert twice.lufs == pytest.approx(lufs(loud), abs=1e-9)
    short = [k_weighted(Audio(SPEECH.samples[n : n + 3_000], 16_000)) for n in (4_000, 8_000)]
    assert combined_loudness(short).rule == "one_block"
    assert combined_loudness([]) == Loudness(None, "one_block")


@pytest.mark.parametrize("rate", [11_025, 22_050])
def test_odd_rates_round_the_hop(rate: int) -> None:
    energies = k_weighted(Audio(np.ones(rate, np.float32), rate))
    assert energies.hop_frames == (rate + 5) // 10
    assert len(energies.hop_energies) == rate // energies.hop_frames


def test_memory_chunks_do_not_show() -> None:
    long = speechlike(20, 8_000, 1, 30)
    whole = k_weighted(long)
    from scipy.signal import sosfilt

    filtered = sosfilt(k_weighting_sos(8_000), long.samples.astype(np.float64))
    expected = np.square(filtered).reshape(-1, 800).sum(axis=1)
    np.testing.assert_allclose(whole.hop_energies, expected, rtol=1e-12)
    assert whole.total_energy == pytest.approx(expected.sum(), rel=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_samples_that_are_not_finite_are_refused(bad: float) -> None:
    samples = SPEECH.samples.copy()
    samples[700] = bad
    with pytest.raises(ValueError, match="NaN or infinity"):
        integrated_loudness(Audio(samples, 16_000))


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(ValueError, match="rate is 2000 Hz; loudness needs at least 4000 Hz"):
        integrated_loudness(Audio(np.zeros(10, np.float32), 2_000))
    with pytest.raises(ValueError, match="no channel weights are known for 8 channels"):
        integrated_loudness(Audio(np.zeros((10, 8), np.float32), 48_000))
    with pytest.raises(ValueError, match="2 channel weights for 1 channels"):
        integrated_loudness(SPEECH, channel_weights=(1.0, 1.0))


def test_real_recordings_are_measured(real_data: object) -> None:
    from pathlib import Path

    from earwitness.audio import read_audio

    files = sorted(Path(str(real_data)).glob("environment/**/*.wav"))[:12]
    assert files
    for path in files:
        assert soundfile.info(path).frames
        found = integrated_loudness(read_audio(path))
        assert found.lufs is None or -70 < found.lufs < 3


@pytest.mark.parametrize("target", [-35.0, -23.0, -12.0])
def test_a_gain_is_found_with_the_gate_at_the_level_it_leads_to(target: float) -> None:
    t = np.arange(5 * 48_000) / 48_000
    wave = np.sin(2 * np.pi * 997 * t) * np.where(t < 2.02, 0.3, 1e-3)
    audio = Audio(wave.astype(np.float32), 48_000)
    energies = k_weighted(audio)
    gain = energies.gain_db_to(target)
    assert gain is not None
    louder = Audio((wave * 10 ** (gain / 20)).astype(np.float32), 48_000)
    assert integrated_loudness(louder).lufs == pytest.approx(target, abs=0.01)
    assert energies.amplified(gain).integrated().lufs == pytest.approx(target, abs=0.01)
    assert k_weighted(Audio(np.zeros(48_000, np.float32), 48_000)).gain_db_to(target) is None
