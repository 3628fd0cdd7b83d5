"""Figures as text: one place for rounding, missing values and units, used by every table, page and figure."""

from __future__ import annotations

import math

from earwitness.tasks.records import Estimate

MISSING = "–"
"""What a reader sees where nothing was counted; a NaN never reaches a page or a table."""


def known(value: float | None) -> bool:
    """Whether there is a figure at all."""
    return value is not None and math.isfinite(value)


def percent(value: float | None, digits: int = 1) -> str:
    """A share as a percentage without its sign.

    Example
    -------
    >>> percent(124 / 280)
    '44.3'
    >>> percent(float("nan"))
    '–'
    """
    if value is None or not math.isfinite(value):
        return MISSING
    text = f"{100 * value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def points(value: float | None) -> str:
    """A difference in percentage points, with its sign.

    Example
    -------
    >>> points(0.0312), points(-0.0312)
    ('+3.1', '−3.1')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    text = f"{100 * value:.1f}"
    if float(text) == 0:
        return "0.0"
    return text.replace("-", "−") if value < 0 else f"+{text}"


def interval(estimate: Estimate | None) -> str:
    """The 95% interval of a share, in percent.

    Example
    -------
    >>> interval(Estimate(0.443, 0.386, 0.501, "wilson"))
    '38.6 to 50.1'
    """
    if estimate is None or not (known(estimate.low) and known(estimate.high)):
        return MISSING
    return f"{percent(estimate.low)} to {percent(estimate.high)}"


def points_interval(estimate: Estimate) -> str:
    """The 95% interval of a difference, in points."""
    if not (known(estimate.low) and known(estimate.high)):
        return MISSING
    return f"{points(estimate.low)} to {points(estimate.high)}"


def p_value(value: float | None) -> str:
    """A p value to three places, never as zero.

    Example
    -------
    >>> p_value(0.00004), p_value(0.0312)
    ('<0.001', '0.031')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def seconds(value: float | None) -> str:
    """A latency in seconds: milliseconds matter below one second."""
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{value:.3f}" if value < 1 else f"{value:.1f}"


def dollars(value: float | None) -> str:
    """A cost in US dollars; small amounts keep four places."""
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{value:.4f}" if 0 < value < 1 else f"{value:.2f}"


def count(value: int) -> str:
    """A whole number with thin groups: ``12,345``."""
    return f"{value:,}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """``1 clip``, ``280 clips``."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def clean(text: str) -> str:
    """Text that can be written as UTF-8, whatever a provider sent: lone surrogates become ``?``."""
    return text.encode("utf-8", "replace").decode("utf-8")
