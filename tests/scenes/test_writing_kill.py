"""A process killed at any point and started again makes the same corpus, and buys nothing twice."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from earwitness.runs.jsonlines import read_lines
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.corpus import COMPARED
from tests.scenes.writing_cases import small_corpus
from tests.standins.writer_server import WriterServer


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


def command(folder: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "earwitness", "scenes", "write", str(folder), *options]


def compared(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in COMPARED}


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
