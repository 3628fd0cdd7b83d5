"""The page that tells whether people agree, with the labels and with each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from earwitness import __version__
from earwitness.audio.files import atomic_write_text
from earwitness.review.project import EXPORT, Project, read_project
from earwitness.review.state import state_of
from earwitness.stats.intervals import RESAMPLES

FEW_CLUSTERS = 30
"""Below this many scenes or speakers an interval by resampling is too narrow."""

FEW_SHARED = 30
"""Below this many items in common the kappa of two people is mostly chance."""


def write_report(folder: Path, out: Path | None = None) -> tuple[Path, Path]:
    """Write ``report.html`` and ``report.json`` into ``export/`` or ``out``; the page needs nothing beside it."""
    target = out if out is not None else folder / EXPORT
    target.mkdir(parents=True, exist_ok=True)
    state = state_of(folder, RESAMPLES)
    page, data = target / "report.html", target / "report.json"
    atomic_write_text(page, _render(read_project(folder), state, linked=False))
    atomic_write_text(data, json.dumps(state, ensure_ascii=False, indent=2) + "\n")
    return page, data


def render_report(folder: Path, *, linked: bool) -> str:
    """The page as text. ``linked`` takes the style from the server, as its policy asks."""
    return _render(read_project(folder), state_of(folder, RESAMPLES), linked=linked)


def _render(project: Project, state: dict[str, Any], *, linked: bool) -> str:
    from importlib import resources

    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("earwitness.review", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    css = resources.files("earwitness.review").joinpath("static", "review.css").read_text("utf-8")
    return environment.get_template("report.html.j2").render(
        project=project,
        state=state,
        lead=_lead(state),
        clusters=cluster_word(project),
        resamples=RESAMPLES,
        version=__version__,
        linked=linked,
        css=Markup(css),
    )


def cluster_word(project: Project) -> str:
    """What intervals draw."""
    return "scenes" if project.kind == "label" else "speakers"


def _lead(state: dict[str, Any]) -> dict[str, Any]:
    texts, warnings = [], []
    for found in state["agreement"]:
        beside, between = found["with_labels"], found["between_people"]
        if beside is not None and beside["mean_cohen"]["value"] is not None:
            texts.append(
                f"{found['title']} {_people(found)} agree with the labels at κ = {_figure(beside['mean_cohen'])}"
                + (
                    f" and with each other at κ = {_figure(between['mean_cohen'])}."
                    if between is not None and between["mean_cohen"]["value"] is not None
                    else "."
                )
            )
        elif between is not None and between["mean_cohen"]["value"] is not None:
            texts.append(
                f"{found['title']} {_people(found)} agree with each other at κ = {_figure(between['mean_cohen'])}."
            )
        few = found["counts"]["clusters"]
        if few < FEW_CLUSTERS:
            warnings.append(
                f"{found['title']} There are only {few} independent units: the intervals are too narrow."
            )
        shared = found["counts"]["shared_by_pair"]
        if between is not None and shared < FEW_SHARED:
            warnings.append(
                f"{found['title']} Two people have about {shared} items in common: κ of pairs says little. Read "
                "Krippendorff's α."
            )
    if state["answers"] < state["wanted"]:
        warnings.append(
            f"The work is not done: {state['answers']} of {state['wanted']} answers are in."
        )
    if not texts:
        texts.append("Nothing can be said about agreement yet.")
    return {"title": "Do people agree?", "texts": texts, "warnings": list(dict.fromkeys(warnings))}


def _people(found: dict[str, Any]) -> str:
    number = found["counts"]["people"]
    return "One person" if number == 1 else f"{number} people"


def _figure(coefficient: dict[str, Any]) -> str:
    value, low, high = (coefficient[name] for name in ("value", "low", "high"))
    if low is None:
        return _two(value)
    return f"{_two(value)} ({_two(low)} to {_two(high)})"


def _two(value: float) -> str:
    text = f"{value:.2f}"
    return "0.00" if text == "-0.00" else text.replace("-", "−")
