"""docs/voices.md says nothing that is not so."""

from __future__ import annotations

import re
from pathlib import Path

from earwitness.models.voices.registry import list_engines
from earwitness.scenes.voices_cast import CASTS, load_cast
from earwitness.scenes.voices_text import PAUSE_S

TEXT = (Path(__file__).parents[3] / "docs" / "voices.md").read_text("utf-8")


def test_every_engine_has_its_row() -> None:
    for status in list_engines():
        assert f"| `{status.info.name}/" in TEXT, status.info.name


def test_options_in_the_text_exist() -> None:
    known = {option.name for status in list_engines() for option in status.info.options}
    assert set(re.findall(r"-M (\w+)=", TEXT)) - {"key"} <= known | {"run"}
    assert {"api_key_env"} <= known


def test_casts_that_ship_are_described() -> None:
    for path in CASTS.glob("*.yaml"):
        voices = load_cast(path.stem).voices
        assert f"| `{path.stem}` | {len(voices)}" in TEXT


def test_lengths_of_pauses() -> None:
    for low, high in PAUSE_S.values():
        assert f"{low:g} to {high:g} s" in TEXT
