"""Commits are shared, failures are not, and another process that writes is waited for."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from earwitness.errors import UsageError
from earwitness.review import writer as module
from earwitness.review.project import Project, write_project
from earwitness.review.store import Item, add_items, connect, count, opened
from earwitness.review.writer import Writer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_project(tmp_path, Project("label", "t"))
    with opened(tmp_path, create=True) as db:
        add_items(db, [Item("first", "c", {}, {})])
    return tmp_path


def add(key: str) -> module.Work[int]:
    return lambda db: add_items(db, [Item(key, "c", {}, {})])


def test_what_comes_together_is_committed_together(folder: Path) -> None:
    async def go() -> list[int]:
        writer = Writer(folder)
        added = await asyncio.gather(*(writer.run(add(f"k{n}")) for n in range(50)))
        assert writer.commits == 1
        await writer.run(add("last"))
        assert writer.commits == 2
        writer.close()
        return added

    assert asyncio.run(go()) == [1] * 50
    with opened(folder) as db:
        assert count(db, "items") == 52


def test_one_that_fails_takes_nothing_along(folder: Path) -> None:
    def fails(db: sqlite3.Connection) -> None:
        add_items(db, [Item("half", "c", {}, {})])
        raise ValueError("no")

    async def go() -> list[object]:
        writer = Writer(folder)
        found = await asyncio.gather(
            writer.run(add("a")), writer.run(fails), writer.run(add("b")), return_exceptions=True
        )
        writer.close()
        return list(found)

    first, second, third = asyncio.run(go())
    assert (first, third) == (1, 1)
    assert isinstance(second, ValueError)
    with opened(folder) as db:
        assert {key for (key,) in db.execute("SELECT key FROM items")} == {"first", "a", "b"}


def test_a_commit_that_fails_is_told_to_everybody(folder: Path) -> None:
    class Full(sqlite3.Connection):
        """A disk that is full when it comes to the commit."""

        def execute(self, sql: str, *values: object) -> sqlite3.Cursor:
            if sql == "COMMIT":
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(sql, *values)  # type: ignore[arg-type]

    async def go() -> list[object]:
        writer = Writer(folder)
        whole = writer._db
        writer._db = sqlite3.connect(folder / "review.db", factory=Full, isolation_level=None)
        found = await asyncio.gather(
            writer.run(add("a")), writer.run(add("b")), return_exceptions=True
        )
        writer.close()
        writer._db = whole
        assert await writer.run(add("c")) == 1
        writer.close()
        return list(found)

    assert [str(error) for error in asyncio.run(go())] == ["database or disk is full"] * 2
    with opened(folder) as db:
        assert {key for (key,) in db.execute("SELECT key FROM items")} == {"first", "c"}


def test_another_that_writes_is_waited_for(folder: Path) -> None:
    async def go() -> int:
        writer, other = Writer(folder), connect(folder)
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.ensure_future(writer.run(add("a")))
        await asyncio.sleep(0.1)
        # The loop is free meanwhile, and nothing is confirmed.
        assert not waiting.done()
        other.execute("COMMIT")
        added = await waiting
        writer.close()
        other.close()
        return added

    assert asyncio.run(go()) == 1


def test_one_that_never_ends_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)

    async def go() -> None:
        writer, other = Writer(folder), connect(folder)
        other.execute("BEGIN IMMEDIATE")
        try:
            with pytest.raises(UsageError, match=r"review\.db: cannot be written now"):
                await writer.run(add("a"))
            other.execute("ROLLBACK")
            assert await writer.run(add("b")) == 1
        finally:
            writer.close()
            other.close()

    asyncio.run(go())


def test_whoever_has_gone_changes_nothing_for_the_others(folder: Path) -> None:
    async def go() -> int:
        writer = Writer(folder)
        gone = asyncio.ensure_future(writer.run(add("gone")))
        await asyncio.sleep(0)
        other = asyncio.ensure_future(writer.run(add("other")))
        gone.cancel()
        added = await other
        writer.close()
        return added

    assert asyncio.run(go()) == 1
