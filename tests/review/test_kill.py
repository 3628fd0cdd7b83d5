"""The server is killed in the middle; what it confirmed is there, and work goes on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx

from earwitness.review import people
from earwitness.review.store import opened, rows
from tests.review.making import Site, Visitor, label_folder


def start(folder: Path, *options: str) -> tuple[subprocess.Popen[str], str, str]:
    """``earwitness review serve`` as people start it; returns process, address and organiser's link."""
    process = subprocess.Popen(
        [sys.executable, "-m", "earwitness", "review", "serve", str(folder), "--port", "0", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    first, second = process.stdout.readline(), process.stdout.readline()
    address = re.search(r"https?://\S+", first)
    link = re.search(r"https?://\S+/o/\S+", second)
    assert address is not None, first
    assert link is not None, second
    return process, address.group(), link.group()


def end(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stderr is not None
    process.wait(10)
    process.stdout.close()
    process.stderr.close()


def work(visitor: Visitor, confirmed: list[str], until: threading.Event) -> None:
    """Answer as fast as can be, noting every answer that was confirmed, until the server is gone."""
    try:
        while True:
            _, page = visitor.page("/work/next")
            if not page.action:
                return
            labels = {name.removeprefix("label."): "verbal" for name in page.names}
            if visitor.post(page.action, labels=labels).json().get("saved"):
                confirmed.append(page.action)
            if len(confirmed) >= 8:
                until.set()
    except httpx.HTTPError:
        return


def test_killed_in_the_middle_nothing_confirmed_is_lost(tmp_path: Path) -> None:
    folder = label_folder(tmp_path, 40, per_item=4)
    tokens = people.add_people(folder, 4)
    process, address, _ = start(folder)
    site = Site(folder, address)
    confirmed: dict[str, list[str]] = {name: [] for name in tokens}
    enough = threading.Event()
    threads = [
        threading.Thread(target=work, args=(site.visitor(token), confirmed[name], enough))
        for name, token in tokens.items()
    ]
    for thread in threads:
        thread.start()
    assert enough.wait(30)
    os.kill(process.pid, signal.SIGKILL)
    for thread in threads:
        thread.join(20)
    end(process)
    assert process.returncode == -signal.SIGKILL
    with opened(folder) as db:
        kept = rows(
            db,
            "SELECT p.name, a.position FROM answers s JOIN people p ON p.id=s.person"
            " JOIN assignments a ON a.person=s.person AND a.item=s.item",
        )
        assert rows(db, "PRAGMA integrity_check") == [("ok",)]
    stored = {(name, f"/work/item/{position}") for name, position in kept}
    sent = {(name, action) for name, actions in confirmed.items() for action in actions}
    assert sent <= stored
    # An answer may be on the disk and its confirmation lost; no more than one of each person can be.
    assert len(stored - sent) <= len(tokens)
    (items,) = rows_of(folder, "SELECT count(*) FROM items")
    assert 8 <= len(stored) < 4 * items

    process, address, link = start(folder)
    again = Site(folder, address)
    try:
        for name, token in tokens.items():
            visitor = again.visitor(token)
            more: list[str] = []
            work(visitor, more, threading.Event())
            assert len(more) == items - sum(owner == name for owner, _ in stored)
        organiser = again.visitor(link.rsplit("/", 1)[1], "o")
        assert f"<b>{items}</b> of {items} items" in organiser.client.get("/organiser").text
    finally:
        process.send_signal(signal.SIGINT)
        end(process)
        for client in (*site.clients, *again.clients):
            client.close()
    assert rows_of(folder, "SELECT count(*) FROM answers") == (4 * items,)
    assert rows_of(folder, "SELECT count(*) FROM (SELECT DISTINCT person, item FROM answers)") == (
        4 * items,
    )


def rows_of(folder: Path, query: str) -> tuple[int, ...]:
    with opened(folder) as db:
        found: tuple[int, ...] = rows(db, query)[0]
        return found


def test_a_start_tells_what_to_do_and_a_taken_port_is_named(tmp_path: Path) -> None:
    folder = label_folder(tmp_path, 3)
    process, address, link = start(folder)
    try:
        assert address.startswith("http://127.0.0.1:")
        assert process.stdout is not None
        third = process.stdout.readline()
        assert "earwitness review links" in third
        assert f"--base-url {address}" in third
        response = httpx.get(link)
        assert response.status_code == 303
        assert response.headers["location"] == "/organiser"
        port = address.rsplit(":", 1)[1]
        second = subprocess.run(
            [sys.executable, "-m", "earwitness", "review", "serve", str(folder), "--port", port],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert second.returncode == 2
        assert "cannot be opened" in second.stderr
        assert "Traceback" not in second.stderr
        on_another = subprocess.run(
            [sys.executable, "-m", "earwitness", "review", "serve", str(folder), "--port", "0"],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert on_another.returncode == 2
        assert "another process serves this folder" in on_another.stderr
        # The organiser's link of the running server still works: the second start changed nothing.
        assert httpx.get(link).status_code == 303
    finally:
        process.send_signal(signal.SIGINT)
        end(process)
