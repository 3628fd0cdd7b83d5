"""Words, sentences and phrases of what is said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[぀-ヿ㐀-鿿]|[^\W_぀-ヿ㐀-鿿]+(?:['’][^\W_]+)*")
_ENTRY_WORD = re.compile(_WORD.pattern.replace("(?:['’][^\\W_]+)*", "(?:['’][^\\W_]+)*\\*?"))
_END = re.compile(r"[.!?]+[\"'”’)]*(?=\s|$)|[。！？]+[」』”]*")
_LAST_WORD = re.compile(r"[\w.]+$")


@dataclass(frozen=True, slots=True)
class Word:
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
    return tuple(
        Word(match.group().lower().replace("’", "'"), match.start(), match.end())
        for match in _WORD.finditer(text)
    )


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
    rest = text[end.end() :].lstrip()
    if rest and rest[0].islower():
        return True
    if marks != "." or not rest:
        return False
    before = _LAST_WORD.search(text, 0, end.start())
    if before is None:
        return False
    word = before.group().lower()
    # An initial ("J. Bell") is a single letter, but "I" ends sentences too.
    return word in abbreviations or (len(word) == 1 and word.isalpha() and word != "i")


class PhraseIndex:
    """Finds the entries of several lists in one pass over the words of a text.

    Examples
    --------
    >>> index = PhraseIndex({"causes": ("distract*", "too loud")})
    >>> [hit.entry for hit in index.hits(words_in("I got distracted; it's too loud."))]
    ['distract*', 'too loud']
    """

    def __init__(self, lists: Mapping[str, Iterable[str]]) -> None:
        self._first: dict[str, list[tuple[str, str, tuple[str, ...]]]] = {}
        self._stars: list[tuple[str, str, str, tuple[str, ...]]] = []
        for kind, entries in lists.items():
            for entry in entries:
                steps = tuple(
                    match.group().lower().replace("’", "'") for match in _ENTRY_WORD.finditer(entry)
                )
                if not steps:
                    continue
                if steps[0].endswith("*"):
                    self._stars.append((steps[0][:-1], kind, entry, steps))
                else:
                    self._first.setdefault(steps[0], []).append((kind, entry, steps))

    def hits(self, words: Sequence[Word]) -> tuple[Hit, ...]:
        """Return every entry that occurs among the words, in order of place."""
        found = []
        for at, word in enumerate(words):
            candidates = self._first.get(word.text, ())
            for kind, entry, steps in candidates:
                if _follows(words, at, steps):
                    found.append(Hit(kind, entry, word.start, words[at + len(steps) - 1].end))
            for prefix, kind, entry, steps in self._stars:
                if word.text.startswith(prefix) and _follows(words, at, steps):
                    found.append(Hit(kind, entry, word.start, words[at + len(steps) - 1].end))
        return tuple(found)


def _follows(words: Sequence[Word], at: int, steps: tuple[str, ...]) -> bool:
    if at + len(steps) > len(words):
        return False
    for n in range(1, len(steps)):
        step, word = steps[n], words[at + n].text
        if not (word.startswith(step[:-1]) if step.endswith("*") else word == step):
            return False
    return True
