"""Carrying out a run: questions in, a run folder out. The same for every task."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from earwitness.errors import DataError, UsageError
from earwitness.models.batching import batches_of
from earwitness.models.payload import PayloadStore, estimate_bytes
from earwitness.models.prices import PriceTable, most_tokens
from earwitness.models.protocols import AudioModel
from earwitness.runs.batch_jobs import JobBook
from earwitness.runs.batches import BatchOptions, BatchRunner
from earwitness.runs.budgets import Price, Spending
from earwitness.runs.card import now
from earwitness.runs.folder import RunFolder, slug
from earwitness.runs.items import Item, Question, reply_key
from earwitness.runs.ledger import Ledger
from earwitness.runs.long_audio import LongAudio, fit
from earwitness.runs.preflight import preflight
from earwitness.runs.runner import Progress, Runner, RunnerSettings, RunSummary
from earwitness.runs.shards import Shard, shard_entry


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One model on one task: what will be asked and where it is kept."""

    folder: Path
    name: str
    card: Mapping[str, Any]
    questions: tuple[Question, ...]
    model: AudioModel


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run would do, known before the first call.

    ``audio_cost_usd`` is the part of the cost that is certain (per call and per minute of audio); ``cost_usd`` is an
    estimate of all of it, None where no price is known. ``price`` says where the price is from and of which day.
    ``long_audio`` says what is done with recordings that are too long, None where nothing is.
    """

    items: int
    stored: int
    calls: int
    audio_seconds: float
    payload_bytes: int
    largest_payload_bytes: int
    audio_cost_usd: float | None
    cost_usd: float | None = None
    price: str = ""
    long_audio: Mapping[str, Any] | None = None


def why_not(model: AudioModel, task: str, *, words: bool, choices: bool) -> str:
    """Why a model cannot be asked, empty where it can.

    Parameters
    ----------
    words: whether the input is text alone.
    choices: whether the prompt allows certain labels only.
    """
    limits = model.limits
    if limits.tasks and task not in limits.tasks:
        return f"the model answers {', '.join(limits.tasks)} alone"
    if limits.needs_choices and not choices:
        return "the model chooses among labels and writes nothing"
    if words and limits.needs_audio:
        return "the model cannot be asked without audio"
    if not words and not limits.takes_audio:
        return "the model takes words only"
    return ""


def run_name(model: str, prompt: str, default_prompt: str) -> str:
    """Name of a leaderboard row: the model, and the prompt where it is not the default."""
    return model if prompt == default_prompt else f"{model} [{prompt}]"


def folder_name(task: str, model: str, prompt: str) -> str:
    """Name of a run's folder."""
    return f"{task}--{slug(model)}--{slug(prompt)}"


def prepared(
    run: PlannedRun, *, shard: Shard | None = None, long_audio: LongAudio = "refuse"
) -> PlannedRun:
    """The run with only a shard's questions, and with recordings cut that are too long for the model.

    Raises
    ------
    UsageError: an item cannot be cut, or the shard would be empty.
    """
    questions, card, folder = run.questions, dict(run.card), run.folder
    if shard is not None:
        ids = [question.item.id for question in questions]
        questions = shard.part(questions)
        if not questions:
            raise UsageError(
                f"--shard {shard.index}/{shard.of}",
                f"has none of the {len(ids)} items of {run.name}",
                f"at most {len(ids)} shards",
            )
        card |= {"shard": shard_entry(shard, ids), "n_items": len(questions)}
        folder = folder.with_name(folder.name + shard.suffix)
    fitted = fit(questions, run.model.limits, long_audio, model=run.model.name)
    described = fitted.described()
    if described is not None:
        card["long_audio"] = described
    return replace(run, folder=folder, card=card, questions=fitted.questions)


def price_of(run: PlannedRun, table: PriceTable) -> Price | None:
    """What the run's model costs by a table, None where it does not say."""
    return table.price_of(run.model.name, run.model.settings)


def forecast(run: PlannedRun, price: Price | None = None) -> Forecast:
    """Count what is left to ask, without asking."""
    settings = run.model.settings
    stored = _stored_keys(run)
    todo = [
        question.item
        for question in run.questions
        if reply_key(question.item, run.model.name, settings) not in stored
    ]
    sizes = [estimate_bytes(item.audio, run.model.limits) for item in todo if item.audio]
    seconds = sum(item.audio.seconds for item in todo if item.audio)
    certain = estimated = None
    if price is not None:
        certain = len(todo) * price.call + seconds / 60 * price.audio_minute
        estimated = _estimate(todo, price, most_tokens(settings))
    return Forecast(
        items=len(run.questions),
        stored=len(run.questions) - len(todo),
        calls=len(todo),
        audio_seconds=seconds,
        payload_bytes=sum(sizes),
        largest_payload_bytes=max(sizes, default=0),
        audio_cost_usd=certain,
        cost_usd=estimated,
        price=describe_price(price),
        long_audio=run.card.get("long_audio"),
    )


def _estimate(items: Sequence[Item], price: Price, most: int | None) -> float:
    return sum(
        price.estimate(item.prompt, item.audio.seconds if item.audio else 0.0, most)
        for item in items
    )


def describe_price(price: Price | None) -> str:
    """Where a price is from, and of which day.

    >>> describe_price(Price(input=1.0, source="https://example.com/prices", as_of="2026-11-29"))
    'https://example.com/prices, read on 2026-11-29'
    """
    if price is None:
        return ""
    return f"{price.source}, read on {price.as_of}" if price.as_of else price.source


def _stored_keys(run: PlannedRun) -> set[str]:
    path = RunFolder(run.folder).ledger_path
    if not path.exists():
        return set()
    settings = run.model.settings
    keys = [reply_key(question.item, run.model.name, settings) for question in run.questions]
    with Ledger(path, read_only=True) as ledger:
        return {key for key in keys if ledger.has_reply(key)}


INTERRUPTED = "interrupted; run the same command again to go on"
"""Why a run stopped that the user, or the system, asked to end."""


@contextlib.contextmanager
def _interruptible(runner: Runner) -> Iterator[None]:
    """First Ctrl-C: start nothing more, let calls under way end. Second: drop them."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def on_signal() -> None:
        if runner.stopping and task is not None:
            task.cancel()
        runner.stop(INTERRUPTED)

    names = (signal.SIGINT, signal.SIGTERM)
    installed = []
    for name in names:
        # Only the main thread may install handlers; elsewhere (notebooks) the caller keeps its own.
        with contextlib.suppress(RuntimeError, ValueError):
            loop.add_signal_handler(name, on_signal)
            installed.append(name)
    try:
        yield
    finally:
        for name in installed:
            loop.remove_signal_handler(name)


async def carry_out(
    run: PlannedRun,
    settings: RunnerSettings,
    on_progress: Callable[[Progress], None] | None = None,
    *,
    spending: Spending | None = None,
    payloads: PayloadStore | None = None,
    batch: BatchOptions | None = None,
) -> RunSummary:
    """Check every item against the model, then ask those without a stored reply.

    Other processes of this machine may carry out the same run at the same time; nothing is asked twice.

    Parameters
    ----------
    spending: limits that several runs share.
    payloads: where encoded stimuli are kept.
    batch: ask in batch jobs of the service; None asks call by call.

    Raises
    ------
    UsageError: an item is outside the model's limits, another process asks other questions in this folder, the
        folder lies on a network file system, the model has no batch API, or batch jobs of this run are under way and
        ``batch`` is None.
    DataError: the run folder cannot be written.
    """
    items = [question.item for question in run.questions]
    preflight(items, run.model)
    if batch is not None:
        batches_of(run.model)
    folder = RunFolder(run.folder)
    with Ledger(folder.ledger_path, shared=True) as ledger, JobBook(run.folder) as jobs:
        if batch is None:
            _refuse_open_jobs(jobs)
        with ledger.latched():
            card = _take_place(run, folder, ledger)
        if batch is None:
            runner = Runner(
                run.model,
                ledger,
                settings,
                on_progress,
                spending=spending,
                payloads=payloads,
                held=jobs.asks,
            )
        else:
            runner = BatchRunner(
                run.model,
                ledger,
                settings,
                on_progress,
                jobs=jobs,
                options=batch,
                spending=spending,
                payloads=payloads,
            )
        try:
            with _interruptible(runner):
                summary = await runner.run(items)
        finally:
            await run.model.aclose()
        with ledger.latched():
            # Another process may have ended the run, or go on with it: what the ledger holds decides.
            ledger.sync()
            complete = all(
                ledger.has_reply(reply_key(item, run.model.name, run.model.settings))
                for item in items
            )
            jobs.sync()
            if jobs.counts.replies:
                card["batch"] = {
                    "jobs": sum(jobs.counts.closed.values()),
                    "replies": jobs.counts.replies,
                }
            _write_card(folder, {**card, "finished": now() if complete else None})
    return summary


def _refuse_open_jobs(jobs: JobBook) -> None:
    """Refuse to ask call by call what a batch job may be answering: it would be paid twice."""
    left = jobs.open_jobs()
    if left:
        count = sum(len(job.asked) for job in left)
        named = ", ".join(job.id or job.name for job in left[:3])
        more = f" and {len(left) - 3} more" if len(left) > 3 else ""
        raise UsageError(
            str(jobs.path),
            f"{count} requests are in batch jobs that are not closed ({named}{more})",
            "their answers, before anything is asked call by call",
            "Add --batch to fetch them, or --batch --batch-cancel to end them.",
        )


def _take_place(run: PlannedRun, folder: RunFolder, ledger: Ledger) -> dict[str, Any]:
    """Put card and questions in the folder, unless another process asks other questions there now."""
    model, settings = run.model.name, run.model.settings
    try:
        same = folder.asks_the_same(run.questions, model, settings)
    except DataError:
        # Questions of another version, or damaged ones: written anew from what is asked now.
        same = False
    if not same and not ledger.is_alone():
        raise UsageError(
            str(run.folder),
            "another process is working on this run with other items or settings",
            next_step="Use the same options, wait for it to end, or give this one another --out folder.",
        )
    card = _with_first_date(folder, run.card)
    try:
        folder.write(card, run.questions, model, settings)
    except OSError as error:
        raise _unwritable(folder, error) from error
    return card


def _write_card(folder: RunFolder, card: Mapping[str, Any]) -> None:
    try:
        folder.write_card(card)
    except OSError as error:
        raise _unwritable(folder, error) from error


def _unwritable(folder: RunFolder, error: OSError) -> DataError:
    return DataError(
        str(folder.path),
        f"cannot be written: {error.strerror or error}",
        next_step="Choose another --out folder or fix its permissions.",
    )


def _with_first_date(folder: RunFolder, card: Mapping[str, Any]) -> dict[str, Any]:
    """The card, dated by the first of several sittings on the same run."""
    try:
        before = folder.card()
    except DataError:
        return dict(card)
    same = all(
        before.get(field) == card.get(field) for field in ("model", "settings", "prompt", "clips")
    )
    return {**card, "started": before["started"]} if same and "started" in before else dict(card)


def unused_replies(run: PlannedRun) -> int:
    """Stored replies that answer other settings, prompts or audio than those asked for now."""
    path = RunFolder(run.folder).ledger_path
    if not path.exists():
        return 0
    with Ledger(path, read_only=True) as ledger:
        stored = ledger.counts.replies
    return stored - len(_stored_keys(run))
