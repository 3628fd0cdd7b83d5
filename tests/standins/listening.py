"""What a stand-in hears: level and pitch of the audio it was really sent, and an answer made of them."""

from __future__ import annotations

import hashlib
import io
import math
import random
from dataclasses import dataclass

import numpy as np
import soundfile

LABELS = ("anger", "disgust", "fear", "happiness", "neutral", "sadness", "surprise")
_ADJECTIVES = ("angry", "disgusted", "fearful", "happy", "neutral", "sad", "surprised")
CHARACTERS = ("neutral", "energy", "uniform", "echo", "refuse")


@dataclass(frozen=True)
class Heard:
    """One decoded stimulus. ``pitch_hz`` is None where there is no clear pitch."""

    seconds: float
    rate: int
    format: str
    level_dbfs: float
    pitch_hz: float | None
    sha256: str


def listen(data: bytes) -> Heard:
    """Decode audio as a service would; raises soundfile.LibsndfileError for what is none."""
    with soundfile.SoundFile(io.BytesIO(data)) as file:
        samples = file.read(dtype="float32", always_2d=True).mean(axis=1)
        rate, kind = file.samplerate, file.format.lower()
    rms = float(np.sqrt(np.mean(np.square(samples)))) if len(samples) else 0.0
    level = 20 * math.log10(rms) if rms > 1e-6 else -120.0
    return Heard(
        len(samples) / rate,
        rate,
        "wav" if kind.startswith("wav") else kind,
        level,
        _pitch(samples, rate) if rms > 1e-4 else None,
        hashlib.sha256(samples.tobytes()).hexdigest(),
    )


def _pitch(samples: np.ndarray, rate: int) -> float | None:
    """Pitch of the loudest quarter second, by autocorrelation between 70 and 500 Hz."""
    width = min(len(samples), rate // 4)
    starts = range(0, max(len(samples) - width, 0) + 1, max(width // 2, 1))
    best = max(starts, key=lambda at: float(np.square(samples[at : at + width]).sum()))
    frame = samples[best : best + width] - samples[best : best + width].mean()
    spectrum = np.fft.rfft(frame, 2 * len(frame))
    correlation = np.fft.irfft(np.abs(spectrum) ** 2)[: len(frame)]
    low, high = rate // 500, min(rate // 70, len(frame) - 1)
    if high <= low or correlation[0] <= 0:
        return None
    lag = low + int(np.argmax(correlation[low:high]))
    return rate / lag if correlation[lag] > 0.3 * correlation[0] else None


def emotion_of(heard: Heard | None) -> str:
    """A label from level and pitch alone: crude on purpose, but only possible if the audio arrived."""
    if heard is None or heard.level_dbfs < -60:
        return "neutral"
    loud, quiet = heard.level_dbfs > -18, heard.level_dbfs < -30
    pitch = heard.pitch_hz or 0.0
    if loud:
        return "surprise" if pitch > 300 else "anger"
    if quiet:
        return "fear" if pitch > 220 else "sadness"
    if pitch > 220:
        return "happiness"
    return "disgust" if 0 < pitch < 100 else "neutral"


def in_words_of(label: str, prompt: str) -> str:
    """The label as the prompt names it: ``anger`` or ``angry``."""
    adjective = _ADJECTIVES[LABELS.index(label)]
    asks_adjectives = "angry" in prompt.lower() and "anger" not in prompt.lower()
    return adjective if asks_adjectives else label


def answer(character: str, heard: Heard | None, prompt: str) -> str:
    """What a model of this character says."""
    if character == "energy":
        return in_words_of(emotion_of(heard), prompt)
    if character == "uniform":
        seed = heard.sha256 if heard else prompt
        return in_words_of(random.Random(seed).choice(LABELS), prompt)
    if character == "echo":
        return prompt
    if character == "refuse":
        return "I'm sorry, but I can't identify a person's emotions from their voice."
    if character == "neutral":
        return "neutral"
    raise ValueError(f"no character {character!r}; there are {', '.join(CHARACTERS)}")
