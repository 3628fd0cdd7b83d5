"""Class maps: from the classes of somebody's collection to the sounds and locations of a bank. Data, as YAML.

A map is ``class_maps/<id>.yaml`` or a file of one's own::

    id: esc50
    version: "1"
    title: ESC-50
    sounds:                    # their class -> one of our sounds, or several
      dog: dog_bark
    ambiences:                 # their class -> one of our locations, or several
      crickets: campsite
    left_out:                  # their class -> why it has no place here
      breathing: a voice, not a sound of a place
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earwitness.errors import DataError
from earwitness.scenes.bank import Bank
from earwitness.scenes.sounds import Kind

MAPS = Path(__file__).parent / "class_maps"
"""Folder of the maps that ship with Earwitness."""


@dataclass(frozen=True, slots=True)
class ClassMap:
    """A loaded map. ``hash`` is of its file's text."""

    id: str
    version: str
    title: str
    hash: str
    sounds: Mapping[str, tuple[str, ...]]
    ambiences: Mapping[str, tuple[str, ...]]
    left_out: Mapping[str, str]

    def targets(self, label: str) -> tuple[tuple[Kind, str], ...]:
        """What a class of theirs stands for; empty if it is left out or unknown."""
        label = normal(label)
        return (
            *(("sound", of) for of in self.sounds.get(label, ())),
            *(("ambience", of) for of in self.ambiences.get(label, ())),
        )

    def knows(self, label: str) -> bool:
        """Whether it says anything about this class."""
        label = normal(label)
        return label in self.sounds or label in self.ambiences or label in self.left_out


def normal(label: str) -> str:
    """Class names are compared in lower case with one underscore for anything between words."""
    words = "".join(c if c.isalnum() else " " for c in label.casefold()).split()
    return "_".join(words)


def identity_map(name: str, bank: Bank) -> ClassMap:
    """A map for recordings that are labelled ``sound:<id>`` and ``ambience:<location>`` already."""
    return ClassMap(
        name, "1", name, "",
        {normal(f"sound:{sound.id}"): (sound.id,) for sound in bank.sounds},
        {normal(f"ambience:{place.id}"): (place.id,) for place in bank.locations},
        {},
    )  # fmt: skip


def known_maps() -> tuple[str, ...]:
    """Ids of the maps that ship with Earwitness."""
    return tuple(sorted(path.stem for path in MAPS.glob("*.yaml")))


def load_class_map(name_or_path: str | Path, bank: Bank | None = None) -> ClassMap:
    """Load a map by id or from a file.

    Parameters
    ----------
    bank: its sounds and locations must be those of this bank, if one is given.

    Raises
    ------
    DataError: no such map, not a map, or a target the bank does not have.

    Examples
    --------
    >>> load_class_map("esc50").targets("dog")
    (('sound', 'dog_bark'),)
    """
    path = MAPS / f"{name_or_path}.yaml"
    if not path.is_file():
        path = Path(name_or_path)
    if not path.is_file():
        raise DataError(
            "--map", f"no class map {str(name_or_path)!r}", ", ".join(known_maps()) + " or a YAML file"
        )  # fmt: skip
    text = path.read_text(encoding="utf-8")
    value = _mapping(_yaml(text, path), str(path))
    known = {"id", "version", "title", "sounds", "ambiences", "left_out"}
    if strange := sorted(set(value) - known):
        raise DataError(str(path), f"the unknown key {strange[0]!r}", ", ".join(sorted(known)))
    made = ClassMap(
        id=str(value.get("id", path.stem)), version=str(value.get("version", "1")),
        title=str(value.get("title", path.stem)), hash=hashlib.sha256(text.encode()).hexdigest(),
        sounds=_targets(value.get("sounds"), f"{path}: sounds"),
        ambiences=_targets(value.get("ambiences"), f"{path}: ambiences"),
        left_out={normal(k): str(v) for k, v in _mapping(value.get("left_out"), f"{path}: left_out").items()},
    )  # fmt: skip
    if not made.sounds and not made.ambiences:
        raise DataError(str(path), "no sounds and no ambiences", "at least one class")
    if bank is not None:
        _check_against(made, bank, path)
    return made


def _yaml(text: str, path: Path) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise DataError(str(path), "not YAML", "a class map") from error


def _mapping(value: Any, where: str) -> Mapping[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise DataError(where, type(value).__name__, "a mapping")
    return value


def _targets(value: Any, where: str) -> dict[str, tuple[str, ...]]:
    made: dict[str, tuple[str, ...]] = {}
    for label, target in _mapping(value, where).items():
        ids = target if isinstance(target, list) else [target]
        if not ids or not all(isinstance(of, str) for of in ids):
            raise DataError(f"{where}.{label}", repr(target), "an id or a list of ids")
        if normal(str(label)) in made:
            raise DataError(f"{where}.{label}", "is there twice", "each class once")
        made[normal(str(label))] = tuple(ids)
    return made


def _check_against(made: ClassMap, bank: Bank, path: Path) -> None:
    for kind, table, known in (
        ("sound", made.sounds, [x.id for x in bank.sounds]),
        ("location", made.ambiences, [x.id for x in bank.locations]),
    ):
        for label, ids in table.items():
            for of in ids:
                if of not in known:
                    raise DataError(
                        f"{path}: {label}", f"the unknown {kind} {of!r}", _near(of, known),
                        "Map it to something of this bank, or list the class under left_out.",
                    )  # fmt: skip


def _near(of: str, known: Iterable[str]) -> str:
    import difflib

    names = sorted(known)
    close = difflib.get_close_matches(of, names, n=3, cutoff=0.5)
    return "one of " + ", ".join(close or names[:8])
