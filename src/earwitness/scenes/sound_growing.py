"""A library while takes come in: nothing done is done again, and the table appears when all is there.

Finished takes are noted in ``.growing.jsonl`` beside the table, line by line. At the end they get their splits,
table and card are written, and the notes go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from earwitness.errors import UsageError
from earwitness.runs.jsonlines import JsonLines
from earwitness.scenes.sound_splits import (
    Newcomer,
    TooFewTakesError,
    assign_splits,
    class_of,
    too_few,
)
from earwitness.scenes.sounds import (
    CARD,
    FOLDERS,
    TABLE,
    Kind,
    SoundLibrary,
    SplitPolicy,
    Take,
    load_library,
    merged,
    write_library,
)

if TYPE_CHECKING:
    from earwitness.audio import Audio

JOURNAL = ".growing.jsonl"
RATE_HZ = 44_100

Few = Literal["refuse", "skip"]
Keep = Literal["flac", "wav", "keep"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a take comes from, as its line will say."""

    source: str
    licence: str
    attribution: str = ""
    author: str = ""
    group: str = ""
    sha256: str = ""
    synthetic: bool = False


@dataclass(frozen=True, slots=True)
class Made:
    """What became of one job: its takes, or why there are none. Splits are given at the end."""

    key: str
    takes: tuple[Take, ...]
    refused: str = ""


def store_take(
    folder: Path,
    kind: Kind,
    of: str,
    stem: str,
    data: bytes,
    suffix: str,
    origin: Origin,
    prepared: str,
    audio: Audio | None = None,
) -> Take | str:
    """Measure the bytes of a file and put it into its place; a reason instead if nothing is audible in it.

    Parameters
    ----------
    audio: what the bytes decode to, where that is known.

    Raises
    ------
    AudioFileError: the bytes are no audio.
    """
    import hashlib

    from earwitness.audio import atomic_write_bytes, decode_audio
    from earwitness.scenes.sound_measure import measure_take

    path = f"{FOLDERS[kind]}/{of}/{stem}{suffix}"
    audio = audio or decode_audio(data, name=path)
    measures = measure_take(audio)
    if measures.loudness_lufs is None:
        return "it is silent (nothing above -70 LUFS)"
    atomic_write_bytes(folder / path, data)
    return Take(
        kind=kind, of=of, path=path, sha256=hashlib.sha256(data).hexdigest(), source=origin.source,
        licence=origin.licence, attribution=origin.attribution, author=origin.author,
        duration_s=measures.duration_s, loudness_lufs=measures.loudness_lufs,
        bandwidth_hz=measures.bandwidth_hz, band_limited=measures.band_limited,
        peak_time_s=min(measures.peak_time_s, measures.duration_s), sample_rate=audio.rate,
        channels=audio.channels, synthetic=origin.synthetic, split="shared", group=origin.group,
        origin=origin.sha256, prepared=prepared,
    )  # fmt: skip


class GrowingLibrary:
    """A library folder open for new takes. One process at a time.

    Parameters
    ----------
    folder: made if absent; may hold a library already.
    policy: None keeps that of the library that is there, or is ``disjoint``.

    Raises
    ------
    UsageError: the folder holds something else, another policy, or is being written to.
    LibraryError: the library that is there is damaged.
    """

    def __init__(self, folder: Path, *, policy: SplitPolicy | None = None) -> None:
        self.folder = folder
        there = folder / TABLE
        journal = folder / JOURNAL
        if (
            folder.is_dir()
            and any(folder.iterdir())
            and not there.exists()
            and not journal.exists()
        ):
            raise UsageError(
                str(folder), "has files and is no sound library", "a new or empty folder, or a library"
            )  # fmt: skip
        self.existing: SoundLibrary | None = None
        if there.exists() and (folder / CARD).exists():
            self.existing = load_library(folder)
        had = self.existing.card.split_policy if self.existing else None
        if had and policy and had != policy:
            raise UsageError(
                str(folder), f"its split policy is {had}", f"no other than that ({policy} was asked)",
                "Splits are never computed again: make a new library.",
            )  # fmt: skip
        self.policy: SplitPolicy = policy or had or "disjoint"
        self.done: dict[str, Made] = {}
        self._lines = JsonLines(
            journal, keys=("key", "takes", "refused"), entry="a finished take", note=self._note,
            busy="another process adds takes to it", busy_step="Wait for it to end.",
        )  # fmt: skip
        self._known = {t.origin: t for t in self.existing.takes} if self.existing else {}

    def _note(self, line: Mapping[str, Any], offset: int) -> None:
        del offset
        takes = tuple(Take(**take) for take in line["takes"])
        self.done[line["key"]] = Made(line["key"], takes, line["refused"])

    def has(self, key: str) -> bool:
        """Whether this job is finished, in this run or an earlier one, and its files are there."""
        if key in self._known:
            return True
        made = self.done.get(key)
        return made is not None and all((self.folder / take.path).is_file() for take in made.takes)

    def add(self, made: Made) -> None:
        """Note a finished job."""
        self._lines.append(
            {"key": made.key, "takes": [asdict(t) for t in made.takes], "refused": made.refused}
        )

    def __enter__(self) -> GrowingLibrary:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lines.close()

    def finish(self, keys: Sequence[str], *, name: str, few: Few = "refuse") -> SoundLibrary:
        """Give the takes of these jobs their splits, and write table and card.

        Parameters
        ----------
        keys: jobs of this import; others in the notes are left for theirs.
        name: of the library, if it is a new one.
        few: what to do with classes that have fewer recordings than splits.

        Raises
        ------
        TooFewTakesError: with ``few`` ``refuse``. The notes stay: another policy costs no new work.
        UsageError: nothing came in.
        """
        takes = [t for key in dict.fromkeys(keys) if key in self.done for t in self.done[key].takes]
        old = {take.path for take in self.existing.takes} if self.existing else set()
        new = _without_doubles([take for take in takes if take.path not in old], self.existing)
        new = refuse_few(new, self.existing, self.policy, few)
        splits = assign_splits(
            [Newcomer(take.of, take.group, take.sha256, take.kind) for take in new],
            self.existing.takes if self.existing else (),
            self.policy,
        )
        ready = [replace(take, split=split) for take, split in zip(new, splits, strict=True)]
        library = write_library(
            self.folder, merged(self.existing, ready),
            name=self.existing.card.name if self.existing else name,
            version=self._version(bool(ready)),
            policy=self.policy,
        )  # fmt: skip
        self._lines.close()
        (self.folder / JOURNAL).unlink()
        return library

    def _version(self, changed: bool) -> str:
        """Numbers count on when takes came in; versions of another form are their owner's business."""
        if self.existing is None:
            return "1"
        version = self.existing.card.version
        return str(int(version) + 1) if changed and version.isdigit() else version


def _without_doubles(new: Iterable[Take], existing: SoundLibrary | None) -> list[Take]:
    """Leave out files whose very bytes the same class has already."""
    seen = {(t.kind, t.of, t.sha256) for t in (existing.takes if existing else ())}
    kept = []
    for take in sorted(new, key=lambda take: take.path):
        key = (take.kind, take.of, take.sha256)
        if key not in seen:
            seen.add(key)
            kept.append(take)
    return kept


def refuse_few(
    new: Sequence[Take], existing: SoundLibrary | None, policy: SplitPolicy, few: Few
) -> list[Take]:
    """Refuse, or leave out, classes too small to be divided."""
    if policy == "shared":
        return list(new)
    newcomers = [Newcomer(take.of, take.group, take.sha256, take.kind) for take in new]
    small = too_few(newcomers, existing.takes if existing else ())
    small = {of: n for of, n in small.items() if any(class_of(take) == of for take in new)}
    if small and few == "refuse":
        raise TooFewTakesError(small)
    return [take for take in new if class_of(take) not in small]
