"""Twins are the audible version but for one thing, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.errors import DataError, UsageError
from earwitness.scenes.mixing.planning import plan_scene
from earwitness.scenes.mixing.preset import load_mix_preset
from earwitness.scenes.mixing.render import make_scene, mastered
from earwitness.scenes.mixing.stage import encode
from earwitness.scenes.mixing.twins import TwinRequest, make_twin
from earwitness.scenes.voices import read_voices
from tests.scenes.mixing.conftest import Made

RATE = 44_100


def integers(samples: np.ndarray) -> np.ndarray:
    return np.frombuffer(encode(samples, RATE, "wav")[44:], "<i2")


@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.sampled_from(["balanced", "paper"]), st.sampled_from([0, 1, 2]))
def test_twins_are_identical_outside_their_spans(
    made: Made, seed: int, preset: str, number: int
) -> None:
    scenario, dialogue = made.corpus.scenes()[number]
    events = [event.id for event in scenario.events]
    plan = plan_scene(
        scenario, dialogue, read_voices(made.corpus.folder)[scenario.id], made.bank, made.library,
        load_mix_preset(preset), seed, events,
    )  # fmt: skip
    scene, audible = mastered(make_scene(plan, made.corpus.folder, made.library.folder))
    for variant in TwinRequest(("all", "each"), ("each",)).variants(events):
        twin = make_twin(scene, variant)
        assert len(twin.samples) == len(audible)
        outside = np.ones(len(audible), bool)
        for start, end in twin.spans:
            outside[start:end] = False
        assert np.array_equal(twin.samples[outside], audible[outside])
        assert np.array_equal(integers(twin.samples)[outside], integers(audible)[outside])
        assert not np.array_equal(twin.samples, audible)
        event = variant.partition("-")[2]
        if variant.startswith("swap-"):
            old, new = scene.sounds[events.index(event)], twin.sounds[events.index(event)]
            assert new.plan.sound != old.plan.sound
            assert new.plan.sound not in {each.sound for each in scenario.events}
            assert new.placed.salient == old.placed.salient
            assert new.over_ambience_db is not None
            assert new.over_ambience_db >= 6.0
            for other, kept in zip(twin.sounds, scene.sounds, strict=True):
                assert other is kept or kept is old
        else:
            assert twin.muted == (set(events) if event == "all" else {event})
    voices = make_twin(scene, "speech-only")
    assert voices.muted == set(events)
    edge = scene.timeline.fade
    gain = np.float32(10 ** (scene.master.gain_db / 20))
    inner = slice(edge, -edge)
    assert np.array_equal(voices.samples[inner], (scene.voice * gain)[inner])


def test_a_muted_sound_is_all_that_is_missing(made: Made) -> None:
    scenario, dialogue = made.corpus.scenes()[0]
    plan = plan_scene(
        scenario, dialogue, read_voices(made.corpus.folder)[scenario.id], made.bank, made.library,
        load_mix_preset("balanced"), 7,
    )  # fmt: skip
    scene, audible = mastered(make_scene(plan, made.corpus.folder, made.library.folder))
    twin = make_twin(scene, "mute-e2")
    bus = scene.sounds[1]
    gain = np.float32(10 ** (scene.master.gain_db / 20))
    missing = (audible - twin.samples)[bus.placed.start : bus.tail_end]
    assert np.abs(missing - bus.samples * gain).max() < 1e-6


def test_which_twins_a_request_means() -> None:
    request = TwinRequest(("all", "each", "e1"), ("e2",), True)
    assert request.variants(["e1", "e2"]) == (
        "mute-all", "mute-e1", "mute-e2", "swap-e2", "speech-only",
    )  # fmt: skip
    assert request.variants([]) == ("speech-only",)
    assert TwinRequest().variants(["e1"]) == ()
    TwinRequest(("e2",)).check(["e1", "e2"])
    with pytest.raises(UsageError, match=r"--mute: no scene has an event 'e7'; wanted all, each or one of e1"):  # fmt: skip
        TwinRequest(("e7",)).check(["e1"])
    with pytest.raises(UsageError, match=r"--swap-sound: no scene has an event 'all'"):
        TwinRequest((), ("all",)).check(["e1"])


def test_twins_that_do_not_exist_are_refused(made: Made) -> None:
    scenario, dialogue = made.corpus.scenes()[2]
    plan = plan_scene(
        scenario, dialogue, read_voices(made.corpus.folder)[scenario.id], made.bank, made.library,
        load_mix_preset("balanced"), 7,
    )  # fmt: skip
    scene, _ = mastered(make_scene(plan, made.corpus.folder, made.library.folder))
    for variant in ("mute-e9", "louder", "swap-e9"):
        with pytest.raises(DataError, match="has no twin"):
            make_twin(scene, variant)
    with pytest.raises(DataError, match="no swap is planned for event 'e1'"):
        make_twin(scene, "swap-e1")
