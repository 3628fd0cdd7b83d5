"""N items on this machine's processes, with progress, in order."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import wait
from typing import TypeVar

Given = TypeVar("Given")
Result = TypeVar("Result")


def default_workers() -> int:
    """Number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pool_map(
    function: Callable[[Given], Result],
    items: Sequence[Given],
    *,
    workers: int | None = None,
    chunk: int = 16,
    on_done: Callable[[int], None] | None = None,
) -> Iterator[Result]:
    """Apply a module-level function to every item, yielding results in the order of ``items``.

    Parameters
    ----------
    workers: processes; None means one per processor, 1 means in this process.
    chunk: items sent to a worker at a time.
    on_done: called with the number of finished items after each result.

    Processes are spawned afresh rather than forked, so that threads of the caller cannot be copied in a
    broken state. An exception in ``function`` is raised here, at its item. Workers end with this process, even if it
    is killed.
    """
    workers = workers or default_workers()
    if workers == 1 or len(items) <= chunk:
        for done, item in enumerate(items, start=1):
            yield function(item)
            if on_done:
                on_done(done)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        max_workers=workers, mp_context=context, initializer=end_with_parent
    ) as pool:
        for done, result in enumerate(pool.map(function, items, chunksize=chunk), start=1):
            yield result
            if on_done:
                on_done(done)


def end_with_parent() -> None:
    """Have this worker end at once when the process that started it is gone.

    A pool's workers wait for work on a pipe of which they hold both ends, so a killed parent would leave them behind
    for ever, with work in hand that the next run does as well.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()
