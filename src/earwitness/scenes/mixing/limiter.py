"""A look-ahead limiter for one bus: peaks go down, everything else stays as it is to the bit.

Where a sample is over the ceiling, the gain that brings it down is held over :data:`REACH_S` on both sides (a sliding
minimum) and smoothed with a window of the same width. Every value of the smoothed gain is a mean of values that all
know of the peak, so no peak gets through; nothing is delayed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from earwitness.audio.decibels import amplitude_from_db
from earwitness.audio.types import samples_at

if TYPE_CHECKING:
    import numpy.typing as npt

    from earwitness.audio.types import Samples

REACH_S = 0.003
"""About the shortest in which a gain can move by some decibels without being heard as a click."""

_BLOCK = 4096


def limit(samples: Samples, ceiling_dbfs: float, rate: int) -> float:
    """Bring the peaks of a bus under a ceiling, in place.

    Parameters
    ----------
    samples: float32, shape (n,).
    ceiling_dbfs: over 0 where a gain that follows brings it down.

    Returns
    -------
    float: the largest reduction in dB; 0.0 where nothing was done.

    Examples
    --------
    >>> wave = np.zeros(1000, np.float32)
    >>> wave[500] = 2.0
    >>> round(limit(wave, 0.0, 44100), 2), round(float(wave.max()), 5)
    (6.02, 1.0)
    """
    from scipy.ndimage import minimum_filter1d

    ceiling = amplitude_from_db(ceiling_dbfs)
    over = _over(samples, ceiling)
    if not len(over):
        return 0.0
    reach = samples_at(REACH_S, rate)
    width = 2 * reach + 1
    window = np.hanning(width + 2)[1:-1]
    window /= window.sum()
    least = 1.0
    # Peaks whose gains reach into each other are worked on together.
    for group in np.split(over, np.flatnonzero(np.diff(over) > 4 * reach) + 1):
        first, last = max(int(group[0]) - 2 * reach, 0), int(group[-1]) + 2 * reach + 1
        part = samples[first:last]
        wanted = np.ones(len(part) + 2 * reach)
        # A hair under it, as the gain is rounded to float32 like the product.
        wanted[group - first + reach] = ceiling * (1 - 1e-6) / np.abs(samples[group])
        held = minimum_filter1d(wanted, width, mode="nearest")
        gain = np.convolve(held, window, "valid")
        least = min(least, float(gain.min()))
        part *= gain.astype(np.float32)
    return -20.0 * float(np.log10(least))


def _over(samples: Samples, ceiling: float) -> npt.NDArray[np.intp]:
    """Positions over a ceiling; blocks without any are told by their largest and smallest sample alone."""
    whole = len(samples) // _BLOCK * _BLOCK
    table = samples[:whole].reshape(-1, _BLOCK)
    loud = np.flatnonzero(np.maximum(table.max(axis=1), -table.min(axis=1)) > ceiling)
    parts = [
        np.flatnonzero(np.abs(samples[first : first + _BLOCK]) > ceiling) + first
        for first in (*(loud * _BLOCK), whole)
    ]
    return np.concatenate(parts)
