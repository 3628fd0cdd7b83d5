"""``baseline/listener`` as an :class:`AudioModel`: four questions about a scene, answered by bands and levels.

What it may know of an item beside the audio stands in its metadata: the task, the moment where the prompt tells one,
and the options with their labels. It never sees the truth, and refuses the whole run where it was trained on a
recording or scene of it.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Any

import numpy as np

from earwitness.errors import EarwitnessError, ModelError, UsageError
from earwitness.models.listener.features import (
    RATE_HZ,
    VERSION,
    Levels,
    conduct,
    levels_of,
    place,
    presence,
    spectrum,
)
from earwitness.models.listener.modelfile import ListenerModel, read_model
from earwitness.models.options import Option, read_options
from earwitness.models.protocols import Limits, Reply, Request

NAME = "baseline/listener"
OPTIONS = (Option("weights", "text", "model file made by `earwitness baseline train-listener`"),)
TASKS = ("reaction", "location", "sound", "grounding")
LIMITS = Limits(formats=("wav", "flac"), needs_audio=True, needs_choices=True, tasks=TASKS)
NO_MOMENT = "The question tells no moment to listen at."
_KEPT = 8
"""Recordings whose levels are kept: questions about one scene follow each other."""
_SHOWN = 5


class Listener:
    """An opened model file. Use :func:`open_listener` to make one."""

    name = NAME
    limits = LIMITS

    def __init__(self, model: ListenerModel, weights_sha256: str) -> None:
        self._model = model
        self._sha256 = weights_sha256
        self._recordings = frozenset(model.trained_on.recordings)
        self._scenes = frozenset(model.trained_on.scenes)
        self._levels: OrderedDict[str, Levels] = OrderedDict()
        self._latch = threading.Lock()

    def __repr__(self) -> str:
        return f"<{NAME} {self._sha256[:12]}>"

    @property
    def settings(self) -> Mapping[str, Any]:
        on = self._model.trained_on
        return {
            "weights_sha256": self._sha256,
            "feature_version": VERSION,
            "trained_on": {
                "corpus": on.corpus,
                "seed": on.seed,
                "split": on.split,
                "scenes": len(on.scenes),
                "takes": on.takes,
            },
        }

    def preflight(self, requests: Sequence[Request]) -> None:
        """Refuse a run over what it was trained on.

        Raises
        ------
        UsageError: a recording or scene is among those it was trained on, or the file answers another task.
        """
        known = sorted(
            {
                r.metadata.get("scene", r.item_id)
                for r in requests
                if (r.audio is not None and r.audio.sha256 in self._recordings)
                or scene_key(r.metadata) in self._scenes
            }
        )
        if known:
            shown = ", ".join(known[:_SHOWN])
            more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
            raise UsageError(
                NAME,
                f"was trained on {len(known)} of the scenes it would be scored on: {shown}{more}",
                "scenes it has never heard",
                "Score it with --split test, or train it on another corpus.",
            )
        missing = sorted({r.metadata.get("task", "") for r in requests} - set(self._model.clouds))
        if missing:
            raise UsageError(
                NAME,
                f"was not trained for {missing[0] or 'items without a task'}",
                ", ".join(sorted(self._model.clouds)),
                "Train it on a corpus with the twins that task needs.",
            )

    async def ask(self, request: Request) -> Reply:
        """The letter of the most probable option; yes or no.

        Raises
        ------
        ModelError: no audio, an unreadable recording, or one it was trained on.
        """
        started = time.perf_counter()
        if request.audio is None:
            raise ModelError(f"{NAME}: needs audio", kind="bad_request", retryable=False)
        try:
            self.preflight([request])
        except EarwitnessError as error:
            raise ModelError(str(error), kind="bad_request", retryable=False) from error
        text, scores = await asyncio.to_thread(self._answer, request)
        return Reply(
            text=text,
            latency_s=time.perf_counter() - started,
            provider_model=f"{NAME}@{self._sha256[:12]}",
            raw={"scores": scores} if scores else {},
        )

    async def aclose(self) -> None:
        return None

    def _answer(self, request: Request) -> tuple[str, dict[str, float]]:
        task, moment = request.metadata["task"], request.metadata.get("t")
        if moment is None and task != "location":
            return NO_MOMENT, {}
        levels = self._heard(request)
        vector = vector_of(task, levels, float(moment or 0.0))
        options = json.loads(request.metadata["options"]) if "options" in request.metadata else [
            [choice, choice] for choice in request.prompt.choices
        ]  # fmt: skip
        labels = [str(label) for label, _ in options]
        scores = self._model.clouds[task].scores(vector, labels)
        best = int(scores.argmax())
        text = labels[best] if task == "grounding" else ascii_uppercase[best]
        return text, {each: round(float(s), 4) for each, s in zip(labels, scores, strict=True)}

    def _heard(self, request: Request) -> Levels:
        assert request.audio is not None
        key = request.audio.identity
        with self._latch:
            if key in self._levels:
                self._levels.move_to_end(key)
                return self._levels[key]
        try:
            found = levels_of(samples_of(request))
        except EarwitnessError as error:
            raise ModelError(f"{NAME}: {error}", kind="audio", retryable=False) from error
        with self._latch:
            self._levels[key] = found
            while len(self._levels) > _KEPT:
                self._levels.popitem(last=False)
        return found


def vector_of(task: str, levels: Levels, moment_s: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The figures a task is answered by."""
    if task == "location":
        return place(levels)
    return {"grounding": presence, "sound": spectrum, "reaction": conduct}[task](levels, moment_s)


def samples_of(request: Request) -> np.ndarray[Any, np.dtype[np.float32]]:
    """What an item lets a model hear, mono at 16 kHz.

    Raises
    ------
    AudioFileError: it cannot be read.
    """
    from earwitness.models.python_function import read_stimulus

    return np.asarray(read_stimulus(request, rate=RATE_HZ).samples, dtype=np.float32)


def scene_key(metadata: Mapping[str, str]) -> str:
    """What names a scene across its versions: the seed of its corpus, and its id."""
    return f"{metadata.get('corpus_seed', '')}/{metadata.get('scene', '')}"


def open_listener(options: Mapping[str, Any]) -> Listener:
    """Open ``baseline/listener``.

    Raises
    ------
    UsageError: no model file, or an unknown option.
    DataError: it is not a model file of this version.
    """
    values = read_options(NAME, options, OPTIONS)
    if not values["weights"]:
        raise UsageError(
            NAME, "no model file given", "-M weights=FILE",
            "Make it with: earwitness baseline train-listener CORPUS --out FILE",
        )  # fmt: skip
    return Listener(*read_model(values["weights"]))
