"""Asking in batch jobs: everything a run asks, in as few jobs as the service allows, and nothing lost meanwhile.

The same ledger, keys, budgets and claims as :mod:`earwitness.runs.runner`. Every request has its ``started`` line
before its job can exist, and every answer goes through the reading of a live one. A job's name is on disk before it is
made and its id as soon as it is known (:mod:`earwitness.runs.batch_jobs`), so that the next command takes it up: by the
id, or, where the service's answer was never seen, by the name, which the service is asked for before anything is sent anew.

What fails inside a job and may be tried again is asked in a further job, as often as ``max_retries`` says. A job that
failed, expired or was cancelled as a whole ends the submitting: what it left open is asked by the next command.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from earwitness.errors import ModelError, UsageError
from earwitness.models.batching import Job
from earwitness.runs.batch_desk import BatchOptions, Mine, Step
from earwitness.runs.batch_jobs import OpenJob
from earwitness.runs.batch_making import JobMaker, lost_error, unsent_error
from earwitness.runs.items import Item
from earwitness.runs.runner import (
    OTHERS_POLL_S,
    Progress,
    RunSummary,
)

__all__ = ["BatchOptions", "BatchRunner"]

LOOKS_FOR_RESULTS = 20
"""Looks at a job that has succeeded and names no results, after which there are none."""
LOOKS_IN_VAIN = 60
"""Looks in a row that bring no answer, after which a run leaves its jobs to the next command."""


class BatchRunner(JobMaker):
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
            self._drop(mine, unsent_error(), "unsent", is_attempt=False)
            return
        if job.id is None:
            try:
                found = await self._find(job)
            except ModelError as error:
                self._leave_unclear(job, error)
                return
            if found is None:
                self._drop(mine, lost_error(job), "lost")
                await self._api.clean(job.source, job.uploads)
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
            if self._is_ready(mine, mine.status):
                await self._collect(mine, mine.status)
        except ModelError as error:
            if error.kind == "missing" and self.options.cancel:
                self._drop(mine, lost_error(job), "lost")
                return
            mine.in_vain += 1
            if error.retryable and mine.in_vain < LOOKS_IN_VAIN:
                self._wait_s = max(self._wait_s, min(error.retry_after_s or 0.0, 600.0))
                return
            hint = "" if error.kind != "missing" else "; --batch-cancel gives it up"
            self._no_more = f"batch job {job.id} cannot be looked at: {error.message}{hint}"
            # The others go on; this one stays open for the next command.
            self._unclear.add(job.name)
            self.options.reserved[job.name] = mine.reserved
            self._forget(mine)

    def _is_ready(self, mine: Mine, status: Job) -> bool:
        """Whether a job has ended and its results can be had."""
        if status.state == "succeeded" and not (status.outputs or status.inlined):
            # Services say that a job is done before they say where its results are.
            mine.empty += 1
            return mine.empty > LOOKS_FOR_RESULTS
        return status.is_final

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


def _age(begun: str) -> str:
    """How long ago a time stamp is, as people say it."""
    try:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(begun)).total_seconds()
    except (ValueError, TypeError):
        return "an unknown time"
    minutes = max(round(seconds / 60), 0)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"
