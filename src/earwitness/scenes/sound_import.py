"""Import: list a collection, map its classes, convert every recording once, give it a split.

Conversion policy, unless files are kept as they are: one channel, 44.1 kHz, 16 bits; sounds are trimmed to within
40 dB of their loudest 10 ms with 30 ms at both ends, and cut around their loudest moment if they are longer than the
bank says the sound may be; ambiences keep their length. What was done is in ``prepared`` of each take.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from earwitness.audio import (
    Audio,
    decode_audio,
    encode_audio,
    full_scale_policy,
    resample,
    to_mono_with_policy,
)
from earwitness.errors import AudioFileError, DataError
from earwitness.jobs import pool_map
from earwitness.scenes.bank import Bank
from earwitness.scenes.sound_growing import (
    RATE_HZ,
    Few,
    GrowingLibrary,
    Keep,
    Made,
    Origin,
    store_take,
)
from earwitness.scenes.sound_maps import ClassMap
from earwitness.scenes.sound_measure import cut_long, split_events, trim
from earwitness.scenes.sound_sources import Listing, Recording
from earwitness.scenes.sounds import Kind, SoundLibrary, SplitPolicy, Take

Events = Literal["whole", "split"]
Progress = Callable[[int, int], None]

MIN_EVENT_S = 0.1
MAX_EVENTS = 8
"""Of one recording: more would only fill a class with its twins."""


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """How recordings become takes.

    Attributes
    ----------
    form: ``flac`` or ``wav``, converted; ``keep``, the bytes as they are.
    events: ``split`` makes a take of every event of a recording, ``whole`` one of all of it.
    cut_long: shorten sounds that are longer than the bank's longest.
    per_class: at most so many recordings of a class, chosen by their hash; None for all.
    """

    form: Keep = "flac"
    events: Events = "whole"
    cut_long: bool = True
    per_class: int | None = None


@dataclass(frozen=True, slots=True)
class ImportJob:
    """One recording on its way to be one sound or ambience. ``longest_s`` 0 never cuts."""

    folder: Path
    path: Path
    kind: Kind
    of: str
    stem: str
    origin: Origin
    settings: ImportSettings
    longest_s: float = 0.0

    @property
    def key(self) -> str:
        """What its takes depend on."""
        s = self.settings
        text = f"{self.origin.sha256}|{self.kind}|{self.of}|{s.form}|{s.events}|{self.longest_s}"
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(slots=True)
class Imported:
    """A finished import, with what came of every recording."""

    library: SoundLibrary
    added: int = 0
    kept: int = 0
    unmapped: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    refused: dict[str, str] = field(default_factory=dict)
    few: Mapping[str, int] = field(default_factory=dict)


def plan_jobs(
    listing: Listing, class_map: ClassMap, bank: Bank, folder: Path, settings: ImportSettings
) -> tuple[list[ImportJob], Counter[str], Counter[str]]:
    """Match recordings with sounds and locations.

    Returns
    -------
    (jobs, unknown classes with counts, recordings left out by reason). A recording with classes that lead to
    different sounds is left out, since nobody knows which of them is heard.
    """
    jobs: list[ImportJob] = []
    unmapped: Counter[str] = Counter()
    left_out = Counter(listing.left_out)
    for recording in listing.recordings:
        targets = list(
            dict.fromkeys(t for label in recording.labels for t in class_map.targets(label))
        )
        targets = [t for t in targets if recording.kind in ("", "events", *_KIND_WORDS[t[0]])]
        if not targets:
            known = [label for label in recording.labels if class_map.knows(label)]
            if known:
                reason = class_map.left_out.get(_normal(known[0]), "of another kind")
                left_out[f"{known[0]}: {reason}"] += 1
            else:
                unmapped[recording.labels[0]] += 1
            continue
        if len([t for t in targets if t[0] == "sound"]) > 1 and len(recording.labels) > 1:
            left_out["classes of several sounds"] += 1
            continue
        sha256 = _sha256(recording.path)
        for kind, of in targets:
            jobs.append(_job(recording, sha256, kind, of, bank, folder, settings))
    return _limited(jobs, settings.per_class), unmapped, left_out


_KIND_WORDS: Mapping[Kind, tuple[str, ...]] = {
    "sound": ("sound", "event", "events"),
    "ambience": ("ambience", "ambiences", "background"),
}


def _normal(label: str) -> str:
    from earwitness.scenes.sound_maps import normal

    return normal(label)


def _sha256(path: Path) -> str:
    from earwitness.audio.files import file_sha256

    return file_sha256(path)


def _job(
    recording: Recording, sha256: str, kind: Kind, of: str, bank: Bank, folder: Path, settings: ImportSettings
) -> ImportJob:  # fmt: skip
    longest = bank.sound(of).duration_s[1] if kind == "sound" and settings.cut_long else 0.0
    name = re.sub(r"[^a-z0-9]+", "-", recording.path.stem.lower()).strip("-")[:40]
    return ImportJob(
        folder, recording.path, kind, of, f"{name or 'take'}-{sha256[:8]}",
        Origin(
            recording.source, recording.licence, recording.attribution, recording.author,
            recording.group, sha256, recording.synthetic,
        ),
        settings, longest,
    )  # fmt: skip


def _limited(jobs: list[ImportJob], per_class: int | None) -> list[ImportJob]:
    if per_class is None:
        return jobs
    kept: list[ImportJob] = []
    counts: Counter[tuple[str, str]] = Counter()
    for job in sorted(jobs, key=lambda job: (job.kind, job.of, job.origin.sha256)):
        if counts[job.kind, job.of] < per_class:
            counts[job.kind, job.of] += 1
            kept.append(job)
    return kept


def convert_one(job: ImportJob) -> Made:
    """Make the takes of one recording; a function of its job alone."""
    data = job.path.read_bytes()
    try:
        if job.settings.form == "keep":
            suffix = job.path.suffix.lower()
            takes = [_stored(job, job.stem, data, suffix, "")]
        else:
            takes = _converted(job, decode_audio(data, name=str(job.path)))
    except AudioFileError as error:
        return Made(job.key, (), error.found)
    refused = next((take for take in takes if isinstance(take, str)), "")
    good = tuple(take for take in takes if isinstance(take, Take))
    return Made(job.key, good, "" if good else refused)


def _converted(job: ImportJob, audio: Audio) -> list[Take | str]:
    mono, down = to_mono_with_policy(audio)
    notes = [] if down == "mono" else [down]
    if mono.rate != RATE_HZ:
        notes.append(f"{mono.rate} Hz resampled to {RATE_HZ} Hz")
        mono = resample(mono, RATE_HZ)
    mono, turned = full_scale_policy(mono)
    notes += [turned] if turned else []
    if job.kind == "ambience":
        return [_encoded(job, job.stem, mono, notes)]
    parts = split_events(mono) if job.settings.events == "split" else (trim(mono),)
    parts = tuple(part for part in parts if part.seconds >= MIN_EVENT_S)[:MAX_EVENTS] or (
        trim(mono),
    )
    takes = []
    for number, part in enumerate(parts, start=1):
        what = [] if part.frames == mono.frames else ["trimmed"]
        if len(parts) > 1:
            what.append(f"event {number} of {len(parts)}")
        if job.longest_s and part.seconds > job.longest_s:
            part = cut_long(part, job.longest_s)
            what.append(f"cut to {job.longest_s:g} s")
        stem = job.stem if len(parts) == 1 else f"{job.stem}-{number}"
        takes.append(_encoded(job, stem, part, notes + what))
    return takes


def _encoded(job: ImportJob, stem: str, audio: Audio, notes: Sequence[str]) -> Take | str:
    form: Literal["flac", "wav"] = "wav" if job.settings.form == "wav" else "flac"
    return _stored(job, stem, encode_audio(audio, form), f".{form}", "; ".join(notes))


def _stored(job: ImportJob, stem: str, data: bytes, suffix: str, notes: str) -> Take | str:
    # Parts of one recording must stay together even where the collection says nothing of groups.
    origin = replace(job.origin, group=job.origin.group or f"file:{job.origin.sha256[:16]}")
    made = store_take(job.folder, job.kind, job.of, stem, data, suffix, origin, notes)
    return replace(made, origin=job.key) if isinstance(made, Take) else made


def import_sounds(
    listing: Listing,
    class_map: ClassMap,
    bank: Bank,
    out: Path,
    *,
    settings: ImportSettings | None = None,
    policy: SplitPolicy | None = None,
    few: Few = "refuse",
    name: str = "",
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Imported:
    """Bring recordings into a library, new or existing.

    Raises
    ------
    DataError: no recording has a class the map knows.
    TooFewTakesError: classes with fewer recordings than splits, with ``few`` ``refuse``; known before any work.
    """
    settings = settings or ImportSettings()
    jobs, unmapped, left_out = plan_jobs(listing, class_map, bank, out, settings)
    if not jobs:
        raise DataError(
            class_map.id, f"none of {len(listing.recordings)} recordings has a class it maps",
            "classes such as " + ", ".join(sorted({*class_map.sounds, *class_map.ambiences})[:6]),
            f"Found were {', '.join(sorted(unmapped)[:6]) or 'none'}.",
        )  # fmt: skip
    with GrowingLibrary(out, policy=policy) as growing:
        before = len(growing.existing.takes) if growing.existing else 0
        if few == "refuse":
            _refuse_early(jobs, growing)
        waiting = [job for job in jobs if not growing.has(job.key)]
        ready = len(jobs) - len(waiting)
        made = pool_map(convert_one, waiting, workers=workers, chunk=8)
        for done, one in enumerate(made, start=1):
            growing.add(one)
            if on_progress:
                on_progress(ready + done, len(jobs))
        refused = {
            str(job.path): growing.done[job.key].refused
            for job in jobs
            if job.key in growing.done and growing.done[job.key].refused
        }
        library = growing.finish([job.key for job in jobs], name=name or class_map.id, few=few)
    return Imported(library, len(library.takes) - before, before, unmapped, left_out, refused)


def _refuse_early(jobs: Sequence[ImportJob], growing: GrowingLibrary) -> None:
    """Before hours of conversion: would there be too few recordings of a class?"""
    from earwitness.scenes.sound_splits import Newcomer, TooFewTakesError, class_of, too_few

    if growing.policy == "shared":
        return
    newcomers = [
        Newcomer(
            job.of,
            job.origin.group or f"file:{job.origin.sha256[:16]}",
            job.origin.sha256,
            job.kind,
        )
        for job in jobs
    ]
    existing = growing.existing.takes if growing.existing else ()
    small = {
        of: n
        for of, n in too_few(newcomers, existing).items()
        if any(class_of(n) == of for n in newcomers)
    }
    if small:
        raise TooFewTakesError(small)
