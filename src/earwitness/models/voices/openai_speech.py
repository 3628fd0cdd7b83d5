"""``openai/VOICE``: speech of OpenAI and of servers that speak its protocol.

``POST {base_url}/audio/speech`` with ``model``, ``voice``, ``input`` and ``response_format`` (API reference
"Create speech", November 2026). WAV replies are streamed, so their header promises 4 GiB; they are read from
their bytes. There are no times of words and no delivery tags: pauses are silence between requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from earwitness.errors import DataError
from earwitness.models.options import Option, read_options
from earwitness.models.protocols import Gender, Phrase, Spoken
from earwitness.models.voices.info import EngineInfo, VoiceInfo
from earwitness.models.voices.pieces import PAUSES, PieceVoice
from earwitness.models.voices.remote import Service, audio_from, service

URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"
MOST_CHARACTERS = 4096
PCM_RATE = 24_000
_FEMALE = ("alloy", "coral", "marin", "nova", "sage", "shimmer")
_MALE = ("ash", "ballad", "cedar", "echo", "fable", "onyx", "verse")
GENDERS: Mapping[str, Gender] = {
    **dict.fromkeys(_FEMALE, "F"),
    **dict.fromkeys(_MALE, "M"),
}
"""As the voices are commonly heard; the service itself names no genders."""

OPTIONS = (
    Option("base_url", "text", "address of the service, up to and with /v1", URL),
    Option("api_key_env", "text", f"environment variable of the key [default: {KEY_VARIABLE}]"),
    Option("server", "text", "name kept in place of base_url, where the address may change"),
    Option("model", "text", "model of the service", "gpt-4o-mini-tts"),
    Option("instructions", "text", "how to speak; not for tts-1"),
    Option(
        "response_format", "text", "wav, pcm, flac or mp3", "wav", ("wav", "pcm", "flac", "mp3")
    ),
    Option("speed", "number", "0.25 to 4", least=0.25),
    Option("gender", "text", "of this voice, where it is not known", choices=("F", "M")),
    Option(
        "manners",
        "json",
        "delivery tags you have heard this voice perform: id -> instructions that make it do so",
    ),
    Option("timeout_s", "number", "longest wait for one answer, in seconds", 120.0, least=0.05),
)

INFO = EngineInfo(
    name="openai",
    form="openai/VOICE",
    summary="Speech of OpenAI and of servers with its protocol; pauses only",
    options=OPTIONS,
    voices=tuple(VoiceInfo(name, gender, "en") for name, gender in GENDERS.items()),
    key_variable=KEY_VARIABLE,
    licence="terms of the service",
    remote=True,
)


class OpenAISpeech(PieceVoice):
    """One voice of the service. Use :func:`open` to make one."""

    deterministic = False
    remote = True

    def __init__(self, voice: str, values: Mapping[str, Any], where: Service) -> None:
        self.name = f"openai/{voice}"
        self.gender = values["gender"] or GENDERS.get(voice)
        self.renders = PAUSES | frozenset(values["manners"] or {})
        self._voice = voice
        self._values = values
        self._service = where

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that changes the sound."""
        names = ("model", "instructions", "response_format", "speed", "manners")
        settings = {name: self._values[name] for name in names if self._values[name] is not None}
        return settings | {"server": self._values["server"] or self._service.url}

    def say(self, phrase: Phrase, seed: int) -> Spoken:
        """Say one phrase in one request."""
        del seed
        if len(phrase.text) > MOST_CHARACTERS:
            found = f"a phrase of {len(phrase.text)} characters"
            raise DataError(self.name, found, f"at most {MOST_CHARACTERS}")
        values = self._values
        body: dict[str, Any] = {
            "model": values["model"],
            "voice": self._voice,
            "input": phrase.text,
            "response_format": values["response_format"],
        }
        instructions = values["instructions"]
        if phrase.manner is not None:
            instructions = " ".join(filter(None, (instructions, values["manners"][phrase.manner])))
        if instructions:
            body["instructions"] = instructions
        if values["speed"] is not None:
            body["speed"] = values["speed"]
        headers = {"Accept": "*/*"}
        if self._service.key:
            headers["Authorization"] = f"Bearer {self._service.key}"
        answer = self._service.post("/audio/speech", body, headers)
        rate = PCM_RATE if values["response_format"] == "pcm" else None
        return Spoken(audio_from(self.name, answer.body, rate))


def open(name: str, options: Mapping[str, Any]) -> OpenAISpeech:  # noqa: A001
    """Open ``openai/VOICE``.

    Raises
    ------
    UsageError: an unknown option, or no key.
    """
    full = f"openai/{name}"
    values = read_options(full, options, OPTIONS)
    where = service(
        full,
        values["base_url"],
        values["api_key_env"],
        KEY_VARIABLE,
        "api.openai.com",
        values["timeout_s"],
    )
    return OpenAISpeech(name, values, where)
