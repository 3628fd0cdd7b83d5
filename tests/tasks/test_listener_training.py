"""Training the listener on a corpus, and scoring it on scenes it never heard."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.errors import EarwitnessError, UsageError
from earwitness.models.listener.modelfile import read_model
from earwitness.tasks.listener_training import train_listener
from earwitness.tasks.scene_items import load_mixed


@pytest.fixture(scope="module")
def train(mixed_folder):
    return load_mixed(mixed_folder, split="train")


def earwitness(*words):
    result = CliRunner().invoke(build_app(), list(map(str, words)))
    if isinstance(result.exception, EarwitnessError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_it_is_trained_on_the_train_split_and_remembers_on_what(mixed_folder, train, tmp_path):
    found = earwitness(
        "baseline",
        "train-listener",
        mixed_folder,
        "--out",
        tmp_path / "m",
        "--workers",
        "1",
        "--json",
    )
    n = len(train.scenes)
    assert found["scenes"] == n
    assert found["examples"]["location"] == n
    assert found["examples"]["sound"] == found["examples"]["reaction"] == 2 * n
    assert found["left_out"] == []
    model, _ = read_model(tmp_path / "m")
    assert set(model.trained_on.recordings) == {s.manifest.audio.sha256 for s in train.scenes}


def test_the_same_training_gives_the_same_file(train, tmp_path):
    one = train_listener(train, tmp_path / "one", workers=1)
    two = train_listener(train, tmp_path / "two", workers=1)
    assert one.sha256 == two.sha256
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_scenes_of_another_split_are_never_trained_on(train, tmp_path):
    other = replace(train.scenes[0], scenario=replace(train.scenes[0].scenario, split="test"))
    with pytest.raises(UsageError, match="scenes of the split 'test'"):
        train_listener(replace(train, scenes=(other, *train.scenes[1:])), tmp_path / "m")


def test_it_is_refused_on_its_own_scenes_twins_included(mixed_folder, train, tmp_path):
    train_listener(train, tmp_path / "m", workers=1)
    for condition in ("audio", "muted"):
        with pytest.raises(UsageError, match="scenes it would be scored on"):
            earwitness(
                "run", "cares", mixed_folder, "--model", "baseline/listener",
                "-M", f"weights={tmp_path / 'm'}", "--tasks", "reaction",
                "--conditions", condition, "--out", tmp_path / "runs",
            )  # fmt: skip


def test_it_answers_scenes_it_never_heard_and_hears_the_sounds(mixed_folder, train, tmp_path):
    train_listener(train, tmp_path / "m", workers=1)
    found = earwitness(
        "run", "cares", mixed_folder, "--model", "baseline/listener", "--split", "test",
        "-M", f"weights={tmp_path / 'm'}", "--conditions", "audio,blind", "--out", tmp_path / "runs", "--json",
    )  # fmt: skip
    scores = {s["task"]: s for s in found["scores"]}
    assert set(scores) == {"reaction", "location", "sound", "grounding"}
    assert scores["sound"]["scores"]["outcomes"]["answered"] == scores["sound"]["scores"]["n"]
    assert scores["grounding"]["hits"]["value"] == 1
    assert scores["grounding"]["false_alarms"]["value"] == 0
    why = {(task, condition): reason for task, _, condition, reason in found["not_applicable"]}
    assert why["sound", "blind"] == "the model cannot be asked without audio"
    assert why["summary", "audio"] == "the model answers reaction, location, sound, grounding alone"
