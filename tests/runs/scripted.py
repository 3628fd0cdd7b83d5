"""A model that follows a script, for tests of the runner."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from earwitness.audio.io import Audio, file_sha256, write_audio
from earwitness.errors import ModelError
from earwitness.models.protocols import AudioRef, Limits, Prompt, Reply, Request
from earwitness.runs.items import Item

Step = Reply | BaseException


class ScriptedModel:
    """Answers each item with its steps in turn (the last one for ever); ``anger`` where none is given."""

    name = "scripted/model"

    def __init__(
        self,
        steps: Mapping[str, Sequence[Step]] | None = None,
        *,
        delay_s: float = 0.0,
        limits: Limits | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.steps = dict(steps or {})
        self.delay_s = delay_s
        self.limits = limits or Limits()
        self.settings = dict(settings or {})
        self.asked: dict[str, int] = defaultdict(int)
        self.now = 0
        self.most_at_once = 0
        self.closed = False

    async def ask(self, request: Request) -> Reply:
        self.now += 1
        self.most_at_once = max(self.most_at_once, self.now)
        try:
            await asyncio.sleep(self.delay_s)
            steps = self.steps.get(request.item_id, (Reply(text="anger"),))
            step = steps[min(self.asked[request.item_id], len(steps) - 1)]
            self.asked[request.item_id] += 1
            if isinstance(step, BaseException):
                raise step
            return step
        finally:
            self.now -= 1

    async def aclose(self) -> None:
        self.closed = True


def failure(kind: str = "server", *, retryable: bool = True, **more: Any) -> ModelError:
    return ModelError(
        more.pop("message", f"the {kind} failed"), kind=kind, retryable=retryable, **more
    )


def make_items(count: int, audio: AudioRef | None = None) -> list[Item]:
    prompt = Prompt(user="Which emotion?", choices=("anger", "fear"))
    return [
        Item(id=f"clip-{number:03d}", task="t", task_version="1", prompt=prompt, audio=audio)
        for number in range(count)
    ]


def make_audio(folder: Path, seconds: float = 1.0) -> AudioRef:
    import numpy as np

    path = folder / f"tone-{seconds}.wav"
    time = np.arange(int(16000 * seconds)) / 16000
    write_audio(path, Audio((0.1 * np.sin(2 * np.pi * 220 * time)).astype(np.float32), 16000))
    return AudioRef(path, file_sha256(path), seconds, 16000)
