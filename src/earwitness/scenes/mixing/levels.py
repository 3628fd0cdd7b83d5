"""Levels inside a mix: how loud a stretch of one bus is, and the one gain of the master."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from earwitness.audio.decibels import amplitude_from_db, db_from_amplitude
from earwitness.audio.loudness import (
    FLOOR_LUFS,
    OFFSET_DB,
    KWeighted,
    k_weighted,
    k_weighting_sos,
)
from earwitness.audio.peaks import HEADROOM_DB, sample_peak_dbfs, true_peak_dbtp
from earwitness.audio.types import Audio, samples_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from earwitness.audio.types import Samples

PREROLL_S = 0.2
"""Filtered before a stretch, so that the K-weighting has settled where it begins."""
PEAK_MARGIN_DB = 0.001
"""Under the ceiling, as rounding to 16 bits may add half a step."""


def stretch_lufs(samples: Samples, start: int, end: int, rate: int) -> float | None:
    """K-weighted level of a stretch, ungated: what stands under or over a sound while it lasts.

    Returns
    -------
    float or None: in LUFS; None under -120 LUFS.
    """
    return stretches_lufs(samples, ((start, end),), rate)


def stretches_lufs(samples: Samples, spans: Iterable[tuple[int, int]], rate: int) -> float | None:
    """As :func:`stretch_lufs`, of several stretches taken together."""
    from scipy.signal import sosfilt

    sos = k_weighting_sos(rate)
    energy, count = 0.0, 0
    for start, end in spans:
        first, last = max(start, 0), min(end, len(samples))
        if last <= first:
            continue
        before = max(first - samples_at(PREROLL_S, rate), 0)
        filtered = sosfilt(sos, samples[before:last].astype(np.float64))[first - before :]
        energy += float(np.einsum("i,i->", filtered, filtered))
        count += last - first
    if not count or energy <= 0:
        return None
    level = OFFSET_DB + 10 * math.log10(energy / count)
    return level if level > FLOOR_LUFS else None


@dataclass(frozen=True, slots=True)
class MasterGain:
    """The static gain of a scene, and why it is what it is. Levels are before the gain.

    ``true_peak_dbtp`` is None where the sample peak is so far from the ceiling that no true peak can reach it.
    """

    gain_db: float
    lufs: float | None
    sample_peak_dbfs: float | None
    true_peak_dbtp: float | None
    peak_limited: bool


def master_gain(audio: Audio, target_lufs: float, ceiling_dbtp: float) -> MasterGain:
    """The gain that brings a mix to a loudness, or as near as the ceiling allows.

    Raises
    ------
    ValueError: the mix is silent.
    """
    lufs = k_weighted(audio).integrated().lufs
    if lufs is None:
        raise ValueError("the mix is silent")
    gain = target_lufs - lufs
    sample = sample_peak_dbfs(audio)
    true = peak_near(audio, sample, ceiling_dbtp - gain)
    limit = ceiling_dbtp - (true if true is not None else sample or -math.inf) - PEAK_MARGIN_DB
    limited = true is not None and gain > limit
    return MasterGain(limit if limited else gain, lufs, sample, true, limited)


def peak_near(audio: Audio, sample_dbfs: float | None, ceiling_dbtp: float) -> float | None:
    """The true peak, if it can be at the ceiling; otherwise None."""
    if sample_dbfs is None or sample_dbfs <= ceiling_dbtp - HEADROOM_DB:
        return None
    return true_peak_dbtp(audio)


def speaker_levels(parts: dict[str, list[KWeighted]]) -> dict[str, float | None]:
    """Loudness of each speaker's turns, gated together."""
    from earwitness.audio.loudness import combined_loudness

    return {who: combined_loudness(each).lufs for who, each in sorted(parts.items())}


__all__ = [
    "MasterGain",
    "amplitude_from_db",
    "db_from_amplitude",
    "master_gain",
    "peak_near",
    "speaker_levels",
    "stretch_lufs",
    "stretches_lufs",
]
