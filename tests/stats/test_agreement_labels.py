"""People beside labels and beside each other, against independent libraries and by hand."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score, confusion_matrix
from statsmodels.stats.inter_rater import cohens_kappa

from earwitness.errors import DataError
from earwitness.stats.agreement import MISSING, Ratings, agreement, cohen_kappa, krippendorff_alpha
from earwitness.stats.agreement_labels import agreement_with_labels, majority, people_confusion
from earwitness.stats.streams import stream


def made(seed: int, items: int, raters: int, gaps: float) -> tuple[Ratings, np.ndarray, np.ndarray]:
    rng = stream(seed, "people")
    truth = rng.integers(0, 4, items)
    guess = rng.integers(0, 4, (items, raters))
    codes = np.where(rng.random((items, raters)) < 0.7, truth[:, None], guess)
    codes[rng.random(codes.shape) < gaps] = MISSING
    names = tuple(f"i{n:03d}" for n in range(items))
    return Ratings(names, tuple("abcde"[:raters]), ("w", "x", "y", "z"), codes), truth, codes


@pytest.mark.parametrize("gaps", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("seed", range(4))
def test_krippendorff_equals_an_independent_library(seed: int, gaps: float) -> None:
    _, _, codes = made(seed, 90, 4, gaps)
    data = np.where(codes == MISSING, np.nan, codes).T
    theirs = krippendorff.alpha(reliability_data=data, level_of_measurement="nominal")
    assert krippendorff_alpha(codes) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_cohen_equals_a_second_independent_library(seed: int) -> None:
    _, _, codes = made(seed, 90, 2, 0.0)
    theirs = cohens_kappa(confusion_matrix(codes[:, 0], codes[:, 1], labels=range(4))).kappa
    assert cohen_kappa(codes[:, 0], codes[:, 1]) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_people_beside_labels_equal_scikit_learn(gaps: float) -> None:
    ratings, truth, codes = made(5, 120, 3, gaps)
    found = agreement_with_labels(ratings, truth, resamples=50)
    kappas = []
    for column, rater in enumerate(found.raters):
        given = codes[:, column] != MISSING
        theirs = cohen_kappa_score(truth[given], codes[given, column])
        kappas.append(theirs)
        assert rater.n == given.sum()
        assert rater.cohen.value == pytest.approx(theirs, abs=1e-9)
        assert rater.balanced.value == pytest.approx(
            balanced_accuracy_score(truth[given], codes[given, column]), abs=1e-9
        )
    assert found.mean_cohen.value == pytest.approx(np.mean(kappas), abs=1e-9)
    flat = codes.ravel()
    gold = np.repeat(truth, 3)[flat != MISSING]
    flat = flat[flat != MISSING]
    assert np.array_equal(found.confusion, confusion_matrix(gold, flat))
    assert found.percent.value == pytest.approx(np.mean(gold == flat), abs=1e-12)
    assert found.balanced.value == pytest.approx(balanced_accuracy_score(gold, flat), abs=1e-9)
    for k, (_, recall) in enumerate(found.per_class):
        assert recall.value == pytest.approx(np.mean(flat[gold == k] == k), abs=1e-12)


def test_mean_of_pairs_is_the_mean_of_the_pairs() -> None:
    ratings, _, _ = made(6, 100, 4, 0.2)
    found = agreement(ratings, resamples=100)
    assert found.mean_cohen.value == pytest.approx(np.mean([p.cohen.value for p in found.pairs]))
    assert found.mean_cohen.low < found.mean_cohen.value < found.mean_cohen.high
    without = agreement(ratings, resamples=100, pairs=False)
    assert without.pairs == ()
    assert without.mean_cohen == found.mean_cohen


def test_clusters_are_drawn_as_wholes() -> None:
    ratings, truth, _ = made(7, 200, 3, 0.0)
    # Ten copies of every item in one cluster say no more than the item alone.
    copies = 10
    many = Ratings(
        tuple(f"{name}-{n:02d}" for name in ratings.items for n in range(copies)),
        ratings.raters,
        ratings.labels,
        np.repeat(ratings.codes, copies, axis=0),
    )
    clusters = [name for name in ratings.items for _ in range(copies)]
    alone = agreement(ratings, resamples=2000)
    together = agreement(many, clusters=clusters, resamples=2000)
    naive = agreement(many, resamples=2000)
    width = alone.percent.high - alone.percent.low
    assert together.percent.value == pytest.approx(alone.percent.value)
    assert together.percent.high - together.percent.low == pytest.approx(width, rel=0.1)
    assert naive.percent.high - naive.percent.low < width / 2.5
    assert together.percent.n == 200
    labelled = agreement_with_labels(
        many, np.repeat(truth, copies), clusters=clusters, resamples=200
    )
    assert labelled.mean_cohen.n == 200
    with pytest.raises(DataError, match="clusters: 3 of them; wanted 200, one an item"):
        agreement(ratings, clusters=["a", "b", "c"])
    with pytest.raises(DataError, match="reference labels"):
        agreement_with_labels(ratings, truth[:5])


def test_majority_and_ties() -> None:
    codes = np.array(
        [[0, 0, 1], [0, 1, 2], [MISSING, 2, 2], [MISSING, MISSING, MISSING], [3, MISSING, 0]]
    )
    assert majority(codes, 4).tolist() == [0, MISSING, 2, MISSING, MISSING]
    ratings = Ratings(tuple("abcde"), tuple("xyz"), ("0", "1", "2", "3"), codes)
    found = agreement_with_labels(ratings, np.array([0, 0, 2, 1, 3]), resamples=20)
    assert found.ties == 3
    assert found.majority_percent.value == pytest.approx(2 / 5)


def test_confusion_of_people_counts_every_pair_once() -> None:
    codes = np.array([[0, 0, 1], [2, 1, MISSING], [1, 1, 1]])
    found = people_confusion(codes, 3)
    assert found.sum() == 3 + 1 + 3
    assert np.allclose(found, [[1, 1, 0], [1, 3, 0.5], [0, 0.5, 0]])
