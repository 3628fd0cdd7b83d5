"""A local stand-in of the data set hub that speaks the protocol its real client uses.

Written from what ``huggingface_hub`` sends and expects: revision look-up, paged tree listing with ``Link``
headers, ``HEAD`` and ``GET`` on ``resolve`` with ``ETag`` and ``X-Repo-Commit``, large files redirected to
a storage host of another name with ``X-Linked-Etag`` and ``X-Linked-Size``, byte ranges there, and
errors by ``X-Error-Code``.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

PAGE = 3
"""Entries a page of the tree listing: small, so that paging is always exercised."""


@dataclass
class Seen:
    """One request as the stand-in saw it."""

    method: str
    host: str
    path: str
    range: str | None
    authorized: bool


@dataclass
class Hub:
    """One data set at one commit. ``large`` names files that live on the storage host."""

    repository: str
    commit: str
    files: dict[str, bytes]
    large: frozenset[str] = frozenset()
    branches: tuple[str, ...] = ("main",)
    cut_once: set[str] = field(default_factory=set)
    """Large files whose first download is cut 1,000 bytes before its end."""
    gated: bool = False
    seen: list[Seen] = field(default_factory=list)
    endpoint: str = ""
    storage: str = ""

    def of(self, method: str, part: str) -> list[Seen]:
        """Requests of a method whose path has a part."""
        return [s for s in self.seen if s.method == method and part in s.path]


def _blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub
    is_storage = False

    def log_message(self, *args: object) -> None:
        """Say nothing: a test's output is its own."""

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _send(
        self, status: int, headers: Mapping[str, str], data: bytes = b"", *, body: bool = True
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def _error(self, status: int, code: str, message: str) -> None:
        data = json.dumps({"error": message}).encode()
        headers = {
            "X-Error-Code": code,
            "X-Error-Message": message,
            "Content-Type": "application/json",
        }
        self._send(status, headers, data, body=self.command != "HEAD")

    def _json(self, value: object, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self._send(200, {"Content-Type": "application/json", **(headers or {})}, data)

    def _answer(self, *, body: bool) -> None:
        url = urlsplit(self.path)
        path = unquote(url.path)
        self.hub.seen.append(
            Seen(
                self.command,
                self.headers.get("Host", ""),
                path,
                self.headers.get("Range"),
                "Authorization" in self.headers,
            )
        )
        if self.is_storage:
            self._storage(path, body)
        elif path.startswith("/api/datasets/"):
            self._api(path.removeprefix("/api/datasets/"), parse_qs(url.query))
        elif path.startswith("/datasets/"):
            self._resolve(path.removeprefix("/datasets/"), body)
        elif "/resolve/" in path:  # a repository of a model has no prefix
            self._resolve(path.removeprefix("/"), body)
        else:
            self._error(404, "EntryNotFound", "Not found")

    def _known(self, repository: str, revision: str) -> bool:
        if repository != self.hub.repository:
            # The hub does not tell strangers whether a repository exists.
            self._error(401, "RepoNotFound", "Repository not found")
            return False
        if self.hub.gated:
            self._error(403, "GatedRepo", "Access to dataset is restricted")
            return False
        if revision not in (self.hub.commit, *self.hub.branches):
            self._error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            return False
        return True

    def _api(self, rest: str, query: Mapping[str, list[str]]) -> None:
        owner, name, what, revision = (*rest.split("/", 3), "", "")[:4]
        if not self._known(f"{owner}/{name}", revision):
            return
        if what == "revision":
            self._json(
                {
                    "id": self.hub.repository,
                    "sha": self.hub.commit,
                    "private": False,
                    "gated": False,
                    "tags": [],
                    "siblings": [{"rfilename": path} for path in sorted(self.hub.files)],
                }
            )
        elif what == "tree":
            self._tree(int(query.get("cursor", ["0"])[0]))
        else:
            self._error(404, "EntryNotFound", "Not found")

    def _tree(self, start: int) -> None:
        folders = sorted({p.rsplit("/", 1)[0] for p in self.hub.files if "/" in p})
        entries: list[dict[str, object]] = [
            {"type": "directory", "oid": _blob_id(f.encode()), "size": 0, "path": f}
            for f in folders
        ]
        for path, data in sorted(self.hub.files.items()):
            entry: dict[str, object] = {"type": "file", "path": path, "size": len(data)}
            entry["oid"] = _blob_id(data)
            if path in self.hub.large:
                sha256 = hashlib.sha256(data).hexdigest()
                entry["lfs"] = {"oid": sha256, "size": len(data), "pointerSize": 131}
            entries.append(entry)
        headers = {}
        if start + PAGE < len(entries):
            base = f"{self.hub.endpoint}/api/datasets/{self.hub.repository}/tree/{self.hub.commit}"
            headers["Link"] = f'<{base}?recursive=true&cursor={start + PAGE}>; rel="next"'
        self._json(entries[start : start + PAGE], headers)

    def _resolve(self, rest: str, body: bool) -> None:
        owner, name, verb, revision, path = (*rest.split("/", 4), "", "", "")[:5]
        if verb != "resolve" or not self._known(f"{owner}/{name}", revision):
            return
        data = self.hub.files.get(path)
        if data is None:
            self._error(404, "EntryNotFound", "Entry not found")
            return
        headers = {"X-Repo-Commit": self.hub.commit, "Accept-Ranges": "bytes"}
        if path in self.hub.large:
            sha256 = hashlib.sha256(data).hexdigest()
            headers |= {
                "Location": f"{self.hub.storage}/{sha256}?signed=1",
                "X-Linked-Etag": f'"{sha256}"',
                "X-Linked-Size": str(len(data)),
            }
            self._send(302, headers, b"", body=body)
            return
        headers["ETag"] = f'"{_blob_id(data)}"'
        self._send(200, headers, data, body=body)

    def _storage(self, path: str, body: bool) -> None:
        by_hash = {
            hashlib.sha256(data).hexdigest(): (name, data) for name, data in self.hub.files.items()
        }
        name, data = by_hash.get(path.strip("/"), ("", b""))
        if not name:
            self._send(403, {}, b"AccessDenied", body=body)
            return
        asked = self.headers.get("Range")
        if asked:
            start = int(asked.removeprefix("bytes=").split("-")[0])
            part = data[start:]
            headers = {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
            self._send(206, headers, part, body=body)
            return
        if name in self.hub.cut_once and body:
            self.hub.cut_once.discard(name)
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[:-1000])
            self.wfile.flush()
            self.close_connection = True
            return
        self._send(200, {"ETag": f'"{path.strip("/")}"'}, data, body=body)


@contextmanager
def serve(hub: Hub) -> Iterator[Hub]:
    """Serve a hub at ``hub.endpoint`` until the block ends; the storage host goes by another name."""
    front = ThreadingHTTPServer(("127.0.0.1", 0), type("Front", (_Handler,), {"hub": hub}))
    storage = ThreadingHTTPServer(
        ("127.0.0.1", 0), type("Storage", (_Handler,), {"hub": hub, "is_storage": True})
    )
    hub.endpoint = f"http://127.0.0.1:{front.server_port}"
    hub.storage = f"http://localhost:{storage.server_port}"
    threads = [
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        for server in (front, storage)
    ]
    for thread in threads:
        thread.start()
    try:
        yield hub
    finally:
        for server in (front, storage):
            server.shutdown()
            server.server_close()
        for thread in threads:
            thread.join()
