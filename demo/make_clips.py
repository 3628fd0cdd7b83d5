"""Synthetic clips in several voices, one manner per label: plumbing for the demonstration."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from earwitness.audio.io import Audio, read_audio, resample, write_audio
from earwitness.models.voices.espeak import Espeak, Manner

RECIPES = Path(__file__).parent / "recipes.yaml"


@dataclass(frozen=True)
class Order:
    """One clip to speak."""

    path: Path
    text: str
    voice: str
    sex: str
    pitch: int
    emotion: str
    recipe: Mapping[str, float]


def orders(folder: Path, part: str, recipes: Mapping[str, Any]) -> Iterator[Order]:
    """Every clip of one part (``train`` or ``test``), in a fixed order."""
    for voice in recipes["voices"][part]:
        for number, text in enumerate(recipes["scripts"]):
            for emotion, recipe in recipes["emotions"].items():
                name = f"{voice['name'].replace('/', '_').replace('+', '_')}-{number}-{emotion}.wav"
                yield Order(
                    folder / name,
                    text,
                    voice["name"],
                    voice["sex"],
                    voice["pitch"],
                    emotion,
                    recipe,
                )


def speak_with_espeak(engine: Espeak, order: Order) -> None:
    recipe = order.recipe
    manner = Manner(
        rate_wpm=round(160 * recipe["rate"]),
        pitch=min(99, round(order.pitch * recipe["pitch"])),
        pitch_range=min(99, round(50 * recipe["range"])),
        volume=min(200, round(70 * recipe["volume"])),
    )
    engine.speak(order.text, order.voice, order.path, manner)


def speak_with_hibari(engine: Any, order: Order) -> None:
    """A neural voice has no pitch control: it is shifted by resampling, the tempo made good by ``speed``."""
    recipe = order.recipe
    shift = recipe["pitch"] ** 0.5
    samples = np.asarray(engine(order.text, speed=recipe["rate"] / shift, seed=0), dtype=np.float32)
    fast = Audio(samples, int(24_000 * shift))
    audio = resample(fast, 24_000)
    gain = 0.4 * recipe["volume"] / max(float(np.abs(audio.samples).max()), 1e-9)
    write_audio(order.path, Audio(audio.samples * np.float32(min(gain, 1.0)), 24_000))


def make_part(folder: Path, part: str) -> Path:
    """Speak one part and write its table; returns the CSV. What is there already is kept."""
    recipes = yaml.safe_load(RECIPES.read_text(encoding="utf-8"))
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "clips.csv"
    if table.exists():
        return table
    rows = []
    hibari = None
    with Espeak() as espeak:
        for order in orders(folder, part, recipes):
            if order.voice.startswith("hibari/"):
                if hibari is None:
                    from hibari import Hibari

                    hibari = Hibari(voice=order.voice.split("/")[1])
                speak_with_hibari(hibari, order)
            else:
                speak_with_espeak(espeak, order)
            seconds = read_audio(order.path).seconds
            if not math.isfinite(seconds) or seconds < 0.5:
                raise RuntimeError(f"{order.path}: the voice said nothing")
            rows.append(
                {
                    "file": order.path.name,
                    "emotion": order.emotion,
                    "speaker": order.voice,
                    "sex": order.sex,
                    "text": order.text,
                }
            )
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return table
