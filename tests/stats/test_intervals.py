"""Wilson and the cluster bootstrap."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from earwitness.errors import DataError
from earwitness.stats.confusion import accuracy, by_cluster, macro_recall, ratio, recall
from earwitness.stats.intervals import (
    cluster_bootstrap,
    expanded_levels,
    percentile_interval,
    resample_sums,
    wilson,
)
from earwitness.stats.streams import stream


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_wilson_equals_statsmodels(level: float) -> None:
    for n in (1, 2, 7, 40, 280, 1680):
        for right in {0, 1, n // 3, n // 2, n - 1, n}:
            theirs = proportion_confint(right, n, alpha=1 - level, method="wilson")
            assert wilson(right, n, level) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize(
    ("right", "n", "low", "high"), [(124, 280, 38.6, 50.1), (78, 280, 22.9, 33.4)]
)
def test_wilson_gives_the_published_intervals(right: int, n: int, low: float, high: float) -> None:
    found = wilson(right, n)
    assert (round(100 * found.low, 1), round(100 * found.high, 1)) == (low, high)


def test_wilson_refuses_what_is_no_proportion() -> None:
    with pytest.raises(DataError, match=r"wilson interval: 0 items; wanted at least one item"):
        wilson(0, 0)
    with pytest.raises(DataError, match=r"5 right of 4; wanted 0 <= right <= n"):
        wilson(5, 4)
    with pytest.raises(DataError, match=r"level 95; wanted a level between 0 and 1"):
        wilson(1, 2, level=95)


@given(st.integers(1, 5000), st.data())
@settings(derandomize=True, deadline=None, max_examples=100)
def test_wilson_holds_its_figure_and_stays_a_proportion(n: int, data: st.DataObject) -> None:
    right = data.draw(st.integers(0, n))
    low, high = wilson(right, n)
    assert 0 <= low <= right / n <= high <= 1
    assert low < high


def test_levels_widen_for_few_units_and_vanish_for_many() -> None:
    lower = [expanded_levels(n)[0] for n in (2, 4, 10, 24, 100, 100_000)]
    assert lower == sorted(lower)
    assert lower[-1] == pytest.approx(0.025, abs=1e-5)
    for n in (2, 4, 10, 24):
        low, high = expanded_levels(n)
        assert low + high == pytest.approx(1)


def test_resampling_has_the_exact_distribution_of_drawing_with_replacement() -> None:
    """All 4^4 draws of four units, beside the sampled frequencies."""
    rows = np.array([[0], [1], [5], [25]])
    exact: dict[int, int] = {}
    for drawn in itertools.product(rows[:, 0], repeat=4):
        exact[sum(drawn)] = exact.get(sum(drawn), 0) + 1
    n = 200_000
    sums = resample_sums(rows, n, stream(1, "exact"))[:, 0]
    values, counts = np.unique(sums, return_counts=True)
    seen = dict(zip(values.tolist(), counts.tolist(), strict=True))
    assert set(seen) == set(exact)
    for value, times in exact.items():
        p = times / 256
        assert seen[value] / n == pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / n))


def test_units_of_few_kinds_give_the_same_distribution_as_all_different_ones() -> None:
    """The short cut over kinds of units and the plain draw agree in mean and spread."""
    kinds = np.array([[1, 1], [0, 1]] * 60)  # two kinds in 120 units
    apart = np.column_stack([kinds, np.arange(120)])  # the same, every unit different
    a = resample_sums(kinds, 40_000, stream(3, "kinds"))
    b = resample_sums(apart, 40_000, stream(4, "apart"))
    assert (a[:, 1] == 120).all()
    assert (b[:, 1] == 120).all()
    sd = np.sqrt(120 * 0.25)
    assert a[:, 0].mean() == pytest.approx(60, abs=5 * sd / 200)
    assert b[:, 0].mean() == pytest.approx(60, abs=5 * sd / 200)
    assert a[:, 0].std() == pytest.approx(sd, rel=0.02)
    assert b[:, 0].std() == pytest.approx(sd, rel=0.02)


def test_order_of_units_does_not_matter_and_the_stream_does() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 9, (40, 3))
    one = resample_sums(rows, 500, stream(0, "a"))
    assert np.array_equal(one, resample_sums(rows[::-1].copy(), 500, stream(0, "a")))
    assert not np.array_equal(one, resample_sums(rows, 500, stream(0, "b")))
    assert not np.array_equal(one, resample_sums(rows, 500, stream(1, "a")))


def test_large_and_fractional_sums_are_exact() -> None:
    big = np.array([[2**40], [2**40 + 1], [7]])
    sums = resample_sums(big, 200, stream(0, "big"))[:, 0]
    possible = {
        float(a * 2**40 + b * (2**40 + 1) + (3 - a - b) * 7) for a in range(4) for b in range(4 - a)
    }
    assert set(sums.tolist()) <= possible
    halves = resample_sums(np.array([[0.5], [0.25], [0.0]]), 200, stream(0, "half"))
    assert set((halves[:, 0] * 4).tolist()) <= set(range(7))


def test_bootstrap_equals_a_naive_loop_over_the_items() -> None:
    """The same interval, up to sampling error, as drawing speakers' items and counting again."""
    rng = np.random.default_rng(5)
    n, speakers = 240, 24
    gold = rng.integers(0, 3, n)
    cluster = np.arange(n) % speakers
    predicted = np.where(
        rng.random(n) < 0.3 + 0.4 * (cluster / speakers), gold, rng.integers(-1, 3, n)
    )
    counts = by_cluster(gold, predicted, cluster, 3, speakers)
    found = cluster_bootstrap(counts, macro_recall, stream(0, "x"), resamples=20_000)
    naive = []
    for _ in range(4_000):
        items = np.concatenate(
            [np.flatnonzero(cluster == k) for k in rng.integers(0, speakers, speakers)]
        )
        g, p = gold[items], predicted[items]
        naive.append(np.mean([np.mean(p[g == c] == c) for c in range(3)]))
    low, high = np.quantile(naive, expanded_levels(speakers))
    assert float(found.low) == pytest.approx(low, abs=0.012)
    assert float(found.high) == pytest.approx(high, abs=0.012)
    assert float(found.value) == pytest.approx(
        np.mean([np.mean(predicted[gold == c] == c) for c in range(3)]), abs=1e-12
    )


def test_absent_classes_are_undefined_and_left_out() -> None:
    counts = np.zeros((10, 2, 3), dtype=int)
    counts[:, 0, 0] = 2
    counts[0, 1, 1] = 3  # the second class in one cluster only
    found = cluster_bootstrap(counts, recall, stream(0, "absent"))
    assert found.value.tolist() == [1.0, 1.0]
    assert found.undefined[0] == 0
    assert found.undefined[1] == pytest.approx(0.9**10, abs=0.02)  # that cluster was not drawn
    assert found.high.tolist() == [1.0, 1.0]
    never = np.zeros((10, 2, 3), dtype=int)
    never[:, 0, 0] = 1
    gone = cluster_bootstrap(never, recall, stream(0, "never"))
    assert np.isnan([gone.value[1], gone.low[1], gone.high[1]]).all()
    assert gone.undefined[1] == 1


def test_quantiles_are_of_the_defined_resamples_only() -> None:
    defined = stream(0, "quantiles").normal(0.5, 0.1, 5000)
    mixed = np.concatenate([defined, np.full(3000, np.nan)])[:, None]
    low, high, undefined = percentile_interval(mixed, np.array([0.5]), 24)
    levels = expanded_levels(24)
    assert [float(low[0]), float(high[0])] == pytest.approx(np.quantile(defined, levels), abs=1e-12)
    assert undefined[0] == 3 / 8


def test_few_clusters_are_said_to_be_few() -> None:
    counts = np.ones((9, 2, 3), dtype=int)
    assert cluster_bootstrap(counts, accuracy, stream(0, "few"), resamples=50).few
    more = np.ones((10, 2, 3), dtype=int)
    assert not cluster_bootstrap(more, accuracy, stream(0, "few"), resamples=50).few


def test_an_interval_never_excludes_its_figure() -> None:
    samples = np.linspace(0.6, 0.8, 1000)[:, None]
    low, high, _ = percentile_interval(samples, np.array([0.5]), 50)
    assert low[0] == 0.5
    low, high, _ = percentile_interval(samples, np.array([0.9]), 50)
    assert high[0] == 0.9


def test_bootstrap_refuses_empty_and_flat_input() -> None:
    with pytest.raises(
        DataError, match=r"bootstrap: an array of shape \(0, 2\); wanted \(units, features\)"
    ):
        resample_sums(np.zeros((0, 2)), 10, stream(0, "none"))
    with pytest.raises(
        DataError, match=r"counts of shape \(3, 3\); wanted \(units, rows, columns\)"
    ):
        cluster_bootstrap(np.zeros((3, 3)), accuracy, stream(0, "flat"))


@pytest.mark.parametrize(("speakers", "each"), [(12, 10), (60, 4)])
def test_intervals_by_speaker_cover_the_truth_where_items_are_correlated(
    speakers: int, each: int
) -> None:
    """300 simulated sets; Wilson, which takes items as independent, covers too rarely here."""
    rng = stream(20, "coverage", str(speakers))
    sets, covered, covered_wilson = 300, 0, 0
    for number in range(sets):
        right = rng.binomial(each, rng.beta(2, 2, speakers))
        rows = np.stack([right, np.full(speakers, each)], axis=1)
        sums = resample_sums(rows, 2_000, stream(number, "set"))
        value = np.asarray(right.sum() / (speakers * each))
        low, high, _ = percentile_interval(ratio(sums[:, 0], sums[:, 1]), value, speakers)
        covered += bool(low <= 0.5 <= high)
        wilson_low, wilson_high = wilson(int(right.sum()), speakers * each)
        covered_wilson += wilson_low <= 0.5 <= wilson_high
    assert 0.92 <= covered / sets <= 0.98
    assert covered_wilson / sets < 0.90
