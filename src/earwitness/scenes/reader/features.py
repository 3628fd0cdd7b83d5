"""What the reader measures for each sound. Three questions, three groups of features.

*Is the sound referred to?* Words of sounds and of hearing, pointing, an outcry, newness, likeness to remarks on
something heard. *If so, does it take the talk over?* How long such words go on, and whether the talk comes back to
what it was about. *If not, is the first sentence disturbed?* See :mod:`earwitness.scenes.reader.disturbance`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from earwitness.scenes.bank import Bank
from earwitness.scenes.bank_names import Namer
from earwitness.scenes.reader.disturbance import disturbance, first_sentence, mean_elsewhere
from earwitness.scenes.reader.lexicon import Lexicon
from earwitness.scenes.reader.topic import content
from earwitness.scenes.reader.transcript import Read, Sentence, Turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vectors = Mapping[str, NDArray[np.float32]]

STEM = 6
"""Letters of a word that are compared."""
LATE = 6
"""Turns after a sound in which a late mention is looked for."""
LIKE = 1.5
"""What likeness to remarks and to names of sounds counts beside words."""
ENOUGH = 5
"""Turns after a remark that are looked at even where the next sound comes before."""
CALM_AFTER = 3
"""Turns after an earlier sound before the talk counts as its own again."""
SLIGHT = 0.3
"""Evidence from which a turn may be about the sound."""
USUAL_CLOSE = 0.12
USUAL_BACK = 0.15
DRAWN = 2.0
"""Turns that what is usual counts as."""
FEW_WORDS = 4
"""A sentence of so few words that has the word of a sound in it points at it."""
NOTED = 0.8
"""Evidence from which a turn is taken for the one that remarks on the sound."""


@dataclass(frozen=True)
class EventFeatures:
    """The three groups for one sound, by name."""

    event: str
    reference: Mapping[str, float]
    takeover: Mapping[str, float]
    disturbed: Mapping[str, float]


def stem(word: str) -> str:
    """The beginning of a word, for comparing its forms."""
    bare = word.removesuffix("'s")
    return bare[:STEM]


class Measurer:
    """Measures transcripts with the words of a language, the names of a bank and vectors of texts."""

    def __init__(self, bank: Bank, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._namer = Namer(bank)
        self._names: dict[str, frozenset[str]] = {}
        self._remark_rows: NDArray[np.float32] | None = None
        self._sound_rows: NDArray[np.float32] | None = None
        self._sound_names = tuple(dict.fromkeys(sound.name for sound in bank.sounds))

    @property
    def anchors(self) -> tuple[str, ...]:
        """Texts whose vectors are needed beside those of a transcript."""
        return (*self._lexicon.remarks, *self._sound_names)

    def texts(self, talk: Read) -> list[str]:
        """Texts of a transcript whose vectors are needed."""
        sentences = [sentence for turn in talk.turns for sentence in turn.sentences]
        return [
            *(self.content(turn) for turn in talk.turns),
            *(self.content(sentence) for sentence in sentences),
            *(sentence.plain for sentence in sentences),
        ]

    def content(self, said: Turn | Sentence) -> str:
        """The words that say what it is about."""
        return content(said.words, self._lexicon)

    def measure(self, talk: Read, vectors: Vectors) -> list[EventFeatures]:
        """Features of every sound of a transcript, in order."""
        return [self._event(talk, number, vectors) for number in range(len(talk.events))]

    # -- one sound ------------------------------------------------------------

    def _event(self, talk: Read, number: int, vectors: Vectors) -> EventFeatures:
        start, end = talk.window(number)
        before, after = talk.turns[:start], talk.turns[start:end]
        calm = self._calm(talk, number)
        known = {stem(word) for turn in calm for word in turn.words}
        usual = self._usual_likeness(calm, vectors)
        prior = [vectors[self.content(turn)] for turn in before[-3:]]
        scores = [
            self._turn_score(turn, known, usual, prior, vectors) for turn in talk.turns[start:]
        ]
        own = scores[: end - start]
        first = own[0] if own else _Score()
        second = own[1] if len(own) > 1 else _Score()
        late = max(own[2:LATE], key=lambda s: s.evidence, default=_Score())
        talked = max((self._words(turn, set()).named for turn in before[-3:]), default=0.0)
        reference = {
            "evidence": first.evidence,
            "words": first.words.value,
            "named": first.words.named,
            "pointed": first.words.pointed,
            "hearing": first.words.hearing,
            "outcry": first.words.outcry,
            "like_remark": first.like_remark,
            "like_sound": first.like_sound,
            "apart": first.apart * min(first.evidence, 1.0),
            "opens_turn": first.place * min(first.evidence, 1.0),
            "second": second.evidence,
            "late": late.evidence,
            "late_pointed": late.words.pointed,
            "talked_before": talked,
            "disturbed": min(self._total(after), 1.0),
        }
        heard_at = next((n for n, score in enumerate(own) if score.evidence >= NOTED), 0)
        return EventFeatures(
            talk.events[number][0],
            reference,
            self._takeover(talk, start, end, heard_at, scores, vectors),
            self._disturbed(talk, start),
        )

    def _calm(self, talk: Read, number: int) -> tuple[Turn, ...]:
        """Turns before an event that no earlier sound is talked about in: what it brings up is news to them.

        After an earlier sound its own words would otherwise be old ones: a train passes, then another.
        """
        start = talk.events[number][1]
        first = talk.events[0][1]
        latest = max((at for _, at in talk.events[:number] if at < start), default=0)
        after = latest + CALM_AFTER if number and latest else 0
        if not number or first == start:
            return talk.turns[:start]
        return (*talk.turns[:first], *talk.turns[max(after, first) : start])

    def _total(self, after: Sequence[Turn]) -> float:
        return disturbance(first_sentence(after[0]), self._lexicon).total if after else 0.0

    def _turn_score(
        self,
        turn: Turn,
        known: set[str],
        usual: tuple[float, float],
        prior: Sequence[NDArray[np.float32]],
        vectors: Vectors,
    ) -> _Score:
        """The sentence of a turn that is most like a remark on a sound."""
        best = _Score()
        for n, sentence in enumerate(turn.sentences):
            if not sentence.words:
                continue
            words = self._words(sentence, known)
            vector = vectors[sentence.plain]
            enough = len(sentence.words) > 1
            like_remark = float((self._remarks(vectors) @ vector).max()) - usual[0] if enough else 0
            like_sound = float((self._sounds(vectors) @ vector).max()) - usual[1] if enough else 0
            evidence = words.value + LIKE * (max(like_remark, 0.0) + max(like_sound, 0.0))
            if evidence > best.evidence or not n:
                apart = 1.0 - max((float(vector @ other) for other in prior), default=0.0)
                best = _Score(evidence, words, like_remark, like_sound, apart, float(n == 0), n)
        return best

    def _remarks(self, vectors: Vectors) -> NDArray[np.float32]:
        if self._remark_rows is None:
            self._remark_rows = np.stack([vectors[text] for text in self._lexicon.remarks])
        return self._remark_rows

    def _sounds(self, vectors: Vectors) -> NDArray[np.float32]:
        if self._sound_rows is None:
            self._sound_rows = np.stack([vectors[text] for text in self._sound_names])
        return self._sound_rows

    def _usual_likeness(self, before: Sequence[Turn], vectors: Vectors) -> tuple[float, float]:
        """How like remarks and sounds the talk before is, at its likest: what is above that is news."""
        rows = [
            vectors[s.plain] for turn in before[-3:] for s in turn.sentences if len(s.words) > 1
        ]
        if not rows:
            return 0.0, 0.0
        stacked = np.stack(rows)
        return (
            float((stacked @ self._remarks(vectors).T).max()),
            float((stacked @ self._sounds(vectors).T).max()),
        )

    def _words(self, said: Sentence | Turn, known: set[str]) -> _Words:
        words = said.words
        lexicon = self._lexicon
        sounding = set(lexicon.sounding.places(words))
        sources = set(lexicon.sources.places(words)) | self._named_places(said.plain, words)
        new = {n for n, word in enumerate(words) if stem(word) not in known}
        sources -= sounding
        pointed = sum(
            any(word in lexicon.demonstratives for word in words[max(n - 3, 0) : n])
            or (
                words[n].endswith("ing")
                and any(word.endswith(lexicon.being) for word in words[max(n - 2, 0) : n])
            )
            for n in (sounding | sources) & new
        )
        if len(words) <= FEW_WORDS and (sounding | sources) & new:
            pointed += 1
        fresh = min(len(sounding & new) + 0.6 * len(sources & new), 2.0)
        stale = len((sounding | sources) - new)
        other = lexicon.not_perceiving.places(words)
        hearing = float(min(sum(n not in other for n in lexicon.perceiving.places(words)), 2))
        pointing = float(min(lexicon.pointing.count(words), 2))
        outcry = float(bool(words) and lexicon.outcry.at(words, 0) > 0)
        value = (
            fresh * (0.4 + 0.3 * min(pointing, 1) + 0.5 * min(pointed, 1))
            + 0.8 * hearing
            + 0.15 * pointing
            + 0.3 * outcry * min(fresh + hearing, 1.0)
            - 0.1 * min(stale, 2)
        )
        return _Words(max(value, 0.0), fresh, float(min(pointed, 2)), hearing, outcry)

    def _named_places(self, text: str, words: Sequence[str]) -> set[int]:
        """Where words of the bank's sounds stand."""
        found = self._names.get(text)
        if found is None:
            found = frozenset(
                text[mention.start : mention.end].lower().replace("\u2019", "'").split()[-1]
                for mention in self._namer.named_in(text)
            )
            self._names[text] = found
        return {n for n, word in enumerate(words) if word in found}

    def _takeover(
        self,
        talk: Read,
        start: int,
        end: int,
        heard_at: int,
        scores: Sequence[_Score],
        vectors: Vectors,
    ) -> dict[str, float]:
        """Does the talk stay with the sound or come back?"""
        turns = talk.turns
        begin = start + heard_at
        if begin >= end:
            return dict.fromkeys(TAKEOVER, 0.0)
        remark = turns[begin]
        place = scores[heard_at].index
        prior = turns[:start]
        # Where the next sound comes soon, what follows it tells more than too few turns; its own turn does not count.
        reach = max(end, min(begin + 1 + ENOUGH, len(turns)))
        others = {at for _, at in talk.events if at >= end}
        kept = [n for n in range(begin + 1, reach) if n not in others]
        rest = [turns[n] for n in kept]
        topic = {stem(w) for turn in prior for w in turn.words if w not in self._lexicon.common}
        back = [self._share(turn, topic) for turn in rest]
        close = [self._nearest(turn, prior, vectors) for turn in rest]
        usual_close, usual_back = self._cohesion(prior, vectors)
        following = [min(scores[n - start].evidence, 1.5) for n in kept[:5]]
        return {
            "mentions": float(np.mean(following)) if following else 0.0,
            "mentions_late": max(following[1:], default=0.0),
            "turns_about": float(np.mean([e >= SLIGHT for e in following])) if following else 0.0,
            "back_soon": max(back[:2], default=0.0) / usual_back,
            "back": float(np.mean(back)) / usual_back if back else 0.0,
            "close_soon": max(close[:2], default=0.0) / usual_close,
            "close": float(np.mean(close)) / usual_close if close else 0.0,
            "lost": max(usual_close - float(np.mean(close)), 0.0) if close else 0.0,
            "lost_words": max(usual_back - float(np.mean(back)), 0.0) if back else 0.0,
            "close_end": float(np.mean(close[-3:])) / usual_close if close else 0.0,
            "same_turn": self._return(remark, place, prior, vectors),
        }

    def _cohesion(self, turns: Sequence[Turn], vectors: Vectors) -> tuple[float, float]:
        """How near a turn of undisturbed talk is to those before it, and how many of their words it takes up.

        What the talk does after a sound is measured by it: in some talk every turn takes up the words of others, in
        some hardly any. Few turns say little, so both are drawn to what is usual.
        """
        near, shared = [], []
        for n in range(1, len(turns)):
            near.append(self._nearest(turns[n], turns[:n], vectors))
            said = {stem(w) for t in turns[:n] for w in t.words if w not in self._lexicon.common}
            shared.append(self._share(turns[n], said))
        weight = len(near) + DRAWN
        return (
            max((sum(near) + DRAWN * USUAL_CLOSE) / weight, USUAL_CLOSE / 2),
            max((sum(shared) + DRAWN * USUAL_BACK) / weight, USUAL_BACK / 2),
        )

    def _share(self, turn: Turn, of: set[str]) -> float:
        content = {stem(word) for word in turn.words if word not in self._lexicon.common}
        return min(len(content & of), 2) / 2.0

    def _nearest(self, turn: Turn, others: Sequence[Turn], vectors: Vectors) -> float:
        here = vectors[self.content(turn)]
        return max((float(here @ vectors[self.content(other)]) for other in others), default=0.0)

    def _return(self, turn: Turn, place: int, prior: Sequence[Turn], vectors: Vectors) -> float:
        """How much nearer the end of the remarking turn is to the talk before than the remark itself."""
        if place + 1 >= len(turn.sentences) or not prior:
            return 0.0
        to = np.stack([vectors[self.content(other)] for other in prior])
        remark = float((to @ vectors[turn.sentences[place].plain]).max())
        rest = max(float((to @ vectors[s.plain]).max()) for s in turn.sentences[place + 1 :])
        return rest - remark

    def _disturbed(self, talk: Read, start: int) -> dict[str, float]:
        if start >= len(talk.turns):
            return dict.fromkeys(DISTURBED, 0.0)
        turn = talk.turns[start]
        sentence = first_sentence(turn)
        found = disturbance(sentence, self._lexicon)
        opens_with_heard = float(turn.text.lstrip()[:1] in "[(")
        values = (
            min(found.total + self._taken_back(turn), 1.0),
            float(min(found.cut, 2)),
            float(min(found.comma_cut, 2)),
            float(min(found.strong, 2)),
            float(min(found.restart, 2)),
            float(min(found.inside, 1)),
            float(min(found.repair, 2)),
            float(found.open_end),
            opens_with_heard,
            mean_elsewhere(talk.turns, start, self._lexicon),
        )
        return dict(zip(DISTURBED, values, strict=True))

    def _taken_back(self, turn: Turn) -> float:
        """Whether the second sentence takes back the first."""
        second = turn.sentences[1].words if len(turn.sentences) > 1 else ()
        return float(bool(second) and self._lexicon.taking_back.at(second, 0) > 0)


@dataclass(frozen=True)
class _Words:
    """What the words of a sentence say of a sound: a sum, and its parts."""

    value: float = 0.0
    named: float = 0.0
    pointed: float = 0.0
    hearing: float = 0.0
    outcry: float = 0.0


@dataclass(frozen=True)
class _Score:
    """The sentence of a turn that is most like a remark on a sound, and how much so."""

    evidence: float = 0.0
    words: _Words = _Words()
    like_remark: float = 0.0
    like_sound: float = 0.0
    apart: float = 0.0
    place: float = 0.0
    index: int = 0


REFERENCE = (
    "evidence", "words", "named", "pointed", "hearing", "outcry", "like_remark", "like_sound", "apart", "opens_turn",
    "second", "late", "late_pointed", "talked_before", "disturbed",
)  # fmt: skip
TAKEOVER = (
    "mentions", "mentions_late", "turns_about", "back_soon", "back", "close_soon", "close", "lost", "lost_words",
    "close_end", "same_turn",
)  # fmt: skip
DISTURBED = (
    "any", "cut", "comma_cut", "strong", "restart", "inside", "repair", "open_end", "opens_with_heard",
    "elsewhere",
)  # fmt: skip
GROUPS: Mapping[str, tuple[str, ...]] = {
    "reference": REFERENCE,
    "takeover": TAKEOVER,
    "disturbed": DISTURBED,
}
"""Names of features by group, in the order of the weights."""
