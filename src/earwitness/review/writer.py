"""One connection writes; whatever asks for it in the same turn of the loop shares a commit.

A commit that reaches the disk costs a fraction of a millisecond to some milliseconds, however much is in it. With one
commit a request fifty people would queue for the disk. So requests are collected until the loop turns, done in one
transaction, each with a savepoint of its own (one that fails takes nothing of the others along), and answered after
the commit. All of it happens on the loop: handing work to a thread and back cost more than the work itself (2.9 against
1.7 CPU-ms an item, benchmarks/review_load.py).

While another process writes (``earwitness review links``), the collected requests wait and the loop goes on.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from earwitness.errors import EarwitnessError, UsageError
from earwitness.review.store import connect

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

RETRY_S = 0.02
PATIENCE_S = 20.0
"""How long a request waits for another process to finish writing."""


class Writer:
    """The only writer of a served folder.

    Examples
    --------
    ``done = await writer.run(lambda db: save_answer(db, 1, 7, {"note": ""}, 2.5))``
    """

    def __init__(self, folder: Path) -> None:
        self._db = connect(folder)
        # Waiting is done by the loop, not inside SQLite.
        self._db.execute("PRAGMA busy_timeout=0")
        self._waiting: list[tuple[Work[Any], asyncio.Future[Any]]] = []
        self._since = 0.0
        self.commits = 0

    async def run(self, work: Work[T]) -> T:
        """Do something in the next commit and return once it is on the disk.

        Raises
        ------
        UsageError: another process did not let go of the database.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._waiting.append((work, future))
        if len(self._waiting) == 1:
            self._since = time.monotonic()
            loop.call_soon(self._flush)
        return await future

    def close(self) -> None:
        """Let go of the database."""
        self._db.close()

    def _flush(self) -> None:
        batch = self._waiting
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if time.monotonic() - self._since < PATIENCE_S:
                asyncio.get_running_loop().call_later(RETRY_S, self._flush)
                return
            self._waiting = []
            busy = UsageError("review.db", f"cannot be written now ({error})")
            for _, future in batch:
                _settle(future, None, busy)
            return
        self._waiting = []
        done: list[tuple[asyncio.Future[Any], Any, BaseException | None]] = []
        try:
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
        except Exception as error:
            # A full disk: nothing of the batch was kept, and everybody in it is told.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            done = [(future, None, error) for _, future in batch]
        for future, value, failure in done:
            _settle(future, value, failure)


def _settle(future: asyncio.Future[Any], value: Any, failure: BaseException | None) -> None:
    if future.cancelled():  # whoever asked has gone; what was asked is done all the same
        return
    if failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(value)
