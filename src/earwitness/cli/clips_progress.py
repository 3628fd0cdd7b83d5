"""One progress bar for the commands that make a clip set of recordings."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console


@contextmanager
def steps(console: Console, what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error that is told how many are done and how many there are."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        task = bars.add_task(what, total=None)

        def on_progress(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        yield on_progress
