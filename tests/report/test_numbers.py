from __future__ import annotations

import math

import pytest

from earwitness.report import numbers
from earwitness.tasks.records import Estimate

NAN = math.nan


@pytest.mark.parametrize(
    ("value", "text"),
    [(124 / 280, "44.3"), (0.0, "0.0"), (1.0, "100.0"), (-0.0001, "0.0"), (NAN, "–"), (None, "–")],
)
def test_percent(value: float | None, text: str) -> None:
    assert numbers.percent(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0312, "+3.1"), (-0.0312, "−3.1"), (-0.0001, "0.0"), (NAN, "–")]
)
def test_points_carry_their_sign(value: float, text: str) -> None:
    assert numbers.points(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "<0.001"), (0.0009, "<0.001"), (0.001, "0.001"), (1.0, "1.000"), (NAN, "–")],
)
def test_p_value_is_never_zero(value: float, text: str) -> None:
    assert numbers.p_value(value) == text


def test_intervals() -> None:
    known = Estimate(0.443, 0.386, 0.501, "wilson")
    unknown = Estimate(NAN, NAN, NAN, "nothing counted")
    assert numbers.interval(known) == "38.6 to 50.1"
    assert numbers.interval(unknown) == numbers.interval(None) == "–"
    assert numbers.points_interval(Estimate(0, -0.02, 0.03, "")) == "−2.0 to +3.0"
    assert numbers.points_interval(unknown) == "–"


def test_seconds_and_dollars() -> None:
    assert [numbers.seconds(value) for value in (0.1234, 12.34, None, NAN)] == [
        "0.123",
        "12.3",
        "–",
        "–",
    ]
    assert [numbers.dollars(value) for value in (0.0, 0.0123, 12.3, None)] == [
        "0.00",
        "0.0123",
        "12.30",
        "–",
    ]


def test_plural() -> None:
    assert numbers.plural(1, "clip") == "1 clip"
    assert numbers.plural(12345, "reply", "replies") == "12,345 replies"


def test_lone_surrogates_become_writable() -> None:
    assert numbers.clean("a\ud800b") == "a?b"
