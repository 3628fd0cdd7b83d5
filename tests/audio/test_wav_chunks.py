"""The rule for sizes that lie, and the header's numbers."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
import soundfile

from earwitness.audio import decode_audio
from earwitness.audio.io import _examine
from earwitness.audio.source import Source, source_of_bytes
from earwitness.audio.wav_chunks import WavLayout, wav_window
from earwitness.audio.wav_format import WavFormat, parse_format
from earwitness.errors import (
    BrokenHeaderError,
    EmptyAudioError,
    TruncatedAudioError,
    UnsupportedAudioError,
)
from tests.audio.wavs import as_float, chunk, fmt, plain, riff, tone

BODY = tone().tobytes()
F = chunk(b"fmt ", fmt())


def codes(data: bytes, **options: bool) -> list[str]:
    found = _examine(source_of_bytes(data, "x"), keep=False, allow_truncated=False)
    return [p.code for p in found.inspection.problems]


def reads_whole(data: bytes) -> bool:
    return bool((decode_audio(data).samples == as_float(tone())).all())


@pytest.mark.parametrize(
    "size", [0, 0x7FFF0000, 0x7FFFF000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFDB, 0xFFFFFFFF]
)
@pytest.mark.parametrize("riff_size", [0, 0x7FFFF024, 0xFFFFFFFF, None])
def test_placeholders_are_streams(size: int, riff_size: int | None) -> None:
    data = riff(F, chunk(b"data", BODY, size), size=riff_size)
    assert reads_whole(data)
    assert codes(data) == ["stream_sizes"]


@pytest.mark.parametrize("size", [len(BODY) + 1, len(BODY) + 2, 10**6, 0x7FFEFFFF])
def test_any_other_size_beyond_the_end_is_a_cut(size: int) -> None:
    data = riff(F, chunk(b"data", BODY, size), size=36 + size)
    with pytest.raises(TruncatedAudioError, match=f"{size - len(BODY)} of {size} bytes"):
        decode_audio(data)
    audio = decode_audio(data, allow_truncated=True)
    np.testing.assert_array_equal(audio.samples, as_float(tone()))


def test_a_cut_right_after_the_header_leaves_nothing() -> None:
    data = plain()[:44]
    with pytest.raises(TruncatedAudioError, match="3200 of 3200 bytes"):
        decode_audio(data)
    with pytest.raises(EmptyAudioError, match="cut right after its header"):
        decode_audio(data, allow_truncated=True)


def test_size_zero_before_real_chunks_is_empty() -> None:
    with pytest.raises(EmptyAudioError):
        decode_audio(riff(F, chunk(b"data", b""), chunk(b"LIST", b"INFO" * 4)))


def test_bytes_behind_the_data() -> None:
    whole = plain()
    assert codes(whole + b"\x80rubbish.........") == ["hidden_data"]
    assert codes(whole + chunk(b"XXXX", b"1234")) == ["riff_size"]
    assert codes(whole + b"\0") == []
    assert codes(riff(F, chunk(b"data", BODY), chunk(b"_PMX", b"<x/>"))) == []
    half = riff(F, chunk(b"data", BODY, 1600))
    assert "hidden_data" in codes(half)
    assert decode_audio(half).frames == 800


def test_a_cut_in_the_chunks_after_the_data_is_seen() -> None:
    whole = riff(F, chunk(b"data", BODY), chunk(b"LIST", b"INFO" * 40))
    for cut in range(3244 + 1, len(whole)):
        assert codes(whole[:cut]) in (["riff_size"], ["riff_size", "hidden_data"]), cut
        assert reads_whole(whole[:cut])


def test_the_last_pad_byte_may_be_missing_or_not_counted() -> None:
    tail = chunk(b"LIST", b"INFOabc")
    whole = riff(F, chunk(b"data", BODY), tail)
    assert codes(whole) == codes(whole[:-1]) == []
    assert codes(riff(F, chunk(b"data", BODY), tail, size=len(whole) - 9)) == []
    assert codes(whole[:-2]) == ["riff_size"]


def test_one_odd_byte_is_dropped_with_a_warning() -> None:
    data = riff(F, chunk(b"data", BODY + b"\x01"))
    assert codes(data) == ["partial_frame"]
    assert reads_whole(data)
    stereo = riff(chunk(b"fmt ", fmt(channels=2)), chunk(b"data", tone(800, 2).tobytes() + b"abc"))
    assert codes(stereo) == ["partial_frame"]
    assert decode_audio(stereo).frames == 800


def test_a_missing_pad_byte_is_found_around() -> None:
    before = riff(F, chunk(b"note", b"abc", pad=False), chunk(b"data", BODY))
    assert reads_whole(before)
    assert codes(before) == ["unpadded_chunk"]
    mono24 = b"\x01\x02\x03" * 801
    after = riff(
        chunk(b"fmt ", fmt(bits=24)), chunk(b"data", mono24, pad=False), chunk(b"LIST", b"INFO")
    )
    assert codes(after)[0] == "unpadded_chunk"


def test_two_data_chunks_are_refused() -> None:
    with pytest.raises(BrokenHeaderError, match="more than one data chunk"):
        decode_audio(riff(F, chunk(b"data", BODY), chunk(b"data", BODY)))


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"rate": 0}, "sample rate is 0 Hz"),
        ({"rate": 4_294_967_295}, "4294967295 Hz; at most 768000"),
        ({"channels": 0}, "0 channels"),
        ({"channels": 4000}, "4000 channels; at most 256"),
        ({"bits": 0}, "0 bits per sample"),
        ({"tag": 0x1234}, "0x1234 is no known codec"),
    ],
)
def test_numbers_that_cannot_be_true(numbers: dict[str, int], words: str) -> None:
    with pytest.raises(BrokenHeaderError, match=words):
        decode_audio(riff(chunk(b"fmt ", fmt(**numbers)), chunk(b"data", BODY)))


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"bits": 64}, "PCM with 64 bits"),
        ({"tag": 3, "bits": 16}, "float with 16 bits"),
        ({"tag": 0xFF}, "AAC"),
        ({"tag": 0x161}, "Windows Media 2"),
        ({"bits": 24, "block": 4}, "24 bits in 4 bytes"),
    ],
)
def test_formats_that_are_not_read_come_with_the_command(
    numbers: dict[str, int], words: str
) -> None:
    data = riff(chunk(b"fmt ", fmt(**numbers)), chunk(b"data", BODY))
    with pytest.raises(
        UnsupportedAudioError, match=rf"{words}.*ffmpeg -i ./-x\.wav -c:a pcm_s16le"
    ):
        decode_audio(data, name="-x.wav")


def test_block_align_is_computed() -> None:
    data = riff(chunk(b"fmt ", fmt(block=3)), chunk(b"data", BODY))
    assert codes(data) == ["block_align"]
    assert reads_whole(data)


def test_big_endian_and_a_leading_tag() -> None:
    body = tone().astype(">i2").tobytes()
    data = riff(
        chunk(b"fmt ", fmt(order=">"), order=">"), chunk(b"data", body, order=">"), magic=b"RIFX"
    )
    assert reads_whole(data)
    tagged = b"ID3\x04\0\0\0\0\0\x0a" + b"0123456789" + plain()
    assert codes(tagged) == ["leading_tag"]
    assert reads_whole(tagged)


def rf64(size: int, body: bytes = BODY) -> bytes:
    ds64 = chunk(b"ds64", struct.pack("<QQQI", 72 + len(body), size, 0, 0))
    return riff(ds64, F, chunk(b"data", body, 0xFFFFFFFF), size=0xFFFFFFFF, magic=b"RF64")


def test_64_bit_sizes() -> None:
    assert codes(rf64(len(BODY))) == []
    assert reads_whole(rf64(len(BODY)))
    with pytest.raises(TruncatedAudioError, match="of 4294967296 bytes"):
        decode_audio(rf64(1 << 32))
    for size in (0, 1 << 62, (1 << 64) - 1):
        assert codes(rf64(size)) == ["stream_sizes"]


def test_more_than_four_gibibytes_get_a_64_bit_header() -> None:
    form = parse_format(fmt(), "<", "x")
    assert isinstance(form, WavFormat)
    layout = WavLayout("<", "RIFF", form, start=0, length=5_000_000_000)
    window = wav_window(Source("x", _Zeros(), 5_000_000_000), layout)
    with soundfile.SoundFile(window) as file:
        assert file.frames == 2_500_000_000


class _Zeros(io.RawIOBase):
    """A file of zeros without an end."""

    def seek(self, offset: int, whence: int = 0) -> int:
        return offset

    def read(self, size: int = -1) -> bytes:
        return bytes(size)


def test_gsm_gives_the_frames_that_are_coded() -> None:
    out = io.BytesIO()
    samples = tone(8000)[:, 0]
    soundfile.write(out, samples, 8000, format="WAV", subtype="GSM610")
    assert decode_audio(out.getvalue()).frames == 8000
    without_count = out.getvalue().replace(b"fact", b"JUNK")
    assert decode_audio(without_count).frames == 8000
    assert soundfile.info(io.BytesIO(out.getvalue())).frames == 8320


@pytest.mark.parametrize(
    "subtype", ["MS_ADPCM", "IMA_ADPCM", "ULAW", "ALAW", "PCM_U8", "PCM_24", "DOUBLE"]
)
@pytest.mark.parametrize("channels", [1, 2])
def test_codecs_agree_with_libsndfile(subtype: str, channels: int) -> None:
    out = io.BytesIO()
    soundfile.write(out, tone(5000, channels), 16000, format="WAV", subtype=subtype)
    expected, _ = soundfile.read(io.BytesIO(out.getvalue()), dtype="float32")
    audio = decode_audio(out.getvalue())
    assert 5000 <= audio.frames <= len(expected)
    np.testing.assert_array_equal(audio.samples, expected[: audio.frames])
