"""From what an engine knows of time to times of words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from earwitness.models.protocols import Word

_TOKEN = re.compile(r"\S+")
_SAID = re.compile(r"\w")
_OUTER = re.compile(r"^\W+|\W+$")


def spoken_tokens(text: str) -> tuple[tuple[str, int], ...]:
    """Words between white space that have a letter or a digit, without the marks around them, and their places.

    Examples
    --------
    >>> spoken_tokens('He said: "No — never."')
    (('He', 0), ('said', 3), ('No', 10), ('never', 15))
    """
    found = []
    for match in _TOKEN.finditer(text):
        if not _SAID.search(match[0]):
            continue
        token = _OUTER.sub("", match[0])
        found.append((token, match.start() + match[0].index(token)))
    return tuple(found)


def words_from_phonemes(
    text: str,
    phonemes: str,
    durations: Sequence[float],
    seconds_per_step: float,
    is_sound: Callable[[str], bool],
    count_in: Callable[[str], int],
) -> tuple[Word, ...]:
    """Exact times of words from the duration of every phoneme.

    Parameters
    ----------
    text: what is said.
    phonemes: the same in the engine's alphabet, words divided by spaces.
    durations: steps of each phoneme.
    is_sound: whether a character is a sound (and not punctuation or stress).
    count_in: into how many groups the engine turns one word ("2024" becomes several).

    Returns
    -------
    One word for every token of the text, or nothing where groups and tokens cannot be matched.
    """
    groups: list[tuple[float, float]] = []
    at, start, end = 0.0, None, 0.0
    for character, steps in zip(phonemes, durations, strict=True):
        if character == " ":
            if start is not None:
                groups.append((start, end))
            start = None
        elif is_sound(character):
            start = at if start is None else start
            end = at + steps
        at += steps
    if start is not None:
        groups.append((start, end))
    tokens = [token for token, _ in spoken_tokens(text)]
    counts = [1] * len(tokens)
    if len(tokens) != len(groups):
        counts = [count_in(token) for token in tokens]
        if sum(counts) != len(groups) or not all(counts):
            return ()
    words = []
    first = 0
    for token, count in zip(tokens, counts, strict=True):
        span = groups[first : first + count]
        first += count
        words.append(
            Word(
                token,
                round(span[0][0] * seconds_per_step, 4),
                round(span[-1][1] * seconds_per_step, 4),
            )
        )
    return tuple(words)
