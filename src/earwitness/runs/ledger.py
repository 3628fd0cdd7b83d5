"""The append-only record of a run: one JSON object a line, flushed line by line.

Four kinds of lines, each with the ``key`` of the reply it belongs to:

``started``          a call is about to be made (so that a call in flight at a kill is seen), with its estimated cost
``attempt_failed``   that call gave no reply; the runner may try again
``reply``            the reply, raw; after it the key is never asked again
``failed``           the runner gave the item up; a later run may ask it again

A torn last line (the process was killed while writing) is cut off on opening. Anything unreadable before
the last line is an error: nothing is skipped in silence. Only offsets are kept in memory, so that a ledger
of a million replies opens in little.

Several processes of one machine may share a ledger. Each claims a key before it asks (a byte lock beside the
ledger, which dies with its process), appends under a latch, and reads what the others wrote before every claim
and every append: no key is asked twice at a time, and none that has a reply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from earwitness.errors import DataError, ModelError
from earwitness.models.protocols import Reply, Usage
from earwitness.runs.filesystems import require_local
from earwitness.runs.jsonlines import JsonLines
from earwitness.runs.locks import ByteLocks, claim_place
from earwitness.runs.pace_file import PACE_SUFFIX

LOCKS_SUFFIX = ".locks"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an item was given up, as the ledger tells it."""

    kind: str
    message: str
    status: int | None = None
    attempts: int = 1


@dataclass(slots=True)
class LedgerCounts:
    """What the ledger says of its calls; ``in_flight`` are calls that began and never ended.

    ``cost_usd`` is that of all replies, ``maybe_cost_usd`` the estimated cost of the calls that ended without a
    reply and may have been charged all the same (``maybe_paid_twice`` counts them).
    """

    calls: int = 0
    replies: int = 0
    duplicate_replies: int = 0
    failed: int = 0
    in_flight: int = 0
    maybe_paid_twice: int = 0
    cost_usd: float = 0.0
    maybe_cost_usd: float = 0.0


@dataclass(slots=True)
class _Index:
    replies: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    open_calls: dict[str, float] = field(default_factory=dict)
    """Estimated cost of the call of a key that has begun and not ended."""
    lost: int = 0
    lost_usd: float = 0.0
    counts: LedgerCounts = field(default_factory=LedgerCounts)

    def note(self, line: Mapping[str, Any], offset: int) -> None:
        kind, key = line["kind"], line["key"]
        counts = self.counts
        if kind == "started":
            counts.calls += 1
            # A call that was open when another began never ended: it was cut off by a kill.
            self._lose(self.open_calls.get(key))
            self.open_calls[key] = _usd(line.get("estimate_usd"))
        elif kind == "reply":
            counts.cost_usd += _usd(line.get("cost_usd"))
            if key in self.replies:
                counts.duplicate_replies += 1
                return
            self.open_calls.pop(key, None)
            self.failures.pop(key, None)
            self.replies[key] = offset
        elif kind == "attempt_failed":
            estimate = self.open_calls.pop(key, 0.0)
            if line.get("maybe_paid"):
                self._lose(estimate)
        elif kind == "failed":
            self.open_calls.pop(key, None)
            self.failures[key] = offset

    def _lose(self, estimate_usd: float | None) -> None:
        if estimate_usd is not None:
            self.lost += 1
            self.lost_usd += estimate_usd

    def totals(self) -> LedgerCounts:
        counts = self.counts
        counts.replies = len(self.replies)
        counts.failed = len(self.failures)
        counts.in_flight = len(self.open_calls)
        counts.maybe_paid_twice = self.lost + len(self.open_calls)
        counts.maybe_cost_usd = self.lost_usd + sum(self.open_calls.values())
        return counts


_NUMBER = (int, float, type(None))
_FORMS: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    "reply": {"reply": dict, "cost_usd": _NUMBER},
    "failed": {"error": str, "message": str, "status": _NUMBER, "attempts": int},
}
_REPLY: Mapping[str, type | tuple[type, ...]] = {
    "text": (str, type(None)),
    "scores": (dict, type(None)),
    "finish": str,
    "finish_raw": (str, type(None)),
    "usage": dict,
    "latency_s": (int, float),
    "provider_id": (str, type(None)),
    "provider_model": (str, type(None)),
    "raw": dict,
}
_USAGE = frozenset(each.name for each in fields(Usage))


def fits_ledger(line: Mapping[str, Any]) -> bool:
    """Whether a line is an entry that can be read back; kinds of later versions are let be."""
    kind, key = line["kind"], line["key"]
    if not isinstance(kind, str) or not isinstance(key, str):
        return False
    # ``cost_usd`` came later than the first ledgers.
    if not all(isinstance(line.get(name), form) for name, form in _FORMS.get(kind, {}).items()):
        return False
    if kind != "reply":
        return True
    reply = line["reply"]
    return all(name in reply and isinstance(reply[name], form) for name, form in _REPLY.items())


def _usd(value: Any) -> float:
    """An amount, nothing where a line has none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def reply_to_json(reply: Reply) -> dict[str, Any]:
    """A reply as plain JSON values; the inverse of :func:`reply_from_json`."""
    return {
        "text": reply.text,
        "scores": dict(reply.scores) if reply.scores is not None else None,
        "finish": reply.finish,
        "finish_raw": reply.finish_raw,
        "usage": asdict(reply.usage),
        "latency_s": round(reply.latency_s, 6),
        "provider_id": reply.provider_id,
        "provider_model": reply.provider_model,
        "raw": dict(reply.raw),
    }


def reply_from_json(value: Mapping[str, Any]) -> Reply:
    """Read a reply as :func:`reply_to_json` wrote it."""
    return Reply(
        text=value["text"],
        scores=value["scores"],
        finish=value["finish"],
        finish_raw=value["finish_raw"],
        # What a later version counts besides is left to it.
        usage=Usage(**{name: count for name, count in value["usage"].items() if name in _USAGE}),
        latency_s=value["latency_s"],
        provider_id=value["provider_id"],
        provider_model=value["provider_model"],
        raw=value["raw"],
    )


class Ledger:
    """A ledger open for appending or for reading.

    Parameters
    ----------
    shared: other processes of this machine may have it open too, as long as they share it as well. Not shared, it
        belongs to one process.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger.jsonl") as ledger:
    ...     ledger.started("k1", item="clip-1", attempt=1)
    ...     ledger.reply("k1", Reply(text="anger"), item="clip-1", attempts=1)
    ...     ledger.get_reply("k1").text
    'anger'

    Raises
    ------
    DataError: a line other than the last cannot be read.
    UsageError: another process has the ledger open for writing and does not share it, or it would lie on a network
        file system.
    """

    def __init__(self, path: Path, *, read_only: bool = False, shared: bool = False) -> None:
        self.path = path
        self.read_only = read_only
        self.on_others: Callable[[Mapping[str, Any]], None] | None = None
        """Told of every line that another process appends while this one has the ledger open."""
        self._index = _Index()
        self._opened = False
        self._mine: Mapping[str, Any] | None = None
        self._failed_elsewhere: set[str] = set()
        self._locks: ByteLocks | None = None
        if not read_only:
            require_local(path)
        try:
            if shared and not read_only:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._locks = ByteLocks(path.with_name(path.name + LOCKS_SUFFIX))
            self._file = JsonLines(
                path,
                read_only=read_only,
                keys=("kind", "key"),
                entry="a ledger entry",
                note=self._note,
                busy="another process is working on this run",
                busy_step="Wait for it to end, or give this one another --out folder.",
                kept="every reply stored so far is kept",
                locks=self._locks,
                fits=fits_ledger,
            )
        except BaseException as error:
            if self._locks is not None:
                self._locks.close()
            if isinstance(error, OSError):
                raise DataError(
                    str(path),
                    f"cannot be opened: {error.strerror or error}",
                    next_step="Choose another --out folder or fix its permissions.",
                ) from error
            raise
        self._opened = True

    def _note(self, line: Mapping[str, Any], offset: int) -> None:
        self._index.note(line, offset)
        if not self._opened or line is self._mine:
            return
        if line["kind"] == "failed":
            self._failed_elsewhere.add(line["key"])
        elif line["kind"] == "reply":
            self._failed_elsewhere.discard(line["key"])
        if self.on_others is not None:
            self.on_others(line)

    @property
    def repaired_bytes(self) -> int:
        """Length of the torn last line that was found on opening."""
        return self._file.repaired_bytes

    def _write(self, line: dict[str, Any]) -> None:
        self._mine = line
        self._file.append(line)

    # --- among processes ---------------------------------------------------------------------------

    def claim(self, key: str) -> bool:
        """Take a key to ask it; False while another process has it. It ends with :meth:`release` or the process."""
        return self._locks is None or self._locks.take(claim_place(key))

    def release(self, key: str) -> None:
        """Let go of a key."""
        if self._locks is not None:
            self._locks.release(claim_place(key))

    def sync(self) -> None:
        """Read what other processes have appended.

        Raises
        ------
        DataError: it cannot be read.
        """
        self._file.catch_up()

    def latched(self) -> AbstractContextManager[None]:
        """A block in which no other process appends."""
        return nullcontext() if self._locks is None else self._locks.latched()

    def is_alone(self) -> bool:
        """Whether no other process has the ledger open for writing."""
        return self._file.is_alone()

    def failed_elsewhere(self, key: str) -> bool:
        """Whether another process has given a key up while this one had the ledger open."""
        return key in self._failed_elsewhere

    # --- lines -------------------------------------------------------------------------------------

    def started(
        self, key: str, *, item: str, attempt: int, estimate_usd: float | None = None
    ) -> None:
        """Write that a call is about to be made, with what it will cost as far as that is known."""
        line = {"kind": "started", "key": key, "item": item, "attempt": attempt, "at": _now()}
        if estimate_usd is not None:
            line["estimate_usd"] = round(estimate_usd, 8)
        self._write(line)

    def attempt_failed(self, key: str, error: ModelError, *, item: str, attempt: int) -> None:
        """Write that a call gave no reply."""
        self._write(
            {
                "kind": "attempt_failed",
                "key": key,
                "item": item,
                "attempt": attempt,
                "error": error.kind,
                "status": error.status,
                "message": error.message[:2000],
                "maybe_paid": error.maybe_paid,
                "at": _now(),
            }
        )

    def reply(
        self, key: str, reply: Reply, *, item: str, attempts: int, cost_usd: float | None = None
    ) -> None:
        """Write a reply; its key is never asked again."""
        self._write(
            {
                "kind": "reply",
                "key": key,
                "item": item,
                "attempts": attempts,
                "cost_usd": cost_usd,
                "reply": reply_to_json(reply),
                "at": _now(),
            }
        )

    def failed(self, key: str, error: ModelError, *, item: str, attempts: int) -> None:
        """Write that the runner gave an item up."""
        self._write(
            {
                "kind": "failed",
                "key": key,
                "item": item,
                "attempts": attempts,
                "error": error.kind,
                "status": error.status,
                "message": error.message[:2000],
                "at": _now(),
            }
        )

    def has_reply(self, key: str) -> bool:
        return key in self._index.replies

    def get_reply(self, key: str) -> Reply | None:
        """The stored reply, or None."""
        offset = self._index.replies.get(key)
        return None if offset is None else reply_from_json(self._file.read(offset)["reply"])

    def get_entry(self, key: str) -> tuple[Reply | None, Failure | None, float | None]:
        """Reply, failure and cost of a key; all None where it was never asked to an end."""
        offset = self._index.replies.get(key)
        if offset is not None:
            line = self._file.read(offset)
            return reply_from_json(line["reply"]), None, line.get("cost_usd")
        offset = self._index.failures.get(key)
        if offset is not None:
            line = self._file.read(offset)
            failure = Failure(line["error"], line["message"], line.get("status"), line["attempts"])
            return None, failure, None
        return None, None, None

    @property
    def pace_path(self) -> Path | None:
        """Where the processes that share this ledger keep its rate limits; None if it is not shared."""
        return None if self._locks is None else self.path.with_name(self.path.name + PACE_SUFFIX)

    @property
    def counts(self) -> LedgerCounts:
        """Totals over the whole ledger."""
        return self._index.totals()

    def close(self) -> None:
        """Let go of the file and of every claim; written lines are made durable first."""
        self._file.close()
        if self._locks is not None:
            self._locks.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
