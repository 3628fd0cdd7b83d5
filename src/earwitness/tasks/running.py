"""Carrying out a run: questions in, a run folder out. The same for every task."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earwitness.errors import DataError
from earwitness.models.payload import estimate_bytes
from earwitness.models.protocols import AudioModel
from earwitness.runs.budgets import Price
from earwitness.runs.card import now
from earwitness.runs.folder import RunFolder, slug
from earwitness.runs.items import Question, reply_key
from earwitness.runs.ledger import Ledger
from earwitness.runs.preflight import preflight
from earwitness.runs.runner import Progress, Runner, RunnerSettings, RunSummary


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
    """What a run would do, known before the first call."""

    items: int
    stored: int
    calls: int
    audio_seconds: float
    payload_bytes: int
    largest_payload_bytes: int
    audio_cost_usd: float | None


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


def forecast(run: PlannedRun, price: Price | None = None) -> Forecast:
    """Count what is left to ask, without asking.

    ``audio_cost_usd`` is the part of the cost known beforehand: per call and per minute of audio.
    """
    settings = run.model.settings
    stored = _stored_keys(run)
    todo = [
        question.item
        for question in run.questions
        if reply_key(question.item, run.model.name, settings) not in stored
    ]
    sizes = [estimate_bytes(item.audio, run.model.limits) for item in todo if item.audio]
    seconds = sum(item.audio.seconds for item in todo if item.audio)
    cost = None
    if price is not None:
        cost = len(todo) * price.call + seconds / 60 * price.audio_minute
    return Forecast(
        items=len(run.questions),
        stored=len(run.questions) - len(todo),
        calls=len(todo),
        audio_seconds=seconds,
        payload_bytes=sum(sizes),
        largest_payload_bytes=max(sizes, default=0),
        audio_cost_usd=cost,
    )


def _stored_keys(run: PlannedRun) -> set[str]:
    path = RunFolder(run.folder).ledger_path
    if not path.exists():
        return set()
    settings = run.model.settings
    keys = [reply_key(question.item, run.model.name, settings) for question in run.questions]
    with Ledger(path, read_only=True) as ledger:
        return {key for key in keys if ledger.has_reply(key)}


@contextlib.contextmanager
def _interruptible(runner: Runner) -> Iterator[None]:
    """First Ctrl-C: start nothing more, let calls under way end. Second: drop them."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def on_signal() -> None:
        if runner.stopping and task is not None:
            task.cancel()
        runner.stop("interrupted; run the same command again to go on")

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
) -> RunSummary:
    """Check every item against the model, then ask those without a stored reply.

    Raises
    ------
    UsageError: an item is outside the model's limits, or another process works on this run.
    DataError: the run folder cannot be written.
    """
    items = [question.item for question in run.questions]
    preflight(items, run.model)
    folder = RunFolder(run.folder)
    card = _with_first_date(folder, run.card)
    try:
        folder.write(card, run.questions, run.model.name, run.model.settings)
    except OSError as error:
        raise DataError(
            str(run.folder),
            f"cannot be written: {error.strerror or error}",
            next_step="Choose another --out folder or fix its permissions.",
        ) from error
    with Ledger(folder.ledger_path) as ledger:
        runner = Runner(run.model, ledger, settings, on_progress)
        try:
            with _interruptible(runner):
                summary = await runner.run(items)
        finally:
            await run.model.aclose()
    folder.write_card({**card, "finished": now() if summary.complete else None})
    return summary


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
