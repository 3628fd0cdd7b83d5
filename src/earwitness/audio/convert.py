"""One channel, another rate, bytes of a file: each by one declared policy."""

from __future__ import annotations

import io
import math
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from earwitness.audio.files import atomic_write_bytes
from earwitness.audio.measure import Mix, choose_mix, second_moments
from earwitness.audio.types import OVERSHOOT, Audio
from earwitness.errors import UnsupportedAudioError, UsageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Format = Literal["wav", "flac"]
SUBTYPES: dict[str, tuple[str, ...]] = {
    "wav": ("PCM_16", "PCM_24", "PCM_32", "FLOAT"),
    "flac": ("PCM_16", "PCM_24"),
}


def to_mono(audio: Audio) -> Audio:
    """One channel from several.

    Policy, in this order: channels 40 dB or more below the loudest are left out; if one is left, it is
    taken as it is (one side silent, speech in the centre of 5.1); if the mean of those left loses 3 dB
    more than unrelated channels would, their phases cancel and the loudest channel is taken (antiphase);
    otherwise it is their mean. Mono is returned as it is.

    Returns
    -------
    Audio: samples of shape (n,), same rate.
    """
    return to_mono_with_policy(audio)[0]


def to_mono_with_policy(audio: Audio) -> tuple[Audio, str]:
    """Like :func:`to_mono`, and says in words which way was taken, for the record.

    Examples
    --------
    >>> import numpy as np
    >>> wave = np.sin(np.arange(1600, dtype=np.float32))
    >>> to_mono_with_policy(Audio(np.stack([wave, -wave], axis=1), 16000))[1]
    'channel 1 of 2, as the mean cancels (all of it lost)'
    """
    import numpy as np

    if audio.samples.ndim == 1:
        return audio, "mono"
    if audio.channels == 1:
        return Audio(np.ascontiguousarray(audio.samples[:, 0]), audio.rate), "mono"
    mix = _mix_of(audio)
    if sum(w != 0 for w in mix.weights) == 1:
        mono = audio.samples[:, mix.weights.index(1.0)].copy()
    else:
        # Summed in a fixed order, so that every machine makes the same samples.
        total = np.zeros(audio.frames)
        for channel, weight in enumerate(mix.weights):
            if weight:
                total += weight * audio.samples[:, channel].astype(np.float64)
        mono = total.astype(np.float32)
    return Audio(mono, audio.rate), mix.policy


def _mix_of(audio: Audio) -> Mix:
    import numpy as np

    gram = np.zeros((audio.channels, audio.channels))
    total = np.zeros(audio.channels)
    for start in range(0, audio.frames, 1 << 16):
        wide = audio.samples[start : start + (1 << 16)].astype(np.float64)
        gram += second_moments(wide)
        total += wide.sum(axis=0)
    return choose_mix(gram, total, audio.frames)


def resample(audio: Audio, rate: int) -> Audio:
    """Change the sample rate with soxr at its very high quality.

    Returns
    -------
    Audio: exactly ``frames * rate / audio.rate`` frames, half rounded up, whatever the resampler returns;
    the same object if the rate is right already.

    Raises
    ------
    ValueError: a rate below 1.
    """
    if rate < 1:
        raise ValueError(f"rate is {rate} Hz; wanted at least 1")
    if rate == audio.rate:
        return audio
    import numpy as np
    import soxr

    wanted = (2 * audio.frames * rate + audio.rate) // (2 * audio.rate)
    made = np.asarray(soxr.resample(audio.samples, audio.rate, rate, quality="VHQ"), np.float32)
    if len(made) < wanted:
        pad = [(0, wanted - len(made))] + [(0, 0)] * (made.ndim - 1)
        made = np.pad(made, pad)
    return Audio(made[:wanted], rate)


def _peak(audio: Audio) -> float:
    """Largest absolute sample; NaN if there is one."""
    return float(max(audio.samples.max(), -audio.samples.min())) if audio.frames else 0.0


def full_scale_policy(audio: Audio) -> tuple[Audio, str]:
    """Make float audio fit an integer format, and say how, for the record.

    A peak up to full scale stays; up to 3 dB over it is left to be clipped, as resampling makes such
    ripple; anything louder is turned down as a whole to a peak of 1, as clipping would distort the voice.

    Returns
    -------
    (Audio, str): the note is empty where nothing was changed.
    """
    import numpy as np

    peak = _peak(audio)
    if peak <= OVERSHOOT:
        return audio, ""
    scaled = (audio.samples / np.float64(peak)).astype(np.float32)
    return Audio(scaled, audio.rate), f"turned down from a peak of {peak:.6g} to 1"


def encode_audio(audio: Audio, format: Format = "wav", subtype: str = "PCM_16") -> bytes:  # noqa: A002
    """The bytes of an audio file; the same bytes for the same samples, with no date inside.

    Parameters
    ----------
    format: ``wav`` or ``flac``.
    subtype: ``PCM_16``, ``PCM_24``; for WAV also ``PCM_32`` and ``FLOAT``.

    Integers are ``round(sample * 2**(bits-1))``, the inverse of how they are read, so that reading what
    was written gives the same samples. Peaks over full scale: see :func:`full_scale_policy`.

    Raises
    ------
    UsageError: no such format or subtype.
    ValueError: samples that are not finite.
    UnsupportedAudioError: more channels than FLAC has (8), or more bytes than WAV holds (4 GiB).
    """
    import numpy as np

    if subtype not in SUBTYPES.get(format, ()):
        known = "; ".join(f"{f}: {', '.join(s)}" for f, s in SUBTYPES.items())
        raise UsageError("encode_audio", f"format {format!r} with subtype {subtype!r}", known)
    if not math.isfinite(_peak(audio)):
        raise ValueError("samples contain NaN or infinity; no file is made of them")
    if subtype == "FLOAT":
        return _wav(audio, audio.samples.astype("<f4", copy=False), tag=3, bits=32)
    bits = int(subtype.removeprefix("PCM_"))
    whole = _integers(full_scale_policy(audio)[0], bits)
    if format == "flac":
        return _flac(audio, whole, bits)
    if bits == 24:
        wide = whole.astype("<i4", copy=False).reshape(-1, 1).view(np.uint8)
        return _wav(audio, wide[:, :3], tag=1, bits=bits)
    return _wav(audio, whole.astype(f"<i{bits // 8}", copy=False), tag=1, bits=bits)


def _integers(audio: Audio, bits: int) -> npt.NDArray[np.signedinteger]:
    import numpy as np

    scale = 2.0 ** (bits - 1)
    made = np.empty(audio.samples.shape, np.int16 if bits == 16 else np.int32)
    # In blocks: float64 copies of a whole recording cost more in memory pages than in arithmetic.
    for first in range(0, audio.frames, 1 << 16):
        wide = audio.samples[first : first + (1 << 16)] * np.float64(scale)
        np.rint(wide, out=wide)
        np.clip(wide, -scale, scale - 1, out=wide)
        made[first : first + (1 << 16)] = wide
    return made


def _wav(audio: Audio, values: npt.NDArray[Any], *, tag: int, bits: int) -> bytes:
    import numpy as np

    # As a view: the bytes of a recording are copied once, into the file.
    raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
    frame = audio.channels * bits // 8
    fmt = struct.pack("<HHIIHH", tag, audio.channels, audio.rate, audio.rate * frame, frame, bits)
    chunks = b"fmt " + struct.pack("<I", 16) + fmt
    if tag == 3:
        fmt += b"\0\0"
        chunks = b"fmt " + struct.pack("<I", 18) + fmt
        chunks += b"fact" + struct.pack("<II", 4, audio.frames)
    pad = b"\0" * (len(raw) % 2)
    total = 4 + len(chunks) + 8 + len(raw) + len(pad)
    if total > 0x7FFE0000:
        raise UnsupportedAudioError(
            "encode_audio",
            f"{total} bytes of WAV",
            "less than 2 GiB, the most that every program reads",
            "Write FLAC, or shorter pieces.",
        )
    head = b"RIFF" + struct.pack("<I", total) + b"WAVE" + chunks
    return b"".join((head, b"data", struct.pack("<I", len(raw)), raw, pad))


def _flac(audio: Audio, whole: npt.NDArray[np.signedinteger], bits: int) -> bytes:
    import numpy as np
    import soundfile

    if audio.channels > 8:
        raise UnsupportedAudioError(
            "encode_audio", f"{audio.channels} channels", "at most 8 in FLAC", "Write WAV."
        )
    out = io.BytesIO()
    shifted = whole.astype(np.int32) << (32 - bits)
    soundfile.write(out, shifted, audio.rate, format="FLAC", subtype=f"PCM_{bits}")
    return out.getvalue()


def write_audio(path: Path | str, audio: Audio, subtype: str = "PCM_16") -> None:
    """Write a file that appears whole or not at all; ``.flac`` writes FLAC, anything else WAV.

    Raises
    ------
    UsageError, ValueError, UnsupportedAudioError: as :func:`encode_audio`.
    OSError: the file cannot be written.
    """
    kind: Format = "flac" if Path(path).suffix.lower() == ".flac" else "wav"
    atomic_write_bytes(path, encode_audio(audio, kind, subtype))
