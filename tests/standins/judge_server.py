"""A stand-in for a chat model that judges transcripts, in every temper a real one has.

``good``       says what the truth it was given says of a transcript
``wrong``      shifts every reaction to the next of the four
``refusing``   declines
``malformed``  answers with broken JSON until it is told, then well
``hopeless``   answers with broken JSON whatever it is told
``missing``    leaves the last sound out until it is told
``spurious``   adds a sound that is not there
``mislabels``  uses a word that is none of the four
``plain_only`` rejects every ``response_format`` with a 400, as small servers do
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.standins.loopback import Act, Call, LoopbackServer, error, json_act
from tests.standins.openai_server import completion

REACTIONS = ("pivot", "verbal", "behavioral", "ambient")
TOLD = "could not be used"
Truth = Callable[[str], tuple[str, Mapping[str, str]]]
"""From what a judge is shown to topic and reactions."""


class JudgeServer(LoopbackServer):
    """Speaks ``POST /v1/chat/completions``. ``dies_after``: from that call on, every connection is cut."""

    prefix = "/v1"

    def __init__(self, truth: Truth, temper: str = "good", dies_after: int | None = None) -> None:
        super().__init__()
        self.truth = truth
        self.temper = temper
        self.dies_after = dies_after
        self.shown: list[str] = []
        self.systems: list[str] = []

    def respond(self, call: Call) -> Act:
        if self.dies_after is not None and len(self.shown) >= self.dies_after:
            return Act("close")
        body = call.json()
        if self.temper == "plain_only" and "response_format" in body:
            return error(400, "response_format is not supported here")
        system, user = (message["content"] for message in body["messages"])
        self.shown.append(user)
        self.systems.append(system)
        topic, reactions = self.truth(user)
        told = TOLD in user
        sounds: list[dict[str, Any]] = [
            {"id": event, "reaction": reaction} for event, reaction in reactions.items()
        ]
        if self.temper == "refusing":
            return json_act(completion(None, "stop", refusal="I would rather not."))
        if self.temper == "hopeless" or (self.temper == "malformed" and not told):
            return json_act(completion('{"topic": "cut off in the mid'))
        if self.temper == "missing" and not told:
            sounds = sounds[:-1]
        elif self.temper == "spurious":
            sounds.append({"id": "e9", "reaction": "ambient"})
        elif self.temper == "mislabels":
            sounds = [{**sound, "reaction": "startled"} for sound in sounds]
        elif self.temper == "wrong":
            for sound in sounds:
                sound["reaction"] = REACTIONS[(REACTIONS.index(sound["reaction"]) + 1) % 4]
        text = json.dumps({"topic": topic, "sounds": sounds})
        return json_act(completion(f"Here it is:\n```json\n{text}\n```"))
