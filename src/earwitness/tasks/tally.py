"""Decisions as arrays, and figures of them with the interval that fits.

Which interval a figure gets
----------------------------
* every cluster holds one decision: items are independent; proportions get Wilson, the rest a bootstrap by item;
* several clusters: a bootstrap that draws whole clusters, said to be rough below ten of them;
* one cluster only: nothing can be said beyond it; items are drawn, and the method says so.

Where every resample gives 0, or every one gives 1, the bootstrap has no width although the truth may differ;
then the interval is Wilson's with the number of clusters as its number of items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earwitness.errors import DataError
from earwitness.stats.confusion import NO_LABEL, by_cluster, ratio
from earwitness.stats.intervals import (
    FEW_CLUSTERS,
    Metric,
    percentile_interval,
    resample_confusions,
    resample_sums,
    wilson,
)
from earwitness.tasks.records import Decision, Estimate

FloatArray = NDArray[np.float64]
NO_LABEL_NAME = "no label"
"""Name of the last column of a confusion table."""
NOTHING = "nothing counted"
"""Method of a figure that is NaN."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Decisions as codes. ``unit`` names what intervals draw (``speaker``, or ``item`` where each item is its own)."""

    labels: tuple[str, ...]
    gold: NDArray[np.int64]
    predicted: NDArray[np.int64]
    cluster: NDArray[np.int64]
    n_clusters: int
    unit: str

    @property
    def n(self) -> int:
        return int(self.gold.size)

    @property
    def right(self) -> NDArray[np.bool_]:
        return np.asarray(self.gold == self.predicted)

    @property
    def independent(self) -> bool:
        return self.n_clusters == self.n

    def where(self, mask: NDArray[Any]) -> Tally:
        """The same for some of the items."""
        used, codes = np.unique(self.cluster[mask], return_inverse=True)
        return Tally(
            self.labels, self.gold[mask], self.predicted[mask], codes, used.size, self.unit
        )


def tally(name: str, decisions: Sequence[Decision], labels: Sequence[str], unit: str) -> Tally:
    """Codes of decisions. Clusters are numbered by name, so that their order never matters.

    Raises
    ------
    DataError: there are no decisions, or a gold or predicted label is not among ``labels``.
    """
    if not decisions:
        raise DataError(name, "no items to score", "at least one item with a gold label")
    code = {label: k for k, label in enumerate(labels)}
    if len(code) != len(labels) or not code:
        raise DataError(name, f"labels {list(labels)}", "at least one label, each once")
    for decision in decisions:
        for what, label in (("gold", decision.gold), ("predicted", decision.outcome.label)):
            if label is not None and label not in code:
                raise DataError(
                    f"{name}, item {decision.item_id!r}",
                    f"{what} label {label!r}",
                    "one of " + ", ".join(labels),
                    "Map it with a label map, or leave the outcome unmapped.",
                )
    names = sorted({decision.cluster for decision in decisions})
    place = {cluster: k for k, cluster in enumerate(names)}
    own = all(decision.cluster == decision.item_id for decision in decisions)
    return Tally(
        labels=tuple(labels),
        gold=np.array([code[d.gold] for d in decisions], dtype=np.int64),
        predicted=np.array(
            [NO_LABEL if d.outcome.label is None else code[d.outcome.label] for d in decisions],
            dtype=np.int64,
        ),
        cluster=np.array([place[d.cluster] for d in decisions], dtype=np.int64),
        n_clusters=len(names),
        unit="item" if own else unit,
    )


@dataclass(frozen=True, slots=True)
class Resampled:
    """Confusion counts of a tally and of its resamples, from which any number of figures is read."""

    counts: FloatArray
    """(rows, columns) of all items."""
    samples: FloatArray
    """(resamples, rows, columns)."""
    n_units: int
    method: str
    unit: str

    def estimates(self, metric: Metric, n_units: Sequence[int] | None = None) -> list[Estimate]:
        """One estimate for each figure the metric returns; ``n_units`` says how many units bear on each."""
        value = np.atleast_1d(metric(self.counts))
        samples = metric(self.samples).reshape(self.samples.shape[0], -1)
        low, high, _ = percentile_interval(samples, value, self.n_units)
        units = [self.n_units] * value.size if n_units is None else n_units
        return [
            _with_width(float(v), float(lo), float(hi), self.method, n, self.unit)
            for v, lo, hi, n in zip(value, low, high, units, strict=True)
        ]

    def estimate(self, metric: Metric) -> Estimate:
        return self.estimates(metric)[0]


def resampled(data: Tally, resamples: int, rng: np.random.Generator) -> Resampled:
    """Draw whole clusters, or items where there is a single cluster."""
    units, n_units = _units(data)
    counts = by_cluster(data.gold, data.predicted, units, len(data.labels), n_units)
    return Resampled(
        counts=counts.sum(axis=0).astype(np.float64),
        samples=resample_confusions(counts, resamples, rng),
        n_units=n_units,
        method=bootstrap_method(data),
        unit=data.unit if data.n_clusters > 1 else "item",
    )


def bootstrap_method(data: Tally) -> str:
    """How the bootstrap of this tally is named: ``bootstrap by speaker (24)``."""
    if data.n_clusters == 1 and data.n > 1:
        return f"bootstrap by item ({data.n}; one {data.unit})"
    few = ", few" if data.n_clusters < FEW_CLUSTERS else ""
    return f"bootstrap by {data.unit} ({data.n_clusters}{few})"


def proportion(
    data: Tally,
    hit: NDArray[Any],
    counted: NDArray[Any],
    resamples: int,
    rng: np.random.Generator,
) -> Estimate:
    """Share of counted items that are hits: Wilson where items are independent, else by cluster.

    Parameters
    ----------
    hit, counted: (n,) truth values for the items of the tally; hits outside ``counted`` are ignored.
    """
    subset = data.where(counted)
    hits = np.asarray(hit)[counted].astype(np.int64)
    top, bottom = int(hits.sum()), subset.n
    if bottom == 0:
        return Estimate(np.nan, np.nan, np.nan, NOTHING, 0, 0)
    if subset.independent:
        return wilson_estimate(top, bottom)
    if subset.n_clusters == 1:
        return wilson_estimate(top, bottom, f"wilson, items of one {subset.unit}")
    per_unit = np.stack(
        [
            np.bincount(subset.cluster, weights=hits, minlength=subset.n_clusters),
            np.bincount(subset.cluster, minlength=subset.n_clusters),
        ],
        axis=1,
    ).astype(np.int64)
    sums = resample_sums(per_unit, resamples, rng)
    value = np.asarray(top / bottom)
    low, high, _ = percentile_interval(ratio(sums[:, 0], sums[:, 1]), value, subset.n_clusters)
    found = _with_width(
        float(value),
        float(low),
        float(high),
        bootstrap_method(subset),
        subset.n_clusters,
        subset.unit,
    )
    return Estimate(found.value, found.low, found.high, found.method, top, bottom)


def wilson_estimate(right: int, n: int, method: str = "wilson") -> Estimate:
    """Proportion of independent items; NaN where there are none."""
    if n == 0:
        return Estimate(np.nan, np.nan, np.nan, NOTHING, 0, 0)
    low, high = wilson(right, n)
    return Estimate(right / n, low, high, method, right, n)


def stratified_recall(
    data: Tally, weights: NDArray[Any], resamples: int, rng: np.random.Generator
) -> Estimate:
    """Prior-weighted recall of independent items, drawing items within each gold label."""
    support = np.bincount(data.gold, minlength=len(data.labels))
    right = np.bincount(data.gold[data.right], minlength=len(data.labels))
    used = np.flatnonzero(weights > 0)
    share = weights[used] / weights[used].sum()
    recall = right[used] / support[used]
    value = float(recall @ share)
    drawn = rng.binomial(support[used], recall, size=(resamples, used.size)) / support[used]
    low, high, _ = percentile_interval(drawn @ share, np.asarray(value), data.n)
    method = f"stratified bootstrap by {data.unit} ({data.n})"
    return _with_width(value, float(low), float(high), method, data.n, data.unit)


def units_per_label(data: Tally, codes: NDArray[Any]) -> list[int]:
    """In how many units each label occurs among ``codes`` (gold or predicted)."""
    units, _ = _units(data)
    return [int(np.unique(units[codes == k]).size) for k in range(len(data.labels))]


def checked_priors(
    name: str, priors: Mapping[str, float], labels: Sequence[str], support: NDArray[Any]
) -> FloatArray:
    """Weights in the order of ``labels``.

    Raises
    ------
    DataError: a label is unknown, a weight is not a number of at least 0, all are 0, or a label with weight
        has no items to learn its recall from.
    """
    for label, weight in priors.items():
        if label not in labels:
            raise DataError("priors", f"label {label!r}", "one of " + ", ".join(labels))
        if not (np.isfinite(weight) and weight >= 0):
            raise DataError("priors", f"weight {weight} of {label!r}", "a number of at least 0")
    weights = np.array([priors.get(label, 0.0) for label in labels], dtype=np.float64)
    if not weights.sum() > 0:
        raise DataError("priors", "no label with a weight above 0", "shares of your own traffic")
    for label, weight, n in zip(labels, weights, support, strict=True):
        if weight > 0 and n == 0:
            raise DataError(
                f"priors for {name}",
                f"weight {weight} of {label!r}, of which the set has no items",
                "weights of labels that occur",
                "Set this weight to 0, or use a set with such items.",
            )
    return weights


def _units(data: Tally) -> tuple[NDArray[np.int64], int]:
    if data.n_clusters == 1:
        return np.arange(data.n, dtype=np.int64), data.n
    return data.cluster, data.n_clusters


def _with_width(
    value: float, low: float, high: float, method: str, n_units: int, unit: str
) -> Estimate:
    if np.isnan(value):
        return Estimate(value, low, high, NOTHING)
    if low == high == value and value in (0.0, 1.0) and n_units > 0:
        limits = wilson(value * n_units, n_units)
        plural = "" if n_units == 1 else "s"
        return Estimate(
            value, limits.low, limits.high, f"wilson over {n_units} {unit}{plural}, all alike"
        )
    return Estimate(value, low, high, method)
