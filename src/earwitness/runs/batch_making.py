"""Making batch jobs: requests gathered into a file, budgeted line by line, and a job made of it once.

Before a job can exist, its requests have their ``started`` lines and the record its name. When the service's answer to
the making of a job is not seen, the service is asked for a job of that name; nothing is sent anew before it has said that
there is none.
"""

from __future__ import annotations

import tempfile
import uuid
from functools import partial
from typing import IO

from earwitness.errors import ModelError
from earwitness.models.batching import Job, Line
from earwitness.runs.batch_desk import SHOWN_EVERY, BatchDesk, Mine, Step
from earwitness.runs.batch_jobs import Asked, OpenJob
from earwitness.runs.budgets import Refusal
from earwitness.runs.preflight import request_of
from earwitness.runs.runner import may_retry

NAME_PREFIX = "earwitness-"


class JobMaker(BatchDesk):
    """A runner that makes jobs of what is left to ask. Use :class:`~earwitness.runs.batches.BatchRunner`."""

    async def _fill(self) -> None:
        """Make jobs of what is left to ask, as many as may be under way."""
        while (
            self._pending
            and self._stopped is None
            and self._no_more is None
            and not self._is_full
            and len(self._mine) < self._api.limits.max_jobs
        ):
            try:
                with tempfile.TemporaryFile(dir=self.ledger.path.parent) as file:
                    mine = await self._gather(file)
                    if mine is None or not await self._send(mine, file):
                        return
            except OSError as error:
                raise self._no_room("requests", error) from error

    async def _gather(self, file: IO[bytes]) -> Mine | None:
        """Write requests into a file until a job is full; None if there is nothing to send."""
        mine: Mine | None = None
        while self._pending and self._stopped is None and self._no_more is None:
            if mine is not None and len(mine.job.asked) >= self._most_requests:
                break
            step = self._pending[0]
            if not self._is_to_ask(step):
                self._pending.popleft()
                continue
            line = await self._line(step)
            if line is None:
                self._pending.popleft()
                continue
            self._prepared = (step.key, line)
            if mine is not None and file.tell() + line.length > self._api.limits.max_bytes:
                break
            reserved = self._admit_to_job(step)
            if reserved is None:
                break
            self._prepared = None
            self._pending.popleft()
            if mine is None:
                mine = self._begin()
            await self._add(mine, step, line, reserved, file)
        if mine is not None and self._stopped is not None:
            self._drop(mine, unsent_error(), "unsent", is_attempt=False)
            return None
        return mine

    def _is_to_ask(self, step: Step) -> bool:
        """Whether this process is to ask it now; otherwise it is counted or left for later."""
        if not self._claim(step.key):
            self._deferred.append((step.item, step.key))
            return False
        # After the claim, as whoever had it may have left a job that asks it.
        self.jobs.sync()
        if self.jobs.holder(step.key) is not None:
            self._release(step.key)
            self._deferred.append((step.item, step.key))
            return False
        self.ledger.sync()
        if self.ledger.has_reply(step.key):
            self.progress.stored += 1
            self.progress.elsewhere += 1
        elif step.attempt == 1 and self.ledger.failed_elsewhere(step.key):
            self.progress.done += 1
            self.progress.failed += 1
        else:
            return True
        self._release(step.key)
        return False

    async def _line(self, step: Step) -> Line | None:
        """The question as a line; None where it cannot be one, which fails the item."""
        if self._prepared is not None and self._prepared[0] == step.key:
            return self._prepared[1]
        request = request_of(step.item, step.key, self._payloads)
        try:
            line = await self._patiently(partial(self._api.line, request, step.key))
            if line.length > self._api.limits.max_bytes:
                raise ModelError(
                    f"{self.model.name}: a request of {line.length} bytes does not fit into a batch job "
                    f"({self._api.limits.max_bytes} bytes)",
                    kind="too_large",
                    retryable=False,
                )
        except ModelError as error:
            self._end(step.item.id, step.key, error, step.attempt)
            return None
        self._bytes.peak_bytes = max(self._bytes.peak_bytes, line.length)
        return line

    def _admit_to_job(self, step: Step) -> float | None:
        """Reserve what a request may cost and write that it begins; None if it may not be made now."""
        begun = self._reserve(step.item, step.key, step.attempt)
        if not isinstance(begun, Refusal):
            self.progress.calls += 1
            return begun
        self._refused = begun.reason
        if not begun.for_now:
            self._no_more = begun.reason
        return None

    def _begin(self) -> Mine:
        name = NAME_PREFIX + uuid.uuid4().hex
        self.jobs.claim(name)
        self.jobs.begin(name, server=self._server)
        return Mine(next(job for job in self.jobs.open_jobs() if job.name == name))

    async def _add(
        self, mine: Mine, step: Step, line: Line, reserved: float, file: IO[bytes]
    ) -> None:
        audio = step.item.audio
        # Into the record: what is needed to read the answer after this process is gone.
        self.jobs.ask(
            mine.job.name,
            Asked(
                step.key,
                step.item.id,
                step.attempt,
                audio.seconds if audio else 0.0,
                reserved or None,
                line.stimulus,
            ),
        )
        mine.reserved[step.key] = reserved
        mine.uploads += line.uploads
        await line.write(file)
        count = len(mine.job.asked)
        if count % SHOWN_EVERY == 1:
            self.progress.waiting = (
                f"gathering a batch job: {count} requests, {file.tell() / 2**20:.0f} MiB"
            )
            self._on_progress(self.progress)

    async def _send(self, mine: Mine, file: IO[bytes]) -> bool:
        """Have the service make a job; whether further ones may be made now."""
        job, size = mine.job, file.tell()
        file.flush()
        self.progress.waiting = f"sending a batch job of {len(job.asked)} requests"
        self._on_progress(self.progress)
        try:
            source = await self._patiently(partial(self._api.upload, file, size))
        except ModelError as error:
            self._give_up_job(mine, error, "unsent")
            return False
        if self._stopped is not None:
            self._drop(mine, unsent_error(), "unsent", is_attempt=False)
            await self._api.clean(source, mine.uploads)
            return False
        self.jobs.sending(job.name, source, mine.uploads)
        try:
            made = await self._create(job)
        except _UnclearError as unclear:
            self._leave_unclear(job, unclear.error)
            return False
        except ModelError as error:
            goes_on = self._without_job(mine, error)
            # Nobody needs the clips there any more.
            await self._api.clean(source, mine.uploads)
            return goes_on
        finally:
            self.progress.waiting = ""
        self.jobs.submitted(job.name, made.id)
        job.id, mine.status = made.id, made
        self._mine[job.name] = mine
        self._on_progress(self.progress)
        return True

    def _without_job(self, mine: Mine, error: ModelError) -> bool:
        """What becomes of requests whose job was not made; whether further jobs may be made now."""
        if error.maybe_paid:
            self._drop(mine, error, "lost")
            return True
        if error.kind == "rate_limit" and self._mine:
            # So many jobs and no more: the others make room as they end.
            self._is_full = True
            self._drop(mine, error, "refused", is_attempt=False)
            return False
        self._give_up_job(mine, error, "refused")
        return False

    async def _create(self, job: OpenJob) -> Job:
        """Make a job, once.

        Raises
        ------
        ModelError: there is none; ``maybe_paid`` where one may have been made all the same.
        _UnclearError: the service does not say whether there is one.
        """
        check = may_retry(self.settings)
        attempt = 0
        while True:
            try:
                return await self._api.create(job.name, job.source)
            except ModelError as error:
                if not _is_certain(error):
                    try:
                        found = await self._find(job)
                    except ModelError as problem:
                        raise _UnclearError(problem) from None
                    if found is not None:
                        return found
                attempt += 1
                again = check(error) and not error.maybe_paid and self._stopped is None
                if not again or attempt > self.settings.max_retries:
                    raise
                backoff = self.settings.first_wait_s * 2**attempt
                asked = error.retry_after_s
                await self._sleep(
                    min(backoff, self.settings.longest_wait_s) if asked is None else asked
                )

    async def _find(self, job: OpenJob) -> Job | None:
        # A job that was made a moment ago may not be listed yet.
        await self._pause(self.settings.first_wait_s)
        return await self._patiently(partial(self._api.find, job.name))

    def _leave_unclear(self, job: OpenJob, error: ModelError) -> None:
        self._unclear.add(job.name)
        self.jobs.release(job.name)
        self._no_more = (
            f"whether the service made the batch job {job.name} is not known ({error.message}); the same command looks "
            "for it again before anything is sent anew"
        )


class _UnclearError(Exception):
    """Whether a job was made cannot be told, because of ``error``."""

    def __init__(self, error: ModelError) -> None:
        super().__init__(error.message)
        self.error = error


def _is_certain(error: ModelError) -> bool:
    """Whether a failed request for a job cannot have made one."""
    if error.status is None:
        return not error.maybe_paid and error.kind in ("connection", "tls")
    return 400 <= error.status < 500 and error.status not in (408, 409)


def unsent_error() -> ModelError:
    return ModelError("the batch job was never sent", kind="unsent", retryable=True)


def lost_error(job: OpenJob) -> ModelError:
    return ModelError(
        f"the service has no batch job {job.id or job.name}, though it was told to make one",
        kind="lost",
        retryable=True,
        maybe_paid=True,
    )
