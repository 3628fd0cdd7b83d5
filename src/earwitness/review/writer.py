"""One thread writes; whatever waits meanwhile goes into its next commit.

A commit that reaches the disk costs milliseconds, however much is in it. With one commit a request fifty people would
queue for the disk; so the requests that came in during a commit share the next one. Each has a savepoint of its own:
one that fails takes nothing of the others along. Nobody is answered before the commit.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from earwitness.errors import EarwitnessError
from earwitness.review.store import connect

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

MOST_TOGETHER = 64
"""Requests in one commit; more would make the first of them wait too long."""


class Writer:
    """The only writer of a served folder.

    Examples
    --------
    ``done = await writer.run(lambda db: save_answer(db, 1, 7, {"note": ""}, 2.5))``
    """

    def __init__(self, folder: Path) -> None:
        self._queue: queue.SimpleQueue[tuple[Work[Any], Future[Any]] | None] = queue.SimpleQueue()
        self._db = connect(folder)
        self._thread = threading.Thread(target=self._serve, name="review-writer", daemon=True)
        self._thread.start()
        self.commits = 0

    async def run(self, work: Work[T]) -> T:
        """Do something in the next commit and return once it is on the disk."""
        future: Future[T] = Future()
        self._queue.put((work, future))
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Finish what is queued and let go of the database."""
        self._queue.put(None)
        self._thread.join()
        self._db.close()

    def _serve(self) -> None:
        open_ = True
        while open_:
            entry = self._queue.get()
            batch = []
            while entry is not None:
                batch.append(entry)
                if len(batch) == MOST_TOGETHER:
                    break
                try:
                    entry = self._queue.get_nowait()
                except queue.Empty:
                    break
            else:
                open_ = False
            if batch:
                self._commit(batch)

    def _commit(self, batch: list[tuple[Work[Any], Future[Any]]]) -> None:
        done: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for work, future in batch:
                self._db.execute("SAVEPOINT one")
                try:
                    done.append((future, work(self._db), None))
                except (EarwitnessError, sqlite3.Error, ValueError, TypeError, KeyError) as error:
                    self._db.execute("ROLLBACK TO one")
                    done.append((future, None, error))
                self._db.execute("RELEASE one")
            self._db.execute("COMMIT")
            self.commits += 1
        except BaseException as error:
            # A full disk, a lock that never came free: nothing was kept, and everybody is told.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            done = [(future, None, error) for _, future in batch]
        for future, value, failure in done:
            if not future.set_running_or_notify_cancel():
                continue
            if failure is not None:
                future.set_exception(failure)
            else:
                future.set_result(value)
