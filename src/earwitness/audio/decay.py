"""How a room's sound dies away: measures of impulse responses, and the textbook formulas."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from earwitness.audio.types import Samples

    Floats = npt.NDArray[np.float64]

Point = tuple[float, float, float]

SPEED_OF_SOUND_M_S = 343.0
"""At 20 degrees Celsius."""

T30_DB = (-5.0, -35.0)
"""The stretch of a decay that ISO 3382 fits a line to."""


def sabine_rt60_s(size_m: Point, absorption: float) -> float:
    """Sabine's reverberation time of a box: 24 ln(10) V / (c S a)."""
    return _room_constant_s(size_m) / absorption


def eyring_rt60_s(size_m: Point, absorption: float) -> float:
    """Eyring's reverberation time (1930): Sabine's with -ln(1 - a) for a; 0 where all is absorbed."""
    if absorption >= 1:
        return 0.0
    return _room_constant_s(size_m) / -math.log1p(-absorption)


def reverberation_time_s(
    response: Samples, rate: int, from_db: float = T30_DB[0], to_db: float = T30_DB[1]
) -> float | None:
    """Time for a decay of 60 dB, from a line through the Schroeder curve (ISO 3382: T30 by default).

    M. R. Schroeder, *New method of measuring reverberation time*, J. Acoust. Soc. Am. 37 (1965). The direct sound,
    sample 0, is left out: near the source its fall would be taken for the beginning of the decay.

    Parameters
    ----------
    response: impulse response, shape (n,).
    from_db, to_db: the stretch of the decay the line is fitted to.

    Returns
    -------
    float or None: seconds; ``None`` if the response does not decay that far, or holds fewer than three samples
    there (a direct sound and nothing else).
    """
    return slope_time_s(decay_curve_db(response[1:]), rate, from_db, to_db)


def decay_curve_db(response: Samples) -> Floats:
    """Schroeder's backward integral: energy still to come at each sample, in dB of all; NaN for none."""
    return energy_decay_db(np.square(response, dtype=np.float64))


def direct_to_reverberant_db(response: Samples) -> float | None:
    """Energy of sample 0 over that of the rest, in dB; ``None`` without any rest."""
    rest = float(np.square(response[1:], dtype=np.float64).sum())
    return 10 * math.log10(float(response[0]) ** 2 / rest) if rest and response[0] else None


def energy_decay_db(energy: Floats) -> Floats:
    """Energy still to come, in dB of all, for energies in equal steps of time; NaN where none is left."""
    left = np.cumsum(energy[::-1])[::-1]
    if not len(left) or left[0] <= 0:
        return np.full(len(left), np.nan)
    shares = left / left[0]
    return np.where(shares > 0, 10 * np.log10(np.where(shares > 0, shares, 1.0)), np.nan)


def slope_time_s(
    curve: Floats, rate: float, from_db: float = T30_DB[0], to_db: float = T30_DB[1]
) -> float | None:
    """Time for 60 dB at the slope of a decay curve between two levels; ``None`` if it holds too little for a line."""
    inside = np.flatnonzero((curve <= from_db) & (curve >= to_db))
    if len(inside) < 3 or not np.any(curve < to_db):
        return None
    slope, _ = np.polyfit(inside / rate, curve[inside], 1)
    return float(-60.0 / slope) if slope < 0 else None


def _room_constant_s(size_m: Point) -> float:
    x, y, z = size_m
    return 24 * math.log(10) * x * y * z / (SPEED_OF_SOUND_M_S * 2 * (x * y + y * z + z * x))
