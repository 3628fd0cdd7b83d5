"""One vector a clip: what it holds, what it does not depend on, and that it is always finite."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.models.prosody.features import extract, feature_names
from earwitness.models.prosody.reading import Source, features_of
from tests.models.prosody.voices import RATE, acted, pulses

UNITS = re.compile(
    r"_(st|st_per_s|db|dbfs|db_per_s|db_per_khz|s|per_s|per_spoken_s|octaves|percent|share|position"
    r"|correlation|skewness|kurtosis|npvi|depth)$|^mfcc_\w+_(mean|std)$"
)


def named(samples: np.ndarray) -> dict[str, float]:
    return dict(zip(feature_names(), extract(samples).tolist(), strict=True))


def test_every_feature_has_a_name_of_its_own_that_ends_in_what_it_is_counted_in() -> None:
    names = feature_names()
    assert len(set(names)) == len(names)
    assert [name for name in names if not UNITS.search(name)] == []


@pytest.mark.parametrize("n", [1, 2, 159, 4_800, RATE])
@pytest.mark.parametrize("kind", ["silence", "constant", "noise", "tone", "click"])
def test_every_value_is_finite_for_every_sound_and_length(kind: str, n: int) -> None:
    samples = {
        "silence": np.zeros(n),
        "constant": np.ones(n),
        "noise": np.random.default_rng(3).normal(size=n),
        "tone": np.sin(np.arange(n) / 11),
        "click": np.eye(1, n, n // 2)[0],
    }[kind]
    vector = extract(samples)
    assert vector.dtype == np.float32
    assert np.isfinite(vector).all()


@settings(derandomize=True, deadline=None, max_examples=25)
@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=800), st.integers(1, 12))
def test_any_samples_give_finite_features(values: list[float], times: int) -> None:
    assert np.isfinite(extract(np.asarray(values * times, dtype=np.float32))).all()


def test_forty_seconds_are_taken_whole() -> None:
    long = np.tile(acted("anger", 0, 0), 58)[: 40 * RATE]
    found = named(long)
    assert np.isfinite(list(found.values())).all()
    assert found["rhythm_speech_log_s"] == pytest.approx(np.log(40), abs=0.02)


def test_only_levels_depend_on_the_gain() -> None:
    voice = acted("neutral", 1, 0).astype(float)
    one, other = named(voice), named(voice / 64)
    for name, value in one.items():
        if name.startswith("level_") and name.endswith("dbfs"):
            assert other[name] - value == pytest.approx(-20 * np.log10(64), abs=0.01), name
        else:
            assert other[name] == pytest.approx(value, rel=1e-4, abs=1e-4), name


def test_the_same_samples_give_the_same_bytes() -> None:
    voice = acted("sadness", 2, 1)
    assert extract(voice).tobytes() == extract(voice.copy()).tobytes()


def test_pitch_level_and_range_are_those_of_the_voice() -> None:
    found = named(pulses(110))
    assert found["f0_mean_st"] == pytest.approx(12.0, abs=0.1)
    assert found["f0_range_p05_p95_st"] < 0.2
    at = np.arange(RATE) / RATE
    rising = named(np.sin(2 * np.pi * np.cumsum(120 * 2 ** (at / 2)) / RATE))
    assert rising["f0_slope_st_per_s"] == pytest.approx(6.0, abs=0.2)
    assert rising["f0_rising_share"] > 0.95
    assert rising["f0_last_third_st"] > 1.5


def test_level_of_a_tone_is_its_rms() -> None:
    found = named(0.1 * np.sin(2 * np.pi * 200 * np.arange(RATE) / RATE))
    assert found["level_active_rms_dbfs"] == pytest.approx(-23.01, abs=0.1)
    assert found["level_peak_dbfs"] == pytest.approx(-20.0, abs=0.1)


def test_beats_are_counted_as_nuclei() -> None:
    at = np.arange(3 * RATE) / RATE
    voice = pulses(140, 3.0) * (0.55 - 0.45 * np.cos(2 * np.pi * 4 * at))
    found = named(voice)
    assert found["rhythm_nuclei_per_s"] == pytest.approx(4.0, abs=0.5)
    assert found["rhythm_nucleus_gap_mean_s"] == pytest.approx(0.25, abs=0.01)
    assert found["modulation_500_1500hz_3_5hz_db"] > -1.0


def test_a_pause_is_a_pause_and_surrounding_silence_is_not() -> None:
    rest = np.zeros(RATE // 2)
    found = named(np.concatenate([rest, pulses(140, 0.5), rest, pulses(140, 0.5), rest]))
    assert found["rhythm_speech_log_s"] == pytest.approx(np.log(1.5), abs=0.05)
    assert found["rhythm_pause_max_s"] == pytest.approx(0.5, abs=0.06)
    assert found["rhythm_pause_share"] == pytest.approx(1 / 3, abs=0.04)


def test_a_brighter_voice_has_the_higher_alpha_ratio() -> None:
    dark = named(pulses(120, formants=((400.0, 60.0), (900.0, 80.0), (2500.0, 400.0))))
    bright = named(pulses(120, formants=((600.0, 200.0), (2500.0, 80.0), (3500.0, 100.0))))
    alpha, hammarberg = (f"spectrum_voiced_{x}_mean_db" for x in ("alpha_ratio", "hammarberg"))
    assert bright[alpha] > dark[alpha] + 5
    assert bright[hammarberg] < dark[hammarberg] - 5
    assert bright["spectrum_voiced_centroid_mean_octaves"] > 0


@pytest.mark.parametrize(
    "samples", [np.zeros(0), np.zeros((3, 2)), np.array([0.0, np.nan]), np.array([np.inf])]
)
def test_what_is_no_sound_is_refused(samples: np.ndarray) -> None:
    with pytest.raises(ValueError, match="wanted a non-empty mono array of finite samples"):
        extract(samples)


def test_real_women_speak_higher_than_real_men(real_data: Path) -> None:
    folder = real_data / "emotional_speech"
    with (folder / "metadata.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["file"].startswith("emodb/")]
    index = feature_names().index("f0_p50_st")
    pitch = {
        sex: [
            features_of(Source(folder / row["file"], ""))[index]
            for row in rows
            if row["sex"] == sex and row["label7"] == "neutral"
        ]
        for sex in ("female", "male")
    }
    assert np.mean(pitch["female"]) > np.mean(pitch["male"]) + 5
