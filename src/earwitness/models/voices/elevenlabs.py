"""``elevenlabs/VOICE_ID``: ElevenLabs v3, which performs delivery tags.

Speaks ``POST {base_url}/text-to-speech/{voice}/with-timestamps`` as documented in November 2026: JSON with
``text``, ``model_id``, ``seed``, ``voice_settings``; the answer has ``audio_base64`` and, per character of the
text, its times. A pause is never left to the model: silence is put in where the characters say.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from earwitness.audio.types import Audio, samples_at
from earwitness.errors import DataError, ModelError
from earwitness.models.http import HttpAnswer, parsed
from earwitness.models.options import Option, read_options
from earwitness.models.protocols import (
    Gender,
    Mark,
    Pause,
    Phrase,
    Segment,
    Spoken,
    Vocalisation,
    Word,
)
from earwitness.models.voices.info import EngineInfo
from earwitness.models.voices.pieces import PAUSES, limited, trimmed
from earwitness.models.voices.remote import Service, audio_from, service
from earwitness.models.voices.words import spoken_tokens

URL = "https://api.elevenlabs.io/v1"
KEY_VARIABLE = "ELEVENLABS_API_KEY"
MOST_CHARACTERS = 5000
"""Of one request to eleven_v3."""
_TAG = re.compile(r"\[[^\]]*\]")
_PERFORMS = ("eleven_v3", "eleven_v4")

TAGS: Mapping[str, str] = {
    "sigh": "sighs",
    "laugh": "laughs",
    "chuckle": "chuckles",
    "gasp": "gasps",
    "throat": "clears throat",
    "cough": "coughs",
    "sniff": "sniffs",
    "gulp": "gulps",
    "groan": "groans",
    "inhale": "inhales",
    "whisper": "whispers",
    "loud": "shouting",
    "excited": "excited",
    "nervous": "nervous",
    "amused": "amused",
    "annoyed": "annoyed",
    "tired": "tired",
    "warm": "warm",
    "worried": "worried",
}
"""Delivery tags of the default bank -> what the model is asked for."""

OPTIONS = (
    Option("base_url", "text", "address of the service, up to and with /v1", URL),
    Option("api_key_env", "text", f"environment variable of the key [default: {KEY_VARIABLE}]"),
    Option("server", "text", "name kept in place of base_url, where the address may change"),
    Option("model", "text", "model of the service", "eleven_v3"),
    Option(
        "output_format",
        "text",
        "pcm_RATE, wav_RATE or mp3_RATE_KBPS; pcm_44100 wants a larger plan",
        "pcm_24000",
    ),
    Option(
        "stability", "text", "0.0 creative, 0.5 natural, 1.0 robust", "0.5", ("0.0", "0.5", "1.0")
    ),
    Option("language_code", "text", "such as en"),
    Option("gender", "text", "of this voice, where no cast file says it", choices=("F", "M")),
    Option("tags", "json", "tags of a bank of your own: id -> what the model is asked for"),
    Option("timeout_s", "number", "longest wait for one answer, in seconds", 120.0, least=0.05),
)

INFO = EngineInfo(
    name="elevenlabs",
    form="elevenlabs/VOICE_ID",
    summary="ElevenLabs v3: performs delivery tags; paid",
    options=OPTIONS,
    key_variable=KEY_VARIABLE,
    licence="terms of the service",
    remote=True,
)


@dataclass(frozen=True)
class ElevenLabsVoice:
    """One voice of the service. Use :func:`open` to make one."""

    name: str
    gender: Gender | None
    language: str
    _voice: str
    _values: Mapping[str, Any]
    _service: Service
    deterministic: bool = False
    remote: bool = True

    @property
    def _tags(self) -> Mapping[str, str]:
        return {**TAGS, **(self._values["tags"] or {})}

    @property
    def renders(self) -> frozenset[str]:
        """Only the newer models perform tags; others read them out."""
        performs = str(self._values["model"]).startswith(_PERFORMS)
        return PAUSES | frozenset(self._tags) if performs else PAUSES

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that changes the sound."""
        names = ("model", "output_format", "stability", "language_code")
        settings = {name: self._values[name] for name in names if self._values[name] is not None}
        return settings | {
            "tags": self._values["tags"] or {},
            "server": self._values["server"] or self._service.url,
        }

    def speak(self, segments: Sequence[Segment], seed: int = 0) -> Spoken:
        """Say one utterance in one request.

        Raises
        ------
        ModelError: no sound came back.
        DataError: the text is longer than the service takes.
        """
        script = _script(segments, self._tags)
        if len(script.text) > MOST_CHARACTERS:
            raise DataError(
                self.name,
                f"an utterance of {len(script.text)} characters",
                f"at most {MOST_CHARACTERS}",
            )
        values = self._values
        body: dict[str, Any] = {
            "text": script.text,
            "model_id": values["model"],
            "seed": seed % 2**32,
            "voice_settings": {"stability": float(values["stability"])},
        }
        if values["language_code"]:
            body["language_code"] = values["language_code"]
        headers = {"Accept": "application/json"}
        if self._service.key:
            headers["xi-api-key"] = self._service.key
        form = values["output_format"]
        path = f"/text-to-speech/{quote(self._voice, safe='')}/with-timestamps"
        answer = self._service.post(f"{path}?output_format={form}", body, headers)
        audio, times = _read(self.name, answer, form, script.text)
        return limited(trimmed(_with_pauses(script, audio, times)))

    def close(self) -> None:
        """Nothing to close."""


@dataclass(frozen=True, slots=True)
class _Script:
    """The text as it is sent, and where pauses and tags are in it."""

    text: str
    pauses: tuple[tuple[int, float], ...]
    tags: tuple[tuple[str, int, int], ...]


Times = tuple[tuple[float, float], ...]
"""Start and end of every character, in seconds."""


def _script(segments: Sequence[Segment], tags: Mapping[str, str]) -> _Script:
    text = ""
    pauses: list[tuple[int, float]] = []
    places: list[tuple[str, int, int]] = []

    def add(piece: str) -> int:
        nonlocal text
        text += (" " if text else "") + piece
        return len(text) - len(piece)

    for segment in segments:
        if isinstance(segment, Pause):
            pauses.append((len(text), segment.seconds))
            continue
        tag = segment.tag if isinstance(segment, Vocalisation) else segment.manner
        if tag is not None:
            asked = f"[{tags[tag]}]"
            at = add(asked)
            places.append((tag, at, at + len(asked)))
        if isinstance(segment, Phrase):
            add(segment.text)
    return _Script(text, tuple(pauses), tuple(places))


def _read(name: str, answer: HttpAnswer, form: str, text: str) -> tuple[Audio, Times]:
    def bad(what: str) -> ModelError:
        return ModelError(f"{name}: {what}", kind="bad_reply", retryable=True, maybe_paid=True)

    body = parsed(answer.text)
    coded = body.get("audio_base64") if isinstance(body, dict) else None
    if not isinstance(coded, str):
        raise bad("the answer has no audio_base64")
    try:
        data = base64.b64decode(coded, validate=True)
    except (binascii.Error, ValueError):
        raise bad("audio_base64 is no base64") from None
    kind, _, rest = form.partition("_")
    rate = int(rest.partition("_")[0]) if kind == "pcm" else None
    audio = audio_from(name, data, rate)
    alignment = body.get("alignment") or {}
    try:
        characters = "".join(alignment["characters"])
        starts = alignment["character_start_times_seconds"]
        ends = alignment["character_end_times_seconds"]
        times = tuple((float(s), float(e)) for s, e in zip(starts, ends, strict=True))
    except (KeyError, TypeError, ValueError):
        raise bad("the answer has no times of characters") from None
    if characters != text or len(times) != len(text):
        raise bad("the times are of another text")
    return audio, times


def _with_pauses(script: _Script, audio: Audio, times: Times) -> Spoken:
    """Put silence in at every pause and move times along."""
    import numpy as np

    samples = audio.samples if audio.samples.ndim == 1 else audio.samples.mean(axis=1)
    rate = audio.rate
    cuts = [(_cut(samples, rate, times, at), seconds) for at, seconds in script.pauses]

    def moved(time_s: float) -> float:
        gained = sum(seconds for cut, seconds in cuts if cut <= samples_at(time_s, rate))
        return round(time_s + gained, 4)

    pieces = []
    marks = []
    before, gained = 0, 0.0
    for cut, seconds in cuts:
        pieces += [samples[before:cut], np.zeros(samples_at(seconds, rate), np.float32)]
        start = cut / rate + gained
        gained += seconds
        marks.append(Mark("pause", round(start, 4), round(start + seconds, 4)))
        before = cut
    pieces.append(samples[before:])
    marks += [
        Mark(tag, moved(times[start][0]), moved(times[end - 1][1]))
        for tag, start, end in script.tags
    ]
    plain = _TAG.sub(lambda match: " " * len(match[0]), script.text)
    words = tuple(
        Word(token, moved(times[at][0]), moved(times[at + len(token) - 1][1]))
        for token, at in spoken_tokens(plain)
    )
    joined = np.concatenate(pieces).astype(np.float32)
    marks.sort(key=lambda mark: mark.start_s)
    return Spoken(Audio(joined, rate), words, tuple(marks))


def _cut(samples: Any, rate: int, times: Times, at: int) -> int:
    """The quietest place between the characters around a pause."""
    import numpy as np

    if at >= len(times):
        return len(samples)
    low = samples_at(times[at - 1][1] if at else 0.0, rate)
    # The character at the pause is the space after the words before it.
    high = samples_at(times[min(at + 1, len(times) - 1)][0], rate)
    low, high = min(low, len(samples)), min(max(high, low), len(samples))
    frame = max(samples_at(0.01, rate), 1)
    if high - low <= frame:
        return (low + high) // 2
    steps = range(low, high - frame + 1, max(frame // 2, 1))
    level = [float(np.abs(samples[start : start + frame]).max()) for start in steps]
    return steps[int(np.argmin(level))] + frame // 2


def open(name: str, options: Mapping[str, Any]) -> ElevenLabsVoice:  # noqa: A001
    """Open ``elevenlabs/VOICE_ID``.

    Raises
    ------
    UsageError: an unknown option, or no key.
    """
    full = f"elevenlabs/{name}"
    values = read_options(full, options, OPTIONS)
    return ElevenLabsVoice(
        full,
        values["gender"],
        values["language_code"] or "en",
        name,
        values,
        service(
            full,
            values["base_url"],
            values["api_key_env"],
            KEY_VARIABLE,
            "api.elevenlabs.io",
            values["timeout_s"],
        ),
    )
