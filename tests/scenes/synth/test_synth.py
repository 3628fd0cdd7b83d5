"""Synthetic sounds: what each must be to be taken for itself."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from earwitness.audio import Audio
from earwitness.audio.loudness import integrated_loudness
from earwitness.errors import UsageError
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.bank_library import library_findings, read_library
from earwitness.scenes.sound_measure import measure_take, sounding_blocks
from earwitness.scenes.sounds import load_library
from earwitness.scenes.synth.ambiences import BEDS
from earwitness.scenes.synth.library import (
    AMBIENCE_LUFS,
    SynthJob,
    make_bed,
    make_one,
    make_sound,
    recipes,
    synthesise_library,
)


@cache
def bank() -> Bank:
    return load_bank()


def spectrum(audio: Audio) -> tuple[np.ndarray, np.ndarray]:
    power = np.square(np.abs(np.fft.rfft(audio.samples.astype(np.float64))))
    return np.fft.rfftfreq(audio.frames, 1 / audio.rate), power


def share(audio: Audio, low: float, high: float) -> float:
    hz, power = spectrum(audio)
    return float(power[(hz >= low) & (hz < high)].sum() / power.sum())


def centroid(audio: Audio) -> float:
    hz, power = spectrum(audio)
    return float((hz * power).sum() / power.sum())


def loudest_hz(audio: Audio, low: float = 0, high: float = 20_000, size: int = 2048) -> np.ndarray:
    """The strongest frequency of every frame that sounds."""
    frames = np.lib.stride_tricks.sliding_window_view(audio.samples, size)[:: size // 2]
    power = np.square(np.abs(np.fft.rfft(frames * np.hanning(size))))
    hz = np.fft.rfftfreq(size, 1 / audio.rate)
    power[:, (hz < low) | (hz > high)] = 0
    loud = power.max(axis=1) > power.max() / 1000
    return np.asarray(hz[power[loud].argmax(axis=1)])


def flatness(audio: Audio, low: float, high: float) -> float:
    """1 for white noise, near 0 for tones; over smoothed bands."""
    hz, power = spectrum(audio)
    part = power[(hz >= low) & (hz < high)]
    bands = part[: len(part) // 64 * 64].reshape(64, -1).mean(axis=1)
    return float(np.exp(np.log(bands + 1e-20).mean()) / bands.mean())


def test_enough_classes_for_every_location() -> None:
    made = set(recipes())
    assert len(made) == 180
    assert made <= {sound.id for sound in bank().sounds}
    assert set(BEDS) == {place.id for place in bank().locations}
    for place in bank().locations:
        assert len(made & set(bank().sounds_at(place.id))) >= 12, place.id
        assert made & set(bank().rare_at(place.id)), place.id


@pytest.mark.parametrize("sound", sorted(recipes()))
def test_every_recipe_makes_an_event(sound: str) -> None:
    shortest, longest = bank().sound(sound).duration_s
    audio = make_sound(sound, 3, 1, shortest * 0.95)
    assert audio.rate == 44100
    assert audio.samples.ndim == 1
    assert np.isfinite(audio.samples).all()
    peak = float(np.abs(audio.samples).max())
    assert peak < 0.82, "never clipped"
    assert shortest * 0.9 <= audio.seconds <= longest * 1.02
    loudness = integrated_loudness(audio).lufs
    assert loudness is not None
    assert -45 < loudness < -11.5
    assert peak > 0.45 or loudness > -12.5, "never faint"
    # No click at either end.
    assert np.abs(audio.samples[[0, -1]]).max() < 0.02
    lead = int(sounding_blocks(audio)[0]) / 100
    assert lead <= 0.15


def test_takes_differ_and_repeat() -> None:
    first, again, other = (make_sound("dog_bark", 1, n) for n in (1, 1, 2))
    assert np.array_equal(first.samples, again.samples)
    assert first.frames != other.frames or not np.array_equal(first.samples, other.samples)
    assert not np.array_equal(make_sound("dog_bark", 2, 1).samples[:100], first.samples[:100])


def test_unknown_sound() -> None:
    with pytest.raises(UsageError, match="sound 'dragon': no recipe"):
        make_sound("dragon", 0, 1)


@pytest.mark.parametrize("number", range(1, 5))
def test_a_siren_sweeps_or_steps(number: int) -> None:
    track = loudest_hz(make_sound("emergency_siren", 0, number), 350, 2600)
    assert np.percentile(track, 95) / np.percentile(track, 5) > 1.2
    assert np.percentile(track, 5) > 350


@pytest.mark.parametrize(
    ("sound", "low", "high"),
    [
        ("checkout_beep", 1900, 3000), ("microwave_beep", 1800, 2350), ("watch_beep", 3500, 4400),
        ("lorry_reverse", 1000, 1400), ("ship_horn", 70, 420), ("guard_whistle", 2500, 3500),
        ("kettle_whistle", 1300, 3100), ("owl_hoot", 300, 500), ("church_bell", 100, 2600),
    ],
)  # fmt: skip
def test_pitches_are_those_of_the_thing(sound: str, low: float, high: float) -> None:
    for number in (1, 2):
        hz = float(np.median(loudest_hz(make_sound(sound, 0, number))))
        assert low <= hz <= high


@pytest.mark.parametrize("number", range(1, 4))
def test_rain_is_broadband_and_steady(number: int) -> None:
    audio = make_sound("rain_burst", 0, number)
    assert flatness(audio, 1000, 10_000) > 0.5
    assert measure_take(audio).bandwidth_hz > 12_000
    middle = audio.samples[audio.frames // 4 : audio.frames * 3 // 4]
    blocks = np.sqrt(
        np.mean(np.square(middle[: len(middle) // 4410 * 4410].reshape(-1, 4410)), axis=1)
    )
    assert 20 * np.log10(blocks.max() / blocks.min()) < 8


def test_spectra_are_ordered_as_in_life() -> None:
    order = ["thunder_clap", "wind_gust", "wave_crash", "air_release"]
    centroids = [np.mean([centroid(make_sound(sound, 0, n)) for n in (1, 2, 3)]) for sound in order]
    assert centroids == sorted(centroids)
    assert share(make_sound("thunder_clap", 0, 1), 0, 500) > 0.7
    assert centroid(make_sound("coin_drop", 0, 1)) > centroid(make_sound("cow_moo", 0, 1)) * 4


def test_a_helicopter_beats_ten_to_twenty_times_a_second() -> None:
    for number in (1, 2, 3):
        audio = make_sound("helicopter_low", 0, number)
        blocks = audio.samples[: audio.frames // 441 * 441].reshape(-1, 441)
        level = np.sqrt(np.mean(np.square(blocks), axis=1))
        beat = np.abs(np.fft.rfft((level - level.mean()) * np.hanning(len(level))))
        hz = np.fft.rfftfreq(len(level), 0.01)
        chosen = (hz > 5) & (hz < 40)
        assert 9 <= hz[chosen][beat[chosen].argmax()] <= 21


def test_knocks_are_separate_strokes() -> None:
    for number in (1, 2, 3):
        audio = make_sound("door_knock", 0, number)
        blocks = audio.samples[: audio.frames // 441 * 441].reshape(-1, 441)
        level = np.sqrt(np.mean(np.square(blocks), axis=1))
        loud = level > level.max() / 4
        onsets = int(np.count_nonzero(loud[1:] & ~loud[:-1])) + int(loud[0])
        assert 3 <= onsets <= 6


@pytest.mark.parametrize("location", sorted(BEDS))
def test_ambiences_are_even_loops_at_one_level(location: str) -> None:
    audio = make_bed(location, 0, 1)
    assert 29.5 <= audio.seconds <= 41
    assert integrated_loudness(audio).lufs == pytest.approx(AMBIENCE_LUFS, abs=0.05)
    assert float(np.abs(audio.samples).max()) < 0.9
    # The step from the end to the beginning is one like any other.
    steps = np.abs(np.diff(audio.samples))
    assert abs(float(audio.samples[0] - audio.samples[-1])) <= float(np.percentile(steps, 99.99))
    seconds = audio.samples[: audio.frames // 44100 * 44100].reshape(-1, 44100)
    level = 10 * np.log10(np.mean(np.square(seconds), axis=1))
    assert np.ptp(level) < 20


def test_a_library_of_some_sounds(tmp_path: Path) -> None:
    library = synthesise_library(
        tmp_path / "a", bank(), seed=5, takes=6, sounds=["door_knock", "mouse_click"], workers=1
    )
    assert [t.split for t in library.sounds("door_knock")].count("train") == 4
    assert library.card.synthetic == 12
    assert all(take.licence == "CC0 1.0" and take.synthetic for take in library.takes)
    again = synthesise_library(
        tmp_path / "b", bank(), seed=5, takes=6, sounds=["mouse_click", "door_knock"], workers=1
    )
    assert again.hash == library.hash
    assert load_library(tmp_path / "a", verify=True).hash == library.hash
    # More takes move none of those that are there.
    more = synthesise_library(
        tmp_path / "a", bank(), seed=5, takes=8, sounds=["door_knock"], workers=1
    )
    after = {take.path: take for take in more.takes}
    assert all(after[take.path] == take for take in library.takes)
    assert len(after) == 14
    with pytest.raises(UsageError, match="no recipe"):
        synthesise_library(tmp_path / "a", bank(), sounds=["public_piano"])


def test_the_same_bytes_with_two_workers(tmp_path: Path) -> None:
    jobs = [SynthJob(tmp_path / "x", "sound", "mouse_click", n, 5) for n in range(1, 4)]
    alone = [make_one(job).takes[0].sha256 for job in jobs]
    library = synthesise_library(
        tmp_path / "y",
        bank(),
        seed=5,
        takes=3,
        sounds=["mouse_click", "lift_ding", "twig_snap", "watch_beep"],
        workers=2,
    )
    assert library.card.n_takes == 12
    assert len(set(alone)) == 3
    assert (tmp_path / "y" / "sounds" / "mouse_click" / "synth-s5-01.flac").is_file()


def test_shared_splits_serve_locations_with_few_takes(tmp_path: Path) -> None:
    sounds = ["keys_jingle", "coin_drop", "watch_beep", "bag_zip", "can_open"]
    synthesise_library(tmp_path, bank(), takes=1, sounds=sounds, policy="shared", workers=1)
    findings = list(library_findings(bank(), read_library(tmp_path)))
    assert not any(f.code == "B603" for f in findings)
    assert any("takes of 5 of its" in f.found for f in findings)


def test_synthetic_sounds_are_recognised(real_data: Path) -> None:
    from benchmarks.synth_recognised import recognise

    result = recognise(real_data / "environment", takes=3, variants=2, least=5, few=12)
    assert len(result.classes) >= 7
    assert result.interval[0] > 2 * result.chance, result
