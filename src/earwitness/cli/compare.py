"""``earwitness compare``: is one run worse than another? Made for CI."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from earwitness.cli.stored_judge import BankOption, JudgeOption, JudgeSettingsOption, stored_judge

if TYPE_CHECKING:
    from rich.console import Console

    from earwitness.tasks.regressions import RunComparison, TaskDifference

EXIT_WORSE = 4
"""The candidate is worse by the gate."""
_SHOWN_CLASSES = 13


def register(app: typer.Typer) -> None:
    """Add this command to the program."""
    app.command("compare")(compare)


def compare(
    reference: Path = typer.Argument(
        ..., metavar="RUN_A", help="The reference: a run folder, or a folder with one run a task."
    ),
    candidate: Path = typer.Argument(..., metavar="RUN_B", help="The candidate, likewise."),
    fail_if_worse: float | None = typer.Option(
        None,
        "--fail-if-worse",
        metavar="POINTS",
        help="Exit with 4 where the candidate loses at least this many points and the loss is beyond chance.",
    ),
    tasks: str = typer.Option("", "--tasks", help="Comma-separated: only these tasks."),
    condition: str = typer.Option("audio", "--condition", help="Condition to compare under."),
    common: bool = typer.Option(
        False, "--common", help="Compare the items both have, and say what is left out."
    ),
    cluster: str = typer.Option(
        "scene", "--cluster", help="What is drawn in runs about scenes: scene or template."
    ),
    label_map: str | None = typer.Option(
        None, "--label-map", help="Label map (name or YAML file) for emotion runs."
    ),
    judge: JudgeOption = "naming",
    judge_option: JudgeSettingsOption = None,
    bank: BankOption = None,
    accept_failed: bool = typer.Option(
        False, "--accept-failed", help="Count items that were never answered as not right."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object instead of text."),
    seed: int = typer.Option(0, "--seed", help="Seed of all resampling."),
) -> None:
    """Compare a candidate run with a reference run on the same items, task by task and class by class.

    Differences are candidate less reference, in points of each task's headline metric, paired by item; intervals
    and tests draw whole speakers, or scenes. With --fail-if-worse the command gates: a task is worse where the loss
    is at least POINTS and its one-sided lower bound (95 % over all tasks together) is above zero. It warns where
    this many items cannot show such a loss.

    Exit codes: 0 not worse; 1 a file is not what it should be; 2 the runs do not fit together; 3 a run is
    incomplete; 4 worse.

    Examples:

      earwitness compare runs/emotion--openai_v1--vab runs/emotion--openai_v2--vab --fail-if-worse 2

      earwitness compare baseline/runs nightly/runs --tasks reaction,sound --fail-if-worse 5 --json
    """
    import json

    from rich.console import Console

    from earwitness.clips.labels import load_label_map
    from earwitness.tasks.regression_sides import read_sides
    from earwitness.tasks.regressions import compare_sides

    chosen = [task.strip() for task in tasks.split(",") if task.strip()]
    options: dict[str, Any] = {
        "condition": condition,
        "tasks": chosen,
        "cluster": cluster,
        "label_map": load_label_map(label_map) if label_map else None,
        "accept_failed": accept_failed,
        "judge": stored_judge(judge, judge_option or [], [reference, candidate], bank),
    }
    found = compare_sides(
        read_sides(reference, **options),
        read_sides(candidate, **options),
        fail_if_worse=fail_if_worse,
        common=common,
        seed=seed,
    )
    if as_json:
        typer.echo(json.dumps(comparison_to_json(found), indent=2, ensure_ascii=False))
    else:
        print_comparison(Console(soft_wrap=True), found)
    if found.worse:
        raise typer.Exit(EXIT_WORSE)


def print_comparison(console: Console, found: RunComparison) -> None:
    """Tables of tasks and classes, what is left out, warnings and the verdict."""
    from rich.markup import escape
    from rich.table import Table

    console.print(f"A  reference  {escape(found.a)}", highlight=False)
    console.print(f"B  candidate  {escape(found.b)}   ({found.condition})", highlight=False)
    table = Table("task", "A", "B", "B - A", "items", "p worse", "detectable")
    for each in found.tasks:
        table.add_row(*_row(each))
    console.print(table)
    for each in found.tasks:
        if each.d_prime is not None:
            console.print(
                f"  {each.task}: d' {each.d_prime[0]:.2f} and {each.d_prime[1]:.2f}",
                highlight=False,
            )
        _print_classes(console, each)
    for note in found.notes:
        console.print(f"[yellow]note[/] {escape(note)}", highlight=False)
    for warning in found.warnings:
        console.print(f"[yellow]warning[/] {escape(warning)}", highlight=False)
    if found.fail_if_worse is not None:
        console.print(_verdict(found), highlight=False)


def _row(each: TaskDifference) -> tuple[str, ...]:
    d = each.difference
    smallest = "unknown" if each.detectable == float("inf") else f"{100 * each.detectable:.1f}"
    return (
        f"{each.task}\n{each.metric}",
        f"{100 * each.a:.1f}",
        f"{100 * each.b:.1f}",
        f"{100 * d.value:+.1f}\n{100 * d.low:+.1f} to {100 * d.high:+.1f}",
        f"{each.n_items}\n{each.differing} differ",
        f"{each.p_worse:.2g}",
        smallest,
    )


def _print_classes(console: Console, each: TaskDifference) -> None:
    from rich.markup import escape

    if len(each.classes) < 2:
        return
    # Of many classes (sounds) those that moved most are shown; --json has all.
    moved = sorted(each.classes, key=lambda c: (-abs(c.difference.value), c.label))
    shown = {c.label for c in moved[:_SHOWN_CLASSES]}
    for found in each.classes:
        if found.label not in shown:
            continue
        d = found.difference
        mark = " *" if found.p_holm < 0.05 else ""
        console.print(
            f"  {each.task}, {escape(found.label)}: {100 * found.a:.1f} and {100 * found.b:.1f}, "
            f"{100 * d.value:+.1f} [{100 * d.low:+.1f}, {100 * d.high:+.1f}], p {found.p_holm:.2g} (Holm){mark}; "
            f"{found.n_items} items",
            highlight=False,
        )
    left = len(each.classes) - len(shown)
    if left:
        console.print(f"  {each.task}: {left} further classes moved less (--json lists all)")


def _verdict(found: RunComparison) -> str:
    if not found.worse:
        return (
            f"[bold green]not worse[/]: no task loses {found.fail_if_worse:g} points or more beyond chance "
            f"(one-sided, {1 - found.tasks[0].bound_level:.2g} a task)"
        )
    parts = [
        f"{each.task} by {-100 * each.difference.value:.1f} points (at least {100 * each.loss_bound:.1f})"
        for each in found.tasks
        if each.task in found.worse
    ]
    return f"[bold red]worse[/]: {', '.join(parts)}"


def comparison_to_json(found: RunComparison) -> dict[str, Any]:
    """The comparison as plain JSON values; what is infinite or undefined is null."""
    from dataclasses import asdict

    value = {
        **asdict(found),
        "worse": list(found.worse),
        "tasks": [{**asdict(each), "worse": each.task in found.worse} for each in found.tasks],
    }
    cleaned = _plain(value)
    assert isinstance(cleaned, dict)
    return cleaned


def _plain(value: Any) -> Any:
    import math

    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value
