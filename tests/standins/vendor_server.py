"""A stand-in for vendors' own APIs: a form, JSON with base64, a raw body, and a job that takes a while."""

from __future__ import annotations

import base64
import binascii
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import soundfile

from tests.standins.listening import Heard, emotion_of, listen
from tests.standins.loopback import Act, Call, LoopbackServer, error, json_act

NATIVE = {
    "anger": "Anger", "disgust": "Disgust", "fear": "Anxiety", "happiness": "Joy",
    "neutral": "Calmness", "sadness": "Sadness", "surprise": "Surprise (positive)",
}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """One part of a form."""

    name: str
    filename: str | None
    media_type: str | None
    data: bytes


def parse_form(content_type: str, body: bytes) -> list[Part]:
    """Parts of a ``multipart/form-data`` body, strictly by RFC 2046 and RFC 7578.

    Raises
    ------
    ValueError: it is not well formed.
    """
    found = re.fullmatch(r'multipart/form-data;\s*boundary="?([^";]+)"?', content_type)
    if found is None:
        raise ValueError(f"not a form: {content_type!r}")
    boundary = b"--" + found[1].encode()
    if not body.startswith(boundary + b"\r\n") or not body.endswith(b"\r\n" + boundary + b"--\r\n"):
        raise ValueError("the form does not begin and end with its boundary")
    inner = body[len(boundary) + 2 : -len(boundary) - 6]
    parts = []
    for piece in inner.split(b"\r\n" + boundary + b"\r\n"):
        head, gap, data = piece.partition(b"\r\n\r\n")
        if not gap:
            raise ValueError("a part without an empty line after its headers")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head.decode().split("\r\n"))
        }
        disposition = headers["content-disposition"]
        name = re.search(r'[; ]name="([^"]*)"', disposition)
        filename = re.search(r'filename="([^"]*)"', disposition)
        if not disposition.startswith("form-data") or name is None:
            raise ValueError(f"a part without a name: {disposition!r}")
        parts.append(
            Part(name[1], filename[1] if filename else None, headers.get("content-type"), data)
        )
    return parts


class VendorServer(LoopbackServer):
    """Demands ``X-Api-Key`` (or a bearer token) if ``key`` is set; jobs are done after ``polls`` looks."""

    def __init__(
        self,
        *acts: Act,
        key: str | None = None,
        polls: int = 2,
        job_end: str = "done",
        choose: Callable[[Call], Act | None] | None = None,
    ) -> None:
        super().__init__(*acts, choose=choose)
        self.key = key
        self.polls = polls
        self.job_end = job_end
        self.heard: list[Heard] = []
        self.fields: list[dict[str, Any]] = []
        self._jobs: dict[str, list[Any]] = {}
        self._ids = itertools.count(1)

    def respond(self, call: Call) -> Act:
        given = call.headers.get("x-api-key") or call.headers.get("authorization", "")
        if self.key is not None and given.removeprefix("Bearer ") != self.key:
            return json_act({"detail": f"invalid key {given}"}, 401)
        path = call.path.partition("?")[0]
        try:
            if call.method == "GET":
                return self._look(path)
            data, fields = self._audio(call, path)
            heard = listen(data)
        except (ValueError, KeyError, binascii.Error, soundfile.LibsndfileError) as problem:
            return json_act({"detail": f"bad request: {problem}"}, 422)
        self.heard.append(heard)
        self.fields.append(fields)
        if path == "/v1/jobs":
            name = f"job/{next(self._ids)}"
            self._jobs[name] = [0, heard]
            return json_act({"job": {"id": name}, "state": "queued"}, 202)
        return json_act(self._result(path, heard))

    def _audio(self, call: Call, path: str) -> tuple[bytes, dict[str, Any]]:
        kind = call.headers.get("content-type", "")
        if path in ("/v1/emotion", "/v1/scores"):
            parts = parse_form(kind, call.body)
            files = [part for part in parts if part.filename is not None]
            if len(files) != 1 or files[0].name != "file":
                raise ValueError("wanted one part named file")
            if not (files[0].media_type or "").startswith("audio/"):
                raise ValueError(f"the file is {files[0].media_type}")
            return files[0].data, {
                part.name: part.data.decode() for part in parts if part.filename is None
            }
        if path in ("/v1/json", "/v1/jobs"):
            body = json.loads(call.body)
            coded = body["input"]["audio"]["data"]
            body["input"]["audio"]["data"] = None
            return base64.b64decode(coded.rpartition(",")[2], validate=True), body
        if path == "/v1/raw":
            if not kind.startswith("audio/"):
                raise ValueError(f"a raw body of {kind}")
            return call.body, {}
        raise KeyError(f"no route {path}")

    def _result(self, path: str, heard: Heard) -> dict[str, Any]:
        label = NATIVE[emotion_of(heard)]
        if path == "/v1/emotion":
            return {"emotion": {"label": label, "confidence": 0.8}, "request_id": "req-1"}
        others = [name for name in NATIVE.values() if name != label][:2]
        scores = {label: 0.7, others[0]: 0.2, others[1]: 0.1}
        if path in ("/v1/scores", "/v1/raw"):
            return {"scores": scores, "model": "prosody-3", "request_id": "req-2"}
        half = heard.seconds / 4
        return {
            "windows": [
                {"start": 0.0, "end": half, "expressions": _pairs({label: 0.4, others[0]: 0.6})},
                {"start": half, "end": heard.seconds, "expressions": _pairs({label: 0.8})},
            ]
        }

    def _look(self, path: str) -> Act:
        name, _, result = path.removeprefix("/v1/jobs/").replace("%2F", "/").partition("/result")
        if name not in self._jobs:
            return error(404, f"no job {name}")
        job = self._jobs[name]
        job[0] += 1
        if job[0] < self.polls:
            return json_act({"state": "running"})
        if self.job_end != "done":
            return json_act({"state": self.job_end, "error": {"message": "the model crashed"}})
        del result
        return json_act({"state": "done", "result": self._result("windows", job[1])})


def _pairs(scores: dict[str, float]) -> list[dict[str, Any]]:
    return [{"name": name, "probability": score} for name, score in scores.items()]
