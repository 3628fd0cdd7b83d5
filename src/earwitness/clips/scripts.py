"""Scripts for a clip set: short texts that fit several emotions, written, checked and kept.

Conventions
-----------
A *place* is a number, and its script's id is made of it (``s0001``). It is tried up to ``max_attempts``
times, each time with what was wrong before; then it stays empty. Scripts that are there stay as they are: asking for
more adds places at the end. What comes out is a function of the settings and of the writer's answers, not of
kills or of how many calls are made at a time.

=======================  ==================================================================
``scripts.jsonl``        id, text, language, situation, writer, lexicon, attempt; sorted by id
``script-attempts.jsonl``  every draft that was turned down, with the reasons
``script-calls.jsonl``   ledger of calls, if a model writes
=======================  ==================================================================
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

from earwitness.audio.files import atomic_write_text
from earwitness.clips.scripts_checks import Fault, Limits, ScriptIndex, check_script
from earwitness.clips.scripts_lexicon import Lexicon
from earwitness.clips.scripts_offline import Phrasebook
from earwitness.errors import DataError, UsageError
from earwitness.runs.jsonlines import JsonLines, read_lines

SCRIPTS = "scripts.jsonl"
ATTEMPTS = "script-attempts.jsonl"
CALLS = "script-calls.jsonl"
PHRASEBOOK = "offline/phrasebook"
PILOT = 8
"""Places tried before all others, so that a writer that cannot do it is noticed before it has cost much."""
LOT = 256

OnDone = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Script:
    """One accepted script."""

    id: str
    text: str
    language: str
    situation: str
    writer: str
    lexicon: str
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Task:
    """One draft to write: ``number`` counts places from 0; ``previous`` and ``faults`` are of the last draft."""

    id: str
    number: int
    attempt: int
    previous: str = ""
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """What came of a task: a text, or what was wrong with the answer, or why there is none yet."""

    text: str = ""
    situation: str = ""
    faults: tuple[Fault, ...] = ()
    failed: str | None = None


class ScriptWriter(Protocol):
    """Writes drafts, in the order of their tasks."""

    @property
    def name(self) -> str: ...

    async def write(
        self, tasks: Sequence[Task], on_done: OnDone | None = None
    ) -> Sequence[Draft]: ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True)
class OfflineWriter:
    """The phrasebook as a writer."""

    book: Phrasebook
    seed: int

    @property
    def name(self) -> str:
        return f"{PHRASEBOOK} {self.book.name}"

    async def write(self, tasks: Sequence[Task], on_done: OnDone | None = None) -> Sequence[Draft]:
        """Draw every text."""
        drafts = []
        for done, task in enumerate(tasks, start=1):
            situation = self.book.situation_of(task.number, self.seed).id
            drafts.append(Draft(self.book.write(task.number, task.attempt, self.seed), situation))
            if on_done:
                on_done(done)
        return drafts

    async def aclose(self) -> None:
        """Nothing to close."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a run made. ``empty`` places were tried to the end; ``failed`` ones wait for the next run."""

    scripts: tuple[Script, ...]
    new: int
    drafts: int
    rejected: Counter[str]
    empty: tuple[str, ...]
    failed: dict[str, str]


@dataclass(slots=True)
class _Place:
    number: int
    attempt: int = 1
    previous: str = ""
    faults: tuple[Fault, ...] = ()
    script: Script | None = None
    failed: str | None = None

    @property
    def id(self) -> str:
        return script_id(self.number)


@dataclass
class ScriptLoop:
    """Writes, checks and writes again until every place is settled.

    Parameters
    ----------
    known: scripts that are there and stay.
    on_progress: called with settled places and their number after every change.
    """

    writer: ScriptWriter
    lexicon: Lexicon
    limits: Limits = field(default_factory=Limits)
    max_attempts: int = 6
    known: Sequence[Script] = ()
    log: Callable[[str, int, str, Sequence[Fault]], None] | None = None
    on_progress: Callable[[int, int], None] | None = None
    _index: ScriptIndex = field(default_factory=ScriptIndex, init=False)
    _rejected: Counter[str] = field(default_factory=Counter, init=False)
    _drafts: int = field(default=0, init=False)

    async def run(self, number: int) -> Written:
        """Fill places up to ``number`` in all."""
        there = {script.id: script for script in self.known}
        for script in self.known:
            self._index.add(script.id, script.text)
        places = [_Place(n) for n in range(number) if script_id(n) not in there]
        given_up = ""
        start = 0
        while start < len(places):
            end = min(start + (LOT if start else PILOT), len(places))
            await self._settle(places[start:end], len(places), start)
            start = end
            empty = [place for place in places[:start] if not place.script and not place.failed]
            if len(empty) >= PILOT and not any(place.script for place in places[:start]):
                often = ", ".join(code for code, _ in self._rejected.most_common(3))
                given_up = (
                    f"given up: not one of {self._drafts} drafts was acceptable (most often {often}); "
                    f"{ATTEMPTS} has every reason"
                )
                break
        for place in places[start:]:
            place.failed = given_up
        scripts = [*self.known, *(place.script for place in places if place.script)]
        return Written(
            scripts=tuple(sorted(scripts, key=lambda script: script.id)),
            new=len(scripts) - len(self.known),
            drafts=self._drafts,
            rejected=self._rejected,
            empty=tuple(place.id for place in places if not place.script and not place.failed),
            failed={place.id: place.failed for place in places if place.failed},
        )

    async def _settle(self, places: Sequence[_Place], total: int, before: int) -> None:
        while todo := [
            place
            for place in places
            if not place.script and not place.failed and place.attempt <= self.max_attempts
        ]:
            tasks = [Task(p.id, p.number, p.attempt, p.previous, p.faults) for p in todo]
            drafts = await self.writer.write(tasks)
            for place, draft in zip(todo, drafts, strict=True):
                self._take(place, draft)
            if self.on_progress:
                settled = sum(
                    bool(p.script or p.failed) or p.attempt > self.max_attempts for p in places
                )
                self.on_progress(before + settled, total)

    def _take(self, place: _Place, draft: Draft) -> None:
        if draft.failed is not None:
            place.failed = draft.failed
            return
        self._drafts += 1
        faults = draft.faults
        if not faults:
            faults = check_script(draft.text, self.lexicon, self.limits)
        if not faults:
            same = self._index.find(draft.text)
            faults = (same,) if same else ()
        if not faults:
            self._index.add(place.id, draft.text)
            place.script = Script(
                place.id,
                draft.text,
                self.lexicon.language,
                draft.situation,
                self.writer.name,
                self.lexicon.name,
                place.attempt,
            )
            return
        self._rejected.update({fault.code for fault in faults})
        if self.log:
            self.log(place.id, place.attempt, draft.text, faults)
        place.previous, place.faults = draft.text, faults
        place.attempt += 1


def script_id(number: int) -> str:
    """Id of the script in a place, counted from 0.

    >>> script_id(0)
    's0001'
    """
    return f"s{number + 1:04}"


def read_scripts(folder: Path) -> tuple[Script, ...]:
    """The scripts of a collection; none if there is no file yet.

    Raises
    ------
    DataError: a line is not a script; file and line are named.
    """
    path = folder / SCRIPTS
    if not path.exists():
        return ()
    scripts: dict[str, Script] = {}
    for number, line in read_lines(path, "a script"):
        try:
            script = Script(**line)
        except TypeError as error:
            raise DataError(f"{path}:{number}", f"is no script ({error})") from None
        if not isinstance(script.text, str) or not script.text.strip():
            raise DataError(f"{path}:{number}: text", f"found {script.text!r}", "the words to say")
        if not isinstance(script.id, str) or not script.id or script.id in scripts:
            raise DataError(f"{path}:{number}: id", f"found {script.id!r}", "an id of its own")
        scripts[script.id] = script
    return tuple(scripts.values())


def write_scripts(folder: Path, scripts: Sequence[Script]) -> None:
    """Put ``scripts.jsonl`` in place."""
    lines = (json.dumps(asdict(script), ensure_ascii=False) + "\n" for script in scripts)
    atomic_write_text(folder / SCRIPTS, "".join(lines))


async def make_scripts(
    folder: Path,
    number: int,
    writer: ScriptWriter,
    lexicon: Lexicon,
    *,
    limits: Limits | None = None,
    max_attempts: int = 6,
    on_progress: Callable[[int, int], None] | None = None,
) -> Written:
    """Fill a collection's ``scripts.jsonl`` up to ``number`` scripts.

    Raises
    ------
    UsageError: fewer are asked for than are there, or none.
    DataError: a file of the folder is not what it should be.
    """
    known = read_scripts(folder)
    if number < 1:
        raise UsageError("--number", f"found {number}", "at least 1")
    beyond = [script.id for script in known if script.id > script_id(number - 1)]
    if beyond:
        raise UsageError(
            "--number",
            f"{number}, and {folder / SCRIPTS} has {len(known)} already",
            "at least as many",
        )
    folder.mkdir(parents=True, exist_ok=True)
    seen: set[tuple[str, int, str]] = set()

    with JsonLines(
        folder / ATTEMPTS,
        keys=("id", "attempt", "draft"),
        entry="an attempt",
        note=lambda line, _: seen.add((line["id"], line["attempt"], line["draft"])),
    ) as attempts:

        def log(place: str, attempt: int, draft: str, faults: Sequence[Fault]) -> None:
            # Replayed after a kill, the same attempt is not noted twice.
            if (place, attempt, draft) not in seen:
                reasons = [asdict(fault) for fault in faults]
                attempts.append(
                    {"id": place, "attempt": attempt, "draft": draft, "reasons": reasons}
                )

        loop = ScriptLoop(
            writer, lexicon, limits or Limits(), max_attempts, known, log, on_progress
        )
        written = await loop.run(number)
    write_scripts(folder, written.scripts)
    return written
