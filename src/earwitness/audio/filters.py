"""Filters as cascades of second-order sections: Butterworth low- and high-pass, shelves, peaking.

Several filters of one bus are joined with :func:`cascade` and run in one pass. Samples are float32 in and out,
the recursion inside is float64. The output has exactly the length of the input; there is silence before it.

Delay: a filter run once is causal and delays every frequency by :meth:`Filter.delay_s`; with ``zero_phase`` it
is run forward and backward, delays nothing, and its gain in dB counts twice. Onsets then ring before
themselves a little (pre-ringing of the order of one period of the corner frequency).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from earwitness.audio.convolution import convolve
from earwitness.audio.types import Audio

if TYPE_CHECKING:
    import numpy.typing as npt

    from earwitness.audio.types import Samples

    Floats = npt.NDArray[np.float64]

BUTTERWORTH_Q = math.sqrt(0.5)

_CHUNK = 1 << 18
_RING_DB = -140.0
_LONGEST_RING_S = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """A cascade of biquads for one sample rate.

    Parameters
    ----------
    sos: second-order sections as in ``scipy.signal``; float64, shape (sections, 6).
    rate: in Hz.

    Raises
    ------
    ValueError: wrong shape, or poles on or outside the unit circle.
    """

    sos: Floats
    rate: int

    def __post_init__(self) -> None:
        if self.sos.ndim != 2 or self.sos.shape[1] != 6:
            raise ValueError(f"sections have shape {self.sos.shape}; wanted (sections, 6)")
        if self._largest_pole() >= 1:
            raise ValueError("the filter is not stable")

    def apply(self, audio: Audio, *, zero_phase: bool = False) -> Audio:
        """The filtered recording, of the same length and rate.

        Parameters
        ----------
        audio: mono or several channels, each filtered alone.
        zero_phase: run forward and backward: no delay, twice the gain in dB.

        Raises
        ------
        ValueError: the recording has another rate.

        Examples
        --------
        >>> import numpy as np
        >>> click = Audio(np.eye(1, 1000, dtype=np.float32)[0], 16000)
        >>> lowpass(4000, 16000).apply(click).samples.shape
        (1000,)
        """
        if audio.rate != self.rate:
            raise ValueError(f"a filter for {self.rate} Hz met a recording of {audio.rate} Hz")
        if not len(self.sos) or not audio.frames:
            return audio
        run = self._both_ways if zero_phase else self._forward
        if audio.samples.ndim == 1:
            return Audio(run(audio.samples), self.rate)
        return Audio(np.stack([run(column) for column in audio.samples.T], axis=1), self.rate)

    def response_db(self, frequencies_hz: Floats) -> Floats:
        """Gain of one pass in dB at each frequency; -inf never: below -400 dB it is -400."""
        return 20 * np.log10(np.maximum(np.abs(self._response(frequencies_hz)), 1e-20))

    def delay_s(self, frequency_hz: float) -> float:
        """Group delay of one pass in seconds at a frequency (exact, from the coefficients)."""
        z = np.exp(-2j * np.pi * frequency_hz / self.rate)
        powers, orders = z ** np.arange(3), np.arange(3)
        delay = 0.0
        for section in self.sos:
            for part, sign in ((section[:3], 1.0), (section[3:], -1.0)):
                delay += sign * float(((orders * part) @ powers / (part @ powers)).real)
        return delay / self.rate

    def ring_frames(self) -> int:
        """Samples after which an impulse has decayed by 140 dB (an estimate from the slowest pole)."""
        pole = self._largest_pole()
        if pole == 0:
            return 2 * len(self.sos)
        wanted = _RING_DB / 20 * math.log(10) / math.log(pole)
        # Poles that coincide decay by a power of n more slowly; half as much again covers four of them.
        return 2 * len(self.sos) + math.ceil(min(1.5 * wanted, _LONGEST_RING_S * self.rate))

    def _largest_pole(self) -> float:
        return max(
            (float(np.abs(np.roots(row[3:])).max(initial=0.0)) for row in self.sos), default=0.0
        )

    def _response(self, frequencies_hz: Floats) -> npt.NDArray[np.complex128]:
        z = np.exp(-2j * np.pi * np.asarray(frequencies_hz, np.float64) / self.rate)
        total = np.ones(z.shape, np.complex128)
        for b0, b1, b2, a0, a1, a2 in self.sos:
            total *= (b0 + b1 * z + b2 * z * z) / (a0 + a1 * z + a2 * z * z)
        return total

    def _forward(self, samples: Samples) -> Samples:
        from scipy.signal import sosfilt

        made = np.empty(len(samples), np.float32)
        state = np.zeros((len(self.sos), 2))
        for first in range(0, len(samples), _CHUNK):
            part = slice(first, first + _CHUNK)
            made[part], state = sosfilt(self.sos, samples[part], zi=state)
        return made

    def _both_ways(self, samples: Samples) -> Samples:
        # Twice through the recursion costs more than once through the FFT, and needs the recording in float64.
        kernel = self.zero_phase_kernel()
        made = convolve(Audio(samples, self.rate), kernel).samples
        first = len(kernel) // 2
        return made[first : first + len(samples)]

    def zero_phase_kernel(self) -> Samples:
        """The response of a forward and a backward pass to an impulse in its middle: float32, odd length."""
        from scipy.signal import fftconvolve, sosfilt

        click = np.zeros(self.ring_frames())
        click[0] = 1.0
        once = sosfilt(self.sos, click)
        both = fftconvolve(once, once[::-1])
        # Symmetry to the last bit, whatever the transform rounds.
        return (0.5 * (both + both[::-1])).astype(np.float32)


def cascade(*filters: Filter) -> Filter:
    """One filter that does the work of several in one pass.

    Raises
    ------
    ValueError: none given, or different rates.
    """
    rates = sorted({each.rate for each in filters})
    if len(rates) != 1:
        raise ValueError(f"filters of {len(rates)} rates {rates}; wanted one rate")
    return Filter(np.concatenate([each.sos for each in filters]), rates[0])


def lowpass(cutoff_hz: float, rate: int, order: int = 4) -> Filter:
    """Butterworth low-pass: -3 dB at the cut-off, 6 dB per octave and order beyond.

    Raises
    ------
    ValueError: a cut-off that is not between 0 and half the rate, or an order below 1.
    """
    return _butterworth("lowpass", cutoff_hz, rate, order)


def highpass(cutoff_hz: float, rate: int, order: int = 2) -> Filter:
    """Butterworth high-pass; as :func:`lowpass`, below the cut-off."""
    return _butterworth("highpass", cutoff_hz, rate, order)


def peaking(frequency_hz: float, gain_db: float, rate: int, q: float = BUTTERWORTH_Q) -> Filter:
    """A bell of the given gain at its centre, 0 dB far away.

    From R. Bristow-Johnson, *Cookbook formulae for audio EQ biquad filter coefficients* (W3C Audio EQ Cookbook).

    Raises
    ------
    ValueError: a frequency that is not between 0 and half the rate, or a Q that is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> bell = peaking(250, -1.5, 44100, q=0.7)
    >>> bell.response_db(np.array([250.0])).round(6).tolist()
    [-1.5]
    """
    cos, alpha = _cookbook(frequency_hz, rate, q)
    a = 10 ** (gain_db / 40)
    return _biquad(
        (1 + alpha * a, -2 * cos, 1 - alpha * a), (1 + alpha / a, -2 * cos, 1 - alpha / a), rate
    )


def low_shelf(corner_hz: float, gain_db: float, rate: int, q: float = BUTTERWORTH_Q) -> Filter:
    """Raises or lowers everything below a corner, where half of the gain in dB is reached.

    Source and errors as :func:`peaking`; the default Q is the steepest slope without overshoot.
    """
    return _shelf(corner_hz, gain_db, rate, q, 1.0)


def high_shelf(corner_hz: float, gain_db: float, rate: int, q: float = BUTTERWORTH_Q) -> Filter:
    """Raises or lowers everything above a corner; otherwise as :func:`low_shelf`."""
    return _shelf(corner_hz, gain_db, rate, q, -1.0)


def _shelf(corner_hz: float, gain_db: float, rate: int, q: float, side: float) -> Filter:
    # The cookbook's high shelf is its low shelf with the sign of the cosine turned, and that of b1 and a1.
    cos, alpha = _cookbook(corner_hz, rate, q)
    cos *= side
    a = 10 ** (gain_db / 40)
    slope = 2 * math.sqrt(a) * alpha
    up, down = a + 1, a - 1
    b = (
        a * (up - down * cos + slope),
        side * 2 * a * (down - up * cos),
        a * (up - down * cos - slope),
    )
    d = (up + down * cos + slope, side * -2 * (down + up * cos), up + down * cos - slope)
    return _biquad(b, d, rate)


def _butterworth(
    kind: Literal["lowpass", "highpass"], cutoff_hz: float, rate: int, order: int
) -> Filter:
    _check_frequency(cutoff_hz, rate)
    if order < 1:
        raise ValueError(f"filter order is {order}; wanted at least 1")
    return Filter(_designed(kind, cutoff_hz, rate, order).copy(), rate)


@lru_cache(maxsize=256)
def _designed(
    kind: Literal["lowpass", "highpass"], cutoff_hz: float, rate: int, order: int
) -> Floats:
    """Sections of a Butterworth filter: designing one costs as much as filtering a second with it."""
    from scipy.signal import butter

    sos: Floats = butter(order, cutoff_hz, kind, output="sos", fs=rate)
    return sos


def _cookbook(frequency_hz: float, rate: int, q: float) -> tuple[float, float]:
    _check_frequency(frequency_hz, rate)
    if not q > 0:
        raise ValueError(f"filter Q is {q}; wanted more than 0")
    omega = 2 * math.pi * frequency_hz / rate
    return math.cos(omega), math.sin(omega) / (2 * q)


def _biquad(b: tuple[float, float, float], a: tuple[float, float, float], rate: int) -> Filter:
    return Filter(np.array([[*b, *a]]) / a[0], rate)


def _check_frequency(frequency_hz: float, rate: int) -> None:
    if not 0 < frequency_hz < rate / 2:
        raise ValueError(
            f"filter frequency is {frequency_hz:g} Hz; wanted between 0 and {rate / 2:g} Hz, half the rate"
        )
