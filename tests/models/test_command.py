"""``command/NAME``: real programs, well behaved and not."""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from earwitness.errors import ModelError, UsageError
from earwitness.models import command
from earwitness.models.protocols import Message, Reply, Request
from earwitness.models.registry import open_model, open_text_model
from tests.models.conftest import EMOTIONS, PROMPT, open_and_ask, without_audio


@pytest.fixture
def program(tmp_path: Path) -> Any:
    """Makes a program of the Python code and returns its command line."""

    def make(code: str) -> str:
        path = tmp_path / "program.py"
        path.write_text("import json, os, sys, time\n" + code)
        return shlex.join([sys.executable, "-S", "-E", str(path)])

    return make


def run(line: str, request: Request, **options: str) -> Reply:
    return open_and_ask("command/mine", request, run=line, **options)


def failure(line: str, request: Request, **options: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        run(line, request, **options)
    return caught.value


def test_the_question_and_the_answer(program: Any, request_: Request) -> None:
    said = program(
        "q = json.load(sys.stdin)\n"
        "q['size'] = os.path.getsize(q['audio']['path'])\n"
        "q['files'] = os.listdir(os.path.dirname(q['audio']['path']))\n"
        "print(json.dumps({'text': json.dumps(q)}))"
    )
    import json

    reply = run(said, request_)
    asked = json.loads(reply.text or "")
    assert asked["prompt"] == PROMPT.user
    assert asked["choices"] == list(EMOTIONS)
    assert asked["audio"]["seconds"] == 1.0
    assert asked["size"] > 30_000
    assert asked["files"] == ["audio.wav"]
    assert "item-1" not in reply.text  # type: ignore[operator]
    assert not Path(asked["audio"]["path"]).parent.exists()
    assert reply.raw["stimulus"]["format"] == "wav"


@pytest.mark.parametrize(
    ("printed", "text", "scores", "finish"),
    [
        ("anger\\n", "anger", None, "stop"),
        ("two\\nlines", "two\nlines", None, "stop"),
        ('{"text": "fear", "finish": "length"}', "fear", None, "length"),
        ('{"text": ""}', "", None, "stop"),
        ('{"scores": {"joy": 0.7, "calm": 1}}', None, {"joy": 0.7, "calm": 1.0}, "stop"),
        ('{"label": "fear"}', '{"label": "fear"}', None, "stop"),
    ],
)
def test_what_may_be_printed(
    program: Any, request_: Request, printed: str, text: Any, scores: Any, finish: str
) -> None:
    reply = run(program(f"sys.stdout.write('{printed}')"), without_audio(request_))
    assert (reply.text, reply.scores, reply.finish) == (text, scores, finish)


@pytest.mark.parametrize(
    ("code", "kind", "retryable", "words"),
    [
        ("sys.stderr.write('a\\nCUDA is not there\\n'); sys.exit(3)", "program", False, "ended with code 3: a CUDA is not there"),
        ("sys.exit(75)", "program", True, "code 75: without a word"),
        ("os.kill(os.getpid(), 9)", "program", False, "ended by signal 9"),
        ("pass", "bad_reply", False, "printed nothing"),
        ("sys.stderr.write('odd')", "bad_reply", False, "printed nothing; it said: odd"),
        ("print('{\"text\": ')", "bad_reply", False, "printed broken JSON"),
        ("print('{\"text\": 3}')", "bad_reply", False, "a text that is no string"),
        ("print('{\"scores\": [1]}')", "bad_reply", False, "scores that are no object"),
        ("print('{\"scores\": {\"a\": \"b\"}}')", "bad_reply", False, "a score for 'a'"),
        ("print('{\"scores\": {\"a\": NaN}}')", "bad_reply", False, "no finite number"),
        ("print('{\"text\": \"x\", \"finish\": \"done\"}')", "bad_reply", False, "printed finish 'done'"),
        ("sys.stderr.write('x ' * 250_000 + 'the end'); sys.exit(1)", "program", False, "the end"),
        ("sys.stderr.write('data:audio/wav;base64,' + 'QUJD' * 100); sys.exit(1)", "program", False, "[audio removed]"),
    ],
)  # fmt: skip
def test_programs_that_fail(
    program: Any, request_: Request, code: str, kind: str, retryable: bool, words: str
) -> None:
    problem = failure(program(code), without_audio(request_), retry_codes="75")
    assert (problem.kind, problem.retryable) == (kind, retryable)
    assert words in problem.message
    assert len(problem.message) < 800


def test_a_program_that_takes_too_long_is_ended_with_what_it_started(
    program: Any, request_: Request, tmp_path: Path
) -> None:
    sign = tmp_path / "alive"
    child = f"import time; time.sleep(1.5); open({str(sign)!r}, 'w')"
    line = program(
        f"import subprocess\nsubprocess.Popen([sys.executable, '-c', {child!r}])\n"
        "sys.stderr.write('loading'); sys.stderr.flush(); time.sleep(60)"
    )
    began = time.monotonic()
    problem = failure(line, request_, timeout_s="0.7")
    assert (problem.kind, problem.retryable, problem.maybe_paid) == ("timeout", True, True)
    assert "no answer within 0.7 s; the last it said: loading" in problem.message
    assert time.monotonic() - began < 10
    time.sleep(1.2)
    assert not sign.exists()


def test_a_program_that_never_stops_printing(
    program: Any, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "MAX_OUTPUT_BYTES", 100_000)
    problem = failure(program("while True: print('x' * 1000)"), without_audio(request_))
    assert (problem.kind, problem.retryable) == ("bad_reply", False)
    assert "printed more than 100,000 bytes" in problem.message


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_program_that_is_ended_while_its_pipes_are_full(
    program: Any, request_: Request, monkeypatch: pytest.MonkeyPatch, stream: str
) -> None:
    monkeypatch.setattr(command, "MAX_OUTPUT_BYTES", 10_000)
    flood = f"while True: os.write(sys.{stream}.fileno(), b'x' * 1_000_000)"
    began = time.monotonic()
    for _ in range(5):
        problem = failure(program(flood), without_audio(request_), timeout_s="0.5")
        assert problem.kind == ("bad_reply" if stream == "stdout" else "timeout")
    assert time.monotonic() - began < 20


def test_a_helper_that_has_left_the_group_holds_nothing_up(
    program: Any, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "ENDING_S", 0.3)
    line = program(
        "import subprocess\n"
        "subprocess.Popen(['sleep', '8'], start_new_session=True)\n"
        "time.sleep(60)"
    )
    began = time.monotonic()
    assert failure(line, without_audio(request_), timeout_s="0.5").kind == "timeout"
    assert time.monotonic() - began < 5


def test_a_program_that_does_not_read_its_question(program: Any, request_: Request) -> None:
    assert run(program("os.close(0); print('neutral')"), request_).text == "neutral"


def test_no_shell_is_involved(program: Any, request_: Request, tmp_path: Path) -> None:
    line = program("print(sys.argv[1:])") + f" '; touch {tmp_path}/x' '$HOME' '*'"
    assert run(line, without_audio(request_)).text == str([f"; touch {tmp_path}/x", "$HOME", "*"])
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "no program is given"),
        ({"run": "'open"}, "cannot be split"),
        ({"run": "no-such-program-here x"}, "there is no program 'no-such-program-here'"),
        ({"run": "true", "retry_codes": "x"}, "numbers, such as 75"),
    ],
)
def test_what_does_not_fit(options: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        open_model("command/mine", options)


def test_another_state_of_the_program_is_another_model() -> None:
    first, second = (open_model("command/m", {"run": "true", "version": v}) for v in "12")
    assert first.settings != second.settings


def test_as_a_text_model(program: Any) -> None:
    line = program(
        "q = json.load(sys.stdin); print(q['messages'][0]['role'], q['prompt'], q['schema'])"
    )
    model = open_text_model("command/writer", {"run": line})
    reply = asyncio.run(
        model.complete([Message("system", "S"), Message("user", "hello")], {"type": "object"})
    )
    assert reply.text == "system hello {'type': 'object'}"
