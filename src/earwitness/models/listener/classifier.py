"""Classes as clouds: a Gaussian for each, with what few examples leave open, and one for classes never met.

Two-covariance model (S. Ioffe, "Probabilistic linear discriminant analysis", ECCV 2006): within a class features
scatter with one covariance W, class means scatter with another one, B. In a basis in which W is the identity and B
diagonal (b), a class with n examples of mean x predicts a Gaussian with, in every direction,

    mean = m + n b / (n b + 1) (x - m)        variance = 1 + b / (n b + 1)

which for n = 0 is the scatter of all classes. So a class without examples can be told from those with, and one with a
single example is not trusted more than it should be. W is shrunk towards its diagonal where examples are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earwitness.errors import DataError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Clouds:
    """A trained classifier.

    ``basis`` is (d, k), ``centre`` (d,), ``between`` (k,): the b of every direction. ``means`` is (classes, k), the
    mean of each class's examples in that basis; ``counts`` how many there were.
    """

    labels: tuple[str, ...]
    centre: FloatArray
    basis: FloatArray
    between: FloatArray
    means: FloatArray
    counts: FloatArray

    def scores(self, vector: FloatArray, labels: Sequence[str]) -> FloatArray:
        """Log density of the vector under each of these classes, known or not, (len(labels),)."""
        at = (vector - self.centre) @ self.basis
        place = {label: k for k, label in enumerate(self.labels)}
        found = []
        for label in labels:
            k = place.get(label)
            n = 0.0 if k is None else self.counts[k]
            weight = n * self.between / (n * self.between + 1)
            mean = np.zeros_like(at) if k is None else weight * self.means[k]
            variance = 1 + self.between / (n * self.between + 1)
            found.append(-0.5 * float(((at - mean) ** 2 / variance + np.log(variance)).sum()))
        return np.array(found)


def train_clouds(vectors: FloatArray, labels: Sequence[str], *, directions: int = 32) -> Clouds:
    """Fit the clouds.

    Parameters
    ----------
    vectors: (n, d).
    labels: of each row.
    directions: at most so many are kept, those in which classes differ most.

    Raises
    ------
    DataError: fewer than two classes, or a value that is not finite.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate((rng.normal(0, 1, (20, 2)), rng.normal(6, 1, (20, 2))))
    >>> model = train_clouds(x, ["a"] * 20 + ["b"] * 20)
    >>> bool(model.scores(np.array([6.0, 6.0]), ["a", "b"]).argmax() == 1)
    True
    """
    names = tuple(sorted(set(labels)))
    if len(names) < 2:
        raise DataError("listener", f"examples of {len(names)} classes", "at least two classes")
    if vectors.ndim != 2 or len(vectors) != len(labels) or not np.isfinite(vectors).all():
        raise DataError("listener", f"vectors of shape {vectors.shape}", "a finite one an example")
    codes = np.array([names.index(label) for label in labels])
    counts = np.bincount(codes, minlength=len(names)).astype(np.float64)
    own = np.zeros((len(names), vectors.shape[1]))
    np.add.at(own, codes, vectors)
    own /= counts[:, None]
    centre = own.mean(axis=0)
    within = _within(vectors - own[codes], vectors - vectors.mean(axis=0), len(names))
    values, directions_ = np.linalg.eigh(within)
    white = directions_ / np.sqrt(np.maximum(values, values.max() * 1e-6 + 1e-12))
    centred = (own - centre) @ white
    # The scatter of class means holds a share 1/n of the scatter within, which is the identity here.
    scatter = centred.T @ centred / max(1, len(names) - 1) - np.eye(len(centre)) * float(
        (1 / counts).mean()
    )
    values, turned = np.linalg.eigh(scatter)
    order = np.argsort(-values, kind="stable")[:directions]
    between = np.maximum(values[order], 0.0)
    basis = white @ turned[:, order]
    # Directions without any difference between classes say nothing.
    kept = between > 0
    if not kept.any():
        kept[0] = True
    basis, between = _signed(basis[:, kept]), between[kept]
    return Clouds(names, centre, basis, between, (own - centre) @ basis, counts)


def _within(rest: FloatArray, all_: FloatArray, n_classes: int) -> FloatArray:
    free = len(rest) - n_classes
    spread = np.diag(np.maximum(all_.var(axis=0), 1e-6))
    if free < 1:
        return 0.5 * spread
    pooled = rest.T @ rest / free
    share = rest.shape[1] / (rest.shape[1] + free)
    # Half of the spread over all examples stands for the scatter within where it cannot be measured.
    return np.asarray(
        (1 - share) * pooled + share * (0.5 * np.diag(np.diag(pooled)) + 0.25 * spread)
    )


def _signed(basis: FloatArray) -> FloatArray:
    """Eigenvectors have no sign of their own: the largest entry is made positive."""
    largest = np.abs(basis).argmax(axis=0)
    return np.asarray(basis * np.sign(basis[largest, np.arange(basis.shape[1])]))
