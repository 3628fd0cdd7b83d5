"""A stand-in for Gemini's Batch API: operations, JSON lines files, pages of a list; strict about what it is sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.standins.batch_plans import Plan, StandInJob, edited
from tests.standins.google_server import GoogleServer, _Invalid, google_error
from tests.standins.loopback import Act, Call, json_act

RPC_OF_HTTP = {400: 3, 403: 7, 404: 5, 429: 8, 499: 1, 500: 13, 503: 14, 504: 4}


class GoogleBatchServer(GoogleServer):
    """Speaks ``batchGenerateContent`` and ``batches/`` beside the rest.

    Parameters
    ----------
    plans: of the jobs in the order in which they are made; after them all goes well.
    misbehave: an answer in place of the good one to the n-th request of a job (both counted from 0).
    page: how many jobs a page of the list holds at most.
    inlined: results come with the description of a job instead of in a file.
    """

    def __init__(
        self,
        *acts: Act,
        plans: tuple[Plan, ...] = (),
        misbehave: Callable[[int, int], Act | None] | None = None,
        page: int = 2,
        inlined: bool = False,
        most_jobs: int | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*acts, **more)
        self.plans = list(plans)
        self.misbehave = misbehave
        self.page = page
        self.inlined = inlined
        self.most_jobs = most_jobs
        self.jobs: dict[str, StandInJob] = {}

    def respond(self, call: Call) -> Act:
        place = urlsplit(call.path)
        try:
            if place.path.startswith("/v1beta/batches"):
                self._check_key(call)
                return self._batches(call.method, place.path.removeprefix("/v1beta/"), place.query)
            if place.path.startswith("/download/v1beta/files/"):
                self._check_key(call)
                return self._download(place.path.removeprefix("/download/v1beta/"), place.query)
            if place.path.endswith(":batchGenerateContent"):
                self._check_key(call)
                return self._create(call)
        except _Invalid as problem:
            return problem.act
        return super().respond(call)

    def _create(self, call: Call) -> Act:
        model = call.path.removeprefix("/v1beta/models/").removesuffix(":batchGenerateContent")
        try:
            batch = json.loads(call.body)["batch"]
            name, source = batch["displayName"], batch["inputConfig"]["fileName"]
        except (ValueError, KeyError):
            raise _Invalid("Invalid JSON payload received.") from None
        if set(batch) != {"displayName", "inputConfig"} or not name or source not in self.files:
            raise _Invalid("Request contains an invalid argument.")
        media_type, data = self.files[source]
        if media_type != "application/jsonl":
            raise _Invalid(f"Unsupported MIME type: {media_type}")
        going = [job for job in self.jobs.values() if job.state in ("queued", "running")]
        if self.most_jobs is not None and len(going) >= self.most_jobs:
            return google_error(429, "Resource has been exhausted", "RESOURCE_EXHAUSTED")
        lines = [json.loads(line) for line in data.splitlines()]
        for line in lines:
            if set(line) != {"key", "request"}:
                raise _Invalid("Failed to parse the input file")
        number = len(self.jobs)
        plan = self.plans[number] if number < len(self.plans) else Plan()
        job = StandInJob(f"batches/b{number}", name, model, source, lines, plan)
        self.jobs[job.id] = job
        return json_act(self._described(job))

    def _batches(self, method: str, path: str, query: str) -> Act:
        if path == "batches" and method == "GET":
            asked = parse_qs(query)
            at = int(asked.get("pageToken", ["0"])[0])
            size = min(self.page, int(asked.get("pageSize", ["50"])[0]))
            jobs = list(self.jobs.values())
            body: dict[str, Any] = {
                "operations": [self._described(j) for j in jobs[at : at + size]]
            }
            if at + size < len(jobs):
                body["nextPageToken"] = str(at + size)
            return json_act(body)
        name, _, verb = path.partition(":")
        job = self.jobs.get(name)
        if job is None:
            raise _Invalid("Requested entity was not found.", 404, "NOT_FOUND")
        if verb == "cancel" and method == "POST":
            if job.state not in ("queued", "running"):
                raise _Invalid("Batch is not running.", 400, "FAILED_PRECONDITION")
            job.plan = Plan(looks=0, ends="cancelled", answered=job.plan.answered or 0)
            return json_act({})
        if verb or method != "GET":
            raise _Invalid(f"Not found: {path}", 404, "NOT_FOUND")
        if job.step():
            self._end(job)
        return json_act(self._described(job))

    def _end(self, job: StandInJob) -> None:
        count = job.plan.answered if job.plan.answered is not None else len(job.lines)
        if job.state == "failed" and job.plan.answered is None:
            count = 0
        results = []
        for number, line in enumerate(job.lines[:count]):
            act = self.misbehave(list(self.jobs).index(job.id), number) if self.misbehave else None
            try:
                act = act or self.answer(job.model, line["request"])
            except _Invalid as problem:
                act = problem.act
            body = json.loads(act.body)
            if act.status == 200:
                results.append({"key": line["key"], "response": body})
                job.succeeded += 1
            else:
                error = body["error"]
                status = {"code": RPC_OF_HTTP[error["code"]], "message": error["message"]}
                results.append({"key": line["key"], "error": status})
                job.failed += 1
        if results or job.state == "succeeded":
            job.output = f"files/results-{job.id.removeprefix('batches/')}"
            self.files[job.output] = ("application/jsonl", edited(job.plan, results))

    def _described(self, job: StandInJob) -> dict[str, Any]:
        """An operation as the service describes it."""
        done = job.state not in ("queued", "running")
        words = {"queued": "PENDING"}
        stats = {
            "requestCount": str(len(job.lines)),
            "successfulRequestCount": str(job.succeeded),
            "failedRequestCount": str(job.failed),
        }
        described: dict[str, Any] = {
            "name": job.id,
            "metadata": {
                "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
                "model": f"models/{job.model}",
                "displayName": job.name,
                "inputConfig": {"fileName": job.source},
                "createTime": "2026-11-30T03:00:00.000000000Z",
                "batchStats": stats,
                "state": f"BATCH_STATE_{words.get(job.state, job.state.upper())}",
                "name": job.id,
            },
            "done": done,
        }
        if not done:
            return described
        output: dict[str, Any] = {"responsesFile": job.output} if job.output else {}
        if self.inlined and job.output:
            lines = [json.loads(line) for line in self.files[job.output][1].splitlines()]
            inner = [{"metadata": {"key": line.pop("key")}, **line} for line in lines]
            output = {"inlinedResponses": {"inlinedResponses": inner}}
        if job.state == "succeeded":
            described["response"] = {} if job.is_late else output
        else:
            code = {"cancelled": 1, "expired": 4}.get(job.state, 13)
            described["error"] = {"code": code, "message": job.plan.message}
            described["metadata"]["output"] = output
        return described

    def _download(self, path: str, query: str) -> Act:
        name = path.removesuffix(":download")
        if query != "alt=media" or not path.endswith(":download") or name not in self.files:
            raise _Invalid("not found", 404, "NOT_FOUND")
        return Act(body=self.files[name][1], media_type="application/jsonl")
