"""Gemini's Files API: a clip too large to be sent along is uploaded first, named in the question, and deleted.

Documented form: Gemini API reference, "Files" (media.upload with the resumable protocol, files.get,
files.delete), as of November 2026: 2 GB a file, kept 48 hours, no charge. What goes wrong here is never
counted as paid.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from earwitness.errors import ModelError
from earwitness.models.chat_parts import unpaid
from earwitness.models.google_reply import google_error
from earwitness.models.http import Body, HttpAnswer, HttpCaller
from earwitness.models.openai_reply import bad_reply, json_object, text_or, to_json
from earwitness.models.patience import look_again_s, parse_retry_after

LOOK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Uploaded:
    """A file the service holds: ``name`` is ``files/...``, ``uri`` is what a question names."""

    name: str
    uri: str


@dataclass(frozen=True)
class Files:
    """Uploads for one model.

    Parameters
    ----------
    base_url: up to and with the version, such as ``https://generativelanguage.googleapis.com/v1beta``.
    headers: those that carry the key.
    wait_s: how long the service may take to make a file ready.
    """

    service: str
    base_url: str
    headers: Mapping[str, str] = field(repr=False)
    caller: HttpCaller
    wait_s: float
    hint: str = ""

    async def upload(
        self, data: bytes | Body, media_type: str, *, within_s: float | None = None
    ) -> Uploaded:
        """Send a file and wait until it can be used.

        Parameters
        ----------
        data: the file, or a body that reads it as it is sent.
        within_s: time for the sending, for large files.

        Raises
        ------
        ModelError: it was not taken, or did not become ready in time.
        """
        body = data if isinstance(data, Body) else Body(media_type, b"", data, as_base64=False)
        try:
            return await self._upload(body, media_type, within_s)
        except ModelError as error:
            raise unpaid(error) from None

    async def delete(self, name: str) -> bool:
        """Delete a file; False where that failed, and the service will do it after 48 hours."""
        try:
            answer = await self.caller.send("DELETE", self._address(name), self.headers)
        except ModelError:
            return False
        return 200 <= answer.status < 300

    async def _upload(self, body: Body, media_type: str, within_s: float | None) -> Uploaded:
        parts = urlsplit(self.base_url)
        start = f"{parts.scheme}://{parts.netloc}/upload{parts.path}/files"
        # A name of no meaning: what a clip is called stays here.
        about = to_json({"file": {"display_name": uuid.uuid4().hex}})
        answer = await self.caller.send(
            "POST",
            start,
            {
                **self.headers,
                "X-Goog-Upload-Protocol": "resumable",
                "X-Goog-Upload-Command": "start",
                "X-Goog-Upload-Header-Content-Length": str(body.length),
                "X-Goog-Upload-Header-Content-Type": media_type,
            },
            Body("application/json", about.encode()),
        )
        self._checked(answer)
        place = answer.headers.get("x-goog-upload-url", "")
        if urlsplit(place).scheme not in ("http", "https"):
            raise bad_reply(self.service, answer, "names no place to upload to", self.caller.redact)
        # The address is a permission in itself; the key does not go there.
        answer = await self.caller.send(
            "POST",
            place,
            {"X-Goog-Upload-Offset": "0", "X-Goog-Upload-Command": "upload, finalize"},
            body,
            within_s=within_s,
        )
        file = self._file(answer, wrapped=True)
        return await self._ready(answer, file)

    async def _ready(self, answer: HttpAnswer, file: dict[str, Any]) -> Uploaded:
        loop = asyncio.get_running_loop()
        give_up = loop.time() + self.wait_s
        name, uri = text_or(file.get("name")), text_or(file.get("uri"))
        if not name.startswith("files/") or not uri:
            raise bad_reply(self.service, answer, "names no uploaded file", self.caller.redact)
        while (state := text_or(file.get("state"))) == "PROCESSING":
            wait_s = look_again_s(parse_retry_after(answer.headers), LOOK_EVERY_S)
            if loop.time() + wait_s > give_up:
                raise ModelError(
                    f"{self.service}: the uploaded file was not ready after {self.wait_s:g} s",
                    kind="timeout",
                    retryable=True,
                )
            await asyncio.sleep(wait_s)
            answer, file = await self._looked(name, give_up)
        if state == "FAILED":
            said = self.caller.redact.excerpt(answer.text)
            raise ModelError(
                f"{self.service}: the service could not read the uploaded file: {said}",
                kind="bad_request",
                retryable=False,
            )
        return Uploaded(name, uri)

    async def _looked(self, name: str, give_up: float) -> tuple[HttpAnswer, dict[str, Any]]:
        """What the service says of a file. A look that fails in passing is followed by another: the file is there."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                answer = await self.caller.send("GET", self._address(name), self.headers)
                return answer, self._file(answer, wrapped=False)
            except ModelError as error:
                wait_s = look_again_s(error.retry_after_s, LOOK_EVERY_S)
                if not error.retryable or loop.time() + wait_s > give_up:
                    raise
            await asyncio.sleep(wait_s)

    def _file(self, answer: HttpAnswer, *, wrapped: bool) -> dict[str, Any]:
        self._checked(answer)
        body = json_object(self.service, answer, self.caller.redact)
        file = body.get("file") if wrapped else body
        if not isinstance(file, dict):
            raise bad_reply(self.service, answer, "holds no file", self.caller.redact)
        return file

    def _checked(self, answer: HttpAnswer) -> None:
        if not 200 <= answer.status < 300:
            raise google_error(self.service, answer, self.caller.redact, hint=self.hint)

    def _address(self, name: str) -> str:
        return f"{self.base_url}/{name}"
