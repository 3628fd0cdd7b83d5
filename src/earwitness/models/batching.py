"""Batch APIs of services: many questions in one job, answered within hours, for less.

An adapter whose service has one offers ``batches()``, which gives a :class:`BatchApi`: it turns questions into lines of
an input file, makes jobs, looks at them and reads their results with the same code that reads a live answer. Nothing
here waits, retries or counts; that is :mod:`earwitness.runs.batches`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Literal, Protocol

from earwitness.errors import ModelError, UsageError
from earwitness.models.http import Body, HttpAnswer, parsed
from earwitness.models.protocols import Reply, Request

JobState = Literal["queued", "running", "succeeded", "failed", "expired", "cancelled"]
FINAL: frozenset[JobState] = frozenset({"succeeded", "failed", "expired", "cancelled"})
SLOWEST_BYTES_S = 128 * 1024
"""An input file that goes out more slowly than this is taken for a broken connection."""
LONGEST_LINE_BYTES = 32 * 1024 * 1024
"""A line of results longer than this is no answer to a question."""

NO_BATCHES: Mapping[str, str] = {
    "openai": "OpenAI lists v1/batch as not supported for gpt-audio-mini (November 2026) and says of no audio model that "
    "it takes batches; other servers of this protocol have no common batch API",
    "openai-realtime": "a realtime connection answers at once or not at all",
    "anthropic": "the service's batches take words and images, and no audio",
}
"""Why models of an adapter cannot be asked in batches, where there is more to say than that they cannot."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What one job may hold (``max_bytes`` of its input file), and how many may be under way."""

    max_requests: int
    max_bytes: int
    max_jobs: int


@dataclass(frozen=True, slots=True)
class Line:
    """One question as a line of an input file, written piece by piece.

    ``stimulus`` says what was made of the clip, ``uploads`` names files the service holds for this line.
    """

    before: bytes
    body: Body
    after: bytes
    stimulus: Mapping[str, Any] | None = None
    uploads: tuple[str, ...] = ()

    @property
    def length(self) -> int:
        return len(self.before) + self.body.length + len(self.after)

    async def write(self, file: IO[bytes]) -> None:
        """Append it to a file; the clip's bytes are let go of afterwards."""
        file.write(self.before)
        async for piece in self.body:
            file.write(piece)
        file.write(self.after)
        self.body.release()


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the service describes it.

    ``state_raw`` is its own word. Counts are None where it gives none. ``outputs`` name files of results, ``inlined``
    are results that came with the description.
    """

    id: str
    name: str
    state: JobState
    state_raw: str = ""
    total: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    message: str = ""
    outputs: tuple[str, ...] = ()
    inlined: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    @property
    def is_final(self) -> bool:
        """Whether nothing will come any more."""
        return self.state in FINAL


@dataclass(frozen=True, slots=True)
class Result:
    """What a job says of one request: a reply, or the error in its place."""

    key: str
    reply: Reply | None = None
    error: ModelError | None = None


class BatchApi(Protocol):
    """A service's batch API for one model. Every method makes one attempt and may raise ModelError."""

    @property
    def limits(self) -> BatchLimits: ...

    async def line(self, request: Request, key: str) -> Line:
        """A question as a line; a clip too large for one is uploaded."""
        ...

    async def upload(self, file: IO[bytes], size: int) -> str:
        """Send an input file; returns the service's name for it."""
        ...

    async def create(self, name: str, source: str) -> Job:
        """Make a job called ``name`` of an uploaded file. It costs from here on."""
        ...

    async def find(self, name: str) -> Job | None:
        """The job of a name, None where the service has none."""
        ...

    async def look(self, job_id: str) -> Job: ...

    async def cancel(self, job_id: str) -> None:
        """Ask for a job's end; it may take a while, and a job that has ended already stays as it is."""
        ...

    async def fetch(self, output: str, sink: IO[bytes]) -> None:
        """Append a file of results to ``sink``."""
        ...

    def result(self, line: Mapping[str, Any]) -> Result | None:
        """What a line of results says; None where it names no request."""
        ...

    async def clean(self, source: str, uploads: Sequence[str]) -> None:
        """Delete what was uploaded for a job. Raises nothing."""
        ...


def batch_api(model: object) -> BatchApi | None:
    """The batch API of a model, None where it has none."""
    found = getattr(model, "batches", None)
    return found() if callable(found) else None


def batches_of(model: object) -> BatchApi:
    """The batch API of a model.

    Raises
    ------
    UsageError: it has none.
    """
    api = batch_api(model)
    if api is not None:
        return api
    name = str(getattr(model, "name", model))
    settings = getattr(model, "settings", {})
    behind = str(settings.get("model") or name)
    why = NO_BATCHES.get(behind.partition("/")[0], "")
    raise UsageError(
        name,
        "cannot be asked with --batch"
        + (f": {why}" if why else ", its adapter knows no batch API"),
        "a model of google/... or mistral/...",
        "Nothing was asked. Leave --batch out to ask it call by call.",
    )


def answer_of(status: int, value: Any) -> HttpAnswer:
    """An answer inside a file of results, as if it had come by itself."""
    body = value if isinstance(value, str) else json.dumps(value)
    return HttpAnswer(status, {"content-type": "application/json"}, body.encode(), 0.0)


def read_line(raw: bytes) -> dict[str, Any] | None:
    """The object on a line of results; None where it is none (a file that was cut off)."""
    line = parsed(raw.decode("utf-8", errors="replace"))
    return line if isinstance(line, dict) else None


def too_many_jobs(service: str, pages: int) -> ModelError:
    """A list of jobs that does not end: what is not on it so far may still be there."""
    return ModelError(
        f"{service}: the list of batch jobs goes on after {pages} pages",
        kind="too_many_jobs",
        retryable=False,
    )


def sending_s(size: int, timeout_s: float) -> float:
    """How long sending or fetching a file may take."""
    return timeout_s + size / SLOWEST_BYTES_S
