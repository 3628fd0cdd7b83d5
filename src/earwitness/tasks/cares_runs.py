"""Runs of the tasks about scenes as a user asks for them, and what they amount to.

One run folder for every task, model and prompt; conditions and rotations are items of it. Everything a score needs
(options, groups, truth) is in the folder, so that replies are read again anywhere, offline.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earwitness.errors import DataError, UsageError
from earwitness.models.registry import open_model
from earwitness.runs.card import make_card
from earwitness.runs.folder import Answer, RunFolder
from earwitness.runs.outcomes import Outcome
from earwitness.tasks.choices import all_options, lexicon_of
from earwitness.tasks.chunks import merge_chunks
from earwitness.tasks.records import Decision
from earwitness.tasks.running import PlannedRun, folder_name, run_name, why_not
from earwitness.tasks.scene_conditions import TEXT_CONDITIONS, check_conditions
from earwitness.tasks.scene_items import MixedCorpus, describe
from earwitness.tasks.scene_prompts import list_scene_prompts

if TYPE_CHECKING:
    from earwitness.models.protocols import AudioModel

TASKS = ("reaction", "location", "sound", "grounding", "summary")
"""Tasks in the order of tables; each is a module of this package."""


@dataclass(frozen=True, slots=True)
class CaresPlan:
    """What will be asked, and what does not apply: (task, model, condition, why)."""

    runs: tuple[PlannedRun, ...]
    not_applicable: tuple[tuple[str, str, str, str], ...]


@dataclass(frozen=True, slots=True)
class CaresAnswers:
    """Decisions of one run under one condition. ``name`` is the row's: the model, and the prompt if not the default."""

    name: str
    task: str
    condition: str
    decisions: tuple[Decision, ...]
    card: Mapping[str, Any]


def task_module(task: str) -> Any:
    """The module of a task.

    Raises
    ------
    UsageError: there is no such task.
    """
    if task not in TASKS:
        raise UsageError("--tasks", f"found {task!r}", f"all, or some of {', '.join(TASKS)}")
    return importlib.import_module(f"earwitness.tasks.{task}")


def chosen_tasks(names: Sequence[str]) -> tuple[str, ...]:
    """Tasks by name, ``all`` meaning every one; each once.

    >>> chosen_tasks(["sound", "reaction"])
    ('sound', 'reaction')
    """
    found = [t for name in names for t in (TASKS if name == "all" else (name,))]
    if not found:
        raise UsageError("--tasks", "names no task", f"all, or some of {', '.join(TASKS)}")
    for task in found:
        task_module(task)
    if len(set(found)) != len(found):
        raise UsageError("--tasks", "one is named twice", "each once")
    return tuple(found)


def prompts_by_task(tasks: Sequence[str], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Prompts of every task from what a user names.

    Parameters
    ----------
    names: ``TASK=PROMPT``, or ``PROMPT`` for every task that has a prompt of this name. Tasks for which nothing is
        named get their default.

    Raises
    ------
    UsageError: a name that no chosen task has, or the same one twice.
    """
    found: dict[str, list[str]] = {task: [] for task in tasks}
    for name in names:
        task, equals, prompt = name.partition("=")
        if equals:
            if task not in found:
                raise UsageError(
                    "--prompt-set", f"{name!r} is for a task that is not run", ", ".join(tasks)
                )
            found[task].append(prompt)
            continue
        is_file = "/" in name or name.endswith((".yaml", ".yml"))
        having = [
            t for t in tasks if name in list_scene_prompts(t) or (is_file and len(tasks) == 1)
        ]
        if not having:
            known = "; ".join(f"{t}: {', '.join(list_scene_prompts(t))}" for t in tasks)
            raise UsageError(
                "--prompt-set", f"no chosen task has a prompt {name!r}", known,
                "A file of yours for one of several tasks: TASK=FILE.yaml",
            )  # fmt: skip
        for each in having:
            found[each].append(name)
    for task, prompts in found.items():
        if len(set(prompts)) != len(prompts):
            raise UsageError("--prompt-set", f"a prompt of {task} is named twice", "each once")
    return {t: tuple(p) or (task_module(t).DEFAULT_PROMPT,) for t, p in found.items()}


def plan_runs(
    mixed: MixedCorpus,
    *,
    tasks: Sequence[str],
    conditions: Sequence[str],
    models: Sequence[str],
    options: Mapping[str, str],
    models_file: Path | None,
    prompt_sets: Sequence[str],
    out: Path,
    rotations: int = 1,
    transcriber: Mapping[str, Any] | None = None,
) -> CaresPlan:
    """One run for every task, model and prompt; nothing is asked or written yet.

    Parameters
    ----------
    transcriber: what cards say of the transcriber of the condition ``asr``.

    Raises
    ------
    UsageError: something named is unknown or named twice, twins are missing, or nothing applies.
    DataError: a prompt cannot be read.
    """
    check_conditions(conditions)
    doubled = sorted({name for name in models if models.count(name) > 1})
    if doubled:
        raise UsageError("--model", f"{', '.join(doubled)} is named twice", "each once")
    if not 1 <= rotations <= 4:
        raise UsageError("--rotations", f"found {rotations}", "1 to 4")
    runs: list[PlannedRun] = []
    skipped: list[tuple[str, str, str, str]] = []
    for task, prompts in prompts_by_task(tasks, prompt_sets).items():
        module = task_module(task)
        for prompt_name in prompts:
            for model_name in models:
                model = open_model(model_name, options, models_file=models_file)
                usable = []
                for condition in conditions:
                    why = _why_not(module, model, condition)
                    if why:
                        skipped.append((task, model_name, condition, why))
                    else:
                        usable.append(condition)
                if usable:
                    run = _planned(mixed, module, prompt_name, model_name, model, usable, out, rotations)  # fmt: skip
                    card = {**run.card, "transcriber": transcriber} if transcriber else run.card
                    runs.append(replace(run, card=card))
    if not runs:
        raise UsageError(
            "--conditions",
            "none applies: " + "; ".join(f"{t}, {m}, {c}: {w}" for t, m, c, w in skipped[:3]),
            "a condition that some model can take",
        )
    return CaresPlan(tuple(runs), tuple(dict.fromkeys(skipped)))


def _why_not(module: Any, model: AudioModel, condition: str) -> str:
    if condition not in module.APPLICABLE:
        return "means nothing for this task"
    return why_not(
        model, module.TASK, words=condition in TEXT_CONDITIONS, choices=module.TASK != "summary"
    )


def _planned(
    mixed: MixedCorpus,
    module: Any,
    prompt_name: str,
    model_name: str,
    model: AudioModel,
    conditions: Sequence[str],
    out: Path,
    rotations: int,
) -> PlannedRun:
    prompt = module.load_prompt(prompt_name)
    questions = module.items(
        mixed, prompt_set=prompt_name, conditions=tuple(conditions), rotations=rotations
    )
    if not questions:
        raise UsageError(
            f"task {module.TASK}",
            f"{mixed.folder} has no scene it could ask about",
            "scenes with sounds" if module.TASK != "location" else "scenes",
        )
    name = run_name(model_name, prompt.id, module.DEFAULT_PROMPT)
    card = make_card(
        name=name,
        task=module.TASK,
        task_version=module.TASK_VERSION,
        model=model,
        prompt={
            "id": prompt.id,
            "version": prompt.version,
            "hash": prompt.hash,
            "text": prompt.user,
            "system": prompt.system,
            "definitions": dict(prompt.definitions),
        },
        conditions=conditions,
        stimuli=describe(mixed),
        n_items=len(questions),
        extra={"parser_version": module.PARSER_VERSION, "rotations": rotations},
    )
    folder = out / folder_name(module.TASK, model_name, prompt.id)
    return PlannedRun(folder, name, card, questions, model)


def answers_of(folders: Sequence[Path]) -> tuple[CaresAnswers, ...]:
    """Every run under every condition, with its replies parsed anew; tasks in their order.

    Raises
    ------
    DataError: a folder is not a run of a task about scenes.
    """
    found: list[CaresAnswers] = []
    for folder in folders:
        run = RunFolder(folder)
        card = run.card()
        task = str(card.get("task"))
        if task not in TASKS:
            raise DataError(
                str(folder), f"is a run of the task {task!r}", f"a run of {', '.join(TASKS)}"
            )
        answers = tuple(run.answers())
        reader = _Reader(task, answers)
        for condition in card.get("conditions", ["audio"]):
            decisions = merge_chunks(
                (
                    (answer.question, reader.decide(answer))
                    for answer in answers
                    if answer.question.condition == condition
                ),
                join_texts=task == "summary",
            )
            if decisions:
                found.append(CaresAnswers(str(card["name"]), task, condition, decisions, card))
    return tuple(sorted(found, key=lambda each: TASKS.index(each.task)))


class _Reader:
    """Parses the replies of one run."""

    def __init__(self, task: str, answers: Sequence[Answer]) -> None:
        self.module = task_module(task)
        self.task = task
        self.lexicon = (
            lexicon_of(task, all_options(a.question.groups for a in answers))
            if task in ("location", "sound")
            else None
        )

    def decide(self, answer: Answer) -> Decision:
        question, reply = answer.question, answer.reply
        if reply is None:
            outcome = Outcome("failed", rule="no reply", detail=answer.failure or "not asked")
        elif self.lexicon is not None:
            outcome = self.module.parse(reply, question.groups, self.lexicon)
        else:
            outcome = self.module.parse(reply, question.groups)
        text = None
        if reply is not None:
            text = reply.text if reply.text else json.dumps(dict(reply.scores or {}))
        return Decision(
            item_id=question.id,
            gold=question.gold,
            outcome=outcome,
            cluster=question.cluster,
            condition=question.condition,
            groups=question.groups,
            seconds=question.seconds,
            reply=text,
            # Answers of batch jobs have none.
            latency_s=(reply.latency_s or None) if reply else None,
            cost_usd=answer.cost_usd,
            audio_path=Path(question.audio_path) if question.audio_path else None,
        )
