"""From systems to a report on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from earwitness.clips.corpus import EMOTIONS
from earwitness.errors import UsageError
from earwitness.report.boards import ReportData, build
from earwitness.report.players import Players, bundle_clips, embed_clips, link_clips
from earwitness.tasks.records import System

if TYPE_CHECKING:
    from earwitness.report.page import ScenePart
    from earwitness.report.scene_audio import Way
    from earwitness.report.scene_boards import SceneBoard


@dataclass(frozen=True, slots=True)
class ReportPaths:
    """What was written. ``figures`` are the page's pictures as SVG files; ``clips`` how many recordings travel along.

    Tables are None where there was nothing of their kind, or where only a page was asked for.
    """

    html: Path
    csv: Path | None = None
    json: Path | None = None
    md: Path | None = None
    predictions: Path | None = None
    scenes_csv: Path | None = None
    scenes_json: Path | None = None
    scenes_md: Path | None = None
    scene_predictions: Path | None = None
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


def check_options(*, bundle: bool, embed_audio: bool, link_audio: bool = False) -> None:
    """Recordings travel beside the page, inside it, or are referred to.

    Raises
    ------
    UsageError: more than one way is asked for.
    """
    given = [
        name
        for name, wanted in (
            ("--bundle", bundle),
            ("--embed-audio", embed_audio),
            ("--link-audio", link_audio),
        )
        if wanted
    ]
    if len(given) > 1:
        raise UsageError(
            "report",
            f"{'both' if len(given) == 2 else 'all of'} {' and '.join(given)} are given",
            wanted="one of them",
            next_step="--bundle writes a folder with the recordings; --embed-audio one larger file; --link-audio a page"
            " for this machine that refers to them.",
        )


def write_data(
    data: ReportData | None,
    out: Path,
    *,
    scenes: Sequence[SceneBoard] = (),
    bundle: bool = False,
    embed_audio: bool = False,
    link_audio: bool = False,
    published: bool = False,
    title: str | None = None,
    on_step: Callable[[str], None] | None = None,
) -> ReportPaths:
    """Write what was scored of clips (:func:`earwitness.report.boards.build`) and of scenes.

    Parameters
    ----------
    data: of clips, None for none. ``scenes``: of :func:`earwitness.report.scene_boards.build_boards`.
    out: a folder for page, tables and figures; or a path that ends in ``.html``, for the page alone.
    link_audio: let players refer to recordings where they are.
    published: show published rows beside scenes.
    on_step: called with what is being done.

    Raises
    ------
    UsageError: there is nothing to show, or a page alone is to be a bundle.
    """
    from earwitness.report.page import render_page
    from earwitness.runs.folder import write_atomically

    if data is None and not scenes:
        raise UsageError("report", "there is nothing to report", "a run, or a table of predictions")
    page_only = is_page(out)
    if page_only and bundle:
        raise UsageError(
            "--bundle", f"--out {out} is a page", "a folder, as recordings go beside the page"
        )
    folder = out.parent if page_only else out / "report" if bundle else out
    html = out if page_only else folder / "report.html"
    way: Way = "bundle" if bundle else "embed" if embed_audio else "link" if link_audio else "none"
    players = (
        _clip_players(data, folder, html, way)
        if data is not None and _has_clips(data, scenes)
        else Players()
    )
    part = _scene_part(scenes, html, way, published, on_step) if scenes else None
    text = render_page(data, players, title=title, scenes=part)
    paths = ReportPaths(
        html=html,
        clips=len(players.sources) + (len(part.audio.sounds) if part else 0),
        complete=(data is None or data.complete) and all(board.complete for board in scenes),
    )
    folder.mkdir(parents=True, exist_ok=True)
    if not page_only:
        out.mkdir(parents=True, exist_ok=True)
        if data is not None:
            paths = _write_tables(data, out, paths)
        if scenes:
            paths = _write_scene_tables(scenes, out, paths)
    write_atomically(html, text)
    return paths


def is_page(out: Path) -> bool:
    """Whether ``--out`` names a page and not a folder."""
    return out.suffix.lower() in (".html", ".htm") and not out.is_dir()


def _has_clips(data: ReportData, scenes: Sequence[SceneBoard]) -> bool:
    """Whether clips are looked for: with scenes beside them, a table without files is no mistake."""
    from earwitness.report.players import heard

    return not scenes or any(
        heard(d) for board in data.boards for system in board.systems for d in system.decisions
    )


def _clip_players(data: ReportData, folder: Path, html: Path, way: Way) -> Players:
    if way == "bundle":
        return bundle_clips(data, folder)
    if way == "embed":
        return embed_clips(data)
    return link_clips(data, html) if way == "link" else Players()


def _scene_part(
    boards: Sequence[SceneBoard],
    html: Path,
    way: Way,
    published: bool,
    on_step: Callable[[str], None] | None,
) -> ScenePart:
    from earwitness.report.page import ScenePart
    from earwitness.report.published import cares_table
    from earwitness.report.scene_audio import outlines, scene_audio

    def say(what: str) -> Callable[[int, int], None]:
        return lambda done, total: on_step(f"{what}: {done}/{total}") if on_step else None

    corpora = {board.key: board.mixed for board in boards if board.mixed is not None}
    if way in ("bundle", "embed") and not corpora:
        raise UsageError(
            "--bundle" if way == "bundle" else "--embed-audio",
            "the corpus of these scenes was not found",
            wanted="its folder",
            next_step="Name it with --corpus DIR, or leave the option out.",
        )
    audio = scene_audio(corpora, way, html, on_scene=say("recordings"))
    drawn = {
        (key, scene): text
        for key, mixed in corpora.items()
        for scene, text in outlines(mixed, on_scene=say("waveforms")).items()
    }
    return ScenePart(tuple(boards), audio, drawn, cares_table() if published else None)


def _write_tables(data: ReportData, out: Path, paths: ReportPaths) -> ReportPaths:
    from earwitness.report import tables
    from earwitness.runs.folder import write_atomically

    names = {
        "csv": "leaderboard.csv",
        "json": "leaderboard.json",
        "md": "leaderboard.md",
        "predictions": "predictions.csv",
    }
    write_atomically(out / names["csv"], tables.leaderboard_csv(data))
    write_atomically(out / names["json"], tables.leaderboard_json(data))
    write_atomically(out / names["md"], tables.leaderboard_md(data))
    write_atomically(out / names["predictions"], tables.predictions_csv(data))
    return replace(
        paths,
        csv=out / names["csv"],
        json=out / names["json"],
        md=out / names["md"],
        predictions=out / names["predictions"],
        figures=write_figures(data, out / "figures"),
    )


def _write_scene_tables(boards: Sequence[SceneBoard], out: Path, paths: ReportPaths) -> ReportPaths:
    from earwitness.report import scene_figures, scene_files
    from earwitness.runs.folder import slug, write_atomically

    write_atomically(out / "scenes.csv", scene_files.scenes_csv(boards))
    write_atomically(out / "scenes.json", scene_files.scenes_json(boards))
    write_atomically(out / "scenes.md", scene_files.scenes_md(boards))
    write_atomically(out / "scene-predictions.csv", scene_files.scene_predictions_csv(boards))
    figures = []
    (out / "figures").mkdir(exist_ok=True)
    for board in boards:
        pictures = {
            "recall-" + slug(title): heat
            for title, heat in scene_figures.recall_figures(board, "recall")
        }
        head = scene_figures.headline_figure(board, board.tasks[0], "headline")
        if head is not None:
            pictures[board.tasks[0]] = head
        for name, canvas in pictures.items():
            path = out / "figures" / f"{slug(board.key)}-{slug(name)}.svg"
            write_atomically(path, canvas.standalone())
            figures.append(path)
    return replace(
        paths,
        scenes_csv=out / "scenes.csv",
        scenes_json=out / "scenes.json",
        scenes_md=out / "scenes.md",
        scene_predictions=out / "scene-predictions.csv",
        figures=(*paths.figures, *figures),
    )


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
