"""Fitting the reader's weights on labelled snippets: three logistic regressions with a ridge.

Run by ``python -m earwitness.scenes.reader.fitting SNIPPETS`` after a change of features or word lists; it
prints a new ``weights.yaml``. The snippets must be of the reader's own (``tests/golden/reader_dev_snippets.yaml``):
the test set of judges is there to measure, not to fit.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.reader.features import GROUPS, EventFeatures, Measurer
from earwitness.scenes.reader.lexicon import load_lexicon
from earwitness.scenes.reader.transcript import read
from earwitness.scenes.snippets import SnippetSet, load_snippets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from earwitness.models.protocols import Embedder

RIDGE = 1 / 0.3
STEPS = 50
DIGITS = 4
QUESTIONS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "reference": (("pivot", "verbal"), ("behavioral", "ambient")),
    "takeover": (("pivot",), ("verbal",)),
    "disturbed": (("behavioral",), ("ambient",)),
}
"""Group of features -> reactions that answer its question with yes, and with no."""


def logistic(
    rows: NDArray[np.float64], yes: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], float]:
    """Weights and offset of a logistic regression, both answers counting the same in all.

    Parameters
    ----------
    rows: (n, k) features; scaled here to unit variance for the ridge, weights are returned for them as given.
    yes: (n,) answers.

    Notes
    -----
    Newton's method on the penalised likelihood; S. le Cessie and J. C. van Houwelingen, "Ridge estimators in
    logistic regression", Applied Statistics 41 (1992).
    """
    n, k = rows.shape
    scale = rows.std(axis=0)
    scale[scale == 0] = 1.0
    design = np.column_stack([rows / scale, np.ones(n)])
    weight = np.where(yes, n / (2 * yes.sum()), n / (2 * (~yes).sum()))
    penalty = np.diag([RIDGE] * k + [0.0])
    beta = np.zeros(k + 1)
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-design @ beta))
        gradient = design.T @ (weight * (yes - p)) - penalty @ beta
        hessian = (design * (weight * p * (1 - p))[:, None]).T @ design + penalty
        step = np.linalg.solve(hessian, gradient)
        beta = beta + step
        if float(np.abs(step).max()) < 1e-10:
            break
    return beta[:-1] / scale, float(beta[-1])


async def measured(
    snippets: SnippetSet, bank: Bank, embedder: Embedder
) -> list[tuple[str, str, EventFeatures]]:
    """``(snippet id, label, features)`` of every sound."""
    measurer = Measurer(bank, load_lexicon(bank.language))
    talks = [read(snippet.transcript(bank)) for snippet in snippets.snippets]
    texts = list(
        dict.fromkeys([*measurer.anchors, *(t for talk in talks for t in measurer.texts(talk))])
    )
    vectors = dict(zip(texts, await embedder.embed(texts), strict=True))
    return [
        (snippet.id, snippet.reactions[found.event], found)
        for snippet, talk in zip(snippets.snippets, talks, strict=True)
        for found in measurer.measure(talk, vectors)
    ]


def fit(cases: Sequence[tuple[str, EventFeatures]]) -> dict[str, dict[str, float]]:
    """Weights by group and feature, ``offset`` among them, from ``(label, features)`` of each sound."""
    found = {}
    for group, (yes, no) in QUESTIONS.items():
        chosen = [(label in yes, getattr(f, group)) for label, f in cases if label in yes + no]
        rows = np.array([[values[name] for name in GROUPS[group]] for _, values in chosen])
        weights, offset = logistic(rows, np.array([answer for answer, _ in chosen]))
        named = dict(zip(GROUPS[group], map(float, weights), strict=True))
        found[group] = {
            name: round(value, DIGITS) for name, value in {"offset": offset, **named}.items()
        }
    return found


async def fitted(path: Path) -> dict[str, Any]:
    """The content of ``weights.yaml`` for a file of snippets, default bank, packaged embedder."""
    from earwitness.models.embedders.hashes import embedder_hash
    from earwitness.models.embedders.static import StaticEmbedder

    snippets = load_snippets(path)
    embedder = StaticEmbedder()
    cases = await measured(snippets, load_bank(), embedder)
    return {
        "fitted_on": {"file": path.name, "hash": snippets.hash, "sounds": len(cases)},
        "embedder": embedder.name,
        "embedder_hash": embedder_hash(embedder),
        **fit([(label, features) for _, label, features in cases]),
    }


if __name__ == "__main__":
    import yaml

    sys.stdout.write(
        "# Made by: python -m earwitness.scenes.reader.fitting tests/golden/reader_dev_snippets.yaml\n"
    )
    yaml.safe_dump(asyncio.run(fitted(Path(sys.argv[1]))), sys.stdout, sort_keys=False)
