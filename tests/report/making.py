"""Systems with seeded random decisions, for tests of tables and pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from earwitness.audio import encode_audio
from earwitness.audio.io import Audio
from earwitness.clips.corpus import EMOTIONS
from earwitness.runs.outcomes import Outcome, OutcomeKind
from earwitness.tasks.records import Decision, System

NOT_ANSWERED: tuple[OutcomeKind, ...] = (
    "unmapped",
    "ambiguous",
    "refused",
    "blocked",
    "truncated",
    "empty",
)
PROMPT = "Choose exactly one primary expressed emotion: <anger>, disgust & co."
HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1> =cmd|' /C calc'!A0 \u2028 {{7*7}}"


def card(folder: Path | None = None, *, name: str = "model", **clips: Any) -> dict[str, Any]:
    """A run card as the runner writes it."""
    return {
        "card_version": 1,
        "name": name,
        "task": "emotion",
        "task_version": "1",
        "model": f"openai/{name}",
        "settings": {"temperature": 0, "max_tokens": 64},
        "limits": {"formats": ["wav"], "rates": []},
        "prompt": {
            "id": "vab",
            "version": "1",
            "hash": "ab12" * 16,
            "text": PROMPT,
            "system": None,
        },
        "conditions": ["audio", "silence"],
        "clips": {
            "name": "Voices",
            "version": "1.0",
            "revision": "r1",
            "licence": "CC-BY-4.0",
            "use": "any",
            "redistribute": True,
            "synthetic": False,
            "sha256": "cd34" * 16,
            "folder": str(folder or "/data/voices"),
            "n": 280,
            **clips,
        },
        "n_items": 280,
        "started": "2026-11-02T10:00:00+00:00",
        "finished": "2026-11-02T10:12:00+00:00",
        "versions": {"earwitness": "0.1.0", "python": "3.11.2"},
        "parser_version": "1",
        "label_map": {"id": "vendor-default", "version": "1", "hash": ""},
    }


def make_system(
    name: str,
    *,
    skill: float = 0.4,
    bias: str = "neutral",
    n_items: int = 140,
    n_speakers: int = 14,
    seed: int = 1,
    condition: str = "audio",
    failed: int = 0,
    scored: bool = False,
    folder: Path | None = None,
    labels: Sequence[str] = EMOTIONS,
    origin: str = "run",
    **clips: Any,
) -> System:
    """A system right in about ``skill`` of the items, else mostly ``bias``; a few replies give no label."""
    rng = np.random.default_rng([seed, sum(name.encode())])
    decisions = []
    for number in range(n_items):
        gold = labels[number % len(labels)]
        roll = rng.random()
        label: str | None = (
            gold if roll < skill else bias if roll < 0.8 else str(rng.choice(list(labels)))
        )
        kind: OutcomeKind = "answered"
        if roll > 0.97:
            kind, label = NOT_ANSWERED[number % len(NOT_ANSWERED)], None
        if number < failed:
            kind, label = "failed", None
        scores: dict[str, float] = {}
        reply: str | None = (
            f"{label}" if label else None if kind == "failed" else "I would rather not say."
        )
        if scored and label:
            mass = rng.dirichlet(np.ones(len(labels)))
            scores = dict(zip(labels, map(float, mass), strict=True))
            scores[label] = max(scores.values()) + 0.05
            reply = json.dumps({key: round(value, 4) for key, value in scores.items()})
        decisions.append(
            Decision(
                item_id=f"clip-{number:05d}",
                gold=gold,
                outcome=Outcome(
                    kind,
                    label,
                    rule=f"{label} -> {label}" if label else "",
                    native=label,
                    scores=scores,
                    detail="rate_limit: 429" if kind == "failed" else "",
                ),
                cluster=f"speaker-{number // len(labels) % n_speakers:02d}",
                condition=condition,
                groups={"sex": "female" if number // len(labels) % 2 else "male"},
                seconds=3.2,
                reply=reply,
                latency_s=None if kind == "failed" else 0.4 + float(rng.random()),
                cost_usd=0.0004,
                audio_path=None if folder is None else folder / "audio" / f"{number:05d}.wav",
            )
        )
    return System(
        name, tuple(decisions), origin, card(folder, name=name, **clips) if origin == "run" else {}
    )


def write_clips(folder: Path, n_items: int) -> None:
    """Half a second of tone for every item of :func:`make_system`."""
    (folder / "audio").mkdir(parents=True, exist_ok=True)
    time_s = np.arange(4000) / 8000
    for number in range(n_items):
        samples = (0.2 * np.sin(2 * np.pi * (200 + number) * time_s)).astype(np.float32)
        data = encode_audio(Audio(samples, 8000), format="wav", subtype="PCM_16")
        (folder / "audio" / f"{number:05d}.wav").write_bytes(data)


def make_systems(folder: Path | None = None, **options: Any) -> list[System]:
    """Four systems as a benchmark has them: good, biased, deaf, incomplete; and the controls of two."""
    return [
        make_system("gpt-audio-large", skill=0.6, folder=folder, **options),
        make_system("voxtral-small-24b-instruct-2507", skill=0.45, folder=folder, **options),
        make_system(
            "vendor-scores", skill=0.5, bias="sadness", scored=True, folder=folder, **options
        ),
        make_system("deaf", skill=0.0, bias="neutral", folder=folder, **options),
        make_system("unlucky", skill=0.4, failed=9, folder=folder, **options),
        make_system(
            "gpt-audio-large", skill=0.15, condition="silence", seed=2, folder=folder, **options
        ),
        make_system("deaf", skill=0.0, condition="silence", folder=folder, **options),
    ]
