"""Cluster interval of 10,000 resamples over 1,000 scenes, beside a loop that recounts the items.

Run by ``make bench`` or ``python -m benchmarks.bootstrap``. Figures are CPU seconds, the best of several.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from earwitness.stats.confusion import by_cluster, f1, macro_recall
from earwitness.stats.intervals import cluster_bootstrap
from earwitness.stats.streams import stream

SCENES = 1_000
ITEMS_PER_SCENE = 4
LABELS = 4
RESAMPLES = 10_000
LOOP_RESAMPLES = 200
"""The loop is timed on fewer resamples and scaled, or it would take most of a minute."""
BUDGET_S = 0.6


def best_cpu_s(work: Callable[[], object], times: int) -> float:
    """Least CPU time of several runs, of all threads."""
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    rng = stream(0, "benchmark")
    n = SCENES * ITEMS_PER_SCENE
    gold = rng.integers(0, LABELS, n)
    predicted = np.where(rng.random(n) < 0.5, gold, rng.integers(-1, LABELS, n))
    scene = np.repeat(np.arange(SCENES), ITEMS_PER_SCENE)

    def vectorised() -> object:
        counts = by_cluster(gold, predicted, scene, LABELS, SCENES)
        return cluster_bootstrap(counts, macro_recall, stream(0, "b"), resamples=RESAMPLES)

    def several_figures() -> object:
        counts = by_cluster(gold, predicted, scene, LABELS, SCENES)
        return cluster_bootstrap(counts, f1, stream(0, "b"), resamples=RESAMPLES)

    def loop() -> object:
        drawn = np.random.default_rng(0)
        items = [np.flatnonzero(scene == k) for k in range(SCENES)]
        found = []
        for _ in range(LOOP_RESAMPLES):
            chosen = np.concatenate([items[k] for k in drawn.integers(0, SCENES, SCENES)])
            g, p = gold[chosen], predicted[chosen]
            found.append(np.mean([np.mean(p[g == label] == label) for label in range(LABELS)]))
        return np.quantile(found, [0.025, 0.975])

    fast = best_cpu_s(vectorised, 5)
    classes = best_cpu_s(several_figures, 5)
    slow = best_cpu_s(loop, 2) * RESAMPLES / LOOP_RESAMPLES
    print(f"cluster bootstrap, {RESAMPLES:,} resamples over {SCENES:,} scenes (CPU-s, best of 5)")
    print(
        f"  macro recall        {fast:7.3f}   budget {BUDGET_S}  {'ok' if fast < BUDGET_S else 'OVER'}"
    )
    print(f"  F1 of every class   {classes:7.3f}")
    print(f"  loop over resamples {slow:7.3f}   {slow / fast:.0f} times as long (scaled)")


if __name__ == "__main__":
    main()
