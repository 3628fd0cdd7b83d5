"""What a scene promises, measured on its stems: levels, margins, balance, peaks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.audio import Audio, decode_audio, samples_at
from earwitness.audio.loudness import combined_loudness, integrated_loudness, k_weighted
from earwitness.audio.peaks import HEADROOM_DB, true_peak_dbtp
from earwitness.scenes.dialogue_records import Dialogue
from earwitness.scenes.mixing.buses import LevelError, balance
from earwitness.scenes.mixing.describing import describe, describe_audio
from earwitness.scenes.mixing.levels import (
    NEAR_DB,
    master_gain,
    peak_near,
    stretch_lufs,
)
from earwitness.scenes.mixing.manifest import Manifest
from earwitness.scenes.mixing.planning import ScenePlan, plan_scene
from earwitness.scenes.mixing.preset import VoiceChain, load_mix_preset
from earwitness.scenes.mixing.render import Scene, make_scene, mastered, stems_of
from earwitness.scenes.mixing.sources import VoiceSource, bed_of, read_bed
from earwitness.scenes.mixing.stage import encode
from earwitness.scenes.scenario import PlannedEvent, Scenario
from earwitness.scenes.voices import read_voices
from tests.scenes.mixing.conftest import Made
from tests.scenes.mixing.made import burst, dialogue_of, noise, park_sounds

RATE = 44_100
SETTINGS = settings(max_examples=8, deadline=None, derandomize=True)
REACTIONS = ("pivot", "verbal", "behavioral", "ambient")


def plan_of(
    made: Made, scenario: Scenario, dialogue: Dialogue, preset: str, seed: int
) -> ScenePlan:
    turns = [
        replace(turn, scenario=scenario.id) for turn in read_voices(made.corpus.folder)["s.01"]
    ]
    return plan_scene(
        scenario, dialogue, turns, made.bank, made.library, load_mix_preset(preset), seed
    )


@dataclass(frozen=True)
class Drawn:
    """A scene of seven turns with up to three sounds in gaps of their own, of any reaction, in either preset."""

    places: tuple[int, ...]
    sounds: tuple[int, ...]
    reactions: tuple[str, ...]
    preset: str
    seed: int

    def plan(self, made: Made) -> ScenePlan:
        sounds = park_sounds()
        events = tuple(
            PlannedEvent(f"e{n}", sounds[k], reaction, None, "early")  # type: ignore[arg-type]
            for n, (k, reaction, _) in enumerate(
                zip(self.sounds, self.reactions, self.places, strict=False), start=1
            )
        )
        scenario = Scenario("drawn", "t", "t", "test", "park", "friends", "F", "M", events)
        dialogue = dialogue_of(scenario, 7, self.places)
        return plan_of(made, scenario, dialogue, self.preset, self.seed)


DRAWN = st.builds(
    Drawn,
    st.sets(st.integers(0, 7), max_size=3).map(lambda places: tuple(sorted(places))),
    st.tuples(*[st.integers(0, 5)] * 3),
    st.tuples(*[st.sampled_from(REACTIONS)] * 3),
    st.sampled_from(["balanced", "paper"]),
    st.integers(0, 10_000),
)


def rendered(made: Made, plan: ScenePlan) -> tuple[Scene, np.ndarray, Manifest]:
    scene, samples = mastered(make_scene(plan, made.corpus.folder, made.library.folder))
    data = encode(samples, RATE, "wav")
    audio = describe_audio("mixes/drawn.wav", data, len(samples), RATE)
    return scene, samples, describe(scene, audio, inputs=plan.inputs, variant="audible")


@SETTINGS
@given(DRAWN)
def test_stems_add_up_and_levels_hold(made: Made, drawn: Drawn) -> None:
    scene, samples, manifest = rendered(made, drawn.plan(made))
    stems = stems_of(scene)
    total = np.sum([stem.astype(np.float64) for stem in stems.values()], axis=0)
    assert np.abs(total - samples).max() <= 1e-6
    # The master: -23 LUFS within 0.1 LU, or the peak at its ceiling.
    lufs = integrated_loudness(Audio(samples, RATE)).lufs
    assert lufs is not None
    true = true_peak_dbtp(decode_audio(encode(samples, RATE, "wav")))
    assert true is not None
    assert true <= -1.0 + 1e-9
    if manifest.levels.peak_limited:
        assert true == pytest.approx(-1.0, abs=0.02)
        assert lufs < -23.0
    else:
        assert lufs == pytest.approx(-23.0, abs=0.1)
    assert manifest.levels.loudness_lufs == pytest.approx(lufs, abs=0.01)
    if manifest.levels.true_peak_dbtp is None:
        assert true <= -1.0 - NEAR_DB + 0.01
    else:
        assert manifest.levels.true_peak_dbtp == pytest.approx(true, abs=0.01)
    # The bed: measured on its stem, but for the fades at the ends.
    edge = scene.timeline.fade
    bed = integrated_loudness(Audio(stems["ambience"][edge:-edge], RATE)).lufs
    assert bed == pytest.approx(manifest.ambience.loudness_lufs, abs=0.3)
    assert -35.01 <= manifest.ambience.bus_lufs <= -28.99
    for event in manifest.events:
        assert event.over_ambience_db is not None
        assert event.over_ambience_db >= 6.0
        stem = stems[f"event-{event.id}"]
        start, end = samples_at(event.start_s, RATE), samples_at(event.end_s, RATE)
        if start < edge or end > len(samples) - edge:
            continue
        heard = integrated_loudness(Audio(stem[start:end], RATE)).lufs
        assert heard == pytest.approx(event.loudness_lufs, abs=0.01)
        under = stretch_lufs(stems["ambience"], start, end, RATE)
        assert under is not None
        assert heard - under == pytest.approx(event.over_ambience_db, abs=0.02)
        assert heard - under >= 5.99
        assert not stem[:start].any()
        assert not stem[samples_at(event.tail_end_s, RATE) :].any()


@SETTINGS
@given(DRAWN)
def test_speech_is_shifted_and_never_cut(made: Made, drawn: Drawn) -> None:
    """The voice bus holds as much of every turn as the file, with the drawn gaps between."""
    scene, _, manifest = rendered(made, drawn.plan(made))
    turns = manifest.turns
    for n in range(1, len(turns)):
        gap = turns[n].start_s - turns[n - 1].end_s
        assert gap == pytest.approx(manifest.gaps_s[n], abs=1 / RATE)
        low, high = scene.plan.preset.gap_s
        assert low - 1 / RATE <= gap <= high + 1 / RATE
    for turn, spoken in zip(turns, scene.plan.turns, strict=True):
        assert turn.file_start_s >= 0
        assert turn.file_start_s + spoken.seconds <= manifest.audio.duration_s
        assert turn.end_s - turn.start_s >= spoken.seconds - 0.15
    for event in manifest.events:
        half = 0.35 / 2 - 1 / RATE
        assert all(
            turn.end_s <= event.salient_s - half
            or turn.start_s >= event.salient_s + half
            or _paused(scene, turn.index, event.salient_s)
            for turn in turns
        )


def _paused(scene: Scene, index: int, moment_s: float) -> bool:
    """Whether a turn is silent around a moment, for its own pause."""
    start = scene.timeline.turns[index].start / RATE
    return any(
        start + mark.start_s <= moment_s - 0.174 and moment_s + 0.174 <= start + mark.end_s
        for mark in scene.plan.turns[index].marks
    )


def test_speakers_are_equally_loud(made: Made) -> None:
    plan = plan_of(made, *_empty(), "balanced", 3)
    scene, _, manifest = rendered(made, plan)
    levels = manifest.levels.speakers_lufs
    assert set(levels) == {"A", "B"}
    assert abs((levels["A"] or 0) - (levels["B"] or 0)) < 0.5
    parts = {"A": [], "B": []}  # type: ignore[var-annotated]
    for turn in manifest.turns:
        first, last = samples_at(turn.start_s, RATE), samples_at(turn.end_s, RATE)
        parts[turn.speaker].append(k_weighted(Audio(scene.voice[first:last], RATE)))
    measured = {who: combined_loudness(each).lufs for who, each in parts.items()}
    assert measured["A"] == pytest.approx(measured["B"], abs=0.5)
    # B's files are 6 dB louder.
    gains = {turn.speaker: turn.gain_db for turn in manifest.turns}
    assert gains["A"] - gains["B"] == pytest.approx(6, abs=1.2)


def _empty() -> tuple[Scenario, Dialogue]:
    scenario = Scenario("drawn", "t", "t", "test", "park", "friends", "F", "M", ())
    return scenario, dialogue_of(scenario, 7, ())


def test_room_tails_run_through_gaps(made: Made) -> None:
    scene, _, _ = rendered(made, plan_of(made, *_empty(), "balanced", 3))
    for before, after in zip(scene.timeline.turns, scene.timeline.turns[1:], strict=False):
        gap = scene.voice[before.speech_end + 100 : before.speech_end + 2000]
        assert np.abs(gap).max() > 1e-5  # a tail, not digital silence
        late = scene.voice[after.speech_start - 800 : after.speech_start - 400]
        assert np.abs(late).max() < np.abs(gap).max()


def test_paper_ducks_the_reacting_voice_and_ends_before_it_resumes(made: Made) -> None:
    events = (PlannedEvent("e1", park_sounds()[0], "behavioral", None, "early"),)
    scenario = Scenario("drawn", "t", "t", "test", "park", "friends", "F", "M", events)
    dialogue = dialogue_of(scenario, 7, (3,))
    found = [rendered(made, plan_of(made, scenario, dialogue, "paper", seed)) for seed in range(6)]
    ducked = 0
    for scene, _, manifest in found:
        (event,) = manifest.events
        pause = scene.plan.turns[3].marks[0]
        resume = scene.timeline.turns[3].start / RATE + pause.end_s
        assert event.anchor == "break"
        assert resume - 0.31 <= event.end_s <= resume
        assert 0 <= event.duck_db <= 4
        if event.ducked is None:
            continue
        ducked += 1
        assert event.duck_db == pytest.approx(min(4.0, 6.0 - (event.bus_lufs + 20.0)), abs=1e-6)
        start, end = (samples_at(each, RATE) for each in event.ducked)
        plain = make_plain_voice(made, scene)
        inside = scene.voice[start:end] / np.where(plain[start:end] == 0, 1, plain[start:end])
        assert np.median(inside) == pytest.approx(10 ** (-event.duck_db / 20), abs=1e-4)
        before = manifest.turns[2].end_s
        assert np.array_equal(
            scene.voice[: samples_at(before, RATE)], plain[: samples_at(before, RATE)]
        )
    assert ducked


def make_plain_voice(made: Made, scene: Scene) -> np.ndarray:
    """The voice bus of the same scene without ducking."""
    sounds = tuple(replace(s, draw=replace(s.draw, duck_db=0.0)) for s in scene.plan.sounds)
    plan = replace(scene.plan, sounds=sounds)
    return make_scene(plan, made.corpus.folder, made.library.folder).voice


def test_only_the_voice_after_a_sound_makes_way_for_it(made: Made) -> None:
    """Sounds that begin under an utterance leave it as it is."""
    began_before = 0
    for k in range(6):
        sound = park_sounds()[k]
        events = (PlannedEvent("e1", sound, "ambient", None, "early"),)
        scenario = Scenario("drawn", "t", "t", "test", "park", "friends", "F", "M", events)
        plan = plan_of(made, scenario, dialogue_of(scenario, 7, (3,)), "balanced", k)
        (planned,) = plan.sounds
        draw = replace(planned.draw, duck_db=4.0, anchor="gap", place=0.0)
        plan = replace(plan, sounds=(replace(planned, draw=draw),))
        scene = make_scene(plan, made.corpus.folder, made.library.folder)
        (placed,), turns = scene.timeline.sounds, scene.timeline.turns
        plain = make_plain_voice(made, scene)
        ended = turns[2].speech_end
        began_before += placed.start < ended
        assert np.array_equal(scene.voice[:ended], plain[:ended])
        last = placed.end + samples_at(0.09, RATE)
        assert np.array_equal(scene.voice[last:], plain[last:])
        if placed.end > turns[3].speech_start + 2000:
            assert not np.array_equal(scene.voice, plain)
    assert began_before >= 2


def test_a_peaky_mix_is_held_by_a_static_gain() -> None:
    samples = noise(3.0, 1, level=0.01).samples.copy()
    samples[50_000] = 0.9
    audio = Audio(samples, RATE)
    gain = master_gain(audio, -23.0, -1.0)
    assert gain.peak_limited
    after = true_peak_dbtp(Audio(samples * np.float32(10 ** (gain.gain_db / 20)), RATE))
    assert after == pytest.approx(-1.0, abs=0.01)
    assert after is not None
    assert after <= -1.0
    free = master_gain(noise(3.0, 1, level=0.01), -23.0, -1.0)
    assert not free.peak_limited
    assert free.lufs == pytest.approx(-23.0)
    with pytest.raises(ValueError, match="silent"):
        master_gain(Audio(np.zeros(RATE, np.float32), RATE), -23.0, -1.0)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 1000), st.floats(0.05, 1.2), st.integers(0, 3))
def test_true_peaks_near_the_ceiling_are_found_as_by_looking_everywhere(
    seed: int, level: float, clicks: int
) -> None:
    rng = np.random.default_rng(seed)
    wave = 0.2 * level * rng.standard_normal(6000)
    wave[rng.integers(0, 6000, clicks)] = level
    audio = Audio(wave.astype(np.float32), RATE)
    sample = 20 * float(np.log10(np.abs(audio.samples).max()))
    everywhere = true_peak_dbtp(audio)
    assert everywhere is not None
    near = peak_near(audio, sample, -1.0)
    if everywhere > -1.0 - NEAR_DB + 1e-3:
        assert near == pytest.approx(everywhere, abs=1e-3)
    else:
        assert near is None or near <= -1.0 - NEAR_DB + 1e-3
    assert HEADROOM_DB > 6


def test_the_loudness_of_a_bed_is_known_without_measuring_it(made: Made) -> None:
    take = made.library.ambiences("park")[0]
    bed = read_bed(made.library.file(take), take.sha256, RATE, 8000.0, 1.0)
    for frames in (RATE * 3, RATE * 4 + 777, RATE * 11 + 5, RATE * 31):
        for share in (0.0, 0.31, 0.999):
            audio, start, energies = bed_of(bed, frames, share, 1.0)
            loudness = energies.integrated()
            assert audio.frames == frames
            assert start % 4410 == 0
            assert loudness.lufs == pytest.approx(integrated_loudness(audio).lufs, abs=0.01)


def test_what_cannot_be_levelled_is_refused_with_names() -> None:
    loud, quiet = (
        VoiceSource(audio.samples, k_weighted(audio), 0, audio.frames)
        for audio in (noise(2, 1, level=0.3), noise(2, 2, level=0.01))
    )
    with pytest.raises(LevelError, match=r"scene x: the speakers' voices are at A .* LUFS, B .*; wanted at most 12 dB"):  # fmt: skip
        balance([loud, quiet], ["A", "B"], VoiceChain(), "scene x")
    silence = Audio(np.zeros(RATE, np.float32), RATE)
    nothing = VoiceSource(silence.samples, k_weighted(silence), 0, RATE)
    with pytest.raises(LevelError, match="speaker B is silent"):
        balance([loud, nothing], ["A", "B"], VoiceChain(), "scene x")


def test_a_take_of_which_nothing_is_heard_is_refused(made: Made) -> None:
    events = (PlannedEvent("e1", park_sounds()[0], "ambient", None, "early"),)
    scenario = Scenario("drawn", "t", "t", "test", "park", "friends", "F", "M", events)
    plan = plan_of(made, scenario, dialogue_of(scenario, 7, (3,)), "balanced", 1)
    loud = plan.preset.model_copy(
        update={"ambience": plan.preset.ambience.model_copy(update={"lufs": 5.0})}
    )
    with pytest.raises(LevelError, match=r"scene drawn, event e1 \(\w+\) at [\d.]+ s: would have to be raised by"):  # fmt: skip
        make_scene(replace(plan, preset=loud), made.corpus.folder, made.library.folder)
    assert burst(1.0, 0.5, 1).seconds == 1.0
