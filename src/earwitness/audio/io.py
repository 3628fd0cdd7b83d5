"""Reading audio that can be trusted: by content, with every lie of a header found or named.

One function looks at a file (:func:`_examine`); reading raises the first error it finds, inspecting
lists them all. What each kind of odd file leads to is in ``docs/audio-files.md``.

Examples
--------
>>> import numpy as np
>>> from earwitness.audio.convert import encode_audio
>>> tone = Audio(np.sin(np.arange(1600, dtype=np.float32) / 4), 16000)
>>> decode_audio(encode_audio(tone)).frames
1600
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earwitness.audio.containers import Promise, promise_of
from earwitness.audio.convert import (
    encode_audio,
    full_scale_policy,
    resample,
    to_mono,
    to_mono_with_policy,
    write_audio,
)
from earwitness.audio.files import atomic_write_bytes, atomic_write_text, file_sha256
from earwitness.audio.judge import AGAIN, empty_problem, judge
from earwitness.audio.measure import Meter
from earwitness.audio.sniff import AUDIO_SUFFIXES, Sniffed, sniff
from earwitness.audio.source import Source, Window, source_of_bytes
from earwitness.audio.types import (
    MAX_CHANNELS,
    MAX_RATE_HZ,
    Audio,
    Inspection,
    Problem,
    Severity,
    error_from,
    ffmpeg_command,
    samples_at,
)
from earwitness.audio.wav_chunks import WavLayout, read_layout, wav_window
from earwitness.errors import AudioFileError

if TYPE_CHECKING:
    from earwitness.audio.types import Samples

__all__ = [
    "Audio",
    "Inspection",
    "Problem",
    "Severity",
    "atomic_write_bytes",
    "atomic_write_text",
    "decode_audio",
    "encode_audio",
    "file_sha256",
    "full_scale_policy",
    "inspect_audio",
    "read_audio",
    "resample",
    "samples_at",
    "to_mono",
    "to_mono_with_policy",
    "write_audio",
]

BLOCK_SAMPLES = 1 << 16
PIECE_FRAMES = 4096
"""What compressed formats are decoded in: after damage, at most this much before it is lost."""


def read_audio(
    path: Path | str, *, allow_truncated: bool = False, require_sound: bool = True
) -> Audio:
    """Read a file, whatever its suffix.

    Parameters
    ----------
    allow_truncated: read what is left of a file whose header promises more.
    require_sound: refuse files that are empty, silent or shorter than 25 ms. False accepts them.

    Returns
    -------
    Audio: float32, shape (n,) for mono and (n, channels) otherwise.

    Raises
    ------
    AudioFileError: one of its subclasses; the message says what was found and what to do.
    """
    with _opened(Path(path)) as source:
        return _read(source, allow_truncated, require_sound)


def decode_audio(
    data: bytes,
    *,
    name: str = "<bytes>",
    allow_truncated: bool = False,
    require_sound: bool = True,
) -> Audio:
    """Like :func:`read_audio`, from bytes in memory. ``name`` is used in messages."""
    return _read(source_of_bytes(data, name), allow_truncated, require_sound)


def inspect_audio(path: Path | str, *, allow_truncated: bool = False) -> Inspection:
    """Look at a file whole, in blocks, and list everything that is wrong with it.

    Never raises for a bad or missing file. With ``allow_truncated`` a cut file has a warning instead of an
    error, which says how much is missing.
    """
    path = Path(path)
    try:
        with _opened(path) as source:
            found = _examine(source, keep=False, allow_truncated=allow_truncated)
            inspection = found.inspection
    except AudioFileError as error:
        problem = Problem(error.code, "error", error.found, error.next_step)
        return _blank(str(path), 0, (problem,))
    suffix = _suffix_problem(path, inspection)
    return replace(inspection, problems=inspection.problems + suffix)


@contextmanager
def _opened(path: Path) -> Iterator[Source]:
    try:
        # Opening a pipe or a device would wait for ever or never end, so look first.
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise AudioFileError(str(path), "it is a folder", "an audio file")
        if not stat.S_ISREG(mode):
            raise AudioFileError(str(path), "it is a device or a pipe", "a regular file")
        file = path.open("rb")
    except FileNotFoundError:
        raise AudioFileError(
            str(path), "no such file", next_step="Check the path, or fetch the recording."
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise AudioFileError(str(path), f"it cannot be opened ({reason})") from error
    with file:
        size = os.fstat(file.fileno()).st_size
        try:
            yield Source(str(path), file, size)
        except OSError as error:
            raise AudioFileError(
                str(path), f"reading failed ({error.strerror or error})"
            ) from error


def _read(source: Source, allow_truncated: bool, require_sound: bool) -> Audio:
    found = _examine(source, keep=True, allow_truncated=allow_truncated)
    accepted = () if require_sound else ("empty", "too_short", "silent")
    for problem in found.inspection.errors:
        # Without samples the header itself was refused, so nothing can be accepted.
        if found.samples is None or problem.code not in accepted:
            raise error_from(problem, source.name)
    if found.samples is None:
        raise AudioFileError(source.name, "it could not be decoded", next_step=AGAIN)
    return Audio(found.samples, found.inspection.rate)


@dataclass(frozen=True, slots=True)
class _Found:
    inspection: Inspection
    samples: Samples | None = None


def _blank(name: str, size: int, problems: tuple[Problem, ...]) -> Inspection:
    return Inspection(name, "", "", 0, 0, 0, 0.0, 0.0, -math.inf, size, problems)


def _examine(source: Source, *, keep: bool, allow_truncated: bool) -> _Found:
    """Recognise, check the header, decode and measure. With ``keep``, stop at the first error."""
    what = sniff(source)
    if what.container is None:
        refused = (what.problem,) if what.problem else ()
        return _Found(_blank(source.name, source.size, refused))
    layout: WavLayout | None = None
    promise, limit = Promise(), None
    window: Window
    if what.container == "WAV":
        layout = read_layout(source, what.offset)
        problems = _downgrade(layout.problems, allow_truncated)
        blank = replace(_blank(source.name, source.size, problems), container=what.detail)
        if layout.form is None or layout.failed:
            return _Found(blank)
        blank = replace(blank, rate=layout.form.rate, channels=layout.form.channels)
        window, limit = wav_window(source, layout), layout.frame_limit
    else:
        promise = promise_of(what.container, source, what.offset)
        problems = _downgrade(promise.problems, allow_truncated)
        blank = replace(_blank(source.name, source.size, problems), container=what.container)
        if any(p.code == "broken_header" for p in problems):
            return _Found(blank)
        window = Window(source, what.offset, source.size - what.offset)
    if keep and not blank.ok:
        return _Found(blank)
    if layout is not None and layout.length == 0:
        empty = empty_problem(cut=layout.missing > 0)
        return _Found(
            replace(blank, problems=(*problems, empty)), _no_samples(blank) if keep else None
        )
    return _decode(window, blank, what, promise, limit, keep=keep, allow_truncated=allow_truncated)


def _downgrade(problems: tuple[Problem, ...], allow_truncated: bool) -> tuple[Problem, ...]:
    if not allow_truncated:
        return problems
    return tuple(replace(p, severity="warning") if p.code == "truncated" else p for p in problems)


def _no_samples(blank: Inspection) -> Samples:
    import numpy as np

    shape = (0,) if blank.channels <= 1 else (0, blank.channels)
    return np.zeros(shape, np.float32)


def _decode(
    window: Window,
    blank: Inspection,
    what: Sniffed,
    promise: Promise,
    limit: int | None,
    *,
    keep: bool,
    allow_truncated: bool,
) -> _Found:
    """Decode in blocks through libsndfile and measure; no array is sized by what a header says."""
    import numpy as np
    import soundfile

    class Forward(soundfile.SoundFile):  # type: ignore[misc]
        """Read front to back. Otherwise soundfile seeks after every block, which restarts an MP3 decoder
        without the bits it has kept from earlier frames and changes the samples."""

        def seekable(self) -> bool:
            return False

    problems = list(blank.problems)
    cut = any(p.code == "truncated" for p in problems)
    try:
        file = Forward(window, "r")
    except (soundfile.SoundFileError, ValueError, TypeError, OSError) as error:
        if cut:
            problems.append(_nothing_decoded())
        else:
            problems.append(_undecodable(error, what, blank.path))
        return _Found(replace(blank, problems=tuple(problems)))
    with file:
        rate, channels = int(file.samplerate), int(file.channels)
        bad = _bad_numbers(rate, channels)
        if bad:
            return _Found(replace(blank, problems=(*problems, bad)))
        meter = Meter(channels)
        kept: list[Samples] = []
        damage: Exception | None = None
        blocks = _blocks(file, channels, limit, pieces=what.container in ("FLAC", "OGG", "MP3"))
        try:
            for block in blocks:
                meter.add(block)
                if keep:
                    kept.append(block)
        except soundfile.SoundFileError as error:
            damage = error
        subtype = str(file.subtype)
    lost = _lost(promise, meter.frames, rate, damage)
    if lost and not cut:
        problems.extend(_downgrade((lost,), allow_truncated))
        cut = True
    peak, level = meter.peak, meter.rms_dbfs
    problems.extend(judge(meter, rate, cut))
    inspection = replace(
        blank,
        subtype=subtype,
        rate=rate,
        channels=channels,
        frames=meter.frames,
        seconds=meter.frames / rate,
        peak=peak,
        rms_dbfs=level,
        problems=tuple(problems),
    )
    if not keep:
        return _Found(inspection)
    samples = np.concatenate(kept) if kept else None
    if samples is None:
        return _Found(inspection, _no_samples(inspection))
    return _Found(inspection, np.ascontiguousarray(samples[:, 0]) if channels == 1 else samples)


def _blocks(file: Any, channels: int, limit: int | None, *, pieces: bool) -> Iterator[Samples]:
    """Blocks of shape (n, channels), each an array of its own, up to ``limit`` frames in all."""
    import numpy as np

    most = max(PIECE_FRAMES, BLOCK_SAMPLES // channels)
    left = limit
    while left is None or left > 0:
        size = most if left is None else min(most, left)
        block = np.empty((size, channels), np.float32)
        step = PIECE_FRAMES if pieces else size
        filled, ended = 0, False
        try:
            while filled < size and not ended:
                piece = block[filled : filled + step]
                got = len(file.read(out=piece))
                filled += got
                ended = got < len(piece)
        finally:
            # Also when decoding breaks down: what came before the damage was heard.
            if filled:
                yield block[:filled]
        if ended:
            return
        left = None if left is None else left - filled


def _nothing_decoded() -> Problem:
    message = "what is left of it cannot be decoded"
    return Problem("empty", "error", message, AGAIN)


def _undecodable(error: Exception, what: Sniffed, name: str) -> Problem:
    reason = str(error).split(":")[-1].strip().rstrip(".") or type(error).__name__
    kind = what.detail or what.container
    return Problem(
        "broken_header",
        "error",
        f"it begins like {kind} but cannot be decoded ({reason})",
        f"{AGAIN} If other programs play it, convert it: {ffmpeg_command(name)}",
    )


def _bad_numbers(rate: int, channels: int) -> Problem | None:
    if not 1 <= rate <= MAX_RATE_HZ:
        return Problem("broken_header", "error", f"its sample rate is {rate} Hz", AGAIN)
    if not 1 <= channels <= MAX_CHANNELS:
        return Problem("broken_header", "error", f"it has {channels} channels", AGAIN)
    return None


def _lost(promise: Promise, frames: int, rate: int, damage: Exception | None) -> Problem | None:
    """Whether decoding gave less than was promised, or stopped at damage."""
    if promise.frames is not None and frames < promise.frames:
        missing = promise.frames - frames
        return Problem(
            "truncated",
            "error",
            f"{missing} of {promise.frames} frames are missing ({missing / rate:.3f} of {promise.frames / rate:.3f} s):"
            " it is cut or damaged",
            AGAIN,
        )
    if damage is not None:
        message = (
            f"decoding stops after {frames} frames ({frames / rate:.3f} s): it is cut or damaged"
        )
        return Problem("truncated", "error", message, AGAIN)
    return None


def _suffix_problem(path: Path, inspection: Inspection) -> tuple[Problem, ...]:
    """A warning where the name says another container than the content."""
    suffix = path.suffix.lower()
    if suffix not in AUDIO_SUFFIXES or not inspection.container or not inspection.subtype:
        return ()
    real = (
        "WAV" if inspection.container in ("RIFF", "RIFX", "RF64", "BW64") else inspection.container
    )
    if real == "OTHER" or real in AUDIO_SUFFIXES[suffix]:
        return ()
    message = f"it is {real} but named {suffix}; it was read by its content"
    return (
        Problem("wrong_suffix", "warning", message, "Rename it: other programs may refuse it."),
    )
