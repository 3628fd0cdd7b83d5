"""Loudness of two minutes, beside pyloudnorm; and the other blocks of a mix.

Run by ``make bench`` or ``python -m benchmarks.loudness``. Figures are CPU milliseconds, the best of several.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable

import numpy as np

from earwitness.audio import Audio
from earwitness.audio.convolution import convolve
from earwitness.audio.fades import apply_gain, duck_envelope, fade, loop_to
from earwitness.audio.filters import cascade, highpass, lowpass, peaking
from earwitness.audio.loudness import integrated_loudness, measure_loudness
from earwitness.audio.peaks import HEADROOM_DB, true_peak_dbtp
from earwitness.audio.rooms import RoomSpec, impulse_response

SECONDS = 120
RATE = 44_100
BUDGET_MS = 66.0
TIMES = 7


def best_cpu_ms(work: Callable[[], object], times: int = TIMES) -> float:
    """Least CPU time of several runs, of all threads."""
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return 1000 * min(found)


def talk() -> Audio:
    """Noise that comes and goes like syllables and turns, at about the level of a finished scene."""
    rng = np.random.default_rng(0)
    t = np.arange(SECONDS * RATE) / RATE
    level = (
        0.15 * np.clip(np.sin(2 * np.pi * 2.1 * t), 0, None) * (np.sin(2 * np.pi * t / 9) > -0.7)
    )
    wave = level * rng.standard_normal(len(t)) + 1e-3 * rng.standard_normal(len(t))
    return Audio((0.9 * wave / np.abs(wave).max()).astype(np.float32), RATE)


def main() -> None:
    audio = talk()
    ours = best_cpu_ms(lambda: integrated_loudness(audio))
    print(f"integrated loudness of {SECONDS} s at {RATE} Hz (CPU-ms, best of {TIMES})")
    print(f"  earwitness          {ours:7.1f}   budget {BUDGET_MS:g}  {'ok' if ours <= BUDGET_MS else 'OVER'}")  # fmt: skip
    if importlib.util.find_spec("pyloudnorm"):
        import pyloudnorm

        meter = pyloudnorm.Meter(RATE)
        theirs = best_cpu_ms(lambda: meter.integrated_loudness(audio.samples), 3)
        print(f"  pyloudnorm          {theirs:7.1f}   {theirs / ours:.1f} times as long")
        off = meter.integrated_loudness(audio.samples) - (integrated_loudness(audio).lufs or 0.0)
        print(f"  pyloudnorm reads {off:+.3f} LU beside us")
    else:
        print("  pyloudnorm          not installed: pip install pyloudnorm")
    room = RoomSpec((12, 8, 3.5), (6, 4, 1.6), (5, 4, 1.5), rt60_s=0.6)
    response = impulse_response(room, RATE)
    chain = cascade(
        highpass(80, RATE), peaking(250, -1.5, RATE, 0.7), peaking(3000, 1.5, RATE, 0.7)
    )
    low = lowpass(16_000, RATE)
    bed = Audio(audio.samples[: 30 * RATE].copy(), RATE)
    quiet = apply_gain(audio, 0.3)
    spans = [(10.0 * k, 10.0 * k + 2) for k in range(11)]
    blocks: dict[str, Callable[[], object]] = {
        "all loudness figures": lambda: measure_loudness(audio),
        "true peak, 0.9 of full scale": lambda: true_peak_dbtp(audio),
        "true peak, far from ceiling": lambda: true_peak_dbtp(quiet, -1 - HEADROOM_DB),
        "voice chain, three filters": lambda: chain.apply(audio),
        "low-pass, zero phase": lambda: low.apply(audio, zero_phase=True),
        f"room of {len(response) / RATE:.2f} s": lambda: convolve(audio, response),
        "loop of 30 s to 120 s": lambda: loop_to(bed, SECONDS * RATE),
        "fades": lambda: fade(audio, 0.5, 0.5),
        "ducking of 11 events": lambda: duck_envelope(SECONDS * RATE, RATE, spans, -4, 0.08, 0.08),
        "response of a room of 0.6 s": lambda: impulse_response(room, RATE),
    }  # fmt: skip
    print(f"other blocks, {SECONDS} s (CPU-ms, best of 3)")
    for name, work in blocks.items():
        print(f"  {name:<30}{best_cpu_ms(work, 3):7.1f}")


if __name__ == "__main__":
    main()
