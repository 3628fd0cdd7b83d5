"""The acoustic half of the leak audit: can the reaction be guessed from how a sound was mixed?

Conventions
-----------
One case per event of a mixed scene, as in :mod:`earwitness.scenes.audit`. Groups of features:

==============  ==========================================================================
``level``       loudness of the sound, its peak, and loudness less that of the scene
``margin``      loudness over the ambience, over what is said meanwhile, over both speakers
``duration``    how long it lasts, with and without the tail of its room
``distance``    distance, share of the room, corner of the low-pass
``gaps``        silence around it: before and after it, the gap it is in, its place there, speech under it
``truncation``  what is cut of the recording at both ends, and how it fades
``ducking``     how far and how long the voice goes down
``spectrum``    spectral centroid, bandwidth, roll-off and flatness of the sound alone
``place``       when it occurs, in seconds and as a share of the scene
``acoustics``   all of the above
==============  ==========================================================================

All come from the manifests, but for the spectrum and the peak, which are measured on the sound as it is in the mix:
the mix less its twin without the sound, or its stem. Where a corpus has neither, they are measured in the mix
in the clear window, where nobody speaks.

``paper`` mixing ducks, cuts and anchors behavioral sounds as published, so its preset promises nothing for the groups
that tell them (``floors`` in the preset). Held to chance (``strict``), it must be found out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from earwitness.audio.types import FULL_SCALE_STEP, samples_at
from earwitness.errors import DataError, UsageError
from earwitness.jobs import pool_map
from earwitness.scenes.audit import CHANCE, Audit, Features, audit_features
from earwitness.scenes.bank_records import REACTIONS, Reaction
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.mixing.evidence import SceneFiles, read_card
from earwitness.scenes.mixing.manifest import Manifest, MixedEvent, read_manifest
from earwitness.scenes.mixing.stage import manifest_file, manifests
from earwitness.scenes.scenario import Scenario
from earwitness.stats.streams import stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from earwitness.audio.types import Samples

    Floats = NDArray[np.float64]

GROUPS = (
    "level", "margin", "duration", "distance", "gaps", "truncation", "ducking", "spectrum", "place",
)  # fmt: skip
TOGETHER = "acoustics"
CONTROL = "shuffled control"
SILENT_DB = 60.0
"""Stands for the margin over silence."""
WINDOW_S = 0.35
FFT = 2048
BANDWIDTH_DB = 60.0
ROLLOFF = 0.95


@dataclass(frozen=True, slots=True)
class AcousticCase:
    """One sound of one mixed scene, with the features of every group."""

    scene: str
    event: str
    template: str
    split: str
    reaction: Reaction
    features: Mapping[str, Features]


@dataclass(frozen=True, slots=True)
class MeasureJob:
    """One scene whose sounds are measured. ``alone``: on the sounds alone, otherwise in the mix."""

    folder: Path
    scenario: Scenario
    alone: bool


def acoustic_cases(
    corpus: Corpus,
    *,
    split: str | None = None,
    workers: int | None = None,
    on_done: Callable[[int, int], None] | None = None,
) -> tuple[AcousticCase, ...]:
    """Every sound of the mixed scenes with its features, in the order of the corpus; none where nothing is mixed.

    Raises
    ------
    DataError: a manifest or an audio file is missing or damaged.
    """
    mixed = {
        scenario.id: scenario
        for scenario, _ in corpus.scenes()
        if split in (None, scenario.split) and manifest_file(corpus.folder, scenario.id).is_file()
    }
    alone = all(
        _has_alone(SceneFiles(corpus.folder, manifest), manifest)
        for manifest in manifests(corpus)
        if manifest.scene in mixed
    )
    jobs = [MeasureJob(corpus.folder, scenario, alone) for scenario in mixed.values()]
    cases: list[AcousticCase] = []
    for done, found in enumerate(pool_map(measure_scene, jobs, workers=workers, chunk=4), start=1):
        cases += found
        if on_done:
            on_done(done, len(jobs))
    return tuple(cases)


def acoustic_floors(corpus: Corpus) -> dict[str, float | None]:
    """What the mixing preset of a corpus says its design gives away, as ``mixes.yaml`` tells."""
    preset = read_card(corpus).get("preset") or {}
    return dict(preset.get("floors") or {})


def _has_alone(files: SceneFiles, manifest: Manifest) -> bool:
    from earwitness.scenes.mixing.twins import MUTE_ALL

    stems = manifest.stems or {}
    return all(
        f"event-{event.id}.wav" in stems
        or files.twin_manifest(f"mute-{event.id}") is not None
        or files.twin_manifest(MUTE_ALL) is not None
        for event in manifest.events
    )


def measure_scene(job: MeasureJob) -> tuple[AcousticCase, ...]:
    """The cases of one scene; a function of the job and its files alone."""
    manifest = read_manifest(manifest_file(job.folder, job.scenario.id))
    files = SceneFiles(job.folder, manifest)
    return tuple(
        AcousticCase(
            scene=manifest.scene,
            event=event.id,
            template=job.scenario.template,
            split=job.scenario.split,
            reaction=event.reaction,
            features=features_of(manifest, event, _samples(files, event, alone=job.alone)),
        )
        for event in manifest.events
    )


def _samples(files: SceneFiles, event: MixedEvent, *, alone: bool) -> Samples:
    """The sound alone, or what is heard in its clear window."""
    if alone:
        heard = files.event(event)
        if heard is not None:
            return heard.samples[: heard.length]
    rate = files.manifest.audio.rate_hz
    start = samples_at(max(event.salient_s - WINDOW_S / 2, 0.0), rate)
    part = files.steps()[start : start + samples_at(WINDOW_S, rate)]
    made: Samples = part.astype(np.float32) * np.float32(FULL_SCALE_STEP)
    return made


def features_of(manifest: Manifest, event: MixedEvent, samples: Samples) -> Mapping[str, Features]:
    """The features of one sound, by group.

    Parameters
    ----------
    samples: the sound as it is in the mix.
    """
    duration = manifest.audio.duration_s
    levels = manifest.levels
    speakers = [level for level in levels.speakers_lufs.values() if level is not None]
    peak = float(np.abs(samples).max(initial=0.0))
    before = max((t.end_s for t in manifest.turns if t.start_s < event.salient_s), default=0.0)
    after = min((t.start_s for t in manifest.turns if t.end_s > event.salient_s), default=duration)
    inside = any(t.start_s < event.salient_s < t.end_s for t in manifest.turns)
    clear_start, clear_end = event.clear
    ducked = event.ducked
    return {
        "level": {
            "loudness": event.loudness_lufs,
            "over the scene": event.loudness_lufs - (levels.loudness_lufs or levels.wanted_lufs),
            "peak": 20 * float(np.log10(max(peak, FULL_SCALE_STEP))),
        },
        "margin": {
            "over ambience": SILENT_DB if event.over_ambience_db is None else event.over_ambience_db,
            "over voice": SILENT_DB if event.over_voice_db is None else event.over_voice_db,
            "over speakers": event.loudness_lufs - float(np.mean(speakers)) if speakers else 0.0,
        },
        "duration": {
            "seconds": event.end_s - event.start_s,
            "with tail": event.tail_end_s - event.start_s,
            "before the moment": event.salient_s - event.start_s,
            "after the moment": event.end_s - event.salient_s,
        },
        "distance": {
            "metres": event.distance_m,
            "share of the room": event.wet,
            "low-pass": event.lowpass_hz or manifest.audio.rate_hz / 2,
        },
        "gaps": {
            "gap": clear_end - clear_start,
            "moment in the gap": event.salient_s - clear_start,
            "left of the gap": clear_end - event.salient_s,
            "since speech": event.start_s - before,
            "until speech": after - event.end_s,
            "inside a turn": float(inside),
            "speech under it": _overlap(manifest, event),
        },
        "truncation": {
            "cut at the start": event.cut_start_s,
            "cut at the end": event.cut_end_s,
            "is cut at the start": float(event.cut_start_s > 0),
            "is cut at the end": float(event.cut_end_s > 0),
            "fade in": event.fade_in_s,
            "fade out": event.fade_out_s,
        },
        "ducking": {
            "depth": event.duck_db,
            "ducks": float(ducked is not None),
            "seconds": 0.0 if ducked is None else ducked[1] - ducked[0],
        },
        "spectrum": spectrum_of(samples, manifest.audio.rate_hz),
        "place": {
            "seconds": event.salient_s,
            "share": event.salient_s / duration,
            "left": duration - event.salient_s,
            "of the scene": duration,
        },
    }  # fmt: skip


def _overlap(manifest: Manifest, event: MixedEvent) -> float:
    """Seconds of the sound under which somebody speaks."""
    shared = (
        min(turn.end_s, event.end_s) - max(turn.start_s, event.start_s) for turn in manifest.turns
    )
    return float(sum(max(seconds, 0.0) for seconds in shared))


def spectrum_of(samples: Samples, rate: int) -> Features:
    """Shape of a sound's long-term power spectrum.

    Returns
    -------
    ``centroid`` and ``rolloff`` (95 % of the power lies below) as octaves over 100 Hz; ``bandwidth``, the highest
    band of 200 Hz within 60 dB of the strongest, in kHz; ``flatness``, geometric over arithmetic mean in dB.

    Examples
    --------
    >>> tone = np.sin(np.arange(44100) * 2 * np.pi * 1600 / 44100).astype(np.float32)
    >>> round(spectrum_of(tone, 44100)["centroid"], 2)
    4.0
    """
    wave = np.asarray(samples, np.float64)
    if len(wave) < FFT:
        wave = np.pad(wave, (0, FFT - len(wave)))
    frames = np.lib.stride_tricks.sliding_window_view(wave, FFT)[:: FFT // 2]
    power: Floats = np.square(np.abs(np.fft.rfft(frames * np.hanning(FFT)))).mean(axis=0)[1:]
    hz = np.arange(1, FFT // 2 + 1) * rate / FFT
    total = float(power.sum())
    if total <= 0:
        return {"centroid": 0.0, "rolloff": 0.0, "bandwidth": 0.0, "flatness": 0.0}
    width = max(1, round(200 * FFT / rate))
    bands = np.add.reduceat(power, np.arange(0, len(power), width))
    highest = int(np.flatnonzero(bands >= bands.max() * 10 ** (-BANDWIDTH_DB / 10))[-1])
    rolloff = hz[int(np.searchsorted(np.cumsum(power), ROLLOFF * total))]
    log = np.log(np.maximum(power, total * 1e-12))
    return {
        "centroid": float(np.log2((power @ hz) / total / 100)),
        "rolloff": float(np.log2(rolloff / 100)),
        "bandwidth": (highest + 1) * width * rate / FFT / 1000,
        "flatness": float(10 / np.log(10) * (log.mean() - np.log(power.mean()))),
    }


def audit_acoustics(
    cases: Sequence[AcousticCase],
    *,
    floors: Mapping[str, float | None] | None = None,
    only: Collection[str] = (),
    seed: int = 0,
    on_group: Callable[[str], None] | None = None,
) -> Audit:
    """Let classifiers guess the reaction from each group, cross-validated by template.

    Parameters
    ----------
    floors: what the mixing preset gives away by design, group by group; None promises nothing. 25 % for others.
    only: names of the groups to try; all if empty.

    Raises
    ------
    DataError: there are no sounds, or too few templates.
    UsageError: there is no such group.
    """
    if not cases:
        raise DataError("audit", "no mixed sounds", "a mixed corpus", "Run: earwitness scenes mix")
    names = (*GROUPS, TOGETHER)
    if unknown := sorted(set(only) - set(names)):
        raise UsageError("audit", f"no group {unknown[0]!r}", ", ".join(names))
    chosen = [name for name in names if not only or name in only]
    reactions = np.array([REACTIONS.index(case.reaction) for case in cases])
    known = sorted({case.template for case in cases})
    templates = np.array([known.index(case.template) for case in cases])
    tries = 2 * (len(chosen) + 1)
    floors = floors or {}
    groups = []
    for name in chosen:
        if on_group:
            on_group(name)
        groups.append(
            audit_features(
                name, _rows(cases, name), reactions, templates,
                floor=floors.get(name, CHANCE), seed=seed, tries=tries,
            )
        )  # fmt: skip
    if on_group:
        on_group(CONTROL)
    shuffled = stream(seed, "audit", "acoustics", "shuffle").permutation(reactions)
    control = audit_features(
        CONTROL, _rows(cases, TOGETHER), shuffled, templates, seed=seed, tries=tries
    )
    return Audit(tuple(groups), control)


def _rows(cases: Sequence[AcousticCase], group: str) -> list[dict[str, float]]:
    """Features of a group with mean 0 and spread 1 over the cases, so that a linear guess has fair weights."""
    parts = GROUPS if group == TOGETHER else (group,)
    keys = [(part, key) for part in parts for key in cases[0].features[part]]
    table = np.array([[case.features[part][key] for part, key in keys] for case in cases])
    spread = table.std(axis=0)
    table = (table - table.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return [
        {f"{part}: {key}": float(value) for (part, key), value in zip(keys, row, strict=True)}
        for row in table
    ]
