"""What a file really is."""

from __future__ import annotations

import pytest

from earwitness.audio import decode_audio
from earwitness.audio.types import ffmpeg_command
from earwitness.errors import NotAudioError, UnsupportedAudioError

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"ab" * 32 + b"\nsize 354612\n"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", r"empty \(0 bytes\)"),
        (LFS, "Git LFS pointer.*git lfs pull"),
        (b"<!DOCTYPE html><html><body>Sign in</body></html>", "an HTML page"),
        (b"\xef\xbb\xbf\n  <HTML>", "an HTML page"),
        (b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', "an XML document"),
        (b'{"message": "Not Found"}', "JSON text"),
        (b"This is not audio", "plain text"),
        ("\u00fcmlaut caf\u00e9".encode(), "plain text"),
        ("notes".encode("utf-16"), "plain text"),
        (bytes(5000), "all 5000 bytes are zero"),
        (b"\xf8\xc2\xbe\xcf\x93\x1a\xed\x15" * 50, "first bytes f8 c2 be cf"),
        (b"PK\x03\x04" + bytes(30), "a ZIP archive"),
        (b"\x1f\x8b\x08" + bytes(30), "a gzip archive"),
        (b"\x89PNG\r\n\x1a\n", "a PNG image"),
        (b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X", "a macOS resource fork"),
        (b"MThd\0\0\0\6", "MIDI notes"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "a WebP image"),
    ],
)
def test_what_is_no_audio_is_named(data: bytes, words: str) -> None:
    with pytest.raises(NotAudioError, match=words) as caught:
        decode_audio(data, name="clip.wav")
    assert caught.value.next_step


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\0\0\0\x1cftypM4A \0\0\0\0", "MP4 or M4A"),
        (b"\x1a\x45\xdf\xa3\x01\0\0\0", "WebM or Matroska"),
        (bytes.fromhex("3026b2758e66cf11a6d9"), "Windows Media"),
        (b"#!AMR\n\x3c", "AMR"),
        (b"\xff\xf1\x50\x80\x01\x9f\xfc" + bytes(5), "raw AAC"),
        (b"OggS\0\2" + bytes(20) + b"\x01\x50Speex   1.2", "Speex in Ogg"),
        (b"RIFF\x10\0\0\0AVI LIST", "AVI video"),
        (b"wvpk" + bytes(20), "WavPack"),
    ],
)
def test_audio_that_cannot_be_read_says_what_to_do(data: bytes, words: str) -> None:
    with pytest.raises(UnsupportedAudioError, match=f"{words}.*ffmpeg -i 'my clip.m4a'"):
        decode_audio(data, name="my clip.m4a")


def test_the_command_is_safe_to_paste() -> None:
    assert ffmpeg_command("-x.m4a") == "ffmpeg -i ./-x.m4a -c:a pcm_s16le ./-x.converted.wav"
    assert ffmpeg_command("a b/$(rm).m4a") == (
        "ffmpeg -i 'a b/$(rm).m4a' -c:a pcm_s16le 'a b/$(rm).converted.wav'"
    )
