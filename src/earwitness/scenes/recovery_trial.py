"""How well a judge reads reactions in talk that is not of any corpus: its score on labelled snippets.

Conventions
-----------
* Every labelled sound counts. One the judge gave no verdict on counts as wrong for its class and is shown in a
  column of its own, never left out.
* Intervals draw whole snippets: sounds of one snippet are not independent (``stats.intervals.cluster_bootstrap``).
* Chance is 25 %: balanced accuracy is the mean of the four recalls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from earwitness.scenes.bank import Bank
from earwitness.scenes.bank_records import REACTIONS
from earwitness.scenes.recovery import Judge, OnDone, Opinion, case_of_snippet, judge_identity
from earwitness.scenes.snippets import Snippet, SnippetSet
from earwitness.stats.confusion import NO_LABEL, balanced_accuracy, by_cluster, precision, recall
from earwitness.stats.intervals import RESAMPLES, Bootstrap, cluster_bootstrap, wilson
from earwitness.stats.streams import stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED = 0
CHANCE = 1 / len(REACTIONS)
PLAIN = "plain"
"""Snippets written for no particular difficulty."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share with its 95 % interval; ``of`` is how many there were."""

    value: float
    low: float
    high: float
    of: int


@dataclass(frozen=True)
class Trial:
    """A judge's score.

    Attributes
    ----------
    judge: what its verdicts depend on.
    snippets_hash: of the snippets' content.
    balanced_accuracy: over all labelled sounds.
    single: the same over snippets with one sound alone.
    recall, precision: by reaction; a precision nobody was given is absent.
    hard: share right by kind of difficulty, ``plain`` for none.
    confusion: rows planned, columns read and last without verdict, in the order of the reactions.
    failed: why there is no verdict, by snippet.
    """

    judge: Mapping[str, Any]
    snippets_hash: str
    snippets: int
    sounds: int
    balanced_accuracy: Share
    single: Share
    recall: Mapping[str, Share]
    precision: Mapping[str, Share]
    hard: Mapping[str, Share]
    confusion: tuple[tuple[int, ...], ...]
    failed: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {**asdict(self), "chance": CHANCE, "reactions": list(REACTIONS)}


async def try_judge(
    judge: Judge, snippets: SnippetSet, bank: Bank, on_done: OnDone | None = None
) -> Trial:
    """Put every snippet to a judge and score what it reads.

    Parameters
    ----------
    bank: words what is heard, as in transcripts of a corpus.
    """
    cases = [case_of_snippet(snippet, bank) for snippet in snippets.snippets]
    opinions = await judge.judge(cases, on_done)
    return score(judge_identity(judge), snippets, opinions)


def score(identity: Mapping[str, Any], snippets: SnippetSet, opinions: Sequence[Opinion]) -> Trial:
    """Score opinions, one for every snippet in order."""
    gold, read, cluster, kinds, single = _codes(snippets.snippets, opinions)
    count = len(snippets.snippets)
    counts = by_cluster(gold, read, cluster, len(REACTIONS), count)
    total = counts.sum(axis=0)
    recalls = cluster_bootstrap(counts, recall, stream(SEED, "judge-test", "recall"))
    precisions = cluster_bootstrap(counts, precision, stream(SEED, "judge-test", "precision"))
    alone = counts[sorted({int(c) for c in cluster[single]})]
    hard: dict[str, Share] = {}
    for kind in dict.fromkeys(kinds.tolist()):
        chosen = kinds == kind
        right, of = int((gold == read)[chosen].sum()), int(chosen.sum())
        hard[kind] = Share(right / of, *wilson(right, of), of)
    return Trial(
        judge=identity,
        snippets_hash=snippets.hash,
        snippets=count,
        sounds=len(gold),
        balanced_accuracy=_balanced(counts, "all"),
        single=_balanced(alone, "single"),
        recall=_by_reaction(recalls, total.sum(axis=1)),
        precision=_by_reaction(precisions, total[:, : len(REACTIONS)].sum(axis=0)),
        hard=hard,
        confusion=tuple(tuple(map(int, row)) for row in total),
        failed={
            snippet.id: opinion.failed or ""
            for snippet, opinion in zip(snippets.snippets, opinions, strict=True)
            if opinion.verdict is None
        },
    )


def _codes(
    snippets: Sequence[Snippet], opinions: Sequence[Opinion]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Codes of gold and read label, number of the snippet, kind and whether the sound is alone, by sound."""
    rows = []
    for number, (snippet, opinion) in enumerate(zip(snippets, opinions, strict=True)):
        read = opinion.verdict.reactions if opinion.verdict else {}
        for event in snippet.events:
            label = read.get(event)
            rows.append(
                (
                    REACTIONS.index(snippet.reactions[event]),
                    NO_LABEL if label is None else REACTIONS.index(label),
                    number,
                    snippet.hard or PLAIN,
                    len(snippet.events) == 1,
                )
            )
    gold, read_codes, cluster, kinds, single = zip(*rows, strict=True)
    return (
        np.array(gold),
        np.array(read_codes),
        np.array(cluster),
        np.array(kinds),
        np.array(single),
    )


def _by_reaction(found: Bootstrap, of: NDArray[Any]) -> dict[str, Share]:
    return {
        name: Share(float(found.value[n]), float(found.low[n]), float(found.high[n]), int(of[n]))
        for n, name in enumerate(REACTIONS)
        if of[n]
    }


def _balanced(counts: NDArray[Any], name: str) -> Share:
    if not counts.sum():
        return Share(float("nan"), float("nan"), float("nan"), 0)
    found = cluster_bootstrap(
        counts, balanced_accuracy, stream(SEED, "judge-test", name), resamples=RESAMPLES
    )
    return Share(float(found.value), float(found.low), float(found.high), int(counts.sum()))
