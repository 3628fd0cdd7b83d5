"""Sentence encoders as ONNX files, run by onnxruntime with the tokenizer they were trained with.

Conventions
-----------
Texts are run one at a time. Encoders with 8-bit weights quantise their activations over the whole batch, so
the same text would otherwise get another vector in other company.

Sources: mean pooling over the attention mask and unit length, N. Reimers and I. Gurevych, "Sentence-BERT"
(EMNLP 2019); the first token instead of the mean for the BGE family (BAAI, model card of bge-large-en-v1.5).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from earwitness.errors import DataError, MissingExtraError
from earwitness.models.embedders.hashes import file_sha256, unit_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Pooling = Literal["mean", "first"]
FEW = 8
"""Texts below which threads are not worth their start."""


class OnnxEmbedder:
    """A sentence encoder from files.

    Parameters
    ----------
    model: an ONNX file with inputs ``input_ids``, ``attention_mask`` and perhaps ``token_type_ids``, whose
        first output is (1, tokens, d).
    tokenizer: its ``tokenizer.json``.
    pooling: mean over tokens, or the first token.
    max_tokens: longer texts are cut there.
    sha256: what the model file must have; None takes it as it is.

    Raises
    ------
    MissingExtraError: onnxruntime or tokenizers is not installed.
    DataError: a file is missing, or the weights are others than wanted.
    """

    def __init__(
        self,
        name: str,
        model: Path,
        tokenizer: Path,
        *,
        pooling: Pooling = "mean",
        max_tokens: int = 256,
        sha256: str | None = None,
        source: Mapping[str, Any] | None = None,
    ) -> None:
        need_onnx(name)
        for path in (model, tokenizer):
            if not path.is_file():
                raise DataError(str(path), "no such file", f"a file of {name}")
        self._name = name
        self._model = model
        self._tokenizer = tokenizer
        self._pooling = pooling
        self._max_tokens = max_tokens
        self._source = dict(source or {})
        self._sha256 = file_sha256(model)
        if sha256 is not None and self._sha256 != sha256:
            raise DataError(
                str(model),
                f"weights with SHA-256 {self._sha256[:16]}...",
                f"{sha256[:16]}..., those this program was tested with",
                "Install the version that requirements.lock names.",
            )

    @property
    def name(self) -> str:
        return self._name

    @property
    def settings(self) -> Mapping[str, Any]:
        """Hashes of weights and tokenizer, and how they are used."""
        return {
            **self._source,
            "weights": self._sha256,
            "tokenizer": file_sha256(self._tokenizer),
            "pooling": self._pooling,
            "max_tokens": self._max_tokens,
        }

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of unit length, (n, d)."""
        return await asyncio.to_thread(self._embed, texts)

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        if not texts:
            return np.zeros((0, self._width), np.float32)
        if len(texts) < FEW:
            rows = [self._one(text) for text in texts]
        else:
            # Loaded before threads could do it twice.
            _ = self._session, self._encoder
            with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                rows = list(pool.map(self._one, texts))
        return unit_rows(np.stack(rows))

    def _one(self, text: str) -> NDArray[np.float32]:
        import numpy as np

        encoded = self._encoder.encode(text)
        given = {
            "input_ids": np.array([encoded.ids], np.int64),
            "attention_mask": np.array([encoded.attention_mask], np.int64),
            "token_type_ids": np.array([encoded.type_ids], np.int64),
        }
        session = self._session
        wanted = {put.name for put in session.get_inputs()}
        tokens = session.run(None, {key: given[key] for key in given if key in wanted})[0][0]
        pooled = tokens[0] if self._pooling == "first" else tokens.mean(axis=0)
        return np.asarray(pooled, np.float32)

    @property
    def _width(self) -> int:
        return int(self._session.get_outputs()[0].shape[-1])

    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        return onnxruntime.InferenceSession(
            str(self._model), options, providers=["CPUExecutionProvider"]
        )

    @cached_property
    def _encoder(self) -> Any:
        from tokenizers import Tokenizer

        encoder = Tokenizer.from_file(str(self._tokenizer))
        encoder.no_padding()
        encoder.enable_truncation(self._max_tokens)
        return encoder

    async def aclose(self) -> None:
        """Nothing to close."""


def need_onnx(name: str) -> None:
    """Refuse where the packages that run an encoder are missing.

    Raises
    ------
    MissingExtraError: with the line that installs them.
    """
    from importlib.util import find_spec

    if find_spec("onnxruntime") is None or find_spec("tokenizers") is None:
        raise MissingExtraError(f"embedder {name}", "local")
