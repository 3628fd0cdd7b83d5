"""The check of a library: each fault is found and named, and a good library has none."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import soundfile

from earwitness.audio import Audio, encode_audio, file_sha256, resample
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.sound_check import CODES, CheckReport, check_library, clipped_share
from earwitness.scenes.sound_growing import Origin, store_take
from earwitness.scenes.sound_twins import twin_score
from earwitness.scenes.sounds import Take, load_library, write_library

RATE = 44100


@cache
def bank() -> Bank:
    return load_bank()


def noise(seconds: float, seed: int = 0, level: float = 0.1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, level, round(seconds * RATE)).astype(np.float32)


def silence(seconds: float) -> np.ndarray:
    return np.zeros(round(seconds * RATE), np.float32)


def make(
    folder: Path,
    samples: np.ndarray,
    *,
    of: str = "dog_bark",
    kind: str = "sound",
    split: str = "train",
    licence: str = "CC0 1.0",
    stem: str = "a",
    rate: int = RATE,
) -> Take:
    data = encode_audio(Audio(samples.astype(np.float32), rate))
    take = store_take(folder, kind, of, stem, data, ".wav", Origin("here", licence), "")  # type: ignore[arg-type]
    assert isinstance(take, Take)
    return replace(take, split=split)  # type: ignore[arg-type]


def checked(folder: Path, *takes: Take) -> CheckReport:
    write_library(folder, takes, name="test")
    return check_library(load_library(folder), bank(), workers=1)


def codes(report: CheckReport) -> set[str]:
    return {f.code for f in report.findings if f.code.startswith("S")}


def test_a_good_take_has_no_faults(tmp_path: Path) -> None:
    assert codes(checked(tmp_path, make(tmp_path, noise(1)))) == set()


@pytest.mark.parametrize(
    ("samples", "code", "words"),
    [
        (noise(1, level=0.0015), "S102", "LUFS"),
        (np.clip(noise(1, level=0.6), -0.999, 0.999), "S103", "full scale"),
        (np.concatenate([silence(0.5), noise(1)]), "S104", "silence at its beginning"),
        (np.concatenate([noise(1), silence(0.9)]), "S104", "silence at its end"),
        (np.concatenate([noise(0.5), silence(1.8), noise(0.5)]), "S105", "2 parts"),
        (noise(9), "S106", r"9.00 s"),
        (noise(0.2), "S106", r"0.20 s"),
    ],
)
def test_faults_of_takes(tmp_path: Path, samples: np.ndarray, code: str, words: str) -> None:
    report = checked(tmp_path, make(tmp_path, samples))
    assert codes(report) == {code}
    found = next(f for f in report.findings if f.code == code)
    assert words in found.found
    assert found.where == "sounds/dog_bark/a.wav"
    assert found.wanted


def test_words_about_rights(tmp_path: Path) -> None:
    report = checked(
        tmp_path,
        make(tmp_path, noise(1), licence="CC BY 4.0"),
        make(tmp_path, noise(1, 2), licence="", stem="b"),
    )
    assert codes(report) == {"S107", "S108"}
    assert [f.code for f in report.errors if f.code.startswith("S")] == ["S107"]


def test_files_and_measures_that_are_not_those_of_the_line(tmp_path: Path) -> None:
    take = make(tmp_path, noise(1))
    assert codes(checked(tmp_path, replace(take, bandwidth_hz=3000.0))) == {"S109"}
    assert codes(checked(tmp_path, replace(take, duration_s=2.0))) == {"S109"}
    assert codes(
        checked(tmp_path, replace(take, peak_time_s=0.0 if take.peak_time_s > 0.3 else 0.9))
    ) == {"S109"}
    write_library(tmp_path, [take], name="test")
    (tmp_path / take.path).write_bytes(b"RIFF")
    assert codes(check_library(load_library(tmp_path), bank(), workers=1)) == {"S101"}
    (tmp_path / take.path).write_bytes(encode_audio(Audio(noise(1, 5), RATE)))
    assert codes(check_library(load_library(tmp_path), bank(), workers=1)) == {"S101"}


def test_faults_of_classes(tmp_path: Path) -> None:
    low = resample(Audio(noise(1, 3)[:8000], 8000), RATE).samples
    report = checked(
        tmp_path,
        make(tmp_path, noise(1)),
        replace(make(tmp_path, low, split="test", stem="b"), synthetic=True),
        make(tmp_path, noise(2, 4), of="cat_meow", split="test"),
    )
    assert codes(report) == {"S202", "S203", "S204"}
    where = {f.code: f.where for f in report.findings}
    assert where["S202"] == "sound cat_meow"
    assert where["S203"] == where["S204"] == "sound dog_bark"


def test_shared_takes_are_said_to_be(tmp_path: Path) -> None:
    assert codes(checked(tmp_path, make(tmp_path, noise(1), split="shared"))) == {"S205"}


def test_ambiences(tmp_path: Path) -> None:
    short = make(tmp_path, noise(3), kind="ambience", of="park")
    assert codes(checked(tmp_path, short)) == {"S301"}
    loud = np.concatenate([noise(6, level=0.01), noise(0.5, level=0.3), noise(6, level=0.01)])
    assert codes(checked(tmp_path, make(tmp_path, loud, kind="ambience", of="park"))) == {"S302"}


def test_locations_that_cannot_be_served_are_named(tmp_path: Path) -> None:
    report = checked(tmp_path, make(tmp_path, noise(1)))
    assert any(f.code == "B601" and "locations[park]" in f.where for f in report.errors)


def vorbis(samples: np.ndarray) -> np.ndarray:
    out = io.BytesIO()
    soundfile.write(out, samples, RATE, format="OGG", subtype="VORBIS", compression_level=1.0)
    out.seek(0)
    return soundfile.read(out, dtype="float32")[0]


@pytest.mark.parametrize("change", ["same", "quieter", "cropped", "lossy", "low rate", "inverted"])
def test_one_recording_in_two_splits_is_found(tmp_path: Path, change: str) -> None:
    original = noise(2) * np.linspace(1, 0.1, 2 * RATE)
    copy = {
        "same": original, "quieter": original * 0.2, "cropped": original[RATE // 2 :], "lossy": vorbis(original),
        "low rate": resample(resample(Audio(original.astype(np.float32), RATE), 11025), RATE).samples,
        "inverted": -original[3000:],
    }[change]  # fmt: skip
    report = checked(
        tmp_path, make(tmp_path, original), make(tmp_path, copy, split="test", stem="b")
    )
    twins = [f for f in report.errors if f.code == "S201"]
    assert len(twins) == 1
    assert "the recording of sounds/dog_bark/b.wav (train and test" in twins[0].found


def test_other_recordings_are_not_taken_for_it(tmp_path: Path) -> None:
    t = np.arange(2 * RATE) / RATE
    hum = [
        np.sin(2 * np.pi * 100 * t + phase) * 0.2 + noise(2, seed, 0.003)
        for phase, seed in ((0, 1), (1, 2))
    ]
    assert twin_score(*(Audio(x.astype(np.float32), RATE) for x in hum)) == 0
    clicks = [
        np.where(np.arange(RATE) == 0, 0.9, 0) + noise(1, s, 0.02) * np.exp(-t[:RATE] * 20)
        for s in (3, 4)
    ]
    assert twin_score(*(Audio(x.astype(np.float32), RATE) for x in clicks)) == 0
    assert twin_score(Audio(silence(1), RATE), Audio(noise(1), RATE)) == 0
    rain = [
        make(tmp_path, noise(4, n), of="rain_burst", split=s, stem=s)
        for n, s in enumerate(("train", "validation", "test"))
    ]
    assert "S201" not in codes(checked(tmp_path, *rain))


def test_copies_in_one_split_do_no_harm(tmp_path: Path) -> None:
    report = checked(tmp_path, make(tmp_path, noise(1)), make(tmp_path, noise(1), stem="b"))
    assert "S201" not in codes(report)


def test_clipping_is_told_from_loud_peaks() -> None:
    assert clipped_share(Audio(np.array([0, 0.99, 0, -0.99] * 100, np.float32), RATE)) == 0
    assert clipped_share(Audio(np.array([0.99] * 4 + [0] * 4, np.float32), RATE)) == 0.5
    assert clipped_share(Audio(np.zeros(10, np.float32), RATE)) == 0


def test_every_code_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "sound-libraries.md").read_text()
    for code, (severity, _) in CODES.items():
        assert f"| {code} | {severity} |" in text


def test_hashes_of_lines_are_of_the_files(tmp_path: Path) -> None:
    take = make(tmp_path, noise(1))
    assert take.sha256 == file_sha256(tmp_path / take.path)
    checked(tmp_path, take)
    assert json.loads((tmp_path / "takes.jsonl").read_text())["sound"] == "dog_bark"
