"""Every fault of a service at every call of the two batch APIs: what it means, what it may cost, what it never says."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from earwitness.errors import ModelError
from earwitness.models.batching import BatchApi, batches_of
from earwitness.models.registry import open_model
from tests.models.conftest import KEY
from tests.models.faults import BASE64, FAULTS, Fault
from tests.standins.google_batches import GoogleBatchServer
from tests.standins.google_server import google_error
from tests.standins.loopback import Act
from tests.standins.mistral_batches import MistralBatchServer
from tests.standins.mistral_server import mistral_error

SERVICES: dict[str, tuple[Any, Callable[..., Act]]] = {
    "google/m": (GoogleBatchServer, google_error),
    "mistral/m": (MistralBatchServer, mistral_error),
}
CALLS: dict[str, Callable[[BatchApi], Awaitable[object]]] = {
    "upload": lambda api: api.upload(io.BytesIO(b"{}\n"), 3),
    "create": lambda api: api.create("name", "file-1"),
    "find": lambda api: api.find("name"),
    "look": lambda api: api.look("batches/b0"),
    "fetch": lambda api: api.fetch("file-1", io.BytesIO()),
}
GOOD_ENOUGH = {
    # An id is all a file needs at Mistral, Google says {} of no jobs, and a file of results is whatever it holds.
    "upload": {"no answer inside"},
    "find": {"no answer inside"},
    "fetch": {
        "web page", "web page that quotes", "truncated JSON", "wrong content type", "plain words",
        "empty body", "a list", "no answer inside",
    },
}  # fmt: skip


@pytest.mark.parametrize("model", SERVICES)
@pytest.mark.parametrize("call", CALLS)
def test_every_fault_at_every_call(model: str, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    server_type, error = SERVICES[model]
    faults = {name: fault for name, fault in FAULTS.items() if name != "slow drip"}
    if call == "fetch":
        # Half an answer breaks off only where there is a whole one.
        faults = {n: f for n, f in faults.items() if n not in ("reset in mid-body", "cut short")}

    async def meet(api: BatchApi, name: str) -> ModelError | None:
        try:
            await CALLS[call](api)
        except ModelError as problem:
            return problem
        assert name in GOOD_ENOUGH.get(call, ()), name
        return None

    async def run() -> dict[str, ModelError | None]:
        found: dict[str, ModelError | None] = {}
        quick, patient = (
            open_model(model, {"base_url": server.url, "api_key_env": "THE_KEY", "timeout_s": t})
            for t in ("0.15", "20")
        )
        for name, fault in faults.items():
            server.script.append(fault.act(error, f"{KEY} {BASE64}"))
            found[name] = await meet(batches_of(quick if fault.impatient else patient), name)
            server.script.clear()
        await quick.aclose()
        await patient.aclose()
        return found

    with server_type() as server:
        met = asyncio.run(run())
    for name, problem in met.items():
        fault: Fault = faults[name]
        if problem is None:
            continue
        assert (problem.kind, problem.retryable) == (fault.kind, fault.retryable), name
        if fault.status is not None:
            assert problem.status == fault.status, name
        if fault.wait_s is not None:
            assert problem.retry_after_s == pytest.approx(fault.wait_s, abs=2.0), name
        # What may have cost something is the making of a job, and nothing else.
        if call == "create":
            assert problem.maybe_paid == fault.paid, name
        elif call == "upload":
            assert not problem.maybe_paid, name
        assert KEY not in problem.message, name
        assert BASE64[:40] not in problem.message, name
