"""A stand-in for a chat model that writes scripts, in every temper a real one has.

``good``      answers every brief with a script of its own
``sloppy``    names an emotion, shouts, is too short or repeats itself at first; obeys once it is told
``stubborn``  breaks the rules whatever it is told
``refusing``  declines
``prose``     puts the JSON into talk, after thinking aloud
"""

from __future__ import annotations

import json
from typing import Any

import yaml

from earwitness.clips.scripts_offline import load_phrasebook
from tests.standins.loopback import Act, Call, LoopbackServer, error, json_act
from tests.standins.openai_server import completion

TOLD = "turned down"
SPOILS = (
    lambda text: text + " I am so happy about it.",
    lambda text: text + " What a day!",
    lambda text: " ".join(text.split()[:12]) + ".",
    lambda text: text[:0] + load_phrasebook("en").write(999, 1, 5),
    lambda text: text + " It did not work.",
)


class ScriptServer(LoopbackServer):
    """Speaks ``POST /v1/chat/completions``. ``dies_after``: from this call on, 500s and broken connections."""

    prefix = "/v1"

    def __init__(self, temper: str = "good", *, dies_after: int | None = None) -> None:
        super().__init__()
        self.temper = temper
        self.dies_after = dies_after
        self.users: list[str] = []
        self.systems: list[str] = []

    def respond(self, call: Call) -> Act:
        if self.dies_after is not None and call.number >= self.dies_after:
            return Act("close") if call.number % 2 else error(500, "the model fell over")
        body: dict[str, Any] = json.loads(call.body)
        messages = {message["role"]: message["content"] for message in body["messages"]}
        self.users.append(messages["user"])
        self.systems.append(messages["system"])
        if self.temper == "refusing":
            return json_act(completion(None, refusal="I can't help with that."))
        text = json.dumps({"text": self._write(messages["user"])})
        if self.temper == "prose":
            text = f"<think>Something {{short}}?</think>Here it is: {text} Is that all right?"
        return json_act(completion(text))

    def _write(self, user: str) -> str:
        brief = yaml.safe_load(user.split("\n\n")[0])
        number = int(brief["script"].removeprefix("s"))
        text = load_phrasebook("en").write(number, 1, 77)
        if self.temper == "stubborn":
            return SPOILS[0](text)
        if self.temper == "sloppy" and TOLD not in user:
            return SPOILS[number % len(SPOILS)](text)
        return text
