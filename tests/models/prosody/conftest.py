"""A set and models trained on it, made once."""

from __future__ import annotations

import pytest

from earwitness.clips.corpus import ClipSet
from earwitness.clips.training import Trained, train_prosody
from tests.models.prosody.voices import make_set


@pytest.fixture(scope="session")
def voices(tmp_path_factory: pytest.TempPathFactory) -> ClipSet:
    return make_set(tmp_path_factory.mktemp("voices") / "voices")


@pytest.fixture(scope="session")
def other_voices(tmp_path_factory: pytest.TempPathFactory) -> ClipSet:
    return make_set(tmp_path_factory.mktemp("others") / "others", speakers=2, first_speaker=5)


@pytest.fixture(scope="session")
def folded(voices: ClipSet, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A file with a classifier for each of two folds and one of all clips."""
    out = tmp_path_factory.mktemp("models") / "folded.model"
    return train_prosody([voices], out, folds=2, workers=1)


@pytest.fixture(scope="session")
def single(voices: ClipSet, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A file with the classifier of all clips alone."""
    return train_prosody([voices], tmp_path_factory.mktemp("models") / "all.model", workers=1)
