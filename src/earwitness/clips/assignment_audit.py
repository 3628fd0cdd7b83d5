"""The words audit: can the emotion be guessed from the words alone?

Conventions
-----------
One case per recording; its class is the emotion, its features are the words and pairs of words of the script. Two
classifiers (least squares with a ridge, and naive Bayes) are cross-validated twice: by script, so that no text is
known, and by speaker, so that texts may be known from other speakers. The better classifier speaks for
each. It **leaks** when the lower end of its interval, by cluster, exceeds chance (1 of the number of labels)
by more than one point. The interval shown is at 95 %; the one that decides holds for all tries at once
(Bonferroni), since the better of several guesses at nothing is often a little above chance.

A control, with emotions shuffled over all recordings, is made in the same way and must not leak; if it does, the
audit itself is at fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earwitness.clips.scripts_lexicon import tokens_in
from earwitness.errors import DataError, MissingExtraError
from earwitness.stats.confusion import by_cluster, macro_recall
from earwitness.stats.intervals import (
    LEVEL,
    RESAMPLES,
    percentile_interval,
    resample_confusions,
)
from earwitness.stats.streams import stream

TOLERANCE = 0.01
FOLDS = 10
RIDGE = 10.0
MAX_RECORDINGS = 4000
"""Recordings that are used, drawn with the seed; more of them cost minutes and change little."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """What the audit knows of a recording."""

    text: str
    emotion: str
    script: str
    speaker: str


@dataclass(frozen=True, slots=True)
class Guess:
    """How well words tell the emotion of recordings whose script, or speaker, was held out."""

    held_out: str
    labels: str
    classifier: str
    balanced_accuracy: float
    low: float
    high: float
    low_for_all: float
    chance: float
    recordings: int
    clusters: int

    @property
    def leaks(self) -> bool:
        return self.low_for_all > self.chance + TOLERANCE


@dataclass(frozen=True, slots=True)
class WordsAudit:
    """Guesses at the real emotions, and at shuffled ones as a control."""

    guesses: tuple[Guess, ...]
    controls: tuple[Guess, ...]

    @property
    def ok(self) -> bool:
        return not any(guess.leaks for guess in (*self.guesses, *self.controls))


def audit_words(spoken: Sequence[Spoken], *, seed: int = 0) -> WordsAudit:
    """Guess emotions from words.

    Raises
    ------
    MissingExtraError: scikit-learn is not installed.
    DataError: fewer than two labels, scripts or speakers.
    """
    if find_spec("sklearn") is None:
        raise MissingExtraError("the words audit", "baselines")
    from sklearn.feature_extraction.text import CountVectorizer

    if len(spoken) > MAX_RECORDINGS:
        drawn = stream(seed, "words-audit", "sample").permutation(len(spoken))[:MAX_RECORDINGS]
        spoken = [spoken[int(n)] for n in np.sort(drawn)]
    labels = sorted({each.emotion for each in spoken})
    groups = {
        "script": [each.script for each in spoken],
        "speaker": [each.speaker for each in spoken],
    }
    for what, names in (("label", labels), *groups.items()):
        if len(set(names)) < 2:
            raise DataError(
                "words audit", f"{len(set(names))} {what}", f"at least two {what}s, to hold one out"
            )
    vectorise = CountVectorizer(analyzer=words_and_pairs)
    features = vectorise.fit_transform([each.text for each in spoken]).tocsr().astype(np.float64)
    real = np.array([labels.index(each.emotion) for each in spoken])
    shuffled = stream(seed, "words-audit", "control").permutation(real)
    tries = 2 * len(groups) * len(CLASSIFIERS)
    found: dict[str, list[Guess]] = {"real": [], "shuffled": []}
    for held_out, names in groups.items():
        codes = np.unique(np.array(names), return_inverse=True)[1]
        for which, emotions in (("real", real), ("shuffled", shuffled)):
            found[which].append(
                _best(features, emotions, codes, len(labels), tries, (held_out, which), seed)
            )
    return WordsAudit(tuple(found["real"]), tuple(found["shuffled"]))


def words_and_pairs(text: str) -> list[str]:
    """Words of a text and pairs of neighbours.

    >>> words_and_pairs("So it is.")
    ['so', 'it', 'is', 'so it', 'it is']
    """
    words = [token.text for token in tokens_in(text)]
    return words + [f"{a} {b}" for a, b in pairwise(words)]


def _least_squares(train: Any, emotions: NDArray[Any], test: Any) -> NDArray[np.int64]:
    """Ridge regression on one column a label, in its dual form: recordings are fewer than words."""
    columns = np.eye(int(emotions.max()) + 1)[emotions]
    among = np.asarray((train @ train.T).toarray())
    weights = np.linalg.solve(among + RIDGE * np.eye(len(emotions)), columns - columns.mean(axis=0))
    scores = (test @ train.T).toarray() @ weights
    return np.asarray(scores.argmax(axis=1), dtype=np.int64)


def _naive_bayes(train: Any, emotions: NDArray[Any], test: Any) -> NDArray[np.int64]:
    from sklearn.naive_bayes import MultinomialNB

    return np.asarray(MultinomialNB().fit(train, emotions).predict(test), dtype=np.int64)


CLASSIFIERS: Mapping[str, Callable[[Any, NDArray[Any], Any], NDArray[np.int64]]] = {
    "least squares": _least_squares,
    "naive Bayes": _naive_bayes,
}


def _best(
    features: Any,
    emotions: NDArray[Any],
    clusters: NDArray[Any],
    labels: int,
    tries: int,
    names: tuple[str, str],
    seed: int,
) -> Guess:
    """The better classifier's guesses, with their intervals."""
    n_clusters = int(clusters.max()) + 1
    found = {}
    for name, classify in CLASSIFIERS.items():
        guessed = _guessed(classify, features, emotions, clusters)
        found[name] = by_cluster(emotions, guessed, clusters, labels, n_clusters)
    right = {
        name: float(macro_recall(counts.sum(axis=0).astype(float)))
        for name, counts in found.items()
    }
    best = max(found, key=lambda name: right[name])
    rng = stream(seed, "words-audit", *names, best)
    drawn = macro_recall(resample_confusions(found[best], RESAMPLES, rng))
    value = np.asarray(right[best])
    low, high, _ = percentile_interval(drawn, value, n_clusters)
    low_for_all, _, _ = percentile_interval(drawn, value, n_clusters, 1 - (1 - LEVEL) / tries)
    held_out, which = names
    return Guess(
        held_out=held_out,
        labels=which,
        classifier=best,
        balanced_accuracy=right[best],
        low=float(low),
        high=float(high),
        low_for_all=float(low_for_all),
        chance=1 / labels,
        recordings=len(emotions),
        clusters=n_clusters,
    )


def _guessed(
    classify: Callable[[Any, NDArray[Any], Any], NDArray[np.int64]],
    features: Any,
    emotions: NDArray[Any],
    clusters: NDArray[Any],
) -> NDArray[np.int64]:
    """Every recording's emotion as guessed by a classifier that never met its cluster."""
    from sklearn.model_selection import GroupKFold

    guessed = np.full(len(emotions), -1, dtype=np.int64)
    folds = GroupKFold(min(FOLDS, int(clusters.max()) + 1))
    for train, test in folds.split(features, emotions, clusters):
        guessed[test] = classify(features[train], emotions[train], features[test])
    return guessed
