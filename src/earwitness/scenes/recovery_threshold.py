"""How near must a recovered topic be? Tau, found on pairs whose answer is known, and bound to its embedder.

Conventions
-----------
* Positives are topics with a loose rewording, negatives topics with another topic of the same template
  (:mod:`earwitness.scenes.topic_pairs`). A pair passes when its cosine is at least tau.
* Tau is the point of the ROC curve with the largest sensitivity + specificity - 1 (W. J. Youden, "Index for
  rating diagnostic tests", Cancer 3, 1950); of several the highest, which turns down more.
* Intervals draw whole templates, since their negatives share topics.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from earwitness.errors import DataError, UsageError
from earwitness.runs.folder import write_atomically
from earwitness.scenes.topic_pairs import TopicPairs
from earwitness.stats.intervals import RESAMPLES, percentile_interval, resample_sums
from earwitness.stats.streams import stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from earwitness.models.protocols import Embedder

    Floats = NDArray[np.float64]

FORMAT = 1
SEED = 0
DIGITS = 4


class ThresholdError(DataError):
    """A threshold cannot be found, read or used."""


@dataclass(frozen=True)
class Threshold:
    """Tau, and where it comes from.

    ``embedder`` and ``embedder_hash`` are those it was found with: it means nothing for another. A value somebody
    set has no figures (``auc`` and all that follows are None).
    """

    tau: float
    embedder: str
    embedder_hash: str
    auc: float | None = None
    auc_low: float | None = None
    auc_high: float | None = None
    tau_low: float | None = None
    tau_high: float | None = None
    sensitivity: float | None = None
    specificity: float | None = None
    positives: int | None = None
    negatives: int | None = None
    templates: int | None = None
    pairs_hash: str | None = None

    @property
    def calibrated(self) -> bool:
        """Whether it was found on pairs."""
        return self.auc is not None

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {"format": FORMAT, **asdict(self)}


@dataclass(frozen=True)
class Calibration:
    """A threshold with the cosines behind it, for a plot."""

    threshold: Threshold
    positives: tuple[float, ...]
    negatives: tuple[float, ...]

    def roc(self) -> tuple[list[float], list[float]]:
        """False and true positive rates as tau goes down, from (0, 0) to (1, 1)."""
        cuts = np.unique([*self.positives, *self.negatives])[::-1]
        positives, negatives = np.array(self.positives), np.array(self.negatives)
        false = [0.0, *[float((negatives >= cut).mean()) for cut in cuts]]
        true = [0.0, *[float((positives >= cut).mean()) for cut in cuts]]
        return false, true


async def calibrate(pairs: TopicPairs, embedder: Embedder) -> Calibration:
    """Find tau for an embedder on pairs of topics.

    Raises
    ------
    ModelError: the embedding service gave no vectors.
    """
    from earwitness.models.embedders.hashes import embedder_hash

    texts = list(
        dict.fromkeys(text for couple in (*pairs.positives, *pairs.negatives) for text in couple)
    )
    rows = dict(zip(texts, await embedder.embed(texts), strict=True))

    def cosine(one: str, other: str) -> float:
        return float(np.dot(rows[one].astype(np.float64), rows[other].astype(np.float64)))

    positives: list[Floats] = []
    negatives: list[Floats] = []
    for group in pairs.groups:
        topics = [pair.topic for pair in group.pairs]
        positives.append(np.array([cosine(pair.topic, pair.rewording) for pair in group.pairs]))
        negatives.append(
            np.array([cosine(a, b) for n, a in enumerate(topics) for b in topics[n + 1 :]])
        )
    return _calibration(positives, negatives, embedder.name, embedder_hash(embedder), pairs.hash)


def _calibration(
    positives: Sequence[Floats], negatives: Sequence[Floats], name: str, hash_: str, pairs: str
) -> Calibration:
    above = np.concatenate(positives)
    below = np.concatenate(negatives)
    groups = len(positives)
    weights = np.concatenate(
        [
            np.ones((1, groups)),
            resample_sums(np.eye(groups), RESAMPLES, stream(SEED, "calibrate-topic")),
        ]
    )
    auc = _auc(positives, negatives, weights)
    cuts = np.unique(np.concatenate([above, below]))
    youden, sensitivity, specificity = _youden(positives, negatives, weights, cuts)
    # Of equal points the last, so that the highest cut wins.
    best = youden.shape[1] - 1 - np.argmax(youden[:, ::-1], axis=1)
    taus = cuts[best]
    auc_low, auc_high, _ = percentile_interval(auc[1:, None], auc[:1], groups)
    tau_low, tau_high, _ = percentile_interval(taus[1:, None], taus[:1], groups)
    # Rounded down: the pair that sits on the threshold must still pass.
    tau = float(np.floor(taus[0] * 10**DIGITS) / 10**DIGITS)
    return Calibration(
        Threshold(
            tau=tau,
            embedder=name,
            embedder_hash=hash_,
            auc=round(float(auc[0]), DIGITS),
            auc_low=round(float(auc_low[0]), DIGITS),
            auc_high=round(float(auc_high[0]), DIGITS),
            tau_low=round(float(tau_low[0]), DIGITS),
            tau_high=round(float(tau_high[0]), DIGITS),
            sensitivity=round(float(sensitivity[0, best[0]]), DIGITS),
            specificity=round(float(specificity[0, best[0]]), DIGITS),
            positives=len(above),
            negatives=len(below),
            templates=groups,
            pairs_hash=pairs,
        ),
        tuple(map(float, above)),
        tuple(map(float, below)),
    )


def _auc(positives: Sequence[Floats], negatives: Sequence[Floats], weights: Floats) -> Floats:
    """Area under the ROC curve for each row of template weights, (r, g) to (r,): Mann and Whitney's share."""
    wins = np.array(
        [
            [(p[:, None] > n[None]).sum() + 0.5 * (p[:, None] == n[None]).sum() for n in negatives]
            for p in positives
        ],
        dtype=np.float64,
    )
    ups = weights @ np.array([len(p) for p in positives], dtype=np.float64)
    downs = weights @ np.array([len(n) for n in negatives], dtype=np.float64)
    area: Floats = ((weights @ wins) * weights).sum(axis=1) / (ups * downs)
    return area


def _youden(
    positives: Sequence[Floats], negatives: Sequence[Floats], weights: Floats, cuts: Floats
) -> tuple[Floats, Floats, Floats]:
    """Youden's index, sensitivity and specificity at every cut, each (r, cuts)."""
    passed = np.array([(p[:, None] >= cuts).sum(axis=0) for p in positives], dtype=np.float64)
    wrongly = np.array([(n[:, None] >= cuts).sum(axis=0) for n in negatives], dtype=np.float64)
    ups = weights @ np.array([len(p) for p in positives], dtype=np.float64)
    downs = weights @ np.array([len(n) for n in negatives], dtype=np.float64)
    sensitivity = (weights @ passed) / ups[:, None]
    specificity = 1 - (weights @ wrongly) / downs[:, None]
    return sensitivity + specificity - 1, sensitivity, specificity


def require_useful(threshold: Threshold) -> None:
    """Refuse a threshold of an embedder that does not tell the pairs apart.

    Raises
    ------
    ThresholdError: the interval of its AUC reaches down to one half, which is chance.
    """
    if threshold.auc_low is not None and threshold.auc_low <= 0.5:
        raise ThresholdError(
            f"embedder {threshold.embedder}",
            f"does not tell rewordings from other topics (AUC {threshold.auc:.3f}, 95 % interval "
            f"{threshold.auc_low:.3f} to {threshold.auc_high:.3f})",
            "an interval above 0.5",
            'Use another: pip install "earwitness[local]" brings local/minilm.',
        )


def write_threshold(path: Path, threshold: Threshold) -> None:
    """Put a threshold in place, whole or not at all."""
    write_atomically(path, json.dumps(threshold.to_json(), ensure_ascii=False, indent=2) + "\n")


def read_threshold(path: Path) -> Threshold:
    """Read what :func:`write_threshold` wrote.

    Raises
    ------
    ThresholdError: the file is missing or no threshold.
    """
    wanted = "a file made by: earwitness scenes calibrate-topic --out FILE"
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ThresholdError(str(path), f"cannot be read ({error.strerror})", wanted) from None
    except ValueError:
        raise ThresholdError(str(path), "is no JSON", wanted) from None
    if not isinstance(value, dict) or value.pop("format", None) != FORMAT:
        raise ThresholdError(str(path), f"is no threshold of format {FORMAT}", wanted)
    try:
        found = Threshold(**value)
    except TypeError:
        raise ThresholdError(str(path), "has other fields than a threshold", wanted) from None
    numeric = isinstance(found.tau, (int, float)) and not isinstance(found.tau, bool)
    if not numeric or not isinstance(found.embedder_hash, str):
        raise ThresholdError(str(path), "has no number tau with an embedder's hash", wanted)
    return found


def require_embedder(threshold: Threshold, name: str, hash_: str, where: str) -> None:
    """Refuse a threshold that was found with another embedder, or another state of it.

    Raises
    ------
    ThresholdError: the hashes differ.
    """
    if threshold.embedder_hash != hash_:
        raise ThresholdError(
            where,
            f"a threshold for {threshold.embedder} with hash {threshold.embedder_hash[:12]}",
            f"one for {name} with hash {hash_[:12]}, which is to be used",
            "Name the other with --embedder, or find a threshold for this one: earwitness scenes calibrate-topic.",
        )


def parse_tau(text: str) -> float:
    """Tau as a number.

    Raises
    ------
    UsageError: no number from -1 to 1.
    """
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not -1.0 <= value <= 1.0:
        raise UsageError("--tau", repr(text), "a number from -1 to 1, or a file of calibrate-topic")
    return value


def plot_svg(calibration: Calibration) -> str:
    """ROC curve with the chosen point, and how the cosines spread, as SVG with text."""
    import io

    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    threshold = calibration.threshold
    with rc_context({"svg.hashsalt": "earwitness", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(9, 4), layout="constrained")
        curve, spread = figure.subplots(1, 2)
        false, true = calibration.roc()
        curve.step(false, true, where="post", color="#1f5fa8")
        curve.plot([0, 1], [0, 1], color="#999999", linewidth=0.8, linestyle="--")
        if threshold.sensitivity is not None and threshold.specificity is not None:
            curve.plot(1 - threshold.specificity, threshold.sensitivity, "o", color="#b3261e")
        curve.set(
            xlabel="other topics of the template that pass",
            ylabel="rewordings that pass",
            title=f"AUC {threshold.auc:.3f} ({threshold.auc_low:.3f} to {threshold.auc_high:.3f})",
        )
        bins = np.linspace(
            min(calibration.negatives + calibration.positives),
            max(calibration.negatives + calibration.positives),
            31,
        ).tolist()
        spread.hist(calibration.negatives, bins, alpha=0.55, color="#8a5a00", label="other topics")
        spread.hist(calibration.positives, bins, alpha=0.55, color="#1f5fa8", label="rewordings")
        spread.axvline(threshold.tau, color="#b3261e")
        spread.set(
            xlabel=f"cosine, {threshold.embedder}", ylabel="pairs", title=f"tau {threshold.tau:.4f}"
        )
        spread.legend(frameon=False)
        out = io.StringIO()
        FigureCanvasSVG(figure).print_svg(  # type: ignore[no-untyped-call]
            out, metadata={"Date": None, "Creator": "earwitness"}
        )
    return out.getvalue()
