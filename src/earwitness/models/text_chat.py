"""``openai/NAME`` as a text model: writers, judges and text-only controls over chat completions.

The same services, options and errors as :mod:`earwitness.models.openai_chat`, without audio. What is added is
the form of the answer: ``structured=auto`` asks for a JSON schema and, where a service does not know that,
for a JSON object, and where it does not know that either, for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from earwitness.errors import ModelError, UsageError
from earwitness.models import openai_chat
from earwitness.models.openai_chat import OpenAIChat
from earwitness.models.options import LIMIT_OPTIONS, Option
from earwitness.models.protocols import Message, Prompt, Reply, Request

MODES = ("json_schema", "json_object", "none")
"""From the firmest form to none; ``auto`` walks down as far as the service makes it."""

_OF_AUDIO = frozenset(
    {
        "audio_form",
        "audio_first",
        "prefer",
        "modalities",
        *(option.name for option in LIMIT_OPTIONS),
    }
)
STRUCTURED = Option(
    "structured",
    "text",
    "form the service is asked to force: json_schema, json_object, none, or auto for the firmest it knows",
    "auto",
    choices=("auto", *MODES),
)
OPTIONS: tuple[Option, ...] = (
    *(option for option in openai_chat.OPTIONS if option.name not in _OF_AUDIO | {"structured"}),
    STRUCTURED,
)

_FORM_WORDS = (
    "response_format",
    "json_schema",
    "json_object",
    "structured",
    "guided",
    "grammar",
    "schema",
)
"""One of them in the message of a 400 says that it is about the form of the answer."""


@dataclass(eq=False)
class TextChat:
    """A text model behind a chat-completions service. Use :func:`open` to make one."""

    name: str
    _structured: str
    _by_mode: Mapping[str, OpenAIChat]
    _known: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that may change an answer; the form is what was asked for, not what a service could do."""
        chat = next(iter(self._by_mode.values()))
        kept = {
            name: value
            for name, value in chat.settings.items()
            if name not in _OF_AUDIO and name != "structured"
        }
        return {**kept, "structured": self._structured}

    def preflight(self) -> None:
        """Refuse before the first call what would fail on every one.

        Raises
        ------
        UsageError: there is no key.
        """
        # With no requests given, nothing but the key is looked at.
        next(iter(self._by_mode.values())).preflight(())

    async def complete(
        self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None
    ) -> Reply:
        """Answer text with text.

        Raises
        ------
        ModelError: there is no reply.
        """
        return await self._in_some_form(lambda chat: chat.complete(messages, schema), schema)

    async def ask(self, request: Request) -> Reply:
        """The same for a prompt, with the key of its reply sent along, so that a repeat is not paid twice.

        Raises
        ------
        ModelError: there is no reply.
        """
        bare = Request(
            request.item_id,
            Prompt(request.prompt.user, request.prompt.system, schema=request.prompt.schema),
            idempotency_key=request.idempotency_key,
        )
        return await self._in_some_form(lambda chat: chat.ask(bare), request.prompt.schema)

    async def _in_some_form(self, call: Any, schema: Mapping[str, Any] | None) -> Reply:
        modes = list(self._by_mode)
        if schema is None and len(modes) > 1:
            modes = ["none"]
        if self._known:
            modes = [mode for mode in modes if mode in self._known]
        for mode in modes:
            try:
                reply: Reply = await call(self._by_mode[mode])
            except ModelError as error:
                if mode == modes[-1] or not _about_the_form(error):
                    raise
                # Nothing was generated and nothing paid; the service has only said what it cannot do.
                self._known = modes[modes.index(mode) + 1 :]
            else:
                return reply
        raise AssertionError("there is always a last mode")

    async def aclose(self) -> None:
        """Close the connections."""
        for chat in self._by_mode.values():
            await chat.aclose()


def _about_the_form(error: ModelError) -> bool:
    said = error.message.lower()
    return error.status in (400, 404, 415, 422, 501) and any(word in said for word in _FORM_WORDS)


def open(name: str, options: Mapping[str, Any]) -> TextChat:  # noqa: A001
    """Open ``openai/NAME`` for text.

    Parameters
    ----------
    name: the model as the service calls it; may hold slashes.
    options: see :data:`OPTIONS`.

    Raises
    ------
    UsageError: an unknown or unfit option.

    Examples
    --------
    >>> model = open("m", {"base_url": "http://127.0.0.1:1/v1", "temperature": "0.9"})
    >>> model.settings["temperature"], model.settings["structured"]
    (0.9, 'auto')
    """
    of_audio = sorted(set(options) & _OF_AUDIO)
    if of_audio:
        raise UsageError(
            f"openai/{name}", f"option {of_audio[0]}, which is about audio", "options for text"
        )
    given = {key: value for key, value in options.items() if key != "structured"}
    structured = str(options.get("structured", STRUCTURED.default))
    if structured not in STRUCTURED.choices:
        raise UsageError(
            f"openai/{name}",
            f"option structured={structured!r}",
            f"one of {', '.join(STRUCTURED.choices)}",
        )
    modes = MODES if structured == "auto" else (structured,)
    by_mode = {mode: openai_chat.open(name, {**given, "structured": mode}) for mode in modes}
    return TextChat(f"openai/{name}", structured, by_mode)
