"""A bank: everything a corpus of scenes is drawn from, as data.

Conventions
-----------
A bank is a folder of YAML files (see ``docs/banks.md``). Loading it gives frozen records in an order that
depends on their ids alone, never on files, and a hash of the content that moves when anything a scene could
show moves, and does not when files are split, merged, reordered or commented.

Definitions of locations, sounds, role pairs, reactions and registers follow CARES (arXiv 2610.10208); ids
and texts of the default bank are our own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Protocol, TypeVar

from earwitness.errors import DataError
from earwitness.scenes.bank_reading import Finding, IdRegister, Parts, read_parts
from earwitness.scenes.bank_records import (
    REACTED_TO,
    REACTIONS,
    DistanceProfile,
    Header,
    Location,
    ReactedTo,
    Reaction,
    Record,
    Register,
    RolePair,
    RulesFile,
    Situation,
    Sound,
    Tag,
    Theme,
    bank_schema,
)

__all__ = [
    "DEFAULT_BANK",
    "REACTED_TO",
    "REACTIONS",
    "Bank",
    "BankError",
    "Category",
    "DistanceProfile",
    "Finding",
    "Location",
    "ReactedTo",
    "Reaction",
    "Register",
    "RolePair",
    "RulesFile",
    "Situation",
    "Sound",
    "Tag",
    "Template",
    "Theme",
    "assemble",
    "bank_schema",
    "load_bank",
]

DEFAULT_BANK = Path(__file__).parent / "banks" / "default"
"""The folder of the bank that ships with Earwitness."""


class BankError(DataError):
    """A bank cannot be used: a file is missing or says something no bank may say."""


@dataclass(frozen=True, slots=True)
class Category:
    """A group of themes."""

    id: str
    name: str
    themes: tuple[Theme, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """A situation with its place in the bank. ``id`` is the theme's id and the situation's number."""

    id: str
    category: str
    theme: str
    index: int
    title: str
    facets: tuple[str, ...]


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


_T = TypeVar("_T", bound=_Identified)


@dataclass(frozen=True, slots=True)
class Bank:
    """A whole bank. Every tuple is sorted by id; look records up with the methods of the same names.

    Attributes
    ----------
    hash: SHA-256 of the content, 64 hexadecimal digits.
    common_words: lower-case words that name nothing because everybody uses them all the time.
    rules: words and limits of its own for the dialogue rules, if it has any (``rules.yaml``).
    """

    id: str
    version: str
    language: str
    licence: str
    title: str
    hash: str
    locations: tuple[Location, ...]
    distance_profiles: tuple[DistanceProfile, ...]
    sounds: tuple[Sound, ...]
    roles: tuple[RolePair, ...]
    registers: tuple[Register, ...]
    tags: tuple[Tag, ...]
    categories: tuple[Category, ...]
    templates: tuple[Template, ...]
    common_words: frozenset[str]
    rules: RulesFile | None
    _index: Mapping[str, Mapping[str, object]] = field(repr=False, compare=False)
    _drawable: Mapping[str, tuple[str, ...]] = field(repr=False, compare=False)
    _rare: Mapping[str, tuple[str, ...]] = field(repr=False, compare=False)

    def location(self, identifier: str) -> Location:
        """Return a location; :class:`BankError` if there is none of this id."""
        return self._get("location", identifier, Location)

    def sound(self, identifier: str) -> Sound:
        """Return a sound; :class:`BankError` if there is none of this id."""
        return self._get("sound", identifier, Sound)

    def role_pair(self, identifier: str) -> RolePair:
        """Return a role pair; :class:`BankError` if there is none of this id."""
        return self._get("role pair", identifier, RolePair)

    def register(self, identifier: str) -> Register:
        """Return a register; :class:`BankError` if there is none of this id."""
        return self._get("register", identifier, Register)

    def tag(self, identifier: str) -> Tag:
        """Return a delivery tag by its id; :class:`BankError` if there is none."""
        return self._get("tag", identifier, Tag)

    def theme(self, identifier: str) -> Theme:
        """Return a theme; :class:`BankError` if there is none of this id."""
        return self._get("theme", identifier, Theme)

    def template(self, identifier: str) -> Template:
        """Return a template; :class:`BankError` if there is none of this id."""
        return self._get("template", identifier, Template)

    def registers_of(self, reaction: Reaction) -> tuple[Register, ...]:
        """Return the registers of a reaction, sorted by id; none for ``ambient``."""
        return tuple(register for register in self.registers if register.reaction == reaction)

    def sounds_at(self, location: str) -> tuple[str, ...]:
        """Return the ids of the ordinary sounds that can be drawn at a location, sorted.

        These are its own sounds, those it shares and the general ones that are not implausible there. Rare
        sounds are apart: :meth:`rare_at`.

        Examples
        --------
        >>> "dog_bark" in load_bank().sounds_at("park")
        True
        """
        self.location(location)
        return self._drawable[location]

    def rare_at(self, location: str) -> tuple[str, ...]:
        """Return the ids of the rare, alarm-like sounds possible at a location, sorted."""
        self.location(location)
        return self._rare[location]

    def distance_of(self, sound: str, location: str) -> DistanceProfile:
        """Return the distance profile of a sound at a location: its own, else the location's."""
        profile = self.sound(sound).distance or self.location(location).distance
        return self._get("distance profile", profile, DistanceProfile)

    def _get(self, kind: str, identifier: str, record: type[_T]) -> _T:
        value = self._index[kind].get(identifier)
        if not isinstance(value, record):
            raise BankError(
                f"bank {self.id}",
                f"no {kind} {identifier!r}",
                _nearest(identifier, self._index[kind]),
            )
        return value


def load_bank(path: Path | str | None = None) -> Bank:
    """Load a bank folder; without a path, the one that ships with Earwitness.

    Parameters
    ----------
    path: folder with ``bank.yaml`` and its companions, written as ``docs/banks.md`` says.

    Raises
    ------
    BankError: a file is missing, is not YAML, has an unknown key or a value no bank may have, gives an id
        twice or names what does not exist. The text names file, key path, what was found and wanted.
        Everything else that may be wrong with a bank is for the linter (``earwitness scenes bank check``).

    Examples
    --------
    >>> bank = load_bank()
    >>> len(bank.locations), len(bank.roles), len(bank.templates)
    (13, 24, 1000)
    """
    return _shipped() if path is None else _load(Path(path))


@cache
def _shipped() -> Bank:
    """The bank that ships, read once a process: nothing of it changes while a program runs."""
    return _load(DEFAULT_BANK)


def _load(folder: Path) -> Bank:
    if not folder.is_dir():
        raise BankError(
            str(folder),
            "no such folder" if not folder.exists() else "not a folder",
            "a bank: a folder with bank.yaml",
            "Write one to start from: earwitness scenes bank new DIR",
        )
    parts, findings = read_parts(folder)
    findings += structure(parts)
    if findings:
        first = findings[0]
        more = f" There are {len(findings) - 1} more faults." if len(findings) > 1 else ""
        raise BankError(
            f"{folder / first.file}" + (f": {first.path}" if first.path else ""),
            first.found,
            first.wanted,
            f"{first.next_step or 'List all faults: earwitness scenes bank check ' + str(folder)}.{more}".strip(),
        )
    return assemble(parts)


def structure(parts: Parts) -> tuple[Finding, ...]:
    """Check ids and references across files (``B105``, ``B106``): what must hold for a bank to be built."""
    findings: list[Finding | None] = []
    registers = {
        kind: IdRegister(kind)
        for kind in ("location", "distance profile", "sound", "role pair", "register", "tag")
    }
    themes, categories = IdRegister("theme"), IdRegister("category")
    for file, places in parts.locations():
        for profile in places.distance_profiles:
            path = f"distance_profiles[{profile.id}]"
            findings.append(registers["distance profile"].add(profile.id, file, path))
        for n, location in enumerate(places.locations):
            path = f"locations[{n} {location.id}]"
            findings.append(registers["location"].add(location.id, file, path))
    for file, group in parts.sounds():
        for n, sound in enumerate(group.sounds):
            findings.append(registers["sound"].add(sound.id, file, f"sounds[{n} {sound.id}]"))
    for file, role_group in parts.roles():
        for n, pair in enumerate(role_group.roles):
            findings.append(registers["role pair"].add(pair.id, file, f"roles[{n} {pair.id}]"))
    for file, tag_group in parts.tags():
        for n, tag in enumerate(tag_group.tags):
            findings.append(registers["tag"].add(tag.id, file, f"tags[{n} {tag.id}]"))
    for file, register_group in parts.registers():
        for n, register in enumerate(register_group.registers):
            path = f"registers[{n} {register.id}]"
            findings.append(registers["register"].add(register.id, file, path))
    for file, topics in parts.topics():
        findings.append(categories.add(topics.category.id, file, "category"))
        for n, theme in enumerate(topics.themes):
            findings.append(themes.add(theme.id, file, f"themes[{n} {theme.id}]"))
    findings.extend(_references(parts, {kind: set(r.seen) for kind, r in registers.items()}))
    return tuple(finding for finding in findings if finding is not None)


def _references(parts: Parts, known: Mapping[str, set[str]]) -> Iterable[Finding | None]:
    def check(kind: str, identifier: str, file: str, path: str) -> Finding | None:
        if identifier in known[kind]:
            return None
        wanted = _nearest(identifier, known[kind])
        return Finding("B106", "error", file, path, f"the unknown {kind} {identifier!r}", wanted)

    for file, places in parts.locations():
        for n, location in enumerate(places.locations):
            path = f"locations[{n} {location.id}].distance"
            yield check("distance profile", location.distance, file, path)
    for file, group in parts.sounds():
        for n, sound in enumerate(group.sounds):
            path = f"sounds[{n} {sound.id}]"
            if sound.distance is not None:
                yield check("distance profile", sound.distance, file, f"{path}.distance")
            for place in () if sound.at == "everywhere" else sound.at:
                yield check("location", place, file, f"{path}.at")
            for place in sound.implausible_in:
                yield check("location", place, file, f"{path}.implausible_in")
    for file, register_group in parts.registers():
        for n, register in enumerate(register_group.registers):
            for tag in register.tags:
                yield check("tag", tag, file, f"registers[{n} {register.id}].tags")


def assemble(parts: Parts) -> Bank:
    """Build the bank from files that :func:`structure` finds nothing wrong with."""
    header = parts.header
    if header is None:
        raise BankError("bank.yaml", "nothing", "the header of a bank")
    locations = _sorted(x for _, part in parts.locations() for x in part.locations)
    profiles = _sorted(x for _, part in parts.locations() for x in part.distance_profiles)
    sounds = _sorted(x for _, part in parts.sounds() for x in part.sounds)
    roles = _sorted(x for _, part in parts.roles() for x in part.roles)
    registers = _sorted(x for _, part in parts.registers() for x in part.registers)
    tags = _sorted(x for _, part in parts.tags() for x in part.tags)
    categories = _sorted(
        Category(topics.category.id, topics.category.name, _sorted(topics.themes))
        for _, topics in parts.topics()
    )
    templates = tuple(
        Template(f"{theme.id}-{n:02d}", category.id, theme.id, n, situation.title, situation.facets)
        for category in categories
        for theme in category.themes
        for n, situation in enumerate(theme.situations, start=1)
    )
    words = frozenset(w.casefold() for _, part in parts.common_words() for w in part.words)
    rules = tuple(part for _, part in parts.rules())
    contents: dict[str, tuple[Record, ...]] = {
        "locations": locations,
        "distance_profiles": profiles,
        "sounds": sounds,
        "roles": roles,
        "registers": registers,
        "tags": tags,
    }
    if rules:  # A bank without it keeps the hash it had before there were rules.
        contents["rules"] = rules
    return Bank(
        id=header.id,
        version=header.version,
        language=header.language,
        licence=header.licence,
        title=header.title,
        hash=_content_hash(header, contents, categories, words),
        locations=locations,
        distance_profiles=profiles,
        sounds=sounds,
        roles=roles,
        registers=registers,
        tags=tags,
        categories=categories,
        templates=templates,
        common_words=words,
        rules=rules[0] if rules else None,
        _index={
            "location": {x.id: x for x in locations},
            "distance profile": {x.id: x for x in profiles},
            "sound": {x.id: x for x in sounds},
            "role pair": {x.id: x for x in roles},
            "register": {x.id: x for x in registers},
            "tag": {x.id: x for x in tags},
            "theme": {t.id: t for category in categories for t in category.themes},
            "template": {x.id: x for x in templates},
        },
        _drawable={x.id: _possible_at(x.id, sounds, rare=False) for x in locations},
        _rare={x.id: _possible_at(x.id, sounds, rare=True) for x in locations},
    )


def _sorted(records: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(sorted(records, key=lambda record: record.id))


def _possible_at(location: str, sounds: Iterable[Sound], *, rare: bool) -> tuple[str, ...]:
    return tuple(
        sound.id
        for sound in sounds
        if sound.rare == rare
        and (
            location not in sound.implausible_in
            if sound.at == "everywhere"
            else location in sound.at
        )
    )


def _content_hash(
    header: Header,
    contents: Mapping[str, tuple[Record, ...]],
    categories: tuple[Category, ...],
    words: frozenset[str],
) -> str:
    """Hash what the bank says; files, their order, comments and layout do not count."""
    document = {
        "bank": header.model_dump(mode="json"),
        **{
            part: [record.model_dump(mode="json") for record in records]
            for part, records in contents.items()
        },
        "topics": [
            [
                category.id,
                category.name,
                [theme.model_dump(mode="json") for theme in category.themes],
            ]
            for category in categories
        ],
        "common_words": sorted(words),
    }
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _nearest(identifier: str, known: Iterable[str]) -> str:
    import difflib

    names = sorted(known)
    close = difflib.get_close_matches(identifier, names, n=3, cutoff=0.5)
    return "one of " + ", ".join(close or names[:8]) + ("" if close or len(names) <= 8 else ", ...")
