"""Asking a model every item: bounded, patient, and nothing lost.

One worker per allowed call takes the next item that has no stored reply, waits for its turn and for room,
writes ``started``, asks once, and writes what came. The runner owns retrying: adapters make one attempt.

Several processes may work on one ledger that they share. Each claims an item before it asks; what another has claimed
is left for the end, when its reply is there, or its claim has gone with its process.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_base, wait_random_exponential

from earwitness.errors import EarwitnessError, ModelError
from earwitness.models.pace import Pace, pace_of
from earwitness.models.payload import PayloadStore, estimate_sizes
from earwitness.models.prices import AUDIO_TOKENS_S, REPLY_TOKENS, most_tokens, text_tokens
from earwitness.models.protocols import AudioModel, Reply
from earwitness.runs.budgets import MEBIBYTE, ByteBudget, Price, RateLimiter, Refusal, Spending
from earwitness.runs.items import Item, reply_key
from earwitness.runs.ledger import Ledger
from earwitness.runs.preflight import request_of

OTHERS_POLL_S = 0.2
"""How often claims of other processes are looked at when nothing else is left to do."""


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """How a run goes about its calls; none of this changes an answer or a reply's key.

    ``pace`` is kept beside the model's own (the smaller of each limit counts).
    """

    concurrency: int = 8
    max_retries: int = 5
    bytes_in_flight: int = 128 * MEBIBYTE
    calls_per_minute: float | None = None
    pace: Pace = field(default_factory=Pace)
    call_timeout_s: float = 600.0
    first_wait_s: float = 1.0
    longest_wait_s: float = 120.0
    stop_after_identical: int = 5
    """Hard failures in a row with the same cause that stop the run; 0 never stops it."""
    max_calls: int | None = None
    max_cost_usd: float | None = None
    price: Price | None = None


@dataclass(slots=True)
class Progress:
    """Where a run stands; passed to the progress callback after every change.

    ``stored`` were there already or came from another process (``elsewhere`` of them).
    """

    total: int
    stored: int = 0
    elsewhere: int = 0
    done: int = 0
    failed: int = 0
    calls: int = 0
    retries: int = 0
    cost_usd: float = 0.0
    maybe_paid: int = 0
    maybe_cost_usd: float = 0.0
    waiting: str = ""
    started_s: float = field(default_factory=time.monotonic)

    @property
    def per_second(self) -> float:
        elapsed = time.monotonic() - self.started_s
        return self.done / elapsed if elapsed > 0 else 0.0


@dataclass(frozen=True, slots=True)
class RunSummary:
    """How a run ended. ``stopped`` says why it ended before its items did; None when it did not.

    ``already_stored`` counts the replies that were there and, among them, ``elsewhere`` those that another process
    got meanwhile. ``maybe_paid`` are calls without a reply that may have been charged, with what they were estimated
    to cost. ``unpriced`` are replies of which nobody knows what they cost. ``under_way`` are items in batch jobs that go
    on at the service (``batch_jobs``, reckoned with ``under_way_usd``); they count as not asked.
    """

    total: int
    already_stored: int
    replied: int
    failed: int
    not_asked: int
    calls: int
    retries: int
    cost_usd: float
    peak_bytes: int
    stopped: str | None = None
    elsewhere: int = 0
    maybe_paid: int = 0
    maybe_cost_usd: float = 0.0
    unpriced: int = 0
    under_way: int = 0
    under_way_usd: float = 0.0
    batch_jobs: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return self.failed == 0 and self.not_asked == 0


class Waits(wait_base):
    """Exponential back-off with jitter; a Retry-After of the service is never undercut."""

    def __init__(self, settings: RunnerSettings) -> None:
        self._backoff = wait_random_exponential(
            multiplier=settings.first_wait_s, max=settings.longest_wait_s
        )

    def __call__(self, retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        asked_s = error.retry_after_s if isinstance(error, ModelError) else None
        return asked_s if asked_s is not None else float(self._backoff(retry_state))


def may_retry(settings: RunnerSettings) -> Callable[[BaseException], bool]:
    """Says of an error whether another attempt may help and need not wait too long."""

    def check(error: BaseException) -> bool:
        if not isinstance(error, ModelError) or not error.retryable:
            return False
        # A service that asks for hours is closed for now; waiting them out would look like a hang.
        return (error.retry_after_s or 0.0) <= settings.longest_wait_s

    return check


def _cause(error: ModelError) -> str:
    """What makes two failures the same: kind, status and message without its numbers and ids."""
    text = re.sub(r"[0-9a-f]{8,}|\d+", "#", error.message.lower())
    return f"{error.kind} {error.status} {text}"


class _Breaker:
    """Opens after so many hard failures in a row with the same cause."""

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._cause = ""
        self._count = 0
        self._first: ModelError | None = None

    def success(self) -> None:
        self._count = 0

    def failure(self, error: ModelError) -> str | None:
        """Count a failure; the reason to stop, or None."""
        cause = _cause(error)
        if cause != self._cause or self._count == 0:
            self._cause, self._count, self._first = cause, 0, error
        self._count += 1
        if not self._threshold or self._count < self._threshold or self._first is None:
            return None
        return (
            f"{self._count} items in a row failed for the same reason; the first said: "
            f"{self._first.message}"
        )


def _ignore(progress: Progress) -> None:
    """Progress that nobody watches."""
    del progress


class Runner:
    """Asks one model a sequence of items, with a ledger between it and any accident.

    Parameters
    ----------
    model: what is asked; its ``ask`` makes one attempt.
    ledger: open for writing.
    on_progress: called after every change, from the event loop.
    spending: what several runs may use together; None means what the settings allow, for this run alone.
    payloads: where encoded stimuli are kept for further calls.
    held: says of a key whether a batch job asks it; then it is left alone.
    """

    def __init__(
        self,
        model: AudioModel,
        ledger: Ledger,
        settings: RunnerSettings | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        *,
        spending: Spending | None = None,
        payloads: PayloadStore | None = None,
        held: Callable[[str], bool] | None = None,
    ) -> None:
        self.model = model
        self.ledger = ledger
        self.settings = settings or RunnerSettings()
        self._on_progress = on_progress or _ignore
        self._bytes = ByteBudget(self.settings.bytes_in_flight)
        self._rate = RateLimiter(
            self.settings.calls_per_minute,
            self.settings.pace.tightened(pace_of(model)),
            path=ledger.pace_path,
        )
        self._breaker = _Breaker(self.settings.stop_after_identical)
        self._spending = spending or Spending(self.settings.max_calls, self.settings.max_cost_usd)
        self._payloads = payloads or PayloadStore()
        self._held_elsewhere = held
        self._most_tokens = most_tokens(model.settings)
        self._deferred: deque[tuple[Item, str]] = deque()
        self._unpriced = 0
        self._freed = asyncio.Event()
        self._stopped: str | None = None
        self._stop_signal = asyncio.Event()
        self.progress = Progress(total=0)

    def stop(self, reason: str) -> None:
        """Start no further call; those under way end and are stored."""
        if self._stopped is None:
            self._stopped = reason
            self._stop_signal.set()
            self._freed.set()

    @property
    def stopping(self) -> bool:
        """Whether the run has been told to stop."""
        return self._stopped is not None

    async def run(self, items: Sequence[Item]) -> RunSummary:
        """Ask every item that has no stored reply.

        Raises
        ------
        DataError: the ledger cannot be written.
        """
        self.progress = Progress(total=len(items))
        self._deferred.clear()
        model_settings = self.model.settings
        todo = self._without_reply(items, model_settings)
        self._on_progress(self.progress)
        workers = max(1, min(self.settings.concurrency, len(items)))
        self.ledger.on_others = self._spending.note_other
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(self._work(todo))
        except BaseExceptionGroup as errors:
            # The group wraps what one worker raised (a full disk); the caller wants that itself.
            raise errors.exceptions[0] from None
        finally:
            self.ledger.on_others = None
            self._rate.close()
        return self._summary()

    def _summary(self) -> RunSummary:
        progress = self.progress
        replied = progress.done - progress.failed
        return RunSummary(
            total=progress.total,
            already_stored=progress.stored,
            replied=replied,
            failed=progress.failed,
            not_asked=progress.total - progress.stored - progress.done,
            calls=progress.calls,
            retries=progress.retries,
            cost_usd=progress.cost_usd,
            peak_bytes=self._bytes.peak_bytes,
            stopped=self._stopped,
            elsewhere=progress.elsewhere,
            maybe_paid=progress.maybe_paid,
            maybe_cost_usd=progress.maybe_cost_usd,
            unpriced=self._unpriced,
        )

    def _without_reply(
        self, items: Sequence[Item], model_settings: Mapping[str, Any]
    ) -> Iterator[tuple[Item, str]]:
        for item in items:
            key = reply_key(item, self.model.name, model_settings)
            if self.ledger.has_reply(key):
                self.progress.stored += 1
            else:
                yield item, key

    async def _work(self, todo: Iterator[tuple[Item, str]]) -> None:
        while self._stopped is None:
            step = next(todo, None)
            if step is None:
                if not self._deferred:
                    return
                # Nothing but what other processes are asking is left: their replies or their end is waited for.
                step = self._deferred.popleft()
                if not await self._take(*step):
                    self.progress.waiting = "waiting for items that another process is asking"
                    self._on_progress(self.progress)
                    await self._pause(OTHERS_POLL_S)
                    self.progress.waiting = ""
            else:
                await self._take(*step)
            self._on_progress(self.progress)

    async def _take(self, item: Item, key: str) -> bool:
        """Bring an item to its end, unless another process has it; False if it does."""
        if not self.ledger.claim(key):
            self._deferred.append((item, key))
            return False
        try:
            self.ledger.sync()
            if self.ledger.has_reply(key):
                self.progress.stored += 1
                self.progress.elsewhere += 1
            elif self.ledger.failed_elsewhere(key):
                self.progress.done += 1
                self.progress.failed += 1
            elif self._held_elsewhere is None or not self._held_elsewhere(key):
                await self._settle(item, key)
        finally:
            self.ledger.release(key)
        return True

    async def _settle(self, item: Item, key: str) -> None:
        """Bring one item to a reply or a failure, or leave it unasked when the run stops."""
        attempts = 0
        reply: Reply | None = None
        try:
            async for attempt in AsyncRetrying(
                stop=stop_after_attempt(self.settings.max_retries + 1),
                wait=Waits(self.settings),
                retry=retry_if_exception(may_retry(self.settings)),
                sleep=self._sleep,
                reraise=True,
            ):
                await self._wait_turn(item)
                with attempt:
                    reply = await self._attempt(item, key, attempts + 1)
                    if reply is None:
                        return
                attempts += 1
        except ModelError as error:
            self._give_up(item, key, error, attempts)
            return
        if reply is not None:
            self._store(item, key, reply, attempts)

    async def _sleep(self, seconds: float) -> None:
        self.progress.retries += 1
        self.progress.waiting = f"waiting {seconds:.0f} s as the service asks"
        self._on_progress(self.progress)
        await self._pause(seconds)
        self.progress.waiting = ""

    async def _pause(self, seconds: float) -> None:
        """Wait so long, or until the run is stopped: a stop must not have to wait out a long back-off."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop_signal.wait(), timeout=seconds)

    async def _wait_turn(self, item: Item) -> None:
        await self._rate.wait(
            self._stop_signal,
            tokens=self._tokens(item),
            audio_seconds=item.audio.seconds if item.audio else 0.0,
        )

    async def _admit(self, item: Item, key: str, attempt: int) -> float | None:
        """Reserve what a call may cost and write that it begins; None if it may not be made."""
        while self._stopped is None:
            self._freed.clear()
            begun = self._reserve(item, key, attempt)
            if not isinstance(begun, Refusal):
                return begun
            if not begun.for_now:
                self.stop(begun.reason)
                break
            await self._freed.wait()
        return None

    def _reserve(self, item: Item, key: str, attempt: int) -> float | Refusal:
        """Reserve what a call may cost and write that it begins, or say why it may not be made."""
        estimate = self._estimate(item)
        # In one latch with the line that says so, or two processes would both take the last call that is left.
        with self.ledger.latched():
            self.ledger.sync()
            refusal = self._spending.refusal(estimate)
            if refusal is not None:
                return refusal
            reserved = self._spending.reserve(estimate)
            told = reserved if estimate is not None or reserved > 0 else None
            self.ledger.started(key, item=item.id, attempt=attempt, estimate_usd=told)
            return reserved

    def _estimate(self, item: Item) -> float | None:
        """What a call about an item will cost, None where no price is known."""
        price = self.settings.price
        if price is None:
            return None
        seconds = item.audio.seconds if item.audio else 0.0
        return price.estimate(item.prompt, seconds, self._most_tokens)

    def _tokens(self, item: Item) -> float:
        """About how many tokens a call will take, in and out."""
        price = self.settings.price
        a_second = price.audio_tokens_s if price else AUDIO_TOKENS_S
        reply = price.reply_tokens if price else REPLY_TOKENS
        heard = (item.audio.seconds if item.audio else 0.0) * a_second
        return text_tokens(item.prompt) + heard + min(reply, self._most_tokens or reply)

    async def _attempt(self, item: Item, key: str, number: int) -> Reply | None:
        """Ask once; None if the run is stopped before that."""
        async with self._bytes.hold(self._size(item)):
            reserved = await self._admit(item, key, number)
            if reserved is None:
                return None
            self.progress.calls += 1
            reply = None
            maybe_paid = True
            try:
                reply = await self._ask_in_time(item, key)
                self._correct(item, reply)
                return reply
            except ModelError as error:
                maybe_paid = error.maybe_paid
                self.ledger.attempt_failed(key, error, item=item.id, attempt=number)
                if error.retry_after_s and error.retry_after_s <= self.settings.longest_wait_s:
                    self._rate.hold_off(error.retry_after_s)
                raise
            finally:
                self._settle_cost(item, reply, reserved, maybe_paid)

    def _size(self, item: Item) -> int:
        if item.audio is None:
            return 0
        try:
            size, decoding = estimate_sizes(item.audio, self.model.limits)
        except EarwitnessError as error:
            raise ModelError(str(error), kind="audio", retryable=False) from error
        self._bytes.set_aside_bytes = max(self._bytes.set_aside_bytes, decoding)
        return size

    async def _ask_in_time(self, item: Item, key: str) -> Reply:
        try:
            async with asyncio.timeout(self.settings.call_timeout_s):
                return await self._ask(item, key)
        except TimeoutError:
            raise ModelError(
                f"no reply within {self.settings.call_timeout_s:g} s",
                kind="timeout",
                retryable=True,
                maybe_paid=True,
            ) from None

    def _settle_cost(
        self, item: Item, reply: Reply | None, reserved: float, maybe_paid: bool
    ) -> None:
        if reply is None and maybe_paid:
            self.progress.maybe_paid += 1
            self.progress.maybe_cost_usd += reserved
        cost_usd = None if reply is None else self._cost(item, reply)
        self._spending.settle(reserved, cost_usd, replied=reply is not None, maybe_paid=maybe_paid)
        self._freed.set()

    def _correct(self, item: Item, reply: Reply) -> None:
        usage = reply.usage
        if usage.input_tokens is not None:
            used = usage.input_tokens + (usage.output_tokens or 0)
            self._rate.correct(used - self._tokens(item))

    async def _ask(self, item: Item, key: str) -> Reply:
        begun = time.perf_counter()
        try:
            reply = await self.model.ask(request_of(item, key, self._payloads))
        except (ModelError, TimeoutError):
            raise
        except Exception as error:
            raise ModelError(
                f"the adapter itself failed: {type(error).__name__}: {error}",
                kind="bug",
                retryable=False,
            ) from error
        if reply.latency_s:
            return reply
        return replace(reply, latency_s=time.perf_counter() - begun)

    def _store(self, item: Item, key: str, reply: Reply, attempts: int) -> None:
        cost_usd = self._cost(item, reply)
        self.ledger.reply(key, reply, item=item.id, attempts=attempts, cost_usd=cost_usd)
        self._breaker.success()
        self._unpriced += cost_usd is None
        self.progress.cost_usd += cost_usd or 0.0
        self.progress.done += 1

    def _cost(self, item: Item, reply: Reply) -> float | None:
        if self.settings.price is None:
            return reply.usage.cost_usd
        return self.settings.price.of(reply.usage, item.audio.seconds if item.audio else 0.0)

    def _give_up(self, item: Item, key: str, error: ModelError, attempts: int) -> None:
        self.ledger.failed(key, error, item=item.id, attempts=attempts)
        self.progress.done += 1
        self.progress.failed += 1
        reason = self._breaker.failure(error)
        if reason:
            self.stop(reason)
