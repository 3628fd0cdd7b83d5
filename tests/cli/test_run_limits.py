"""Shards, budgets, prices, long recordings and shared runs through the command itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from earwitness.cli import build_app
from earwitness.errors import DataError, EarwitnessError, UsageError
from earwitness.runs.folder import RunFolder
from tests.clips.hums import make_hums
from tests.standins.openai_server import OpenAIServer

CLIPS = 14
PRICES = """
as_of: 2026-11-29
prices:
- {models: openai/m, source: our contract, input: 1.0, output: 4.0, audio_input: 20, audio_tokens_s: 10, reply_tokens: 5}
"""


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_hums(tmp_path_factory.mktemp("hums"), CLIPS, seconds=1.0)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EARWITNESS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def emotion(clips: Path, server: OpenAIServer, *words: object, code: int = 0) -> Result:
    given = ["run", "emotion", "--clips", clips, "--model", "openai/m", "-M", f"base_url={server.url}", "--no-report"]  # fmt: skip
    given += ["-M", "server=here", *words]
    result = CliRunner().invoke(build_app(), [str(word) for word in given])
    if isinstance(result.exception, EarwitnessError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def test_an_estimate_before_a_limit_in_between_and_totals_after(
    clips: Path, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text(PRICES)
    words = ("--prices", prices, "--out", tmp_path / "runs")
    with OpenAIServer(character="neutral") as server:
        dry = emotion(clips, server, *words, "--dry-run", "--json")
        [forecast] = json.loads(dry.stdout).values()
        assert not server.calls
        assert forecast["price"] == "our contract, read on 2026-11-29"
        each = forecast["cost_usd"] / CLIPS
        # 10 tokens of audio at 20, words at 1, five tokens of answer at 4
        assert each > (10 * 20 + 5 * 4) / 1e6
        limited = emotion(clips, server, *words, "--max-cost", each * 5.5, "--json", code=3)
        [row] = json.loads(limited.stdout)["runs"].values()
        assert 0 < row["cost_usd"] <= each * 5.5
        assert row["calls"] == row["replied"] == len(server.calls) < CLIPS
        assert "could exceed the limit" in row["stopped"]
        rest = emotion(clips, server, *words, "--json")
        [row] = json.loads(rest.stdout)["runs"].values()
        assert (row["complete"], row["calls"]) == (True, CLIPS - row["already_stored"])
        assert len(server.calls) == CLIPS
    [folder] = [path for path in (tmp_path / "runs").iterdir() if path.is_dir()]
    counts = RunFolder(folder).counts()
    # 10 tokens of audio, the prompt's words, one token out, as the stand-in counts them
    assert counts.cost_usd == pytest.approx(sum(a.cost_usd or 0 for a in RunFolder(folder).answers()))  # fmt: skip
    assert counts.cost_usd > CLIPS * (10 * 20 + 4) / 1e6
    assert counts.maybe_paid_twice == 0


def test_a_limit_holds_for_all_models_of_a_command(clips: Path, tmp_path: Path) -> None:
    with OpenAIServer(character="neutral") as server:
        done = emotion(
            clips, server, "--model", "openai/n", "--max-calls", CLIPS + 3, "--json",
            "--out", tmp_path, code=3,
        )  # fmt: skip
        assert len(server.calls) == CLIPS + 3
    rows = json.loads(done.stdout)["runs"]
    assert [row["replied"] for row in rows.values()] == [CLIPS, 3]


def test_shards_are_merged_into_the_whole_run(clips: Path, tmp_path: Path) -> None:
    with OpenAIServer(character="echo") as server:
        for index in (1, 2):
            emotion(clips, server, "--shard", f"{index}/2", "--out", tmp_path / f"m{index}")
        emotion(clips, server, "--out", tmp_path / "whole")
        calls = len(server.calls)
        words = ["run", "merge", str(tmp_path / "m1"), str(tmp_path / "m2"), "--out", str(tmp_path / "all")]  # fmt: skip
        merged = CliRunner().invoke(build_app(), words)
        assert merged.exit_code == 0, merged.output
        assert f"2 parts, {CLIPS} items, {CLIPS} replies" in " ".join(merged.output.split())
        # The merged run is complete: nothing is asked any more.
        emotion(clips, server, "--out", tmp_path / "all")
        assert len(server.calls) == calls
    name = "emotion--openai_m--vab"
    same = [(tmp_path / where / name / "items.jsonl").read_bytes() for where in ("whole", "all")]
    assert same[0] == same[1]
    with pytest.raises(UsageError, match="I/N, such as 1/4"), OpenAIServer() as server:
        emotion(clips, server, "--shard", "3/2", "--out", tmp_path / "x")


def test_clips_longer_than_the_model_takes(clips: Path, tmp_path: Path, home: Path) -> None:
    with OpenAIServer(character="echo") as server:
        words = ("-M", "max_seconds=0.5", "--out", tmp_path / "runs")
        with pytest.raises(UsageError, match=r"takes at most 0\.5 s"):
            emotion(clips, server, *words)
        with pytest.raises(UsageError, match="--long-audio chunk"):
            emotion(clips, server, *words, "--long-audio", "crop")
        assert not server.calls
        done = emotion(clips, server, *words, "--long-audio", "chunk", "--json")
        assert len(server.calls) == 2 * CLIPS
        assert all(asked.audio.seconds == 0.5 for asked in server.asked if asked.audio)
    [row] = json.loads(done.stdout)["runs"].values()
    assert row["complete"]
    card = RunFolder(Path(row["folder"])).card()
    assert (card["long_audio"]["chunked"], card["long_audio"]["chunks"]) == (CLIPS, 2 * CLIPS)
    assert card["n_items"] == CLIPS
    assert f"{CLIPS} questions in {2 * CLIPS} chunks" in " ".join(done.stderr.split())
    # What was encoded is kept outside the run's folder.
    assert len(list((home / "payloads").glob("*.payload"))) == 2 * CLIPS
    assert not list(Path(row["folder"]).glob("*.payload"))


def test_encoded_stimuli_are_reused_by_another_model_or_not_kept(
    clips: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    with OpenAIServer(character="echo") as server:
        words = ("-M", "rates=8000", "--payload-cache")
        emotion(clips, server, *words, kept, "--out", tmp_path / "a")
        made = {path.name: path.stat().st_ino for path in kept.iterdir()}
        assert len(made) == CLIPS
        emotion(clips, server, *words, kept, "--model", "openai/n", "--out", tmp_path / "b")
        assert {path.name: path.stat().st_ino for path in kept.iterdir()} == made
        emotion(clips, server, *words, "none", "--out", tmp_path / "c", "--limit", 2)


def test_options_that_do_not_fit_are_refused(clips: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        for words, error in (
            (("--prices", tmp_path / "gone.yaml"), DataError),
            (("--long-audio", "cut"), UsageError),
            (("-M", "requests_per_minute=0"), UsageError),
        ):
            with pytest.raises(error):
                emotion(clips, server, *words, "--out", tmp_path / "x")
        assert not server.calls


def test_two_commands_at_once_share_the_run(clips: Path, tmp_path: Path) -> None:
    import time

    with OpenAIServer(character="echo", choose=lambda _: time.sleep(0.02)) as server:
        words = [
            sys.executable, "-m", "earwitness", "run", "emotion", "--clips", str(clips), "--model", "openai/m",
            "-M", f"base_url={server.url}", "--out", str(tmp_path / "runs"), "--no-report", "--json",
            "--concurrency", "2", "--conditions", "audio,silence,blind",
        ]  # fmt: skip
        environment = {**os.environ, "EARWITNESS_HOME": str(tmp_path / "home")}
        both = [
            subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
            for _ in range(2)
        ]  # fmt: skip
        told = [process.communicate(timeout=200) for process in both]
        assert [process.returncode for process in both] == [0, 0], told
        assert len(server.calls) == 3 * CLIPS
    rows = [next(iter(json.loads(out)["runs"].values())) for out, _ in told]
    assert sum(row["calls"] for row in rows) == 3 * CLIPS
    assert all(row["complete"] for row in rows)
