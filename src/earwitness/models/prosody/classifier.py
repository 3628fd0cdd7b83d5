"""The classifier: a linear and a kernel discriminant, both calibrated, averaged.

Trained with scikit-learn, applied with numpy alone: what is fitted are plain arrays, so that a model file
gives the same answers under every version of scikit-learn, and none is needed for scoring.

Two learners see the same standardised features (values beyond three standard deviations are clipped there):

- linear discriminant analysis with a shrunk covariance (Friedman 1989, "Regularized discriminant analysis");
- one support vector machine with a Gaussian kernel for each label against the rest.

Their strengths (shrinkage; C and gamma) are chosen by log loss in folds that divide the training speakers,
and so are the temperatures that turn decision values into probabilities (Guo et al. 2017, "On calibration
of modern neural networks"). Labels have equal weight, whatever their counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earwitness.errors import DataError, MissingExtraError
from earwitness.models.prosody.folds import speaker_folds

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

CLIP_AT = 3.0
_UNSEEN = 3.0  # a label absent from an inner fold lies this far below the worst that is present


@dataclass(frozen=True, slots=True)
class Grid:
    """What training may choose from; ``gammas`` are multiplied by 1 / number of features.

    ``tuning_clips`` bounds the clips used for choosing: beyond it, an even share of each speaker's.
    """

    shrinkages: tuple[float, ...] = (0.2, 0.5, 0.8)
    penalties: tuple[float, ...] = (1.0, 3.0, 10.0)
    gammas: tuple[float, ...] = (0.3, 1.0)
    inner_folds: int = 5
    tuning_clips: int = 1500


@dataclass(frozen=True, slots=True)
class EmotionClassifier:
    """Fitted arrays for ``d`` features, ``k`` labels and ``s`` support vectors.

    ``support_rows`` are the rows of the training matrix that are support vectors, and ``support`` those
    rows as standardised here. ``chosen`` says what training chose.
    """

    labels: tuple[str, ...]
    mean: Floats
    scale: Floats
    linear_weights: Floats
    linear_bias: Floats
    linear_inverse_temperature: float
    support_rows: Indices
    support: Floats
    kernel_weights: Floats
    kernel_bias: Floats
    kernel_gamma: float
    kernel_inverse_temperature: float
    inverse_temperature: float
    chosen: Mapping[str, float]

    def probabilities(self, vectors: NDArray[np.floating]) -> Floats:
        """Probability of each label, (n, d) to (n, k); each row adds up to 1."""
        x = standardise(vectors, self.mean, self.scale)
        linear = x @ self.linear_weights + self.linear_bias
        kernel = gaussian_kernel(x, self.support, self.kernel_gamma) @ self.kernel_weights
        mixed = _mix(
            _log_softmax(linear * self.linear_inverse_temperature),
            _log_softmax((kernel + self.kernel_bias) * self.kernel_inverse_temperature),
        )
        return np.asarray(np.exp(_log_softmax(mixed * self.inverse_temperature)))


def standardise(vectors: NDArray[np.floating], mean: Floats, scale: Floats) -> Floats:
    return np.clip((np.asarray(vectors, dtype=np.float64) - mean) / scale, -CLIP_AT, CLIP_AT)


def gaussian_kernel(a: Floats, b: Floats, gamma: float) -> Floats:
    """exp(-gamma |a_i - b_j|^2), shape (len(a), len(b))."""
    squares = np.sum(a**2, axis=1)[:, None] + np.sum(b**2, axis=1)[None, :] - 2 * a @ b.T
    return np.asarray(np.exp(-gamma * np.maximum(squares, 0.0)))


def train(
    vectors: NDArray[np.floating],
    labels: Sequence[str],
    speakers: Sequence[str],
    *,
    seed: int = 0,
    grid: Grid | None = None,
) -> EmotionClassifier:
    """Choose, fit and calibrate on the given clips and on nothing else.

    Parameters
    ----------
    vectors: (n, d) finite features.
    labels, speakers: one each a clip; at least two of both.
    seed: divides the speakers into inner folds.

    Raises
    ------
    DataError: fewer than two speakers or labels.
    MissingExtraError: scikit-learn is not installed.
    """
    grid = grid or Grid()
    require_sklearn()
    names = tuple(sorted(set(labels)))
    if len(names) < 2 or len(set(speakers)) < 2:
        raise DataError(
            "training clips",
            f"{len(set(speakers))} speakers and {len(names)} labels",
            "at least two speakers to train on and two labels",
            "Add clips of other speakers, or use fewer folds.",
        )
    y = np.asarray([names.index(label) for label in labels], dtype=np.intp)
    x = np.asarray(vectors, dtype=np.float64)
    with _one_thread():
        choice = _choose(x, y, speakers, len(names), seed, grid)
        mean, scale = _moments(x)
        z = standardise(x, mean, scale)
        weights, bias = _fit_linear(z, y, len(names), choice.shrinkage)
        rows, kernel_weights, kernel_bias = _fit_kernel(
            gaussian_kernel(z, z, choice.gamma), y, len(names), choice.penalty
        )
    return EmotionClassifier(
        labels=names,
        mean=mean,
        scale=scale,
        linear_weights=weights,
        linear_bias=bias,
        linear_inverse_temperature=choice.linear_inverse_temperature,
        support_rows=rows,
        support=z[rows],
        kernel_weights=kernel_weights,
        kernel_bias=kernel_bias,
        kernel_gamma=choice.gamma,
        kernel_inverse_temperature=choice.kernel_inverse_temperature,
        inverse_temperature=choice.inverse_temperature,
        chosen={
            "shrinkage": choice.shrinkage,
            "C": choice.penalty,
            "gamma_times_features": choice.gamma * x.shape[1],
            "inner_log_loss": round(choice.log_loss, 4),
        },
    )


def require_sklearn() -> None:
    """Raise :class:`MissingExtraError` where scikit-learn is absent."""
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise MissingExtraError("baseline/prosody", "baselines") from None


@dataclass(frozen=True, slots=True)
class _Choice:
    shrinkage: float
    penalty: float
    gamma: float
    linear_inverse_temperature: float
    kernel_inverse_temperature: float
    inverse_temperature: float
    log_loss: float


def _choose(
    x: Floats, y: Indices, speakers: Sequence[str], k: int, seed: int, grid: Grid
) -> _Choice:
    """Nested folds: every candidate is judged on training speakers it was not fitted to."""
    kept = _tuning_rows(speakers, y, grid.tuning_clips)
    x, y, speakers = x[kept], y[kept], [speakers[i] for i in kept]
    folds = np.asarray(speaker_folds(speakers, min(grid.inner_folds, len(set(speakers))), seed))
    linear: dict[float, Floats] = {s: np.zeros((len(y), k)) for s in grid.shrinkages}
    pairs = [(c, g / x.shape[1]) for c in grid.penalties for g in grid.gammas]
    kernel: dict[tuple[float, float], Floats] = {pair: np.zeros((len(y), k)) for pair in pairs}
    for fold in range(int(folds.max()) + 1):
        seen, held = folds != fold, folds == fold
        mean, scale = _moments(x[seen])
        z = standardise(x, mean, scale)
        for shrinkage, scores in linear.items():
            weights, bias = _fit_linear(z[seen], y[seen], k, shrinkage)
            scores[held] = _fill_unseen(z[held] @ weights + bias)
        for gamma in sorted({g for _, g in pairs}):
            whole = gaussian_kernel(z, z[seen], gamma)
            for penalty in grid.penalties:
                rows, weights, bias = _fit_kernel(whole[seen], y[seen], k, penalty)
                found = whole[held][:, rows] @ weights + bias
                kernel[penalty, gamma][held] = _fill_unseen(found)
    shrinkage, linear_scale, _ = _least_loss(linear, y)
    (penalty, gamma), kernel_scale, _ = _least_loss(kernel, y)
    mixed = _mix(
        _log_softmax(linear[shrinkage] * linear_scale),
        _log_softmax(kernel[penalty, gamma] * kernel_scale),
    )
    final_scale, loss = _fit_inverse_temperature(mixed, y)
    return _Choice(shrinkage, penalty, gamma, linear_scale, kernel_scale, final_scale, loss)


def _tuning_rows(speakers: Sequence[str], y: Indices, limit: int) -> Indices:
    """All rows, or every m-th of those sorted by speaker and label where there are more than ``limit``."""
    if len(y) <= limit:
        return np.arange(len(y), dtype=np.intp)
    order = np.lexsort((np.arange(len(y)), y, np.asarray(speakers)))
    positions = np.linspace(0, len(y) - 1, limit).round().astype(np.intp)
    return np.sort(order[positions])


def _least_loss(candidates: Mapping[Any, Floats], y: Indices) -> tuple[Any, float, float]:
    """The candidate with the least calibrated log loss; the first of equals."""
    found = [(key, *_fit_inverse_temperature(scores, y)) for key, scores in candidates.items()]
    return min(found, key=lambda each: each[2])


def _fit_inverse_temperature(scores: Floats, y: Indices) -> tuple[float, float]:
    """Inverse temperature with the least mean log loss, and that loss; labels weigh the same."""
    weight = 1.0 / np.bincount(y)[y]
    weight /= weight.sum()
    rows = np.arange(len(y))

    def loss(inverse: float) -> float:
        return float(-(weight * _log_softmax(scores * inverse)[rows, y]).sum())

    # The loss is convex in the inverse temperature, so that nested grids find its minimum.
    low, high = 0.01, 100.0
    for _ in range(6):
        steps = np.geomspace(low, high, 13)
        best = int(np.argmin([loss(float(step)) for step in steps]))
        low, high = float(steps[max(0, best - 1)]), float(steps[min(12, best + 1)])
    inverse = float(np.sqrt(low * high))
    return inverse, loss(inverse)


def _moments(x: Floats) -> tuple[Floats, Floats]:
    scale = x.std(axis=0)
    # What never varies in training says nothing; it becomes 0 rather than a division by nothing.
    return x.mean(axis=0), np.where(scale > 1e-9 * (1 + np.abs(x).max(axis=0)), scale, np.inf)


def _fit_linear(z: Floats, y: Indices, k: int, shrinkage: float) -> tuple[Floats, Floats]:
    """Discriminant weights (d, k) and bias (k,); a label without clips has bias -inf."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    present = np.unique(y)
    weights, bias = np.zeros((z.shape[1], k)), np.full(k, -np.inf)
    if len(present) == 1:
        bias[present] = 0.0
        return weights, bias
    priors = np.full(len(present), 1 / len(present))
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage, priors=priors).fit(z, y)
    if len(present) == 2:  # scikit-learn folds two labels into one direction
        bias[present] = 0.0, float(model.intercept_[0])
        weights[:, present[1]] = model.coef_[0]
    else:
        weights[:, present], bias[present] = model.coef_.T, model.intercept_
    return weights, bias


def _fit_kernel(
    kernel: Floats, y: Indices, k: int, penalty: float
) -> tuple[Indices, Floats, Floats]:
    """Support rows, weights (s, k) and bias (k,) of one machine a label against the rest."""
    from sklearn.svm import SVC

    weights, bias = np.zeros((len(y), k)), np.full(k, -np.inf)
    present = np.unique(y)
    for label in present:
        target = y == label
        if target.all():
            bias[label] = 0.0
            continue
        machine = SVC(kernel="precomputed", C=penalty, class_weight="balanced").fit(kernel, target)
        weights[machine.support_, label] = machine.dual_coef_[0]
        bias[label] = float(machine.intercept_[0])
    rows = np.flatnonzero(np.any(weights != 0, axis=1))
    return rows, weights[rows], bias


def _fill_unseen(scores: Floats) -> Floats:
    finite = np.isfinite(scores)
    worst = np.where(finite, scores, np.inf).min(axis=1, keepdims=True)
    return np.where(finite, scores, worst - _UNSEEN)


def _mix(a: Floats, b: Floats) -> Floats:
    return 0.5 * (a + b)


def _log_softmax(scores: Floats) -> Floats:
    shifted = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Sums in one order on every machine: the number of threads must not reach the model file."""
    # Comes with scikit-learn; has no type information.
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(limits=1):
        yield
