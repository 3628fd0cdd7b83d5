"""The commands of voices, transcribers and the speak stage."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from earwitness.audio.io import inspect_audio
from earwitness.cli import build_app
from tests.scenes.voices_corpus import make_corpus


def run(*arguments: object) -> Result:
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments])


def test_voices_list() -> None:
    text = run("voices", "list").output
    assert "hibari/NAME" in text
    assert "earwitness voices list ENGINE" in text
    one = run("voices", "list", "hibari").output
    assert "hibari/heart-m1" in one
    assert "-M pitch=" in one
    engines = json.loads(run("voices", "list", "--json").output)
    assert [each["name"] for each in engines][:2] == ["hibari", "kokoro"]


def test_voices_say(tmp_path: Path) -> None:
    out = tmp_path / "said.wav"
    text = "I told her [pauses] twice [hums]."
    result = run("voices", "say", "espeak/en-us+m3", text, "--out", out, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert [word["text"] for word in found["words"]] == ["I", "told", "her", "twice"]
    assert found["removed"] == ["hums"]
    assert found["marks"][0]["kind"] == "pause"
    assert inspect_audio(out).seconds == pytest.approx(found["seconds"], abs=1e-3)


def test_voices_say_tells_what_is_left_out(tmp_path: Path) -> None:
    result = run("voices", "say", "espeak/en-us+m3", "I [laughs] know.", "-o", tmp_path / "a.wav")
    assert result.exit_code == 0
    assert "not rendered by this voice: laugh" in result.output


def test_an_asset_that_does_not_exist() -> None:
    result = run("voices", "install", "nothing")
    assert result.exit_code != 0
    assert "there is none" in str(result.exception)


def test_install_from_a_folder_that_lacks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EARWITNESS_HOME", str(tmp_path / "home"))
    result = run("asr", "install", "--from", tmp_path)
    assert "has no model.bin" in str(result.exception)


def test_asr_list() -> None:
    assert "whisper/NAME" in run("asr", "list").output
    assert {each["name"] for each in json.loads(run("asr", "list", "--json").output)} == {
        "whisper",
        "pocketsphinx",
        "command",
    }


def test_speak_and_intelligibility(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", templates=2, utterances=9, cast="espeak").folder
    cast = ("--cast", "espeak")
    planned = run("scenes", "speak", corpus, *cast, "--dry-run")
    assert "18 turns of 2 scenes: 0 files are stored" in planned.output
    assert "paid services: 0 files, 0 characters" in planned.output
    spoken = run("scenes", "speak", corpus, *cast, "--workers", 1, "--json")
    assert spoken.exit_code == 0, spoken.output
    report = json.loads(spoken.output)
    assert (report["scenes"], report["turns"], report["split_policy"]) == (2, 18, "disjoint")
    again = run("scenes", "speak", corpus, *cast, "--workers", 1)
    assert "0 files made" in again.output
    assert "no voice is in two splits" in again.output
    listen = f"{sys.executable} -c \"print('we could take the early train')\" {{file}}"
    found = run(
        "scenes", "intelligibility", corpus, "--transcriber", "command/deaf", "-M", f"run={listen}",
        "--condition", "clean", "--workers", 1,
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    assert "clean speech" in found.output
    assert "(few scenes)" in found.output
    assert "one scene" in found.output


@pytest.mark.parametrize("shard", ["0/2", "3/2", "x", "1"])
def test_shards_that_are_none(tmp_path: Path, shard: str) -> None:
    result = run("scenes", "speak", tmp_path, "--shard", shard)
    assert "wanted I/N such as 1/4" in str(result.exception)


def test_no_corpus(tmp_path: Path) -> None:
    assert "is no corpus" in str(run("scenes", "speak", tmp_path).exception)
    assert "is no corpus" in str(run("scenes", "intelligibility", tmp_path).exception)


def test_an_unknown_condition(tmp_path: Path) -> None:
    result = run("scenes", "intelligibility", tmp_path, "--condition", "noisy")
    assert "--condition: noisy; wanted clean, mix" in str(result.exception)
