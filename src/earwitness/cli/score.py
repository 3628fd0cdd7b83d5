"""``earwitness score``: stored replies of both families and other people's predictions, scored offline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from earwitness.cli.stored_judge import BankOption, JudgeOption, JudgeSettingsOption, stored_judge

if TYPE_CHECKING:
    from earwitness.clips.labels import LabelMap
    from earwitness.tasks.cares_table import CaresTable
    from earwitness.tasks.records import System
    from earwitness.tasks.summary import Judge


def register(app: typer.Typer) -> None:
    """Add this group's commands to the program."""
    app.command("score")(score)


def score(
    runs: list[Path] | None = typer.Argument(
        None, metavar="[RUN]...", help="Run folders, or folders that hold runs."
    ),
    predictions: list[Path] | None = typer.Option(
        None, "--predictions", "-p", help="CSV or TSV table of somebody's predictions; repeatable."
    ),
    columns: str = typer.Option(
        "",
        "--columns",
        metavar="FIELD=COLUMN,...",
        help="Columns of the table: id, gold, prediction, model, error, speaker, ... The rest is guessed.",
    ),
    clips: Path | None = typer.Option(
        None, "--clips", help="Clip set that gives label, speaker and audio of the table's ids."
    ),
    label_map: str | None = typer.Option(
        None,
        "--label-map",
        help="Label map (name or YAML file) for native score names and for words outside the labels.",
    ),
    condition: str | None = typer.Option(
        None,
        "--condition",
        help="Only this condition, such as audio, silence or asr. Default: all.",
    ),
    priors: Path | None = typer.Option(
        None,
        "--priors",
        help="YAML, JSON or CSV file with the weight of each label in your traffic.",
    ),
    out: Path | None = typer.Option(
        None, "--out", "-o", help="Also write the report (page, tables, figures) into this folder."
    ),
    accept_failed: bool = typer.Option(
        False,
        "--accept-failed",
        help="Close incomplete runs: items the model never answered count as not right.",
    ),
    rules: bool = typer.Option(
        False, "--rules", help="Also print how often each parser and label-map rule decided."
    ),
    as_json: bool = typer.Option(
        False, "--json", help="Print the leaderboard as JSON on standard output."
    ),
    control: str | None = typer.Option(
        None,
        "--control",
        metavar="MODEL[:CONDITION]",
        help="Compare every model's audio about scenes with this text control (default condition: oracle).",
    ),
    cluster: str = typer.Option(
        "scene", "--cluster", help="What is drawn in runs about scenes: scene or template."
    ),
    judge: JudgeOption = "naming",
    judge_option: JudgeSettingsOption = None,
    bank: BankOption = None,
    seed: int = typer.Option(0, "--seed", help="Seed of all resampling."),
) -> None:
    """Read stored replies again and print the leaderboard of clips, the tables of scenes, or both. Asks no model
    anything.

    Every item keeps its place in the denominator: a reply without a label is not right, whatever the reason. While
    calls have failed, bounds are shown instead of one figure and the exit code is 3.

    Examples:

      earwitness score runs

      earwitness score runs/emotion--openai_gpt-audio--vab --label-map vendor-default --rules

      earwitness score scene-runs --control offline/reader:asr --cluster template

      earwitness score --predictions theirs.csv --columns id=file,prediction=answer --clips sets/vab --out report
    """
    from dataclasses import replace

    from rich.console import Console

    from earwitness.clips.corpus import EMOTIONS
    from earwitness.clips.labels import load_label_map
    from earwitness.errors import UsageError
    from earwitness.report.boards import build
    from earwitness.report.priors import read_priors
    from earwitness.report.terminal import print_boards

    if not runs and not predictions:
        raise UsageError("score", "nothing to score", "run folders, or --predictions FILE.csv")
    if not predictions and (columns or clips is not None):
        raise UsageError(
            "score", "--columns and --clips go with --predictions", "--predictions FILE.csv"
        )
    if cluster not in ("scene", "template"):
        raise UsageError("--cluster", repr(cluster), "scene or template")
    about_clips, about_scenes = _by_family(runs or [])
    chosen_map = load_label_map(label_map) if label_map else None
    weights = read_priors(priors, EMOTIONS) if priors is not None else None
    systems = [
        *_from_runs(about_clips, condition, label_map),
        *_from_tables(predictions or [], columns, clips, chosen_map, condition),
    ]
    systems = [replace(system, accept_failed=accept_failed) for system in systems]
    table = (
        _table(
            about_scenes,
            condition,
            control,
            cluster,
            seed,
            accept_failed=accept_failed,
            judge=stored_judge(judge, judge_option or [], runs or [], bank),
        )
        if about_scenes
        else None
    )
    if table is not None and not systems:
        _print_scenes(table, out, as_json=as_json)
        return
    data = build(systems, EMOTIONS, priors=weights, seed=seed)
    if out is not None:
        from earwitness.report.build import write_data

        page = write_data(data, out).html
    if as_json:
        from earwitness.report.tables import leaderboard_json

        board = leaderboard_json(data).rstrip("\n")
        typer.echo(board if table is None else _both_json(board, table))
    else:
        print_boards(Console(), data, rules=rules)
        if table is not None:
            from earwitness.tasks.cares_table import print_table

            print_table(Console(), table)
        if out is not None:
            typer.echo(f"\n{page}")
    if not data.complete or (table is not None and not table.complete):
        _say_incomplete()


def _say_incomplete() -> None:
    typer.echo(
        "incomplete: calls have failed, so there are bounds and no single figure. Run the same run "
        "command again to ask what is missing, or close it with --accept-failed.",
        err=True,
    )
    raise typer.Exit(3)


def _by_family(runs: list[Path]) -> tuple[list[Path], list[Path]]:
    """Run folders about clips, and those about scenes."""
    if not runs:
        return [], []
    from earwitness.runs.folder import RunFolder, find_runs
    from earwitness.tasks.cares_runs import TASKS

    clips: list[Path] = []
    scenes: list[Path] = []
    for folder in find_runs(runs):
        (scenes if RunFolder(folder).card().get("task") in TASKS else clips).append(folder)
    return clips, scenes


def _table(
    folders: list[Path],
    condition: str | None,
    control: str | None,
    cluster: str,
    seed: int,
    *,
    accept_failed: bool,
    judge: Judge | None,
) -> CaresTable:
    from rich.console import Console

    from earwitness.errors import UsageError
    from earwitness.tasks.cares_runs import answers_of
    from earwitness.tasks.cares_table import build_table

    with Console(stderr=True).status("reading runs about scenes"):
        answers = answers_of(folders)
        chosen = [each for each in answers if condition in (None, each.condition)]
        if not chosen:
            asked = ", ".join(dict.fromkeys(each.condition for each in answers))
            raise UsageError(
                "--condition", f"no run was asked under {condition!r}", f"one of: {asked}"
            )
        return build_table(
            chosen,
            control=control,
            cluster=cluster,
            accept_failed=accept_failed,
            judge=judge,
            seed=seed,
        )


def _print_scenes(table: CaresTable, out: Path | None, *, as_json: bool) -> None:
    import json

    from rich.console import Console

    from earwitness.tasks.cares_table import print_table, table_to_json

    if as_json:
        typer.echo(json.dumps(table_to_json(table), indent=2, ensure_ascii=False))
    else:
        print_table(Console(), table)
    if out is not None:
        typer.echo(
            "--out is of clips; a page of scenes: earwitness report RUNS --out DIR", err=True
        )
    if not table.complete:
        _say_incomplete()


def _both_json(board: str, table: CaresTable) -> str:
    import json

    from earwitness.tasks.cares_table import table_to_json

    both = {"clips": json.loads(board), "scenes": table_to_json(table)}
    return json.dumps(both, indent=2, ensure_ascii=False)


def _from_runs(runs: list[Path], condition: str | None, label_map: str | None) -> list[System]:
    if not runs:
        return []
    from rich.console import Console

    from earwitness.runs.folder import find_runs
    from earwitness.tasks.emotion_runs import systems_of

    with Console(stderr=True).status("reading runs") as status:
        return list(
            systems_of(
                find_runs(runs),
                condition=condition,
                label_map=label_map,
                on_folder=lambda folder: status.update(f"reading {folder.name}"),
            )
        )


def _from_tables(
    tables: list[Path],
    columns: str,
    clips: Path | None,
    label_map: LabelMap | None,
    condition: str | None,
) -> list[System]:
    from dataclasses import replace

    from earwitness.errors import UsageError
    from earwitness.tasks.prediction_columns import parse_columns
    from earwitness.tasks.predictions import load_predictions

    systems: list[System] = []
    for table in tables:
        read = load_predictions(
            table, columns=parse_columns(columns), label_map=label_map, clips=clips
        )
        if read.guessed:
            pairs = ",".join(f"{field}={read.columns[field]}" for field in read.guessed)
            typer.echo(f"{table}: columns guessed: --columns {pairs}", err=True)
        for note in read.notes:
            typer.echo(f"{table}: {note}", err=True)
        for system in read.systems:
            wanted = tuple(
                d for d in system.decisions if condition is None or d.condition == condition
            )
            if wanted:
                systems.append(replace(system, decisions=wanted))
    if tables and not systems:
        raise UsageError("--condition", f"no table has rows under {condition!r}")
    return systems
