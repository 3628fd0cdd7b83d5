"""Sensitivity of yes/no answers: d-prime and criterion with the log-linear correction."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earwitness.errors import DataError

FloatArray = NDArray[np.float64]


class Sensitivity(NamedTuple):
    """``d_prime`` (0 is deaf), ``criterion`` (above 0 leans to "no") and the corrected rates behind them."""

    d_prime: FloatArray
    criterion: FloatArray
    hit_rate: FloatArray
    false_alarm_rate: FloatArray


def d_prime(
    hits: NDArray[Any] | int,
    signals: NDArray[Any] | int,
    false_alarms: NDArray[Any] | int,
    catches: NDArray[Any] | int,
) -> Sensitivity:
    """Signal-detection sensitivity from counts, vectorised over arrays of counts.

    Parameters
    ----------
    hits, signals: "yes" answers where the sound was there, and how often it was there.
    false_alarms, catches: "yes" answers where it was not, and how often it was not.

    Raises
    ------
    DataError: more hits than signals, or more false alarms than catches.

    Notes
    -----
    The log-linear rule adds one half to the counts and 1 to the totals, in every case and not only at rates
    of 0 and 1: M. J. Hautus, "Corrections for extreme proportions and their biasing effects on estimated
    values of d'", Behav. Res. Methods 27 (1995). ``d' = z(H) - z(F)``, ``c = -(z(H) + z(F)) / 2``:
    N. A. Macmillan and C. D. Creelman, *Detection Theory* (2005).

    Examples
    --------
    >>> found = d_prime(40, 50, 10, 50)
    >>> round(float(found.d_prime), 3), round(float(found.criterion), 3)
    (1.642, 0.0)
    """
    from scipy.special import ndtri

    h, s, f, c = (
        np.asarray(value, dtype=np.float64) for value in (hits, signals, false_alarms, catches)
    )
    if (h < 0).any() or (f < 0).any() or (h > s).any() or (f > c).any():
        raise DataError(
            "d-prime", "more yes answers than questions, or negative counts", "0 <= yes <= asked"
        )
    hit_rate, false_alarm_rate = (h + 0.5) / (s + 1), (f + 0.5) / (c + 1)
    z_hit, z_false = ndtri(hit_rate), ndtri(false_alarm_rate)
    return Sensitivity(z_hit - z_false, -(z_hit + z_false) / 2, hit_rate, false_alarm_rate)
