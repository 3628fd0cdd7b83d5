"""Records between parsing, scoring and reporting."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from earwitness.runs.outcomes import Outcome, OutcomeKind


@dataclass(frozen=True, slots=True)
class Decision:
    """One item with its truth and its outcome.

    ``cluster`` is what intervals resample (the speaker, the scene). ``groups`` are the attributes results
    may be split by (speaker sex, language). ``reply`` is the raw text, or scores as JSON.
    """

    item_id: str
    gold: str
    outcome: Outcome
    cluster: str
    condition: str = "audio"
    groups: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    reply: str | None = None
    latency_s: float | None = None
    cost_usd: float | None = None
    audio_path: Path | None = None


@dataclass(frozen=True, slots=True)
class System:
    """One row of a leaderboard: a model with its decisions on one task and condition.

    ``origin`` is ``run``, ``predictions`` (somebody's table) or ``people``. ``card`` is the run card as
    read, empty for predictions. ``synthetic`` marks plumbing.
    """

    name: str
    decisions: tuple[Decision, ...]
    origin: str = "run"
    card: Mapping[str, object] = field(default_factory=dict)
    accept_failed: bool = False


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95 % interval; ``method`` names the interval (``wilson``, ``bootstrap by speaker (16)``).

    ``numerator`` and ``denominator`` are given where the figure is a count over a count. ``value`` is NaN
    where nothing was counted (a precision without predictions).
    """

    value: float
    low: float
    high: float
    method: str
    numerator: int | None = None
    denominator: int | None = None


@dataclass(frozen=True, slots=True)
class ClassScores:
    label: str
    support: int
    predicted: int
    correct: int
    precision: Estimate
    recall: Estimate
    f1: Estimate


@dataclass(frozen=True, slots=True)
class Confusion:
    """``counts[i][j]``: items of ``rows[i]`` answered as ``columns[j]``; the last column is ``no label``."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class LabelBias:
    """How much one label (``neutral``) takes of the outputs and of the errors.

    ``outputs`` counts answered items, ``errors`` all items that are not right.
    """

    label: str
    predicted: int
    outputs: int
    wrong: int
    errors: int

    @property
    def share_of_outputs(self) -> float:
        return self.predicted / self.outputs if self.outputs else float("nan")

    @property
    def share_of_errors(self) -> float:
        return self.wrong / self.errors if self.errors else float("nan")


@dataclass(frozen=True, slots=True)
class ValenceScores:
    """Coarse direction: accuracy over items with a valence, and the share of each valence in all outputs."""

    accuracy: Estimate
    output_shares: Mapping[str, float]
    leaning: str


@dataclass(frozen=True, slots=True)
class Calibration:
    """Expected calibration error with its reliability bins and the risk-coverage curve.

    ``bins`` rows are (mean confidence, accuracy, count); ``risk_coverage`` rows are (coverage of all items,
    error rate); ``aurc`` is the mean error rate over all coverages of the ``n`` answers with a confidence.
    """

    ece: float
    bins: tuple[tuple[float, float, int], ...]
    risk_coverage: tuple[tuple[float, float], ...]
    n: int
    aurc: float = math.nan


@dataclass(frozen=True, slots=True)
class Scores:
    """Everything said of one system (or of several pooled) on a closed-label task.

    ``bounds`` are right/N and (right + failed)/N; they differ exactly while the run is incomplete.
    """

    name: str
    n: int
    right: int
    outcomes: Mapping[OutcomeKind, int]
    complete: bool
    bounds: tuple[float, float]
    accuracy: Estimate
    accuracy_clustered: Estimate
    macro_recall: Estimate
    per_class: tuple[ClassScores, ...]
    confusion: Confusion
    neutral: LabelBias | None
    valence: ValenceScores | None
    by_group: Mapping[str, Mapping[str, Estimate]]
    calibration: Calibration | None
    prior_weighted: Estimate | None
    rules: Mapping[str, int]
    latency_median_s: float | None
    latency_p95_s: float | None
    cost_usd: float | None
    n_clusters: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems on the items both have: difference ``a - b`` in accuracy, by cluster.

    ``p_sign_flip`` is the primary test, ``p_holm`` is it after Holm over ``family``; ``p_mcnemar`` treats
    items as independent and is labelled so.
    """

    a: str
    b: str
    n_items: int
    n_clusters: int
    difference: Estimate
    p_sign_flip: float
    p_holm: float
    p_mcnemar: float
    family: str


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Systems on one task and condition, best first, with their pool and every paired comparison."""

    task: str
    condition: str
    labels: tuple[str, ...]
    systems: tuple[Scores, ...]
    pooled: Scores | None
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...] = ()
