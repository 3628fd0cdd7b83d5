"""Words, sentences and phrases of what is said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_WORD = re.compile(r"[぀-ヿ㐀-鿿]|[^\W_぀-ヿ㐀-鿿]+(?:['’][^\W_]+)*")
_ENTRY_WORD = re.compile(_WORD.pattern.replace("(?:['’][^\\W_]+)*", "(?:['’][^\\W_]+)*\\*?"))
_END = re.compile(r"[.!?]+[\"'”’)]*(?=\s|$)|[。！？]+[」』”]*")
_NEXT = re.compile(r"\s*(\S)")


class Word(NamedTuple):
    """One word in lower case, apostrophes straight, with its place in the text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Hit:
    """A stretch of a text that is an entry of a list."""

    kind: str
    entry: str
    start: int
    end: int


def words_in(text: str) -> tuple[Word, ...]:
    """Split a text into words; hyphens divide, apostrophes do not, Han and kana count one by one.

    Examples
    --------
    >>> [word.text for word in words_in("It’s well-known.")]
    ["it's", 'well', 'known']
    """
    even = text.replace("’", "'")
    low = even.lower()
    if len(low) != len(
        even
    ):  # A few capitals grow; then places must be counted in the text as it is.
        return tuple(Word(m[0].lower(), m.start(), m.end()) for m in _WORD.finditer(even))
    return tuple([Word(m[0], m.start(), m.end()) for m in _WORD.finditer(low)])


def sentences_in(
    text: str, abbreviations: frozenset[str] = frozenset()
) -> tuple[tuple[int, int], ...]:
    """Return where the sentences of a text begin and end.

    A sentence ends at a full stop, an exclamation mark or a question mark. It does not end at an ellipsis
    (the speech is held up, not finished), at an abbreviation, at an initial, or where the next word is in
    lower case.

    Examples
    --------
    >>> text = "I... I don't know. Ask Dr. Bell!"
    >>> [text[start:end] for start, end in sentences_in(text, frozenset({"dr"}))]
    ["I... I don't know.", 'Ask Dr. Bell!']
    """
    found = []
    start = 0
    for match in _END.finditer(text):
        if _goes_on(text, match, abbreviations):
            continue
        found.append((start, match.end()))
        start = match.end()
    if start < len(text):
        found.append((start, len(text)))
    spans = []
    for first, last in found:
        piece = text[first:last]
        lead = len(piece) - len(piece.lstrip())
        if piece.strip():
            spans.append((first + lead, first + len(piece.rstrip())))
    return tuple(spans)


def _goes_on(text: str, end: re.Match[str], abbreviations: frozenset[str]) -> bool:
    marks = end.group().rstrip("\"'”’)")
    if "。" in marks or "！" in marks or "？" in marks:
        return False
    if marks.startswith("..") and set(marks) == {"."}:
        return True
    following = _NEXT.match(text, end.end())
    if following is not None and following[1].islower():
        return True
    if marks != "." or following is None:
        return False
    start = end.start()
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] == "."):
        start -= 1
    word = text[start : end.start()].lower()
    # An initial ("J. Bell") is a single letter, but "I" ends sentences too.
    return word in abbreviations or (len(word) == 1 and word.isalpha() and word != "i")


_Entry = tuple[str, str, tuple[str, ...]]
_NONE: list[_Entry] = []


class PhraseIndex:
    """Finds the entries of several lists in one pass over the words of a text.

    Examples
    --------
    >>> index = PhraseIndex({"causes": ("distract*", "too loud")})
    >>> [hit.entry for hit in index.hits(words_in("I got distracted; it's too loud."))]
    ['distract*', 'too loud']
    """

    def __init__(self, lists: Mapping[str, Iterable[str]]) -> None:
        self._single: dict[str, list[_Entry]] = {}
        self._pairs: dict[tuple[str, str], list[_Entry]] = {}
        stars: list[_Entry] = []
        for kind, entries in lists.items():
            for entry in entries:
                steps = tuple(
                    match.group().lower().replace("’", "'") for match in _ENTRY_WORD.finditer(entry)
                )
                if not steps:
                    continue
                made = (kind, entry, steps)
                if any(step.endswith("*") for step in steps[:2]):
                    stars.append(made)
                elif len(steps) == 1:
                    self._single.setdefault(steps[0], []).append(made)
                else:
                    self._pairs.setdefault((steps[0], steps[1]), []).append(made)
        self._stars = tuple(stars)
        self._star_starts = tuple(steps[0].rstrip("*") for _, _, steps in stars)

    def hits(self, words: Sequence[Word]) -> tuple[Hit, ...]:
        """Return every entry that occurs among the words, in order of place."""
        found: list[Hit] = []
        if not words:
            return ()
        # Almost every word begins no entry: one look-up by itself and one with its neighbour tell.
        following = [*(word.text for word in words[1:]), ""]
        for at, (word, _, _) in enumerate(words):
            candidates = self._single.get(word, _NONE)
            candidates = candidates + self._pairs.get((word, following[at]), _NONE)
            if word.startswith(self._star_starts):
                candidates = [*candidates, *self._stars]
            for kind, entry, steps in candidates:
                if _follows(words, at, steps):
                    end = words[at + len(steps) - 1].end
                    found.append(Hit(kind, entry, words[at].start, end))
        return tuple(found)


def _follows(words: Sequence[Word], at: int, steps: tuple[str, ...]) -> bool:
    if at + len(steps) > len(words):
        return False
    for n, step in enumerate(steps):
        word = words[at + n].text
        if not (word.startswith(step[:-1]) if step.endswith("*") else word == step):
            return False
    return True
