"""How long a service asks to be left alone: Retry-After and its many relatives.

Sources: RFC 9110 section 10.2.3 (seconds or a date); ``retry-after-ms`` and ``x-ratelimit-reset-*`` with
durations such as ``6m0s`` (OpenAI, Groq); ``x-ratelimit-reset`` as an epoch (OpenRouter, in milliseconds);
``anthropic-ratelimit-*-reset`` as RFC 3339.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_WAIT_S = 7 * 86_400.0
"""Nothing longer is believed; it also keeps absurd numbers out of timers."""

_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|s|m|h|d)")
_UNIT_S = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0,
}  # fmt: skip
_EPOCH_S = 1_000_000_000.0
_EPOCH_MS = 1_000_000_000_000.0


def parse_retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds to wait before another try, or None where the service does not say.

    Parameters
    ----------
    headers: of the answer; names in any case.
    now: seconds since the epoch. A date is read against the answer's own ``Date`` header where there is
        one, so that a wrong clock on this machine does no harm.

    Examples
    --------
    >>> parse_retry_after({"Retry-After": "2.5"})
    2.5
    >>> parse_retry_after({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m2s"})
    62.0
    """
    given = {name.lower(): value.strip() for name, value in headers.items()}
    here = time.time() if now is None else now
    clock = _timestamp(given.get("date", ""))
    for name, unit in (
        ("retry-after-ms", 1e-3),
        ("x-ms-retry-after-ms", 1e-3),
        ("retry-after", 1.0),
    ):
        value = given.get(name)
        if value:
            wait = _seconds(value, unit, here if clock is None else clock)
            if wait is not None:
                return wait
    waits = [
        wait
        for name, value in given.items()
        if (wait := _reset(name, value, given, here if clock is None else clock)) is not None
    ]
    return max(waits, default=None)


def retry_wait_s(asked_s: float | None, own_s: float, longest_s: float) -> float | None:
    """Seconds until a call is tried again; None where the service asks for longer than is waited.

    Such a service is closed for now: to come back before its time would only prolong it.

    Examples
    --------
    >>> retry_wait_s(None, 90.0, 60.0), retry_wait_s(5.0, 1.0, 60.0), retry_wait_s(61.0, 1.0, 60.0)
    (60.0, 5.0, None)
    """
    if asked_s is None:
        return min(own_s, longest_s)
    return asked_s if asked_s <= longest_s else None


def look_again_s(asked_s: float | None, every_s: float) -> float:
    """Seconds until the next look at a job: as usual, or as long as the service asks for.

    Examples
    --------
    >>> look_again_s(None, 1.0), look_again_s(0.2, 1.0), look_again_s(30.0, 1.0)
    (1.0, 1.0, 30.0)
    """
    return max(every_s, asked_s or 0.0)


def _reset(name: str, value: str, headers: Mapping[str, str], now: float) -> float | None:
    """The wait of one ``*ratelimit*reset*`` header, if the budget it belongs to is used up."""
    if "ratelimit" not in name or "reset" not in name:
        return None
    remaining = headers.get(name.replace("reset", "remaining"))
    if remaining is None or remaining != "0":
        return None
    return _seconds(value, 1.0, now)


def _seconds(value: str, unit: float, now: float) -> float | None:
    """A wait from a number, an epoch, a duration or a date."""
    number = _finite(value)
    if number is not None:
        number *= unit
        if number >= _EPOCH_MS:
            number = number / 1000.0 - now
        elif number >= _EPOCH_S:
            number -= now
        return _bounded(number)
    parts = _DURATION_PART.findall(value)
    if parts and "".join(amount + name for amount, name in parts) == value:
        return _bounded(sum(float(amount) * _UNIT_S[name] for amount, name in parts))
    moment = _timestamp(value)
    return None if moment is None else _bounded(moment - now)


def _finite(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_WAIT_S)


def _timestamp(value: str) -> float | None:
    """Seconds since the epoch from an HTTP date or RFC 3339; without a zone it is UTC."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = read(value)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
    return None
