"""Published rows that can stand beside one's own, always marked as published."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import Any

from earwitness.scenes.bank_records import REACTIONS

Pair = tuple[float | None, float]


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A row of the paper's table, in percent.

    ``reaction``, ``location`` and ``sound`` are (value, half width of the interval); ``reactions`` holds (precision or
    None, recall) and ``summary`` recall, both by reaction.
    """

    name: str
    text_only: bool
    reaction: tuple[float, float]
    reactions: dict[str, Pair]
    location: tuple[float, float]
    sound: tuple[float, float]
    summary: dict[str, float]


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A published table with its source and what keeps it from being compared directly."""

    source: str
    note: str
    rows: tuple[PublishedRow, ...]


def cares_table() -> PublishedTable:
    """Table 1 of the CARES paper.

    >>> table = cares_table()
    >>> len(table.rows), table.rows[-1].text_only
    (7, True)
    """
    import yaml

    path = resources.files("earwitness.report").joinpath("data", "cares_table1.yaml")
    value = yaml.safe_load(path.read_text(encoding="utf-8"))
    return PublishedTable(
        str(value["source"]), str(value["note"]).strip(), tuple(map(_row, value["rows"]))
    )


def _row(value: dict[str, Any]) -> PublishedRow:
    return PublishedRow(
        name=str(value["name"]),
        text_only=bool(value.get("text_only")),
        reaction=_two(value["reaction"]),
        reactions={name: (value[name][0], float(value[name][1])) for name in REACTIONS},
        location=_two(value["location"]),
        sound=_two(value["sound"]),
        summary=dict(zip(REACTIONS, map(float, value["summary"]), strict=True)),
    )


def _two(value: list[float]) -> tuple[float, float]:
    return float(value[0]), float(value[1])
