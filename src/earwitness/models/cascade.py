"""``cascade/TRANSCRIBER+TEXTMODEL``: listen with one model, answer with another that reads.

The control that hears words and nothing else: a transcriber writes down what is said, and a text model
answers from that. Tone, voices and sounds are lost on the way, on purpose. The transcript is kept with
every reply.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from earwitness.errors import EarwitnessError, ModelError, UsageError
from earwitness.models.adapter import AdapterInfo
from earwitness.models.options import Option, read_options
from earwitness.models.protocols import (
    Limits,
    Message,
    Prompt,
    Reply,
    Request,
    TextModel,
    Transcriber,
)
from earwitness.models.python_function import read_stimulus
from earwitness.models.transcribers.lines import as_lines

LEAD = "What is said in the recording, as a speech recogniser wrote it down:"
NOTHING = "(the speech recogniser heard no words)"

OPTIONS: tuple[Option, ...] = (
    Option("transcriber_options", "json", "options of the transcriber, as a JSON object"),
    Option("text_options", "json", "options of the text model, as a JSON object"),
    Option("lead", "text", "words before the transcript", LEAD),
    Option("nothing", "text", "what stands for a transcript without words", NOTHING),
    Option(
        "times",
        "yes/no",
        "write the transcript in lines with times [default: yes for a text model that reads them]",
    ),
    Option("threads", "integer", "recordings transcribed at the same time", 1, least=1),
)

INFO = AdapterInfo(
    name="cascade",
    form="cascade/TRANSCRIBER+TEXTMODEL",
    summary="A transcriber and a text model that reads what it wrote: words without voices",
    options=OPTIONS,
    limits=Limits(formats=("wav", "flac", "mp3", "ogg", "aiff")),
    examples=("cascade/whisper/base+anthropic/claude-sonnet-4-6",),
)


@dataclass(eq=False)
class Cascade:
    """A transcriber before a text model. Use :func:`open` to make one."""

    name: str
    limits: Limits
    _transcriber: Transcriber
    _text: TextModel
    _values: Mapping[str, Any]
    _pool: ThreadPoolExecutor
    _times: bool = False

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of both, and the words between them."""
        return {
            "transcriber": {"name": self._transcriber.name, **self._transcriber.settings},
            "text": {"name": self._text.name, **self._text.settings},
            "lead": self._values["lead"],
            "nothing": self._values["nothing"],
            **({"times": True} if self._times else {}),
        }

    def preflight(self, requests: Sequence[Request]) -> None:
        """Refuse what the text model would refuse.

        Raises
        ------
        UsageError: no key, or whatever else stands in its way.
        """
        del requests
        check = getattr(self._text, "preflight", None)
        if check is not None:
            check()

    async def ask(self, request: Request) -> Reply:
        """Transcribe and ask.

        Raises
        ------
        ModelError: ``audio`` (the clip cannot be read), ``transcriber`` (it failed), or what the text
            model raises.
        """
        loop = asyncio.get_running_loop()
        words, heard_s = "", 0.0
        if request.audio is not None:
            began = loop.time()
            words = await loop.run_in_executor(self._pool, self._transcript, request)
            heard_s = loop.time() - began
        prompt = request.prompt
        system = [Message("system", prompt.system)] if prompt.system else []
        reply = await self._text.complete(
            [*system, Message("user", self._question(prompt, words, request.audio is not None))],
            prompt.schema,
        )
        if request.audio is None:
            return reply
        raw = {**reply.raw, "transcript": words, "transcribing_s": round(heard_s, 3)}
        return replace(reply, raw=raw, latency_s=reply.latency_s + heard_s)

    async def aclose(self) -> None:
        """Close the text model and end the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        await self._text.aclose()

    def _question(self, prompt: Prompt, words: str, with_audio: bool) -> str:
        if not with_audio:
            return prompt.user
        return f"{prompt.user}\n\n{self._values['lead']}\n\n{words or self._values['nothing']}"

    def _transcript(self, request: Request) -> str:
        try:
            audio = read_stimulus(request)
        except EarwitnessError as error:
            raise ModelError(f"{self.name}: {error}", kind="audio", retryable=False) from error
        try:
            heard = self._transcriber.transcribe(audio)
            if self._times and heard.words:
                return as_lines(heard)
            return heard.text.strip()
        except ModelError:
            raise
        except EarwitnessError as error:
            raise ModelError(
                f"{self.name}: {error}", kind="transcriber", retryable=False
            ) from error


def open(name: str, options: Mapping[str, Any]) -> Cascade:  # noqa: A001
    """Open ``cascade/TRANSCRIBER+TEXTMODEL``.

    Raises
    ------
    UsageError: no such transcriber, text model or option.
    MissingExtraError: the transcriber's packages are not installed.
    """
    from earwitness.models.registry import open_text_model
    from earwitness.models.transcribers.registry import open_transcriber

    full = f"cascade/{name}"
    heard, plus, read = name.partition("+")
    if not plus or not heard or not read:
        raise UsageError(
            f"model {full!r}",
            "names no transcriber and text model",
            INFO.form,
            f"Such as {INFO.examples[0]}.",
        )
    values = read_options(full, options, OPTIONS)
    if read.partition("/")[0] == "cascade":
        raise UsageError(f"model {full!r}", "holds another cascade", "a text model")
    text = open_text_model(read, values["text_options"] or {})
    limits = text.limits
    times = limits.reads_times if values["times"] is None else values["times"]
    return Cascade(
        name=full,
        limits=replace(INFO.limits, tasks=limits.tasks, needs_choices=limits.needs_choices),
        _transcriber=open_transcriber(heard, values["transcriber_options"] or {}),
        _text=text,
        _values=values,
        _times=times,
        _pool=ThreadPoolExecutor(values["threads"], thread_name_prefix="earwitness-transcriber"),
    )
