"""Calling a service that speaks: one attempt, the key in a header, nothing of either in a message."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from earwitness.audio.io import decode_audio
from earwitness.audio.types import Audio
from earwitness.errors import AudioFileError, ModelError, UsageError
from earwitness.models.http import (
    Body,
    HttpAnswer,
    HttpCaller,
    checked_url,
    error_codes,
    error_from,
    is_loopback,
    parsed,
    read_key,
)
from earwitness.models.redaction import Redactor

_QUOTA = frozenset({"quota_exceeded", "insufficient_quota", "payment_required"})


@dataclass(frozen=True, slots=True)
class Service:
    """Where a voice is called and with what key."""

    voice: str
    url: str
    key_variable: str
    key: str | None = field(repr=False)
    timeout_s: float

    def post(self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> HttpAnswer:
        """Send JSON and return a good answer.

        Raises
        ------
        ModelError: any other.
        """
        redact = Redactor([self.key] if self.key else [])
        text = json.dumps(body, ensure_ascii=False)

        async def call() -> HttpAnswer:
            caller = HttpCaller(self.voice, self.timeout_s, redact)
            try:
                sent = Body("application/json", text.encode())
                return await caller.send("POST", f"{self.url}{path}", headers, sent)
            finally:
                await caller.aclose()

        answer = asyncio.run(call())
        if 200 <= answer.status < 300:
            return answer
        if error_codes(parsed(answer.text)) & _QUOTA:
            # Some services say so with a 401, as if the key were wrong.
            said = redact.excerpt(answer.text)
            raise ModelError(
                f"{self.voice}: HTTP {answer.status}: {said}",
                kind="quota",
                retryable=False,
                status=answer.status,
            )
        hint = (
            f"the key is read from {self.key_variable}" if self.key_variable else "no key was sent"
        )
        raise error_from(self.voice, answer, redact, hint=hint)


def service(
    voice: str,
    base_url: str,
    variable: str | None,
    default_variable: str,
    host: str,
    timeout_s: float,
) -> Service:
    """Check the address and read the key.

    Parameters
    ----------
    variable: as given by the user; None takes the default one for the service's own host only.

    Raises
    ------
    UsageError: no URL, or no key where the service wants one.
    """
    url = checked_url(f"{voice}: option base_url", base_url).rstrip("/")
    if variable is None:
        variable = default_variable if f"//{host}" in url else ""
    key = read_key(voice, variable)
    if variable and key is None and not is_loopback(url):
        raise UsageError(
            voice,
            f"no key: the environment variable {variable} is not set",
            "a key of this service",
            f"Set {variable}, or name another variable with the option api_key_env.",
        )
    return Service(voice, url, variable, key, timeout_s)


def audio_from(voice: str, data: bytes, pcm_rate: int | None = None) -> Audio:
    """Sound from a reply: raw 16-bit samples at a rate, or any file, whatever its header promises.

    Raises
    ------
    ModelError: kind ``bad_reply``.
    """
    import numpy as np

    if pcm_rate is not None:
        if len(data) % 2 or not data or data[:4] in (b"RIFF", b"ID3\x03", b"OggS"):
            raise ModelError(
                f"{voice}: {len(data)} bytes that are no 16-bit samples",
                kind="bad_reply",
                retryable=True,
                maybe_paid=True,
            )
        samples = np.frombuffer(data, "<i2").astype(np.float32) / np.float32(32768)
        return Audio(samples, pcm_rate)
    try:
        return decode_audio(data, name=voice)
    except AudioFileError as error:
        raise ModelError(
            f"{voice}: the reply is no usable sound: {error.found}",
            kind="bad_reply",
            retryable=True,
            maybe_paid=True,
        ) from error
