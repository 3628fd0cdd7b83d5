"""Two sets of answers to the same items as counts by cluster and class, and differences made of them.

A difference is made of what the headline is made of. For accuracy every item weighs the same; for balanced accuracy
an item weighs 1 / (classes x items of its class), so that intervals, tests and power are those of balanced accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earwitness.stats.confusion import ratio
from earwitness.stats.intervals import wilson

FloatArray = NDArray[np.float64]
Difference = Callable[[NDArray[np.int64] | FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class Paired:
    """Answers of two sides to the same items.

    Attributes
    ----------
    table: (clusters, classes, 3): items right in the first, right in the second, all items.
    labels: names of the classes, in order.
    balanced: whether classes weigh the same, or items do.
    """

    table: NDArray[np.int64]
    labels: tuple[str, ...]
    balanced: bool

    @property
    def n_clusters(self) -> int:
        return int(self.table.shape[0])

    @property
    def n_items(self) -> int:
        return int(self.table[..., 2].sum())

    @property
    def flat(self) -> NDArray[np.int64]:
        """(clusters, classes x 3), as resampling takes it."""
        return self.table.reshape(self.n_clusters, -1)

    @property
    def moved(self) -> FloatArray:
        """(clusters,) what each cluster adds to the first side's lead, in items."""
        gap = self.table[..., 0] - self.table[..., 1]
        return np.asarray(gap @ self._weights(), dtype=np.float64)

    @property
    def sizes(self) -> FloatArray:
        """(clusters,) items of each cluster, weighted alike."""
        return np.asarray(self.table[..., 2] @ self._weights(), dtype=np.float64)

    def _weights(self) -> FloatArray:
        of_class = self.table[..., 2].sum(axis=0)
        if not self.balanced:
            return np.ones(of_class.size)
        return np.asarray(self.n_items / (of_class.size * of_class))

    def difference(self) -> Difference:
        """First less second in accuracy or balanced accuracy, from flat counts (..., classes x 3)."""
        return _balanced_gap(len(self.labels)) if self.balanced else _plain_gap(len(self.labels))

    def by_class(self) -> Difference:
        """First less second in recall of every class, from flat counts: (..., classes)."""
        n = len(self.labels)
        return lambda flat: _gaps(flat, n)

    def value(self, side: int) -> float:
        """Accuracy or balanced accuracy of one side, 0 or 1."""
        counts = self.table.sum(axis=0).astype(np.float64)
        if self.balanced:
            return float(np.mean(counts[:, side] / counts[:, 2]))
        return float(counts[:, side].sum() / counts[:, 2].sum())


def pair_up(
    right: Sequence[tuple[bool, bool]],
    classes: Sequence[str],
    clusters: Sequence[str],
    *,
    balanced: bool,
) -> Paired:
    """Count items by cluster and class.

    Parameters
    ----------
    right: of each item, whether the first and the second side are right.
    classes, clusters: of each item. The order of items has no influence.

    Examples
    --------
    >>> both = pair_up([(True, False), (True, True)], ["a", "b"], ["s1", "s1"], balanced=True)
    >>> both.value(0), both.value(1), both.moved.tolist()
    (1.0, 0.5, [1.0])
    """
    labels, k = _codes(classes)
    units, c = _codes(clusters)
    table = np.zeros((len(units), len(labels), 3), dtype=np.int64)
    counted = np.column_stack((np.array(right, dtype=int), np.ones(len(k), dtype=int)))
    np.add.at(table, (c, k), counted)
    return Paired(table, labels, balanced)


def widened(value: float, low: float, high: float, n: int) -> tuple[float, float]:
    """Limits of a difference, with Wilson's width over clusters where no resample can show any."""
    if not low == high == value or value not in (-1.0, 0.0, 1.0):
        return low, high
    width = wilson(0, n).high
    return max(-1.0, value - width), min(1.0, value + width)


def _gaps(flat: NDArray[np.int64] | FloatArray, n_classes: int) -> FloatArray:
    counts = np.asarray(flat, dtype=np.float64).reshape(*flat.shape[:-1], n_classes, 3)
    return ratio(counts[..., 0] - counts[..., 1], counts[..., 2])


def _balanced_gap(n_classes: int) -> Difference:
    def metric(flat: NDArray[np.int64] | FloatArray) -> FloatArray:
        gaps = _gaps(flat, n_classes)
        occurs = ~np.isnan(gaps)
        return ratio(np.where(occurs, gaps, 0.0).sum(axis=-1), occurs.sum(axis=-1))

    return metric


def _plain_gap(n_classes: int) -> Difference:
    def metric(flat: NDArray[np.int64] | FloatArray) -> FloatArray:
        counts = np.asarray(flat, dtype=np.float64).reshape(*flat.shape[:-1], n_classes, 3)
        total = counts.sum(axis=-2)
        return ratio(total[..., 0] - total[..., 1], total[..., 2])

    return metric


def _codes(names: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    found, codes = np.unique(np.array(names), return_inverse=True)
    return tuple(map(str, found)), np.asarray(codes, dtype=np.int64).reshape(-1)
