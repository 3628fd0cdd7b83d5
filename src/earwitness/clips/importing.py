"""Import: list a source, map its labels, choose a subset, convert, write the set.

The same source and settings give the same bytes, with any number of workers and after any number of kills:
``clips.jsonl`` appears last, by an atomic rename, and until then a journal keeps what was done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from earwitness.clips.conversion import (
    Converted,
    Finished,
    Job,
    Journal,
    conversion_name,
    convert,
)
from earwitness.clips.corpus import (
    EMOTIONS,
    Clip,
    ClipSet,
    Emotion,
    SetCard,
    clip_path,
    safe_id,
    write_clip_set,
)
from earwitness.clips.labels import LabelMap, load_label_map
from earwitness.clips.readers import Listing, Options, SourceClip, Terms, reader_for
from earwitness.clips.selection import Candidate, choose_clips, choose_speakers
from earwitness.clips.settings import AUDIO_FOLDER, Settings, import_key, prepare, terms_for
from earwitness.errors import DataError
from earwitness.jobs import pool_map

Progress = Callable[[str, int, int], None]
"""Called with what is going on (``measuring``, ``converting``), how many are done and how many there are."""


@dataclass(frozen=True, slots=True)
class Imported:
    """A finished import. ``converted`` and ``kept`` are how many files were made now and before."""

    clip_set: ClipSet
    converted: int
    kept: int


class BadFilesError(DataError):
    """Recordings that cannot be used; ``bad`` has every file with its error."""

    def __init__(self, source: str, total: int, bad: Mapping[str, str]) -> None:
        self.bad = bad
        first = next(iter(bad.values()))
        super().__init__(
            source,
            f"{len(bad)} of {total} recordings cannot be used, the first: {first}",
            next_step="Mend them, or leave them out with --skip-bad.",
        )


def import_clips(
    kind: str,
    source: str | Path,
    out: str | Path,
    settings: Settings | None = None,
    *,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Imported:
    """Import a source as a clip set.

    Parameters
    ----------
    kind: a kind of :data:`earwitness.clips.readers.READERS`.
    source: its folder or table; for ``vocal-affect-bench`` also the hub's name of the data set.
    out: the folder of the set; new, empty, or of this very import.
    workers: processes; None means one per processor.

    Raises
    ------
    BadFilesError: recordings that cannot be used, unless ``skip_bad``.
    LicenceError: the settings allow more than the source's licence does.
    DataError, UsageError: anything else that is not as it should be.

    >>> import_clips("ravdess", "Audio_Speech_Actors_01-24", "sets/ravdess")  # doctest: +SKIP
    """
    settings = settings or Settings()
    folder = Path(out)
    reader = reader_for(kind)
    terms = terms_for(reader, settings, Path(source))
    label_map = load_label_map(settings.label_map or terms.label_map)
    _check_label_map(label_map)
    key = import_key(kind, terms, label_map, settings)
    before = prepare(folder, Path(source), key, settings)
    listing = reader.read(
        Path(source), Options(settings.columns, settings.revision, settings.audio_root)
    )
    labelled, dropped, unmapped = map_labels(listing.clips, label_map, str(source))
    _check_ids([clip for clip, _ in labelled])
    bad: dict[str, str] = {}
    chosen, selection = _select(labelled, settings, str(source), bad, workers, on_progress)
    conversion = conversion_name(settings.rate)
    journal = Journal(folder)
    try:
        finished = _convert_all(
            [clip for clip, _ in chosen],
            folder,
            settings,
            conversion,
            before,
            journal,
            workers,
            on_progress,
        )
    finally:
        journal.close()
    names = {clip.id: _name(clip.file, Path(source)) for clip, _ in chosen}
    bad |= {names[result.id]: result.error for result in finished if result.converted is None}
    if bad and not settings.skip_bad:
        raise BadFilesError(str(source), len(labelled), bad)
    results = {result.id: result.converted for result in finished if result.converted is not None}
    if not results:
        raise DataError(str(source), "not one recording can be used", "at least one")
    clips = [
        _clip(clip, label, results[clip.id], terms) for clip, label in chosen if clip.id in results
    ]
    for notice in listing.notices:
        (folder / notice.name).write_bytes(notice.read_bytes())
    card = _card(terms, label_map, listing, conversion, key, settings, selection)
    card = replace(
        card,
        dropped=dict(sorted(dropped.items())),
        unmapped=dict(sorted(unmapped.items())),
        skipped=dict(sorted(bad.items())),
    )
    clip_set = write_clip_set(folder, card, clips)
    journal.remove()
    _remove_leftovers(clip_set, before)
    kept = sum(result.reused for result in finished)
    return Imported(
        clip_set,
        converted=len(results) - kept,
        kept=kept,
    )


def map_labels(
    clips: Iterable[SourceClip], label_map: LabelMap, source: str
) -> tuple[list[tuple[SourceClip, Emotion]], Counter[str], Counter[str]]:
    """Label clips by a map.

    Returns
    -------
    clips with a label; counts of native labels the map drops on purpose; counts of those it does not know.

    Raises
    ------
    DataError: the map has a label for none of them.
    """
    labelled: list[tuple[SourceClip, Emotion]] = []
    dropped: Counter[str] = Counter()
    unmapped: Counter[str] = Counter()
    by_name: dict[str, Emotion] = {label: label for label in EMOTIONS}
    for clip in clips:
        label, rule = label_map.map(clip.source_label)
        if label is not None:
            labelled.append((clip, by_name[label]))
        elif rule == "unknown":
            unmapped[clip.source_label] += 1
        else:
            dropped[clip.source_label] += 1
    if not labelled:
        found = ", ".join(f"{word} ({n})" for word, n in (dropped + unmapped).most_common(10))
        raise DataError(
            source,
            f"the label map {label_map.name} has no label for any of: {found}",
            "a map that knows the source's labels",
            "Choose one with --label-map (see: earwitness clips labels).",
        )
    return labelled, dropped, unmapped


def _check_label_map(label_map: LabelMap) -> None:
    other = sorted(set(label_map.mapping.values()) - set(EMOTIONS))
    if other:
        raise DataError(
            f"label map {label_map.name}", f"maps to {other[0]!r}", f"one of {', '.join(EMOTIONS)}"
        )


def _check_ids(clips: Sequence[SourceClip]) -> None:
    seen: dict[str, SourceClip] = {}
    for clip in clips:
        problem = safe_id(clip.id)
        if problem:
            raise DataError(str(clip.file), f"its id {clip.id!r} {problem}", "a short plain name")
        first = seen.setdefault(clip.id.casefold(), clip)
        if first is not clip:
            raise DataError(
                str(clip.file), f"its id {clip.id!r} is also that of {first.file}", "unique ids"
            )


def _select(
    labelled: list[tuple[SourceClip, Emotion]],
    settings: Settings,
    source: str,
    bad: dict[str, str],
    workers: int | None,
    on_progress: Progress | None,
) -> tuple[list[tuple[SourceClip, Emotion]], str]:
    """The clips to import, sorted by id, and how they were chosen in words."""
    labelled = sorted(labelled, key=lambda pair: pair[0].id)
    if settings.seconds is None and settings.speakers is None and settings.per_label is None:
        return labelled, ""
    # A bad recording must not take a place in the subset, so all are looked at first.
    notes = []
    measured = _measure([str(clip.file) for clip, _ in labelled], workers, on_progress)
    usable = []
    for (clip, label), (seconds, error) in zip(labelled, measured, strict=True):
        if error:
            bad[_name(clip.file, Path(source))] = error
        elif _within(seconds, settings.seconds):
            usable.append((clip, label))
    if bad and not settings.skip_bad:
        raise BadFilesError(source, len(labelled), bad)
    if settings.seconds is not None:
        low, high = settings.seconds
        bounds = f"{'' if low is None else f'{low:g}'}-{'' if high is None else f'{high:g}'}"
        notes.append(f"{bounds} s: {len(usable)} of {len(labelled)} clips")
        gone = sorted({label for _, label in labelled} - {label for _, label in usable})
        if gone:
            raise DataError(
                f"--seconds {bounds}", f"no clip of {', '.join(gone)} is left", "wider bounds"
            )
    candidates = [Candidate(clip.id, label, clip.speaker) for clip, label in usable]
    if settings.speakers is not None:
        speakers = choose_speakers(candidates, settings.speakers, seed=settings.seed)
        candidates = [c for c in candidates if c.speaker in speakers]
        notes.append(f"{settings.speakers} speakers")
    ids = {c.id for c in candidates}
    if settings.per_label is not None:
        ids = set(choose_clips(candidates, settings.per_label, seed=settings.seed))
        notes.append(f"{settings.per_label} clips a label")
    notes.append(f"seed {settings.seed}")
    return [(clip, label) for clip, label in usable if clip.id in ids], "; ".join(notes)


def _within(seconds: float, bounds: tuple[float | None, float | None] | None) -> bool:
    low, high = bounds or (None, None)
    return (low is None or seconds >= low) and (high is None or seconds <= high)


def measure(path: str) -> tuple[float, str]:
    """Seconds of a recording, and its error if it cannot be used."""
    from earwitness.audio import inspect_audio

    found = inspect_audio(Path(path))
    errors = [
        f"{problem.code}: {problem.message}"
        for problem in found.problems
        if problem.severity == "error"
    ]
    return float(found.seconds or 0.0), "; ".join(errors)


def _measure(
    files: list[str], workers: int | None, on_progress: Progress | None
) -> list[tuple[float, str]]:
    def done(n: int) -> None:
        if on_progress:
            on_progress("measuring", n, len(files))

    return list(pool_map(measure, files, workers=workers, on_done=done))


def _convert_all(
    clips: Sequence[SourceClip],
    folder: Path,
    settings: Settings,
    conversion: str,
    before: ClipSet | None,
    journal: Journal,
    workers: int | None,
    on_progress: Progress | None,
) -> list[Finished]:
    known = known_from(before) | dict(journal.known)
    jobs = []
    for clip in clips:
        suffix = ".wav" if settings.rate is not None else clip.file.suffix.lower()
        path = f"{AUDIO_FOLDER}/{clip.id}{suffix}"
        jobs.append(
            Job(
                clip.id,
                str(clip.file),
                str(folder),
                path,
                settings.rate,
                conversion,
                clip.seconds,
                known.get(clip.id),
            )
        )

    def done(n: int) -> None:
        if on_progress:
            on_progress("converting", n, len(jobs))

    finished = []
    for result in pool_map(convert, jobs, workers=workers, chunk=8, on_done=done):
        if result.converted is not None and not result.reused:
            journal.add(result.converted)
        finished.append(result)
    return finished


def known_from(before: ClipSet | None) -> dict[str, Converted]:
    """What a finished set says of its own conversions, by id; nothing without a set."""
    if before is None:
        return {}
    return {
        clip.id: Converted(
            id=clip.id,
            conversion=before.card.conversion,
            source_sha256=clip.metadata["source_sha256"],
            source_rate=int(clip.metadata.get("source_rate", clip.rate)),
            source_channels=int(clip.metadata.get("source_channels", clip.channels)),
            mono_policy=clip.metadata.get("mono_policy", ""),
            path=clip.path,
            sha256=clip.sha256,
            seconds=clip.seconds,
            rate=clip.rate,
            channels=clip.channels,
            level=clip.metadata.get("level", ""),
        )
        for clip in before.clips
        if "source_sha256" in clip.metadata
    }


def _clip(source: SourceClip, label: Emotion, converted: Converted, terms: Terms) -> Clip:
    metadata = dict(source.metadata)
    metadata["source_sha256"] = converted.source_sha256
    metadata["source_rate"] = str(converted.source_rate)
    if converted.source_channels != 1:
        metadata["source_channels"] = str(converted.source_channels)
    if converted.mono_policy:
        metadata["mono_policy"] = converted.mono_policy
    if converted.level:
        metadata["level"] = converted.level
    return Clip(
        id=source.id,
        path=converted.path,
        sha256=converted.sha256,
        emotion=label,
        speaker=source.speaker,
        language=source.language or terms.language,
        seconds=converted.seconds,
        rate=converted.rate,
        channels=converted.channels,
        source_label=source.source_label,
        licence=source.licence or terms.licence,
        metadata=metadata,
    )


def _card(
    terms: Terms,
    label_map: LabelMap,
    listing: Listing,
    conversion: str,
    key: str,
    settings: Settings,
    selection: str,
) -> SetCard:
    return SetCard(
        name=terms.name,
        version=terms.version,
        licence=terms.licence,
        use=terms.use,
        revision=listing.revision or settings.revision,
        redistribute=terms.redistribute,
        synthetic=settings.synthetic,
        language=terms.language,
        source=terms.source,
        label_map=label_map.name,
        label_map_hash=label_map.hash,
        conversion=conversion,
        ignored=dict(sorted(listing.ignored.items())),
        selection=selection,
        citation=terms.citation,
        import_key=key,
    )


def _name(file: Path, source: Path) -> str:
    base = source if source.is_dir() else source.parent
    return file.relative_to(base).as_posix() if file.is_relative_to(base) else file.name


def _remove_leftovers(clip_set: ClipSet, before: ClipSet | None) -> None:
    """Delete what a kill left half-written and the files of the set that was replaced; nothing else."""
    for torn in (clip_set.folder / AUDIO_FOLDER).glob(".earwitness-*.part"):
        torn.unlink(missing_ok=True)
    if before is None:
        return
    kept = {clip.path for clip in clip_set.clips}
    for clip in before.clips:
        if clip.path not in kept and clip.path.startswith(f"{AUDIO_FOLDER}/"):
            clip_path(before, clip).unlink(missing_ok=True)
