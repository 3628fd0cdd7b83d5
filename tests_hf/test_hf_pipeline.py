"""``hf/NAME`` with tiny random models that the tests save themselves.

A target of its own, so that the core's tests need neither torch nor transformers::

    pip install "earwitness[hf]"
    pytest tests_hf -W default
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
import transformers

from earwitness.errors import ModelError, UsageError
from earwitness.models.protocols import AudioRef, Prompt, Reply, Request
from earwitness.models.registry import open_model

LABELS = ["ang", "hap", "neu"]
SMALL: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
    "conv_dim": (8, 8), "conv_stride": (8, 8), "conv_kernel": (16, 16), "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2, "classifier_proj_size": 8,
    "vocab_size": 6,
}  # fmt: skip


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classifier")
    torch.manual_seed(0)
    config = transformers.Wav2Vec2Config(
        **SMALL,
        num_labels=3,
        id2label=dict(enumerate(LABELS)),
        label2id={n: i for i, n in enumerate(LABELS)},
    )
    transformers.Wav2Vec2ForSequenceClassification(config).save_pretrained(folder)
    transformers.Wav2Vec2FeatureExtractor(sampling_rate=16_000).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def recogniser(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recogniser")
    torch.manual_seed(0)
    vocabulary = folder / "vocab.json"
    vocabulary.write_text(json.dumps({"<pad>": 0, "<unk>": 1, "|": 2, "a": 3, "b": 4, "c": 5}))
    transformers.Wav2Vec2CTCTokenizer(
        str(vocabulary), pad_token="<pad>", unk_token="<unk>"
    ).save_pretrained(folder)
    transformers.Wav2Vec2FeatureExtractor(sampling_rate=16_000).save_pretrained(folder)
    transformers.Wav2Vec2ForCTC(
        transformers.Wav2Vec2Config(**SMALL, pad_token_id=0)
    ).save_pretrained(folder)
    return folder


@pytest.fixture
def make_request(tmp_path: Path) -> Callable[..., Request]:
    def make(hz: float = 200.0, rate: int = 16_000) -> Request:
        path = tmp_path / f"{hz}-{rate}.wav"
        wave = 0.3 * np.sin(2 * np.pi * hz * np.arange(rate) / rate)
        soundfile.write(path, wave, rate)
        return Request("i", Prompt("Which?"), AudioRef(path, "", 1.0, rate))

    return make


def ask(source: Path, request: Request, **options: str) -> Reply:
    model = open_model(f"hf/{source}", options)

    async def run() -> Reply:
        try:
            model.preflight([request])  # type: ignore[attr-defined]
            return await model.ask(request)
        finally:
            await model.aclose()

    return asyncio.run(run())


def test_every_native_label_has_a_score(classifier: Path, make_request: Any) -> None:
    reply = ask(classifier, make_request())
    assert set(reply.scores or {}) == set(LABELS)
    assert sum((reply.scores or {}).values()) == pytest.approx(1.0, abs=1e-5)
    assert reply.text is None
    assert reply.latency_s > 0


def test_scores_are_the_models_own(classifier: Path, make_request: Any) -> None:
    request = make_request()
    samples, _ = soundfile.read(request.audio.path, dtype="float32")
    extractor = transformers.AutoFeatureExtractor.from_pretrained(classifier)
    model = transformers.AutoModelForAudioClassification.from_pretrained(classifier).eval()
    with torch.no_grad():
        logits = model(**extractor(samples, sampling_rate=16_000, return_tensors="pt")).logits[0]
    soft = dict(zip(LABELS, torch.softmax(logits, -1).tolist(), strict=True))
    assert ask(classifier, request).scores == pytest.approx(soft, abs=1e-5)
    bare = dict(zip(LABELS, logits.tolist(), strict=True))
    assert ask(classifier, request, function="none").scores == pytest.approx(bare, abs=1e-5)
    assert ask(classifier, request, function="sigmoid").scores != soft


def test_scores_follow_the_sound_and_silence_is_silence(
    classifier: Path, make_request: Any
) -> None:
    low, high = ask(classifier, make_request(100.0)), ask(classifier, make_request(3000.0))
    assert low.scores != high.scores
    request = make_request(100.0)
    silent = replace(request, audio=replace(request.audio, transform="silence"))
    assert ask(classifier, silent).scores != low.scores


def test_a_clip_of_another_rate_is_resampled(classifier: Path, make_request: Any) -> None:
    first, second = ask(classifier, make_request()), ask(classifier, make_request(rate=48_000))
    assert second.scores == pytest.approx(first.scores, abs=0.05)


def test_words(recogniser: Path, make_request: Any) -> None:
    reply = ask(recogniser, make_request(), task="automatic-speech-recognition")
    assert reply.scores is None
    assert set(reply.text or "") <= set("abc <unk>")


def test_settings_know_the_weights(classifier: Path, tmp_path: Path) -> None:
    before = dict(open_model(f"hf/{classifier}").settings)
    assert len(before["files_sha256"]) == 64
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in classifier.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    assert dict(open_model(f"hf/{copy}").settings) == before
    (copy / "config.json").write_text((copy / "config.json").read_text() + " ")
    assert dict(open_model(f"hf/{copy}").settings) != before
    assert open_model("hf/owner/name", {"revision": "abc"}).settings["revision"] == "abc"


def test_what_cannot_work_fails_before_the_first_item(
    classifier: Path, tmp_path: Path, make_request: Any
) -> None:
    with pytest.raises(UsageError, match="the folder holds no config"):
        open_model(f"hf/{tmp_path}")
    with pytest.raises(UsageError, match="there is no such folder"):
        open_model("hf/./nothing-here")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UsageError, match="cannot be loaded"):
        ask(tmp_path, make_request())
    with pytest.raises(ModelError, match="takes audio, and this item has none"):
        ask(classifier, Request("i", Prompt("x")))
