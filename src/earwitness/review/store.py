"""``review.db``: who answers what, and what was answered.

SQLite with a write-ahead log, every commit on the disk before it is told to anybody. Answers are rows of (person, item),
so that sending one twice leaves one; each version of an answer stays in ``history``.

Columns named ``gold`` hold what people must not see. Only :mod:`earwitness.review.results` and the export read them;
what pages show comes from ``shown`` alone.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from earwitness.errors import DataError, UsageError
from earwitness.review.project import DATABASE

FORMAT = 1
Role = Literal["annotator", "organiser"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS items(
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, cluster TEXT NOT NULL, owner TEXT NOT NULL,
  shown TEXT NOT NULL, gold TEXT NOT NULL, audio TEXT NOT NULL, sha256 TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS people(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, role TEXT NOT NULL, token_hash TEXT NOT NULL UNIQUE,
  made_at TEXT NOT NULL, seen_at TEXT, revoked_at TEXT);
CREATE TABLE IF NOT EXISTS assignments(
  person INTEGER NOT NULL REFERENCES people, position INTEGER NOT NULL, item INTEGER NOT NULL REFERENCES items,
  PRIMARY KEY(person, position), UNIQUE(person, item)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS assignments_of_item ON assignments(item);
CREATE TABLE IF NOT EXISTS answers(
  person INTEGER NOT NULL REFERENCES people, item INTEGER NOT NULL REFERENCES items,
  payload TEXT NOT NULL, at TEXT NOT NULL, seconds REAL, PRIMARY KEY(person, item)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS answers_of_item ON answers(item);
CREATE TABLE IF NOT EXISTS history(
  id INTEGER PRIMARY KEY, person INTEGER NOT NULL, item INTEGER NOT NULL, act TEXT NOT NULL,
  payload TEXT NOT NULL, at TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS history_of_person ON history(person);
CREATE TABLE IF NOT EXISTS consents(
  person INTEGER NOT NULL REFERENCES people, version TEXT NOT NULL, text_sha256 TEXT NOT NULL, at TEXT NOT NULL,
  PRIMARY KEY(person, version)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS recordings(
  item INTEGER PRIMARY KEY REFERENCES items, sha256 TEXT NOT NULL, seconds REAL NOT NULL, rate INTEGER NOT NULL,
  peak REAL NOT NULL, rms_dbfs REAL NOT NULL, consent_version TEXT NOT NULL, at TEXT NOT NULL, takes INTEGER NOT NULL,
  capture TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to answer about.

    Attributes
    ----------
    key: the clip, scene or recording it is about; it may give the label away and never leaves the server.
    cluster: what intervals draw: a speaker or a scene.
    owner: the account that alone may answer it; empty for all.
    shown: what a page may show.
    gold: the labels of the data set by question.
    audio: its file, as :func:`~earwitness.review.project.stored_path` keeps it; empty for none.
    """

    key: str
    cluster: str
    shown: Mapping[str, Any]
    gold: Mapping[str, str]
    audio: str = ""
    sha256: str = ""
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with a link."""

    id: int
    name: str
    role: Role


def now() -> str:
    """The time in UTC, to the second, as every table keeps it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def token_hash(token: str) -> str:
    """What is kept of a token. It has 256 random bits, so a plain hash cannot be searched."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def connect(folder: Path, *, create: bool = False, read_only: bool = False) -> sqlite3.Connection:
    """Open the database of a review folder.

    Raises
    ------
    DataError: it is missing, no database, or of another version.
    """
    path = folder / DATABASE
    if not create and not path.is_file():
        raise DataError(
            str(folder), f"has no {DATABASE}", "a folder made by: earwitness review create"
        )
    try:
        db = sqlite3.connect(path, timeout=20, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA foreign_keys=ON")
        if read_only:
            db.execute("PRAGMA query_only=ON")
        else:
            db.execute("PRAGMA journal_mode=WAL")
            # A commit is on the disk before it is answered, also when the power goes.
            db.execute("PRAGMA synchronous=FULL")
        if create:
            db.executescript(_SCHEMA)
            db.execute(f"PRAGMA user_version={FORMAT}")
        (version,) = db.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError as error:
        raise DataError(str(path), f"cannot be opened ({error})", "a review database") from error
    if version != FORMAT:
        db.close()
        raise DataError(str(path), f"has format {version}", f"format {FORMAT}")
    return db


@contextmanager
def opened(folder: Path, *, create: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection that is closed in the end."""
    db = connect(folder, create=create)
    try:
        yield db
    finally:
        db.close()


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def add_items(db: sqlite3.Connection, items: Iterable[Item]) -> int:
    """Put items in; those whose key is there stay as they are. Returns how many are new."""
    before = count(db, "items")
    db.executemany(
        "INSERT OR IGNORE INTO items(key, cluster, owner, shown, gold, audio, sha256) VALUES(?,?,?,?,?,?,?)",
        (
            (i.key, i.cluster, i.owner, dump(i.shown), dump(i.gold), i.audio, i.sha256)
            for i in items
        ),
    )
    return count(db, "items") - before


def count(db: sqlite3.Connection, table: str) -> int:
    """Rows of a table."""
    return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def add_person(db: sqlite3.Connection, name: str, role: Role) -> str:
    """Add somebody and return the token of their link, which is kept nowhere.

    Raises
    ------
    UsageError: the name is taken.
    """
    token = secrets.token_urlsafe(32)
    try:
        db.execute(
            "INSERT INTO people(name, role, token_hash, made_at) VALUES(?,?,?,?)",
            (name, role, token_hash(token), now()),
        )
    except sqlite3.IntegrityError:
        raise UsageError(
            "links",
            f"there is somebody named {name!r} already",
            "another name",
            f"A new link for the same person: --renew {name}",
        ) from None
    return token


def renew_token(db: sqlite3.Connection, name: str) -> str:
    """Give somebody another token; the old link ends.

    Raises
    ------
    UsageError: there is nobody of that name.
    """
    token = secrets.token_urlsafe(32)
    changed = db.execute(
        "UPDATE people SET token_hash=?, revoked_at=NULL WHERE name=?", (token_hash(token), name)
    ).rowcount
    if not changed:
        raise unknown_person(db, name)
    return token


def unknown_person(db: sqlite3.Connection, name: str) -> UsageError:
    """The error for a name nobody has."""
    names = [n for (n,) in db.execute("SELECT name FROM people WHERE role='annotator' ORDER BY id")]
    return UsageError(
        "links", f"nobody is named {name!r}", f"one of {', '.join(names) or '(nobody)'}"
    )


def new_organiser(db: sqlite3.Connection) -> str:
    """A token for the organiser; older ones end."""
    with transaction(db):
        db.execute("DELETE FROM people WHERE role='organiser'")
        return add_person(db, "organiser", "organiser")


def person_of(db: sqlite3.Connection, token: str, role: Role) -> Person | None:
    """Whose token it is, if it is one of this role and not revoked."""
    row = db.execute(
        "SELECT id, name FROM people WHERE token_hash=? AND role=? AND revoked_at IS NULL",
        (token_hash(token), role),
    ).fetchone()
    return Person(row[0], row[1], role) if row else None


def mark_seen(db: sqlite3.Connection, person: int) -> None:
    """Note that somebody opened their link."""
    db.execute("UPDATE people SET seen_at=? WHERE id=?", (now(), person))


def item_at(db: sqlite3.Connection, person: int, position: int) -> tuple[int, str, str] | None:
    """Item, what is shown of it and its audio at a place of somebody's list."""
    row = db.execute(
        "SELECT i.id, i.shown, i.audio FROM assignments a JOIN items i ON i.id=a.item"
        " WHERE a.person=? AND a.position=?",
        (person, position),
    ).fetchone()
    return (row[0], row[1], row[2]) if row else None


def next_open(db: sqlite3.Connection, person: int, after: int = 0) -> int | None:
    """The first open place of somebody's list, from ``after`` on and then from the beginning."""
    query = (
        "SELECT min(a.position) FROM assignments a WHERE a.person=? AND a.position>?"
        " AND NOT EXISTS(SELECT 1 FROM answers s WHERE s.person=a.person AND s.item=a.item)"
    )
    for start in (after, 0):
        (position,) = db.execute(query, (person, start)).fetchone()
        if position is not None:
            return int(position)
        if start == 0:
            break
    return None


def progress_of(db: sqlite3.Connection, person: int) -> tuple[int, int]:
    """Items answered and items given to somebody."""
    (done,) = db.execute("SELECT count(*) FROM answers WHERE person=?", (person,)).fetchone()
    (given,) = db.execute("SELECT count(*) FROM assignments WHERE person=?", (person,)).fetchone()
    return int(done), int(given)


def answer_of(db: sqlite3.Connection, person: int, item: int) -> dict[str, Any] | None:
    """What somebody answered, if they did."""
    row = db.execute(
        "SELECT payload FROM answers WHERE person=? AND item=?", (person, item)
    ).fetchone()
    return json.loads(row[0]) if row else None


def save_answer(
    db: sqlite3.Connection,
    person: int,
    item: int,
    payload: Mapping[str, Any],
    seconds: float | None,
) -> None:
    """Keep an answer. The same answer again changes nothing; another one takes its place."""
    text, at = dump(payload), now()
    same = db.execute(
        "SELECT 1 FROM answers WHERE person=? AND item=? AND payload=?", (person, item, text)
    ).fetchone()
    if same:
        return
    db.execute(
        "INSERT INTO answers(person, item, payload, at, seconds) VALUES(?,?,?,?,?)"
        " ON CONFLICT(person, item) DO UPDATE SET payload=excluded.payload, at=excluded.at",
        (person, item, text, at, seconds),
    )
    _log(db, person, item, "answer", text, at)


def undo_answer(db: sqlite3.Connection, person: int) -> tuple[int, dict[str, Any]] | None:
    """Take somebody's latest answer back and return its place with what it was; None: there is none."""
    row = db.execute(
        "SELECT s.item, s.payload, a.position FROM history h"
        " JOIN answers s ON s.person=h.person AND s.item=h.item"
        " JOIN assignments a ON a.person=h.person AND a.item=h.item"
        " WHERE h.person=? AND h.act='answer' ORDER BY h.id DESC LIMIT 1",
        (person,),
    ).fetchone()
    if row is None:
        return None
    item, payload, position = row
    db.execute("DELETE FROM answers WHERE person=? AND item=?", (person, item))
    _log(db, person, item, "undo", payload, now())
    return int(position), json.loads(payload)


def withdrawn_of(db: sqlite3.Connection, person: int, item: int) -> dict[str, Any] | None:
    """What somebody took back last at an item that is open again, to begin from."""
    row = db.execute(
        "SELECT payload FROM history WHERE person=? AND item=? AND act='undo' ORDER BY id DESC LIMIT 1",
        (person, item),
    ).fetchone()
    return json.loads(row[0]) if row else None


def has_consented(db: sqlite3.Connection, person: int, version: str, text_sha256: str) -> bool:
    """Whether somebody agreed to this very text."""
    row = db.execute(
        "SELECT 1 FROM consents WHERE person=? AND version=? AND text_sha256=?",
        (person, version, text_sha256),
    ).fetchone()
    return row is not None


def save_consent(db: sqlite3.Connection, person: int, version: str, text_sha256: str) -> None:
    """Keep that somebody agreed, and to which text."""
    db.execute(
        "INSERT OR REPLACE INTO consents(person, version, text_sha256, at) VALUES(?,?,?,?)",
        (person, version, text_sha256, now()),
    )


def dump(value: object) -> str:
    """JSON with sorted keys: the same value is always the same text."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def rows(db: sqlite3.Connection, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of a query."""
    return db.execute(query, values).fetchall()


def _log(db: sqlite3.Connection, person: int, item: int, act: str, text: str, at: str) -> None:
    db.execute(
        "INSERT INTO history(person, item, act, payload, at) VALUES(?,?,?,?,?)",
        (person, item, act, text, at),
    )
