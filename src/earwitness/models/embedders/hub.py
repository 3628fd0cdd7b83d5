"""``hub/OWNER/NAME``: a sentence encoder from the Hugging Face hub, by its ONNX file.

``hub/BAAI/bge-large-en-v1.5`` is the embedder of CARES (arXiv 2610.10208). Only three small files and the ONNX
weights are fetched; torch is not needed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from earwitness.errors import DataError, MissingExtraError
from earwitness.models.embedders.onnx import OnnxEmbedder, Pooling, need_onnx
from earwitness.models.options import Option, read_options

OPTIONS = (
    Option("revision", "text", "commit or branch of the repository", "main"),
    Option("file", "text", "the ONNX file in it", "onnx/model.onnx"),
    Option(
        "pooling",
        "text",
        "mean over tokens or the first token; auto reads 1_Pooling/config.json",
        "auto",
        choices=("auto", "mean", "first"),
    ),
    Option("max_tokens", "integer", "longer texts are cut there", 512, least=8),
)


def open_hub(repository: str, options: Mapping[str, Any]) -> OnnxEmbedder:
    """Fetch (or find in the hub's cache) and open an encoder.

    Raises
    ------
    MissingExtraError: [hub] or [local] is not installed.
    DataError: the repository has no such file, or the hub cannot be reached.
    """
    name = f"hub/{repository}"
    values = read_options(name, options, OPTIONS)
    need_onnx(name)
    model = _fetch(name, repository, values["file"], values["revision"])
    tokenizer = _fetch(name, repository, "tokenizer.json", values["revision"])
    pooling: Pooling
    if values["pooling"] == "auto":
        pooling = _pooling(_fetch(name, repository, "1_Pooling/config.json", values["revision"]))
    else:
        pooling = values["pooling"]
    source = {"repository": repository, "commit": _commit(model, values["file"])}
    return OnnxEmbedder(
        name, model, tokenizer, pooling=pooling, max_tokens=values["max_tokens"], source=source
    )


def _fetch(name: str, repository: str, file: str, revision: str) -> Path:
    try:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError:
        raise MissingExtraError(f"embedder {name}", "hub") from None
    try:
        return Path(
            hf_hub_download(
                repository,
                file,
                revision=revision,
                # Read here and not when the library is first imported, so that both can be set late.
                endpoint=os.environ.get("HF_ENDPOINT"),
                cache_dir=os.environ.get("HF_HUB_CACHE"),
            )
        )
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise DataError(
            f"embedder {name}",
            f"{file} cannot be fetched ({reason})",
            "a repository with ONNX weights and a network to reach it",
            "Name another file with -E file=..., or use local/minilm.",
        ) from None


def _pooling(path: Path) -> Pooling:
    said = json.loads(path.read_text(encoding="utf-8"))
    if said.get("pooling_mode_cls_token"):
        return "first"
    if said.get("pooling_mode_mean_tokens"):
        return "mean"
    raise DataError(str(path), "neither mean nor first token", "one of them", "Set -E pooling=...")


def _commit(path: Path, file: str) -> str:
    # The cache keeps a file at snapshots/<commit>/<file>.
    return path.parents[len(Path(file).parts) - 1].name
