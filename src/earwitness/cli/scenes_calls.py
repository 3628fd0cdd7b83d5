"""What commands have in common that ask text models for a corpus: options, progress, how they end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from earwitness.runs.runner import RunnerSettings
    from earwitness.scenes.writers.calls import Meter
    from earwitness.scenes.writing_loop import LoopProgress, WritingResult

BankFolder = Annotated[
    Path | None,
    typer.Option(
        "--bank", metavar="DIR", show_default="the bank that ships", help="Bank of the plan."
    ),
]
ModelsFile = Annotated[
    Path | None,
    typer.Option(
        "--models-file", show_default="models.yaml, if there is one", help="File of named models."
    ),
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N scenes.")]
Shard = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Only every N-th scene, into logs of its own; afterwards run once without it.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", min=1, show_default="one per processor", help="Processes."),
]
Concurrency = Annotated[int, typer.Option("--concurrency", min=1, help="Calls at the same time.")]
MaxRetries = Annotated[
    int, typer.Option("--max-retries", min=0, help="Further tries of a call that failed.")
]
Rate = Annotated[float | None, typer.Option("--rate", min=0.01, help="Calls a minute at most.")]
Timeout = Annotated[
    float, typer.Option("--timeout", min=0.1, help="Seconds to wait for one reply.")
]
MaxCalls = Annotated[
    int | None, typer.Option("--max-calls", min=1, help="Stop before more calls than this.")
]
MaxCost = Annotated[
    float | None,
    typer.Option("--max-cost", min=0, help="Stop before more US dollars than this."),
]
Price = Annotated[
    str | None,
    typer.Option("--price", help="input=2.5,output=10 (USD per million tokens), call=..."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]

SHIPPED = "default"
"""As a value of ``--prompts``: those that ship, in place of ones kept in the corpus."""


def call_settings(
    *,
    concurrency: int,
    max_retries: int,
    rate: float | None,
    timeout: float,
    max_calls: int | None = None,
    max_cost: float | None = None,
    price: str | None = None,
) -> RunnerSettings:
    """The options of calls as the runner takes them."""
    from earwitness.runs.budgets import parse_price
    from earwitness.runs.runner import RunnerSettings

    return RunnerSettings(
        concurrency=concurrency,
        max_retries=max_retries,
        calls_per_minute=rate,
        call_timeout_s=timeout,
        max_calls=max_calls,
        max_cost_usd=max_cost,
        price=parse_price(price) if price else None,
    )


def shard_of(text: str | None, limit: int | None) -> tuple[int, int] | None:
    """The part ``--shard I/N`` names; refused beside ``--limit``."""
    from earwitness.errors import UsageError

    if text is None:
        return None
    first, slash, second = text.partition("/")
    if not slash or not first.isdigit() or not second.isdigit():
        raise UsageError("--shard", repr(text), "I/N, such as 1/8")
    number, of = int(first), int(second)
    if not 1 <= number <= of:
        raise UsageError("--shard", repr(text), f"a number from 1/{of} to {of}/{of}")
    if limit:
        raise UsageError("--limit and --shard", "both given", "one of them")
    return number, of


def prompts_folder(given: Path | None) -> Path | None:
    """The folder ``--prompts`` names; ``default`` is the one that ships."""
    if given is None or str(given) != SHIPPED or given.is_dir():
        return given
    from earwitness.scenes.writers.prompts import FOLDER

    return FOLDER


class progress_bar:  # noqa: N801
    """A line that shows stage, scenes, attempts, tokens and cost; use as a context manager."""

    def __init__(self, console: Console, meter: Meter) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bars

        self._meter = meter
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[detail]}"),
            console=console,
        )
        self._last: LoopProgress | None = None
        meter.on_change = self._metered

    def __enter__(self) -> Callable[[LoopProgress], None]:
        self._bars.start()
        self._line = self._bars.add_task("starting", total=None, detail="")
        return self._show

    def __exit__(self, *problem: object) -> None:
        self._bars.stop()

    def _metered(self, meter: Meter) -> None:
        del meter
        if self._last is not None:
            self._show(self._last)

    def _show(self, progress: LoopProgress) -> None:
        self._last = progress
        detail = [f"{progress.accepted} of {progress.places} stand"]
        if progress.rejected:
            detail.append(f"{progress.rejected.total()} faults")
        if progress.abandoned:
            detail.append(f"{progress.abandoned} abandoned")
        detail += usage_words(self._meter)
        if self._meter.waiting:
            detail.append(self._meter.waiting)
        self._bars.update(
            self._line,
            description=progress.stage,
            completed=progress.done,
            total=progress.of,
            detail=", ".join(detail),
        )


def usage_words(meter: Meter) -> list[str]:
    """Calls, tokens and cost in words; nothing where nothing was asked."""
    if not meter.calls:
        return []
    words = [f"{meter.calls} calls", f"{meter.input_tokens:,}+{meter.output_tokens:,} tokens"]
    if meter.cached_tokens:
        words.append(f"{meter.cached_tokens:,} of them from a cache")
    if meter.cost_usd:
        words.append(f"{meter.cost_usd:.4f} USD")
    return words


def end_by_what_is_left(
    result: WritingResult, meter: Meter, console: Console, *, help_with: str
) -> None:
    """Say what is left and exit by it: 3 where scenes wait, 1 where places stay empty.

    Parameters
    ----------
    help_with: what else may fill an empty place, besides more attempts.
    """
    failed, lost = result.failed, result.lost
    if meter.stopped:
        console.print(f"[bold red]stopped[/] {meter.stopped}", highlight=False)
    if failed:
        name, reason = next(iter(failed.items()))
        console.print(
            f"[yellow]incomplete[/] {len(failed)} scenes wait; {name}: {reason}",
            highlight=False,
            soft_wrap=True,
        )
        console.print("Run the same command again to go on.", highlight=False)
        raise typer.Exit(3)
    if lost:
        console.print(
            f"[bold red]error[/] {len(lost)} places stay empty, such as {lost[0]}; more attempts "
            f"(--max-attempts, --max-refills){help_with} may fill them.",
            highlight=False,
            soft_wrap=True,
        )
        raise typer.Exit(1)
