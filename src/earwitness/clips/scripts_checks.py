"""What a script must keep, so that the voice alone tells the emotion.

=====================  ===============================================================================
``S101-emotion``       no word that names or hints at an emotion, with or without a negator
``S102-valence``       no strongly valenced word, and none that takes a side after a negator
``S103-interjection``  no exclamation: it is a performance of its own
``S201-length``        as many words as make a clip of the wanted length
``S202-sentences``     several sentences, so that there is something to perform
``S203-marks``         no mark that says how to speak: exclamation marks, dots, capitals, brackets
``S204-digits``        numbers in words: people read digits differently
``S301-duplicate``     not half of its sentences, nor half of its runs of three words, in another script
=====================  ===============================================================================

Published clips of this kind last 18 to 37 s (VocalAffectBench, arXiv 2608.28932). Acted speech of 2.4 words
a second fills that with 45 to 85 words.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from earwitness.clips.scripts_lexicon import Giveaway, Lexicon, tokens_in

EMOTION = "S101-emotion"
VALENCE = "S102-valence"
INTERJECTION = "S103-interjection"
LENGTH = "S201-length"
SENTENCES = "S202-sentences"
MARKS = "S203-marks"
DIGITS = "S204-digits"
DUPLICATE = "S301-duplicate"

RUN_WORDS = 3
MOST_SHARED = 0.5
"""Share of sentences, and Jaccard index of runs of words, above which two scripts are the same."""

_SENTENCE = re.compile(r"[^.?!]+[.?!]*")
_MARKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"!"), "an exclamation mark"),
    (re.compile(r"\.\.|…"), "dots of omission"),
    (re.compile(r"[\[\](){}<>*_#~|/\\]"), "a bracket or sign that cannot be spoken"),
    (re.compile(r"[?]{2,}"), "several question marks"),
)
_SPOKEN = re.compile(r"[\w\s.,;:?!'’\"“”„‚‘«»—–-]")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a script; inclusive."""

    min_words: int = 45
    max_words: int = 85
    min_sentences: int = 3


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule that a script breaks. ``message`` is a sentence a writer can act on."""

    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


def check_script(text: str, lexicon: Lexicon, limits: Limits | None = None) -> tuple[Fault, ...]:
    """Broken rules of one script; near-duplicates are found by :class:`ScriptIndex`.

    Examples
    --------
    >>> from earwitness.clips.scripts_lexicon import load_lexicon
    >>> [f.code for f in check_script("I am not happy!", load_lexicon("en"), Limits(1, 9, 1))]
    ['S101-emotion', 'S203-marks']
    """
    limits = limits or Limits()
    return (
        *(_told(giveaway) for giveaway in lexicon.find(text)),
        *_length(text, limits),
        *_marks(text, lexicon),
    )


def _told(giveaway: Giveaway) -> Fault:
    said = f'"{giveaway.written}"'
    if giveaway.kind == "interjection":
        return Fault(INTERJECTION, f"{said} is an exclamation; leave it out.")
    if giveaway.kind == "negated":
        said = f'"{giveaway.negator} ... {giveaway.written}"'
        return Fault(VALENCE, f"{said} takes a side ({giveaway.side}); say what happened instead.")
    after = f', also after "{giveaway.negator}"' if giveaway.negator else ""
    if giveaway.kind == "emotion":
        return Fault(EMOTION, f"{said} gives {giveaway.side} away{after}; leave it out.")
    return Fault(VALENCE, f"{said} is strongly {giveaway.side}{after}; use a word without a side.")


def _length(text: str, limits: Limits) -> Iterator[Fault]:
    words = len(tokens_in(text))
    if not limits.min_words <= words <= limits.max_words:
        yield Fault(
            LENGTH, f"It has {words} words; wanted {limits.min_words} to {limits.max_words}."
        )
    sentences = len(sentences_of(text))
    if sentences < limits.min_sentences:
        plural = "s" * (sentences != 1)
        yield Fault(
            SENTENCES,
            f"It has {sentences} sentence{plural}; wanted at least {limits.min_sentences}.",
        )


def _marks(text: str, lexicon: Lexicon) -> Iterator[Fault]:
    for pattern, what in _MARKS:
        if pattern.search(text):
            yield Fault(MARKS, f"It has {what}; the voice is to decide how it is spoken.")
    for token in tokens_in(text):
        letters = token.written
        if len(letters) > 1 and letters.isupper() and letters not in lexicon.capitals:
            yield Fault(MARKS, f'"{letters}" is in capitals, which ask for stress; write it small.')
            break
    if re.search(r"\d", text):
        yield Fault(DIGITS, "It has digits; write numbers as words.")
    odd = sorted(set(_SPOKEN.sub("", text)) - set("[](){}<>*_#~|/\\…"))
    if odd:
        yield Fault(MARKS, f"It has signs that cannot be spoken: {' '.join(odd[:5])}.")


def sentences_of(text: str) -> tuple[str, ...]:
    """Sentences of a text, by their end marks.

    >>> sentences_of("So it is. Is it?")
    ('So it is.', 'Is it?')
    """
    return tuple(part.strip() for part in _SENTENCE.findall(text) if tokens_in(part))


class ScriptIndex:
    """Finds scripts that share too much with one that was added before."""

    def __init__(self) -> None:
        self._sentences: dict[str, frozenset[str]] = {}
        self._runs: dict[str, frozenset[str]] = {}
        self._by_sentence: defaultdict[str, list[str]] = defaultdict(list)
        self._by_run: defaultdict[str, list[str]] = defaultdict(list)

    def __len__(self) -> int:
        return len(self._runs)

    def find(self, text: str) -> Fault | None:
        """What a text shares too much of, and with which script; None if nothing.

        >>> index = ScriptIndex()
        >>> index.add("s1", "The parcel was there. I opened it at noon.")
        >>> index.find("The parcel was there. I left it alone today.") is None
        True
        >>> index.find("I opened it at noon. The parcel was there.").code
        'S301-duplicate'
        """
        sentences, runs = _plain(text)
        shared = Counter(other for s in sentences for other in self._by_sentence.get(s, ()))
        for other, count in sorted(shared.items(), key=lambda pair: (-pair[1], pair[0])):
            fewest = min(len(sentences), len(self._sentences[other]))
            if count > MOST_SHARED * fewest:
                return Fault(
                    DUPLICATE,
                    f"{count} of its {len(sentences)} sentences are also in script {other}; write others.",
                )
        shared = Counter(other for run in runs for other in self._by_run.get(run, ()))
        for other, count in sorted(shared.items(), key=lambda pair: (-pair[1], pair[0])):
            index = count / (len(runs) + len(self._runs[other]) - count)
            if index > MOST_SHARED:
                return Fault(
                    DUPLICATE,
                    f"It is nearly script {other} (Jaccard index {index:.2f} of runs of {RUN_WORDS} words, "
                    f"at most {MOST_SHARED}); write about it in another way.",
                )
        return None

    def add(self, script_id: str, text: str) -> None:
        """Take a script in, whatever it shares."""
        sentences, runs = _plain(text)
        self._sentences[script_id], self._runs[script_id] = sentences, runs
        for sentence in sorted(sentences):
            self._by_sentence[sentence].append(script_id)
        for run in sorted(runs):
            self._by_run[run].append(script_id)


def _plain(text: str) -> tuple[frozenset[str], frozenset[str]]:
    words = [token.text for token in tokens_in(text)]
    sentences = frozenset(
        " ".join(token.text for token in tokens_in(part)) for part in sentences_of(text)
    )
    runs = frozenset(
        " ".join(words[at : at + RUN_WORDS]) for at in range(max(1, len(words) - RUN_WORDS + 1))
    )
    return sentences, runs
