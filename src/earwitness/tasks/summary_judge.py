"""A chat model as judge of summaries: raw replies kept in a ledger, so that none is asked for twice; quotes checked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earwitness.errors import IncompleteRunError
from earwitness.models.protocols import Prompt
from earwitness.runs.items import Item, digest, reply_key
from earwitness.runs.jsonlines import JsonLines
from earwitness.runs.ledger import Ledger
from earwitness.runs.text_calls import Meter, TextCaller
from earwitness.tasks.summary import VERDICTS, Judged, Verdict, checked

if TYPE_CHECKING:
    from earwitness.models.registry import DeclaredTextModel
    from earwitness.runs.runner import RunnerSettings
    from earwitness.scenes.bank import Bank
    from earwitness.tasks.records import Decision

TASK = "summary-judge"
JUDGE_VERSION = "2"
LEAST_WORDS = 2
ASKS = 3
"""How often a summary is put to a judge whose answer is not what was asked for."""
_SYSTEM = """You check which sounds a summary of a recording mentions. For every listed sound give one verdict:
"heard": the summary says that this sound, or its source making a sound, occurs in the recording;
"nature": it mentions a sound of the same kind under another or a vaguer name;
"discussed": only people's talk is about such a thing, nothing says that it sounds;
"absent": none of these.
Would the phrase stay true if the sound were not in the recording? Then it is not "heard". One phrase cannot support
two sounds. Quote the phrase of the summary, word by word, at least two words; for "absent" leave it empty.
Reply with JSON alone: {"verdicts": [{"sound": NUMBER, "verdict": "...", "quote": "..."}]}"""
_AGAIN = "Your answer before was not this JSON with one of the four verdicts for every sound. Give it now."
_SCHEMA = {
    "type": "object",
    "properties": {
        "verdicts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "sound": {"type": "integer"},
                    "verdict": {"type": "string", "enum": list(VERDICTS)},
                    "quote": {"type": "string"},
                },
                "required": ["sound", "verdict", "quote"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["verdicts"],
    "additionalProperties": False,
}


def question(summary: str, shown: Sequence[str], *, again: bool = False) -> Prompt:
    """What the judge reads: the summary and names of sounds. It never learns which are there or how anybody reacts."""
    listed = "\n".join(f"{number}. {name}" for number, name in enumerate(shown, start=1))
    user = f"Sounds:\n{listed}\n\nSummary:\n{summary}"
    return Prompt(f"{user}\n\n{_AGAIN}" if again else user, _SYSTEM, schema=_SCHEMA)


def read_verdicts(text: str, summary: str, sounds: Sequence[str]) -> tuple[Judged, ...] | None:
    """Verdicts of a reply with their quotes checked; None where it is not what was asked for.

    A sound without a verdict is ``absent``; numbers that are no sound are dropped.
    """
    start, end = text.find("{"), text.rfind("}")
    try:
        listed = json.loads(text[start : end + 1])["verdicts"]
        given: dict[int, dict[str, Any]] = {int(entry["sound"]): entry for entry in listed}
    except (ValueError, KeyError, TypeError):
        return None
    found = []
    for number, sound in enumerate(sounds, start=1):
        entry = given.get(number, {})
        said = str(entry.get("verdict", "absent")).strip().casefold()
        verdict: Verdict | None = next((v for v in VERDICTS if v == said), None)
        if verdict is None:
            return None
        quote = str(entry.get("quote") or "")
        found.append(checked(Judged(sound, verdict, quote), summary, least_words=LEAST_WORDS))
    return tuple(found)


def _texts(ledgers: Sequence[Path]) -> dict[str, str]:
    """Key -> what was replied; a line torn by a kill is as if it had not been written."""
    said: dict[str, str] = {}

    def take(line: Mapping[str, Any], offset: int) -> None:
        del offset
        if line["kind"] == "reply":
            said[line["key"]] = line["reply"].get("text") or ""

    for path in ledgers:
        if path.is_file():
            JsonLines(
                path, read_only=True, keys=("kind", "key"), entry="a ledger entry", note=take
            ).close()
    return said


class ChatJudge:
    """Verdicts of a text model; its raw replies are kept, and what they say is read anew each time.

    Use :meth:`prepare` for all summaries at once, then it is a :class:`earwitness.tasks.summary.Judge`.

    Parameters
    ----------
    ledger: file of the replies, beside the runs; made by :meth:`prepare`.
    others: files that may hold replies too, beside other runs.
    """

    def __init__(
        self, model: DeclaredTextModel, bank: Bank, ledger: Path, *, others: Sequence[Path] = ()
    ) -> None:
        self._model = model
        self._bank = bank
        self._path = ledger
        self._others = tuple(others)
        self._said: dict[str, str] | None = None

    @property
    def name(self) -> str:
        return self._model.name

    def judge(self, summary: str, sounds: Sequence[str]) -> tuple[Judged, ...]:
        """Verdicts that :meth:`prepare` has brought.

        Raises
        ------
        IncompleteRunError: this summary was not judged.
        DataError: the ledger cannot be read.
        """
        if self._said is None:
            self._said = _texts((self._path, *self._others))
        settings = dict(self._model.settings)
        for ask in range(1, ASKS + 1):
            text = self._said.get(
                reply_key(self._item(summary, sounds, ask), self._model.name, settings)
            )
            if text is None:
                break
            found = read_verdicts(text, summary, sounds)
            if found is not None:
                return found
        raise IncompleteRunError(
            f"judge {self.name}", "a summary was not judged",
            next_step="Run the same command again to ask only for those.",
        )  # fmt: skip

    def prepare(
        self,
        decisions: Iterable[Decision],
        settings: RunnerSettings | None = None,
        *,
        meter: Meter | None = None,
        on_done: Callable[[int, int], None] | None = None,
    ) -> int:
        """Judge every summary that has no verdicts yet; returns how many could not be judged.

        Parameters
        ----------
        settings: patience, budgets and price; without a price, that of the table that ships.
        meter: counts calls, tokens and money, and says why it stopped.
        on_done: told of summaries done and summaries in all.

        Raises
        ------
        UsageError: the model cannot be asked at all (no key).
        DataError: the ledger cannot be written.
        """
        todo: dict[str, tuple[str, list[str]]] = {}
        for decision in decisions:
            if decision.outcome.label is None or not decision.reply:
                continue
            truth = json.loads(decision.gold)
            sounds = [each["sound"] for each in truth["present"]] + list(truth["absent"])
            todo[digest([decision.reply, sounds])] = (decision.reply, sounds)
        self._said = None
        return (
            asyncio.run(self._ask_all(list(todo.values()), settings, meter, on_done)) if todo else 0
        )

    async def _ask_all(
        self,
        todo: list[tuple[str, list[str]]],
        settings: RunnerSettings | None,
        meter: Meter | None,
        on_done: Callable[[int, int], None] | None,
    ) -> int:
        total, failed = len(todo), 0
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with Ledger(self._path, shared=True) as ledger:
            caller = TextCaller(self._model, ledger, settings, meter=meter)
            try:
                for ask in range(1, ASKS + 1):
                    settled = total - len(todo)
                    watch = (lambda done, before=settled: on_done(before + done, total)) if on_done else None  # fmt: skip
                    answers = await caller.ask([self._item(*each, ask) for each in todo], watch)
                    failed += sum(answer.reply is None for answer in answers)
                    todo = [
                        each
                        for each, answer in zip(todo, answers, strict=True)
                        if answer.reply is not None
                        and read_verdicts(answer.reply.text or "", *each) is None
                    ]
                    if not todo:
                        break
            finally:
                await caller.aclose()
        return failed + len(todo)

    def _item(self, summary: str, sounds: Sequence[str], ask: int) -> Item:
        shown = [self._bank.sound(sound).name for sound in sounds]
        return Item(
            id=f"{digest([summary, list(sounds)])[:16]}#{ask}",
            task=TASK,
            task_version=JUDGE_VERSION,
            prompt=question(summary, shown, again=ask > 1),
            condition="text",
        )
