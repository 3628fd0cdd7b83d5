"""A transcript as prompts show it: lines of words with the time they were said."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from earwitness.models.protocols import Transcript, Word

PAUSE_S = 0.5
"""A pause between words that begins a new line."""
LONGEST_LINE = 20
"""Words after which a line ends all the same."""
NOTHING = "(nothing was understood)"


def as_lines(transcript: Transcript) -> str:
    """A transcript as prompts show it; without times the text alone.

    >>> print(as_lines(Transcript("so it is", (Word("so", 0.0, 0.2), Word("it", 1.0, 1.1), Word("is", 1.2, 1.4)))))
    [0.0-0.2] so
    [1.0-1.4] it is
    """
    if not transcript.words:
        return transcript.text.strip() or NOTHING
    return "\n".join(
        f"[{line[0].start_s:.1f}-{line[-1].end_s:.1f}] "
        + " ".join(word.text.strip() for word in line)
        for line in _lines(transcript.words)
    )


def _lines(words: Sequence[Word]) -> list[list[Word]]:
    lines: list[list[Word]] = [[words[0]]]
    for before, word in pairwise(words):
        if word.start_s - before.end_s > PAUSE_S or len(lines[-1]) >= LONGEST_LINE:
            lines.append([])
        lines[-1].append(word)
    return lines
