"""What an adapter says of itself, for ``earwitness models list`` and for messages."""

from __future__ import annotations

from dataclasses import dataclass, field

from earwitness.models.options import Option
from earwitness.models.protocols import Limits


@dataclass(frozen=True, slots=True)
class AdapterInfo:
    """An adapter: how its models are named, what they can take, what is needed.

    ``extra`` is the optional group of packages it needs and ``modules`` are what that group brings;
    ``key_variable`` is the environment variable its key is read from by default.
    """

    name: str
    form: str
    summary: str
    options: tuple[Option, ...] = ()
    limits: Limits = field(default_factory=Limits)
    examples: tuple[str, ...] = ()
    key_variable: str = ""
    extra: str = ""
    modules: tuple[str, ...] = ()
