"""What is known of a sound only when it is made: its peaks, where it is loudest, and what the gate leaves of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from earwitness.audio import Audio
from earwitness.audio.loudness import integrated_loudness
from earwitness.scenes.mixing.buses import LevelError, SoundBus, TooQuietError
from earwitness.scenes.mixing.evidence import SceneFiles
from earwitness.scenes.mixing.manifest import read_manifest
from earwitness.scenes.mixing.planning import ScenePlan
from earwitness.scenes.mixing.render import MOVED_DB, Scene, make_scene
from earwitness.scenes.mixing.stage import AUDIBLE, MixJob, manifest_file, mix_scene
from earwitness.scenes.scenario import PlannedEvent, Scenario
from earwitness.scenes.sounds import write_library
from tests.scenes.mixing.conftest import Made
from tests.scenes.mixing.made import RATE, add_take, dialogue_of, noise, park_sounds
from tests.scenes.mixing.test_levels import plan_of

SOUND = park_sounds()[0]


def scene_with(made: Made, folder: Path, wave: np.ndarray) -> tuple[ScenePlan, Path]:
    """A plan whose only sound is this wave."""
    takes = [
        add_take(folder, f"sounds/{SOUND}/a.wav", Audio(wave.astype(np.float32), RATE)),
        add_take(folder, "ambiences/park/a0.wav", noise(6.0, 1, level=0.05)),
    ]
    library = write_library(folder, takes, name="one", policy="shared")
    events = (PlannedEvent("e1", SOUND, "ambient", None, "early"),)
    scenario = Scenario("one", "t", "t", "test", "park", "friends", "F", "M", events)
    one = replace(made, library=library)
    return plan_of(one, scenario, dialogue_of(scenario, 7, (3,)), "balanced", 1), folder


def clicks(seconds: float, every_s: float) -> np.ndarray:
    """A clock: little but peaks."""
    wave = np.zeros(round(seconds * RATE))
    tick = np.exp(-np.arange(60) / 8.0) * np.sin(np.arange(60))
    for first in range(1000, len(wave) - 60, round(every_s * RATE)):
        wave[first : first + 60] += 0.8 * tick
    return wave


def test_the_ambience_makes_way_for_what_is_little_but_a_peak(made: Made, tmp_path: Path) -> None:
    plan, library = scene_with(made, tmp_path / "lib", clicks(1.2, 0.4))

    def scene(most_lowered_db: float, peak_dbfs: float) -> Scene:
        events = plan.preset.events.model_copy(update={"peak_dbfs": peak_dbfs, "set_back_share": 0})
        ambience = plan.preset.ambience.model_copy(update={"most_lowered_db": most_lowered_db})
        preset = plan.preset.model_copy(update={"events": events, "ambience": ambience})
        return make_scene(replace(plan, preset=preset), made.corpus.folder, library)

    # Where the limiter can just not hold the level any more.
    held, peak, lacking = 20.0, -40.0, 40.0
    while lacking > 1:
        middle = (held + peak) / 2
        try:
            scene(0.0, middle)
        except TooQuietError as error:
            peak, lacking = middle, error.lacking_db
        else:
            held = middle
    made_way = scene(3.0, peak)
    bus, bed = made_way.sounds[0], made_way.bed
    assert bus.over_ambience_db is not None
    assert bus.over_ambience_db >= 6.0
    assert lacking < bed.wanted_lufs - bed.bus_lufs < lacking + 0.2
    measured = integrated_loudness(Audio(bed.samples, RATE)).lufs
    assert measured == pytest.approx(bed.bus_lufs, abs=0.02)
    with pytest.raises(LevelError, match="too little over the ambience"):
        scene(lacking / 2, peak)


def test_a_sound_whose_limiter_moves_its_loudest_moment_is_placed_by_that(
    made: Made, tmp_path: Path
) -> None:
    wave = np.zeros(round(1.6 * RATE))
    rng = np.random.default_rng(3)
    # First a sharp crack, which the limiter takes down; then a steady rush, all but as loud.
    wave[4410:6615] = np.exp(-np.arange(2205) / 40.0) * rng.standard_normal(2205)
    wave[30_000:60_000] = 0.07 * np.sin(np.arange(30_000) / 4.0)
    plan, library = scene_with(made, tmp_path / "lib", wave)

    def bus(**rules: float | None) -> SoundBus:
        events = plan.preset.events.model_copy(update=rules)
        preset = plan.preset.model_copy(update={"events": events})
        return make_scene(replace(plan, preset=preset), made.corpus.folder, library).sounds[0]

    free, limited = bus(peak_dbfs=None), bus(peak_dbfs=-18.0, most_limited_db=30.0)
    assert free.placed.salient - free.placed.start + free.placed.take_from < 10_000
    assert limited.limited_db > 6
    assert limited.placed.salient - limited.placed.start + limited.placed.take_from > 28_000
    assert limited.off_db <= MOVED_DB


@pytest.mark.parametrize("early_s", [0.015, 0.02, 0.025, 0.03, 0.035])
def test_the_manifest_tells_what_is_measured_in_the_file_though_the_gate_does_not_move_with_gains(
    made: Made, tmp_path: Path, early_s: float
) -> None:
    # A rest between two rings that is over the gate of -70 LUFS as recorded and under it in the mix: whether it counts
    # decides about the few blocks that hold only the beginning of a ring.
    t = np.arange(round(2.4 * RATE)) / RATE
    sounding = (t < 0.6) | ((t > 1.7 - early_s) & (t < 2.2))
    ring = np.where(sounding, 0.5, 1.2e-3) * np.sin(2 * np.pi * 1000 * t)
    plan, library = scene_with(made, tmp_path / "lib", ring)
    corpus = tmp_path / "corpus"
    (corpus / "voices").mkdir(parents=True)
    for turn in plan.turns:
        target = corpus / turn.file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((made.corpus.folder / turn.file).read_bytes())
    job = MixJob(plan, corpus, library, "wav", False, (AUDIBLE, "mute-e1"))
    assert not mix_scene(job).refused
    manifest = read_manifest(manifest_file(corpus, "one"))
    (event,) = manifest.events
    heard = SceneFiles(corpus, manifest).event(event)
    assert heard is not None
    assert heard.loudness_lufs == pytest.approx(event.loudness_lufs, abs=0.02)
    whole = integrated_loudness(
        Audio(SceneFiles(corpus, manifest).steps().astype(np.float32) / 32768, RATE)
    )
    assert whole.lufs == pytest.approx(manifest.levels.loudness_lufs, abs=0.01)
