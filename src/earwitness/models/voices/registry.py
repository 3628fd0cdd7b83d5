"""From a name to a voice: ``engine/name``, split at the first slash.

Engines are those of :data:`BUILT_IN` and those that other packages register as entry points of the group
``earwitness.voices``: each is a function ``open(name, options) -> Voice`` in a module with an ``INFO``
(:class:`~earwitness.models.voices.info.EngineInfo`).
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from earwitness.errors import UsageError
from earwitness.models.protocols import Voice
from earwitness.models.voices.info import EngineInfo

BUILT_IN: Mapping[str, str] = {
    "hibari": "earwitness.models.voices.hibari:open",
    "kokoro": "earwitness.models.voices.kokoro:open",
    "espeak": "earwitness.models.voices.espeak:open",
    "elevenlabs": "earwitness.models.voices.elevenlabs:open",
    "openai": "earwitness.models.voices.openai_speech:open",
    "command": "earwitness.models.voices.command:open",
}
ENTRY_POINTS = "earwitness.voices"


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """An engine, where it comes from, and what stands in the way of using it (empty: nothing)."""

    info: EngineInfo
    origin: str
    missing: str


def open_voice(name: str, options: Mapping[str, Any] | None = None) -> Voice:
    """Open a voice by name.

    Raises
    ------
    UsageError: no such engine, voice or option.
    MissingExtraError: its packages are not installed.

    Examples
    --------
    >>> open_voice("command/say", {"run": "say -o {out}"}).name
    'command/say'
    """
    engine, slash, rest = name.partition("/")
    engines = _engines()
    if engine not in engines:
        known = ", ".join(f"{each}/..." for each in engines)
        close = difflib.get_close_matches(engine, engines, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else "See: earwitness voices list"
        raise UsageError(
            f"voice {name!r}", f"there is no engine {engine!r}", f"one of {known}", hint
        )
    target, _ = engines[engine]
    if not slash or not rest:
        raise UsageError(
            f"voice {name!r}", "names an engine and no voice", _info(engine, target).form
        )
    module, _, function = target.partition(":")
    opener = getattr(importlib.import_module(module), function or "open")
    voice: Voice = opener(rest, dict(options or {}))
    return voice


def list_engines() -> tuple[EngineStatus, ...]:
    """Every engine there is, with what is missing to use it."""
    found = []
    for name, (target, origin) in _engines().items():
        try:
            info = _info(name, target)
            missing = _missing(info)
        except ImportError as error:
            info, missing = EngineInfo(name, f"{name}/NAME", "cannot be loaded"), str(error)
        found.append(EngineStatus(info, origin, missing))
    return tuple(found)


def _engines() -> dict[str, tuple[str, str]]:
    from importlib.metadata import entry_points

    found = {name: (target, "built in") for name, target in BUILT_IN.items()}
    for point in entry_points(group=ENTRY_POINTS):
        origin = point.dist.name if point.dist is not None else "a plug-in"
        found.setdefault(point.name, (point.value, origin))
    return found


def _info(engine: str, target: str) -> EngineInfo:
    module = importlib.import_module(target.partition(":")[0])
    info = getattr(module, "INFO", None) or getattr(module, "info", None)
    if callable(info):
        info = info()
    return info if isinstance(info, EngineInfo) else EngineInfo(engine, f"{engine}/NAME", "")


def _missing(info: EngineInfo) -> str:
    absent = [name for name in info.modules if importlib.util.find_spec(name) is None]
    if absent and info.extra:
        return f'packages: pip install "earwitness[{info.extra}]"'
    if info.asset:
        from earwitness.models.assets import asset_of, is_installed

        if not is_installed(asset_of(info.asset)):
            return f"weights: earwitness voices install {info.asset}"
    if info.key_variable and not os.environ.get(info.key_variable, "").strip():
        return f"the environment variable {info.key_variable}"
    return ""
