"""Intervals: Wilson for one proportion of independent items, the cluster bootstrap for everything else.

Conventions
-----------
* A *unit* is what is drawn as a whole: a speaker, a scene, or an item where items are independent.
* A bootstrap resample draws as many units as there are, with replacement. Since every figure used here is
  a function of summed counts, a resample is a multinomial vector of weights times the counts per unit; no
  item is ever touched again.
* A resample in which a figure is undefined (a class without items in it) is left out of that figure's
  quantiles. ``undefined`` says which share that was.
* Quantile levels are widened for few units (:func:`expanded_levels`), because the plain percentile
  interval of few units is too narrow. Below :data:`FEW_CLUSTERS` units an interval is said to be rough.
* An interval never excludes its own figure: where a skewed resample distribution would put a limit on the
  wrong side, the limit is the figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earwitness.errors import DataError

FloatArray = NDArray[np.float64]
Metric = Callable[[FloatArray], FloatArray]
"""Maps confusion counts (..., rows, columns) to figures (...) or (..., k); undefined ones are NaN."""

LEVEL = 0.95
RESAMPLES = 10_000
FEW_CLUSTERS = 10
"""Below this many units an interval is called rough."""

_CHUNK_CELLS = 2_000_000
"""Weights held at once (resamples x units); bounds memory to some tens of MiB, never the result."""
_FLOAT32_EXACT = 2**24
"""Integers up to here are exact in float32, so that the faster product loses nothing."""


class Interval(NamedTuple):
    """Lower and upper limit."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """A figure, or several at once, with its bootstrap interval.

    ``value``, ``low``, ``high`` and ``undefined`` (share of resamples left out) have the shape the metric
    returns for one confusion matrix. ``few`` is set below :data:`FEW_CLUSTERS` units.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    undefined: FloatArray
    n_clusters: int
    resamples: int

    @property
    def few(self) -> bool:
        return self.n_clusters < FEW_CLUSTERS


def wilson(right: float, n: float, level: float = LEVEL) -> Interval:
    """Wilson score interval of a proportion of ``n`` independent items.

    Parameters
    ----------
    right: number of successes, 0 <= right <= n. Need not be whole (an effective number).
    n: number of items, above 0.
    level: confidence level in (0, 1).

    Raises
    ------
    DataError: there are no items, or more successes than items.

    Notes
    -----
    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927):
    ``(p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)``.

    Examples
    --------
    >>> low, high = wilson(124, 280)
    >>> round(100 * low, 1), round(100 * high, 1)
    (38.6, 50.1)
    """
    if not n > 0:
        raise DataError("wilson interval", f"{n} items", "at least one item")
    if not 0 <= right <= n:
        raise DataError("wilson interval", f"{right} right of {n}", "0 <= right <= n")
    z = _normal_quantile(0.5 + _checked_level(level) / 2)
    p = right / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    # The limits are exact at the ends; rounding must not push them past the figure.
    low = 0.0 if right == 0 else min(p, max(0.0, centre - half))
    high = 1.0 if right == n else max(p, min(1.0, centre + half))
    return Interval(low, high)


def expanded_levels(n_units: int, level: float = LEVEL) -> tuple[float, float]:
    """Quantile levels of a bootstrap distribution that give about ``level`` with few units.

    Notes
    -----
    T. C. Hesterberg, "What teachers should know about the bootstrap", The American Statistician 69 (2015),
    the *expanded percentile interval*: ``Phi(-sqrt(n/(n-1)) t_{n-1})`` in place of ``(1-level)/2``, which
    undoes the bias of the bootstrap variance and uses t in place of the normal quantile.

    Examples
    --------
    >>> [round(x, 4) for x in expanded_levels(1000)]
    [0.0248, 0.9752]
    >>> [round(x, 4) for x in expanded_levels(12)]
    [0.0108, 0.9892]
    """
    from scipy.special import ndtr, stdtrit

    tail = (1 - _checked_level(level)) / 2
    if n_units < 2:
        return 0.0, 1.0
    t = float(stdtrit(n_units - 1, tail))
    expanded = float(ndtr(math.sqrt(n_units / (n_units - 1)) * t))
    return expanded, 1 - expanded


def resample_sums(rows: NDArray[Any], resamples: int, rng: np.random.Generator) -> FloatArray:
    """Sums over units drawn with replacement, as many as there are.

    Parameters
    ----------
    rows: (units, features) numbers, one row a unit.
    resamples: how many times to draw.
    rng: where the draws come from.

    Returns
    -------
    (resamples, features). The order of rows has no influence on the result.

    Raises
    ------
    DataError: there are no units.

    Examples
    --------
    >>> from earwitness.stats.streams import stream
    >>> sums = resample_sums(np.array([[1, 1], [0, 1]]), 1000, stream(0, "example"))
    >>> bool((sums[:, 1] == 2).all()), bool(0.9 < sums[:, 0].mean() < 1.1)
    (True, True)
    """
    if rows.ndim != 2 or rows.shape[0] == 0:
        raise DataError(
            "bootstrap", f"an array of shape {rows.shape}", "(units, features) with units"
        )
    distinct, times = _distinct(rows)
    n, n_distinct = rows.shape[0], distinct.shape[0]
    if n_distinct == 1:
        return np.repeat(distinct.astype(np.float64) * n, resamples, axis=0)
    # Units with the same counts are interchangeable: drawing how often each kind comes is the same
    # distribution at a fraction of the work (thousands of items fall into a few dozen kinds).
    by_kind = n_distinct * 8 <= n
    largest = float(np.abs(distinct).max(initial=0)) * n
    whole = bool(np.issubdtype(rows.dtype, np.integer)) and largest < _FLOAT32_EXACT
    dtype = np.float32 if whole else np.float64
    table: NDArray[Any] = (distinct if by_kind else np.repeat(distinct, times, axis=0)).astype(
        dtype
    )
    chunk = max(1, _CHUNK_CELLS // table.shape[0])
    out = np.empty((resamples, rows.shape[1]))
    for start in range(0, resamples, chunk):
        size = min(chunk, resamples - start)
        if by_kind:
            weights = rng.multinomial(n, times / n, size=size)
        else:
            drawn = rng.integers(0, n, size=(size, n), dtype=np.uint32)
            drawn += (np.arange(size, dtype=np.uint32) * np.uint32(n))[:, None]
            weights = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        out[start : start + size] = np.matmul(weights.astype(dtype), table)
    return out


def resample_confusions(
    counts: NDArray[Any], resamples: int, rng: np.random.Generator
) -> FloatArray:
    """Confusion counts of resampled units: (units, rows, columns) to (resamples, rows, columns)."""
    if counts.ndim != 3:
        raise DataError("bootstrap", f"counts of shape {counts.shape}", "(units, rows, columns)")
    n, height, width = counts.shape
    return resample_sums(counts.reshape(n, -1), resamples, rng).reshape(-1, height, width)


def percentile_interval(
    samples: FloatArray, value: FloatArray, n_units: int, level: float = LEVEL
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Limits from resampled figures.

    Parameters
    ----------
    samples: (resamples, ...) figures, NaN where undefined.
    value: (...) the figure itself, NaN where undefined.
    n_units: number of units that were resampled.

    Returns
    -------
    low, high and share of undefined resamples, each of the shape of ``value``; limits are NaN where the
    figure is, or where no resample defines it.
    """
    value = np.asarray(value, dtype=np.float64)
    ordered = np.sort(samples, axis=0)  # NaN last
    defined = np.sum(~np.isnan(ordered), axis=0)
    lower, upper = expanded_levels(n_units, level)
    low = np.fmin(_quantile(ordered, defined, lower), value)
    high = np.fmax(_quantile(ordered, defined, upper), value)
    nothing = np.isnan(value) | (defined == 0)
    low, high = np.where(nothing, np.nan, low), np.where(nothing, np.nan, high)
    return low, high, 1 - defined / samples.shape[0]


def cluster_bootstrap(
    counts: NDArray[Any],
    metric: Metric,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Bootstrap:
    """Interval of any figure of a confusion matrix, drawing whole clusters.

    Parameters
    ----------
    counts: (clusters, rows, columns) counts of each cluster (:func:`earwitness.stats.confusion.by_cluster`).
    metric: vectorised over leading axes; see :mod:`earwitness.stats.confusion` for the usual ones.
    rng: from :func:`earwitness.stats.streams.stream`.

    Raises
    ------
    DataError: there are no clusters.

    Notes
    -----
    A. C. Davison and D. V. Hinkley, *Bootstrap Methods and their Application* (1997), section 3.8: with
    items that belong together, whole groups are drawn.

    Examples
    --------
    >>> from earwitness.stats.confusion import accuracy
    >>> from earwitness.stats.streams import stream
    >>> counts = np.zeros((20, 2, 3), dtype=int)
    >>> counts[:, 0, 0], counts[:10, 1, 1], counts[10:, 1, 2] = 1, 1, 1
    >>> found = cluster_bootstrap(counts, accuracy, stream(0, "example"))
    >>> float(found.value), round(float(found.low), 2), round(float(found.high), 2), found.few
    (0.75, 0.62, 0.88, False)
    """
    resampled = resample_confusions(counts, resamples, rng)
    value = np.asarray(metric(counts.sum(axis=0).astype(np.float64)))
    low, high, undefined = percentile_interval(metric(resampled), value, counts.shape[0], level)
    return Bootstrap(value, low, high, undefined, counts.shape[0], resamples)


def _distinct(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Different rows in lexical order, and how often each occurs."""
    order = np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(rows.shape[0])
    ordered = np.ascontiguousarray(rows[order])
    first = np.ones(rows.shape[0], dtype=bool)
    first[1:] = np.any(ordered[1:] != ordered[:-1], axis=1)
    starts = np.flatnonzero(first)
    return ordered[starts], np.diff(np.append(starts, rows.shape[0])).astype(np.int64)


def _quantile(ordered: FloatArray, defined: NDArray[Any], q: float) -> FloatArray:
    """Linearly interpolated quantile of the first ``defined`` entries along axis 0."""
    position = q * np.maximum(defined - 1, 0)
    below = np.floor(position).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(defined - 1, 0))
    low = np.take_along_axis(ordered, below[None], axis=0)[0]
    high = np.take_along_axis(ordered, above[None], axis=0)[0]
    return np.asarray(low + (position - below) * (high - low))


def _checked_level(level: float) -> float:
    if not 0 < level < 1:
        raise DataError("interval", f"level {level}", "a level between 0 and 1, such as 0.95")
    return level


def _normal_quantile(q: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(q)
