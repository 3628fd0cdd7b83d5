"""``local/wordllama``: one vector a token, averaged; a thousand sentences in a tenth of a second.

The vectors (256 dimensions, distilled from token embeddings of large models) and their tokenizer are files of the PyPI
package ``wordllama`` (MIT), read as data: none of its code runs. Gathering and averaging float32 rows gives the same
figures on every machine, which an 8-bit network does not promise.

Source: D. L. Miller, "WordLlama: recycled token embeddings from large language models" (2024).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earwitness.errors import DataError, MissingExtraError
from earwitness.models.embedders.hashes import file_sha256, unit_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME = "local/wordllama"
PACKAGE = "wordllama"
WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
SHA256: Mapping[str, str] = {
    WEIGHTS: "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    TOKENIZER: "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
}


class StaticEmbedder:
    """Averages of token vectors.

    Raises
    ------
    MissingExtraError: the packages are not installed.
    DataError: the package holds other files than those pinned.
    """

    def __init__(self) -> None:
        folder = package_folder()
        if folder is None or find_spec("tokenizers") is None:
            raise MissingExtraError(f"embedder {NAME}", "local")
        self._weights, self._tokens = folder / WEIGHTS, folder / TOKENIZER
        for path, name in ((self._weights, WEIGHTS), (self._tokens, TOKENIZER)):
            found = file_sha256(path) if path.is_file() else "none"
            if found != SHA256[name]:
                raise DataError(
                    str(path),
                    f"SHA-256 {found[:16]}",
                    f"{SHA256[name][:16]}, that of the file this program was tested with",
                    "Install the version that requirements.lock names.",
                )

    @property
    def name(self) -> str:
        return NAME

    @property
    def settings(self) -> Mapping[str, Any]:
        """Hashes of vectors and tokenizer."""
        return {"weights": SHA256[WEIGHTS], "tokenizer": SHA256[TOKENIZER], "pooling": "mean"}

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of unit length, (n, 256)."""
        return await asyncio.to_thread(self._embed, texts)

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        table = self._table
        rows = np.zeros((len(texts), table.shape[1]), np.float32)
        for row, text in zip(rows, texts, strict=True):
            tokens = self._encoder.encode(text, add_special_tokens=False).ids
            if tokens:
                row[:] = table[tokens].mean(axis=0)
        return unit_rows(rows)

    @cached_property
    def _table(self) -> NDArray[np.float32]:
        """The vectors; the file is a length, a JSON header and float16 numbers (safetensors)."""
        import numpy as np

        data = self._weights.read_bytes()
        length = int.from_bytes(data[:8], "little")
        about = json.loads(data[8 : 8 + length])["embedding.weight"]
        start, end = (8 + length + offset for offset in about["data_offsets"])
        table = np.frombuffer(data[start:end], np.float16).reshape(about["shape"])
        return table.astype(np.float32)

    @cached_property
    def _encoder(self) -> Any:
        from tokenizers import Tokenizer

        encoder = Tokenizer.from_file(str(self._tokens))
        encoder.no_padding()
        encoder.no_truncation()
        return encoder

    async def aclose(self) -> None:
        """Nothing to close."""


def package_folder() -> Path | None:
    """Where the package lies, without importing it; None where it is not installed."""
    found = find_spec(PACKAGE)
    places = found.submodule_search_locations if found else None
    return Path(next(iter(places))) if places else None
