"""What a talk is about, in its own words: the sentences nearest to the whole, with what a sound brought in left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from earwitness.scenes.bank_records import Reaction
from earwitness.scenes.reader.transcript import Read, Sentence

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vectors = Mapping[str, NDArray[np.float32]]

SENTENCES = 3
MAX_WORDS = 60
MIN_SENTENCE = 4
"""Words below which a sentence says nothing of the topic."""


def subject_sentences(talk: Read, reactions: Mapping[str, Reaction]) -> list[Sentence]:
    """Sentences about the subject: none after a sound that took the talk over, none that remarks on a sound."""
    stop = min(
        (at for event, at in talk.events if reactions.get(event) == "pivot"),
        default=len(talk.turns),
    )
    remarked = {at for event, at in talk.events if reactions.get(event) == "verbal"}
    kept: list[Sentence] = []
    for n, turn in enumerate(talk.turns[:stop]):
        # In the turn that remarks on a sound, the remark comes first as a rule.
        kept += turn.sentences[1:] if n in remarked else turn.sentences
    return kept


def topic_of(talk: Read, reactions: Mapping[str, Reaction], vectors: Vectors) -> str:
    """A topic of at most 60 words: the most central sentences, in their order.

    Parameters
    ----------
    vectors: of every sentence of the transcript, of unit length.
    """
    sentences = subject_sentences(talk, reactions) or [s for t in talk.turns for s in t.sentences]
    usable = [s for s in sentences if len(s.words) >= MIN_SENTENCE] or sentences
    if not usable:
        return ""
    rows = np.stack([vectors[s.plain] for s in usable])
    lengths = np.sqrt([float(len(s.words)) for s in usable])
    centre = (rows * lengths[:, None]).sum(axis=0)
    # Longer sentences say more; their likeness to the whole is also the safer measure.
    score = (rows @ centre) / (np.linalg.norm(centre) or 1.0) + 0.02 * lengths
    chosen = sorted(np.argsort(-score, kind="stable")[:SENTENCES].tolist())
    return _within([usable[n] for n in chosen])


def _within(sentences: Sequence[Sentence]) -> str:
    words = " ".join(sentence.plain for sentence in sentences).split()
    return " ".join(words[:MAX_WORDS])
