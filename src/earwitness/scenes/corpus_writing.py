"""Writing a corpus: writers by name, logs and ledger in the folder, the loop between, files at the end.

Conventions
-----------
Everything a corpus is compared by is written by atomic rename once the loop has ended; until then a run adds
only to logs. A shard (``i`` of ``n``) writes no such file: it fills logs of its own, and the run without
shards that follows finds every answer there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from earwitness.errors import UsageError
from earwitness.runs.folder import write_atomically
from earwitness.runs.items import digest
from earwitness.runs.jsonlines import JsonLines
from earwitness.runs.ledger import Ledger
from earwitness.runs.runner import RunnerSettings
from earwitness.scenes.bank import Bank
from earwitness.scenes.corpus import (
    ABANDONED,
    ATTEMPTS,
    CALLS,
    CANDIDATES,
    CONFIG,
    DIALOGUES,
    REFILLS,
    SHARDS,
    TEMPLATES,
    Corpus,
    write_abandoned,
    write_dialogues,
    write_scenarios,
    write_templates,
)
from earwitness.scenes.corpus_card import write_card
from earwitness.scenes.corpus_config import CorpusConfig, LoopUsed, WriterUsed, versions_in_use
from earwitness.scenes.corpus_prompts import KEPT, keep_prompts, prompts_in_use
from earwitness.scenes.dialogue_records import Dialogue, dialogue_to_json
from earwitness.scenes.plan import template_order
from earwitness.scenes.scenario import Scenario
from earwitness.scenes.writers.calls import Meter, TextCaller
from earwitness.scenes.writers.prompts import FOLDER, NAMES, WriterPrompts
from earwitness.scenes.writing import Gate, Violation, Writer
from earwitness.scenes.writing_loop import (
    LoopProgress,
    TemplateSource,
    WritingLoop,
    WritingResult,
)

PHRASEBOOK = "offline/phrasebook"


@dataclass(frozen=True, slots=True)
class WritingOrder:
    """Who writes a corpus, and how.

    Attributes
    ----------
    options: of every model; ``topic.KEY`` and ``templates.KEY`` are for one of them alone.
    topic_writer, templates_writer: None means the writer of the dialogues, and the bank's own situations.
    limit: only the first so many places.
    shard: ``(i, n)``, ``i`` from 1: every ``n``-th place, for logs of its own.
    prompts: folder with prompts of the user's own; None means those kept in the corpus, else what ships.
    replace: go on although another writer's dialogues are there.
    """

    writer: str = PHRASEBOOK
    options: Mapping[str, Any] = field(default_factory=dict)
    topic_writer: str | None = None
    templates_writer: str | None = None
    loop: LoopUsed = field(default_factory=LoopUsed)
    limit: int | None = None
    shard: tuple[int, int] | None = None
    workers: int | None = None
    calls: RunnerSettings = field(default_factory=RunnerSettings)
    prompts: Path | None = None
    models_file: Path | None = None
    replace: bool = False


def order_of(corpus: Corpus, **changes: Any) -> WritingOrder:
    """The order a corpus was written by, for stages that have scenes written again.

    Raises
    ------
    UsageError: it was not written yet.
    """
    config = corpus.config
    if config.writer is None:
        raise UsageError(
            str(corpus.folder),
            "has no dialogues yet",
            wanted="a written corpus",
            next_step=f"Write them: earwitness scenes write {corpus.folder}",
        )
    values: dict[str, Any] = {
        "writer": config.writer.name,
        "options": config.writer.options,
        "topic_writer": config.topic_writer.name if config.topic_writer else None,
        "templates_writer": config.templates_writer.name if config.templates_writer else None,
        "loop": config.loop or LoopUsed(),
    }
    return WritingOrder(**{**values, **changes})


async def write_corpus(
    corpus: Corpus,
    bank: Bank,
    order: WritingOrder,
    *,
    gate: Gate | None = None,
    bank_folder: Path | None = None,
    on_progress: Callable[[LoopProgress], None] | None = None,
    meter: Meter | None = None,
) -> WritingResult:
    """Write every dialogue of a corpus, or go on where an earlier run ended.

    Parameters
    ----------
    gate: the judge with its threshold; None accepts what keeps the rules.
    bank_folder: where ``bank`` was loaded from; None means the one that ships.
    meter: counts calls, tokens and cost.

    Raises
    ------
    UsageError: another writer's dialogues are there, an option is wrong, or another process is at work.
    DataError: a file of the corpus is broken.
    """
    whole, bank = bank, corpus.for_cast(bank)
    scenarios = corpus.scenarios()[: order.limit]
    if order.shard is not None:
        scenarios = scenarios[order.shard[0] - 1 :: order.shard[1]]
    logs = logs_folder(corpus, order.shard)
    with corpus.lock(shared=order.shard is not None), contextlib.ExitStack() as stack:
        journal = stack.enter_context(_journal(logs))
        ledgers = _Ledgers(corpus, logs, stack)
        team = _open_team(corpus, bank, order, ledgers, meter or Meter(), bank_folder)
        try:
            config = _config_for(corpus, order, team)
            if team.prompts is not None:
                keep_prompts(corpus, team.prompts, NAMES, FOLDER)
            if order.shard is None:
                unjudged = config if gate else config.model_copy(update={"judge": None})
                write_atomically(corpus.path(CONFIG), unjudged.to_yaml())
            loop = WritingLoop(
                scenarios,
                bank,
                team.writer,
                team.templates,
                journal,
                seed=config.seed,
                loop=order.loop,
                gate=gate,
                bank_folder=bank_folder,
                workers=order.workers,
                on_progress=on_progress,
            )
            result = await loop.run()
        finally:
            await team.aclose()
        if order.shard is None:
            _put(corpus, result)
            if gate is not None:
                judged = config.model_copy(update={"judge": dict(gate.identity)})
                write_atomically(corpus.path(CONFIG), judged.to_yaml())
            write_card(corpus, whole)
    return result


def _put(corpus: Corpus, result: WritingResult) -> None:
    write_templates(corpus.path(TEMPLATES), result.templates)
    write_scenarios(corpus.path(REFILLS), result.refills)
    write_abandoned(corpus.path(ABANDONED), result.abandoned)
    write_dialogues(corpus.path(DIALOGUES), result.dialogues)


def logs_folder(corpus: Corpus, shard: tuple[int, int] | None) -> Path:
    """Where a run keeps its logs: in the corpus, or in a folder of the shard's own below it."""
    if shard is None:
        return corpus.folder
    return corpus.folder / SHARDS / f"{shard[0]:04d}-of-{shard[1]:04d}"


class _Ledgers:
    """The ledger that is written, opened when a model is first asked, and those that only answer."""

    def __init__(self, corpus: Corpus, logs: Path, stack: contextlib.ExitStack) -> None:
        self._corpus = corpus
        self._path = logs / CALLS
        self._stack = stack
        self._own: Ledger | None = None
        self._others: list[Ledger] = []

    def open(self) -> tuple[Ledger, Sequence[Ledger]]:
        if self._own is None:
            self._own = self._stack.enter_context(Ledger(self._path))
            self._others = [
                self._stack.enter_context(Ledger(path, read_only=True))
                for path in self._corpus.logs(CALLS)
                if path != self._path
            ]
        return self._own, self._others


@dataclass(frozen=True, slots=True)
class _Team:
    """The writers of a run, what ``corpus.yaml`` says of them, and the folder of their prompts if they have any."""

    writer: Writer
    templates: TemplateSource
    used: Mapping[str, WriterUsed | None]
    prompts: Path | None
    closing: tuple[TextCaller, ...] = ()

    async def aclose(self) -> None:
        await self.writer.aclose()
        for caller in self.closing:
            await caller.aclose()


def _open_team(
    corpus: Corpus,
    bank: Bank,
    order: WritingOrder,
    ledgers: _Ledgers,
    meter: Meter,
    bank_folder: Path | None,
) -> _Team:
    from earwitness.scenes.writers.templates import BankTemplates, ChatTemplates

    seed = corpus.config.seed
    folder = prompts_in_use(corpus, order.prompts, NAMES, FOLDER)
    prompts = WriterPrompts(bank, seed, folder)

    def caller(name: str, part: str) -> TextCaller:
        from earwitness.models.registry import open_text_model

        options = _options_for(order.options, part)
        model = open_text_model(name, options, models_file=order.models_file)
        own, others = ledgers.open()
        return TextCaller(model, own, order.calls, others=others, meter=meter)

    used: dict[str, WriterUsed | None] = {"topic_writer": None, "templates_writer": None}
    closing: list[TextCaller] = []
    if order.writer == PHRASEBOOK:
        from earwitness.scenes.writers.offline import PhrasebookTemplates

        templates: TemplateSource = PhrasebookTemplates(bank)
    elif order.templates_writer is None:
        templates = BankTemplates(bank, seed)
    else:
        asked = caller(order.templates_writer, "templates")
        closing.append(asked)
        themes = sum(len(category.themes) for category in bank.categories)
        names = [theme for _, theme, _ in islice(template_order(bank, seed), themes)]
        templates = ChatTemplates(asked, prompts, names)
        used["templates_writer"] = _used(asked, prompts.hashes("templates"))
    writer = _open_writer(order, bank, seed, prompts, caller, used, bank_folder)
    used["writer"] = WriterUsed(
        name=writer.name,
        family=writer.family,
        options=dict(order.options),
        settings=dict(writer.settings),
        prompts=dict(writer.prompts),
    )
    asks = order.writer.partition("/")[0] != "offline"
    return _Team(writer, templates, used, folder if asks else None, tuple(closing))


def _open_writer(
    order: WritingOrder,
    bank: Bank,
    seed: int,
    prompts: Any,
    caller: Callable[[str, str], TextCaller],
    used: dict[str, WriterUsed | None],
    bank_folder: Path | None,
) -> Writer:
    if order.writer.partition("/")[0] == "offline":
        return _open_offline(order, bank, seed, bank_folder)
    from earwitness.scenes.writers.chat import ChatWriter

    dialogues = caller(order.writer, "dialogue")
    if order.topic_writer is None and not any(key.startswith("topic.") for key in order.options):
        return ChatWriter(dialogues, dialogues, prompts, bank)
    topics = caller(order.topic_writer or order.writer, "topic")
    used["topic_writer"] = _used(topics, prompts.hashes("topic"))
    return ChatWriter(dialogues, topics, prompts, bank)


def _open_offline(order: WritingOrder, bank: Bank, seed: int, bank_folder: Path | None) -> Writer:
    from earwitness.scenes.writers.offline import NAME, PhrasebookWriter

    if order.writer != NAME:
        raise UsageError(
            f"writer {order.writer!r}",
            "there is no such offline writer",
            f"{NAME}, or adapter/NAME",
        )
    for option, other in (
        ("--topic-writer", order.topic_writer),
        ("--templates-writer", order.templates_writer),
    ):
        if other is not None:
            raise UsageError(
                option,
                f"{other} beside {NAME}, which composes situation, topic and talk together",
                "a model as --writer too, or neither",
            )
    if order.prompts is not None:
        raise UsageError(
            "--prompts",
            f"given with {NAME}, which asks nobody",
            "a model as --writer, or no prompts",
        )
    if order.options:
        raise UsageError(NAME, f"option {next(iter(order.options))!r}", "no options")
    return PhrasebookWriter(bank, seed, bank_folder=bank_folder, workers=order.workers)


def _options_for(options: Mapping[str, Any], part: str) -> dict[str, Any]:
    """Options of one model: those for all, and over them those with its prefix."""
    parts = ("dialogue", "topic", "templates")
    common = {key: value for key, value in options.items() if key.partition(".")[0] not in parts}
    own = {
        key.partition(".")[2]: value for key, value in options.items() if key.startswith(f"{part}.")
    }
    return common | own


def _used(caller: TextCaller, prompts: Mapping[str, str]) -> WriterUsed:
    model = caller.model
    return WriterUsed(
        name=model.name, family=model.family, settings=dict(model.settings), prompts=dict(prompts)
    )


def _config_for(corpus: Corpus, order: WritingOrder, team: _Team) -> CorpusConfig:
    """The configuration with these writers; refused where others have written already."""
    config = corpus.config
    written = corpus.path(DIALOGUES).exists() and config.writer is not None
    if written and not order.replace:
        for name, now in team.used.items():
            before = getattr(config, name)
            if _identity(before) != _identity(now):
                part = name.replace("_", " ")
                if before and now and _identity(before)[:-1] == _identity(now)[:-1]:
                    raise UsageError(
                        str(corpus.folder),
                        f"was written with other prompts of the {part} ({_prompts_of(before)}), and these are "
                        f"{_prompts_of(now)}",
                        wanted="the same prompts",
                        next_step=f"Leave --prompts out to go on with those of the corpus (in {KEPT}/), or have "
                        "everything written anew with --replace (stored replies stay).",
                    )
                raise UsageError(
                    str(corpus.folder),
                    f"was written with {_says(before)} as {part}, and this is {_says(now)}",
                    wanted="the same writers and settings",
                    next_step="Repeat the earlier options, or have everything written anew with "
                    "--replace (stored replies stay).",
                )
    return config.model_copy(
        update={**team.used, "loop": order.loop, "versions": versions_in_use()}
    )


def _identity(used: WriterUsed | None) -> Any:
    # Options that change nothing of what is written (a time-out) may differ.
    return None if used is None else (used.name, used.family, used.settings, used.prompts)


def _prompts_of(used: WriterUsed) -> str:
    return ", ".join(f"{name} {digest_[:8]}" for name, digest_ in used.prompts.items())


def _says(used: WriterUsed | None) -> str:
    if used is None:
        return "none"
    told = ", ".join(f"{key}={value}" for key, value in used.settings.items())
    return f"{used.name}" + (f" ({told})" if told else "")


class _Journal:
    """Candidates and attempts as logs; what a replay tells again is not written again."""

    def __init__(self, candidates: Path, attempts: Path) -> None:
        self._seen: set[str] = set()
        self._candidates = JsonLines(
            candidates,
            keys=("scenario", "attempt", "timeline"),
            entry="a candidate",
            note=lambda line, offset: self._note("candidate", line, offset),
        )
        self._attempts = JsonLines(
            attempts,
            keys=("scenario", "attempt", "outcome"),
            entry="an attempt",
            note=lambda line, offset: self._note("attempt", line, offset),
        )

    def _note(self, kind: str, line: Mapping[str, Any], offset: int) -> None:
        del offset
        self._seen.add(digest([kind, line]))

    def candidate(self, dialogue: Dialogue, attempt: int) -> None:
        said = dialogue_to_json(dialogue)
        line = {"scenario": said.pop("scenario"), "attempt": attempt, **said}
        self._write("candidate", self._candidates, line)

    def attempt(
        self, scenario: str, attempt: int, outcome: str, reasons: Sequence[Violation]
    ) -> None:
        told = [{"code": r.code, "where": r.where, "message": r.message} for r in reasons]
        line = {"scenario": scenario, "attempt": attempt, "outcome": outcome, "reasons": told}
        self._write("attempt", self._attempts, line)

    def _write(self, kind: str, log: JsonLines, line: Mapping[str, Any]) -> None:
        if digest([kind, line]) not in self._seen:
            log.append(line)

    def close(self) -> None:
        self._candidates.close()
        self._attempts.close()


@contextlib.contextmanager
def _journal(folder: Path) -> Iterator[_Journal]:
    journal = _Journal(folder / CANDIDATES, folder / ATTEMPTS)
    try:
        yield journal
    finally:
        journal.close()


def occupied_scenarios(result: WritingResult) -> tuple[Scenario, ...]:
    """Scenarios of the accepted dialogues, in the order of the plan."""
    return tuple(place.scenario for place in result.places if place.dialogue and not place.waiting)
