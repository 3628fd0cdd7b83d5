"""Dividing clips so that no speaker is on both sides."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from earwitness.errors import DataError, UsageError


def speaker_folds(speakers: Sequence[str], folds: int, seed: int = 0) -> tuple[int, ...]:
    """Fold of every clip: whole speakers, folds of about equal size.

    Speakers are put in an order drawn from the seed and their names, the ones with most clips first among
    groups of equal size, and each goes to the fold with the fewest clips. The order of ``speakers`` does
    not matter.

    Parameters
    ----------
    speakers: the speaker of each clip.
    folds: at least 2.
    seed: draws another division.

    Returns
    -------
    A number from 0 to ``folds - 1`` for each clip.

    Raises
    ------
    UsageError: fewer than two folds.
    DataError: fewer speakers than folds.

    Examples
    --------
    >>> sorted(set(speaker_folds(["a", "a", "b", "c"], 3)))
    [0, 1, 2]
    """
    if folds < 2:
        raise UsageError("--folds", str(folds), "2 or more")
    counts = Counter(speakers)
    if len(counts) < folds:
        raise DataError(
            "folds",
            f"{len(counts)} speakers for {folds} folds",
            "at least one speaker a fold",
            f"Use --folds {len(counts)} or fewer." if len(counts) > 1 else "",
        )

    def drawn(speaker: str) -> tuple[int, str]:
        digest = hashlib.sha256(f"{seed}\x00{speaker}".encode()).hexdigest()
        return -counts[speaker], digest

    sizes = [0] * folds
    fold_of: dict[str, int] = {}
    for speaker in sorted(counts, key=drawn):
        fold = sizes.index(min(sizes))
        fold_of[speaker] = fold
        sizes[fold] += counts[speaker]
    return tuple(fold_of[speaker] for speaker in speakers)
