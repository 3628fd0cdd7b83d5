"""The one self-contained page: no network, phone width, keyboard, light and dark.

Everything a model or a data file said goes through escaping: the templates escape by default, the rows of the error
browser are JSON that the page's script only ever sets as text, and a content security policy allows that one script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from markupsafe import Markup

from earwitness import __version__
from earwitness.report import overview, views
from earwitness.report.boards import ReportData
from earwitness.report.cards import card_views, commands, map_views, prompt_views
from earwitness.report.numbers import clean, count
from earwitness.report.players import Players
from earwitness.report.rows import pack, script_json
from earwitness.runs.outcomes import OUTCOME_KINDS

DEFAULT_TITLE = "Which emotion does the voice express?"


def _file(name: str) -> str:
    return resources.files("earwitness.report").joinpath("templates", name).read_text("utf-8")


def _sections(data: ReportData, boards: list[dict[str, Any]]) -> list[dict[str, str]]:
    entries = [{"id": board["id"], "title": board["title"]} for board in boards]
    if data.differences:
        entries.append({"id": "conditions", "title": "Does the sound matter?"})
    if data.signs:
        entries.append({"id": "listening", "title": "Signs of not listening"})
    return [
        *entries,
        {"id": "replies", "title": "Every reply"},
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
    else:
        words += " Clips are named by their path; --bundle or --embed-audio adds players where the set's licence allows."
    return words


def render_page(data: ReportData, players: Players, *, title: str | None = None) -> str:
    """The page as text. The same data gives the same bytes.

    Example
    -------
    >>> html = render_page(build(systems, EMOTIONS), Players())  # doctest: +SKIP
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("earwitness.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    script = _file("page.js")
    rows = pack(data, players)
    boards = [views.board_view(board) for board in data.boards]
    page = environment.get_template("report.html.j2").render(
        title=title or DEFAULT_TITLE,
        version=__version__,
        lead=overview.lead(data),
        warnings=overview.warnings(data),
        sections=_sections(data, boards),
        boards=boards,
        kinds=OUTCOME_KINDS,
        differences=overview.difference_views(data),
        signs=overview.sign_views(data.signs),
        browser={"intro": _browser_intro(rows, players)},
        cards=card_views(data),
        prompts=prompt_views(data),
        maps=map_views(data),
        commands=commands(data),
        footer=f"Made by earwitness {__version__}. Leaderboard and predictions stand beside this page as CSV, JSON and Markdown.",
        rows=script_json(rows),
        css=Markup(_file("figures.css") + _file("page.css")),
        script=Markup(script),
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    return clean(page)
