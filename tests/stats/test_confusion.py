"""Confusion counts and their figures, beside scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    precision_recall_fscore_support,
)

from earwitness.errors import DataError
from earwitness.stats import confusion
from earwitness.stats.confusion import NO_LABEL, by_cluster, confusion_counts


def example(seed: int, missing: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 5, 200)
    predicted = np.where(rng.random(200) < 0.4, gold, rng.integers(-1 if missing else 0, 5, 200))
    return gold, predicted


@pytest.mark.parametrize("seed", range(5))
def test_equals_scikit_learn_with_items_without_a_label(seed: int) -> None:
    gold, predicted = example(seed, missing=True)
    counts = confusion_counts(gold, predicted, 5)
    theirs = confusion_matrix(gold, np.where(predicted < 0, 5, predicted), labels=range(6))
    assert np.array_equal(counts, theirs[:5])
    precision, recall, f1, support = precision_recall_fscore_support(
        gold, predicted, labels=range(5), zero_division=np.nan
    )
    assert confusion.precision(counts) == pytest.approx(precision, abs=1e-12)
    assert confusion.recall(counts) == pytest.approx(recall, abs=1e-12)
    assert confusion.f1(counts) == pytest.approx(f1, abs=1e-12)
    assert counts.sum(axis=1).tolist() == support.tolist()
    assert float(confusion.accuracy(counts)) == accuracy_score(gold, predicted)


@pytest.mark.parametrize("seed", range(5))
def test_macro_recall_is_balanced_accuracy(seed: int) -> None:
    gold, predicted = example(seed, missing=False)
    counts = confusion_counts(gold, predicted, 7)  # two labels never occur
    assert float(confusion.macro_recall(counts)) == pytest.approx(
        balanced_accuracy_score(gold, predicted), abs=1e-12
    )


def test_vectorised_figures_are_those_of_each_matrix() -> None:
    stack = np.stack([confusion_counts(*example(seed, True), 5) for seed in range(6)]).reshape(
        2, 3, 5, 6
    )
    for metric in (
        confusion.accuracy,
        confusion.macro_recall,
        confusion.recall,
        confusion.precision,
        confusion.f1,
    ):
        together = metric(stack)
        for i in range(2):
            for j in range(3):
                assert np.array_equal(together[i, j], metric(stack[i, j]))


def test_clusters_sum_to_the_whole() -> None:
    gold, predicted = example(0, missing=True)
    cluster = np.arange(200) % 13
    parts = by_cluster(gold, predicted, cluster, 5, 13)
    assert parts.shape == (13, 5, 6)
    assert np.array_equal(parts.sum(axis=0), confusion_counts(gold, predicted, 5))
    chosen = cluster == 4
    assert np.array_equal(parts[4], confusion_counts(gold[chosen], predicted[chosen], 5))


def test_nothing_counted_is_nan_and_never_right_is_zero() -> None:
    counts = confusion_counts(np.array([0, 0, 1]), np.array([0, 0, NO_LABEL]), 3)
    assert confusion.precision(counts)[0] == 1
    assert np.isnan(confusion.precision(counts)[1:]).all()
    assert confusion.recall(counts)[1] == 0
    assert np.isnan(confusion.recall(counts)[2])
    assert confusion.f1(counts)[1] == 0
    assert np.isnan(confusion.f1(counts)[2])
    assert np.isnan(confusion.macro_recall(np.zeros((2, 3))))


def test_no_label_lowers_recall_and_leaves_precision() -> None:
    gold = np.array([0] * 10)
    all_right = confusion_counts(gold, gold, 2)
    some_gone = confusion_counts(gold, np.array([0] * 6 + [NO_LABEL] * 4), 2)
    assert confusion.precision(all_right)[0] == confusion.precision(some_gone)[0] == 1
    assert confusion.recall(some_gone)[0] == confusion.accuracy(some_gone) == 0.6


def test_weights_change_the_mix_and_equal_weights_are_macro_recall() -> None:
    counts = confusion_counts(*example(2, True), 5)
    equal = confusion.weighted_recall(counts, np.ones(5))
    assert float(equal) == pytest.approx(float(confusion.macro_recall(counts)), abs=1e-12)
    only = np.array([0, 0, 3.0, 0, 0])
    assert confusion.weighted_recall(counts, only) == confusion.recall(counts)[2]


def test_codes_out_of_range_are_refused() -> None:
    zero = np.array([0])
    with pytest.raises(DataError, match=r"gold codes 2 to 2; wanted 0 to 1"):
        confusion_counts(np.array([2]), zero, 2)
    with pytest.raises(DataError, match=r"predicted codes -2 to -2; wanted -1 to 1"):
        confusion_counts(zero, np.array([-2]), 2)
    with pytest.raises(DataError, match=r"2 gold, 1 predicted, 2 clusters"):
        confusion_counts(np.array([0, 1]), zero, 2)
