"""Review folders made on the spot, and a real server on loopback to talk to."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from earwitness.audio import Audio, encode_audio
from earwitness.clips.corpus import EMOTIONS, Clip, SetCard, write_clip_set
from earwitness.review import people, sources
from earwitness.review.store import new_organiser, opened
from tests.scenes.voices_corpus import make_corpus


def tone(seconds: float = 0.6, hz: float = 220.0, level: float = 0.3, rate: int = 16_000) -> Audio:
    """A voice-like tone."""
    time_s = np.arange(round(seconds * rate)) / rate
    return Audio((level * np.sin(2 * np.pi * hz * time_s)).astype(np.float32), rate)


def wav(seconds: float = 0.6, **options: Any) -> bytes:
    """A recording as a browser sends it."""
    return encode_audio(tone(seconds, **options))


def clip_set(folder: Path, clips: int = 14) -> Path:
    """Short clips of the seven emotions, with ids that tell the emotion, by four speakers."""
    import hashlib

    (folder / "audio").mkdir(parents=True)
    rows = []
    for number in range(clips):
        emotion = EMOTIONS[number % 7]
        data = wav(0.4, hz=150 + 7 * number)
        path = f"audio/{emotion}-{number:03d}.wav"
        (folder / path).write_bytes(data)
        rows.append(
            Clip(
                id=f"{emotion}-{number:03d}", path=path, sha256=hashlib.sha256(data).hexdigest(), emotion=emotion,
                speaker=f"sp{number % 4}", language="en", seconds=0.4, rate=16_000, channels=1, source_label=emotion,
                licence="CC0 1.0", metadata={"text": f"The train leaves at {number}."},
            )
        )  # fmt: skip
    card = SetCard(name="tones", version="1", licence="CC0 1.0", use="any", synthetic=True)
    write_clip_set(folder, card, rows)
    return folder


def scene_corpus(folder: Path, scenes: int = 8) -> Path:
    """A corpus of written scenes, not mixed."""
    shutil.copytree(Path(_planned(scenes).name) / "corpus", folder)
    return folder


@cache
def _planned(scenes: int) -> tempfile.TemporaryDirectory[str]:
    """Planning takes most of the time of many small tests: it is done once for each size."""
    kept = tempfile.TemporaryDirectory()
    make_corpus(Path(kept.name) / "corpus", templates=scenes, per_template=1)
    atexit.register(kept.cleanup)
    return kept


def assignments(folder: Path, accounts: int = 2, scripts: int = 3) -> Path:
    """What ``earwitness clips assign`` writes."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "assignments.jsonl"
    lines = [
        {
            "account": f"spk-{account:02d}",
            "script_id": f"s{script:03d}",
            "text": f"I will be there at {script}.",
            "emotion": EMOTIONS[(account + script) % 7],
        }
        for account in range(1, accounts + 1)
        for script in range(1, scripts + 1)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def label_folder(folder: Path, scenes: int = 8, **options: Any) -> Path:
    corpus = scene_corpus(folder / "corpus", scenes)
    sources.create_label(corpus, folder / "work", **options)
    return folder / "work"


def review_folder(folder: Path, clips: int = 14, **options: Any) -> Path:
    clip_set(folder / "set", clips)
    sources.create_review(folder / "set", folder / "work", **options)
    return folder / "work"


def record_folder(folder: Path, **options: Any) -> Path:
    path = assignments(folder / "scripts", **options)
    sources.create_record(path, folder / "work")
    return folder / "work"


def always(label: str) -> Callable[[str], str]:
    """Somebody who gives every question the same answer."""
    return lambda _: label


class _Page(HTMLParser):
    """The bits of a page that a client needs."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.csrf = ""
        self.action = ""
        self.names: dict[str, list[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "input" and given.get("name") == "csrf":
            self.csrf = given["value"]
        if tag == "meta" and given.get("name") == "csrf":
            self.csrf = given["content"]
        if tag == "form" and given.get("id") == "task":
            self.action = given["action"]
        if tag == "input" and given.get("type") == "radio":
            self.names.setdefault(given["name"], []).append(given["value"])


@dataclass
class Visitor:
    """Somebody's browser, without the scripts."""

    client: httpx.Client
    csrf: str = ""

    def page(self, path: str) -> tuple[httpx.Response, _Page]:
        response = self.client.get(path, follow_redirects=True)
        page = _Page(response.text)
        self.csrf = page.csrf or self.csrf
        return response, page

    def post(self, path: str, **fields: Any) -> httpx.Response:
        """An answer as the page's script sends it."""
        return self.client.post(
            path, json=fields, headers={"x-csrf": self.csrf, "accept": "application/json"}
        )

    def answer_label(self, choose: Callable[[str], str]) -> bool:
        """Answer the next scene; False when there is none. ``choose`` gets the name of a question."""
        _, page = self.page("/work/next")
        if not page.action:
            return False
        labels = {name.removeprefix("label."): choose(name) for name in page.names}
        assert self.post(page.action, labels=labels).status_code == 200
        return True


@dataclass
class Site:
    """A served folder."""

    folder: Path
    address: str
    clients: list[httpx.Client] = field(default_factory=list)

    def visitor(self, token: str = "", role: str = "a") -> Visitor:
        client = httpx.Client(base_url=self.address, timeout=10, verify=False)
        self.clients.append(client)
        visitor = Visitor(client)
        if token:
            response = client.get(f"/{role}/{token}")
            assert response.status_code == 303, response.text
        return visitor

    def organiser(self) -> Visitor:
        with opened(self.folder) as db:
            token = new_organiser(db)
        return self.visitor(token, "o")

    def annotators(self, number: int) -> dict[str, Visitor]:
        tokens = people.add_people(self.folder, number)
        return {name: self.visitor(token) for name, token in tokens.items()}


@contextmanager
def served(folder: Path) -> Iterator[Site]:
    """The app of a folder under a real uvicorn in a thread."""
    import uvicorn

    from earwitness.review.app import build_app
    from earwitness.review.serve import _listen

    listener = _listen("127.0.0.1", 0)
    config = uvicorn.Config(
        build_app(folder), log_level="warning", access_log=False, ws="none", server_header=False
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    until = time.monotonic() + 10
    while not server.started and time.monotonic() < until:
        time.sleep(0.005)
    site = Site(folder, f"http://127.0.0.1:{listener.getsockname()[1]}")
    try:
        yield site
    finally:
        for client in site.clients:
            client.close()
        server.should_exit = True
        thread.join(10)
        listener.close()
