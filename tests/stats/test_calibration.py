"""Calibration on data whose calibration is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from earwitness.errors import DataError
from earwitness.stats.calibration import (
    area_under_risk_coverage,
    confidence,
    expected_calibration_error,
    reliability_bins,
    risk_coverage,
)
from earwitness.stats.streams import stream


@pytest.mark.parametrize("scheme", ["width", "mass"])
@pytest.mark.parametrize("gap", [0.0, 0.1, 0.25])
def test_a_known_gap_is_found(scheme: str, gap: float) -> None:
    rng = stream(1, "calibration")
    conf = rng.uniform(0.3, 0.9, 200_000)
    right = rng.random(200_000) < conf - gap
    assert expected_calibration_error(conf, right, scheme=scheme) == pytest.approx(gap, abs=0.006)


def test_over_and_under_confidence_do_not_cancel() -> None:
    conf = np.array([0.9] * 100 + [0.3] * 100)
    right = np.array([1] * 70 + [0] * 30 + [1] * 50 + [0] * 50)
    assert expected_calibration_error(conf, right) == pytest.approx(0.2)


@pytest.mark.parametrize("scheme", ["width", "mass"])
def test_bins_equal_scikit_learn(scheme: str) -> None:
    rng = stream(2, "bins")
    conf = rng.beta(3, 2, 1500)
    right = (rng.random(1500) < conf**1.5).astype(int)
    ours = reliability_bins(conf, right, bins=8, scheme=scheme)
    theirs = calibration_curve(
        right, conf, n_bins=8, strategy={"width": "uniform", "mass": "quantile"}[scheme]
    )
    assert [b.accuracy for b in ours] == pytest.approx(theirs[0], abs=1e-12)
    assert [b.mean_confidence for b in ours] == pytest.approx(theirs[1], abs=1e-12)
    assert sum(b.count for b in ours) == 1500
    if scheme == "mass":
        assert {b.count for b in ours} <= {187, 188}


def test_equal_confidences_share_a_bin() -> None:
    found = reliability_bins(np.full(9, 0.4), np.arange(9) % 3 == 0, bins=5, scheme="mass")
    assert len(found) == 1
    assert found[0].count == 9
    assert found[0].accuracy == pytest.approx(1 / 3)


def test_risk_falls_with_confidence_that_knows_and_not_with_one_that_does_not() -> None:
    rng = stream(3, "risk")
    right = rng.random(4000) < 0.5
    knows = np.where(right, rng.uniform(0.5, 1, 4000), rng.uniform(0, 0.5, 4000))
    blind = rng.random(4000)
    # Perfect order at error rate e: e + (1 - e) ln(1 - e), Geifman et al. 2019.
    best = 0.5 + 0.5 * math.log(0.5)
    assert area_under_risk_coverage(knows, right) == pytest.approx(best, abs=0.02)
    assert area_under_risk_coverage(blind, right) == pytest.approx(0.5, abs=0.04)
    curve = risk_coverage(knows, right)
    assert curve[0] == (1 / 4000, 0.0)
    assert curve[-1] == (1.0, pytest.approx(1 - right.mean()))


def test_curve_and_area_equal_a_count_by_hand() -> None:
    rng = stream(4, "hand")
    conf, right = rng.random(50), rng.random(50) < 0.6
    order = np.argsort(-conf)
    risks = [np.mean(~right[order][: k + 1]) for k in range(50)]
    assert [risk for _, risk in risk_coverage(conf, right)] == pytest.approx(risks, abs=1e-12)
    assert area_under_risk_coverage(conf, right) == pytest.approx(np.mean(risks), abs=1e-12)


def test_coverage_counts_items_without_an_answer() -> None:
    curve = risk_coverage(np.array([0.9, 0.5]), np.array([1, 0]), total=8)
    assert curve == ((0.125, 0.0), (0.25, 0.5))
    with pytest.raises(DataError, match=r"2 answers of 1"):
        risk_coverage(np.array([0.9, 0.5]), np.array([1, 0]), total=1)


def test_order_never_matters_with_ties() -> None:
    rng = stream(5, "ties")
    conf, right = np.round(rng.random(300), 1), rng.random(300) < 0.5
    moved = rng.permutation(300)
    assert risk_coverage(conf, right) == risk_coverage(conf[moved], right[moved])
    assert area_under_risk_coverage(conf, right) == area_under_risk_coverage(
        conf[moved], right[moved]
    )
    expected = []
    for _ in range(300):  # the expectation over random orders within ties
        shuffle = rng.permutation(300)
        c, r = conf[shuffle], right[shuffle]
        errors = np.cumsum(~r[np.argsort(-c, kind="stable")])
        expected.append(np.mean(errors / np.arange(1, 301)))
    assert area_under_risk_coverage(conf, right) == pytest.approx(np.mean(expected), abs=0.003)


def test_confidence_is_the_share_of_the_mapped_mass() -> None:
    assert confidence({"fear": 0.2, "anger": 0.2}, "fear") == pytest.approx(0.5)
    assert confidence({"fear": 30.0, "anger": 10.0}, "fear") == pytest.approx(0.75)
    assert confidence({"fear": 0.01}, "fear") == 1
    for scores, label in (
        ({}, "fear"),
        ({"anger": 1.0}, "fear"),
        ({"fear": 0.0}, "fear"),
        ({"fear": 2.0, "anger": -1.0}, "fear"),
        ({"fear": math.inf}, "fear"),
        ({"fear": math.nan}, "fear"),
    ):
        assert math.isnan(confidence(scores, label))


def test_bad_input_is_named() -> None:
    with pytest.raises(DataError, match=r"calibration: shapes \(0,\) and \(0,\); wanted one conf"):
        expected_calibration_error(np.array([]), np.array([]))
    with pytest.raises(DataError, match="a confidence outside 0 to 1"):
        expected_calibration_error(np.array([1.2]), np.array([1]))
    with pytest.raises(DataError, match="0 bins"):
        reliability_bins(np.array([0.2]), np.array([1]), bins=0)
