"""Impulse responses of box-shaped rooms by the image-source method.

J. B. Allen and D. A. Berkley, *Image method for efficiently simulating small-room acoustics*, J. Acoust. Soc. Am.
65 (1979). Differences, each for a reason:

- all images up to the length of the response are taken, however often they were reflected, so that long decays
  are not cut (``max_order`` limits them if wanted);
- early images lie between samples by a windowed sinc (P. M. Peterson, J. Acoust. Soc. Am. 80, 1986); late ones,
  of which several fall on each sample, on the nearest;
- the method's positive reflections pile up at the lowest frequencies; the reflections (never the direct sound)
  are high-passed for that, as in the original paper;
- with a generator, image distances are jittered a little, which breaks up the sweeping echoes of perfect
  boxes (E. De Sena et al., IEEE/ACM Trans. Audio Speech Lang. Process. 23, 2015).

Conventions: the **direct sound is exactly 1 at sample 0**: its delay is taken out and its level is the unit, so
distance is somebody else's gain. Reflections are relative to it. All walls absorb alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from earwitness.audio.decay import (
    SPEED_OF_SOUND_M_S,
    T30_DB,
    Point,
    decay_curve_db,
    energy_decay_db,
    eyring_rt60_s,
    slope_time_s,
)
from earwitness.audio.fades import fade_curve
from earwitness.audio.filters import highpass, lowpass
from earwitness.audio.types import Audio, samples_at
from earwitness.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from earwitness.audio.types import Samples

    Floats = npt.NDArray[np.float64]
    Counts = npt.NDArray[np.intp]

JITTER_M = 0.08
"""De Sena et al.: enough to hide sweeping echoes, too little to move an early reflection audibly."""

MAX_IMAGES = 30_000_000
"""A few seconds of work. Small rooms with very long decays have more."""

_HALF_TAPS = 16
_DENSE = 2.0
"""Images per sample from which on each is put on the nearest sample."""
_END_DB = -60.0
_FADE_S = 0.01
_BIN_S = 0.001
_REACH = 1.1
"""Length before the cut at -60 dB, in reverberation times."""
_TRIED = 40
_LEAST_ABSORPTION = 0.002
_MOST_ABSORPTION = 0.9
"""With more, a few single reflections are all there is, and no reverberation time."""
_PLACES = 256
"""Places drawn at once, of which the first that fits is taken."""


@dataclass(frozen=True, slots=True)
class RoomSpec:
    """A box-shaped room, a source and a microphone in it.

    Parameters
    ----------
    size_m: length, width and height in metres.
    source_m, mic_m: positions from the corner, inside the room and at least 10 cm apart.
    absorption: share of energy a wall swallows, over 0 to 1. Give this or ``rt60_s``.
    rt60_s: wanted reverberation time (T30) in seconds; the absorption is solved for, in this very room.
    max_order: most reflections a path may have; ``None``: as many as the length needs.
    damping_hz: corner of a first-order low-pass on the reflections (soft furniture, air); ``None``: no damping.
    highpass_hz: corner of the second-order high-pass on the reflections; 0: none.

    Raises
    ------
    UsageError: a position outside, a size or coefficient out of range, both or neither of the two measures.

    Examples
    --------
    >>> from earwitness.audio.decay import reverberation_time_s
    >>> office = RoomSpec((6, 5, 2.8), source_m=(3, 2.5, 1.6), mic_m=(2, 2.5, 1.5), rt60_s=0.4)
    >>> response = impulse_response(office, 16000)
    >>> float(response[0]), round(reverberation_time_s(response, 16000), 1)
    (1.0, 0.4)
    """

    size_m: Point
    source_m: Point
    mic_m: Point
    absorption: float | None = None
    rt60_s: float | None = None
    max_order: int | None = None
    damping_hz: float | None = None
    highpass_hz: float = 50.0

    def __post_init__(self) -> None:
        if not all(side > 0.1 and math.isfinite(side) for side in self.size_m):
            raise UsageError("room", f"its size is {_metres(self.size_m)}", "sides over 0.1 m")
        for name, point in (("source", self.source_m), ("microphone", self.mic_m)):
            if not all(0 < at < side for at, side in zip(point, self.size_m, strict=True)):
                raise UsageError(
                    "room",
                    f"the {name} is at {_metres(point)} in a room of {_metres(self.size_m)}",
                    "a place inside it",
                )
        if self.distance_m < 0.1:
            raise UsageError(
                "room", f"source and microphone are {self.distance_m:.3f} m apart", "at least 0.1 m"
            )
        if (self.absorption is None) == (self.rt60_s is None):
            raise UsageError(
                "room", f"absorption {self.absorption} and rt60_s {self.rt60_s}", "one of the two"
            )
        if self.absorption is not None and not 0 < self.absorption <= 1:
            raise UsageError("room", f"absorption is {self.absorption}", "over 0, at most 1")
        if self.rt60_s is not None and not 0 < self.rt60_s <= 20:
            raise UsageError("room", f"rt60_s is {self.rt60_s}", "over 0, at most 20 seconds")

    @property
    def distance_m(self) -> float:
        """From source to microphone."""
        return math.dist(self.source_m, self.mic_m)


def impulse_response(spec: RoomSpec, rate: int, rng: np.random.Generator | None = None) -> Samples:
    """The response of a room, from the direct sound on.

    Parameters
    ----------
    spec: the room.
    rate: in Hz.
    rng: moves the images by up to 8 cm, a variation that keeps every measure of the room; ``None``: a
        perfect box. The same state gives the same response.

    Returns
    -------
    float32 array, shape (n,): 1 at sample 0, then the reflections relative to it, until what is left of them lies
    60 dB under all of them; then 10 ms of fade.

    Raises
    ------
    UsageError: too many images (a small room with a very long decay), or no absorption that gives ``rt60_s``.
    """
    absorption = spec.absorption if spec.absorption is not None else absorption_for(spec)
    return _response(spec, absorption, rate, rng)


def absorption_for(spec: RoomSpec) -> float:
    """The absorption with which a room has its ``rt60_s``.

    Textbook formulas assume a diffuse field; in long or flat rooms they miss by half. Here the decay of the
    energies of this room's own images is fitted. Where the images are jittered, that is what is measured. Without
    jitter the regular echoes of very flat rooms also add up by phase, and last up to a fifth longer.

    Raises
    ------
    UsageError: ``rt60_s`` is missing, or no absorption up to 0.9 gives it.
    """
    if spec.rt60_s is None:
        raise UsageError("room", "no rt60_s is given", "a reverberation time to solve for")
    energies = _energies_by_order(spec, _REACH * spec.rt60_s)
    absorption = _solved(energies, spec.rt60_s)
    if absorption is None:
        raise UsageError(
            "room",
            f"rt60_s {spec.rt60_s:g} cannot be reached in {_metres(spec.size_m)}"
            + (f" with max_order {spec.max_order}" if spec.max_order is not None else ""),
            "a time that this room can have",
            "Give a longer rt60_s; for open spaces give an absorption instead.",
        )
    return absorption


def with_wet_share(response: Samples, wet: float) -> Samples:
    """Scale the reflections so that they hold a given share of the energy; the direct sound stays 1.

    Parameters
    ----------
    response: from :func:`impulse_response`.
    wet: share of energy in the reflections, 0 to under 1. At the critical distance it is one half.

    Returns
    -------
    float32 array, same shape. A response without reflections stays without.

    Raises
    ------
    ValueError: a share outside [0, 1).

    Examples
    --------
    >>> with_wet_share(np.array([1.0, 0.1], np.float32), 0.5).tolist()
    [1.0, 1.0]
    """
    if not 0 <= wet < 1:
        raise ValueError(f"wet share is {wet}; wanted 0 or more, under 1")
    rest = float(np.square(response[1:], dtype=np.float64).sum())
    made = response.copy()
    if rest:
        made[1:] *= np.float32(math.sqrt(wet / (1 - wet) * float(response[0]) ** 2 / rest))
    return made


def varied(
    spec: RoomSpec,
    rng: np.random.Generator,
    size_share: float = 0.05,
    distance_share: float = 0.1,
    margin_m: float = 0.3,
) -> RoomSpec:
    """Another room of the same kind: sides and distance a little different, other places to stand.

    Parameters
    ----------
    spec: the model; reverberation (``rt60_s`` or ``absorption``), heights and filters are kept.
    rng: a generator keyed by the caller, say by location, split and index.
    size_share, distance_share: each side and the distance are drawn within this share of the model's.
    margin_m: least distance from the walls, less in rooms too small for it.

    Raises
    ------
    UsageError: the distance does not fit into the room.
    """
    # One draw of everything, in one order, so that a room depends on the generator's state alone.
    size_draw = rng.uniform(-size_share, size_share, 3)
    distance_draw = rng.uniform(-distance_share, distance_share)
    angles = rng.uniform(0, 2 * math.pi, _PLACES)
    places = rng.uniform(0, 1, (_PLACES, 2))
    sides = np.array(spec.size_m) * (1 + size_draw)
    heights = np.array([spec.source_m[2], spec.mic_m[2]]) * sides[2] / spec.size_m[2]
    flat_m = math.sqrt(
        max(
            (spec.distance_m * (1 + distance_draw)) ** 2 - float(heights[0] - heights[1]) ** 2, 0.01
        )
    )
    margin = min(margin_m, 0.2 * float(sides[:2].min()))
    mics = margin + places * (sides[:2] - 2 * margin)
    sources = mics + flat_m * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    fits = ((sources > margin) & (sources < sides[:2] - margin)).all(axis=1)
    if not fits.any():
        raise UsageError(
            "room",
            f"source and microphone {flat_m:.2f} m apart find no place in {_metres(spec.size_m)}",
            "a distance that fits into the room",
        )
    chosen = int(np.argmax(fits))
    return replace(
        spec,
        size_m=_point(sides),
        source_m=_point([*sources[chosen], heights[0]]),
        mic_m=_point([*mics[chosen], heights[1]]),
    )


def _response(
    spec: RoomSpec, absorption: float, rate: int, rng: np.random.Generator | None
) -> Samples:
    reflected = math.sqrt(1.0 - absorption)
    reach_s = _reach_s(spec, absorption)
    direct_m = spec.distance_m
    frames = samples_at(reach_s, rate) + 2 * _HALF_TAPS
    wave = np.zeros(frames + 2 * _HALF_TAPS)
    dense_s = math.sqrt(
        _DENSE * rate * math.prod(spec.size_m) / (4 * math.pi * SPEED_OF_SOUND_M_S**3)
    )
    for distance, order in _images(spec, reach_s):
        level = reflected**order * (direct_m / distance)
        if rng is not None:
            distance = distance + rng.uniform(-JITTER_M, JITTER_M, len(distance))
        delay_s = np.maximum(distance - direct_m, 0.0) / SPEED_OF_SOUND_M_S
        _place(wave, delay_s * rate, level, delay_s + direct_m / SPEED_OF_SOUND_M_S >= dense_s)
    reflections = Audio(wave[_HALF_TAPS : _HALF_TAPS + frames].astype(np.float32), rate)
    if spec.highpass_hz:
        reflections = highpass(spec.highpass_hz, rate).apply(reflections)
    if spec.damping_hz is not None and spec.damping_hz < rate / 2:
        reflections = lowpass(spec.damping_hz, rate, order=1).apply(reflections)
    response = reflections.samples.copy()
    response[0] = 1.0
    return _ended(response, rate)


def _solved(energies: Floats, wanted_s: float) -> float | None:
    """The absorption at which energies by reflections and milliseconds decay in a given time."""
    from scipy.optimize import brentq

    orders = np.arange(len(energies))

    def excess(log_kept: float) -> float:
        curve = energy_decay_db(np.exp(log_kept * orders) @ energies)
        if not np.any(curve < T30_DB[1]):
            return 10 * wanted_s
        return (slope_time_s(curve, 1 / _BIN_S) or 0.0) - wanted_s

    # From live to dead, the first crossing counts: with few audible reflections the fit is no longer monotonic.
    tried = np.log1p(-np.geomspace(_LEAST_ABSORPTION, _MOST_ABSORPTION, _TRIED))
    excesses = [excess(float(log_kept)) for log_kept in tried]
    for k in range(1, _TRIED):
        if excesses[k] <= 0 < excesses[k - 1]:
            root = brentq(excess, float(tried[k]), float(tried[k - 1]), xtol=1e-4)
            return 1.0 - math.exp(float(root))
    return None


def _images(spec: RoomSpec, reach_s: float) -> Iterator[tuple[Floats, Counts]]:
    """Distances and numbers of reflections of all images but the source itself, in slabs."""
    reach_m = spec.distance_m + reach_s * SPEED_OF_SOUND_M_S
    count = 4 / 3 * math.pi * reach_m**3 / math.prod(spec.size_m)
    if spec.max_order is not None:
        count = min(count, (2 * spec.max_order + 1) ** 3 / 6)
    if count > MAX_IMAGES:
        raise UsageError(
            "room",
            f"a decay of {reach_s:.2g} s in {_metres(spec.size_m)} has {count:.1g} image sources",
            f"at most {MAX_IMAGES:.1g}",
            "Take a larger room, a shorter rt60_s, more absorption, or a max_order.",
        )
    axes = [_axis(spec, axis, reach_m) for axis in range(3)]
    (square_x, order_x), (square_y, order_y), (square_z, order_z) = axes
    plane = square_y[:, None] + square_z[None, :]
    plane_order = order_y[:, None] + order_z[None, :]
    most = spec.max_order if spec.max_order is not None else np.iinfo(np.int64).max
    for square, order in zip(square_x, order_x, strict=True):
        total, orders = plane + square, plane_order + order
        kept = (total <= reach_m**2) & (orders <= most) & (orders > 0)
        if kept.any():
            yield np.sqrt(total[kept]), orders[kept]


def _axis(spec: RoomSpec, axis: int, reach_m: float) -> tuple[Floats, Counts]:
    """Squared distances along one axis to the mirrored sources, and how many walls each is behind."""
    side, source, mic = spec.size_m[axis], spec.source_m[axis], spec.mic_m[axis]
    rooms = math.ceil(reach_m / side) + 1
    if spec.max_order is not None:
        rooms = min(rooms, spec.max_order)
    index = np.arange(-rooms, rooms + 1)
    places = index * side + np.where(index % 2 == 0, source, side - source)
    return np.square(places - mic), np.abs(index)


def _place(wave: Floats, at: Floats, level: Floats, dense: npt.NDArray[np.bool_]) -> None:
    """Add impulses at fractional positions of ``wave``, whose sample 0 lies ``_HALF_TAPS`` in."""
    size = len(wave)
    nearest = np.floor(at[dense] + 0.5).astype(np.intp) + _HALF_TAPS
    kept = nearest < size
    wave += np.bincount(nearest[kept], level[dense][kept], minlength=size)
    at, level = at[~dense], level[~dense]
    base = np.floor(at).astype(np.intp)
    part = at - base
    for tap in range(1 - _HALF_TAPS, _HALF_TAPS + 1):
        distance = part - tap
        weight = np.sinc(distance) * (0.5 + 0.5 * np.cos(np.pi * distance / _HALF_TAPS))
        index = base + tap + _HALF_TAPS
        kept = index < size
        wave += np.bincount(index[kept], (level * weight)[kept], minlength=size)


def _energies_by_order(spec: RoomSpec, reach_s: float) -> Floats:
    """Energy of the images at no absorption, by reflections and by milliseconds."""
    bins = math.ceil(reach_s / _BIN_S) + 1
    rows = 1 + sum(math.ceil((spec.distance_m + reach_s * SPEED_OF_SOUND_M_S) / side) + 1 for side in spec.size_m)  # fmt: skip
    table = np.zeros(rows * bins)
    for distance, order in _images(spec, reach_s):
        time = ((distance - spec.distance_m) / (SPEED_OF_SOUND_M_S * _BIN_S)).astype(np.intp)
        table += np.bincount(order * bins + time, (spec.distance_m / distance) ** 2, minlength=len(table))  # fmt: skip
    return table.reshape(rows, bins)


def _reach_s(spec: RoomSpec, absorption: float) -> float:
    """How long a response may become before its end is cut at -60 dB."""
    if spec.rt60_s is not None:
        return _REACH * spec.rt60_s
    # Boxes far from a cube decay more slowly than Eyring's formula says.
    return 2.0 * eyring_rt60_s(spec.size_m, min(absorption, _MOST_ABSORPTION))


def _ended(response: Samples, rate: int) -> Samples:
    """Cut where nothing is left to hear; the fade lies after that place, and takes nothing from before it."""
    heard = np.flatnonzero(decay_curve_db(response[1:]) > _END_DB)
    end = int(heard[-1]) + 2 if len(heard) else 1
    made = response[: end + samples_at(_FADE_S, rate)].copy() if len(heard) else response[:1].copy()
    fade = len(made) - end
    made[end:] *= fade_curve(fade)[::-1]
    return made


def _metres(size_m: Point) -> str:
    return " x ".join(f"{side:g}" for side in size_m) + " m"


def _point(values: Floats | list[float]) -> Point:
    x, y, z = (float(value) for value in values)
    return x, y, z
