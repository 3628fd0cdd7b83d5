"""The run folder: card, questions and ledger of one model on one task.

Everything a score needs is inside, so that old replies can be read again anywhere, offline.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earwitness.errors import DataError
from earwitness.models.protocols import Reply
from earwitness.runs.items import Question, reply_key
from earwitness.runs.ledger import Ledger, LedgerCounts

CARD = "card.json"
ITEMS = "items.jsonl"
LEDGER = "ledger.jsonl"


@dataclass(frozen=True, slots=True)
class StoredQuestion:
    """One line of ``items.jsonl``. ``audio_path`` is as given when the run was made.

    ``audio`` identifies what was heard by its content; empty without audio, and in runs of older versions.
    ``window`` is the part of the file that was sent, from and to in seconds, None for all of it. ``part_of``, ``part``
    and ``parts`` are set where the item is one of several that a long recording was divided into.
    """

    id: str
    condition: str
    key: str
    gold: str
    cluster: str
    groups: Mapping[str, str]
    seconds: float
    audio_path: str
    audio: str = ""
    window: tuple[float, float] | None = None
    part_of: str = ""
    part: int = 0
    parts: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """A question with what came of it: a reply, or the reason there is none."""

    question: StoredQuestion
    reply: Reply | None
    failure: str | None
    cost_usd: float | None = None


def slug(text: str) -> str:
    """A name that is safe as a folder: ``openai/gpt-audio`` becomes ``openai_gpt-audio``."""
    cleaned = re.sub(r"[^A-Za-z0-9.-]+", "_", text).strip("_.") or "unnamed"
    return cleaned[:100]


def write_atomically(path: Path, text: str) -> None:
    """Write a file beside its place and move it in, so that it is there whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def _stored(question: Question, model: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    item, part = question.item, question.part
    more: dict[str, Any] = {}
    if item.audio is not None and item.audio.window is not None:
        more["window"] = list(item.audio.window)
    if part is not None:
        more |= {"part_of": part.of, "part": part.index, "parts": part.count}
    return more | {
        "id": item.id,
        "condition": item.condition,
        "key": reply_key(item, model, settings),
        "gold": question.gold,
        "cluster": question.cluster,
        "groups": dict(question.groups),
        "seconds": item.audio.seconds if item.audio else 0.0,
        "audio_path": str(item.audio.path) if item.audio else "",
        "audio": item.audio.identity if item.audio else "",
    }


def items_text(questions: Sequence[Question], model: str, settings: Mapping[str, Any]) -> str:
    """The text of ``items.jsonl``."""
    lines = (
        json.dumps(_stored(question, model, settings), ensure_ascii=False, sort_keys=True)
        for question in questions
    )
    return "".join(line + "\n" for line in lines)


class RunFolder:
    """A run on disk.

    Raises
    ------
    DataError: a file of the run is missing or not what it should be.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def ledger_path(self) -> Path:
        return self.path / LEDGER

    def write(
        self,
        card: Mapping[str, Any],
        questions: Sequence[Question],
        model: str,
        settings: Mapping[str, Any],
    ) -> None:
        """Put card and questions in place; the ledger, if there is one, stays as it is."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path / ITEMS, items_text(questions, model, settings))
        self.write_card(card)

    def asks_the_same(
        self, questions: Sequence[Question], model: str, settings: Mapping[str, Any]
    ) -> bool:
        """Whether the folder holds these very questions, or none yet."""
        if not (self.path / ITEMS).exists():
            return True
        held = [(each.id, each.condition, each.key, each.gold) for each in self.questions()]
        return held == [
            (item.id, item.condition, reply_key(item, model, settings), question.gold)
            for question in questions
            for item in (question.item,)
        ]

    def write_card(self, card: Mapping[str, Any]) -> None:
        text = json.dumps(card, indent=2, ensure_ascii=False, sort_keys=True)
        write_atomically(self.path / CARD, text + "\n")

    def card(self) -> dict[str, Any]:
        """The run card."""
        path = self.path / CARD
        try:
            card = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError(
                str(self.path), "is no run folder (no card.json)", next_step="Name a run's folder."
            ) from None
        except ValueError as error:
            raise DataError(str(path), f"is not JSON ({error})", wanted="a run card") from None
        if not isinstance(card, dict):
            raise DataError(str(path), "is not a JSON object", wanted="a run card")
        return card

    def questions(self) -> tuple[StoredQuestion, ...]:
        """The questions of the run, in their order."""
        path = self.path / ITEMS
        if not path.exists():
            raise DataError(str(path), "is missing", next_step="Run the same command again.")
        questions = []
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    fields = json.loads(line)
                    window = fields.pop("window", None)
                    questions.append(StoredQuestion(**fields, window=window and tuple(window)))
                except (ValueError, TypeError, AttributeError) as error:
                    raise DataError(
                        f"{path}:{number}", f"is not a question ({error})", wanted="a JSON object"
                    ) from None
        return tuple(questions)

    def answers(self) -> Iterator[Answer]:
        """Every question with its reply or the reason there is none, in the questions' order."""
        questions = self.questions()
        if not self.ledger_path.exists():
            for question in questions:
                yield Answer(question, None, "not asked")
            return
        with Ledger(self.ledger_path, read_only=True) as ledger:
            for question in questions:
                reply, failure, cost_usd = ledger.get_entry(question.key)
                if reply is not None:
                    yield Answer(question, reply, None, cost_usd)
                elif failure is not None:
                    yield Answer(question, None, f"{failure.kind}: {failure.message}")
                else:
                    yield Answer(question, None, "not asked")

    def counts(self) -> LedgerCounts:
        """Totals of the run's ledger."""
        if not self.ledger_path.exists():
            return LedgerCounts()
        with Ledger(self.ledger_path, read_only=True) as ledger:
            return ledger.counts


def find_runs(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Run folders among ``paths`` and directly or deeper below them, sorted, each once.

    Raises
    ------
    DataError: a path holds no run at all.
    """
    found: dict[Path, None] = {}
    for path in paths:
        cards = [path / CARD] if (path / CARD).exists() else sorted(path.rglob(CARD))
        folders = [card.parent for card in cards if (card.parent / ITEMS).exists()]
        if not folders:
            raise DataError(
                str(path),
                "holds no run (no folder with card.json and items.jsonl)",
                next_step="Make one with: earwitness run emotion --clips DIR --model NAME --out RUNS",
            )
        for folder in folders:
            found.setdefault(folder.resolve())
    return tuple(sorted(found))
