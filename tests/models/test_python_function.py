"""Functions as models."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from earwitness.errors import ModelError, UsageError
from earwitness.models.protocols import AudioRef, Reply, Request
from earwitness.models.registry import open_model
from tests.models.conftest import PROMPT, ask, open_and_ask, without_audio

HERE = "python/tests.models.test_python_function"


def words(audio: Any, prompt: str, suffix: str = "") -> str:
    return f"{audio.rate} {audio.channels} {audio.frames}{suffix}"


async def scores(audio: Any, prompt: str) -> dict[str, float]:
    return {"anger": float(abs(audio.samples).max()), "Ruhe": 0}


def whole(audio: Any, prompt: str) -> Reply:
    return Reply(text=prompt[:5], finish="length")


def blind(audio: Any, prompt: str) -> str:
    return str(audio)


def broken(audio: Any, prompt: str) -> str:
    raise RuntimeError("no weights")


def busy(audio: Any, prompt: str) -> str:
    raise ModelError("try later", kind="rate_limit", retryable=True, retry_after_s=1.0)


def nothing(audio: Any, prompt: str) -> None:
    return None


def not_a_number(audio: Any, prompt: str) -> dict[str, float]:
    return {"anger": float("nan")}


def not_a_score(audio: Any, prompt: str) -> dict[str, Any]:
    return {"anger": "much"}


class Counting:
    lock = threading.Lock()
    now = most = 0


def counted(audio: Any, prompt: str) -> str:
    with Counting.lock:
        Counting.now += 1
        Counting.most = max(Counting.most, Counting.now)
    time.sleep(0.01)
    with Counting.lock:
        Counting.now -= 1
    return "x"


no_function = 3


def test_words(request_: Request) -> None:
    assert open_and_ask(f"{HERE}:words", request_).text == "16000 1 16000"


def test_options_go_to_the_function_and_to_the_adapter(make_clip: Callable[..., AudioRef]) -> None:
    request = Request("i", PROMPT, make_clip(rate=48_000, channels=2))
    assert open_and_ask(f"{HERE}:words", request, rate="8000", suffix="!").text == "8000 1 8000!"
    assert open_and_ask(f"{HERE}:words", request, mono="no").text == "48000 2 48000"


def test_scores_of_a_coroutine_stay_native(request_: Request) -> None:
    reply = open_and_ask(f"{HERE}:scores", request_)
    assert reply.text is None
    assert reply.scores == {"anger": pytest.approx(0.1, abs=1e-3), "Ruhe": 0.0}


def test_silence_reaches_the_function_as_silence(make_clip: Callable[..., AudioRef]) -> None:
    request = Request("i", PROMPT, make_clip(transform="silence"))
    assert open_and_ask(f"{HERE}:scores", request).scores == {"anger": 0.0, "Ruhe": 0.0}


def test_a_whole_reply(request_: Request) -> None:
    assert open_and_ask(f"{HERE}:whole", request_).finish == "length"


def test_no_audio_is_none(request_: Request) -> None:
    assert open_and_ask(f"{HERE}:blind", without_audio(request_)).text == "None"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("broken", r"raised RuntimeError: no weights \(test_python_function.py, line \d+\)"),
        ("nothing", "returned a NoneType; wanted text, or a dictionary"),
        ("not_a_number", "returned a score nan for 'anger'"),
        ("not_a_score", "returned a score 'much' for 'anger'"),
    ],
)
def test_faults_of_the_function(request_: Request, function: str, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        open_and_ask(f"{HERE}:{function}", request_)
    assert (caught.value.kind, caught.value.retryable) == ("bug", False)


def test_a_function_may_ask_for_another_try(request_: Request) -> None:
    with pytest.raises(ModelError, match="try later") as caught:
        open_and_ask(f"{HERE}:busy", request_)
    assert (caught.value.retryable, caught.value.retry_after_s) == (True, 1.0)


def test_a_clip_that_cannot_be_read(request_: Request) -> None:
    assert request_.audio is not None
    request_.audio.path.write_bytes(b"")
    with pytest.raises(ModelError, match="empty") as caught:
        open_and_ask(f"{HERE}:words", request_)
    assert (caught.value.kind, caught.value.retryable) == ("audio", False)


@pytest.mark.parametrize(("threads", "most"), [(1, 1), (3, 3)])
def test_threads_bound_the_calls_at_the_same_time(
    request_: Request, threads: int, most: int
) -> None:
    Counting.most = 0
    model = open_model(f"{HERE}:counted", {"threads": threads})

    async def run() -> None:
        await asyncio.gather(*(model.ask(without_audio(request_)) for _ in range(9)))
        await model.aclose()

    asyncio.run(run())
    assert 1 <= Counting.most <= most


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("python/tests.models", {}, "names no function"),
        ("python/no.such:f", {}, "cannot import no.such: no module 'no'"),
        ("python/no.py:f", {}, "there is no file no.py"),
        (f"{HERE}:missing", {}, "has no function 'missing'"),
        (f"{HERE}:no_function", {}, "has no function 'no_function'"),
        (
            f"{HERE}:words",
            {"prefix": "x"},
            r"cannot be called as function\(audio, prompt, prefix=...\)",
        ),
        (f"{HERE}:words", {"rate": "x"}, "wanted a whole number"),
    ],
)
def test_what_cannot_be_opened(name: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_model(name, options)


def test_a_file_and_its_content_in_the_settings(tmp_path: Path, request_: Request) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def predict(audio, prompt):\n    return 'fear'\n")
    model = open_model(f"python/{path}:predict")
    before = model.settings
    assert ask(model, request_).text == "fear"
    path.write_text("def predict(audio, prompt):\n    return 'anger'\n")
    again = open_model(f"python/{path}:predict")
    assert again.settings != before
    assert ask(again, request_).text == "anger"


def test_a_module_in_the_current_folder(
    tmp_path: Path, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    (tmp_path / "module_of_mine.py").write_text("def predict(audio, prompt):\n    return 'fear'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert open_and_ask("python/module_of_mine:predict", request_).text == "fear"


def test_a_module_that_fails_on_import(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("x = 1\n1 / 0\n")
    with pytest.raises(
        UsageError, match=r"raised ZeroDivisionError: division by zero \(bad.py, line 2\)"
    ):
        open_model(f"python/{path}:predict")
