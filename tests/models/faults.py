"""Faults that every adapter of an HTTP service meets in the same way, and what they must come to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from earwitness.errors import ModelError
from earwitness.models.protocols import Reply, Request
from tests.models.conftest import open_and_ask
from tests.standins.loopback import (
    CLOSE,
    EMPTY,
    HANG,
    RESET_BEFORE,
    Act,
    LoopbackServer,
    html,
    json_act,
    retry_date,
)

BASE64 = "UklGRiQAAABXQVZFZm10IBAAAAABAAEA" * 40


@dataclass(frozen=True)
class Fault:
    """What a service does (``act`` gets the service's own form of an error and what it is to quote) and what it is.

    ``paid``: the call may have been charged. ``wait_s``: what the service asked to be waited.
    """

    act: Callable[[Callable[..., Act], str], Act]
    kind: str
    retryable: bool
    paid: bool = False
    status: int | None = None
    wait_s: float | None = None
    impatient: bool = False
    """Ends by the client's patience, which the test keeps short."""


def _status(
    code: int, kind: str, retryable: bool, *, paid: bool = False, wait_s: float | None = None,
    after: Callable[[], str] | None = None,
) -> Fault:  # fmt: skip
    def act(error: Callable[..., Act], quote: str) -> Act:
        headers = {"Retry-After": after()} if after is not None else {}
        return error(code, f"what went wrong {quote}", **headers)

    return Fault(act, kind, retryable, paid, code, wait_s)


def _plain(act: Act, kind: str, **more: Any) -> Fault:
    return Fault(lambda _, __: act, kind, True, True, **more)


def _body(make: Callable[[str], bytes], media_type: str) -> Fault:
    return Fault(
        lambda _, quote: Act(body=make(quote), media_type=media_type), "bad_reply", True, True
    )


FAULTS: dict[str, Fault] = {
    "400": _status(400, "bad_request", False),
    "401": _status(401, "auth", False),
    "403": _status(403, "auth", False),
    "404": _status(404, "missing", False),
    "408": _status(408, "timeout", True, paid=True),
    "409": _status(409, "conflict", True),
    "413": _status(413, "too_large", False),
    "415": _status(415, "bad_request", False),
    "422": _status(422, "bad_request", False),
    "429": _status(429, "rate_limit", True),
    "429, seconds": _status(429, "rate_limit", True, wait_s=0.02, after=lambda: "0.02"),
    "429, a date": _status(429, "rate_limit", True, wait_s=0.0, after=lambda: retry_date(-5)),
    "429, in an hour": _status(
        429, "rate_limit", True, wait_s=3600.0, after=lambda: retry_date(3600)
    ),
    "500": _status(500, "server", True),
    "502": _status(502, "server", True, paid=True),
    "503": _status(503, "server", True),
    "529": _status(529, "server", True),
    "reset before": _plain(RESET_BEFORE, "connection"),
    "closed": _plain(CLOSE, "connection"),
    "reset in mid-body": _plain(Act("reset"), "connection"),
    "cut short": _plain(Act("truncate"), "connection"),
    "web page": _plain(html(), "bad_reply"),
    "web page that quotes": _body(lambda quote: f"<html>{quote}</html>".encode(), "text/html"),
    "truncated JSON": _body(lambda quote: f'{{"id": "{quote}", "cand'.encode(), "application/json"),
    "wrong content type": _body(lambda _: b"RIFF\xff\xfe\x00\x80WAVE" * 20, "audio/wav"),
    "plain words": _body(lambda quote: f"OK {quote}".encode(), "text/plain"),
    "empty body": _plain(EMPTY, "bad_reply"),
    "a list": _plain(Act(body=b"[]"), "bad_reply"),
    "no answer inside": _plain(json_act({"id": "x"}), "bad_reply"),
    "hang": _plain(HANG, "timeout", impatient=True),
    "slow drip": _plain(Act("drip", pause_s=0.05), "timeout", impatient=True),
}


class Meeting:
    """One adapter and its stand-in."""

    def __init__(self, server: type[LoopbackServer], model: str, **options: Any) -> None:
        self.server, self.model, self.options = server, model, options

    def meet(self, act: Act, request: Request, **options: Any) -> Reply:
        with self.server(act) as server:
            return open_and_ask(
                self.model, request, base_url=server.url, **{**self.options, **options}
            )

    def fail(self, act: Act, request: Request, **options: Any) -> ModelError:
        with pytest.raises(ModelError) as caught:
            self.meet(act, request, **options)
        return caught.value
