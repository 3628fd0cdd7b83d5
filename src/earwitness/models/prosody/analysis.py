"""A clip cut into frames: what is speech, how loud, which spectrum, which pitch.

Everything but :class:`Levels` is computed from a copy of the clip brought to one active-speech level, so
that multiplying a clip by a constant changes nothing in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from earwitness.models.prosody.pitch import (
    STEP_S,
    Bools,
    Floats,
    PitchTrack,
    centred_frames,
    track_pitch,
)

RATE_HZ = 16_000
FFT_SIZE = 512
N_MELS = 40
N_MFCC = 16

_WIDTH = 400  # 25 ms
_STEP = round(RATE_HZ * STEP_S)
_ACTIVE_RMS = 0.1
# Speech is what lies within this of the loud frames (ITU-T P.56 uses margins of the same order) ...
_SPEECH_WITHIN_DB = 30.0
# ... and stands this far above the quietest tenth, as long as that is itself clearly quieter.
_ABOVE_FLOOR_DB = 6.0
_FLOOR_BELOW_DB = 12.0
_QUIETEST_DBFS = -100.0
_SILENT_POWER = 1e-18  # rounding noise of a constant


@dataclass(frozen=True, slots=True)
class Levels:
    """Levels as recorded, in dB re full scale; ``contrast_db`` is speech over background."""

    active_rms_dbfs: float
    peak_dbfs: float
    floor_dbfs: float

    @property
    def contrast_db(self) -> float:
        return self.active_rms_dbfs - self.floor_dbfs


@dataclass(frozen=True, slots=True)
class Analysis:
    """Descriptors of the ``n`` frames of a clip, one every 10 ms.

    Attributes
    ----------
    samples: the clip at one active level, 16 kHz.
    power: (n, 257) power spectrum of 25 ms Hann frames.
    mel_db: (n, 40) mel band energies in dB, floored 80 dB below the loudest.
    mfcc: (n, 17) cepstral coefficients of ``mel_db``, from the zeroth.
    energy_db: (n,) frame energy in dB relative to the mean of the active frames.
    active: (n,) frames that are speech.
    first, last: the frames where speech begins and ends (``last`` is inclusive).
    """

    samples: Floats
    levels: Levels
    power: Floats
    mel_db: Floats
    mfcc: Floats
    energy_db: Floats
    active: Bools
    first: int
    last: int
    pitch: PitchTrack

    @property
    def voiced(self) -> Bools:
        return self.pitch.voiced & self.active

    @property
    def unvoiced(self) -> Bools:
        return ~self.pitch.voiced & self.active

    @property
    def speech(self) -> slice:
        return slice(self.first, self.last + 1)


def analyse(samples: Floats) -> Analysis:
    """Analyse a mono clip at 16 kHz of any level and of at least one sample.

    Parameters
    ----------
    samples: (n,) float array.
    """
    samples = np.asarray(samples, dtype=np.float64)
    samples = samples - samples.mean()
    frames = centred_frames(samples, _WIDTH, _STEP)
    energy = np.mean(frames**2, axis=1)
    loudest = float(energy.max())
    # A floor relative to the clip, so that digital silence is equally far below speech at every gain.
    raw_db = 10 * np.log10(np.maximum(energy, max(loudest, _SILENT_POWER) * 1e-8))
    active = (
        _active_frames(raw_db) if loudest > _SILENT_POWER else np.zeros(len(energy), dtype=bool)
    )
    active_rms = float(np.sqrt(energy[active].mean())) if active.any() else 0.0
    levels = Levels(
        active_rms_dbfs=_amplitude_dbfs(active_rms),
        peak_dbfs=_amplitude_dbfs(float(np.abs(samples).max())),
        floor_dbfs=max(_QUIETEST_DBFS, float(np.percentile(raw_db, 10))),
    )
    gain = _ACTIVE_RMS / active_rms if active_rms > 0 else 1.0
    samples = samples * gain
    window = np.hanning(_WIDTH)
    power = np.abs(np.fft.rfft(frames * (window * gain), FFT_SIZE, axis=1)) ** 2
    mel = power @ mel_filters().T
    mel_db = 10 * np.log10(np.maximum(mel / (float(mel.max()) or 1.0), 1e-8))
    where = np.flatnonzero(active)
    first, last = (int(where[0]), int(where[-1])) if len(where) else (0, len(active) - 1)
    energy_db = raw_db - (raw_db[active].mean() if active.any() else raw_db.mean())
    return Analysis(
        samples=samples,
        levels=levels,
        power=power,
        mel_db=mel_db,
        mfcc=mel_db @ _cosines().T,
        energy_db=energy_db,
        active=active,
        first=first,
        last=last,
        pitch=track_pitch(samples, RATE_HZ),
    )


def _active_frames(level_db: Floats) -> Bools:
    """Which frames are speech, by their level alone; single frames are smoothed away."""
    loud, quiet = (float(x) for x in np.percentile(level_db, [95, 10]))
    threshold = max(loud - _SPEECH_WITHIN_DB, min(quiet + _ABOVE_FLOOR_DB, loud - _FLOOR_BELOW_DB))
    above = level_db >= threshold
    # A majority of five frames.
    return np.convolve(above, np.ones(5), mode="same")[: len(above)] >= min(3, len(above))


def _amplitude_dbfs(amplitude: float) -> float:
    return max(_QUIETEST_DBFS, 20 * float(np.log10(max(amplitude, 1e-12))))


@lru_cache(maxsize=1)
def mel_filters() -> Floats:
    """Triangles on the mel scale of O'Shaughnessy, 50 Hz to 7.6 kHz; shape (40, 257)."""
    edges_mel = np.linspace(_mel(50.0), _mel(7600.0), N_MELS + 2)
    edges = 700 * (10 ** (edges_mel / 2595) - 1)
    hz = np.fft.rfftfreq(FFT_SIZE, 1 / RATE_HZ)
    rise = (hz - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - hz) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0.0, np.minimum(rise, fall))


def _mel(hz: float) -> float:
    return 2595 * float(np.log10(1 + hz / 700))


@lru_cache(maxsize=1)
def _cosines() -> Floats:
    """Orthonormal DCT-II, rows 0 to 16; shape (17, 40)."""
    k = np.arange(N_MFCC + 1)[:, None]
    basis = np.cos(np.pi * k * (np.arange(N_MELS) + 0.5) / N_MELS) * np.sqrt(2 / N_MELS)
    basis[0] /= np.sqrt(2)
    return np.asarray(basis)
