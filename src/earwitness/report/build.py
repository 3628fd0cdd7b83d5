"""From systems to a report on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from earwitness.clips.corpus import EMOTIONS
from earwitness.errors import UsageError
from earwitness.report.boards import ReportData, build
from earwitness.report.players import Players, bundle_clips, embed_clips
from earwitness.tasks.records import System


@dataclass(frozen=True, slots=True)
class ReportPaths:
    """What was written. ``figures`` are the page's pictures as SVG files; ``clips`` how many clips travel along."""

    html: Path
    csv: Path
    json: Path
    md: Path
    predictions: Path
    figures: tuple[Path, ...] = ()
    clips: int = 0
    complete: bool = True


def write_report(
    systems: Sequence[System],
    out: Path,
    *,
    labels: Sequence[str] = EMOTIONS,
    task: str = "emotion",
    bundle: bool = False,
    embed_audio: bool = False,
    priors: Mapping[str, float] | None = None,
    seed: int = 0,
    title: str | None = None,
) -> ReportPaths:
    """Score systems and write ``report.html``, the tables and the figures into a folder.

    Parameters
    ----------
    systems: runs and tables of predictions, under any conditions and of any clip sets.
    out: the folder, made if absent; files of an earlier report in it are replaced.
    labels: the closed set of labels, in the order of every table.
    bundle: write ``out/report/`` with the page and copies of the clips it plays, to be sent on whole.
    embed_audio: put the clips into the page itself.
    priors: share of each label in the reader's own traffic.
    title: heading of the page.

    Raises
    ------
    UsageError: nothing to report, or options that exclude each other.
    LicenceError: a set's licence does not let its clips travel.
    DataError: a clip is missing.

    Example
    -------
    >>> paths = write_report(systems, Path("report"))  # doctest: +SKIP
    >>> paths.html  # doctest: +SKIP
    PosixPath('report/report.html')
    """
    check_options(bundle=bundle, embed_audio=embed_audio)
    data = build(systems, labels, task=task, priors=priors, seed=seed)
    return write_data(data, out, bundle=bundle, embed_audio=embed_audio, title=title)


def check_options(*, bundle: bool, embed_audio: bool) -> None:
    """Clips travel beside the page or inside it.

    Raises
    ------
    UsageError: both are asked for.
    """
    if bundle and embed_audio:
        raise UsageError(
            "report",
            "both --bundle and --embed-audio are given",
            wanted="one of them",
            next_step="--bundle writes a folder with the clips; --embed-audio one larger file.",
        )


def write_data(
    data: ReportData,
    out: Path,
    *,
    bundle: bool = False,
    embed_audio: bool = False,
    title: str | None = None,
) -> ReportPaths:
    """Write what :func:`earwitness.report.boards.build` scored; see :func:`write_report`."""
    from earwitness.report import tables
    from earwitness.report.page import render_page
    from earwitness.runs.folder import write_atomically

    out.mkdir(parents=True, exist_ok=True)
    folder = out / "report" if bundle else out
    players = Players()
    if bundle:
        players = bundle_clips(data, folder)
    elif embed_audio:
        players = embed_clips(data)
    paths = ReportPaths(
        html=folder / "report.html",
        csv=out / "leaderboard.csv",
        json=out / "leaderboard.json",
        md=out / "leaderboard.md",
        predictions=out / "predictions.csv",
        figures=write_figures(data, out / "figures"),
        clips=len(players.sources),
        complete=data.complete,
    )
    write_atomically(paths.csv, tables.leaderboard_csv(data))
    write_atomically(paths.json, tables.leaderboard_json(data))
    write_atomically(paths.md, tables.leaderboard_md(data))
    write_atomically(paths.predictions, tables.predictions_csv(data))
    write_atomically(paths.html, render_page(data, players, title=title))
    return paths


def write_figures(data: ReportData, folder: Path) -> tuple[Path, ...]:
    """The pictures of the page as files: leaderboard, valence and pooled confusion of every board, confusion of every system."""
    from earwitness.report import figures
    from earwitness.runs.folder import slug, write_atomically

    pictures = {}
    for board in data.boards:
        table = board.leaderboard
        stem = slug(f"{board.key}-{board.condition}")
        pictures[f"{stem}-leaderboard"] = figures.leaderboard_figure(table, "leaderboard")
        lean = figures.valence_figure(table.systems, "valence")
        if lean is not None:
            pictures[f"{stem}-valence"] = lean
        if table.pooled is not None:
            pictures[f"{stem}-confusion-pooled"] = figures.confusion_figure(
                table.pooled, "confusion"
            )
        for number, scores in enumerate(table.systems, start=1):
            pictures[f"{stem}-confusion-{number:02d}-{slug(scores.name)}"] = (
                figures.confusion_figure(scores, "confusion")
            )
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, canvas in pictures.items():
        path = folder / f"{name}.svg"
        write_atomically(path, canvas.standalone())
        paths.append(path)
    return tuple(paths)
