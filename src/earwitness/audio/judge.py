"""What the samples of a recording say about it: refused, flagged, or fine."""

from __future__ import annotations

import math
from collections.abc import Iterator

from earwitness.audio.measure import Meter
from earwitness.audio.types import FULL_SCALE_STEP, MIN_SECONDS, OVERSHOOT, Problem

AGAIN = "Fetch or export the recording again."

QUIET_PEAK = 1e-3
"""Peaks under -60 dBFS are flagged: at its own level, such a recording is hard to hear."""

DC_OFFSET = 0.05
ORDER = ("non_finite", "empty", "too_short", "silent")
"""When several hold, the first of these is the one that is raised."""


def empty_problem(cut: bool) -> Problem:
    message = "nothing is left of its audio: it is cut right after its header"
    return Problem(
        "empty", "error", message if cut else "its header is valid and holds no sample", AGAIN
    )


def judge(meter: Meter, rate: int, cut: bool) -> list[Problem]:
    """What the samples themselves say."""
    errors = {p.code: p for p in _sample_errors(meter, rate, cut)}
    found = [errors[code] for code in ORDER if code in errors]
    if not errors:
        found.extend(_sample_warnings(meter))
    return found


def _sample_errors(meter: Meter, rate: int, cut: bool) -> Iterator[Problem]:
    if meter.frames == 0:
        yield empty_problem(cut)
        return
    if meter.non_finite:
        total = meter.frames * meter.channels
        where = (meter.first_non_finite or 0) / rate
        yield Problem(
            "non_finite",
            "error",
            f"{meter.non_finite} of {total} samples are NaN or infinite, the first at {where:.3f} s",
            "Find the program that made it; export it again.",
        )
    if meter.frames < MIN_SECONDS * rate:
        plural = "s" * (meter.frames > 1)
        yield Problem(
            "too_short",
            "error",
            f"it has {meter.frames} frame{plural} ({1000 * meter.frames / rate:.3g} ms); nothing under"
            f" {1000 * MIN_SECONDS:g} ms can be heard as a voice or sound",
            "Remove it, or fetch the whole recording.",
        )
    if meter.swing < FULL_SCALE_STEP and not meter.non_finite:
        if meter.peak == 0:
            how = "all its samples are zero"
        elif meter.swing == 0:
            how = f"all its samples have the same value ({meter.peak:.4g} from zero)"
        else:
            how = f"its samples vary by {meter.swing:.2g} of full scale, less than one step of 16 bits"
        yield Problem("silent", "error", how, "Remove it, or record it again.")


def _sample_warnings(meter: Meter) -> Iterator[Problem]:
    if meter.peak > OVERSHOOT:
        over = 20 * math.log10(meter.peak)
        yield Problem(
            "over_full_scale",
            "warning",
            f"its peak is {meter.peak:.4g}, {over:.1f} dB over full scale; written as integers it is turned down",
            "Check how it was made: samples of another scale, or rubbish."
            if meter.peak > 1000
            else "",
        )
    if meter.swing / 2 < QUIET_PEAK:
        level = 20 * math.log10(meter.swing / 2)
        yield Problem(
            "very_quiet",
            "warning",
            f"it is very quiet: its peak is {level:.0f} dBFS",
            "Listen to it.",
        )
    if meter.clipped:
        yield Problem(
            "clipped",
            "warning",
            f"it is clipped: {meter.clipped} times 3 samples in a row are at full scale",
            "Listen to it.",
        )
    if meter.offset > DC_OFFSET * max(1.0, meter.peak):
        yield Problem(
            "dc_offset", "warning", f"its mean is {meter.offset:.2g} from zero (DC offset)"
        )
    if meter.channels > 1:
        mix = meter.mix()
        if mix.kind in ("antiphase", "silent_channel"):
            yield Problem(mix.kind, "warning", f"as mono it becomes {mix.policy}")
