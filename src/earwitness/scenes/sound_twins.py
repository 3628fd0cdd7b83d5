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

    Samples = npt.NDArray[np.float64]
    Spectrum = npt.NDArray[np.complex128]

RATE_HZ = 8_000
LONGEST_S = 20.0
TAPER_S = 0.03
ALIKE = 0.8
ALIKE_IF_SHORT = 0.95
SHORT_S = 1.5
OVERLAP = 0.5
IN_PHASE = 0.2
"""Two short thuds are alike by chance, so more is asked of them. The last is for the phase correlation: a copy that has been through Ogg Vorbis at its lowest quality is at 0.3."""


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
    >>> twin_score(Audio(noise[0], 8000), Audio(noise[0][2000:] / 2, 8000)) > 0.8
    True
    >>> twin_score(Audio(noise[0], 8000), Audio(noise[1], 8000))
    0.0
    """
    a, b = _reduced(first), _reduced(second)
    size = _size(len(a) + len(b))
    return _score(a, b, np.fft.rfft(a, size), np.fft.rfft(b, size), size)


def _size(n: int) -> int:
    from scipy.fft import next_fast_len

    return int(next_fast_len(n, real=True))


def _reduced(audio: Audio) -> Samples:
    mono = resample(to_mono(audio), RATE_HZ).samples[: int(LONGEST_S * RATE_HZ)]
    taper = min(len(mono) // 2, int(TAPER_S * RATE_HZ))
    flank = np.sin(np.pi / 2 * np.arange(taper) / max(1, taper)) ** 2
    made = mono.astype(np.float64)
    # Without it, the edges of two hums have the same phase at every frequency.
    made[:taper] *= flank
    made[len(made) - taper :] *= flank[::-1]
    return made


def _score(
    a: Samples, b: Samples, spectrum_a: Spectrum, spectrum_b: Spectrum, size: int
) -> float:  # fmt: skip
    cross = spectrum_a * np.conj(spectrum_b)
    correlation = np.abs(np.fft.irfft(cross, size))
    lag = int(correlation.argmax())
    lag = lag if lag < len(a) else lag - size
    part_a = a[max(0, lag) : min(len(a), lag + len(b))]
    part_b = b[max(0, -lag) : max(0, -lag) + len(part_a)]
    energy = float(np.sqrt(np.square(part_a).sum() * np.square(part_b).sum()))
    if len(part_a) < OVERLAP * min(len(a), len(b)) or energy <= 0:
        return 0.0
    alike = abs(float(part_a @ part_b)) / energy
    if alike < (ALIKE if len(part_a) >= SHORT_S * RATE_HZ else ALIKE_IF_SHORT):
        return 0.0
    # Frequencies without energy have no phase to compare; a take of 11 kHz must not be judged by its noise.
    heard = np.logical_and(*(np.abs(x) > np.abs(x).max() * 1e-4 for x in (spectrum_a, spectrum_b)))
    phases = np.where(heard, cross / np.maximum(np.abs(cross), 1e-30), 0)
    in_phase = (
        np.abs(np.fft.irfft(phases, size)).max() * len(cross) / max(1, np.count_nonzero(heard))
    )
    return alike if in_phase >= IN_PHASE else 0.0


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
                score = _score(reduced[i], reduced[j], spectra[i], spectra[j], size)
                if score >= ALIKE:
                    yield Twins(first, takes[j], round(score, 3))
