"""A stand-in for a chat model that writes scenes, in every temper a real one has.

``python -m tests.standins.writer_server --temper sloppy`` prints the base URL and serves until it is ended.

``good``        answers every brief with valid JSON
``sloppy``      breaks a rule in every first draft (each rule in turn by brief), obeys once it is told
``each``        breaks every rule once: in each first draft one that was not broken yet; obeys once it is told
``stubborn``    breaks the same rule whatever it is told
``refusing``    declines
``prose``       puts the JSON into talk, after thinking aloud
``fenced``      puts the JSON between fences
``truncated``   stops in the middle of the JSON at first, finishes when told
``plain_only``  rejects every ``response_format`` with a 400, as small servers do
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import yaml

from earwitness.scenes.bank import Bank, load_bank
from tests.standins.composing import MONTHS, NAMES, THINGS, compose, scenario_in, topic_for
from tests.standins.loopback import Act, Call, LoopbackServer, error, json_act
from tests.standins.openai_server import completion
from tests.standins.scene_faults import SCENE_FAULTS, TOPIC_FAULTS

TEMPERS = (
    "good",
    "sloppy",
    "each",
    "stubborn",
    "refusing",
    "prose",
    "fenced",
    "truncated",
    "plain_only",
)
TOLD = "turned down"
Timeline = list[dict[str, Any]]
Fault = Callable[[Timeline], Timeline]


def _spoken(timeline: Timeline, number: int) -> dict[str, Any]:
    return [part for part in timeline if "text" in part][number]


def _drop_event(timeline: Timeline) -> Timeline:
    return [part for part in timeline if "event" not in part] + [{"event": "e9"}]


def _one_voice(timeline: Timeline) -> Timeline:
    return [{**part, "speaker": "A"} if "text" in part else part for part in timeline]


def _too_short(timeline: Timeline) -> Timeline:
    keep = [part for part in timeline if "event" in part]
    return [*[part for part in timeline if "text" in part][:4], *keep]


def _early(timeline: Timeline) -> Timeline:
    marks = [part for part in timeline if "event" in part]
    return [part for part in timeline if "event" not in part] + marks


def _twice(timeline: Timeline) -> Timeline:
    return [*timeline, dict(_spoken(timeline, 0), speaker="B" if len(timeline) % 2 else "A")]


def _added(where: int, *, before: str = "", after: str = "") -> Fault:
    def spoil(timeline: Timeline) -> Timeline:
        part = _spoken(timeline, where)
        part["text"] = f"{before}{part['text']}{after}"
        return timeline

    return spoil


def _third_voice(timeline: Timeline) -> Timeline:
    _spoken(timeline, 2)["speaker"] = "C"
    return timeline


FAULTS: dict[str, Fault] = {
    "D101": _third_voice,
    "D103": _drop_event,
    "D201": _too_short,
    "D202": _one_voice,
    "D203": lambda timeline: [*timeline, {"speaker": "A", "text": "[sighs]"}],
    "D204": _added(3, after=" And so on and so on it went with them all." * 6),
    "D207": _twice,
    "D301": _added(0, after=" (she shrugs)"),
    "D302": _added(1, before="Anna: "),
    "D303": _added(2, before="# Plans\nWell, "),
    "D304": _added(0, after=" \N{GRINNING FACE}"),
    "D305": _added(0, after=" It was [odd."),
    "D306": _added(0, before="Well [dances], "),
    "D307": _added(1, before="Uh, "),
    "D308": _added(2, after=" Are you still there?"),
    "D309": _added(-1, after=" Anyway, at the end of the day it is what it is."),
    "D402": _early,
    "D507": _added(0, after=" What a racket, did you hear that?"),
}
"""Code of a rule -> what breaks it (perhaps with others)."""


class WriterServer(LoopbackServer):
    """Speaks ``POST /v1/chat/completions``; see the module for tempers.

    ``dies_after``: from this call on (counted from 0), 500s and broken connections. ``fault``: the rule that is
    broken, instead of each in turn.
    """

    prefix = "/v1"

    def __init__(
        self,
        *acts: Act,
        temper: str = "good",
        bank: Bank | None = None,
        dies_after: int | None = None,
        fault: str | None = None,
        port: int = 0,
    ) -> None:
        super().__init__(*acts, port=port)
        self.temper = temper
        self.bank = bank or load_bank()
        self.dies_after = dies_after
        self.fault = fault
        self.asked: Counter[str] = Counter()
        self.broken: dict[str, str] = {}
        """By temper ``each``: brief -> code of the rule that its first answer broke."""
        self.prompts: list[tuple[str, str]] = []

    def respond(self, call: Call) -> Act:
        if self.dies_after is not None and call.number >= self.dies_after:
            return Act("close") if call.number % 2 else error(500, "the model fell over")
        body = json.loads(call.body)
        if self.temper == "plain_only" and "response_format" in body:
            return error(400, "response_format is not supported by this server")
        messages = {message["role"]: message["content"] for message in body["messages"]}
        system, user = messages["system"], messages["user"]
        self.prompts.append((system, user))
        kind, value = self._write(user)
        self.asked[kind] += 1
        if self.temper == "refusing":
            return json_act(
                completion(None, refusal="I can't help with that.", usage=_usage(system, user, ""))
            )
        text = json.dumps(value, ensure_ascii=False)
        finish = "stop"
        if self.temper == "prose":
            text = f"<think>A list {{of}} things [maybe].</think>Here is what I came up with: {text} Enjoy!"
        elif self.temper == "fenced":
            text = f"```json\n{text}\n```"
        elif self.temper == "truncated" and TOLD not in user and kind == "dialogue":
            text, finish = text[: len(text) // 2], "length"
        return json_act(completion(text, finish, usage=_usage(system, user, text)))

    def _write(self, user: str) -> tuple[str, Any]:
        brief = yaml.safe_load(user.split("\n\n")[0])
        told = TOLD in user
        if "number" in brief:
            return "templates", {"situations": self._situations(brief, user)}
        if "sounds" not in brief:
            return "topic", {"topic": self._topic(user, told=told)}
        timeline = compose(brief, self.bank)
        if self.temper == "each":
            return "dialogue", {"timeline": timeline if told else self._each(brief, timeline)}
        if self.temper == "stubborn" or (self.temper == "sloppy" and not told):
            codes = sorted(FAULTS)
            stubborn = "D307" if self.temper == "stubborn" else codes[_number(brief) % len(codes)]
            timeline = FAULTS[self.fault or stubborn](timeline)
        return "dialogue", {"timeline": timeline}

    def _topic(self, user: str, *, told: bool) -> str:
        left = [code for code in TOPIC_FAULTS if code not in self.broken.values()]
        if self.temper != "each" or told or not left:
            return topic_for(user)
        self.broken[user] = left[0]
        return TOPIC_FAULTS[left[0]]

    def _each(self, brief: dict[str, Any], timeline: Timeline) -> Timeline:
        """The timeline with the first fault that was not used yet and has a place in it."""
        scenario = scenario_in(brief, self.bank)
        for code in sorted({**FAULTS, **SCENE_FAULTS}, key=lambda code: (code in FAULTS, code)):
            if code in self.broken.values():
                continue
            copy = [dict(part) for part in timeline]
            spoilt = (
                SCENE_FAULTS[code](copy, scenario, self.bank)
                if code in SCENE_FAULTS
                else FAULTS[code](copy)
            )
            if spoilt is not None:
                self.broken[json.dumps(brief)] = code
                return spoilt
        return timeline

    def _situations(self, brief: dict[str, Any], user: str) -> list[dict[str, Any]]:
        if self.temper == "sloppy" and TOLD not in user:
            # Every theme gets the same ones, and one without facets.
            same = [{"title": f"Trouble number {n}", "facets": [f"f{n}", "g"]} for n in range(4)]
            return [*same, {"title": "Nothing to it", "facets": []}]
        draw = random.Random(user)
        return [
            {
                "title": f"{draw.choice(THINGS)} {draw.choice(NAMES)} {draw.choice(MONTHS)} {draw.randrange(999)}",
                "facets": [f"{draw.choice(THINGS)} {draw.randrange(9999)}" for _ in range(3)],
            }
            for _ in range(brief["number"])
        ]


def _number(brief: dict[str, Any]) -> int:
    return int(hashlib.sha256(yaml.safe_dump(brief).encode()).hexdigest()[:8], 16)


def _usage(system: str, user: str, text: str) -> dict[str, Any]:
    read, said = len((system + user).split()), len(text.split())
    return {"prompt_tokens": read, "completion_tokens": said, "total_tokens": read + said}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--temper", choices=TEMPERS, default="good")
    parser.add_argument("--dies-after", type=int, help="fails from this call on")
    given = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    server = WriterServer(temper=given.temper, dies_after=given.dies_after, port=given.port)
    server.keep_bodies = False
    with server:
        sys.stdout.write(server.url + "\n")
        sys.stdout.flush()
        ended.wait()


if __name__ == "__main__":
    main()
