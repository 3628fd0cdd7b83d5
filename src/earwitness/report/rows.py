"""The rows of the error browser, packed: texts stored once, one small number a cell.

The page keeps them in a JSON script block and never as HTML, and its script only ever sets text, so that no reply of a
model can become markup. Long replies are cut to fit a budget; ``predictions.csv`` has them whole.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from earwitness.report.boards import ReportData, base_id
from earwitness.report.numbers import clean
from earwitness.report.players import Players, heard, shown_path
from earwitness.runs.outcomes import OUTCOME_KINDS, Outcome

REPLY_LIMITS = (2000, 600, 200, 60)
"""Characters of a reply kept in the page: the first limit under which all texts fit the budget."""

TEXT_BUDGET = 8_000_000
"""Characters of reply text in one page."""

_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def script_json(value: Any) -> Markup:
    """JSON that may stand inside ``<script>``: no reply can close the block or open a comment.

    Example
    -------
    >>> script_json("</script>")
    Markup('"\\\\u003c/script\\\\u003e"')
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character, escaped in _UNSAFE.items():
        text = text.replace(character, escaped)
    return Markup(text)


class Interner:
    """Each text once, by number; -1 stands for none."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str | None) -> int:
        if text is None:
            return -1
        found = self._numbers.setdefault(text, len(self.texts))
        if found == len(self.texts):
            self.texts.append(text)
        return found


def reply_limit(texts: Sequence[str], budget: int = TEXT_BUDGET) -> int:
    """The largest of ``REPLY_LIMITS`` under which all texts fit the budget; the last one if none does."""
    for limit in REPLY_LIMITS:
        if sum(min(len(text), limit) for text in texts) <= budget:
            return limit
    return REPLY_LIMITS[-1]


def pack(data: ReportData, players: Players, *, budget: int = TEXT_BUDGET) -> dict[str, Any]:
    """Everything the error browser shows.

    Returns
    -------
    A JSON-serialisable dictionary: ``items`` and ``systems`` column by column; a cell is a number into
    ``texts``, ``names``, ``labels`` or ``kinds``, -1 for none. ``limit`` is the number of characters a reply
    was cut to, ``cut`` how many replies were.
    """
    texts, names = Interner(), Interner()
    numbers: dict[tuple[str, str, str, str], int] = {}
    items: dict[str, list[Any]] = {"id": [], "gold": [], "cluster": [], "path": [], "sound": []}
    sounds: list[str] = []
    sound_numbers: dict[Path, int] = {}
    systems: list[dict[str, Any]] = []
    gold_labels = list(data.labels)
    place = {label: number for number, label in enumerate(gold_labels)}
    for board_number, board in enumerate(data.boards):
        for system in board.systems:
            columns: dict[str, Any] = {
                "name": system.name,
                "board": board_number,
                **{key: [] for key in ("item", "kind", "label", "reply", "rule", "note")},
            }
            for decision in system.decisions:
                path = shown_path(decision, system)
                key = (board.set_name, base_id(decision), decision.gold, path)
                number = numbers.setdefault(key, len(numbers))
                if number == len(items["id"]):
                    items["id"].append(clean(base_id(decision)))
                    items["gold"].append(_place(place, gold_labels, decision.gold))
                    items["cluster"].append(names.number(clean(decision.cluster)))
                    items["path"].append(clean(path))
                    items["sound"].append(-1)
                if decision.audio_path is not None and heard(decision):
                    source = players.sources.get(decision.audio_path)
                    if source is not None:
                        sound = sound_numbers.setdefault(decision.audio_path, len(sounds))
                        if sound == len(sounds):
                            sounds.append(source)
                        items["sound"][number] = sound
                outcome = decision.outcome
                note = outcome.detail or _native(outcome, decision.reply)
                columns["item"].append(number)
                columns["kind"].append(OUTCOME_KINDS.index(outcome.kind))
                columns["label"].append(
                    -1 if outcome.label is None else _place(place, gold_labels, outcome.label)
                )
                columns["reply"].append(
                    texts.number(None if decision.reply is None else clean(decision.reply))
                )
                columns["rule"].append(names.number(clean(outcome.rule)))
                columns["note"].append(texts.number(clean(note) if note else None))
            if columns["item"] == list(range(len(columns["item"]))):
                columns["item"] = len(columns["item"])
            systems.append(columns)
    limit = reply_limit(texts.texts, budget)
    return {
        "labels": gold_labels,
        "kinds": list(OUTCOME_KINDS),
        "boards": [{"condition": board.condition, "set": board.set_name} for board in data.boards],
        "items": items,
        "systems": systems,
        "names": names.texts,
        "limit": limit,
        "cut": sum(len(text) > limit for text in texts.texts),
        "texts": [text if len(text) <= limit else text[:limit] + "…" for text in texts.texts],
        "sounds": sounds,
    }


def _native(outcome: Outcome, reply: str | None) -> str:
    """The native word where neither reply nor rule shows it already."""
    native = outcome.native or ""
    return "" if native == reply or native.casefold() in outcome.rule.casefold() else native


def _place(place: dict[str, int], labels: list[str], label: str) -> int:
    number = place.setdefault(label, len(labels))
    if number == len(labels):
        labels.append(label)
    return number
