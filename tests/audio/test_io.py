"""Reading and inspecting: names, kinds of files, and the rules on samples."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from earwitness.audio import (
    Audio,
    decode_audio,
    encode_audio,
    inspect_audio,
    read_audio,
    samples_at,
)
from earwitness.errors import (
    AudioFileError,
    EmptyAudioError,
    NonFiniteAudioError,
    SilentAudioError,
    TooShortAudioError,
)
from tests.audio.wavs import as_float, chunk, fmt, plain, riff, tone


def codes(path: Path) -> list[str]:
    return [p.code for p in inspect_audio(path).problems]


def float_wav(samples: np.ndarray) -> bytes:
    body = np.asarray(samples, "<f4").tobytes()
    return riff(chunk(b"fmt ", fmt(tag=3, bits=32)), chunk(b"data", body))


@pytest.mark.parametrize(
    "name", ["a b.wav", "-x.wav", "-", "ünï 音.wav", "a,b;c.wav", "'q\"[red].wav", "noext", "x.txt"]
)
def test_any_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).write_bytes(plain())
    np.testing.assert_array_equal(read_audio(tmp_path / name).samples, as_float(tone()))
    monkeypatch.chdir(tmp_path)
    assert read_audio(name).frames == 1600


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has names that are not UTF-8")
def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.wav"))
    path.write_bytes(plain())
    assert read_audio(path).frames == 1600


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(AudioFileError, match="no such file"):
        read_audio(tmp_path / "absent.wav")
    with pytest.raises(AudioFileError, match="it is a folder"):
        read_audio(tmp_path)
    with pytest.raises(AudioFileError, match="cannot be opened"):
        read_audio(tmp_path / "a\0b")
    assert codes(tmp_path / "absent.wav") == ["unreadable"]
    assert codes(tmp_path) == ["unreadable"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.wav")
    assert codes(tmp_path / "pipe.wav") == ["unreadable"]


def test_an_inspection_tells_all(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(plain(tone(1600, 2)))
    seen = inspect_audio(path)
    assert (seen.container, seen.subtype, seen.rate, seen.channels) == ("RIFF", "PCM_16", 16000, 2)
    assert (seen.frames, seen.seconds, seen.bytes) == (1600, 0.1, 44 + 6400)
    assert seen.peak == pytest.approx(0.5, abs=1e-3)
    assert seen.rms_dbfs == pytest.approx(20 * np.log10(0.5 / np.sqrt(2)), abs=0.01)
    assert seen.problems == ()


def test_25_ms_is_the_least() -> None:
    with pytest.raises(TooShortAudioError, match=r"399 frames \(24\.9 ms\); nothing under 25 ms"):
        decode_audio(plain(tone(399)))
    assert decode_audio(plain(tone(400))).frames == 400
    assert decode_audio(plain(tone(3)), require_sound=False).frames == 3


def test_no_sample() -> None:
    empty = riff(chunk(b"fmt ", fmt()), chunk(b"data", b""))
    with pytest.raises(EmptyAudioError, match="holds no sample"):
        decode_audio(empty)
    assert decode_audio(empty, require_sound=False).samples.shape == (0,)


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (np.zeros(800), "all its samples are zero"),
        (np.full(800, 0.25), "same value"),
        (1e-5 * np.sin(np.arange(800)), "less than one step of 16 bits"),
        (np.full(800, -0.5) + 1e-6 * np.sin(np.arange(800)), "less than one step"),
        (np.full(800, 1e-41), "same value"),
    ],
)
def test_silence(samples: np.ndarray, words: str) -> None:
    with pytest.raises(SilentAudioError, match=words):
        decode_audio(float_wav(samples))


def test_one_step_of_16_bits_is_sound() -> None:
    samples = np.zeros((800, 1), "<i2")
    samples[::2] = 1
    assert decode_audio(plain(samples)).frames == 800


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_samples_that_are_no_numbers(value: float) -> None:
    samples = np.sin(np.arange(200_000) / 5)
    samples[160_000] = value
    with pytest.raises(NonFiniteAudioError, match=r"1 of 200000 samples .* the first at 10\.000 s"):
        decode_audio(float_wav(samples))


def test_a_double_too_large_for_float32_is_named() -> None:
    body = np.full(800, 1e300).tobytes()
    with pytest.raises(NonFiniteAudioError):
        decode_audio(riff(chunk(b"fmt ", fmt(tag=3, bits=64)), chunk(b"data", body)))


def test_warnings_about_samples(tmp_path: Path) -> None:
    wave = np.sin(np.arange(1600) / 5)
    for samples, expected in [
        (0.5 * wave, []),
        (1.2 * wave, []),
        (4 * wave, ["over_full_scale"]),
        (1e30 * wave, ["over_full_scale"]),
        (5e-4 * wave, ["very_quiet"]),
        (0.3 * wave + 0.3, ["dc_offset"]),
        (np.clip(3 * wave, -1, 1), ["clipped"]),
    ]:
        path = tmp_path / "a.wav"
        path.write_bytes(float_wav(samples))
        assert codes(path) == expected


def test_a_name_that_lies_is_flagged(tmp_path: Path) -> None:
    data = encode_audio(Audio(as_float(tone()), 16000), "flac")
    for name, expected in [("a.wav", ["wrong_suffix"]), ("a.flac", []), ("a.FLAC", []), ("a", [])]:
        (tmp_path / name).write_bytes(data)
        assert codes(tmp_path / name) == expected


def test_names_in_errors_and_no_reading_twice(tmp_path: Path) -> None:
    with pytest.raises(EmptyAudioError, match=r"^clip seven: "):
        decode_audio(riff(chunk(b"fmt ", fmt()), chunk(b"data", b"")), name="clip seven")


def test_the_type_refuses_what_it_does_not_mean() -> None:
    with pytest.raises(TypeError, match="float64; wanted float32"):
        Audio(np.zeros(3), 16000)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="shape"):
        Audio(np.zeros((1, 1, 1), np.float32), 16000)
    with pytest.raises(ValueError, match="rate is 0 Hz"):
        Audio(np.zeros(3, np.float32), 0)


def test_one_rounding_function() -> None:
    assert [samples_at(t, 1000) for t in (0, 0.0004, 0.0005, 0.0015, 1, -0.0005)] == [
        0,
        0,
        1,
        2,
        1000,
        0,
    ]


def test_the_import_is_cheap() -> None:
    code = "import sys, earwitness.audio; print([m for m in ('numpy','soundfile','soxr','scipy') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
