"""From a file to its features: read, mix down, bring to 16 kHz."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from earwitness.errors import DataError
from earwitness.models.prosody.analysis import RATE_HZ
from earwitness.models.prosody.features import extract
from earwitness.models.prosody.mfcc import COEFFICIENTS, mfcc_statistics

if TYPE_CHECKING:
    from earwitness.models.protocols import AudioRef


@dataclass(frozen=True, slots=True)
class Source:
    """An audio file and the hash its bytes must have."""

    path: Path
    sha256: str


def mono_16k(source: Source) -> NDArray[np.float32]:
    """Samples of a file, mono, 16 kHz.

    Raises
    ------
    DataError: the file is gone or has changed.
    AudioFileError: it cannot be used.
    """
    from earwitness.audio.io import decode_audio, resample, to_mono

    try:
        data = source.path.read_bytes()
    except OSError as error:
        raise DataError(
            str(source.path), f"cannot be read ({error.strerror})", "the clip the set speaks of"
        ) from None
    if source.sha256 and hashlib.sha256(data).hexdigest() != source.sha256:
        raise DataError(
            str(source.path),
            "the file has changed since the set was made",
            f"content with SHA-256 {source.sha256[:12]}…",
            "Import the set again.",
        )
    audio = to_mono(decode_audio(data, name=str(source.path)))
    return (audio if audio.rate == RATE_HZ else resample(audio, RATE_HZ)).samples


def features_of(source: Source) -> NDArray[np.float32]:
    """Feature vector of a file; module-level, so that worker processes can be sent it."""
    return extract(mono_16k(source))


def mfcc_features_of(source: Source, coefficients: int = COEFFICIENTS) -> NDArray[np.float32]:
    """Statistics of the reference system; see :mod:`earwitness.models.prosody.mfcc`."""
    return mfcc_statistics(mono_16k(source), coefficients)


def features_of_stimulus(ref: AudioRef) -> NDArray[np.float32]:
    """Feature vector of what an item would let a model hear."""
    if ref.transform == "silence":
        return extract(np.zeros(max(1, round(ref.seconds * RATE_HZ))))
    samples = mono_16k(Source(ref.path, ref.sha256))
    if ref.window is not None:
        from earwitness.audio.io import Audio
        from earwitness.models.payload import windowed

        samples = windowed(Audio(samples, RATE_HZ), ref.window).samples
    return extract(samples)
