"""Gemini's Batch API: jobs of ``generateContent`` requests in a JSON lines file.

Documented form: Gemini API reference, "Batch API" (models.batchGenerateContent, batches.get, list, cancel;
GenerateContentBatch, BatchStats, InlinedResponse), and guide "Batch API", as of November 2026: half the price, within 24
hours as a rule, expired after 48; an input file of at most 2 GB by the Files API, whose lines are ``{"key": ..., "request":
...}``; results as a file in which every line holds the key with a response or a status. The guide says that other
modalities may be sent; users report audio jobs that stay pending for hours (google-gemini/cookbook issue 1235, May 2026).
"Rate limits" (2026): 100 jobs under way, 20 GB of files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from earwitness.errors import ModelError
from earwitness.models.batching import (
    BatchLimits,
    Job,
    JobState,
    Line,
    Result,
    answer_of,
    sending_s,
    too_many_jobs,
)
from earwitness.models.chat_parts import with_stimulus
from earwitness.models.google_reply import google_error
from earwitness.models.http import Body, FileBody, HttpAnswer, HttpCaller
from earwitness.models.openai_reply import bad_reply, dicts_in, json_object, text_or, to_json
from earwitness.models.protocols import Reply, Request

if TYPE_CHECKING:
    from earwitness.models.google_chat import GoogleChat

LIMITS = BatchLimits(max_requests=10_000, max_bytes=1_000_000_000, max_jobs=100)
"""Half of the documented 2 GB, so that a broken upload costs less; a number of requests is not documented."""
MEDIA_TYPE = "application/jsonl"
_PAGE = 100
_PAGES = 200
_STATES: Mapping[str, JobState] = {
    "PENDING": "queued",
    "UNSPECIFIED": "queued",
    "RUNNING": "running",
    "SUCCEEDED": "succeeded",
    "PARTIALLY_SUCCEEDED": "succeeded",
    "FAILED": "failed",
    "EXPIRED": "expired",
    "CANCELLED": "cancelled",
}
_HTTP_OF_CODE = {
    1: 499, 2: 500, 3: 400, 4: 504, 5: 404, 6: 409, 7: 403, 8: 429, 9: 400, 10: 409, 11: 400, 12: 501,
    13: 500, 14: 503, 15: 500, 16: 401,
}  # fmt: skip
"""google.rpc.Code as its definition (google/rpc/code.proto) maps it to HTTP."""
_CANCELLED = 1


@dataclass(frozen=True)
class GoogleBatches:
    """Batches of one Gemini model."""

    chat: GoogleChat
    caller: HttpCaller
    base_url: str
    model: str
    hint: str = ""
    limits: BatchLimits = LIMITS

    async def line(self, request: Request, key: str) -> Line:
        """A question as ``{"key": ..., "request": ...}``, its clip in it or uploaded as for a single call."""
        question = await self.chat.question(request)
        uploads = () if question.file is None else (question.file.name,)
        noted = with_stimulus(
            Reply(), question.payload, **({"uploaded": True} if uploads else {})
        ).raw.get("stimulus")
        before = f'{{"key":{json.dumps(key)},"request":'.encode()
        return Line(before, question.body, b"}\n", noted, uploads)

    async def upload(self, file: IO[bytes], size: int) -> str:
        """Send the input file by the Files API and wait until it can be used."""
        body = FileBody(MEDIA_TYPE, b"", file, size)
        within_s = sending_s(size, self.caller.timeout_s)
        return (await self.chat.files().upload(body, MEDIA_TYPE, within_s=within_s)).name

    async def create(self, name: str, source: str) -> Job:
        """Make a job of a file."""
        batch = {"batch": {"displayName": name, "inputConfig": {"fileName": source}}}
        url = f"{self.base_url}/models/{self.model}:batchGenerateContent"
        body = Body("application/json", to_json(batch).encode())
        return self._job(await self._send("POST", url, body))

    async def find(self, name: str) -> Job | None:
        """The job whose display name is ``name``, among all there are."""
        token = ""
        for _ in range(_PAGES):
            url = f"{self.base_url}/batches?pageSize={_PAGE}"
            if token:
                url += f"&pageToken={quote(token, safe='')}"
            answer = await self._send("GET", url)
            body = json_object(self.chat.name, answer, self.caller.redact)
            for operation in dicts_in(body.get("operations")):
                if _display_name(operation) == name:
                    return self._read(answer, operation)
            token = text_or(body.get("nextPageToken"))
            if not token:
                return None
        raise too_many_jobs(self.chat.name, _PAGES)

    async def look(self, job_id: str) -> Job:
        """The state of a job, with its results where they come along."""
        return self._job(await self._send("GET", f"{self.base_url}/{job_id}"))

    async def cancel(self, job_id: str) -> None:
        """Ask for a job's end."""
        try:
            await self._send(
                "POST", f"{self.base_url}/{job_id}:cancel", Body("application/json", b"{}")
            )
        except ModelError as error:
            # What has ended cannot be cancelled; the next look tells how it ended.
            if error.status not in (400, 409):
                raise

    async def fetch(self, output: str, sink: IO[bytes]) -> None:
        """Append a file of results."""
        parts = urlsplit(self.base_url)
        url = f"{parts.scheme}://{parts.netloc}/download{parts.path}/{output}:download?alt=media"
        within_s = sending_s(self.limits.max_bytes, self.caller.timeout_s)
        await self._send("GET", url, sink=sink, within_s=within_s)

    def result(self, line: Mapping[str, Any]) -> Result | None:
        """A response, or the status in its place, with the key of its request."""
        metadata = line.get("metadata")
        key = text_or(line.get("key")) or (
            text_or(metadata.get("key")) if isinstance(metadata, dict) else ""
        )
        if not key:
            return None
        error, response = line.get("error"), line.get("response")
        try:
            if not isinstance(response, dict) and isinstance(error, dict):
                raise self._status(error)
            return Result(key, self.chat.read(answer_of(200, response if response else {})))
        except ModelError as problem:
            return Result(key, error=problem)

    async def clean(self, source: str, uploads: Sequence[str]) -> None:
        """Delete the input file and the uploaded clips; what is left the service deletes after 48 hours."""
        for name in (source, *uploads):
            if name:
                await self.chat.forget(name)

    def _status(self, status: Mapping[str, Any]) -> ModelError:
        """A ``google.rpc.Status`` as the error it would have been as an answer."""
        code = status.get("code")
        number = code if isinstance(code, int) and not isinstance(code, bool) else 2
        http = number if 400 <= number <= 599 else _HTTP_OF_CODE.get(number, 500)
        answer = answer_of(http, {"error": {**status, "code": http}})
        error = google_error(self.chat.name, answer, self.caller.redact, hint=self.hint)
        if number == _CANCELLED:
            error.kind, error.retryable, error.maybe_paid = "cancelled", True, False
        return error

    async def _send(
        self,
        method: str,
        url: str,
        body: Body | None = None,
        *,
        sink: IO[bytes] | None = None,
        within_s: float | None = None,
    ) -> HttpAnswer:
        answer = await self.caller.send(
            method, url, self.chat.headers(), body, sink=sink, within_s=within_s
        )
        if not 200 <= answer.status < 300:
            raise google_error(self.chat.name, answer, self.caller.redact, hint=self.hint)
        return answer

    def _job(self, answer: HttpAnswer) -> Job:
        return self._read(answer, json_object(self.chat.name, answer, self.caller.redact))

    def _read(self, answer: HttpAnswer, operation: Mapping[str, Any]) -> Job:
        name = text_or(operation.get("name"))
        if not name.startswith("batches/"):
            raise bad_reply(self.chat.name, answer, "names no batch job", self.caller.redact)
        metadata = _dict(operation.get("metadata"))
        raw = text_or(metadata.get("state"))
        word = raw.removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
        error, done = _dict(operation.get("error")), operation.get("done") is True
        # A state of a later version is one that goes on, unless the operation says that it is over.
        ended: JobState = "failed" if error else "succeeded"
        state = _STATES.get(word, ended if done else "running")
        if error.get("code") == _CANCELLED and state == "failed":
            state = "cancelled"
        stats = _dict(metadata.get("batchStats"))
        output = _dict(operation.get("response")) or _dict(metadata.get("output"))
        file = text_or(output.get("responsesFile")) or text_or(
            _dict(metadata.get("output")).get("responsesFile")
        )
        inlined = output.get("inlinedResponses")
        if isinstance(inlined, dict):
            inlined = inlined.get("inlinedResponses")
        return Job(
            id=name,
            name=_display_name(operation),
            state=state,
            state_raw=self.caller.redact(raw),
            total=_count(stats.get("requestCount")),
            succeeded=_count(stats.get("successfulRequestCount")),
            failed=_count(stats.get("failedRequestCount")),
            message=self.caller.redact.excerpt(text_or(error.get("message"))),
            outputs=(file,) if file else (),
            inlined=tuple(dicts_in(inlined)),
        )


def _display_name(operation: Mapping[str, Any]) -> str:
    return text_or(_dict(operation.get("metadata")).get("displayName"))


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int | None:
    """An int64, which JSON carries as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:18])
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
