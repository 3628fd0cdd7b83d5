"""Rooms: image sources beside pyroomacoustics, theory of decays, what a response promises."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.audio.decay import (
    SPEED_OF_SOUND_M_S,
    decay_curve_db,
    direct_to_reverberant_db,
    eyring_rt60_s,
    reverberation_time_s,
    sabine_rt60_s,
)
from earwitness.audio.rooms import (
    RoomSpec,
    absorption_for,
    impulse_response,
    varied,
    with_wet_share,
)
from earwitness.errors import UsageError

QUICK = settings(max_examples=20, deadline=None, derandomize=True)
GOLDEN = json.loads(
    (Path(__file__).resolve().parents[1] / "golden" / "pyroomacoustics.json").read_text()
)
OFFICE = RoomSpec((6, 5, 2.8), source_m=(3.1, 2.4, 1.6), mic_m=(2.0, 2.7, 1.5), rt60_s=0.4)
OFFICE_RESPONSE = impulse_response(OFFICE, 16_000)


def of(record: dict[str, object], **more: object) -> RoomSpec:
    size, source, mic = (tuple(record[name]) for name in ("size", "source", "mic"))  # type: ignore[call-overload]
    return RoomSpec(size, source, mic, absorption=record["absorption"], **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", GOLDEN["images"], ids=lambda case: str(case["size"]))
def test_the_images_are_those_of_pyroomacoustics(case: dict[str, object]) -> None:
    rate = 48_000
    spec = of(case, max_order=case["max_order"], highpass_hz=0)
    response = impulse_response(spec, rate)
    # A response is the sum of its images if its spectrum is the sum of their phasors.
    delays_s = (np.array(case["distance_m"]) - spec.distance_m) / SPEED_OF_SOUND_M_S
    levels = np.array(case["relative_level"])
    frequencies = np.linspace(100, 0.4 * rate, 300)
    turns = np.exp(-2j * np.pi * frequencies[:, None] * delays_s[None, :])
    n = np.arange(len(response))
    found = np.exp(-2j * np.pi * frequencies[:, None] * n[None, :] / rate) @ response
    np.testing.assert_allclose(found, turns @ levels, atol=0.02)


@pytest.mark.parametrize("case", GOLDEN["decays"], ids=lambda case: str(case["size"]))
def test_decays_are_those_of_pyroomacoustics(case: dict[str, object]) -> None:
    found = reverberation_time_s(impulse_response(of(case), 16_000), 16_000)
    assert found == pytest.approx(case["t30_s"], rel=0.06)


@pytest.mark.parametrize("absorption", [0.15, 0.3, 0.5])
def test_a_near_cube_decays_as_theory_says(absorption: float) -> None:
    size = (6.0, 6.3, 5.7)
    spec = RoomSpec(size, (2.2, 3.9, 1.6), (4.1, 1.7, 2.9), absorption=absorption)
    found = reverberation_time_s(impulse_response(spec, 16_000), 16_000)
    assert found == pytest.approx(eyring_rt60_s(size, absorption), rel=0.15)
    assert eyring_rt60_s(size, absorption) < sabine_rt60_s(size, absorption)


def test_textbook_times() -> None:
    # 0.161 V / (S a) for a cube of 10 m: 0.161 * 1000 / (600 * 0.2) = 1.34 s.
    assert sabine_rt60_s((10, 10, 10), 0.2) == pytest.approx(1.342, abs=0.003)
    assert eyring_rt60_s((10, 10, 10), 0.2) == pytest.approx(
        1.342 * 0.2 / -math.log(0.8), abs=0.003
    )


@pytest.mark.parametrize(
    ("size", "rt60_s"),
    [
        ((12, 8, 3.5), 0.7),
        ((6, 5, 2.8), 0.4),
        ((40, 20, 6), 1.2),
        ((80, 30, 12), 2.5),
        ((2.5, 1.5, 1.3), 0.08),
        ((10, 8, 3), 0.5),
        ((23.3, 14.6, 2.3), 1.4),
        ((21.8, 5.2, 3.0), 1.1),
        ((30, 8, 8), 0.45),
    ],
)
def test_the_time_asked_for_is_measured(size: tuple[float, float, float], rt60_s: float) -> None:
    middle = tuple(side / 2 for side in size)
    mic = (middle[0] - 0.8, middle[1] + 0.1, middle[2] * 0.9)
    spec = RoomSpec(size, middle, mic, rt60_s=rt60_s)  # type: ignore[arg-type]
    for seed in (3, 4):
        response = impulse_response(spec, 44_100, np.random.default_rng(seed))
        assert reverberation_time_s(response, 44_100) == pytest.approx(rt60_s, rel=0.1)
        assert 0.6 * rt60_s < len(response) / 44_100 <= 1.1 * rt60_s + 0.02


def test_textbooks_would_miss_by_half() -> None:
    cafe = RoomSpec((12, 8, 3.5), (6, 4, 1.6), (5, 4, 1.5), rt60_s=0.7)
    assert eyring_rt60_s(cafe.size_m, absorption_for(cafe)) < 0.7 / 1.5


def test_absorption_is_solved_for_this_room() -> None:
    found = absorption_for(OFFICE)
    same = RoomSpec(OFFICE.size_m, OFFICE.source_m, OFFICE.mic_m, absorption=found)
    assert reverberation_time_s(impulse_response(same, 16_000), 16_000) == pytest.approx(
        0.4, rel=0.05
    )


def test_the_direct_sound_is_one_at_sample_0() -> None:
    for rate in (16_000, 44_100):
        response = impulse_response(OFFICE, rate)
        assert response.dtype == np.float32
        assert response[0] == 1.0
        assert np.abs(response[1:]).max() < 1


def test_a_single_reflection_comes_when_and_as_loud_as_it_must() -> None:
    # Floor only matters: everything else is 50 m away, and the response is looked at before that.
    rate = 48_000
    spec = RoomSpec(
        (100, 100, 100), (49, 50, 2), (51, 50, 2), absorption=0.36, max_order=1, highpass_hz=0
    )
    response = impulse_response(spec, rate)[: rate // 10]
    path_m = math.hypot(2, 4)
    at = (path_m - 2) / SPEED_OF_SOUND_M_S * rate
    level = 0.8 * 2 / path_m
    n = np.arange(1, len(response))
    energy = np.square(response[1:], dtype=np.float64)
    assert math.sqrt(energy.sum()) == pytest.approx(level, rel=0.01)
    assert (energy @ n) / energy.sum() == pytest.approx(at, abs=0.05)


@QUICK
@given(
    st.tuples(st.floats(2, 30), st.floats(2, 30), st.floats(2, 8)),
    st.floats(0.3, 0.95),
    st.integers(0, 10**6),
)
def test_responses_are_sane_whatever_the_room(
    size: tuple[float, float, float], absorption: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    source, mic = (tuple(0.1 + rng.uniform(0, 1, 3) * (np.array(size) - 0.2)) for _ in range(2))
    if math.dist(source, mic) < 0.1:
        return
    response = impulse_response(RoomSpec(size, source, mic, absorption=absorption), 8_000)
    assert response[0] == 1
    assert np.isfinite(response).all()
    curve = decay_curve_db(response)
    assert (np.diff(curve) <= 1e-9).all()
    assert abs(float(response[-1])) < 0.02


def test_the_same_generator_gives_the_same_response_and_another_another() -> None:
    first, again, other = (
        impulse_response(OFFICE, 16_000, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[:2_000], other[:2_000])
    assert reverberation_time_s(first, 16_000) == pytest.approx(0.4, rel=0.05)
    np.testing.assert_array_equal(OFFICE_RESPONSE, impulse_response(OFFICE, 16_000))


@pytest.mark.parametrize(("side", "absorption"), [((50, 50, 20), 0.6), ((80, 80, 30), 0.7), ((200, 200, 80), 0.95), ((80, 80, 30), 1.0)])  # fmt: skip
def test_the_open_air_is_a_large_box_that_swallows(
    side: tuple[float, float, float], absorption: float
) -> None:
    spec = RoomSpec(side, (side[0] / 2, 20, 1.6), (side[0] / 2 + 1, 20, 1.5), absorption=absorption)
    response = impulse_response(spec, 16_000)
    ratio = direct_to_reverberant_db(response)
    assert response[0] == 1
    assert ratio is None or ratio > 12
    if absorption == 1:
        assert not response[1:].any()
        assert reverberation_time_s(response, 16_000) is None


def test_damping_takes_highs_from_the_reflections_only() -> None:
    soft = impulse_response(
        RoomSpec(OFFICE.size_m, OFFICE.source_m, OFFICE.mic_m, rt60_s=0.4, damping_hz=1_000), 16_000
    )
    assert soft[0] == 1

    def highs(response: np.ndarray) -> float:
        power = np.square(np.abs(np.fft.rfft(response[1:])))
        return float(power[len(power) // 2 :].sum() / power.sum())

    assert highs(soft) < 0.2 * highs(OFFICE_RESPONSE)


def test_reflections_do_not_pile_up_at_the_lowest_frequencies() -> None:
    def share_of_lows(spec: RoomSpec) -> float:
        response = impulse_response(spec, 16_000)[1:]
        power = np.square(np.abs(np.fft.rfft(response, 1 << 15)))
        return float(power[: round(10 / 16_000 * (1 << 15))].sum() / power.sum())

    bare = RoomSpec(OFFICE.size_m, OFFICE.source_m, OFFICE.mic_m, rt60_s=0.4, highpass_hz=0)
    assert share_of_lows(OFFICE) < 0.02 * share_of_lows(bare)


def test_measured_decay_of_a_known_decay() -> None:
    rate, wanted = 8_000, 0.8
    t = np.arange(rate) / rate
    response = (np.random.default_rng(0).standard_normal(rate) * 10 ** (-3 * t / wanted)).astype(
        np.float32
    )
    assert reverberation_time_s(response, rate) == pytest.approx(wanted, rel=0.03)
    assert reverberation_time_s(response, rate, -5, -25) == pytest.approx(wanted, rel=0.05)
    assert reverberation_time_s(response[:100], rate, -5, -300) is None


@QUICK
@given(st.floats(0, 0.99))
def test_the_wet_share_is_a_share_of_energy(wet: float) -> None:
    made = with_wet_share(OFFICE_RESPONSE, wet)
    energy = np.square(made, dtype=np.float64)
    assert made[0] == 1
    assert energy[1:].sum() / energy.sum() == pytest.approx(wet, abs=1e-5)


def test_a_dry_response_stays_dry() -> None:
    dry = np.array([1, 0, 0], np.float32)
    np.testing.assert_array_equal(with_wet_share(dry, 0.5), dry)
    assert direct_to_reverberant_db(dry) is None
    with pytest.raises(ValueError, match=r"wet share is 1\.0"):
        with_wet_share(dry, 1.0)


@QUICK
@given(st.integers(0, 10**6))
def test_variations_are_rooms_of_the_same_kind(seed: int) -> None:
    made = varied(OFFICE, np.random.default_rng(seed))
    assert made == varied(OFFICE, np.random.default_rng(seed))
    for side, model in zip(made.size_m, OFFICE.size_m, strict=True):
        assert abs(side / model - 1) <= 0.05
    assert made.distance_m == pytest.approx(OFFICE.distance_m, rel=0.101)
    for point in (made.source_m, made.mic_m):
        assert all(
            0.29 < at < side - 0.29 for at, side in zip(point[:2], made.size_m, strict=False)
        )
    assert made.rt60_s == OFFICE.rt60_s


def test_variations_fit_into_a_car() -> None:
    car = RoomSpec((2.5, 1.5, 1.3), (1.6, 0.75, 0.9), (0.8, 0.75, 0.9), rt60_s=0.08)
    places = {varied(car, np.random.default_rng(seed)).mic_m for seed in range(20)}
    assert len(places) == 20


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RoomSpec((5, 4, 0), (1, 1, 1), (2, 2, 2), rt60_s=1), "its size is 5 x 4 x 0 m; wanted sides"),
        (lambda: RoomSpec((5, 4, 3), (6, 1, 1), (2, 2, 2), rt60_s=1), "the source is at 6 x 1 x 1 m in a room of"),
        (lambda: RoomSpec((5, 4, 3), (1, 1, 1), (2, 2, 3), rt60_s=1), "the microphone is at 2 x 2 x 3 m"),
        (lambda: RoomSpec((5, 4, 3), (1, 1, 1), (1, 1, 1), rt60_s=1), "source and microphone are 0.000 m apart"),
        (lambda: RoomSpec((5, 4, 3), (1, 1, 1), (2, 2, 2)), "absorption None and rt60_s None; wanted one of the two"),
        (lambda: RoomSpec((5, 4, 3), (1, 1, 1), (2, 2, 2), absorption=1.5), "absorption is 1.5; wanted over 0"),
        (lambda: RoomSpec((5, 4, 3), (1, 1, 1), (2, 2, 2), rt60_s=-1), "rt60_s is -1"),
        (lambda: impulse_response(RoomSpec((50, 50, 20), (25, 25, 1.6), (24, 25, 1.5), rt60_s=0.2), 8_000), "rt60_s 0.2 cannot be reached in 50 x 50 x 20 m; wanted a time that this room can have. Give a longer rt60_s; for open spaces give an absorption"),
        (lambda: impulse_response(RoomSpec((2, 2, 2), (1, 1, 1), (1.5, 1, 1), rt60_s=9), 8_000), "image sources; wanted at most 3e.07. Take a larger room"),
        (lambda: absorption_for(RoomSpec((5, 4, 3), (1, 1, 1), (2, 2, 2), absorption=0.5)), "no rt60_s is given"),
        (lambda: varied(RoomSpec((5, 4, 3), (0.1, 0.1, 1), (4.9, 3.9, 2), rt60_s=1), np.random.default_rng(0)), "find no place in"),
    ],
)  # fmt: skip
def test_what_is_no_room_is_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(UsageError, match=message):
        make()
