"""The limiter of a bus."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.audio import Audio
from earwitness.audio.loudness import integrated_loudness
from earwitness.scenes.mixing.buses import LevelError
from earwitness.scenes.mixing.limiter import REACH_S, limit
from earwitness.scenes.mixing.preset import load_mix_preset
from earwitness.scenes.mixing.render import make_scene
from earwitness.scenes.scenario import PlannedEvent, Scenario
from tests.scenes.mixing.conftest import Made
from tests.scenes.mixing.made import dialogue_of, park_sounds
from tests.scenes.mixing.test_levels import plan_of

RATE = 44_100


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(0, 40), st.floats(-6, 3))
def test_no_peak_gets_through_and_the_rest_is_untouched(
    seed: int, clicks: int, ceiling_dbfs: float
) -> None:
    rng = np.random.default_rng(seed)
    before = (0.2 * rng.standard_normal(20_000)).clip(-0.45, 0.45).astype(np.float32)
    at = rng.integers(0, len(before), clicks)
    before[at] = rng.uniform(0.3, 4.0, clicks) * rng.choice([-1, 1], clicks)
    after = before.copy()
    reduction = limit(after, ceiling_dbfs, RATE)
    ceiling = 10 ** (ceiling_dbfs / 20)
    assert np.abs(after).max() <= ceiling
    assert np.all(np.abs(after) <= np.abs(before) * (1 + 1e-6))
    over = np.flatnonzero(np.abs(before) > ceiling)
    assert (reduction > 0) == bool(len(over))
    near = np.zeros(len(before), bool)
    reach = 2 * round(REACH_S * RATE) + 2
    for place in over:
        near[max(place - reach, 0) : place + reach] = True
    assert np.array_equal(after[~near], before[~near])
    assert limit(after, ceiling_dbfs, RATE) == 0.0  # once is enough


def test_a_limited_sound_is_as_loud_as_wanted_or_refused(made: Made) -> None:
    events = (PlannedEvent("e1", park_sounds()[0], "ambient", None, "early"),)
    scenario = Scenario("drawn", "t", "t", "test", "park", "friends", "F", "M", events)
    plan = plan_of(made, scenario, dialogue_of(scenario, 7, (3,)), "balanced", 1)
    free = make_scene(plan, made.corpus.folder, made.library.folder).sounds[0]
    peak = 20 * float(np.log10(np.abs(free.samples).max()))

    def limited_to(peak_dbfs: float, **more: float) -> object:
        update = {"peak_dbfs": peak_dbfs, **more}
        rule = load_mix_preset("balanced").events.model_copy(update=update)
        preset = plan.preset.model_copy(update={"events": rule})
        return make_scene(replace(plan, preset=preset), made.corpus.folder, made.library.folder)

    scene = limited_to(peak - 3)
    bus = scene.sounds[0]  # type: ignore[attr-defined]
    assert 20 * np.log10(np.abs(bus.samples).max()) <= peak - 3 + 1e-4
    length = bus.placed.end - bus.placed.start
    measured = integrated_loudness(Audio(bus.samples[:length], RATE)).lufs
    assert measured == pytest.approx(bus.bus_lufs, abs=1e-3)
    assert bus.bus_lufs == pytest.approx(free.bus_lufs, abs=0.05)
    assert bus.limited_db > 3
    assert bus.over_ambience_db >= 6
    with pytest.raises(LevelError, match=r"its peaks allow -[\d.]+ LUFS, [\d.]+ dB too little"):
        limited_to(-50.0)
