"""Does a model know when it is right? Calibration error, reliability bins, risk against coverage.

Conventions
-----------
* The confidence of an answer is the mapped score of the predicted label divided by the mapped mass (the sum
  of all mapped scores), so that vendors whose scores do not sum to one compare. Scores that cannot be
  shares (negative, no mass) give no confidence.
* Equal confidences are always treated alike (same bin, same step of the curve): the order of items never
  matters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from earwitness.errors import DataError

FloatArray = NDArray[np.float64]
Scheme = Literal["width", "mass"]


@dataclass(frozen=True, slots=True)
class Bin:
    """Items whose confidence lies in ``(low, high]`` (the first bin includes ``low``)."""

    low: float
    high: float
    mean_confidence: float
    accuracy: float
    count: int


def confidence(scores: Mapping[str, float], label: str) -> float:
    """Share of ``label`` in the mapped mass; NaN where the scores cannot be read as shares.

    Examples
    --------
    >>> confidence({"anger": 0.2, "fear": 0.6}, "fear")
    0.7499999999999999
    """
    values = list(scores.values())
    mass = math.fsum(values)
    if label not in scores or not mass > 0 or not math.isfinite(mass) or min(values) < 0:
        return math.nan
    return scores[label] / mass


def reliability_bins(
    confidences: NDArray[Any], correct: NDArray[Any], *, bins: int = 10, scheme: Scheme = "width"
) -> tuple[Bin, ...]:
    """Accuracy beside mean confidence in bins of equal width or equal mass; empty bins are left out.

    Parameters
    ----------
    confidences: (n,) in [0, 1].
    correct: (n,) truth values.
    scheme: ``width`` divides [0, 1] evenly; ``mass`` divides at quantiles of the confidences.

    Raises
    ------
    DataError: there are no items, the lengths differ, or a confidence is outside [0, 1].
    """
    conf, right = _checked(confidences, correct)
    if bins < 1:
        raise DataError("reliability bins", f"{bins} bins", "at least one")
    levels = np.linspace(0.0, 1.0, bins + 1)
    edges = levels if scheme == "width" else np.unique(np.quantile(conf, levels))
    inner = edges[1:-1]
    place = np.searchsorted(inner, conf, side="left")
    count = np.bincount(place, minlength=inner.size + 1)
    total_conf = np.bincount(place, weights=conf, minlength=inner.size + 1)
    total_right = np.bincount(place, weights=right, minlength=inner.size + 1)
    highs = edges[1:] if edges.size > 1 else edges
    return tuple(
        Bin(
            float(edges[i]),
            float(highs[i]),
            float(total_conf[i] / count[i]),
            float(total_right[i] / count[i]),
            int(count[i]),
        )
        for i in np.flatnonzero(count)
    )


def expected_calibration_error(
    confidences: NDArray[Any], correct: NDArray[Any], *, bins: int = 10, scheme: Scheme = "width"
) -> float:
    """Mean gap between confidence and accuracy over bins, weighted by their items.

    Notes
    -----
    M. P. Naeini et al., "Obtaining well calibrated probabilities using Bayesian binning", AAAI 2015;
    C. Guo et al., "On calibration of modern neural networks", ICML 2017. Biased upwards on few items.

    Examples
    --------
    >>> expected_calibration_error(np.full(10, 0.75), np.array([1] * 5 + [0] * 5))
    0.25
    """
    found = reliability_bins(confidences, correct, bins=bins, scheme=scheme)
    total = sum(each.count for each in found)
    return sum(abs(each.accuracy - each.mean_confidence) * each.count for each in found) / total


def risk_coverage(
    confidences: NDArray[Any], correct: NDArray[Any], *, total: int | None = None
) -> tuple[tuple[float, float], ...]:
    """Error rate among the most confident answers, as ever more of them are accepted.

    Parameters
    ----------
    total: number of items coverage is a share of; by default the answers given. With all items of a run,
        the curve ends where the answers with a confidence do.

    Returns
    -------
    (coverage, error rate) at each distinct confidence, from the most to the least confident.
    R. El-Yaniv and Y. Wiener, "On the foundations of noise-free selective classification", JMLR 11 (2010).

    Examples
    --------
    >>> risk_coverage(np.array([0.9, 0.6, 0.6, 0.4]), np.array([1, 1, 0, 0]))
    ((0.25, 0.0), (0.75, 0.3333333333333333), (1.0, 0.5))
    """
    conf, right = _checked(confidences, correct)
    ends, errors = _steps(conf, right)
    whole = conf.size if total is None else total
    if whole < conf.size:
        raise DataError(
            "risk-coverage curve", f"{conf.size} answers of {whole}", "answers <= total"
        )
    return tuple((float(k / whole), float(e / k)) for k, e in zip(ends, errors, strict=True))


def area_under_risk_coverage(confidences: NDArray[Any], correct: NDArray[Any]) -> float:
    """Mean error rate over all coverages 1/n .. n/n (AURC); low is good, the error rate is no better than chance.

    Notes
    -----
    Y. Geifman et al., "Bias-reduced uncertainty estimation for deep neural classifiers", ICLR 2019. Within
    equal confidences it is the expectation over their random order.

    Examples
    --------
    >>> area_under_risk_coverage(np.array([0.9, 0.8]), np.array([1, 0]))
    0.25
    """
    conf, right = _checked(confidences, correct)
    ends, errors = _steps(conf, right)
    taken = np.arange(1, conf.size + 1, dtype=np.float64)
    return float(np.mean(np.interp(taken, np.append(0, ends), np.append(0, errors)) / taken))


def _steps(conf: FloatArray, right: FloatArray) -> tuple[NDArray[Any], FloatArray]:
    """Answers taken and errors made at the end of each run of equal confidences, most confident first."""
    order = np.argsort(-conf, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(conf[order])), conf.size - 1)
    return ends + 1, np.cumsum(1 - right[order])[ends]


def _checked(confidences: NDArray[Any], correct: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    conf = np.asarray(confidences, dtype=np.float64)
    right = np.asarray(correct, dtype=np.float64)
    if conf.ndim != 1 or conf.shape != right.shape or conf.size == 0:
        raise DataError(
            "calibration",
            f"shapes {conf.shape} and {right.shape}",
            "one confidence for each answer",
        )
    if not ((conf >= 0) & (conf <= 1)).all():
        raise DataError("calibration", "a confidence outside 0 to 1", "shares of the mapped mass")
    return conf, right
