"""Faults that every adapter of an HTTP service meets in the same way, and what they must come to."""

from __future__ import annotations

import re
from typing import Any

import pytest

from earwitness.errors import ModelError
from earwitness.models.protocols import Reply, Request
from tests.models.conftest import KEY, open_and_ask
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

STATUSES = [
    (400, "bad_request", False), (401, "auth", False), (403, "auth", False), (404, "missing", False),
    (408, "timeout", True), (409, "conflict", True), (413, "too_large", False), (415, "bad_request", False),
    (422, "bad_request", False), (429, "rate_limit", True), (500, "server", True), (502, "server", True),
    (503, "server", True), (529, "server", True),
]  # fmt: skip

BROKEN = {
    "hang": (HANG, "timeout", True, True),
    "drip": (Act("drip", pause_s=0.05), "timeout", True, True),
    "reset in mid-answer": (Act("reset"), "connection", True, True),
    "truncated": (Act("truncate"), "connection", True, True),
    "reset before": (RESET_BEFORE, "connection", True, True),
    "closed": (CLOSE, "connection", True, True),
    "web page": (html(), "bad_reply", True, True),
    "empty": (EMPTY, "bad_reply", True, True),
    "half a JSON": (Act(body=b'{"id": "x", "cand'), "bad_reply", True, True),
    "a list": (Act(body=b"[]"), "bad_reply", True, True),
    "no answer inside": (json_act({"id": "x"}), "bad_reply", True, True),
}
WAITS = [({"Retry-After": "7"}, 7.0), ({"retry-after-ms": "1500"}, 1.5), ({}, None)]
BASE64 = "UklGRiQAAABXQVZFZm10IBAAAAABAAEA" * 40


class Meeting:
    """One adapter and its stand-in. ``error`` makes an error of the service's own form."""

    def __init__(
        self, server: type[LoopbackServer], model: str, error: Any, said: Any, **options: Any
    ) -> None:
        self.server, self.model, self.error, self.said = server, model, error, said
        self.options = options

    def meet(self, act: Act, request: Request, **options: Any) -> Reply:
        with self.server(act) as server:
            return open_and_ask(
                self.model, request, base_url=server.url, **{**self.options, **options}
            )

    def fail(self, act: Act, request: Request, **options: Any) -> ModelError:
        with pytest.raises(ModelError) as caught:
            self.meet(act, request, **options)
        return caught.value

    def check_status(self, request: Request, status: int, kind: str, retryable: bool) -> None:
        problem = self.fail(self.error(status, "what went wrong"), request)
        assert (problem.kind, problem.retryable, problem.status) == (kind, retryable, status)
        assert "what went wrong" in problem.message
        assert problem.message.startswith(f"{self.model}: HTTP {status}")

    def check_broken(self, request: Request, name: str) -> None:
        act, kind, retryable, paid = BROKEN[name]
        problem = self.fail(act, request, timeout_s="0.4")
        assert (problem.kind, problem.retryable, problem.maybe_paid) == (kind, retryable, paid)

    def check_waits(self, request: Request) -> None:
        for headers, wait_s in WAITS:
            assert self.fail(self.error(429, **headers), request).retry_after_s == wait_s
        dated = self.fail(self.error(503, **{"Retry-After": retry_date(30)}), request)
        assert dated.retry_after_s == pytest.approx(30, abs=2)

    def check_nothing_leaks(self, request: Request, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("THE_KEY", KEY)
        acts = [
            self.error(401, f"wrong key {KEY}"),
            self.error(400, f"cannot read data {BASE64}"),
            self.error(500, f"data:audio/wav;base64,{BASE64} {KEY}"),
            Act(body=f"<html>{KEY} {BASE64}".encode(), media_type="text/html"),
            json_act({"x": f"{KEY}{BASE64}"}),
            json_act(self.said(f"neutral {KEY} {BASE64}")),
        ]
        for act in acts:
            try:
                said = repr(self.meet(act, request, api_key_env="THE_KEY"))
            except ModelError as problem:
                said = problem.message + repr(problem) + repr(problem.__cause__)
            assert len(said) < 5000
            assert KEY not in said
            assert not re.search(r"[A-Za-z0-9+/]{80,}", said)
