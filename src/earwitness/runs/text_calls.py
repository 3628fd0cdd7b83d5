"""Asking text models: the runner's patience, one ledger, totals over all that is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from earwitness.models.pace import Pace
from earwitness.models.prices import load_prices
from earwitness.models.protocols import Limits, Reply, Request
from earwitness.models.registry import DeclaredTextModel
from earwitness.runs.items import Item, reply_key
from earwitness.runs.jsonlines import read_lines
from earwitness.runs.ledger import Ledger
from earwitness.runs.runner import Progress, Runner, RunnerSettings


@dataclass(slots=True)
class Meter:
    """What all calls of one command have used so far; shared by every model it asks."""

    calls: int = 0
    retries: int = 0
    replies: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Read from a prompt cache; part of ``input_tokens``."""
    cost_usd: float = 0.0
    waiting: str = ""
    stopped: str | None = None
    on_change: Callable[[Meter], None] | None = field(default=None, repr=False)

    def changed(self) -> None:
        """Tell whoever watches."""
        if self.on_change:
            self.on_change(self)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one question: a reply, or why there is none."""

    reply: Reply | None = None
    failure: str = ""


class TextCaller:
    """Asks one text model; what its ledgers hold is not asked again.

    Parameters
    ----------
    ledger: open for writing; may be shared by several callers.
    settings: without a price, that of the table that ships is taken, where it has one.
    others: ledgers that may hold replies too, such as those of shards.
    """

    def __init__(
        self,
        model: DeclaredTextModel,
        ledger: Ledger,
        settings: RunnerSettings | None = None,
        *,
        others: Sequence[Ledger] = (),
        meter: Meter | None = None,
    ) -> None:
        self.model = model
        self.meter = meter or Meter()
        self._ledger = ledger
        self._others = tuple(others)
        given = settings or RunnerSettings()
        # What a price table knows is as good as a price that is given.
        price = given.price or load_prices().price_of(model.name, model.settings)
        self._settings = replace(given, price=price)
        self._checked = False

    async def ask(
        self, items: Sequence[Item], on_done: Callable[[int], None] | None = None
    ) -> list[Answer]:
        """One answer for every item, in their order.

        Raises
        ------
        UsageError: the model cannot be asked at all (no key).
        DataError: the ledger cannot be written.
        """
        settings = dict(self.model.settings)
        keys = [reply_key(item, self.model.name, settings) for item in items]
        todo = [item for item, key in zip(items, keys, strict=True) if self._stored(key) is None]
        if todo and self._may_go_on():
            await self._run(todo, len(items), on_done)
        return [self._answer(key) for key in keys]

    async def _run(
        self, todo: Sequence[Item], total: int, on_done: Callable[[int], None] | None
    ) -> None:
        if not self._checked:
            self.model.preflight()
            self._checked = True
        meter = self.meter
        calls, retries, cost = meter.calls, meter.retries, meter.cost_usd

        def watch(progress: Progress) -> None:
            meter.calls = calls + progress.calls
            meter.retries = retries + progress.retries
            meter.cost_usd = cost + progress.cost_usd
            meter.waiting = progress.waiting
            meter.changed()
            if on_done:
                on_done(total - len(todo) + progress.done)

        runner = Runner(_Metered(self.model, meter), self._ledger, self._rest(), watch)
        summary = await runner.run(todo)
        meter.waiting = ""
        # A runner knows only what was left for it; a limit is told as it was given.
        if summary.stopped and self._may_go_on():
            meter.stopped = summary.stopped

    def _may_go_on(self) -> bool:
        """Whether any call may be made; notes the limit that forbids it."""
        given, meter = self._settings, self.meter
        if meter.stopped is None:
            if given.max_calls is not None and meter.calls >= given.max_calls:
                meter.stopped = f"the limit of {given.max_calls} calls is reached"
            elif given.max_cost_usd is not None and meter.cost_usd >= given.max_cost_usd:
                meter.stopped = f"the limit of {given.max_cost_usd:g} USD is reached"
        return meter.stopped is None

    def _rest(self) -> RunnerSettings:
        """What is left of the limits on calls and money; they hold for the whole command."""
        given, meter = self._settings, self.meter
        return replace(
            given,
            max_calls=None if given.max_calls is None else max(given.max_calls - meter.calls, 0),
            max_cost_usd=None
            if given.max_cost_usd is None
            else max(given.max_cost_usd - meter.cost_usd, 0.0),
        )

    def _stored(self, key: str) -> Reply | None:
        for ledger in (self._ledger, *self._others):
            if ledger.has_reply(key):
                return ledger.get_reply(key)
        return None

    def _answer(self, key: str) -> Answer:
        reply = self._stored(key)
        if reply is not None:
            return Answer(reply)
        _, failure, _ = self._ledger.get_entry(key)
        if failure is not None:
            return Answer(failure=f"{failure.kind}: {failure.message}")
        return Answer(failure=f"not asked: {self.meter.stopped or 'the run was stopped'}")

    async def aclose(self) -> None:
        """Close the model's connections."""
        await self.model.aclose()


class _Metered:
    """A text model as the runner asks it, every reply counted."""

    def __init__(self, model: DeclaredTextModel, meter: Meter) -> None:
        self._model = model
        self._meter = meter

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def limits(self) -> Limits:
        return Limits()

    @property
    def pace(self) -> Pace | None:
        return self._model.pace

    @property
    def settings(self) -> Mapping[str, Any]:
        return self._model.settings

    async def ask(self, request: Request) -> Reply:
        reply = await self._model.ask(request)
        self._meter.replies += 1
        self._meter.input_tokens += reply.usage.input_tokens or 0
        self._meter.output_tokens += reply.usage.output_tokens or 0
        self._meter.cached_tokens += reply.usage.cached_tokens or 0
        return reply

    async def aclose(self) -> None:
        """The caller closes the model."""


@dataclass(frozen=True, slots=True)
class CallTotals:
    """All that ledgers tell of their calls."""

    calls: int
    replies: int
    failed_attempts: int
    input_tokens: int
    output_tokens: int
    cost_usd: float


def call_totals(paths: Sequence[Path]) -> CallTotals:
    """Add up ledgers.

    Raises
    ------
    DataError: a ledger cannot be read.
    """
    calls = replies = failed = tokens_in = tokens_out = 0
    cost = 0.0
    for path in paths:
        for _, line in read_lines(path, "a ledger entry"):
            calls += line["kind"] == "started"
            failed += line["kind"] == "attempt_failed"
            if line["kind"] == "reply":
                replies += 1
                usage = line["reply"]["usage"]
                tokens_in += usage.get("input_tokens") or 0
                tokens_out += usage.get("output_tokens") or 0
                cost += line.get("cost_usd") or 0.0
    return CallTotals(calls, replies, failed, tokens_in, tokens_out, cost)
