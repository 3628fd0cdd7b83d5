"""Data of a language: the file that ships for it, or one of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from earwitness.errors import DataError

T = TypeVar("T", bound=BaseModel)


def read_language_file(
    name: str | Path,
    folder: Path,
    model: type[T],
    *,
    what: str,
    purpose: str,
    wanted: str,
    hint: str,
) -> tuple[T, str]:
    """The data called ``name`` and where it stands.

    Parameters
    ----------
    name: a language such as ``en`` or ``en-GB``, or a YAML file.
    folder: of the files that ship, one a language.
    what, purpose, wanted, hint: words of the errors: its kind, its kind with what it is for, its fields, what to do.

    Raises
    ------
    DataError: there is none for the language, or the file is not what it should be.
    """
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        path = folder / f"{str(name).split('-')[0]}.yaml"
    try:
        return model.model_validate(yaml.safe_load(path.read_text(encoding="utf-8"))), str(path)
    except FileNotFoundError:
        known = ", ".join(sorted(file.stem for file in folder.glob("*.yaml")))
        raise DataError(
            str(name), f"there is no {purpose} for it", f"one of {known}, or a YAML file", hint
        ) from None
    except (yaml.YAMLError, ValidationError, UnicodeDecodeError, OSError) as error:
        reason = " ".join(str(error).split())
        raise DataError(str(path), f"is no {what} ({reason})", wanted) from None
