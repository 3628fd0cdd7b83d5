"""What a file really is, by its content and never by its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from earwitness.audio.containers import find_mp3
from earwitness.audio.source import Source
from earwitness.audio.types import Problem, ffmpeg_command

Container = Literal["WAV", "W64", "AIFF", "AU", "CAF", "FLAC", "OGG", "MP3", "OTHER"]

HEAD_BYTES = 4096

RIFF_FAMILY = (b"RIFF", b"RIFX", b"RF64", b"BW64")
W64_MAGIC = bytes.fromhex("726966662e91cf11a5d628db04c10000")

OTHER_READABLE: tuple[tuple[int, bytes, str], ...] = (
    (0, b"NIST_1A", "NIST Sphere"),
    (0, b"Creative Voice File", "Creative VOC"),
    (0, b"2BIT", "AVR"),
    (0, b" paf", "Ensoniq PARIS"),
    (0, b"fap ", "Ensoniq PARIS"),
    (0, b"PVF1", "PVF"),
    (0, b"Extended Instrument:", "FastTracker XI"),
    (0, b"ALawSoundFile**", "Psion WVE"),
    (0, b"MATLAB 5.0", "MATLAB 5"),
    (0, b"\x64\xa3\x01\x00", "IRCAM"),
    (0, b"\x64\xa3\x02\x00", "IRCAM"),
    (0, b"\x00\x01\xa3\x64", "IRCAM"),
    (0, b"\x00\x02\xa3\x64", "IRCAM"),
    (8, b"8SVX", "Amiga 8SVX"),
    (8, b"16SV", "Amiga 16SV"),
)
"""Rarer formats of libsndfile that can be told by their first bytes."""

UNREADABLE_AUDIO: tuple[tuple[int, bytes, str], ...] = (
    (4, b"ftyp", "MP4 or M4A"),
    (0, b"\x1a\x45\xdf\xa3", "WebM or Matroska"),
    (0, bytes.fromhex("3026b2758e66cf11"), "Windows Media (WMA)"),
    (0, b"#!AMR", "AMR"),
    (0, b"wvpk", "WavPack"),
    (0, b"MAC ", "Monkey's Audio"),
    (0, b"TTA1", "True Audio"),
    (0, b"DSD ", "DSD"),
    (0, b"FRM8", "DSD"),
    (0, b".RMF", "RealMedia"),
    (0, b"#!SILK", "SILK"),
    (0, b"\x02#!SILK", "SILK"),
    (0, b"FLV\x01", "Flash video"),
    (0, b"\x0bw", "AC-3"),
    (8, b"AVI ", "AVI video"),
)

NOT_AUDIO: tuple[tuple[int, bytes, str], ...] = (
    (0, b"PK\x03\x04", "a ZIP archive"),
    (0, b"\x1f\x8b", "a gzip archive"),
    (0, b"BZh", "a bzip2 archive"),
    (0, b"\xfd7zXZ\x00", "an xz archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (0, b"Rar!", "a RAR archive"),
    (0, b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (0, b"%PDF", "a PDF document"),
    (0, b"\x89PNG", "a PNG image"),
    (0, b"\xff\xd8\xff", "a JPEG image"),
    (0, b"GIF8", "a GIF image"),
    (8, b"WEBP", "a WebP image"),
    (0, b"\x00\x05\x16\x07", "a macOS resource fork (AppleDouble), not the recording itself"),
    (0, b"\x93NUMPY", "a NumPy array"),
    (0, b"PAR1", "a Parquet table"),
    (0, b"\x89HDF", "an HDF5 file"),
    (0, b"MThd", "MIDI notes without sound"),
    (8, b"RMID", "MIDI notes without sound"),
)

AUDIO_SUFFIXES: dict[str, tuple[str, ...]] = {
    ".wav": ("WAV",),
    ".wave": ("WAV",),
    ".bwf": ("WAV",),
    ".rf64": ("WAV",),
    ".w64": ("W64",),
    ".aif": ("AIFF",),
    ".aiff": ("AIFF",),
    ".aifc": ("AIFF",),
    ".au": ("AU",),
    ".snd": ("AU",),
    ".caf": ("CAF",),
    ".flac": ("FLAC",),
    ".ogg": ("OGG",),
    ".oga": ("OGG",),
    ".opus": ("OGG",),
    ".mp3": ("MP3",),
    ".sph": ("OTHER", "WAV"),
    ".nist": ("OTHER",),
    ".voc": ("OTHER",),
    ".m4a": (),
    ".mp4": (),
    ".aac": (),
    ".wma": (),
    ".webm": (),
    ".mka": (),
    ".amr": (),
    ".3gp": (),
    ".spx": (),
    ".wv": (),
    ".ape": (),
}
"""Suffixes that claim to be audio, and the containers such a file may hold; none where we cannot read it."""


@dataclass(frozen=True, slots=True)
class Sniffed:
    """What was recognised. ``offset`` is where the audio file proper begins (after an ID3 tag)."""

    container: Container | None
    offset: int = 0
    detail: str = ""
    problem: Problem | None = None


def sniff(source: Source) -> Sniffed:
    """Recognise a file by its first bytes.

    Returns
    -------
    Sniffed: with a container that can be read, or with the problem (``not_audio``, ``unsupported`` or
    ``broken_header``) that says what it is instead.
    """
    if source.size == 0:
        return _refuse("not_audio", "the file is empty (0 bytes)", "Fetch or export it again.")
    head = source.at(0, HEAD_BYTES)
    offset = 0
    if head[:3] == b"ID3" and len(head) >= 10:
        offset = 10 + _syncsafe(head[6:10])
        head = source.at(offset, HEAD_BYTES)
        if not head:
            return _refuse(
                "broken_header",
                f"an ID3 tag of {offset} bytes and nothing after it",
                "Fetch or export the recording again.",
            )
    found = _by_magic(source, head, offset)
    if found is not None:
        return found
    return _not_audio(source, head)


def _refuse(code: str, message: str, next_step: str) -> Sniffed:
    return Sniffed(None, problem=Problem(code, "error", message, next_step))


def _syncsafe(four: bytes) -> int:
    return (four[0] & 127) << 21 | (four[1] & 127) << 14 | (four[2] & 127) << 7 | (four[3] & 127)


def _by_magic(source: Source, head: bytes, offset: int) -> Sniffed | None:
    form = head[8:12]
    if head[:4] in RIFF_FAMILY and (len(head) < 12 or form == b"WAVE"):
        return Sniffed("WAV", offset, head[:4].decode("ascii"))
    if head[:16] == W64_MAGIC:
        return Sniffed("W64", offset)
    if head[:4] == b"FORM" and (len(head) < 12 or form in (b"AIFF", b"AIFC")):
        return Sniffed("AIFF", offset)
    if head[:4] in (b".snd", b"dns."):
        return Sniffed("AU", offset)
    if head[:4] == b"caff":
        return Sniffed("CAF", offset)
    if head[:4] == b"fLaC":
        return Sniffed("FLAC", offset)
    if head[:4] == b"OggS":
        return _ogg(source, head, offset)
    for at, magic, name in OTHER_READABLE:
        if head[at : at + len(magic)] == magic:
            return Sniffed("OTHER", offset, name)
    for at, magic, name in UNREADABLE_AUDIO:
        if head[at : at + len(magic)] == magic:
            return _unreadable(source, name)
    for at, magic, name in NOT_AUDIO:
        if head[at : at + len(magic)] == magic:
            return _refuse(
                "not_audio", f"it is {name}", "Replace it by the recording, or remove it."
            )
    if _is_adts(head):
        return _unreadable(source, "raw AAC")
    first = find_mp3(source, offset)
    return None if first is None else Sniffed("MP3", first)


def _unreadable(source: Source, name: str) -> Sniffed:
    return _refuse(
        "unsupported",
        f"it is {name}, which cannot be read here",
        f"Convert it: {ffmpeg_command(source.name)}",
    )


def _ogg(source: Source, head: bytes, offset: int) -> Sniffed:
    body = head[27 + head[26] :] if len(head) > 27 else b""
    for magic, name in (
        (b"Speex   ", "Speex in Ogg"),
        (b"\x80theora", "Theora video in Ogg"),
        (b"fishead", "Ogg video"),
    ):
        if body.startswith(magic):
            return _unreadable(source, name)
    return Sniffed("OGG", offset)


def _is_adts(head: bytes) -> bool:
    """AAC frames begin with 12 ones like MP3, but their two layer bits are zero; look at two frames."""
    if len(head) < 7 or head[0] != 0xFF or head[1] & 0xF6 != 0xF0:
        return False
    length = (head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5
    after = head[length : length + 2]
    return length >= 7 and (len(after) < 2 or (after[0] == 0xFF and after[1] & 0xF6 == 0xF0))


def _not_audio(source: Source, head: bytes) -> Sniffed:
    if not any(head) and _all_zero(source):
        return _refuse(
            "not_audio",
            f"all {source.size} bytes are zero (a failed download or a sparse file)",
            "Fetch it again.",
        )
    text = _as_text(head)
    if text is None:
        return _refuse(
            "not_audio",
            f"no audio format begins like this (first bytes {head[:8].hex(' ')})",
            "If it is raw samples, wrap them in a WAV file with their rate and format; otherwise fetch it again.",
        )
    start = text.lstrip("\ufeff \t\r\n").lower()
    if start.startswith("version https://git-lfs.github.com/spec"):
        return _refuse(
            "not_audio",
            "it is a Git LFS pointer; the recording itself was not fetched",
            "Run: git lfs pull",
        )
    if start.startswith(("<!doctype html", "<html", "<head", "<body")) or "<html" in start[:1024]:
        return _refuse(
            "not_audio",
            "it is an HTML page, saved in place of the recording (a login or error page?)",
            "Fetch it again with the right address or permission.",
        )
    if start.startswith("<?xml"):
        kind = "an XML document (an error of a storage service?)"
    elif start.startswith(("{", "[")):
        kind = "JSON text"
    else:
        kind = "plain text"
    return _refuse("not_audio", f"it is {kind}", "Replace it by the recording, or remove it.")


def _all_zero(source: Source) -> bool:
    step = 1 << 20
    return not any(any(source.at(offset, step)) for offset in range(0, source.size, step))


def _as_text(head: bytes) -> str | None:
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        try:
            text = head.decode("utf-16")
        except UnicodeDecodeError:
            return None
    else:
        try:
            text = head.decode("utf-8")
        except UnicodeDecodeError as error:
            # A character cut by the end of what we looked at is no sign of binary data.
            if error.start < len(head) - 3:
                return None
            text = head[: error.start].decode("utf-8")
    strange = sum(1 for c in text if ord(c) < 32 and c not in "\t\r\n\f\x1b")
    return text if strange == 0 and text.strip() else None
