"""Options of a multiple choice: who they are, in which order they stand, and what a reply chooses.

Order
-----
The true answer's place is balanced: among the items of one truth and split, in the order of the *plan*, each run of
``k`` items has it at each of ``k`` places once, in an order drawn for that run. So it is balanced within every
class, it does not depend on which scenes were mixed, and a longer plan moves nothing. The others follow in an order
drawn for the item. Rotations shift all options by one place each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_uppercase
from typing import TYPE_CHECKING

from earwitness.runs.outcomes import Outcome
from earwitness.stats.streams import stream
from earwitness.tasks.label_lexicon import Lexicon, build_lexicon

if TYPE_CHECKING:
    from earwitness.models.protocols import Reply

N_OPTIONS = 4
OPTIONS_KEY = "_options"
"""Key of a question's groups under which its options stand, as JSON."""
LETTERS = tuple(ascii_uppercase[:N_OPTIONS])
_ARTICLES = ("a ", "an ", "the ", "some ")


@dataclass(frozen=True, slots=True)
class Option:
    """An answer that can be chosen: its label, and how it is shown."""

    label: str
    shown: str


def balanced_places(
    items: Iterable[tuple[str, str]], *, seed: int, name: str, n: int = N_OPTIONS
) -> dict[str, int]:
    """Place of the true answer of every item.

    Parameters
    ----------
    items: (item, stratum) in the order of the plan.
    seed: of the corpus.

    Examples
    --------
    >>> places = balanced_places([(f"i{k}", "park") for k in range(8)], seed=1, name="location")
    >>> sorted(places.values())
    [0, 0, 1, 1, 2, 2, 3, 3]
    """
    seen: dict[str, int] = {}
    places: dict[str, int] = {}
    for item, stratum in items:
        number = seen.get(stratum, 0)
        seen[stratum] = number + 1
        order = stream(seed, "places", name, stratum, str(number // n)).permutation(n)
        places[item] = int(order[number % n])
    return places


def arrange(
    truth: Option, others: Sequence[Option], place: int, *, seed: int, name: str, rotation: int = 0
) -> tuple[Option, ...]:
    """Options in their order: the true one at ``place``, the others as drawn for ``name``, all rotated.

    >>> a, b, c = Option("a", "A"), Option("b", "B"), Option("c", "C")
    >>> [o.label for o in arrange(a, (b, c), 1, seed=0, name="x")].index("a")
    1
    """
    order = stream(seed, "order", name).permutation(len(others))
    options = [others[k] for k in order]
    options.insert(place, truth)
    shift = rotation % len(options)
    return tuple(options[-shift:] + options[:-shift]) if shift else tuple(options)


def lettered(options: Sequence[Option]) -> str:
    """Options as prompts show them, one a line.

    >>> print(lettered([Option("park", "a park"), Option("office", "an office")]))
    A) a park
    B) an office
    """
    lines = zip(ascii_uppercase, options, strict=False)
    return "\n".join(f"{letter}) {option.shown}" for letter, option in lines)


def options_to_text(options: Sequence[Option]) -> str:
    """Options as a string that a stored question can hold."""
    return json.dumps([[option.label, option.shown] for option in options], ensure_ascii=False)


def options_from_text(text: str) -> tuple[Option, ...]:
    """Read what :func:`options_to_text` wrote."""
    return tuple(Option(label, shown) for label, shown in json.loads(text))


def place_of(label: str | None, options: Sequence[Option]) -> str | None:
    """Letter of an option, None where the label is none of them."""
    for letter, option in zip(ascii_uppercase, options, strict=False):
        if option.label == label:
            return letter
    return None


@lru_cache(maxsize=32)
def lexicon_of(name: str, options: frozenset[tuple[str, str]]) -> Lexicon:
    """Words for options by what is shown of them: with and without the article, and the label itself.

    Parameters
    ----------
    options: (label, shown) of every option of a run: one lexicon reads all replies, and a reply that names
        something that was no option of its item is found out.
    """
    forms: dict[str, list[str]] = {}
    taken: dict[str, str] = {}
    for label, shown in sorted(options):
        bare = next((shown[len(a) :] for a in _ARTICLES if shown.lower().startswith(a)), shown)
        words = forms.setdefault(label, [])
        for word in (shown, bare, label.replace("_", " ")):
            if taken.setdefault(word.casefold(), label) == label:
                words.append(word)
    return build_lexicon(name, "1", forms)


def all_options(groups: Iterable[Mapping[str, str]]) -> frozenset[tuple[str, str]]:
    """Every option of a run's questions, from their groups."""
    texts = {each[OPTIONS_KEY] for each in groups if OPTIONS_KEY in each}
    return frozenset((o.label, o.shown) for text in texts for o in options_from_text(text))


def read_choice(
    reply: Reply, lexicon: Lexicon, options: Sequence[Option], *, lettered: bool = True
) -> Outcome:
    """What a reply to a multiple choice amounts to: the label of one of *its* options, or why not.

    Parameters
    ----------
    lettered: whether the options had letters.

    Letters, the text of an option, JSON and prose are read by :mod:`earwitness.tasks.closed_label`. A stop at the
    token limit counts only after an explicit answer.

    >>> from earwitness.models.protocols import Reply
    >>> shown = (Option("park", "a park"), Option("office", "an office"))
    >>> words = lexicon_of("place", frozenset((o.label, o.shown) for o in shown))
    >>> read_choice(Reply(text="B"), words, shown).label
    'office'
    """
    from earwitness.tasks.closed_label import read_reply

    text = reply.text or ""
    if reply.finish == "content_filter":
        return Outcome("blocked", rule="finish reason", native=text or None)
    if reply.finish == "refusal":
        return Outcome("refused", rule="finish reason", native=text or None)
    if reply.finish == "length" and not text.strip():
        return Outcome("truncated", rule="no text before the length stop")
    letters = ascii_uppercase if lettered else ""
    codes = {letter: o.label for letter, o in zip(letters, options, strict=False)}
    read = read_reply(text, lexicon, codes=codes)
    outcome = read.outcome
    if outcome.kind == "answered" and place_of(outcome.label, options) is None:
        return Outcome("unmapped", rule="not one of the options", native=outcome.native)
    if reply.finish == "length" and not (outcome.kind == "answered" and read.explicit):
        return Outcome(
            "truncated", rule="no explicit label before the length stop", native=text[:120]
        )
    return outcome
