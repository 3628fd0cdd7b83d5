"""The parts of a :class:`earwitness.tasks.records.Scores`, each from a tally and its resamples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from earwitness.errors import DataError
from earwitness.stats import calibration, confusion
from earwitness.stats.intervals import Metric
from earwitness.stats.streams import stream
from earwitness.tasks.records import (
    Calibration,
    ClassScores,
    Decision,
    Estimate,
    LabelBias,
    ValenceScores,
)
from earwitness.tasks.tally import (
    NO_LABEL_NAME,
    Resampled,
    Tally,
    checked_priors,
    proportion,
    stratified_recall,
    units_per_label,
    wilson_estimate,
)
from earwitness.tasks.valence import DIRECTIONS, NO_VALENCE


def per_class(data: Tally, drawn: Resampled) -> tuple[ClassScores, ...]:
    counts = drawn.counts.astype(np.int64)
    k = len(data.labels)
    correct = np.diagonal(counts)
    support, predicted = counts.sum(axis=1), counts[:, :k].sum(axis=0)
    recalls = _proportions(data, drawn, confusion.recall, correct, support, data.gold)
    precisions = _proportions(data, drawn, confusion.precision, correct, predicted, data.predicted)
    f1s = drawn.estimates(confusion.f1)
    return tuple(
        ClassScores(
            label,
            int(support[i]),
            int(predicted[i]),
            int(correct[i]),
            precisions[i],
            recalls[i],
            f1s[i],
        )
        for i, label in enumerate(data.labels)
    )


def _proportions(
    data: Tally,
    drawn: Resampled,
    metric: Metric,
    top: NDArray[np.int64],
    bottom: NDArray[np.int64],
    codes: NDArray[np.int64],
) -> list[Estimate]:
    """Recall or precision of every label, with the counts behind it."""
    if data.independent or data.n_clusters == 1:
        method = "wilson" if data.independent else f"wilson, items of one {data.unit}"
        return [wilson_estimate(int(t), int(b), method) for t, b in zip(top, bottom, strict=True)]
    found = drawn.estimates(metric, units_per_label(data, codes))
    return [
        replace(estimate, numerator=int(t), denominator=int(b))
        for estimate, t, b in zip(found, top, bottom, strict=True)
    ]


def label_bias(data: Tally, label: str | None, right: int) -> LabelBias | None:
    if label is None or label not in data.labels:
        return None
    given = data.predicted == data.labels.index(label)
    return LabelBias(
        label=label,
        predicted=int(given.sum()),
        outputs=int((data.predicted != confusion.NO_LABEL).sum()),
        wrong=int((given & ~data.right).sum()),
        errors=data.n - right,
    )


def valence_scores(
    data: Tally, mapping: Mapping[str, str] | None, resamples: int, seed: int
) -> ValenceScores | None:
    """Accuracy of the direction where the gold label has one; shares of each direction in all outputs."""
    if mapping is None:
        return None
    unknown = set(mapping.values()) - set(DIRECTIONS)
    if unknown:
        raise DataError(
            "valence", f"direction {sorted(unknown)[0]!r}", "one of " + ", ".join(DIRECTIONS)
        )
    # Codes: 0.. directions, then a label without valence, then no label (code -1 picks the last).
    codes = np.array(
        [
            DIRECTIONS.index(mapping[label]) if label in mapping else len(DIRECTIONS)
            for label in data.labels
        ]
        + [len(DIRECTIONS) + 1]
    )
    gold, said = codes[data.gold], codes[data.predicted]
    accuracy = proportion(
        data, gold == said, gold < len(DIRECTIONS), resamples, stream(seed, "valence")
    )
    outputs = np.bincount(said, minlength=len(DIRECTIONS) + 2)
    shares = dict(
        zip((*DIRECTIONS, NO_VALENCE, NO_LABEL_NAME), (outputs / data.n).tolist(), strict=True)
    )
    most = outputs[: len(DIRECTIONS)].max()
    leaders = [name for name, n in zip(DIRECTIONS, outputs, strict=False) if n == most and most > 0]
    leaning = leaders[0] if len(leaders) == 1 else ("tied" if leaders else NO_VALENCE)
    return ValenceScores(accuracy, shares, leaning)


def by_group(
    data: Tally, decisions: Sequence[Decision], resamples: int, seed: int
) -> dict[str, dict[str, Estimate]]:
    found: dict[str, dict[str, Estimate]] = {}
    for key in sorted({key for decision in decisions for key in decision.groups}):
        values = np.array([decision.groups.get(key, "") for decision in decisions])
        found[key] = {
            str(value): proportion(
                data, data.right, values == value, resamples, stream(seed, "group", key, str(value))
            )
            for value in np.unique(values)
            if value
        }
    return found


def calibration_of(decisions: Iterable[Decision]) -> Calibration | None:
    """Over answers whose mapped scores give a confidence; None where a system returns no such scores."""
    listed = list(decisions)
    pairs = [
        (calibration.confidence(d.outcome.scores, d.outcome.label), d.outcome.label == d.gold)
        for d in listed
        if d.outcome.label is not None and d.outcome.scores
    ]
    usable = [(conf, right) for conf, right in pairs if conf == conf]
    if not usable:
        return None
    conf = np.array([each[0] for each in usable])
    right = np.array([each[1] for each in usable])
    bins = calibration.reliability_bins(conf, right)
    return Calibration(
        ece=calibration.expected_calibration_error(conf, right),
        bins=tuple((each.mean_confidence, each.accuracy, each.count) for each in bins),
        risk_coverage=calibration.risk_coverage(conf, right, total=len(listed)),
        n=len(usable),
        aurc=calibration.area_under_risk_coverage(conf, right),
    )


def prior_weighted(
    name: str,
    data: Tally,
    drawn: Resampled,
    priors: Mapping[str, float],
    resamples: int,
    seed: int,
) -> Estimate:
    support = np.bincount(data.gold, minlength=len(data.labels))
    weights = checked_priors(name, priors, data.labels, support)
    if data.independent or data.n_clusters == 1:
        return stratified_recall(data, weights, resamples, stream(seed, "priors"))
    return drawn.estimate(lambda counts: confusion.weighted_recall(counts, weights))
