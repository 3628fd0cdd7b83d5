"""Containers other than WAV: cuts are seen, whole files are not accused."""

from __future__ import annotations

import io

import numpy as np
import pytest
import soundfile

from earwitness.audio import decode_audio
from earwitness.audio.io import _examine
from earwitness.audio.source import source_of_bytes
from earwitness.errors import AudioFileError, BrokenHeaderError, TruncatedAudioError
from tests.audio.wavs import as_float, tone

LOSSLESS = ["FLAC", "AIFF", "AU", "CAF", "W64"]
LOSSY = [("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", "MPEG_LAYER_III")]


def encoded(kind: str, subtype: str = "PCM_16", frames: int = 16000) -> bytes:
    out = io.BytesIO()
    soundfile.write(out, tone(frames)[:, 0], 16000, format=kind, subtype=subtype)
    return out.getvalue()


def codes(data: bytes, allow_truncated: bool = False) -> list[str]:
    source = source_of_bytes(data, "x")
    found = _examine(source, keep=False, allow_truncated=allow_truncated)
    return [p.code for p in found.inspection.problems]


@pytest.mark.parametrize("kind", LOSSLESS)
def test_whole_files_read_exactly(kind: str) -> None:
    data = encoded(kind)
    assert codes(data) == []
    np.testing.assert_array_equal(decode_audio(data).samples, as_float(tone(16000)))


@pytest.mark.parametrize(("kind", "subtype"), LOSSY)
def test_whole_lossy_files_are_clean(kind: str, subtype: str) -> None:
    assert codes(encoded(kind, subtype)) == []


@pytest.mark.parametrize(("kind", "subtype"), [*((k, "PCM_16") for k in LOSSLESS), *LOSSY])
def test_cuts_are_seen(kind: str, subtype: str) -> None:
    data = encoded(kind, subtype)
    for share in (0.001, 0.01, 0.1, 0.3, 0.5, 0.75, 0.9, 0.99):
        with pytest.raises(AudioFileError):
            decode_audio(data[: int(len(data) * share)])
    for cut in range(len(data) - 40, len(data)):
        with pytest.raises(TruncatedAudioError, match="missing"):
            decode_audio(data[:cut])


@pytest.mark.parametrize("kind", ["AIFF", "AU", "CAF", "W64"])
def test_an_allowed_cut_gives_the_beginning(kind: str) -> None:
    data = encoded(kind)
    audio = decode_audio(data[: int(len(data) * 0.95)], allow_truncated=True)
    assert 13000 < audio.frames < 16000
    np.testing.assert_array_equal(audio.samples, as_float(tone(16000))[: audio.frames])


def test_a_cut_flac_gives_what_can_be_decoded() -> None:
    data = encoded("FLAC", frames=100_000)
    half = data[: len(data) // 2]
    with pytest.raises(TruncatedAudioError, match=r"of 100000 frames are missing .* of 6\.250 s"):
        decode_audio(half)
    audio = decode_audio(half, allow_truncated=True)
    assert 30_000 < audio.frames < 60_000
    np.testing.assert_array_equal(audio.samples, as_float(tone(100_000))[: audio.frames])
    assert codes(half, allow_truncated=True) == ["truncated"]


def test_mp3_cut_between_two_frames_is_told_by_its_tag() -> None:
    data = encoded("MP3", "MPEG_LAYER_III")
    position = data.rfind(data[:2])
    assert position > 0
    with pytest.raises(TruncatedAudioError, match=f"of {len(data)} bytes of audio are missing"):
        decode_audio(data[:position])


@pytest.mark.parametrize("subtype", ["VORBIS", "OPUS"])
def test_ogg_cut_between_two_pages_lacks_its_end_mark(subtype: str) -> None:
    data = encoded("OGG", subtype, frames=160_000)
    last = data.rfind(b"OggS")
    assert last > 0
    with pytest.raises(TruncatedAudioError, match="lacks the end mark"):
        decode_audio(data[:last])


def test_streams_of_other_containers() -> None:
    au = bytearray(encoded("AU"))
    au[8:12] = b"\xff\xff\xff\xff"
    assert codes(bytes(au)) == ["stream_sizes"]
    assert decode_audio(bytes(au)).frames == 16000
    aiff = bytearray(encoded("AIFF"))
    at = aiff.find(b"SSND")
    aiff[at + 4 : at + 8] = b"\x7f\x00\x00\x08"
    assert codes(bytes(aiff)) == ["stream_sizes"]


def test_a_flac_header_that_claims_much_memory() -> None:
    data = encoded("FLAC")
    bomb = data[:4] + b"\x04\xff\xff\xff" + data[4:]
    with pytest.raises(BrokenHeaderError, match="16777215 bytes"):
        decode_audio(bomb)


def test_an_id3_tag_before_other_containers() -> None:
    tag = b"ID3\x03\0\0\0\0\0\x14" + bytes(20)
    for kind, subtype in [("FLAC", "PCM_16"), ("MP3", "MPEG_LAYER_III")]:
        data = encoded(kind, subtype)
        np.testing.assert_array_equal(decode_audio(tag + data).samples, decode_audio(data).samples)
