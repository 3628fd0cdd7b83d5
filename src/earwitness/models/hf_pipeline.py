"""``hf/NAME``: local models of the transformers library, by its audio pipelines.

``task=audio-classification`` (emotion heads on wav2vec2, HuBERT, WavLM, Whisper encoders, ...) gives a score
for every native label of the model; mapping them is a label map's work. ``task=automatic-speech-recognition``
gives the words that are said. Documented form as of November 2026: transformers, "Pipelines" (5.x). Nothing
is imported before the model is opened, and code that a model brings along is never run.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from earwitness.errors import EarwitnessError, MissingExtraError, ModelError, UsageError
from earwitness.models.adapter import AdapterInfo
from earwitness.models.options import LIMIT_OPTIONS, Option, limits_from, read_options
from earwitness.models.protocols import Limits, Reply, Request
from earwitness.models.python_function import read_stimulus

CLASSIFY, TRANSCRIBE = "audio-classification", "automatic-speech-recognition"
_HASHED = (".json", ".safetensors", ".bin", ".txt", ".model")
_CHUNK_BYTES = 1 << 20

OPTIONS: tuple[Option, ...] = (
    Option("task", "text", "which pipeline", CLASSIFY, choices=(CLASSIFY, TRANSCRIBE)),
    Option("revision", "text", "commit, tag or branch of a model of the hub", "main"),
    Option("device", "text", "cpu, cuda, cuda:1, mps", "cpu"),
    Option(
        "function",
        "text",
        "how scores are made of the model's outputs; unset: as its configuration says",
        choices=("softmax", "sigmoid", "none"),
    ),
    *LIMIT_OPTIONS[2:4],
)

INFO = AdapterInfo(
    name="hf",
    form="hf/NAME or hf/FOLDER",
    summary="Local models of the transformers library: audio classification, speech recognition",
    options=OPTIONS,
    limits=Limits(formats=("wav", "flac", "mp3", "ogg", "aiff"), needs_audio=True),
    examples=("hf/superb/hubert-large-superb-er", "hf/./my-model -M device=cuda"),
    extra="hf",
    modules=("torch", "transformers"),
)


@dataclass(eq=False)
class HfPipeline:
    """A pipeline as a model. Use :func:`open` to make one."""

    name: str
    limits: Limits
    _source: str
    _values: Mapping[str, Any]
    _pool: ThreadPoolExecutor
    _loaded: list[Any] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """Task, weights (their hash, or the revision of the hub) and how scores are made."""
        settings = {"task": self._values["task"], "function": self._values["function"]}
        folder = Path(self._source)
        if folder.is_dir():
            return {**settings, "files_sha256": _hash_of(folder)}
        return {**settings, "revision": self._values["revision"]}

    def preflight(self, requests: Sequence[Request]) -> None:
        """Load the model, so that what cannot work fails before the first item.

        Raises
        ------
        UsageError: it cannot be loaded.
        """
        del requests
        self._pipeline()

    async def ask(self, request: Request) -> Reply:
        """Run the pipeline on one clip.

        Raises
        ------
        ModelError: ``bad_request`` (no audio), ``audio`` (the clip cannot be read), ``bug`` (the model
            failed), ``memory`` (too little of it).
        """
        if request.audio is None:
            raise ModelError(
                f"{self.name}: takes audio, and this item has none",
                kind="bad_request",
                retryable=False,
            )
        loop = asyncio.get_running_loop()
        began = loop.time()
        reply = await loop.run_in_executor(self._pool, self._run, request)
        return replace(reply, latency_s=loop.time() - began)

    async def aclose(self) -> None:
        """End the thread and let go of the model."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._loaded.clear()

    def _run(self, request: Request) -> Reply:
        try:
            pipeline = self._pipeline()
        except UsageError as error:
            raise ModelError(str(error), kind="missing", retryable=False) from error
        rate = int(pipeline.feature_extractor.sampling_rate)
        try:
            audio = read_stimulus(request, rate=rate)
        except EarwitnessError as error:
            raise ModelError(f"{self.name}: {error}", kind="audio", retryable=False) from error
        given = {"raw": audio.samples, "sampling_rate": rate}
        classify = self._values["task"] == CLASSIFY
        more: dict[str, Any] = {"top_k": None} if classify else {}
        if classify and self._values["function"]:
            more["function_to_apply"] = self._values["function"]
        try:
            answer = pipeline(given, **more)
        except Exception as error:
            short = isinstance(error, MemoryError) or "out of memory" in str(error).lower()
            raise ModelError(
                f"{self.name}: {type(error).__name__}: {' '.join(str(error).split())[:500]}",
                kind="memory" if short else "bug",
                retryable=False,
            ) from error
        commit = getattr(pipeline.model.config, "_commit_hash", None)
        made = Reply(provider_model=f"{self._source}@{commit}" if commit else None)
        if not classify:
            return replace(made, text=str(answer["text"]).strip())
        return replace(made, scores=self._scores(answer))

    def _scores(self, answer: Any) -> dict[str, float]:
        scores = {str(each["label"]): float(each["score"]) for each in answer}
        if len(scores) != len(answer) or not all(map(math.isfinite, scores.values())):
            raise ModelError(
                f"{self.name}: scores that are no numbers, or two labels of one name",
                kind="bug",
                retryable=False,
            )
        return scores

    def _pipeline(self) -> Any:
        """The pipeline, loaded once. Blocking."""
        if self._loaded:
            return self._loaded[0]
        transformers = importlib.import_module("transformers")
        is_local = Path(self._source).is_dir()
        more = {} if is_local else {"revision": self._values["revision"]}
        try:
            pipeline = transformers.pipeline(
                self._values["task"],
                model=self._source,
                device=self._values["device"],
                trust_remote_code=False,
                **more,
            )
        except Exception as error:
            raise UsageError(
                f"model {self.name!r}",
                f"cannot be loaded: {type(error).__name__}: {' '.join(str(error).split())[:500]}",
                f"a model for {self._values['task']}, on this machine or the hub",
            ) from error
        self._loaded.append(pipeline)
        return pipeline


def _hash_of(folder: Path) -> str:
    """SHA-256 over names and contents of the files that make a model."""
    whole = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix not in _HASHED:
            continue
        each = hashlib.sha256()
        with path.open("rb") as file:
            while piece := file.read(_CHUNK_BYTES):
                each.update(piece)
        whole.update(f"{path.name}\0{each.hexdigest()}\n".encode())
    return whole.hexdigest()


def open(name: str, options: Mapping[str, Any]) -> HfPipeline:  # noqa: A001
    """Open ``hf/NAME``; a folder that is there goes before a name of the hub.

    Raises
    ------
    MissingExtraError: the packages of [hf] are not installed.
    UsageError: an unknown or unfit option, or a folder that is no model.
    """
    full = f"hf/{name}"
    values = read_options(full, options, OPTIONS)
    if any(find_spec(module) is None for module in INFO.modules):
        raise MissingExtraError(full, "hf")
    folder = Path(name)
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise UsageError(f"model {full!r}", "the folder holds no config.json", "a saved model")
    if name.startswith((".", "/")) and not folder.is_dir():
        raise UsageError(f"model {full!r}", "there is no such folder", "a saved model")
    return HfPipeline(
        name=full,
        limits=limits_from(values, INFO.limits),
        _source=name,
        _values=values,
        _pool=ThreadPoolExecutor(1, thread_name_prefix="earwitness-hf"),
    )
