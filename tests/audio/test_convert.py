"""One channel, another rate, bytes of a file."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.audio import (
    Audio,
    decode_audio,
    encode_audio,
    full_scale_policy,
    read_audio,
    resample,
    to_mono,
    to_mono_with_policy,
    write_audio,
)
from earwitness.errors import UnsupportedAudioError, UsageError

RNG = np.random.default_rng(7)
NOISE = RNG.uniform(-0.5, 0.5, (8000, 6)).astype(np.float32)


def stack(*channels: np.ndarray) -> Audio:
    return Audio(np.stack(channels, axis=1).astype(np.float32), 16000)


A, B = NOISE[:, 0], NOISE[:, 1]


@pytest.mark.parametrize(
    ("audio", "expected", "policy"),
    [
        (Audio(A, 16000), A, "mono"),
        (stack(A), A, "mono"),
        (stack(A, A), A, "mean of 2 channels"),
        (stack(A, B), None, "mean of 2 channels"),
        (stack(A, -A), A, "channel 1 of 2, as the mean cancels (all of it lost)"),
        (stack(0.5 * A, -A), -A, "channel 2 of 2, as the mean cancels (12 dB lost)"),
        (stack(A, 0 * A), A, "channel 1 of 2, as the others are silent"),
        (stack(0 * A + 0.3, A), A, "channel 2 of 2, as the others are silent"),
        (stack(0.001 * B, A), A, "channel 2 of 2, as the others are silent"),
        (stack(A, A, 0 * A), A, "mean of channels 1, 2 of 3, as the others are silent"),
        (stack(0 * A, 0 * A), 0 * A, "mean of 2 channels"),
    ],
)
def test_mono(audio: Audio, expected: np.ndarray | None, policy: str) -> None:
    mono, said = to_mono_with_policy(audio)
    assert said == policy
    assert mono.samples.ndim == 1
    assert mono.samples.dtype == np.float32
    if expected is not None:
        np.testing.assert_array_equal(mono.samples, expected)
    np.testing.assert_array_equal(to_mono(audio).samples, mono.samples)


def test_unrelated_channels_are_averaged_however_many() -> None:
    mono, said = to_mono_with_policy(Audio(NOISE, 16000))
    assert said == "mean of 6 channels"
    np.testing.assert_allclose(mono.samples, NOISE.mean(axis=1), atol=1e-7)


def test_huge_samples_do_not_overflow() -> None:
    mono, said = to_mono_with_policy(stack(1e30 * A, 1e30 * A))
    assert said == "mean of 2 channels"
    np.testing.assert_array_equal(mono.samples, (1e30 * A).astype(np.float32))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(0, 3000),
    st.sampled_from([8000, 11025, 16000, 22050, 44100, 48000]),
    st.sampled_from([8000, 16000, 24000, 44100]),
)
def test_resampling_has_the_exact_length(frames: int, old: int, new: int) -> None:
    audio = Audio(np.zeros((frames, 2), np.float32), old)
    made = resample(audio, new)
    assert made.rate == new
    assert made.frames == int(np.floor(frames * new / old + 0.5))
    assert made.samples.shape[1:] == (2,)


def test_resampling_keeps_a_tone() -> None:
    time = np.arange(48000) / 48000
    audio = Audio(np.sin(2 * np.pi * 440 * time).astype(np.float32), 48000)
    made = resample(audio, 16000)
    expected = np.sin(2 * np.pi * 440 * np.arange(16000) / 16000)
    np.testing.assert_allclose(made.samples[500:-500], expected[500:-500], atol=1e-4)
    assert resample(audio, 48000) is audio
    with pytest.raises(ValueError, match="rate is 0 Hz"):
        resample(audio, 0)


@pytest.mark.parametrize(
    ("kind", "subtype"),
    [
        ("wav", "PCM_16"),
        ("wav", "PCM_24"),
        ("wav", "PCM_32"),
        ("wav", "FLOAT"),
        ("flac", "PCM_16"),
        ("flac", "PCM_24"),
    ],
)
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_other_readers_agree(kind: str, subtype: str, channels: int, tmp_path: Path) -> None:
    audio = Audio(np.ascontiguousarray(NOISE[:801, :channels]), 22050)
    data = encode_audio(audio, kind, subtype)  # type: ignore[arg-type]
    assert data == encode_audio(audio, kind, subtype)  # type: ignore[arg-type]
    path = tmp_path / "a"
    path.write_bytes(data)
    info = soundfile.info(path)
    assert (info.samplerate, info.channels, info.frames, info.subtype) == (
        22050,
        channels,
        801,
        subtype,
    )
    read, _ = soundfile.read(path, dtype="float32", always_2d=True)
    step = {"PCM_16": 2**-15, "PCM_24": 2**-23}.get(subtype, 2**-24)
    np.testing.assert_allclose(read, audio.samples, atol=step / 2 + 1e-9)
    np.testing.assert_array_equal(decode_audio(data).samples.reshape(801, channels), read)


def test_a_wav_header_has_nothing_but_what_it_needs() -> None:
    data = encode_audio(Audio(A[:500], 16000))
    assert len(data) == 44 + 1000
    assert struct.unpack("<I", data[4:8])[0] == len(data) - 8
    assert data[12:36] == b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, 16000, 32000, 2, 16)


def test_loud_floats_are_turned_down_and_ripple_is_clipped() -> None:
    audio, note = full_scale_policy(Audio(4 * A, 16000))
    assert np.abs(audio.samples).max() == 1.0
    assert note.startswith("turned down from a peak of ")
    ripple = Audio((2.4 * A).astype(np.float32), 16000)
    assert full_scale_policy(ripple) == (ripple, "")
    read = decode_audio(encode_audio(ripple)).samples
    assert read.max() == 32767 / 32768
    huge = decode_audio(encode_audio(Audio((1e30 * A).astype(np.float32), 16000))).samples
    np.testing.assert_allclose(huge, A / np.abs(A).max(), atol=1e-4)


def test_what_cannot_be_written() -> None:
    audio = Audio(A, 16000)
    with pytest.raises(UsageError, match="'mp3' with subtype 'PCM_16'; wanted wav: PCM_16"):
        encode_audio(audio, "mp3")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="'flac' with subtype 'FLOAT'"):
        encode_audio(audio, "flac", "FLOAT")
    with pytest.raises(ValueError, match="NaN or infinity"):
        encode_audio(Audio(np.full(9, np.nan, np.float32), 16000))
    with pytest.raises(UnsupportedAudioError, match="9 channels; wanted at most 8 in FLAC"):
        encode_audio(Audio(np.zeros((9, 9), np.float32), 16000), "flac")


def test_writing_files(tmp_path: Path) -> None:
    audio = Audio(A, 16000)
    for name in ("deep/a.wav", "deep/a.flac"):
        write_audio(tmp_path / name, audio)
        np.testing.assert_allclose(read_audio(tmp_path / name).samples, A, atol=2**-16)
    assert (tmp_path / "deep/a.flac").read_bytes()[:4] == b"fLaC"
    assert sorted(p.name for p in (tmp_path / "deep").iterdir()) == ["a.flac", "a.wav"]
