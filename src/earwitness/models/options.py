"""Options of models: ``-M key=value`` on the command line, or ``options:`` of a ``models.yaml`` entry.

Every adapter declares its options as :class:`Option` records, so that a misspelt one is refused with the
list of those that exist, and ``earwitness models show`` can print them.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from earwitness.errors import UsageError
from earwitness.models.protocols import Limits

Kind = Literal["text", "integer", "number", "yes/no", "list", "json"]

_WORDS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}


@dataclass(frozen=True, slots=True)
class Option:
    """One option of an adapter.

    ``default`` None means "not set": nothing is sent and the service decides. ``least`` bounds numbers.
    """

    name: str
    kind: Kind
    help: str
    default: Any = None
    choices: tuple[str, ...] = ()
    least: float | None = None


LIMIT_OPTIONS: tuple[Option, ...] = (
    Option("formats", "list", "audio formats the model takes, such as wav,mp3,flac"),
    Option("rates", "list", "sample rates the model takes in Hz, such as 16000,24000; empty: any"),
    Option("max_seconds", "number", "longest clip the model takes, in seconds", least=0.0),
    Option("min_seconds", "number", "shortest clip the model takes, in seconds", least=0.0),
    Option("max_bytes", "integer", "largest encoded file the model takes, in bytes", least=1),
)
"""What a model can take, where the adapter cannot know it (your own server, a new model)."""


def parse_options(pairs: Iterable[str]) -> dict[str, str]:
    """Split ``key=value`` pairs as given with ``-M``.

    Raises
    ------
    UsageError: a pair without ``=``, without a key, or a key given twice with different values.

    Examples
    --------
    >>> parse_options(["temperature=0", "base_url=http://localhost:8000/v1?a=b"])
    {'temperature': '0', 'base_url': 'http://localhost:8000/v1?a=b'}
    """
    options: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key:
            raise UsageError(
                f"-M {pair}", "not an option", "key=value", "Write it as -M temperature=0."
            )
        value = value.strip()
        if options.get(key, value) != value:
            raise UsageError(
                f"-M {key}", f"given twice: {options[key]!r} and {value!r}", "one value"
            )
        options[key] = value
    return options


def read_options(where: str, options: Mapping[str, Any], known: Sequence[Option]) -> dict[str, Any]:
    """Convert given options to their types and fill in the defaults.

    Parameters
    ----------
    where: the model's name, for messages.
    options: text as from the command line, or values already typed as from YAML.
    known: all options the model has.

    Returns
    -------
    One value for every known option.

    Raises
    ------
    UsageError: an unknown option, or a value that is not of its kind.
    """
    by_name = {option.name: option for option in known}
    for key in options:
        if key not in by_name:
            close = difflib.get_close_matches(key, by_name, n=1)
            raise UsageError(
                where,
                f"unknown option {key!r}",
                f"one of {', '.join(sorted(by_name))}" if by_name else "no options",
                f"Did you mean {close[0]!r}?" if close else "",
            )
    return {
        option.name: _convert(where, option, options[option.name])
        if option.name in options
        else option.default
        for option in known
    }


def limits_from(values: Mapping[str, Any], default: Limits) -> Limits:
    """Limits with what :data:`LIMIT_OPTIONS` say in place of the adapter's own figures."""
    rates = values.get("rates")
    try:
        hertz = default.rates if rates is None else tuple(int(rate) for rate in rates)
    except ValueError:
        raise UsageError("option rates", f"{rates!r}", "whole numbers of Hz") from None
    if any(rate <= 0 for rate in hertz):
        raise UsageError("option rates", f"{rates!r}", "positive numbers of Hz")
    formats = values.get("formats")
    return Limits(
        formats=tuple(str(name).lower() for name in formats) if formats else default.formats,
        rates=hertz,
        max_seconds=_or(values.get("max_seconds"), default.max_seconds),
        min_seconds=_or(values.get("min_seconds"), default.min_seconds),
        max_bytes=_or(values.get("max_bytes"), default.max_bytes),
        needs_audio=default.needs_audio,
    )


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _convert(where: str, option: Option, value: Any) -> Any:
    try:
        converted = _CONVERTERS[option.kind](value)
    except (ValueError, TypeError):
        raise UsageError(
            where, f"option {option.name}={value!r}", _WANTED[option.kind], option.help + "."
        ) from None
    if option.choices and converted not in option.choices:
        raise UsageError(
            where, f"option {option.name}={value!r}", f"one of {', '.join(option.choices)}"
        )
    if option.least is not None and converted < option.least:
        raise UsageError(where, f"option {option.name}={value!r}", f"at least {option.least:g}")
    return converted


def _text(value: Any) -> str:
    if isinstance(value, dict | list | bool) or value is None:
        raise TypeError
    return str(value)


def _integer(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise TypeError
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


def _yes_no(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word not in _WORDS:
        raise ValueError
    return _WORDS[word]


def _list(value: Any) -> tuple[str, ...]:
    if isinstance(value, dict | bool) or value is None:
        raise TypeError
    parts = value if isinstance(value, list | tuple) else str(value).split(",")
    return tuple(str(part).strip() for part in parts if str(part).strip())


def _json(value: Any) -> dict[str, Any]:
    parsed = json.loads(value) if isinstance(value, str) else value
    if not isinstance(parsed, dict):
        raise TypeError
    return parsed


_CONVERTERS: Mapping[Kind, Callable[[Any], Any]] = {
    "text": _text,
    "integer": _integer,
    "number": _number,
    "yes/no": _yes_no,
    "list": _list,
    "json": _json,
}
_WANTED = {
    "text": "text",
    "integer": "a whole number",
    "number": "a number",
    "yes/no": "yes or no",
    "list": "names separated by commas",
    "json": "a JSON object",
}
