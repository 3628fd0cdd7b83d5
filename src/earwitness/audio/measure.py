"""Measuring samples block by block: level, peaks, silence, clipping, and how channels add up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from earwitness.audio.types import Samples

    Matrix = npt.NDArray[np.float64]

SILENT_CHANNEL_DB = 40.0
"""A channel that far below the loudest holds no programme: bleed, noise or nothing."""

CANCEL_DB = 3.0
"""A mean that loses this much more than unrelated channels would is cancelled by their phases."""

FULL_SCALE = 32767 / 32768
CLIPPED_RUN = 3
"""Samples in a row at full scale that are taken for clipping."""


class Mix(NamedTuple):
    """How channels become one: their weights, and the same in words. ``kind`` is a stable word."""

    weights: tuple[float, ...]
    kind: str
    policy: str


class Meter:
    """Running measures of one recording. Squares are summed in float64, so that 1e30 does not overflow.

    Parameters
    ----------
    channels: number of channels of the blocks that will be added.
    """

    def __init__(self, channels: int) -> None:
        import numpy as np

        self.channels = channels
        self.frames = 0
        self.non_finite = 0
        self.first_non_finite: int | None = None
        self.clipped = 0
        self._gram: Matrix = np.zeros((channels, channels))
        self._sum: Matrix = np.zeros(channels)
        self._low: Matrix = np.full(channels, np.inf)
        self._high: Matrix = np.full(channels, -np.inf)

    def add(self, block: Samples) -> None:
        """Measure ``block``, shape ``(n, channels)``; samples that are not finite count as 0."""
        import numpy as np

        if not len(block):
            return
        wide = block.astype(np.float64)
        total = wide.sum(axis=0)
        # A sum of float32 cannot overflow in float64, so it is finite exactly if all samples are.
        if not np.isfinite(total).all():
            finite = np.isfinite(block)
            self.non_finite += int(finite.size - np.count_nonzero(finite))
            if self.first_non_finite is None:
                self.first_non_finite = self.frames + int(np.argmin(finite.all(axis=1)))
            block = np.where(finite, block, np.float32(0))
            wide = block.astype(np.float64)
            total = wide.sum(axis=0)
        self._gram += second_moments(wide)
        self._sum += total
        self._low = np.minimum(self._low, block.min(axis=0))
        self._high = np.maximum(self._high, block.max(axis=0))
        if float(max(self._high.max(), -self._low.min())) >= FULL_SCALE:
            self.clipped += _clipped(block)
        self.frames += len(block)

    @property
    def peak(self) -> float:
        """Largest absolute sample."""
        return float(max(self._high.max(), -self._low.min())) if self.frames else 0.0

    @property
    def swing(self) -> float:
        """Largest peak-to-peak range of any channel: 0 for a constant."""
        return float((self._high - self._low).max()) if self.frames else 0.0

    @property
    def rms_dbfs(self) -> float:
        if not self.frames:
            return -math.inf
        power = float(self._gram.trace()) / (self.frames * self.channels)
        return 10 * math.log10(power) if power > 0 else -math.inf

    @property
    def offset(self) -> float:
        """Largest mean of any channel, as a distance from zero."""
        return float(abs(self._sum).max()) / self.frames if self.frames else 0.0

    def mix(self) -> Mix:
        """How to make one channel: see :func:`earwitness.audio.convert.to_mono`."""
        return choose_mix(self._gram, self._sum, self.frames)


def _clipped(block: Samples) -> int:
    import numpy as np

    level = np.abs(block)
    full = (level >= FULL_SCALE) & (level <= 1.0)
    runs = full.copy()
    for shift in range(1, CLIPPED_RUN):
        runs[: len(full) - shift] &= full[shift:]
        runs[len(full) - shift :] = False
    return int(np.count_nonzero(runs))


def second_moments(wide: Matrix) -> Matrix:
    """``wide.T @ wide`` without BLAS, whose threads would fight with those of other workers.

    Parameters
    ----------
    wide: float64, shape (n, channels).
    """
    import numpy as np

    if wide.shape[1] == 1:
        return np.full((1, 1), np.square(wide).sum())
    made: Matrix = np.einsum("ni,nj->ij", wide, wide)
    return made


def choose_mix(gram: Matrix, total: Matrix, frames: int) -> Mix:
    """Choose the weights of a down-mix from second moments, so that it needs no second pass.

    Parameters
    ----------
    gram: ``X.T @ X`` of samples X, shape (channels, channels).
    total: sum of every channel.
    frames: number of frames.
    """
    import numpy as np

    channels = len(total)
    if channels == 1:
        return Mix((1.0,), "mono", "mono")
    even = Mix((1 / channels,) * channels, "mean", f"mean of {channels} channels")
    if not frames:
        return even
    mean = total / frames
    cov = gram / frames - np.outer(mean, mean)
    power = np.diag(cov)
    loudest = int(np.argmax(power))
    if power[loudest] <= 0:
        return even
    active = power >= power[loudest] * 10 ** (-SILENT_CHANNEL_DB / 10)
    count = int(active.sum())
    only = tuple(float(c == loudest) for c in range(channels))
    if count == 1:
        kind = "silent_channel"
        return Mix(only, kind, f"channel {loudest + 1} of {channels}, as the others are silent")
    weights = active / count
    mixed = float(weights @ cov @ weights)
    floor = power[loudest] / count * 10 ** (-CANCEL_DB / 10)
    if mixed < floor:
        lost = f"{10 * math.log10(power[loudest] / mixed):.0f} dB" if mixed > 0 else "all of it"
        why = f"as the mean cancels ({lost} lost)"
        return Mix(only, "antiphase", f"channel {loudest + 1} of {channels}, {why}")
    if count < channels:
        names = ", ".join(str(int(c) + 1) for c in np.flatnonzero(active))
        policy = f"mean of channels {names} of {channels}, as the others are silent"
        return Mix(tuple(float(w) for w in weights), "silent_channel", policy)
    return even
