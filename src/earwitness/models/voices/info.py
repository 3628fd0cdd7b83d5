"""What an engine that speaks says of itself, for ``earwitness voices list`` and for messages."""

from __future__ import annotations

from dataclasses import dataclass

from earwitness.models.options import Option
from earwitness.models.protocols import Gender


@dataclass(frozen=True, slots=True)
class VoiceInfo:
    """One voice by the name behind the slash. ``note`` says what a user must know before choosing it."""

    name: str
    gender: Gender | None
    language: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """An engine: how its voices are named and what is needed.

    ``voices`` are those known by name; others may exist. ``asset`` is what ``earwitness voices install``
    fetches for it. The rest is as in :class:`earwitness.models.adapter.AdapterInfo`.
    """

    name: str
    form: str
    summary: str
    options: tuple[Option, ...] = ()
    voices: tuple[VoiceInfo, ...] = ()
    key_variable: str = ""
    extra: str = ""
    modules: tuple[str, ...] = ()
    asset: str = ""
    licence: str = ""
    remote: bool = False
