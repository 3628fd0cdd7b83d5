"""The model file: a zip of plain arrays and one JSON card. No pickle, so that opening one runs no code.

It holds the training features, who said each clip, the hash of its audio, and the fitted arrays of one or
more classifiers. The same training gives the same bytes: members are stored uncompressed, in a fixed
order, without dates. The support vectors of a classifier are rows of the one training matrix.

A file of ``--folds K`` has K classifiers, each with the speakers it never heard, and one of all clips,
for people who are in none.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earwitness.errors import DataError
from earwitness.models.prosody.classifier import EmotionClassifier, standardise
from earwitness.models.prosody.features import FEATURE_VERSION, feature_names

FORMAT = "earwitness-prosody/1"
ALL = "all"
"""Name of the classifier that was trained on every clip."""

_CARD = "card.json"
_ARRAYS = (
    "mean",
    "scale",
    "linear_weights",
    "linear_bias",
    "support_rows",
    "kernel_weights",
    "kernel_bias",
)
_NUMBERS = (
    "linear_inverse_temperature",
    "kernel_gamma",
    "kernel_inverse_temperature",
    "inverse_temperature",
)
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Example:
    """One training clip: ``sha256`` is of its audio file's bytes."""

    id: str
    sha256: str
    speaker: str
    label: str
    clip_set: str


@dataclass(frozen=True, slots=True)
class SetSource:
    """A set that was trained on, as its card says."""

    name: str
    version: str
    sha256: str
    licence: str
    use: str
    n_clips: int


@dataclass(frozen=True, slots=True)
class Fitted:
    """A classifier and the speakers it has never heard; ``held_out`` is empty for the one of all clips."""

    name: str
    held_out: frozenset[str]
    classifier: EmotionClassifier


@dataclass(frozen=True, slots=True)
class ProsodyModel:
    """What a model file holds. ``vectors`` is (n, d), row i belongs to ``examples[i]``."""

    examples: tuple[Example, ...]
    vectors: NDArray[np.float32]
    fitted: tuple[Fitted, ...]
    sources: tuple[SetSource, ...]
    seed: int
    n_folds: int
    versions: Mapping[str, str]
    synthetic: bool = False

    @property
    def speakers(self) -> frozenset[str]:
        return frozenset(example.speaker for example in self.examples)

    def for_speaker(self, speaker: str) -> Fitted | None:
        """The classifier that never heard this speaker; None if every one has.

        Speakers of the training clips have the one of their fold, everyone else has the one of all clips.
        """
        for each in self.fitted:
            if speaker in each.held_out:
                return each
        if speaker in self.speakers:
            return None
        return next(each for each in self.fitted if each.name == ALL)

    def rows_heard_by(self, fitted: Fitted) -> NDArray[np.intp]:
        """Rows of the clips a classifier was trained on."""
        return np.asarray(
            [i for i, each in enumerate(self.examples) if each.speaker not in fitted.held_out],
            dtype=np.intp,
        )


def model_bytes(model: ProsodyModel) -> bytes:
    """The file of a model; the same model always gives the same bytes."""
    card = {
        "format": FORMAT,
        "feature_version": FEATURE_VERSION,
        "features": list(feature_names()),
        "n_clips": len(model.examples),
        "n_folds": model.n_folds,
        "seed": model.seed,
        "synthetic": model.synthetic,
        "versions": dict(sorted(model.versions.items())),
        "sources": [_as_row(source) for source in model.sources],
        "classifiers": [_classifier_card(each) for each in model.fitted],
        "examples": [_as_row(example) for example in model.examples],
    }
    text = json.dumps(card, ensure_ascii=False, sort_keys=True, indent=1)
    members = {_CARD: text.encode("utf-8"), "vectors.npy": _npy(model.vectors)}
    for each in model.fitted:
        for array in _ARRAYS:
            members[f"{each.name}/{array}.npy"] = _npy(getattr(each.classifier, array))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, _ZIP_DATE), data)
    return out.getvalue()


def read_model(path: str | Path) -> tuple[ProsodyModel, str]:
    """Read a model file.

    Returns
    -------
    The model and the SHA-256 of the file.

    Raises
    ------
    DataError: not there, not a model file, damaged, or made for other features than this version computes.
    """
    path = Path(path)
    again = "Train it again: earwitness baseline train --clips DIR --out FILE"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(
            str(path), f"cannot be read ({error.strerror})", "a model file", again
        ) from None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            card = json.loads(archive.read(_CARD))
            if not isinstance(card, dict) or card.get("format") != FORMAT:
                raise DataError(
                    str(path), f"format {_format_of(card)!r}", f"format {FORMAT!r}", again
                )
            known = (card["feature_version"], tuple(card["features"]))
            if known != (FEATURE_VERSION, feature_names()):
                raise DataError(
                    str(path),
                    f"trained on features {card['feature_version']!r}",
                    f"features {FEATURE_VERSION!r} of this version",
                    again,
                )
            model = _model(card, archive)
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, StopIteration, EOFError) as error:
        raise DataError(
            str(path), f"not a model file, or a damaged one ({error})", "a model file", again
        ) from None
    return model, hashlib.sha256(data).hexdigest()


def _model(card: dict[str, Any], archive: zipfile.ZipFile) -> ProsodyModel:
    examples = tuple(Example(**row) for row in card["examples"])
    vectors = _read_npy(archive, "vectors.npy").astype(np.float32)
    if vectors.shape != (len(examples), len(feature_names())) or not np.isfinite(vectors).all():
        raise ValueError(f"training features of shape {vectors.shape}")
    fitted = tuple(_read_fitted(row, archive, vectors) for row in card["classifiers"])
    if sum(each.name == ALL for each in fitted) != 1:
        raise ValueError("no classifier of all clips")
    return ProsodyModel(
        examples=examples,
        vectors=vectors,
        fitted=fitted,
        sources=tuple(SetSource(**row) for row in card["sources"]),
        seed=int(card["seed"]),
        n_folds=int(card["n_folds"]),
        versions=dict(card["versions"]),
        synthetic=bool(card["synthetic"]),
    )


def _read_fitted(
    row: dict[str, Any], archive: zipfile.ZipFile, vectors: NDArray[np.float32]
) -> Fitted:
    arrays = {name: _read_npy(archive, f"{row['name']}/{name}.npy") for name in _ARRAYS}
    numbers = {name: float(row[name]) for name in _NUMBERS}
    labels = tuple(str(label) for label in row["labels"])
    d, k, s = vectors.shape[1], len(labels), len(arrays["support_rows"])
    shapes = ((d,), (d,), (d, k), (k,), (s,), (s, k), (k,))
    for name, shape in zip(_ARRAYS, shapes, strict=True):
        if arrays[name].shape != shape:
            raise ValueError(f"{name} of shape {arrays[name].shape}, wanted {shape}")
    rows = arrays["support_rows"].astype(np.intp)
    if s and (rows.min() < 0 or rows.max() >= len(vectors)):
        raise ValueError("support vectors beyond the training clips")
    return Fitted(
        name=str(row["name"]),
        held_out=frozenset(str(speaker) for speaker in row["held_out"]),
        classifier=EmotionClassifier(
            labels=labels,
            mean=arrays["mean"],
            scale=arrays["scale"],
            linear_weights=arrays["linear_weights"],
            linear_bias=arrays["linear_bias"],
            linear_inverse_temperature=numbers["linear_inverse_temperature"],
            support_rows=rows,
            support=standardise(vectors[rows], arrays["mean"], arrays["scale"]),
            kernel_weights=arrays["kernel_weights"],
            kernel_bias=arrays["kernel_bias"],
            kernel_gamma=numbers["kernel_gamma"],
            kernel_inverse_temperature=numbers["kernel_inverse_temperature"],
            inverse_temperature=numbers["inverse_temperature"],
            chosen=dict(row["chosen"]),
        ),
    )


def _classifier_card(each: Fitted) -> dict[str, Any]:
    classifier = each.classifier
    return {
        "name": each.name,
        "held_out": sorted(each.held_out),
        "labels": list(classifier.labels),
        "chosen": dict(classifier.chosen),
        **{name: getattr(classifier, name) for name in _NUMBERS},
    }


def _as_row(record: Example | SetSource) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__slots__}


def _format_of(card: Any) -> Any:
    return card.get("format") if isinstance(card, dict) else type(card).__name__


def _npy(array: NDArray[Any]) -> bytes:
    out = io.BytesIO()
    kind = {"f": "<f4" if array.dtype == np.float32 else "<f8", "i": "<i8"}[array.dtype.kind]
    np.lib.format.write_array(
        out, np.ascontiguousarray(array, dtype=kind), version=(1, 0), allow_pickle=False
    )
    return out.getvalue()


def _read_npy(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    array: NDArray[Any] = np.lib.format.read_array(
        io.BytesIO(archive.read(name)), allow_pickle=False
    )
    return array
