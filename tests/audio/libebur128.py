"""Signals that anyone can make again, and what libebur128 measures on them.

``python -m tests.audio.libebur128`` needs the shared library (Debian: ``libebur128-1``; or its path in
``LIBEBUR128``) and writes ``tests/golden/libebur128.json``, which the tests compare with.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from earwitness.audio import Audio

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "libebur128.json"

_MODE_ALL = 0b111111
_GLOBAL_FIGURES = ("loudness_global", "loudness_range")


def noise(frames: int, channels: int, seed: int) -> np.ndarray:
    """Uniform noise in [-1, 1) from raw bits, which no version of NumPy may change."""
    raw = np.random.PCG64(seed).random_raw(frames * channels) >> np.uint64(40)
    return (raw.astype(np.float64) / 2**23 - 1).reshape(frames, channels)


def speechlike(seconds: float, rate: int, channels: int, seed: int) -> Audio:
    """Syllables of low-passed noise with pauses, phrases of very different level, a little hiss."""
    frames = round(seconds * rate)
    t = np.arange(frames)[:, None] / rate
    rough = noise(frames, channels, seed)
    width = max(1, rate // 4000)
    total = np.cumsum(rough, axis=0)
    smooth = np.copy(rough)
    smooth[width:] = (total[width:] - total[:-width]) / width
    syllables = np.clip(np.sin(2 * np.pi * 2.3 * t), 0, None) ** 2
    phrases = 10 ** ((-18 + 14 * np.sin(2 * np.pi * t / 17 + seed)) / 20)
    pauses = (np.sin(2 * np.pi * t / 7.3) > -0.6).astype(float)
    pan = 1 - 0.3 * np.arange(channels)[None, :] / channels
    wave = (0.8 * smooth * syllables * pauses + 1e-4 * rough) * phrases * pan
    return Audio(
        np.squeeze(wave, axis=1).astype(np.float32) if channels == 1 else wave.astype(np.float32),
        rate,
    )


def sweep(seconds: float, rate: int, level: float) -> Audio:
    """From 20 Hz to 0.45 of the rate, equal time per octave, so that every frequency's weight counts."""
    t = np.arange(round(seconds * rate)) / rate
    octaves = math.log(0.45 * rate / 20)
    phase = 2 * np.pi * 20 * seconds / octaves * (np.exp(t / seconds * octaves) - 1)
    return Audio((level * np.sin(phase)).astype(np.float32), rate)


CASES: dict[str, Callable[[], Audio]] = {
    "noise 48000 mono": lambda: Audio((0.1 * noise(480_000, 1, 1))[:, 0].astype(np.float32), 48_000),
    "noise 44100 stereo": lambda: Audio((0.9 * noise(441_000, 2, 2)).astype(np.float32), 44_100),
    "speech 48000 mono": lambda: speechlike(40, 48_000, 1, 3),
    "speech 44100 mono": lambda: speechlike(40, 44_100, 1, 4),
    "speech 44100 stereo": lambda: speechlike(25, 44_100, 2, 5),
    "speech 16000 mono": lambda: speechlike(40, 16_000, 1, 6),
    "speech 22050 mono": lambda: speechlike(40, 22_050, 1, 7),
    "speech 24000 stereo": lambda: speechlike(20, 24_000, 2, 8),
    "speech 11025 mono": lambda: speechlike(20, 11_025, 1, 9),
    "speech 8000 mono": lambda: speechlike(20, 8_000, 1, 10),
    "speech 32000 five channels": lambda: speechlike(15, 32_000, 5, 11),
    "speech 96000 mono": lambda: speechlike(10, 96_000, 1, 12),
    "sweep 48000": lambda: sweep(20, 48_000, 0.5),
    "sweep 44100": lambda: sweep(20, 44_100, 0.5),
    "sweep 16000": lambda: sweep(20, 16_000, 0.25),
    "half a second": lambda: speechlike(0.5, 44_100, 1, 13),
    "nearly silent": lambda: Audio((3e-4 * noise(44_100 * 5, 1, 14))[:, 0].astype(np.float32), 44_100),
}  # fmt: skip


class Libebur128:
    """A thin view of the C library."""

    def __init__(self) -> None:
        name = os.environ.get("LIBEBUR128") or ctypes.util.find_library("ebur128")
        if not name:
            raise OSError("no libebur128: install it, or give its path in LIBEBUR128")
        self.c = ctypes.CDLL(name)
        self.c.ebur128_init.restype = ctypes.c_void_p
        self.c.ebur128_init.argtypes = [ctypes.c_uint, ctypes.c_ulong, ctypes.c_int]

    def figures(self, audio: Audio) -> dict[str, float | None]:
        state = ctypes.c_void_p(
            self.c.ebur128_init(audio.channels, ctypes.c_ulong(audio.rate), _MODE_ALL)
        )
        hop = (audio.rate + 5) // 10
        samples = np.ascontiguousarray(audio.samples.reshape(audio.frames, audio.channels))
        momentary, short_term = [], []
        for first in range(0, audio.frames, hop):
            part = samples[first : first + hop]
            self.c.ebur128_add_frames_float(
                state, part.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(len(part))
            )
            if len(part) == hop:
                if first >= 3 * hop:
                    momentary.append(self._figure("loudness_momentary", state))
                if first >= 29 * hop:
                    short_term.append(self._figure("loudness_shortterm", state))
        found: dict[str, float | None] = {
            name: self._figure(name, state) for name in _GLOBAL_FIGURES
        }
        for kind in ("sample_peak", "true_peak"):
            peaks = [self._figure(kind, state, channel) for channel in range(audio.channels)]
            found[kind + "_db"] = 20 * math.log10(max(peaks))
        found["max_momentary"] = max(momentary, default=None)
        found["max_short_term"] = max(short_term, default=None)
        self.c.ebur128_destroy(ctypes.byref(state))
        return {
            name: None if value is None or not math.isfinite(value) else round(value, 6)
            for name, value in found.items()
        }

    def _figure(self, name: str, state: ctypes.c_void_p, *channel: int) -> float:
        out = ctypes.c_double()
        call = getattr(self.c, f"ebur128_{name}")
        if call(state, *map(ctypes.c_uint, channel), ctypes.byref(out)):
            raise ValueError(f"libebur128 refuses {name}")
        return out.value


def main() -> None:
    library = Libebur128()
    table = {name: library.figures(make()) for name, make in CASES.items()}
    GOLDEN.write_text(
        json.dumps({"made_with": "libebur128 1.2.6", "cases": table}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
