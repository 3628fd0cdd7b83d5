"""A reader's own traffic: how often each label occurs there."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from earwitness.errors import DataError


def read_priors(path: Path, labels: Sequence[str]) -> dict[str, float]:
    """Read weights of labels: a YAML or JSON mapping, or a CSV file with two columns and no or one heading line.

    Weights may be shares or counts; labels left out weigh nothing.

    Returns
    -------
    Shares of all labels, summing to 1, in the order of ``labels``.

    Raises
    ------
    DataError: the file is missing or unreadable, names an unknown label, or a weight is not a number >= 0.

    Example
    -------
    A file ``traffic.yaml`` with the lines ``neutral: 80``, ``anger: 15`` and ``sadness: 5``.
    """
    if not path.is_file():
        raise DataError(
            str(path),
            "there is no such file",
            wanted="label: weight, line by line",
            next_step="Write one line a label, such as: neutral: 80",
        )
    rows = _csv_rows(path) if path.suffix.lower() == ".csv" else _mapping(path)
    weights: dict[str, float] = {}
    for label, weight in rows:
        if label not in labels:
            raise DataError(
                str(path), f"unknown label {label!r}", wanted=f"one of {', '.join(labels)}"
            )
        try:
            number = float(str(weight))
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number >= 0):
            raise DataError(
                f"{path}, {label}", f"weight {weight!r}", wanted="a number of 0 or more"
            )
        weights[label] = number
    total = sum(weights.values())
    if not total:
        raise DataError(
            str(path), "no label has a weight above 0", wanted="label: weight, line by line"
        )
    return {label: weights.get(label, 0.0) / total for label in labels}


def _csv_rows(path: Path) -> list[tuple[str, object]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if any(row)]
    for number, row in enumerate(rows, start=1):
        if len(row) != 2:
            raise DataError(
                f"{path}:{number}", f"{len(row)} columns", wanted="two: label and weight"
            )
    if rows and not _is_number(rows[0][1]):
        rows = rows[1:]
    return [(row[0], row[1]) for row in rows]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _mapping(path: Path) -> list[tuple[str, object]]:
    import yaml

    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(
            str(path), f"cannot be read ({' '.join(str(error).split())})", wanted="label: weight"
        ) from None
    if not isinstance(value, dict):
        raise DataError(str(path), "is not a mapping", wanted="label: weight, line by line")
    return [(str(label), weight) for label, weight in value.items()]
