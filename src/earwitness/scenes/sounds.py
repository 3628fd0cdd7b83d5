"""Sound libraries: the takes that events and ambiences are drawn from.

A library is a folder::

    library.yaml                        the card: name, version, split policy, hash
    takes.jsonl                         one line a take, sorted by path
    sounds/<sound>/<take>.flac
    ambiences/<location>/<take>.flac

The split of a take is written when it comes in and never computed again
(:mod:`earwitness.scenes.sound_splits`). What a take measures is in :mod:`earwitness.scenes.sound_measure`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Literal

from earwitness.errors import DataError, UsageError
from earwitness.scenes.scenario import SPLITS, Split

__all__ = [
    "SHARED",
    "LibraryCard",
    "LibraryError",
    "MissingTakesError",
    "SoundLibrary",
    "SplitPolicy",
    "Take",
    "TakeSplit",
    "load_library",
    "write_library",
]

Kind = Literal["sound", "ambience"]
KINDS: tuple[Kind, ...] = ("sound", "ambience")
FOLDERS: Mapping[Kind, str] = MappingProxyType({"sound": "sounds", "ambience": "ambiences"})
SplitPolicy = Literal["disjoint", "shared"]
POLICIES: tuple[SplitPolicy, ...] = ("disjoint", "shared")
TakeSplit = Literal["train", "validation", "test", "shared"]
SHARED: Literal["shared"] = "shared"
"""The split of takes that every split may use."""

TABLE = "takes.jsonl"
CARD = "library.yaml"
FORMAT = 1


class LibraryError(DataError):
    """A sound library is not what its table or card says, or says what none may say."""


class MissingTakesError(DataError):
    """A library lacks takes that were asked for; ``missing`` lists them as (kind, id, split)."""

    def __init__(self, where: str, missing: Sequence[tuple[Kind, str, str]]) -> None:
        self.missing = tuple(missing)
        named = ", ".join(f"{kind} {of} ({split})" for kind, of, split in missing)
        super().__init__(
            where,
            f"no takes of {named}",
            "at least one take of each",
            "Add takes (earwitness sounds import, fetch or synth), or plan against this library.",
        )


@dataclass(frozen=True, slots=True)
class Take:
    """One recording of a sound, or one ambience of a location.

    Attributes
    ----------
    kind: ``sound`` or ``ambience``.
    of: id of the sound, or of the location.
    path: of the file, relative to the library, with forward slashes.
    sha256: of the file's bytes.
    source: where it comes from, in words or as an address.
    licence: of this file.
    attribution: the credit its licence asks for, ready to print; empty where none is needed.
    author: who made it, as far as known.
    duration_s: length of the file.
    loudness_lufs: BS.1770 loudness; for sounds under 0.4 s, of one block over the sound.
    bandwidth_hz: highest frequency with energy worth mentioning.
    band_limited: dull for its sample rate, which a listener may take for a cue.
    peak_time_s: centre of its loudest moment, from the start of the file.
    sample_rate, channels: of the file.
    synthetic: made by procedure, not recorded.
    split: ``train``, ``validation``, ``test``, or ``shared`` for all of them.
    group: takes cut from one recording share it; they are never divided between splits.
    origin: SHA-256 of the file the take was made from, so that it is not imported twice.
    prepared: what was done to it on the way in (converted, trimmed, cut); empty for an untouched file.
    """

    kind: Kind
    of: str
    path: str
    sha256: str
    source: str
    licence: str
    attribution: str
    author: str
    duration_s: float
    loudness_lufs: float
    bandwidth_hz: float
    band_limited: bool
    peak_time_s: float
    sample_rate: int
    channels: int
    synthetic: bool
    split: TakeSplit
    group: str = ""
    origin: str = ""
    prepared: str = ""

    @property
    def id(self) -> str:
        """Its path without the suffix, such as ``sounds/dog_bark/take-01``."""
        return str(PurePosixPath(self.path).with_suffix(""))

    def usable_in(self, split: str) -> bool:
        """Whether it may be used in a split."""
        return self.split in (split, SHARED)


@dataclass(frozen=True, slots=True)
class LibraryCard:
    """What a library is. ``hash`` covers every line of its table."""

    name: str
    version: str
    split_policy: SplitPolicy
    hash: str
    n_sounds: int
    n_ambiences: int
    n_takes: int
    licences: Mapping[str, int]
    synthetic: int


@dataclass(frozen=True)
class SoundLibrary:
    """A loaded library. ``takes`` are sorted by path."""

    folder: Path
    card: LibraryCard
    takes: tuple[Take, ...]

    @property
    def hash(self) -> str:
        return self.card.hash

    @property
    def shared(self) -> bool:
        """Whether any take serves several splits, so that results are not on unseen recordings."""
        return any(take.split == SHARED for take in self.takes)

    @cached_property
    def _of(self) -> Mapping[tuple[Kind, str], tuple[Take, ...]]:
        grouped: dict[tuple[Kind, str], list[Take]] = {}
        for take in self.takes:
            grouped.setdefault((take.kind, take.of), []).append(take)
        return {key: tuple(takes) for key, takes in grouped.items()}

    def sounds(self, sound: str, split: str | None = None) -> tuple[Take, ...]:
        """Takes of a sound, of one split (shared ones included) or all, sorted by path."""
        return self._select("sound", sound, split)

    def ambiences(self, location: str, split: str | None = None) -> tuple[Take, ...]:
        """Ambiences of a location, of one split (shared ones included) or all, sorted by path."""
        return self._select("ambience", location, split)

    def _select(self, kind: Kind, of: str, split: str | None) -> tuple[Take, ...]:
        takes = self._of.get((kind, of), ())
        return takes if split is None else tuple(t for t in takes if t.usable_in(split))

    def ids(self, kind: Kind) -> tuple[str, ...]:
        """Sounds, or locations, that have takes; sorted."""
        return tuple(sorted(of for found, of in self._of if found == kind))

    def counts(self, kind: Kind = "sound") -> dict[Split, dict[str, int]]:
        """How many takes each split may use of each sound (or location), as a plan wants to know it."""
        return {
            split: {of: n for of in self.ids(kind) if (n := len(self._select(kind, of, split)))}
            for split in SPLITS
        }

    def require(self, wanted: Iterable[tuple[Kind, str, str]]) -> None:
        """Refuse at once, with a full list, when takes that will be needed are not there.

        Parameters
        ----------
        wanted: (kind, sound or location, split).

        Raises
        ------
        MissingTakesError: some have no usable take.
        """
        missing = sorted({w for w in wanted if not self._select(*w)})
        if missing:
            raise MissingTakesError(str(self.folder), missing)

    def file(self, take: Take) -> Path:
        """Where the file of a take is."""
        return self.folder / take.path


def library_hash(takes: Iterable[Take]) -> str:
    """SHA-256 over all takes, whatever their order: files, measures, licences and splits."""
    digest = hashlib.sha256()
    for take in sorted(takes, key=lambda take: take.path):
        digest.update(_line(take).encode())
    return digest.hexdigest()


def load_library(folder: Path | str, *, verify: bool = False) -> SoundLibrary:
    """Load a sound library.

    Parameters
    ----------
    verify: hash every file as well; otherwise only their presence is checked.

    Raises
    ------
    LibraryError: no such folder; a line, the card or a file that is not what it should be.

    Examples
    --------
    >>> library = load_library("lib")  # doctest: +SKIP
    >>> [take.path for take in library.sounds("dog_bark", "test")]  # doctest: +SKIP
    ['sounds/dog_bark/dog_bark-04.flac']
    """
    folder = Path(folder)
    table = folder / TABLE
    if not folder.is_dir():
        raise LibraryError(str(folder), "no such folder", "a sound library", _MAKE)
    if not table.is_file():
        raise LibraryError(str(folder), f"no {TABLE}", "a sound library", _MAKE)
    takes = tuple(sorted(_read_table(table), key=lambda take: take.path))
    if not takes:
        raise LibraryError(str(table), "no takes", "one line a take", _MAKE)
    _refuse_doubles(table, takes)
    made = library_hash(takes)
    card = _read_card(folder / CARD)
    if card.hash != made:
        raise LibraryError(
            str(folder / CARD), f"hash {card.hash[:12]}", f"{made[:12]}, which {TABLE} has",
            f"The table was changed by hand. If that was right: earwitness sounds check {folder} --accept-edits",
        )  # fmt: skip
    for take in takes:
        _check_file(folder, take, verify=verify)
    return SoundLibrary(folder, card, takes)


_MAKE = "Make one: earwitness sounds --help"


def _refuse_doubles(table: Path, takes: Sequence[Take]) -> None:
    double = next((path for path, n in Counter(take.path for take in takes).items() if n > 1), None)
    if double:
        raise LibraryError(str(table), f"{double} is there twice", "one line a take")


def _check_file(folder: Path, take: Take, *, verify: bool) -> None:
    from earwitness.audio.files import file_sha256

    path = folder / take.path
    if not path.is_file():
        raise LibraryError(str(path), "no such file", f"the take of a line in {TABLE}")
    if verify and (found := file_sha256(path)) != take.sha256:
        raise LibraryError(
            str(path), f"SHA-256 {found[:12]}", f"{take.sha256[:12]}",
            "The file was changed or damaged: import it again.",
        )  # fmt: skip


def write_library(
    folder: Path,
    takes: Iterable[Take],
    *,
    name: str,
    version: str = "1",
    policy: SplitPolicy = "disjoint",
) -> SoundLibrary:
    """Write table and card; the files of the takes must be there already.

    The card appears last, so that a library whose writing was interrupted is recognised by its hash.
    """
    import yaml

    from earwitness.audio.files import atomic_write_text

    ordered = tuple(sorted(takes, key=lambda take: take.path))
    for take in ordered:
        _validate(take, str(folder / TABLE))
    _refuse_doubles(folder / TABLE, ordered)
    licences = Counter(take.licence for take in ordered)
    card = LibraryCard(
        name=name, version=version, split_policy=policy, hash=library_hash(ordered),
        n_sounds=len({t.of for t in ordered if t.kind == "sound"}),
        n_ambiences=len({t.of for t in ordered if t.kind == "ambience"}),
        n_takes=len(ordered), licences=dict(sorted(licences.items())),
        synthetic=sum(take.synthetic for take in ordered),
    )  # fmt: skip
    atomic_write_text(folder / TABLE, "".join(map(_line, ordered)))
    text = yaml.safe_dump({"format": FORMAT, **asdict(card)}, sort_keys=False, allow_unicode=True)
    atomic_write_text(folder / CARD, text)
    return SoundLibrary(folder, card, ordered)


def accept_edits(folder: Path) -> SoundLibrary:
    """Write the card anew from a table that was changed by hand.

    Raises
    ------
    LibraryError: the table or the card is not readable.
    """
    card = _read_card(folder / CARD)
    takes = tuple(_read_table(folder / TABLE))
    for take in takes:
        _check_file(folder, take, verify=False)
    return write_library(
        folder, takes, name=card.name, version=card.version, policy=card.split_policy
    )


def _line(take: Take) -> str:
    value = asdict(take)
    kind, of = value.pop("kind"), value.pop("of")
    return json.dumps({kind: of, **value}, ensure_ascii=False, separators=(", ", ": ")) + "\n"


def _read_table(table: Path) -> Iterator[Take]:
    try:
        text = table.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LibraryError(str(table), f"it cannot be read ({error})") from error
    for n, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield _take_from(line, f"{table}: line {n}")


_OPTIONAL = {"group", "origin", "prepared"}
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("path", "sha256", "source", "licence", "attribution", "author"), str),
    **dict.fromkeys(("split", "group", "origin", "prepared"), str),
    **dict.fromkeys(("duration_s", "loudness_lufs", "bandwidth_hz", "peak_time_s"), (int, float)),
    **dict.fromkeys(("band_limited", "synthetic"), bool),
    **dict.fromkeys(("sample_rate", "channels"), int),
}


def _take_from(line: str, where: str) -> Take:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise LibraryError(where, f"not JSON ({error.msg})", "one take") from error
    if not isinstance(value, dict):
        raise LibraryError(where, type(value).__name__, "an object")
    kinds: list[Kind] = [kind for kind in KINDS if kind in value]
    if len(kinds) != 1:
        found = "both sound and ambience" if kinds else "neither sound nor ambience"
        raise LibraryError(where, found, "one of the two keys")
    of = value.pop(kinds[0])
    known = {field.name for field in fields(Take)} - {"kind", "of"}
    if strange := sorted(set(value) - known):
        raise LibraryError(where, f"the unknown key {strange[0]!r}", ", ".join(sorted(known)))
    if absent := sorted(known - set(value) - _OPTIONAL):
        raise LibraryError(where, f"no {', '.join(absent)}", "every field of a take")
    for key, wanted in {**_TYPES}.items():
        found_value = value.get(key, "")
        right = isinstance(found_value, wanted) and not (
            wanted is not bool and isinstance(found_value, bool)
        )
        if not right:
            raise LibraryError(where, f"{key} is {found_value!r}", _name_of(wanted))
    if not isinstance(of, str):
        raise LibraryError(where, f"{kinds[0]} is {of!r}", "an id")
    for key in ("duration_s", "loudness_lufs", "bandwidth_hz", "peak_time_s"):
        value[key] = float(value[key])
    take = Take(kind=kinds[0], of=of, **value)
    _validate(take, where)
    return take


def _name_of(wanted: type | tuple[type, ...]) -> str:
    names = {str: "text", bool: "true or false", int: "a whole number"}
    return "a number" if isinstance(wanted, tuple) else names[wanted]


def _validate(take: Take, where: str) -> None:
    """Refuse a take that no library may hold."""
    place = PurePosixPath(take.path)
    wanted = (FOLDERS[take.kind], take.of)
    if place.parts[:2] != wanted or len(place.parts) != 3 or ".." in place.parts:
        raise LibraryError(where, f"path {take.path!r}", f"{'/'.join(wanted)}/<take>")
    if take.split not in (*SPLITS, SHARED):
        raise LibraryError(where, f"split {take.split!r}", ", ".join((*SPLITS, SHARED)))
    if len(take.sha256) != 64:
        raise LibraryError(where, f"sha256 {take.sha256!r}", "64 hexadecimal digits")
    numbers = (take.duration_s, take.loudness_lufs, take.bandwidth_hz, take.peak_time_s)
    if not all(map(math.isfinite, numbers)):
        raise LibraryError(where, "a number that is not finite", "measured values")
    if take.duration_s <= 0 or not 0 <= take.peak_time_s <= take.duration_s:
        raise LibraryError(
            where, f"peak_time_s {take.peak_time_s} in {take.duration_s} s", "a moment inside the take"
        )  # fmt: skip
    if take.sample_rate < 1 or take.channels < 1:
        raise LibraryError(where, f"{take.channels} channels at {take.sample_rate} Hz", "audio")


def _read_card(path: Path) -> LibraryCard:
    import yaml

    try:
        value: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LibraryError(
            str(path), "no such file", "the card of a library",
            "Its making was interrupted: run the same command again.",
        ) from error  # fmt: skip
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise LibraryError(str(path), "not YAML", "the card of a library") from error
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise LibraryError(str(path), "no card of this format", f"format: {FORMAT}")
    value = {key: entry for key, entry in value.items() if key != "format"}
    known = {field.name for field in fields(LibraryCard)}
    if set(value) != known:
        odd = sorted(set(value) ^ known)[0]
        raise LibraryError(str(path), f"the key {odd!r}", "exactly: " + ", ".join(sorted(known)))
    if value["split_policy"] not in POLICIES:
        raise LibraryError(
            str(path), f"split_policy {value['split_policy']!r}", " or ".join(POLICIES)
        )
    return LibraryCard(**{**value, "name": str(value["name"]), "version": str(value["version"])})


def merged(existing: SoundLibrary | None, new: Iterable[Take]) -> tuple[Take, ...]:
    """Takes of a library and new ones; a new take replaces one of the same path but keeps its split.

    Raises
    ------
    UsageError: nothing at all came in.
    """
    old = {take.path: take for take in existing.takes} if existing else {}
    for take in new:
        before = old.get(take.path)
        old[take.path] = replace(take, split=before.split) if before else take
    if not old:
        raise UsageError("sound library", "no takes came in", "at least one")
    return tuple(old.values())
