"""Fades, cross-fades, loops and gains that move.

Lengths are exact: they come from ``samples_at`` and from nothing else. Curves are sampled at the middle of each
sample position, so that a fade-in and the fade-out beside it mirror each other and their gains (or powers) add up
to exactly one at every sample.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Literal

import numpy as np

from earwitness.audio.decibels import amplitude_from_db
from earwitness.audio.types import Audio, samples_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from earwitness.audio.types import Samples

Shape = Literal["raised_cosine", "linear", "equal_power"]
Law = Literal["equal_power", "equal_gain"]


def fade_curve(frames: int, shape: Shape = "raised_cosine") -> Samples:
    """A rising gain from 0 to 1; its reverse falls. float32, shape (frames,).

    ``raised_cosine`` and ``linear`` add up to 1 with their reverse (for material that is alike on both sides);
    the squares of ``equal_power`` do (for unrelated material such as noise).

    Raises
    ------
    ValueError: an unknown shape, or a negative number of frames.

    Examples
    --------
    >>> fade_curve(4, "linear").tolist()
    [0.125, 0.375, 0.625, 0.875]
    """
    if frames < 0:
        raise ValueError(f"a fade of {frames} samples; wanted 0 or more")
    place = (np.arange(frames) + 0.5) / max(frames, 1)
    if shape == "linear":
        curve = place
    elif shape == "raised_cosine":
        curve = 0.5 - 0.5 * np.cos(np.pi * place)
    elif shape == "equal_power":
        curve = np.sin(0.5 * np.pi * place)
    else:
        raise ValueError(f"fade shape is {shape!r}; wanted raised_cosine, linear or equal_power")
    return curve.astype(np.float32)


def fade(
    audio: Audio, in_s: float = 0.0, out_s: float = 0.0, shape: Shape = "raised_cosine"
) -> Audio:
    """Fade a recording in and out. Fades longer than the recording are shortened to it.

    Parameters
    ----------
    in_s, out_s: durations in seconds; where the two overlap, both gains apply.

    Raises
    ------
    ValueError: a negative duration, or an unknown shape.

    Examples
    --------
    >>> import numpy as np
    >>> fade(Audio(np.ones(4, np.float32), 4), out_s=0.5, shape="linear").samples.tolist()
    [1.0, 1.0, 0.75, 0.25]
    """
    rising = min(samples_at(in_s, audio.rate), audio.frames)
    falling = min(samples_at(out_s, audio.rate), audio.frames)
    made = audio.samples.copy()
    made[:rising] *= _column(fade_curve(rising, shape), made)
    made[audio.frames - falling :] *= _column(fade_curve(falling, shape)[::-1], made)
    return Audio(made, audio.rate)


def concatenate(
    parts: Sequence[Audio], crossfade_s: float = 0.0, law: Law = "equal_power"
) -> Audio:
    """Recordings one after the other, each blended into the next.

    Parameters
    ----------
    parts: one or more, of the same rate and number of channels.
    crossfade_s: how long neighbours overlap; shortened to half of the shorter neighbour, so that no sample
        belongs to two blends.
    law: ``equal_power`` keeps the power of unrelated material, ``equal_gain`` the amplitude of related.

    Returns
    -------
    Audio: as long as all parts together less the overlaps.

    Raises
    ------
    ValueError: no parts, or different rates or channels.
    """
    if not parts:
        raise ValueError("nothing to concatenate")
    if len({(part.rate, part.samples.shape[1:]) for part in parts}) != 1:
        raise ValueError("parts of different rates or channels; wanted one rate and layout")
    rate = parts[0].rate
    wanted = max(0, samples_at(crossfade_s, rate))
    overlaps = [
        min(wanted, before.frames // 2, after.frames // 2)
        for before, after in itertools.pairwise(parts)
    ]
    frames = sum(part.frames for part in parts) - sum(overlaps)
    made = np.zeros((frames, *parts[0].samples.shape[1:]), np.float32)
    at = 0
    for part, before, after in zip(parts, [0, *overlaps], [*overlaps, 0], strict=True):
        at -= before
        place = made[at : at + part.frames]
        shaped = part.samples.copy()
        shaped[:before] *= _column(_blend(before, law), shaped)
        shaped[part.frames - after :] *= _column(_blend(after, law)[::-1], shaped)
        place += shaped
        at += part.frames
    return Audio(made, rate)


def loop_to(
    audio: Audio, frames: int, crossfade_s: float = 0.2, start: int = 0, law: Law = "equal_power"
) -> Audio:
    """Repeat a recording to an exact length, its end blended into its beginning.

    Parameters
    ----------
    audio: at least one sample.
    frames: wanted length in sample positions; a recording that is long enough is cut, not blended.
    crossfade_s: length of the blend, at most half of the recording.
    start: sample position of the recording to begin at, so that scenes need not share one beginning; taken
        modulo the length of one round (frames less the blend).
    law: as in :func:`concatenate`.

    Returns
    -------
    Audio: exactly ``frames`` positions. Every step from one sample to the next is one of the recording, or lies
    in a blend.

    Raises
    ------
    ValueError: no samples, or a negative length or start.
    """
    if not audio.frames:
        raise ValueError("nothing to loop: the recording has no samples")
    if frames < 0 or start < 0:
        raise ValueError(f"loop of {frames} samples from {start}; wanted 0 or more")
    overlap = min(max(0, samples_at(crossfade_s, audio.rate)), audio.frames // 2)
    turn = audio.frames - overlap
    start %= turn
    if start + frames <= audio.frames:
        return Audio(audio.samples[start : start + frames].copy(), audio.rate)
    blend = _column(_blend(overlap, law), audio.samples)
    seam = audio.samples[:overlap] * blend + audio.samples[turn:] * blend[::-1]
    once = np.concatenate([seam, audio.samples[overlap:turn]])
    made = np.empty((frames, *audio.samples.shape[1:]), np.float32)
    # The first round begins with the recording itself: there is nothing before it to blend with.
    first = turn - start
    made[:first] = audio.samples[start:turn]
    for at in range(first, frames, turn):
        count = min(turn, frames - at)
        made[at : at + count] = once[:count]
    return Audio(made, audio.rate)


def gain_ramp(frames: int, from_db: float, to_db: float) -> Samples:
    """A gain that moves evenly in decibels; float32 factors, shape (frames,), both ends included."""
    return np.power(10.0, np.linspace(from_db, to_db, frames) / 20).astype(np.float32)


def duck_envelope(
    frames: int,
    rate: int,
    spans_s: Iterable[tuple[float, float]],
    depth_db: float,
    attack_s: float,
    release_s: float,
) -> Samples:
    """The gain of a bus that makes way for something: full depth over each span, ramps outside it.

    Parameters
    ----------
    frames, rate: of the bus.
    spans_s: start and end in seconds; may overlap, reach over the ends, and come in any order. Where ramps or
        spans meet, the lower gain holds.
    depth_db: how far down (or 0), as a negative gain in dB.
    attack_s: the gain goes down in this time *before* a span starts, so that its onset is clear.
    release_s: and comes back in this time after it ends. Both ramps are even in decibels.

    Returns
    -------
    float32 factors between the depth and exactly 1, shape (frames,).

    Raises
    ------
    ValueError: a depth over 0 dB, negative times, or a span that ends before it starts.

    Examples
    --------
    >>> duck_envelope(6, 2, [(1.0, 2.0)], depth_db=-6.0206, attack_s=0.0, release_s=0.0).round(3).tolist()
    [1.0, 1.0, 0.5, 0.5, 1.0, 1.0]
    """
    if depth_db > 0 or attack_s < 0 or release_s < 0:
        raise ValueError(
            f"ducking by {depth_db:g} dB in {attack_s:g} s, out {release_s:g} s; wanted a depth of 0 or less"
            " and times of 0 or more"
        )
    gains = np.ones(frames, np.float32)
    down = np.float32(amplitude_from_db(depth_db))
    attack, release = samples_at(attack_s, rate), samples_at(release_s, rate)
    # The ends of a ramp belong to its neighbours: one step before full depth, one before 1.
    falling = gain_ramp(attack + 2, 0.0, depth_db)[1:-1]
    rising = gain_ramp(release + 2, depth_db, 0.0)[1:-1]
    for start_s, end_s in spans_s:
        if end_s < start_s:
            raise ValueError(f"a span from {start_s:g} to {end_s:g} s ends before it starts")
        start, end = samples_at(start_s, rate), samples_at(end_s, rate)
        _lower(gains, start - attack, falling)
        _lower(gains, end, rising)
        part = gains[max(start, 0) : max(end, 0)]
        np.minimum(part, down, out=part)
    return gains


def apply_gain(audio: Audio, gain: Samples | float) -> Audio:
    """Multiply by one factor, or by one factor per sample position (float32, shape (frames,)).

    Raises
    ------
    ValueError: a curve of another length.
    """
    if isinstance(gain, int | float):
        return Audio(audio.samples * np.float32(gain), audio.rate)
    if gain.shape != (audio.frames,):
        raise ValueError(f"gain has shape {gain.shape} for {audio.frames} sample positions")
    return Audio(audio.samples * _column(gain, audio.samples), audio.rate)


def _lower(gains: Samples, start: int, ramp: Samples) -> None:
    """Take the lower of the gains and a ramp that starts at a position, perhaps outside."""
    first, last = max(start, 0), min(start + len(ramp), len(gains))
    if first < last:
        part = gains[first:last]
        np.minimum(part, ramp[first - start : last - start], out=part)


def _blend(frames: int, law: Law) -> Samples:
    if law not in ("equal_power", "equal_gain"):
        raise ValueError(f"law of the blend is {law!r}; wanted equal_power or equal_gain")
    return fade_curve(frames, "equal_power" if law == "equal_power" else "raised_cosine")


def _column(curve: Samples, samples: Samples) -> Samples:
    """A curve over time that multiplies mono or several channels."""
    return curve if samples.ndim == 1 else curve[:, None]
