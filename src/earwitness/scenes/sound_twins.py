"""Near-duplicates: the same recording again, louder, cut, resampled or in another format.

Two takes are compared at 8 kHz and at every shift, in two ways that must agree: by their cross-correlation, and by the
same with the magnitude of every frequency taken away (GCC-PHAT, Knapp and Carter 1976). Two hums of the mains correlate
and have no common phase; two clicks have a common phase and do not correlate; one recording does both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from earwitness.audio import Audio, read_audio, resample, to_mono
from earwitness.scenes.sounds import SHARED, SoundLibrary, Take

if TYPE_CHECKING:
    import numpy.typing as npt

    Spectrum = npt.NDArray[np.complex128]

RATE_HZ = 8_000
LONGEST_S = 20.0
ALIKE = 0.5
IN_PHASE = 0.2
"""The second is for the phase correlation: a copy that has been through Ogg Vorbis at its lowest quality is at 0.3."""


@dataclass(frozen=True, slots=True)
class Twins:
    """Two takes that are one recording; ``score`` from 0 to 1."""

    first: Take
    second: Take
    score: float


def twin_score(first: Audio, second: Audio) -> float:
    """How much two takes are one recording: peak of their correlation, or 0 if their phases do not agree.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(0, 0.1, (2, 16000)).astype(np.float32)
    >>> twin_score(Audio(noise[0], 8000), Audio(noise[0][2000:] / 2, 8000)) > 0.5
    True
    >>> twin_score(Audio(noise[0], 8000), Audio(noise[1], 8000)) > 0.1
    False
    """
    a, b = _reduced(first), _reduced(second)
    size = _size(len(a) + len(b))
    return _score(np.fft.rfft(a, size), np.fft.rfft(b, size), size)


def _size(n: int) -> int:
    from scipy.fft import next_fast_len

    return int(next_fast_len(n, real=True))


def _reduced(audio: Audio) -> npt.NDArray[np.float64]:
    mono = resample(to_mono(audio), RATE_HZ).samples[: int(LONGEST_S * RATE_HZ)]
    return mono.astype(np.float64)


def _score(a: Spectrum, b: Spectrum, size: int) -> float:
    energy = float(np.sqrt(np.square(np.abs(a)).sum() * np.square(np.abs(b)).sum()))
    cross = a * np.conj(b)
    if energy <= 0:
        return 0.0
    plain = float(np.abs(np.fft.irfft(cross, size)).max()) * size / (2 * energy)
    if plain < ALIKE:
        return 0.0
    # Frequencies without energy have no phase to compare; a take of 11 kHz must not be judged by its noise.
    heard = (np.abs(a) > np.abs(a).max() * 1e-4) & (np.abs(b) > np.abs(b).max() * 1e-4)
    count = int(np.count_nonzero(heard))
    if count < 64:
        return 0.0
    phases = np.where(heard, cross / np.maximum(np.abs(cross), 1e-30), 0)
    in_phase = float(np.abs(np.fft.irfft(phases, size)).max()) * len(a) / count
    return min(1.0, plain) if in_phase >= IN_PHASE else 0.0


def find_twins(library: SoundLibrary) -> Iterator[Twins]:
    """Yield pairs of takes of one class in different splits that are one recording.

    Reads the files of every class that has takes in more than one split.
    """
    for kind in ("sound", "ambience"):
        for of in library.ids(kind):
            takes = library.sounds(of) if kind == "sound" else library.ambiences(of)
            takes = tuple(take for take in takes if take.split != SHARED)
            if len({take.split for take in takes}) > 1:
                yield from _twins_among(library, takes)


def _twins_among(library: SoundLibrary, takes: tuple[Take, ...]) -> Iterator[Twins]:
    reduced = [_reduced(read_audio(library.file(take), require_sound=False)) for take in takes]
    size = _size(2 * max(map(len, reduced)))
    spectra = [np.fft.rfft(x, size) for x in reduced]
    for i, first in enumerate(takes):
        for j in range(i + 1, len(takes)):
            if first.split != takes[j].split:
                score = _score(spectra[i], spectra[j], size)
                if score >= ALIKE:
                    yield Twins(first, takes[j], round(score, 3))
