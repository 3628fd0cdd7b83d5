"""One seed, many streams: counter-based generators keyed by a seed and a stable name.

A draw never depends on the order of work, on the number of workers or on what was drawn elsewhere.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np


def stream(seed: int, *names: str) -> np.random.Generator:
    """Generator that belongs to ``names`` under ``seed``.

    Parameters
    ----------
    seed: any integer; the one seed of a run, corpus or report.
    names: what the draws are for (``"score"``, ``"group"``, ``"sex"``, ``"female"``). Names are kept apart,
        so ``("a", "b")`` and ``("ab",)`` are different streams.

    Returns
    -------
    A generator on Philox, keyed by the first 128 bits of SHA-256 over seed and names. Philox is a
    counter-based generator: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

    Examples
    --------
    >>> int(stream(7, "score").integers(1000)) == int(stream(7, "score").integers(1000))
    True
    >>> int(stream(7, "score").integers(2**60)) == int(stream(7, "groups").integers(2**60))
    False
    """
    text = json.dumps([seed, *names], ensure_ascii=False)
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return np.random.Generator(np.random.Philox(key=np.frombuffer(digest[:16], dtype="<u8")))
