"""Fifty annotators at once answer 5,000 items: none lost, none doubled, and how long an answer takes.

The server is ``earwitness review serve``, as people start it, on a disk, in a process of its own. The annotators are
one other process: each opens an item, answers it, and goes on to the next at once, without the minute a person would
take, over a connection of its own. There is no peer to run beside; the bound is the issue's, p95 under 100 ms.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from earwitness.review import people
from earwitness.review.project import Project, write_project
from earwitness.review.store import Item, add_items, opened, transaction

ANNOTATORS = 50
ITEMS = 5_000
WANTED_P95_MS = 100.0
_LINE = "We could take the early train and be back before dinner, if nobody minds the walk."


def make_folder(folder: Path) -> None:
    """Items of the size of real scenes: 24 utterances and two sounds."""
    folder.mkdir()
    sounds = [{"id": f"s{n}", "name": "a dog barking"} for n in (1, 2)]
    lines: list[dict[str, Any]] = [
        {"speaker": "AB"[n % 2], "said": [["speech", _LINE]]} for n in range(24)
    ]
    lines[8:8] = [{"sound": "s1"}]
    lines[17:17] = [{"sound": "s2"}]
    gold = {"s1": "pivot", "s2": "ambient"}
    items = (
        Item(f"scene-{n:05d}", f"scene-{n:05d}", {"sounds": sounds, "lines": lines}, gold)
        for n in range(ITEMS)
    )
    write_project(folder, Project("label", "Load", per_item=1))
    with opened(folder, create=True) as db, transaction(db):
        add_items(db, items)


class Connection:
    """One keep-alive connection, read by hand so that the client costs little beside the server."""

    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self.cookie = f"earwitness_work={token}"

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(
        self, method: str, path: str, body: bytes = b"", more: str = ""
    ) -> tuple[int, bytes, str]:
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nCookie: {self.cookie}\r\n{more}"
        if body:
            head += f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\nAccept: application/json\r\n"
        self.writer.write(head.encode() + b"\r\n" + body)
        answer = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = re.search(r"content-length: (\d+)", answer)
        data = await self.reader.readexactly(int(length.group(1))) if length else b""
        return int(answer.split(" ", 2)[1]), data, answer


async def annotate(port: int, token: str, taken: dict[str, list[float]]) -> int:
    """Answer until the list is done; returns how many answers were confirmed."""
    connection = Connection(port, token)
    await connection.open()
    done = 0
    _, _, head = await connection.ask("GET", "/work/next")
    place = re.search(r"location: (\S+)", head)
    while place is not None and place.group(1) != "/work":
        start = time.perf_counter()
        status, page, _ = await connection.ask("GET", place.group(1))
        taken["page"].append(time.perf_counter() - start)
        assert status == 200, status
        word = re.search(rb'name="csrf" content="(\w+)"', page)
        assert word is not None
        body = json.dumps({"labels": {"s1": "verbal", "s2": "ambient"}, "seconds": 30}).encode()
        start = time.perf_counter()
        status, told, _ = await connection.ask(
            "POST", place.group(1), body, f"X-CSRF: {word.group(1).decode()}\r\n"
        )
        taken["answer"].append(time.perf_counter() - start)
        assert status == 200, (status, told)
        done += 1
        place = re.fullmatch(r"(.*)", json.loads(told)["next"])
    connection.writer.close()
    return done


def cpu_seconds(pid: int) -> float:
    """CPU time a process has used so far, without its children."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] * 1000


async def load(port: int, tokens: list[str]) -> tuple[int, dict[str, list[float]]]:
    taken: dict[str, list[float]] = {"page": [], "answer": []}
    counts = await asyncio.gather(*(annotate(port, token, taken) for token in tokens))
    return sum(counts), taken


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "work"
        make_folder(folder)
        tokens = list(people.add_people(folder, ANNOTATORS).values())
        process = subprocess.Popen(
            [sys.executable, "-m", "earwitness", "review", "serve", str(folder), "--port", "0"],
            stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        assert process.stdout is not None
        found = re.search(r":(\d+) ", process.stdout.readline())
        assert found is not None
        before = cpu_seconds(process.pid)
        started = time.perf_counter()
        confirmed, taken = asyncio.run(load(int(found.group(1)), tokens))
        seconds = time.perf_counter() - started
        cpu = cpu_seconds(process.pid) - before
        peak = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
        process.send_signal(signal.SIGINT)
        process.wait(10)
        process.stdout.close()
        with sqlite3.connect(folder / "review.db") as db:
            (kept,) = db.execute("SELECT count(*) FROM answers").fetchone()
            (items,) = db.execute("SELECT count(DISTINCT item) FROM answers").fetchone()
            (history,) = db.execute("SELECT count(*) FROM history").fetchone()
        db.close()
    print(
        f"{ANNOTATORS} annotators at once, {ITEMS} items, {seconds:.1f} s, load {os.getloadavg()[0]:.1f}"
    )
    print(f"confirmed {confirmed}, kept {kept}, distinct items {items}, writes {history}")
    for name, times in taken.items():
        print(
            f"{name:<7} median {statistics.median(times) * 1000:6.1f} ms   p95 {percentile(times, 0.95):6.1f} ms"
            f"   p99 {percentile(times, 0.99):6.1f} ms   slowest {max(times) * 1000:6.1f} ms"
        )
    rate = 2 * ITEMS / seconds
    print(f"server  {cpu / ITEMS * 1000:.2f} CPU-ms an item (page and answer), {rate:.0f} requests a second, peak {int(peak.group(1)) // 1024 if peak else 0} MiB")  # fmt: skip
    lost = ITEMS - items
    doubled = kept - items
    print(f"lost {lost}, doubled {doubled}; p95 of answers under {WANTED_P95_MS:g} ms: {percentile(taken['answer'], 0.95) < WANTED_P95_MS}")  # fmt: skip
    if lost or doubled or confirmed != ITEMS:
        sys.exit("answers were lost or doubled")


if __name__ == "__main__":
    main()
