"""Changing a voice between its spectra and its sound: pitch, formants, whisper, breaths.

Spectra are those of ``hibari.dsp.synth``: natural logarithms of magnitudes in 601 bins of 20 Hz per 12.5 ms,
of the voiced part (``lh``, driven by pulses at ``f0``), of noise (``ln``) and of a part with phases of its
own (``lr``, ``phi``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]

_BIN_HZ = 20.0
_NOTHING = -30.0
"""Logarithm of a magnitude nobody hears."""
_DB = 0.1151293
"""Natural logarithm per decibel of magnitude: ln(10) / 20."""
_WHISPER_DB = -14.0
"""Level of whispered noise under the spectrum of the voice it replaces; whispering is 15 to 20 dB softer
than speaking, and noise fills the bins between harmonics too."""
_WHISPER_LOW_HZ = 500.0
_WHISPER_LOW_DB = 14.0
"""Whispering lacks the strong low harmonics of a voice: this much at 0 Hz, falling to none at 500 Hz."""

_SMOOTH_HZ = 120.0
"""Resonances are wider without the closed glottis; narrower ones leave a hum that a pitch tracker finds."""


class Spectra(NamedTuple):
    """In the order the synthesis takes them; (bins, frames), the last (frames,) in Hz."""

    lh: Floats
    theta: Floats
    ln: Floats
    lr: Floats
    phi: Floats
    f0: Floats


@dataclass(frozen=True, slots=True)
class Manner:
    """How a phrase under a delivery tag differs: factors of pitch and speed, level, or no voice at all."""

    pitch: float = 1.0
    speed: float = 1.0
    level_db: float = 0.0
    tilt_db_per_octave: float = 0.0
    whisper: bool = False


MANNERS: Mapping[str, Manner] = {
    "whisper": Manner(whisper=True, speed=0.95),
    "loud": Manner(pitch=1.22, level_db=6.0, tilt_db_per_octave=1.5, speed=0.97),
    "tired": Manner(pitch=0.86, speed=0.82, level_db=-3.0),
}
"""Delivery tags whose description in the bank is a matter of breath, level, pitch and tempo alone: words
without voice, only breath; clearly louder and higher; slow and low. Feelings beyond that are not rendered."""


@dataclass(frozen=True, slots=True)
class Breath:
    """A breath: its length, where in it (0 to 1) it is strongest, its level (RMS) under that of the voice."""

    seconds: float
    peak_at: float
    level_db: float
    pitch_of_mouth: float = 1.0


BREATHS: Mapping[str, Breath] = {
    "sigh": Breath(seconds=1.1, peak_at=0.18, level_db=-14.0, pitch_of_mouth=0.9),
    "inhale": Breath(seconds=0.9, peak_at=0.72, level_db=-16.0, pitch_of_mouth=1.1),
    "gasp": Breath(seconds=0.38, peak_at=0.62, level_db=-9.0, pitch_of_mouth=1.2),
}
"""Delivery tags that are air alone, let out or drawn in. A laugh, a cough or a cleared throat needs a voice
that was recorded doing so, and is not rendered."""


def reshape(spectra: Spectra, pitch: float, formant: float, manner: Manner | None) -> Spectra:
    """The same words from another throat, in another manner. Durations stay.

    Parameters
    ----------
    pitch: factor of the pitch.
    formant: factor of all resonances; below 1 is a longer vocal tract.
    """
    import numpy as np

    made = spectra if formant == 1.0 else _warped(spectra, formant)
    factor = pitch * (manner.pitch if manner else 1.0)
    made = made._replace(f0=made.f0 * np.float32(factor))
    if manner is None:
        return made
    if manner.whisper:
        return _whispered(made)
    hz = np.maximum(np.arange(made.lh.shape[0]) * _BIN_HZ, 100.0)
    octaves = np.log2(hz / 1000.0)
    gain_db = manner.level_db + manner.tilt_db_per_octave * octaves
    gain = (gain_db * _DB).astype(np.float32)[:, None]
    return made._replace(lh=made.lh + gain, ln=made.ln + gain, lr=made.lr + gain)


def _warped(spectra: Spectra, factor: float) -> Spectra:
    import numpy as np

    bins = spectra.lh.shape[0]
    source = np.minimum(np.arange(bins) / factor, bins - 1)
    below = source.astype(np.int64)
    above = np.minimum(below + 1, bins - 1)
    share = (source - below).astype(np.float32)[:, None]

    def moved(values: Floats) -> Floats:
        return np.asarray(values[below] * (1 - share) + values[above] * share, np.float32)

    return Spectra(
        moved(spectra.lh),
        moved(spectra.theta),
        moved(spectra.ln),
        moved(spectra.lr),
        spectra.phi[np.rint(source).astype(np.int64)],
        spectra.f0,
    )


def _whispered(spectra: Spectra) -> Spectra:
    """Noise in the shape of the voice, no pulses."""
    import numpy as np

    hz = np.arange(spectra.lh.shape[0]) * _BIN_HZ
    low_db = -_WHISPER_LOW_DB * np.clip(1 - hz / _WHISPER_LOW_HZ, 0, 1)
    shape = _smoothed(np.logaddexp(np.logaddexp(spectra.lh, spectra.ln), spectra.lr))
    gain = ((low_db + _WHISPER_DB) * _DB)[:, None]
    return _noise_only(spectra, np.asarray(shape + gain, np.float32))


def breath(spectra: Spectra, kind: Breath) -> Spectra:
    """A breath through the mouth of some spectra, which say its shape; its level is set afterwards."""
    import numpy as np

    frames = max(round(kind.seconds / 0.0125), 4)
    shape = np.logaddexp(np.logaddexp(spectra.lh, spectra.ln), spectra.lr)
    # The middle of the sound: its edges are silence.
    third = max(shape.shape[1] // 3, 1)
    mouth = shape[:, third : max(2 * third, third + 1)].mean(axis=1)
    bins = np.arange(len(mouth))
    mouth = np.interp(bins / kind.pitch_of_mouth, bins, mouth)
    mouth = _smoothed(mouth[:, None])[:, 0]
    low_db = -_WHISPER_LOW_DB * np.clip(1 - bins * _BIN_HZ / _WHISPER_LOW_HZ, 0, 1)
    place = np.linspace(0, 1, frames)
    rising = np.sin(np.pi / 2 * np.minimum(place / kind.peak_at, 1)) ** 2
    falling = np.cos(np.pi / 2 * np.clip((place - kind.peak_at) / (1 - kind.peak_at), 0, 1)) ** 2
    swell = np.log(np.maximum(rising * falling, 1e-4))
    noise = np.asarray((mouth + low_db * _DB)[:, None] + swell[None, :], np.float32)
    blank = np.zeros_like(noise)
    return _noise_only(
        Spectra(blank, blank, blank, blank, blank, np.zeros(frames, np.float32)), noise
    )


def _smoothed(shape: Floats) -> Floats:
    """Resonances without the ripple of harmonics; noise in a narrow band would still sound voiced."""
    import numpy as np
    from scipy.ndimage import uniform_filter1d

    width = 2 * round(_SMOOTH_HZ / _BIN_HZ) + 1
    return np.asarray(uniform_filter1d(shape, width, axis=0, mode="nearest"), np.float32)


def _noise_only(spectra: Spectra, noise: Floats) -> Spectra:
    import numpy as np

    silent = np.full_like(spectra.lh, _NOTHING)
    return spectra._replace(lh=silent, ln=noise, lr=silent)
