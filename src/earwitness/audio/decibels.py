"""Decibels and back. A level of nothing is ``None``, never minus infinity.

Decibels of an *amplitude* (sample values, gains) are ``20 log10``; of a *power* (mean squares, energies)
``10 log10``. Names say which one is meant.
"""

from __future__ import annotations

import math

Decibels = float
"""A level or a gain in dB; 0 is full scale, or no change."""


def amplitude_from_db(level_db: Decibels) -> float:
    """The factor on samples that a gain in dB stands for.

    Examples
    --------
    >>> round(amplitude_from_db(-6.0), 4)
    0.5012
    """
    return float(10.0 ** (level_db / 20.0))


def db_from_amplitude(amplitude: float) -> Decibels | None:
    """The level in dB of an amplitude, whose sign does not matter; ``None`` for 0.

    Raises
    ------
    ValueError: the amplitude is not finite.

    Examples
    --------
    >>> db_from_amplitude(-1.0), db_from_amplitude(0.0)
    (0.0, None)
    """
    if not math.isfinite(amplitude):
        raise ValueError(f"amplitude is {amplitude}; wanted a finite number")
    return 20.0 * math.log10(abs(amplitude)) if amplitude else None


def power_from_db(level_db: Decibels) -> float:
    """The factor on a power that a level in dB stands for."""
    return float(10.0 ** (level_db / 10.0))


def db_from_power(power: float) -> Decibels | None:
    """The level in dB of a power; ``None`` for 0.

    Raises
    ------
    ValueError: the power is negative or not finite.

    Examples
    --------
    >>> db_from_power(0.5)  # doctest: +ELLIPSIS
    -3.01...
    """
    if not math.isfinite(power) or power < 0:
        raise ValueError(f"power is {power}; wanted a finite number, 0 or more")
    return 10.0 * math.log10(power) if power else None
