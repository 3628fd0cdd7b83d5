"""From the YAML files of a bank to its records, with every fault named by file and key path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import ValidationError

from earwitness.scenes.bank_records import (
    OPTIONAL_PARTS,
    PARTS,
    CommonWordsFile,
    Header,
    LocationsFile,
    Record,
    RegistersFile,
    RolesFile,
    RulesFile,
    SoundsFile,
    TagsFile,
    TopicsFile,
)

Severity = Literal["error", "warning"]
_R = TypeVar("_R", bound=Record)


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of a bank. ``code`` is stable; ``file`` is relative to the bank's folder."""

    code: str
    severity: Severity
    file: str
    path: str
    found: str
    wanted: str
    next_step: str = ""

    @property
    def where(self) -> str:
        """File and key path in one string."""
        return f"{self.file}: {self.path}" if self.path else self.file


@dataclass(frozen=True, slots=True)
class Parts:
    """The records of all files that could be read, by part, each with the file it is from."""

    files: Mapping[str, tuple[tuple[str, Record], ...]]

    def of(self, part: str, record: type[_R]) -> Iterator[tuple[str, _R]]:
        """Yield ``(file, record)`` of a part."""
        for file, value in self.files.get(part, ()):
            if isinstance(value, record):
                yield file, value

    @property
    def header(self) -> Header | None:
        """The header, if it could be read."""
        return next((value for _, value in self.of("bank", Header)), None)

    def locations(self) -> Iterator[tuple[str, LocationsFile]]:
        """Location files."""
        return self.of("locations", LocationsFile)

    def sounds(self) -> Iterator[tuple[str, SoundsFile]]:
        """Sound files."""
        return self.of("sounds", SoundsFile)

    def roles(self) -> Iterator[tuple[str, RolesFile]]:
        """Role files."""
        return self.of("roles", RolesFile)

    def registers(self) -> Iterator[tuple[str, RegistersFile]]:
        """Register files."""
        return self.of("registers", RegistersFile)

    def tags(self) -> Iterator[tuple[str, TagsFile]]:
        """Tag files."""
        return self.of("tags", TagsFile)

    def topics(self) -> Iterator[tuple[str, TopicsFile]]:
        """Topic files."""
        return self.of("topics", TopicsFile)

    def common_words(self) -> Iterator[tuple[str, CommonWordsFile]]:
        """Files of common words."""
        return self.of("common_words", CommonWordsFile)

    def rules(self) -> Iterator[tuple[str, RulesFile]]:
        """Files of words and limits for the dialogue rules."""
        return self.of("rules", RulesFile)


class _DuplicateKeyError(yaml.MarkedYAMLError):
    """A mapping has one key twice; YAML would silently keep the last."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The safe loader, in C where available, that refuses a key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        if len(mapping) != len(node.value):
            keys = [key.value for key, _ in node.value]
            twice = next((key for key in keys if keys.count(key) > 1), "<<")
            raise _DuplicateKeyError(
                None, None, f"the key {twice!r} twice in one mapping", node.start_mark
            )
        return mapping


# YAML 1.1 takes the words yes, no, on and off for truth values; in a list of words they are words.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


def read_parts(folder: Path) -> tuple[Parts, tuple[Finding, ...]]:
    """Read every file of a bank folder.

    Parameters
    ----------
    folder: holds ``bank.yaml``, ``locations.yaml`` and so on, or folders of the same names with ``*.yaml``.

    Returns
    -------
    What could be read, and the faults (codes ``B1xx``) of what could not. Unknown keys are reported and
    then left out, so that they hide no other fault.
    """
    findings: list[Finding] = []
    files: dict[str, tuple[tuple[str, Record], ...]] = {}
    used: set[Path] = set()
    for part, record in PARTS.items():
        paths = _files_of(folder, part)
        used.update(paths)
        if not paths and part not in OPTIONAL_PARTS:
            findings.append(
                Finding(
                    "B107",
                    "error",
                    f"{part}.yaml",
                    "",
                    "no such file",
                    f"{part}.yaml or a folder {part}/ with *.yaml",
                    "Copy a whole bank to start from: earwitness scenes bank new DIR",
                )
            )
        if part in ("bank", "rules") and len(paths) > 1:
            what = f"{len(paths)} files of it"
            findings.append(Finding("B107", "error", part, "", what, f"one {part}.yaml"))
        found = []
        for path in paths:
            name = path.relative_to(folder).as_posix()
            value, faults = _read_file(path, name, record)
            findings.extend(faults)
            if value is not None:
                found.append((name, value))
        files[part] = tuple(found)
    findings.extend(
        Finding(
            "B108",
            "error",
            path.relative_to(folder).as_posix(),
            "",
            "a file of no part of a bank, so nothing in it would be used",
            "one of " + ", ".join(PARTS) + " with the ending .yaml",
        )
        for path in sorted(folder.rglob("*.y*ml"))
        if path not in used
    )
    return Parts(files), tuple(findings)


def _files_of(folder: Path, part: str) -> list[Path]:
    single = folder / f"{part}.yaml"
    return ([single] if single.is_file() else []) + sorted((folder / part).glob("*.yaml"))


def _read_file(path: Path, name: str, record: type[Record]) -> tuple[Record | None, list[Finding]]:
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except UnicodeDecodeError as error:
        return None, [
            Finding("B101", "error", name, "", f"byte {error.start} is not UTF-8", "UTF-8 text")
        ]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        code = "B109" if isinstance(error, _DuplicateKeyError) else "B101"
        problem = str(getattr(error, "problem", None) or error)
        wanted = "each key once" if code == "B109" else "YAML"
        return None, [Finding(code, "error", name, line, problem, wanted)]
    findings: list[Finding] = []
    try:
        return record.model_validate(raw), findings
    except ValidationError as error:
        unknown = [e for e in error.errors(include_url=False) if e["type"] == "extra_forbidden"]
        findings.extend(_finding(name, raw, e, record) for e in unknown)
        for e in unknown:
            _drop(raw, e["loc"])
    try:
        return record.model_validate(raw), findings
    except ValidationError as error:
        findings.extend(
            _finding(name, raw, e, record) for e in _one_per_value(error.errors(include_url=False))
        )
    return None, findings


def _one_per_value(errors: Iterable[Any]) -> Iterator[Any]:
    """Of the faults of one value (a union reports each of its branches) keep the first."""
    seen: set[tuple[Any, ...]] = set()
    for error in errors:
        place = tuple(p for p in error["loc"] if not (isinstance(p, str) and _is_branch(p)))
        if place not in seen:
            seen.add(place)
            yield {**error, "loc": place}


def _is_branch(step: str) -> bool:
    return "[" in step


def _drop(raw: Any, loc: tuple[int | str, ...]) -> None:
    value = raw
    for step in loc[:-1]:
        value = value[step]
    del value[loc[-1]]


def _finding(name: str, raw: Any, error: Any, record: type[Record]) -> Finding:
    loc: tuple[int | str, ...] = error["loc"]
    path = key_path(raw, loc)
    kind = error["type"]
    if kind == "extra_forbidden":
        return Finding(
            "B102",
            "error",
            name,
            path,
            f"the unknown key {loc[-1]!r}",
            "one of " + ", ".join(_known_keys(record, loc)),
        )
    if kind == "missing":
        return Finding("B103", "error", name, path, "nothing", "a value: the key is required")
    wanted = str(error["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")
    return Finding("B104", "error", name, path, _shown(error["input"]), wanted)


def _known_keys(record: type[Record], loc: tuple[int | str, ...]) -> list[str]:
    """Keys of the record that a location leads to, followed through the annotations."""
    current: Any = record
    for step in loc[:-1]:
        if isinstance(step, str) and hasattr(current, "model_fields"):
            annotation = current.model_fields[step].annotation
            current = next(
                (
                    a
                    for a in (annotation, *getattr(annotation, "__args__", ()))
                    if isinstance(a, type) and issubclass(a, Record)
                ),
                current,
            )
    return list(current.model_fields)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def key_path(raw: Any, loc: Iterable[int | str]) -> str:
    """A key path for people: ``sounds[12 kettle].duration_s[0]``, with ids beside the positions."""
    text = ""
    value = raw
    for step in loc:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            value = None
        if isinstance(step, int):
            label = value.get("id") or value.get("title") if isinstance(value, dict) else None
            text += f"[{step} {label}]" if label else f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


@dataclass(slots=True)
class IdRegister:
    """Where each id was first given; a second time is a fault."""

    kind: str
    seen: dict[str, str] = field(default_factory=dict)

    def add(self, identifier: str, file: str, path: str) -> Finding | None:
        """Take note of an id; return the fault if it was there before."""
        where = f"{file}: {path}"
        first = self.seen.setdefault(identifier, where)
        if first == where:
            return None
        return Finding(
            "B105",
            "error",
            file,
            path,
            f"the {self.kind} {identifier!r} a second time",
            f"ids that are unique in the bank (first at {first})",
        )
