"""The vendors whose descriptions ship: a stand-in for each, of the form its reference describes."""

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
from tests.standins.listening import listen
from tests.standins.loopback import Act, Call, LoopbackServer, json_act
from tests.standins.vendor_server import parse_form


class HumeServer(LoopbackServer):
    """Audio upload: one form with the file, windows of speech in the answer."""

    windows: tuple[dict[str, float], ...] = ({"joy": 0.8, "neutral": 0.2}, {"joy": 0.4})

    def respond(self, call: Call) -> Act:
        if call.headers.get("x-hume-api-key") != KEY:
            return json_act(
                {"type": "error", "code": "unauthorized", "message": "no", "request_id": "r"}, 401
            )
        assert (call.method, call.path) == ("POST", "/v1/expression/audio/file")
        [part] = parse_form(call.headers["content-type"], call.body)
        heard = listen(part.data)
        if (part.name, part.media_type, heard.rate) != ("file", "audio/wav", 16_000):
            return json_act(
                {"type": "error", "code": "audio_format_invalid", "message": "16 kHz"}, 400
            )
        measurements = [
            {
                "measurement_id": at, "utterance_id": 0, "audio_start_ms": 3000 * at, "audio_end_ms": 3000 * at + 3000,
                "trigger": "interval", "voice_attributes": [{"name": "husky", "probability": 0.9}],
                "expressions": [{"name": name, "probability": p} for name, p in scores.items()],
            }
            for at, scores in enumerate(self.windows)
        ]  # fmt: skip
        duration = {"audio_duration_ms": round(heard.seconds * 1000)}
        return json_act(
            {
                "request_id": "req-1",
                "run_id": "run-1",
                "received": duration,
                "utterances": [],
                "measurements": measurements,
            }
        )


class OrukServer(LoopbackServer):
    """Emotions of a file: a form with the file and a model, labels with scores."""

    def respond(self, call: Call) -> Act:
        if call.headers.get("authorization") != f"Bearer {KEY}":
            return json_act({"error": {"code": "invalid_api_key", "message": "no"}}, 401)
        assert call.path == "/v1/audio/emotions"
        parts = {part.name: part for part in parse_form(call.headers["content-type"], call.body)}
        listen(parts["file"].data)
        assert parts["model"].data == b"oruk-resonance"
        assert call.headers["x-request-id"] == "key-of-the-reply"
        scores = [{"label": "happy", "score": 0.9}, {"label": "excited", "score": 0.4}]
        return json_act({"emotions": scores, "usage": {"duration": 1.0}})


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
    assert meet(at_home("oruk"), OrukServer(), request_).scores == {"happy": 0.9, "excited": 0.4}


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
