"""Voice files, takes and ambiences as samples: checked against their hashes, at the rate of the mix."""

from __future__ import annotations

import hashlib
import io
import struct
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
from earwitness.audio.loudness import HOP_S, KWeighted, k_weighted
from earwitness.audio.types import FULL_SCALE_STEP, Audio, samples_at
from earwitness.errors import DataError

if TYPE_CHECKING:
    from earwitness.audio.loudness import Floats
    from earwitness.audio.types import Samples

HEARD_DB = -50.0
"""Blocks of a voice file further below its loudest one are silence at its edges."""
HEARD_BLOCK_S = 0.01
HEARD_PAD_S = 0.02
"""Left before and after what is heard, for sounds softer than the threshold."""


LEAST_BED_HOPS = 10


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
    return decode_audio(_checked(path, sha256), name=str(path))


def _checked(path: Path, sha256: str) -> bytes:
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
    return data


def _read_stored(path: Path, sha256: str) -> Audio:
    """Decode what an earlier stage wrote: its hash says that the file is whole, so nothing else is looked for."""
    import soundfile

    data = _checked(path, sha256)
    if _plain(data):
        samples = np.frombuffer(data, "<i2", offset=44).astype(np.float32)
        samples *= np.float32(FULL_SCALE_STEP)
        return Audio(samples, int.from_bytes(data[24:28], "little"))
    try:
        samples, rate = soundfile.read(io.BytesIO(data), dtype="float32")
    except soundfile.SoundFileError as error:
        raise SourceError(str(path), f"cannot be decoded ({error})", "a voice file") from None
    return Audio(samples, rate)


def _plain(data: bytes) -> bool:
    """Whether it is a mono WAV file of 16 bits with nothing but samples after 44 bytes, as Earwitness writes."""
    head = data[:4] + data[8:24] + data[32:40]
    wanted = (
        b"RIFF" + b"WAVEfmt " + struct.pack("<IHH", 16, 1, 1) + struct.pack("<HH", 2, 16) + b"data"
    )
    return head == wanted and int.from_bytes(data[40:44], "little") == len(data) - 44


def read_voice(path: Path, sha256: str, rate: int) -> VoiceSource:
    """A voice file of any rate."""
    audio = to_mono(_read_stored(path, sha256))
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
    """An ambience, low-passed: one round of it, as it begins and as it goes on after its own end.

    Its length less the blend, and every beginning, are whole multiples of 100 ms. So the energies of any bed made
    of it are known from those of two rounds (but for what the filter's start from rest changes in the first 100 ms,
    under 0.001 LU of a scene).
    """

    audio: Audio
    overlap: int
    hops: Floats
    round_hops: Floats

    @property
    def turn(self) -> int:
        """Samples after which it repeats."""
        return self.audio.frames - self.overlap


@lru_cache(maxsize=2)
def read_bed(path: Path, sha256: str, rate: int, lowpass_hz: float, crossfade_s: float) -> Bed:
    """An ambience of a location, mono, low-passed without delay.

    Raises
    ------
    SourceError: it is silent under the low-pass, or shorter than a second.
    """
    audio = resample(to_mono(read_checked(path, sha256)), rate)
    audio = lowpass(lowpass_hz, rate).apply(audio, zero_phase=True)
    hop = samples_at(HOP_S, rate)
    overlap = min(samples_at(crossfade_s, rate), audio.frames // 2)
    turn = (audio.frames - overlap) // hop * hop
    if turn < LEAST_BED_HOPS * hop:
        raise SourceError(
            str(path), f"lasts {audio.seconds:.2f} s", "an ambience of a second or more"
        )
    audio = Audio(audio.samples[: turn + overlap].copy(), rate)
    audio.samples.flags.writeable = False
    two = k_weighted(loop_to(audio, 2 * turn, crossfade_s))
    whole = k_weighted(audio)
    if whole.integrated().silent:
        raise SourceError(str(path), "is silent under the low-pass", "an ambience")
    return Bed(audio, overlap, whole.hop_energies, two.hop_energies[turn // hop :])


def bed_of(
    bed: Bed, frames: int, start_share: float, crossfade_s: float
) -> tuple[Audio, int, KWeighted]:
    """A bed of a length, the sample of the ambience it begins at, and its energies."""
    hop = samples_at(HOP_S, bed.audio.rate)
    longest = bed.audio.frames - frames
    # A recording that is long enough is used without a seam; otherwise any beginning will do.
    choices = longest // hop + 1 if longest >= 0 else bed.turn // hop
    start = min(int(start_share * choices), choices - 1)
    audio = loop_to(bed.audio, frames, crossfade_s, start * hop)
    if longest >= start * hop:
        hops = bed.hops[start:]
    else:
        rounds = -(-frames // bed.turn)
        hops = np.concatenate([bed.hops[start : bed.turn // hop], *[bed.round_hops] * rounds])
    hops = hops[: frames // hop]
    energies = KWeighted(bed.audio.rate, frames, hops, float(hops.sum()))
    return audio, start * hop, energies


def amplify(samples: Samples, gain_db: float) -> Samples:
    """Turn samples up or down in place, and return them."""
    samples *= np.float32(amplitude_from_db(gain_db))
    return samples
