"""Where everything stands, in sample positions. Pure arithmetic: no audio is touched here.

Turns stand one after the other, so that from the end of what is heard of one to the beginning of what is heard of the
next there is exactly the drawn gap. Only silence at the edges of voice files may overlap; nothing of a voice is cut.

A sound is put by its *salient moment* (the loudest of its take), around which the *clear window* is free of speech.
What lies before and after it may overlap speech. Two sounds do not overlap: where they would, the earlier one's end is
cut first, then the later one's beginning, never a clear window. Where even that is not enough, the scene is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from earwitness.errors import DataError
from earwitness.scenes.mixing.preset import Anchor


class PlacementError(DataError):
    """Something cannot be placed; names and times are in the text."""


@dataclass(frozen=True, slots=True)
class TurnSound:
    """A voice file in samples: its length, and from where to where something is heard in it."""

    frames: int
    heard_from: int
    heard_to: int


@dataclass(frozen=True, slots=True)
class TurnPlace:
    """A voice file in the scene: ``start`` to ``end``, heard from ``speech_start`` to ``speech_end``."""

    start: int
    end: int
    speech_start: int
    speech_end: int


@dataclass(frozen=True, slots=True)
class Clear:
    """A stretch without speech, and the utterance (by number) that speaks next; None after the last."""

    start: int
    end: int
    next_turn: int | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A sound to place.

    Attributes
    ----------
    name: how it is called in an error.
    clear: the stretch its clear window must lie in.
    window: samples of the clear window.
    frames, peak: of the take.
    anchor, place: where in the stretch; ``place`` is 0 to 1.
    end_gap: samples from its end to the end of the stretch, for anchors other than ``gap``.
    most_lead: samples kept before the peak; None: all.
    longest: samples kept in all; None: all.
    """

    name: str
    clear: Clear
    window: int
    frames: int
    peak: int
    anchor: Anchor
    place: float
    end_gap: int
    most_lead: int | None
    longest: int | None


@dataclass(frozen=True, slots=True)
class Placed:
    """A sound in the scene: samples ``take_from`` to ``take_to`` of the take, the first at ``start``."""

    start: int
    end: int
    salient: int
    take_from: int
    take_to: int
    window: tuple[int, int]


def place_turns(
    turns: Sequence[TurnSound], gaps: Sequence[int], lead_in: int
) -> tuple[TurnPlace, ...]:
    """Put turns in a row.

    Parameters
    ----------
    gaps: samples before the first turn, between all, and after the last: one more than there are turns.
    lead_in: samples before the first gap (the fade).

    Examples
    --------
    >>> place_turns([TurnSound(100, 10, 90), TurnSound(50, 0, 50)], [20, 30, 20], 0)[1].start
    130
    """
    places = []
    heard_end = lead_in
    for turn, gap in zip(turns, gaps, strict=False):
        start = heard_end + gap - turn.heard_from
        places.append(
            TurnPlace(start, start + turn.frames, start + turn.heard_from, start + turn.heard_to)
        )
        heard_end = start + turn.heard_to
    shift = max(0, -min((place.start for place in places), default=0))
    return tuple(
        TurnPlace(p.start + shift, p.end + shift, p.speech_start + shift, p.speech_end + shift)
        for p in places
    )


def gap_stretch(turns: Sequence[TurnPlace], gaps: Sequence[int], boundary: int) -> Clear:
    """The gap before utterance number ``boundary``; after the last one for their number."""
    if boundary < len(turns):
        end = turns[boundary].speech_start
        start = turns[boundary - 1].speech_end if boundary else end - gaps[0]
        return Clear(start, end, boundary)
    start = turns[-1].speech_end
    return Clear(start, start + gaps[-1], None)


def break_stretch(
    turn: TurnPlace, number: int, pauses: Sequence[tuple[int, int]], window: int
) -> Clear | None:
    """The first pause inside a turn that holds a clear window, or None.

    Parameters
    ----------
    pauses: start and end of pauses, in samples of the voice file.
    """
    for start, end in sorted(pauses):
        first, last = turn.start + start, turn.start + end
        if last - first >= window and turn.speech_start < first and last < turn.speech_end:
            return Clear(first, last, number)
    return None


def place_sounds(
    wanted: Sequence[Wanted], *, first: int, separation: int, rate: int, overlap: bool = False
) -> tuple[Placed, ...]:
    """Place the sounds of a scene, in the order they occur.

    Parameters
    ----------
    first: no sound begins before this sample.
    separation: least samples between two sounds.
    overlap: let sounds overlap each other.

    Raises
    ------
    PlacementError: the clear windows of two sounds would meet, or one does not fit into its stretch.
    """
    shared = _shares(wanted, separation, overlap=overlap)
    places = [_alone(one, clear, first, rate) for one, clear in zip(wanted, shared, strict=True)]
    if overlap:
        return tuple(places)
    for n in range(1, len(places)):
        places[n - 1], places[n] = _apart(
            places[n - 1], places[n], wanted[n - 1].name, wanted[n].name, separation, rate
        )
    return tuple(places)


def fit(wanted: Wanted, salient: int, low: int, high: int, rate: int) -> Placed:
    """Place another take at a salient moment that is fixed, between two limits (``low`` to ``high``).

    Raises
    ------
    PlacementError: its clear window does not fit between the limits.
    """
    take_from, take_to = _kept(wanted)
    if wanted.anchor != "gap":
        high = min(high, wanted.clear.end - min(wanted.end_gap, _slack(wanted, wanted.clear)))
    placed = _placed(wanted, salient, take_from, take_to)
    placed = _cut_start(placed, low)
    placed = _cut_end(placed, high)
    half = wanted.window // 2
    if low > salient - half or high < salient - half + wanted.window:
        raise PlacementError(
            wanted.name,
            f"cannot stand at {salient / rate:.3f} s between {low / rate:.3f} and {high / rate:.3f} s",
            f"{wanted.window / rate:.2f} s around its loudest moment",
        )
    return placed


def _shares(wanted: Sequence[Wanted], separation: int, *, overlap: bool) -> list[Clear]:
    """Each sound's part of its stretch: sounds of one gap divide it evenly, if windows fit."""
    together: dict[tuple[int, int], list[int]] = {}
    for n, one in enumerate(wanted):
        together.setdefault((one.clear.start, one.clear.end), []).append(n)
    found = [one.clear for one in wanted]
    for numbers in together.values():
        if len(numbers) == 1 or overlap:
            continue
        clear = wanted[numbers[0]].clear
        room = clear.end - clear.start - separation * (len(numbers) - 1)
        for place, n in enumerate(numbers):
            start = clear.start + place * (room // len(numbers) + separation)
            found[n] = Clear(start, start + room // len(numbers), clear.next_turn)
    return found


def _slack(wanted: Wanted, clear: Clear) -> int:
    return clear.end - clear.start - wanted.window


def _alone(wanted: Wanted, clear: Clear, first: int, rate: int) -> Placed:
    slack = _slack(wanted, clear)
    if slack < 0:
        raise PlacementError(
            wanted.name,
            f"only {(clear.end - clear.start) / rate:.3f} s without speech from {clear.start / rate:.3f} s "
            "are left to it",
            f"{wanted.window / rate:.2f} s around its loudest moment",
            "Give sounds gaps of their own in the dialogue, or use a preset with longer gaps.",
        )
    half = wanted.window // 2
    take_from, take_to = _kept(wanted)
    earliest, latest = clear.start + half, clear.start + half + slack
    if wanted.anchor == "gap":
        salient = earliest + round(wanted.place * slack)
        placed = _placed(wanted, salient, take_from, take_to)
    else:
        end = clear.end - min(wanted.end_gap, slack)
        salient = end - (take_to - wanted.peak)
        salient = min(max(salient, earliest), latest, end - (wanted.window - half))
        placed = _cut_end(_placed(wanted, salient, take_from, take_to), end)
    return _cut_start(placed, first)


def _kept(wanted: Wanted) -> tuple[int, int]:
    """From where to where of the take is kept by its caps alone; the peak is always inside."""
    half = wanted.window // 2
    lead = wanted.peak if wanted.most_lead is None else min(wanted.peak, wanted.most_lead)
    take_to = wanted.frames
    if wanted.longest is not None:
        lead = min(lead, max(wanted.longest - (wanted.window - half), 0))
        take_to = min(take_to, wanted.peak - lead + wanted.longest)
    return wanted.peak - lead, take_to


def _placed(wanted: Wanted, salient: int, take_from: int, take_to: int) -> Placed:
    start = salient - (wanted.peak - take_from)
    half = wanted.window // 2
    window = (salient - half, salient - half + wanted.window)
    return Placed(start, start + take_to - take_from, salient, take_from, take_to, window)


def _cut_start(placed: Placed, first: int) -> Placed:
    late = max(0, min(first, placed.salient) - placed.start)
    return replace(placed, start=placed.start + late, take_from=placed.take_from + late)


def _cut_end(placed: Placed, last: int) -> Placed:
    early = max(0, placed.end - last)
    return replace(placed, end=placed.end - early, take_to=placed.take_to - early)


def _apart(
    one: Placed, two: Placed, first_name: str, second_name: str, separation: int, rate: int
) -> tuple[Placed, Placed]:
    """Two neighbours without overlap, each out of the other's clear window."""
    if one.window[1] + separation > two.window[0]:
        raise PlacementError(
            f"{first_name} and {second_name}",
            f"have their loudest moments at {one.salient / rate:.3f} and {two.salient / rate:.3f} s",
            f"{(one.window[1] - one.window[0] + separation) / rate:.2f} s between them",
            "Give sounds gaps of their own in the dialogue, or use a preset with longer gaps.",
        )
    # The later one keeps what comes before its loudest moment as far as the earlier one's window allows.
    begin = min(max(two.start, one.window[1] + separation), two.window[0])
    return _cut_end(one, begin - separation), _cut_start(two, begin)


def length_of(
    turns: Sequence[TurnPlace], gaps: Sequence[int], sounds: Sequence[Placed], fade: int
) -> int:
    """Samples of the scene: the last gap and the fade after whatever is heard last."""
    heard = max((turn.speech_end for turn in turns), default=0) + gaps[-1]
    return max(
        heard + fade,
        max((turn.end for turn in turns), default=0),
        max((sound.end for sound in sounds), default=0) + fade,
    )


def catch_moments(
    turns: Sequence[TurnPlace],
    gaps: Sequence[int],
    sounds: Sequence[Placed],
    places: Mapping[int, float],
    window: int,
    distance: int,
) -> tuple[int, ...]:
    """Moments in gaps with no sound near, drawn as salient moments are.

    Parameters
    ----------
    places: boundary -> draw from 0 to 1.
    window: samples of the clear window.
    distance: least samples to any sound.
    """
    found = []
    for boundary, place in sorted(places.items()):
        clear = gap_stretch(turns, gaps, boundary)
        slack = clear.end - clear.start - window
        at = clear.start + window // 2 + round(place * max(slack, 0))
        if all(at + distance <= sound.start or at - distance >= sound.end for sound in sounds):
            found.append(at)
    return tuple(found)
