"""Where turns and sounds stand: properties that hold for every draw."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.scenes.mixing.placement import (
    Clear,
    Placed,
    PlacementError,
    TurnPlace,
    TurnSound,
    Wanted,
    break_stretch,
    catch_moments,
    fit,
    gap_stretch,
    length_of,
    place_sounds,
    place_turns,
)

RATE = 1000
WINDOW = 350
SEPARATION = 100
FADE = 500
SETTINGS = settings(max_examples=200, deadline=None, derandomize=True)


@st.composite
def turns_and_gaps(draw: st.DrawFn) -> tuple[list[TurnSound], list[int]]:
    count = draw(st.integers(2, 8))
    turns = []
    for _ in range(count):
        frames = draw(st.integers(400, 6000))
        first = draw(st.integers(0, 150))
        last = draw(st.integers(frames - 200, frames))
        turns.append(TurnSound(frames, first, last))
    gaps = [draw(st.integers(500, 1000)) for _ in range(count + 1)]
    return turns, gaps


@st.composite
def sounds_in(draw: st.DrawFn, places: tuple[TurnPlace, ...], gaps: list[int]) -> list[Wanted]:
    boundaries = sorted(
        draw(st.lists(st.integers(0, len(places)), min_size=1, max_size=3, unique=True))
    )
    found = []
    for n, boundary in enumerate(boundaries):
        frames = draw(st.integers(60, 9000))
        found.append(
            Wanted(
                name=f"event e{n}",
                clear=gap_stretch(places, gaps, boundary),
                window=WINDOW,
                frames=frames,
                peak=draw(st.integers(0, frames - 1)),
                anchor=draw(st.sampled_from(["gap", "end"])),
                place=draw(st.floats(0, 1)),
                end_gap=draw(st.integers(0, 300)),
                most_lead=draw(st.sampled_from([None, 1000])),
                longest=draw(st.sampled_from([None, 2000, 4500])),
            )
        )
    return found


@SETTINGS
@given(turns_and_gaps())
def test_between_what_is_heard_there_is_exactly_the_gap(
    given_turns: tuple[list[TurnSound], list[int]],
) -> None:
    turns, gaps = given_turns
    places = place_turns(turns, gaps, FADE)
    for n in range(1, len(places)):
        assert places[n].speech_start - places[n - 1].speech_end == gaps[n]
    for turn, place in zip(turns, places, strict=True):
        assert place.end - place.start == turn.frames  # whole: nothing of a voice is cut
        assert place.speech_start - place.start == turn.heard_from
    assert min(place.start for place in places) >= 0
    assert places[0].speech_start >= FADE + gaps[0]


@SETTINGS
@given(st.data())
def test_windows_are_clear_and_sounds_apart(data: st.DataObject) -> None:
    turns, gaps = data.draw(turns_and_gaps())
    places = place_turns(turns, gaps, FADE)
    wanted = data.draw(sounds_in(places, gaps))
    placed = place_sounds(wanted, first=FADE, separation=SEPARATION, rate=RATE)
    for one, place in zip(wanted, placed, strict=True):
        assert one.clear.start <= place.window[0]
        assert place.window[1] <= one.clear.end
        assert place.window[1] - place.window[0] == WINDOW
        assert all(
            t.speech_end <= place.window[0] or t.speech_start >= place.window[1] for t in places
        )
        assert place.start <= place.salient <= place.end
        assert place.salient - place.start == one.peak - place.take_from
        assert 0 <= place.take_from < place.take_to <= one.frames
        assert place.end - place.start == place.take_to - place.take_from
        assert place.start >= FADE
        if one.longest is not None:
            assert place.end - place.start <= one.longest
        if one.most_lead is not None:
            assert place.salient - place.start <= one.most_lead
        if one.anchor == "end":
            assert place.end <= one.clear.end
    for before, after in itertools.pairwise(placed):
        assert before.end + SEPARATION <= after.start


@SETTINGS
@given(st.data())
def test_a_sound_ends_its_drawn_gap_before_speech_where_it_lasts_that_long(
    data: st.DataObject,
) -> None:
    clear = Clear(5000, 5000 + data.draw(st.integers(WINDOW, 1000)), 1)
    end_gap = data.draw(st.integers(0, 300))
    one = Wanted("event e1", clear, WINDOW, 4000, 1500, "end", 0.0, end_gap, None, None)
    (place,) = place_sounds([one], first=0, separation=0, rate=RATE)
    assert place.end == clear.end - min(end_gap, clear.end - clear.start - WINDOW)


@SETTINGS
@given(st.data())
def test_another_take_fits_at_the_same_moment(data: st.DataObject) -> None:
    turns, gaps = data.draw(turns_and_gaps())
    places = place_turns(turns, gaps, FADE)
    wanted = data.draw(sounds_in(places, gaps))
    placed = place_sounds(wanted, first=FADE, separation=SEPARATION, rate=RATE)
    number = data.draw(st.integers(0, len(wanted) - 1))
    frames = data.draw(st.integers(60, 9000))
    peak = data.draw(st.integers(0, frames - 1))
    old = wanted[number]
    other = Wanted(
        "other", old.clear, WINDOW, frames, peak, old.anchor, old.place, old.end_gap, old.most_lead,
        old.longest,
    )  # fmt: skip
    low = placed[number - 1].end + SEPARATION if number else FADE
    high = placed[number + 1].start - SEPARATION if number + 1 < len(placed) else 10**9
    place = fit(other, placed[number].salient, low, high, RATE)
    assert place.salient == placed[number].salient
    assert low <= place.start < place.end <= high


def test_two_sounds_in_one_gap_share_it_or_are_refused_by_name_and_time() -> None:
    def sound(name: str, clear: Clear) -> Wanted:
        return Wanted(name, clear, WINDOW, 400, 100, "gap", 0.5, 0, None, None)

    wide = Clear(2000, 2000 + 2 * WINDOW + SEPARATION, 1)
    one, two = place_sounds(
        [sound("event e1 (dog)", wide), sound("event e2 (bell)", wide)],
        first=0,
        separation=SEPARATION,
        rate=RATE,
    )
    assert one.window[1] + SEPARATION <= two.window[0]
    narrow = Clear(2000, 2700, 1)
    with pytest.raises(
        PlacementError, match=r"event e1 \(dog\): only 0\.300 s without speech from 2\.000 s"
    ):
        place_sounds(
            [sound("event e1 (dog)", narrow), sound("event e2 (bell)", narrow)],
            first=0,
            separation=SEPARATION,
            rate=RATE,
        )
    both = [sound("event e1 (dog)", narrow), sound("event e2 (bell)", narrow)]
    assert len(place_sounds(both, first=0, separation=0, rate=RATE, overlap=True)) == 2


def test_the_earlier_sound_makes_way_for_the_later_ones_beginning() -> None:
    first = Wanted("e1", Clear(1000, 1400, 1), WINDOW, 5000, 200, "gap", 0.0, 0, None, None)
    second = Wanted("e2", Clear(3000, 3400, 2), WINDOW, 1500, 1000, "gap", 0.0, 0, None, None)
    one, two = place_sounds([first, second], first=0, separation=SEPARATION, rate=RATE)
    assert two.take_from == 0
    assert one.end == two.start - SEPARATION
    # Where even the clear window of the first is in the way, the later one begins later.
    near = Wanted("e2", Clear(1600, 2000, 2), WINDOW, 1500, 1000, "gap", 0.0, 0, None, None)
    one, two = place_sounds([first, near], first=0, separation=SEPARATION, rate=RATE)
    assert one.end == one.window[1]
    assert two.start == one.end + SEPARATION
    assert two.take_from > 0


def test_windows_that_meet_are_refused_by_name_and_time() -> None:
    first = Wanted("event e1", Clear(1000, 1400, 1), WINDOW, 900, 200, "gap", 0.0, 0, None, None)
    second = Wanted("event e2", Clear(1420, 1800, 2), WINDOW, 900, 500, "gap", 0.0, 0, None, None)
    with pytest.raises(
        PlacementError, match=r"event e1 and event e2: have their loudest moments at 1\.175 and"
    ):
        place_sounds([first, second], first=0, separation=SEPARATION, rate=RATE)


def test_a_break_is_the_first_pause_inside_the_turn_that_holds_a_window() -> None:
    turn = TurnPlace(1000, 6000, 1050, 5950)
    assert break_stretch(turn, 3, [(2000, 2200), (3000, 3600)], WINDOW) == Clear(4000, 4600, 3)
    assert break_stretch(turn, 3, [(2000, 2200)], WINDOW) is None
    assert break_stretch(turn, 3, [(0, 500)], WINDOW) is None  # silence before it begins


def test_a_sound_at_the_end_makes_the_scene_longer() -> None:
    turns = place_turns([TurnSound(2000, 0, 2000)], [500, 500], FADE)
    clear = gap_stretch(turns, [500, 500], 1)
    assert clear == Clear(3000, 3500, None)
    sound = Placed(2900, 7000, 3200, 0, 4100, (3025, 3375))
    assert length_of(turns, [500, 500], [], FADE) == 4000
    assert length_of(turns, [500, 500], [sound], FADE) == 7500


def test_catch_moments_are_in_gaps_far_from_sounds() -> None:
    turns = place_turns([TurnSound(4000, 0, 4000)] * 4, [500] * 5, FADE)
    sound = Placed(9400, 10_000, 9700, 0, 600, (9525, 9875))
    found = catch_moments(turns, [500] * 5, [sound], {1: 0.0, 2: 0.5, 3: 1.0}, WINDOW, 3000)
    assert found == (5175, 14_325)
    for moment in found:
        assert all(t.speech_end <= moment - 175 or t.speech_start >= moment + 175 for t in turns)
