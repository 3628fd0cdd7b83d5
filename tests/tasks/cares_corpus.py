"""A small mixed corpus with all twins, and runs over it by stand-ins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from earwitness.scenes.bank import load_bank
from earwitness.scenes.corpus import Corpus, write_dialogues
from earwitness.scenes.dialogue_records import EventMark, Utterance
from earwitness.scenes.mixing.preset import load_mix_preset
from earwitness.scenes.mixing.stage import mix_corpus
from earwitness.scenes.mixing.twins import TwinRequest
from tests.scenes.mixing.made import make_corpus, make_library, scenario_of

REACTIONS = ("pivot", "verbal", "behavioral", "ambient")
PLACES = ("park", "office")
SCENES = 8


def build(folder: Path) -> Path:
    """Eight scenes with sixteen sounds, four of each reaction, and every twin. The talk names verbal sounds only."""
    bank = load_bank()
    scenes, used = [], set()
    for n in range(SCENES):
        place = PLACES[n % 2]
        sounds = bank.sounds_at(place)[:8]
        used |= set(sounds)
        events = [
            (sounds[n % 8], REACTIONS[n % 4]),
            (sounds[(n + 3) % 8], REACTIONS[(n + 1) % 4]),
        ]
        scenario = scenario_of(f"hosting.01.{n:02d}", events, place, n)
        scenario = replace(scenario, template=f"hosting.{n // 2:02d}")
        scenes.append((scenario, [1, 3], [0.5] * 8))
    corpus = make_corpus(folder / "corpus", scenes)
    library = make_library(folder / "library", sorted(used), PLACES, takes=1, bed_s=3.0)
    report = mix_corpus(
        corpus, bank, library, load_mix_preset("balanced"),
        twins=TwinRequest(("each", "all"), ("each",), speech_only=True), workers=1,
    )  # fmt: skip
    assert report.made == SCENES, report.refused
    _name_verbal_sounds(corpus)
    return corpus.folder


def _name_verbal_sounds(corpus: Corpus) -> None:
    bank = load_bank()
    told = []
    for scenario, dialogue in corpus.scenes():
        reactions = {e.id: e for e in scenario.events}
        timeline, naming = [], ""
        for part in dialogue.timeline:
            if isinstance(part, EventMark):
                event = reactions[part.id]
                if event.reaction == "verbal":
                    naming = f" There, the {bank.sound(event.sound).names[0]}."
                timeline.append(part)
            else:
                text = f"[sighs] Well, {scenario.id}, {part.text}{naming}"
                timeline.append(Utterance(part.speaker, text))
                naming = ""
        told.append(replace(dialogue, timeline=tuple(timeline)))
    write_dialogues(corpus.path("dialogues.jsonl"), told)
