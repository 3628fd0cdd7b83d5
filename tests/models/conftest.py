"""Clips and requests for the adapters' tests."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from earwitness.models.protocols import AudioModel, AudioRef, Prompt, Reply, Request
from earwitness.models.registry import open_model

EMOTIONS = ("anger", "disgust", "fear", "happiness", "neutral", "sadness", "surprise")
PROMPT = Prompt("Which emotion is expressed? One of: " + ", ".join(EMOTIONS), choices=EMOTIONS)
KEY = "sk-test-0123456789abcdefSECRET"


def tone(seconds: float, rate: int, *, hz: float = 150.0, peak: float = 0.1) -> np.ndarray:
    """A hum with a few harmonics, so that it has a pitch."""
    at = np.arange(round(seconds * rate)) / rate
    wave = sum(np.sin(2 * np.pi * hz * k * at) / k for k in (1, 2, 3))
    return (peak * wave / np.abs(wave).max()).astype(np.float32)


@pytest.fixture
def make_clip(tmp_path: Path) -> Callable[..., AudioRef]:
    """Writes a clip and returns its reference."""

    def make(
        name: str = "clip.wav", *, seconds: float = 1.0, rate: int = 16_000, channels: int = 1,
        subtype: str | None = None, hz: float = 150.0, peak: float = 0.1, **fields: Any,
    ) -> AudioRef:  # fmt: skip
        path = tmp_path / name
        samples = tone(seconds, rate, hz=hz, peak=peak)
        if channels > 1:
            samples = np.stack([samples] * channels, axis=1)
        soundfile.write(path, samples, rate, subtype=subtype)
        return ref_to(path, seconds, rate, channels=channels, **fields)

    return make


def ref_to(path: Path, seconds: float, rate: int, **fields: Any) -> AudioRef:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return AudioRef(path, digest, seconds, rate, **fields)


@pytest.fixture
def request_(make_clip: Callable[..., AudioRef]) -> Request:
    """A question about one second of sound."""
    return Request("item-1", PROMPT, make_clip(), idempotency_key="key-of-the-reply")


def ask(model: AudioModel, request: Request) -> Reply:
    """Ask once and close the model."""

    async def run() -> Reply:
        try:
            return await model.ask(request)
        finally:
            await model.aclose()

    return asyncio.run(run())


def open_and_ask(name: str, request: Request, **options: Any) -> Reply:
    return ask(open_model(name, options), request)


def without_audio(request: Request) -> Request:
    return replace(request, audio=None)
