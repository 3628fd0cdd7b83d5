"""Coefficients of agreement beside published examples, statsmodels and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters
from statsmodels.stats.inter_rater import fleiss_kappa as their_fleiss

from earwitness.errors import DataError, UsageError
from earwitness.stats.agreement import (
    MISSING,
    agreement,
    agreement_with_reference,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    percent_agreement,
    ratings_table,
)
from earwitness.stats.streams import stream

FOUR_OBSERVERS = """
1 2 3 3 2 1 4 1 2 . . .
1 2 3 3 2 2 4 1 2 5 . 3
. 3 3 3 2 3 4 2 2 5 1 .
1 2 3 3 2 4 4 1 2 5 1 .
"""
"""Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", section C: 12 units, nominal 0.743."""

TWO_OBSERVERS = """
a a b b d c c c e d d a
b a b b b c c c e d d d
"""
"""The same, section B: nominal data, two observers, 0.692."""

BINARY = """
0 1 0 0 0 0 0 0 1 0
1 1 1 0 0 1 0 0 0 0
"""
"""The same, section A: binary data, two observers, 0.095."""


def read(table: str) -> np.ndarray:
    rows = [line.split() for line in table.strip().splitlines()]
    names = sorted({value for row in rows for value in row} - {"."})
    return np.array([[MISSING if v == "." else names.index(v) for v in row] for row in rows]).T


def simulated(seed: int, items: int, raters: int, labels: int, right: float) -> np.ndarray:
    rng = stream(seed, "raters")
    truth = rng.integers(0, labels, (items, 1))
    guess = rng.integers(0, labels, (items, raters))
    return np.where(rng.random((items, raters)) < right, truth, guess)


@pytest.mark.parametrize(
    ("table", "published"),
    [(FOUR_OBSERVERS, 0.743), (TWO_OBSERVERS, 0.692), (BINARY, 0.095)],
    ids=["four observers", "two observers", "binary"],
)
def test_krippendorff_gives_the_published_examples(table: str, published: float) -> None:
    assert round(krippendorff_alpha(read(table)), 3) == published


def test_krippendorff_equals_a_count_of_coincidences() -> None:
    codes = simulated(1, 60, 4, 3, 0.5)
    codes[stream(1, "gaps").random(codes.shape) < 0.3] = MISSING
    table = np.zeros((3, 3))
    for row in codes:
        given = row[row != MISSING]
        for i, a in enumerate(given):
            for j, b in enumerate(given):
                if i != j:
                    table[a, b] += 1 / (len(given) - 1)
    totals, n = table.sum(axis=0), table.sum()
    expected = 1 - (n - 1) * (n - np.trace(table)) / (n * n - (totals**2).sum())
    assert krippendorff_alpha(codes) == pytest.approx(expected, abs=1e-12)


def test_fleiss_gives_the_example_of_1971_style_tables() -> None:
    counts = [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
    codes = np.array([np.repeat(np.arange(5), row) for row in counts])
    assert fleiss_kappa(codes) == pytest.approx(0.210, abs=5e-4)


@pytest.mark.parametrize("seed", range(4))
def test_fleiss_and_cohen_equal_independent_libraries(seed: int) -> None:
    codes = simulated(seed, 80, 5, 4, 0.4)
    theirs = their_fleiss(aggregate_raters(codes, n_cat=4)[0])
    assert fleiss_kappa(codes) == pytest.approx(theirs, abs=1e-9)
    a, b = codes[:, 0], codes[:, 1]
    assert cohen_kappa(a, b) == pytest.approx(cohen_kappa_score(a, b), abs=1e-9)


def test_simulated_people_give_the_expected_coefficients() -> None:
    """Right with 0.8, else a guess among four: two agree with 0.64 + 0.36/4 = 0.73, kappa 0.64."""
    codes = simulated(9, 20_000, 3, 4, 0.8)
    assert percent_agreement(codes) == pytest.approx(0.73, abs=0.01)
    for value in (
        fleiss_kappa(codes),
        krippendorff_alpha(codes),
        cohen_kappa(codes[:, 0], codes[:, 2]),
    ):
        assert value == pytest.approx(0.64, abs=0.012)


def test_all_alike_is_one_and_a_single_label_says_nothing() -> None:
    alike = np.repeat(np.arange(4)[:, None], 3, axis=1)
    assert fleiss_kappa(alike) == krippendorff_alpha(alike) == percent_agreement(alike) == 1
    assert cohen_kappa(alike[:, 0], alike[:, 1]) == 1
    single = np.zeros((5, 3), dtype=int)
    assert percent_agreement(single) == 1
    assert np.isnan(fleiss_kappa(single))
    assert np.isnan(krippendorff_alpha(single))
    assert np.isnan(cohen_kappa(single[:, 0], single[:, 1]))


def test_everything_at_once_with_intervals() -> None:
    codes = simulated(2, 150, 3, 3, 0.7)
    rows = [
        (f"item{i}", f"rater{r}", "xyz"[code])
        for i, row in enumerate(codes)
        for r, code in enumerate(row)
    ]
    ratings = ratings_table(rows, ["x", "y", "z"])
    found = agreement(ratings, seed=1, resamples=2000)
    assert found.percent.value == pytest.approx(percent_agreement(codes))
    assert found.fleiss is not None
    assert found.fleiss.value == pytest.approx(fleiss_kappa(codes))
    assert found.krippendorff.value == pytest.approx(krippendorff_alpha(codes))
    assert [(pair.a, pair.b) for pair in found.pairs] == [
        ("rater0", "rater1"),
        ("rater0", "rater2"),
        ("rater1", "rater2"),
    ]
    assert found.pairs[2].cohen.value == pytest.approx(
        cohen_kappa_score(ratings.codes[:, 1], ratings.codes[:, 2])
    )
    assert found.pairs[0].percent.value == pytest.approx(
        np.mean(ratings.codes[:, 0] == ratings.codes[:, 1])
    )
    figures = [found.percent, found.fleiss, found.krippendorff]
    figures += [c for _, c in found.per_class] + [p.cohen for p in found.pairs]
    for figure in figures:
        assert figure.low < figure.value < figure.high
        assert figure.high - figure.low < 0.35
    assert agreement(ratings, seed=1, resamples=2000) == found
    assert agreement(ratings_table(rows[::-1], ["x", "y", "z"]), seed=1, resamples=2000) == found


def test_per_class_agreement_is_of_pairs_with_that_class() -> None:
    ratings = ratings_table(
        [
            ("a", "1", "x"),
            ("a", "2", "x"),
            ("b", "1", "x"),
            ("b", "2", "y"),
            ("c", "1", "y"),
            ("c", "2", "y"),
        ],
        ["x", "y", "z"],
    )
    found = dict(agreement(ratings, resamples=50).per_class)
    assert found["x"].value == pytest.approx(2 / 3)
    assert found["y"].value == pytest.approx(2 / 3)
    assert np.isnan(found["z"].value)


def test_people_beside_the_labels_of_the_set() -> None:
    ratings = ratings_table(
        [("a", "1", "x"), ("a", "2", "x"), ("b", "1", "x"), ("c", "2", "y")], ["x", "y"]
    )
    found = agreement_with_reference(ratings, np.array([0, 1, 1]), resamples=500)
    assert found.value == 0.75
    assert found.n == 3
    with pytest.raises(DataError, match=r"reference labels: shape \(2,\); wanted \(3,\)"):
        agreement_with_reference(ratings, np.array([0, 1]))


def test_missing_ratings_leave_fleiss_out_and_name_the_way() -> None:
    codes = read(FOUR_OBSERVERS)
    with pytest.raises(UsageError, match=r"items with 1 to 4 ratings.*Use Krippendorff's alpha"):
        fleiss_kappa(codes)
    rows = [
        (f"{i}", f"{r}", str(code))
        for i, row in enumerate(codes)
        for r, code in enumerate(row)
        if code != MISSING
    ]
    found = agreement(ratings_table(rows, list("01234")), resamples=100)
    assert found.fleiss is None
    assert round(found.krippendorff.value, 3) == 0.743


def test_bad_ratings_are_named() -> None:
    with pytest.raises(DataError, match="ratings: none"):
        ratings_table([], ["x"])
    with pytest.raises(DataError, match=r"ratings of item 'a': label 'q'; wanted one of x, y"):
        ratings_table([("a", "1", "q")], ["x", "y"])
    with pytest.raises(DataError, match=r"ratings of item 'a': two by '1'"):
        ratings_table([("a", "1", "x"), ("a", "1", "x")], ["x", "y"])
    with pytest.raises(DataError, match="no item with two ratings"):
        agreement(ratings_table([("a", "1", "x")], ["x"]))
