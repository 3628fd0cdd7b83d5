"""From a name to a transcriber: ``engine/name``; plug-ins by entry point ``earwitness.transcribers``."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any

from earwitness.errors import UsageError
from earwitness.models.protocols import Transcriber
from earwitness.models.voices.info import EngineInfo

BUILT_IN: Mapping[str, str] = {
    "whisper": "earwitness.models.transcribers.whisper:open",
    "pocketsphinx": "earwitness.models.transcribers.pocketsphinx:open",
    "command": "earwitness.models.transcribers.command:open",
}
ENTRY_POINTS = "earwitness.transcribers"
DEFAULT_TRANSCRIBER = "whisper/base"


def open_transcriber(
    name: str = DEFAULT_TRANSCRIBER, options: Mapping[str, Any] | None = None
) -> Transcriber:
    """Open a transcriber by name.

    Raises
    ------
    UsageError: no such engine, name or option.
    MissingExtraError: its packages are not installed.

    Examples
    --------
    >>> open_transcriber("command/mine", {"run": "mine {file}"}).name
    'command/mine'
    """
    engine, slash, rest = name.partition("/")
    engines = _engines()
    if engine not in engines or not slash or not rest:
        known = ", ".join(f"{each}/..." for each in engines)
        raise UsageError(
            f"transcriber {name!r}", "there is none", known, "See: earwitness asr list"
        )
    module, _, function = engines[engine].partition(":")
    opener = getattr(importlib.import_module(module), function or "open")
    transcriber: Transcriber = opener(rest, dict(options or {}))
    return transcriber


def list_transcribers() -> tuple[tuple[EngineInfo, str], ...]:
    """Every engine with what is missing to use it (empty: nothing)."""
    found = []
    for name, target in _engines().items():
        try:
            module = importlib.import_module(target.partition(":")[0])
        except ImportError as error:
            found.append((EngineInfo(name, f"{name}/NAME", "cannot be loaded"), str(error)))
            continue
        info = getattr(module, "INFO", None)
        info = info if isinstance(info, EngineInfo) else EngineInfo(name, f"{name}/NAME", "")
        found.append((info, _missing(info)))
    return tuple(found)


def _engines() -> dict[str, str]:
    from importlib.metadata import entry_points

    found = dict(BUILT_IN)
    for point in entry_points(group=ENTRY_POINTS):
        found.setdefault(point.name, point.value)
    return found


def _missing(info: EngineInfo) -> str:
    absent = [name for name in info.modules if importlib.util.find_spec(name) is None]
    if absent:
        package = f"earwitness[{info.extra}]" if info.extra else absent[0]
        return f'packages: pip install "{package}"'
    if info.asset:
        from earwitness.models.assets import asset_of, is_installed

        if not is_installed(asset_of(info.asset)):
            return "weights: earwitness asr install"
    return ""
