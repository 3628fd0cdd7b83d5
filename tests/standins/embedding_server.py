"""A stand-in for embedding services: ``POST /v1/embeddings`` as OpenAI and its many imitators speak it."""

from __future__ import annotations

import hashlib

from tests.standins.loopback import Act, Call, LoopbackServer, error, json_act

WIDTH = 64


def vector(text: str) -> list[float]:
    """Words hashed into places: texts that share words are near each other."""
    row = [0.001] * WIDTH
    for word in text.lower().split():
        digest = hashlib.sha256(word[:5].encode()).digest()
        row[digest[0] % WIDTH] += 1.0 if digest[1] & 1 else -1.0
    return row


class EmbeddingServer(LoopbackServer):
    """Answers in reverse order, as the protocol allows; ``key`` set: demands it."""

    prefix = "/v1"
    key: str | None = None

    def respond(self, call: Call) -> Act:
        if self.key and call.headers.get("authorization") != f"Bearer {self.key}":
            return error(401, "no such key", "invalid_api_key")
        if call.path != "/v1/embeddings":
            return error(404, f"no {call.path}")
        body = call.json()
        texts = body["input"]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            return error(400, "'input' must be a list of strings")
        data = [
            {"object": "embedding", "index": n, "embedding": vector(text)}
            for n, text in enumerate(texts)
        ]
        return json_act({"object": "list", "data": data[::-1], "model": body["model"]})
