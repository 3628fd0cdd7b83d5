"""Services that speak, on the loopback interface: ElevenLabs with times, and OpenAI's speech.

They read what the real ones read and refuse what they refuse. What they say is a hum with one syllable a
word, as long as the text: enough to see where a word begins and where silence was put.
"""

from __future__ import annotations

import base64
import io
import json
import re
import struct
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
import soundfile

from tests.standins.loopback import Act, Call, LoopbackServer, json_act

CHARACTER_S = 0.06
EDGE_S = 0.2
_TAG = re.compile(r"\[[^\]]*\]")


def hum(text: str, rate: int) -> np.ndarray:
    """A hum over the words, silent over spaces and tags, and at both edges."""
    spoken = _TAG.sub(lambda match: " " * len(match[0]), text)
    step = round(CHARACTER_S * rate)
    gate = np.repeat([0.0 if c.isspace() else 1.0 for c in spoken] or [0.0], step)
    wave = 0.3 * np.sin(2 * np.pi * 180 * np.arange(len(gate)) / rate) * gate
    edge = np.zeros(round(EDGE_S * rate))
    return np.concatenate([edge, wave, edge]).astype(np.float32)


def streamed_wav(samples: np.ndarray, rate: int) -> bytes:
    """A WAV as a service streams it: the header promises 4 GiB, because nobody knew the length yet."""
    raw = np.round(samples * 32767).astype("<i2").tobytes()
    head = b"RIFF\xff\xff\xff\xffWAVEfmt " + struct.pack(
        "<IHHIIHH", 16, 1, 1, rate, rate * 2, 2, 16
    )
    return head + b"data\xff\xff\xff\xff" + raw


class TtsServer(LoopbackServer):
    """Both protocols on one port: ``/v1/text-to-speech/...`` and ``/v1/audio/speech``."""

    prefix = "/v1"

    def __init__(self, *acts: Act, key: str | None = "key-of-the-service", **more: Any) -> None:
        super().__init__(*acts, **more)
        self.key = key
        self.asked: list[dict[str, Any]] = []

    def respond(self, call: Call) -> Act:
        parts = urlsplit(call.path)
        body = json.loads(call.body)
        if parts.path == "/v1/audio/speech":
            return self._openai(call, body)
        match = re.fullmatch(r"/v1/text-to-speech/([^/]+)/with-timestamps", parts.path)
        if match:
            form = parse_qs(parts.query).get("output_format", ["mp3_44100_128"])[0]
            return self._elevenlabs(call, body, unquote(match[1]), form)
        return json_act({"detail": "Not Found"}, 404)

    def _elevenlabs(self, call: Call, body: dict[str, Any], voice: str, form: str) -> Act:
        if self.key is not None and call.headers.get("xi-api-key") != self.key:
            return _detail(401, "invalid_api_key", "Invalid API key")
        if voice == "unknown":
            return _detail(404, "voice_not_found", "A voice for this id was not found.")
        text = body["text"]
        if len(text) > 5000:
            return _detail(400, "max_character_limit_exceeded", "too long")
        if not 0 <= body.get("seed", 0) < 2**32:
            return json_act({"detail": [{"loc": ["body", "seed"], "msg": "out of range"}]}, 422)
        stability = body.get("voice_settings", {}).get("stability")
        if body["model_id"] == "eleven_v3" and stability not in (0.0, 0.5, 1.0):
            return _detail(400, "invalid_stability", "Must be one of: [0.0, 0.5, 1.0]")
        self.asked.append({"voice": voice, "form": form, **body})
        kind, _, rest = form.partition("_")
        rate = int(rest.partition("_")[0])
        samples = hum(text, rate)
        if kind == "pcm":
            data = np.round(samples * 32767).astype("<i2").tobytes()
        else:
            file = io.BytesIO()
            soundfile.write(file, samples, rate, format="MP3" if kind == "mp3" else "WAV")
            data = file.getvalue()
        starts = [round(EDGE_S + n * CHARACTER_S, 3) for n in range(len(text))]
        alignment = {
            "characters": list(text),
            "character_start_times_seconds": starts,
            "character_end_times_seconds": [round(start + CHARACTER_S, 3) for start in starts],
        }
        return json_act(
            {
                "audio_base64": base64.b64encode(data).decode(),
                "alignment": alignment,
                "normalized_alignment": alignment,
            }
        )

    def _openai(self, call: Call, body: dict[str, Any]) -> Act:
        if self.key is not None and call.headers.get("authorization") != f"Bearer {self.key}":
            return json_act({"error": {"message": "bad key", "code": "invalid_api_key"}}, 401)
        if len(body["input"]) > 4096:
            return json_act({"error": {"message": "string too long", "code": None}}, 400)
        if body.get("instructions") and body["model"].startswith("tts-1"):
            return json_act({"error": {"message": "no instructions", "code": None}}, 400)
        self.asked.append(body)
        samples = hum(body["input"], 24_000)
        form = body.get("response_format", "mp3")
        if form == "pcm":
            return Act(
                body=np.round(samples * 32767).astype("<i2").tobytes(), media_type="audio/pcm"
            )
        if form == "wav":
            return Act(body=streamed_wav(samples, 24_000), media_type="audio/wav")
        file = io.BytesIO()
        soundfile.write(file, samples, 24_000, format=form.upper())
        return Act(body=file.getvalue(), media_type=f"audio/{form}")


def _detail(status: int, word: str, message: str) -> Act:
    return json_act({"detail": {"status": word, "message": message}}, status)
