"""Training and judging the prosody baseline on clip sets.

Puts together what the layers below hold apart: clip sets here, features and classifiers in
``models/prosody``, which know nothing of sets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earwitness.clips.corpus import ClipSet, clip_path, require_trainable
from earwitness.errors import DataError, UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from earwitness.models.prosody.classifier import EmotionClassifier
    from earwitness.models.prosody.evaluation import Gain, Predictions, SystemResult
    from earwitness.models.prosody.modelfile import Example, ProsodyModel, SetSource
    from earwitness.models.prosody.reading import Source

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many are done, and of how many."""

PROSODY = "prosody"
REFERENCES = ("mfcc-svm",)
MIN_SPEAKERS = 3
"""Fewest speakers that can be divided: one held out, and two so that strengths are chosen across speakers."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A model file that was written. ``repeated`` counts clips left out as copies of others."""

    path: Path
    sha256: str
    model: ProsodyModel
    repeated: int


@dataclass(frozen=True, slots=True)
class Answered:
    """A clip with its truth and what each system answered, in the order of ``Evaluation.systems``."""

    id: str
    speaker: str
    gold: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Cross-validated results on clip sets.

    ``held_out`` are the speakers of each fold; ``shuffled`` marks the control with permuted labels.
    """

    systems: tuple[SystemResult, ...]
    gains: tuple[Gain, ...]
    n_clips: int
    n_speakers: int
    held_out: tuple[tuple[str, ...], ...]
    seed: int
    shuffled: bool
    answered: tuple[Answered, ...]


@dataclass(frozen=True, slots=True)
class _Clips:
    """All clips of the sets, their features aside. ``repeated`` were left out as copies."""

    examples: tuple[Example, ...]
    sources: tuple[Source, ...]
    repeated: int

    @property
    def speakers(self) -> tuple[str, ...]:
        return tuple(example.speaker for example in self.examples)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(example.label for example in self.examples)


@dataclass(frozen=True, slots=True)
class _Task:
    """One classifier to train, as sent to a worker process: without the clips of ``held_out``."""

    vectors: NDArray[np.float32]
    labels: tuple[str, ...]
    speakers: tuple[str, ...]
    held_out: frozenset[str]
    seed: int

    @property
    def rows(self) -> list[int]:
        return [i for i, speaker in enumerate(self.speakers) if speaker not in self.held_out]


def train_prosody(
    clip_sets: Sequence[ClipSet],
    out: Path,
    *,
    folds: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Trained:
    """Train on whole sets and write one model file.

    Parameters
    ----------
    clip_sets: one or more; a recording that is in two of them is used once.
    out: the file, replaced atomically.
    folds: also train this many classifiers that leave out one fold of speakers each, so that the very same
        clips can be scored by classifiers that never heard their speakers.
    workers: processes; the result does not depend on it.

    Raises
    ------
    LicenceError: a set is for evaluation only.
    DataError: clips without speakers, too few speakers or labels, one recording under two labels or two
        speakers.
    MissingExtraError: scikit-learn is not installed.
    """
    from earwitness.audio.io import atomic_write_bytes
    from earwitness.models.prosody.modelfile import ALL, Fitted, ProsodyModel, model_bytes
    from earwitness.models.prosody.reading import features_of

    clips = _collect(clip_sets)
    held_out = _held_out(clips, folds, seed) if folds is not None else ()
    divisions: list[tuple[str, frozenset[str]]] = [
        (f"fold{k:02d}", speakers) for k, speakers in enumerate(held_out)
    ]
    divisions.append((ALL, frozenset()))
    vectors = _features(features_of, clips, "features", workers, on_progress)
    tasks = [_Task(vectors, clips.labels, clips.speakers, out_, seed) for _, out_ in divisions]
    classifiers = _each(_train, tasks, "classifiers", workers, on_progress)
    model = ProsodyModel(
        examples=clips.examples,
        vectors=vectors,
        fitted=tuple(
            Fitted(name, speakers, classifier)
            for (name, speakers), classifier in zip(divisions, classifiers, strict=True)
        ),
        sources=tuple(_source(clip_set) for clip_set in clip_sets),
        seed=seed,
        n_folds=len(held_out),
        versions=_versions(),
        synthetic=any(clip_set.card.synthetic for clip_set in clip_sets),
    )
    data = model_bytes(model)
    out.parent.mkdir(parents=True, exist_ok=True)
    atomic_write_bytes(out, data)
    return Trained(out, hashlib.sha256(data).hexdigest(), model, clips.repeated)


def evaluate_prosody(
    clip_sets: Sequence[ClipSet],
    *,
    folds: int = 8,
    seed: int = 0,
    against: Sequence[str] = REFERENCES,
    shuffle_labels: bool = False,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Evaluation:
    """Cross-validate by speaker, and compare with reference systems on the same division.

    Parameters
    ----------
    against: names of :data:`REFERENCES`.
    shuffle_labels: permute the labels among each speaker's clips first; every score must then be at
        chance, or something leaks.

    Raises
    ------
    As :func:`train_prosody`; UsageError for an unknown reference.
    """
    import numpy as np

    from earwitness.models.prosody.evaluation import gain, joined, predict_mfcc_svm, result
    from earwitness.models.prosody.reading import features_of, mfcc_features_of

    for name in against:
        if name not in REFERENCES:
            raise UsageError("--against", repr(name), f"one of {', '.join(REFERENCES)}")
    clips = _collect(clip_sets)
    speakers = clips.speakers
    labels = _shuffled(clips.labels, speakers, seed) if shuffle_labels else clips.labels
    held_out = _held_out(clips, folds, seed)
    fold_of = [next(k for k, group in enumerate(held_out) if s in group) for s in speakers]
    vectors = _features(features_of, clips, "features", workers, on_progress)
    tasks = [_Task(vectors, labels, speakers, group, seed) for group in held_out]
    answers: dict[str, Predictions] = {
        PROSODY: joined(_each(_predict, tasks, "folds", workers, on_progress), fold_of)
    }
    for name in against:
        statistics = _features(mfcc_features_of, clips, name, workers, on_progress)
        masks = [np.asarray([fold == k for fold in fold_of]) for k in range(folds)]
        answers[name] = joined(
            [predict_mfcc_svm(statistics, labels, mask) for mask in masks], fold_of
        )
    return Evaluation(
        systems=tuple(
            result(name, labels, given, speakers, seed=seed) for name, given in answers.items()
        ),
        gains=tuple(
            gain((PROSODY, name), labels, (answers[PROSODY], answers[name]), speakers, seed=seed)
            for name in against
        ),
        n_clips=len(labels),
        n_speakers=len(set(speakers)),
        held_out=tuple(tuple(sorted(group)) for group in held_out),
        seed=seed,
        shuffled=shuffle_labels,
        answered=tuple(
            Answered(example.id, example.speaker, label, given)
            for example, label, given in zip(
                clips.examples,
                labels,
                zip(*(each.labels for each in answers.values()), strict=True),
                strict=True,
            )
        ),
    )


def _collect(clip_sets: Sequence[ClipSet]) -> _Clips:
    """Clips of all sets, each recording once; everything that forbids training on them is raised here."""
    from earwitness.models.prosody.classifier import require_sklearn
    from earwitness.models.prosody.modelfile import Example
    from earwitness.models.prosody.reading import Source

    require_sklearn()
    if not clip_sets:
        raise UsageError("--clips", "no clip set", "at least one")
    for clip_set in clip_sets:
        require_trainable(clip_set)
    first: dict[str, Example] = {}
    sources = []
    repeated = 0
    for clip_set in clip_sets:
        nameless = [clip.id for clip in clip_set.clips if not clip.speaker]
        if nameless:
            raise DataError(
                str(clip_set.folder),
                f"{len(nameless)} of {len(clip_set.clips)} clips have no speaker, such as {nameless[0]}",
                "the speaker of every clip, so that no voice is trained on and scored",
                "Import the set again with its speakers.",
            )
        for clip in clip_set.clips:
            example = Example(clip.id, clip.sha256, clip.speaker, clip.emotion, clip_set.card.name)
            twin = first.setdefault(clip.sha256, example)
            if twin is example:
                sources.append(Source(clip_path(clip_set, clip), clip.sha256))
            elif (twin.speaker, twin.label) == (example.speaker, example.label):
                repeated += 1
            else:
                raise DataError(
                    str(clip_path(clip_set, clip)),
                    f"the same recording as {twin.id} of {twin.clip_set}, but "
                    f"{example.label} by {example.speaker} instead of {twin.label} by {twin.speaker}",
                    "one label and one speaker a recording",
                    "Correct or remove one of the two.",
                )
    return _Clips(tuple(first.values()), tuple(sources), repeated)


def _held_out(clips: _Clips, folds: int, seed: int) -> tuple[frozenset[str], ...]:
    """Speakers of each fold; what is left must still be two speakers to choose strengths on."""
    from earwitness.models.prosody.folds import speaker_folds

    people = len(set(clips.speakers))
    if people < MIN_SPEAKERS:
        raise DataError(
            "folds",
            f"{people} speakers",
            f"at least {MIN_SPEAKERS}: one held out, two others to train and choose on",
        )
    fold_of = speaker_folds(clips.speakers, folds, seed)
    groups = tuple(
        frozenset(s for s, f in zip(clips.speakers, fold_of, strict=True) if f == k)
        for k in range(folds)
    )
    if people - max(len(group) for group in groups) < 2:
        raise DataError(
            "--folds",
            f"{folds} folds leave a single speaker of {people} to train on",
            "two or more speakers outside every fold",
            f"Use --folds {people}.",
        )
    return groups


def _train(task: _Task) -> EmotionClassifier:
    from earwitness.models.prosody.classifier import train

    rows = task.rows
    classifier = train(
        task.vectors[rows],
        [task.labels[i] for i in rows],
        [task.speakers[i] for i in rows],
        seed=task.seed,
    )
    # The model file keeps one matrix of all clips: support vectors are numbered in that one.
    renumbered = [rows[i] for i in classifier.support_rows]
    return replace(classifier, support_rows=_indices(renumbered))


def _predict(task: _Task) -> Predictions:
    import numpy as np

    from earwitness.models.prosody.evaluation import predict_prosody

    held_out = np.asarray([speaker in task.held_out for speaker in task.speakers])
    return predict_prosody(task.vectors, task.labels, task.speakers, held_out, seed=task.seed)


def _indices(values: Sequence[int]) -> NDArray[np.intp]:
    import numpy as np

    return np.asarray(values, dtype=np.intp)


def _features(
    function: Callable[[Source], NDArray[np.float32]],
    clips: _Clips,
    name: str,
    workers: int | None,
    on_progress: Progress | None,
) -> NDArray[np.float32]:
    """One row of features a clip."""
    import numpy as np

    return np.stack(_each(function, clips.sources, name, workers, on_progress, chunk=8))


def _each(
    function: Callable[[Any], Any],
    tasks: Sequence[Any],
    name: str,
    workers: int | None,
    on_progress: Progress | None,
    chunk: int = 1,
) -> list[Any]:
    from earwitness.jobs import pool_map

    def done(count: int) -> None:
        if on_progress:
            on_progress(name, count, len(tasks))

    return list(pool_map(function, tasks, workers=workers, chunk=chunk, on_done=done))


def _shuffled(labels: Sequence[str], speakers: Sequence[str], seed: int) -> tuple[str, ...]:
    """Labels permuted within each speaker, so that speakers keep their counts."""
    from earwitness.stats.streams import stream

    mixed = list(labels)
    for speaker in sorted(set(speakers)):
        places = [i for i, each in enumerate(speakers) if each == speaker]
        order = stream(seed, "baseline", "shuffle", speaker).permutation(len(places))
        for place, other in zip(places, order, strict=True):
            mixed[place] = labels[places[int(other)]]
    return tuple(mixed)


def _source(clip_set: ClipSet) -> SetSource:
    from earwitness.models.prosody.modelfile import SetSource

    card = clip_set.card
    return SetSource(
        name=card.name,
        version=card.version,
        sha256=clip_set.sha256,
        licence=card.licence,
        use=card.use,
        n_clips=len(clip_set.clips),
    )


def _versions() -> dict[str, str]:
    import numpy
    import sklearn

    from earwitness import __version__

    return {
        "earwitness": __version__,
        "numpy": numpy.__version__,
        "scikit-learn": sklearn.__version__,
    }
