"""Tests of differences: sign-flip over clusters, McNemar over items, Holm over a family, and power.

The sign-flip test is the primary one of paired comparisons: if two systems are equally good, swapping them
within a cluster changes nothing, so the sign of each cluster's difference is a fair coin. McNemar's test
takes items as independent, which items of one speaker or scene are not; it is shown labelled so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from earwitness.errors import DataError

FloatArray = NDArray[np.float64]
Alternative = Literal["two-sided", "greater", "less"]

ENUMERATED_CLUSTERS = 14
"""Up to here all 2^n sign patterns of fractional differences are tried."""
MONTE_CARLO = 100_000
_EXACT_RANGE = 50_000_000
"""Largest (clusters x reachable sums) for which the exact distribution of whole differences is built."""
_TIE = 1e-12
"""Relative tolerance within which two sums of fractional differences count as equal."""


@dataclass(frozen=True, slots=True)
class SignFlip:
    """Result of :func:`sign_flip`. ``statistic`` is the sum of differences; ``n`` counts clusters that differ.

    ``method`` is ``exact`` or ``monte carlo (B)``.
    """

    p: float
    statistic: float
    n: int
    method: str


def sign_flip(
    differences: Sequence[float] | NDArray[Any],
    rng: np.random.Generator | None = None,
    *,
    alternative: Alternative = "two-sided",
    resamples: int = MONTE_CARLO,
) -> SignFlip:
    """Permutation test that paired differences are symmetric about zero, flipping whole clusters.

    Parameters
    ----------
    differences: (clusters,) difference of each cluster, such as items right in A minus items right in B.
    rng: needed only where sampling is (fractional differences of more than 14 clusters, or whole ones of
        enormous range); from :func:`earwitness.stats.streams.stream`.
    alternative: ``greater`` asks whether the sum is above zero.
    resamples: sign patterns drawn where not all can be tried.

    Raises
    ------
    DataError: there is no cluster, a difference is not finite, or sampling is needed without ``rng``.

    Notes
    -----
    R. A. Fisher, *The Design of Experiments* (1935), section 21. Whole differences get their exact
    distribution by convolution for any number of clusters; fractional ones by enumeration up to 14 clusters
    and otherwise by sampling with ``p = (1 + k) / (1 + B)``: B. Phipson and G. K. Smyth, "Permutation
    p-values should never be zero", Stat. Appl. Genet. Mol. Biol. 9 (2010).

    Examples
    --------
    >>> sign_flip([1, 1, 1, 1, 1]).p
    0.0625
    >>> sign_flip([1, 1, 1, 1, 1], alternative="greater").p
    0.03125
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise DataError("sign-flip test", f"differences of shape {values.shape}", "one per cluster")
    if not np.isfinite(values).all():
        raise DataError("sign-flip test", "a difference that is not finite", "finite differences")
    total = float(values.sum())
    moving = values[values != 0]  # flipping a zero changes nothing
    if moving.size == 0:
        return SignFlip(1.0, 0.0, 0, "exact")
    size = np.sort(np.abs(moving))
    whole = bool((size == np.floor(size)).all())
    if whole and size.size * (2 * size.sum() + 1) <= _EXACT_RANGE:
        return SignFlip(_exact_whole(size, total, alternative), total, size.size, "exact")
    if size.size <= ENUMERATED_CLUSTERS:
        bits = (np.arange(2**size.size)[:, None] >> np.arange(size.size)) & 1
        extreme = _extreme((1 - 2 * bits) @ size, total, alternative, size.sum())
        return SignFlip(float(extreme.mean()), total, size.size, "exact")
    if rng is None:
        raise DataError(
            "sign-flip test",
            f"{size.size} clusters with fractional differences and no generator",
            "a generator",
            "Pass rng=stream(seed, name).",
        )
    extreme_count = 0
    chunk = max(1, 2_000_000 // size.size)
    for start in range(0, resamples, chunk):
        shape = (min(chunk, resamples - start), size.size)
        signs = 1 - 2 * rng.integers(0, 2, size=shape, dtype=np.int8)
        sums = signs.astype(np.float64) @ size
        extreme_count += int(_extreme(sums, total, alternative, size.sum()).sum())
    p = (1 + extreme_count) / (1 + resamples)
    return SignFlip(p, total, size.size, f"monte carlo ({resamples})")


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """Exact two-sided McNemar test, items taken as independent.

    Parameters
    ----------
    only_a, only_b: items that only the first, or only the second system has right.

    Returns
    -------
    The p-value: twice the smaller binomial tail at one half, at most 1; 1 where nothing differs.
    Q. McNemar, "Note on the sampling error of the difference between correlated proportions",
    Psychometrika 12 (1947), in its exact binomial form.

    Examples
    --------
    >>> round(mcnemar_exact(10, 2), 5)
    0.03857
    """
    if only_a < 0 or only_b < 0:
        raise DataError("McNemar test", f"counts {only_a} and {only_b}", "counts of at least 0")
    if only_a + only_b == 0:
        return 1.0
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(only_a, only_b), only_a + only_b, 0.5)))


def holm(p_values: Sequence[float] | NDArray[Any]) -> FloatArray:
    """p-values adjusted for a family by Holm's step-down method.

    S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979).

    Raises
    ------
    DataError: a value is not a probability.

    Examples
    --------
    >>> [round(float(p), 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise DataError("Holm's method", f"p-values {p.tolist()}", "numbers between 0 and 1")
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * (p.size - np.arange(p.size)))
    out = np.empty_like(p)
    out[order] = np.minimum(stepped, 1.0)
    return out


def smallest_detectable_difference(
    differences: NDArray[Any], sizes: NDArray[Any], *, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Smallest true difference in accuracy that these clusters would show with probability ``power``.

    Parameters
    ----------
    differences: (clusters,) items right in A minus items right in B, per cluster.
    sizes: (clusters,) items per cluster.
    alpha: two-sided level of the test.

    Returns
    -------
    A difference in accuracy (0.05 is five points); infinite with fewer than two clusters.

    Notes
    -----
    ``(z_{1-alpha/2} + z_power) SE``, SE the cluster-robust standard error of the mean difference of items
    (linearised ratio, with ``C/(C-1)``).

    Examples
    --------
    >>> d = np.array([1, -1, 0, 2, -1, 0, 1, 0])
    >>> round(smallest_detectable_difference(d, np.full(8, 10)), 3)
    0.103
    """
    d = np.asarray(differences, dtype=np.float64)
    n = np.asarray(sizes, dtype=np.float64)
    if d.shape != n.shape or d.ndim != 1 or not n.sum() > 0:
        raise DataError(
            "power", f"shapes {d.shape} and {n.shape}", "one difference and size a cluster"
        )
    if d.size < 2:
        return math.inf
    residual = d - n * (d.sum() / n.sum())
    error = math.sqrt(d.size / (d.size - 1) * float(residual @ residual)) / float(n.sum())
    return _z(1 - alpha / 2, power) * error


def planned_detectable_difference(
    n_items: int,
    *,
    discordant: float = 0.3,
    items_per_cluster: float = 1.0,
    correlation: float = 0.0,
    alpha: float = 0.05,
    power: float = 0.8,
) -> float:
    """Smallest detectable difference of two systems before any of them has run.

    Parameters
    ----------
    discordant: share of items on which the two will differ in being right.
    items_per_cluster, correlation: design effect ``1 + (m - 1) rho`` of items that belong together.

    Notes
    -----
    Variance of one paired difference is about ``discordant``. L. Kish, *Survey Sampling* (1965), for the
    design effect.

    Examples
    --------
    >>> round(planned_detectable_difference(280), 3)
    0.092
    """
    if n_items < 1 or not 0 < discordant <= 1:
        raise DataError(
            "power", f"{n_items} items, discordant {discordant}", "items, and a share in (0, 1]"
        )
    effect = 1 + (items_per_cluster - 1) * correlation
    return _z(1 - alpha / 2, power) * math.sqrt(discordant * effect / n_items)


def _z(*levels: float) -> float:
    return sum(NormalDist().inv_cdf(level) for level in levels)


def _extreme(
    sums: FloatArray, total: float, alternative: Alternative, scale: float
) -> NDArray[np.bool_]:
    slack = _TIE * scale
    if alternative == "greater":
        return np.asarray(sums >= total - slack)
    if alternative == "less":
        return np.asarray(sums <= total + slack)
    return np.asarray(np.abs(sums) >= abs(total) - slack)


def _exact_whole(size: FloatArray, total: float, alternative: Alternative) -> float:
    """Distribution of the sum of ``+-size`` by convolution, over whole sums ``-S .. S``."""
    steps = size.astype(np.int64)
    reach = int(steps.sum())
    chance = np.zeros(2 * reach + 1)
    chance[reach] = 1.0
    for step in steps:
        shifted = np.zeros_like(chance)
        shifted[step:] += 0.5 * chance[: chance.size - step]
        shifted[: chance.size - step] += 0.5 * chance[step:]
        chance = shifted
    sums = np.arange(-reach, reach + 1, dtype=np.float64)
    return min(1.0, float(chance[_extreme(sums, total, alternative, 0.0)].sum()))
