"""Mistral's batch API: jobs of chat completions in a JSON lines file.

Documented form: Mistral API reference, "Batch" (``/v1/batch/jobs``: create, get, list, cancel) and "Files" (upload with
purpose ``batch``, ``/v1/files/ID/content``), guide "Batch processing" and page "Known limitations", as of November 2026:
half the price; any body of the endpoint, so audio chat too; lines ``{"custom_id": ..., "body": ...}``; an input file of at
most 512 MB and 100,000 requests; ``timeout_hours`` 24 unless said otherwise; results in any order, in an output and an
error file, there for 24 hours after the end.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

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
from earwitness.models.chat_parts import unpaid, with_stimulus
from earwitness.models.http import Body, FileBody, HttpAnswer, HttpCaller, error_from
from earwitness.models.openai_reply import (
    bad_reply,
    count_or_none,
    dicts_in,
    json_object,
    text_or,
    to_json,
)
from earwitness.models.protocols import Reply, Request

if TYPE_CHECKING:
    from earwitness.models.mistral_chat import MistralChat

LIMITS = BatchLimits(max_requests=100_000, max_bytes=500_000_000, max_jobs=100)
"""As documented, a little under the largest file; a number of jobs is not documented."""
ENDPOINT = "/v1/chat/completions"
NAME_FIELD = "earwitness_job"
_PAGE = 100
_PAGES = 200
_STATES: Mapping[str, JobState] = {
    "QUEUED": "queued",
    "RUNNING": "running",
    "CANCELLATION_REQUESTED": "running",
    "SUCCESS": "succeeded",
    "FAILED": "failed",
    "TIMEOUT_EXCEEDED": "expired",
    "CANCELLED": "cancelled",
}


@dataclass(frozen=True)
class MistralBatches:
    """Batches of one of Mistral's models."""

    chat: MistralChat
    caller: HttpCaller
    base_url: str
    model: str
    hint: str = ""
    limits: BatchLimits = LIMITS

    async def line(self, request: Request, key: str) -> Line:
        """A question as ``{"custom_id": ..., "body": ...}``."""
        body, payload = await self.chat.question(request)
        before = f'{{"custom_id":{json.dumps(key)},"body":'.encode()
        return Line(before, body, b"}\n", with_stimulus(Reply(), payload).raw.get("stimulus"))

    async def upload(self, file: IO[bytes], size: int) -> str:
        """Send the input file."""
        boundary = uuid.uuid4().hex
        before = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{boundary}.jsonl"\r\n'
            "Content-Type: application/jsonl\r\n\r\n"
        )
        body = FileBody(
            f"multipart/form-data; boundary={boundary}",
            before.encode(),
            file,
            size,
            f"\r\n--{boundary}--\r\n".encode(),
        )
        try:
            answer = await self._send(
                "POST", "/files", body, within_s=sending_s(size, self.caller.timeout_s)
            )
            found = text_or(self._object(answer).get("id"))
            if not found:
                raise bad_reply(self.chat.name, answer, "names no file", self.caller.redact)
        except ModelError as error:
            raise unpaid(error) from None
        return found

    async def create(self, name: str, source: str) -> Job:
        """Make a job of a file."""
        fields = {
            "input_files": [source],
            "model": self.model,
            "endpoint": ENDPOINT,
            "metadata": {NAME_FIELD: name},
        }
        body = Body("application/json", to_json(fields).encode())
        return self._job(await self._send("POST", "/batch/jobs", body))

    async def find(self, name: str) -> Job | None:
        """The job whose metadata hold ``name``, the latest first."""
        for page in range(_PAGES):
            path = f"/batch/jobs?page={page}&page_size={_PAGE}&order_by=-created"
            answer = await self._send("GET", path)
            body = self._object(answer)
            if not isinstance(body.get("data"), list) and body.get("total") != 0:
                # A list that is none must not be read as one without the job.
                raise bad_reply(self.chat.name, answer, "is no list of jobs", self.caller.redact)
            listed = dicts_in(body.get("data"))
            for job in listed:
                if _name(job) == name:
                    return self._read(answer, job)
            if len(listed) < _PAGE:
                return None
        raise too_many_jobs(self.chat.name, _PAGES)

    async def look(self, job_id: str) -> Job:
        """The state of a job."""
        return self._job(await self._send("GET", f"/batch/jobs/{job_id}"))

    async def cancel(self, job_id: str) -> None:
        """Ask for a job's end."""
        try:
            await self._send(
                "POST", f"/batch/jobs/{job_id}/cancel", Body("application/json", b"{}")
            )
        except ModelError as error:
            # What has ended cannot be cancelled; the next look tells how it ended.
            if error.status not in (400, 409, 422):
                raise

    async def fetch(self, output: str, sink: IO[bytes]) -> None:
        """Append a file of results."""
        within_s = sending_s(self.limits.max_bytes, self.caller.timeout_s)
        await self._send("GET", f"/files/{output}/content", sink=sink, within_s=within_s)

    def result(self, line: Mapping[str, Any]) -> Result | None:
        """A completion, or the error in its place, with the id of its request."""
        key = text_or(line.get("custom_id"))
        if not key:
            return None
        response, error = line.get("response"), line.get("error")
        response = response if isinstance(response, dict) else {}
        status = count_or_none(response.get("status_code")) or 0
        body = response.get("body")
        if error and (status < 400 or not body):
            status = status if status >= 400 else _status_of(error)
            body = {"error": error if isinstance(error, dict) else {"message": str(error)}}
        try:
            return Result(key, self.chat.read(answer_of(status or 200, body if body else {})))
        except ModelError as problem:
            return Result(key, error=problem)

    async def clean(self, source: str, uploads: Sequence[str]) -> None:
        """Delete the input file; what is left the service deletes after 30 days."""
        for name in (source, *uploads):
            if name:
                with contextlib.suppress(ModelError):
                    await self._send("DELETE", f"/files/{name}")

    async def _send(
        self,
        method: str,
        path: str,
        body: Body | None = None,
        *,
        sink: IO[bytes] | None = None,
        within_s: float | None = None,
    ) -> HttpAnswer:
        answer = await self.caller.send(
            method, self.base_url + path, self.chat.headers(), body, sink=sink, within_s=within_s
        )
        if not 200 <= answer.status < 300:
            raise error_from(self.chat.name, answer, self.caller.redact, hint=self.hint)
        return answer

    def _object(self, answer: HttpAnswer) -> Mapping[str, Any]:
        return json_object(self.chat.name, answer, self.caller.redact)

    def _job(self, answer: HttpAnswer) -> Job:
        return self._read(answer, self._object(answer))

    def _read(self, answer: HttpAnswer, fields: Mapping[str, Any]) -> Job:
        job_id, raw = text_or(fields.get("id")), text_or(fields.get("status"))
        if not job_id or not raw:
            raise bad_reply(self.chat.name, answer, "names no batch job", self.caller.redact)
        said = "; ".join(text_or(each.get("message")) for each in dicts_in(fields.get("errors")))
        files = (text_or(fields.get(each)) for each in ("output_file", "error_file"))
        return Job(
            id=job_id,
            name=_name(fields),
            # A state of a later version is one that goes on.
            state=_STATES.get(raw, "running"),
            state_raw=self.caller.redact(raw),
            total=count_or_none(fields.get("total_requests")),
            succeeded=count_or_none(fields.get("succeeded_requests")),
            failed=count_or_none(fields.get("failed_requests")),
            message=self.caller.redact.excerpt(said),
            outputs=tuple(each for each in files if each),
            inlined=tuple(dicts_in(fields.get("outputs"))),
        )


def _name(fields: Mapping[str, Any]) -> str:
    metadata = fields.get("metadata")
    return text_or(metadata.get(NAME_FIELD)) if isinstance(metadata, dict) else ""


def _status_of(error: Any) -> int:
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and code.isascii() and code.isdigit():
        code = int(code[:4])
    return code if isinstance(code, int) and 400 <= code <= 599 else 500
