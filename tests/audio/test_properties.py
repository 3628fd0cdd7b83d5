"""Whatever is cut or changed: a named error, a flag, or the very same samples."""

from __future__ import annotations

import io

import numpy as np
import pytest
import soundfile
from hypothesis import example, given, settings
from hypothesis import strategies as st

from earwitness.audio import Audio, decode_audio, encode_audio
from earwitness.audio.io import _examine
from earwitness.audio.source import source_of_bytes
from earwitness.errors import AudioFileError
from tests.audio.wavs import as_float, chunk, fmt, plain, riff, tone

QUICK = settings(max_examples=150, deadline=None, derandomize=True)


def outcome(data: bytes) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Samples, or None after a named error; and the codes of an inspection, which must agree."""
    seen = _examine(source_of_bytes(data, "x"), keep=False, allow_truncated=False).inspection
    codes = tuple(p.code for p in seen.problems)
    try:
        samples = decode_audio(data).samples
    except AudioFileError as error:
        raised = error.code
    else:
        assert seen.ok
        return samples, codes
    assert raised in codes
    return None, codes


WAVS = {
    "plain": plain(tone(900)),
    "stereo": plain(tone(700, 2)),
    "list before": riff(
        chunk(b"fmt ", fmt()), chunk(b"LIST", b"INFOabc"), chunk(b"data", tone(600).tobytes())
    ),
    "list after": riff(
        chunk(b"fmt ", fmt()), chunk(b"data", tone(600).tobytes()), chunk(b"LIST", b"INFO" * 20)
    ),
    "24 bits, odd": riff(
        chunk(b"fmt ", fmt(bits=24)), chunk(b"data", b"\x10\x20\x30\x10\x20\xd0" * 301 + b"\1\2\3")
    ),
    "float": riff(
        chunk(b"fmt ", fmt(tag=3, bits=32)),
        chunk(b"data", np.sin(np.arange(600, dtype="<f4")).tobytes()),
    ),
    "big endian": riff(
        chunk(b"fmt ", fmt(order=">"), order=">"),
        chunk(b"data", tone(600).astype(">i2").tobytes(), order=">"),
        magic=b"RIFX",
    ),
}


@pytest.mark.parametrize("name", WAVS)
def test_a_cut_at_any_byte_is_never_silently_shorter(name: str) -> None:
    whole = WAVS[name]
    expected, codes = outcome(whole)
    assert expected is not None
    assert codes == ()
    for cut in [
        *range(0, 120),
        *range(120, len(whole) - 100, 37),
        *range(len(whole) - 100, len(whole)),
    ]:
        samples, codes = outcome(whole[:cut])
        same = (
            samples is not None and samples.shape == expected.shape and (samples == expected).all()
        )
        assert samples is None or codes or same, cut
        if samples is not None:
            assert same, f"cut at {cut}: other samples than those of the whole file"


@pytest.mark.parametrize("name", WAVS)
def test_an_allowed_cut_is_flagged_and_gives_the_beginning(name: str) -> None:
    whole = WAVS[name]
    expected = decode_audio(whole).samples
    for cut in range(0, len(whole), 41):
        data = whole[:cut]
        try:
            samples = decode_audio(data, allow_truncated=True, require_sound=False).samples
        except AudioFileError:
            continue
        seen = _examine(source_of_bytes(data, "x"), keep=False, allow_truncated=True).inspection
        assert "truncated" in [p.code for p in seen.problems] or len(samples) == len(expected)
        np.testing.assert_array_equal(samples, expected[: len(samples)])


@QUICK
@given(
    st.integers(1, 3),
    st.sampled_from([1, 2, 3]),
    st.integers(500, 1500),
    st.data(),
)
def test_random_wavs_cut_at_a_random_byte(
    width: int, channels: int, frames: int, data: st.DataObject
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    body = rng.integers(0, 256, frames * channels * width, dtype=np.uint8).tobytes()
    whole = riff(
        chunk(b"fmt ", fmt(channels=channels, bits=8 * width)),
        chunk(b"data", body),
        *([chunk(b"LIST", b"INFOtail")] if data.draw(st.booleans()) else []),
    )
    expected, known = outcome(whole)
    assert expected is not None
    cut = data.draw(st.integers(0, len(whole) - 1))
    samples, codes = outcome(whole[:cut])
    if samples is not None:
        assert samples.shape == expected.shape
        assert (samples == expected).all()
        pad_only = cut == len(whole) - 1 and len(body) % 2 == 1
        assert set(codes) - set(known) or pad_only


@QUICK
@given(
    st.binary(max_size=400),
    st.sampled_from(
        [b"", b"RIFF", b"fLaC", b"OggS", b"FORM", b".snd", b"caff", b"ID3", b"\xff\xfb\x90"]
    ),
)
@example(b"", b"")
@example(b"\0" * 40, b"RIFF")
def test_any_bytes_give_samples_or_a_named_error(tail: bytes, magic: bytes) -> None:
    outcome(magic + tail)


@QUICK
@given(st.integers(0, 43), st.integers(0, 255))
def test_any_changed_header_byte_gives_samples_or_a_named_error(at: int, value: int) -> None:
    data = bytearray(plain(tone(700)))
    data[at] = value
    outcome(bytes(data))


@QUICK
@given(
    st.sampled_from(["FLAC", "AIFF", "AU", "CAF", "W64", "OGG", "MP3"]),
    st.integers(0, 199),
    st.integers(0, 255),
)
def test_any_changed_byte_of_other_containers(kind: str, at: int, value: int) -> None:
    data = bytearray(encoded(kind))
    data[at % len(data)] = value
    outcome(bytes(data))


def encoded(kind: str) -> bytes:
    out = io.BytesIO()
    subtype = {"OGG": "VORBIS", "MP3": "MPEG_LAYER_III"}.get(kind, "PCM_16")
    soundfile.write(out, tone(4000)[:, 0], 16000, format=kind, subtype=subtype)
    return out.getvalue()


@QUICK
@given(
    st.lists(st.integers(-32768, 32767), min_size=1, max_size=300),
    st.sampled_from(["wav", "flac"]),
    st.sampled_from([1, 2]),
)
def test_16_bits_survive_writing_and_reading(values: list[int], kind: str, channels: int) -> None:
    samples = np.array(values * channels, "<i2").reshape(-1, channels)
    audio = Audio(as_float(samples), 16000)
    data = encode_audio(audio, kind)  # type: ignore[arg-type]
    back = decode_audio(data, require_sound=False)
    assert back.rate == 16000
    np.testing.assert_array_equal(back.samples, audio.samples)
    again = encode_audio(back, kind)  # type: ignore[arg-type]
    assert again == data
