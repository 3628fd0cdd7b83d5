"""Withdrawing a person's consent: everything of theirs goes, and what must be made anew is listed.

Order
-----
1. Everything of the person is found, also in the places named. Nothing is changed yet; a dry run ends here.
2. What was found is written to ``forget-pending.json``. Until it is gone, pool, selection and export refuse to work.
3. The tombstone is written, so that nothing comes back even if the rest is interrupted.
4. Audio, rows, clips, replies and copies go, place by place.
5. ``forget-pending.json``, the last file that names the person, goes.

A kill between any two steps leaves a state from which ``--resume`` (or the same command) goes on to the end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from earwitness.audio.files import atomic_write_text, file_sha256
from earwitness.clips.assignment import ASSIGNMENTS
from earwitness.clips.forgetting_places import (
    Effect,
    Traces,
    filter_lines,
    filter_table,
    forget_in_derived,
    forget_in_review,
    forget_in_runs,
    forget_in_set,
    remove_files,
    traces_in_set,
)
from earwitness.clips.forgetting_records import (
    FORGOTTEN,
    PENDING,
    read_tombstones,
    write_tombstones,
)
from earwitness.clips.pool import POOL, REVIEWS
from earwitness.clips.pool_reading import AUDIO, RECORDINGS, SPEAKERS, SUFFIXES, read_speakers
from earwitness.clips.selecting_record import SELECTION, read_selection
from earwitness.errors import DataError, UsageError
from earwitness.runs.jsonlines import read_lines


@dataclass(frozen=True, slots=True)
class Places:
    """Where to look beside the collection."""

    recordings: tuple[Path, ...] = ()
    reviews: tuple[Path, ...] = ()
    sets: tuple[Path, ...] = ()
    runs: tuple[Path, ...] = ()
    derived: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What went, or would go, and what must be made anew."""

    done: bool
    effects: tuple[Effect, ...]

    @property
    def rebuild(self) -> tuple[str, ...]:
        """What to make anew, each once."""
        return tuple(dict.fromkeys(effect.rebuild for effect in self.effects if effect.rebuild))


def forget(
    collection: Path,
    speaker: str,
    places: Places | None = None,
    *,
    do: bool = False,
    on_step: Callable[[str], None] | None = None,
) -> Forgotten:
    """Forget a speaker, or say what would go.

    Parameters
    ----------
    speaker: name of a speaker, or of one of their accounts; with a speaker's name all accounts go.
    do: False for a dry run.
    on_step: told of every place before it is worked on.

    Raises
    ------
    DataError: nobody of that name, or a file is not what it should be.
    UsageError: a withdrawal of somebody else was interrupted and must be finished first.
    """
    places = places or Places()
    _check_places(collection, places)
    pending = read_pending(collection)
    if pending is not None and pending[0].casefold() != speaker.casefold():
        raise UsageError(
            str(collection / PENDING),
            "the withdrawal of somebody else was interrupted",
            next_step="Finish it first, with --resume --yes.",
        )
    traces = find_traces(collection, speaker, places.recordings)
    if pending is not None:
        traces.add(pending[1])
        places = _joined(places, pending[2])
    if not traces.recordings and not traces.files and len(traces.names) == 1 and pending is None:
        _require_known(collection, speaker)
    known = -1
    while len(traces.audio) > known:
        # A set may have been made of another set's clips, so until nothing new turns up.
        known = len(traces.audio)
        for folder in places.sets:
            traces.add(traces_in_set(folder, traces))
    if do:
        values = {"speaker": speaker, "traces": traces.to_json(), "places": _to_json(places)}
        atomic_write_text(collection / PENDING, json.dumps(values) + "\n")
        stones = read_tombstones(collection)
        stones.add(traces.names, traces.audio)
        write_tombstones(collection, stones)
    effects = tuple(_everywhere(collection, traces, places, do, on_step))
    if do:
        (collection / PENDING).unlink()
    return Forgotten(do, effects)


def resume(
    collection: Path, *, do: bool = False, on_step: Callable[[str], None] | None = None
) -> Forgotten:
    """Go on with a withdrawal that was interrupted.

    Raises
    ------
    UsageError: none was.
    """
    pending = read_pending(collection)
    if pending is None:
        raise UsageError(
            "--resume", f"{collection} has no interrupted withdrawal", "the name of a speaker"
        )
    return forget(collection, pending[0], pending[2], do=do, on_step=on_step)


def read_pending(collection: Path) -> tuple[str, Traces, Places] | None:
    """Speaker, traces and places of an interrupted withdrawal; None if there is none.

    Raises
    ------
    DataError: the file is not what it should be.
    """
    path = collection / PENDING
    if not path.exists():
        return None
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        places = {
            name: tuple(Path(text) for text in paths) for name, paths in values["places"].items()
        }
        return str(values["speaker"]), Traces.from_json(values["traces"]), Places(**places)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(str(path), f"is no interrupted withdrawal ({error})") from None


def find_traces(collection: Path, speaker: str, recordings: Sequence[Path] = ()) -> Traces:
    """Accounts, recordings, hashes and files of a speaker in a collection and folders of recordings."""
    folded = speaker.casefold()
    traces = Traces(names={folded})
    tables = [collection / POOL, *(folder / RECORDINGS for folder in (collection, *recordings))]
    rows = [
        (path.parent, line)
        for path in tables
        if path.exists()
        for _, line in read_lines(path, "a recording")
    ]
    accounts = {
        str(row.get("account")).casefold()
        for _, row in rows
        if str(row.get("speaker")).casefold() == folded
    }
    accounts |= {
        account.casefold()
        for account, row in read_speakers(collection / SPEAKERS).items()
        if row.speaker.casefold() == folded
    }
    traces.names |= accounts
    for folder, row in rows:
        if not traces.owns(row):
            continue
        traces.recordings.add(str(row["id"]))
        if row.get("sha256"):
            traces.audio.add(str(row["sha256"]))
        traces.files.add(str((folder / str(row["path"])).absolute()))
    for folder in (collection, *recordings):
        for path in _files_of(folder / AUDIO, traces.names):
            traces.files.add(str(path.absolute()))
            traces.recordings.add(f"{path.parent.name}/{path.stem}")
    traces.audio |= {file_sha256(path) for path in map(Path, traces.files) if path.is_file()}
    return traces


def _files_of(root: Path, names: set[str]) -> Iterator[Path]:
    if not root.is_dir():
        return
    for folder in sorted(root.iterdir()):
        if folder.is_dir() and folder.name.casefold() in names:
            for path in sorted(folder.iterdir()):
                if path.is_file() and path.suffix.lower() in SUFFIXES:
                    yield path


def _everywhere(
    collection: Path,
    traces: Traces,
    places: Places,
    do: bool,
    on_step: Callable[[str], None] | None,
) -> Iterator[Effect]:
    def tell(what: object) -> None:
        if on_step:
            on_step(str(what))

    tell("audio files")
    yield from remove_files(traces, do=do)
    for folder in places.sets:
        tell(folder)
        yield from forget_in_set(folder, traces, do=do)
    for folder in places.runs:
        tell(folder)
        yield from forget_in_runs(folder, traces, do=do)
    for folder in dict.fromkeys((collection, *places.recordings, *places.reviews)):
        tell(folder)
        yield from forget_in_review(folder, traces, do=do)
        yield from filter_lines(folder / RECORDINGS, traces, "rows of recordings", do=do)
    for folder in places.derived:
        tell(folder)
        yield from forget_in_derived(folder, traces, do=do)
    tell(collection)
    yield from _in_selection(collection, traces, do)
    for name, what in (
        (REVIEWS, "reviews"), (POOL, "rows of the pool"), (ASSIGNMENTS, "assignments"),
    ):  # fmt: skip
        yield from filter_lines(collection / name, traces, what, do=do)
    yield from filter_table(collection / SPEAKERS, traces, "rows of speakers", do=do)


def _in_selection(collection: Path, traces: Traces, do: bool) -> Iterator[Effect]:
    path = collection / SELECTION
    if not path.exists():
        return
    record = read_selection(collection)
    named = traces.recordings & {*record.chosen, *record.left_out}
    if named:
        if do:
            path.unlink()
        yield Effect(
            str(path),
            "selection that names them",
            len(named),
            f"earwitness clips select {collection}",
        )


def _require_known(collection: Path, speaker: str) -> None:
    """Somebody with assignments alone is known too; nobody else is."""
    path = collection / ASSIGNMENTS
    lines = read_lines(path, "an assignment") if path.exists() else ()
    if any(str(line.get("account")).casefold() == speaker.casefold() for _, line in lines):
        return
    if read_tombstones(collection).has_name(speaker):
        raise DataError(
            speaker,
            f"was forgotten already ({collection / FORGOTTEN})",
            next_step="Copies elsewhere: name --set, --runs and --derived together with the first withdrawal.",
        )
    raise DataError(
        speaker,
        f"is neither a speaker nor an account of {collection}",
        "a name as in assignments.jsonl, recordings.jsonl or speakers.csv",
    )


def _check_places(collection: Path, places: Places) -> None:
    if not collection.is_dir():
        raise DataError(str(collection), "no such folder", "a collection")
    for folders in asdict(places).values():
        for folder in folders:
            if not Path(folder).is_dir():
                raise DataError(str(folder), "no such folder", "a folder to look in")


def _to_json(places: Places) -> dict[str, list[str]]:
    return {
        name: [str(Path(p).absolute()) for p in paths] for name, paths in asdict(places).items()
    }


def _joined(one: Places, other: Places) -> Places:
    values = {}
    for name, paths in asdict(one).items():
        both = [*map(Path, paths), *getattr(other, name)]
        values[name] = tuple(dict.fromkeys(path.absolute() for path in both if path.is_dir()))
    return Places(**values)
