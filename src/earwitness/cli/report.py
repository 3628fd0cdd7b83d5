"""``earwitness report``: any number of runs into one page, tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from earwitness.report.boards import ReportData
    from earwitness.report.build import ReportPaths
    from earwitness.tasks.records import System


def register(app: typer.Typer) -> None:
    """Add this group's commands to the program."""
    app.command("report")(report)


def report(
    runs: list[Path] = typer.Argument(
        ...,
        metavar="RUNS...",
        help="Run folders, folders of runs, or CSV tables of predictions.",
    ),
    out: Path = typer.Option(..., "--out", "-o", help="Folder for the report; made if absent."),
    bundle: bool = typer.Option(
        False,
        "--bundle",
        help="Write OUT/report/ with the page and the clips it plays, to send on.",
    ),
    embed_audio: bool = typer.Option(
        False, "--embed-audio", help="Put the clips into the page itself."
    ),
    priors: Path | None = typer.Option(
        None,
        "--priors",
        help="YAML, JSON or CSV file with the weight of each label in your own traffic.",
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
        False, "--json", help="Print the leaderboard and the paths as JSON on standard output."
    ),
    open_page: bool = typer.Option(False, "--open", help="Open the page in the browser."),
) -> None:
    """Score stored replies and write one self-contained page with its tables. Asks no model anything.

    Writes report.html, leaderboard.csv, .json and .md, predictions.csv and figures/*.svg. Copies of clips
    (--bundle, --embed-audio) are made only where the set's licence field allows it. Exits with 3 while a run
    is incomplete.

    Examples:

      earwitness report runs --out report

      earwitness report runs/emotion--openai_gpt-audio--vab their-predictions.csv --out report --bundle

      earwitness report runs --out report --priors traffic.yaml --json
    """
    from earwitness.clips.corpus import EMOTIONS
    from earwitness.report.boards import build
    from earwitness.report.build import check_options, write_data
    from earwitness.report.priors import read_priors

    check_options(bundle=bundle, embed_audio=embed_audio)
    weights = read_priors(priors, EMOTIONS) if priors is not None else None
    systems = _systems(runs, label_map=label_map, accept_failed=accept_failed, quiet=as_json)
    data = build(systems, EMOTIONS, priors=weights, seed=seed)
    paths = write_data(data, out, bundle=bundle, embed_audio=embed_audio, title=title)
    if as_json:
        _print_json(paths)
    else:
        _print_tables(data, paths)
    if open_page:
        import webbrowser

        webbrowser.open(paths.html.resolve().as_uri())
    if not paths.complete:
        raise typer.Exit(3)


def _systems(
    paths: list[Path], *, label_map: str | None, accept_failed: bool, quiet: bool
) -> list[System]:
    from dataclasses import replace

    from rich.console import Console

    from earwitness.runs.folder import find_runs
    from earwitness.tasks.emotion_runs import systems_of

    tables = [path for path in paths if path.suffix.lower() in {".csv", ".tsv"} and path.is_file()]
    folders = [path for path in paths if path not in tables]
    systems: list[System] = []
    if folders:
        console = Console(stderr=True, quiet=quiet)
        with console.status("reading runs") as status:
            systems += systems_of(
                find_runs(folders),
                label_map=label_map,
                accept_failed=accept_failed,
                on_folder=lambda folder: status.update(f"reading {folder.name}"),
            )
    if tables:
        from earwitness.tasks.predictions import read_predictions

        for table in tables:
            systems += [
                replace(system, accept_failed=accept_failed) for system in read_predictions(table)
            ]
    return systems


def _print_json(paths: ReportPaths) -> None:
    import json

    document = json.loads(paths.json.read_text(encoding="utf-8"))
    document["paths"] = {
        name: str(getattr(paths, name)) for name in ("html", "csv", "json", "md", "predictions")
    }
    typer.echo(json.dumps(document, indent=1, ensure_ascii=False))


def _print_tables(data: ReportData, paths: ReportPaths) -> None:
    from rich.console import Console
    from rich.text import Text

    from earwitness.report.terminal import print_boards

    console = Console()
    print_boards(console, data)
    console.print()
    for what in (paths.html, paths.csv, paths.predictions):
        console.print(Text(str(what)), soft_wrap=True)
    if paths.clips:
        console.print(Text(f"with {paths.clips:,} clips"))
