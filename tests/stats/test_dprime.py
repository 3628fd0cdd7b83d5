"""d-prime with the log-linear correction."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from earwitness.errors import DataError
from earwitness.stats.dprime import d_prime
from earwitness.stats.streams import stream


def test_equals_the_formula_and_stays_finite_at_the_ends() -> None:
    found = d_prime(np.array([20, 0, 7]), 20, np.array([0, 0, 3]), 20)
    hit, false = np.array([20.5, 0.5, 7.5]) / 21, np.array([0.5, 0.5, 3.5]) / 21
    assert found.d_prime == pytest.approx(norm.ppf(hit) - norm.ppf(false))
    assert found.criterion == pytest.approx(-(norm.ppf(hit) + norm.ppf(false)) / 2)
    assert np.isfinite(found.d_prime).all()
    assert found.d_prime[1] == 0


def test_a_listener_of_known_sensitivity_is_recovered() -> None:
    rng = stream(0, "listener")
    n, d, c = 40_000, 1.5, 0.3
    hits = int((rng.normal(d / 2, 1, n) > c).sum())
    false_alarms = int((rng.normal(-d / 2, 1, n) > c).sum())
    found = d_prime(hits, n, false_alarms, n)
    assert float(found.d_prime) == pytest.approx(d, abs=0.04)
    assert float(found.criterion) == pytest.approx(c, abs=0.02)


def test_deaf_is_zero_and_leaning_shows_in_the_criterion() -> None:
    yes = d_prime(90, 100, 90, 100)
    assert float(yes.d_prime) == 0
    assert float(yes.criterion) < -1


def test_more_answers_than_questions_are_refused() -> None:
    with pytest.raises(DataError, match="more yes answers than questions"):
        d_prime(5, 4, 0, 4)
