"""From a source's recording to the set's file: once, by a declared policy, and never twice.

A journal beside the files remembers what was converted from what, so that an import that was killed goes
on where it was. A file is kept when the source's hash, the conversion and its own hash all still hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from earwitness.errors import AudioFileError, DataError

TARGET_RATE = 16_000
STATE_FOLDER = ".import"
DURATION_TOLERANCE_S = 0.05
"""A table's duration may be rounded to a tenth of a second and no more."""


@dataclass(frozen=True, slots=True)
class Converted:
    """What became of one recording: the file in the set and where it came from.

    ``mono_policy`` and ``level`` say in words how channels became one and whether it was turned down to
    fit 16 bits; empty where nothing was done.
    """

    id: str
    conversion: str
    source_sha256: str
    source_rate: int
    source_channels: int
    mono_policy: str
    path: str
    sha256: str
    seconds: float
    rate: int
    channels: int
    level: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """One recording to bring into the set. ``rate`` is None to copy the file as it is."""

    id: str
    source: str
    folder: str
    path: str
    rate: int | None
    conversion: str
    claimed_s: float | None = None
    known: Converted | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """The result of a job: ``converted``, or the error's class and text."""

    id: str
    converted: Converted | None
    reused: bool = False
    error: str = ""


def conversion_name(rate: int | None) -> str:
    """The conversion in words, with the versions that its samples depend on."""
    if rate is None:
        return "none: files copied byte for byte"
    import soxr

    return f"{rate} Hz mono 16-bit WAV; resampled by soxr {soxr.__version__} at VHQ; channels by earwitness to_mono"


def convert(job: Job) -> Finished:
    """Convert, copy or keep one recording. Errors of the recording are returned, not raised."""
    from earwitness.audio import file_sha256

    source = Path(job.source)
    try:
        source_sha256 = file_sha256(source)
        known = job.known
        if known is not None and _still_holds(job, known, source_sha256):
            return Finished(job.id, known, reused=True)
        return Finished(job.id, _convert(job, source, source_sha256))
    except (AudioFileError, DataError) as error:
        return Finished(job.id, None, error=f"{type(error).__name__}: {error}")
    except OSError as error:
        return Finished(job.id, None, error=f"{type(error).__name__}: {source}: {error.strerror}")


def _still_holds(job: Job, known: Converted, source_sha256: str) -> bool:
    from earwitness.audio import file_sha256

    target = Path(job.folder) / job.path
    return (
        known.source_sha256 == source_sha256
        and known.conversion == job.conversion
        and known.path == job.path
        and target.is_file()
        and file_sha256(target) == known.sha256
    )


def _convert(job: Job, source: Path, source_sha256: str) -> Converted:
    from earwitness.audio import (
        atomic_write_bytes,
        file_sha256,
        full_scale_policy,
        read_audio,
        resample,
        to_mono_with_policy,
        write_audio,
    )

    audio = read_audio(source)
    if job.claimed_s is not None and abs(audio.seconds - job.claimed_s) > DURATION_TOLERANCE_S:
        raise DataError(
            str(source), f"lasts {audio.seconds:.2f} s", f"{job.claimed_s:.2f} s, as its table says"
        )
    target = Path(job.folder) / job.path
    target.parent.mkdir(parents=True, exist_ok=True)
    source_rate, source_channels, policy, level = audio.rate, audio.channels, "", ""
    if job.rate is None:
        atomic_write_bytes(target, source.read_bytes())
    else:
        if audio.channels > 1 or audio.samples.ndim > 1:
            audio, policy = to_mono_with_policy(audio)
        if audio.rate != job.rate:
            audio = resample(audio, job.rate)
        audio, level = full_scale_policy(audio)
        write_audio(target, audio, subtype="PCM_16")
    return Converted(
        id=job.id,
        conversion=job.conversion,
        source_sha256=source_sha256,
        source_rate=source_rate,
        source_channels=source_channels,
        mono_policy=policy if source_channels > 1 else "",
        path=job.path,
        sha256=file_sha256(target),
        seconds=round(audio.frames / audio.rate, 6),
        rate=audio.rate,
        channels=audio.channels,
        level=level,
    )


class Journal:
    """Append-only JSON lines of finished conversions; a torn last line is dropped when it is opened."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / STATE_FOLDER / "journal.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.known = self._read()
        self._handle = self.path.open("a", encoding="utf-8")

    def add(self, converted: Converted) -> None:
        """Remember one conversion, at once."""
        self._handle.write(json.dumps(asdict(converted), ensure_ascii=False) + "\n")
        self._handle.flush()

    def close(self) -> None:
        self._handle.close()

    def remove(self) -> None:
        """The set is whole: what the journal knew now stands in ``clips.jsonl``."""
        self.close()
        self.path.unlink(missing_ok=True)
        if not any(self.path.parent.iterdir()):
            self.path.parent.rmdir()

    def _read(self) -> Mapping[str, Converted]:
        if not self.path.is_file():
            return {}
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) != len(data):
            with self.path.open("r+b") as handle:
                handle.truncate(len(whole))
        known: dict[str, Converted] = {}
        for line in whole.decode("utf-8", errors="replace").split("\n"):
            try:
                entry = Converted(**json.loads(line))
            except (json.JSONDecodeError, TypeError):
                continue  # a line this version cannot use only means converting again
            known[entry.id] = entry
        return known
