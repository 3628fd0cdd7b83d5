"""Inputs made on the spot: a corpus whose voices are noise with pauses, and a small sound library."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from earwitness.audio import Audio, encode_audio, file_sha256, write_audio
from earwitness.models.protocols import Mark
from earwitness.scenes.bank import load_bank
from earwitness.scenes.corpus import Corpus, dump_lines, write_dialogues
from earwitness.scenes.dialogue_records import Dialogue, EventMark, Utterance
from earwitness.scenes.scenario import SPLITS, PlannedEvent, Scenario
from earwitness.scenes.sound_measure import measure_take
from earwitness.scenes.sounds import SoundLibrary, Take, write_library
from earwitness.scenes.voices import SpokenTurn, spoken_to_json

RATE = 44_100


def noise(seconds: float, seed: int, rate: int = RATE, level: float = 0.1) -> Audio:
    """Noise with a syllable-like swing, from a seed."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * rate)) / rate
    swing = 0.55 + 0.45 * np.sin(2 * np.pi * (2.3 + seed % 3) * t)
    wave = level * swing * rng.standard_normal(len(t))
    # Speech has little above 4 kHz: a running mean tilts it.
    return Audio(np.convolve(wave, np.ones(6) / 6, "same").astype(np.float32), rate)


def burst(seconds: float, peak_at: float, seed: int, level: float = 0.3) -> Audio:
    """A sound that swells to a moment (a share of its length) and dies away."""
    t = np.arange(round(seconds * RATE)) / (seconds * RATE)
    shape = np.where(
        t < peak_at,
        np.exp(-6 * (peak_at - t)),
        np.exp(-4 * (t - peak_at)),
    )
    rng = np.random.default_rng(seed)
    wave = shape * rng.standard_normal(len(t))
    return Audio((level * wave / np.abs(wave).max()).astype(np.float32), RATE)


def add_take(folder: Path, path: str, audio: Audio, split: str = "shared") -> Take:
    kind, of, _ = path.split("/")
    write_audio(folder / path, audio)
    found = measure_take(audio)
    return Take(
        kind="sound" if kind == "sounds" else "ambience", of=of, path=path,
        sha256=file_sha256(folder / path), source="made here", licence="CC0 1.0", attribution="",
        author="", duration_s=found.duration_s, loudness_lufs=found.loudness_lufs or -70.0,
        bandwidth_hz=found.bandwidth_hz, band_limited=found.band_limited, peak_time_s=found.peak_time_s,
        sample_rate=audio.rate, channels=1, synthetic=True, split=split,  # type: ignore[arg-type]
    )  # fmt: skip


def make_library(
    folder: Path,
    sounds: Sequence[str],
    locations: Sequence[str],
    *,
    takes: int = 2,
    bed_s: float = 6.0,
) -> SoundLibrary:
    """Bursts of different lengths and peaks, and beds of noise."""
    made = []
    for n, sound in enumerate(sounds):
        for k in range(takes):
            seed = 100 * n + k
            seconds = 0.15 + 1.7 * ((seed * 37) % 11) / 5
            audio = burst(seconds, 0.1 + 0.08 * ((seed * 13) % 10), seed)
            made.append(add_take(folder, f"sounds/{sound}/t{k}.wav", audio))
    for n, location in enumerate(locations):
        bed = noise(bed_s, 7000 + n, level=0.05)
        made.append(add_take(folder, f"ambiences/{location}/a0.wav", bed))
    return write_library(folder, made, name="made", policy="shared")


def scenario_of(
    identifier: str, sounds: Sequence[tuple[str, str]], location: str = "park", number: int = 0
) -> Scenario:
    """A scenario with (sound, reaction) events."""
    return Scenario(
        identifier, "hosting.01", "hosting", SPLITS[number % 3], location, "friends", "F", "M",
        tuple(
            PlannedEvent(f"e{n}", sound, reaction, None, "early")  # type: ignore[arg-type]
            for n, (sound, reaction) in enumerate(sounds, start=1)
        ),
    )  # fmt: skip


def dialogue_of(scenario: Scenario, utterances: int, places: Sequence[int]) -> Dialogue:
    """Events stand before these utterances."""
    timeline: list[Utterance | EventMark] = []
    for n in range(utterances + 1):
        timeline += [
            EventMark(event.id)
            for event, place in zip(scenario.events, places, strict=True)
            if place == n
        ]
        if n < utterances:
            timeline.append(Utterance("AB"[n % 2], f"Line {n}."))
    return Dialogue(scenario.id, "Everyday things.", tuple(timeline))


def speak(
    folder: Path,
    scenario: str,
    seconds: Sequence[float],
    *,
    rate: int = 16_000,
    edge_s: float = 0.05,
    pause: bool = False,
) -> list[SpokenTurn]:
    """Noise voices with silence at both edges; B is 6 dB louder. With ``pause``, each turn has one of 0.6 s."""
    turns = []
    for n, length in enumerate(seconds):
        key = hashlib.sha256(f"{scenario} {n}".encode()).hexdigest()
        audio = noise(length, int(key[:6], 16) % 9973, rate, 0.1 if n % 2 == 0 else 0.2)
        samples = audio.samples.copy()
        marks = ()
        if pause:
            first = int(0.4 * len(samples))
            samples[first : first + int(0.6 * rate)] = 0
            marks = (Mark("pause", first / rate, first / rate + 0.6),)
        edge = np.zeros(round(edge_s * rate), np.float32)
        data = encode_audio(Audio(np.concatenate([edge, samples, edge]), rate))
        file = f"voices/{key[:2]}/{key}.wav"
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(data)
        frames = len(samples) + 2 * len(edge)
        marks = tuple(Mark(m.kind, m.start_s + edge_s, m.end_s + edge_s) for m in marks)
        sha256 = hashlib.sha256(data).hexdigest()
        who, voice = "AB"[n % 2], f"v{n % 2}"
        turn = SpokenTurn(
            scenario, n, who, voice, f"Line {n}.", file, sha256, frames, rate, (), marks, ()
        )
        turns.append(turn)
    return turns


def park_sounds() -> tuple[str, ...]:
    """Six sounds that may occur in a park."""
    return load_bank().sounds_at("park")[:6]


def make_corpus(
    folder: Path,
    scenes: Sequence[tuple[Scenario, Sequence[int], Sequence[float]]],
    *,
    pause: bool = False,
    edge_s: float = 0.05,
) -> Corpus:
    """A corpus of (scenario, places of events, seconds of turns), spoken by noise."""
    from earwitness.scenes.corpus_plan import plan_corpus
    from earwitness.scenes.plan import load_preset
    from earwitness.scenes.scenario import to_lines

    planned = plan_corpus(
        folder, load_bank(), templates=1, per_template=1, seed=7, preset=load_preset("balanced")
    )
    corpus = planned.corpus
    corpus.path("scenarios.jsonl").write_text(to_lines([s for s, _, _ in scenes]))
    write_dialogues(
        corpus.path("dialogues.jsonl"),
        [dialogue_of(s, len(seconds), places) for s, places, seconds in scenes],
    )
    spoken = [
        turn
        for s, _, seconds in scenes
        for turn in speak(folder, s.id, seconds, pause=pause, edge_s=edge_s)
    ]
    corpus.path("voices.jsonl").write_text(dump_lines(map(spoken_to_json, spoken)))
    return corpus
