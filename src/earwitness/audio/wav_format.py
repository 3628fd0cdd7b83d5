"""The ``fmt`` chunk of a WAV file: which codec, and whether its numbers can be true."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from earwitness.audio.types import MAX_CHANNELS, MAX_RATE_HZ, Problem, ffmpeg_command

PCM, FLOAT, ALAW, MULAW, EXTENSIBLE = 0x0001, 0x0003, 0x0006, 0x0007, 0xFFFE

READABLE_TAGS: dict[int, str] = {
    PCM: "PCM",
    0x0002: "Microsoft ADPCM",
    FLOAT: "float",
    ALAW: "A-law",
    MULAW: "mu-law",
    0x0011: "IMA ADPCM",
    0x0031: "GSM 6.10",
    0x0038: "NMS ADPCM",
    0x0040: "G.721",
    0x0055: "MP3",
}
"""Codecs libsndfile decodes in a WAV file (registry of RFC 2361)."""

UNREADABLE_TAGS: dict[int, str] = {
    0x0022: "TrueSpeech",
    0x0042: "G.723.1",
    0x0045: "G.726",
    0x0050: "MPEG layer 1 or 2",
    0x0064: "G.726",
    0x0083: "G.729",
    0x00FF: "AAC",
    0x0160: "Windows Media 1",
    0x0161: "Windows Media 2",
    0x0162: "Windows Media Professional",
    0x0163: "Windows Media Lossless",
    0x1600: "AAC",
    0x1610: "AAC",
    0x2000: "AC-3",
    0x2001: "DTS",
    0x566F: "Vorbis",
    0x674F: "Vorbis",
    0x704F: "Opus",
    0xA109: "Speex",
    0xF1AC: "FLAC",
}
"""Known codecs that cannot be decoded here; any other tag is taken for a corrupt header."""

BLOCK_TAGS = (0x0002, 0x0011, 0x0031)
"""Codecs that code a fixed number of frames in a fixed number of bytes."""

GSM = 0x0031

SUBFORMAT_TAILS = (
    bytes.fromhex("000000001000800000aa00389b71"),
    bytes.fromhex("00002107d3118644c8c1ca000000"),  # ambisonic B-format
)


@dataclass(frozen=True, slots=True)
class WavFormat:
    """A checked format. ``frame_bytes`` is the size of one frame, or of one block of a block codec.

    ``chunk`` is the fmt chunk's body as a decoder shall see it, corrected where ``warnings`` say so.
    """

    tag: int
    codec: str
    rate: int
    channels: int
    bits: int
    frame_bytes: int
    byte_rate: int
    chunk: bytes
    warnings: tuple[Problem, ...] = ()

    @property
    def block_frames(self) -> int:
        """Frames in a block of a block codec, as the header says; 0 for other codecs."""
        if self.tag not in BLOCK_TAGS or len(self.chunk) < 20:
            return 0
        return int.from_bytes(self.chunk[18:20], "little")

    @property
    def counts_frames(self) -> bool:
        """Whether bytes tell frames: plain samples rather than blocks of a codec."""
        return self.tag in (PCM, FLOAT, ALAW, MULAW)

    def seconds(self, count: int) -> float | None:
        """Duration of a number of data bytes; None where the header does not tell."""
        if self.counts_frames:
            return count / self.frame_bytes / self.rate
        return count / self.byte_rate if self.byte_rate else None


def parse_format(body: bytes, endian: str, name: str) -> WavFormat | Problem:
    """Check the body of a ``fmt`` chunk.

    Parameters
    ----------
    body: bytes of the chunk, without id and size.
    endian: ``"<"`` or, for RIFX, ``">"``.
    name: of the file, for the advice in messages.
    """
    again = "Export or fetch the recording again."
    if len(body) < 16:
        return _broken(
            f"its fmt chunk has {len(body)} bytes, at least 16 are needed (bits per sample are missing)",
            again,
        )
    tag, channels, rate, byte_rate, block, bits = struct.unpack(endian + "HHIIHH", body[:16])
    if tag == EXTENSIBLE:
        if len(body) < 40:
            return _broken(f"its extensible fmt chunk has {len(body)} bytes, wanted 40", again)
        if body[26:40] not in SUBFORMAT_TAILS:
            return _broken("its extensible fmt chunk names an unknown sub-format", again)
        tag = struct.unpack(endian + "H", body[24:26])[0]
    if tag in UNREADABLE_TAGS:
        return Problem(
            "unsupported",
            "error",
            f"its samples are coded as {UNREADABLE_TAGS[tag]} (tag 0x{tag:04x}), which cannot be read here",
            f"Convert it: {ffmpeg_command(name)}",
        )
    if tag not in READABLE_TAGS:
        return _broken(f"format tag 0x{tag:04x} is no known codec", again)
    if rate == 0:
        return _broken("its sample rate is 0 Hz", again)
    if rate > MAX_RATE_HZ:
        return _broken(f"its sample rate is {rate} Hz; at most {MAX_RATE_HZ} can be true", again)
    if channels == 0:
        return _broken("it has 0 channels", again)
    if channels > MAX_CHANNELS:
        return _broken(f"it has {channels} channels; at most {MAX_CHANNELS} can be true", again)
    codec = READABLE_TAGS[tag]
    if tag in (PCM, FLOAT, ALAW, MULAW):
        return _plain(body, endian, name, tag, codec, (channels, rate, byte_rate, block, bits))
    frame = block or 1
    return WavFormat(tag, codec, rate, channels, bits, frame, byte_rate, body)


def _plain(
    body: bytes, endian: str, name: str, tag: int, codec: str, numbers: tuple[int, ...]
) -> WavFormat | Problem:
    channels, rate, _, block, bits = numbers
    allowed = {PCM: range(1, 33), FLOAT: (32, 64), ALAW: (8,), MULAW: (8,)}[tag]
    if bits == 0:
        return _broken("it has 0 bits per sample", "Export or fetch the recording again.")
    if bits not in allowed:
        return Problem(
            "unsupported",
            "error",
            f"{codec} with {bits} bits per sample cannot be read here",
            f"Convert it: {ffmpeg_command(name)}",
        )
    width = (bits + 7) // 8
    frame = channels * width
    if tag == PCM and block == channels * 4 and width == 3:
        # Some writers put the 24 bits into the low, others into the high bytes: 48 dB apart.
        return Problem(
            "unsupported",
            "error",
            "24 bits in 4 bytes per sample: programs disagree which 3 of the 4 bytes hold the sample",
            f"Convert it: {ffmpeg_command(name)}",
        )
    warnings: tuple[Problem, ...] = ()
    if block != frame:
        warnings = (
            Problem(
                "block_align",
                "warning",
                f"the header says {block} bytes per frame; {channels} x {bits} bits make {frame}, which were taken",
                "Re-write the file, as other programs may read noise.",
            ),
        )
    chunk = body[:8] + struct.pack(endian + "IH", rate * frame, frame) + body[14:]
    return WavFormat(tag, codec, rate, channels, bits, frame, rate * frame, chunk, warnings)


def _broken(message: str, next_step: str) -> Problem:
    return Problem("broken_header", "error", message, next_step)
