"""Run cards, prompts, label maps and commands as the page prints them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earwitness.errors import EarwitnessError
from earwitness.report.boards import ReportData, clips_of
from earwitness.report.numbers import count, plural
from earwitness.tasks.cares_runs import TASKS
from earwitness.tasks.records import System

if TYPE_CHECKING:
    from earwitness.report.scene_boards import SceneBoard

_ORDER = (
    "task",
    "task_version",
    "model",
    "settings",
    "conditions",
    "n_items",
    "prompt",
    "parser_version",
    "label_map",
    "scoring",
    "clips",
    "limits",
    "batch",
    "started",
    "finished",
    "versions",
)
_NAMES = {
    "task_version": "task version",
    "n_items": "items",
    "parser_version": "parser version",
    "label_map": "label map",
    "clips": "clip set",
    "batch": "answers by batch jobs",
    "versions": "software",
}
_HIDDEN = {"name", "card_version"}
_UNPRINTED = {"folder", "templates"}
"""Of a set or corpus: folders of the machine, and a list as long as the corpus."""


def systems_once(data: ReportData | None, scenes: Sequence[SceneBoard] = ()) -> tuple[System, ...]:
    """Every run once, although it may stand on several boards; runs about scenes are named with their task."""
    listed = [system for board in data.boards for system in board.systems] if data else []
    for board in scenes:
        for each in board.answers:
            origin = board.origins.get(each.name, "run")
            listed.append(System(f"{each.task} · {each.name}", (), origin, each.card))
    found: dict[str, System] = {}
    for system in listed:
        key = json.dumps(
            [system.name, system.origin, _without_scoring(system.card)],
            sort_keys=True,
            default=str,
        )
        found.setdefault(key, system)
    return tuple(found.values())


def _without_scoring(card: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in card.items() if name != "scoring"}


def card_views(systems: Sequence[System]) -> list[dict[str, Any]]:
    """One run card a system."""
    views = []
    for system in systems:
        card = system.card
        if system.origin != "run" or not card:
            views.append(_table_view(system))
            continue
        keys = [key for key in _ORDER if key in card]
        keys += sorted(key for key in card if key not in _ORDER and key not in _HIDDEN)
        entries = [(_NAMES.get(key, key.replace("_", " ")), _words(key, card[key])) for key in keys]
        views.append(
            {
                "name": system.name,
                "line": " · ".join(
                    [str(card[key]) for key in ("model",) if card.get(key)]
                    + (
                        [f"finished {moment(card['finished'])}"]
                        if card.get("finished")
                        else ["not finished"]
                    )
                ),
                "entries": [(key, value) for key, value in entries if value],
            }
        )
    return views


def _table_view(system: System) -> dict[str, Any]:
    """What is known of a table of predictions: what its reader noted, never a prompt or a date."""
    entries = [
        ("origin", "a table of predictions: prompt, settings and dates are not known"),
        ("items", count(len(system.decisions))),
    ]
    entries += [
        (key.replace("_", " "), _words(key, system.card[key])) for key in sorted(system.card)
    ]
    return {
        "name": system.name,
        "line": f"from {system.origin}",
        "entries": [(key, value) for key, value in entries if value],
    }


def batch_words(cards: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """Whose answers came by batch jobs, as a sentence; empty where none did.

    >>> batch_words([("m", {"batch": {"jobs": 2, "replies": 140}}), ("n", {})])
    " Answers by the service's batch API (m: 140 in 2 jobs)."
    """
    told: dict[str, str] = {}
    for name, card in cards:
        batch = card.get("batch")
        if isinstance(batch, Mapping) and batch.get("replies"):
            told[name] = f"{count(batch['replies'])} in {plural(batch.get('jobs', 1), 'job')}"
    named = "; ".join(f"{name}: {what}" for name, what in told.items())
    return f" Answers by the service's batch API ({named})." if named else ""


def moment(stamp: object) -> str:
    """A card's time stamp as people read it.

    Example
    -------
    >>> moment("2026-11-02T10:12:00+00:00")
    '2026-11-02 10:12 UTC'
    """
    text = str(stamp)
    if text.endswith("+00:00") and len(text) >= 22:
        return f"{text[:10]} {text[11:16]} UTC"
    return text


def _words(key: str, value: Any) -> str:
    if key == "prompt" and isinstance(value, Mapping):
        return _pairs({name: value[name] for name in ("id", "version", "hash") if name in value})
    if key == "clips" and isinstance(value, Mapping):
        return _pairs({name: entry for name, entry in value.items() if name not in _UNPRINTED})
    if isinstance(value, Mapping):
        return _pairs(value)
    if isinstance(value, list | tuple):
        return ", ".join(_plain(entry) for entry in value)
    return _plain(value)


def _pairs(value: Mapping[str, Any]) -> str:
    return " · ".join(
        f"{name} {_plain(entry)}"
        for name, entry in value.items()
        if entry not in (None, "", [], {})
    )


def _plain(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return str(value)


def prompt_views(systems: Sequence[System]) -> list[dict[str, str]]:
    """Every prompt once, whole."""
    found: dict[str, dict[str, str]] = {}
    for system in systems:
        prompt = system.card.get("prompt")
        if isinstance(prompt, Mapping):
            view = {
                name: str(prompt.get(name) or "")
                for name in ("id", "version", "hash", "text", "system")
            }
            if system.card.get("task") in TASKS:
                view["id"] = f"{system.card['task']}/{view['id']}"
            found.setdefault(view["hash"] or json.dumps(view), view)
    return list(found.values())


def map_views(systems: Sequence[System]) -> list[dict[str, Any]]:
    """Every label map once, printed from its file where that is still the version that was used."""
    found: dict[str, Mapping[str, Any]] = {}
    for system in systems:
        scoring = system.card.get("scoring")
        for used in (
            system.card.get("label_map"),
            scoring.get("label_map") if isinstance(scoring, Mapping) else None,
            _named_map(clips_of(system).get("label_map")),
        ):
            if isinstance(used, Mapping) and used.get("id"):
                found.setdefault(json.dumps(dict(used), sort_keys=True, default=str), used)
    return [_map_view(used) for used in found.values()]


def _named_map(name: object) -> dict[str, str] | None:
    """The map of a clip set's own labels, which its card names as ``id@version``."""
    if not isinstance(name, str) or not name:
        return None
    map_id, _, version = name.partition("@")
    return {"id": map_id, "version": version}


def _map_view(used: Mapping[str, Any]) -> dict[str, Any]:
    from earwitness.clips.labels import load_label_map

    name = f"{used['id']} version {used.get('version', '?')}"
    view: dict[str, Any] = {"name": name, "hash": str(used.get("hash") or ""), "rows": []}
    try:
        label_map = load_label_map(str(used["id"]))
    except EarwitnessError:
        return view | {"caption": "A map of the run's own; its file is not packaged."}
    changed = used.get("hash") and label_map.hash != used["hash"]
    if changed or (used.get("version") and label_map.version != str(used["version"])):
        return view | {
            "caption": "The packaged map of this name has changed since; the counts of rules with each model are those of the run."
        }
    rows = [(label, ", ".join(label_map.words_of(label))) for label in label_map.targets]
    if label_map.dropped:
        rows.append(
            (
                "no label",
                "; ".join(
                    f"{word} ({why})" if why else word for word, why in label_map.dropped.items()
                ),
            )
        )
    return view | {"caption": label_map.description or "Native words by label", "rows": rows}


def commands(systems: Sequence[System]) -> list[str]:
    """The commands that ask and report again; folders by their last name, as the page may be sent on."""
    asked: dict[tuple[str, ...], list[str]] = {}
    for system in systems:
        card = system.card
        if system.origin != "run" or not card:
            continue
        folder = clips_of(system).get("folder")
        task = str(card.get("task", "emotion"))
        place = Path(str(folder)).name if folder else ""
        if task in TASKS:
            rest = [place or "CORPUS", "--tasks", task]
        else:
            rest = ["--clips", place or "CLIPS"]
        prompt = card.get("prompt")
        if isinstance(prompt, Mapping) and prompt.get("id"):
            rest += ["--prompt-set", str(prompt["id"])]
        conditions = card.get("conditions")
        if isinstance(conditions, list | tuple) and list(conditions) != ["audio"]:
            rest += ["--conditions", ",".join(map(str, conditions))]
        models = asked.setdefault(("cares" if task in TASKS else task, *rest), [])
        if (model := str(card.get("model", system.name))) not in models:
            models.append(model)
    lines = []
    for (task, *rest), models in asked.items():
        named = [part for model in models for part in ("--model", model)]
        lines.append(shlex.join(["earwitness", "run", task, *rest, *named, "--out", "RUNS"]))
    if any(system.origin == "predictions" for system in systems):
        lines.append("earwitness score --predictions FILE.csv --out REPORT")
    if asked:
        lines.append("earwitness report RUNS --out REPORT")
    return lines
