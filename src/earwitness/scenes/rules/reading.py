"""A dialogue as the rules read it: every utterance taken apart once, every event beside its plan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from earwitness.scenes.bank import Bank, BankError, Register, Sound, Tag
from earwitness.scenes.bank_names import TIERS, Mention, Namer, Tier
from earwitness.scenes.dialogue_records import Dialogue
from earwitness.scenes.rules.limits import Limits
from earwitness.scenes.rules.sentences import Hit, Word, sentences_in, words_in
from earwitness.scenes.rules.vocabulary import Vocabulary
from earwitness.scenes.scenario import PlannedEvent, Scenario
from earwitness.scenes.tags import split_tags, tag_of

Span = tuple[int, int]
_CLOSING = frozenset(",.!?;:…")


@dataclass(frozen=True, slots=True)
class TagMark:
    """A delivery tag and where in the plain text it stands: before the character at ``place``."""

    written: str
    tag: Tag | None
    place: int


class Line:
    """One utterance.

    Attributes
    ----------
    index: 0 for the first.
    text: as written. ``plain`` is the same without tags; places count in ``plain``.
    """

    def __init__(
        self, index: int, speaker: str, text: str, bank: Bank, vocabulary: Vocabulary
    ) -> None:
        self.index = index
        self.speaker = speaker
        self.text = text
        self._vocabulary = vocabulary
        plain = ""
        tags = []
        for piece in split_tags(text):
            if piece.kind == "speech":
                glue = " " if plain and piece.content[0] not in _CLOSING else ""
                plain += glue + piece.content
            else:
                tags.append(TagMark(piece.content, tag_of(bank, piece.content), len(plain)))
        self.plain = plain
        self.tags = tuple(tags)

    @property
    def where(self) -> str:
        """For people: number from 1, and speaker."""
        return f"utterance {self.index + 1} ({self.speaker})"

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words of the plain text."""
        return words_in(self.plain)

    @cached_property
    def sentences(self) -> tuple[Span, ...]:
        """Where its sentences begin and end."""
        return sentences_in(self.plain, self._vocabulary.abbreviations)

    @cached_property
    def sentence_words(self) -> tuple[tuple[Word, ...], ...]:
        """The words of each sentence."""
        found = []
        at = 0
        for _, end in self.sentences:
            first = at
            while at < len(self.words) and self.words[at].start < end:
                at += 1
            found.append(self.words[first:at])
        return tuple(found)

    @cached_property
    def first_sentence(self) -> Span:
        """Where the first sentence begins and ends; nothing of an empty utterance."""
        return self.sentences[0] if self.sentences else (0, 0)

    @cached_property
    def hits(self) -> tuple[Hit, ...]:
        """Entries of the vocabulary's lists in it; none reaches over the end of a sentence."""
        phrases = self._vocabulary.phrases
        return tuple(hit for words in self.sentence_words for hit in phrases.hits(words))

    def of(self, kind: str) -> tuple[Hit, ...]:
        """Entries of one list in it."""
        return tuple(hit for hit in self.hits if hit.kind == kind)

    @cached_property
    def sound_talk(self) -> tuple[Hit, ...]:
        """What is said in it about sounds without naming them."""
        excepted = self.of("not_sound_talk")
        return tuple(
            hit
            for hit in self.of("sound_talk")
            if not any(e.start <= hit.start and hit.end <= e.end for e in excepted)
        )


@dataclass(frozen=True, slots=True)
class Placed:
    """A planned event that occurs: with how many utterances before it, and what the bank says of it."""

    event: PlannedEvent
    before: int
    sound: Sound
    register: Register | None

    @property
    def reacted_to(self) -> bool:
        """Whether anybody reacts."""
        return self.event.reaction != "ambient"

    @property
    def naming(self) -> Literal["forbidden", "allowed", "required"]:
        """Whether words may, must or must not name the sound."""
        return "forbidden" if self.register is None else self.register.naming

    @property
    def spoken_of(self) -> bool:
        """Whether its reaction is in words about the sound: a pivot or a verbal one."""
        return self.event.reaction in ("pivot", "verbal")

    @property
    def where(self) -> str:
        """For people: event, sound and place."""
        return f"event {self.event.id} ({self.event.sound}) after utterance {self.before}"


class Reading:
    """A dialogue with its scenario (if known), bank and vocabulary."""

    def __init__(
        self,
        dialogue: Dialogue,
        scenario: Scenario | None,
        bank: Bank,
        vocabulary: Vocabulary,
        namer: Namer,
    ) -> None:
        self.dialogue = dialogue
        self.scenario = scenario
        self.bank = bank
        self.vocabulary = vocabulary
        self.lines = tuple(
            Line(n, u.speaker, u.text, bank, vocabulary) for n, u in enumerate(dialogue.utterances)
        )
        self._namer = namer
        self._mentions: dict[int, tuple[Mention, ...]] = {}

    @cached_property
    def topic(self) -> Line:
        """The topic, taken apart like an utterance."""
        return Line(-1, "", self.dialogue.topic, self.bank, self.vocabulary)

    @property
    def limits(self) -> Limits:
        """The numbers."""
        return self.vocabulary.limits

    @cached_property
    def planned(self) -> tuple[PlannedEvent, ...]:
        """Events of the scenario."""
        return self.scenario.events if self.scenario is not None else ()

    @cached_property
    def placed(self) -> tuple[Placed, ...]:
        """Planned events that occur and that the bank knows, in order of time."""
        first: dict[str, int] = {}
        for identifier, before in self.dialogue.events:
            first.setdefault(identifier, before)
        found = []
        for event in self.planned:
            if event.id not in first:
                continue
            try:
                sound = self.bank.sound(event.sound)
                register = None if event.register is None else self.bank.register(event.register)
            except BankError:  # Told by D107.
                continue
            found.append(Placed(event, first[event.id], sound, register))
        return tuple(sorted(found, key=lambda placed: placed.before))

    def following(self, placed: Placed, count: int) -> tuple[Line, ...]:
        """The first ``count`` utterances after an event, or as many as there are."""
        return self.lines[placed.before : placed.before + count]

    @cached_property
    def spoken_of(self) -> frozenset[str]:
        """Sounds that somebody may speak of: those of pivots and verbal reactions."""
        return frozenset(p.sound.id for p in self.placed if p.spoken_of and p.naming != "forbidden")

    def mentions(
        self, line: Line, placed: Placed, tiers: tuple[Tier, ...], *, span: Span | None = None
    ) -> tuple[Mention, ...]:
        """Where an utterance names the sound of an event and means no other sound that may be named."""
        return self._about(self._all(line.index, line.plain), placed, tiers, span)

    def mentions_in_topic(self, placed: Placed, tiers: tuple[Tier, ...]) -> tuple[Mention, ...]:
        """Where the topic names the sound of an event."""
        found = self._all(self.topic.index, self.topic.plain)
        return tuple(m for m in found if m.sound == placed.sound.id and m.tier in tiers)

    def _about(
        self, found: tuple[Mention, ...], placed: Placed, tiers: tuple[Tier, ...], span: Span | None
    ) -> tuple[Mention, ...]:
        own = placed.sound.id
        about = [
            m for m in found if m.sound != own and m.sound in self.spoken_of and m.tier in tiers
        ]
        return tuple(
            m
            for m in found
            if m.sound == own
            and m.tier in tiers
            and (span is None or span[0] <= m.start < span[1])
            and not any(o.start <= m.start and m.end <= o.end for o in about)
        )

    def _all(self, key: int, text: str) -> tuple[Mention, ...]:
        """Mentions of the scenario's sounds in a text, looked for once."""
        held = self._mentions.get(key)
        if held is None:
            sounds = frozenset(placed.sound.id for placed in self.placed)
            found = self._namer.named_in(text, tiers=TIERS, sounds=sounds) if sounds else ()
            held = self._mentions[key] = found
        return held
