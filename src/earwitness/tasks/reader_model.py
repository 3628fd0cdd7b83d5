"""``offline/reader`` as a model that is asked: how do the speakers react, from a transcript with times?

The text-only control that needs no service. It reads the prompt of the reaction task like any model of words: the
transcript that the conditions ``asr``, ``oracle`` and ``oracle-tags`` put before the question, or the one a
``cascade/`` adds, and the moment the question tells. It hears nothing, and it answers no other task.

Conventions:

* A line of the transcript is ``[start-end] words``, with or without ``A:`` or ``B:``. Lines without a speaker (a
  recogniser knows none) are taken as alternating.
* The sound stands before the first line whose middle is later than the moment told. Of other sounds of the scene it
  knows nothing, so its view reaches from there to the end of the talk.
* Where the prompt tells no moment, or has no transcript, it says so; that is no label.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earwitness.errors import UsageError
from earwitness.models.adapter import AdapterInfo
from earwitness.models.options import Option, read_options
from earwitness.models.protocols import Limits, Message, Reply, Request

if TYPE_CHECKING:
    from earwitness.scenes.reader.judge import OfflineReader

NAME = "offline/reader"
VERSION = 1
OPTIONS = (Option("bank", "text", "folder of the bank whose names it knows [the one that ships]"),)
INFO = AdapterInfo(
    name="offline",
    form=NAME,
    summary="Word lists and word vectors that read the reaction off a transcript; no language model",
    options=OPTIONS,
    limits=Limits(formats=(), tasks=("reaction",), reads_times=True),
    examples=(NAME, f"cascade/whisper/base+{NAME}"),
    extra="local",
    modules=("wordllama", "tokenizers"),
)
NO_TRANSCRIPT = "There is no transcript with times to read."
NO_MOMENT = "The question tells no moment, so there is no place to read at."
_LINE = re.compile(r"^\[(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)\] (?:([AB]): )?(.+)$")
_MOMENT = re.compile(r"\b(?:at|[Ss]econd) (\d+(?:\.\d+)?)\b")
_MARK = "e1"


class ReaderModel:
    """A model of words that answers the reaction question. Use :func:`open` to make one."""

    name = NAME
    limits = INFO.limits

    def __init__(self, reader: OfflineReader) -> None:
        self._reader = reader

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def settings(self) -> Mapping[str, Any]:
        """Version, and all the reader depends on."""
        return {"model_version": VERSION, **self._reader.settings}

    async def ask(self, request: Request) -> Reply:
        """The reaction, in one word."""
        return await self._answer(request.prompt.user)

    async def complete(
        self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None
    ) -> Reply:
        """The same for the last message of a user."""
        del schema
        said = [message.text for message in messages if message.role == "user"]
        return await self._answer(said[-1] if said else "")

    async def _answer(self, prompt: str) -> Reply:
        from earwitness.scenes.recovery import Case

        lines, moment_s = transcript_of(prompt), moment_of(prompt)
        if not lines:
            return Reply(text=NO_TRANSCRIPT)
        if moment_s is None:
            return Reply(text=NO_MOMENT)
        (opinion,) = await self._reader.judge([Case("", marked(lines, moment_s), (_MARK,))])
        if opinion.verdict is None:
            return Reply(text=opinion.failed or NO_TRANSCRIPT)
        return Reply(text=opinion.verdict.reactions[_MARK])

    async def aclose(self) -> None:
        """Close the reader."""
        await self._reader.aclose()


def open(name: str, options: Mapping[str, Any]) -> ReaderModel:  # noqa: A001
    """Open ``offline/reader``.

    Raises
    ------
    UsageError: no such model or option.
    MissingExtraError: the word vectors are not installed.
    """
    if name != "reader":
        raise UsageError(f"model {f'offline/{name}'!r}", "there is no such model", NAME)
    from earwitness.models.embedders.static import StaticEmbedder
    from earwitness.scenes.bank import load_bank
    from earwitness.scenes.reader.judge import OfflineReader

    bank = read_options(NAME, options, OPTIONS)["bank"]
    return ReaderModel(
        OfflineReader(load_bank(Path(bank)) if bank else load_bank(), StaticEmbedder())
    )


def transcript_of(prompt: str) -> list[tuple[float, float, str, str]]:
    """Lines of a prompt's transcript: start, end, speaker, words.

    >>> transcript_of("[0.0-1.5] A: Well.\\n[2.0-3.0] B: Yes.\\n\\nHow?")
    [(0.0, 1.5, 'A', 'Well.'), (2.0, 3.0, 'B', 'Yes.')]
    """
    found: list[tuple[float, float, str, str]] = []
    for line in prompt.splitlines():
        match = _LINE.match(line.strip())
        if match:
            start, end, speaker, words = match.groups()
            found.append((float(start), float(end), speaker or "AB"[len(found) % 2], words))
    return found


def moment_of(prompt: str) -> float | None:
    """The moment a question tells, in seconds; None where it tells none.

    >>> moment_of("A short sound is at its loudest at 83.4 seconds."), moment_of("At some moment a sound occurs.")
    (83.4, None)
    """
    question = "\n".join(line for line in prompt.splitlines() if not _LINE.match(line.strip()))
    found = _MOMENT.findall(question)
    return float(found[0]) if found else None


def marked(lines: Sequence[tuple[float, float, str, str]], moment_s: float) -> str:
    """The talk with the place of the sound, as the reader takes it.

    >>> print(marked([(0.0, 1.5, "A", "Well."), (2.0, 3.0, "B", "Yes.")], 1.7))
    A: Well.
    [SOUND: e1]
    B: Yes.
    """
    before = sum((start + end) / 2 <= moment_s for start, end, _, _ in lines)
    told = [f"{speaker}: {words}" for _, _, speaker, words in lines]
    return "\n".join((*told[:before], f"[SOUND: {_MARK}]", *told[before:]))
