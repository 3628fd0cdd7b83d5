"""A process killed at any point and started again makes the same corpus, and buys nothing twice."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from earwitness.runs.jsonlines import read_lines
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.corpus import COMPARED
from earwitness.scenes.corpus_card import CARD
from tests.scenes.writing_cases import small_corpus
from tests.standins.judge_server import REACTIONS, JudgeServer
from tests.standins.writer_server import WriterServer


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


def command(folder: Path, *options: str, stage: str = "write") -> list[str]:
    return [sys.executable, "-m", "earwitness", "scenes", stage, str(folder), *options]


def compared(folder: Path, *more: str) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in (*COMPARED, CARD, *more)}


def killed_after(arguments: list[str], seconds: float) -> bool:
    """Run a command in a group of its own and kill all of it; whether the kill came before its end."""
    process = subprocess.Popen(
        arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def killed_when(arguments: list[str], reached: Callable[[], bool]) -> bool:
    """Run a command and kill all of it once something is reached; whether the kill came before its end."""
    process = subprocess.Popen(
        arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    while process.poll() is None:
        if reached():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return True
        time.sleep(0.005)
    return False


def test_a_model_writer_killed_at_random_points(tmp_path: Path, bank: Bank) -> None:
    planned = small_corpus(tmp_path / "plan", bank, 4, 3).corpus.folder
    with WriterServer(temper="sloppy", bank=bank) as server:
        options = ["--writer", "openai/w", "-M", f"base_url={server.url}", "-M", "family=x"]
        options += ["--concurrency", "2", "--workers", "1"]
        calm = shutil.copytree(planned, tmp_path / "calm")
        begun = time.monotonic()
        subprocess.run(command(calm, *options), check=True, capture_output=True)
        length_s = time.monotonic() - begun
        torn = shutil.copytree(planned, tmp_path / "torn")
        draw = random.Random(4)
        kills = 0
        for _ in range(4):
            # Not before the interpreter is up, where nothing has happened yet.
            kills += killed_after(command(torn, *options), length_s * draw.uniform(0.35, 0.9))
        subprocess.run(command(torn, *options), check=True, capture_output=True)
    assert kills >= 2
    assert compared(torn) == compared(calm)
    replies = Counter(
        line["key"] for _, line in read_lines(torn / "calls.jsonl") if line["kind"] == "reply"
    )
    assert set(replies.values()) == {1}


def by_lot(shown: str) -> tuple[str, dict[str, str]]:
    """What a judge says that throws dice over the words: the same for the same words, right now and then."""
    return "a talk of two", {
        event: REACTIONS[random.Random(shown + event).randrange(len(REACTIONS))]
        for event in re.findall(r"\[SOUND: (e\d)\]", shown)
    }


def test_a_filter_killed_at_random_points(tmp_path: Path, bank: Bank) -> None:
    """What the dice turn down is written again and refilled, so a kill may fall into any of it."""
    written = small_corpus(tmp_path / "written", bank, 3, 2).corpus.folder
    subprocess.run(command(written, "--workers", "1"), check=True, capture_output=True)
    with JudgeServer(by_lot) as server:
        options = ["--judge", "openai/j", "-M", f"base_url={server.url}", "-M", "server=here"]
        options += ["-M", "family=dice", "--embedder", "offline/hashed", "--tau", "-1"]
        options += ["--max-attempts", "3", "--max-refills", "3", "--workers", "1"]
        calm = shutil.copytree(written, tmp_path / "calm")
        ended = subprocess.run(command(calm, *options, stage="filter"), capture_output=True)
        asked = len(server.shown)
        torn = shutil.copytree(written, tmp_path / "torn")
        draw = random.Random(5)
        kills = 0
        for share in sorted(draw.uniform(1.05, 1.9) for _ in range(3)):
            kills += killed_when(
                command(torn, *options, stage="filter"),
                lambda least=share * asked: len(server.shown) >= least,
            )
        again = subprocess.run(command(torn, *options, stage="filter"), capture_output=True)
    # 1: dice leave places empty; no kill changes which.
    assert ended.returncode == again.returncode == 1, again.stderr
    assert kills == 3
    assert compared(torn, "recovery.json") == compared(calm, "recovery.json")
    assert (torn / "abandoned.jsonl").stat().st_size > 0
    verdicts = Counter(
        line["key"] for _, line in read_lines(torn / "verdicts.jsonl") if line["kind"] == "verdict"
    )
    assert set(verdicts.values()) == {1}


def test_a_log_torn_at_any_byte_is_gone_on_with(tmp_path: Path, bank: Bank) -> None:
    from earwitness.cli import build_app

    folder = small_corpus(tmp_path / "c", bank, 1, 2).corpus.folder
    with WriterServer(temper="sloppy", bank=bank) as server:
        options = ["--writer", "openai/w", "-M", f"base_url={server.url}", "--workers", "1"]
        app = build_app()

        def write() -> None:
            app(["scenes", "write", str(folder), *options], standalone_mode=False)

        write()
        whole = compared(folder)
        calls = len(server.calls)
        for name in ("calls.jsonl", "attempts.jsonl", "candidates.jsonl"):
            data = (folder / name).read_bytes()
            draw = random.Random(name)
            for length in sorted(draw.sample(range(len(data)), 3)):
                (folder / name).write_bytes(data[:length])
                for part in ("dialogues.jsonl", "refills.jsonl", "templates.jsonl"):
                    (folder / part).unlink()
                write()
                assert compared(folder) == whole
    # Only replies whose lines were cut off were asked for again.
    assert len(server.calls) <= calls + 3 * calls
