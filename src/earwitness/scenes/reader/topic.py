"""What a talk is about, in its own words: the sentences nearest to the whole, with what a sound brought in left out.

Only words that carry meaning are compared; otherwise the chat that any talk is full of would be nearest to it.
Sentences of the first turns count more, since what a talk is about is said when it begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from earwitness.scenes.bank_records import Reaction
from earwitness.scenes.reader.lexicon import Lexicon
from earwitness.scenes.reader.transcript import Read, Sentence

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vectors = Mapping[str, NDArray[np.float32]]

SENTENCES = 4
MAX_WORDS = 80
FEWEST = 2
"""Words with meaning below which a sentence is no candidate."""
EARLY_TURNS = 4
EARLY = 1.5
LENGTH = 0.02
"""What a sentence gains by the root of its words with meaning: of two as near, the longer says more."""


def content(words: Iterable[str], lexicon: Lexicon) -> str:
    """The words that say what somebody talks about, as one text."""
    return " ".join(word for word in words if word not in lexicon.common)


def subject_sentences(talk: Read, reactions: Mapping[str, Reaction]) -> list[tuple[int, Sentence]]:
    """Sentences about the subject with their turns: none after a sound that took over, none that remarks on one."""
    stop = min(
        (at for event, at in talk.events if reactions.get(event) == "pivot"),
        default=len(talk.turns),
    )
    remarked = {at for event, at in talk.events if reactions.get(event) == "verbal"}
    return [
        (n, sentence)
        for n, turn in enumerate(talk.turns[:stop])
        # In the turn that remarks on a sound, the remark comes first as a rule.
        for sentence in (turn.sentences[1:] if n in remarked else turn.sentences)
    ]


def topic_of(
    talk: Read, reactions: Mapping[str, Reaction], lexicon: Lexicon, vectors: Vectors
) -> str:
    """A topic of at most 80 words: the four most central sentences, in their order.

    Parameters
    ----------
    vectors: of the :func:`content` of every sentence, of unit length.
    """
    every = [(n, s) for n, turn in enumerate(talk.turns) for s in turn.sentences]
    sentences = subject_sentences(talk, reactions) or every
    texts = [content(sentence.words, lexicon) for _, sentence in sentences]
    kept = [n for n, text in enumerate(texts) if len(text.split()) >= FEWEST]
    kept = kept or list(range(len(sentences)))
    if not kept:
        return ""
    rows = np.stack([vectors[texts[n]] for n in kept]).astype(np.float64)
    lengths = np.sqrt([max(len(texts[n].split()), 1) for n in kept])
    early = np.array([EARLY if sentences[n][0] < EARLY_TURNS else 1.0 for n in kept])
    centre = (rows * (lengths * early)[:, None]).sum(axis=0)
    near = rows @ centre / (np.linalg.norm(centre) or 1.0)
    score = (near + LENGTH * lengths) * np.sqrt(early)
    chosen = sorted(np.argsort(-score, kind="stable")[:SENTENCES].tolist())
    said = " ".join(sentences[kept[n]][1].plain for n in chosen)
    return " ".join(said.split()[:MAX_WORDS])
