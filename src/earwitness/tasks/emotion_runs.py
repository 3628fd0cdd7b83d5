"""Emotion runs as a user asks for them: sets of models, prompts and conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from earwitness.clips.corpus import ClipSet
from earwitness.clips.labels import load_label_map
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
    label_map: str | None = None,
) -> tuple[PlannedRun, ...]:
    """One run for every model and prompt; nothing is asked or written yet.

    Raises
    ------
    UsageError: a model or condition is unknown, or one is named twice.
    DataError: a prompt set or label map cannot be read.
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
                stimuli=emotion.describe(clip_set),
                n_items=len(questions),
                extra={
                    "parser_version": emotion.PARSER_VERSION,
                    "label_map": _map_used(label_map or getattr(model, "label_map", None)),
                },
            )
            folder = out / folder_name(emotion.TASK, model_name, prompt_set.id)
            runs.append(PlannedRun(folder, name, card, questions, model))
    return tuple(runs)


def _map_used(name: str | None) -> dict[str, str] | None:
    """The label map a run is to be read with, as its card names it."""
    if name is None:
        return None
    label_map = load_label_map(name)
    return {
        "name": name,
        "id": label_map.id,
        "version": label_map.version,
        "hash": label_map.hash,
    }


def systems_of(
    folders: Sequence[Path],
    *,
    condition: str | None = None,
    label_map: str | None = None,
    accept_failed: bool = False,
    on_folder: Callable[[Path], None] | None = None,
) -> tuple[System, ...]:
    """Every run under every condition it was asked under, with replies parsed anew.

    Parameters
    ----------
    condition: only this one; None means all.
    label_map: name or file of a map to read native labels with; None means the run's own.
    on_folder: called before each run is read.

    Raises
    ------
    UsageError: no run was asked under ``condition``.
    """
    chosen = load_label_map(label_map) if label_map else None
    systems: list[System] = []
    seen: dict[str, None] = {}
    for folder in folders:
        if on_folder:
            on_folder(folder)
        conditions = [str(name) for name in RunFolder(folder).card().get("conditions", ["audio"])]
        seen |= dict.fromkeys(conditions)
        systems += [
            emotion.system(folder, condition=name, label_map=chosen, accept_failed=accept_failed)
            for name in conditions
            if condition in (None, name)
        ]
    if not systems:
        raise UsageError(
            "--condition", f"no run was asked under {condition!r}", f"one of: {', '.join(seen)}"
        )
    return tuple(systems)
