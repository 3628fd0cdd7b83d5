"""Reactions: how each register is performed, in words of the group that belongs to the scenario's split."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from earwitness.scenes.bank import Bank
from earwitness.scenes.bank_names import Namer
from earwitness.scenes.phrasebook.grammar import Book, Draws, Value
from earwitness.scenes.phrasebook.nouns import SoundWords, lower_first, sound_words
from earwitness.scenes.phrasebook.talk import ASKER, Allowed, Speech, Turn
from earwitness.scenes.scenario import SPLITS, PlannedEvent, Split

_SENTENCE = re.compile(r"(?<=[^.][.!?]) (?=[^\W\d_])")
_ASKS, _ASKS_OFTEN = 0.3, 0.45
"""How often a turn after a pivot ends with a question; more often where only one of the two asks."""
_SHORT = 18
"""Words below which such a turn has no room for a word on what the other said."""
_LINKED = 0.7
"""How often a further sentence of such a turn begins with a linking word."""
_REPLIES = 0.7
"""How often such a turn begins with a word on what the other said, when nothing was asked."""
_PIECES = 3
_FRAGMENTED = 9
"""Words of a sentence that come in pieces; the rest of a longer one is fluent again."""


def group_of(split: Split) -> int:
    """The group of variants that belongs to a split."""
    return SPLITS.index(split)


def answers(book: Book, event: PlannedEvent) -> bool:
    """Whether the reaction is an exchange: one turn by each speaker before the talk goes on."""
    if event.register is None or event.reaction == "pivot":
        return False
    return book.variants(f"{event.reaction}.{event.register}", 0)[0].answer is not None


@dataclass(frozen=True)
class Reactor:
    """Performs the reactions of one scenario."""

    bank: Bank
    book: Book
    namer: Namer
    speech: Speech
    group: int
    spoken_of: frozenset[str]

    @property
    def draws(self) -> Draws:
        """The stream of the reactions."""
        return self.speech.draws

    def words_for(self, event: PlannedEvent) -> SoundWords:
        """What the sound is called."""
        sound = self.bank.sound(event.sound)
        return sound_words(sound, self.namer, self.book.language, self.spoken_of)

    def verbal(self, event: PlannedEvent, turn: Turn, allowed: Allowed) -> None:
        """Put a remark on the sound before what was due."""
        said, _ = self._say(event, dict(self.words_for(event).values()), allowed)
        turn.sentences.insert(0, said)

    def exchange(
        self, event: PlannedEvent, before: Turn, bridge: str, allowed: Allowed
    ) -> tuple[str, str]:
        """What one says about the sound, or breaks off with, and what the other answers."""
        last = sentences(before.sentences[-1])[-1]
        again = lower_first(last, self.book.language)
        values: dict[str, Value] = {"again": again}
        if event.reaction == "verbal":
            values |= self.words_for(event).values()
        said, answer = self._say(event, values, allowed)
        reply = answer or ""
        if again not in reply and last not in reply:
            reply = f"{reply} {bridge}"
        return said, reply

    def behavioral(self, event: PlannedEvent, turn: Turn, allowed: Allowed) -> None:
        """Disturb the first sentence of what was due."""
        parts = [part for sentence in turn.sentences for part in sentences(sentence)]
        while len(parts) > 1 and (parts[0].endswith("?") or len(parts[0].split()) < 2):
            parts.pop(0)
        due = lower_first(parts[0], self.book.language)
        tags = self.bank.register(event.register or "").tags
        tag = f"[{self.bank.tag(tags[self.draws.below(len(tags))]).written}]" if tags else ""
        values: Mapping[str, Value] = {
            "s": due,
            "s!": re.sub(r"\.$", "!", due),
            "s...": fragments(due),
            "cut": tag,
        }
        said, _ = self._say(event, values, allowed)
        turn.sentences = [said, *parts[1:]]

    def _say(
        self, event: PlannedEvent, values: Mapping[str, Value], allowed: Allowed
    ) -> tuple[str, str | None]:
        key = f"{event.reaction}.{event.register}"
        return self.speech.say([key], values, allowed, group=self.group)

    def pivot(
        self, event: PlannedEvent, words: Sequence[int], first: int, allowed: Sequence[Allowed]
    ) -> list[Turn]:
        """The rest of the talk, which is about the sound: as many turns as there are word counts."""
        key = f"pivot.{event.register}"
        sides = f"{key}.turn_a" in self.book.lists
        values: dict[str, Value] = {**self.words_for(event).values()}
        pool = self._kin(event)
        answer: str | None = None
        made: list[Turn] = []
        over = 0
        for n, length in enumerate(words):
            turn = Turn((first + n) % 2, length + over)
            wanted = turn.words
            side = "ab"[n % 2]
            values["kin"] = pool[self.draws.below(len(pool))]

            def say(name: str, at: int = n) -> tuple[str, str | None]:
                return self.speech.say([name], values, allowed[at], group=self.group)

            last = n == len(words) - 1
            question_list = f"{key}.qa" if f"{key}.qa" in self.book.lists else f"{key}.qa_{side}"
            asks = not last and n > 0 and question_list in self.book.lists
            asks = asks and self.draws.uniform() < (_ASKS_OFTEN if sides else _ASKS)
            asks = asks and self.speech.has_fresh(question_list, self.group)
            question, following = "", None
            if asks:
                question, following = self.speech.say(
                    [question_list], values, _both(allowed[n], allowed[n + 1]), group=self.group
                )
                question = self._link(question, allowed[n], ASKER)
                turn.asks = True
            elif last:
                question = say(f"{key}.end")[0]
            turn.words -= len(question.split())
            if n == 0:
                turn.sentences.append(say(f"{key}.open")[0])
            elif answer is not None:
                turn.sentences.append(answer)
            elif self.draws.uniform() < _REPLIES and wanted >= _SHORT:
                turn.sentences.append(say(f"{key}.reply_{side}" if sides else "pivot.reply")[0])
            body = f"{key}.turn_{side}" if sides else f"{key}.turn"
            turn.sentences.append(say(body)[0])
            while self._fits(turn, more := self._link(say(body)[0], allowed[n])):
                turn.sentences.append(more)
            if question:
                turn.sentences.append(question)
            answer = following
            # What one turn has too much of, the next one has less.
            over = min(wanted - turn.length, 0)
            made.append(turn)
        return made

    def more(self, event: PlannedEvent, turn: Turn, side: str, allowed: Allowed) -> None:
        """Go on about a pivot's sound for as long as the turn has room."""
        key = f"pivot.{event.register}"
        body = f"{key}.turn_{side}" if f"{key}.turn_a" in self.book.lists else f"{key}.turn"
        pool = self._kin(event)
        values: dict[str, Value] = {**self.words_for(event).values()}
        values["kin"] = pool[self.draws.below(len(pool))]
        while self._fits(
            turn, more := self.speech.say([body], values, allowed, group=self.group)[0]
        ):
            turn.sentences.append(more)

    def _fits(self, turn: Turn, sentence: str) -> bool:
        """Whether to add a sentence: by chance where it would be too long, so that turns come out even."""
        size = len(sentence.split())
        return self.draws.uniform() * size < turn.words - turn.length

    def _link(self, sentence: str, allowed: Allowed, key: str = "pivot.linker") -> str:
        linked = self.speech.link(sentence, key, _LINKED, group=self.group)
        return linked if allowed(linked) else sentence

    def _kin(self, event: PlannedEvent) -> tuple[str, ...]:
        tags = set(self.bank.sound(event.sound).tags)
        kinds: Mapping[str, Sequence[str]] = self.book.language["kinds"]
        kind = next((name for name, wanted in kinds.items() if tags & set(wanted)), "default")
        words = self.book.pools[f"kin.{kind}"]
        return words[self.group :: len(SPLITS)]


def _both(here: Allowed, there: Allowed) -> Allowed:
    return lambda text: here(text) and there(text)


def sentences(text: str) -> list[str]:
    """Split what is said into sentences; an ellipsis ends none.

    Examples
    --------
    >>> sentences("You think so? I'm not sure.")
    ['You think so?', "I'm not sure."]
    """
    return _SENTENCE.split(text)


def fragments(sentence: str) -> str:
    """A sentence in pieces of two or three words with gaps between, the end of a long one whole.

    Examples
    --------
    >>> fragments("I would put it first, really, and then wait.")
    'I would put... it first... really... and then wait.'
    """
    words = sentence.split()
    head, tail = words[:_FRAGMENTED], words[_FRAGMENTED:]
    if len(tail) < _PIECES:
        head, tail = words[:-1], words[-1:]
    pieces: list[list[str]] = [[]]
    for word in head:
        pieces[-1].append(word)
        if len(pieces[-1]) == _PIECES or word.endswith(","):
            pieces.append([])
    if not pieces[-1]:
        pieces.pop()
    if len(pieces) > 1 and tail and len(tail) == 1:
        last = pieces.pop()
        tail = last + tail
    texts = [" ".join(piece).rstrip(",") for piece in pieces]
    return "... ".join([*texts, " ".join(tail)])
