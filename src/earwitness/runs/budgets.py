"""What a run may use: bytes in flight, calls a minute, calls and money in all."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from earwitness.models.pace import Pace
from earwitness.models.prices import Price, parse_price
from earwitness.runs.pace_file import PaceFile

__all__ = [
    "MEBIBYTE",
    "ByteBudget",
    "Pace",
    "Price",
    "RateLimiter",
    "Refusal",
    "Spending",
    "parse_price",
]

MEBIBYTE = 1024 * 1024


class ByteBudget:
    """Lets calls in while the audio they hold stays under a limit; first come, first served.

    A single payload larger than the limit is let in alone rather than never. ``set_aside_bytes`` are kept free for the one
    stimulus that is being decoded.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.in_flight_bytes = 0
        self.peak_bytes = 0
        self.set_aside_bytes = 0
        self._changed = asyncio.Condition()
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def hold(self, size: int) -> AsyncIterator[None]:
        """Wait for room for ``size`` bytes and keep it until the block ends."""
        # The lock keeps the queue in order: a large payload is not overtaken for ever by small ones.
        async with self._turn, self._changed:
            await self._changed.wait_for(
                lambda: (
                    not self.in_flight_bytes
                    or self.in_flight_bytes + size + self.set_aside_bytes <= self.limit_bytes
                )
            )
            self.in_flight_bytes += size
            self.peak_bytes = max(self.peak_bytes, self.in_flight_bytes)
        try:
            yield
        finally:
            async with self._changed:
                self.in_flight_bytes -= size
                self._changed.notify_all()


LATE_S = 0.25
"""A call that starts so little after its time (a busy machine) does not push back those after it."""
LOOK_AGAIN_S = 1.0
"""Longest sleep before the limits are looked at anew: other processes, and replies, change them."""
_HELD = "held"


class RateLimiter:
    """Spaces calls evenly under limits on calls, tokens and seconds of audio a minute.

    It holds all of them off when the service asks for it. Nobody reserves ahead: the first in this process's queue takes
    its turn when it has come.

    Parameters
    ----------
    path: file in which the processes that work on one run share their limits; None keeps them in this process. Without
        any limit there is no file.
    """

    def __init__(
        self,
        calls_per_minute: float | None = None,
        pace: Pace | None = None,
        *,
        path: Path | None = None,
    ) -> None:
        limits = (pace or Pace()).tightened(Pace(calls_per_minute))
        self._per_minute = {
            name: limit
            for name, limit in (
                ("calls", limits.requests_per_minute),
                ("tokens", limits.tokens_per_minute),
                ("audio", limits.audio_seconds_per_minute),
            )
            if limit
        }
        self._times: dict[str, float] = {}
        """When the next call may start by each limit, and until when all are held off."""
        self._file = PaceFile(path) if path is not None and self._per_minute else None
        self._queue = asyncio.Lock()

    def hold_off(self, seconds: float) -> None:
        """No call starts for so many seconds from now (a Retry-After speaks for all calls)."""
        with self._exchange() as times:
            times[_HELD] = max(times.get(_HELD, 0.0), time.monotonic() + seconds)

    async def wait(
        self, stop: asyncio.Event, *, tokens: float = 0.0, audio_seconds: float = 0.0
    ) -> None:
        """Wait for this call's turn, or until the run is stopped.

        Raises
        ------
        DataError: what processes share of the limits cannot be written.
        """
        amounts = {"calls": 1.0, "tokens": tokens, "audio": audio_seconds}
        async with self._queue:
            while not stop.is_set() and (left_s := self._take(amounts)) > 0:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), timeout=min(left_s, LOOK_AGAIN_S))

    def _take(self, amounts: Mapping[str, float]) -> float:
        """Take the turn if it has come, else the seconds that are left until then."""
        if not self._per_minute and not self._times:
            return 0.0
        with self._exchange() as times:
            now = time.monotonic()
            lasting_s = {
                name: amounts[name] / limit * 60.0
                for name, limit in self._per_minute.items()
                if amounts[name]
            }
            begins = max(times.get(name, 0.0) for name in (_HELD, *lasting_s))
            if begins > now:
                return begins - now
            for name, lasts_s in lasting_s.items():
                free_s = times.get(name, 0.0)
                on_time = now - free_s <= min(LATE_S, lasts_s)
                times[name] = (free_s if on_time else now) + lasts_s
        return 0.0

    def correct(self, tokens: float) -> None:
        """Say by how many tokens a call differed from what it was reckoned with."""
        limit = self._per_minute.get("tokens")
        if limit and tokens:
            with self._exchange() as times:
                times["tokens"] = times.get("tokens", 0.0) + tokens / limit * 60.0

    @contextlib.contextmanager
    def _exchange(self) -> Iterator[dict[str, float]]:
        if self._file is None:
            yield self._times
            return
        with self._file.exchange(self._times) as times:
            yield times
            self._times = times

    def close(self) -> None:
        """Let go of the shared file."""
        if self._file is not None:
            self._file.close()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call may not be made. ``for_now``: calls under way may end cheaper than reckoned with."""

    reason: str
    for_now: bool = False


@dataclass(slots=True)
class Spending:
    """Calls and money so far, against what is allowed. One may be shared by the runs of a command.

    Every call reserves its estimated cost before it is made, so that the limit is not exceeded by calls under way.
    A call that ended without a reply and may have been charged counts with its estimate.
    """

    max_calls: int | None = None
    max_cost_usd: float | None = None
    calls: int = 0
    cost_usd: float = 0.0
    maybe_usd: float = 0.0
    reserved_usd: float = 0.0
    dearest_usd: float = 0.0
    in_flight: int = 0
    replies: int = 0
    unpriced: int = 0
    """Replies of which nobody knows what they cost."""
    _others: dict[str, float] = field(default_factory=dict)
    """What calls of other processes under way are reckoned with, by key."""

    def expected(self, estimate_usd: float | None) -> float:
        """What the next call is reckoned with: its estimate, and no less than the dearest reply so far."""
        return max(estimate_usd or 0.0, self.dearest_usd)

    def refusal(self, estimate_usd: float | None = None) -> Refusal | None:
        """Why the next call may not be made, or None."""
        if self.max_calls is not None and self.calls >= self.max_calls:
            return Refusal(f"the limit of {self.max_calls} calls is reached")
        if self.max_cost_usd is None:
            return None
        if self.unpriced:
            return Refusal(
                f"the service states no cost and no price is known, so that the limit of "
                f"{self.max_cost_usd:g} USD cannot be kept; give --price or --prices"
            )
        if estimate_usd is None and not self.replies and self.in_flight:
            return Refusal("the first call's cost is not known yet", for_now=True)
        bound = self.cost_usd + self.maybe_usd + self.reserved_usd + sum(self._others.values())
        if bound + self.expected(estimate_usd) > self.max_cost_usd * (1 + 1e-9):
            reason = f"the next call could exceed the limit of {self.max_cost_usd:g} USD"
            return Refusal(reason, for_now=self.in_flight > 0)
        return None

    def reserve(self, estimate_usd: float | None) -> float:
        """Count a call that is about to be made; returns what is reserved for it."""
        amount = self.expected(estimate_usd)
        self.calls += 1
        self.in_flight += 1
        self.reserved_usd += amount
        return amount

    def settle(
        self, reserved_usd: float, cost_usd: float | None, *, replied: bool, maybe_paid: bool
    ) -> None:
        """Count how a call ended: with a reply of a known or unknown cost, or without one."""
        self.in_flight -= 1
        self.reserved_usd = max(self.reserved_usd - reserved_usd, 0.0)
        if replied:
            amount = reserved_usd if cost_usd is None else cost_usd
            self.unpriced += cost_usd is None and not reserved_usd
            self.replies += 1
            self.cost_usd += amount
            self.dearest_usd = max(self.dearest_usd, amount)
        elif maybe_paid:
            self.maybe_usd += reserved_usd

    def note_other(self, line: Mapping[str, Any]) -> None:
        """Count a line that another process wrote to the same ledger."""
        key, kind = str(line.get("key")), line.get("kind")
        estimate, cost = line.get("estimate_usd"), line.get("cost_usd")
        if kind == "started":
            self.calls += 1
            self._others[key] = float(estimate) if estimate is not None else self.dearest_usd
            return
        reserved = self._others.pop(key, 0.0)
        if kind == "reply":
            amount = float(cost) if cost is not None else reserved
            self.replies += 1
            self.cost_usd += amount
            self.dearest_usd = max(self.dearest_usd, amount)
        elif kind == "attempt_failed" and line.get("maybe_paid"):
            self.maybe_usd += reserved
