"""What the browser of scenes shows, packed as JSON: scenes with their timelines, questions, and what was answered.

Texts are stored once, cells are numbers. The page's script only ever sets text, and it draws what is looked at: 300
scenes and 100,000 answers stay usable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from earwitness.report.numbers import clean
from earwitness.report.rows import TEXT_BUDGET, Interner, reply_limit
from earwitness.report.scene_audio import SceneAudio
from earwitness.report.scene_boards import SceneBoard
from earwitness.runs.outcomes import OUTCOME_KINDS
from earwitness.scenes.bank_records import REACTIONS
from earwitness.tasks.cares_runs import TASKS, CaresAnswers
from earwitness.tasks.cares_scores import base_id
from earwitness.tasks.choices import OPTIONS_KEY, options_from_text
from earwitness.tasks.records import Decision
from earwitness.tasks.scene_conditions import CONDITIONS
from earwitness.tasks.scene_items import MixedCorpus, MixedScene
from earwitness.tasks.summary import judged

if TYPE_CHECKING:
    from earwitness.scenes.bank import Bank

Outlines = Mapping[tuple[str, str], str]
"""Waveforms by (corpus key, scene)."""


def scene_record(mixed: MixedCorpus, scene: MixedScene) -> dict[str, Any]:
    """A scene as the browser shows it: place, people, turns with their words, sounds with their reactions."""
    manifest, scenario, bank = scene.manifest, scene.scenario, mixed.bank
    said = {turn.index: turn for turn in manifest.turns}
    return {
        "place": _place_name(bank, scenario.location),
        "split": scenario.split,
        "seconds": round(manifest.audio.duration_s, 2),
        "topic": clean(scene.dialogue.topic),
        "turns": [
            [utterance.speaker, round(said[k].start_s, 2), round(said[k].end_s, 2), clean(utterance.text)]
            for k, utterance in enumerate(scene.dialogue.utterances)
            if k in said
        ],
        "events": [
            {
                "id": event.id,
                "sound": _sound_name(bank, event.sound),
                "reaction": event.reaction,
                "register": (event.register or "").replace("_", " "),
                "start": round(event.start_s, 2),
                "end": round(event.end_s, 2),
                "at": round(event.salient_s, 2),
                "margin": None if event.over_ambience_db is None else round(event.over_ambience_db, 1),
                "level": "set back" if event.set_back else "as loud as the voices",
            }
            for event in manifest.events
        ],
    }  # fmt: skip


def _place_name(bank: Bank, location: str) -> str:
    """A location's name; its id in words where the bank has no such location."""
    known = {place.id: place.name for place in bank.locations}
    return known.get(location, _shown(location))


def _sound_name(bank: Bank, sound: str) -> str:
    known = {each.id: each.name for each in bank.sounds}
    return known.get(sound, _shown(sound))


class _Packer:
    """Collects scenes, questions and answers of all boards."""

    def __init__(self, audio: SceneAudio, outlines: Outlines) -> None:
        self.audio = audio
        self.outlines = outlines
        self.texts, self.names = Interner(), Interner()
        self.scenes: list[dict[str, Any]] = []
        self.places: dict[tuple[str, str], int] = {}
        self.items: dict[str, list[Any]] = {
            key: [] for key in ("scene", "task", "event", "what", "gold", "options")
        }
        self.numbers: dict[tuple[Any, ...], int] = {}
        self.answers: list[dict[str, Any]] = []

    def scene(self, key: str, corpus: int, scene: str, record: Mapping[str, Any]) -> int:
        """Number of a scene; it is added where it is new."""
        place = self.places.setdefault((key, scene), len(self.scenes))
        if place == len(self.scenes):
            sounds = self.audio.sounds.get((key, scene), ())
            self.scenes.append(
                {
                    "id": scene,
                    "corpus": corpus,
                    "outline": self.outlines.get((key, scene), ""),
                    "sounds": [[sound.variant, sound.source] for sound in sounds],
                    **record,
                }
            )
        return place

    def item(self, board: SceneBoard, corpus: int, decision: Decision, task: str) -> int:
        scene = self.scene(board.key, corpus, decision.cluster, _bare(decision))
        base = base_id(decision.item_id)
        key = (scene, task, base, decision.gold)
        number = self.numbers.setdefault(key, len(self.numbers))
        if number == len(self.items["scene"]):
            event, what = _asked(base.removeprefix(decision.cluster).strip("/"))
            ids = [each["id"] for each in self.scenes[scene]["events"]]
            options = decision.groups.get(OPTIONS_KEY)
            gold = "" if task == "summary" else decision.gold
            self.items["scene"].append(scene)
            self.items["task"].append(TASKS.index(task))
            self.items["event"].append(ids.index(event) if event in ids else -1)
            self.items["what"].append(self.names.number(what))
            self.items["gold"].append(self.names.number(_shown(gold)))
            self.items["options"].append(
                [self.names.number(_shown(o.label)) for o in options_from_text(options)]
                if options
                else []
            )
        return number

    def answered(self, board: SceneBoard, corpus: int, each: CaresAnswers, system: int) -> None:
        mentions = _mentions(board, each) if each.task == "summary" else {}
        columns: dict[str, Any] = {
            "system": system,
            "task": TASKS.index(each.task),
            "condition": CONDITIONS.index(each.condition),
            **{key: [] for key in ("item", "kind", "label", "right", "reply", "rule", "note")},
        }
        for decision in each.decisions:
            outcome = decision.outcome
            label = outcome.label
            right = label is not None and label == decision.gold
            if each.task == "summary":
                label, right = mentions.get(decision.item_id, (label, False))
            reply = decision.reply
            columns["item"].append(self.item(board, corpus, decision, each.task))
            columns["kind"].append(OUTCOME_KINDS.index(outcome.kind))
            columns["label"].append(self.names.number(None if label is None else _shown(label)))
            columns["right"].append(int(right))
            columns["reply"].append(self.texts.number(None if reply is None else clean(reply)))
            columns["rule"].append(self.names.number(clean(outcome.rule)))
            columns["note"].append(
                self.texts.number(clean(outcome.detail) if outcome.detail else None)
            )
        self.answers.append(columns)


def pack_scenes(
    boards: Sequence[SceneBoard],
    audio: SceneAudio,
    outlines: Outlines,
    *,
    budget: int = TEXT_BUDGET,
) -> dict[str, Any]:
    """Everything the browser of a report shows.

    Returns
    -------
    A JSON-serialisable dictionary. ``items`` and ``answers`` are column by column; cells are numbers into ``names``,
    ``texts``, ``scenes``, ``items`` and the lists of tasks, conditions and kinds; -1 stands for none.
    """
    packer = _Packer(audio, outlines)
    systems: list[str] = []
    for corpus, board in enumerate(boards):
        if board.mixed is not None:
            for scene in board.mixed.scenes:
                packer.scene(board.key, corpus, scene.id, scene_record(board.mixed, scene))
        for each in board.answers:
            if each.name not in systems:
                systems.append(each.name)
            packer.answered(board, corpus, each, systems.index(each.name))
    order = [name for board in boards for name in board.systems]
    return _document(packer, [board.name for board in boards], systems, order, budget)


def pack_corpus(
    mixed: MixedCorpus, name: str, audio: SceneAudio, outlines: Outlines
) -> dict[str, Any]:
    """The same without runs, for listening; its corpus has the key ``listen``."""
    packer = _Packer(audio, outlines)
    for scene in mixed.scenes:
        packer.scene("listen", 0, scene.id, scene_record(mixed, scene))
    return _document(packer, [name], [], [], TEXT_BUDGET)


def _document(
    packer: _Packer,
    corpora: Sequence[str],
    systems: Sequence[str],
    order: Sequence[str],
    budget: int,
) -> dict[str, Any]:
    texts = packer.texts.texts
    limit = reply_limit(texts, budget)
    return {
        "reactions": list(REACTIONS),
        "tasks": list(TASKS),
        "conditions": list(CONDITIONS),
        "kinds": list(OUTCOME_KINDS),
        "corpora": list(corpora),
        "systems": list(systems),
        "order": [systems.index(name) for name in dict.fromkeys(order)],
        "scenes": packer.scenes,
        "items": packer.items,
        "answers": packer.answers,
        "names": packer.names.texts,
        "limit": limit,
        "cut": sum(len(text) > limit for text in texts),
        "texts": [text if len(text) <= limit else text[:limit] + "…" for text in texts],
    }


def _bare(decision: Decision) -> dict[str, Any]:
    """A scene of which nothing but questions is known, as its corpus was not found."""
    place = decision.groups.get("location", "")
    return {
        "place": _shown(place),
        "split": "",
        "seconds": 0,
        "topic": "",
        "turns": [],
        "events": [],
    }


def _asked(rest: str) -> tuple[str, str]:
    """Event and kind of question from what an item's id says after its scene.

    >>> _asked("e1/present"), _asked("w25"), _asked("e2~r1"), _asked("")
    (('e1', 'present'), ('', '25 words'), ('e2', 'options turned by 1'), ('', ''))
    """
    rest, _, rotation = rest.partition("~r")
    event, _, kind = rest.partition("/")
    if event[:1] == "w" and event[1:].isdigit():
        return "", f"{event[1:]} words"
    if kind == "catch":
        return "", "a moment without a sound"
    return event, kind or (f"options turned by {rotation}" if rotation else "")


def _shown(label: str) -> str:
    return clean(label.replace("_", " "))


def _mentions(board: SceneBoard, each: CaresAnswers) -> dict[str, tuple[str | None, bool]]:
    """What the judge found in each summary, in words, and whether it was everything."""
    if board.judge is None:
        return {}
    found: dict[str, list[tuple[str, str]]] = {}
    for decision in judged(each.decisions, board.judge):
        if decision.groups.get("kind") == "present" and decision.outcome.label is not None:
            key = decision.groups["_summary"] + decision.item_id[len(base_id(decision.item_id)) :]
            found.setdefault(key, []).append((decision.groups["sound"], decision.outcome.label))
    words = {}
    for item, verdicts in found.items():
        heard = [_shown(sound) for sound, verdict in verdicts if verdict == "heard"]
        named = f": {', '.join(heard)}" if heard else ""
        words[item] = (
            f"{len(heard)} of {len(verdicts)} sounds{named}",
            len(heard) == len(verdicts),
        )
    return words  # type: ignore[return-value]
