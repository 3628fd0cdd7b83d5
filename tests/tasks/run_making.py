"""Run folders written as the runner writes them, with replies of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from earwitness.models.protocols import AudioRef, Prompt, Reply
from earwitness.runs.folder import RunFolder
from earwitness.runs.items import Item, Question, digest, reply_key
from earwitness.runs.ledger import Ledger
from earwitness.tasks import emotion
from earwitness.tasks.choices import OPTIONS_KEY, Option, options_to_text
from earwitness.tasks.reaction import LABELS

MODEL = "scripted/model"


@dataclass(frozen=True)
class Told:
    """An item with the reply to it; None: it was never answered."""

    id: str
    gold: str
    reply: str | None
    cluster: str
    groups: Mapping[str, str] = field(default_factory=dict)
    audio: str = ""


def write_run(
    folder: Path,
    task: str,
    told: Sequence[Told],
    *,
    name: str = "model",
    prompt: str = "vab",
    condition: str = "audio",
    templates: Mapping[str, str] | None = None,
) -> Path:
    """A complete run folder."""
    questions = []
    for each in told:
        audio = AudioRef(Path(f"{each.id}.wav"), digest([each.id, each.audio]), 1.0, 16_000)
        item = Item(each.id, task, "1", Prompt("?"), audio, condition)
        questions.append(Question(item, each.gold, each.cluster, each.groups))
    card = {
        "name": name,
        "model": name,
        "task": task,
        "task_version": "1",
        "prompt": {"id": prompt, "version": "1", "hash": "", "text": "?", "system": None},
        "conditions": [condition],
        "clips": {"name": "set", "templates": dict(templates or {})},
    }
    run = RunFolder(folder)
    run.write(card, questions, MODEL, {})
    with Ledger(run.ledger_path) as ledger:
        for question, each in zip(questions, told, strict=True):
            if each.reply is not None:
                key = reply_key(question.item, MODEL, {})
                ledger.started(key, item=each.id, attempt=1)
                ledger.reply(key, Reply(text=each.reply), item=each.id, attempts=1)
    return folder


def emotion_run(
    folder: Path, skill: float, *, n: int = 400, speakers: int = 40, seed: int = 0, **more
) -> Path:
    """A run over seven emotions that is right in about ``skill`` of the clips, else says neutral or anger.

    Clips are as hard for every run: of two runs the better one is right wherever the worse one is, but for some
    luck of its own (``seed``).
    """
    hard = np.random.default_rng(1).random(n)
    luck = np.random.default_rng([2, seed]).random(n)
    told = []
    for k in range(n):
        gold = emotion.EMOTIONS[k % 7]
        right = 0.85 * hard[k] + 0.15 * luck[k] < skill
        wrong = "neutral" if gold != "neutral" else "anger"
        told.append(Told(f"c{k:04d}", gold, gold if right else wrong, f"p{k % speakers:02d}"))
    return write_run(folder, "emotion", told, **more)


def reaction_run(
    folder: Path, recalls: Mapping[str, float], *, scenes: int = 60, seed: int = 0, **more
) -> Path:
    """A run over the four reactions with these recalls, four sounds a scene."""
    rng = np.random.default_rng([3, seed])
    options = options_to_text([Option(label, f"{label}: x") for label in LABELS])
    told = []
    for s in range(scenes):
        for e, gold in enumerate(LABELS):
            wrong = LABELS[(e + 1) % 4]
            label = gold if rng.random() < recalls[gold] else wrong
            groups = {"reaction": gold, OPTIONS_KEY: options}
            told.append(Told(f"s{s:03d}/e{e}", gold, label, f"s{s:03d}", groups))
    more.setdefault("prompt", "time")
    templates = {f"s{s:03d}": f"t{s // 4}" for s in range(scenes)}
    return write_run(folder, "reaction", told, templates=templates, **more)
