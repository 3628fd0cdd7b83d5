"""Options of the commands that ask models: batch jobs instead of single calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from earwitness.cli.run_limits import RunLimits
    from earwitness.runs.batches import BatchOptions
    from earwitness.runs.runner import RunSummary
    from earwitness.tasks.running import PlannedRun

UNDER_WAY = 4
"""Exit code while batch jobs go on at the service."""

BatchOption = Annotated[
    bool,
    typer.Option(
        "--batch",
        help="Ask in the service's batch jobs (google, mistral): cheaper, within a day; the same command takes them up again.",
    ),
]
NoWaitOption = Annotated[
    bool,
    typer.Option(
        "--batch-no-wait",
        help="With --batch: fetch what is ready, submit the rest and leave; exit code 4 while jobs are under way.",
    ),
]
CancelOption = Annotated[
    bool,
    typer.Option(
        "--batch-cancel",
        help="With --batch: end this run's jobs, keep what they have answered, submit nothing.",
    ),
]
SizeOption = Annotated[
    int | None,
    typer.Option("--batch-size", min=1, help="Requests in a job at most (default: what fits)."),
]
LookOption = Annotated[
    float,
    typer.Option(
        "--batch-look", min=0.05, help="Seconds between looks at jobs, once they have got going."
    ),
]


@dataclass(frozen=True)
class Batching:
    """What these options amount to. ``options`` is None without ``--batch``."""

    options: BatchOptions | None

    def check(self, runs: tuple[PlannedRun, ...]) -> None:
        """Refuse models without a batch API before anything is asked of anyone.

        Raises
        ------
        UsageError: there is one.
        """
        from earwitness.models.batching import batches_of

        if self.options is not None:
            for run in runs:
                batches_of(run.model)

    def announce(self, run: PlannedRun, console: Console) -> None:
        """Say what is under way already, which the estimate counts too."""
        from earwitness.runs.batch_jobs import JobBook

        if self.options is None:
            return
        with JobBook(run.folder, read_only=True) as book:
            jobs = book.open_jobs()
        if jobs:
            console.print(
                f"note {run.name}: {sum(len(job.asked) for job in jobs)} requests are in {len(jobs)} batch jobs that are "
                "under way; they are taken up and not sent again",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )

    def conclude(self, run: PlannedRun, summary: RunSummary, console: Console) -> None:
        """Say what goes on at the service, and how to get it."""
        if not summary.under_way:
            return
        named = ", ".join(summary.batch_jobs[:3])
        more = f" and {len(summary.batch_jobs) - 3} more" if len(summary.batch_jobs) > 3 else ""
        cost = f", reckoned with {summary.under_way_usd:.4f} USD" if summary.under_way_usd else ""
        console.print(
            f"under way {run.name}: {summary.under_way} items in {len(summary.batch_jobs)} batch "
            f"job{'s' if len(summary.batch_jobs) > 1 else ''} ({named}{more}){cost}. Run the same command again to fetch the "
            "answers.",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )


def carry_out_all(
    runs: Sequence[PlannedRun],
    limits: RunLimits,
    carry_out: Callable[[PlannedRun, RunLimits], RunSummary],
) -> list[RunSummary]:
    """Carry out every run in turn; in batch jobs, all are submitted before any is waited for.

    A run that was interrupted is the last: the command ends with code 3 where others were to follow.
    """
    from dataclasses import replace

    from earwitness.tasks.running import INTERRUPTED

    def each_of(given: RunLimits) -> list[RunSummary]:
        done: list[RunSummary] = []
        for run in runs:
            done.append(carry_out(run, given))
            left = len(runs) - len(done)
            if done[-1].stopped == INTERRUPTED and left:
                further = f"{left} further run{'s were' if left > 1 else ' was'} not begun"
                typer.echo(f"{further}. Run the same command again to go on.", err=True)
                raise typer.Exit(3)
        return done

    options = limits.batch
    if options is not None and options.wait and not options.cancel and len(runs) > 1:
        each_of(replace(limits, batch=replace(options, wait=False)))
    return each_of(limits)


def only_under_way(summaries: Iterable[RunSummary]) -> bool:
    """Whether there is nothing to score yet: all that was asked is under way."""
    given = list(summaries)
    return any(each.under_way for each in given) and not any(
        each.replied + each.already_stored + each.failed for each in given
    )


def batching(
    *, batch: bool, no_wait: bool, cancel: bool, size: int | None, look_every_s: float
) -> Batching:
    """Read the options.

    Raises
    ------
    UsageError: one that means nothing without another, or two that exclude each other.
    """
    from earwitness.errors import UsageError
    from earwitness.runs.batches import BatchOptions

    for name, given in (
        ("--batch-no-wait", no_wait),
        ("--batch-cancel", cancel),
        ("--batch-size", size),
    ):
        if given and not batch:
            raise UsageError(name, "is given without --batch", "both", "Add --batch.")
    if no_wait and cancel:
        raise UsageError("--batch-cancel", "waits until the jobs have ended", "no --batch-no-wait")
    if not batch:
        return Batching(None)
    return Batching(
        BatchOptions(wait=not no_wait, cancel=cancel, max_requests=size, look_every_s=look_every_s)
    )
