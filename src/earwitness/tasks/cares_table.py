"""One table of scores about scenes: systems by conditions, task by task, with what differs significantly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from earwitness.errors import UsageError
from earwitness.scenes.bank_records import REACTIONS
from earwitness.tasks.cares_runs import TASKS, CaresAnswers, task_module
from earwitness.tasks.cares_scores import (
    CaresComparison,
    CaresScores,
    by_template,
    compare_pairs,
    compared,
)
from earwitness.tasks.grounding import GroundingScores
from earwitness.tasks.records import Decision, Estimate
from earwitness.tasks.scene_conditions import CONDITIONS
from earwitness.tasks.summary import Judge, NamingJudge, SummaryScores, judged

if TYPE_CHECKING:
    from rich.console import Console

CONTROL_CONDITION = "oracle"
TaskScores = CaresScores | GroundingScores | SummaryScores


@dataclass(frozen=True, slots=True)
class CaresTable:
    """Scores by (task, system, condition), comparisons by family, and what did not apply.

    ``spread`` is the difference between the best and worst prompt of a model, by (task, model, condition).
    """

    cluster: str
    scores: Mapping[tuple[str, str, str], TaskScores]
    comparisons: tuple[CaresComparison, ...] = ()
    not_applicable: tuple[tuple[str, str, str, str], ...] = ()
    spread: Mapping[tuple[str, str, str], float] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every item of every run was answered, or its failure accepted."""
        return all(
            each.scores.complete if isinstance(each, CaresScores) else each.complete
            for each in self.scores.values()
        )

    def of(self, task: str, system: str, condition: str = "audio") -> Any:
        """Scores of one system; :class:`KeyError` if it was not asked so."""
        return self.scores[task, system, condition]


def build_table(
    answers: Sequence[CaresAnswers],
    *,
    not_applicable: Sequence[tuple[str, str, str, str]] = (),
    control: str | None = None,
    cluster: str = "scene",
    accept_failed: bool = False,
    judge: Judge | None = None,
    seed: int = 0,
    resamples: int = 10_000,
) -> CaresTable:
    """Score every run under every condition and compare.

    Parameters
    ----------
    control: ``MODEL`` or ``MODEL:CONDITION``; every system's ``audio`` is compared with it.
    cluster: ``scene`` or ``template``.
    judge: of summaries; None is the offline judge with the bank that ships.

    Raises
    ------
    UsageError: the control was not run, or two runs of one task have the same name.
    """
    _refuse_doubles(answers)
    if judge is None and any(each.task == "summary" for each in answers):
        from earwitness.scenes.bank import load_bank

        judge = NamingJudge(load_bank())
    decisions = {
        (each.task, each.name, each.condition): _clustered(each, cluster, judge) for each in answers
    }
    scores = {}
    for (task, name, condition), found in decisions.items():
        scores[task, name, condition] = _score(
            task, name, found, seed, resamples, cluster, accept_failed, judge
        )
    pairs = _against_audio(decisions)
    comparisons = _compare(pairs, "audio against the other conditions", seed, resamples, cluster)
    if control is not None:
        pairs = _against_control(decisions, control)
        comparisons += _compare(pairs, f"models against {control}", seed, resamples, cluster)
    return CaresTable(cluster, scores, comparisons, tuple(not_applicable), _spread(answers, scores))


def _refuse_doubles(answers: Sequence[CaresAnswers]) -> None:
    seen: set[tuple[str, str, str]] = set()
    for each in answers:
        key = (each.task, each.name, each.condition)
        if key in seen:
            raise UsageError(
                "runs", f"two of {each.task} named {each.name!r} under {each.condition!r}",
                "a name for each", "Give the runs to compare one by one, or use earwitness compare.",
            )  # fmt: skip
        seen.add(key)


def _clustered(answers: CaresAnswers, cluster: str, judge: Judge | None) -> tuple[Decision, ...]:
    decisions = answers.decisions
    if answers.task == "summary" and judge is not None:
        decisions = judged(decisions, judge)
    if cluster == "scene":
        return decisions
    clips = answers.card.get("clips")
    templates = clips.get("templates", {}) if isinstance(clips, Mapping) else {}
    return by_template(decisions, templates)


def _score(
    task: str,
    name: str,
    decisions: Sequence[Decision],
    seed: int,
    resamples: int,
    cluster: str,
    accept_failed: bool,
    judge: Judge | None,
) -> TaskScores:
    options = {"judge": judge.name} if task == "summary" and judge is not None else {}
    found: TaskScores = task_module(task).score(
        name,
        decisions,
        seed=seed,
        resamples=resamples,
        cluster_name=cluster,
        accept_failed=accept_failed,
        **options,
    )
    return found


_Pairs = list[tuple[str, tuple[str, Sequence[Decision], str, Sequence[Decision]]]]


def _against_audio(decisions: Mapping[tuple[str, str, str], tuple[Decision, ...]]) -> _Pairs:
    found: _Pairs = []
    for (task, name, condition), other in decisions.items():
        audio = decisions.get((task, name, "audio"))
        if condition != "audio" and audio is not None:
            pair = (f"{name} audio", compared(audio), f"{name} {condition}", compared(other))
            found.append((task, pair))
    return found


def _against_control(
    decisions: Mapping[tuple[str, str, str], tuple[Decision, ...]], control: str
) -> _Pairs:
    model, _, condition = control.rpartition(":")
    if condition not in CONDITIONS:  # names of models may have colons of their own
        model, condition = control, CONTROL_CONDITION
    if not any(key[1:] == (model, condition) for key in decisions):
        asked = sorted({f"{name}:{cond}" for _, name, cond in decisions})
        raise UsageError(
            "--control", f"{model!r} was not asked under {condition!r}", ", ".join(asked)
        )
    found: _Pairs = []
    for (task, name, asked_under), said in decisions.items():
        reader = decisions.get((task, model, condition))
        if asked_under == "audio" and reader is not None:
            pair = (f"{name} audio", compared(said), f"{model} {condition}", compared(reader))
            found.append((task, pair))
    return found


def _compare(
    pairs: _Pairs, family: str, seed: int, resamples: int, cluster: str
) -> tuple[CaresComparison, ...]:
    """All pairs of a family, one Holm for each task: a table's column is its family."""
    found: list[CaresComparison] = []
    for task in TASKS:
        of_task = [pair for each, pair in pairs if each == task]
        if of_task:
            found += compare_pairs(
                of_task, task, family=f"{task}: {family} ({len(of_task)})", seed=seed,
                resamples=resamples, cluster_name=cluster,
            )  # fmt: skip
    return tuple(found)


def _spread(
    answers: Sequence[CaresAnswers], scores: Mapping[tuple[str, str, str], TaskScores]
) -> dict[tuple[str, str, str], float]:
    by_model: dict[tuple[str, str, str], list[float]] = {}
    for each in answers:
        key = (each.task, str(each.card.get("model")), each.condition)
        value = scores[each.task, each.name, each.condition].headline.value
        by_model.setdefault(key, []).append(value)
    return {key: max(v) - min(v) for key, v in by_model.items() if len(v) > 1}


def percent(estimate: Estimate) -> str:
    """A figure with its interval, in per cent.

    >>> percent(Estimate(0.5, 0.25, 0.75, "wilson"))
    '50.0 [25, 75]'
    """
    if math.isnan(estimate.value):
        return "-"
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]"


def print_table(console: Console, table: CaresTable) -> None:
    """Print one table a task, then comparisons and what a reader must know."""
    from rich.table import Table

    for task in TASKS:
        keys = [key for key in table.scores if key[0] == task]
        if not keys:
            continue
        conditions = list(dict.fromkeys(condition for _, _, condition in keys))
        first = table.scores[keys[0]]
        title = f"{task}: {metric_name(task)}"
        if isinstance(first, CaresScores):
            title += f", chance {100 * first.chance:.0f}"
        # A title of the table itself would be broken to the table's width.
        console.print(title, style="italic", highlight=False, markup=False)
        shown = Table("system", *conditions)
        for name in dict.fromkeys(name for _, name, _ in keys):
            cells = []
            for condition in conditions:
                found = table.scores.get((task, name, condition))
                cells.append("not applicable" if found is None else _cell(found))
            shown.add_row(name, *cells)
        console.print(shown)
        for key in keys:
            for line in _notes(table.scores[key], key[2]):
                console.print(f"  {key[1]}, {key[2]}: {line}", highlight=False, markup=False)
    for each in table.comparisons:
        console.print(f"  {_comparison_text(each)}", highlight=False, markup=False)
    for (task, model, condition), value in table.spread.items():
        console.print(
            f"  {task}, {model}, {condition}: prompts differ by {_spread_text(task, value)}",
            highlight=False, markup=False,
        )  # fmt: skip
    for task, model, condition, why in table.not_applicable:
        console.print(f"  not applicable: {task}, {model}, {condition}: {why}", highlight=False, markup=False)  # fmt: skip


def _comparison_text(each: CaresComparison) -> str:
    found = each.difference
    text = (
        f"{each.task}: {each.a} - {each.b} = {100 * found.value:+.1f} "
        f"[{100 * found.low:+.1f}, {100 * found.high:+.1f}] points of {each.metric}, "
        f"p {each.p_holm:.3g} (Holm){' *' if each.p_holm < 0.05 else ''}; {each.n_items} items"
    )
    # Where all scenes differ alike, nothing can be said of what others would show.
    if 0 < each.detectable < math.inf:
        text += f", smallest detectable {100 * each.detectable:.1f}"
    return text


def metric_name(task: str) -> str:
    """The headline of a task in words."""
    names = {
        "reaction": "balanced accuracy, %",
        "grounding": "d' (0 is deaf)",
        "summary": "sounds mentioned, %",
    }
    return names.get(task, "accuracy, %")


def _spread_text(task: str, value: float) -> str:
    return f"{value:.2f} of d'" if task == "grounding" else f"{100 * value:.1f} points"


def _cell(found: TaskScores) -> str:
    if isinstance(found, GroundingScores):
        d = found.d_prime
        mark = "" if found.complete else " incomplete"
        limits = "" if math.isnan(d.low) else f" [{d.low:.2f}, {d.high:.2f}]"
        return f"{d.value:.2f}{limits}{mark}"
    complete = found.complete if isinstance(found, SummaryScores) else found.scores.complete
    mark = "" if complete else " incomplete"
    return percent(found.headline) + mark


def _notes(found: TaskScores, condition: str) -> list[str]:
    if isinstance(found, GroundingScores):
        return _grounding_notes(found)
    if isinstance(found, SummaryScores):
        return _summary_notes(found)
    lines = []
    scores = found.scores
    if not scores.complete:
        low, high = scores.bounds
        lines.append(f"incomplete: right between {low:.1%} and {high:.1%} of all items")
    usable = scores.outcomes["answered"]
    if usable < scores.n:
        others = ", ".join(f"{n} {k}" for k, n in scores.outcomes.items() if n and k != "answered")
        lines.append(f"{scores.n - usable} of {scores.n} items without a label ({others})")
    if found.ignored:
        lines.append(f"ignored classes (recall at most 7 %): {', '.join(found.ignored)}")
    if condition == "audio" and not math.isnan(found.positions.distance):
        chosen = "/".join(map(str, found.positions.chosen))
        lines.append(f"places chosen {chosen}, bias {found.positions.distance:.2f}")
    return lines


def _summary_notes(found: SummaryScores) -> list[str]:
    lines = []
    for budget in dict.fromkeys(budget for budget, _ in found.recall):
        by_reaction = " / ".join(
            f"{100 * found.recall[budget, reaction].value:.1f}" for reaction in REACTIONS
        )
        base = f", of absent sounds {percent(found.base_rate[budget])}" if found.base_rate else ""
        lines.append(
            f"{budget} words: mentioned {percent(found.recall[budget, 'all'])}, {' / '.join(REACTIONS)} "
            f"{by_reaction}{base}; median {found.median_words[budget]:g} words, "
            f"{100 * found.over_budget[budget]:.0f} % over budget (judge: {found.judge})"
        )
    return lines


def _grounding_notes(found: GroundingScores) -> list[str]:
    pairs = ", ".join(f"{name} {count}" for name, count in found.paired.items() if count)
    lines = [
        f"hits {percent(found.hits)}, false alarms {percent(found.false_alarms)}, at catch times "
        f"{percent(found.catch_alarms)}; {found.n_pairs} pairs: {pairs}; p {found.p_sign_flip:.3g} "
        f"(McNemar, pairs independent: {found.p_mcnemar:.3g})"
    ]
    if found.unlabelled:
        lines.append(
            f"{found.unlabelled} items without a yes or no ({found.failed} never answered)"
        )
    return lines


def table_to_json(table: CaresTable) -> dict[str, Any]:
    """The table as plain JSON values; undefined figures are null."""
    value = {
        "cluster": table.cluster,
        "scores": [
            {
                "task": task,
                "condition": condition,
                **_plain(found),
                "headline": asdict(found.headline),
            }
            for (task, _, condition), found in table.scores.items()
        ],
        "comparisons": [asdict(each) for each in table.comparisons],
        "not_applicable": [list(each) for each in table.not_applicable],
        "spread": [[*key, value] for key, value in table.spread.items()],
    }
    cleaned = _without_nan(value)
    assert isinstance(cleaned, dict)
    return cleaned


def _plain(found: TaskScores) -> dict[str, Any]:
    value = asdict(found)
    if isinstance(found, SummaryScores):
        recall: dict[str, dict[str, Any]] = {}
        for (budget, reaction), estimate in found.recall.items():
            recall.setdefault(budget, {})[reaction] = asdict(estimate)
        value["recall"] = recall
    return value


def _without_nan(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _without_nan(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(each) for each in value]
    return value
