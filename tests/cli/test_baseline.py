"""``earwitness baseline`` as a user types it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from earwitness.cli import build_app
from earwitness.clips.corpus import ClipSet, write_clip_set
from earwitness.errors import DataError, LicenceError, UsageError
from tests.models.prosody.voices import make_set


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(build_app(), list(map(str, arguments)))


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> ClipSet:
    return make_set(tmp_path_factory.mktemp("sets") / "voices", takes=2)


def train(voices: ClipSet, out: Path, *more: str) -> Result:
    return call(
        "baseline", "train", "--clips", voices.folder, "--out", out, "--workers", "1", *more
    )


def test_train_then_run_on_the_same_set_by_folds(voices: ClipSet, tmp_path: Path) -> None:
    out = tmp_path / "voices.model"
    trained = train(voices, out, "--folds", "2")
    assert trained.exit_code == 0, trained.output
    assert "24 clips of 4 speakers, 2 folds, anger, neutral, sadness" in trained.output
    assert "synthetic" in trained.output
    ran = call(
        *("run", "emotion", "--clips", voices.folder, "--model", "baseline/prosody"),
        *("-M", f"weights={out}", "--out", tmp_path / "runs", "--no-report", "--json"),
    )
    assert ran.exit_code == 0, ran.output
    (card,) = (tmp_path / "runs").rglob("card.json")
    settings = json.loads(card.read_text())["settings"]
    assert settings["folds"] == 2
    assert len(settings["weights_sha256"]) == 64


def test_a_file_without_folds_is_refused_on_its_own_set(voices: ClipSet, tmp_path: Path) -> None:
    out = tmp_path / "all.model"
    assert "no folds" in train(voices, out).output
    ran = call(
        *("run", "emotion", "--clips", voices.folder, "--model", "baseline/prosody"),
        *("-M", f"weights={out}", "--out", tmp_path / "runs", "--no-report"),
    )
    assert isinstance(ran.exception, UsageError)
    assert "was trained on 4 of the speakers it would be scored on" in str(ran.exception)


def test_train_prints_json_where_scripts_read(voices: ClipSet, tmp_path: Path) -> None:
    trained = train(voices, tmp_path / "j.model", "--json")
    summary = json.loads(trained.stdout)
    assert summary["clips"] == 24
    assert summary["labels"] == ["anger", "neutral", "sadness"]
    assert [each["name"] for each in summary["classifiers"]] == ["all"]
    assert summary["sources"] == ["voices 1"]


def test_an_evaluation_only_set_is_refused(tmp_path: Path) -> None:
    clip_set = make_set(tmp_path / "kept", speakers=3, takes=1)
    card = replace(clip_set.card, use="evaluation-only")
    write_clip_set(clip_set.folder, card, clip_set.clips)
    refused = train(clip_set, tmp_path / "x.model")
    assert isinstance(refused.exception, LicenceError)
    assert "kept is marked evaluation-only" in str(refused.exception)
    assert not (tmp_path / "x.model").exists()


def test_a_folder_that_is_no_set_is_named(tmp_path: Path) -> None:
    refused = call("baseline", "train", "--clips", tmp_path / "none", "--out", tmp_path / "x")
    assert isinstance(refused.exception, DataError)
    assert "no such folder" in str(refused.exception)


def test_evaluate_shows_systems_speakers_and_the_gain(voices: ClipSet) -> None:
    shown = call("baseline", "evaluate", "--clips", voices.folder, "--folds", "2", "--workers", "1")
    assert shown.exit_code == 0, shown.output
    for text in (
        "24 clips, 4 speakers in 2 folds, 3 labels (chance 33.3%), seed 0",
        "mfcc-svm",
        "voice3",
        "sadness",
        "gain of prosody over mfcc-svm:",
        "bootstrap over 4 speakers",
        "few speakers",
    ):
        assert text in shown.stdout, text


def test_evaluate_gives_json(voices: ClipSet) -> None:
    shown = call(
        *("baseline", "evaluate", "--clips", voices.folder, "--folds", "4"),
        *("--workers", "1", "--shuffle-labels", "--json"),
    )
    found = json.loads(shown.stdout)
    assert found["shuffled"] is True
    assert [each["name"] for each in found["systems"]] == ["prosody", "mfcc-svm"]
    assert set(found["gains"][0]["difference"]) == {"value", "low", "high"}
    assert len(found["held_out"]) == 4


def test_help_teaches() -> None:
    shown = call("baseline", "train", "--help").output
    assert "--folds" in shown
    assert "earwitness baseline train --clips sets/ravdess" in " ".join(shown.split())
