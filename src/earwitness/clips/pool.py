"""The pool: every recording of a collection with what reviewers made of it.

``pool.jsonl`` has a line for each, sorted by id. ``status`` says what it is good for:

==============  ============================================================================
``accepted``    reviewed, good sound, performed as asked: may be selected
``unreviewed``  nobody has reviewed it yet
``poor_audio``  a reviewer found the sound poor
``no_match``    a reviewer heard another emotion than was asked for
``unclear``     a reviewer could not tell
``unassigned``  it was not asked for: no such account, script and emotion is assigned
``superseded``  there is a later take of the same
``duplicate``   the same bytes as another recording
``missing``     its file is not there
``changed``     its file is another one than was recorded
``unusable``    its file cannot be used (cut, silent, no audio)
==============  ============================================================================

With several reviewers every one of them must accept (``unanimous``) or more than half (``majority``); a
reviewer's last word counts. Recordings of people who withdrew consent are refused and counted, not listed.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from earwitness.audio.files import atomic_write_text
from earwitness.clips.assignment import Assignment, read_assignments
from earwitness.clips.corpus import EMOTIONS
from earwitness.clips.forgetting_records import (
    Tombstones,
    read_tombstones,
    require_no_pending,
)
from earwitness.clips.pool_reading import (
    SPEAKERS,
    Recording,
    Review,
    read_recordings,
    read_reviews,
    read_speakers,
)
from earwitness.errors import DataError
from earwitness.jobs import pool_map
from earwitness.runs.jsonlines import read_lines

POOL = "pool.jsonl"
REVIEWS = "reviews.jsonl"
Rule = Literal["unanimous", "majority"]
RULES: tuple[Rule, ...] = get_args(Rule)
STATUSES = (
    "accepted", "unreviewed", "poor_audio", "no_match", "unclear", "unassigned", "superseded",
    "duplicate", "missing", "changed", "unusable",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PoolEntry:
    """One recording. ``path`` is relative to the collection where the file lies in it, else absolute."""

    id: str
    path: str
    sha256: str
    account: str
    speaker: str
    script_id: str
    text: str
    emotion: str
    seconds: float
    sex: str
    language: str
    consent_version: str
    recorded_at: str
    reviews: int
    status: str
    reason: str = ""

    @property
    def accepted(self) -> bool:
        return self.status == "accepted"

    def file(self, folder: Path) -> Path:
        """Where its file is."""
        return folder / self.path


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool as made: its entries, and how many recordings were refused because consent was withdrawn."""

    entries: tuple[PoolEntry, ...]
    refused: int

    def counts(self) -> dict[str, Counter[str]]:
        """Recordings by status and emotion."""
        table: dict[str, Counter[str]] = {}
        for status in STATUSES:
            found = Counter(e.emotion for e in self.entries if e.status == status)
            if found:
                table[status] = found
        return table


def make_pool(
    collection: Path,
    *,
    recordings: Sequence[Path] = (),
    reviews: Sequence[Path] = (),
    rule: Rule = "unanimous",
    consent: str = "",
    language: str = "",
    workers: int | None = None,
    on_done: Callable[[int, int], None] | None = None,
) -> Pool:
    """Bring recordings and reviews together and write ``pool.jsonl``.

    Parameters
    ----------
    recordings: folders of the recording app, or with files; none means the collection itself.
    reviews: files; none means ``reviews.jsonl`` of the collection, if it is there.

    Raises
    ------
    DataError: a table is not what it should be, or there is no recording.
    """
    require_no_pending(collection)
    assignments = read_assignments(collection)
    speakers = read_speakers(collection / SPEAKERS)
    found: list[Recording] = []
    for folder in recordings or (collection,):
        if not folder.is_dir():
            raise DataError(str(folder), "no such folder", "a folder with recordings")
        found += read_recordings(folder, assignments, speakers, consent=consent, language=language)
    stones = read_tombstones(collection)
    kept = _without_forgotten(found, stones)
    if not found:
        raise DataError(
            str(recordings[0] if recordings else collection),
            "has no recordings",
            "recordings.jsonl, or recordings/ACCOUNT/SCRIPT--EMOTION.wav",
            "Record in the app (earwitness review), or name the folder with --recordings.",
        )
    files = list(reviews)
    if not files and (collection / REVIEWS).exists():
        files = [collection / REVIEWS]
    words = [review for path in files for review in read_reviews(path)]
    _check_known(words, found, files)
    jobs = [str(recording.file) for recording in kept]
    seen = list(
        pool_map(
            _look,
            jobs,
            workers=workers,
            on_done=(lambda done: on_done(done, len(jobs))) if on_done else None,
        )
    )
    entries = [
        _entry(recording, look, collection) for recording, look in zip(kept, seen, strict=True)
    ]
    kept_entries = [entry for entry in entries if not stones.has_audio(entry.sha256)]
    refused = len(found) - len(kept_entries)
    judged = judge(kept_entries, words, assignments, rule)
    write_pool(collection, judged)
    return Pool(judged, refused)


def _without_forgotten(found: Sequence[Recording], stones: Tombstones) -> list[Recording]:
    gone = {
        name
        for name in {each.account for each in found} | {each.speaker for each in found}
        if stones.has_name(name)
    }
    return [each for each in found if each.account not in gone and each.speaker not in gone]


def _look(path: str) -> tuple[str, float, str]:
    """SHA-256, seconds and what is wrong with a file; no hash where there is none."""
    from earwitness.audio.files import file_sha256
    from earwitness.clips.importing import measure

    file = Path(path)
    if not file.is_file():
        return "", 0.0, ""
    seconds, problem = measure(path)
    return file_sha256(file), round(seconds, 6), problem


def _entry(recording: Recording, look: tuple[str, float, str], collection: Path) -> PoolEntry:
    sha256, seconds, problem = look
    status, reason = "", ""
    if not sha256:
        status, reason = "missing", "the file is not there"
    elif recording.sha256 and recording.sha256 != sha256:
        status = "changed"
        reason = f"SHA-256 {sha256[:12]}, recorded was {recording.sha256[:12]}"
    elif problem:
        status, reason = "unusable", problem
    file, root = recording.file.resolve(), collection.resolve()
    path = file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
    return PoolEntry(
        id=recording.id,
        path=path,
        sha256=sha256 or recording.sha256,
        account=recording.account,
        speaker=recording.speaker,
        script_id=recording.script_id,
        text=recording.text,
        emotion=recording.emotion,
        seconds=seconds,
        sex=recording.sex,
        language=recording.language,
        consent_version=recording.consent_version,
        recorded_at=recording.recorded_at,
        reviews=0,
        status=status,
        reason=reason,
    )


def judge(
    entries: Iterable[PoolEntry],
    reviews: Iterable[Review],
    assignments: Sequence[Assignment],
    rule: Rule = "unanimous",
) -> tuple[PoolEntry, ...]:
    """Give every entry without a status its own, sorted by id.

    Parameters
    ----------
    assignments: empty where recordings were not assigned here; nothing is ``unassigned`` then.
    """
    asked = {(a.account, a.script_id, a.emotion) for a in assignments}
    by_recording: dict[str, dict[str, Review]] = defaultdict(dict)
    for review in sorted(reviews, key=lambda review: review.at):
        by_recording[review.recording][review.reviewer] = review
    judged = []
    first: dict[str, str] = {}
    ordered = sorted(entries, key=lambda entry: entry.id)
    latest = _latest(ordered)
    for entry in ordered:
        given = by_recording.get(entry.id, {})
        entry = replace(entry, reviews=len(given))
        place = (entry.account, entry.script_id, entry.emotion)
        if entry.status:
            judged.append(entry)
            continue
        twin = first.setdefault(entry.sha256, entry.id)
        if asked and place not in asked:
            entry = replace(entry, status="unassigned", reason="nobody asked for it")
        elif latest[place] != entry.id:
            entry = replace(entry, status="superseded", reason=f"{latest[place]} is later")
        elif twin != entry.id:
            entry = replace(entry, status="duplicate", reason=f"the same bytes as {twin}")
        else:
            status, reason = verdict(entry.emotion, tuple(given.values()), rule)
            entry = replace(entry, status=status, reason=reason)
        judged.append(entry)
    return tuple(judged)


def _latest(entries: Sequence[PoolEntry]) -> dict[tuple[str, str, str], str]:
    found: dict[tuple[str, str, str], tuple[str, str]] = {}
    for entry in entries:
        if not entry.status:
            place = (entry.account, entry.script_id, entry.emotion)
            found[place] = max(found.get(place, ("", "")), (entry.recorded_at, entry.id))
    return {place: name for place, (_, name) in found.items()}


def verdict(emotion: str, reviews: Sequence[Review], rule: Rule = "unanimous") -> tuple[str, str]:
    """Status and reason of a recording from its reviews.

    >>> verdict("fear", [Review("r", "ann", True, "yes"), Review("r", "bob", True, "no")])
    ('no_match', 'bob: no')
    """
    if not reviews:
        return "unreviewed", ""
    against: list[tuple[str, str]] = []
    for review in sorted(reviews, key=lambda review: review.reviewer):
        match = review.match or ("yes" if review.perceived == emotion else "no")
        if not review.good:
            against.append(("poor_audio", f"{review.reviewer}: poor sound"))
        elif match != "yes":
            heard = f", heard {review.perceived}" if review.perceived else ""
            status = "unclear" if match == "unclear" else "no_match"
            against.append((status, f"{review.reviewer}: {match}{heard}"))
    most = 0 if rule == "unanimous" else (len(reviews) - 1) // 2
    if len(against) <= most:
        return "accepted", ""
    status = Counter(status for status, _ in against).most_common(1)[0][0]
    return status, "; ".join(reason for _, reason in against)


def _check_known(
    reviews: Sequence[Review], recordings: Sequence[Recording], files: Sequence[Path]
) -> None:
    known = {recording.id for recording in recordings}
    strange = [review.recording for review in reviews if review.recording not in known]
    if reviews and len(strange) == len(reviews):
        raise DataError(
            str(files[0]),
            f"none of its {len(reviews)} reviews is of a recording here, such as {strange[0]!r}",
            f"ids such as {min(known)!r}",
        )


def write_pool(collection: Path, entries: Sequence[PoolEntry]) -> None:
    """Put ``pool.jsonl`` in place."""
    lines = (json.dumps(asdict(entry), ensure_ascii=False) + "\n" for entry in entries)
    atomic_write_text(collection / POOL, "".join(lines))


def read_pool(collection: Path) -> tuple[PoolEntry, ...]:
    """The pool of a collection.

    Raises
    ------
    DataError: there is none, or a line is not what it should be.
    """
    path = collection / POOL
    if not path.exists():
        raise DataError(
            str(collection),
            f"has no {POOL}",
            "a collection with a pool",
            "Make it with: earwitness clips pool COLLECTION",
        )
    found = []
    for number, line in read_lines(path, "a recording"):
        where = f"{path}:{number}"
        try:
            entry = PoolEntry(**line)
        except TypeError as error:
            raise DataError(where, f"is no recording of a pool ({error})") from None
        if entry.emotion not in EMOTIONS or entry.status not in STATUSES:
            raise DataError(
                where, f"emotion {entry.emotion!r}, status {entry.status!r}", "known ones"
            )
        found.append(entry)
    return tuple(found)


def labels_of(entries: Iterable[PoolEntry]) -> Mapping[str, int]:
    """Accepted recordings by emotion, all seven."""
    found = Counter(entry.emotion for entry in entries if entry.accepted)
    return {label: found[label] for label in EMOTIONS}
