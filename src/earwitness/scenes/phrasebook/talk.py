"""Talk about a subject, whatever happens around it.

Nothing here knows of registers or reactions: two scenes with the same subject, place and length are drawn from the
same distribution, so that words away from events tell nothing of what the events are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from earwitness.scenes.phrasebook.grammar import Book, Draws, Value, Variant
from earwitness.scenes.phrasebook.nouns import Noun, known, lower_first, the
from earwitness.scenes.phrasebook.subject import Subject

Allowed = Callable[[str], bool]

ACTS: Mapping[str, tuple[str, ...]] = {
    "claim": ("claim", "reason", "claim_any", "reason_any"),
    "story": ("story_set", "story_turn", "story_moral", "reason_any"),
    "worry": ("worry", "worry_more", "reason_any", "claim_any"),
    "plan": ("plan", "plan_more", "reason_any", "plan_more"),
    "cost": ("cost", "cost_more", "reason", "claim_any"),
    "memory": ("memory", "memory_more", "story_moral", "claim"),
    "side": ("side", "claim", "reason", "claim_any"),
}
"""What a speaker does in a turn, and the lists its sentences come from, in order, as far as the turn goes."""

_WEIGHTS = {"claim": 5, "story": 3, "worry": 2, "plan": 3, "cost": 2, "memory": 2, "side": 1}
_QUESTIONS = ("opinion", "experience", "choice", "when")
_ASKS = 0.36
_STANCES = ("keen", "wary")
_NEW_FACET = 0.55
"""How often the next facet is one that was not mentioned yet."""
ASKER = "pivot.asker"
"""The list of linking words for questions."""
_LINKED = 0.3
"""How often a reason or an afterthought begins with a linking word."""
_LEAST = 9
"""A further sentence is added while this many words are left of what a turn should have."""


@dataclass(slots=True)
class Turn:
    """One utterance in the making. The first sentence answers what was said before, if anything was."""

    speaker: int
    words: int
    sentences: list[str] = field(default_factory=list)
    asks: bool = False
    facet: Noun | None = None

    @property
    def length(self) -> int:
        """Words so far."""
        return sum(len(sentence.split()) for sentence in self.sentences)

    @property
    def room(self) -> bool:
        """Whether another sentence fits."""
        return self.words - self.length >= _LEAST


class Speech:
    """Draws sentences from a phrasebook; no variant twice in a dialogue, none that is not allowed."""

    def __init__(self, book: Book, draws: Draws) -> None:
        self.book = book
        self.draws = draws
        self._used: set[str] = set()
        self._said: set[str] = set()

    def say(
        self,
        keys: Sequence[str],
        values: Mapping[str, Value],
        allowed: Allowed,
        *,
        group: int | None = None,
    ) -> tuple[str, str | None]:
        """A sentence of one of the lists, and what the other answers to it, if the list has answers."""
        variants = [v for key in keys for v in self.book.variants(key, group)]
        fresh = [v for v in variants if v.id not in self._used]
        start = self.draws.below(len(variants))
        text: tuple[str, str | None] = ("", None)
        # When a list is used up its variants come again, in other words.
        for round_ in (fresh, variants, variants):
            for n in range(len(round_)):
                variant = round_[(start + n) % len(round_)]
                text = self._expand(variant, values)
                said = [part for part in text if part is not None]
                if all(allowed(part) and part not in self._said for part in said):
                    self._used.add(variant.id)
                    self._said.update(said)
                    return text
        return text

    def has_fresh(self, key: str, group: int | None = None) -> bool:
        """Whether a list has a variant that was not used yet."""
        return any(v.id not in self._used for v in self.book.variants(key, group))

    def link(self, sentence: str, key: str, share: float, *, group: int | None = None) -> str:
        """Tie a sentence to the one before it with a word or two, now and then."""
        if self.draws.uniform() >= share:
            return sentence
        language = self.book.language
        if re.split(r"[ ,]", sentence, maxsplit=1)[0] in language["no_linker"]:
            return sentence
        linkers = [v for v in self.book.variants(key, group) if v.id not in self._used]
        if not linkers or (sentence.endswith("?") and key != ASKER):
            return sentence
        linker = linkers[self.draws.below(len(linkers))]
        self._used.add(linker.id)
        return f"{linker.said.text} {lower_first(sentence, language)}"

    def _expand(self, variant: Variant, values: Mapping[str, Value]) -> tuple[str, str | None]:
        filled = dict(values)
        for pattern in (variant.said, variant.answer):
            for slot in sorted(pattern.slots) if pattern else ():
                if slot not in filled:
                    pool = self.book.pools[slot]
                    filled[slot] = pool[self.draws.below(len(pool))]
        said = variant.said.expand(self.draws, filled)
        return said, variant.answer.expand(self.draws, filled) if variant.answer else None


class Talk:
    """The turns of one dialogue that nothing disturbs."""

    def __init__(
        self,
        subject: Subject,
        speech: Speech,
        *,
        setting: str,
        roles: Sequence[str],
        allowed: Sequence[Allowed],
    ) -> None:
        self._subject = subject
        self._speech = speech
        self._draws = speech.draws
        self._setting = setting
        self._roles = roles
        self._allowed = allowed
        self._mentioned: set[str] = set()
        self._next = 0
        self._stance = tuple(_STANCES[self._draws.below(2)] for _ in range(2))
        self._act = ""
        self._asked = ""

    def turns(self, words: Sequence[int], first: int) -> list[Turn]:
        """As many turns as there are word counts; ``first`` (0 or 1) begins."""
        count = len(words)
        made: list[Turn] = []
        for n, length in enumerate(words):
            turn = Turn((first + n) % 2, length)
            if n == 0:
                self._open(turn)
            elif n == count - 1:
                self._respond(turn, n)
                self._close(turn, n, last=True)
            elif n == count - 2:
                self._respond(turn, n)
                self._close(turn, n, last=False)
            else:
                self._respond(turn, n)
                self._develop(turn, n, may_ask=n < count - 3)
            made.append(turn)
        return made

    def bridge(self, facet: Noun | None, at: int) -> str:
        """A sentence that stays on the facet last spoken of."""
        noun = facet or self._subject.topic
        return self._say(("talk.bridge",), at, {"f": known(noun, self._speech.book.language)})

    def more(self, turn: Turn) -> None:
        """Go on about the facet last spoken of for as long as the turn has room."""
        names = ("claim", "reason", "reason_any", "claim_any")
        for name in names:
            if not turn.room:
                break
            self._add(name, turn, 0)

    def _say(self, keys: Sequence[str], at: int, values: Mapping[str, Value]) -> str:
        return self._speech.say(keys, values, self._allowed[at])[0]

    def _facet(self, *, other: Noun | None = None) -> Noun:
        """The next facet: a new one more often than one that was mentioned before."""
        facets = self._subject.facets
        language = self._speech.book.language
        if self._next < len(facets) and (self._next < 2 or self._draws.uniform() < _NEW_FACET):
            noun = facets[self._next]
            self._next += 1
        else:
            noun = facets[self._draws.below(max(self._next, 1))]
        if other is not None and known(noun, language) == known(other, language):
            place = facets.index(noun)
            noun = facets[place - 1] if place else facets[min(1, len(facets) - 1)]
        if noun.text in self._mentioned:
            return known(noun, language)
        self._mentioned.add(noun.text)
        return noun

    def _values(self, facet: Noun | None = None) -> dict[str, Value]:
        language = self._speech.book.language
        one = facet or self._facet()
        return {
            "f": one,
            "the_f": the(one, language),
            "theme": self._subject.theme,
            "topic": self._subject.topic,
            "title": self._subject.title or self._subject.topic.text,
        }

    def _lists(self, name: str, turn: Turn) -> list[str]:
        """The lists for a sentence; claims and reasons depend on where the speaker stands."""
        if name in ("claim", "reason"):
            return [f"talk.{name}_{self._stance[turn.speaker]}", f"talk.{name}_any"]
        return [f"talk.{name}"]

    def _add(self, name: str, turn: Turn, at: int) -> None:
        lists = self._lists(name, turn)
        values = self._values(self._facet() if self._draws.uniform() < 0.6 else turn.facet)
        first = values["f"]
        assert isinstance(first, Noun)
        turn.facet = first
        if any("{g" in v.said.text for key in lists for v in self._speech.book.variants(key)):
            second = self._facet(other=first)
            values |= {"g": second, "the_g": the(second, self._speech.book.language)}
        if name == "side":
            values["side"] = self._facet(other=first)
        said = self._say(lists, at, values)
        if name.startswith(("reason", "claim", "worry_more", "cost_more", "memory_more")):
            linked = self._speech.link(said, "talk.linker", _LINKED)
            said = linked if self._allowed[at](linked) else said
        turn.sentences.append(said)

    def _open(self, turn: Turn) -> None:
        draw = self._draws.uniform()
        values = self._values(self._facet())
        if draw < 0.25:
            turn.sentences.append(self._say([f"talk.anchor_{self._setting}"], 0, values))
        elif draw < 0.6:
            turn.sentences.append(self._say([f"roles.{role}" for role in self._roles], 0, values))
        kind = "phrase" if self._subject.kind == "bare" else self._subject.kind
        turn.sentences.append(self._say([f"talk.open_{kind}"], 0, values))
        turn.sentences.append(self._say(["talk.hook"], 0, values))
        turn.facet = self._subject.facets[0]
        if turn.room:
            self._add("reason", turn, 0)
        if self._draws.uniform() < 0.6:
            turn.sentences.append(self._say(["talk.open_ask"], 0, values))
        self._act = "open"

    def _respond(self, turn: Turn, at: int) -> None:
        if self._asked:
            keys = [f"talk.answer_{self._asked}"]
        elif self._act == "open":
            keys = ["talk.greet"]
        elif self._act in ("claim", "side"):
            same = self._stance[0] == self._stance[1]
            agree = self._draws.uniform() < (0.8 if same else 0.25)
            keys = ["talk.to_claim_agree" if agree else "talk.to_claim_doubt"]
        else:
            keys = [f"talk.to_{self._act}"]
        self._asked = ""
        turn.sentences.append(self._say(keys, at, {}))

    def _develop(self, turn: Turn, at: int, *, may_ask: bool) -> None:
        acts = [act for act in ACTS if act != self._act]
        ticket = self._draws.below(sum(_WEIGHTS[act] for act in acts))
        for act in acts:
            ticket -= _WEIGHTS[act]
            if ticket < 0:
                break
        self._act = act
        asks = may_ask and self._draws.uniform() < _ASKS
        if asks:
            turn.words -= _LEAST
        # One sentence of an act is enough for a short turn; a story needs its middle.
        least = 2 if act == "story" else 1
        for number, name in enumerate(ACTS[act]):
            if number >= least and not turn.room:
                break
            self._add(name, turn, at)
        if asks:
            self._ask(turn, at)

    def _ask(self, turn: Turn, at: int) -> None:
        kind = _QUESTIONS[self._draws.below(len(_QUESTIONS))]
        values = self._values(self._facet())
        first = values["f"]
        assert isinstance(first, Noun)
        values["g"] = self._facet(other=first)
        turn.sentences.append(self._say([f"talk.ask_{kind}"], at, values))
        turn.asks, turn.facet = True, first
        self._asked = kind

    def _close(self, turn: Turn, at: int, *, last: bool) -> None:
        values = self._values(self._facet())
        if last:
            turn.sentences = [self._say(["talk.close_last"], at, values)]
        if not last or turn.room:
            turn.sentences.append(self._say(["talk.callback"], at, values))
        if not last:
            if turn.room:
                self._add("reason", turn, at)
            turn.sentences.append(self._say(["talk.close"], at, values))
        self._act = "plan"
