"""Training ``baseline/listener`` on a mixed corpus: its train split, and nothing else.

Puts together what the layers below hold apart: scenes and libraries here, features and classifiers in
``models/listener``, which know nothing of scenes. What is learned from:

* ``location``: the ambience of every scene;
* ``sound``: the moment of every sound, under the sound that is heard; with a library also its takes of the split
  ``train``, as they are;
* ``grounding``: the moments of sounds against catch times, between utterances with no sound near;
* ``reaction``: gaps and levels around every sound.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earwitness.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from earwitness.models.listener.modelfile import ListenerModel
    from earwitness.scenes.sounds import SoundLibrary
    from earwitness.tasks.scene_items import MixedCorpus

    Vector = NDArray[np.float64]

TRAIN = "train"
OnDone = Callable[[str, int, int], None]
"""Called with what is read, how many are done, and of how many."""


@dataclass(frozen=True, slots=True)
class TrainedListener:
    """A model file that was written. ``examples`` by task; ``left_out`` are tasks with nothing to learn from."""

    path: Path
    sha256: str
    model: ListenerModel
    examples: dict[str, int]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Job:
    """A recording to read; for each moment the tasks with their labels. A take has no floor."""

    path: str
    sha256: str
    moments: tuple[tuple[str, float, str], ...]
    is_take: bool = False


def train_listener(
    mixed: MixedCorpus,
    out: Path,
    *,
    library: SoundLibrary | None = None,
    workers: int | None = None,
    on_done: OnDone | None = None,
) -> TrainedListener:
    """Train on a corpus and write one model file.

    Parameters
    ----------
    mixed: loaded with ``split="train"``.
    library: its takes of the split ``train`` are learned from too.

    Raises
    ------
    UsageError: scenes of another split, or nothing to learn from.
    DataError: a file has changed since it was mixed.
    AudioFileError: a recording cannot be read.
    """
    from earwitness.jobs import pool_map
    from earwitness.models.listener.classifier import train_clouds
    from earwitness.models.listener.model import scene_key
    from earwitness.models.listener.modelfile import ListenerModel, TrainedOn, model_bytes
    from earwitness.runs.card import software_versions

    others = sorted({s.scenario.split for s in mixed.scenes} - {TRAIN})
    if others:
        raise UsageError(
            "listener", f"scenes of the split {others[0]!r}", "the split 'train' alone",
            "A baseline that has heard what it is scored on tells nothing.",
        )  # fmt: skip
    jobs = [*_scene_jobs(mixed), *(_take_jobs(library) if library is not None else ())]
    by_task: dict[str, tuple[list[Vector], list[str]]] = {}
    found = pool_map(
        _read, jobs, workers=workers, chunk=4,
        on_done=None if on_done is None else lambda n: on_done("recordings", n, len(jobs)),
    )  # fmt: skip
    for job, vectors in zip(jobs, found, strict=True):
        for (task, _, label), vector in zip(job.moments, vectors, strict=True):
            rows, labels = by_task.setdefault(task, ([], []))
            rows.append(vector)
            labels.append(label)
    clouds, left_out = {}, []
    for task in ("location", "sound", "grounding", "reaction"):
        rows, labels = by_task.get(task, ([], []))
        if len(set(labels)) < 2:
            left_out.append(task)
            continue
        import numpy as np

        clouds[task] = train_clouds(np.array(rows), labels)
    if not clouds:
        raise UsageError(
            str(mixed.folder), "its train split has one place and no sounds to tell apart",
            "at least two classes of something",
        )  # fmt: skip
    known = {"corpus_seed": str(mixed.seed)}
    model = ListenerModel(
        clouds,
        TrainedOn(
            corpus=mixed.folder.resolve().name,
            seed=mixed.seed,
            split=TRAIN,
            sha256=mixed.sha256,
            scenes=tuple(scene_key({**known, "scene": scene.id}) for scene in mixed.scenes),
            recordings=tuple(sorted(job.sha256 for job in jobs)),
            library="" if library is None else library.hash,
            takes=sum(job.is_take for job in jobs),
        ),
        software_versions(),
    )
    data = model_bytes(model)
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f".{out.name}.part")
    part.write_bytes(data)
    part.replace(out)
    examples = {task: len(by_task[task][1]) for task in clouds}
    return TrainedListener(out, hashlib.sha256(data).hexdigest(), model, examples, tuple(left_out))


def _scene_jobs(mixed: MixedCorpus) -> list[_Job]:
    jobs = []
    for scene in mixed.scenes:
        manifest = scene.manifest
        moments = [("location", 0.0, manifest.location)]
        for event in manifest.events:
            if event.heard is not None:
                moments.append(("sound", event.salient_s, event.heard))
                moments.append(("grounding", event.salient_s, "yes"))
            moments.append(("reaction", event.salient_s, event.reaction))
        moments += [("grounding", moment, "no") for moment in manifest.catch_times_s]
        audio = mixed.audio(manifest)
        jobs.append(_Job(str(audio.path), audio.sha256, tuple(moments)))
    return jobs


def _take_jobs(library: SoundLibrary) -> list[_Job]:
    return [
        _Job(str(library.file(take)), take.sha256, (("sound", take.peak_time_s, sound),), True)
        for sound in library.ids("sound")
        for take in library.sounds(sound, TRAIN)
    ]


def _read(job: _Job) -> list[Vector]:
    """Vectors of a recording; module-level, so that worker processes can be sent it."""
    import numpy as np

    from earwitness.models.listener.features import RATE_HZ, SILENT_DB, levels_of
    from earwitness.models.listener.model import vector_of
    from earwitness.models.prosody.reading import Source, mono_16k

    assert RATE_HZ == 16_000  # what mono_16k gives
    levels = levels_of(mono_16k(Source(Path(job.path), job.sha256)))
    if job.is_take:
        levels = replace(levels, floor=np.full_like(levels.floor, SILENT_DB))
    return [vector_of(task, levels, moment) for task, moment, _ in job.moments]


def training_summary(trained: TrainedListener) -> dict[str, Any]:
    """What ``earwitness baseline train-listener --json`` prints."""
    on = trained.model.trained_on
    return {
        "file": str(trained.path),
        "sha256": trained.sha256,
        "corpus": on.corpus,
        "scenes": len(on.scenes),
        "takes": on.takes,
        "examples": trained.examples,
        "classes": {task: len(each.labels) for task, each in trained.model.clouds.items()},
        "left_out": list(trained.left_out),
    }
