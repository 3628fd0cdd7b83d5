"""Sign-flip, McNemar, Holm and power."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from earwitness.errors import DataError
from earwitness.stats.streams import stream
from earwitness.stats.tests import (
    Alternative,
    holm,
    mcnemar_exact,
    planned_detectable_difference,
    sign_flip,
    smallest_detectable_difference,
)


def brute_force(differences: list[float], alternative: Alternative) -> float:
    total = sum(differences)
    sums = [
        sum(s * d for s, d in zip(signs, differences, strict=True))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    test = {
        "two-sided": lambda s: abs(s) >= abs(total) - 1e-9,
        "greater": lambda s: s >= total - 1e-9,
        "less": lambda s: s <= total + 1e-9,
    }[alternative]
    return sum(map(test, sums)) / len(sums)


@given(
    st.lists(st.integers(-6, 6), min_size=1, max_size=9),
    st.sampled_from(["two-sided", "greater", "less"]),
    st.sampled_from([1.0, 0.1]),
)
@settings(derandomize=True, deadline=None, max_examples=120)
def test_whole_and_fractional_differences_are_exact(
    differences: list[int], alternative: Alternative, unit: float
) -> None:
    values = [d * unit for d in differences]
    found = sign_flip(values, alternative=alternative)
    assert found.method == "exact"
    assert found.p == pytest.approx(brute_force(values, alternative), abs=1e-12)
    assert 0 < found.p <= 1


def test_whole_differences_of_many_clusters_are_exact_too() -> None:
    """With differences of one, it is the binomial sign test."""
    from scipy.stats import binomtest

    found = sign_flip([1] * 70 + [-1] * 40 + [0] * 500)
    assert found.method == "exact"
    assert found.n == 110
    assert found.p == pytest.approx(binomtest(70, 110).pvalue, rel=1e-9)


def test_sampling_comes_near_the_exact_value_and_is_seeded() -> None:
    rng = np.random.default_rng(8)
    whole = rng.integers(-4, 6, 40)
    exact = sign_flip(whole).p
    sampled = sign_flip(whole * 0.1, stream(0, "mc"), resamples=40_000)
    assert sampled.method == "monte carlo (40000)"
    assert sampled.p == pytest.approx(exact, abs=0.01)
    assert sampled.p == sign_flip(whole * 0.1, stream(0, "mc"), resamples=40_000).p


def test_sampled_p_is_never_zero() -> None:
    found = sign_flip(np.full(60, 0.5), stream(0, "mc"), resamples=999)
    assert found.p == 1 / 1000


def test_order_and_swapping_sides() -> None:
    d = np.array([3, -1, 0, 4, 2, -2, 5])
    assert sign_flip(d).p == sign_flip(d[::-1]).p == sign_flip(-d).p
    assert sign_flip(d, alternative="greater").p == sign_flip(-d, alternative="less").p
    assert sign_flip(d, alternative="greater").p < sign_flip(d).p


def test_no_difference_is_p_one_and_bad_input_is_named() -> None:
    assert sign_flip([0, 0, 0]).p == 1
    with pytest.raises(
        DataError, match=r"sign-flip test: differences of shape \(0,\); wanted one per"
    ):
        sign_flip([])
    with pytest.raises(DataError, match=r"a difference that is not finite"):
        sign_flip([1.0, float("nan")])
    with pytest.raises(DataError, match=r"15 clusters with fractional .*Pass rng=stream"):
        sign_flip([0.5] * 15)


def test_level_holds_under_the_null() -> None:
    """Clusters with symmetric differences: at most 5 % below 0.05."""
    rng = stream(3, "null")
    p = [sign_flip(rng.integers(-30, 31, 16)).p for _ in range(600)]
    assert np.mean(np.array(p) <= 0.05) <= 0.07
    assert np.mean(np.array(p) <= 0.5) == pytest.approx(0.5, abs=0.07)


@pytest.mark.parametrize(("b", "c"), [(0, 0), (1, 0), (10, 2), (5, 5), (40, 61), (300, 210)])
def test_mcnemar_equals_statsmodels(b: int, c: int) -> None:
    theirs = mcnemar(np.array([[10, b], [c, 10]]), exact=True).pvalue
    assert mcnemar_exact(b, c) == pytest.approx(float(theirs), abs=1e-12)
    assert mcnemar_exact(b, c) == mcnemar_exact(c, b)


def test_mcnemar_refuses_negative_counts() -> None:
    with pytest.raises(DataError, match="counts -1 and 2"):
        mcnemar_exact(-1, 2)


def test_holm_equals_statsmodels() -> None:
    rng = stream(6, "holm")
    for size in (1, 2, 3, 10, 21, 45):
        p = np.round(rng.random(size) ** rng.integers(1, 6), int(rng.integers(1, 6)))  # with ties
        assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-12)


def test_holm_of_nothing_and_of_no_probability() -> None:
    assert holm([]).size == 0
    with pytest.raises(DataError, match=r"Holm's method: p-values \[1.5\]"):
        holm([1.5])
    with pytest.raises(DataError, match=r"p-values \[nan\]"):
        holm([float("nan")])


def test_the_smallest_detectable_difference_is_detected_four_times_in_five() -> None:
    rng = stream(5, "power")
    clusters, each = 60, 8
    gaps = rng.binomial(each, 0.55, (400, clusters)) - rng.binomial(each, 0.55, (400, clusters))
    detectable = np.mean([smallest_detectable_difference(g, np.full(clusters, each)) for g in gaps])
    better = rng.binomial(each, 0.5 + detectable / 2, (300, clusters)) - rng.binomial(
        each, 0.5 - detectable / 2, (300, clusters)
    )
    assert np.mean([sign_flip(g).p <= 0.05 for g in better]) == pytest.approx(0.8, abs=0.08)


def test_power_of_one_cluster_is_none_and_plans_follow_the_design_effect() -> None:
    assert smallest_detectable_difference(np.array([3]), np.array([10])) == np.inf
    alone = planned_detectable_difference(400)
    together = planned_detectable_difference(400, items_per_cluster=5, correlation=0.25)
    assert together == pytest.approx(alone * np.sqrt(2))
    with pytest.raises(DataError, match="0 items"):
        planned_detectable_difference(0)
    with pytest.raises(DataError, match="one difference and size a cluster"):
        smallest_detectable_difference(np.array([1, 2]), np.array([1]))
