"""Emotion runs as a user asks for them: sets of models, prompts and conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earwitness.clips.corpus import ClipSet
from earwitness.clips.labels import load_label_map
from earwitness.errors import UsageError
from earwitness.models.registry import open_model
from earwitness.runs.card import make_card
from earwitness.runs.folder import RunFolder
from earwitness.tasks import emotion
from earwitness.tasks.records import System
from earwitness.tasks.running import PlannedRun, folder_name, run_name, why_not

if TYPE_CHECKING:
    from earwitness.models.protocols import AudioModel

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
    transcripts: Mapping[str, str] | None = None,
    transcriber: Mapping[str, Any] | None = None,
) -> tuple[PlannedRun, ...]:
    """One run for every model and prompt; nothing is asked or written yet.

    What a model cannot be asked is left out, and its card says why under ``not_applicable``.

    Parameters
    ----------
    transcripts, transcriber: of the condition ``asr``: text by hash of the clip, and what cards say of who wrote it.

    Raises
    ------
    UsageError: a model or condition is unknown, one is named twice, or a model can be asked under none.
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
            clip_set, prompt_set=prompt_name, conditions=tuple(conditions), limit=limit,
            transcripts=transcripts,
        )  # fmt: skip
        for model_name in models:
            model = open_model(model_name, options, models_file=models_file)
            left_out = _not_applicable(model, model_name, conditions)
            usable = [condition for condition in conditions if condition not in left_out]
            asked = tuple(q for q in questions if q.item.condition in usable)
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
                conditions=usable,
                stimuli=emotion.describe(clip_set),
                n_items=len(asked),
                extra={
                    **({"not_applicable": left_out} if left_out else {}),
                    **({"transcriber": dict(transcriber)} if transcriber else {}),
                    "parser_version": emotion.PARSER_VERSION,
                    "label_map": _map_used(label_map or getattr(model, "label_map", None)),
                },
            )
            folder = out / folder_name(emotion.TASK, model_name, prompt_set.id)
            runs.append(PlannedRun(folder, name, card, asked, model))
    return tuple(runs)


def _not_applicable(model: AudioModel, name: str, conditions: Sequence[str]) -> dict[str, str]:
    """Conditions a model cannot be asked under, and why."""
    found = {
        condition: why
        for condition in conditions
        if (
            why := why_not(
                model, emotion.TASK, words=condition in emotion.TEXT_CONDITIONS, choices=True
            )
        )
    }
    if len(found) == len(conditions):
        reasons = "; ".join(f"{condition}: {why}" for condition, why in found.items())
        raise UsageError(
            f"--model {name}", f"cannot be asked under any condition ({reasons})",
            f"a model that fits, or another of {', '.join(emotion.CONDITIONS)}",
        )  # fmt: skip
    return found


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
