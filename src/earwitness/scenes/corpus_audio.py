"""The promises of mixed scenes, checked in the audio.

=====  ==========================================================================================
V501   every scene with voices is mixed, in every version that ``mixes.yaml`` tells of
V502   a file has the bytes its manifest says
V503   a manifest tells the sounds and turns that the corpus has for the scene
V504   every sound is audible: far enough over the ambience, and free of speech at its loudest
V505   a twin is of the mix that is there, differs where it says so, and nowhere else
V506   voices are only shifted: whole, in order, and as far apart as the gaps say
=====  ==========================================================================================

How far a sound stands over the ambience is measured in the audio where twins or stems let it be had back (see
:mod:`earwitness.scenes.mixing.evidence`); otherwise the figure of the manifest counts, which was measured on the buses
when the file was made. The same holds for the ambience under it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from earwitness.errors import EarwitnessError
from earwitness.jobs import pool_map
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.mixing.evidence import SceneFiles, read_card, twin_manifests
from earwitness.scenes.mixing.manifest import Manifest, MixedEvent, read_manifest
from earwitness.scenes.mixing.stage import CARD, MIXES, manifest_file
from earwitness.scenes.mixing.twins import MUTE_ALL, SPEECH_ONLY
from earwitness.scenes.scenario import Scenario
from earwitness.scenes.voices import SpokenTurn, read_voices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

OVER_AMBIENCE_DB = 6.0
"""Of the default presets, for mixes whose ``mixes.yaml`` does not tell theirs."""
TOLERANCE_DB = 0.01
AGREES_DB = 0.1
"""How far what is measured in the audio may be from what the manifest tells: files are rounded to 16 bits."""
MOST_BELOW_DB = 2.0
"""How much louder than its salient moment a sound may be elsewhere: moments within 0.5 dB count as one when it is
placed, and fades and its limiter may change them a little."""
QUIETEST_LUFS = -60.0
"""Below, rounding weighs more than that, and only the margin is looked at."""
FRAME_S = 2 / 44_100
SPEECH_RATE = 8_000
LAG_S = 0.05
"""Voices are looked for so far around their places."""
MOST_LAG_S = 0.003
LEAST_LIKENESS = 0.25
LEAST_PART_S = 0.25
"""Of a voice that is compared at its beginning and its end."""


@dataclass(frozen=True, slots=True)
class MeasuredEvent:
    """How far one sound stands over the ambience, and whether that was measured in the audio."""

    scene: str
    event: str
    margin_db: float | None
    in_audio: bool


@dataclass(frozen=True, slots=True)
class AudioFinding:
    """Something that does not hold: its code, where, and what was found. ``open`` is work left."""

    code: str
    where: str
    found: str
    open: bool = False


@dataclass(frozen=True, slots=True)
class SceneCheck:
    """What checking one scene found."""

    scene: str
    findings: tuple[AudioFinding, ...]
    events: tuple[MeasuredEvent, ...]
    twins: int


@dataclass(frozen=True, slots=True)
class AudioChecked:
    """What was checked in the audio of a corpus.

    Attributes
    ----------
    measured: sounds whose margin was measured in the audio; ``told`` those for which the manifest's figure counts.
    least_margin_db: the smallest of all margins.
    """

    scenes: int
    measured: int
    told: int
    twins: int
    least_margin_db: float | None


@dataclass(frozen=True, slots=True)
class SceneJob:
    """One scene to check."""

    folder: Path
    scenario: Scenario
    turns: tuple[SpokenTurn, ...]
    variants: tuple[str, ...]
    least_db: float


def is_mixed(corpus: Corpus) -> bool:
    """Whether anything of a corpus was mixed."""
    return corpus.path(CARD).is_file() or any(corpus.path(MIXES).glob("*.json"))


def check_audio(
    corpus: Corpus,
    *,
    workers: int | None = None,
    on_done: Callable[[int, int], None] | None = None,
) -> tuple[tuple[AudioFinding, ...], AudioChecked]:
    """Check every mixed scene of a corpus, with its twins, in the audio.

    Parameters
    ----------
    on_done: told how many scenes of how many are done.

    Raises
    ------
    DataError: ``mixes.yaml`` or ``voices.jsonl`` is damaged.
    """
    card = read_card(corpus)
    voices = read_voices(corpus.folder)
    refused = card.get("refused") or {}
    least = card.get("preset", {}).get("over_ambience_db", OVER_AMBIENCE_DB)
    jobs, findings = [], []
    unmixed = []
    for scenario, _ in corpus.scenes():
        if scenario.id in refused:
            found = f"cannot be mixed: {refused[scenario.id]}"
            findings.append(AudioFinding("V501", scenario.id, found))
        elif not manifest_file(corpus.folder, scenario.id).is_file():
            unmixed.append(scenario.id)
        else:
            turns = voices.get(scenario.id, ())
            variants = tuple(card.get("twins") or {})
            jobs.append(SceneJob(corpus.folder, scenario, turns, variants, float(least)))
    if unmixed:
        shown = ", ".join(unmixed[:3]) + (", ..." if len(unmixed) > 3 else "")
        findings.append(
            AudioFinding("V501", str(corpus.path(MIXES)), f"{len(unmixed)} scenes are not mixed ({shown})", open=True)
        )  # fmt: skip
    checks: list[SceneCheck] = []
    for done, check in enumerate(pool_map(check_scene, jobs, workers=workers, chunk=2), start=1):
        checks.append(check)
        if on_done:
            on_done(done, len(jobs))
    findings += [finding for check in checks for finding in check.findings]
    events = [event for check in checks for event in check.events]
    margins = [event.margin_db for event in events if event.margin_db is not None]
    return tuple(findings), AudioChecked(
        scenes=len(checks),
        measured=sum(event.in_audio for event in events),
        told=sum(not event.in_audio for event in events),
        twins=sum(check.twins for check in checks),
        least_margin_db=round(min(margins), 3) if margins else None,
    )


def check_scene(job: SceneJob) -> SceneCheck:
    """Check one scene; a function of the job and its files alone."""
    where = manifest_file(job.folder, job.scenario.id)
    try:
        manifest = read_manifest(where)
        files = SceneFiles(job.folder, manifest)
        findings = list(_byte_findings(job.folder, manifest))
        if findings:
            # What is measured in another file says nothing about this one.
            return SceneCheck(job.scenario.id, tuple(findings), (), 0)
        findings += _belonging(job, manifest)
        twins = twin_manifests(job.folder, manifest.scene)
        findings += _twin_findings(job, files, twins)
        events = []
        for event in manifest.events:
            measured, broken = _audible(job, files, event)
            events.append(measured)
            findings += broken
        findings += _speech_findings(job, files)
    except EarwitnessError as error:
        found = AudioFinding("V502", error.where, f"{error.found}; wanted {error.wanted}")
        return SceneCheck(job.scenario.id, (found,), (), 0)
    return SceneCheck(job.scenario.id, tuple(findings), tuple(events), len(twins))


def _byte_findings(folder: Path, manifest: Manifest) -> Iterator[AudioFinding]:
    from earwitness.audio import file_sha256

    audio = manifest.audio
    path = folder / audio.file
    if not path.is_file():
        yield AudioFinding("V502", str(path), "is missing")
    elif file_sha256(path) != audio.sha256:
        yield AudioFinding("V502", str(path), "has other bytes than its manifest says")


def _belonging(job: SceneJob, manifest: Manifest) -> Iterator[AudioFinding]:
    where = str(manifest_file(job.folder, job.scenario.id))
    planned = [(e.id, e.sound, e.reaction, e.register) for e in job.scenario.events]
    told = [(e.id, e.sound, e.reaction, e.register) for e in manifest.events]
    if planned != told:
        found = f"tells the sounds {_names(told)}; planned are {_names(planned)}"
        yield AudioFinding("V503", where, found)
    if manifest.location != job.scenario.location or manifest.split != job.scenario.split:
        found = f"is of {manifest.location} in {manifest.split}; planned is {job.scenario.location} in {job.scenario.split}"
        yield AudioFinding("V503", where, found)
    spoken = [(turn.index, turn.speaker, turn.sha256) for turn in job.turns]
    if spoken != [(turn.index, turn.speaker, turn.sha256) for turn in manifest.turns]:
        found = (
            f"has other voices than voices.jsonl ({len(manifest.turns)} and {len(spoken)} turns)"
        )
        yield AudioFinding("V503", where, found)


def _names(events: Sequence[tuple[Any, ...]]) -> str:
    return ", ".join(f"{event[0]} {event[1]} {event[2]}" for event in events) or "none"


def expected_twins(variants: Iterable[str], events: Iterable[str]) -> set[str]:
    """Which of a corpus's twins a scene with these events has.

    Examples
    --------
    >>> sorted(expected_twins(["mute-all", "mute-e2", "speech-only", "swap-e1"], ["e1"]))
    ['mute-all', 'speech-only', 'swap-e1']
    """
    known = set(events)
    return {
        variant
        for variant in variants
        if variant == SPEECH_ONLY
        or (variant == MUTE_ALL and known)
        or variant.partition("-")[2] in known
    }


def _twin_findings(
    job: SceneJob, files: SceneFiles, twins: Mapping[str, Manifest]
) -> Iterator[AudioFinding]:
    scene = files.manifest
    for variant in sorted(expected_twins(job.variants, (e.id for e in scene.events)) - set(twins)):
        yield AudioFinding("V501", scene.scene, f"has no twin {variant}", open=True)
    for variant, twin in twins.items():
        where = f"{scene.scene}, twin {variant}"
        if twin.audible_sha256 != scene.audio.sha256:
            yield AudioFinding("V505", where, "is a twin of another mix than the one that is there")
            continue
        broken = list(_byte_findings(job.folder, twin))
        yield from broken
        if not broken:
            yield from _difference_findings(files, twin, where)


def _difference_findings(files: SceneFiles, twin: Manifest, where: str) -> Iterator[AudioFinding]:
    mix, other = files.steps(), files.read(twin.audio.file)
    rate = twin.audio.rate_hz
    if mix.shape != other.shape:
        yield AudioFinding("V505", where, f"has {len(other)} samples, the mix {len(mix)}")
        return
    inside = np.zeros(len(mix), bool)
    different = mix != other
    for start_s, end_s in twin.differs:
        start, end = round(start_s * rate), round(end_s * rate)
        inside[start:end] = True
        if not different[start:end].any():
            found = f"is the same as the mix from {start_s:.3f} to {end_s:.3f} s, where it should differ"
            yield AudioFinding("V505", where, found)
    outside = np.flatnonzero(different & ~inside)
    if len(outside):
        found = f"differs at {outside[0] / rate:.3f} s, outside the sounds in question ({len(outside)} samples)"
        yield AudioFinding("V505", where, found)


def _audible(
    job: SceneJob, files: SceneFiles, event: MixedEvent
) -> tuple[MeasuredEvent, list[AudioFinding]]:
    where = f"{files.manifest.scene}, event {event.id} ({event.sound}) at {event.salient_s:.3f} s"
    findings = [AudioFinding("V504", where, found) for found in _clear(files.manifest, event)]
    heard = files.event(event)
    margin, in_audio = event.over_ambience_db, False
    if heard is not None:
        if heard.loudness_lufs is None:
            findings.append(AudioFinding("V504", where, "nothing of it is in the mix"))
            return MeasuredEvent(files.manifest.scene, event.id, None, True), findings
        margin, in_audio = _margin(event, heard.loudness_lufs, heard.ambience_lufs), True
        below = heard.below_loudest_db(
            event.salient_s - event.start_s, files.manifest.audio.rate_hz
        )
        if below > MOST_BELOW_DB:
            found = f"is {below:.1f} dB louder elsewhere than in its clear window"
            findings.append(AudioFinding("V504", where, found))
        off = heard.loudness_lufs - event.loudness_lufs
        if heard.source != "all" and abs(off) > AGREES_DB and event.loudness_lufs > QUIETEST_LUFS:
            found = f"is at {heard.loudness_lufs:.2f} LUFS in the mix; its manifest says {event.loudness_lufs:.2f}"
            findings.append(AudioFinding("V504", where, found))
    if margin is not None and margin < job.least_db - TOLERANCE_DB:
        found = f"stands {margin:.2f} dB over the ambience; wanted {job.least_db:g} or more"
        findings.append(AudioFinding("V504", where, found))
    return MeasuredEvent(files.manifest.scene, event.id, margin, in_audio), findings


def _margin(event: MixedEvent, loudness_lufs: float, ambience_lufs: float | None) -> float | None:
    """Over the ambience as measured; otherwise over the ambience that the manifest tells of."""
    if ambience_lufs is not None:
        return loudness_lufs - ambience_lufs
    if event.over_ambience_db is None:
        return None
    return loudness_lufs - (event.loudness_lufs - event.over_ambience_db)


def _clear(manifest: Manifest, event: MixedEvent) -> Iterator[str]:
    """Nobody may speak at the loudest moment."""
    start, end = event.clear
    if not start - FRAME_S <= event.salient_s <= end + FRAME_S:
        yield f"is loudest outside the gap from {start:.3f} to {end:.3f} s"
    if event.anchor == "break":
        # The gap is a pause inside a turn.
        return
    for turn in manifest.turns:
        if turn.start_s + FRAME_S < event.salient_s < turn.end_s - FRAME_S:
            yield f"is loudest while {turn.speaker} speaks ({turn.start_s:.3f} to {turn.end_s:.3f} s)"


def _speech_findings(job: SceneJob, files: SceneFiles) -> Iterator[AudioFinding]:
    """Turns in order with their gaps between, and each voice found whole where the manifest says."""
    manifest = files.manifest
    for before, after, gap in zip(
        manifest.turns, manifest.turns[1:], manifest.gaps_s[1:], strict=False
    ):
        if abs(after.start_s - before.end_s - gap) > FRAME_S:
            found = (
                f"{after.start_s - before.end_s:.4f} s after the turn before; the gap is {gap:.4f}"
            )
            yield AudioFinding("V506", f"{manifest.scene}, turn {after.index}", found)
    if len(job.turns) != len(manifest.turns):
        return
    quietest = files.twin(SPEECH_ONLY)
    if quietest is None:
        quietest = files.twin(MUTE_ALL)
    speech = _at_speech_rate(
        (files.steps() if quietest is None else quietest).astype(np.float32), manifest.audio.rate_hz
    )
    for turn, spoken in zip(manifest.turns, job.turns, strict=True):
        found = _shifted(job.folder, spoken, turn.file_start_s, speech)
        if found:
            yield AudioFinding(
                "V506", f"{manifest.scene}, turn {turn.index} ({spoken.file})", found
            )


def _shifted(folder: Path, spoken: SpokenTurn, start_s: float, speech: Floats) -> str:
    """Why a voice is not whole in its place; empty where it is."""
    import soundfile

    try:
        samples, rate = soundfile.read(folder / spoken.file, dtype="float32", always_2d=True)
    except (OSError, soundfile.SoundFileError):
        return "cannot be read"
    voice = _at_speech_rate(samples.mean(axis=1), rate)
    lags = []
    for name, first, last in _parts(voice):
        lag_s, likeness = best_lag(voice[first:last], speech, start_s * SPEECH_RATE + first)
        if likeness < LEAST_LIKENESS or abs(lag_s) > MOST_LAG_S:
            return f"its {name} is not found at {start_s + first / SPEECH_RATE:.3f} s"
        lags.append(lag_s)
    return ""


def _parts(voice: Floats) -> Iterator[tuple[str, int, int]]:
    """The louder half of both halves of what is said: pauses say nothing about where a voice is."""
    middle = len(voice) // 2
    width = max(int(LEAST_PART_S * SPEECH_RATE), middle // 2)
    energy = np.concatenate([[0.0], np.cumsum(np.square(voice))])
    for name, first, last in (("beginning", 0, middle), ("end", middle, len(voice))):
        if last - first <= width:
            if last > first:
                yield name, first, last
            continue
        sums = energy[first + width : last + 1] - energy[first : last - width + 1]
        start = first + int(np.argmax(sums))
        yield name, start, start + width


def best_lag(part: Floats, speech: Floats, at: float) -> tuple[float, float]:
    """Where around a place a stretch of a voice is found, in seconds from it, and the correlation there.

    Parameters
    ----------
    at: sample (not whole) of ``speech`` at which the part should begin.
    """
    most = round(LAG_S * SPEECH_RATE)
    begin = round(at)
    first = max(begin - most, 0)
    around = speech[first : begin + len(part) + most]
    if len(around) < len(part) or not part.any():
        return 0.0, 0.0
    size = 1 << (len(around) + len(part)).bit_length()
    spectrum = np.fft.rfft(around, size) * np.conj(np.fft.rfft(part, size))
    products = np.fft.irfft(spectrum, size)[: len(around) - len(part) + 1]
    energy = np.concatenate([[0.0], np.cumsum(np.square(around))])
    norms = np.sqrt(np.maximum(energy[len(part) :] - energy[: -len(part)], 1e-12))
    likeness = products / norms / float(np.linalg.norm(part))
    best = int(np.argmax(likeness))
    return (first + best - at) / SPEECH_RATE, float(likeness[best])


def _at_speech_rate(samples: Any, rate: int) -> Floats:
    import soxr

    made: Floats = soxr.resample(samples, rate, SPEECH_RATE, quality="LQ").astype(np.float64)
    return made
