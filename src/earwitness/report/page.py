"""The one self-contained page: no network, phone width, keyboard, light and dark.

Everything a model or a data file said goes through escaping: the templates escape by default, the rows of the error
browser are JSON that the page's script only ever sets as text, and a content security policy allows that one script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from markupsafe import Markup

from earwitness import __version__
from earwitness.report import overview, views
from earwitness.report.boards import ReportData
from earwitness.report.cards import card_views, commands, map_views, prompt_views, systems_once
from earwitness.report.numbers import clean, count
from earwitness.report.players import Players
from earwitness.report.published import PublishedTable
from earwitness.report.rows import pack, script_json
from earwitness.report.scene_audio import SceneAudio
from earwitness.report.scene_boards import SceneBoard
from earwitness.runs.outcomes import OUTCOME_KINDS
from earwitness.tasks.deafness import THRESHOLDS

CLIPS_TITLE = "Which emotion does the voice express?"
SCENES_TITLE = "What did the model hear, and did hearing help?"
BOTH_TITLE = "What do models hear beyond the words?"


@dataclass(frozen=True, slots=True)
class ScenePart:
    """What a page shows of scenes: boards, their sound, waveforms, and published rows if asked for."""

    boards: tuple[SceneBoard, ...]
    audio: SceneAudio = field(default_factory=SceneAudio)
    outlines: Mapping[tuple[str, str], str] = field(default_factory=dict)
    published: PublishedTable | None = None


def template_file(name: str) -> str:
    """A file of the page's own: style sheet or script."""
    return resources.files("earwitness.report").joinpath("templates", name).read_text("utf-8")


def script_hash(script: str) -> str:
    """What a content security policy calls a script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _sections(
    data: ReportData | None, boards: list[dict[str, Any]], scenes: list[dict[str, Any]], signs: bool
) -> list[dict[str, str]]:
    entries = [{"id": board["id"], "title": board["title"]} for board in (*scenes, *boards)]
    if data is not None and data.differences:
        entries.append({"id": "conditions", "title": "Does the sound matter?"})
    if signs:
        entries.append({"id": "listening", "title": "Signs of not listening"})
    if scenes:
        entries.append({"id": "listen", "title": "Listen to the scenes"})
    if boards:
        entries.append({"id": "replies", "title": "Every reply"})
    return [
        *entries,
        {"id": "cards", "title": "Run cards"},
        {"id": "reading", "title": "How to read this"},
        {"id": "commands", "title": "Commands"},
    ]


def _browser_intro(rows: Mapping[str, Any], players: Players) -> str:
    words = "Raw replies with what they were taken to mean. Start with what was not right."
    if rows["cut"]:
        words += (
            f" {count(rows['cut'])} long texts are cut to {count(rows['limit'])} characters here;"
            " predictions.csv has them whole."
        )
    if players.kind:
        words += (
            f" The clips are {players.kind} with the page ({players.total_bytes / 1e6:,.1f} MB)."
        )
        if players.kind == "linked":
            words = words.rpartition(" The clips are")[0] + (
                " Players refer to the clips where they are on this machine."
            )
    else:
        words += " Clips are named by their path; --bundle or --embed-audio adds players where the set's licence allows."
    return words


def _title(data: ReportData | None, scenes: ScenePart | None) -> str:
    if scenes is None:
        return CLIPS_TITLE
    return SCENES_TITLE if data is None else BOTH_TITLE


def render_page(
    data: ReportData | None,
    players: Players,
    *,
    title: str | None = None,
    scenes: ScenePart | None = None,
) -> str:
    """The page as text. The same data gives the same bytes.

    Parameters
    ----------
    data: what was scored of clips, None where there are only scenes.
    scenes: what was scored of scenes, None where there are only clips.

    Example
    -------
    >>> html = render_page(build(systems, EMOTIONS), Players())  # doctest: +SKIP
    """
    from earwitness.report import scene_views
    from earwitness.report.listen import listen_view
    from earwitness.report.scene_pack import pack_scenes

    rows = pack(data, players) if data is not None else None
    boards = [views.board_view(board) for board in data.boards] if data is not None else []
    scene_boards = scenes.boards if scenes is not None else ()
    published = scenes.published if scenes is not None else None
    scene_views_ = [scene_views.board_view(board, published) for board in scene_boards]
    scene_rows, listen = None, None
    if scenes is not None:
        scene_rows = pack_scenes(scenes.boards, scenes.audio, scenes.outlines)
        listen = listen_view(scene_rows, scenes.audio, files="scene-predictions.csv")
    signs = [*(s for b in scene_boards for s in b.signs), *(data.signs if data is not None else ())]
    leads = [scene_views.lead(scene_boards)] if scene_boards else []
    if data is not None:
        leads.append(overview.lead(data))
    systems = systems_once(data, scene_boards)
    scripts = [template_file("page.js")] * (data is not None)
    scripts += [template_file("scenes.js")] * (scenes is not None)
    styles = ["figures.css", "page.css"] + ["scenes.css"] * (scenes is not None)
    return render(
        "report.html.j2",
        title=title or _title(data, scenes),
        lead=" ".join(leads),
        warnings=[
            *(overview.scene_warnings(scene_boards)),
            *(overview.warnings(data) if data is not None else ()),
        ],
        sections=_sections(data, boards, scene_views_, bool(signs)),
        boards=boards,
        scenes=scene_views_,
        kinds=OUTCOME_KINDS,
        differences=overview.difference_views(data) if data is not None else [],
        signs=overview.sign_views(signs),
        several_tasks=len({sign.task for sign in signs}) > 1,
        thresholds=THRESHOLDS,
        listen=listen,
        browser={"intro": _browser_intro(rows, players)} if rows is not None else {},
        cards=card_views(systems),
        prompts=prompt_views(systems),
        maps=map_views(systems),
        commands=commands(systems),
        footer=f"Made by earwitness {__version__}. Leaderboard and predictions stand beside this page as CSV, JSON and Markdown.",
        rows=script_json(rows) if rows is not None else "",
        scene_rows=script_json(scene_rows) if scene_rows is not None else "",
        css=Markup("".join(map(template_file, styles))),
        scripts=scripts,
    )


def render(template: str, *, scripts: Sequence[str], **values: Any) -> str:
    """A page from a template; its scripts are allowed by their hashes and nothing else is."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("earwitness.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    page = environment.get_template(template).render(
        version=__version__,
        scripts=[Markup(script) for script in scripts],
        script_hashes=[script_hash(script) for script in scripts],
        **values,
    )
    return clean(page)
