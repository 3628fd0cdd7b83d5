"""Prompts of the tasks about scenes, as versioned data.

A prompt file is YAML::

    id: time                  # names the run's row where it is not the default
    version: "1"
    description: why it exists
    definitions: {...}        # reaction only: label -> the definition that is shown
    system: optional system message
    user: |
      The question. {options} becomes one option a line with letters; {t} is the moment in seconds;
      {sound} what sounds there; {words} a number of words. Each task has holes of its own.

The hash is of what stands in the file for the model (system, user, definitions).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from earwitness.errors import DataError, UsageError
from earwitness.models.protocols import Prompt
from earwitness.runs.items import digest

_KEYS = ("id", "version", "description", "definitions", "system", "user")


@dataclass(frozen=True, slots=True)
class ScenePrompt:
    """A prompt with holes for what differs from item to item."""

    id: str
    version: str
    hash: str
    user: str
    system: str | None = None
    description: str = ""
    definitions: Mapping[str, str] = field(default_factory=dict)

    def fill(self, *, choices: Sequence[str] = (), preface: str = "", **values: str) -> Prompt:
        """The prompt of one item; ``preface`` stands before the question (a transcript)."""
        text = self.user
        for hole, value in values.items():
            text = text.replace(f"{{{hole}}}", value)
        return Prompt(
            user=f"{preface}\n\n{text}" if preface else text,
            system=self.system,
            choices=tuple(choices),
        )


def list_scene_prompts(task: str) -> tuple[str, ...]:
    """Names of the packaged prompts of a task, sorted."""
    folder = resources.files("earwitness.tasks") / "prompts" / task
    return tuple(sorted(e.name[:-5] for e in folder.iterdir() if e.name.endswith(".yaml")))


def load_scene_prompt(
    id_or_path: str | Path,
    *,
    task: str,
    needed: Sequence[str],
    allowed: Sequence[str] = (),
    defined: Sequence[str] = (),
) -> ScenePrompt:
    """A packaged prompt by id, or a file of one's own by path.

    Parameters
    ----------
    needed: holes the text must have; ``allowed``: further ones it may have.
    defined: labels that must each have a definition.

    Raises
    ------
    UsageError: there is no such prompt.
    DataError: the file is not a prompt of this task.
    """
    name = str(id_or_path)
    if "/" in name or name.lower().endswith((".yaml", ".yml")):
        path = Path(name)
        if not path.is_file():
            raise UsageError("--prompt-set", f"no such file: {name}", "a YAML file with a prompt")
        text, where = path.read_text(encoding="utf-8-sig"), name
    else:
        if name not in list_scene_prompts(task):
            raise UsageError(
                "--prompt-set",
                f"there is no packaged {task} prompt {name!r}",
                f"one of {', '.join(list_scene_prompts(task))}, or the path of a .yaml file",
            )
        source = resources.files("earwitness.tasks") / "prompts" / task / f"{name}.yaml"
        text, where = source.read_text("utf-8"), f"prompt {task}/{name}"
    return _build(_read(text, where), where, tuple(needed), tuple(allowed), tuple(defined))


def _read(text: str, where: str) -> dict[str, Any]:
    import yaml

    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise DataError(where, f"not YAML ({' '.join(str(error).split())})", "a prompt") from error
    if not isinstance(data, dict):
        raise DataError(where, f"holds {type(data).__name__}", "a mapping with id and user")
    unknown = sorted(str(key) for key in data if key not in _KEYS)
    if unknown:
        raise DataError(where, f"unknown key {unknown[0]!r}", f"only {', '.join(_KEYS)}")
    for key in ("id", "version", "user"):
        if not str(data.get(key) or "").strip():
            raise DataError(where, f"has no {key}", "id, version and user")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", str(data["id"])):
        raise DataError(
            where, f"the id {str(data['id'])!r}", "letters, digits, dot, dash, at most 40"
        )
    return data


def _build(
    data: Mapping[str, Any],
    where: str,
    needed: tuple[str, ...],
    allowed: tuple[str, ...],
    defined: tuple[str, ...],
) -> ScenePrompt:
    user = str(data["user"]).strip()
    holes = set(re.findall(r"\{([^{}\s]*)\}", user))
    for hole in sorted(holes - {*needed, *allowed}):
        known = ", ".join(f"{{{each}}}" for each in (*needed, *allowed))
        raise DataError(f"{where}: user", f"found {{{hole}}}", f"only {known}")
    for hole in needed:
        if hole not in holes:
            raise DataError(f"{where}: user", f"has no {{{hole}}}", "it where it belongs")
    given = data.get("definitions") or {}
    if not isinstance(given, dict) or set(map(str, given)) != set(defined):
        found = ", ".join(map(str, given)) or "none"
        raise DataError(
            f"{where}: definitions", f"found {found}", ", ".join(defined) or "no definitions"
        )
    definitions = {label: " ".join(str(given[label]).split()) for label in defined}
    system = str(data["system"]).strip() if data.get("system") else None
    return ScenePrompt(
        id=str(data["id"]),
        version=str(data["version"]),
        hash=digest({"user": user, "system": system, "definitions": definitions}),
        user=user,
        system=system,
        description=" ".join(str(data.get("description") or "").split()),
        definitions=definitions,
    )
