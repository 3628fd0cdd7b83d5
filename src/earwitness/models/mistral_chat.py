"""``mistral/NAME``: Voxtral audio chat, and Mistral's text models.

Chat completions in Mistral's dialect: the audio is a plain base64 string (``{"type": "input_audio",
"input_audio": "..."}``), the seed is ``random_seed``, thinking comes as parts of the content, and a filled
context ends as ``model_length``. Documented forms as of November 2026: Mistral API reference "Chat
Completion", guide "Audio: chat with audio" (Voxtral; about 20 minutes a call).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from earwitness.models.adapter import AdapterInfo
from earwitness.models.chat_parts import (
    EXTRA,
    PREFER,
    PRICES,
    SAMPLING,
    STRUCTURED,
    TIMEOUT,
    key_hint,
    refuse_fields,
    service_address,
    service_key,
    service_options,
)
from earwitness.models.http import HttpCaller
from earwitness.models.openai_chat import OpenAIChat
from earwitness.models.options import LIMIT_OPTIONS, Option, limits_from, read_options
from earwitness.models.payload import Payload
from earwitness.models.protocols import Limits
from earwitness.models.redaction import Redactor

if TYPE_CHECKING:
    from earwitness.models.mistral_batch import MistralBatches

MISTRAL_URL = "https://api.mistral.ai/v1"
_KEY_VARIABLES = {"api.mistral.ai": "MISTRAL_API_KEY"}

OPTIONS: tuple[Option, ...] = (
    *service_options(MISTRAL_URL, "MISTRAL_API_KEY", "Mistral"),
    *SAMPLING,
    Option("random_seed", "integer", "seed for sampling", least=0),
    Option("max_tokens", "integer", "most tokens of an answer", least=1),
    Option("audio_first", "yes/no", "put the audio before the words, as the reference does", True),
    PREFER,
    STRUCTURED,
    TIMEOUT,
    *PRICES,
    EXTRA,
    *LIMIT_OPTIONS,
)

INFO = AdapterInfo(
    name="mistral",
    form="mistral/MODEL",
    summary="Voxtral audio chat, and Mistral's text models",
    options=OPTIONS,
    limits=Limits(formats=("wav", "mp3", "flac", "ogg"), max_seconds=1200.0),
    examples=("mistral/voxtral-small-latest", "mistral/voxtral-mini-latest -M temperature=0"),
    key_variable="MISTRAL_API_KEY",
)
_SENT = ("temperature", "top_p", "random_seed", "max_tokens")


@dataclass(eq=False, repr=False)
class MistralChat(OpenAIChat):
    """A model behind Mistral's chat completions. Use :func:`open` to make one."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that may change an answer; the key and the time-out do not."""
        values = self._values
        settings = {name: values[name] for name in _SENT if values[name] is not None}
        settings["server"] = values["server"] or self._url
        settings |= {name: values[name] for name in ("audio_first", "structured", "prefer")}
        if values["extra"]:
            settings["extra"] = values["extra"]
        settings["formats"] = list(self.limits.formats)
        if self.limits.rates:
            settings["rates"] = list(self.limits.rates)
        return settings

    def batches(self) -> MistralBatches:
        """The batch API of this model."""
        from earwitness.models.mistral_batch import MistralBatches

        return MistralBatches(
            self, self._caller, self._url, self._model, key_hint(self._key_variable)
        )

    def _audio_part(self, payload: Payload, data: str) -> dict[str, Any]:
        del payload  # The service looks at the bytes, and has no field for a format.
        return {"type": "input_audio", "input_audio": data}

    def _fields(
        self, messages: Sequence[dict[str, Any]], schema: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        values = self._values
        fields: dict[str, Any] = {"model": self._model, "messages": list(messages)}
        fields |= {name: values[name] for name in _SENT if values[name] is not None}
        if values["structured"] == "json_object":
            fields["response_format"] = {"type": "json_object"}
        elif values["structured"] == "json_schema" and schema is not None:
            form = {"name": "answer", "strict": True, "schema": dict(schema)}
            fields["response_format"] = {"type": "json_schema", "json_schema": form}
        return fields | (values["extra"] or {})


def open(name: str, options: Mapping[str, Any]) -> MistralChat:  # noqa: A001
    """Open ``mistral/NAME``.

    Raises
    ------
    UsageError: an unknown or unfit option.

    Examples
    --------
    >>> open("voxtral-small-latest", {"temperature": "0"}).settings["temperature"]
    0.0
    """
    full = f"mistral/{name}"
    values = read_options(full, options, OPTIONS)
    url = service_address(full, values["base_url"], ends="/chat/completions")
    refuse_fields(full, values["extra"], {"model", "messages"})
    variable, key = service_key(full, url, values["api_key_env"], _KEY_VARIABLES)
    return MistralChat(
        name=full,
        limits=limits_from(values, INFO.limits),
        _model=name,
        _url=url,
        _values=values,
        _key_variable=variable,
        _key=key,
        _caller=HttpCaller(full, values["timeout_s"], Redactor([key] if key else [])),
    )
