"""A stand-in for the Freesound API: search with filters and pages, previews, originals, keys and quotas.

Speaks what freesound.org/docs/api documents of APIv2: ``/apiv2/search/`` with ``query``, ``filter``
(``license:(...)`` and ``duration:[a TO b]``), ``fields``, ``page``, ``page_size``; ``Authorization: Token`` or
``Bearer``; errors as ``{"detail": ...}``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np

from earwitness.audio import Audio, encode_audio
from tests.standins.loopback import Act, Call, LoopbackServer, json_act

KEY = "key-of-the-test"
TOKEN = "token-of-the-test"

LICENCES = {
    "Creative Commons 0": "http://creativecommons.org/publicdomain/zero/1.0/",
    "Attribution": "https://creativecommons.org/licenses/by/4.0/",
    "Attribution NonCommercial": "https://creativecommons.org/licenses/by-nc/4.0/",
}


@dataclass(frozen=True)
class Upload:
    """One sound on the service. ``words`` are what it is found by."""

    id: int
    words: str
    seconds: float
    licence: str = "Creative Commons 0"
    username: str = "somebody"
    pack: str | None = None


def sound_of(upload: Upload) -> bytes:
    """A file of its length: a tone of its own, so that no two are alike."""
    t = np.arange(round(upload.seconds * 22050)) / 22050
    rng = np.random.default_rng(upload.id)
    wave = 0.3 * np.sin(2 * np.pi * (200 + upload.id % 900) * t) + rng.normal(0, 0.05, len(t))
    return encode_audio(Audio(wave.astype(np.float32), 22050))


class FreesoundServer(LoopbackServer):
    """The service on the loopback interface."""

    prefix = "/apiv2"

    def __init__(
        self, uploads: list[Upload], *acts: Act, choose: Callable[[Call], Act | None] | None = None
    ) -> None:
        super().__init__(*acts, choose=choose)
        self.uploads = uploads

    def respond(self, call: Call) -> Act:
        address = urlsplit(call.path)
        if address.path.startswith("/data/previews/"):
            # Previews are public files on another host; a key there would be a leak.
            assert "authorization" not in call.headers or "127.0.0.1" in call.headers["host"]
            return self._file(int(re.findall(r"\d+", address.path)[-1]))
        given = call.headers.get("authorization", "")
        if given not in (f"Token {KEY}", f"Bearer {TOKEN}"):
            return json_act({"detail": "Invalid token."}, 401)
        if address.path == "/apiv2/search/":
            return self._search({k: v[0] for k, v in parse_qs(address.query).items()})
        if found := re.fullmatch(r"/apiv2/sounds/(\d+)/download/", address.path):
            if not given.startswith("Bearer"):
                return json_act({"detail": "Authentication credentials were not provided."}, 401)
            return self._file(int(found[1]))
        return json_act({"detail": "Not found."}, 404)

    def _file(self, identifier: int) -> Act:
        upload = next((u for u in self.uploads if u.id == identifier), None)
        if upload is None:
            return json_act({"detail": "Not found."}, 404)
        return Act(body=sound_of(upload), media_type="audio/wav")

    def _search(self, asked: dict[str, str]) -> Act:
        limit = re.search(r"duration:\[([\d.]+) TO ([\d.]+)\]", asked["filter"])
        assert limit is not None
        licences = re.findall(r'"([^"]+)"', asked["filter"].split("duration")[0])
        words = asked["query"].split()
        found = [
            upload
            for upload in self.uploads
            if all(word in upload.words.split() for word in words)
            and upload.licence in licences
            and float(limit[1]) <= upload.seconds <= float(limit[2])
        ]
        page, size = int(asked.get("page", "1")), int(asked["page_size"])
        part = found[(page - 1) * size : page * size]
        following = None
        if page * size < len(found):
            following = f"{self.url}/search/?{urlencode({**asked, 'page': page + 1})}"
        results = [self._result(upload, asked["fields"].split(",")) for upload in part]
        return json_act(
            {"count": len(found), "next": following, "previous": None, "results": results}
        )

    def _result(self, upload: Upload, fields: list[str]) -> dict[str, Any]:
        host = self.url.removesuffix(self.prefix)
        whole = {
            "id": upload.id, "name": f"{upload.words} {upload.id}", "username": upload.username,
            "license": LICENCES[upload.licence], "duration": upload.seconds, "type": "wav",
            "previews": {
                "preview-hq-ogg": f"{host}/data/previews/0/{upload.id}-hq.ogg",
                "preview-hq-mp3": f"{host}/data/previews/0/{upload.id}-hq.mp3",
            },
            "url": f"https://freesound.org/people/{upload.username}/sounds/{upload.id}/",
            "md5": f"{upload.id:032x}", "pack": upload.pack,
        }  # fmt: skip
        return {name: whole[name] for name in fields}
