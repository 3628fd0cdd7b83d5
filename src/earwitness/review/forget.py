"""Withdrawing consent: everything of one account goes out of a review folder."""

from __future__ import annotations

from pathlib import Path

from earwitness.review.project import CACHE, EXPORT, RECORDINGS, read_project
from earwitness.review.recordings import INCOMING, path_of, write_list
from earwitness.review.store import opened, rows, transaction


def forget_account(folder: Path, account: str) -> tuple[str, ...]:
    """Remove what somebody recorded, and what others said about it.

    In a record folder: recordings, items, consent, link. In a review folder: items made of that speaker's recordings,
    with their answers and cached sound. The freed pages of the database are overwritten. Files that were exported
    before are deleted, because they still hold the rows; export them again.

    Returns
    -------
    What was removed, in words a log can keep: paths relative to the folder, and counts of rows.
    """
    project = read_project(folder)
    removed: list[str] = []
    with opened(folder) as db:
        db.execute("PRAGMA secure_delete=ON")
        column = "owner" if project.kind == "record" else "cluster"
        items = rows(db, f"SELECT id, key FROM items WHERE {column}=?", (account,))
        hashes = [
            sha
            for item, _ in items
            for (sha,) in rows(db, "SELECT sha256 FROM recordings WHERE item=?", (item,))
        ]
        with transaction(db):
            for table in ("answers", "history", "assignments", "recordings"):
                n = sum(
                    db.execute(f"DELETE FROM {table} WHERE item=?", (item,)).rowcount
                    for item, _ in items
                )
                removed += [f"review.db: {n} rows of {table}"] if n else []
            n = sum(
                db.execute("DELETE FROM items WHERE id=?", (item,)).rowcount for item, _ in items
            )
            removed += [f"review.db: {n} rows of items"] if n else []
            if project.kind == "record":
                for (person,) in rows(db, "SELECT id FROM people WHERE name=?", (account,)):
                    db.execute("DELETE FROM consents WHERE person=?", (person,))
                    db.execute("DELETE FROM people WHERE id=?", (person,))
                    removed.append("review.db: consent and link")
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    files = [folder / RECORDINGS / INCOMING / f"{sha}.wav" for sha in hashes]
    if project.kind == "record":
        files += [path_of(folder, key) for _, key in items]
    for item, _ in items:
        files += sorted((folder / CACHE).glob(f"{item}-*.wav"))
    if items:
        files += sorted(path for path in (folder / EXPORT).glob("*") if path.is_file())
    for path in files:
        if path.is_file():
            path.unlink()
            removed.append(path.relative_to(folder).as_posix())
    own = folder / RECORDINGS / account
    if project.kind == "record" and items and own.is_dir() and not any(own.iterdir()):
        own.rmdir()
    if project.kind == "record":
        write_list(folder)
    return tuple(removed)
