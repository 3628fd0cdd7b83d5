"""A chat model as judge of summaries: verdicts with quotes, checked, and kept so that none is asked twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earwitness.errors import IncompleteRunError, ModelError
from earwitness.models.patience import retry_wait_s
from earwitness.models.protocols import Message, TextModel
from earwitness.runs.items import digest
from earwitness.tasks.summary import VERDICTS, Judged, Verdict, checked

if TYPE_CHECKING:
    from earwitness.scenes.bank import Bank
    from earwitness.tasks.records import Decision

JUDGE_VERSION = "1"
LEAST_WORDS = 2
_TRIES = 3
_LONGEST_WAIT_S = 60.0
_SYSTEM = """You check which sounds a summary of a recording mentions. For every listed sound give one verdict:
"heard": the summary says that this sound, or its source making a sound, occurs in the recording;
"nature": it mentions a sound of the same kind under another or a vaguer name;
"discussed": only people's talk is about such a thing, nothing says that it sounds;
"absent": none of these.
Would the phrase stay true if the sound were not in the recording? Then it is not "heard". One phrase cannot support
two sounds. Quote the phrase of the summary, word by word, at least two words; for "absent" leave it empty.
Reply with JSON alone: {"verdicts": [{"sound": NUMBER, "verdict": "...", "quote": "..."}]}"""


def question(summary: str, shown: Sequence[str]) -> tuple[Message, ...]:
    """What the judge reads: the summary and names of sounds. It never learns which are there or how anybody reacts."""
    listed = "\n".join(f"{number}. {name}" for number, name in enumerate(shown, start=1))
    return (
        Message("system", _SYSTEM),
        Message("user", f"Sounds:\n{listed}\n\nSummary:\n{summary}"),
    )


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


class ChatJudge:
    """Verdicts of a text model, kept in a file by content: summary, sounds, model, settings, version.

    Use :meth:`prepare` for all summaries at once, then it is a :class:`earwitness.tasks.summary.Judge`.
    """

    def __init__(self, model: TextModel, bank: Bank, store: Path) -> None:
        self._model = model
        self._bank = bank
        self._store = store
        self._known: dict[str, list[list[str]]] = {}
        if store.exists():
            for line in store.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                    self._known[entry["key"]] = entry["verdicts"]
                except (ValueError, KeyError, TypeError):
                    continue  # a line torn by a kill; its summary is judged again

    @property
    def name(self) -> str:
        return self._model.name

    def _key(self, summary: str, sounds: Sequence[str]) -> str:
        return digest(
            [JUDGE_VERSION, self._model.name, dict(self._model.settings), summary, list(sounds)]
        )

    def judge(self, summary: str, sounds: Sequence[str]) -> tuple[Judged, ...]:
        """Verdicts that :meth:`prepare` has brought.

        Raises
        ------
        IncompleteRunError: this summary was not judged.
        """
        stored = self._known.get(self._key(summary, sounds))
        if stored is None:
            raise IncompleteRunError(
                f"judge {self.name}", "a summary was not judged",
                next_step="Run the same command again to ask only for those.",
            )  # fmt: skip
        return tuple(
            Judged(sound, next(v for v in VERDICTS if v == verdict), quote, why)
            for sound, (verdict, quote, why) in zip(sounds, stored, strict=True)
        )

    def prepare(
        self,
        decisions: Iterable[Decision],
        *,
        concurrency: int = 8,
        on_done: Callable[[int, int], None] | None = None,
    ) -> int:
        """Judge every summary that has no verdicts yet; returns how many could not be judged."""
        todo: dict[str, tuple[str, list[str]]] = {}
        for decision in decisions:
            if decision.outcome.label is None or not decision.reply:
                continue
            truth = json.loads(decision.gold)
            sounds = [each["sound"] for each in truth["present"]] + list(truth["absent"])
            key = self._key(decision.reply, sounds)
            if key not in self._known:
                todo[key] = (decision.reply, sounds)
        return asyncio.run(self._ask_all(todo, concurrency, on_done)) if todo else 0

    async def _ask_all(
        self,
        todo: dict[str, tuple[str, list[str]]],
        concurrency: int,
        on_done: Callable[[int, int], None] | None,
    ) -> int:
        room = asyncio.Semaphore(concurrency)
        failed = done = 0

        async def one(key: str, summary: str, sounds: list[str]) -> None:
            nonlocal failed, done
            async with room:
                verdicts = await self._ask(summary, sounds)
            done += 1
            if verdicts is None:
                failed += 1
            else:
                self._keep(key, verdicts)
            if on_done is not None:
                on_done(done, len(todo))

        try:
            await asyncio.gather(*(one(key, *each) for key, each in todo.items()))
        finally:
            await self._model.aclose()
        return failed

    async def _ask(self, summary: str, sounds: Sequence[str]) -> tuple[Judged, ...] | None:
        shown = [self._bank.sound(sound).name for sound in sounds]
        for attempt in range(_TRIES):
            try:
                reply = await self._model.complete(question(summary, shown))
            except ModelError as error:
                wait_s = retry_wait_s(error.retry_after_s, 2.0**attempt, _LONGEST_WAIT_S)
                if not error.retryable or attempt == _TRIES - 1 or wait_s is None:
                    return None
                await asyncio.sleep(wait_s)
                continue
            found = read_verdicts(reply.text or "", summary, sounds)
            if found is not None:
                return found
        return None

    def _keep(self, key: str, verdicts: Sequence[Judged]) -> None:
        kept = [[each.verdict, each.quote, each.why] for each in verdicts]
        self._known[key] = kept
        with self._store.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, "verdicts": kept}, ensure_ascii=False) + "\n")
