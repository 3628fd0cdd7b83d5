"""An adapter as another package would bring it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from earwitness.models.baseline import Neutral
from earwitness.models.protocols import AudioModel


def open_acme(name: str, options: Mapping[str, Any]) -> AudioModel:
    return replace(Neutral(), name=f"acme/{name}")
