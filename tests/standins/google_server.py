"""A stand-in for the Gemini API: ``generateContent`` and the Files API, strict about what it is sent."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import soundfile

from tests.standins.listening import Heard, answer, listen
from tests.standins.loopback import Act, Call, LoopbackServer, json_act

MEDIA_TYPES = {
    "audio/wav": "wav", "audio/flac": "flac", "audio/mp3": "mp3", "audio/ogg": "ogg",
    "audio/aiff": "aiff",
}  # fmt: skip
FIELDS = {"contents", "systemInstruction", "generationConfig", "safetySettings", "cachedContent"}


def google_error(
    status: int,
    message: str = "no",
    word: str = "",
    details: list[Any] | None = None,
    **headers: str,
) -> Act:
    """An error in the form Google gives it."""
    inner: dict[str, Any] = {"code": status, "message": message, "status": word or "UNKNOWN"}
    if details:
        inner["details"] = details
    return json_act({"error": inner}, status, **headers)


def retry_info(delay: str) -> dict[str, str]:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}


def quota_failure(quota: str) -> dict[str, Any]:
    kind = "type.googleapis.com/google.rpc.QuotaFailure"
    return {"@type": kind, "violations": [{"quotaId": quota}]}


def generated(
    *parts: Any, finish: str | None = "STOP", usage: dict[str, Any] | None = None, **candidate: Any
) -> dict[str, Any]:
    """A body of ``generateContent``; a part may be a text."""
    made = [{"text": part} if isinstance(part, str) else part for part in parts]
    inner: dict[str, Any] = {"index": 0, **candidate}
    if made:
        inner["content"] = {"parts": made, "role": "model"}
    if finish is not None:
        inner["finishReason"] = finish
    return {
        "candidates": [inner],
        "usageMetadata": usage or {"promptTokenCount": 0, "totalTokenCount": 0},
        "modelVersion": "stand-in-2026-11",
        "responseId": "response-1",
    }


@dataclass(frozen=True)
class Asked:
    """What one valid question asked."""

    model: str
    system: str | None
    prompt: str
    audio: Heard | None
    inline: bool
    body: dict[str, Any]


class _Invalid(Exception):  # noqa: N818
    def __init__(self, message: str, status: int = 400, word: str = "INVALID_ARGUMENT") -> None:
        super().__init__(message)
        self.act = google_error(status, message, word)


class GoogleServer(LoopbackServer):
    """Speaks ``/v1beta``. ``key`` set: demands it. ``looks``: how often a file is still being processed."""

    prefix = "/v1beta"

    def __init__(
        self,
        *acts: Act,
        character: str = "neutral",
        key: str | None = None,
        looks: int = 0,
        file_fails: bool = False,
        choose: Callable[[Call], Act | None] | None = None,
    ) -> None:
        super().__init__(*acts, choose=choose)
        self.character, self.key, self.looks, self.file_fails = character, key, looks, file_fails
        self.asked: list[Asked] = []
        self.files: dict[str, tuple[str, bytes]] = {}
        self.promised: dict[str, tuple[str, int]] = {}

    def respond(self, call: Call) -> Act:
        try:
            if call.path.startswith("/put/"):
                return self._put(call)
            self._check_key(call)
            if call.path == "/upload/v1beta/files" and call.method == "POST":
                return self._promise(call)
            if call.path.startswith("/v1beta/files/"):
                return self._look(call)
            return self._generate(call)
        except _Invalid as problem:
            return problem.act

    def _check_key(self, call: Call) -> None:
        given = call.headers.get("x-goog-api-key", "")
        if self.key is not None and given != self.key:
            raise _Invalid(f"API key not valid. Please pass a valid API key. ({given})")

    def _generate(self, call: Call) -> Act:
        place, _, verb = call.path.removeprefix("/v1beta/models/").rpartition(":")
        if call.method != "POST" or verb != "generateContent" or not place:
            raise _Invalid(f"Not found: {call.path}", 404, "NOT_FOUND")
        try:
            body = json.loads(call.body)
        except ValueError:
            raise _Invalid("Invalid JSON payload received.") from None
        return self.answer(place, body)

    def answer(self, place: str, body: dict[str, Any]) -> Act:
        """What a model says to a body of ``generateContent``."""
        for name in set(body) - FIELDS:
            raise _Invalid(f'Invalid JSON payload received. Unknown name "{name}"')
        [turn] = body["contents"][-1:]
        if turn["role"] != "user":
            raise _Invalid("the last turn must be the user's")
        prompt, audio, inline = "", None, False
        for part in turn["parts"]:
            if "text" in part:
                prompt += part["text"]
            elif "inlineData" in part:
                inline = True
                audio = self._audio(part["inlineData"]["mimeType"], part["inlineData"]["data"])
            elif "fileData" in part:
                name = part["fileData"]["fileUri"].partition("/v1beta/")[2]
                if name not in self.files:
                    raise _Invalid(
                        "You do not have permission to access the File", 403, "PERMISSION_DENIED"
                    )
                audio = listen(self.files[name][1])
            else:
                raise _Invalid("a part without data")
        system = body.get("systemInstruction")
        said = system["parts"][0]["text"] if system else None
        asked = Asked(place, said, prompt, audio, inline, body)
        self.asked.append(asked)
        text = answer(self.character, audio, prompt)
        tokens = round(audio.seconds * 32) if audio else 0
        words = len(prompt.split())
        details = [{"modality": "TEXT", "tokenCount": words}]
        details += [{"modality": "AUDIO", "tokenCount": tokens}] if audio else []
        return json_act(
            generated(
                text,
                usage={
                    "promptTokenCount": words + tokens,
                    "candidatesTokenCount": 2,
                    "thoughtsTokenCount": 5,
                    "totalTokenCount": words + tokens + 7,
                    "promptTokensDetails": details,
                },
            )
        )

    def _audio(self, media_type: str, coded: str) -> Heard:
        if media_type not in MEDIA_TYPES:
            raise _Invalid(f"Unsupported MIME type: {media_type}")
        try:
            return listen(base64.b64decode(coded, validate=True))
        except (binascii.Error, soundfile.LibsndfileError):
            raise _Invalid("Base64 decoding failed or no audio") from None

    def _promise(self, call: Call) -> Act:
        headers = call.headers
        if (
            headers.get("x-goog-upload-protocol") != "resumable"
            or headers.get("x-goog-upload-command") != "start"
        ):
            raise _Invalid("unknown upload protocol")
        ticket = f"ticket-{len(self.promised)}"
        self.promised[ticket] = (
            headers["x-goog-upload-header-content-type"],
            int(headers["x-goog-upload-header-content-length"]),
        )
        root = self.url.removesuffix(self.prefix)
        return json_act(
            {}, **{"X-Goog-Upload-URL": f"{root}/put/{ticket}", "X-Goog-Upload-Status": "active"}
        )

    def _put(self, call: Call) -> Act:
        media_type, length = self.promised.pop(call.path.removeprefix("/put/"))
        if (
            call.headers.get("x-goog-upload-command") != "upload, finalize"
            or len(call.body) != length
        ):
            raise _Invalid("upload incomplete")
        name = f"files/f{len(self.files)}"
        self.files[name] = (media_type, call.body)
        return json_act({"file": self._record(name)})

    def _look(self, call: Call) -> Act:
        name = call.path.removeprefix("/v1beta/")
        if name not in self.files:
            raise _Invalid("not found", 404, "NOT_FOUND")
        if call.method == "DELETE":
            del self.files[name]
            return json_act({})
        self.looks -= 1
        return json_act(self._record(name))

    def _record(self, name: str) -> dict[str, Any]:
        state = "PROCESSING" if self.looks > 0 else "FAILED" if self.file_fails else "ACTIVE"
        return {
            "name": name,
            "uri": f"{self.url}/{name}",
            "state": state,
            "mimeType": self.files[name][0],
        }
