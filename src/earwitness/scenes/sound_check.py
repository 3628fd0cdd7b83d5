"""What is wrong with a sound library: every take by its file, every class by its takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from earwitness.audio import Audio, decode_audio
from earwitness.errors import AudioFileError
from earwitness.jobs import pool_map
from earwitness.scenes.bank import Bank
from earwitness.scenes.bank_library import library_findings, read_library
from earwitness.scenes.sound_measure import (
    BLOCK_S,
    PAD_S,
    bandwidth_hz,
    peak_time_s,
    sounding_blocks,
)
from earwitness.scenes.sounds import SHARED, SoundLibrary, Take

Severity = Literal["error", "warning"]

CODES: Mapping[str, tuple[Severity, str]] = {
    "S101": ("error", "a file that is missing, changed or no audio"),
    "S102": ("warning", "so quiet that its noise will be heard when it is raised"),
    "S103": ("warning", "clipped"),
    "S104": ("warning", "silence at an end"),
    "S105": ("warning", "several events in one take"),
    "S106": ("warning", "shorter or longer than the bank says the sound may be"),
    "S107": ("error", "no licence"),
    "S108": ("warning", "a licence that asks for credit, and none given"),
    "S109": ("error", "measures that are not those of the file"),
    "S201": ("error", "one recording in two splits"),
    "S202": ("warning", "a class without takes in some split"),
    "S203": ("warning", "dull takes beside bright ones in one class"),
    "S204": ("warning", "synthetic takes beside recordings in one class"),
    "S205": ("warning", "takes shared by all splits"),
    "S301": ("warning", "an ambience too short to loop unnoticed"),
    "S302": ("warning", "an event stands out of an ambience"),
}
"""Stable codes; those of the bank's check (B601 to B603) come with them."""

QUIET_LUFS = -50.0
CLIPPED_RUN = 4
CLIPPED_SHARE = 1e-4
LEAD_S = 0.15
EVENT_GAP_S = 1.5
EVENT_DB = 35.0
DULL_HZ, BRIGHT_HZ = 6_000.0, 12_000.0
SHORT_AMBIENCE_S = 10.0
STANDS_OUT_LU = 12.0


@dataclass(frozen=True, slots=True)
class SoundFinding:
    """One fault: where (a take's path or a class), what was found and wanted."""

    code: str
    severity: Severity
    where: str
    found: str
    wanted: str = ""
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All faults of a library, sorted by severity and code."""

    library: SoundLibrary
    findings: tuple[SoundFinding, ...]

    @property
    def errors(self) -> tuple[SoundFinding, ...]:
        return tuple(f for f in self.findings if f.severity == "error")

    @property
    def warnings(self) -> tuple[SoundFinding, ...]:
        return tuple(f for f in self.findings if f.severity == "warning")


def _found(code: str, where: str, found: str, wanted: str = "", step: str = "") -> SoundFinding:
    return SoundFinding(code, CODES[code][0], where, found, wanted, step)


def check_library(
    library: SoundLibrary,
    bank: Bank,
    *,
    twins: bool = True,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> CheckReport:
    """Check every take and class of a library for use with a bank.

    Parameters
    ----------
    twins: look for one recording in two splits, which compares takes in pairs.
    """
    ranges = {sound.id: sound.duration_s for sound in bank.sounds}
    check = partial(check_take, folder=library.folder, ranges=ranges)
    findings: list[SoundFinding] = []
    for done, some in enumerate(pool_map(check, library.takes, workers=workers), start=1):
        findings += some
        if on_progress:
            on_progress(done, len(library.takes))
    findings += _check_classes(library)
    if twins and not any(f.code == "S101" for f in findings):
        findings += _check_twins(library)
    for fault in library_findings(bank, read_library(library.folder)):
        findings.append(
            SoundFinding(
                fault.code, "error" if fault.severity == "error" else "warning",
                fault.where, fault.found, fault.wanted, fault.next_step,
            )
        )  # fmt: skip
    findings.sort(key=lambda f: (f.severity != "error", f.code, f.where))
    return CheckReport(library, tuple(findings))


def check_take(
    take: Take, *, folder: Path, ranges: Mapping[str, tuple[float, float]]
) -> list[SoundFinding]:
    """What is wrong with one take. Reads its file."""
    import hashlib

    try:
        data = (folder / take.path).read_bytes()
        audio = decode_audio(data, name=take.path)
    except (OSError, AudioFileError) as error:
        found = error.found if isinstance(error, AudioFileError) else str(error.strerror)
        return [_found("S101", take.path, found, "the take's audio", "Import it again.")]
    if hashlib.sha256(data).hexdigest() != take.sha256:
        return [_found("S101", take.path, "another content", f"SHA-256 {take.sha256[:12]}", "Import it again.")]  # fmt: skip
    findings = [*_check_words(take), *_check_signal(take, audio)]
    if take.kind == "sound":
        findings += _check_event(take, audio, ranges.get(take.of))
    else:
        findings += _check_ambience(take, audio)
    return findings


def _check_words(take: Take) -> Iterator[SoundFinding]:
    if not take.licence.strip():
        yield _found("S107", take.path, "no licence", "the licence of every take")
    asks = take.licence.upper().startswith("CC BY") or take.licence.upper().startswith("CC-BY")
    if asks and not take.attribution.strip():
        yield _found("S108", take.path, f"{take.licence} without credit", "an attribution")


def _check_signal(take: Take, audio: Audio) -> Iterator[SoundFinding]:
    if take.loudness_lufs < QUIET_LUFS:
        yield _found(
            "S102", take.path, f"{take.loudness_lufs:.1f} LUFS", f"at least {QUIET_LUFS:g}"
        )
    share = clipped_share(audio)
    if share > CLIPPED_SHARE:
        yield _found("S103", take.path, f"{100 * share:.2g} % of its samples are at full scale", "none")  # fmt: skip
    if abs(take.duration_s - audio.seconds) > 0.001 or take.sample_rate != audio.rate:
        yield _found("S109", take.path, f"{audio.seconds:.3f} s at {audio.rate} Hz", f"{take.duration_s:.3f} s at {take.sample_rate} Hz, as its line says")  # fmt: skip
    elif abs(bandwidth_hz(audio) - take.bandwidth_hz) > 400 or (
        take.kind == "sound" and abs(peak_time_s(audio) - take.peak_time_s) > 0.1
    ):
        yield _found("S109", take.path, "another bandwidth or loudest moment", "those of its line")


def clipped_share(audio: Audio) -> float:
    """Share of samples in runs of four or more that stay at the peak, if that is near full scale."""
    mono = audio.samples if audio.samples.ndim == 1 else audio.samples.T.reshape(-1)
    level = np.abs(mono)
    top = float(level.max(initial=0.0))
    if top < 0.9:
        return 0.0
    flat = level >= top * 0.9995
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flat.view(np.int8), [0]])))
    runs = edges[1::2] - edges[::2]
    return float(runs[runs >= CLIPPED_RUN].sum()) / max(1, len(mono))


def _check_event(
    take: Take, audio: Audio, wanted: tuple[float, float] | None
) -> Iterator[SoundFinding]:
    loud = sounding_blocks(audio)
    lead = int(loud[0]) * BLOCK_S
    tail = audio.seconds - (int(loud[-1]) + 1) * BLOCK_S
    shortest = wanted[0] if wanted else 0.0
    for end, seconds in (("beginning", lead), ("end", tail)):
        # What dies away may be kept to make a take as long as the bank wants it.
        if seconds > LEAD_S + PAD_S and (end == "beginning" or take.duration_s > shortest):
            yield _found("S104", take.path, f"{seconds:.2f} s of silence at its {end}", f"at most {LEAD_S + PAD_S:g} s")  # fmt: skip
    gaps = np.diff(sounding_blocks(audio, EVENT_DB)) * BLOCK_S
    parts = 1 + int(np.count_nonzero(gaps > EVENT_GAP_S))
    if parts > 1:
        yield _found("S105", take.path, f"{parts} parts with more than {EVENT_GAP_S:g} s between them", "one event", "Import with --events split.")  # fmt: skip
    if wanted and not wanted[0] * 0.9 <= take.duration_s <= wanted[1] * 1.1:
        yield _found("S106", take.path, f"{take.duration_s:.2f} s", f"{wanted[0]:g} to {wanted[1]:g} s for {take.of}")  # fmt: skip


def _check_ambience(take: Take, audio: Audio) -> Iterator[SoundFinding]:
    from earwitness.audio.loudness import k_weighted

    if take.duration_s < SHORT_AMBIENCE_S:
        yield _found("S301", take.path, f"{take.duration_s:.1f} s", f"at least {SHORT_AMBIENCE_S:g} s")  # fmt: skip
    levels = k_weighted(audio, (1.0,) * audio.channels).momentary_lufs()
    heard = levels[~np.isnan(levels)]
    # The median and not the loudness of the whole, which gating would give to the event alone.
    over = float(heard.max() - np.median(heard)) if len(heard) else 0.0
    if over > STANDS_OUT_LU:
        yield _found(
            "S302",
            take.path,
            f"a moment {over:.0f} LU over the rest",
            f"at most {STANDS_OUT_LU:g} LU",
        )


def _check_classes(library: SoundLibrary) -> Iterator[SoundFinding]:
    splits = sorted({take.split for take in library.takes} - {SHARED})
    shared = sum(take.split == SHARED for take in library.takes)
    if shared:
        yield _found("S205", "library", f"{shared} takes serve every split", "takes of their own for each split", "Say so where results are reported.")  # fmt: skip
    for kind in ("sound", "ambience"):
        for of in library.ids(kind):
            takes = library.sounds(of) if kind == "sound" else library.ambiences(of)
            where = f"{kind} {of}"
            have = Counter(take.split for take in takes)
            absent = [split for split in splits if not have[split] and not have[SHARED]]
            if absent:
                yield _found("S202", where, f"no take in {', '.join(absent)}", "one in every split")
            bands = [take.bandwidth_hz for take in takes]
            if min(bands) < DULL_HZ and max(bands) > BRIGHT_HZ:
                dull = sum(band < DULL_HZ for band in bands)
                yield _found("S203", where, f"{dull} of {len(takes)} takes have nothing above {DULL_HZ / 1000:g} kHz", "all or none")  # fmt: skip
            made = sum(take.synthetic for take in takes)
            if 0 < made < len(takes):
                yield _found("S204", where, f"{made} of {len(takes)} takes are synthetic", "all or none")  # fmt: skip


def _check_twins(library: SoundLibrary) -> Iterator[SoundFinding]:
    from earwitness.scenes.sound_twins import find_twins

    for pair in find_twins(library):
        yield _found(
            "S201", pair.first.path,
            f"the recording of {pair.second.path} ({pair.first.split} and {pair.second.split}, {pair.score:.2f})",
            "each recording in one split",
            "Give both lines one split and accept the edit, or remove one.",
        )  # fmt: skip
