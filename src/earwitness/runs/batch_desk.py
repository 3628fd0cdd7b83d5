"""What is kept of the batch jobs a process works on, how their results are read, and how their requests end.

Every answer goes into the ledger through the reading of a live one, line by line, before its job is closed: a reader that
is killed begins anew and skips what is there. Lines that are no JSON, name no request or repeat one are counted in the
record of jobs and change nothing; a request without a line counts as worked on.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO, Any, TypeVar

from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

from earwitness.errors import DataError, ModelError
from earwitness.models.batching import LONGEST_LINE_BYTES, Job, Line, Result, batches_of, read_line
from earwitness.models.payload import PayloadStore
from earwitness.models.protocols import AudioModel, Reply
from earwitness.runs.batch_jobs import Asked, JobBook, OpenJob
from earwitness.runs.budgets import Spending
from earwitness.runs.items import Item
from earwitness.runs.ledger import Ledger
from earwitness.runs.runner import Progress, Runner, RunnerSettings, Waits, may_retry

FIRST_LOOK_S = 1.0
SHOWN_EVERY = 100
"""Requests or results between two looks at the progress."""
_NO_STATUS = "the service gave no reason"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """How a run goes about its jobs; none of this changes an answer or a reply's key.

    ``max_requests`` makes jobs smaller than the service allows. ``wait`` False leaves after submitting. ``cancel`` makes
    no job and ends those there are, keeping what they have answered. ``reserved`` is what a command has reserved for jobs
    it has left, by job and key, for when it comes back to them.
    """

    wait: bool = True
    cancel: bool = False
    max_requests: int | None = None
    look_every_s: float = 30.0
    reserved: dict[str, dict[str, float]] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Step:
    item: Item
    key: str
    attempt: int = 1


@dataclass(slots=True)
class Mine:
    """A job this process works on, with what is reserved for each request."""

    job: OpenJob
    reserved: dict[str, float] = field(default_factory=dict)
    uploads: list[str] = field(default_factory=list)
    status: Job | None = None
    in_vain: int = 0
    empty: int = 0


class BatchDesk(Runner):
    """A runner's jobs under way. :class:`~earwitness.runs.batches.BatchRunner` makes them and waits for them."""

    def __init__(
        self,
        model: AudioModel,
        ledger: Ledger,
        settings: RunnerSettings | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        *,
        jobs: JobBook,
        options: BatchOptions | None = None,
        spending: Spending | None = None,
        payloads: PayloadStore | None = None,
    ) -> None:
        given = settings or RunnerSettings()
        if given.price is not None:
            given = replace(given, price=given.price.batched())
        super().__init__(model, ledger, given, on_progress, spending=spending, payloads=payloads)
        self.jobs = jobs
        self.options = options or BatchOptions()
        self._api = batches_of(model)
        most = self._api.limits.max_requests
        self._most_requests = min(most, self.options.max_requests or most)
        self._server = str(model.settings.get("server") or "")
        self._items: dict[str, Item] = {}
        self._pending: deque[Step] = deque()
        self._mine: dict[str, Mine] = {}
        self._claims: set[str] = set()
        self._unclear: set[str] = set()
        self._prepared: tuple[str, Line] | None = None
        self._no_more: str | None = None
        self._refused: str | None = None
        self._is_full = False
        self._wait_s = min(FIRST_LOOK_S, self.options.look_every_s)

    # --- claims ------------------------------------------------------------------------------------------

    def _claim(self, key: str) -> bool:
        if key not in self._claims and self.ledger.claim(key):
            self._claims.add(key)
        return key in self._claims

    def _release(self, key: str) -> None:
        if key in self._claims:
            self._claims.discard(key)
            self.ledger.release(key)

    # --- reading -----------------------------------------------------------------------------------------

    async def _collect(self, mine: Mine, status: Job) -> None:
        """Put everything a job brought into the ledger, then close it."""
        errors: dict[str, ModelError] = {}
        odd = _Odd()
        try:
            await self._read_outputs(mine, status, errors, odd)
        except OSError as error:
            raise self._no_room("results", error) from error
        for inlined in status.inlined:
            self._read(mine, status, inlined, errors, odd)
        self._settle_rest(mine, status, errors)
        replies = sum(self.ledger.has_reply(key) for key in mine.job.asked)
        self.jobs.close_job(mine.job.name, status.state, replies=replies, **odd.counted())
        self._forget(mine)
        await self._api.clean(mine.job.source, mine.job.uploads)
        if status.state != "succeeded" and not self.options.cancel and self._no_more is None:
            why = status.message or _NO_STATUS
            self._no_more = f"batch job {status.id} {ENDED[status.state]}: {why}"
        self._on_progress(self.progress)

    async def _read_outputs(
        self, mine: Mine, status: Job, errors: dict[str, ModelError], odd: _Odd
    ) -> None:
        with tempfile.TemporaryFile(dir=self.ledger.path.parent) as file:
            for output in status.outputs:
                begun = file.seek(0, 2)
                await self._patiently(partial(self._fetch, output, file, begun))
                file.seek(0, 2)
                # A file that was cut off must not swallow the first line of the next.
                file.write(b"\n")
            file.seek(0)
            count = 0
            while raw := file.readline(LONGEST_LINE_BYTES):
                if raw.strip():
                    self._read(mine, status, read_line(raw), errors, odd)
                count += 1
                if count % SHOWN_EVERY == 0:
                    self._on_progress(self.progress)
                    await asyncio.sleep(0)

    def _no_room(self, what: str, error: OSError) -> DataError:
        return DataError(
            str(self.ledger.path.parent),
            f"the {what} of a batch job cannot be written: {error.strerror or error}",
            "room for them beside the ledger",
            "Free space or make jobs smaller with --batch-size, and run the same command again.",
        )

    async def _fetch(self, output: str, file: IO[bytes], at: int) -> None:
        """Append a file of results behind ``at``, whatever an attempt before has left there."""
        file.seek(at)
        file.truncate()
        await self._api.fetch(output, file)

    def _read(
        self,
        mine: Mine,
        status: Job,
        line: Mapping[str, Any] | None,
        errors: dict[str, ModelError],
        odd: _Odd,
    ) -> None:
        result: Result | None = None if line is None else self._api.result(line)
        if result is None:
            odd.unreadable += 1
            return
        asked = mine.job.asked.get(result.key)
        odd.repeated += result.key in odd.seen
        odd.seen.add(result.key)
        if asked is None:
            odd.unknown += 1
        elif self.ledger.has_reply(asked.key):
            # Read before: repeated here, or stored by a reader that was killed.
            return
        elif result.reply is not None:
            self._keep(mine, asked, result.reply, status)
        elif result.error is not None:
            errors.setdefault(asked.key, result.error)

    def _keep(self, mine: Mine, asked: Asked, reply: Reply, status: Job) -> None:
        raw: dict[str, Any] = {**reply.raw, "batch": status.id}
        if asked.stimulus is not None:
            raw["stimulus"] = dict(asked.stimulus)
        price = self.settings.price
        cost_usd = reply.usage.cost_usd if price is None else price.of(reply.usage, asked.seconds)
        self.ledger.reply(
            asked.key,
            replace(reply, raw=raw),
            item=asked.item,
            attempts=asked.attempt,
            cost_usd=cost_usd,
        )
        self._spending.settle(
            mine.reserved.pop(asked.key, 0.0), cost_usd, replied=True, maybe_paid=False
        )
        self._breaker.success()
        self._unpriced += cost_usd is None
        self.progress.cost_usd += cost_usd or 0.0
        self.progress.done += asked.key in self._items
        self._release(asked.key)

    def _settle_rest(self, mine: Mine, status: Job, errors: Mapping[str, ModelError]) -> None:
        """What a job brought no reply for: tried again in a further job, or given up for now."""
        for asked in mine.job.asked.values():
            if self.ledger.has_reply(asked.key):
                self._release(asked.key)
                continue
            error = errors.get(asked.key) or _without_result(self.model.name, status)
            self._attempt_failed(mine, asked, error)
            is_retried = (
                status.state == "succeeded"
                and error.retryable
                and asked.attempt <= self.settings.max_retries
                and self._stopped is None
                and not self.options.cancel
            )
            if is_retried:
                self._ask_again(asked, asked.attempt + 1)
            elif status.state == "cancelled" and self.options.cancel:
                self._release(asked.key)
            else:
                self._end(asked.item, asked.key, error, asked.attempt)

    # --- how requests end --------------------------------------------------------------------------------

    def _attempt_failed(self, mine: Mine, asked: Asked, error: ModelError) -> None:
        self.ledger.attempt_failed(asked.key, error, item=asked.item, attempt=asked.attempt)
        reserved = mine.reserved.pop(asked.key, None)
        if reserved is not None:
            self._spending.settle(reserved, None, replied=False, maybe_paid=error.maybe_paid)
        if error.maybe_paid:
            self.progress.maybe_paid += 1
            self.progress.maybe_cost_usd += reserved or asked.estimate_usd or 0.0

    def _ask_again(self, asked: Asked, attempt: int) -> None:
        item = self._items.get(asked.key)
        if item is None:
            self._release(asked.key)
            return
        self.progress.retries += attempt > asked.attempt
        self._pending.append(Step(item, asked.key, attempt))

    def _end(self, item: str, key: str, error: ModelError, attempts: int) -> None:
        """Give an item up until the next command."""
        self.ledger.failed(key, error, item=item, attempts=attempts)
        if key in self._items:
            self.progress.done += 1
            self.progress.failed += 1
        self._release(key)
        reason = self._breaker.failure(error)
        if reason and self._no_more is None:
            self._no_more = reason

    def _drop(self, mine: Mine, error: ModelError, state: str, *, is_attempt: bool = True) -> None:
        """Close a job of which nothing will come; its requests are asked in another."""
        for asked in mine.job.asked.values():
            if self.ledger.has_reply(asked.key):
                self._release(asked.key)
                continue
            if not is_attempt and asked.key in mine.reserved:
                # Nothing has asked it: the limit on calls is not touched.
                self._spending.calls -= 1
                self.progress.calls -= 1
            self._attempt_failed(mine, asked, error)
            if self.options.cancel:
                self._release(asked.key)
            elif is_attempt and asked.attempt > self.settings.max_retries:
                self._end(asked.item, asked.key, error, asked.attempt)
            else:
                self._ask_again(asked, asked.attempt + is_attempt)
        self.jobs.close_job(mine.job.name, state)
        self._forget(mine)

    def _give_up_job(self, mine: Mine, error: ModelError, state: str) -> None:
        """Fail every request of a job that the service did not take, and make no further one."""
        self._no_more = f"the service took no batch job: {error.message}"
        for asked in mine.job.asked.values():
            self._attempt_failed(mine, asked, error)
            self._end(asked.item, asked.key, error, asked.attempt)
        self.jobs.close_job(mine.job.name, state)
        self._forget(mine)

    def _forget(self, mine: Mine) -> None:
        self._mine.pop(mine.job.name, None)
        self.jobs.release(mine.job.name)
        if mine.job.id is not None:
            self._is_full = False

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call that costs nothing, again and again as the settings allow."""
        async for attempt in AsyncRetrying(
            stop=stop_after_attempt(self.settings.max_retries + 1),
            wait=Waits(self.settings),
            retry=retry_if_exception(may_retry(self.settings)),
            sleep=self._sleep,
            reraise=True,
        ):
            with attempt:
                return await call()
        raise AssertionError("the last attempt raises")


@dataclass(slots=True)
class _Odd:
    """Lines of results that answer nothing that was asked."""

    unknown: int = 0
    repeated: int = 0
    unreadable: int = 0
    seen: set[str] = field(default_factory=set)

    def counted(self) -> dict[str, int]:
        named = {"unknown": self.unknown, "repeated": self.repeated, "unreadable": self.unreadable}
        return {name: count for name, count in named.items() if count}


ENDED = {"failed": "failed", "expired": "expired", "cancelled": "was cancelled"}


def _without_result(model: str, status: Job) -> ModelError:
    """Why a job has nothing to say of a request."""
    if status.state == "succeeded":
        return ModelError(
            f"{model}: the results of batch job {status.id} say nothing of this request",
            kind="bad_reply",
            retryable=True,
            maybe_paid=True,
        )
    why = f": {status.message}" if status.message else ""
    return ModelError(
        f"{model}: batch job {status.id} {ENDED[status.state]}{why}",
        kind=f"batch_{status.state}",
        retryable=True,
        # The service says that it has answered some, and gives no answers.
        maybe_paid=bool(status.succeeded) and not (status.outputs or status.inlined),
    )
