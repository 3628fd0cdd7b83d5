"""``command/NAME``: any program as a model.

The program is started once a question, without a shell. It gets a JSON object on standard input and prints
the answer: bare words, or a JSON object with ``text`` or ``scores`` (and optionally ``finish``).

What it gets::

    {"version": 1, "prompt": "...", "system": null, "choices": ["anger", ...],
     "audio": {"path": "/.../audio.wav", "seconds": 2.1, "format": "wav"}}

``audio`` is null for a question without one. The file is a copy under a name that says nothing, in a folder
of its own that is removed afterwards; the item's id and what is known about it are not told.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from earwitness.errors import ModelError, UsageError
from earwitness.models.adapter import AdapterInfo
from earwitness.models.chat_parts import with_stimulus
from earwitness.models.openai_chat import stimulus
from earwitness.models.options import LIMIT_OPTIONS, Option, limits_from, read_options
from earwitness.models.payload import Payload
from earwitness.models.protocols import FinishReason, Limits, Message, Reply, Request
from earwitness.models.redaction import LONG_RUN, Redactor

MAX_OUTPUT_BYTES = 4 * 1024 * 1024
TAIL_BYTES = 2000
ENDING_S = 5.0
"""Longest wait for the pipes of a program that was ended."""

OPTIONS: tuple[Option, ...] = (
    Option(
        "run", "text", "the program with its arguments, split as a shell would, run without one"
    ),
    Option("timeout_s", "number", "longest time for one answer, in seconds", 300.0, least=0.05),
    Option("version", "text", "what you call this state of the program; another one is asked anew"),
    Option(
        "retry_codes",
        "list",
        "exit codes after which another try may help, such as 75 (a temporary failure)",
        (),
    ),
    Option(
        "prefer", "text", "format for clips that must be converted", "wav", choices=("wav", "flac")
    ),
    *LIMIT_OPTIONS,
)

INFO = AdapterInfo(
    name="command",
    form="command/NAME",
    summary="Any program: a question as JSON on its standard input, words or JSON back",
    options=OPTIONS,
    limits=Limits(formats=("wav", "flac", "mp3", "ogg", "aiff")),
    examples=('command/mine -M run="python mine.py --gpu 0"',),
)


@dataclass(eq=False)
class Command:
    """A program as a model. Use :func:`open` to make one."""

    name: str
    limits: Limits
    _arguments: tuple[str, ...]
    _values: Mapping[str, Any]
    _retry_codes: frozenset[int]
    _redact: Redactor

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def settings(self) -> Mapping[str, Any]:
        """The command line and what you call its state. What the program itself reads is not known here."""
        settings: dict[str, Any] = {"run": list(self._arguments), "prefer": self._values["prefer"]}
        if self._values["version"]:
            settings["version"] = self._values["version"]
        settings["formats"] = list(self.limits.formats)
        if self.limits.rates:
            settings["rates"] = list(self.limits.rates)
        return settings

    async def ask(self, request: Request) -> Reply:
        """Start the program with one question.

        Raises
        ------
        ModelError: ``audio``, ``timeout``, ``missing`` (no such program), ``program`` (it ended with an
            exit code), ``bad_reply`` (it printed nothing usable).
        """
        payload = None
        if request.audio is not None:
            payload = await stimulus(self.name, request, self.limits, self._values["prefer"])
        prompt = request.prompt
        question: dict[str, Any] = {
            "version": 1,
            "prompt": prompt.user,
            "system": prompt.system,
            "choices": list(prompt.choices),
            "audio": None,
        }
        if payload is None:
            return await self._asked(question)
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="earwitness-"))
        try:
            path = folder / f"audio.{payload.format}"
            await asyncio.to_thread(_write, path, payload)
            question["audio"] = {
                "path": str(path),
                "seconds": round(payload.seconds, 6),
                "format": payload.format,
            }
            return with_stimulus(await self._asked(question), payload)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def complete(
        self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None
    ) -> Reply:
        """Answer text with text: ``messages`` and ``schema`` stand beside the last user's words.

        Raises
        ------
        ModelError: there is no reply.
        """
        system = "\n\n".join(each.text for each in messages if each.role == "system")
        users = [each.text for each in messages if each.role == "user"]
        return await self._asked(
            {
                "version": 1,
                "prompt": users[-1] if users else "",
                "system": system or None,
                "choices": [],
                "audio": None,
                "messages": [{"role": each.role, "text": each.text} for each in messages],
                "schema": dict(schema) if schema is not None else None,
            }
        )

    async def aclose(self) -> None:
        """Nothing to close: a program lives for one question."""

    async def _asked(self, question: Mapping[str, Any]) -> Reply:
        loop = asyncio.get_running_loop()
        began = loop.time()
        code, out, err = await self._run(json.dumps(question, ensure_ascii=False).encode() + b"\n")
        if code:
            ended = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
            said = self._tail(err)
            raise ModelError(
                f"{self.name}: the program {ended}: {said or 'without a word on standard error'}",
                kind="program",
                retryable=code in self._retry_codes,
                maybe_paid=True,
            )
        return self._reply(out, err, loop.time() - began)

    async def _run(self, question: bytes) -> tuple[int, bytes, bytes]:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                # A group of its own, so that what the program has started ends with it.
                start_new_session=True,
            )
        except OSError as error:
            raise ModelError(
                f"{self.name}: {self._arguments[0]} cannot be run ({error.strerror})",
                kind="missing",
                retryable=False,
            ) from None
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        err = bytearray()
        reading = asyncio.ensure_future(_read(process.stdout))
        others = [
            asyncio.ensure_future(_feed(process.stdin, question)),
            asyncio.ensure_future(_keep_tail(process.stderr, err)),
        ]
        try:
            async with asyncio.timeout(self._values["timeout_s"]):
                await asyncio.gather(reading, *others)
                return await process.wait(), reading.result(), bytes(err)
        except _TooMuchError:
            raise ModelError(
                f"{self.name}: the program printed more than {MAX_OUTPUT_BYTES:,} bytes",
                kind="bad_reply",
                retryable=False,
                maybe_paid=True,
            ) from None
        except TimeoutError:
            said = self._tail(bytes(err))
            raise ModelError(
                f"{self.name}: no answer within {self._values['timeout_s']:g} s"
                + (f"; the last it said: {said}" if said else ""),
                kind="timeout",
                retryable=True,
                maybe_paid=True,
            ) from None
        finally:
            await _end(process, [reading, *others])

    def _reply(self, out: bytes, err: bytes, seconds: float) -> Reply:
        text = out.decode("utf-8", "replace").strip()
        if not text.startswith("{"):
            if not text:
                said = self._tail(err)
                raise self._bad("printed nothing" + (f"; it said: {said}" if said else ""))
            return Reply(text=self._redact(text, run=LONG_RUN), finish="stop", latency_s=seconds)
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            raise self._bad(f"printed broken JSON: {self._redact.excerpt(text)}") from None
        if "text" not in fields and "scores" not in fields:
            # JSON that is itself the model's words, as a forced form gives it.
            return Reply(text=self._redact(text, run=LONG_RUN), latency_s=seconds)
        finish = fields.get("finish", "stop")
        if finish not in get_args(FinishReason):
            raise self._bad(f"printed finish {finish!r}, which is none of {get_args(FinishReason)}")
        words, scores = fields.get("text"), fields.get("scores")
        if scores is not None:
            return Reply(scores=self._scores(scores), finish=finish, latency_s=seconds)
        if not isinstance(words, str):
            raise self._bad("printed a text that is no string")
        return Reply(text=self._redact(words, run=LONG_RUN), finish=finish, latency_s=seconds)

    def _scores(self, scores: Any) -> dict[str, float]:
        if not isinstance(scores, dict):
            raise self._bad("printed scores that are no object")
        read = {}
        for label, score in scores.items():
            number = isinstance(score, int | float) and not isinstance(score, bool)
            if not number or not math.isfinite(score):
                raise self._bad(f"printed a score for {label!r} that is no finite number")
            read[self._redact(label)] = float(score)
        return read

    def _tail(self, err: bytes) -> str:
        lines = self._redact(err.decode("utf-8", "replace")).split("\n")
        return self._redact.excerpt(" ".join(line for line in lines if line.strip())[-500:])

    def _bad(self, what: str) -> ModelError:
        return ModelError(
            f"{self.name}: the program {what}", kind="bad_reply", retryable=False, maybe_paid=True
        )


async def _end(process: asyncio.subprocess.Process, tasks: Sequence[asyncio.Future[Any]]) -> None:
    """End a program and all it started, whatever it is doing."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    assert process.stdout is not None
    assert process.stderr is not None
    # asyncio sees a process off only when its pipes are at their end, and a pipe whose buffer is full is no
    # longer read: what is left has to be taken out. A process that has left the group may hold a pipe open
    # for ever, so this is bounded.
    try:
        async with asyncio.timeout(ENDING_S):
            await asyncio.gather(_discard(process.stdout), _discard(process.stderr))
            await process.wait()
    except TimeoutError:
        # No public call lets go of the pipes.
        process._transport.close()  # type: ignore[attr-defined]


async def _discard(stream: asyncio.StreamReader) -> None:
    while await stream.read(1 << 16):
        pass


def _write(path: Path, payload: Payload) -> None:
    path.write_bytes(payload.data)


async def _feed(stdin: asyncio.StreamWriter, question: bytes) -> None:
    # A program that does not read its question may still answer.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(question)
        await stdin.drain()
    stdin.close()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        await stdin.wait_closed()


class _TooMuchError(Exception):
    pass


async def _read(stdout: asyncio.StreamReader) -> bytes:
    pieces: list[bytes] = []
    total = 0
    while piece := await stdout.read(1 << 16):
        pieces.append(piece)
        total += len(piece)
        if total > MAX_OUTPUT_BYTES:
            raise _TooMuchError
    return b"".join(pieces)


async def _keep_tail(stderr: asyncio.StreamReader, kept: bytearray) -> None:
    while piece := await stderr.read(1 << 14):
        kept += piece
        del kept[:-TAIL_BYTES]


def open(name: str, options: Mapping[str, Any]) -> Command:  # noqa: A001
    """Open ``command/NAME``; the name is yours to choose and stands in tables.

    Raises
    ------
    UsageError: no program, or one that is not there.

    Examples
    --------
    >>> open("mine", {"run": "python -c 'print(1)'"}).name
    'command/mine'
    """
    full = f"command/{name}"
    values = read_options(full, options, OPTIONS)
    try:
        arguments = shlex.split(values["run"] or "")
    except ValueError as error:
        raise UsageError(f"{full}: option run", f"cannot be split ({error})", "a command") from None
    if not arguments:
        raise UsageError(
            full, "no program is given", 'the option run, such as -M run="python mine.py"'
        )
    if shutil.which(arguments[0]) is None:
        raise UsageError(
            f"{full}: option run", f"there is no program {arguments[0]!r}", "one on the path"
        )
    try:
        codes = frozenset(int(code) for code in values["retry_codes"])
    except ValueError:
        raise UsageError(
            f"{full}: option retry_codes", f"{values['retry_codes']!r}", "numbers, such as 75"
        ) from None
    return Command(
        name=full,
        limits=limits_from(values, INFO.limits),
        _arguments=tuple(arguments),
        _values=values,
        _retry_codes=codes,
        _redact=Redactor(),
    )
