"""Compose the dialogue of a scenario from a phrasebook: no model, same words on every machine.

Conventions
-----------
Three streams under the seed and the scenario's id: ``talk`` (subject, stances, sentences about it), ``shape``
(length, places of events) and ``reactions``. How many utterances there are, how long they are, and what is said
away from events is drawn without looking at registers, reactions or how many events there are. A pivot replaces
everything after its sound; other reactions change the utterance after theirs or, where a register is an exchange,
come as one turn by each speaker, for which two turns of undisturbed talk are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise, product

from earwitness.scenes.bank import Bank
from earwitness.scenes.bank_names import Namer
from earwitness.scenes.bank_records import RolePair
from earwitness.scenes.dialogue_records import SPEAKERS, Dialogue, EventMark, Utterance
from earwitness.scenes.phrasebook.grammar import Book, Draws, load_phrasebook
from earwitness.scenes.phrasebook.reactions import Reactor, answers, group_of, sentences
from earwitness.scenes.phrasebook.subject import Subject, subject_of, topic_sentence
from earwitness.scenes.phrasebook.talk import Allowed, Speech, Talk, Turn
from earwitness.scenes.rules.limits import band_range, default_limits, spoken_seconds
from earwitness.scenes.scenario import PlannedEvent, Scenario
from earwitness.stats.streams import stream

_UTTERANCES = (10, 10, 11, 11, 11, 12, 12, 12, 13, 13)
_SECONDS = (82.0, 40.0)
"""Mean and standard deviation of what a scene aims at, in seconds. Turns end with whole sentences, so that scenes
speak for some seconds more: 120 s on average, as the paper's (120.4 s, standard deviation 18.8 s)."""
_SECONDS_RANGE = (54.0, 132.0)
_SECONDS_UNDISTURBED = (85.0, 152.0)
_SECONDS_SPOKEN = (80.5, 164.0)
"""A scene that would speak for less or more is made again with turns in proportion."""
_INSIDE = 1.06
_TRIES = 3
_SPARED = 7
"""Words taken off where a sentence can go, because short turns have none to spare and grow by a reaction."""
_APART = 2
"""Least number of utterances between the places of two events, whatever their reactions."""
_MOST_WORDS = 54
_AFTER_EVENT = 29
"""Least words an utterance after a sound is to have."""


class Composer:
    """A phrasebook and a bank, ready to compose. Making one costs about a second; composing, milliseconds."""

    def __init__(self, bank: Bank, book: Book | None = None) -> None:
        self.bank = bank
        self.book = book or load_phrasebook(language=bank.language)
        self.namer = Namer(bank)
        self._limits = default_limits()

    def compose(self, scenario: Scenario, seed: int) -> Dialogue:
        """Return the dialogue of a scenario; see :func:`compose`."""
        shape = Draws(stream(seed, "phrasebook", scenario.id, "shape"))
        subject = self._subject(scenario, seed)
        count = _UTTERANCES[shape.below(len(_UTTERANCES))]
        places = self._places(scenario.events, count, shape)
        words = self._lengths(count, places, shape)
        first = shape.below(2)
        topic = self.topic(scenario, seed)
        # Lengths are settled on the talk that nothing disturbs, so that they tell nothing of reactions.
        # What reacts then gets as many words as the talk it replaces.
        lengths: list[int] = []
        for react, (low, high) in ((False, _SECONDS_UNDISTURBED), (True, _SECONDS_SPOKEN)):
            for _ in range(_TRIES):
                turns = self._turns(
                    scenario, subject, seed, places, words, first, lengths if react else None
                )
                timeline = _timeline(turns, scenario.events, places)
                dialogue = Dialogue(scenario.id, topic, timeline)
                seconds = spoken_seconds(dialogue)
                if low <= seconds <= high:
                    break
                scale = (_INSIDE * low if seconds < low else high / _INSIDE) / seconds
                words = [min(max(round(n * scale), 10), _MOST_WORDS) for n in words]
                lengths = [min(round(n * scale), _MOST_WORDS) for n in lengths]
            if not react:
                lengths = [turn.length for turn in turns]
        return dialogue

    def topic(self, scenario: Scenario, seed: int) -> str:
        """Return the topic of a scenario in one sentence; see :func:`compose_topic`."""
        draws = Draws(stream(seed, "phrasebook", scenario.id, "topic"))
        pair = self.bank.role_pair(scenario.roles).name
        return topic_sentence(self._subject(scenario, seed), pair, self.book, draws)

    def _subject(self, scenario: Scenario, seed: int) -> Subject:
        silent = self._drawable(scenario.location)
        return subject_of(
            scenario, self.bank, seed, self.book, lambda text: not self._names(text, silent)
        )

    def _drawable(self, location: str) -> frozenset[str]:
        return frozenset((*self.bank.sounds_at(location), *self.bank.rare_at(location)))

    def _names(self, text: str, sounds: frozenset[str]) -> bool:
        return bool(sounds) and bool(
            self.namer.named_in(text, tiers=("name", "hint"), sounds=sounds)
        )

    def _hints(self, text: str, sound: str) -> bool:
        """Whether a text that follows a sound gives it away, weak words included."""
        return bool(self.namer.named_in(text, tiers=("name", "hint", "weak"), sounds={sound}))

    def _places(self, events: Sequence[PlannedEvent], count: int, shape: Draws) -> tuple[int, ...]:
        """How many utterances come before each event: any places in their bands that lie apart."""
        ranges = [band_range(count, event.band) for event in events]
        ways = [way for way in product(*ranges) if all(b - a >= _APART for a, b in pairwise(way))]
        if not ways:  # A plan may put two events into one narrow band.
            ways = [tuple(band[min(n, len(band) - 1)] for n, band in enumerate(ranges))]
        return ways[shape.below(len(ways))]

    def _lengths(self, count: int, places: Sequence[int], shape: Draws) -> list[int]:
        """Words of each utterance, long and short ones mixed, so that the scene takes its time."""
        low, high = _SECONDS_RANGE
        seconds = min(max(shape.normal(*_SECONDS), low), high)
        pauses = self._limits.seconds_between_turns * (count - 1)
        words = (seconds - pauses) * self._limits.words_per_second
        shares = [0.6 + 0.8 * shape.uniform() for _ in range(count)]
        total = sum(shares)
        lengths = [min(max(round(words * share / total), 10), _MOST_WORDS) for share in shares]
        # Whatever happens there, a reaction must find room.
        return [max(n, _AFTER_EVENT) if at in places else n for at, n in enumerate(lengths)]

    def _turns(
        self,
        scenario: Scenario,
        subject: Subject,
        seed: int,
        places: Sequence[int],
        words: Sequence[int],
        first: int,
        lengths: Sequence[int] | None,
    ) -> list[Turn]:
        """Every turn; nothing reacts if ``lengths``, the words of the undisturbed turns, are not known yet."""
        events = scenario.events if lengths is not None else ()
        lengths = lengths if lengths is not None else words
        reactions = Draws(stream(seed, "phrasebook", scenario.id, "reactions"))
        reactor = Reactor(
            self.bank,
            self.book,
            self.namer,
            Speech(self.book, reactions),
            group_of(scenario.split),
            frozenset(e.sound for e in events if e.reaction in ("pivot", "verbal")),
        )
        silent = self._drawable(scenario.location)
        after = {p: event.sound for p, event in zip(places, scenario.events, strict=True)}
        count = len(words)
        extra = {p for p, e in zip(places, events, strict=False) if answers(self.book, e)}
        pivot = next((n for n, event in enumerate(events) if event.reaction == "pivot"), None)
        # Turns of an exchange are not talk: the talk has fewer turns, and goes on where it was.
        own = [n for n in range(count) if n not in extra and n - 1 not in extra]
        speech = Speech(self.book, Draws(stream(seed, "phrasebook", scenario.id, "talk")))
        talk = Talk(
            subject,
            speech,
            setting=self.bank.location(scenario.location).setting,
            roles=self._role_lists(self.bank.role_pair(scenario.roles)),
            allowed=[self._fit(silent, after.get(n)) for n in own],
        )
        base = talk.turns([words[n] for n in own], first)
        if pivot is not None:
            base = self._pivoted(base, own, pivot, scenario, places, lengths, reactor, after)
        turns: list[Turn] = []
        rest = iter(base)
        for n in range(count):
            if n in extra:
                event = events[places.index(n)]
                others = self._others(events, event)
                bridge = talk.bridge(turns[-1].facet, 0) if turns[-1].facet else ""
                silently = event.reaction == "behavioral"
                fit = self._fit(
                    others | {event.sound} if silently else others,
                    event.sound if silently else None,
                )
                said, reply = reactor.exchange(event, turns[-1], bridge, fit)
                speaker = 1 - turns[-1].speaker
                turns.append(Turn(speaker, 0, [said]))
                room = min(lengths[n] + lengths[n + 1] - turns[-1].length, _MOST_WORDS)
                turns.append(Turn(1 - speaker, room, [reply], facet=turns[-2].facet))
                if pivot is not None and places[pivot] < n:
                    opened = first if places[pivot] % 2 == 0 else 1 - first
                    side = "ab"[turns[-1].speaker != opened]
                    sound = events[pivot]
                    fit = self._fit(self._others(events, sound), None, sound.sound)
                    reactor.more(sound, turns[-1], side, fit)
                else:
                    talk.more(turns[-1])
            elif n - 1 not in extra:
                turns.append(next(rest))
                self._react(events, places, n, turns[-1], lengths[n], reactor)
        for turn in turns:
            if turn.length > _MOST_WORDS:
                _shorten(turn, _MOST_WORDS)
        return turns

    def _pivoted(
        self,
        base: list[Turn],
        own: list[int],
        pivot: int,
        scenario: Scenario,
        places: Sequence[int],
        words: Sequence[int],
        reactor: Reactor,
        after: dict[int, str],
    ) -> list[Turn]:
        """The talk with everything after the pivot's sound replaced."""
        event, place = scenario.events[pivot], places[pivot]
        kept = [turn for n, turn in zip(own, base, strict=True) if n < place]
        late = [n for n in own if n >= place]
        others = self._others(scenario.events, event)
        allowed = [
            self._fit(others, None if after.get(n) == event.sound else after.get(n), event.sound)
            for n in late
        ]
        first = base[len(kept)].speaker
        return kept + reactor.pivot(event, [words[n] for n in late], first, allowed)

    def _react(
        self,
        events: Sequence[PlannedEvent],
        places: Sequence[int],
        at: int,
        turn: Turn,
        words: int,
        reactor: Reactor,
    ) -> None:
        """Let an utterance react to the sound just before it, and keep it about as long as it was."""
        for event, place in zip(events, places, strict=False):
            if place != at or event.reaction in ("pivot", "ambient"):
                continue
            others = self._others(events, event)
            if event.reaction == "verbal":
                reactor.verbal(event, turn, self._fit(others, None, event.sound))
            else:
                fit = self._fit(others | {event.sound}, event.sound)
                due = " ".join(turn.sentences)
                reactor.behavioral(event, turn, _but(due, fit))
            # The answer and what follows it stay, or the next turn would answer nothing.
            least = 2 if event.reaction == "behavioral" else 3
            _shorten(turn, words - _SPARED, least, reactor.draws)

    @staticmethod
    def _others(events: Sequence[PlannedEvent], event: PlannedEvent) -> frozenset[str]:
        return frozenset(other.sound for other in events if other.id != event.id) - {event.sound}

    def _fit(
        self, silent: frozenset[str], just_before: str | None, spoken_of: str | None = None
    ) -> Allowed:
        """Which sentences may stand at a place: none that names a silent sound or fits the one just before."""
        explained = () if spoken_of is None else (spoken_of,)

        def allowed(text: str) -> bool:
            if just_before is not None and self._hints(text, just_before):
                return False
            if not explained:
                return not self._names(text, silent)
            return not any(
                self.namer.mentions(text, sound, explained_by=explained) for sound in silent
            )

        return allowed

    def _role_lists(self, pair: RolePair) -> list[str]:
        """Lists with what only these two would say; pairs the phrasebook does not know go by closeness."""
        own = f"roles.{pair.id}"
        return [pair.id] if own in self.book.lists else [pair.closeness]


def _but(due: str, fit: Allowed) -> Allowed:
    """Judge a disturbed sentence by what it says beside what was due, which was judged before."""
    words = set(due.lower().split())
    return lambda text: fit(" ".join(word for word in text.split() if word.lower() not in words))


def _shorten(turn: Turn, words: int, least: int = 2, draws: Draws | None = None) -> None:
    """Leave out sentences from the end (before a question that is answered) while there are too many words.

    With draws, a sentence that is too long by a part of it goes with that chance, so that turns come out even.
    """
    parts = [part for sentence in turn.sentences for part in sentences(sentence)]
    tail = [parts.pop()] if turn.asks and len(parts) > least else []
    while len(parts) > least:
        excess = sum(len(part.split()) for part in (*parts, *tail)) - words
        if excess <= 0 or (draws and draws.uniform() * len(parts[-1].split()) >= excess):
            break
        parts.pop()
    turn.sentences = [*parts, *tail]


def _timeline(
    turns: Sequence[Turn], events: Sequence[PlannedEvent], places: Sequence[int]
) -> tuple[Utterance | EventMark, ...]:
    timeline: list[Utterance | EventMark] = []
    for n, turn in enumerate(turns):
        timeline += [EventMark(e.id) for e, p in zip(events, places, strict=True) if p == n]
        timeline.append(Utterance(SPEAKERS[turn.speaker], " ".join(turn.sentences)))
    return tuple(timeline)


class _Key:
    """A bank and a phrasebook as a cheap cache key."""

    __slots__ = ("bank", "book")

    def __init__(self, bank: Bank, book: Book) -> None:
        self.bank = bank
        self.book = book

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and (self.bank.hash, self.book.folder) == (
            other.bank.hash,
            other.book.folder,
        )

    def __hash__(self) -> int:
        return hash((self.bank.hash, self.book.folder))


@lru_cache(maxsize=4)
def _composer(key: _Key) -> Composer:
    return Composer(key.bank, key.book)


def _of(bank: Bank, book: Book | None) -> Composer:
    return _composer(_Key(bank, book or load_phrasebook(language=bank.language)))


def compose(
    scenario: Scenario, bank: Bank, seed: int, *, phrasebook: Book | None = None
) -> Dialogue:
    """Compose the dialogue that carries out a scenario.

    Pure and deterministic; another seed gives another dialogue of the same scenario.

    Parameters
    ----------
    seed: of the corpus, or of one attempt.
    phrasebook: sentences and words; those that ship for the bank's language unless given.

    Raises
    ------
    DataError: there is no phrasebook for the language, or it has nothing for a register.
    BankError: the scenario names what the bank does not have.

    Examples
    --------
    >>> from earwitness.scenes.bank import load_bank
    >>> from earwitness.scenes.plan import PlanRequest, load_preset, plan
    >>> bank = load_bank()
    >>> scenario = plan(bank, PlanRequest(1, 1, seed=1, preset=load_preset("balanced")))[0]
    >>> compose(scenario, bank, 1) == compose(scenario, bank, 1)
    True
    """
    return _of(bank, phrasebook).compose(scenario, seed)


def compose_topic(
    scenario: Scenario, bank: Bank, seed: int, *, phrasebook: Book | None = None
) -> str:
    """Compose the topic of a scenario, one sentence; that of :func:`compose` under the same seed.

    Examples
    --------
    >>> from earwitness.scenes.bank import load_bank
    >>> from earwitness.scenes.plan import PlanRequest, load_preset, plan
    >>> bank = load_bank()
    >>> scenario = plan(bank, PlanRequest(1, 1, seed=1, preset=load_preset("balanced")))[0]
    >>> compose_topic(scenario, bank, 1).endswith(".")
    True
    """
    return _of(bank, phrasebook).topic(scenario, seed)
