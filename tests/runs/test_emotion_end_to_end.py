"""A whole emotion run through the real client, the real command and a stand-in on loopback HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from earwitness.clips.corpus import ClipSet, load_clip_set
from earwitness.runs.folder import RunFolder
from earwitness.runs.ledger import Ledger
from earwitness.runs.runner import RunnerSettings, RunSummary
from earwitness.tasks.emotion import system
from earwitness.tasks.emotion_runs import plan_runs
from earwitness.tasks.running import carry_out
from tests.clips.hums import make_hums
from tests.standins.loopback import (
    EMPTY,
    HANG,
    INVALID_JSON,
    RESET_BEFORE,
    Act,
    Call,
    error,
    html,
    json_act,
)
from tests.standins.openai_server import OpenAIServer, completion

KEY = "sk-end-to-end-0123456789abcdef"
CLIPS = 28


@pytest.fixture(scope="module")
def clip_set(tmp_path_factory: pytest.TempPathFactory) -> ClipSet:
    """Hums of different pitch, four speakers, every label; the pitch tells a stand-in which clip it hears."""
    return load_clip_set(make_hums(tmp_path_factory.mktemp("hums"), CLIPS))


def clip_of(clip_set: ClipSet, call: Call) -> str:
    """Which clip a call carries, by the bytes that arrived."""
    [part] = [p for p in call.json()["messages"][-1]["content"] if p["type"] == "input_audio"]
    heard = base64.b64decode(part["input_audio"]["data"])
    [clip] = [c for c in clip_set.clips if (clip_set.folder / c.path).read_bytes() == heard]
    return clip.id


def ask_all(
    clip_set: ClipSet, out: Path, url: str, settings: RunnerSettings, **options: str
) -> tuple[Path, RunSummary]:
    [run] = plan_runs(
        clip_set,
        models=["openai/stand-in"],
        options={"base_url": url, **options},
        models_file=None,
        prompt_sets=["vab"],
        conditions=["audio"],
        out=out,
    )
    return run.folder, asyncio.run(carry_out(run, settings))


def reply(content: object, finish: str = "stop", **message: object) -> Act:
    return json_act(completion(content, finish, **message))


FAULTS: dict[int, tuple[Act, str]] = {
    0: (error(429, "slow down", Retry_After="0"), "answered"),
    1: (error(500, "oops"), "answered"),
    2: (error(413, "too large"), "failed"),
    3: (HANG, "answered"),
    4: (RESET_BEFORE, "answered"),
    5: (Act("truncate"), "answered"),
    6: (html(), "answered"),
    7: (INVALID_JSON, "answered"),
    8: (json_act({"id": "x", "object": "chat.completion", "choices": []}), "answered"),
    9: (reply(None, "content_filter"), "blocked"),
    10: (reply("", "length"), "truncated"),
    11: (reply(""), "empty"),
    12: (reply(None, refusal="I cannot help with that."), "refused"),
    13: (reply("either fear or surprise"), "ambiguous"),
    14: (reply("boredom"), "unmapped"),
    15: (EMPTY, "answered"),
    16: (error(503, "later"), "answered"),
    17: (error(400, "bad"), "failed"),
}
"""Clip number: what happens to the *first* call about it, and the outcome it must end in."""


def test_every_fault_of_a_service_ends_in_its_own_outcome(
    clip_set: ClipSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_KEY", KEY)
    met: Counter[str] = Counter()
    numbers = {clip.id: number for number, clip in enumerate(clip_set.clips)}

    def choose(call: Call) -> Act | None:
        clip = clip_of(clip_set, call)
        met[clip] += 1
        act, _ = FAULTS.get(numbers[clip], (None, ""))
        return act if met[clip] == 1 else None

    settings = RunnerSettings(call_timeout_s=1.0, first_wait_s=0.0, longest_wait_s=0.2)
    with OpenAIServer(character="neutral", key=KEY, choose=choose) as server:
        folder, summary = ask_all(
            clip_set, tmp_path, server.url, settings, api_key_env="STANDIN_KEY"
        )
        outcomes = {d.item_id: d.outcome.kind for d in system(folder).decisions}
        expected = {
            clip: FAULTS[number][1] if number in FAULTS else "answered"
            for clip, number in numbers.items()
        }
        assert outcomes == expected
        assert (summary.failed, summary.not_asked) == (2, 0)
        assert not summary.complete
        # A second sitting asks only what failed, and closes the run.
        calls = len(server.calls)
        _, again = ask_all(clip_set, tmp_path, server.url, settings, api_key_env="STANDIN_KEY")
        assert len(server.calls) - calls == 2
        assert again.complete
    written = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert KEY.encode() not in written
    assert b"Bearer" not in written
    some_audio = (clip_set.folder / clip_set.clips[0].path).read_bytes()
    assert base64.b64encode(some_audio)[:60] not in written


def command(clip_set: ClipSet, url: str, out: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "earwitness", "run", "emotion"),
        *("--clips", str(clip_set.folder), "--model", "openai/stand-in"),
        *("-M", f"base_url={url}", "--out", str(out), "--concurrency", "3", "--no-report"),
    ]


@pytest.fixture
def slow_server() -> Iterator[OpenAIServer]:
    """Takes its time, so that a kill meets calls in flight."""

    def choose(call: Call) -> None:
        time.sleep(0.03)

    with OpenAIServer(character="echo", choose=choose) as server:
        server.keep_bodies = False
        yield server


def test_killed_anywhere_the_same_command_finishes_with_nothing_lost_or_doubled(
    clip_set: ClipSet, tmp_path: Path, slow_server: OpenAIServer
) -> None:
    moments = random.Random(7)
    kills = 0
    folder = tmp_path / "emotion--openai_stand-in--vab"
    for _ in range(12):
        child = subprocess.Popen(
            command(clip_set, slow_server.url, tmp_path),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        # The first moment that matters is when the ledger begins to grow.
        before = len(slow_server.calls)
        while child.poll() is None and len(slow_server.calls) == before:
            time.sleep(0.005)
        time.sleep(moments.uniform(0.0, 0.12))
        if child.poll() is None:
            os.kill(child.pid, signal.SIGKILL)
            kills += 1
        if child.wait() == 0:
            break
    assert kills >= 2
    done = subprocess.run(
        command(clip_set, slow_server.url, tmp_path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with Ledger(folder / "ledger.jsonl", read_only=True) as ledger:
        counts = ledger.counts
        assert all(ledger.has_reply(question.key) for question in RunFolder(folder).questions())
    assert (counts.replies, counts.duplicate_replies) == (CLIPS, 0)
    asked_twice = len(slow_server.calls) - CLIPS
    assert 0 <= asked_twice <= counts.maybe_paid_twice <= 3 * kills


def test_control_c_leaves_a_clean_state_and_says_how_to_go_on(
    clip_set: ClipSet, tmp_path: Path, slow_server: OpenAIServer
) -> None:
    child = subprocess.Popen(
        command(clip_set, slow_server.url, tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not slow_server.calls:
        time.sleep(0.005)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 3
    assert "interrupted; run the same command again to go on" in " ".join(err.split())
    assert "Traceback" not in err
    with Ledger(
        tmp_path / "emotion--openai_stand-in--vab" / "ledger.jsonl", read_only=True
    ) as ledger:
        counts = ledger.counts
    assert counts.in_flight == 0
    assert 0 < counts.replies < CLIPS


def test_control_c_ends_the_command_and_not_only_its_first_run(
    clip_set: ClipSet, tmp_path: Path, slow_server: OpenAIServer
) -> None:
    words = [*command(clip_set, slow_server.url, tmp_path), "--model", "openai/another"]
    child = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while not slow_server.calls:
        time.sleep(0.005)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 3
    assert "1 further run was not begun. Run the same command again to go on." in err
    assert not (tmp_path / "emotion--openai_another--vab").exists()
    assert not any(b"another" in call.body for call in slow_server.calls)


def test_an_incomplete_run_exits_with_three_and_bounds_unless_accepted(
    clip_set: ClipSet, tmp_path: Path
) -> None:
    def choose(call: Call) -> Act | None:
        return error(413, "too large") if clip_of(clip_set, call) == clip_set.clips[0].id else None

    with OpenAIServer(character="neutral", choose=choose) as server:
        words = [*command(clip_set, server.url, tmp_path), "--json"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 3, done.stderr
        [row] = json.loads(done.stdout)["runs"].values()
        assert (row["failed"], row["complete"]) == (1, False)
        accepted = subprocess.run(
            [*words, "--accept-failed"], capture_output=True, text=True, check=False
        )
        assert accepted.returncode == 0, accepted.stderr


def test_a_dry_run_shows_everything_and_asks_nothing(clip_set: ClipSet, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        words = [*command(clip_set, server.url, tmp_path / "runs"), "--dry-run"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        assert not server.calls
    assert "Nothing was asked." in done.stdout
    assert "surprise" in done.stdout
    assert str(CLIPS) in done.stdout
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("label_map", "kind"), [(None, "unmapped"), ("vendor-default", "answered")]
)
def test_a_run_remembers_the_map_its_labels_are_read_with(
    clip_set: ClipSet, tmp_path: Path, label_map: str | None, kind: str
) -> None:
    with OpenAIServer(choose=lambda _: reply("calm")) as server:
        [run] = plan_runs(
            clip_set,
            models=["openai/stand-in"],
            options={"base_url": server.url},
            models_file=None,
            prompt_sets=["vab"],
            conditions=["audio"],
            out=tmp_path,
            label_map=label_map,
        )
        asyncio.run(carry_out(run, RunnerSettings()))
    outcomes = [decision.outcome for decision in system(run.folder).decisions]
    assert {outcome.kind for outcome in outcomes} == {kind}
    if label_map:
        assert {outcome.label for outcome in outcomes} == {"neutral"}
        assert RunFolder(run.folder).card()["label_map"]["id"] == "vendor-default"
