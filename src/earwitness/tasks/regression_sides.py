"""Reading runs, of either family, as sides of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earwitness.errors import DataError, IncompleteRunError, UsageError
from earwitness.runs.folder import RunFolder, find_runs
from earwitness.tasks import emotion
from earwitness.tasks.cares_runs import TASKS, answers_of
from earwitness.tasks.cares_scores import base_id, by_template
from earwitness.tasks.choices import OPTIONS_KEY
from earwitness.tasks.records import Decision
from earwitness.tasks.regressions import Side

if TYPE_CHECKING:
    from earwitness.clips.labels import LabelMap
    from earwitness.tasks.summary import Judge

KNOWN = (emotion.TASK, *TASKS)


def read_sides(
    path: Path,
    *,
    condition: str = "audio",
    tasks: Sequence[str] = (),
    cluster: str = "scene",
    label_map: LabelMap | None = None,
    judge: Judge | None = None,
    accept_failed: bool = False,
) -> tuple[Side, ...]:
    """The runs of one model in a folder, task by task, their replies parsed anew.

    Parameters
    ----------
    path: a run folder, or a folder that holds one run a task.
    tasks: only these; none means all.
    cluster: ``scene`` or ``template``; emotion runs have speakers.
    judge: of summaries; None is the offline judge with the bank that ships.
    accept_failed: count items that were never answered as not right.

    Raises
    ------
    UsageError: several runs of one task, no run of a wanted task, or none under this condition.
    IncompleteRunError: items were never answered.
    DataError: a folder is no run.
    """
    if cluster not in ("scene", "template"):
        raise UsageError("--cluster", repr(cluster), "scene or template")
    unknown = [task for task in tasks if task not in KNOWN]
    if unknown:
        raise UsageError("--tasks", f"found {unknown[0]!r}", ", ".join(KNOWN))
    by_task: dict[str, list[Path]] = {}
    for folder in find_runs([path]):
        task = str(RunFolder(folder).card().get("task"))
        if task not in KNOWN:
            raise DataError(str(folder), f"is a run of {task!r}", f"a run of {', '.join(KNOWN)}")
        by_task.setdefault(task, []).append(folder)
    wanted = [task for task in KNOWN if task in by_task and (not tasks or task in tasks)]
    missing = [task for task in tasks if task not in by_task]
    if missing:
        raise UsageError(str(path), f"has no run of {', '.join(missing)}", ", ".join(by_task))
    sides = []
    for task in wanted:
        folders = by_task[task]
        if len(folders) > 1:
            named = ", ".join(folder.name for folder in folders)
            raise UsageError(
                str(path), f"has {len(folders)} runs of {task}: {named}", "one a task",
                "Name a run's own folder, or keep runs of different models in different folders.",
            )  # fmt: skip
        if task == emotion.TASK:
            sides.append(_emotion(folders[0], condition, label_map))
        else:
            sides.append(_cares(folders[0], task, condition, cluster, judge))
    _refuse_incomplete(path, sides, accept_failed)
    return tuple(sides)


def _emotion(folder: Path, condition: str, label_map: LabelMap | None) -> Side:
    found = emotion.system(folder, condition=condition, label_map=label_map)
    return _side(folder, found.name, found.decisions, condition, found.card, "speaker")


def _cares(folder: Path, task: str, condition: str, cluster: str, judge: Judge | None) -> Side:
    answers = answers_of([folder])
    chosen = next((each for each in answers if each.condition == condition), None)
    if chosen is None:
        asked = ", ".join(each.condition for each in answers)
        raise UsageError(str(folder), f"has no item under {condition!r}", f"one of: {asked}")
    decisions, d_prime = chosen.decisions, None
    if task == "summary":
        decisions = _judged(decisions, judge)
    elif task == "grounding":
        from earwitness.tasks.grounding import score

        d_prime = score(chosen.name, decisions, resamples=1).d_prime.value
    if cluster == "template":
        clips = chosen.card.get("clips")
        templates = clips.get("templates", {}) if isinstance(clips, dict) else {}
        decisions = by_template(decisions, templates)
    return _side(folder, chosen.name, decisions, condition, chosen.card, cluster, d_prime)


def _judged(decisions: Sequence[Decision], judge: Judge | None) -> tuple[Decision, ...]:
    from earwitness.tasks.summary import NamingJudge, judged

    if judge is None:
        from earwitness.scenes.bank import load_bank

        judge = NamingJudge(load_bank())
    return judged(decisions, judge)


def _side(
    folder: Path,
    name: str,
    decisions: Sequence[Decision],
    condition: str,
    card: Any,
    unit: str,
    d_prime: float | None = None,
) -> Side:
    prompt = card.get("prompt")
    asked: dict[str, tuple[str, str]] = {}
    for question in RunFolder(folder).questions():
        if question.condition == condition:
            # A question asked chunk by chunk is one decision, over all that was heard.
            item = base_id(question.part_of or question.id)
            before, _ = asked.get(item, ("", ""))
            heard = f"{before} {question.audio}".strip() if question.part_of else question.audio
            asked[item] = (heard, question.groups.get(OPTIONS_KEY, ""))
    return Side(
        name=name,
        task=str(card.get("task")),
        prompt=str(prompt.get("id")) if isinstance(prompt, dict) else "",
        condition=condition,
        decisions=tuple(decisions),
        asked=asked,
        unit=unit,
        task_version=str(card.get("task_version", "")),
        d_prime=d_prime,
    )


def _refuse_incomplete(path: Path, sides: Sequence[Side], accept_failed: bool) -> None:
    failed = {
        side.task: n
        for side in sides
        if (n := sum(decision.outcome.kind == "failed" for decision in side.decisions))
    }
    if failed and not accept_failed:
        counts = ", ".join(f"{n} of {task}" for task, n in failed.items())
        raise IncompleteRunError(
            str(path),
            f"items were never answered: {counts}",
            "a complete run",
            "Run its command again to ask only those, or count them as not right with --accept-failed.",
        )
