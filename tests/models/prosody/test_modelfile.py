"""The model file: plain arrays, the same bytes each time, refused when it is not what it should be."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from earwitness.clips.corpus import ClipSet
from earwitness.clips.training import Trained, train_prosody
from earwitness.errors import DataError
from earwitness.models.prosody.modelfile import ALL, model_bytes, read_model


def rewritten(source: Path, target: Path, changes: dict[str, bytes | None]) -> Path:
    """A copy of a model file with members replaced or (None) left out."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = changes.get(name, old.read(name))
            if data is not None:
                new.writestr(name, data)
    return target


def card_with(source: Path, **fields: object) -> bytes:
    with zipfile.ZipFile(source) as archive:
        return json.dumps(json.loads(archive.read("card.json")) | fields).encode()


def test_what_is_read_is_what_was_trained(folded: Trained) -> None:
    model, sha256 = read_model(folded.path)
    assert sha256 == folded.sha256
    assert model.examples == folded.model.examples
    assert np.array_equal(model.vectors, folded.model.vectors)
    for read, made in zip(model.fitted, folded.model.fitted, strict=True):
        assert (read.name, read.held_out) == (made.name, made.held_out)
        assert np.array_equal(
            read.classifier.probabilities(model.vectors),
            made.classifier.probabilities(model.vectors),
        )
    assert model_bytes(model) == folded.path.read_bytes()


def test_the_same_training_gives_the_same_bytes_on_two_processes(
    voices: ClipSet, folded: Trained, tmp_path: Path
) -> None:
    again = train_prosody([voices], tmp_path / "again.model", folds=2, workers=2)
    assert again.path.read_bytes() == folded.path.read_bytes()
    other = train_prosody([voices], tmp_path / "other.model", folds=2, seed=3, workers=1)
    assert other.sha256 != folded.sha256


def test_it_holds_arrays_and_one_card_and_nothing_that_could_run(folded: Trained) -> None:
    with zipfile.ZipFile(folded.path) as archive:
        for info in archive.infolist():
            data = archive.read(info)
            if info.filename == "card.json":
                json.loads(data)
            else:
                array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
                assert array.dtype.kind in "fi"
            assert info.date_time == (1980, 1, 1, 0, 0, 0)


def test_a_pickle_inside_is_not_opened(folded: Trained, tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (tmp_path / "exploded",)  # type: ignore[return-value]

    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray([Bomb()], dtype=object), allow_pickle=True)
    path = rewritten(folded.path, tmp_path / "bomb.model", {"vectors.npy": out.getvalue()})
    with pytest.raises(DataError, match="not a model file, or a damaged one"):
        read_model(path)
    assert not (tmp_path / "exploded").exists()


def test_it_says_on_what_it_was_trained(folded: Trained, voices: ClipSet) -> None:
    model, _ = read_model(folded.path)
    (source,) = model.sources
    assert (source.name, source.sha256) == ("voices", voices.sha256)
    assert source.licence == "CC0-1.0"
    assert model.synthetic
    assert set(model.versions) == {"earwitness", "numpy", "scikit-learn"}


def test_every_fold_is_held_out_once_and_one_classifier_heard_all(folded: Trained) -> None:
    *folds, whole = folded.model.fitted
    assert [s for each in folds for s in sorted(each.held_out)].__len__() == 4
    assert frozenset().union(*(each.held_out for each in folds)) == folded.model.speakers
    assert (whole.name, whole.held_out) == (ALL, frozenset())


def test_support_vectors_of_a_fold_are_clips_of_other_speakers(folded: Trained) -> None:
    for each in folded.model.fitted:
        rows = each.classifier.support_rows
        assert len(rows)
        assert not {folded.model.examples[i].speaker for i in rows} & each.held_out


@pytest.mark.parametrize(
    "data", [b"", b"not a zip", b"PK\x03\x04 cut", b"\x80\x04\x95pickle."], ids=repr
)
def test_other_files_are_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.model"
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"x.model: not a model file, or a damaged one"):
        read_model(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.model: cannot be read .*baseline train"):
        read_model(tmp_path / "none.model")


def test_a_cut_file_is_refused(folded: Trained, tmp_path: Path) -> None:
    data = folded.path.read_bytes()
    path = tmp_path / "cut.model"
    for size in (len(data) // 3, len(data) - 30):
        path.write_bytes(data[:size])
        with pytest.raises(DataError, match="not a model file, or a damaged one"):
            read_model(path)


def test_a_changed_byte_of_an_array_is_noticed(folded: Trained, tmp_path: Path) -> None:
    data = bytearray(folded.path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    (tmp_path / "bad.model").write_bytes(bytes(data))
    with pytest.raises(DataError, match="not a model file, or a damaged one"):
        read_model(tmp_path / "bad.model")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"format": "something/2"}, "format 'something/2'; wanted format 'earwitness-prosody/1'"),
        ({"feature_version": "prosody-0"}, "trained on features 'prosody-0'; wanted features"),
        ({"features": ["x"]}, "trained on features"),
        ({"classifiers": []}, "no classifier of all clips"),
        ({"examples": []}, "training features of shape"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_card_of_something_else_is_refused(
    fields: dict[str, object], message: str, folded: Trained, tmp_path: Path
) -> None:
    path = rewritten(
        folded.path, tmp_path / "y.model", {"card.json": card_with(folded.path, **fields)}
    )
    with pytest.raises(DataError, match=message):
        read_model(path)


def test_a_missing_array_is_refused(folded: Trained, tmp_path: Path) -> None:
    path = rewritten(folded.path, tmp_path / "z.model", {"all/mean.npy": None})
    with pytest.raises(DataError, match=r"all/mean.npy"):
        read_model(path)
