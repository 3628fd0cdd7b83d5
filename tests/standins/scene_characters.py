"""Listeners of mixed scenes with known characters, behind the chat-completions stand-in.

``python -m tests.standins.scene_characters CORPUS --character deaf`` prints the base URL and serves until it is
ended. What a character knows of the truth it reads from the manifests and dialogues of the corpus:

* ``perfect`` hears everything: it knows which file it was sent, twins included, and what sounds in it when.
* ``deaf`` understands every word and no sound: it knows the scene by its talk, whatever sounds were removed.
* ``always-pivot`` says pivot, or the first option where there is none. ``random`` draws from what it was sent.
* ``echo`` repeats the question. ``refuse`` declines.
* ``by-name`` is whichever of them the request names as its model: one server for all.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hashlib
import random
import re
import signal
import sys
import threading
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from earwitness.scenes.bank_names import Namer
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.dialogue import plain_text
from earwitness.scenes.dialogue_records import Dialogue
from earwitness.scenes.mixing.manifest import Manifest, MixedEvent, read_manifest
from tests.standins.listening import Heard, listen
from tests.standins.loopback import Act, Call, json_act
from tests.standins.openai_server import OpenAIServer, _Invalid, completion

CHARACTERS = ("perfect", "deaf", "always-pivot", "random", "echo", "refuse")
BY_NAME = "by-name"
SILENT_DBFS = -119.0
_OPTION = re.compile(r"^([A-D])\) (.+)$", re.MULTILINE)
_TIME = re.compile(r"(?:at|second) (\d+\.\d)")


@dataclass(frozen=True)
class Known:
    """A file the stand-in can recognise."""

    manifest: Manifest
    dialogue: Dialogue


@lru_cache(maxsize=4)
def known_files(corpus: Path) -> dict[str, Known]:
    """Every mix and twin of a corpus by the hash of its file, as the manifests have it."""
    dialogues = {dialogue.scenario: dialogue for dialogue in Corpus(corpus).dialogues()}
    found = {}
    for path in sorted((*corpus.glob("mixes/*.json"), *corpus.glob("twins/*/*.json"))):
        manifest = read_manifest(path)
        found[manifest.audio.sha256] = Known(manifest, dialogues[manifest.scene])
    return found


@lru_cache(maxsize=4)
def known_samples(corpus: Path) -> dict[str, str]:
    """Hash of the file by hash of its samples, for audio that was sent in another format."""
    return {
        listen((corpus / known.manifest.audio.file).read_bytes()).sha256: sha256
        for sha256, known in known_files(corpus).items()
    }


class SceneServer(OpenAIServer):
    """A listener of the scenes of one corpus."""

    def __init__(self, corpus: Path, character: str, port: int = 0) -> None:
        super().__init__(port=port, formats=("wav", "mp3", "flac"))
        assert character in (*CHARACTERS, BY_NAME)
        self.corpus = corpus
        self.part = character
        opened = Corpus(corpus)
        self.bank = opened.bank()
        self.namer = Namer(self.bank)
        self.sounds = {sound.name: sound.id for sound in self.bank.sounds}
        self.known = known_files(corpus)
        self.scripts = {
            "\n".join(self._lines(known.dialogue)): known
            for known in self.known.values()
            if known.manifest.variant == "audible"
        }

    def respond(self, call: Call) -> Act:
        try:
            asked = self._read(call)
        except _Invalid as problem:
            return problem.act
        if self.keep_bodies:
            self.asked.append(asked)
        part = asked.model if self.part == BY_NAME else self.part
        return json_act(completion(self.answer(asked.prompt, asked.audio, part)))

    def _audio(self, part: dict[str, Any]) -> Heard:
        """A file of the corpus is known by its bytes; anything else is decoded as a service would."""
        if part.get("type") == "input_audio" and part["input_audio"]["format"] in self.formats:
            try:
                data = base64.b64decode(part["input_audio"]["data"])
            except binascii.Error:
                return super()._audio(part)
            sha256 = hashlib.sha256(data).hexdigest()
            if sha256 in self.known:
                audio = self.known[sha256].manifest.audio
                kind = part["input_audio"]["format"]
                return Heard(audio.duration_s, audio.rate_hz, kind, 0.0, None, sha256)
        heard = super()._audio(part)
        if heard.level_dbfs <= SILENT_DBFS:
            return heard
        return replace(heard, sha256=known_samples(self.corpus).get(heard.sha256, heard.sha256))

    # --- characters

    def answer(self, prompt: str, audio: Heard | None, part: str) -> str:
        options = dict(_OPTION.findall(prompt))
        if part == "echo":
            return prompt
        if part == "refuse":
            return "I'm sorry, but I can't help with that."
        if part == "always-pivot":
            return next((k for k, shown in options.items() if shown.startswith("pivot")), "A")
        if part == "random":
            sent = f"{prompt} {audio.sha256 if audio else ''}"
            choices = list(options) or ["yes", "no"]
            drawn = random.Random(hashlib.sha256(sent.encode()).digest())
            return drawn.choice(choices)
        known = self.known.get(audio.sha256) if audio else self._by_script(prompt)
        if known is None:
            return "A" if options else "no"
        return self._informed(prompt, options, known, hears=part == "perfect" and audio is not None)

    def _informed(self, prompt: str, options: dict[str, str], known: Known, *, hears: bool) -> str:
        manifest = known.manifest
        if "yes or no" in prompt or "yes or no" in prompt.casefold():
            return "yes" if hears and self._sounding(prompt, manifest) else "no"
        if "words" in prompt and not options:
            return self._summary(known, hears=hears)
        if "ummar" in prompt:
            return self._summary(known, hears=hears)
        if any(shown.startswith("pivot: ") for shown in options.values()):
            event = self._event(prompt, manifest)
            label = event.reaction if event else "ambient"
            if hears and event is not None and event.heard is None:
                label = "ambient"  # nothing sounds, so nobody can be reacting to it
            return next(k for k, shown in options.items() if shown.startswith(f"{label}: "))
        places = {place.name: place.id for place in self.bank.locations}
        if options and all(shown in places for shown in options.values()):
            at = manifest.location if hears and manifest.variant != "speech-only" else None
            return next((k for k, shown in options.items() if places[shown] == at), "A")
        event = self._event(prompt, manifest)
        if hears:
            wanted = event.heard if event else None
            if manifest.variant == "speech-only":
                wanted = None
            return next((k for k, shown in options.items() if self.sounds[shown] == wanted), "A")
        said = "\n".join(self._lines(known.dialogue))
        named = {m.sound for m in self.namer.named_in(said, tiers=("name",))}
        return next((k for k, shown in options.items() if self.sounds[shown] in named), "A")

    def _summary(self, known: Known, *, hears: bool) -> str:
        text = "Two people talk with each other about everyday things."
        if hears and known.manifest.variant != "speech-only":
            heard = [e.heard for e in known.manifest.events if e.heard]
            text += "".join(f" One hears {self.bank.sound(s).names[0]}." for s in heard)
        return text

    # --- what they go by

    def _event(self, prompt: str, manifest: Manifest) -> MixedEvent | None:
        found = _TIME.findall(prompt.rpartition("\n\n")[2])
        if not found or not manifest.events:
            return manifest.events[0] if manifest.events else None
        return min(manifest.events, key=lambda e: abs(e.salient_s - float(found[0])))

    def _sounding(self, prompt: str, manifest: Manifest) -> bool:
        t = float(_TIME.findall(prompt)[0])
        return any(
            e.heard is not None and e.start_s - 0.06 <= t <= e.end_s + 0.06 for e in manifest.events
        )

    def _by_script(self, prompt: str) -> Known | None:
        lines = re.findall(r"^\[[\d.]+-[\d.]+\] [AB]: (.*)$", prompt, re.MULTILINE)
        words = [" ".join(re.sub(r"\[[^\]]*\]", " ", line).split()) for line in lines]
        return self.scripts.get("\n".join(words))

    @staticmethod
    def _lines(dialogue: Dialogue) -> list[str]:
        return [plain_text(utterance) for utterance in dialogue.utterances]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--character", choices=(*CHARACTERS, BY_NAME), default="perfect")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    given = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    server = SceneServer(given.corpus, given.character, given.port)
    server.keep_bodies = False
    with server:
        sys.stdout.write(server.url + "\n")
        sys.stdout.flush()
        ended.wait()


if __name__ == "__main__":
    main()
