"""Loudness by Recommendation ITU-R BS.1770 (4 of 2015, 5 of 2023), with EBU Tech 3341 and Tech 3342.

The expensive part, K-weighting, is done once by :func:`k_weighted`; it keeps the energy of every 100 ms.
Integrated, momentary and short-term loudness and the loudness range are then cheap views of it.

Conventions
-----------
- Blocks of 400 ms (momentary) and 3 s (short-term) start every 100 ms. 100 ms are ``samples_at(0.1, rate)``
  samples; blocks are whole, a rest under 100 ms at the end belongs to none.
- Integrated loudness is gated at -70 LUFS and then at 10 LU under the mean of the blocks above that.
- **Sounds under 400 ms** have no whole block. Their rule is ``one_block``: the block is the sound, its energy is
  divided by its own length.
- **Silent is a value**: what has nothing above the gate of -70 LUFS has ``lufs`` ``None``, whatever its
  length. No level is ever minus infinity. In arrays, blocks under -120 LUFS (less than the noise of 20 bits)
  are NaN.
- The filter starts at rest, as if there were silence before the sound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from earwitness.audio.decibels import power_from_db
from earwitness.audio.types import samples_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from earwitness.audio.types import Audio

    Floats = npt.NDArray[np.float64]

Rule = Literal["gated", "one_block"]

# ITU-R BS.1770-5, Annex 1, tables 1 and 2: numerator and denominator at 48 kHz.
TABLE_RATE_HZ = 48_000
SHELF_48K = (1.53512485958697, -2.69169618940638, 1.19839281085285, 1.0, -1.69065929318241, 0.73248077421585)  # fmt: skip
HIGHPASS_48K = (1.0, -2.0, 1.0, 1.0, -1.99004745483398, 0.99007225036621)

OFFSET_DB = -0.691
"""BS.1770: makes a 997 Hz sine of full scale in one front channel read -3.01 LUFS."""

HOP_S = 0.1
BLOCK_HOPS = 4
SHORT_TERM_HOPS = 30
ABSOLUTE_GATE_LUFS = -70.0
RELATIVE_GATE_LU = -10.0
RANGE_GATE_LU = -20.0
RANGE_PERCENTILES = (0.10, 0.95)
"""EBU Tech 3342."""

FLOOR_LUFS = -120.0
"""Blocks below have no level: NaN."""

SURROUND = 1.41
CHANNEL_WEIGHTS: dict[int, tuple[float, ...]] = {
    1: (1.0,),
    2: (1.0, 1.0),
    3: (1.0, 1.0, 1.0),
    4: (1.0, 1.0, SURROUND, SURROUND),
    5: (1.0, 1.0, 1.0, SURROUND, SURROUND),
    6: (1.0, 1.0, 1.0, 0.0, SURROUND, SURROUND),
}
"""BS.1770 table 3 for L, R, (C, (LFE)), Ls, Rs. Other layouts: give the weights."""

MIN_RATE_HZ = 4_000
"""The shelf's corner at 1.7 kHz must lie well under half the rate."""

_GAIN_STEPS = 6
_GAIN_EXACT_DB = 1e-9
_CHUNK_HOPS = 64
"""Filtered at a time: 6.4 s, so that memory does not grow with the recording."""


@dataclass(frozen=True, slots=True)
class Loudness:
    """How loud a whole sound is.

    Parameters
    ----------
    lufs: integrated loudness in LUFS, or ``None`` for silence.
    rule: ``gated`` for sounds of 400 ms and more, ``one_block`` for shorter ones.

    Examples
    --------
    >>> Loudness(-20.0, "gated").gain_db_to(-23.0)
    -3.0
    >>> Loudness(None, "gated").silent
    True
    """

    lufs: float | None
    rule: Rule

    @property
    def silent(self) -> bool:
        """Whether nothing rises above the gate of -70 LUFS."""
        return self.lufs is None

    def gain_db_to(self, target_lufs: float) -> float | None:
        """The gain in dB that brings it to a target; ``None`` for silence, which no gain makes louder.

        From the figure alone, so exact only where no part crosses the gate on the way: :meth:`KWeighted.gain_db_to`.
        """
        return None if self.lufs is None else target_lufs - self.lufs


@dataclass(frozen=True, slots=True)
class LoudnessSummary:
    """The figures of one recording. ``None`` where there is no level to state.

    Parameters
    ----------
    integrated: whole recording, gated.
    max_momentary_lufs: loudest 400 ms; ``None`` for shorter or silent recordings.
    max_short_term_lufs: loudest 3 s; ``None`` for shorter or silent recordings.
    range_lu: loudness range by Tech 3342; ``None`` without a 3 s block above -70 LUFS.
    sample_peak_dbfs: largest absolute sample; ``None`` for zeros.
    """

    integrated: Loudness
    max_momentary_lufs: float | None
    max_short_term_lufs: float | None
    range_lu: float | None
    sample_peak_dbfs: float | None


@dataclass(frozen=True, slots=True, eq=False)
class KWeighted:
    """Energies after K-weighting, from which every loudness follows.

    Parameters
    ----------
    rate: in Hz.
    frames: length of the recording in sample positions.
    hop_energies: sum of squares of every whole 100 ms, channels added by their weights; float64, shape (hops,).
    total_energy: the same sum over the whole recording, its rest under 100 ms included.
    """

    rate: int
    frames: int
    hop_energies: Floats
    total_energy: float

    @property
    def hop_frames(self) -> int:
        """Samples in 100 ms."""
        return samples_at(HOP_S, self.rate)

    def block_powers(self, hops: int = BLOCK_HOPS) -> Floats:
        """Mean squares of all whole blocks of so many hops, one starting at each hop; shape (blocks,)."""
        if len(self.hop_energies) < hops:
            return np.zeros(0)
        # Added block by block: differences of a running sum would leave rounding noise in silence.
        windows = np.lib.stride_tricks.sliding_window_view(self.hop_energies, hops)
        powers: Floats = windows.sum(axis=1) / (hops * self.hop_frames)
        return powers

    def amplified(self, gain_db: float) -> KWeighted:
        """The energies of the same recording turned up or down.

        Not every loudness moves with the gain: the gate at -70 LUFS stays where it is, so quiet parts may come to
        count, or no longer.
        """
        power = power_from_db(gain_db)
        return KWeighted(
            self.rate, self.frames, self.hop_energies * power, self.total_energy * power
        )

    def gain_db_to(self, target_lufs: float) -> float | None:
        """The gain after which it has a loudness, the gate at -70 LUFS applied at that level.

        Where quiet parts come over the gate just there, loudness jumps; then it is as near as the jump lets it.

        Returns
        -------
        float or None: in dB; None for silence, which no gain makes louder.

        Examples
        --------
        >>> import numpy as np
        >>> from earwitness.audio import Audio
        >>> t = np.arange(48000) / 48000
        >>> tone = k_weighted(Audio(np.sin(2 * np.pi * 997 * t).astype(np.float32), 48000))
        >>> round(tone.gain_db_to(-23.0), 2)
        -19.99
        """
        gain = 0.0
        for _ in range(_GAIN_STEPS):
            step = self.amplified(gain).integrated().gain_db_to(target_lufs)
            if step is None:
                return None
            gain += step
            if abs(step) < _GAIN_EXACT_DB:
                break
        return gain

    def integrated(self) -> Loudness:
        """Loudness of the whole recording, gated; see the module for sounds under 400 ms."""
        return combined_loudness((self,))

    def momentary_lufs(self) -> Floats:
        """Loudness of 400 ms starting at every 100 ms; shape (blocks,), NaN for silence."""
        return _levels(self.block_powers(BLOCK_HOPS))

    def short_term_lufs(self) -> Floats:
        """Loudness of 3 s starting at every 100 ms; shape (blocks,), NaN for silence."""
        return _levels(self.block_powers(SHORT_TERM_HOPS))

    def range_lu(self, step_hops: int = 1) -> float | None:
        """Loudness range by EBU Tech 3342: from the 10th to the 95th percentile of short-term loudness.

        Parameters
        ----------
        step_hops: hops from one block of 3 s to the next. libebur128 takes 10 (one second); on recordings
            under a minute the two differ by up to a few LU, as so few blocks are left for percentiles.

        Returns
        -------
        float or None: in LU; ``None`` if no block of 3 s lies above -70 LUFS.
        """
        powers = _above(self.block_powers(SHORT_TERM_HOPS)[::step_hops], ABSOLUTE_GATE_LUFS)
        if not len(powers):
            return None
        relative = float(powers.mean()) * power_from_db(RANGE_GATE_LU)
        levels = np.sort(_levels(powers[powers >= relative]))
        low, high = (levels[math.floor((len(levels) - 1) * p + 0.5)] for p in RANGE_PERCENTILES)
        return float(high - low)


def k_weighted(audio: Audio, channel_weights: Sequence[float] | None = None) -> KWeighted:
    """Filter a recording with the two K-weighting biquads and keep its energies.

    Parameters
    ----------
    audio: any number of samples; at least 4 kHz.
    channel_weights: one factor per channel; by default those of BS.1770 for 1 to 6 channels
        (L R, C, LFE, Ls, Rs in the order of WAV files).

    Raises
    ------
    ValueError: rate under 4 kHz, a number of channels without known weights, or samples that are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from earwitness.audio import Audio
    >>> t = np.arange(48000) / 48000
    >>> tone = Audio(np.sin(2 * np.pi * 997 * t).astype(np.float32), 48000)
    >>> round(k_weighted(tone).integrated().lufs, 2)
    -3.01
    """
    from scipy.signal import sosfilt

    weights = _weights(audio.channels, channel_weights)
    sos = k_weighting_sos(audio.rate)
    hop = samples_at(HOP_S, audio.rate)
    columns = audio.samples.reshape(audio.frames, audio.channels)
    hops = np.zeros(audio.frames // hop)
    rest = 0.0
    for channel, weight in enumerate(weights):
        if not weight:
            continue
        state = np.zeros((len(sos), 2))
        for first in range(0, audio.frames, _CHUNK_HOPS * hop):
            # float64 inside: a 38 Hz high-pass in float32 would add its rounding noise to quiet beds.
            filtered, state = sosfilt(
                sos, columns[first : first + _CHUNK_HOPS * hop, channel], zi=state
            )
            whole = len(filtered) // hop
            table = filtered[: whole * hop].reshape(whole, hop)
            hops[first // hop : first // hop + whole] += weight * np.einsum(
                "ij,ij->i", table, table
            )
            tail = filtered[whole * hop :]
            rest += weight * float(np.einsum("i,i->", tail, tail))
    total = float(hops.sum()) + rest
    if not math.isfinite(total):
        raise ValueError("samples contain NaN or infinity, or are too large; wanted finite audio")
    return KWeighted(audio.rate, audio.frames, hops, total)


def integrated_loudness(audio: Audio, channel_weights: Sequence[float] | None = None) -> Loudness:
    """Integrated loudness of a recording; arguments and errors as in :func:`k_weighted`.

    Examples
    --------
    >>> import numpy as np
    >>> from earwitness.audio import Audio
    >>> integrated_loudness(Audio(np.zeros(48000, np.float32), 48000))
    Loudness(lufs=None, rule='gated')
    """
    return k_weighted(audio, channel_weights).integrated()


def combined_loudness(parts: Iterable[KWeighted]) -> Loudness:
    """Loudness of several recordings as one programme: their blocks are gated together.

    For one speaker's turns, or one corpus. Parts under 400 ms have no block and count only if all parts are
    that short; then the rule is ``one_block`` over their whole length.
    """
    kept = list(parts)
    powers = np.concatenate([np.zeros(0), *(part.block_powers() for part in kept)])
    if len(powers):
        return Loudness(_gated(powers), "gated")
    seconds = sum(part.frames / part.rate for part in kept)
    energy = sum(part.total_energy / part.rate for part in kept)
    return Loudness(_gated(np.array([energy / seconds])) if seconds else None, "one_block")


def measure_loudness(
    audio: Audio, channel_weights: Sequence[float] | None = None
) -> LoudnessSummary:
    """All figures of one recording from one pass of the filter; arguments as in :func:`k_weighted`."""
    from earwitness.audio.peaks import sample_peak_dbfs

    energies = k_weighted(audio, channel_weights)
    return LoudnessSummary(
        integrated=energies.integrated(),
        max_momentary_lufs=_loudest(energies.momentary_lufs()),
        max_short_term_lufs=_loudest(energies.short_term_lufs()),
        range_lu=energies.range_lu(),
        sample_peak_dbfs=sample_peak_dbfs(audio),
    )


def k_weighting_sos(rate: int) -> Floats:
    """The two biquads of BS.1770 at any rate, as second-order sections; shape (2, 6).

    At 48 kHz they are the tables of the Recommendation; for other rates the analogue filters behind the tables
    are recovered and transformed anew, their corner frequencies (1682 Hz and 38 Hz) kept exact. That is what
    libebur128 does as well.

    Raises
    ------
    ValueError: rate under 4 kHz.
    """
    if rate < MIN_RATE_HZ:
        raise ValueError(f"rate is {rate} Hz; loudness needs at least {MIN_RATE_HZ} Hz")
    sos = np.array([rerated(SHELF_48K, rate), rerated(HIGHPASS_48K, rate)])
    # The Recommendation leaves the high-pass at a numerator of 1, -2, 1 whatever the rate, and so do meters.
    sos[1, :3] = HIGHPASS_48K[:3]
    return sos


def rerated(biquad: Sequence[float], rate: int) -> Floats:
    """A biquad given at 48 kHz, for another rate: bilinear transform back to analogue and forward again.

    With s = (1 - 1/z) / (1 + 1/z), c0 + c1/z + c2/z^2 stems from B0 + B1 s + B2 s^2 with B0 = (c0 + c1 + c2) / 4,
    B1 = (c0 - c2) / 2, B2 = (c0 - c1 + c2) / 4. The corner of the denominator lies at s = sqrt(A0 / A2) =
    tan(pi f0 / 48000); scaling s moves it to tan(pi f0 / rate).

    Returns
    -------
    float64 array, shape (6,): b0, b1, b2, 1, a1, a2.
    """
    numerator, denominator = (_analogue(part) for part in (biquad[:3], biquad[3:]))
    corner = math.sqrt(denominator[0] / denominator[2])
    wanted = math.tan(math.atan(corner) * TABLE_RATE_HZ / rate)
    scale = np.power(corner / wanted, np.arange(3))
    b, a = (_digital(part * scale) for part in (numerator, denominator))
    made: Floats = np.concatenate([b, a]) / a[0]
    return made


def _analogue(c: Sequence[float]) -> Floats:
    return np.array([(c[0] + c[1] + c[2]) / 4, (c[0] - c[2]) / 2, (c[0] - c[1] + c[2]) / 4])


def _digital(s: Floats) -> Floats:
    return np.array([s[0] + s[1] + s[2], 2 * (s[0] - s[2]), s[0] - s[1] + s[2]])


def _weights(channels: int, given: Sequence[float] | None) -> Sequence[float]:
    if given is not None:
        if len(given) != channels:
            raise ValueError(f"{len(given)} channel weights for {channels} channels")
        return given
    if channels not in CHANNEL_WEIGHTS:
        raise ValueError(
            f"no channel weights are known for {channels} channels; give channel_weights"
        )
    return CHANNEL_WEIGHTS[channels]


def _gated(powers: Floats) -> float | None:
    powers = _above(powers, ABSOLUTE_GATE_LUFS)
    if not len(powers):
        return None
    relative = float(powers.mean()) * power_from_db(RELATIVE_GATE_LU)
    return OFFSET_DB + 10 * math.log10(float(powers[powers > relative].mean()))


def _above(powers: Floats, level_lufs: float) -> Floats:
    kept: Floats = powers[powers > power_from_db(level_lufs - OFFSET_DB)]
    return kept


def _levels(powers: Floats) -> Floats:
    heard = powers > power_from_db(FLOOR_LUFS - OFFSET_DB)
    levels: Floats = np.where(
        heard, OFFSET_DB + 10 * np.log10(np.where(heard, powers, 1.0)), np.nan
    )
    return levels


def _loudest(levels: Floats) -> float | None:
    heard = levels[~np.isnan(levels)]
    return float(heard.max()) if len(heard) else None
