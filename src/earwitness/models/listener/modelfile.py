"""The model file: a zip of plain arrays and one JSON card; no pickle, so that opening one runs no code.

The card says what it was trained on: corpus, seed, split, and every recording by hash and scene, so that none of them
is ever scored. The same training gives the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from earwitness.errors import DataError
from earwitness.models.listener.classifier import Clouds
from earwitness.models.listener.features import VERSION

FORMAT = "earwitness-listener/1"
_CARD = "card.json"
_ARRAYS = ("centre", "basis", "between", "means", "counts")
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)
_AGAIN = "Train it again: earwitness baseline train-listener CORPUS --out FILE"


@dataclass(frozen=True, slots=True)
class TrainedOn:
    """Where a listener learned: a corpus by name, seed and hash, its scenes, recordings by hash."""

    corpus: str
    seed: int
    split: str
    sha256: str
    scenes: tuple[str, ...]
    recordings: tuple[str, ...]
    library: str = ""
    takes: int = 0


@dataclass(frozen=True, slots=True)
class ListenerModel:
    """Classifiers by task."""

    clouds: Mapping[str, Clouds]
    trained_on: TrainedOn
    versions: Mapping[str, str]


def model_bytes(model: ListenerModel) -> bytes:
    """The file's content; the same model gives the same bytes."""
    card = {
        "format": FORMAT,
        "feature_version": VERSION,
        "trained_on": asdict(model.trained_on),
        "versions": dict(model.versions),
        "tasks": {
            task: {"labels": list(clouds.labels)} for task, clouds in sorted(model.clouds.items())
        },
    }
    members = {_CARD: json.dumps(card, ensure_ascii=False, sort_keys=True, indent=1).encode()}
    for task, clouds in sorted(model.clouds.items()):
        for name in _ARRAYS:
            members[f"{task}/{name}.npy"] = _npy(getattr(clouds, name))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, _ZIP_DATE), data)
    return out.getvalue()


def read_model(path: str | Path) -> tuple[ListenerModel, str]:
    """Read a model file; also returns the SHA-256 of the file.

    Raises
    ------
    DataError: not there, not a model file, damaged, or made for other features than this version computes.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(
            str(path), f"cannot be read ({error.strerror})", "a model file", _AGAIN
        ) from None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            card = json.loads(archive.read(_CARD))
            found = card.get("format") if isinstance(card, dict) else type(card).__name__
            if found != FORMAT:
                raise DataError(str(path), f"format {found!r}", f"format {FORMAT!r}", _AGAIN)
            if card["feature_version"] != VERSION:
                raise DataError(
                    str(path), f"trained on features {card['feature_version']!r}",
                    f"features {VERSION!r} of this version", _AGAIN,
                )  # fmt: skip
            clouds = {
                task: _read_clouds(archive, task, each["labels"])
                for task, each in card["tasks"].items()
            }
            on = card["trained_on"]
            trained_on = TrainedOn(
                **{**on, "scenes": tuple(on["scenes"]), "recordings": tuple(on["recordings"])}
            )
            model = ListenerModel(clouds, trained_on, dict(card["versions"]))
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, AttributeError) as error:
        raise DataError(
            str(path), f"not a model file, or a damaged one ({error})", "a model file", _AGAIN
        ) from None
    return model, hashlib.sha256(data).hexdigest()


def _read_clouds(archive: zipfile.ZipFile, task: str, labels: list[str]) -> Clouds:
    arrays = {
        name: np.lib.format.read_array(
            io.BytesIO(archive.read(f"{task}/{name}.npy")), allow_pickle=False
        ).astype(np.float64)
        for name in _ARRAYS
    }
    d, k = arrays["basis"].shape
    shapes = ((d,), (d, k), (k,), (len(labels), k), (len(labels),))
    for name, shape in zip(_ARRAYS, shapes, strict=True):
        if arrays[name].shape != shape or not np.isfinite(arrays[name]).all():
            raise ValueError(f"{task}/{name} of shape {arrays[name].shape}, wanted {shape}")
    return Clouds(tuple(map(str, labels)), **arrays)


def _npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(
        out, np.ascontiguousarray(array, dtype="<f8"), version=(1, 0), allow_pickle=False
    )
    return out.getvalue()
