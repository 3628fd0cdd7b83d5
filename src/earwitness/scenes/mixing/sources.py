"""Voice files, takes and ambiences as samples: checked against their hashes, at the rate of the mix."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from earwitness.audio.convert import resample, to_mono
from earwitness.audio.decibels import amplitude_from_db
from earwitness.audio.fades import loop_to
from earwitness.audio.filters import lowpass
from earwitness.audio.io import decode_audio
from earwitness.audio.loudness import KWeighted, k_weighted
from earwitness.audio.types import Audio, samples_at
from earwitness.errors import DataError

if TYPE_CHECKING:
    from earwitness.audio.types import Samples

HEARD_DB = -50.0
"""Blocks of a voice file further below its loudest one are silence at its edges."""
HEARD_BLOCK_S = 0.01
HEARD_PAD_S = 0.02
"""Left before and after what is heard, for sounds softer than the threshold."""


class SourceError(DataError):
    """A source of a scene is missing or is not the one that was planned with."""


@dataclass(frozen=True, slots=True, eq=False)
class VoiceSource:
    """A turn: samples at the rate of the mix, its energies, and from where to where it is heard."""

    samples: Samples
    energies: KWeighted
    heard_from: int
    heard_to: int


def read_checked(path: Path, sha256: str) -> Audio:
    """Decode a file whose hash is known.

    Raises
    ------
    SourceError: it is missing, or has another hash.
    AudioFileError: it cannot be decoded.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SourceError(str(path), f"cannot be read ({error.strerror})", "a source of the scene") from None  # fmt: skip
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise SourceError(
            str(path), f"has SHA-256 {found[:12]}", f"{sha256[:12]}, with which the scene was planned",
            "Restore the file, or run the stage that made it again.",
        )  # fmt: skip
    return decode_audio(data, name=str(path))


def read_voice(path: Path, sha256: str, rate: int) -> VoiceSource:
    """A voice file of any rate."""
    audio = to_mono(read_checked(path, sha256))
    energies = k_weighted(audio)
    first, last = heard_seconds(audio)
    made = resample(audio, rate)
    return VoiceSource(
        made.samples,
        energies,
        samples_at(first, rate),
        min(samples_at(last, rate), made.frames),
    )


def heard_seconds(audio: Audio) -> tuple[float, float]:
    """From where to where something is heard; the whole of a file in which nothing is.

    Examples
    --------
    >>> wave = np.zeros(16000, np.float32)
    >>> wave[8000:12000] = 0.5
    >>> heard_seconds(Audio(wave, 16000))
    (0.48, 0.77)
    """
    block = samples_at(HEARD_BLOCK_S, audio.rate)
    whole = len(audio.samples) // block
    table = audio.samples[: whole * block].reshape(whole, block)
    powers = np.einsum("ij,ij->i", table, table)
    top = float(powers.max(initial=0.0))
    if top <= 0:
        return 0.0, audio.seconds
    heard = np.flatnonzero(powers >= top * 10 ** (HEARD_DB / 10))
    # What does not fill a block at the end is left to the pad.
    first = max(0.0, int(heard[0]) * block / audio.rate - HEARD_PAD_S)
    last = (int(heard[-1]) + 1) * block / audio.rate + HEARD_PAD_S
    return first, min(last, audio.seconds)


@lru_cache(maxsize=16)
def read_take(path: Path, sha256: str, rate: int) -> Samples:
    """A take of a sound, mono."""
    made = resample(to_mono(read_checked(path, sha256)), rate).samples
    made.flags.writeable = False
    return made


@dataclass(frozen=True, slots=True, eq=False)
class Bed:
    """An ambience, low-passed, with the blend of its end into its beginning made ready."""

    audio: Audio
    energies: KWeighted


@lru_cache(maxsize=2)
def read_bed(path: Path, sha256: str, rate: int, lowpass_hz: float) -> Bed:
    """An ambience of a location, mono, low-passed without delay."""
    audio = resample(to_mono(read_checked(path, sha256)), rate)
    audio = lowpass(lowpass_hz, rate).apply(audio, zero_phase=True)
    audio.samples.flags.writeable = False
    energies = k_weighted(audio)
    if energies.integrated().silent:
        raise SourceError(str(path), "is silent under the low-pass", "an ambience")
    return Bed(audio, energies)


def bed_of(bed: Bed, frames: int, start_share: float, crossfade_s: float) -> tuple[Audio, int]:
    """A bed of a length, and the sample it begins at."""
    overlap = min(samples_at(crossfade_s, bed.audio.rate), bed.audio.frames // 2)
    turn = max(bed.audio.frames - overlap, 1)
    longest = bed.audio.frames - frames
    # A recording that is long enough is used without a seam; otherwise any beginning will do.
    start = int(start_share * (longest + 1 if longest > 0 else turn))
    return loop_to(bed.audio, frames, crossfade_s, start), start


def gained(samples: Samples, gain_db: float) -> Samples:
    """Samples times a gain; a new array."""
    return samples * np.float32(amplitude_from_db(gain_db))
