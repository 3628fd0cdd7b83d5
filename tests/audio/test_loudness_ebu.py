"""The test signals of EBU Tech 3341 (2023, table 1) and Tech 3342 (table 1), made here, with the values they must give.

Cases 7 and 8 of Tech 3341 and 5 and 6 of Tech 3342 are recordings of broadcasts and cannot be made.
"""

from __future__ import annotations

import numpy as np
import pytest

from earwitness.audio import Audio
from earwitness.audio.loudness import k_weighted
from earwitness.audio.peaks import true_peak_dbtp

RATE = 48_000


def tone(*parts: tuple[float, float | None], channels: int = 2) -> Audio:
    """A 1 kHz sine in segments of (seconds, peak level in dBFS or None for silence), phase running on."""
    levels = np.concatenate(
        [
            np.full(round(seconds * RATE), 0.0 if level is None else 10 ** (level / 20))
            for seconds, level in parts
        ]
    )
    wave = levels * np.sin(2 * np.pi * 1000 * np.arange(len(levels)) / RATE)
    return Audio(np.repeat(wave[:, None], channels, axis=1).astype(np.float32), RATE)


@pytest.mark.parametrize(
    ("case", "parts", "expected"),
    [
        (1, [(20, -23.0)], -23.0),
        (2, [(20, -33.0)], -33.0),
        (3, [(10, -36.0), (60, -23.0), (10, -36.0)], -23.0),
        (4, [(10, -72.0), (10, -36.0), (60, -23.0), (10, -36.0), (10, -72.0)], -23.0),
        (5, [(20, -26.0), (20.1, -20.0), (20, -26.0)], -23.0),
    ],
)
def test_3341_integrated(case: int, parts: list[tuple[float, float]], expected: float) -> None:
    energies = k_weighted(tone(*parts))
    assert energies.integrated().lufs == pytest.approx(expected, abs=0.1)
    if case in (1, 2):
        np.testing.assert_allclose(energies.momentary_lufs(), expected, atol=0.1)
        np.testing.assert_allclose(energies.short_term_lufs(), expected, atol=0.1)


@pytest.mark.parametrize("with_low_frequency_channel", [False, True])
def test_3341_case_6_surround(with_low_frequency_channel: bool) -> None:
    sine = np.sin(2 * np.pi * 1000 * np.arange(20 * RATE) / RATE)
    levels = [-28.0, -28.0, -24.0, -30.0, -30.0]
    columns = [10 ** (level / 20) * sine for level in levels]
    if with_low_frequency_channel:
        columns.insert(3, sine)
    audio = Audio(np.stack(columns, axis=1).astype(np.float32), RATE)
    assert k_weighted(audio).integrated().lufs == pytest.approx(-23.0, abs=0.1)


def test_3341_case_9_short_term_is_constant() -> None:
    found = k_weighted(tone(*[(1.34, -20.0), (1.66, -30.0)] * 5)).short_term_lufs()
    np.testing.assert_allclose(found, -23.0, atol=0.1)


@pytest.mark.parametrize("segment", range(20))
def test_3341_case_10_maximum_short_term(segment: int) -> None:
    audio = tone((segment * 0.15, None), (3.0, -23.0), (1.0, None))
    assert np.nanmax(k_weighted(audio).short_term_lufs()) == pytest.approx(-23.0, abs=0.1)


def test_3341_case_11_maximum_short_term_of_a_stair() -> None:
    for step in range(20):
        audio = tone((step * 0.15, None), (3.0, -38.0 + step), (3.0 - step * 0.15, None))
        found = np.nanmax(k_weighted(audio).short_term_lufs())
        assert found == pytest.approx(-38.0 + step, abs=0.1)


def test_3341_case_12_momentary_is_constant() -> None:
    found = k_weighted(tone(*[(0.18, -20.0), (0.22, -30.0)] * 25)).momentary_lufs()
    np.testing.assert_allclose(found, -23.0, atol=0.1)


@pytest.mark.parametrize("segment", range(20))
def test_3341_case_13_maximum_momentary(segment: int) -> None:
    audio = tone((segment * 0.02, None), (0.4, -23.0), (1.0, None))
    # Blocks start every 100 ms, so up to 50 ms of a tone of 400 ms may be missed: 0.58 dB. The case is met where it
    # falls on a block, as the specification asks of meters that read files; others stay within that bound.
    found = float(np.nanmax(k_weighted(audio).momentary_lufs()))
    if segment % 5 == 0:
        assert found == pytest.approx(-23.0, abs=0.1)
    assert -23.6 <= found <= -22.9


def sine(divisor: int, amplitude: float, degrees: float) -> np.ndarray:
    n = np.arange(RATE)
    fade = np.minimum(1, np.minimum(n, n[::-1]) / (0.01 * RATE))
    wave = amplitude * fade * np.sin(2 * np.pi * n / divisor + np.radians(degrees))
    return np.stack([wave, wave], axis=1).astype(np.float32)


@pytest.mark.parametrize(
    ("case", "divisor", "amplitude", "degrees", "expected"),
    [
        (15, 4, 0.50, 0.0, -6.0),
        (16, 4, 0.50, 45.0, -6.0),
        (17, 6, 0.50, 60.0, -6.0),
        (18, 8, 0.50, 67.5, -6.0),
        (19, 4, 1.41, 45.0, 3.0),
    ],
)
def test_3341_true_peak_of_sines(
    case: int, divisor: int, amplitude: float, degrees: float, expected: float
) -> None:
    found = true_peak_dbtp(Audio(sine(divisor, amplitude, degrees), RATE))
    assert found is not None
    assert expected - 0.4 <= found <= expected + 0.2
    # Stricter than asked: the crest is between the samples, and found.
    assert found == pytest.approx(20 * np.log10(amplitude), abs=0.05)


@pytest.mark.parametrize("offset", range(4))
def test_3341_cases_20_to_23_true_peak_of_one_period(offset: int) -> None:
    from scipy.signal import firwin, oaconvolve

    carrier = 0.5 * np.sin(2 * np.pi * np.arange(24 * 300) / 24)
    period = np.sin(2 * np.pi * np.arange(16) / 16)
    wave = np.concatenate([carrier, period, carrier])
    n = np.arange(len(wave))
    wave *= np.minimum(1, np.minimum(n, n[::-1]) / 400)
    limited = oaconvolve(wave, firwin(1023, 0.25), mode="same")[offset::4]
    found = true_peak_dbtp(Audio(np.stack([limited, limited], axis=1).astype(np.float32), RATE))
    assert found is not None
    assert -0.4 <= found <= 0.2


@pytest.mark.parametrize(
    ("case", "levels", "expected"),
    [
        (1, (-20.0, -30.0), 10.0),
        (2, (-20.0, -15.0), 5.0),
        (3, (-40.0, -20.0), 20.0),
        (4, (-50.0, -35.0, -20.0, -35.0, -50.0), 15.0),
    ],
)
@pytest.mark.parametrize("step_hops", [1, 10])
def test_3342_range(case: int, levels: tuple[float, ...], expected: float, step_hops: int) -> None:
    energies = k_weighted(tone(*[(20, level) for level in levels]))
    assert energies.range_lu(step_hops) == pytest.approx(expected, abs=1.0)
