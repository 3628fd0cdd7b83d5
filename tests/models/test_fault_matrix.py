"""Every fault of a service, met by the real client of every adapter over loopback, in a run of the real runner.

One run an adapter: an item meets a fault at its first call and a well-behaved service after it. What the adapter
makes of the fault, what the runner makes of that, and what is left in files and logs are looked at together.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import re
import socket
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from earwitness.errors import ModelError
from earwitness.models import endpoint_schema
from earwitness.models.protocols import AudioModel, AudioRef, Reply, Request
from earwitness.models.registry import open_model
from earwitness.runs.items import Item, reply_key
from earwitness.runs.ledger import Ledger
from earwitness.runs.runner import Runner, RunnerSettings, RunSummary
from tests.models.conftest import EMOTIONS, KEY, PROMPT
from tests.models.faults import BASE64, FAULTS, Fault
from tests.standins.anthropic_server import AnthropicServer, anthropic_error, message
from tests.standins.google_server import GoogleServer, generated, google_error
from tests.standins.loopback import Act, Call, LoopbackServer, error, html, json_act
from tests.standins.mistral_server import MistralServer, mistral_error
from tests.standins.openai_server import OpenAIServer, completion
from tests.standins.responses_server import ResponsesServer, response
from tests.standins.vendor_server import VendorServer
from tests.standins.vendors import HumeServer, OrukServer, hume_error


def detail(status: int, message: str = "no", **headers: str) -> Act:
    return json_act({"detail": message}, status, **headers)


@dataclass(frozen=True)
class Adapter:
    """How one adapter meets the faults.

    ``said`` makes a good answer's body from its words, None where answers have none. ``before`` calls of a question go well, then comes the fault; a question takes ``calls``. ``paid`` overrides what
    the faults say of it.
    """

    model: str
    server: type[LoopbackServer]
    error: Callable[..., Act]
    said: Callable[[str], Any] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    words_only: bool = False
    before: int = 0
    calls: int = 1
    paid: bool | None = None

    @property
    def described(self) -> bool:
        return self.model.startswith("endpoint/")


UPLOADING = {"inline_bytes": "100"}
ADAPTERS = {
    "openai": Adapter("openai/m", OpenAIServer, error, completion),
    "openai-responses": Adapter(
        "openai-responses/m", ResponsesServer, error, response, words_only=True
    ),
    "google": Adapter("google/m", GoogleServer, google_error, generated),
    # Nothing of an upload is ever charged.
    "google, announcing a file": Adapter(
        "google/m", GoogleServer, google_error, None, UPLOADING, calls=4, paid=False
    ),
    "google, sending a file": Adapter(
        "google/m", GoogleServer, google_error, None, UPLOADING, before=1, calls=4, paid=False
    ),
    "google, asking about a file": Adapter(
        "google/m", GoogleServer, google_error, generated, UPLOADING, before=2, calls=4
    ),
    "anthropic": Adapter("anthropic/m", AnthropicServer, anthropic_error, message, words_only=True),
    "mistral": Adapter("mistral/m", MistralServer, mistral_error, completion),
    "hume": Adapter("endpoint/hume", HumeServer, hume_error),
    "oruk": Adapter("endpoint/oruk", OrukServer, error),
    "label": Adapter("endpoint/template-label", VendorServer, detail),
    "job": Adapter("endpoint/template-windows", VendorServer, detail, calls=3),
}
# Without the stages of an upload.
WHOLE = [name for name in ADAPTERS if "file" not in name]


@dataclass
class Watched:
    """A model, and every error it raised."""

    model: AudioModel
    raised: dict[str, list[ModelError]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def limits(self) -> Any:
        return self.model.limits

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.model.settings

    async def ask(self, request: Request) -> Reply:
        try:
            return await self.model.ask(request)
        except ModelError as problem:
            self.raised.setdefault(request.item_id, []).append(problem)
            raise

    async def aclose(self) -> None:
        await self.model.aclose()


@dataclass(frozen=True)
class Met:
    """What a run left: its summary, its errors, what became of each item, and all that was written anywhere."""

    summary: RunSummary
    raised: Mapping[str, list[ModelError]]
    ends: Mapping[str, str]
    written: str


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Adapter], Any]:
    """Opens an adapter's model at a server of this machine, with a key to be kept."""
    for name in ("THE_KEY", "HUME_API_KEY", "ORUK_API_KEY", "EXAMPLE_API_KEY"):
        monkeypatch.setenv(name, KEY)

    def open_at(adapter: Adapter, url: str, timeout_s: float) -> AudioModel:
        options = {**adapter.options, "timeout_s": str(timeout_s)}
        if not adapter.described:
            return open_model(adapter.model, {**options, "base_url": url, "api_key_env": "THE_KEY"})
        scheme, _, host = url.partition("://")
        name = adapter.model.partition("/")[2]
        text = (endpoint_schema.ENDPOINTS / f"{name}.yaml").read_text("utf-8")
        text = text.replace('"https://', f'"{scheme}://').replace("every_s: 1.0", "every_s: 0.01")
        path = tmp_path / f"{name}.yaml"
        path.write_text(text, "utf-8")
        return open_model(f"endpoint/{path}", {**options, "host": host})

    return open_at


@contextmanager
def served(adapter: Adapter, *, untrusted: bool = False) -> Iterator[LoopbackServer]:
    kind = (
        type("Untrusted", (adapter.server,), {"untrusted": True}) if untrusted else adapter.server
    )
    with kind() as server:
        yield server


def items_of(adapter: Adapter, names: list[str], clip: AudioRef) -> list[Item]:
    audio = None if adapter.words_only else clip
    return [
        Item(name, "t", "1", replace(PROMPT, user=f"{name}: which one?", choices=EMOTIONS), audio)
        for name in names
    ]


def carried_out(
    model: AudioModel, items: list[Item], folder: Path, logs: pytest.LogCaptureFixture
) -> Met:
    """Run the items one after the other, each tried twice at the most."""
    watched = Watched(model)
    settings = RunnerSettings(
        concurrency=1, max_retries=1, first_wait_s=0.0, longest_wait_s=0.5, stop_after_identical=0
    )
    path = folder / "ledger.jsonl"

    async def go() -> tuple[RunSummary, dict[str, str]]:
        with Ledger(path) as ledger:
            summary = await Runner(watched, ledger, settings).run(items)
            ends = {}
            for item in items:
                reply, failure, _ = ledger.get_entry(reply_key(item, model.name, model.settings))
                assert (reply is None) != (failure is None)
                ends[item.id] = f"failed: {failure.kind}" if failure else "replied"
        await watched.aclose()
        return summary, ends

    with logs.at_level(logging.DEBUG):
        summary, ends = asyncio.run(go())
    errors = [each for several in watched.raised.values() for each in several]
    traces = ["".join(traceback.format_exception(each)) for each in errors]
    written = [path.read_text("utf-8"), logs.text, *traces, repr(model), repr(summary)]
    return Met(summary, watched.raised, ends, "\n".join(written))


def wanted(adapter: Adapter, fault: Fault) -> tuple[str, bool, bool]:
    paid = fault.paid if adapter.paid is None else adapter.paid
    return fault.kind, fault.retryable, paid


def is_retried(fault: Fault) -> bool:
    return fault.retryable and (fault.wait_s or 0.0) < 1.0


@pytest.mark.parametrize("name", ADAPTERS)
def test_each_fault_is_what_it_is_and_ends_as_it_should(
    name: str, make_clip: Any, at_home: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    adapter, clip = ADAPTERS[name], make_clip(seconds=0.2)
    faults = {key: fault for key, fault in FAULTS.items() if not fault.impatient}
    audio = base64.b64encode(clip.path.read_bytes()[:300]).decode()
    quote = f"{KEY} Authorization: Bearer {KEY} data:audio/wav;base64,{audio} {audio}"
    with served(adapter) as server:
        for fault in faults.values():
            # Every answer a well-behaved service gives is None here.
            server.script.extend([None] * adapter.before)  # type: ignore[list-item]
            server.script.append(fault.act(adapter.error, quote))
            if adapter.paid is None and adapter.before:
                server.script.append(None)  # type: ignore[arg-type]
            if is_retried(fault):
                server.script.extend([None] * adapter.calls)  # type: ignore[list-item]
        names = list(faults)
        if adapter.said is not None:
            names.append("told")
            server.script.extend([None] * adapter.before)  # type: ignore[list-item]
            server.script.append(json_act(adapter.said(f"neutral {KEY} {BASE64}")))
        model = at_home(adapter, server.url, 60.0)
        met = carried_out(model, items_of(adapter, names, clip), tmp_path, caplog)
        assert not server.script
    seen = {
        key: (first.kind, first.retryable, first.maybe_paid)
        for key, (first, *_) in met.raised.items()
    }
    assert seen == {key: wanted(adapter, fault) for key, fault in faults.items()}
    told = dict.fromkeys(names[len(faults) :], "replied")
    assert met.ends == told | {
        key: "replied" if is_retried(fault) else f"failed: {fault.kind}"
        for key, fault in faults.items()
    }
    for key, fault in faults.items():
        [problem] = met.raised[key]
        if fault.status is not None:
            assert problem.status == fault.status, key
            assert f"{model.name}: HTTP {fault.status}: " in problem.message
            assert "what went wrong" in problem.message
        assert problem.retry_after_s == (
            None
            if fault.wait_s is None
            else pytest.approx(fault.wait_s, abs=5 if fault.wait_s > 1 else 0.001)
        ), key
    failed = sum(not is_retried(fault) for fault in faults.values())
    summary = met.summary
    assert (summary.total, summary.failed, summary.replied) == (
        len(names), failed, len(names) - failed,
    )  # fmt: skip
    assert summary.retries == len(faults) - failed
    assert summary.calls == len(names) + summary.retries
    assert summary.maybe_paid == sum(paid for _, _, paid in seen.values())
    assert KEY not in met.written
    assert "SECRET" not in met.written
    assert audio[:60] not in met.written
    assert not re.search(r"[A-Za-z0-9+/]{80,}", met.written.replace(str(tmp_path), ""))


@pytest.mark.parametrize("name", WHOLE)
def test_patience_has_an_end(
    name: str, make_clip: Any, at_home: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    adapter = ADAPTERS[name]
    faults = {key: fault for key, fault in FAULTS.items() if fault.impatient}
    with served(adapter) as server:
        for fault in faults.values():
            server.script.extend([fault.act(adapter.error, "")] * 2)
        model = at_home(adapter, server.url, 0.15)
        met = carried_out(
            model, items_of(adapter, list(faults), make_clip(seconds=0.2)), tmp_path, caplog
        )
    assert met.ends == dict.fromkeys(faults, "failed: timeout")
    for several in met.raised.values():
        assert [(each.kind, each.retryable) for each in several] == [("timeout", True)] * 2
        assert all("no complete answer within 0.15 s" in each.message for each in several)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("untrusted", [False, True], ids=["refused", "certificate"])
def test_nobody_there_or_nobody_to_trust(
    name: str, untrusted: bool, make_clip: Any, at_home: Any, tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    adapter = ADAPTERS[name]
    items = items_of(adapter, ["one"], make_clip(seconds=0.2))
    if untrusted:
        with served(adapter, untrusted=True) as server:
            met = carried_out(at_home(adapter, server.url, 60.0), items, tmp_path, caplog)
            assert server.calls == []
        kind, calls, words = "tls", 1, "is not trusted: "
    else:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}{adapter.server.prefix}"
            met = carried_out(at_home(adapter, url, 60.0), items, tmp_path, caplog)
        kind, calls, words = "connection", 2, "cannot connect to http://127.0.0.1"
    assert met.ends == {"one": f"failed: {kind}"}
    assert (met.summary.calls, met.summary.maybe_paid) == (calls, 0)
    assert all(words in each.message for each in met.raised["one"])
    assert KEY not in met.written


class PlainServer(LoopbackServer):
    """Knows nothing of WebSockets."""

    prefix = "/v1"

    def respond(self, call: Call) -> Act:
        return html()


@pytest.mark.parametrize("name", ["openai-realtime/m", "hume-realtime/audio"])
def test_what_stands_in_place_of_a_websocket(
    name: str, make_clip: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Nothing has been sent then, so nothing can have been paid."""
    monkeypatch.setenv("THE_KEY", KEY)
    adapter = Adapter(name, PlainServer, error, paid=False)
    faults = {
        key: fault
        for key, fault in FAULTS.items()
        if fault.status is not None or fault.kind == "connection" or key == "web page"
    }
    with PlainServer() as server:
        for fault in faults.values():
            server.script.append(fault.act(error, KEY))
            if is_retried(fault):
                server.script.append(error(403, "enough"))
        model = open_model(name, {"base_url": server.url, "api_key_env": "THE_KEY"})
        items = items_of(adapter, list(faults), make_clip(seconds=0.2))
        met = carried_out(model, items, tmp_path, caplog)
        assert not server.script
    for key, fault in faults.items():
        first, *rest = met.raised[key]
        # A body is not promised with a WebSocket's answer: cut short or reset, it is the status that counts.
        kinds = {fault.kind, "bad_reply"} if fault.kind == "connection" else {fault.kind}
        assert first.kind in kinds, key
        assert (first.retryable, first.maybe_paid) == (fault.retryable, False), key
        assert [each.kind for each in rest] == ["auth"] * is_retried(fault), key
    assert met.summary.failed == len(faults)
    assert met.summary.maybe_paid == 0
    assert KEY not in met.written
