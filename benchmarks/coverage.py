"""Do 95 % intervals hold the truth in 93 to 97 of 100 simulated corpora? ``python -m benchmarks coverage``.

A model's chance to be right differs from scene to scene (a normal effect on the logit, so that answers of one scene
go together) and from class to class. Each of 2,000 corpora is drawn anew; the truth is the expectation, by
quadrature. Intervals are those of the program: whole scenes are drawn, quantiles as in ``stats.intervals``. The seed
is fixed; the figures below a table are what it printed.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earwitness.stats.confusion import accuracy, by_cluster, macro_recall
from earwitness.stats.dprime import d_prime
from earwitness.stats.intervals import (
    cluster_bootstrap,
    percentile_interval,
    resample_sums,
)
from earwitness.stats.streams import stream
from earwitness.tasks.pairing import Paired

SEED = 20261129
CORPORA = 2_000
RESAMPLES = 1_000
LABELS = 4
LOGITS = np.array([1.6, 0.4, -1.5, 0.2])
"""Of being right, by class: recalls from a fifth to four fifths."""
SPREAD = 1.0
"""Standard deviation of the scene's effect on the logit."""
NO_LABEL = 0.1
"""Share of the wrong answers that are no label."""
WANTED = (0.93, 0.97)
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    scenes: int
    per_scene: int = 3


SETTINGS = (Setting(40), Setting(100))


def sigmoid(x: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-x)))


def expected(logits: FloatArray) -> FloatArray:
    """Mean over scenes of the chance to be right, by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    return np.asarray(
        (sigmoid(logits[..., None] + SPREAD * nodes) * weights).sum(axis=-1) / weights.sum()
    )


def draw_answers(
    setting: Setting, rng: np.random.Generator, loss: float = 0.0
) -> tuple[NDArray[np.int64], ...]:
    """Gold labels, answers of a model, answers of one worse by ``loss`` on the logit, and scenes."""
    n = setting.scenes * setting.per_scene
    scene = np.repeat(np.arange(setting.scenes), setting.per_scene)
    gold = rng.integers(0, LABELS, n)
    effect = rng.normal(0, SPREAD, setting.scenes)[scene]
    answers = []
    for shift in (0.0, loss):
        right = rng.random(n) < sigmoid(LOGITS[gold] + effect - shift)
        wrong = (gold + rng.integers(1, LABELS, n)) % LABELS
        wrong = np.where(rng.random(n) < NO_LABEL, -1, wrong)
        answers.append(np.where(right, gold, wrong))
    return gold, answers[0], answers[1], scene


def coverage(
    setting: Setting, corpora: int = CORPORA, resamples: int = RESAMPLES, figures: str = "all"
) -> dict[str, float]:
    """Share of corpora whose interval holds the truth, by figure."""
    recalls, worse = expected(LOGITS), expected(LOGITS - 0.8)
    truths = {
        "balanced accuracy": float(recalls.mean()),
        "accuracy": float(recalls.mean()),
        "difference of balanced accuracy": float((recalls - worse).mean()),
        "d'": float("nan"),
    }
    hit, false = expected(np.array([1.2])), expected(np.array([-1.2]))
    from scipy.special import ndtri

    truths["d'"] = float(ndtri(hit[0]) - ndtri(false[0]))
    wanted = list(truths) if figures == "all" else [figures]
    held = dict.fromkeys(wanted, 0)
    for k in range(corpora):
        rng = stream(SEED, "coverage", str(setting.scenes), str(k))
        gold, said, second, scene = draw_answers(setting, rng, 0.8)
        counts = by_cluster(gold, said, scene, LABELS, setting.scenes)
        draws = stream(SEED, "resamples", str(setting.scenes), str(k))
        for name in wanted:
            if name == "d'":
                low, high = _d_prime_interval(setting, rng, draws, resamples)
            elif name.startswith("difference"):
                low, high = _difference_interval(
                    gold, said, second, scene, setting, draws, resamples
                )
            else:
                metric = macro_recall if name == "balanced accuracy" else accuracy
                found = cluster_bootstrap(counts, metric, draws, resamples=resamples)
                low, high = float(found.low), float(found.high)
            held[name] += low <= truths[name] <= high
    return {name: n / corpora for name, n in held.items()}


def _difference_interval(
    gold: NDArray[np.int64],
    said: NDArray[np.int64],
    second: NDArray[np.int64],
    scene: NDArray[np.int64],
    setting: Setting,
    draws: np.random.Generator,
    resamples: int,
) -> tuple[float, float]:
    table = np.zeros((setting.scenes, LABELS, 3), dtype=np.int64)
    ones = np.ones_like(gold)
    np.add.at(table, (scene, gold), np.column_stack((said == gold, second == gold, ones)))
    both = Paired(table, tuple("abcd"), balanced=True)
    metric = both.difference()
    value = np.asarray(metric(both.flat.sum(axis=0)))
    low, high, _ = percentile_interval(
        metric(resample_sums(both.flat, resamples, draws)), value, setting.scenes
    )
    return float(low), float(high)


def _d_prime_interval(
    setting: Setting, rng: np.random.Generator, draws: np.random.Generator, resamples: int
) -> tuple[float, float]:
    shape = (setting.scenes, setting.per_scene)
    effect = rng.normal(0, SPREAD, (setting.scenes, 1))
    yes = (rng.random(shape) < sigmoid(1.2 + effect)).sum(axis=1)
    alarms = (rng.random(shape) < sigmoid(-1.2 + effect)).sum(axis=1)
    n = np.full(setting.scenes, setting.per_scene)
    rows = np.column_stack((yes, n, alarms, n))

    def metric(counts: FloatArray) -> FloatArray:
        return np.asarray(d_prime(*(counts[..., k] for k in range(4))).d_prime)

    value = metric(rows.sum(axis=0).astype(np.float64))
    low, high, _ = percentile_interval(
        metric(resample_sums(rows, resamples, draws)), value, setting.scenes
    )
    return float(low), float(high)


def main() -> None:
    start = time.process_time()
    print(
        f"coverage of 95 % intervals over {CORPORA:,} corpora, {RESAMPLES:,} resamples, seed {SEED}"
    )
    bad = []
    for setting in SETTINGS:
        for name, share in coverage(setting).items():
            ok = WANTED[0] <= share <= WANTED[1]
            print(
                f"  {setting.scenes:4d} scenes x {setting.per_scene}  {name:33s} {100 * share:5.1f} %  "
                f"{'ok' if ok else 'OUTSIDE 93 to 97'}",
                flush=True,
            )
            if not ok:
                bad.append((setting, name))
    print(f"  {time.process_time() - start:.0f} CPU-s")
    if bad:
        sys.exit(1)


if __name__ == "__main__":
    main()
