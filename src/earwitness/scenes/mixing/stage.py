"""The ``mix`` stage: every spoken scene of a corpus as audio with its manifest.

======================================  ==================================================================
``mixes/<scene>.wav`` (or ``.flac``)    44.1 kHz, mono, 16 bits
``mixes/<scene>.json``                  its manifest, written last
``stems/<scene>/<bus>.wav``             on request, 32-bit float
``twins/<variant>/<scene>.wav, .json``  on request
``rooms/*.npy``                         the rooms in use
``mixes.yaml``                          preset, library, and what was refused
======================================  ==================================================================

The same inputs give the same bytes, whatever the number of workers, the order and kills in between. A scene whose
manifest names the same inputs is left as it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from earwitness.errors import DataError, EarwitnessError, UsageError
from earwitness.jobs import default_workers, pool_map
from earwitness.runs.folder import write_atomically
from earwitness.scenes.bank import Bank
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.corpus_card import write_card
from earwitness.scenes.dialogue_records import Dialogue
from earwitness.scenes.mixing.manifest import Manifest, read_manifest
from earwitness.scenes.mixing.planning import ScenePlan, needed, plan_scene
from earwitness.scenes.mixing.preset import MixPreset
from earwitness.scenes.mixing.twins import AUDIBLE, TwinRequest, swap_events
from earwitness.scenes.scenario import Scenario
from earwitness.scenes.sounds import SoundLibrary
from earwitness.scenes.voices import read_voices

if TYPE_CHECKING:
    from earwitness.audio.types import Samples

MIXES = "mixes"
TWINS = "twins"
STEMS = "stems"
ROOMS = "rooms"
CARD = "mixes.yaml"
Format = Literal["wav", "flac"]
FORMATS: tuple[Format, ...] = ("wav", "flac")
OnDone = Callable[[int, int], None]
"""Told how many scenes of how many are done."""

_CHUNK = 4


@dataclass(frozen=True, slots=True)
class MixJob:
    """One scene to render, with the versions that are missing."""

    plan: ScenePlan
    corpus: Path
    library: Path
    format: Format
    stems: bool
    variants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MixDone:
    """What became of a job. ``refused`` says why there is nothing."""

    scene: str
    seconds: float = 0.0
    files: int = 0
    peak_limited: bool = False
    refused: str = ""


@dataclass
class MixReport:
    """What became of a corpus. ``refused`` is scene -> reason; ``unspoken`` are scenes without voices."""

    scenes: int = 0
    made: int = 0
    found: int = 0
    seconds: float = 0.0
    peak_limited: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    unspoken: list[str] = field(default_factory=list)
    twins: dict[str, int] = field(default_factory=dict)
    complete: bool = True


def mix_file(corpus: Path, scene: str, variant: str = AUDIBLE, form: Format = "wav") -> Path:
    """Where the audio of a scene, or of one of its twins, is."""
    folder = corpus / MIXES if variant == AUDIBLE else corpus / TWINS / variant
    return folder / f"{scene}.{form}"


def manifest_file(corpus: Path, scene: str, variant: str = AUDIBLE) -> Path:
    """Where its manifest is."""
    folder = corpus / MIXES if variant == AUDIBLE else corpus / TWINS / variant
    return folder / f"{scene}.json"


def plan_corpus_mix(
    corpus: Corpus,
    bank: Bank,
    library: SoundLibrary,
    preset: MixPreset,
    twins: TwinRequest,
    *,
    only: Sequence[str] = (),
    limit: int | None = None,
    shard: tuple[int, int] = (1, 1),
) -> tuple[list[ScenePlan], list[str]]:
    """Plans of the scenes to mix, in the order of the corpus, and scenes that have no voices.

    Raises
    ------
    MissingTakesError: the library lacks something that is needed; all of it is named.
    UsageError: unknown scenes or events are named, or there is nothing to mix.
    DataError: voices and dialogues do not belong together.
    """
    scenes = _chosen(corpus.scenes(), only, limit, shard, corpus.folder)
    voices = read_voices(corpus.folder)
    unspoken = [scenario.id for scenario, _ in scenes if scenario.id not in voices]
    spoken = [(s, d) for s, d in scenes if s.id in voices]
    if not spoken:
        raise UsageError(
            str(corpus.folder), "none of the chosen scenes has voices", "at least one",
            f"Run: earwitness scenes speak {corpus.folder}",
        )  # fmt: skip
    twins.check({event.id for scenario, _ in spoken for event in scenario.events})
    library.require(needed(spoken))
    plans = [
        plan_scene(
            scenario, dialogue, voices[scenario.id], bank, library, preset, corpus.config.seed,
            swap_events(twins.variants(event.id for event in scenario.events)),
        )
        for scenario, dialogue in spoken
    ]  # fmt: skip
    return plans, unspoken


def _chosen(
    scenes: Sequence[tuple[Scenario, Dialogue]],
    only: Sequence[str],
    limit: int | None,
    shard: tuple[int, int],
    folder: Path,
) -> list[tuple[Scenario, Dialogue]]:
    known = {scenario.id for scenario, _ in scenes}
    if strange := [name for name in only if name not in known]:
        raise UsageError(
            "--only", f"{strange[0]!r} is no scene of {folder}", "ids of accepted dialogues"
        )
    chosen = [pair for pair in scenes if not only or pair[0].id in only][:limit]
    number, count = shard
    return chosen[number - 1 :: count]


def mix_corpus(
    corpus: Corpus,
    bank: Bank,
    library: SoundLibrary,
    preset: MixPreset,
    *,
    twins: TwinRequest = TwinRequest(),  # noqa: B008 - frozen
    form: Format = "wav",
    stems: bool = False,
    workers: int | None = None,
    only: Sequence[str] = (),
    limit: int | None = None,
    shard: tuple[int, int] = (1, 1),
    on_done: OnDone | None = None,
) -> MixReport:
    """Mix the scenes of a corpus. What is there already is not made again.

    Parameters
    ----------
    twins: versions to make beside the audible one.
    form: ``wav`` or ``flac``.
    stems: write every bus as well.
    only, limit, shard: only these scenes, only the first ones, only part i of n.
    on_done: told how many scenes of how many are done.

    Returns
    -------
    MixReport: scenes that cannot be mixed are listed with their reasons; the others are mixed all the same.

    Raises
    ------
    MissingTakesError, UsageError, DataError: as :func:`plan_corpus_mix`, before anything is mixed.

    Examples
    --------
    ``mix_corpus(Corpus("corpus"), load_bank(), load_library("sounds"), load_mix_preset("balanced"))``
    """
    whole = not only and limit is None and shard == (1, 1)
    with corpus.lock(shared=shard[1] > 1):
        plans, unspoken = plan_corpus_mix(
            corpus, bank, library, preset, twins, only=only, limit=limit, shard=shard
        )
        if shard == (1, 1):
            _sweep(corpus.folder)
        report = MixReport(scenes=len(plans), unspoken=unspoken, complete=whole)
        jobs = _jobs(plans, corpus.folder, library.folder, twins, form, stems, report)
        done = report.found
        if on_done:
            on_done(done, len(plans))
        for one in _rendered(jobs, workers or default_workers()):
            done += 1
            if one.refused:
                report.refused[one.scene] = one.refused
            else:
                report.made += 1
                report.seconds += one.seconds
                report.peak_limited += one.peak_limited
            if on_done:
                on_done(done, len(plans))
        report.refused = {p.id: report.refused[p.id] for p in plans if p.id in report.refused}
        if whole:
            write_atomically(corpus.path(CARD), _card(library, preset, form, report))
            write_card(corpus, bank)
    return report


def _sweep(corpus: Path) -> None:
    """Remove what a kill left half written; only while no other process works here."""
    for name in (MIXES, TWINS, STEMS, ROOMS):
        for part in (corpus / name).rglob(".earwitness-*.part"):
            part.unlink()


def _rendered(jobs: Sequence[MixJob], workers: int) -> Iterable[MixDone]:
    # Scenes on one ambience and room are neighbours, so that these are read and filtered once.
    ordered = sorted(
        jobs, key=lambda job: (job.plan.ambience.id, job.plan.room.number, job.plan.id)
    )
    if workers > 1 and len(ordered) > 1:
        chunk = max(1, min(_CHUNK, len(ordered) // workers))
        return pool_map(mix_scene, ordered, workers=workers, chunk=chunk)
    return (mix_scene(job) for job in ordered)


def _jobs(
    plans: Sequence[ScenePlan],
    corpus: Path,
    library: Path,
    twins: TwinRequest,
    form: Format,
    stems: bool,
    report: MixReport,
) -> list[MixJob]:
    jobs = []
    for plan in plans:
        variants = (AUDIBLE, *twins.variants(sound.event.id for sound in plan.sounds))
        for variant in variants[1:]:
            report.twins[variant] = report.twins.get(variant, 0) + 1
        missing = tuple(
            variant for variant in variants if not _is_there(corpus, plan, variant, form, stems)
        )
        if missing:
            jobs.append(MixJob(plan, corpus, library, form, stems, missing))
        else:
            report.found += 1
    return jobs


def inputs_of(plan: ScenePlan, variant: str) -> str:
    """Hash of everything a version of a scene depends on."""
    if variant.startswith("swap-"):
        return plan.swap_inputs(variant.removeprefix("swap-"))
    return plan.inputs


def _is_there(corpus: Path, plan: ScenePlan, variant: str, form: Format, stems: bool) -> bool:
    path = manifest_file(corpus, plan.id, variant)
    if not path.is_file():
        return False
    try:
        found = read_manifest(path)
        audio = corpus / found.audio.file
        whole = audio.stat().st_size == found.audio.bytes
    except (OSError, DataError):
        return False
    wanted_stems = stems and variant == AUDIBLE
    return (
        whole
        and found.inputs == inputs_of(plan, variant)
        and audio.suffix == f".{form}"
        and (not wanted_stems or _stems_there(corpus, found))
    )


def _stems_there(corpus: Path, manifest: Manifest) -> bool:
    folder = corpus / STEMS / manifest.scene
    return manifest.stems is not None and all((folder / n).is_file() for n in manifest.stems)


def mix_scene(job: MixJob) -> MixDone:
    """Render one scene in all versions that are missing; a function of the job and its files alone."""
    from earwitness.scenes.mixing.render import make_scene, mastered, stems_of
    from earwitness.scenes.mixing.twins import make_twin

    plan = job.plan
    try:
        scene, samples = mastered(make_scene(plan, job.corpus, job.library))
        twins = [v for v in job.variants if v != AUDIBLE]
        data = encode(samples, scene.rate, job.format)
        audio = _audio_record(job, AUDIBLE, data, len(samples), scene.rate)
        if AUDIBLE in job.variants:
            hashes = _write_stems(job, stems_of(scene), scene.rate) if job.stems else None
            _put(job, AUDIBLE, data, _describe(scene, audio, plan, stems=hashes))
            _remove_stale(job, audio.sha256)
        files = 1
        del data, samples
        for variant in twins:
            twin = make_twin(scene, variant)
            data = encode(twin.samples, scene.rate, job.format)
            record = _audio_record(job, variant, data, len(twin.samples), scene.rate)
            manifest = _describe_twin(scene, record, plan, twin, audio.sha256)
            _put(job, variant, data, manifest)
            files += 1
    except EarwitnessError as error:
        for variant in job.variants:
            _remove(job, variant)
        return MixDone(plan.id, refused=str(error))
    return MixDone(plan.id, audio.duration_s, files, scene.master.peak_limited)


def _audio_record(job: MixJob, variant: str, data: bytes, frames: int, rate: int) -> Any:
    from earwitness.scenes.mixing.describing import describe_audio

    path = mix_file(job.corpus, job.plan.id, variant, job.format)
    return describe_audio(path.relative_to(job.corpus).as_posix(), data, frames, rate)


def _describe(scene: Any, audio: Any, plan: ScenePlan, **more: Any) -> Manifest:
    from earwitness.scenes.mixing.describing import describe

    return describe(scene, audio, inputs=inputs_of(plan, AUDIBLE), variant=AUDIBLE, **more)


def _describe_twin(
    scene: Any, audio: Any, plan: ScenePlan, twin: Any, audible_sha256: str
) -> Manifest:
    from earwitness.scenes.mixing.describing import describe

    return describe(
        scene,
        audio,
        inputs=inputs_of(plan, twin.variant),
        variant=twin.variant,
        samples=twin.samples,
        sounds=twin.sounds,
        muted=twin.muted,
        audible_sha256=audible_sha256,
        spans=twin.spans,
    )


def encode(samples: Samples, rate: int, form: Format) -> bytes:
    """A file's bytes at 16 bits: rounded, without dither."""
    from earwitness.audio.convert import encode_audio
    from earwitness.audio.types import Audio

    return encode_audio(Audio(samples, rate), form)


def _put(job: MixJob, variant: str, data: bytes, manifest: Manifest) -> None:
    """Audio, then manifest; an older manifest goes first, so that it never stands beside other audio."""
    from earwitness.audio.files import atomic_write_bytes, atomic_write_text
    from earwitness.scenes.mixing.manifest import manifest_text

    _remove(job, variant)
    atomic_write_bytes(mix_file(job.corpus, job.plan.id, variant, job.format), data)
    atomic_write_text(manifest_file(job.corpus, job.plan.id, variant), manifest_text(manifest))


def _remove(job: MixJob, variant: str) -> None:
    """Nothing of an older version stays."""
    files = [manifest_file(job.corpus, job.plan.id, variant)]
    files += [mix_file(job.corpus, job.plan.id, variant, form) for form in FORMATS]
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            file.unlink()


def _remove_stale(job: MixJob, sha256: str) -> None:
    """Twins of an older mix, and its stems, go: beside the new one they would be of another scene."""
    folders = (job.corpus / TWINS).iterdir() if (job.corpus / TWINS).is_dir() else ()
    for variant in sorted(folder.name for folder in folders):
        path = manifest_file(job.corpus, job.plan.id, variant)
        if variant in job.variants or not path.is_file():
            continue
        try:
            stale = read_manifest(path).audible_sha256 != sha256
        except DataError:
            stale = True
        if stale:
            _remove(job, variant)
    if not job.stems:
        for file in (job.corpus / STEMS / job.plan.id).glob("*.wav"):
            file.unlink()


def _write_stems(job: MixJob, stems: Mapping[str, Samples], rate: int) -> dict[str, str]:
    import hashlib

    from earwitness.audio.convert import encode_audio
    from earwitness.audio.files import atomic_write_bytes
    from earwitness.audio.types import Audio

    hashes = {}
    for name, samples in stems.items():
        data = encode_audio(Audio(samples, rate), "wav", "FLOAT")
        atomic_write_bytes(job.corpus / STEMS / job.plan.id / f"{name}.wav", data)
        hashes[f"{name}.wav"] = hashlib.sha256(data).hexdigest()
    return hashes


def _card(library: SoundLibrary, preset: MixPreset, form: Format, report: MixReport) -> str:
    import yaml

    card = {
        "format": 1,
        "preset": {
            "id": preset.id,
            "version": preset.version,
            "hash": preset.hash,
            "same_for_all_reactions": preset.same_for_all,
            "over_ambience_db": preset.events.over_ambience_db,
            "floors": dict(preset.floors),
        },
        "library": {
            "name": library.card.name,
            "version": library.card.version,
            "hash": library.hash,
            "takes_shared_by_splits": library.shared,
            "licences": dict(library.card.licences),
        },
        "audio": {"format": form, "rate_hz": preset.rate_hz, "channels": 1, "bits": 16},
        "scenes": report.scenes - len(report.refused),
        "refused": dict(report.refused),
        "without_voices": list(report.unspoken),
        "twins": dict(sorted(report.twins.items())),
    }
    return yaml.safe_dump(card, sort_keys=False, allow_unicode=True, width=100)


def plan_one(
    corpus: Corpus,
    bank: Bank,
    library: SoundLibrary,
    preset: MixPreset,
    scene: str,
) -> ScenePlan:
    """The plan of one scene by its id."""
    plans, unspoken = plan_corpus_mix(corpus, bank, library, preset, TwinRequest(), only=(scene,))
    del unspoken
    return plans[0]


def manifests(corpus: Corpus, variant: str = AUDIBLE) -> Iterator[Manifest]:
    """Manifests of the corpus's mixed scenes (or of twins), in its order; those that are not mixed are passed over.

    Raises
    ------
    DataError: one is broken.
    """
    for scenario, _ in corpus.scenes():
        path = manifest_file(corpus.folder, scenario.id, variant)
        if path.is_file():
            yield read_manifest(path)


__all__ = [
    "MixDone",
    "MixJob",
    "MixReport",
    "inputs_of",
    "manifest_file",
    "manifests",
    "mix_corpus",
    "mix_file",
    "mix_scene",
    "plan_corpus_mix",
    "plan_one",
]
