"""What embedders share: hashes that name them, rows of unit length."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from earwitness.models.protocols import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def embedder_hash(embedder: Embedder) -> str:
    """SHA-256 of everything an embedder's vectors depend on.

    Examples
    --------
    >>> from earwitness.models.embedders.hashed import HashedEmbedder
    >>> len(embedder_hash(HashedEmbedder()))
    64
    """
    said = json.dumps([embedder.name, dict(embedder.settings)], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(said.encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unit_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length one; a row of zeros stays.

    Examples
    --------
    >>> import numpy as np
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)).round(1).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    import numpy as np

    length = np.linalg.norm(rows, axis=1, keepdims=True)
    out = np.zeros_like(rows)
    np.divide(rows, length, out=out, where=length > 0)
    return out
