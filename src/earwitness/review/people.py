"""Who answers what: links for people, and items dealt out among them.

Conventions
-----------
* Items come in one seeded order. Each is given to ``per_item`` people: those with the least so far, equals by a draw
  keyed by seed, item and person. The same items, people and seed give the same lists.
* Everybody works through the same blocks of :data:`BLOCK` items, each in an order of their own: when work stops
  half-way, what was reached has its full number of answers, and yet no two people tire at the same item.
* Adding or removing people deals out again what is open. What was answered stays, and so do the next :data:`HELD`
  items of everybody who has opened their link: they may be on a screen.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from earwitness.errors import UsageError
from earwitness.review.project import Project, read_project
from earwitness.review.store import (
    add_person,
    now,
    opened,
    renew_token,
    rows,
    transaction,
    unknown_person,
)

BLOCK = 20
HELD = 2
MOST_PEOPLE = 1000


def deal(
    items: Sequence[str],
    people: Sequence[str],
    per_item: int,
    seed: int,
    kept: Mapping[str, Collection[str]] | None = None,
) -> dict[str, list[str]]:
    """Give every item to ``per_item`` people, as evenly as can be.

    Parameters
    ----------
    items: keys, in any order; the result does not depend on it.
    kept: who has an item already, by item; counts towards ``per_item`` and the load.

    Returns
    -------
    New items by person, in the order everybody's list has them.

    Examples
    --------
    >>> dealt = deal(["a", "b", "c"], ["ann", "bob", "cem"], 2, seed=1)
    >>> sorted(len(own) for own in dealt.values())
    [2, 2, 2]
    """
    kept = kept or {}
    load = dict.fromkeys(people, 0)
    for holders in kept.values():
        for person in holders:
            if person in load:
                load[person] += 1
    given: dict[str, list[str]] = {person: [] for person in people}
    for item in _in_order(items, seed):
        has = kept.get(item, ())
        free = sorted(
            (person for person in people if person not in has),
            key=lambda person: (load[person], _draw(seed, "deal", item, person)),
        )
        for person in free[: max(0, per_item - len(has))]:
            given[person].append(item)
            load[person] += 1
    place = {item: number for number, item in enumerate(_in_order(items, seed))}
    for person, own in given.items():
        own.sort(key=lambda item: (place[item] // BLOCK, _draw(seed, "order", item, person)))
    return given


def add_people(folder: Path, number: int, names: Sequence[str] = ()) -> dict[str, str]:
    """Add people and deal out the open items again.

    Parameters
    ----------
    number: how many; their names are ``ann-01`` and so on unless ``names`` are given. A record folder has one
        person for each account of its assignments instead, and both are left at 0 and empty.

    Returns
    -------
    The token of each link by name. Nothing keeps them: only their hashes are stored.

    Raises
    ------
    UsageError: a name is taken, or people are asked for where accounts decide.
    """
    project = read_project(folder)
    with opened(folder) as db, transaction(db):
        taken = {name for (name,) in rows(db, "SELECT name FROM people")}
        if project.kind == "record":
            if number or names:
                raise UsageError(
                    "links",
                    "a record folder has one link for each account of its assignments",
                    "neither --annotators nor --names",
                )
            accounts = [a for (a,) in rows(db, "SELECT DISTINCT owner FROM items ORDER BY owner")]
            names = [account for account in accounts if account not in taken]
        elif not names:
            names = _fresh_names(number, taken)
        if len(names) + len(taken) > MOST_PEOPLE:
            raise UsageError("links", f"{len(names) + len(taken)} people", f"at most {MOST_PEOPLE}")
        for name in names:
            if not name.strip() or len(name) > 80 or not name.isprintable() or name == "organiser":
                raise UsageError("links", f"the name {name!r}", "short printable names")
        tokens = {name: add_person(db, name, "annotator") for name in names}
        deal_out(db, project)
    return tokens


def renew(folder: Path, name: str) -> str:
    """A new link for somebody who lost theirs, or gave it away; their work stays."""
    project = read_project(folder)
    with opened(folder) as db, transaction(db):
        token = renew_token(db, name)
        deal_out(db, project)
        return token


def revoke(folder: Path, name: str) -> None:
    """End somebody's link and give what they left open to the others. Their answers stay."""
    project = read_project(folder)
    with opened(folder) as db, transaction(db):
        changed = db.execute(
            "UPDATE people SET revoked_at=? WHERE name=? AND role='annotator'", (now(), name)
        ).rowcount
        if not changed:
            raise unknown_person(db, name)
        deal_out(db, project)


def deal_out(db: sqlite3.Connection, project: Project) -> None:
    """Give open items to the people there are now."""
    people = dict(
        rows(
            db,
            "SELECT id, name FROM people WHERE role='annotator' AND revoked_at IS NULL ORDER BY id",
        )
    )
    owners = dict(rows(db, "SELECT id, owner FROM items"))
    keys = dict(rows(db, "SELECT id, key FROM items"))
    ids = {key: item for item, key in keys.items()}
    kept: dict[str, set[str]] = defaultdict(set)
    names = dict(rows(db, "SELECT id, name FROM people"))
    for person, item in rows(db, "SELECT person, item FROM answers"):
        kept[keys[item]].add(names[person])
    for person in people:
        for _, key in _held(db, person, keys):
            kept[key].add(people[person])
    for person in names:
        held = [item for item, _ in _held(db, person, keys)] if person in people else []
        marks = ",".join("?" * len(held))
        db.execute(
            f"DELETE FROM assignments WHERE person=? AND item NOT IN ({marks})"
            " AND NOT EXISTS(SELECT 1 FROM answers s WHERE s.person=assignments.person AND s.item=assignments.item)",
            (person, *held),
        )
    if project.kind == "record":
        dealt = {
            name: deal(
                [k for k, i in ids.items() if owners[i] == name], [name], 1, project.seed, kept
            )[name]
            for name in people.values()
        }
    else:
        dealt = deal(list(ids), list(people.values()), project.per_item, project.seed, kept)
    for person, name in people.items():
        (last,) = db.execute(
            "SELECT coalesce(max(position), 0) FROM assignments WHERE person=?", (person,)
        ).fetchone()
        db.executemany(
            "INSERT INTO assignments(person, position, item) VALUES(?,?,?)",
            ((person, last + n, ids[key]) for n, key in enumerate(dealt[name], start=1)),
        )


def _held(db: sqlite3.Connection, person: int, keys: Mapping[int, str]) -> list[tuple[int, str]]:
    found = rows(
        db,
        "SELECT a.item FROM assignments a JOIN people p ON p.id=a.person WHERE a.person=? AND p.seen_at IS NOT NULL"
        " AND NOT EXISTS(SELECT 1 FROM answers s WHERE s.person=a.person AND s.item=a.item)"
        " ORDER BY a.position LIMIT ?",
        (person, HELD),
    )
    return [(item, keys[item]) for (item,) in found]


def _in_order(items: Sequence[str], seed: int) -> list[str]:
    return sorted(items, key=lambda item: (_draw(seed, "items", item), item))


def _draw(seed: int, *names: str) -> bytes:
    text = "\x00".join((str(seed), *names))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _fresh_names(number: int, taken: Collection[str]) -> list[str]:
    if number < 1:
        raise UsageError("links", f"--annotators {number}", "at least 1")
    names: list[str] = []
    place = 1
    while len(names) < number:
        name = f"ann-{place:02d}"
        place += 1
        if name not in taken:
            names.append(name)
    return names
