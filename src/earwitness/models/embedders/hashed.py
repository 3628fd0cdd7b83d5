"""``offline/hashed``: words and word pairs hashed into a fixed number of places; knows no meaning.

It needs no package and no file, is the same on every machine, and sees nothing but shared words (cut to their
stems). It is there for tests and for machines without the extra ``[local]``; a threshold found with a real
encoder never applies to it.

Source: K. Weinberger et al., "Feature hashing for large scale multitask learning" (ICML 2009).
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from earwitness.models.embedders.hashes import unit_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME = "offline/hashed"
WIDTH = 2048
STEM = 5
"""Characters kept of a word, so that most endings fall away."""
PAIR_WEIGHT = 0.5
SHORT = 3
"""Words of at most so many characters count little: most of them are grammar."""
SHORT_WEIGHT = 0.2
_WORD = re.compile(r"\w+")


class HashedEmbedder:
    """The embedder of last resort.

    Examples
    --------
    >>> import asyncio
    >>> rows = asyncio.run(HashedEmbedder().embed(["selling a bicycle", "a bicycle sold", "soup"]))
    >>> float(rows[0] @ rows[1]) > float(rows[0] @ rows[2])
    True
    """

    @property
    def name(self) -> str:
        return NAME

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"version": 1, "width": WIDTH}

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of unit length, (n, 2048)."""
        import numpy as np

        rows = np.zeros((len(texts), WIDTH), np.float32)
        for row, text in zip(rows, texts, strict=True):
            words = _WORD.findall(text.casefold())
            stems = [word[:STEM] for word in words]
            for word, stem in zip(words, stems, strict=True):
                _add(row, stem, SHORT_WEIGHT if len(word) <= SHORT else 1.0)
            for one, two in itertools.pairwise(stems):
                _add(row, f"{one} {two}", PAIR_WEIGHT)
        return unit_rows(rows)

    async def aclose(self) -> None:
        """Nothing to close."""


def _add(row: NDArray[np.float32], feature: str, weight: float) -> None:
    digest = hashlib.blake2b(feature.encode(), digest_size=8).digest()
    number = int.from_bytes(digest, "little")
    row[number % WIDTH] += weight if number >> 63 else -weight
