"""Signs of not listening, from replies alone: what every run tells about itself without a further call.

Conventions
-----------
* *One reply*, *one answer*: the same text, or the same label, for at least 90 % of the items.
* *Copied*: replies of 60 characters or more, or vectors of scores, that were given word by word to several recordings
  (a scene that is asked about more than once is one recording).
* *Echo*: a reply that has at least half of the four-word sequences of the prompt's fixed text, or of its system message.
  Flagged from 10 % of the replies on. A prompt of fewer than eight words is not looked for.
* *Unchanged*: of the items with an answer under both conditions, the share that got the same one. Beside it the share
  expected *by chance*, if answers under the two conditions had nothing to do with each other: the sum over answers of
  the product of both shares, as in Cohen's kappa. Flagged from 90 % on, whatever chance is, with both figures; where
  options differ from item to item (location, sound) an answer is its place, A to D.
* *Muted*: the same, with the sound in question taken away. For grounding these are the two halves of a pair. In reaction
  the talk goes on as if the sound were there, so that an unchanged answer there says only that the sound was not needed.
  For a place it is *speech-only*: the ambience tells a place as well as sounds do.
* *Declined*: refused or blocked, flagged from half of the items on.
* Below five items nothing is flagged.

Each is a reason to look at the replies, not a proof.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from earwitness.tasks.choices import OPTIONS_KEY, options_from_text, place_of
from earwitness.tasks.records import Decision

STUCK_AT = 0.9
LONG_REPLY = 60
"""Characters from which a reply is more than a label, so that two items hardly get it by chance."""
ECHO_COVERS = 0.5
ECHO_AT = 0.1
UNCHANGED_AT = 0.9
DECLINED_AT = 0.5
LEAST_ITEMS = 5
_GRAM = 4
_LEAST_GRAMS = 5
_HOLE = re.compile(r"\{\w+\}")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
_GROUNDING = "grounding"
_BY_PLACE = ("location", "sound")
_FREE_TEXT = ("summary",)
"""Tasks whose replies have no label to compare."""

_LOSSES = {
    "silence": ("silence", "Silence in place of the recording"),
    "muted": ("muting", "Taking the sound in question away"),
    "speech-only": ("no ambience", "Taking all sounds and the ambience away"),
}
"""Conditions that take something away, in short and in words."""

Answer = Callable[[Decision], str | None]
"""What two decisions are compared by; None where there is no usable answer."""

THRESHOLDS = (
    f"one reply or one answer: {STUCK_AT:.0%} of the items or more",
    f"copied: {LONG_REPLY} characters or more, word by word, for several recordings",
    f"echo: half of the prompt's text or more, in {ECHO_AT:.0%} of the replies or more",
    f"unchanged: {UNCHANGED_AT:.0%} of the items with both answers or more",
    f"declines: {DECLINED_AT:.0%} of the items or more",
    f"nothing is flagged below {LEAST_ITEMS} items",
)
"""What the flags of a report mean, in words."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Answers to the same items under ``audio`` and under another condition.

    ``both`` items have an answer under both, ``same`` of them the same one; ``by_chance`` is the share of equal
    answers to expect if the two had nothing to do with each other (NaN without items).
    """

    condition: str
    both: int
    same: int
    by_chance: float

    @property
    def share(self) -> float:
        return self.same / self.both if self.both else float("nan")

    @property
    def flagged(self) -> bool:
        return self.both >= LEAST_ITEMS and self.share >= UNCHANGED_AT


@dataclass(frozen=True, slots=True)
class DeafnessSigns:
    """What one system's replies to one task under ``audio`` show.

    ``echoes`` is None where the prompt is not known or too short to be looked for.
    """

    system: str
    task: str
    items: int
    replies: int
    distinct: int
    top_reply: str
    top_count: int
    answers: int
    top_answer: str
    top_answer_count: int
    copied: int
    echoes: int | None
    declined: int
    pairs: tuple[Unchanged, ...] = ()

    def unchanged_under(self, condition: str) -> Unchanged | None:
        """The comparison with a condition, None where it was not asked."""
        return next((pair for pair in self.pairs if pair.condition == condition), None)

    @property
    def stuck(self) -> bool:
        """One reply to nearly everything."""
        return self.replies >= LEAST_ITEMS and self.top_count >= STUCK_AT * self.replies

    @property
    def one_answer(self) -> bool:
        """One answer to nearly everything, in whatever words."""
        return self.answers >= LEAST_ITEMS and self.top_answer_count >= STUCK_AT * self.answers

    @property
    def echoing(self) -> bool:
        return (
            self.echoes is not None
            and self.replies >= LEAST_ITEMS
            and self.echoes >= ECHO_AT * self.replies
        )

    @property
    def declining(self) -> bool:
        return self.items >= LEAST_ITEMS and self.declined >= DECLINED_AT * self.items

    @property
    def deaf(self) -> bool:
        """Whether silence in place of the sound changes nothing."""
        pair = self.unchanged_under("silence")
        return pair is not None and pair.flagged

    @property
    def flags(self) -> tuple[str, ...]:
        """Short names of what was found; empty where nothing was."""
        found = [
            ("one reply to nearly everything", self.stuck),
            ("one answer to nearly everything", self.one_answer and not self.stuck),
            ("identical long replies", self.copied > 0),
            ("repeats the prompt", self.echoing),
            ("declines", self.declining),
        ]
        for condition, words in _LOSSES.items():
            pair = self.unchanged_under(condition)
            found.append((f"{words[0]} changes nothing", pair is not None and pair.flagged))
        return tuple(name for name, here in found if here)

    @property
    def flagged(self) -> bool:
        return bool(self.flags)

    def findings(self) -> tuple[str, ...]:
        """Every flag in a sentence with its figures."""
        lines = []
        if self.stuck:
            lines.append(
                f"{_of(self.top_count, self.replies)} replies are the same text, {_quoted(self.top_reply)}."
            )
        if self.one_answer and not self.stuck:
            lines.append(
                f"{_of(self.top_answer_count, self.answers)} answers are “{self.top_answer}”."
            )
        if self.copied:
            lines.append(
                f"{self.copied:,} long replies are word by word those given to other recordings."
            )
        if self.echoing:
            lines.append(f"{_of(self.echoes or 0, self.replies)} replies repeat the prompt.")
        if self.declining:
            lines.append(f"It declined {_of(self.declined, self.items)} items.")
        for pair in self.pairs:
            if pair.flagged:
                what = _LOSSES[pair.condition][1]
                lines.append(
                    f"{what} changes nothing: the same answer to {_of(pair.same, pair.both)} items, "
                    f"{pair.by_chance:.0%} to be expected by chance."
                )
        return tuple(lines)


def _of(some: int, of: int) -> str:
    return f"{some:,} of {of:,} ({some / of:.0%})" if of else f"{some:,} of 0"


def _quoted(text: str) -> str:
    words = " ".join(text.split())
    return f"“{words if len(words) <= 60 else words[:59] + '…'}”"


def losses_of(task: str) -> tuple[str, ...]:
    """Conditions that take away what a task is about.

    >>> losses_of("location"), losses_of("sound")
    (('silence', 'speech-only'), ('silence', 'muted'))
    """
    return ("silence", "speech-only") if task == "location" else ("silence", "muted")


def answer_of(task: str) -> Answer:
    """What answers of a task are compared by: the label, or the place of the option where options differ."""
    return _place if task in _BY_PLACE else _label


def _label(decision: Decision) -> str | None:
    return decision.outcome.label


def _place(decision: Decision) -> str | None:
    if OPTIONS_KEY not in decision.groups:
        return decision.outcome.label
    return place_of(decision.outcome.label, options_from_text(decision.groups[OPTIONS_KEY]))


def unchanged(
    condition: str,
    audio: Iterable[tuple[str, str | None]],
    other: Iterable[tuple[str, str | None]],
) -> Unchanged:
    """Compare answers under two conditions.

    Parameters
    ----------
    audio, other: (item, answer) under each; an item has the same name under both.

    Examples
    --------
    >>> found = unchanged("silence", [("a", "x"), ("b", "y"), ("c", None)], [("a", "x"), ("b", "x"), ("c", "x")])
    >>> found.both, found.same, found.by_chance
    (2, 1, 0.5)
    """
    second = dict(other)
    pairs = [
        (said, second[item])
        for item, said in audio
        if said is not None and second.get(item) is not None
    ]
    n = len(pairs)
    if not n:
        return Unchanged(condition, 0, 0, float("nan"))
    first_counts = Counter(said for said, _ in pairs)
    second_counts = Counter(said for _, said in pairs)
    chance = sum(count * second_counts[said] for said, count in first_counts.items()) / (n * n)
    return Unchanged(condition, n, sum(a == b for a, b in pairs), chance)


def signs(
    system: str,
    task: str,
    audio: Sequence[Decision],
    others: Mapping[str, Sequence[Decision]],
    *,
    prompts: Sequence[str] = (),
    base_id: Callable[[str], str] = lambda item: item,
    clip: Callable[[Decision], str] | None = None,
) -> DeafnessSigns:
    """All signs of one system on one task.

    Parameters
    ----------
    audio: its decisions with the sound.
    others: decisions under the conditions of :func:`losses_of`, as far as asked.
    prompts: fixed texts it was sent (instruction, system message), with holes as ``{name}``.
    base_id: name of an item without its condition.
    clip: the recording an item is about; None means each item is about its own.
    """
    texts = [d.reply.strip() for d in audio if d.reply and d.outcome.kind != "failed"]
    seen = Counter(texts)
    top_reply, top_count = _commonest(seen)
    answer = answer_of(task)
    free = task in _FREE_TEXT
    labels = Counter(d.outcome.label for d in audio if d.outcome.label is not None and not free)
    top_answer, top_answer_count = _commonest(labels)
    pairs = [
        unchanged(
            condition,
            ((base_id(d.item_id), answer(d)) for d in audio),
            ((base_id(d.item_id), answer(d)) for d in decisions),
        )
        for condition, decisions in others.items()
        if not free
    ]
    if task == _GROUNDING:
        pairs += [pair for pair in (_twins(audio, base_id),) if pair.both]
    return DeafnessSigns(
        system=system,
        task=task,
        items=len(audio),
        replies=len(texts),
        distinct=len(seen),
        top_reply=top_reply,
        top_count=top_count,
        answers=sum(labels.values()),
        top_answer=top_answer,
        top_answer_count=top_answer_count,
        copied=_copied(audio, clip),
        echoes=_echoes(seen, prompts),
        declined=sum(d.outcome.kind in ("refused", "blocked") for d in audio),
        pairs=tuple(pairs),
    )


def _copied(audio: Sequence[Decision], clip: Callable[[Decision], str] | None) -> int:
    """Long replies and score vectors that more than one recording got."""
    heard: dict[str, list[str]] = {}
    for decision in audio:
        text = (decision.reply or "").strip()
        if len(text) >= LONG_REPLY or text.startswith("{"):
            heard.setdefault(text, []).append(clip(decision) if clip else decision.item_id)
    return sum(len(clips) for clips in heard.values() if len(set(clips)) > 1)


def _commonest(counts: Mapping[str, int]) -> tuple[str, int]:
    return min(counts.items(), key=lambda entry: (-entry[1], entry[0]), default=("", 0))


def _twins(audio: Sequence[Decision], base_id: Callable[[str], str]) -> Unchanged:
    """The halves of grounding pairs: the mix, and its twin without the sound."""
    halves: dict[str, list[tuple[str, str | None]]] = {"present": [], "absent": []}
    for decision in audio:
        base, _, kind = base_id(decision.item_id).rpartition("/")
        if kind in halves:
            halves[kind].append((base, decision.outcome.label))
    return unchanged("muted", halves["present"], halves["absent"])


def _echoes(seen: Mapping[str, int], prompts: Sequence[str]) -> int | None:
    wanted = [grams for prompt in prompts if len(grams := prompt_grams(prompt)) >= _LEAST_GRAMS]
    if not wanted:
        return None
    return sum(n for text, n in seen.items() if _is_echo(text, wanted))


def _is_echo(text: str, wanted: Sequence[frozenset[tuple[str, ...]]]) -> bool:
    words = _words(text)
    if len(words) < _GRAM:
        return False
    own = set(_grams(words))
    return any(len(grams & own) >= ECHO_COVERS * len(grams) for grams in wanted)


@lru_cache(maxsize=64)
def prompt_grams(prompt: str) -> frozenset[tuple[str, ...]]:
    """Four-word sequences of a prompt's fixed text; none runs over a hole.

    >>> sorted(prompt_grams("Which place is it? {options} Answer with one letter only."))[0]
    ('answer', 'with', 'one', 'letter')
    """
    parts = _HOLE.split(prompt)
    return frozenset(gram for part in parts for gram in _grams(_words(part)))


def echoes_prompt(reply: str, prompt: str) -> bool:
    """Whether a reply repeats a prompt.

    >>> asked = "Where does this conversation take place? Answer with the letter of one option."
    >>> echoes_prompt(f"{asked} A) park", asked), echoes_prompt("The letter is A, a park.", asked)
    (True, False)
    """
    grams = prompt_grams(prompt)
    return len(grams) >= _LEAST_GRAMS and _is_echo(reply, [grams])


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _grams(words: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(words[k : k + _GRAM]) for k in range(len(words) - _GRAM + 1)]
