"""``offline/reader`` as a judge: no language model, no network; a table of word vectors and word lists."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from earwitness.errors import DataError
from earwitness.runs.items import digest
from earwitness.scenes.bank import Bank
from earwitness.scenes.bank_records import REACTIONS, Reaction
from earwitness.scenes.reader.features import GROUPS, EventFeatures, Measurer
from earwitness.scenes.reader.lexicon import load_lexicon
from earwitness.scenes.reader.topic import topic_of
from earwitness.scenes.reader.transcript import read
from earwitness.scenes.recovery import Case, OnDone, Opinion, Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from earwitness.models.protocols import Embedder

NAME = "offline/reader"
FAMILY = "reader"
VERSION = 2
"""Raised with every change of what is measured, so that no stored verdict of another state is used again."""
WEIGHTS = Path(__file__).parent / "weights.yaml"
CHUNK = 32
"""Cases whose texts are embedded together."""


@lru_cache(maxsize=1)
def load_weights() -> Mapping[str, Any]:
    """Weights by group and feature, and what they were fitted on.

    Raises
    ------
    DataError: the file does not fit the features.
    """
    content: dict[str, Any] = yaml.safe_load(WEIGHTS.read_text(encoding="utf-8"))
    for group, names in GROUPS.items():
        if set(content.get(group, ())) != {"offset", *names}:
            raise DataError(
                f"{WEIGHTS}: {group}", "weights of other features", f"offset, {', '.join(names)}"
            )
    return content


def probabilities(found: EventFeatures) -> dict[Reaction, float]:
    """How probable the reader finds each reaction; they sum to one.

    Three questions one after the other: referred to? if so, taken over? if not, disturbed?
    """
    referred = _answer("reference", found.reference)
    over = _answer("takeover", found.takeover)
    disturbed = _answer("disturbed", found.disturbed)
    return {
        "pivot": referred * over,
        "verbal": referred * (1 - over),
        "behavioral": (1 - referred) * disturbed,
        "ambient": (1 - referred) * (1 - disturbed),
    }


def _answer(group: str, values: Mapping[str, float]) -> float:
    weights = load_weights()[group]
    total = weights["offset"] + sum(weights[name] * value for name, value in values.items())
    return 1 / (1 + math.exp(-max(min(total, 30.0), -30.0)))


class OfflineReader:
    """The embedded default judge.

    Parameters
    ----------
    bank: whose sounds' names it knows, and whose language decides the word lists.
    embedder: the one its weights were fitted with, ``local/wordllama``.

    Raises
    ------
    UsageError: there are no word lists for the bank's language.
    DataError: the embedder is another one.
    """

    def __init__(self, bank: Bank, embedder: Embedder) -> None:
        from earwitness.models.embedders.hashes import embedder_hash

        self._lexicon = load_lexicon(bank.language)
        self._bank = bank
        self._embedder = embedder
        self._embedder_hash = embedder_hash(embedder)
        wanted = load_weights()["embedder_hash"]
        if self._embedder_hash != wanted:
            raise DataError(
                f"judge {NAME}",
                f"embedder {embedder.name} with hash {self._embedder_hash[:12]}",
                f"{load_weights()['embedder']} with hash {wanted[:12]}, which its weights belong to",
                'Install the versions of requirements.lock: pip install "earwitness[local]".',
            )
        self._measurer = Measurer(bank, self._lexicon)
        self._vectors: dict[str, NDArray[np.float32]] = {}

    @property
    def name(self) -> str:
        """``offline/reader``."""
        return NAME

    @property
    def family(self) -> str | None:
        """It is a family of its own."""
        return FAMILY

    @property
    def settings(self) -> Mapping[str, Any]:
        """Version, hashes of weights and word lists, the bank whose names it knows, the embedder."""
        return {
            "version": VERSION,
            "weights": digest(dict(load_weights())),
            "lexicon": digest(self._lexicon.content),
            "bank": self._bank.hash,
            "embedder": self._embedder_hash,
        }

    @property
    def prompts(self) -> Mapping[str, str]:
        """None."""
        return {}

    async def judge(self, cases: Sequence[Case], on_done: OnDone | None = None) -> list[Opinion]:
        """One opinion for every case."""
        opinions: list[Opinion] = []
        for start in range(0, len(cases), CHUNK):
            chunk = cases[start : start + CHUNK]
            talks = [read(case.transcript) for case in chunk]
            texts = [text for talk in talks for text in self._measurer.texts(talk)]
            await self._embed([*self._measurer.anchors, *texts])
            for case, talk in zip(chunk, talks, strict=True):
                found = {f.event: f for f in self._measurer.measure(talk, self._vectors)}
                missing = [event for event in case.events if event not in found]
                if missing:
                    opinions.append(Opinion(failed=f"no mark of {missing[0]} in the transcript"))
                    continue
                reactions = {event: most_probable(found[event]) for event in case.events}
                topic = topic_of(talk, reactions, self._lexicon, self._vectors)
                opinions.append(Opinion(Verdict(topic, reactions)))
            for text in set(texts) - set(self._measurer.anchors):
                self._vectors.pop(text, None)
            if on_done:
                on_done(len(opinions))
        return opinions

    async def _embed(self, texts: Sequence[str]) -> None:
        todo = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if todo:
            rows = await self._embedder.embed(todo)
            self._vectors.update(zip(todo, rows, strict=True))

    async def aclose(self) -> None:
        """Close the embedder."""
        await self._embedder.aclose()


def most_probable(found: EventFeatures) -> Reaction:
    """The reaction the reader finds most probable; of equals the first in the order of every table."""
    chances = probabilities(found)
    return max(REACTIONS, key=lambda reaction: chances[reaction])
