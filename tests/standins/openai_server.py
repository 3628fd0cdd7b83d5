"""A stand-in for chat-completions services, strict about what it is sent.

``python -m tests.standins.openai_server --character energy`` prints the base URL and serves until it is
ended. In tests::

    with OpenAIServer(error(429, **{"Retry-After": "2"})) as server:
        model = open_model("openai/stand-in", {"base_url": server.url})
"""

from __future__ import annotations

import argparse
import base64
import binascii
import json
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import soundfile

from tests.standins.listening import CHARACTERS, Heard, answer, listen
from tests.standins.loopback import Act, Call, LoopbackServer, error, json_act


@dataclass(frozen=True)
class Asked:
    """What one valid call asked: for assertions."""

    model: str
    system: str | None
    prompt: str
    audio: Heard | None
    body: dict[str, Any]


class _Invalid(Exception):  # noqa: N818
    def __init__(self, message: str, status: int = 400, code: str | None = "invalid_value") -> None:
        super().__init__(message)
        self.act = error(status, message, code)


def completion(
    content: Any = "neutral",
    finish: str | None = "stop",
    *,
    model: str = "stand-in-2026-11-01",
    usage: dict[str, Any] | None = None,
    **message: Any,
) -> dict[str, Any]:
    """A chat completion's body."""
    return {
        "id": "chatcmpl-standin",
        "object": "chat.completion",
        "created": 1_795_000_000,
        "model": model,
        "system_fingerprint": "fp_standin",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, "refusal": None, **message},
                "logprobs": None,
                "finish_reason": finish,
            }
        ],
        "usage": usage or {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }


class OpenAIServer(LoopbackServer):
    """Speaks ``POST /v1/chat/completions``. ``key`` set: demands it. ``formats``: what it accepts."""

    prefix = "/v1"

    def __init__(
        self,
        *acts: Act,
        character: str = "neutral",
        key: str | None = None,
        formats: tuple[str, ...] = ("wav", "mp3"),
        stream_only: bool = False,
        choose: Callable[[Call], Act | None] | None = None,
        port: int = 0,
    ) -> None:
        super().__init__(*acts, choose=choose, port=port)
        self.character = character
        self.key = key
        self.formats = formats
        self.stream_only = stream_only
        self.asked: list[Asked] = []

    def respond(self, call: Call) -> Act:
        try:
            return self.answered(self._read(call))
        except _Invalid as problem:
            return problem.act

    def answered(self, asked: Asked) -> Act:
        """What a model says to a valid question."""
        self.asked.append(asked)
        text = answer(self.character, asked.audio, asked.prompt)
        audio_tokens = round(asked.audio.seconds * 10) if asked.audio else 0
        usage = {
            "prompt_tokens": len(asked.prompt.split()) + audio_tokens,
            "completion_tokens": len(text.split()),
            "total_tokens": len(asked.prompt.split()) + audio_tokens + len(text.split()),
            "prompt_tokens_details": {"audio_tokens": audio_tokens, "cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        }
        body = completion(text, model=f"{asked.model}-2026-11-01", usage=usage)
        if asked.body.get("stream"):
            return Act(body=as_stream(body), media_type="text/event-stream")
        return json_act(body)

    def _read(self, call: Call) -> Asked:
        if self.key is not None and call.headers.get("authorization") != f"Bearer {self.key}":
            # As the real service does, the wrong key is quoted back.
            given = call.headers.get("authorization", "").removeprefix("Bearer ")
            raise _Invalid(f"Incorrect API key provided: {given}.", 401, "invalid_api_key")
        if call.method != "POST" or call.path != "/v1/chat/completions":
            raise _Invalid(f"Invalid URL ({call.method} {call.path})", 404, None)
        if not call.headers.get("content-type", "").startswith("application/json"):
            raise _Invalid("Unsupported content type", 415, "unsupported_content_type")
        try:
            body = json.loads(call.body)
        except ValueError:
            raise _Invalid("We could not parse the JSON body of your request.") from None
        if not isinstance(body.get("model"), str) or not body["model"]:
            raise _Invalid("you must provide a model parameter")
        if self.stream_only and not body.get("stream"):
            raise _Invalid("this model only supports streaming output")
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            raise _Invalid("'messages' must be a non-empty list")
        system, prompt, audio = None, "", None
        for message in messages:
            if message.get("role") == "system":
                system = _words(message["content"])
                continue
            if message.get("role") != "user":
                raise _Invalid(f"Invalid role: {message.get('role')!r}")
            content = message["content"]
            for part in (
                [{"type": "text", "text": content}] if isinstance(content, str) else content
            ):
                if part.get("type") == "text":
                    prompt += part["text"]
                else:
                    audio = self._audio(part)
        return Asked(body["model"], system, prompt, audio, body)

    def _audio(self, part: dict[str, Any]) -> Heard:
        if part.get("type") == "input_audio":
            coded, kind = part["input_audio"]["data"], part["input_audio"]["format"]
            if self.stream_only:
                coded = coded.removeprefix("data:;base64,")
            if kind not in self.formats:
                raise _Invalid(f"Invalid value: {kind!r}. Supported: {', '.join(self.formats)}.")
        elif part.get("type") == "audio_url":
            head, _, coded = part["audio_url"]["url"].partition(";base64,")
            if not head.startswith("data:audio/"):
                raise _Invalid("audio_url must be a data: URL here")
            kind = head.removeprefix("data:audio/")
        else:
            raise _Invalid(f"Invalid content part: {part.get('type')!r}")
        try:
            heard = listen(base64.b64decode(coded, validate=True))
        except (binascii.Error, soundfile.LibsndfileError):
            raise _Invalid("The data provided for 'input_audio' is not valid audio.") from None
        if kind in ("wav", "flac") and heard.format != kind:
            raise _Invalid(f"The audio is {heard.format}, not {kind}.")
        return heard


def _words(content: Any) -> str:
    """The system's words; a part of them may be marked as the end of what is kept."""
    if isinstance(content, str):
        return content
    for part in content:
        known = {"type", "text", "prompt_cache_breakpoint"}
        marked = part.get("prompt_cache_breakpoint", {"mode": "explicit"})
        if part["type"] != "text" or set(part) - known or marked != {"mode": "explicit"}:
            raise _Invalid(f"Invalid content part: {sorted(part)}")
    return "".join(part["text"] for part in content)


def as_stream(body: dict[str, Any], *, finish: bool = True, done: bool = True) -> bytes:
    """A completion as server-sent events, a few characters at a time, usage in the last one."""
    choice = body["choices"][0]
    common = {"id": body["id"], "object": "chat.completion.chunk", "model": body["model"]}
    text = choice["message"]["content"] or ""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[at : at + 3]} for at in range(0, len(text), 3)]
    events = [
        {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    if finish:
        events.append(
            {
                **common,
                "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}],
            }
        )
        events.append({**common, "choices": [], "usage": body["usage"]})
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return ("".join(lines) + ("data: [DONE]\n\n" if done else "")).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--character", choices=CHARACTERS, default="neutral")
    parser.add_argument("--key", help="demand this key")
    given = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    server = OpenAIServer(
        character=given.character, key=given.key, port=given.port, formats=("wav", "mp3", "flac")
    )
    server.keep_bodies = False
    with server:
        sys.stdout.write(server.url + "\n")
        sys.stdout.flush()
        ended.wait()


if __name__ == "__main__":
    main()
