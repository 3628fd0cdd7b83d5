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
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earwitness.clips.scripts_lexicon import tokens_in
from earwitness.errors import DataError
from earwitness.stats.confusion import FloatArray, by_cluster, macro_recall
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
    DataError: fewer than two labels, scripts or speakers.
    """
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
    texts = _Texts.of([each.text for each in spoken])
    real = np.array([labels.index(each.emotion) for each in spoken])
    shuffled = stream(seed, "words-audit", "control").permutation(real)
    tries = 2 * len(groups) * len(CLASSIFIERS)
    found: dict[str, list[Guess]] = {"real": [], "shuffled": []}
    for held_out, names in groups.items():
        codes = np.unique(np.array(names), return_inverse=True)[1]
        for which, emotions in (("real", real), ("shuffled", shuffled)):
            found[which].append(
                _best(texts, emotions, codes, len(labels), tries, (held_out, which), seed)
            )
    return WordsAudit(tuple(found["real"]), tuple(found["shuffled"]))


def words_and_pairs(text: str) -> list[str]:
    """Words of a text and pairs of neighbours.

    >>> words_and_pairs("So it is.")
    ['so', 'it', 'is', 'so it', 'it is']
    """
    words = [token.text for token in tokens_in(text)]
    return words + [f"{a} {b}" for a, b in pairwise(words)]


@dataclass(frozen=True)
class _Texts:
    """Different texts as bags of words: few, while recordings are many.

    ``of`` is each recording's text, ``counts`` (texts, words) sparse, ``among`` (texts, texts) their products.
    """

    of_recording: NDArray[np.int64]
    counts: Any
    among: FloatArray

    @classmethod
    def of(cls, spoken: Sequence[str]) -> _Texts:
        from scipy.sparse import coo_array

        places: dict[str, int] = {}
        words: dict[str, int] = {}
        codes = np.array([places.setdefault(text, len(places)) for text in spoken])
        cells = [
            (place, words.setdefault(word, len(words)))
            for text, place in places.items()
            for word in words_and_pairs(text)
        ]
        rows, columns = np.array(cells).T
        shape = (len(places), len(words))
        counts = coo_array((np.ones(len(cells)), (rows, columns)), shape=shape).tocsr()
        return cls(codes, counts, np.asarray((counts @ counts.T).toarray()))


def _least_squares(
    texts: _Texts, labels: FloatArray, train: NDArray[Any], test: NDArray[Any]
) -> FloatArray:
    """Ridge regression on one column a label, in its dual form over different texts.

    Recordings of one text have the same row, so they count as one row with their mean label and their number as
    its weight: C. Saunders, A. Gammerman and V. Vovk, "Ridge regression learning algorithm in dual variables", ICML 1998.
    """
    sums = _sums(texts, labels, train)
    number = sums.sum(axis=1)
    seen = np.flatnonzero(number)
    means = sums[seen] / number[seen, None]
    centre = labels[train].mean(axis=0)
    among = texts.among[np.ix_(seen, seen)] + np.diag(RIDGE / number[seen])
    weights = np.linalg.solve(among, means - centre)
    return np.asarray(texts.among[np.ix_(texts.of_recording[test], seen)] @ weights)


def _naive_bayes(
    texts: _Texts, labels: FloatArray, train: NDArray[Any], test: NDArray[Any]
) -> FloatArray:
    """Multinomial naive Bayes with one added to every count."""
    words = (texts.counts.T @ _sums(texts, labels, train)).T + 1.0
    chances = np.log(words / words.sum(axis=1, keepdims=True))
    prior = np.log(labels[train].sum(axis=0) + 1.0)
    scores: FloatArray = np.asarray(texts.counts @ chances.T, dtype=np.float64)
    return np.asarray(scores[texts.of_recording[test]] + prior, dtype=np.float64)


def _sums(texts: _Texts, labels: FloatArray, train: NDArray[Any]) -> FloatArray:
    """Recordings of each text and label among those to learn from, (texts, labels)."""
    sums: FloatArray = np.zeros((len(texts.among), labels.shape[1]))
    np.add.at(sums, texts.of_recording[train], labels[train])
    return sums


Classifier = Callable[[_Texts, FloatArray, NDArray[Any], NDArray[Any]], FloatArray]
CLASSIFIERS: Mapping[str, Classifier] = {
    "least squares": _least_squares,
    "naive Bayes": _naive_bayes,
}


def _best(
    texts: _Texts,
    emotions: NDArray[Any],
    clusters: NDArray[Any],
    labels: int,
    tries: int,
    names: tuple[str, str],
    seed: int,
) -> Guess:
    """The better classifier's guesses, with their intervals."""
    n_clusters = int(clusters.max()) + 1
    fold_of = stream(seed, "words-audit", "folds", names[0]).permutation(n_clusters) % FOLDS
    folds = fold_of[clusters]
    found = {}
    for name, classify in CLASSIFIERS.items():
        guessed = _guessed(classify, texts, np.eye(labels)[emotions], folds)
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
    classify: Classifier, texts: _Texts, labels: FloatArray, folds: NDArray[Any]
) -> NDArray[np.int64]:
    """Every recording's emotion as guessed by a classifier that never met its cluster."""
    guessed = np.full(len(labels), -1, dtype=np.int64)
    for fold in np.unique(folds):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        guessed[test] = classify(texts, labels, train, test).argmax(axis=1)
    return guessed
