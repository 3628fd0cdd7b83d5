"""Cross-validation by speaker, and the paired gain of one system over another.

Everything is counted per speaker, because speakers are what an interval must resample: clips of one voice
are right or wrong together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earwitness.models.prosody.classifier import Grid, train
from earwitness.models.prosody.mfcc import mfcc_svm_predictions
from earwitness.stats.calibration import expected_calibration_error
from earwitness.stats.confusion import NO_LABEL, accuracy, by_cluster, macro_recall
from earwitness.stats.intervals import (
    RESAMPLES,
    cluster_bootstrap,
    percentile_interval,
    resample_sums,
)
from earwitness.stats.streams import stream
from earwitness.stats.tests import mcnemar_exact, sign_flip


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its 95 % interval, speakers drawn as wholes."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SpeakerRow:
    """How many of a speaker's clips a system had right."""

    speaker: str
    n: int
    right: int


@dataclass(frozen=True, slots=True)
class SystemResult:
    """One system over all clips, each judged by a classifier that never heard its speaker.

    ``confusion[i][j]`` counts clips of ``labels[i]`` called ``labels[j]``, ``support`` all of each label. ``calibration_error`` (expected
    calibration error) and ``mean_confidence`` are given where the system returns probabilities.
    """

    name: str
    n: int
    right: int
    labels: tuple[str, ...]
    accuracy: Figure
    macro_recall: Figure
    by_speaker: tuple[SpeakerRow, ...]
    confusion: tuple[tuple[int, ...], ...]
    support: tuple[int, ...]
    calibration_error: float | None = None
    mean_confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Gain:
    """Accuracy of ``a`` minus accuracy of ``b`` on the same clips, paired by speaker."""

    a: str
    b: str
    difference: Figure
    p_sign_flip: float
    p_mcnemar: float
    only_a_right: int
    only_b_right: int


@dataclass(frozen=True, slots=True)
class Predictions:
    """Held-out answers, one a clip; ``confidence`` is the probability given to each."""

    labels: tuple[str, ...]
    confidence: tuple[float, ...] | None = None


def predict_prosody(
    vectors: NDArray[np.floating],
    labels: Sequence[str],
    speakers: Sequence[str],
    held_out: NDArray[np.bool_],
    *,
    seed: int = 0,
    grid: Grid | None = None,
) -> Predictions:
    """Train on the clips that are not held out and answer those that are."""
    kept = [int(i) for i in np.flatnonzero(~held_out)]
    classifier = train(
        vectors[kept], [labels[i] for i in kept], [speakers[i] for i in kept], seed=seed, grid=grid
    )
    probabilities = classifier.probabilities(vectors[held_out])
    best = probabilities.argmax(axis=1)
    return Predictions(
        tuple(classifier.labels[i] for i in best),
        tuple(float(row[i]) for row, i in zip(probabilities, best, strict=True)),
    )


def predict_mfcc_svm(
    vectors: NDArray[np.floating], labels: Sequence[str], held_out: NDArray[np.bool_]
) -> Predictions:
    """The reference system on the same division."""
    return Predictions(tuple(mfcc_svm_predictions(vectors, labels, held_out)))


def joined(parts: Sequence[Predictions], folds: Sequence[int]) -> Predictions:
    """Answers of all folds in the order of the clips; part ``k`` holds those of fold ``k`` in order."""
    answers: list[str] = [""] * len(folds)
    confidence = [0.0] * len(folds)
    for fold, part in enumerate(parts):
        for position, i in enumerate(np.flatnonzero(np.asarray(folds) == fold)):
            answers[i] = part.labels[position]
            if part.confidence is not None:
                confidence[i] = part.confidence[position]
    whole = all(part.confidence is not None for part in parts)
    return Predictions(tuple(answers), tuple(confidence) if whole else None)


def result(
    name: str,
    gold: Sequence[str],
    predictions: Predictions,
    speakers: Sequence[str],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> SystemResult:
    """Figures of one system from its held-out answers."""
    names = tuple(sorted(set(gold)))
    people = sorted(set(speakers))
    truth = np.asarray([names.index(label) for label in gold])
    # An answer outside the gold labels counts in the last column, as no label of this task.
    given = np.asarray(
        [names.index(label) if label in names else NO_LABEL for label in predictions.labels]
    )
    cluster = np.asarray([people.index(speaker) for speaker in speakers])
    counts = by_cluster(truth, given, cluster, len(names), len(people))
    right = truth == given
    found = [
        cluster_bootstrap(counts, metric, stream(seed, "baseline", name), resamples=resamples)
        for metric in (accuracy, macro_recall)
    ]
    figures = [Figure(float(f.value), float(f.low), float(f.high)) for f in found]
    confidence = predictions.confidence
    return SystemResult(
        name=name,
        n=len(gold),
        right=int(right.sum()),
        labels=names,
        accuracy=figures[0],
        macro_recall=figures[1],
        by_speaker=tuple(
            SpeakerRow(person, int((cluster == i).sum()), int(right[cluster == i].sum()))
            for i, person in enumerate(people)
        ),
        confusion=tuple(tuple(int(x) for x in row[: len(names)]) for row in counts.sum(axis=0)),
        support=tuple(int(x) for x in counts.sum(axis=(0, 2))),
        calibration_error=None
        if confidence is None
        else expected_calibration_error(np.asarray(confidence), right.astype(float)),
        mean_confidence=None if confidence is None else float(np.mean(confidence)),
    )


def gain(
    names: tuple[str, str],
    gold: Sequence[str],
    predictions: tuple[Predictions, Predictions],
    speakers: Sequence[str],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Gain:
    """The paired difference of two systems, with a bootstrap over speakers and a sign-flip over speakers."""
    truth = np.asarray(gold)
    a, b = (np.asarray(each.labels) == truth for each in predictions)
    people, cluster = np.unique(np.asarray(speakers), return_inverse=True)
    sizes = np.bincount(cluster)
    differences = np.bincount(cluster, weights=a.astype(float) - b.astype(float)).round()
    rows = np.stack([differences, sizes], axis=1).astype(np.int64)
    sums = resample_sums(rows, resamples, stream(seed, "baseline", "gain"))
    value = np.asarray(float(differences.sum()) / len(truth))
    low, high, _ = percentile_interval(sums[:, 0] / sums[:, 1], value, len(people))
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    return Gain(
        a=names[0],
        b=names[1],
        difference=Figure(float(value), float(low), float(high)),
        p_sign_flip=sign_flip(differences, stream(seed, "baseline", "sign-flip")).p,
        p_mcnemar=mcnemar_exact(only_a, only_b),
        only_a_right=only_a,
        only_b_right=only_b,
    )
