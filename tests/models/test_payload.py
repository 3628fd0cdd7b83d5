"""What is sent in place of a file: the file, wherever possible."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from earwitness.errors import AudioFileError, DataError, UsageError
from earwitness.models.payload import encode_stimulus, estimate_bytes
from earwitness.models.protocols import AudioRef, Limits
from tests.models.conftest import ref_to, tone

Make = Callable[..., AudioRef]


@pytest.mark.parametrize(
    ("name", "subtype", "limits"),
    [
        ("a.wav", "PCM_16", Limits()),
        ("a.wav", "PCM_24", Limits()),
        ("a.wav", "PCM_16", Limits(rates=(8_000, 16_000))),
        ("a.flac", "PCM_16", Limits(formats=("wav", "flac"))),
        ("a.mp3", None, Limits(formats=("wav", "mp3"))),
        ("a.ogg", None, Limits(formats=("ogg",))),
    ],
)
def test_accepted_files_go_unchanged(
    make_clip: Make, name: str, subtype: str | None, limits: Limits
) -> None:
    clip = make_clip(name, subtype=subtype)
    payload = encode_stimulus(clip, limits)
    assert payload.data == clip.path.read_bytes()
    assert payload.note == ""
    assert payload.format == name[2:]
    assert payload.seconds == clip.seconds
    assert estimate_bytes(clip, limits) == len(payload.data)


def test_a_wav_named_mp3_is_a_wav(make_clip: Make) -> None:
    clip = make_clip()
    misnamed = clip.path.rename(clip.path.with_suffix(".mp3"))
    payload = encode_stimulus(replace(clip, path=misnamed), Limits(formats=("wav",)))
    assert (payload.format, payload.note) == ("wav", "")


@pytest.mark.parametrize(
    ("rate", "accepted", "wanted"),
    [
        (16_000, (8_000, 24_000), 24_000),
        (48_000, (16_000,), 16_000),
        (48_000, (16_000, 24_000), 24_000),
        (44_100, (48_000, 96_000), 48_000),
        (22_050, (), 22_050),
    ],
)
def test_the_rate_that_loses_least(
    make_clip: Make, rate: int, accepted: tuple[int, ...], wanted: int
) -> None:
    clip = make_clip(rate=rate)
    payload = encode_stimulus(clip, Limits(rates=accepted))
    info = soundfile.info(io.BytesIO(payload.data))
    assert info.samplerate == wanted
    assert info.subtype == "PCM_16"
    assert info.duration == pytest.approx(clip.seconds, abs=1e-4)
    assert payload.note == (f"resampled from {rate} to {wanted} Hz" if wanted != rate else "")


@pytest.mark.parametrize("subtype", ["FLOAT", "PCM_U8", "ULAW", "MS_ADPCM"])
def test_unusual_wavs_are_rewritten(make_clip: Make, subtype: str) -> None:
    payload = encode_stimulus(make_clip(subtype=subtype), Limits())
    assert soundfile.info(io.BytesIO(payload.data)).subtype == "PCM_16"
    assert payload.note == "rewritten as plain 16-bit PCM"


def test_a_wav_with_open_sizes_is_rewritten(make_clip: Make) -> None:
    clip = make_clip()
    data = bytearray(clip.path.read_bytes())
    at = data.index(b"data") + 4
    data[at : at + 4] = struct.pack("<I", 0xFFFFFFFF)
    clip.path.write_bytes(data)
    payload = encode_stimulus(ref_to(clip.path, clip.seconds, clip.rate), Limits())
    assert payload.note == "rewritten as plain 16-bit PCM"
    assert soundfile.info(io.BytesIO(payload.data)).frames == 16_000


def test_a_lossy_file_is_decoded_where_it_is_not_taken(make_clip: Make) -> None:
    payload = encode_stimulus(make_clip("a.ogg"), Limits())
    assert payload.format == "wav"
    assert payload.note == "decoded from ogg"


def test_flac_where_it_is_preferred_and_taken(make_clip: Make) -> None:
    clip = make_clip(rate=48_000)
    payload = encode_stimulus(clip, Limits(formats=("wav", "flac"), rates=(16_000,)), prefer="flac")
    assert soundfile.info(io.BytesIO(payload.data)).format == "FLAC"
    assert payload.media_type == "audio/flac"
    only_wav = encode_stimulus(clip, Limits(rates=(16_000,)), prefer="flac")
    assert only_wav.format == "wav"


def test_nothing_is_made_lossy(make_clip: Make) -> None:
    with pytest.raises(UsageError, match="No stimulus is made lossy unless asked"):
        encode_stimulus(make_clip(), Limits(formats=("mp3",)))


@pytest.mark.parametrize("channels", [1, 2])
def test_silence_keeps_the_duration_and_nothing_else(make_clip: Make, channels: int) -> None:
    clip = make_clip(seconds=1.2345, channels=channels, peak=0.9, transform="silence")
    payload = encode_stimulus(clip, Limits())
    samples, rate = soundfile.read(io.BytesIO(payload.data), always_2d=True)
    original = soundfile.info(clip.path)
    assert samples.shape == (original.frames, channels)
    assert rate == clip.rate
    assert not samples.any()
    assert payload.note == "replaced by silence of the same length"


def test_stereo_stays_stereo(make_clip: Make) -> None:
    payload = encode_stimulus(make_clip(channels=2, rate=48_000), Limits(rates=(16_000,)))
    assert soundfile.info(io.BytesIO(payload.data)).channels == 2


def test_sixteen_bits_survive_rewriting(make_clip: Make) -> None:
    """FLAC to WAV changes no sample."""
    clip = make_clip("a.flac", subtype="PCM_16")
    before, _ = soundfile.read(clip.path, dtype="int16")
    after, _ = soundfile.read(io.BytesIO(encode_stimulus(clip, Limits()).data), dtype="int16")
    assert np.array_equal(before, after)


def test_a_file_that_is_gone(make_clip: Make) -> None:
    clip = make_clip()
    clip.path.unlink()
    with pytest.raises(DataError, match="cannot be read"):
        encode_stimulus(clip, Limits())
    with pytest.raises(DataError, match="cannot be read"):
        estimate_bytes(clip, Limits())


def test_a_file_that_has_changed(make_clip: Make) -> None:
    clip = make_clip()
    clip.path.write_bytes(b"RIFF")
    with pytest.raises(
        DataError, match=r"has changed since the set was made.*Import the set again"
    ):
        encode_stimulus(clip, Limits())


def test_what_is_no_audio(tmp_path: Path) -> None:
    path = tmp_path / "page.wav"
    path.write_text("<!doctype html><html>not found</html>")
    with pytest.raises(AudioFileError, match="HTML page"):
        encode_stimulus(ref_to(path, 1.0, 16_000), Limits())


@settings(
    derandomize=True, deadline=None, max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(
    frames=st.integers(500, 5_000),
    rate=st.sampled_from([8_000, 11_025, 16_000, 44_100]),
    channels=st.integers(1, 2),
    accepted=st.sampled_from([(), (16_000,), (24_000, 48_000)]),
    container=st.sampled_from(["wav", "flac"]),
    prefer=st.sampled_from(["wav", "flac"]),
    silence=st.booleans(),
)
def test_the_estimate_is_never_too_low(
    tmp_path: Path, frames: int, rate: int, channels: int, accepted: tuple[int, ...],
    container: str, prefer: str, silence: bool,
) -> None:  # fmt: skip
    path = tmp_path / f"x.{container}"
    samples = np.stack([tone(frames / rate, rate)] * channels, axis=1)
    soundfile.write(path, samples, rate)
    ref = ref_to(
        path, frames / rate, rate, channels=channels, transform="silence" if silence else None
    )
    limits = Limits(formats=("wav", "flac") if prefer == "flac" else ("wav",), rates=accepted)
    assert len(encode_stimulus(ref, limits, prefer=prefer).data) <= estimate_bytes(
        ref, limits, prefer=prefer
    )


@settings(
    derandomize=True,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(head=st.sampled_from([b"", b"RIFF\0\0\0\0WAVE", b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0", b"fLaC", b"ID3", b"\xff\xfb"]), tail=st.binary(max_size=80))  # fmt: skip
def test_any_head_of_a_file_gives_an_estimate(tmp_path: Path, head: bytes, tail: bytes) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(head + tail)
    assert estimate_bytes(AudioRef(path, "", 1.0, 16_000), Limits()) >= 0
