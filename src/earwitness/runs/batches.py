"""Asking in batch jobs: everything a run asks, in as few jobs as the service allows, and nothing lost meanwhile.

The same ledger, keys, budgets and claims as :mod:`earwitness.runs.runner`. Every request has its ``started`` line
before its job can exist, and every answer goes through the reading of a live one. A job's name is on disk before it is
made and its id as soon as it is known (:mod:`earwitness.runs.batch_jobs`), so that the next command takes it up: by the
id, or, where the service's answer was never seen, by the name, which the service is asked for before anything is sent anew.

What fails inside a job and may be tried again is asked in a further job, as often as ``max_retries`` says. A job that
failed, expired or was cancelled as a whole ends the submitting: what it left open is asked by the next command.
"""

from __future__ import annotations

import tempfile
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import IO

from earwitness.errors import ModelError, UsageError
from earwitness.models.batching import Job, Line
from earwitness.runs.batch_desk import SHOWN_EVERY, BatchDesk, BatchOptions, Mine, Step
from earwitness.runs.batch_jobs import Asked, OpenJob
from earwitness.runs.items import Item
from earwitness.runs.preflight import request_of
from earwitness.runs.runner import (
    OTHERS_POLL_S,
    Progress,
    RunSummary,
    may_retry,
)

__all__ = ["BatchOptions", "BatchRunner"]

NAME_PREFIX = "earwitness-"
LOOKS_IN_VAIN = 60
"""Looks in a row that bring no answer, after which a run leaves its jobs to the next command."""


class BatchRunner(BatchDesk):
    """Asks one model a sequence of items in batch jobs.

    Parameters
    ----------
    jobs: the record of the run's jobs, open for writing.
    Others as for :class:`~earwitness.runs.runner.Runner`; limits on calls at the same time and a minute do not apply.

    Raises
    ------
    UsageError: the model has no batch API.
    """

    async def run(self, items: Sequence[Item]) -> RunSummary:
        """Ask every item that has no stored reply, after taking up the jobs of earlier commands.

        Raises
        ------
        DataError: ledger, record of jobs or a temporary file cannot be written.
        UsageError: a job of this folder is with another server.
        """
        self.progress = Progress(total=len(items))
        for item, key in self._without_reply(items, self.model.settings):
            self._items[key] = item
            self._pending.append(Step(item, key))
        self._on_progress(self.progress)
        self.ledger.on_others = self._spending.note_other
        try:
            await self._turns()
        finally:
            self.ledger.on_others = None
            self._rate.close()
            for key in self._claims:
                self.ledger.release(key)
            for name, mine in self._mine.items():
                self.options.reserved[name] = mine.reserved
                self.jobs.release(name)
        self.jobs.sync()
        left = [
            job for job in self.jobs.open_jobs() if not self._items.keys().isdisjoint(job.asked)
        ]
        if self._pending and self._no_more is None:
            self._no_more = self._refused
        return replace(
            self._summary(),
            stopped=self._stopped or self._no_more,
            under_way=sum(key in self._items for job in left for key in job.asked),
            under_way_usd=sum(
                asked.estimate_usd or 0.0 for job in left for asked in job.asked.values()
            ),
            batch_jobs=tuple(job.id or job.name for job in left),
        )

    async def _turns(self) -> None:
        await self._take_up()
        if self.options.cancel:
            await self._cancel_all()
        await self._look_at_all()
        while True:
            await self._fill()
            if self._stopped is not None or (not self.options.wait and not self.options.cancel):
                return
            if self._mine:
                await self._pause_until_next_look()
                if self._stopped is not None:
                    return
                await self._look_at_all()
            elif not await self._others():
                return

    # --- jobs of earlier commands --------------------------------------------------------------------

    async def _take_up(self) -> None:
        """Work on every open job that no other process has."""
        self.jobs.sync()
        for job in self.jobs.open_jobs():
            if job.name in self._mine or job.name in self._unclear:
                continue
            if not self.jobs.claim(job.name):
                continue
            # Between the look and the claim its process may have closed it.
            self.jobs.sync()
            if any(each.name == job.name for each in self.jobs.open_jobs()):
                await self._resume(job)
            else:
                self.jobs.release(job.name)

    async def _resume(self, job: OpenJob) -> None:
        if job.server != self._server:
            raise UsageError(
                str(self.jobs.path),
                f"batch job {job.id or job.name} is with {job.server}, not with {self._server}",
                "the server it was sent to",
                "Take it up with that base_url, or give this run another --out folder.",
            )
        self._pending = deque(step for step in self._pending if step.key not in job.asked)
        for key in job.asked:
            self._claim(key)
        mine = Mine(job)
        if not job.is_sent:
            self._drop(mine, _unsent(), "unsent", is_attempt=False)
            return
        if job.id is None:
            try:
                found = await self._find(job)
            except ModelError as error:
                self._leave_unclear(job, error)
                return
            if found is None:
                self._drop(mine, _lost(job), "lost")
                return
            self.jobs.submitted(job.name, found.id)
            job.id = found.id
        carried = self.options.reserved.pop(job.name, {})
        for asked in job.asked.values():
            if self.ledger.has_reply(asked.key):
                continue
            reserved = carried.get(asked.key)
            if reserved is None:
                reserved = self._spending.reserve(asked.estimate_usd)
            mine.reserved[asked.key] = reserved
            self.progress.calls += 1
        self._mine[job.name] = mine

    async def _cancel_all(self) -> None:
        self._pending.clear()
        for mine in self._mine.values():
            assert mine.job.id is not None
            job_id = mine.job.id
            try:
                await self._patiently(partial(self._api.cancel, job_id))
            except ModelError as error:
                if error.kind != "missing":
                    self.stop(f"batch job {job_id} could not be cancelled: {error.message}")

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

    async def _others(self) -> bool:
        """Wait for what other processes ask; whether something is to be done now."""
        while self._deferred and self._stopped is None and self._no_more is None:
            await self._take_up()
            waiting, self._deferred = self._deferred, deque()
            for item, key in waiting:
                holder = self.jobs.holder(key)
                if holder is None and self._claim(key):
                    self._pending.append(Step(item, key))
                elif holder not in self._mine:
                    self._deferred.append((item, key))
            if self._mine or self._pending:
                return True
            self.progress.waiting = "waiting for items that another process is asking"
            self._on_progress(self.progress)
            await self._pause(OTHERS_POLL_S)
            self.progress.waiting = ""
        return False

    # --- making jobs -----------------------------------------------------------------------------------

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
        while self._pending and self._stopped is None:
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
            self._drop(mine, _unsent(), "unsent", is_attempt=False)
            return None
        return mine

    def _is_to_ask(self, step: Step) -> bool:
        """Whether this process is to ask it now; otherwise it is counted or left for later."""
        self.jobs.sync()
        holder = self.jobs.holder(step.key)
        if holder is not None or not self._claim(step.key):
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
        estimate = self._estimate(step.item)
        with self.ledger.latched():
            self.ledger.sync()
            refusal = self._spending.refusal(estimate)
            if refusal is None:
                reserved = self._spending.reserve(estimate)
                told = reserved if estimate is not None or reserved > 0 else None
                self.ledger.started(
                    step.key, item=step.item.id, attempt=step.attempt, estimate_usd=told
                )
                self.progress.calls += 1
                return reserved
        self._refused = refusal.reason
        if not refusal.for_now:
            self._no_more = refusal.reason
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
            self._drop(mine, _unsent(), "unsent", is_attempt=False)
            return False
        self.jobs.sending(job.name, source, mine.uploads)
        try:
            made = await self._create(job)
        except _UnclearError as unclear:
            self._leave_unclear(job, unclear.error)
            return False
        except ModelError as error:
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
        finally:
            self.progress.waiting = ""
        self.jobs.submitted(job.name, made.id)
        job.id, mine.status = made.id, made
        self._mine[job.name] = mine
        self._on_progress(self.progress)
        return True

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

    # --- looking and reading -----------------------------------------------------------------------------

    async def _look_at_all(self) -> None:
        for mine in list(self._mine.values()):
            if self._stopped is None:
                await self._look(mine)

    async def _look(self, mine: Mine) -> None:
        job = mine.job
        assert job.id is not None
        try:
            mine.status = await self._api.look(job.id)
            mine.in_vain = 0
            if mine.status.is_final:
                await self._collect(mine, mine.status)
        except ModelError as error:
            if error.kind == "missing" and self.options.cancel:
                self._drop(mine, _lost(job), "lost")
                return
            mine.in_vain += 1
            if error.retryable and mine.in_vain < LOOKS_IN_VAIN:
                self._wait_s = max(self._wait_s, min(error.retry_after_s or 0.0, 600.0))
                return
            hint = "" if error.kind != "missing" else "; --batch-cancel gives it up"
            self.stop(f"batch job {job.id} cannot be looked at: {error.message}{hint}")

    # --- waiting -----------------------------------------------------------------------------------------

    async def _pause_until_next_look(self) -> None:
        jobs = [mine.status for mine in self._mine.values() if mine.status is not None]
        states = sorted({job.state for job in jobs})
        total = sum(len(mine.job.asked) for mine in self._mine.values())
        ended = sum((job.succeeded or 0) + (job.failed or 0) for job in jobs)
        count = len(self._mine)
        self.progress.waiting = (
            f"{count} batch job{'s' if count > 1 else ''} {' and '.join(states) or 'under way'} for "
            f"{_age(min(mine.job.begun for mine in self._mine.values()))}, {ended} of {total} requests done, next look "
            f"in {self._wait_s:.0f} s"
        )
        self._on_progress(self.progress)
        await self._pause(self._wait_s)
        self.progress.waiting = ""
        self._wait_s = min(self._wait_s * 1.5, self.options.look_every_s)


class _UnclearError(Exception):
    """Whether a job was made cannot be told, because of ``error``."""

    def __init__(self, error: ModelError) -> None:
        super().__init__(error.message)
        self.error = error


def _age(begun: str) -> str:
    """How long ago a time stamp is, as people say it."""
    try:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(begun)).total_seconds()
    except (ValueError, TypeError):
        return "an unknown time"
    minutes = max(round(seconds / 60), 0)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"


def _is_certain(error: ModelError) -> bool:
    """Whether a failed request for a job cannot have made one."""
    if error.status is None:
        return not error.maybe_paid and error.kind in ("connection", "tls")
    return 400 <= error.status < 500 and error.status not in (408, 409)


def _unsent() -> ModelError:
    return ModelError("the batch job was never sent", kind="unsent", retryable=True)


def _lost(job: OpenJob) -> ModelError:
    return ModelError(
        f"the service has no batch job {job.id or job.name}, though it was told to make one",
        kind="lost",
        retryable=True,
        maybe_paid=True,
    )
