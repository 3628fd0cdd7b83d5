"""Confusion counts with a column for items without a label, and the figures made of them.

Conventions
-----------
* Rows are gold labels, columns are predicted labels in the same order and then ``no label``: whatever ended
  without a usable label (refused, unmapped, failed, ...) stays in its row, so it lowers recall and accuracy
  and never touches precision.
* Every figure is vectorised over leading axes: ``(rows, columns)`` gives one figure, ``(resamples, rows,
  columns)`` one each. A figure with nothing to count (a precision without predictions, the recall of an
  absent class) is NaN, never 0 and never 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from earwitness.errors import DataError

FloatArray = NDArray[np.float64]
NO_LABEL = -1
"""Code of an item without a label."""


def by_cluster(
    gold: NDArray[Any],
    predicted: NDArray[Any],
    cluster: NDArray[Any],
    n_labels: int,
    n_clusters: int,
) -> NDArray[np.int64]:
    """Confusion counts of each cluster.

    Parameters
    ----------
    gold: (n,) codes 0 .. n_labels-1.
    predicted: (n,) codes 0 .. n_labels-1, or :data:`NO_LABEL`.
    cluster: (n,) codes 0 .. n_clusters-1.

    Returns
    -------
    (n_clusters, n_labels, n_labels + 1) counts; the last column is ``no label``.

    Raises
    ------
    DataError: a code is out of range or the lengths differ.

    Examples
    --------
    >>> by_cluster(np.array([0, 1]), np.array([0, -1]), np.array([0, 0]), 2, 1).tolist()
    [[[1, 0, 0], [0, 0, 1]]]
    """
    if not gold.shape == predicted.shape == cluster.shape:
        raise DataError(
            "confusion counts",
            f"{gold.size} gold, {predicted.size} predicted, {cluster.size} clusters",
            "one of each for every item",
        )
    for name, codes, low, high in (
        ("gold", gold, 0, n_labels),
        ("predicted", predicted, NO_LABEL, n_labels),
        ("cluster", cluster, 0, n_clusters),
    ):
        if codes.size and (codes.min() < low or codes.max() >= high):
            raise DataError(
                "confusion counts",
                f"{name} codes {codes.min()} to {codes.max()}",
                f"{low} to {high - 1}",
            )
    width = n_labels + 1
    column = np.where(predicted == NO_LABEL, n_labels, predicted)
    cell = (cluster.astype(np.int64) * n_labels + gold) * width + column
    flat: NDArray[np.int64] = np.bincount(cell, minlength=n_clusters * n_labels * width)
    table: NDArray[np.int64] = flat.reshape(n_clusters, n_labels, width)
    return table


def confusion_counts(
    gold: NDArray[Any], predicted: NDArray[Any], n_labels: int
) -> NDArray[np.int64]:
    """Confusion counts (n_labels, n_labels + 1) of all items; see :func:`by_cluster`."""
    together = np.zeros(gold.shape, dtype=np.int64)
    whole: NDArray[np.int64] = by_cluster(gold, predicted, together, n_labels, 1)[0]
    return whole


def accuracy(counts: NDArray[Any]) -> FloatArray:
    """Right items / all items, (..., rows, columns) to (...).

    Examples
    --------
    >>> float(accuracy(np.array([[3, 0, 1], [0, 0, 0]])))
    0.75
    """
    return ratio(_diagonal(counts).sum(axis=-1), counts.sum(axis=(-2, -1)))


def recall(counts: NDArray[Any]) -> FloatArray:
    """Right items of a label / items of that label, (..., rows, columns) to (..., rows)."""
    return ratio(_diagonal(counts), counts.sum(axis=-1))


def precision(counts: NDArray[Any]) -> FloatArray:
    """Right items of a label / items given that label, (..., rows, columns) to (..., rows)."""
    return ratio(_diagonal(counts), counts[..., : counts.shape[-2]].sum(axis=-2))


def f1(counts: NDArray[Any]) -> FloatArray:
    """Harmonic mean of precision and recall, as ``2 right / (given + gold)``.

    Written so, it is 0 for a label that occurs and is never given, and NaN only where the label neither
    occurs nor is given. C. J. van Rijsbergen, *Information Retrieval* (1979), chapter 7.
    """
    given = counts[..., : counts.shape[-2]].sum(axis=-2)
    return ratio(2 * _diagonal(counts), given + counts.sum(axis=-1))


def macro_recall(counts: NDArray[Any]) -> FloatArray:
    """Mean recall over the labels that occur (balanced accuracy), (..., rows, columns) to (...).

    Examples
    --------
    >>> float(macro_recall(np.array([[3, 1, 0], [1, 0, 0]])))
    0.375
    """
    found = recall(counts)
    occurs = ~np.isnan(found)
    return ratio(np.where(occurs, found, 0.0).sum(axis=-1), occurs.sum(axis=-1))


balanced_accuracy = macro_recall


def weighted_recall(counts: NDArray[Any], weights: NDArray[Any]) -> FloatArray:
    """Accuracy to expect where label ``c`` makes up ``weights[c]`` of the traffic.

    ``sum_c w_c recall_c / sum_c w_c``; NaN where a label with weight has no items.
    """
    used = np.flatnonzero(weights > 0)
    share = np.asarray(weights, dtype=np.float64)[used]
    return np.asarray((recall(counts)[..., used] * share).sum(axis=-1) / share.sum())


def ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> FloatArray:
    """Quotient, NaN where nothing was counted."""
    top = np.asarray(numerator, dtype=np.float64)
    bottom = np.asarray(denominator, dtype=np.float64)
    out = np.full(np.broadcast_shapes(top.shape, bottom.shape), np.nan)
    np.divide(top, bottom, out=out, where=bottom != 0)
    return out


def _diagonal(counts: NDArray[Any]) -> NDArray[Any]:
    return np.diagonal(counts, axis1=-2, axis2=-1)
