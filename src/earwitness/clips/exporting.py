"""From a selection to a public clip set: converted once, named by hashes, with all documents beside it.

Audio becomes 16 kHz mono 16-bit WAV by the same conversion as an import, recorded clip by clip. Nothing is denoised,
normalised or augmented: a recording that would have to be turned down to fit 16 bits is refused.

Ids are 20 letters and digits of a hash of the set's name and the recording, so that neither an id nor the order
of files tells the label. Speakers get made-up names in an order drawn with the seed. With several splits no speaker
is in two of them, and each split is a clip set of its own.

An export that was stopped goes on where it was; the same collection and options give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from earwitness.clips.conversion import (
    TARGET_RATE,
    Converted,
    Job,
    Journal,
    conversion_name,
    convert,
)
from earwitness.clips.corpus import (
    CLIPS_FILE,
    EMOTIONS,
    Clip,
    ClipSet,
    SetCard,
    load_clip_set,
    write_clip_set,
)
from earwitness.clips.exporting_documents import (
    EXPORT,
    ExportInfo,
    read_info,
    split_folder,
    write_documents,
    write_info,
)
from earwitness.clips.forgetting_records import require_no_pending
from earwitness.clips.importing import known_from
from earwitness.clips.pool import PoolEntry, read_pool
from earwitness.clips.selecting_record import SelectionRecord, pool_hash, read_selection
from earwitness.clips.settings import AUDIO_FOLDER
from earwitness.errors import DataError, LicenceError, UsageError
from earwitness.jobs import pool_map
from earwitness.runs.items import digest
from earwitness.stats.streams import stream

ID_LENGTH = 20


@dataclass(frozen=True, slots=True)
class Exported:
    """A finished export. ``converted`` and ``kept`` are how many files were made now and before."""

    folder: Path
    sets: Mapping[str, ClipSet]
    converted: int
    kept: int


def clip_id(name: str, sha256: str) -> str:
    """Id of a clip in a set: 20 letters and digits that tell nothing.

    >>> clip_id("ours", "00" * 32)
    '7oahapyijc6olks2ldtw'
    """
    value = hashlib.sha256(f"{name}\x00{sha256}".encode()).digest()
    return base64.b32encode(value).decode("ascii").lower()[:ID_LENGTH]


def export(
    collection: Path,
    out: Path,
    info: ExportInfo,
    *,
    overwrite: bool = False,
    workers: int | None = None,
    on_done: Callable[[int, int], None] | None = None,
) -> Exported:
    """Write a collection's selection as a public clip set.

    Raises
    ------
    DataError: no selection, a pool that has changed since, a recording that is not what it was or cannot be used.
    LicenceError: speakers without consent, or a training split in a test-only set.
    UsageError: the folder holds something else.
    """
    require_no_pending(collection)
    record = read_selection(collection)
    entries = _chosen(collection, record)
    _check_terms(entries, info)
    info = replace(
        info, key=_key(record, entries, info), selection=info.selection or selection_words(record)
    )
    _prepare(out, collection, info, overwrite)
    splits = split_speakers(entries, info.splits, info.seed)
    speakers = speaker_names(entries, info.seed)
    out.mkdir(parents=True, exist_ok=True)
    # First of all, so that what a kill leaves behind is known as this export's.
    write_info(out, info)
    total, done_before, kept = len(entries), 0, 0
    sets = {}
    for split in info.splits:
        mine = [entry for entry in entries if splits[entry.speaker] == split]
        folder = split_folder(out, info, split)
        before = done_before

        def tell(done: int, before: int = before) -> None:
            if on_done:
                on_done(before + done, total)

        results, reused = _convert(mine, collection, folder, info.name, workers, tell)
        clips = [_clip(entry, results[entry.id], split, speakers, info) for entry in mine]
        sets[split] = write_clip_set(folder, _card(info, split, entries), clips)
        _remove_others(sets[split])
        done_before += len(mine)
        kept += reused
        Journal(folder).remove()
    write_documents(out, info)
    return Exported(out, sets, total - kept, kept)


def selection_words(record: SelectionRecord) -> str:
    """How the clips were chosen, in words."""
    report, settings = record.report, record.settings
    return (
        f"{settings['per_label']} clips a label out of {report['accepted']} accepted recordings of "
        f"{report['speakers_in_pool']} speakers: most speakers first, then even shares of speakers, sexes, "
        f"scripts and durations, by integer optimisation (seed {settings['seed']})"
    )


def _chosen(collection: Path, record: SelectionRecord) -> list[PoolEntry]:
    if record.pool_sha256 != pool_hash(collection):
        raise DataError(
            str(collection),
            "its pool has changed since the selection was made",
            "a selection of this pool",
            f"Run: earwitness clips select {collection}",
        )
    by_id = {entry.id: entry for entry in read_pool(collection)}
    return [by_id[name] for name in record.chosen]


def _check_terms(entries: Sequence[PoolEntry], info: ExportInfo) -> None:
    without = [entry for entry in entries if not entry.consent_version]
    if without:
        raise LicenceError(
            without[0].id,
            f"{len(without)} of {len(entries)} chosen recordings have no consent on record",
            "a consent version for each",
            "Record in the app, or say which text was agreed to: earwitness clips pool --consent VERSION.",
        )
    if info.use == "evaluation-only" and any(name.startswith("train") for name in info.splits):
        raise LicenceError(
            "--split train", "the set is for evaluation only", "dev and test, or another --use"
        )


def _key(record: SelectionRecord, entries: Sequence[PoolEntry], info: ExportInfo) -> str:
    settings = {k: v for k, v in asdict(info).items() if k not in ("key", "selection")}
    return digest(
        {
            "settings": settings,
            "clips": [entry.sha256 for entry in entries],
            "pool": record.pool_sha256,
        }
    )


def _prepare(out: Path, collection: Path, info: ExportInfo, overwrite: bool) -> None:
    inside = out.resolve()
    if inside == collection.resolve() or collection.resolve().is_relative_to(inside):
        raise UsageError(f"--out {out}", "holds the collection", "a folder of its own")
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {out}", "is a file", "a folder")
    if not out.exists() or not any(out.iterdir()):
        return
    before = read_info(out)
    if before is None:
        raise UsageError(f"--out {out}", "is not empty and no export", "a new or empty folder")
    if before.key != info.key and not overwrite:
        raise UsageError(
            f"--out {out}",
            f"holds {before.name!r} {before.version}, exported from another selection or with other options",
            "a new folder",
            "Choose another --out, or replace it with --overwrite.",
        )
    if set(before.splits) != set(info.splits):
        raise UsageError(
            f"--out {out}", f"has the splits {', '.join(before.splits)}", "a new folder"
        )


def speaker_names(entries: Sequence[PoolEntry], seed: int) -> dict[str, str]:
    """Made-up names of speakers, in an order drawn with the seed.

    Width is the same for all, so that names sort as they are numbered.
    """
    speakers = sorted({entry.speaker for entry in entries})
    drawn = sorted(
        speakers, key=lambda name: (float(stream(seed, "export", "speaker", name).random()), name)
    )
    width = max(2, len(str(len(drawn))))
    return {name: f"spk{number:0{width}}" for number, name in enumerate(drawn, start=1)}


def split_speakers(
    entries: Sequence[PoolEntry], splits: Mapping[str, float], seed: int
) -> dict[str, str]:
    """A split for every speaker, so that each split comes near its share of every label.

    Speakers with the most clips choose first, ties by draw; each goes where the squared distance of all counts from
    their targets ends up smallest.

    Raises
    ------
    UsageError: shares that are not above 0, or a split that gets nobody.
    """
    if any(share <= 0 for share in splits.values()):
        raise UsageError("--split", f"shares {dict(splits)}", "above 0")
    whole = sum(splits.values())
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for entry in entries:
        counts[entry.speaker][entry.emotion] += 1
    labels = Counter(entry.emotion for entry in entries)
    filled: dict[str, Counter[str]] = {name: Counter() for name in splits}
    draws = {s: float(stream(seed, "export", "split", s).random()) for s in counts}
    found = {}

    def distance(name: str, speaker: str) -> float:
        share = splits[name] / whole
        return sum(
            (filled[name][x] + counts[speaker][x] - share * labels[x]) ** 2
            - (filled[name][x] - share * labels[x]) ** 2
            for x in EMOTIONS
        )

    for speaker in sorted(counts, key=lambda s: (-counts[s].total(), draws[s], s)):
        name = min(splits, key=lambda name: distance(name, speaker))
        found[speaker] = name
        filled[name].update(counts[speaker])
    empty = [name for name in splits if not filled[name]]
    if empty:
        raise UsageError(
            f"--split {empty[0]}",
            f"gets none of {len(counts)} speakers",
            "fewer splits, or larger shares",
        )
    return found


def _convert(
    entries: Sequence[PoolEntry],
    collection: Path,
    folder: Path,
    name: str,
    workers: int | None,
    tell: Callable[[int], None],
) -> tuple[dict[str, Converted], int]:
    before = None
    if (folder / CLIPS_FILE).is_file():
        before = load_clip_set(folder, check_files=False)
    journal = Journal(folder)
    known = known_from(before) | dict(journal.known)
    conversion = conversion_name(TARGET_RATE)
    by_id = {clip_id(name, entry.sha256): entry for entry in entries}
    jobs = [
        Job(
            made,
            str(entry.file(collection)),
            str(folder),
            f"{AUDIO_FOLDER}/{made}.wav",
            TARGET_RATE,
            conversion,
            known=known.get(made),
        )
        for made, entry in by_id.items()
    ]
    found: dict[str, Converted] = {}
    kept = 0
    try:
        for result in pool_map(convert, jobs, workers=workers, chunk=8, on_done=tell):
            entry = by_id[result.id]
            if result.converted is None:
                raise DataError(entry.id, result.error, "a recording that can be used")
            if result.converted.source_sha256 != entry.sha256:
                raise DataError(
                    str(entry.file(collection)),
                    "is another file than was reviewed",
                    f"SHA-256 {entry.sha256[:12]}",
                    "Make the pool and the selection again.",
                )
            if result.converted.level:
                raise DataError(
                    str(entry.file(collection)),
                    f"is louder than 16 bits hold and would have to be {result.converted.level}",
                    "a recording within full scale",
                    "Turn it down in review, or record it again; an export changes no level.",
                )
            if not result.reused:
                journal.add(result.converted)
            kept += result.reused
            found[entry.id] = result.converted
    finally:
        journal.close()
    return found, kept


def _clip(
    entry: PoolEntry,
    converted: Converted,
    split: str,
    speakers: Mapping[str, str],
    info: ExportInfo,
) -> Clip:
    metadata = {
        "split": split,
        "script": entry.script_id,
        "consent_version": entry.consent_version,
        "source_sha256": converted.source_sha256,
        "source_rate": str(converted.source_rate),
    }
    if info.with_text and entry.text:
        metadata["text"] = entry.text
    if entry.sex:
        metadata["sex"] = entry.sex
    if converted.source_channels != 1:
        metadata["source_channels"] = str(converted.source_channels)
        metadata["mono_policy"] = converted.mono_policy
    emotions = {label: label for label in EMOTIONS}
    return Clip(
        id=converted.id,
        path=converted.path,
        sha256=converted.sha256,
        emotion=emotions[entry.emotion],  # type: ignore[index]
        speaker=speakers[entry.speaker],
        language=entry.language,
        seconds=converted.seconds,
        rate=converted.rate,
        channels=converted.channels,
        source_label=entry.emotion,
        licence=info.licence_name,
        metadata=metadata,
    )


def _card(info: ExportInfo, split: str, entries: Sequence[PoolEntry]) -> SetCard:
    languages = sorted({entry.language for entry in entries if entry.language})
    return SetCard(
        name=info.name if len(info.splits) == 1 else f"{info.name} {split}",
        version=info.version,
        licence=info.licence_name,
        use=info.use,
        redistribute=info.redistribute,
        language=languages[0] if len(languages) == 1 else "",
        source="recorded, reviewed and selected with Earwitness",
        conversion=conversion_name(TARGET_RATE),
        selection=info.selection,
        citation=info.citation,
        import_key=info.key,
    )


def _remove_others(clip_set: ClipSet) -> None:
    """Delete audio that an earlier export of other clips left in the folder, and what a kill left half-written."""
    named = {clip.path for clip in clip_set.clips}
    for path in (clip_set.folder / AUDIO_FOLDER).iterdir():
        if path.is_file() and f"{AUDIO_FOLDER}/{path.name}" not in named:
            path.unlink()


__all__ = ["EXPORT", "Exported", "clip_id", "export", "speaker_names", "split_speakers"]
