"""Emotion runs as a user asks for them: sets of models, prompts and conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from earwitness.clips.corpus import ClipSet
from earwitness.errors import UsageError
from earwitness.models.registry import open_model
from earwitness.runs.card import make_card
from earwitness.runs.folder import RunFolder
from earwitness.tasks import emotion
from earwitness.tasks.records import System
from earwitness.tasks.running import PlannedRun, folder_name, run_name

DEFAULT_PROMPT = "vab"


def plan_runs(
    clip_set: ClipSet,
    *,
    models: Sequence[str],
    options: Mapping[str, str],
    models_file: Path | None,
    prompt_sets: Sequence[str],
    conditions: Sequence[str],
    out: Path,
    limit: int | None = None,
) -> tuple[PlannedRun, ...]:
    """One run for every model and prompt; nothing is asked or written yet.

    Raises
    ------
    UsageError: a model or condition is unknown, or one is named twice.
    DataError: a prompt set cannot be read.
    """
    for what, names in (("--model", models), ("--prompt-set", prompt_sets)):
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise UsageError(what, f"{', '.join(doubled)} is named twice", wanted="each once")
    runs = []
    for prompt_name in prompt_sets:
        prompt_set = emotion.load_prompt_set(prompt_name)
        questions = emotion.items(
            clip_set, prompt_set=prompt_name, conditions=tuple(conditions), limit=limit
        )
        for model_name in models:
            model = open_model(model_name, options, models_file=models_file)
            name = run_name(model_name, prompt_set.id, DEFAULT_PROMPT)
            card = make_card(
                name=name,
                task=emotion.TASK,
                task_version=emotion.TASK_VERSION,
                model=model,
                prompt={
                    "id": prompt_set.id,
                    "version": prompt_set.version,
                    "hash": prompt_set.hash,
                    "text": prompt_set.prompt.user,
                    "system": prompt_set.prompt.system,
                },
                conditions=conditions,
                stimuli=_describe(clip_set),
                n_items=len(questions),
                extra={"parser_version": emotion.PARSER_VERSION},
            )
            folder = out / folder_name(emotion.TASK, model_name, prompt_set.id)
            runs.append(PlannedRun(folder, name, card, questions, model))
    return tuple(runs)


def _describe(clip_set: ClipSet) -> dict[str, object]:
    card = clip_set.card
    return {
        "name": card.name,
        "version": card.version,
        "revision": card.revision,
        "licence": card.licence,
        "use": card.use,
        "redistribute": card.redistribute,
        "synthetic": card.synthetic,
        "source": card.source,
        "label_map": card.label_map,
        "conversion": card.conversion,
        "sha256": clip_set.sha256,
        "folder": str(clip_set.folder),
        "n": len(clip_set.clips),
    }


def conditions_of(folders: Sequence[Path]) -> tuple[str, ...]:
    """Every condition that some run was asked under, in the order first met."""
    seen: dict[str, None] = {}
    for folder in folders:
        for condition in RunFolder(folder).card()["conditions"]:
            seen.setdefault(condition)
    return tuple(seen)


def systems_of(folders: Sequence[Path], *, accept_failed: bool = False) -> tuple[System, ...]:
    """Every run under every condition it was asked under, with replies parsed anew."""
    systems = []
    for folder in folders:
        for condition in RunFolder(folder).card()["conditions"]:
            system = emotion.system(folder, condition=condition)
            systems.append(replace(system, accept_failed=accept_failed))
    return tuple(systems)
