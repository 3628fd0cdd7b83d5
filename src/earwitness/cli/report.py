"""``earwitness report``: any number of runs of both families into one page, tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from earwitness.cli.stored_judge import BankOption, JudgeOption, JudgeSettingsOption, stored_judge

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from earwitness.report.boards import ReportData
    from earwitness.report.build import ReportPaths
    from earwitness.report.scene_boards import SceneBoard
    from earwitness.tasks.cares_runs import CaresAnswers
    from earwitness.tasks.records import System
    from earwitness.tasks.summary import Judge


def register(app: typer.Typer) -> None:
    """Add this group's commands to the program."""
    app.command("report")(report)


def report(
    runs: list[Path] = typer.Argument(
        ...,
        metavar="RUNS...",
        help="Run folders, folders of runs, or CSV tables of predictions; clips and scenes together.",
    ),
    out: Path = typer.Option(
        ...,
        "--out",
        "-o",
        help="Folder for page, tables and figures, made if absent; or a path ending in .html, for the page alone.",
    ),
    bundle: bool = typer.Option(
        False,
        "--bundle",
        help="Write OUT/report/ with the page and the recordings it plays, to send on.",
    ),
    embed_audio: bool = typer.Option(
        False, "--embed-audio", help="Put the recordings into the page itself."
    ),
    link_audio: bool = typer.Option(
        False,
        "--link-audio",
        help="Let the page play the recordings where they are on this machine; copies nothing.",
    ),
    control: str | None = typer.Option(
        None,
        metavar="MODEL[:CONDITION]",
        help="Text-only control that scenes are compared with (default: found among runs under asr, else oracle).",
    ),
    published: bool = typer.Option(
        False, "--published", help="Show the rows of the CARES paper beside your own, marked so."
    ),
    cluster: str = typer.Option(
        "scene", help="What intervals and tests about scenes draw: scene or template."
    ),
    corpus: list[Path] = typer.Option(
        [],
        "--corpus",
        metavar="DIR",
        help="Folder of a corpus, where it is no longer where its runs found it; may be repeated.",
    ),
    bank: BankOption = None,
    judge: JudgeOption = "naming",
    judge_option: JudgeSettingsOption = None,
    priors: Path | None = typer.Option(
        None,
        "--priors",
        help="YAML, JSON or CSV file with the weight of each emotion in your own traffic.",
    ),
    label_map: str | None = typer.Option(
        None,
        "--label-map",
        help="Read native labels with this map instead of the one each run was made for.",
    ),
    title: str | None = typer.Option(None, "--title", help="Heading of the page."),
    seed: int = typer.Option(0, "--seed", help="Seed of all resampling."),
    accept_failed: bool = typer.Option(
        False,
        "--accept-failed",
        help="Close incomplete runs: items the model never answered count as not right.",
    ),
    as_json: bool = typer.Option(
        False, "--json", help="Print the figures and the paths as JSON on standard output."
    ),
    open_page: bool = typer.Option(False, "--open", help="Open the page in the browser."),
) -> None:
    """Score stored replies and write one self-contained page with its tables. Asks no model anything.

    Of clips: report.html, leaderboard.csv, .json and .md, predictions.csv. Of scenes: the table in the CARES
    paper's layout, every condition beside audio, and a browser that shows each scene's timeline with what was
    answered; scenes.csv, .json and .md, scene-predictions.csv. Of both: figures/*.svg. Copies of recordings
    (--bundle, --embed-audio) are made only where the licence allows it. Exits with 3 while a run is incomplete.

    Examples:

      earwitness report runs --out report

      earwitness report runs --out page.html --published --link-audio --open

      earwitness report runs/reaction--openai_gpt-audio--time people.csv --out report --control openai/gpt-audio:asr

      earwitness report runs/emotion--openai_gpt-audio--vab their-predictions.csv --out report --bundle

      earwitness report runs --out report --priors traffic.yaml --json
    """
    from rich.console import Console

    from earwitness.clips.corpus import EMOTIONS
    from earwitness.errors import UsageError
    from earwitness.report.boards import build
    from earwitness.report.build import check_options, write_data
    from earwitness.report.priors import read_priors
    from earwitness.report.scene_corpora import check_folders

    check_options(bundle=bundle, embed_audio=embed_audio, link_audio=link_audio)
    check_folders(corpus)
    if cluster not in ("scene", "template"):
        raise UsageError("--cluster", repr(cluster), "scene or template")
    weights = read_priors(priors, EMOTIONS) if priors is not None else None
    console = Console(stderr=True, quiet=as_json)
    with console.status("reading runs") as status:
        systems, answers = _read(
            runs, label_map=label_map, accept_failed=accept_failed, status=status
        )
        data = build(systems, EMOTIONS, priors=weights, seed=seed) if systems else None
        boards = _boards(
            answers, control, cluster, accept_failed, seed, corpus, bank,
            stored_judge(judge, judge_option or [], runs, bank), status,
        )  # fmt: skip
        paths = write_data(
            data,
            out,
            scenes=boards,
            bundle=bundle,
            embed_audio=embed_audio,
            link_audio=link_audio,
            published=published,
            title=title,
            on_step=status.update,
        )
    if as_json:
        _print_json(data, boards, paths)
    else:
        _print_tables(Console(), data, boards, paths)
    if open_page:
        import webbrowser

        webbrowser.open(paths.html.resolve().as_uri())
    if not paths.complete:
        raise typer.Exit(3)


def _read(
    paths: list[Path], *, label_map: str | None, accept_failed: bool, status: Status
) -> tuple[list[System], tuple[CaresAnswers, ...]]:
    """Runs and tables of both families."""
    from dataclasses import replace

    from earwitness.errors import DataError
    from earwitness.runs.folder import RunFolder, find_runs
    from earwitness.tasks.cares_runs import TASKS, answers_of
    from earwitness.tasks.emotion_runs import systems_of

    tables = [path for path in paths if path.suffix.lower() in {".csv", ".tsv"} and path.is_file()]
    folders = [path for path in paths if path not in tables]
    found = find_runs(folders) if folders else ()
    about_scenes = tuple(f for f in found if RunFolder(f).card().get("task") in TASKS)
    about_clips = tuple(folder for folder in found if folder not in about_scenes)
    systems: list[System] = []
    if about_clips:
        systems += systems_of(
            about_clips,
            label_map=label_map,
            accept_failed=accept_failed,
            on_folder=lambda folder: status.update(f"reading {folder.name}"),
        )
    answers: tuple[CaresAnswers, ...] = ()
    if about_scenes:
        status.update(f"reading {len(about_scenes)} runs about scenes")
        answers = answers_of(about_scenes)
    if tables:
        from earwitness.tasks.predictions import read_predictions
        from earwitness.tasks.scene_predictions import is_scene_table, read_scene_predictions

        runs = answers
        for table in tables:
            if is_scene_table(table):
                if not runs:
                    raise DataError(
                        str(table),
                        "has answers about scenes, and no run about the same corpus is reported",
                        next_step="Name a run beside it: truth and options come from there.",
                    )
                answers += read_scene_predictions(table, runs)
            else:
                systems += [
                    replace(system, accept_failed=accept_failed)
                    for system in read_predictions(table)
                ]
    return systems, answers


def _boards(
    answers: tuple[CaresAnswers, ...],
    control: str | None,
    cluster: str,
    accept_failed: bool,
    seed: int,
    corpora: list[Path],
    bank: Path | None,
    judge: Judge | None,
    status: Status,
) -> tuple[SceneBoard, ...]:
    if not answers:
        return ()
    from earwitness.report.scene_boards import build_boards
    from earwitness.report.scene_corpora import Finder

    return build_boards(
        answers,
        control=control,
        cluster=cluster,
        accept_failed=accept_failed,
        judge=judge,
        finder=Finder(tuple(corpora), bank),
        seed=seed,
        on_board=lambda name: status.update(f"scoring {name}"),
    )


def _print_json(
    data: ReportData | None, boards: tuple[SceneBoard, ...], paths: ReportPaths
) -> None:
    import json
    from dataclasses import fields

    from earwitness.report.scene_files import scenes_document
    from earwitness.report.tables import leaderboard_json

    document: dict[str, Any] = {}
    if data is not None:
        document = json.loads(leaderboard_json(data))
    if boards:
        document["scenes"] = scenes_document(boards)
    document["complete"] = paths.complete
    document["paths"] = {
        field.name: str(value)
        for field in fields(paths)
        if isinstance(value := getattr(paths, field.name), Path)
    }
    typer.echo(json.dumps(document, indent=1, ensure_ascii=False))


def _print_tables(
    console: Console,
    data: ReportData | None,
    boards: tuple[SceneBoard, ...],
    paths: ReportPaths,
) -> None:
    from rich.text import Text

    from earwitness.report.terminal import print_boards, print_scene_boards

    if data is not None:
        print_boards(console, data)
    print_scene_boards(console, boards)
    console.print()
    written = (paths.html, paths.csv, paths.predictions, paths.scenes_csv, paths.scene_predictions)
    for what in filter(None, written):
        console.print(Text(str(what)), soft_wrap=True)
    if paths.clips:
        console.print(Text(f"with {paths.clips:,} {'recordings' if boards else 'clips'}"))
