"""A stand-in for Mistral's chat completions: OpenAI's protocol with the differences Mistral makes."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import soundfile

from tests.standins.listening import Heard, listen
from tests.standins.loopback import Act, Call, json_act
from tests.standins.openai_server import Asked, OpenAIServer, _Invalid

FIELDS = {
    "model", "messages", "temperature", "top_p", "random_seed", "max_tokens", "response_format", "stream",
}  # fmt: skip


def mistral_error(status: int, message: str = "no", **headers: str) -> Act:
    """An error in the form Mistral gives it: a flat object, or a list of details for 422."""
    if status == 422:
        detail = [{"type": "extra_forbidden", "loc": ["body", "x"], "msg": message}]
        return json_act({"detail": detail}, status, **headers)
    body = {"object": "error", "message": message, "type": "error", "param": None, "code": "1000"}
    return json_act(body, status, **headers)


class MistralServer(OpenAIServer):
    """Speaks ``POST /v1/chat/completions``; audio is a bare base64 string, unknown fields are refused."""

    def _read(self, call: Call) -> Asked:
        asked = super()._read(call)
        unknown = set(asked.body) - FIELDS
        if unknown:
            problem = _Invalid("")
            problem.act = mistral_error(
                422, f"Extra inputs are not permitted: {sorted(unknown)[0]}"
            )
            raise problem
        return asked

    def _audio(self, part: dict[str, Any]) -> Heard:
        coded = part.get("input_audio")
        if part.get("type") != "input_audio" or not isinstance(coded, str):
            raise _Invalid("input_audio must be a string")
        try:
            return listen(base64.b64decode(coded, validate=True))
        except (binascii.Error, soundfile.LibsndfileError):
            raise _Invalid("no valid audio") from None
