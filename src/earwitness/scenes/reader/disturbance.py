"""Is a sentence disturbed? Counts of what breaks speech: cut-offs, restarts, repairs, things heard inside a phrase."""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass

from earwitness.scenes.reader.lexicon import Lexicon
from earwitness.scenes.reader.transcript import HEARD, Sentence, Turn

_TOKEN = re.compile(
    rf"{HEARD}|\.\.+|…|--+|[—–]|(?<=\s)-(?=\s)|[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|[,;:.!?]"
)
_STRONG = re.compile(r"\.\.+|…|--+|[—–-]")
_CLOSING = re.compile(r"[.!?]")
REACH = 6
"""Words within which a repetition counts as beginning anew."""


@dataclass(frozen=True)
class Disturbance:
    """What disturbs one sentence, each a small count.

    Attributes
    ----------
    cut: breaks (dots, dashes) after a word no phrase ends with.
    comma_cut: commas after such a word.
    strong: breaks by dots or dashes of any kind.
    restart: words or word groups said again within a few words, across a break or a comma.
    stutter: the same said twice in a row without anything between.
    inside: things heard within a phrase.
    edge: things heard at its beginning, its end or after a mark.
    repair: words of somebody who looks for a word or takes one back.
    open_end: 1 if it ends without a mark or with a break.
    """

    cut: int = 0
    comma_cut: int = 0
    strong: int = 0
    restart: int = 0
    stutter: int = 0
    inside: int = 0
    edge: int = 0
    repair: int = 0
    open_end: int = 0

    @property
    def total(self) -> float:
        """All of it, the surer signs counted full."""
        weights = (1.0, 0.8, 0.4, 1.0, 0.7, 0.9, 0.2, 0.5, 0.6)
        return float(sum(w * min(v, 2) for w, v in zip(weights, astuple(self), strict=True)))


def first_sentence(turn: Turn) -> Sentence:
    """The first sentence of a turn; a scrap of one or two words that is broken off takes the next with it."""
    first = turn.sentences[0]
    if len(turn.sentences) > 1 and (len(first.words) <= 2 and not _ends_well(first.text)):
        return Sentence(f"{first.text} {turn.sentences[1].text}")
    return first


def _ends_well(text: str) -> bool:
    bare = text.replace(HEARD, "").rstrip(" \"'”’)")
    return bool(bare) and bool(_CLOSING.match(bare[-1])) and not bare.endswith(("..", "…"))


def disturbance(sentence: Sentence, lexicon: Lexicon) -> Disturbance:
    """Count what disturbs a sentence.

    Examples
    --------
    >>> from earwitness.scenes.reader.lexicon import load_lexicon
    >>> found = disturbance(Sentence("You could, you could ask the... the bank."), load_lexicon("en"))
    >>> found.restart, found.cut
    (2, 1)
    """
    tokens = [token.lower().replace("’", "'") for token in _TOKEN.findall(sentence.text)]
    words = [n for n, token in enumerate(tokens) if token[0].isalnum()]
    cut = comma_cut = strong = inside = edge = taken_back = 0
    for n, token in enumerate(tokens):
        before = tokens[n - 1] if n else ""
        after = tokens[n + 1] if n + 1 < len(tokens) else ""
        if token == HEARD:
            within = before[:1].isalnum() and after[:1].isalnum()
            inside += within
            edge += not within
        elif _STRONG.fullmatch(token):
            strong += 1
            cut += before in lexicon.dangling or _begun(tokens[:n], lexicon)
        elif token == ",":
            comma_cut += after not in lexicon.joining and (
                before in lexicon.dangling_before_comma or _begun(tokens[:n], lexicon)
            )
            taken_back += before == "no" and n >= 2 and not tokens[n - 2][0].isalnum()
    restart, stutter = _repetitions(tokens, words, lexicon)
    said = [tokens[n] for n in words]
    return Disturbance(
        cut,
        comma_cut,
        strong,
        restart,
        stutter,
        inside,
        edge,
        lexicon.repairing.count(said) + taken_back,
        int(not _ends_well(sentence.text)),
    )


def _begun(tokens: list[str], lexicon: Lexicon) -> bool:
    """Whether what comes before a break is a question without its verb (``will she still``)."""
    words: list[str] = []
    for token in reversed(tokens):
        if not token[0].isalnum():
            # Set off by a comma it is a tag: "it is late, is it".
            if token == ",":
                return False
            break
        words.insert(0, token)
    while words and words[-1] in lexicon.adverbs:
        words.pop()
    return 2 <= len(words) <= 5 and words[-1] in lexicon.pronouns and words[-2] in lexicon.helpers


def _repetitions(tokens: list[str], words: list[int], lexicon: Lexicon) -> tuple[int, int]:
    """Restarts (something between) and stutters (nothing between)."""
    restart = stutter = 0
    covered = -1
    for i, place in enumerate(words):
        if i <= covered:
            continue
        for gap in range(1, REACH + 1):
            j = i + gap
            if j >= len(words) or tokens[words[j]] != tokens[place]:
                continue
            length = 1
            while (
                length < gap
                and j + length < len(words)
                and tokens[words[i + length]] == tokens[words[j + length]]
            ):
                length += 1
            between = tokens[words[j] - 1]
            broken = not between[0].isalnum()
            pair = (tokens[place], tokens[words[j]])
            if pair in lexicon.repeats_allowed:
                continue
            ahead = tokens[words[j] - 2] if words[j] >= 2 else ""
            strong = bool(_STRONG.fullmatch(between))
            if broken and (
                length == gap
                or gap <= length + 1
                or (length >= 2 and ahead in lexicon.dangling)
                or (strong and i == 0)
            ):
                restart += 1
            elif not broken and gap == length and gap <= 3:
                stutter += 1
            else:
                continue
            covered = i + length - 1
            break
    return restart, stutter


def mean_elsewhere(turns: tuple[Turn, ...], skip: int, lexicon: Lexicon) -> float:
    """Mean disturbance of the first sentences of all turns but one: how the talk goes when nothing happens."""
    rest = [
        disturbance(first_sentence(turn), lexicon).total
        for n, turn in enumerate(turns)
        if n != skip
    ]
    return sum(rest) / len(rest) if rest else 0.0
