"""Prompts as versioned data.

A prompt file is YAML::

    id: mine                  # names the run's row: MODEL [mine]
    version: "1"
    description: why it exists
    choices: [angry, sad, happy, neutral, fearful, disgusted, surprised]    # in the order they are shown
    system: optional system message
    user: |
      The question. {choices} becomes "angry, sad, ..."; {lettered} and {numbered} become one option a line.
    schema: {...}             # optional JSON schema; the string "{choices}" becomes the list of choices

Every choice must be a word of the task's lexicon, and together they must name every label once. The hash is
:func:`earwitness.runs.items.prompt_hash` of the prompt as sent (system, user, choices, schema): changing one
letter asks anew, changing the description or the version does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from earwitness.errors import DataError, UsageError
from earwitness.models.protocols import Prompt
from earwitness.runs.items import prompt_hash
from earwitness.tasks.label_lexicon import Lexicon

_KEYS = ("id", "version", "description", "source", "choices", "system", "user", "schema")
_HOLES = ("choices", "lettered", "numbered")


@dataclass(frozen=True, slots=True)
class PromptSet:
    """A prompt with its identity. ``hash`` is of what the model reads."""

    id: str
    version: str
    hash: str
    prompt: Prompt
    description: str = ""


def list_prompt_sets(task: str) -> tuple[str, ...]:
    """Names of the packaged prompts of a task, sorted."""
    folder = resources.files("earwitness.tasks") / "prompts" / task
    return tuple(
        sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    )


def load_prompt_set(
    id_or_path: str | Path, *, task: str, labels: Sequence[str], lexicon: Lexicon
) -> PromptSet:
    """A packaged prompt by id, or a prompt file of one's own by path.

    A name with a slash or a ``.yaml``/``.yml`` ending is a path.

    Raises
    ------
    UsageError: there is no such prompt.
    DataError: the file is not a prompt, or its choices do not name every label once.
    """
    name = str(id_or_path)
    if isinstance(id_or_path, Path) or "/" in name or name.lower().endswith((".yaml", ".yml")):
        path = Path(name)
        if not path.is_file():
            raise UsageError(
                name, "no such prompt file", "a YAML file with id, version, choices, user"
            )
        try:
            text, where = path.read_text(encoding="utf-8-sig"), name
        except UnicodeDecodeError as error:
            raise DataError(name, f"not UTF-8 text ({error.reason})", "a YAML prompt") from error
    else:
        if name not in list_prompt_sets(task):
            raise UsageError(
                f"prompt {name!r}",
                f"there is no packaged {task} prompt of that name",
                f"one of {', '.join(list_prompt_sets(task))}, or the path of a .yaml file",
            )
        source = resources.files("earwitness.tasks") / "prompts" / task / f"{name}.yaml"
        text, where = source.read_text("utf-8"), f"prompt {name}"
    return _build(_read(text, where), where, labels, lexicon)


def load_prompt_sets(
    names: str, *, task: str, labels: Sequence[str], lexicon: Lexicon
) -> tuple[PromptSet, ...]:
    """Several prompts, comma-separated: ``own,p1,p2``.

    Raises
    ------
    UsageError: none is named, one is unknown, or two have the same id.
    DataError: as for :func:`load_prompt_set`.
    """
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        raise UsageError("--prompt-set", "names no prompt", ", ".join(list_prompt_sets(task)))
    sets = [load_prompt_set(name, task=task, labels=labels, lexicon=lexicon) for name in wanted]
    ids = [prompt_set.id for prompt_set in sets]
    doubled = sorted({prompt_id for prompt_id in ids if ids.count(prompt_id) > 1})
    if doubled:
        raise UsageError("--prompt-set", f"the id {doubled[0]!r} is there twice", "each id once")
    return tuple(sets)


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
    return data


def _build(
    data: Mapping[str, Any], where: str, labels: Sequence[str], lexicon: Lexicon
) -> PromptSet:
    for key in ("id", "version", "user"):
        if not str(data.get(key) or "").strip():
            raise DataError(where, f"has no {key}", "id, version, choices and user")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", str(data["id"])):
        raise DataError(
            where,
            f"the id {str(data['id'])!r}",
            "letters, digits, dot, dash or underscore, at most 40",
        )
    choices = _choices(data.get("choices"), where, labels, lexicon)
    user = str(data["user"]).strip()
    for hole in re.findall(r"\{([^{}\s]*)\}", user):
        if hole not in _HOLES:
            raise DataError(
                f"{where}: user", f"found {{{hole}}}", f"one of {', '.join(map(_hole, _HOLES))}"
            )
    schema = data.get("schema")
    if schema is not None and not isinstance(schema, dict):
        raise DataError(f"{where}: schema", f"found {type(schema).__name__}", "a mapping")
    prompt = Prompt(
        user=_fill(user, choices),
        system=str(data["system"]).strip() if data.get("system") else None,
        choices=choices,
        schema=_with_choices(schema, choices) if schema is not None else None,
    )
    shown = f"{prompt.system or ''}\n{prompt.user}".casefold()
    hidden = [choice for choice in choices if choice.casefold() not in shown]
    if hidden:
        raise DataError(
            f"{where}: user",
            f"never shows the choice {hidden[0]!r}",
            "every choice in the text",
            "Write {choices}, {lettered} or {numbered} where they belong.",
        )
    return PromptSet(
        id=str(data["id"]),
        version=str(data["version"]),
        hash=prompt_hash(prompt),
        prompt=prompt,
        description=" ".join(str(data.get("description") or "").split()),
    )


def _hole(name: str) -> str:
    return f"{{{name}}}"


def _choices(value: Any, where: str, labels: Sequence[str], lexicon: Lexicon) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(choice, str) for choice in value):
        raise DataError(
            f"{where}: choices", f"found {value!r}", "a list of words, each in quotes if need be"
        )
    named: dict[str, str] = {}
    for choice in value:
        label = lexicon.label_of(choice)
        if label is None:
            raise DataError(
                f"{where}: choices",
                f"{choice!r} is no word for any label",
                f"words for {', '.join(labels)}, in any language of the lexicon {lexicon.name}",
            )
        if label in named:
            raise DataError(
                f"{where}: choices",
                f"{named[label]!r} and {choice!r} both mean {label}",
                "one each",
            )
        named[label] = choice
    missing = [label for label in labels if label not in named]
    if missing:
        raise DataError(
            f"{where}: choices", f"no word for {', '.join(missing)}", "one for every label"
        )
    return tuple(value)


def _fill(text: str, choices: Sequence[str]) -> str:
    lines = {
        "choices": ", ".join(choices),
        "lettered": "\n".join(
            f"{sign}) {c}" for sign, c in zip(ascii_uppercase, choices, strict=False)
        ),
        "numbered": "\n".join(f"{number}. {c}" for number, c in enumerate(choices, start=1)),
    }
    for hole, filling in lines.items():
        text = text.replace(_hole(hole), filling)
    return text


def _with_choices(value: Any, choices: Sequence[str]) -> Any:
    if isinstance(value, dict):
        return {str(key): _with_choices(entry, choices) for key, entry in value.items()}
    if isinstance(value, list):
        return [_with_choices(entry, choices) for entry in value]
    return list(choices) if value == "{choices}" else value
