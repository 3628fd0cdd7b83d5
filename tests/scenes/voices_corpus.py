"""A corpus of written scenes to speak: a real plan, dialogues made from a list of lines."""

from __future__ import annotations

from pathlib import Path

from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.corpus import Corpus, write_dialogues
from earwitness.scenes.corpus_plan import plan_corpus, read_cast
from earwitness.scenes.dialogue_records import Dialogue, EventMark, Utterance
from earwitness.scenes.plan import load_preset
from earwitness.scenes.rules.limits import band_range
from earwitness.scenes.scenario import Scenario
from earwitness.scenes.voices_cast import cast_path

LINES = (
    "The landlord says the boiler will be replaced before the end of the month.",
    "I told her twice that the meeting had been moved to Thursday afternoon.",
    "We could take the early train and be back before dinner.",
    "Honestly, the cheaper printer looks just as good to me.",
    "My sister wants to sell the car, but nobody has called so far.",
    "If we split the rent three ways, it becomes almost affordable.",
    "He never finished the course, and now he regrets it a little.",
    "Do you think they would lend us the big tent for the weekend?",
    "The garden needs more water than I can carry up the hill.",
    "I would rather walk than wait for the bus again.",
    "She asked for the recipe, so I wrote it down for her.",
    "Your brother cooked for everybody without any help at all.",
)


def dialogue_for(scenario: Scenario, bank: Bank, *, utterances: int = 12) -> Dialogue:
    """Lines in turns, events in their bands, the tag of a register inside the utterance after its event."""
    texts = [LINES[n % len(LINES)] for n in range(utterances)]
    places: dict[int, list[str]] = {}
    for event in scenario.events:
        at = band_range(utterances, event.band)[0]
        while at in places:
            at += 1
        places.setdefault(at, []).append(event.id)
        register = bank.register(event.register) if event.register else None
        if register and register.tags:
            written = next(tag.written for tag in bank.tags if tag.id == sorted(register.tags)[0])
            first, _, rest = texts[at].partition(" the ")
            texts[at] = f"{first} [{written}] the {rest}"
    timeline: list[Utterance | EventMark] = []
    for number, text in enumerate(texts):
        timeline += [EventMark(event) for event in places.get(number, [])]
        timeline.append(Utterance("AB"[number % 2], text))
    return Dialogue(scenario.id, "Everyday things.", tuple(timeline))


def make_corpus(
    folder: Path,
    *,
    templates: int = 10,
    per_template: int = 1,
    utterances: int = 12,
    cast: str | None = "default",
) -> Corpus:
    """Plan and write a corpus."""
    bank = load_bank()
    planned = plan_corpus(
        folder,
        bank,
        templates=templates,
        per_template=per_template,
        seed=7,
        preset=load_preset("balanced"),
        cast=None if cast is None else read_cast(cast_path(cast), bank),
    )
    corpus = planned.corpus
    write_dialogues(
        corpus.path("dialogues.jsonl"),
        [dialogue_for(scenario, bank, utterances=utterances) for scenario in corpus.scenarios()],
    )
    return corpus
