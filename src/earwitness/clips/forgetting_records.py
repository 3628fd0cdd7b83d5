"""Tombstones: who withdrew consent, known only by salted hashes, so that nothing of theirs comes back.

``forgotten.jsonl`` begins with a random salt. Every other line is the hash of a name (scrypt, so that guessing names
costs) or of a recording (its SHA-256 keyed by the salt: a recording cannot be guessed). A recording is refused
whatever name it comes under.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from earwitness.audio.files import atomic_write_text
from earwitness.errors import DataError
from earwitness.runs.jsonlines import read_lines

FORGOTTEN = "forgotten.jsonl"
PENDING = "forget-pending.json"
_SCRYPT_N = 1 << 12


@dataclass
class Tombstones:
    """What a collection remembers of those it has forgotten."""

    salt: bytes
    names: set[str] = field(default_factory=set)
    audio: set[str] = field(default_factory=set)

    def _of_name(self, name: str) -> str:
        folded = name.casefold().encode("utf-8")
        return hashlib.scrypt(folded, salt=self.salt, n=_SCRYPT_N, r=8, p=1, dklen=32).hex()

    def _of_audio(self, sha256: str) -> str:
        return hmac.new(self.salt, sha256.encode("ascii"), hashlib.sha256).hexdigest()

    def has_name(self, name: str) -> bool:
        """Whether an account or speaker of this name was forgotten."""
        return bool(self.names) and self._of_name(name) in self.names

    def has_audio(self, sha256: str) -> bool:
        """Whether a recording of this content was forgotten."""
        return bool(self.audio) and self._of_audio(sha256) in self.audio

    def add(self, names: Iterable[str], audio: Iterable[str]) -> None:
        """Remember hashes of names and recordings."""
        self.names |= {self._of_name(name) for name in names}
        self.audio |= {self._of_audio(sha256) for sha256 in audio}


def read_tombstones(folder: Path) -> Tombstones:
    """Tombstones of a collection; a fresh salt where there are none.

    Raises
    ------
    DataError: the file is not what it should be. Nothing is imported then: it might belong to somebody who left.
    """
    path = folder / FORGOTTEN
    if not path.exists():
        return Tombstones(secrets.token_bytes(16))
    found: Tombstones | None = None
    for number, line in read_lines(path, "a tombstone"):
        try:
            if found is None:
                found = Tombstones(bytes.fromhex(line["salt"]))
            else:
                {"name": found.names, "audio": found.audio}[line["kind"]].add(str(line["hash"]))
        except (KeyError, TypeError, ValueError):
            raise DataError(
                f"{path}:{number}", "is no tombstone", "a salt first, then kind and hash",
                "Restore the file from a copy: without it people who left could come back.",
            ) from None  # fmt: skip
    if found is None:
        raise DataError(str(path), "is empty", "a salt", "Restore the file from a copy.")
    return found


def write_tombstones(folder: Path, stones: Tombstones) -> None:
    """Put ``forgotten.jsonl`` in place."""
    lines = [{"salt": stones.salt.hex()}]
    lines += [{"kind": "name", "hash": value} for value in sorted(stones.names)]
    lines += [{"kind": "audio", "hash": value} for value in sorted(stones.audio)]
    atomic_write_text(folder / FORGOTTEN, "".join(json.dumps(line) + "\n" for line in lines))


def require_not_forgotten(folder: Path, names: Sequence[str]) -> None:
    """Refuse accounts of people who withdrew consent.

    Raises
    ------
    DataError: one of them did.
    """
    stones = read_tombstones(folder)
    for name in names:
        if stones.has_name(name):
            raise DataError(
                f"account {name!r}", f"withdrew consent ({folder / FORGOTTEN})",
                "accounts that did not", "Somebody who comes back anew gets a new name.",
            )  # fmt: skip


def require_no_pending(folder: Path) -> None:
    """Refuse to go on while a withdrawal is half done.

    Raises
    ------
    DataError: one was interrupted.
    """
    if (folder / PENDING).exists():
        raise DataError(
            str(folder / PENDING), "a withdrawal of consent was interrupted",
            next_step=f"Finish it: earwitness clips forget --in {folder} --resume --yes",
        )  # fmt: skip
