"""Chat services as text models: writers, judges and text-only controls.

The same services, options and errors as the adapters for audio, without audio. What is added is the form of the
answer: ``structured=auto`` asks for the firmest form a service has for a JSON schema and, where the service (or
the model behind it) does not know that, for the next one, down to nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from earwitness.errors import ModelError, UsageError
from earwitness.models.options import LIMIT_OPTIONS, Option
from earwitness.models.protocols import Message, Prompt, Reply, Request

MODES: Mapping[str, tuple[str, ...]] = {
    "openai": ("json_schema", "json_object", "none"),
    "openai-responses": ("json_schema", "json_object", "none"),
    "mistral": ("json_schema", "json_object", "none"),
    "anthropic": ("json_schema", "tool", "none"),
    "google": ("json_schema", "response_schema", "none"),
}
"""By adapter, from the firmest form to none; ``auto`` walks down as far as the service makes it."""
_MODULES = {
    "openai": "openai_chat",
    "openai-responses": "openai_responses",
    "mistral": "mistral_chat",
    "anthropic": "anthropic_chat",
    "google": "google_chat",
}
_OF_AUDIO = frozenset(
    {
        "audio_form",
        "audio_first",
        "prefer",
        "modalities",
        "inline_bytes",
        "keep_files",
        *(option.name for option in LIMIT_OPTIONS),
    }
)
_FORM_WORDS = (
    "response_format",
    "response format",
    "json_schema",
    "json_object",
    "structured",
    "guided",
    "grammar",
    "schema",
    "output_config",
    "text.format",
    "tool",
    "mime",
)
"""One of them in the message of a 400 says that it is about the form of the answer."""


@dataclass(eq=False)
class TextChat:
    """A text model behind a chat service. Use :func:`open` and its companions to make one."""

    name: str
    _structured: str
    _by_mode: Mapping[str, Any]
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
            except (ModelError, UsageError) as error:
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


def _about_the_form(error: ModelError | UsageError) -> bool:
    if isinstance(error, UsageError):
        # The adapter itself says, before any call, that its service has no words for this schema.
        return "schema" in str(error)
    said = error.message.lower()
    return error.status in (400, 404, 415, 422, 501) and any(word in said for word in _FORM_WORDS)


def _open(adapter: str, name: str, options: Mapping[str, Any]) -> TextChat:
    full = f"{adapter}/{name}"
    of_audio = sorted(set(options) & _OF_AUDIO)
    if of_audio:
        raise UsageError(full, f"option {of_audio[0]}, which is about audio", "options for text")
    forms = MODES[adapter]
    given = {key: value for key, value in options.items() if key != "structured"}
    structured = str(options.get("structured", "auto"))
    if structured not in ("auto", *forms):
        raise UsageError(
            full, f"option structured={structured!r}", f"one of auto, {', '.join(forms)}"
        )
    module = importlib.import_module(f"earwitness.models.{_MODULES[adapter]}")
    modes = forms if structured == "auto" else (structured,)
    by_mode = {mode: module.open(name, {**given, "structured": mode}) for mode in modes}
    return TextChat(full, structured, by_mode)


def options_of(adapter: str) -> tuple[Option, ...]:
    """What can be set of the text models of an adapter.

    Examples
    --------
    >>> sorted({"audio_first", "structured"} & {option.name for option in options_of("google")})
    ['structured']
    """
    module = importlib.import_module(f"earwitness.models.{_MODULES[adapter]}")
    forms = Option(
        "structured",
        "text",
        f"form the service is asked to force: {', '.join(MODES[adapter])}, or auto for the firmest it knows",
        "auto",
        choices=("auto", *MODES[adapter]),
    )
    kept = (each for each in module.OPTIONS if each.name not in _OF_AUDIO | {"structured"})
    return (*kept, forms)


def open(name: str, options: Mapping[str, Any]) -> TextChat:  # noqa: A001
    """Open ``openai/NAME`` for text.

    Parameters
    ----------
    name: the model as the service calls it; may hold slashes.
    options: see :func:`options_of`.

    Raises
    ------
    UsageError: an unknown or unfit option.

    Examples
    --------
    >>> model = open("m", {"base_url": "http://127.0.0.1:1/v1", "temperature": "0.9"})
    >>> model.settings["temperature"], model.settings["structured"]
    (0.9, 'auto')
    """
    return _open("openai", name, options)


def open_responses(name: str, options: Mapping[str, Any]) -> TextChat:
    """Open ``openai-responses/NAME`` for text; see :func:`open`."""
    return _open("openai-responses", name, options)


def open_mistral(name: str, options: Mapping[str, Any]) -> TextChat:
    """Open ``mistral/NAME`` for text; see :func:`open`."""
    return _open("mistral", name, options)


def open_anthropic(name: str, options: Mapping[str, Any]) -> TextChat:
    """Open ``anthropic/NAME`` for text; see :func:`open`."""
    return _open("anthropic", name, options)


def open_google(name: str, options: Mapping[str, Any]) -> TextChat:
    """Open ``google/NAME`` for text; see :func:`open`."""
    return _open("google", name, options)
