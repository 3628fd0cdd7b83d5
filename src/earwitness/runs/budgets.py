"""What a run may use: bytes in flight, calls a minute, calls and money in all."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields

from earwitness.errors import UsageError
from earwitness.models.protocols import Usage

MEBIBYTE = 1024 * 1024


class ByteBudget:
    """Lets calls in while the audio they hold stays under a limit; first come, first served.

    A single payload larger than the limit is let in alone rather than never.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.in_flight_bytes = 0
        self.peak_bytes = 0
        self._changed = asyncio.Condition()
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def hold(self, size: int) -> AsyncIterator[None]:
        """Wait for room for ``size`` bytes and keep it until the block ends."""
        # The lock keeps the queue in order: a large payload is not overtaken for ever by small ones.
        async with self._turn, self._changed:
            await self._changed.wait_for(
                lambda: not self.in_flight_bytes or self.in_flight_bytes + size <= self.limit_bytes
            )
            self.in_flight_bytes += size
            self.peak_bytes = max(self.peak_bytes, self.in_flight_bytes)
        try:
            yield
        finally:
            async with self._changed:
                self.in_flight_bytes -= size
                self._changed.notify_all()


class RateLimiter:
    """Spaces calls evenly under a limit, and holds all of them off when the service asks for it."""

    def __init__(self, calls_per_minute: float | None = None) -> None:
        self._interval_s = 60.0 / calls_per_minute if calls_per_minute else 0.0
        self._next_s = 0.0
        self._held_until_s = 0.0

    def hold_off(self, seconds: float) -> None:
        """No call starts for so many seconds from now (a Retry-After speaks for all calls)."""
        self._held_until_s = max(self._held_until_s, time.monotonic() + seconds)

    async def wait(self, stop: asyncio.Event) -> None:
        """Wait for this call's turn, or until the run is stopped."""
        now = time.monotonic()
        turn = max(now, self._next_s)
        self._next_s = turn + self._interval_s
        while (start := max(turn, self._held_until_s)) > (now := time.monotonic()):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), timeout=start - now)
                return


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, in US dollars.

    ``input`` and ``output`` per million tokens, ``audio_minute`` per minute of audio sent, ``call`` per call.
    """

    input: float = 0.0
    output: float = 0.0
    audio_minute: float = 0.0
    call: float = 0.0

    def of(self, usage: Usage, audio_seconds: float) -> float:
        """Cost of one reply; the provider's own figure wins where it gives one."""
        if usage.cost_usd is not None:
            return usage.cost_usd
        tokens = (usage.input_tokens or 0) * self.input + (usage.output_tokens or 0) * self.output
        return tokens / 1e6 + audio_seconds / 60 * self.audio_minute + self.call


def parse_price(text: str) -> Price:
    """Read ``input=2.5,output=10,audio_minute=0.06,call=0``.

    Raises
    ------
    UsageError: an unknown part or something that is not a number.
    """
    known = [field.name for field in fields(Price)]
    values: dict[str, float] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, number = part.partition("=")
        try:
            if name not in known:
                raise ValueError(name)
            values[name] = float(number)
        except ValueError:
            raise UsageError(
                "--price", f"{part!r}", wanted=" or ".join(f"{name}=NUMBER" for name in known)
            ) from None
    return Price(**values)


@dataclass(slots=True)
class Spending:
    """Calls and money of this run so far, against what is allowed."""

    max_calls: int | None = None
    max_cost_usd: float | None = None
    calls: int = 0
    cost_usd: float = 0.0
    dearest_usd: float = 0.0

    def add(self, cost_usd: float) -> None:
        self.cost_usd += cost_usd
        self.dearest_usd = max(self.dearest_usd, cost_usd)

    def refusal(self, in_flight: int) -> str | None:
        """Why the next call may not be made, or None. Calls under way count at the dearest price so far."""
        if self.max_calls is not None and self.calls >= self.max_calls:
            return f"the limit of {self.max_calls} calls is reached"
        if self.max_cost_usd is not None:
            expected = self.cost_usd + (in_flight + 1) * self.dearest_usd
            if expected > self.max_cost_usd:
                return f"the next call could exceed the limit of {self.max_cost_usd:g} USD"
        return None
