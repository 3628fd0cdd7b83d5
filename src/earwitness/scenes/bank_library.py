"""What a sound library holds for a bank, and which locations it can serve.

A library is a folder with ``takes.jsonl`` (one take a line, with the keys ``sound`` or ``ambience``, and
``split``) or, without that file, with ``sounds/<sound>/<take>`` and ``ambiences/<location>/<take>``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from earwitness.errors import DataError
from earwitness.scenes.bank import Bank
from earwitness.scenes.bank_lint import MIN_SOUNDS, finding
from earwitness.scenes.bank_reading import Finding

MIN_SERVED = 4
"""Sounds a location must have in each split: a question about a sound offers four of one location."""

SHARED = ("shared", "any", "")
"""Splits whose takes may be used in every split."""


@dataclass(frozen=True, slots=True)
class LibraryContents:
    """How many takes a library has: sound or location -> split -> takes."""

    folder: Path
    sounds: Mapping[str, Mapping[str, int]]
    ambiences: Mapping[str, Mapping[str, int]]

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits its takes are divided into, sorted; ``("shared",)`` where they are not."""
        found = {s for takes in (*self.sounds.values(), *self.ambiences.values()) for s in takes}
        return tuple(sorted(found - set(SHARED))) or ("shared",)

    def sounds_in(self, split: str) -> frozenset[str]:
        """Return the sounds with at least one take that may be used in a split."""
        return frozenset(_usable(self.sounds, split))

    def ambiences_in(self, split: str) -> frozenset[str]:
        """Return the locations with at least one ambience that may be used in a split."""
        return frozenset(_usable(self.ambiences, split))


def _usable(takes: Mapping[str, Mapping[str, int]], split: str) -> Iterator[str]:
    for identifier, counts in takes.items():
        if counts.get(split, 0) or any(counts.get(shared, 0) for shared in SHARED):
            yield identifier


def read_library(folder: Path) -> LibraryContents:
    """Count the takes of a sound library.

    Raises
    ------
    DataError: no such folder, nothing of a library in it, or a line of ``takes.jsonl`` that is no take.
    """
    if not folder.is_dir():
        raise DataError(str(folder), "no such folder", "a sound library")
    table = folder / "takes.jsonl"
    if table.is_file():
        return _from_table(folder, table)
    if not (folder / "sounds").is_dir():
        raise DataError(
            str(folder), "neither takes.jsonl nor a folder sounds/", "a sound library",
            "Make one: earwitness sounds --help",
        )  # fmt: skip
    return LibraryContents(
        folder, _from_folders(folder / "sounds"), _from_folders(folder / "ambiences")
    )


def _from_table(folder: Path, table: Path) -> LibraryContents:
    sounds: dict[str, Counter[str]] = {}
    ambiences: dict[str, Counter[str]] = {}
    with table.open(encoding="utf-8") as lines:
        for n, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                take = json.loads(line)
            except json.JSONDecodeError as error:
                raise DataError(
                    f"{table}: line {n}", f"not JSON ({error.msg})", "one take"
                ) from error
            if not isinstance(take, dict):
                raise DataError(f"{table}: line {n}", type(take).__name__, "an object")
            sound, place = take.get("sound"), take.get("ambience", take.get("location"))
            split = str(take.get("split") or "")
            if isinstance(sound, str) and sound:
                sounds.setdefault(sound, Counter())[split] += 1
            elif isinstance(place, str) and place:
                ambiences.setdefault(place, Counter())[split] += 1
            else:
                raise DataError(
                    f"{table}: line {n}", "neither sound nor ambience", "one of the two keys"
                )
    return LibraryContents(folder, sounds, ambiences)


def _from_folders(folder: Path) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for child in sorted(folder.iterdir()) if folder.is_dir() else ():
        takes = (
            sum(file.is_file() and not file.name.startswith(".") for file in child.iterdir())
            if child.is_dir()
            else 0
        )
        if takes:
            found[child.name] = Counter({"shared": takes})
    return found


def library_findings(bank: Bank, library: LibraryContents) -> Iterator[Finding]:
    """Yield what a library lacks for a bank (``B601`` to ``B603``), location by location."""
    known = {sound.id for sound in bank.sounds}
    for sound in sorted(set(library.sounds) - known):
        yield finding(
            "B603", "library", sound, "a sound the bank does not have", "sounds of the bank"
        )
    for location in bank.locations:
        drawable = set(bank.sounds_at(location.id))
        for split in library.splits:
            served = drawable & library.sounds_in(split)
            # The split goes unsaid where there is only one lot of takes.
            where = f"locations[{location.id}]" + (f", {split}" if split != "shared" else "")
            missing = ", ".join(sorted(drawable - served)[:6])
            if len(served) < MIN_SERVED:
                yield finding(
                    "B601", "library", where, f"takes of {len(served)} of its {len(drawable)} sounds",
                    f"at least {MIN_SERVED}", f"Add takes of {missing}, ...",
                )  # fmt: skip
            elif len(served) < min(MIN_SOUNDS, len(drawable)):
                yield finding(
                    "B602", "library", where, f"takes of {len(served)} of its {len(drawable)} sounds",
                    f"{MIN_SOUNDS} for variety", f"Add takes of {missing}, ...",
                )  # fmt: skip
            if library.ambiences and location.id not in library.ambiences_in(split):
                yield finding("B601", "library", where, "no ambience", "at least one")
