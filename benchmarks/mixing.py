"""Mixing scenes of two minutes beside scaper 1.6.5: seconds of audio per CPU-second, and memory.

    python -m benchmarks.mixing [--scenes 12] [--without-scaper]

Sources are made on the spot: 20 turns of noise, three sounds of 2 s, one ambience of 30 s. Measured are whole scenes,
from voice files to a 16-bit file with its manifest: reading, placing, room, BS.1770 of voices, sounds, ambience and
master, true peak, rounding, hashing and writing. Rooms and takes are warm, as they are in a corpus; the first scene is
made before the clock starts. Every row is a process of its own, so that memory is that row's.

``the budget's list`` is what the budget of DESIGN names and no more: one room of 0.6 s, on the voices; no limiters, no
ducking, sounds dry. ``default preset`` is what ``scenes mix`` does, in a room of the bank, with voices at 44.1 and at
24 kHz (which are resampled). Scaper gets the same files at the same moments for as long, each turn and each sound as a
foreground event and the ambience as background, in the environment that ``_scaper_environment`` builds. It measures each
of them by BS.1770 too, and nothing of the whole; its reverb is one effect on the sum.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._scaper_environment import NoPeerError, environment
from earwitness.audio import Audio, encode_audio, file_sha256, write_audio
from earwitness.scenes.bank import load_bank
from earwitness.scenes.bank_records import Room
from earwitness.scenes.dialogue_records import Dialogue, EventMark, Utterance
from earwitness.scenes.mixing.manifest import read_manifest
from earwitness.scenes.mixing.planning import ScenePlan, plan_scene
from earwitness.scenes.mixing.preset import MixPreset, load_mix_preset
from earwitness.scenes.mixing.stage import MixJob, manifest_file, mix_scene
from earwitness.scenes.mixing.twins import AUDIBLE
from earwitness.scenes.scenario import PlannedEvent, Scenario
from earwitness.scenes.sound_measure import measure_take
from earwitness.scenes.sounds import SoundLibrary, Take, load_library, write_library
from earwitness.scenes.voices import SpokenTurn

RATE = 44_100
SCENES = 12
TURNS = 20
TURN_S = 5.05
SOUNDS = ("dog_bark", "bicycle_bell", "basketball_bounce")
MEMORY_MIB = 300
ROOM = Room(size_m=(12, 8, 3.5), absorption=0.25, rt60_s=0.6, voice_wet=0.06, variations=1)
SCAPER = Path("build/benchmarks/scaper")


@dataclass(frozen=True)
class Row:
    """One way to mix, and what it must reach."""

    name: str
    voices_hz: int
    lean: bool
    budget: float


ROWS = {
    "lean": Row("the budget's list, voices at 44.1 kHz", RATE, True, 300),
    "full": Row("default preset, voices at 44.1 kHz", RATE, False, 150),
    "full-24": Row("default preset, voices at 24 kHz", 24_000, False, 150),
}


def preset_of(row: Row) -> MixPreset:
    """The default preset, or what is left of it without what the budget's list does not name."""
    preset = load_mix_preset("balanced")
    if not row.lean:
        return preset
    distance = preset.events.distance.model_copy(update={"wet_at_reference": 0.0})
    return preset.model_copy(
        update={
            "id": "lean",
            "placing": {
                "any": preset.placing["any"].model_copy(update={"duck_db": (0.0, 0.0)})
            },
            "voice": preset.voice.model_copy(update={"peak_dbfs": None, "bells": ()}),
            "events": preset.events.model_copy(
                update={"peak_dbfs": None, "bells": (), "distance": distance}
            ),
        }
    )  # fmt: skip


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


def plans(corpus: Path, sounds: SoundLibrary, row: Row, scenes: int) -> list[ScenePlan]:
    """Scenes of two minutes, as a row wants them mixed."""
    bank = load_bank()
    preset = preset_of(row)
    found = []
    for k in range(scenes + 1):
        events = tuple(
            PlannedEvent(f"e{n}", sound, "ambient", None, "early")
            for n, sound in enumerate(SOUNDS, start=1)
        )
        scenario = Scenario(
            f"bench.{row.voices_hz}.{k}", "t", "t", "test", "park", "friends", "F", "M", events
        )
        timeline: list[Utterance | EventMark] = []
        for n in range(TURNS):
            timeline += [EventMark(f"e{n // 5}")] if n in (5, 10, 15) else []
            timeline.append(Utterance("AB"[n % 2], f"Line {n}."))
        dialogue = Dialogue(scenario.id, "Things.", tuple(timeline))
        turns = [_turn(corpus, scenario.id, n, row.voices_hz, 100 * k + n) for n in range(TURNS)]
        plan = plan_scene(scenario, dialogue, turns, bank, sounds, preset, seed=1)
        # One room for all scenes, so that its response is made before the clock starts.
        room = replace(plan.room, room=ROOM, number=0) if row.lean else found[0].room if found else plan.room  # fmt: skip
        found.append(replace(plan, room=room))
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


def measure(folder: Path, row: Row, scenes: int) -> dict[str, Any]:
    """Mix the scenes of a row in this process; a first one is not counted."""
    corpus = folder / "corpus"
    sounds = load_library(folder / "library")
    spent, lengths = [], []
    for plan in plans(corpus, sounds, row, scenes):
        job = MixJob(plan, corpus, folder / "library", "wav", False, (AUDIBLE,))
        start = time.process_time()
        done = mix_scene(job)
        spent.append(time.process_time() - start)
        lengths.append(done.seconds)
        if done.refused:
            raise SystemExit(done.refused)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cpu_s": spent[1:], "seconds": lengths[1:], "peak_mib": peak}


def peer_request(folder: Path, scenes: int, reverb: float | None) -> dict[str, Any]:
    """The scenes that were mixed, as scaper takes them: where our manifests say that things are."""
    corpus = folder / "corpus"
    found = []
    for k in range(scenes + 1):
        manifest = read_manifest(manifest_file(corpus, f"bench.{RATE}.{k}"))
        foreground = folder / "foreground"
        events = [_event("park", folder / "library/ambiences/park/bed.wav", 0.0, 30.0, True)]
        for turn in manifest.turns:
            file = corpus / "voices" / f"{manifest.scene}-{turn.index}.wav"
            events.append(
                _event("voice", _copied(file, foreground / "voice"), turn.start_s, TURN_S)
            )
        for event in manifest.events:
            file = folder / "library" / f"sounds/{event.sound}/a.wav"
            seconds = event.end_s - event.start_s
            copied = _copied(file, foreground / event.sound)
            events.append(_event(event.sound, copied, event.start_s, seconds))
        found.append({"seconds": manifest.audio.duration_s, "events": events})
    return {
        "rate": RATE, "reverb": reverb, "foreground": str(folder / "foreground"),
        "background": str(folder / "library/ambiences"), "scenes": found,
    }  # fmt: skip


def _event(
    label: str, file: Path, start_s: float, seconds: float, background: bool = False
) -> dict[str, Any]:
    return {
        "label": label, "file": str(file), "start_s": start_s, "seconds": seconds, "background": background,
    }  # fmt: skip


def _copied(file: Path, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(file, folder / file.name))


def peer(folder: Path, scenes: int, reverb: float | None) -> dict[str, Any]:
    """Mix the same scenes with scaper.

    Raises
    ------
    NoPeerError: it cannot be had here.
    """
    request = peer_request(folder, scenes, reverb)
    file = folder / "scaper.json"
    file.write_text(json.dumps(request))
    script = Path(__file__).with_name("_scaper_mixing.py")
    said: dict[str, Any] = json.loads(environment(SCAPER).run(str(script), str(file)))
    return {**said, "seconds": [scene["seconds"] for scene in request["scenes"]][1:]}


def line_of(name: str, found: dict[str, Any], budget: float | None = None) -> str:
    """Best and median rate, memory and what was to be reached."""
    rates = [s / c for s, c in zip(found["seconds"], found["cpu_s"], strict=True)]
    text = f"  {name:<40}{max(rates):7.0f}{statistics.median(rates):9.0f}{found['peak_mib']:9.0f}"
    if budget is None:
        return text
    memory = f", {MEMORY_MIB} MiB" if budget >= 300 else ""
    over = memory and found["peak_mib"] > MEMORY_MIB
    verdict = "UNDER" if max(rates) < budget else "OVER" if over else "ok"
    return f"{text}   budget {budget:g}{memory}: {verdict}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixing")
    parser.add_argument("--scenes", type=int, default=SCENES)
    parser.add_argument("--without-scaper", action="store_true")
    parser.add_argument("--row", choices=sorted(ROWS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments if arguments is not None else [])
    if chosen.row:
        json.dump(measure(chosen.folder, ROWS[chosen.row], chosen.scenes), sys.stdout)
        return
    folder = Path(tempfile.mkdtemp(prefix="earwitness-bench-"))
    try:
        library(folder / "library")
        print(f"  {'s of audio per CPU-second':<40}{'best':>7}{'median':>9}{'MiB':>9}")
        for name, row in ROWS.items():
            command = [sys.executable, "-m", "benchmarks.mixing", "--row", name, "--folder", str(folder)]  # fmt: skip
            done = subprocess.run(
                [*command, "--scenes", str(chosen.scenes)], check=True, stdout=subprocess.PIPE
            )
            print(line_of(row.name, json.loads(done.stdout), row.budget), flush=True)
        if not chosen.without_scaper:
            _print_peer(folder, chosen.scenes)
    finally:
        shutil.rmtree(folder)


def _print_peer(folder: Path, scenes: int) -> None:
    try:
        for name, reverb in (("", None), (", with its reverb", 0.3)):
            found = peer(folder, scenes, reverb)
            print(
                line_of(f"scaper {found['version']}, voices at 44.1 kHz{name}", found), flush=True
            )
    except NoPeerError as error:
        print(f"  scaper: not measured, {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
