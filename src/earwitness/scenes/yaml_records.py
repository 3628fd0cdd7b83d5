"""One YAML file to one record, with the first fault named by file and key path."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from earwitness.errors import DataError

_R = TypeVar("_R", bound=BaseModel)
_SHOWN = 80
_LOADER: Any = getattr(
    yaml, "CSafeLoader", yaml.SafeLoader
)  # the safe one, in C where there is one


def read_yaml_record(path: Path, record: type[_R], error: type[DataError], what: str) -> _R:
    """Read a YAML file as a record.

    Parameters
    ----------
    record: the shape the file must have.
    error: what to raise.
    what: the kind of file in words, for the message, such as ``a YAML file of labelled snippets``.

    Raises
    ------
    DataError: of the class ``error``, when the file is missing, is no UTF-8 or no YAML, or has another shape.
    """
    try:
        return record.model_validate(_content(path, error, what))
    except ValidationError as fault:
        first = fault.errors(include_url=False)[0]
        keys = ".".join(str(key) for key in first["loc"])
        wanted = first["msg"].removeprefix("Value error, ")
        raise error(
            f"{path}: {keys}" if keys else str(path),
            f"found {_shown(first['input'])}",
            wanted[:1].lower() + wanted[1:],
            f"{fault.error_count()} faults in all." if fault.error_count() > 1 else "",
        ) from None


def _content(path: Path, error: type[DataError], what: str) -> Any:
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
    except FileNotFoundError:
        raise error(str(path), "no such file", what) from None
    except (OSError, UnicodeDecodeError) as fault:
        raise error(str(path), f"cannot be read ({fault})", what) from None
    except yaml.YAMLError as fault:
        found = f"not YAML: {' '.join(str(fault).split())}"
        raise error(str(path), found, what, "Mend the line it names.") from None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
