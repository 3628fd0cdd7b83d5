"""A stand-in for Mistral's batch API: files by multipart upload, jobs, output and error files."""

from __future__ import annotations

import email
import email.policy
import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.standins.batch_plans import Plan, StandInJob, edited
from tests.standins.loopback import Act, Call, json_act
from tests.standins.mistral_server import MistralServer, mistral_error
from tests.standins.openai_server import _Invalid

STATUS = {
    "queued": "QUEUED", "running": "RUNNING", "succeeded": "SUCCESS", "failed": "FAILED",
    "expired": "TIMEOUT_EXCEEDED", "cancelled": "CANCELLED",
}  # fmt: skip
FIELDS = {"input_files", "model", "endpoint", "metadata", "timeout_hours"}


class MistralBatchServer(MistralServer):
    """Speaks ``/v1/files`` and ``/v1/batch/jobs`` beside chat completions.

    Parameters
    ----------
    plans: of the jobs in the order in which they are made; after them all goes well.
    misbehave: an answer in place of the good one to the n-th request of a job (both counted from 0).
    """

    def __init__(
        self,
        *acts: Act,
        plans: tuple[Plan, ...] = (),
        misbehave: Callable[[int, int], Act | None] | None = None,
        page: int = 2,
        **more: Any,
    ) -> None:
        super().__init__(*acts, **more)
        self.plans = list(plans)
        self.misbehave = misbehave
        self.page = page
        self.files: dict[str, bytes] = {}
        self.jobs: dict[str, StandInJob] = {}

    def respond(self, call: Call) -> Act:
        place = urlsplit(call.path)
        if not place.path.startswith(("/v1/files", "/v1/batch/jobs")):
            return super().respond(call)
        if self.key is not None and call.headers.get("authorization") != f"Bearer {self.key}":
            return mistral_error(401, "Unauthorized")
        parts = place.path.removeprefix("/v1/").split("/")
        if parts[0] == "files":
            return self._files(call, parts[1:])
        return self._jobs(call, parts[2:], parse_qs(place.query))

    def _files(self, call: Call, parts: list[str]) -> Act:
        if not parts and call.method == "POST":
            return self._upload(call)
        name = parts[0] if parts else ""
        if name not in self.files:
            return mistral_error(404, "No file")
        if call.method == "DELETE":
            del self.files[name]
            return json_act({"id": name, "object": "file", "deleted": True})
        if parts[1:] == ["content"]:
            return Act(body=self.files[name], media_type="application/octet-stream")
        return mistral_error(405, "Method not allowed")

    def _upload(self, call: Call) -> Act:
        head = f"Content-Type: {call.headers['content-type']}\r\n\r\n".encode()
        form = email.message_from_bytes(head + call.body, policy=email.policy.HTTP)
        found = {
            part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
            for part in form.iter_parts()  # type: ignore[attr-defined]
        }
        if found.get("purpose") != b"batch" or "file" not in found:
            return mistral_error(422, "purpose and file are needed")
        data = found["file"]
        for line in data.splitlines():
            if set(json.loads(line)) != {"custom_id", "body"}:
                return mistral_error(422, "a line is not a request")
        name = str(uuid.uuid5(uuid.NAMESPACE_OID, str(len(self.files))))
        self.files[name] = data
        about = {"id": name, "object": "file", "bytes": len(data), "purpose": "batch"}
        return json_act({**about, "num_lines": len(data.splitlines()), "source": "upload"})

    def _jobs(self, call: Call, parts: list[str], query: dict[str, list[str]]) -> Act:
        if not parts:
            return self._create(call) if call.method == "POST" else self._list(query)
        job = self.jobs.get(parts[0])
        if job is None:
            return mistral_error(404, "No batch job")
        if parts[1:] == ["cancel"] and call.method == "POST":
            if job.state not in ("queued", "running"):
                return mistral_error(400, "The job has ended")
            job.plan = Plan(looks=0, ends="cancelled", answered=job.plan.answered or 0)
            return json_act({**self._described(job), "status": "CANCELLATION_REQUESTED"})
        if job.step():
            self._end(job)
        return json_act(self._described(job))

    def _create(self, call: Call) -> Act:
        fields = call.json()
        unknown = set(fields) - FIELDS
        if unknown:
            return mistral_error(422, f"Extra inputs are not permitted: {sorted(unknown)[0]}")
        [source] = fields["input_files"]
        if source not in self.files or fields["endpoint"] != "/v1/chat/completions":
            return mistral_error(400, "no such file or endpoint")
        lines = [json.loads(line) for line in self.files[source].splitlines()]
        number = len(self.jobs)
        plan = self.plans[number] if number < len(self.plans) else Plan()
        name = fields.get("metadata", {}).get("earwitness_job", "")
        job = StandInJob(f"job-{number}", name, fields["model"], source, lines, plan)
        self.jobs[job.id] = job
        return json_act(self._described(job))

    def _list(self, query: dict[str, list[str]]) -> Act:
        """Pages of a size the service chooses if it likes: none is larger than what was asked for."""
        page, size = (int(query[name][0]) for name in ("page", "page_size"))
        jobs = list(self.jobs.values())
        if query.get("order_by") == ["-created"]:
            jobs.reverse()
        shown = jobs[page * size : (page + 1) * size]
        return json_act(
            {"data": [self._described(j) for j in shown], "object": "list", "total": len(jobs)}
        )

    def _end(self, job: StandInJob) -> None:
        count = job.plan.answered if job.plan.answered is not None else len(job.lines)
        if job.state == "failed" and job.plan.answered is None:
            count = 0
        good, bad = [], []
        for number, line in enumerate(job.lines[:count]):
            act = self.misbehave(list(self.jobs).index(job.id), number) if self.misbehave else None
            act = act or self._chat(line["body"])
            response = {"status_code": act.status, "body": json.loads(act.body)}
            result = {"id": f"r{number}", "custom_id": line["custom_id"], "response": response}
            if act.status == 200:
                good.append({**result, "error": None})
                job.succeeded += 1
            else:
                bad.append({**result, "error": {"message": "the request failed"}})
                job.failed += 1
        # In any order, as documented.
        good.reverse()
        if good:
            job.output = f"{job.id}-output"
            self.files[job.output] = edited(job.plan, good)
        if bad:
            job.errors = f"{job.id}-errors"
            self.files[job.errors] = edited(replace(job.plan, edit=None), bad)

    def _chat(self, body: dict[str, Any]) -> Act:
        headers = {"content-type": "application/json", "authorization": f"Bearer {self.key}"}
        call = Call(0, "POST", "/v1/chat/completions", headers, json.dumps(body).encode())
        try:
            return self.answered(self._read(call))
        except _Invalid as problem:
            return problem.act

    def _described(self, job: StandInJob) -> dict[str, Any]:
        """A job as the service describes it."""
        errors = [{"message": job.plan.message, "count": 1}] if job.plan.message else []
        return {
            "id": job.id,
            "object": "batch",
            "input_files": [job.source],
            "metadata": {"earwitness_job": job.name},
            "endpoint": "/v1/chat/completions",
            "model": job.model,
            "agent_id": None,
            "output_file": None if job.is_late else job.output or None,
            "error_file": job.errors or None,
            "errors": errors if job.state == "failed" else [],
            "status": STATUS[job.state],
            "created_at": 1_795_000_000,
            "total_requests": len(job.lines),
            "completed_requests": job.succeeded + job.failed,
            "succeeded_requests": job.succeeded,
            "failed_requests": job.failed,
            "started_at": None,
            "completed_at": None,
        }
