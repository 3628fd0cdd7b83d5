"""A stimulus as bytes a model takes: the file itself wherever possible, never a lossy copy.

What is sent is the original file, byte for byte, when its format and rate are accepted and nothing is to
be changed. Otherwise it is decoded and written as 16-bit PCM, in WAV or FLAC, at the lowest accepted rate
that is not below its own (the highest one, if all are below), and the note says so. A lossy format is
made only where it is asked for by name, and the note says that too.
"""

from __future__ import annotations

import hashlib
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from earwitness.errors import DataError, UsageError
from earwitness.models.payload_store import PayloadStore
from earwitness.models.protocols import AudioRef, Limits

if TYPE_CHECKING:
    from earwitness.audio.io import Audio

MEDIA_TYPES = {
    "wav": "audio/wav", "flac": "audio/flac", "mp3": "audio/mpeg", "ogg": "audio/ogg",
    "aiff": "audio/aiff", "m4a": "audio/mp4",
}  # fmt: skip
__all__ = [
    "MEDIA_TYPES",
    "Payload",
    "PayloadStore",
    "encode_stimulus",
    "estimate_bytes",
    "estimate_sizes",
    "longest_seconds",
]

ENCODING = "1"
"""Changes with anything that changes the bytes made of the same samples."""
_LOSSLESS = ("wav", "flac")
_LOSSY = ("mp3", "ogg")
_PCM = 0x0001
_EXTENSIBLE = 0xFFFE
_WAV_HEADER_BYTES = 44
_FLAC_OVERHEAD_BYTES = 16 * 1024
_HEAD_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Payload:
    """One encoded stimulus. ``note`` says what was done to the file, empty when nothing was."""

    data: bytes
    format: str
    media_type: str
    seconds: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the first bytes of a file say. ``plain`` means that any reader of the format will take it."""

    format: str
    rate: int | None
    plain: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """What will be sent. ``format`` of a changed stimulus is wav or flac."""

    format: str
    rate: int
    unchanged: bool
    reasons: tuple[str, ...]


def encode_stimulus(ref: AudioRef, limits: Limits, *, prefer: str = "wav") -> Payload:
    """Read a stimulus and encode it for a model. Blocking: call it in a thread.

    Parameters
    ----------
    ref: the file, with its transform.
    limits: accepted formats and rates; lengths and sizes are checked before the run, not here.
    prefer: ``wav`` or ``flac``, for what has to be encoded anew; ``mp3`` or ``ogg`` (Vorbis) make everything lossy
        that is not so already.

    Raises
    ------
    DataError: the file is gone or is not the one its hash speaks of.
    AudioFileError: it cannot be decoded.
    UsageError: the model takes neither WAV nor FLAC and the file is neither of what it takes.

    Examples
    --------
    >>> payload = encode_stimulus(ref, Limits(formats=("wav",), rates=(16_000,)))  # doctest: +SKIP
    >>> payload.format, payload.note  # doctest: +SKIP
    ('wav', 'resampled from 48000 to 16000 Hz')
    """
    plan = _plan(ref, limits, prefer, _head(ref.path))
    if plan.unchanged:
        return Payload(_read(ref), plan.format, _media_type(plan.format), ref.seconds)
    store = ref.store or PayloadStore()
    # Only the content's own hash can stand for it: what has none is not found again.
    if not ref.sha256:
        return _encoded(ref, plan)
    described = f"{ENCODING} {ref.identity} {plan.format} {plan.rate} {'; '.join(plan.reasons)}"
    return store.payload(described, lambda: _encoded(ref, plan))


def estimate_bytes(ref: AudioRef, limits: Limits, *, prefer: str = "wav") -> int:
    """Bytes :func:`encode_stimulus` will return: exact for an unchanged file, else an upper bound.

    Only the head of the file is read.
    """
    return estimate_sizes(ref, limits, prefer=prefer)[0]


def estimate_sizes(ref: AudioRef, limits: Limits, *, prefer: str = "wav") -> tuple[int, int]:
    """The same, and the bytes of memory that are needed while it is made of the file; 0 for an unchanged one."""
    plan = _plan(ref, limits, prefer, _head(ref.path))
    try:
        file_bytes = ref.path.stat().st_size
    except OSError as error:
        raise _unreadable(ref.path, error) from None
    if plan.unchanged:
        return file_bytes, 0
    samples = round(ref.seconds * plan.rate) + 1
    overhead = _WAV_HEADER_BYTES if plan.format == "wav" else _FLAC_OVERHEAD_BYTES
    sent = samples * ref.channels * 2 + overhead
    if ref.transform == "silence":
        return sent, file_bytes + sent * 2
    whole_s = max(ref.seconds, ref.window[1] if ref.window else 0.0)
    # The file, its samples as they are decoded, and once more as they are put together or resampled.
    return sent, file_bytes + 2 * 4 * round(whole_s * ref.rate) * ref.channels


def longest_seconds(ref: AudioRef, limits: Limits) -> float | None:
    """How much of a stimulus a model takes, in seconds; None if it takes all of it.

    By its longest clip, and by its largest file as 16-bit PCM. Whole milliseconds.

    Raises
    ------
    DataError: the file cannot be read.
    """
    found = []
    if limits.max_seconds is not None and ref.seconds > limits.max_seconds:
        found.append(limits.max_seconds)
    if limits.max_bytes is not None and estimate_bytes(ref, limits) > limits.max_bytes:
        rate = _nearest_rate(_sniff(_head(ref.path)).rate or ref.rate, limits.rates)
        room = limits.max_bytes - _FLAC_OVERHEAD_BYTES
        found.append(max(room, 0) / (rate * ref.channels * 2) - 1 / rate)
    return math.floor(min(found) * 1000) / 1000 if found else None


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(
        str(path),
        f"cannot be read ({error.strerror})",
        "the clip the set speaks of",
        "Bring the file back or import the set again.",
    )


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError as error:
        raise _unreadable(path, error) from None


def _read(ref: AudioRef) -> bytes:
    try:
        data = ref.path.read_bytes()
    except OSError as error:
        raise _unreadable(ref.path, error) from None
    if ref.sha256 and hashlib.sha256(data).hexdigest() != ref.sha256:
        raise DataError(
            str(ref.path),
            "the file has changed since the set was made",
            f"content with SHA-256 {ref.sha256[:12]}…",
            "Import the set again.",
        )
    return data


def _encoded(ref: AudioRef, plan: _Plan) -> Payload:
    import numpy as np

    from earwitness.audio.io import Audio, decode_audio, encode_audio, resample, samples_at

    reasons = list(plan.reasons)
    # Read even where silence takes its place: a file that has changed is not the clip that is asked about.
    data = _read(ref)
    if ref.transform == "silence":
        frames = samples_at(ref.seconds, plan.rate)
        shape = (frames,) if ref.channels == 1 else (frames, ref.channels)
        audio = Audio(np.zeros(shape, dtype=np.float32), plan.rate)
    else:
        audio = decode_audio(data, name=str(ref.path))
        # Every copy of a long recording that is let go of at once is one less at the peak.
        del data
        if ref.window is not None:
            audio = windowed(audio, ref.window)
        if audio.rate != plan.rate:
            reasons.append(f"resampled from {audio.rate} to {plan.rate} Hz")
            audio = resample(audio, plan.rate)
    if plan.format in _LOSSY:
        coded = _lossy(audio, plan.format)
        reasons.append(f"made lossy as asked ({plan.format})")
    else:
        output: Literal["wav", "flac"] = "flac" if plan.format == "flac" else "wav"
        coded = encode_audio(audio, format=output, subtype="PCM_16")
    return Payload(
        coded,
        plan.format,
        _media_type(plan.format),
        audio.seconds,
        "; ".join(dict.fromkeys(reasons)),
    )


def windowed(audio: Audio, window: tuple[float, float]) -> Audio:
    """Part of a recording, from and to in seconds.

    Raises
    ------
    DataError: nothing of it lies inside.
    """
    from earwitness.audio.io import Audio, samples_at

    first = max(samples_at(window[0], audio.rate), 0)
    last = min(samples_at(window[1], audio.rate), audio.frames)
    if first >= last:
        raise DataError(
            f"seconds {window[0]:g} to {window[1]:g}",
            f"lie outside a recording of {audio.seconds:.3f} s",
            "a part of it",
        )
    return Audio(audio.samples[first:last], audio.rate)


def _lossy(audio: Audio, name: str) -> bytes:
    import io

    import soundfile

    file = io.BytesIO()
    container, subtype = ("MP3", "MPEG_LAYER_III") if name == "mp3" else ("OGG", "VORBIS")
    soundfile.write(file, audio.samples, audio.rate, format=container, subtype=subtype)
    return file.getvalue()


def _plan(ref: AudioRef, limits: Limits, prefer: str, head: bytes) -> _Plan:
    seen = _sniff(head)
    rate = seen.rate or ref.rate
    accepted = tuple(name.lower() for name in limits.formats)
    reasons = []
    if ref.transform == "silence":
        reasons.append("replaced by silence of the same length")
    elif seen.format not in accepted:
        reasons.append(f"decoded from {seen.format or 'an unknown format'}")
    elif not seen.plain:
        reasons.append("rewritten as plain 16-bit PCM")
    elif prefer in _LOSSY and prefer in accepted and seen.format in _LOSSLESS:
        reasons.append(f"encoded from {seen.format}")
    if ref.window is not None:
        reasons.append(f"seconds {ref.window[0]:.3f} to {ref.window[1]:.3f} of the file")
    target = _nearest_rate(rate, limits.rates)
    if not reasons and target == rate:
        return _Plan(seen.format, rate, True, ())
    return _Plan(_output_format(ref.path, accepted, prefer), target, False, tuple(reasons))


def _output_format(path: Path, accepted: tuple[str, ...], prefer: str) -> str:
    wanted = (prefer, *_LOSSLESS)
    choices = [name for name in wanted if name in (*_LOSSLESS, *_LOSSY) and name in accepted]
    if not choices:
        raise UsageError(
            str(path),
            f"would have to be encoded as {' or '.join(accepted) or 'nothing'}",
            "a model that takes wav or flac, or clips in a format it takes",
            "No stimulus is made lossy unless asked: -M prefer=mp3, if that is what you want to test.",
        )
    return choices[0]


def _nearest_rate(rate: int, accepted: tuple[int, ...]) -> int:
    """The accepted rate that loses least: the lowest one not below ``rate``, else the highest."""
    if not accepted or rate in accepted:
        return rate
    above = [candidate for candidate in accepted if candidate > rate]
    return min(above) if above else max(accepted)


def _media_type(name: str) -> str:
    return MEDIA_TYPES.get(name, "application/octet-stream")


def _sniff(head: bytes) -> _Seen:
    """Format by content, as suffixes lie."""
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return _sniff_wav(head)
    if head[:4] in (b"RF64", b"BW64", b"RIFX"):
        return _Seen("wav", None, plain=False)
    if head[:4] == b"fLaC" and len(head) >= 21:
        return _Seen("flac", int.from_bytes(head[18:21], "big") >> 4 or None, plain=True)
    if head[:4] == b"OggS":
        return _Seen("ogg", None, plain=True)
    if head[:3] == b"ID3" or (
        len(head) > 1 and head[0] == 0xFF and head[1] & 0xE6 in (0xE2, 0xE4, 0xE6)
    ):
        return _Seen("mp3", None, plain=True)
    if head[:4] == b"FORM" and head[8:12] in (b"AIFF", b"AIFC"):
        return _Seen("aiff", None, plain=head[8:12] == b"AIFF")
    if head[4:8] == b"ftyp":
        return _Seen("m4a", None, plain=True)
    return _Seen("", None, plain=False)


def _sniff_wav(head: bytes) -> _Seen:
    """Rate of a WAV; plain if it is integer PCM whose sizes are stated rather than left open."""
    at, rate, integer_pcm = 12, None, False
    open_ended = _is_placeholder(int.from_bytes(head[4:8], "little"))
    while at + 8 <= len(head):
        name, declared = head[at : at + 4], int.from_bytes(head[at + 4 : at + 8], "little")
        if name == b"fmt " and at + 24 <= len(head):
            tag, _, rate, _, _, bits = struct.unpack_from("<HHIIHH", head, at + 8)
            if tag == _EXTENSIBLE and at + 34 <= len(head):
                tag = int.from_bytes(head[at + 32 : at + 34], "little")
            integer_pcm = tag == _PCM and bits in (16, 24, 32)
        if name == b"data":
            open_ended = open_ended or _is_placeholder(declared)
            break
        at += 8 + declared + declared % 2
    return _Seen("wav", rate or None, plain=integer_pcm and not open_ended)


def _is_placeholder(declared: int) -> bool:
    return declared == 0 or declared >= 0x7FFFFFFF
