"""Runs about scenes: by listeners of known character, and drawn ones without any audio."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from earwitness.models.protocols import AudioRef, Reply
from earwitness.runs.folder import RunFolder
from earwitness.runs.items import reply_key
from earwitness.runs.ledger import Ledger
from earwitness.runs.outcomes import Outcome
from earwitness.scenes.bank_records import REACTIONS
from earwitness.tasks.cares_runs import CaresAnswers, plan_runs
from earwitness.tasks.choices import OPTIONS_KEY, Option, options_to_text
from earwitness.tasks.records import Decision
from earwitness.tasks.scene_items import load_mixed
from tests.standins.listening import Heard
from tests.standins.scene_characters import SceneServer

ALL_TASKS = ("reaction", "location", "sound", "grounding", "summary")


def ask(
    corpus: Path,
    out: Path,
    character: str,
    conditions: Sequence[str],
    tasks: Sequence[str] = ALL_TASKS,
) -> None:
    """Run folders with what a listener of known character says; the way over HTTP is tested where runs are."""
    listener = SceneServer(corpus, character)
    plan = plan_runs(
        load_mixed(corpus),
        tasks=tasks,
        conditions=conditions,
        models=[f"openai/{character}"],
        options={"base_url": "http://127.0.0.1:9/v1"},
        models_file=None,
        prompt_sets=[],
        out=out,
    )
    for run in plan.runs:
        settings = run.model.settings
        RunFolder(run.folder).write(run.card, run.questions, run.model.name, settings)
        with Ledger(run.folder / "ledger.jsonl") as ledger:
            for question in run.questions:
                item = question.item
                key = reply_key(item, run.model.name, settings)
                said = listener.answer(item.prompt.user, _heard(item.audio), character)
                ledger.started(key, item=item.id, attempt=1)
                ledger.reply(key, Reply(text=said, latency_s=0.2), item=item.id, attempts=1)


def _heard(audio: AudioRef | None) -> Heard | None:
    """What reaches the listener: a file it may know, or silence."""
    if audio is None:
        return None
    known = "silence" if audio.transform == "silence" else audio.sha256
    return Heard(audio.seconds, audio.rate, "wav", -23.0, None, known)


SOUNDS = ("dog_bark", "car_horn", "bicycle_bell", "rooster_crow", "church_bell", "fire_alarm")
PLACES = ("park", "office", "street", "cafe", "kitchen")
Said = Callable[[str, str, tuple[str, ...], random.Random], str | None]
"""(task, truth, options, generator) -> answer; None refuses."""


def card(name: str, **changes: Any) -> dict[str, Any]:
    """A run card as ``run cares`` writes it."""
    return {
        "card_version": 1,
        "name": name,
        "task": "reaction",
        "model": name,
        "settings": {"temperature": 0},
        "limits": {"needs_audio": False},
        "prompt": {
            "id": "own", "version": "1", "hash": "ab" * 32, "system": None,
            "text": "The recording is a conversation of two people.\n{options}\nAnswer with the letter of one option only.",
        },
        "conditions": ["audio"],
        "clips": {
            "name": "talk", "kind": "scenes", "folder": "/nowhere/talk", "seed": 1, "sha256": "cd" * 32, "n": 20,
            "bank": {"id": "default", "version": "1", "hash": "ef" * 32}, "templates": {},
        },
        "started": "2026-11-02T10:00:00+00:00",
        "finished": "2026-11-02T10:12:00+00:00",
        **changes,
    }  # fmt: skip


def right(task: str, truth: str, options: tuple[str, ...], rng: random.Random) -> str | None:
    """A listener that is always right."""
    del task, options, rng
    return truth


def drawn(task: str, truth: str, options: tuple[str, ...], rng: random.Random) -> str | None:
    """A listener that draws lots."""
    del task, truth
    return rng.choice(options)


def often(share: float) -> Said:
    """A listener that is right in about this share of the items, and draws otherwise."""

    def said(task: str, truth: str, options: tuple[str, ...], rng: random.Random) -> str | None:
        return truth if rng.random() < share else drawn(task, truth, options, rng)

    return said


def always(label: str) -> Said:
    """A listener that says one thing, where it can."""

    def said(task: str, truth: str, options: tuple[str, ...], rng: random.Random) -> str | None:
        del task, truth, rng
        return label if label in options else options[0]

    return said


def make_answers(
    name: str,
    said: Said,
    *,
    condition: str = "audio",
    tasks: Sequence[str] = ALL_TASKS,
    scenes: int = 20,
    failed: int = 0,
    seed: int = 0,
    reply: Callable[[str | None], str] = lambda label: label or "I cannot say.",
    **changes: Any,
) -> list[CaresAnswers]:
    """Answers of one system under one condition, on scenes of two sounds each; the first ``failed`` items of each task failed."""
    rng = random.Random(f"{name} {condition} {seed}")
    rows: dict[str, list[Decision]] = {task: [] for task in tasks}

    def add(task: str, item: str, truth: str, scene: str, options: tuple[str, ...], groups: dict[str, str]) -> None:  # fmt: skip
        if task not in rows:
            return
        label = said(task, truth, options, rng)
        outcome = Outcome("answered", label, rule="letter") if label else Outcome("refused")
        text: str | None = reply(label)
        if len(rows[task]) < failed:
            outcome, text = Outcome("failed", detail="timeout"), None
        if options and task != "grounding":
            groups = {**groups, OPTIONS_KEY: options_to_text([Option(o, o) for o in options])}
        name_ = item if condition == "audio" else f"{item}|{condition}"
        rows[task].append(Decision(name_, truth, outcome, scene, condition, groups, 100.0, text))

    for number in range(scenes):
        scene = f"topic.{number // 2:02d}.{number % 2:02d}"
        place = PLACES[number % len(PLACES)]
        places = _four(place, PLACES, number)
        add("location", scene, place, scene, places, {"location": place, "talk": "does not name the place"})  # fmt: skip
        events = []
        for k in (1, 2):
            reaction = REACTIONS[(number + k) % 4]
            sound = SOUNDS[(number + 3 * k) % len(SOUNDS)]
            events.append({"event": f"e{k}", "sound": sound, "reaction": reaction, "margin": "6-10 dB"})  # fmt: skip
            groups = {
                "location": place, "sound": sound, "reaction": reaction,
                "margin": ("6-10 dB", "15 dB or more")[k % 2], "level": "set back", "register": f"r{k}",
            }  # fmt: skip
            base = f"{scene}/e{k}"
            add("reaction", base, reaction, scene, _four(reaction, REACTIONS, number), groups)
            talk = ("names the sound", "does not name the sound")[number % 2]
            add("sound", base, sound, scene, _four(sound, SOUNDS, number), {**groups, "talk": talk})
            for half, truth in (("present", "yes"), ("absent", "no")):
                add("grounding", f"{base}/{half}", truth, scene, ("yes", "no"), groups)
        add("grounding", f"{scene}/c0/catch", "no", scene, ("yes", "no"), {"location": place})
        truth = json.dumps({"present": events, "absent": ["thunder_clap"]})
        for words in (25, 200):
            if "summary" in rows:
                label = said("summary", "yes", ("yes", "no"), rng)
                text = "Two people talk."
                if label == "yes":
                    text += " One hears a dog barking, a bicycle bell and a car horn."
                ok = len(rows["summary"]) >= failed
                rows["summary"].append(
                    Decision(
                        f"{scene}/w{words}" + ("" if condition == "audio" else f"|{condition}"),
                        truth,
                        Outcome("answered", "summary")
                        if ok
                        else Outcome("failed", detail="timeout"),
                        scene,
                        condition,
                        {"location": place, "budget": str(words)},
                        100.0,
                        text if ok else None,
                    )
                )
    found = card(name, **changes)
    return [
        CaresAnswers(name, task, condition, tuple(decisions), {**found, "task": task})
        for task, decisions in rows.items()
        if decisions and not (task == "grounding" and condition == "muted")
    ]


def _four(truth: str, all_: Sequence[str], turn: int) -> tuple[str, ...]:
    """Four options with the truth at a place that moves from scene to scene."""
    others = [each for each in all_ if each != truth][:3]
    others.insert(turn % 4, truth)
    return tuple(others)
