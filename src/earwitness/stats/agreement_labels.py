"""People beside the labels of a data set, and people beside each other: kappa, accuracy, confusion.

Conventions
-----------
* ``reference`` are the data set's labels, which nobody saw; ratings that are missing count nowhere.
* *Kappa with the labels* is Cohen's kappa of one person and the labels, on what that person rated. The figure for all
  people is its mean over people. The kappa of the majority is given beside it: it is another question.
* Balanced accuracy is the mean recall over labels of all ratings taken together.
* Clusters are drawn as wholes; see :mod:`earwitness.stats.agreement`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from earwitness.stats.agreement import (
    MISSING,
    Codes,
    Coefficient,
    FloatArray,
    Ratings,
    check_reference,
    cluster_codes,
    cohen_of,
    cohen_rows,
    mean_of,
    with_interval,
)
from earwitness.stats.confusion import accuracy, balanced_accuracy, ratio, recall
from earwitness.stats.intervals import RESAMPLES
from earwitness.stats.streams import stream


@dataclass(frozen=True, slots=True)
class RaterWithLabels:
    """One person beside the labels, on the ``n`` items that person rated."""

    rater: str
    n: int
    percent: Coefficient
    cohen: Coefficient
    balanced: Coefficient


@dataclass(frozen=True, slots=True)
class AgreementWithLabels:
    """All people beside the labels.

    Attributes
    ----------
    raters: each person.
    mean_cohen: mean over people of Cohen's kappa with the labels.
    percent, balanced: share of all ratings that are right, and its mean over labels.
    per_class: recall of each label over all ratings.
    confusion: (labels, labels) counts of ratings, rows labels of the set, columns what people said.
    majority_percent, majority_cohen: of the label most people gave; items with a tie count as not right in the share
        and nowhere in kappa.
    ties: items whose majority is tied.
    """

    raters: tuple[RaterWithLabels, ...]
    mean_cohen: Coefficient
    percent: Coefficient
    balanced: Coefficient
    per_class: tuple[tuple[str, Coefficient], ...]
    confusion: Codes
    majority_percent: Coefficient
    majority_cohen: Coefficient
    ties: int


def agreement_with_labels(
    ratings: Ratings,
    reference: Codes,
    *,
    clusters: Sequence[str] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> AgreementWithLabels:
    """Every figure of people beside the labels, with its interval.

    Parameters
    ----------
    reference: (items,) codes of the labels, in the order of ``ratings.items``.

    Raises
    ------
    DataError: there is not one label for every item.
    """
    check_reference(ratings, reference)
    codes, width = ratings.codes, len(ratings.labels)
    group = cluster_codes(ratings, clusters)

    def rows_of(given: Codes) -> FloatArray:
        return cohen_rows(np.stack([reference, given], axis=1), width)

    def figure(rows: FloatArray, of: object, group: Codes, *names: str) -> Coefficient:
        return with_interval(rows, of, group, resamples, stream(seed, "labels", *names))

    def table(sums: FloatArray) -> FloatArray:
        return sums.reshape(*sums.shape[:-1], width, width)

    def share(sums: FloatArray) -> FloatArray:
        return accuracy(table(sums))

    def balanced(sums: FloatArray) -> FloatArray:
        return balanced_accuracy(table(sums))

    def recall_of(label: int) -> object:
        return lambda sums: recall(table(sums))[..., label]

    each = [rows_of(codes[:, r]) for r in range(codes.shape[1])]
    raters = []
    for rater, name in enumerate(ratings.raters):
        own = np.where(codes[:, rater] != MISSING, group, MISSING)
        raters.append(
            RaterWithLabels(
                name,
                int((codes[:, rater] != MISSING).sum()),
                figure(each[rater], share, own, "rater", name),
                figure(each[rater], cohen_of, own, "rater", name),
                figure(each[rater], balanced, own, "rater", name),
            )
        )
    together = np.sum(each, axis=0)
    vote = majority(codes, width)
    voted = np.column_stack([vote == reference, np.ones(len(vote))]).astype(np.float64)
    return AgreementWithLabels(
        raters=tuple(raters),
        mean_cohen=figure(np.hstack(each), mean_of(cohen_of, len(each)), group, "mean"),
        percent=figure(together, share, group, "percent"),
        balanced=figure(together, balanced, group, "balanced"),
        per_class=tuple(
            (label, figure(together, recall_of(k), group, "class", label))
            for k, label in enumerate(ratings.labels)
        ),
        confusion=together.sum(axis=0).reshape(width, width).astype(np.int64),
        majority_percent=figure(
            voted, lambda s: ratio(s[..., 0], s[..., 1]), group, "majority percent"
        ),
        majority_cohen=figure(rows_of(vote), cohen_of, group, "majority"),
        ties=int((vote == MISSING).sum()),
    )


def majority(codes: Codes, n_labels: int) -> Codes:
    """The label most raters gave each item; :data:`~earwitness.stats.agreement.MISSING` where several lead.

    Examples
    --------
    >>> majority(np.array([[0, 0, 1], [0, 1, -1]]), 2).tolist()
    [0, -1]
    """
    votes = (codes[:, :, None] == np.arange(n_labels)).sum(axis=1)
    most = votes.max(axis=1)
    alone = (votes == most[:, None]).sum(axis=1) == 1
    return np.where(alone & (most > 0), votes.argmax(axis=1), MISSING)


def people_confusion(codes: Codes, n_labels: int) -> FloatArray:
    """How often two people who rated the same item said which two labels.

    Returns
    -------
    (labels, labels), symmetric: every unordered pair of ratings of an item counts once, half of it on either side
    of the diagonal where the two differ. The sum is the number of pairs.

    Examples
    --------
    >>> people_confusion(np.array([[0, 0, 1]]), 2).tolist()
    [[1.0, 1.0], [1.0, 0.0]]
    """
    votes = (codes[:, :, None] == np.arange(n_labels)).sum(axis=1).astype(np.float64)
    ordered = votes.T @ votes - np.diag(votes.sum(axis=0))
    return np.asarray(ordered / 2)
