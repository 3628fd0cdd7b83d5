"""Stand-ins for the vendors whose descriptions ship, each of the form its reference describes."""

from __future__ import annotations

from tests.models.conftest import KEY
from tests.standins.listening import listen
from tests.standins.loopback import Act, Call, LoopbackServer, json_act
from tests.standins.vendor_server import parse_form


def hume_error(status: int, message: str = "no", code: str = "other", **headers: str) -> Act:
    """An error in the form Hume gives it; a 401 comes from before the service and has no code."""
    body = {"message": message, "request_id": "r"}
    if status != 401:
        body |= {"type": "error", "code": code}
    return json_act(body, status, **headers)


class HumeServer(LoopbackServer):
    """Audio upload: one form with the file, windows of speech in the answer."""

    windows: tuple[dict[str, float], ...] = ({"joy": 0.8, "neutral": 0.2}, {"joy": 0.4})

    def respond(self, call: Call) -> Act:
        if call.headers.get("x-hume-api-key") != KEY:
            return hume_error(401)
        assert (call.method, call.path) == ("POST", "/v1/expression/audio/file")
        [part] = parse_form(call.headers["content-type"], call.body)
        heard = listen(part.data)
        if (part.name, part.media_type, heard.rate) != ("file", "audio/wav", 16_000):
            return hume_error(400, "16 kHz", "audio_decode_failed")
        measurements = [
            {
                "measurement_id": at, "utterance_id": 0, "audio_start_ms": 3000 * at, "audio_end_ms": 3000 * at + 3000,
                "trigger": "interval", "voice_attributes": [{"name": "husky", "probability": 0.9}],
                "expressions": [{"name": name, "probability": p} for name, p in scores.items()],
            }
            for at, scores in enumerate(self.windows)
        ]  # fmt: skip
        duration = {"audio_duration_ms": round(heard.seconds * 1000)}
        return json_act(
            {
                "request_id": "req-1",
                "run_id": "run-1",
                "received": duration,
                "utterances": [],
                "measurements": measurements,
            }
        )


class OrukServer(LoopbackServer):
    """Emotions of a file: a form with the file and a model, labels with scores."""

    def __init__(self, *acts: Act) -> None:
        super().__init__(*acts)
        self.requests: list[str] = []

    def respond(self, call: Call) -> Act:
        if call.headers.get("authorization") != f"Bearer {KEY}":
            return json_act({"error": {"code": "invalid_api_key", "message": "no"}}, 401)
        assert call.path == "/v1/audio/emotions"
        parts = {part.name: part for part in parse_form(call.headers["content-type"], call.body)}
        listen(parts["file"].data)
        assert parts["model"].data == b"oruk-resonance"
        self.requests.append(call.headers["x-request-id"])
        scores = [{"label": "happy", "score": 0.9}, {"label": "excited", "score": 0.4}]
        return json_act({"emotions": scores, "usage": {"duration": 1.0}})
