"""Small recordings for tests: noise with an envelope, told apart by a number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile


def samples(number: int, seconds: float = 0.3, rate: int = 16_000, channels: int = 1) -> np.ndarray:
    """Float32 noise, never silent, different for every number."""
    generator = np.random.Generator(np.random.Philox(number))
    shape = (round(seconds * rate),) if channels == 1 else (round(seconds * rate), channels)
    return (generator.uniform(-0.3, 0.3, shape)).astype(np.float32)


def record(
    path: Path, number: int, seconds: float = 0.3, rate: int = 16_000, channels: int = 1
) -> Path:
    """Write a recording as 16-bit audio in the format of its suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Whole numbers, because libsndfile rounds floats differently for WAV and for FLAC.
    whole = np.rint(samples(number, seconds, rate, channels) * 32_768).astype(np.int16)
    soundfile.write(path, whole, rate, subtype="PCM_16")
    return path


RAVDESS_EMOTIONS = ("01", "03", "04", "05", "06", "07", "08")


def ravdess(folder: Path, actors: int = 3, rate: int = 16_000, suffix: str = "wav") -> Path:
    """A small corpus with RAVDESS names: one clip an emotion and actor."""
    for actor in range(1, actors + 1):
        for number, emotion in enumerate(RAVDESS_EMOTIONS):
            name = f"03-01-{emotion}-01-01-01-{actor:02}.{suffix}"
            record(folder / f"Actor_{actor:02}" / name, 100 * actor + number, rate=rate)
    return folder
