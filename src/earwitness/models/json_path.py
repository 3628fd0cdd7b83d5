"""A small path language for JSON: ``results[*].emotions[0]["odd key"].score``.

Keys are joined by dots, ``[n]`` is the n-th element (negative from the end), ``[*]`` is every element of a
list or every value of an object, and a key with dots or brackets in it is written ``["so"]``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

EVERY: Final = ("*",)
"""The step ``[*]``; a tuple, so that a key named ``*`` stays possible."""

Step = str | int | tuple[str]

_STEP = re.compile(
    r"""
    \[\*\]                          # every element
    | \[(?P<index>-?\d+)\]          # one element
    | \[(?P<quote>["'])(?P<quoted>.*?)(?P=quote)\]
    | \.?(?P<key>[^.\[\]"']+)
    """,
    re.VERBOSE,
)


class PathError(ValueError):
    """A path that cannot be read."""


@lru_cache(maxsize=256)
def parse_path(path: str) -> tuple[Step, ...]:
    """Steps of a path; none for the empty path or ``.``, which mean the whole value.

    Raises
    ------
    PathError: saying where reading stopped.

    Examples
    --------
    >>> parse_path('a.b[*]["c.d"][0]')
    ('a', 'b', ('*',), 'c.d', 0)
    """
    if path in ("", "."):
        return ()
    steps: list[Step] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        leading_dot = path[at] == "."
        if found is None or (leading_dot and at == 0):
            raise PathError(f"path {path!r} cannot be read at {path[at:]!r}")
        if found["index"] is not None:
            steps.append(int(found["index"]))
        elif found["quoted"] is not None:
            steps.append(found["quoted"])
        elif found["key"] is not None:
            if not leading_dot and at > 0:
                raise PathError(f"path {path!r} lacks a dot at {path[at:]!r}")
            steps.append(found["key"])
        else:
            steps.append(EVERY)
        at = found.end()
    return tuple(steps)


def find(value: Any, path: str) -> list[Any]:
    """Everything a path leads to, in order; an empty list where it leads nowhere.

    Examples
    --------
    >>> find({"w": [{"s": 1}, {"t": 2}, {"s": 3}]}, "w[*].s")
    [1, 3]
    """
    found = [value]
    for step in parse_path(path):
        found = [inner for outer in found for inner in _take(outer, step)]
    return found


def first(value: Any, path: str | None) -> Any:
    """The first thing a path leads to, or None."""
    found = find(value, path) if path is not None else []
    return found[0] if found else None


def _take(value: Any, step: Step) -> list[Any]:
    if isinstance(step, tuple):
        if isinstance(value, list):
            return value
        return list(value.values()) if isinstance(value, dict) else []
    if isinstance(step, int):
        fits = isinstance(value, list) and -len(value) <= step < len(value)
        return [value[step]] if fits else []
    return [value[step]] if isinstance(value, dict) and step in value else []
