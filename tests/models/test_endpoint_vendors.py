"""The vendors whose descriptions ship, each against its stand-in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from earwitness.errors import ModelError, UsageError
from earwitness.models import endpoint_schema
from earwitness.models.endpoint_schema import load_description
from earwitness.models.protocols import AudioRef, Reply, Request
from earwitness.models.registry import open_model
from tests.models.conftest import KEY, PROMPT, open_and_ask
from tests.standins.loopback import LoopbackServer
from tests.standins.vendors import HumeServer, OrukServer


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """A shipped description that speaks http, for a stand-in that has no certificate."""
    for name in ("HUME_API_KEY", "ORUK_API_KEY"):
        monkeypatch.setenv(name, KEY)

    def copy(name: str) -> str:
        text = (endpoint_schema.ENDPOINTS / f"{name}.yaml").read_text("utf-8")
        path = tmp_path / f"{name}.yaml"
        path.write_text(text.replace('"https://', '"http://'), "utf-8")
        return f"endpoint/{path}"

    return copy


def meet(model: str, server: LoopbackServer, request: Request) -> Reply:
    with server:
        return open_and_ask(model, request, host=f"127.0.0.1:{server.port}")


def test_hume(at_home: Any, make_clip: Callable[..., AudioRef]) -> None:
    reply = meet(at_home("hume"), HumeServer(), Request("i", PROMPT, make_clip(rate=48_000)))
    assert reply.scores == pytest.approx({"joy": 0.6, "neutral": 0.1})
    assert reply.provider_id == "req-1"
    assert reply.raw["windows"][0] == {
        "start": 0.0,
        "end": 3000.0,
        "scores": {"joy": 0.8, "neutral": 0.2},
    }
    assert reply.raw["stimulus"]["note"] == "resampled from 48000 to 16000 Hz"


@pytest.mark.parametrize("windows", [(), ({},)], ids=["no speech", "nothing judged present"])
def test_hume_hears_nothing(at_home: Any, request_: Request, windows: Any) -> None:
    server = HumeServer()
    server.windows = windows
    assert meet(at_home("hume"), server, request_).scores == {}


def test_oruk(at_home: Any, request_: Request) -> None:
    server = OrukServer()
    assert meet(at_home("oruk"), server, request_).scores == {"happy": 0.9, "excited": 0.4}
    # The service tells a repeated call by it.
    assert server.requests == ["key-of-the-reply"]


@pytest.mark.parametrize(
    ("name", "server", "variable"),
    [("hume", HumeServer, "HUME_API_KEY"), ("oruk", OrukServer, "ORUK_API_KEY")],
)
def test_keys(
    at_home: Any,
    request_: Request,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    server: Any,
    variable: str,
) -> None:
    monkeypatch.setenv(variable, "wrong-key-000")
    with pytest.raises(ModelError, match="HTTP 401") as caught:
        meet(at_home(name), server(), request_)
    monkeypatch.delenv(variable)
    assert caught.value.kind == "auth"
    with pytest.raises(UsageError, match=f"{variable} is not set"):
        open_model(f"endpoint/{name}").preflight([request_])  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["hume", "oruk"])
def test_what_was_not_run_says_so(name: str) -> None:
    description = load_description(name)
    assert description.documented.startswith("2026-11")
    assert not description.template
    text = " ".join(
        (endpoint_schema.ENDPOINTS / f"{name}.yaml").read_text("utf-8").replace("\n#", "").split()
    )
    assert "never run against the service" in text
