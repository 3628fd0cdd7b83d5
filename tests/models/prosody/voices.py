"""Voices made of pulses and resonators, with everything about them known."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import soundfile

from earwitness.clips.corpus import Clip, ClipSet, SetCard, write_clip_set

RATE = 16_000
LABELS = ("anger", "neutral", "sadness")
FORMANTS_HZ = ((600.0, 80.0), (1200.0, 100.0), (2500.0, 150.0))


def pulses(
    f0_hz: float,
    seconds: float = 1.0,
    *,
    jitter: float = 0.0,
    shimmer_db: float = 0.0,
    formants: tuple[tuple[float, float], ...] = FORMANTS_HZ,
    seed: int = 0,
) -> np.ndarray:
    """Pulses at exact (fractional) times, band-limited, through resonators of (centre, bandwidth) in Hz.

    ``jitter`` and ``shimmer_db`` are the standard deviations of each period (relative) and each height.
    """
    from scipy.signal import lfilter

    rng = np.random.default_rng(seed)
    count = int((seconds - 0.03) * f0_hz)
    periods = (1 + jitter * rng.normal(size=count)) / f0_hz
    times = 0.005 + np.cumsum(periods)
    heights = 10 ** (shimmer_db * rng.normal(size=count) / 20)
    n = round(seconds * RATE)
    hz = np.fft.rfftfreq(n, 1 / RATE)
    spectrum = np.zeros(len(hz), complex)
    for time, height in zip(times, heights, strict=True):
        if time < seconds:
            spectrum += height * np.exp(-2j * np.pi * hz * time)
    wave = np.fft.irfft(spectrum * (hz < 7000), n)
    for centre, bandwidth in formants:
        radius = np.exp(-np.pi * bandwidth / RATE)
        turn = 2 * np.pi * centre / RATE
        wave = lfilter([1.0], [1.0, -2 * radius * np.cos(turn), radius**2], wave)
    return np.asarray(wave / np.abs(wave).max())


def acted(label: str, speaker: int, take: int) -> np.ndarray:
    """0.7 s of a "speaker" with a label's pitch, jitter, pulse of loudness and level."""
    rng = np.random.default_rng([speaker, take, LABELS.index(label)])
    base = 95.0 + 25 * speaker
    lift, jitter, beat_hz, level = {
        "anger": (1.6, 0.02, 6.0, 0.5),
        "neutral": (1.0, 0.005, 4.0, 0.2),
        "sadness": (1.15, 0.01, 2.5, 0.05),
    }[label]
    f0 = base * lift * (1 + 0.04 * rng.normal())
    voice = pulses(f0, 0.7, jitter=jitter, seed=1000 * speaker + take)
    at = np.arange(len(voice)) / RATE
    envelope = 0.55 - 0.45 * np.cos(2 * np.pi * beat_hz * (1 + 0.1 * rng.normal()) * at)
    noise = 0.002 * rng.normal(size=len(voice))
    return np.asarray(level * (voice * envelope + noise)).astype(np.float32)


def make_set(
    folder: Path,
    *,
    speakers: int = 4,
    takes: int = 3,
    first_speaker: int = 0,
    use: str = "any",
    prefix: str = "voice",
) -> ClipSet:
    """A clip set of such voices on disk."""
    clips = []
    for speaker in range(first_speaker, first_speaker + speakers):
        for label in LABELS:
            for take in range(takes):
                name = f"{prefix}{speaker}_{label}_{take}"
                path = folder / "audio" / f"{name}.wav"
                path.parent.mkdir(parents=True, exist_ok=True)
                soundfile.write(path, acted(label, speaker, take), RATE, subtype="PCM_16")
                clips.append(
                    Clip(
                        id=name,
                        path=f"audio/{name}.wav",
                        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
                        emotion=label,
                        speaker=f"{prefix}{speaker}",
                        language="en",
                        seconds=0.7,
                        rate=RATE,
                        channels=1,
                        source_label=label,
                        licence="CC0-1.0",
                    )
                )
    card = SetCard(name=folder.name, version="1", licence="CC0-1.0", use=use, synthetic=True)
    return write_clip_set(folder, card, clips)
