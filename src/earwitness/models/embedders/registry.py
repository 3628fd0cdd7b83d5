"""From a name to an embedder: ``engine/name``, split at the first slash.

Other packages add engines as entry points of the group ``earwitness.embedders``: each is a function
``open(name, options) -> Embedder``.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from earwitness.errors import UsageError
from earwitness.models.protocols import Embedder

ENTRY_POINTS = "earwitness.embedders"
FORMS = ("local/minilm", "local/wordllama", "hub/OWNER/NAME", "openai/NAME", "offline/hashed")

BUILT_IN: Mapping[str, str] = {
    "local/minilm": "earwitness.models.embedders.packaged:open_packaged",
    "local/wordllama": "earwitness.models.embedders.static:StaticEmbedder",
    "offline/hashed": "earwitness.models.embedders.hashed:HashedEmbedder",
}
"""Those that take no options."""


def default_embedder() -> str:
    """``local/minilm`` where its packages are installed, else ``offline/hashed``."""
    from earwitness.models.embedders import hashed, packaged

    return packaged.NAME if packaged.available() else hashed.NAME


def open_embedder(name: str | None = None, options: Mapping[str, Any] | None = None) -> Embedder:
    """Open an embedder by name.

    Parameters
    ----------
    name: None means :func:`default_embedder`.
    options: as text (from ``-E``) or typed.

    Raises
    ------
    UsageError: no such engine, name or option.
    MissingExtraError: packages it needs are not installed.
    DataError: its files are missing or others than pinned.

    Examples
    --------
    >>> open_embedder("offline/hashed").name
    'offline/hashed'
    """
    chosen = name or default_embedder()
    given = dict(options or {})
    engine, _, rest = chosen.partition("/")
    if engine == "hub" and rest:
        from earwitness.models.embedders.hub import open_hub

        return open_hub(rest, given)
    if engine == "openai" and rest:
        from earwitness.models.embedders.service import open_service

        return open_service(rest, given)
    if chosen in BUILT_IN:
        if given:
            raise UsageError(f"embedder {chosen}", f"option {next(iter(given))!r}", "no options")
        module, _, opener = BUILT_IN[chosen].partition(":")
        built: Embedder = getattr(importlib.import_module(module), opener)()
        return built
    plugged = _plugged(engine)
    if plugged is None or not rest:
        raise UsageError(f"embedder {chosen!r}", "there is no such embedder", ", ".join(FORMS))
    module, _, function = plugged.partition(":")
    opened = getattr(importlib.import_module(module), function or "open")(rest, given)
    if not isinstance(opened, Embedder):
        raise UsageError(f"embedder {chosen!r}", "its plug-in gave no embedder", "an Embedder")
    return opened


def _plugged(engine: str) -> str | None:
    from importlib.metadata import entry_points

    return next((p.value for p in entry_points(group=ENTRY_POINTS) if p.name == engine), None)
