"""What the page says of each model about scenes: findings in sentences, confusions, and every breakdown."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import Any

from earwitness.report import figures
from earwitness.report.numbers import (
    MISSING,
    count,
    interval,
    known,
    p_value,
    percent,
    plural,
    points,
)
from earwitness.report.scene_boards import SceneBoard
from earwitness.tasks.cares_scores import CaresScores
from earwitness.tasks.grounding import GroundingScores
from earwitness.tasks.records import Estimate
from earwitness.tasks.summary import SummaryScores

ALPHA = 0.05
GROUPS = (
    "location",
    "setting",
    "sound",
    "margin",
    "level",
    "register",
    "talk",
    "reaction",
    "position",
)
"""Breakdowns in their order; others follow."""
GROUP_NAMES = {
    "margin": "margin over the ambience",
    "talk": "what the talk gives away",
    "position": "place of the true option",
    "level": "level",
    "setting": "indoors or outdoors",
}
MARGIN_ORDER = ("below 6 dB", "6-10 dB", "10-15 dB", "15 dB or more", "no ambience")
LONG_TABLE = 20
_NUMBERS = {1: "one of four", 2: "two of four", 3: "three of four", 4: "all four"}


def system_views(board: SceneBoard) -> list[dict[str, Any]]:
    """One view a system, in the board's order."""
    return [
        _system(board, system, f"{board.key}-s{number}")
        for number, system in enumerate(board.systems, start=1)
    ]


def _system(board: SceneBoard, system: str, name: str) -> dict[str, Any]:
    from earwitness.report.scene_cells import HEADLINES, headline, main_condition

    condition = main_condition(board, system)
    parts = []
    for task in board.tasks[:3]:
        cell = headline(board, task, system, condition)
        if not cell["none"]:
            unit = "" if task == "grounding" else "%"
            parts.append(f"{task} {cell['value']}{unit}")
    reaction = board.scores("reaction", system, condition)
    view: dict[str, Any] = {
        "id": name,
        "name": system,
        "line": ", ".join(parts) + ("" if condition == "audio" else f" under {condition}"),
        "findings": [
            (task, list(rows))
            for task, rows in groupby(findings(board, system), key=lambda found: found["task"])
        ],
        "confusion": "",
        "classes_figure": "",
        "confused": [],
        "groups": [],
        "headlines": HEADLINES,
    }
    if isinstance(reaction, CaresScores):
        view["confusion"] = figures.confusion_figure(reaction.scores, f"{name}-conf").inline()
        view["classes_figure"] = figures.class_figure(
            reaction.scores.per_class, f"{name}-class", f"Precision and recall of {system}"
        ).inline()
    for task in ("location", "sound"):
        if rows := _confused(board, task, system, condition):
            view["confused"].append({"task": task, "rows": rows})
    for task in board.tasks:
        view["groups"] += _groups(board, task, system, condition)
    return view


# --- findings in sentences


def findings(board: SceneBoard, system: str) -> list[dict[str, str]]:
    """What is true of a system, as sentences with their figures; ``css`` marks what is a reason to doubt it."""
    from earwitness.report.scene_cells import main_condition

    condition = main_condition(board, system)
    found: list[dict[str, str]] = []
    for task in board.tasks:
        scores = board.scores(task, system, condition)
        if scores is None:
            continue
        for line, doubt in _of_task(board, task, system, condition, scores):
            found.append({"task": task, "text": line, "css": "doubt" if doubt else ""})
    found += [
        {"task": row.task, "text": line, "css": "doubt"}
        for row in board.signs
        if row.system == system
        for line in row.findings()
    ]
    return sorted(found, key=lambda each: board.tasks.index(each["task"]))


def _of_task(
    board: SceneBoard, task: str, system: str, condition: str, scores: Any
) -> list[tuple[str, bool]]:
    lines: list[tuple[str, bool]] = []
    bounds = board.bounds.get((task, system, condition))
    if bounds is not None:
        lines.append((f"Incomplete: {plural(bounds.failed, 'item')} never answered.", True))
    if isinstance(scores, CaresScores):
        lines += _choice_lines(board, task, system, condition, scores)
    elif isinstance(scores, GroundingScores):
        lines += grounding_lines(scores)
    elif isinstance(scores, SummaryScores):
        lines += _summary_lines(scores)
    answered = not isinstance(scores, CaresScores) or scores.scores.outcomes.get("answered", 0)
    for other in ("muted", "speech-only") if task == "location" else ("muted",):
        lines += _change(board, task, system, other) if answered else []
    return lines


def _choice_lines(
    board: SceneBoard, task: str, system: str, condition: str, scores: CaresScores
) -> list[tuple[str, bool]]:
    lines: list[tuple[str, bool]] = []
    n, answered = scores.scores.n, scores.scores.outcomes.get("answered", 0)
    if answered < n:
        kinds = ", ".join(
            f"{count(k)} {kind}"
            for kind, k in scores.scores.outcomes.items()
            if k and kind != "answered"
        )
        lines.append(
            (
                f"{count(n - answered)} of {count(n)} items have no label ({kinds}); they count as not right.",
                answered < n / 2,
            )
        )
    closed = (task, system, condition) not in board.bounds
    if answered and closed and known(scores.headline.value):
        name = "Balanced accuracy" if task == "reaction" else "Accuracy"
        lines.append(
            (
                f"{name} {percent(scores.headline.value)}% ({interval(scores.headline)}), {_beside(scores.headline, scores.chance)}.",
                False,
            )
        )
    if scores.ignored:
        number = _NUMBERS[len(scores.ignored)]
        names = ", ".join(scores.ignored)
        lines.append((f"Ignores {number} reactions (recall at most 7%): {names}.", True))
    if known(scores.positions.distance) and scores.positions.distance >= 0.5:
        chosen = max(zip(scores.positions.chosen, scores.positions.places, strict=True))
        share = chosen[0] / sum(scores.positions.chosen)
        lines.append(
            (
                f"Chooses place {chosen[1]} in {percent(share, 0)}% of its answers, wherever the truth stands.",
                True,
            )
        )
    return lines


def _beside(estimate: Estimate, chance: float) -> str:
    if not (known(estimate.low) and known(estimate.high)):
        return f"chance is {percent(chance)}%"
    if estimate.low > chance:
        return f"above chance ({percent(chance)}%)"
    if estimate.high < chance:
        return f"below chance ({percent(chance)}%)"
    return f"not distinguishable from chance ({percent(chance)}%)"


def _change(board: SceneBoard, task: str, system: str, condition: str) -> list[tuple[str, bool]]:
    """What taking the sound away does to the headline, with its test."""
    found = board.against_condition(task, system, condition)
    if found is None or any((task, system, name) in board.bounds for name in ("audio", condition)):
        return []
    what = {
        "muted": "With the sound taken away",
        "speech-only": "With the voices alone",
    }[condition]
    metric = {"sounds mentioned": "share of sounds mentioned"}.get(found.metric, found.metric)
    change = -found.difference.value
    span = f"{points(-found.difference.high)} to {points(-found.difference.low)}"
    p = f"p {p_value(found.p_holm)} after Holm"
    if found.p_holm < ALPHA:
        verb = "falls" if change < 0 else "rises"
        line = f"{what} its {metric} {verb} by {percent(abs(change))} points ({span}; {p})."
    else:
        if found.p_sign_flip < ALPHA:
            p = f"p {p_value(found.p_sign_flip)} alone, {p_value(found.p_holm)} after Holm"
        line = (
            f"{what} its {metric} does not change significantly: {points(change)} points"
            f" ({span}; {p})."
        )
    return [(line, False)]


def grounding_lines(scores: GroundingScores) -> list[tuple[str, bool]]:
    """What the answers say of hearing, each with whether it is a warning."""
    rates = (
        f"yes to {percent(scores.hits.value, 0)}% of sounds and to {percent(scores.false_alarms.value, 0)}% of the same moments"
        f" without them"
    )
    p = f"p {p_value(scores.p_sign_flip)}"
    if scores.hears:
        lines = [(f"Hears whether there is a sound: {rates} ({p}).", False)]
    elif scores.smallest_p >= ALPHA:
        least = f"{plural(scores.n_clusters, 'scene')} can give no less than {p_value(scores.smallest_p)}"
        lines = [(f"Too few scenes to tell whether it hears them: {rates} ({p}; {least}).", False)]
    else:
        lines = [(f"Does not tell whether there is a sound: {rates} ({p}).", True)]
    if scores.unlabelled:
        n = 2 * scores.n_pairs + scores.n_catch
        lines.append(
            (
                f"{count(scores.unlabelled)} of {count(n)} items have no yes or no.",
                scores.unlabelled > n / 2,
            )
        )
    return lines


def _summary_lines(scores: SummaryScores) -> list[tuple[str, bool]]:
    budget = max((budget for budget, _ in scores.recall), key=int)
    found, base = scores.recall[budget, "all"], scores.base_rate.get(budget)
    words = f"Summaries of {budget} words mention {percent(found.value)}% of the sounds ({interval(found)})"
    if base is None or not known(base.value):
        return [(words + ".", False)]
    no_more = known(found.low) and found.low <= base.value
    tail = ", no more than of sounds that are not there" if no_more else ""
    return [(f"{words}{tail}; base rate {percent(base.value)}%.", no_more)]


# Confusions and breakdowns.


def _confused(board: SceneBoard, task: str, system: str, condition: str) -> list[dict[str, str]]:
    """The commonest wrong answers of a task whose options differ from item to item."""
    for each in board.answers:
        if (each.task, each.name, each.condition) == (task, system, condition):
            counts = Counter(
                (d.gold, d.outcome.label)
                for d in each.decisions
                if d.outcome.label is not None and d.outcome.label != d.gold
            )
            ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
            return [
                {"gold": _shown(gold), "answer": _shown(str(said)), "count": count(n)}
                for (gold, said), n in ordered[:6]
            ]
    return []


def _shown(label: str) -> str:
    return label.replace("_", " ")


def _groups(board: SceneBoard, task: str, system: str, condition: str) -> list[dict[str, Any]]:
    scores = board.scores(task, system, condition)
    tables: dict[str, list[dict[str, str]]] = {}
    what = "Accuracy"
    if isinstance(scores, CaresScores):
        for group, values in scores.scores.by_group.items():
            if group == "reaction" and task == "reaction":
                continue  # is its recall, which stands above
            tables[group] = [_group_row(value, estimate) for value, estimate in values.items()]
    elif isinstance(scores, GroundingScores):
        what = "Hits"
        for group, counts in scores.hits_by.items():
            tables[group] = [
                {
                    "value": value,
                    "n": count(n),
                    "accuracy": percent(top / n if n else None),
                    "interval": MISSING,
                }
                for value, (top, n) in counts.items()
            ]
    order = [name for name in GROUPS if name in tables]
    order += sorted(name for name in tables if name not in GROUPS)
    return [
        {
            "task": task,
            "what": what,
            "name": GROUP_NAMES.get(group, group),
            "rows": sorted(tables[group], key=lambda row: _place(group, row["value"])),
            "intervals": what != "Hits",
            "long": len(tables[group]) > LONG_TABLE,
        }
        for group in order
    ]


def _place(group: str, value: str) -> tuple[int, str]:
    if group == "margin" and value in MARGIN_ORDER:
        return MARGIN_ORDER.index(value), value
    return 0, value


def _group_row(value: str, estimate: Estimate) -> dict[str, str]:
    return {
        "value": value,
        "n": MISSING if estimate.denominator is None else count(estimate.denominator),
        "accuracy": percent(estimate.value),
        "interval": interval(estimate),
    }
