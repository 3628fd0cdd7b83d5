"""D8: what no two dialogues of a corpus may share.

Two dialogues are near-duplicates when more than a third of the sentences of the one with fewer are in the
other, or when the Jaccard index of their runs of four words exceeds 0.5. Runs are hashed (CRC-32); those whose
hash is a multiple of ``SAMPLING`` stand in an inverted index. Dialogues that share a sixth of the number
expected there at the threshold are compared on all runs. Scenes of 300 words above the threshold share at least
200 runs, 25 of them expected in the index; the chance of seeing fewer than 4 is below 1e-7.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earwitness.scenes.dialogue_records import Dialogue
from earwitness.scenes.rules.limits import SHORTEST_SENTENCE, default_limits
from earwitness.scenes.rules.registry import Violation, shown
from earwitness.scenes.rules.sentences import sentences_in, words_in
from earwitness.scenes.tags import strip_tags

SHINGLE_WORDS = 4
SAMPLING = 8
SHARED_SENTENCES = "D801-shared-sentences"
NEAR_DUPLICATE = "D802-near-duplicate"
CORPUS_RULES: tuple[tuple[str, str], ...] = (
    (SHARED_SENTENCES, "No two dialogues share more than a third of their sentences."),
    (
        NEAR_DUPLICATE,
        "No two dialogues share half of their runs of four words (Jaccard index above 0.5).",
    ),
    ("D803-scenario-twice", "No scenario has two dialogues in one file."),
)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is kept of a dialogue: hashes of its sentences and of its runs of words, sorted."""

    sentences: dict[int, str]
    shingles: NDArray[np.uint32]

    @property
    def sampled(self) -> list[int]:
        return [int(h) for h in self.shingles[self.shingles % SAMPLING == 0]]


class NearDuplicates:
    """Finds dialogues that share too much with one seen before.

    Adding a scenario again replaces its earlier text, so that a rewriting is never compared with its draft.
    Memory is about 12 kB a dialogue.

    Parameters
    ----------
    max_shared_sentences: share of the sentences of the one with fewer, 0 to 1.
    max_shared_shingles: Jaccard index of the runs of four words, 0 to 1.
    """

    def __init__(
        self, *, max_shared_sentences: float | None = None, max_shared_shingles: float | None = None
    ) -> None:
        limits = default_limits()
        self._sentences_limit = (
            limits.max_shared_sentences if max_shared_sentences is None else max_shared_sentences
        )
        self._shingles_limit = (
            limits.max_shared_shingles if max_shared_shingles is None else max_shared_shingles
        )
        self._kept: dict[str, _Kept] = {}
        self._by_sentence: defaultdict[int, dict[str, None]] = defaultdict(dict)
        self._by_shingle: defaultdict[int, dict[str, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, scenario: object) -> bool:
        return scenario in self._kept

    def find(self, dialogue: Dialogue) -> Violation | None:
        """Return what a dialogue shares too much of, and with which earlier one; None if nothing."""
        return self._find(dialogue.scenario, _taken(dialogue))

    def add(self, dialogue: Dialogue) -> Violation | None:
        """Take a dialogue in unless it shares too much with one that is there; then say with which.

        Examples
        --------
        >>> from earwitness.scenes.dialogue_records import Utterance
        >>> talk = lambda name: Dialogue(name, "", (Utterance("A", "The boiler broke again on Sunday."),))
        >>> seen = NearDuplicates()
        >>> seen.add(talk("s1")) is None
        True
        >>> seen.add(talk("s2")).code
        'D801-shared-sentences'
        """
        taken = _taken(dialogue)
        violation = self._find(dialogue.scenario, taken)
        if violation is None:
            self.discard(dialogue.scenario)
            self._kept[dialogue.scenario] = taken
            for sentence in taken.sentences:
                self._by_sentence[sentence][dialogue.scenario] = None
            for shingle in taken.sampled:
                self._by_shingle[shingle][dialogue.scenario] = None
        return violation

    def discard(self, scenario: str) -> None:
        """Forget the dialogue of a scenario, if it is there."""
        taken = self._kept.pop(scenario, None)
        if taken is None:
            return
        for sentence in taken.sentences:
            self._by_sentence[sentence].pop(scenario, None)
        for shingle in taken.sampled:
            self._by_shingle[shingle].pop(scenario, None)

    def _find(self, scenario: str, taken: _Kept) -> Violation | None:
        return self._shared_sentences(scenario, taken) or self._shared_shingles(scenario, taken)

    def _shared_sentences(self, scenario: str, taken: _Kept) -> Violation | None:
        shared = Counter(
            other
            for s in taken.sentences
            for other in self._by_sentence.get(s, ())
            if other != scenario
        )
        worst: tuple[float, str] | None = None
        for other, count in shared.items():
            share = count / min(len(taken.sentences), len(self._kept[other].sentences))
            if share > self._sentences_limit and (worst is None or share > worst[0]):
                worst = (share, other)
        if worst is None:
            return None
        share, other = worst
        example = next(t for s, t in taken.sentences.items() if s in self._kept[other].sentences)
        return Violation(
            SHARED_SENTENCES,
            f"{share:.0%} of its sentences are also in the dialogue of scenario {other}, such as "
            f"{shown(example)}; at most {self._sentences_limit:.0%} may be.",
            "dialogue",
        )

    def _shared_shingles(self, scenario: str, taken: _Kept) -> Violation | None:
        sampled = taken.sampled
        shared = Counter(
            other for s in sampled for other in self._by_shingle.get(s, ()) if other != scenario
        )
        worst: tuple[float, str] | None = None
        size = len(taken.shingles)
        for other, count in shared.items():
            there = self._kept[other].shingles
            # At the limit J, runs shared are J / (1 + J) of both numbers, one in SAMPLING of them counted.
            both = self._shingles_limit / (1 + self._shingles_limit) * (size + len(there))
            if count < int(both / SAMPLING / 6):
                continue
            both = len(np.intersect1d(taken.shingles, there, assume_unique=True))
            index = both / (size + len(there) - both)
            if index > self._shingles_limit and (worst is None or index > worst[0]):
                worst = (index, other)
        if worst is None:
            return None
        return Violation(
            NEAR_DUPLICATE,
            f"Its runs of {SHINGLE_WORDS} words are nearly those of the dialogue of scenario {worst[1]} "
            f"(Jaccard index {worst[0]:.2f}, at most {self._shingles_limit:g}).",
            "dialogue",
        )


def _taken(dialogue: Dialogue) -> _Kept:
    sentences: dict[int, str] = {}
    words: list[str] = []
    for utterance in dialogue.utterances:
        plain = strip_tags(utterance.text)
        for start, end in sentences_in(plain):
            said = [word.text for word in words_in(plain[start:end])]
            words += said
            if len(said) >= SHORTEST_SENTENCE:
                # 64 bits, because there are millions of pairs and one false match counts.
                text = " ".join(said)
                key = zlib.crc32(text.encode()) << 32 | zlib.crc32(text[::-1].encode())
                sentences[key] = plain[start:end]
    runs = {
        zlib.crc32(" ".join(words[n : n + SHINGLE_WORDS]).encode())
        for n in range(len(words) - SHINGLE_WORDS + 1)
    }
    return _Kept(sentences, np.array(sorted(runs), dtype=np.uint32))
