"""``earwitness score`` over runs about scenes, alone and beside runs about clips."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.errors import EarwitnessError, UsageError
from earwitness.tasks.reaction import LABELS
from tests.tasks.run_making import Told, emotion_run, reaction_run, write_run

EVEN = dict.fromkeys(LABELS, 0.7)


def score(*words, code=0):
    result = CliRunner().invoke(build_app(), ["score", *map(str, words)])
    if isinstance(result.exception, EarwitnessError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.stdout


def test_runs_about_scenes_are_read_again_into_their_tables(tmp_path):
    reaction_run(tmp_path / "a", EVEN, name="m", scenes=12)
    reaction_run(tmp_path / "b", EVEN, name="reader", scenes=12, seed=1, condition="asr")
    text = score(tmp_path, "--control", "reader:asr")
    assert "reaction: balanced accuracy" in text
    assert "m audio - reader asr" in text
    found = json.loads(score(tmp_path, "--json", "--cluster", "template", "--condition", "audio"))
    (only,) = found["scores"]
    assert (only["name"], only["condition"]) == ("m", "audio")
    assert only["headline"]["method"] == "bootstrap by template (3, few)"


def test_both_families_are_scored_side_by_side(tmp_path):
    reaction_run(tmp_path / "a", EVEN, scenes=8)
    emotion_run(tmp_path / "b", 0.7, n=70, speakers=7)
    text = score(tmp_path)
    assert "reaction: balanced accuracy" in text
    found = json.loads(score(tmp_path, "--json"))
    assert found["scenes"]["scores"][0]["task"] == "reaction"
    assert found["clips"]
    assert "scores" not in json.loads(score(tmp_path / "b", "--json"))


def test_an_incomplete_run_about_scenes_exits_with_3(tmp_path):
    options = json.dumps([[label, label] for label in LABELS])
    told = [
        Told(f"s{k}/e1", LABELS[k], LABELS[k] if k else None, f"s{k}", {"_options": options})
        for k in range(4)
    ]
    write_run(tmp_path / "a", "reaction", told, prompt="time")
    score(tmp_path, code=3)
    score(tmp_path, "--accept-failed")


def test_what_does_not_fit_is_refused(tmp_path):
    reaction_run(tmp_path / "a", EVEN, scenes=4)
    with pytest.raises(UsageError, match="no run was asked under 'silence'"):
        score(tmp_path, "--condition", "silence")
    with pytest.raises(UsageError, match="scene or template"):
        score(tmp_path, "--cluster", "day")
    reaction_run(tmp_path / "b", EVEN, scenes=4, seed=2)
    with pytest.raises(UsageError, match=r"two of reaction named 'model'.*earwitness compare"):
        score(tmp_path)
