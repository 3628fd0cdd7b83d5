"""Embedders: what they promise whatever is inside, packaged weights, hub and services."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from earwitness.errors import DataError, MissingExtraError, ModelError, UsageError
from earwitness.models.embedders import packaged, static
from earwitness.models.embedders.hashed import HashedEmbedder
from earwitness.models.embedders.hashes import embedder_hash, unit_rows
from earwitness.models.embedders.onnx import OnnxEmbedder
from earwitness.models.embedders.registry import default_embedder, open_embedder
from earwitness.models.protocols import Embedder
from tests.standins.embedding_server import EmbeddingServer
from tests.standins.hub import Hub, serve
from tests.standins.loopback import Act, error, json_act

TEXTS = (
    "Two cousins want to sell a boat.",
    "Somebody is getting rid of a sailing boat.",
    "The soup needs more salt.",
)
BUILT_IN = ("local/minilm", "local/wordllama", "offline/hashed")


def vectors(embedder: Embedder, *texts: str) -> np.ndarray:
    async def work() -> np.ndarray:
        try:
            return await embedder.embed(texts)
        finally:
            await embedder.aclose()

    return asyncio.run(work())


@pytest.mark.parametrize("name", BUILT_IN)
def test_vectors_are_of_unit_length_and_belong_to_their_text_alone(name: str) -> None:
    embedder = open_embedder(name)
    assert embedder.name == name
    together = vectors(embedder, *TEXTS * 4)
    assert together.dtype == np.float32
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for row, text in zip(together, TEXTS * 4, strict=True):
        assert np.array_equal(row, vectors(open_embedder(name), text)[0])
    assert vectors(embedder).shape == (0, together.shape[1])


@pytest.mark.parametrize("name", BUILT_IN)
def test_what_means_the_same_is_nearer(name: str) -> None:
    boat, sailing, soup = vectors(open_embedder(name), *TEXTS)
    assert boat @ sailing > boat @ soup


def test_hashes_tell_embedders_apart_and_stay() -> None:
    hashes = [embedder_hash(open_embedder(name)) for name in BUILT_IN]
    assert len(set(hashes)) == 3
    assert hashes == [embedder_hash(open_embedder(name)) for name in BUILT_IN]


def test_zeros_have_no_direction() -> None:
    assert unit_rows(np.zeros((1, 3), np.float32)).tolist() == [[0, 0, 0]]
    assert not vectors(HashedEmbedder(), "...").any()


def test_unknown_names_and_options_are_refused() -> None:
    with pytest.raises(UsageError, match=r"no such embedder; wanted local/minilm"):
        open_embedder("local/bert")
    with pytest.raises(UsageError, match=r"no such embedder"):
        open_embedder("hub/")
    with pytest.raises(UsageError, match=r"option 'a'; wanted no options"):
        open_embedder("local/minilm", {"a": "1"})
    with pytest.raises(UsageError, match=r"unknown option 'url'"):
        open_embedder("openai/m", {"url": "x"})


def test_without_the_packages_the_default_knows_no_meaning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert default_embedder() == "local/minilm"
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "tokenizers" else find(name)
    )
    assert default_embedder() == "offline/hashed"
    with pytest.raises(MissingExtraError, match=r'pip install "earwitness\[local\]"'):
        open_embedder("local/minilm")
    with pytest.raises(MissingExtraError, match=r"\[local\]"):
        open_embedder("hub/a/b")
    monkeypatch.setattr(static, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"embedder local/wordllama"):
        open_embedder("local/wordllama")


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", gone)
    with pytest.raises(MissingExtraError, match=r"embedder local/minilm"):
        packaged.weights_path()


def test_other_weights_than_pinned_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(b"other")
    with pytest.raises(DataError, match=r"weights with SHA-256 .*requirements.lock"):
        OnnxEmbedder("x/y", model, packaged.TOKENIZER, sha256="0" * 64)
    with pytest.raises(DataError, match=r"no such file"):
        OnnxEmbedder("x/y", tmp_path / "none.onnx", packaged.TOKENIZER)
    monkeypatch.setattr(static, "package_folder", lambda: tmp_path)
    with pytest.raises(DataError, match=r"that of the file this program was tested with"):
        open_embedder("local/wordllama")


@pytest.fixture
def hub_files() -> dict[str, bytes]:
    return {
        "onnx/model.onnx": packaged.weights_path().read_bytes(),
        "tokenizer.json": packaged.TOKENIZER.read_bytes(),
        "1_Pooling/config.json": b'{"pooling_mode_mean_tokens": true}',
    }


def test_an_encoder_from_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub_files: dict[str, bytes]
) -> None:
    pytest.importorskip("huggingface_hub")
    hub = Hub("some/encoder", "c" * 40, hub_files, large=frozenset({"onnx/model.onnx"}))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    with serve(hub):
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        embedder = open_embedder("hub/some/encoder", {"max_tokens": "256"})
        assert embedder.settings["commit"] == "c" * 40
        assert embedder.settings["pooling"] == "mean"
        assert embedder.settings["weights"] == packaged.WEIGHTS_SHA256
        # The same weights give the same vectors, and another hash: it is another embedder by name.
        assert np.array_equal(
            vectors(embedder, TEXTS[0]), vectors(open_embedder("local/minilm"), TEXTS[0])
        )
        first = open_embedder("hub/some/encoder", {"pooling": "first"})
        assert not np.allclose(vectors(first, TEXTS[0]), vectors(embedder, TEXTS[0]))
        with pytest.raises(DataError, match=r"other.onnx cannot be fetched"):
            open_embedder("hub/some/encoder", {"file": "other.onnx"})
        with pytest.raises(DataError, match=r"cannot be fetched"):
            open_embedder("hub/some/other")


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Embedder]:
    from earwitness.models.embedders import service

    monkeypatch.setattr(service, "FIRST_WAIT_S", 0.0)
    return lambda server, **options: open_embedder(
        "openai/bge-large", {"base_url": server.url, **options}
    )


def test_a_service_in_batches_put_back_in_order(at: Callable[..., Embedder]) -> None:
    with EmbeddingServer() as server:
        embedder = at(server, batch="2", dimensions="64")
        found = vectors(embedder, *TEXTS)
        assert [len(call.json()["input"]) for call in server.calls] == [2, 1]
        assert server.calls[0].json()["model"] == "bge-large"
        assert server.calls[0].json()["dimensions"] == 64
        assert found.shape == (3, 64)
        for row, text in zip(found, TEXTS, strict=True):
            assert np.array_equal(row, vectors(at(server), text)[0])


def test_a_service_that_is_closed_for_long_is_not_asked_before_its_time(
    at: Callable[..., Embedder],
) -> None:
    with (
        EmbeddingServer(error(429, **{"Retry-After": "3600"})) as server,
        pytest.raises(ModelError) as caught,
    ):
        vectors(at(server), TEXTS[0])
    assert caught.value.retry_after_s == 3600
    assert len(server.calls) == 1


def test_a_service_is_asked_again_and_then_not(at: Callable[..., Embedder]) -> None:
    with EmbeddingServer(error(503), Act("reset_before")) as server:
        assert vectors(at(server), TEXTS[0]).shape == (1, 64)
        assert len(server.calls) >= 2
    with (
        EmbeddingServer(*[error(503)] * 3) as server,
        pytest.raises(ModelError, match=r"HTTP 503"),
    ):
        vectors(at(server, max_retries="2"), TEXTS[0])
    with (
        EmbeddingServer(error(400, "unknown model")) as server,
        pytest.raises(ModelError, match=r"unknown model"),
    ):
        vectors(at(server), TEXTS[0])


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ({"data": []}, r"no list of 1 vectors"),
        ({"oops": 1}, r"no list of 1 vectors"),
        ({"data": [{"index": 0, "embedding": "abc"}]}, r"no vector"),
        ({"data": [{"index": 0, "embedding": []}]}, r"no vector"),
        ({"data": [{"index": 5, "embedding": [1.0]}]}, r"do not belong"),
    ],
)
def test_answers_that_are_no_vectors(body: object, match: str, at: Callable[..., Embedder]) -> None:
    with EmbeddingServer(json_act(body)) as server, pytest.raises(ModelError, match=match):
        vectors(at(server), TEXTS[0])


def test_a_key_is_sent_and_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-0123456789abcdef")
    with EmbeddingServer() as server:
        server.key = "sk-0123456789abcdef"
        embedder = open_embedder("openai/m", {"base_url": server.url, "api_key_env": "MY_KEY"})
        assert vectors(embedder, TEXTS[0]).shape == (1, 64)
        assert "sk-" not in str(embedder.settings)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match=r"no key: .* OPENAI_API_KEY"):
        open_embedder("openai/text-embedding-3-large")
