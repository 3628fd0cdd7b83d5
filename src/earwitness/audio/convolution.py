"""Convolution by overlap-add with the FFT, in float32 and in memory that grows with the input only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from earwitness.audio.types import Audio

if TYPE_CHECKING:
    import numpy.typing as npt

    from earwitness.audio.types import Samples

    Spectrum = npt.NDArray[np.complex64]

_ROWS = 4
"""Blocks transformed together: the FFT takes four float32 rows in one vector register, which nearly halves its
time; more rows leave the cache. Memory beyond input and output is that of these rows."""

_ALONE = 1.7
"""What a block costs if it is transformed alone, against one of four."""

_SMALLEST_FFT = 1 << 14
"""Below, the loop over blocks costs more than the transforms."""

_LARGEST_FFT = 1 << 16
"""Four rows of this size still fit a common second-level cache; longer responses take what they need."""


def convolve(audio: Audio, impulse_response: Samples) -> Audio:
    """Put a recording into a room (or through any finite impulse response), its tail kept.

    Parameters
    ----------
    audio: mono or several channels, each convolved alone.
    impulse_response: float32, shape (m,), at the recording's rate.

    Returns
    -------
    Audio: ``frames + m - 1`` sample positions; nothing is delayed that the response does not delay. No
    sample of a recording or response means none in the result. Each sample is within 1e-6 of the exact sum,
    relative to the sum of the absolute response times the largest sample.

    Raises
    ------
    ValueError: a response that is not one-dimensional.
    TypeError: a response that is not float32.

    Examples
    --------
    >>> import numpy as np
    >>> echo = np.array([1, 0, 0.5], np.float32)
    >>> convolve(Audio(np.array([1, 2], np.float32), 16000), echo).samples.round(5).tolist()
    [1.0, 2.0, 0.5, 1.0]
    """
    if impulse_response.ndim != 1:
        raise ValueError(f"impulse response has shape {impulse_response.shape}; wanted (m,)")
    if str(impulse_response.dtype) != "float32":
        raise TypeError(f"impulse response is {impulse_response.dtype}; wanted float32")
    if not audio.frames or not len(impulse_response):
        return Audio(audio.samples[:0], audio.rate)
    if audio.samples.ndim == 1:
        return Audio(_convolve(audio.samples, impulse_response), audio.rate)
    made = [_convolve(column, impulse_response) for column in audio.samples.T]
    return Audio(np.stack(made, axis=1), audio.rate)


def _convolve(samples: Samples, response: Samples) -> Samples:
    from scipy.fft import irfft, rfft

    made = np.zeros(len(samples) + len(response) - 1, np.float32)
    # A dry response is one sample and silence: what follows its last sound costs nothing.
    response = response[: _last_sound(response) + 1]
    if len(response) == 1:
        np.multiply(samples, response[0], out=made[: len(samples)])
        return made
    size = fft_size(len(samples), len(response))
    step = size - len(response) + 1
    spectrum: Spectrum = rfft(response, size)
    for first in range(0, len(samples), _ROWS * step):
        part = samples[first : first + _ROWS * step]
        count = -(-len(part) // step)
        blocks = np.zeros((count, size), np.float32)
        whole = len(part) // step
        blocks[:whole, :step] = part[: whole * step].reshape(whole, step)
        blocks[whole:, : len(part) - whole * step] = part[whole * step :]
        spectra = rfft(blocks, axis=1, overwrite_x=True)
        spectra *= spectrum
        waves = irfft(spectra, size, axis=1, overwrite_x=True)
        for row, wave in enumerate(waves):
            start = first + row * step
            stop = min(start + size, len(made))
            made[start:stop] += wave[: stop - start]
    return made


def _last_sound(response: Samples) -> int:
    """The position of the last sample that is not zero; 0 if there is none."""
    return len(response) - 1 - int(np.argmax(response[::-1] != 0)) if response.any() else 0


def fft_size(frames: int, taps: int) -> int:
    """The size of transform that costs least for so many samples and taps."""
    from scipy.fft import next_fast_len

    sizes = [int(next_fast_len(frames + taps - 1, real=True))]
    size = 1 << max(_SMALLEST_FFT.bit_length() - 1, math.ceil(math.log2(2 * taps)))
    while size < sizes[0]:
        sizes += [size, size * 3 // 2]
        if size >= _LARGEST_FFT:
            break
        size *= 2

    def cost(n: int) -> float:
        blocks = -(-frames // (n - taps + 1))
        return blocks * n * math.log2(n) * (1 if blocks >= _ROWS else _ALONE)

    return min(sizes, key=cost)
