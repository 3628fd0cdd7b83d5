"""Work on several processes: in order, and gone when the process that asked for it is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from earwitness.jobs import pool_map

SCRIPT = """
import os, sys, time
from pathlib import Path
from earwitness.jobs import pool_map

def work(n):
    Path(sys.argv[1], f"{os.getpid()}").touch()
    time.sleep(60)

if __name__ == "__main__":
    list(pool_map(work, list(range(8)), workers=2, chunk=1))
"""


def _square(n: int) -> int:
    return n * n


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_order_of_the_items(workers: int) -> None:
    seen: list[int] = []
    found = list(pool_map(_square, range(7), workers=workers, chunk=2, on_done=seen.append))
    assert found == [0, 1, 4, 9, 16, 25, 36]
    assert seen == [1, 2, 3, 4, 5, 6, 7]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    # One that has ended and that nobody has asked after yet is no process any more.
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(SCRIPT)
    there = tmp_path / "workers"
    there.mkdir()
    parent = subprocess.Popen([sys.executable, str(script), str(there)], stderr=subprocess.DEVNULL)
    workers: list[int] = []
    try:
        until = time.monotonic() + 60
        while len(workers) < 2 and time.monotonic() < until:
            time.sleep(0.05)
            workers = [int(path.name) for path in there.iterdir()]
        assert len(workers) == 2
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        until = time.monotonic() + 30
        while any(map(_is_alive, workers)) and time.monotonic() < until:
            time.sleep(0.05)
        assert not any(map(_is_alive, workers))
    finally:
        parent.kill()
        parent.wait()
        for pid in filter(_is_alive, workers):
            os.kill(pid, signal.SIGKILL)
