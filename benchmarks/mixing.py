"""Mixing scenes of two minutes: seconds of audio per CPU-second, and memory.

Run by ``make bench`` or ``python -m benchmarks.mixing``. Everything is made on the spot: 20 turns of noise, three
sounds, one ambience of 30 s, a room of 0.6 s. Measured are whole scenes, from voice files to a 16-bit file with its
manifest: reading, placing, room, BS.1770 of voices, sounds, ambience and master, true peak, rounding, hashing and
writing. Rooms and takes are warm, as they are in a corpus; the first scene is made before the clock starts.
"""

from __future__ import annotations

import hashlib
import resource
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from earwitness.audio import Audio, encode_audio, file_sha256, write_audio
from earwitness.scenes.bank import load_bank
from earwitness.scenes.bank_records import Room
from earwitness.scenes.dialogue_records import Dialogue, EventMark, Utterance
from earwitness.scenes.mixing.planning import ScenePlan, plan_scene
from earwitness.scenes.mixing.preset import load_mix_preset
from earwitness.scenes.mixing.stage import MixJob, mix_scene
from earwitness.scenes.mixing.twins import AUDIBLE
from earwitness.scenes.scenario import PlannedEvent, Scenario
from earwitness.scenes.sound_measure import measure_take
from earwitness.scenes.sounds import SoundLibrary, Take, write_library
from earwitness.scenes.voices import SpokenTurn

RATE = 44_100
SCENES = 6
TURNS = 20
TURN_S = 5.05
SOUNDS = ("dog_bark", "bicycle_bell", "basketball_bounce")
BUDGETS = {"as listed in the budget": 300.0, "full default preset": 150.0}
MEMORY_MIB = 300
ROOM = Room(size_m=(12, 8, 3.5), absorption=0.25, rt60_s=0.6, voice_wet=0.06, variations=1)


def syllables(seconds: float, seed: int, rate: int) -> Audio:
    """Noise that comes and goes like syllables."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * rate)) / rate
    wave = np.clip(np.sin(2 * np.pi * 2.1 * t), 0.02, None) * rng.standard_normal(len(t))
    return Audio((0.1 * np.convolve(wave, np.ones(4) / 4, "same")).astype(np.float32), rate)


def library(folder: Path) -> SoundLibrary:
    """One ambience of 30 s and three sounds of 2 s."""
    takes = [_take(folder, "ambiences/park/bed.wav", syllables(30, 1, RATE), "park")]
    for n, sound in enumerate(SOUNDS):
        shape = np.exp(-3 * np.abs(np.arange(2 * RATE) / RATE - 0.5)).astype(np.float32)
        wave = syllables(2, 10 + n, RATE).samples * shape
        takes.append(_take(folder, f"sounds/{sound}/a.wav", Audio(wave, RATE), sound))
    return write_library(folder, takes, name="bench", policy="shared")


def _take(folder: Path, path: str, audio: Audio, of: str) -> Take:
    write_audio(folder / path, audio)
    found = measure_take(audio)
    return Take(
        kind="ambience" if path.startswith("amb") else "sound", of=of, path=path,
        sha256=file_sha256(folder / path), source="made here", licence="CC0 1.0", attribution="", author="",
        duration_s=found.duration_s, loudness_lufs=found.loudness_lufs or -70.0,
        bandwidth_hz=found.bandwidth_hz, band_limited=False, peak_time_s=found.peak_time_s, sample_rate=RATE,
        channels=1, synthetic=True, split="shared",
    )  # fmt: skip


def plans(corpus: Path, sounds: SoundLibrary, rate: int) -> list[ScenePlan]:
    """Scenes of two minutes whose voices are at a rate."""
    bank = load_bank()
    preset = load_mix_preset("balanced")
    found = []
    for k in range(SCENES):
        events = tuple(
            PlannedEvent(f"e{n}", sound, "ambient", None, "early")
            for n, sound in enumerate(SOUNDS, start=1)
        )
        scenario = Scenario(
            f"bench.{rate}.{k}", "t", "t", "test", "park", "friends", "F", "M", events
        )
        timeline: list[Utterance | EventMark] = []
        for n in range(TURNS):
            timeline += [EventMark(f"e{n // 5}")] if n in (5, 10, 15) else []
            timeline.append(Utterance("AB"[n % 2], f"Line {n}."))
        dialogue = Dialogue(scenario.id, "Things.", tuple(timeline))
        turns = [_turn(corpus, scenario.id, n, rate, 100 * k + n) for n in range(TURNS)]
        plan = plan_scene(scenario, dialogue, turns, bank, sounds, preset, seed=1)
        # One room of 0.6 s, as the budget says.
        found.append(
            replace(plan, room=replace(plan.room, room=ROOM, number=0), voice_wet=ROOM.voice_wet)
        )
    return found


def _turn(corpus: Path, scene: str, number: int, rate: int, seed: int) -> SpokenTurn:
    audio = syllables(TURN_S, seed, rate)
    data = encode_audio(audio)
    file = f"voices/{scene}-{number}.wav"
    (corpus / "voices").mkdir(parents=True, exist_ok=True)
    (corpus / file).write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    return SpokenTurn(
        scene, number, "AB"[number % 2], f"v{number % 2}", f"Line {number}.", file, sha256,
        audio.frames, rate, (), (), (),
    )  # fmt: skip


def rate_of(jobs: list[MixJob]) -> float:
    """Best seconds of audio per CPU-second, scene by scene, after a warm-up."""
    mix_scene(jobs[0])
    best = 0.0
    for job in jobs:
        start = time.process_time()
        done = mix_scene(job)
        spent = time.process_time() - start
        if done.refused:
            raise SystemExit(done.refused)
        best = max(best, done.seconds / spent)
    return best


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="earwitness-bench-"))
    try:
        sounds = library(folder / "library")
        for (name, budget), rate in zip(BUDGETS.items(), (RATE, 24_000), strict=True):
            jobs = [
                MixJob(plan, folder / "corpus", folder / "library", "wav", False, (AUDIBLE,))
                for plan in plans(folder / "corpus", sounds, rate)
            ]
            found = rate_of(jobs)
            verdict = "ok" if found >= budget else "UNDER"
            print(f"  {name:<26}{found:7.0f} s of audio per CPU-second   budget {budget:g}  {verdict}"
                  f"   (voices at {rate} Hz)")  # fmt: skip
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        verdict = "ok" if peak <= MEMORY_MIB else "OVER"
        print(
            f"  {'memory':<26}{peak:7.0f} MiB at most                budget {MEMORY_MIB}  {verdict}"
        )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
