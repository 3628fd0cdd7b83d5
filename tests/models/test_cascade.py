"""``cascade/TRANSCRIBER+TEXTMODEL``: a real program that transcribes, a real service that reads."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from earwitness.errors import ModelError, UsageError
from earwitness.models.protocols import Reply, Request
from earwitness.models.registry import open_model
from tests.models.conftest import PROMPT, ask, without_audio
from tests.standins.loopback import error
from tests.standins.openai_server import OpenAIServer


@pytest.fixture
def transcriber(tmp_path: Path) -> Any:
    """Makes a transcriber of Python code that has the file's name in ``sys.argv[1]``."""

    def make(code: str) -> str:
        path = tmp_path / "transcriber.py"
        path.write_text("import sys, wave\n" + code)
        return json.dumps({"run": shlex.join([sys.executable, "-S", "-E", str(path)]) + " {file}"})

    return make


def open_cascade(listening: str, server: OpenAIServer, **options: str) -> Any:
    reading = json.dumps({"base_url": server.url, "temperature": 0})
    given = {"transcriber_options": listening, "text_options": reading, **options}
    return open_model("cascade/command/ears+openai/reader", given)


def meet(listening: str, server: OpenAIServer, request: Request, **options: str) -> Reply:
    return ask(open_cascade(listening, server, **options), request)


def test_the_text_model_reads_what_was_said(transcriber: Any, request_: Request) -> None:
    seconds = (
        "w = wave.open(sys.argv[1]); print('one', round(w.getnframes() / w.getframerate()), 'two')"
    )
    with OpenAIServer() as server:
        reply = meet(transcriber(seconds), server, request_)
        [asked] = server.asked
    assert reply.text == "neutral"
    assert asked.audio is None
    assert asked.prompt.startswith(PROMPT.user)
    assert asked.prompt.endswith("as a speech recogniser wrote it down:\n\none 1 two")
    assert reply.raw["transcript"] == "one 1 two"
    assert reply.latency_s > reply.raw["transcribing_s"] > 0


def test_no_words_are_told_as_no_words(transcriber: Any, request_: Request) -> None:
    with OpenAIServer() as server:
        reply = meet(transcriber("pass"), server, request_)
        meet(transcriber("pass"), server, request_, nothing="(nothing)", lead="It says:")
        first, second = server.asked
    assert first.prompt.endswith("(the speech recogniser heard no words)")
    assert second.prompt.endswith("It says:\n\n(nothing)")
    assert reply.raw["transcript"] == ""


def test_without_audio_nothing_is_added(transcriber: Any, request_: Request) -> None:
    with OpenAIServer() as server:
        meet(transcriber("raise SystemExit(1)"), server, without_audio(request_))
        assert server.asked[0].prompt == PROMPT.user


def test_either_half_may_fail(transcriber: Any, request_: Request) -> None:
    with OpenAIServer() as server:
        with pytest.raises(ModelError, match="ended with code 4") as caught:
            meet(transcriber("sys.exit(4)"), server, request_)
        assert (caught.value.kind, caught.value.retryable) == ("transcriber", False)
    with OpenAIServer(error(529, "overloaded")) as server:
        with pytest.raises(ModelError, match="overloaded") as caught:
            meet(transcriber("print('x')"), server, request_)
        assert (caught.value.kind, caught.value.retryable) == ("server", True)


def test_settings_hold_both_halves(transcriber: Any) -> None:
    with OpenAIServer() as server:
        settings = open_cascade(transcriber("pass"), server).settings
    assert settings["transcriber"]["name"] == "command/ears"
    assert settings["text"]["name"] == "openai/reader"
    assert settings["text"]["temperature"] == 0.0
    json.dumps(settings)


def test_a_key_that_is_missing_is_seen_before_the_first_call(
    transcriber: Any, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    model = open_model(
        "cascade/command/ears+anthropic/m", {"transcriber_options": transcriber("pass")}
    )
    with pytest.raises(UsageError, match="ANTHROPIC_API_KEY is not set"):
        model.preflight([request_])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cascade/whisper/base", r"names no transcriber and text model.*cascade/whisper/base\+"),
        ("cascade/+openai/m", "names no transcriber"),
        ("cascade/nobody/x+openai/m", "transcriber 'nobody/x': there is none"),
        ("cascade/a/b+cascade/c/d+openai/m", "holds another cascade"),
    ],
)
def test_names_that_are_none(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        open_model(name)
