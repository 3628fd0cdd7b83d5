"""The append-only record of a run: one JSON object a line, flushed line by line.

Four kinds of lines, each with the ``key`` of the reply it belongs to:

``started``          a call is about to be made (so that a call in flight at a kill is seen)
``attempt_failed``   that call gave no reply; the runner may try again
``reply``            the reply, raw; after it the key is never asked again
``failed``           the runner gave the item up; a later run may ask it again

A torn last line (the process was killed while writing) is cut off on opening. Anything unreadable before
the last line is an error: nothing is skipped in silence. Only offsets are kept in memory, so that a ledger
of a million replies opens in little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from earwitness.errors import ModelError
from earwitness.models.protocols import Reply, Usage
from earwitness.runs.jsonlines import JsonLines


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an item was given up, as the ledger tells it."""

    kind: str
    message: str
    status: int | None = None
    attempts: int = 1


@dataclass(slots=True)
class LedgerCounts:
    """What the ledger says of its calls; ``in_flight`` are calls that began and never ended."""

    calls: int = 0
    replies: int = 0
    duplicate_replies: int = 0
    failed: int = 0
    in_flight: int = 0
    maybe_paid_twice: int = 0


@dataclass(slots=True)
class _Index:
    replies: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    open_calls: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    counts: LedgerCounts = field(default_factory=LedgerCounts)

    def note(self, line: Mapping[str, Any], offset: int) -> None:
        kind, key = line["kind"], line["key"]
        counts = self.counts
        if kind == "started":
            counts.calls += 1
            # A call that was open when another began never ended: it was cut off by a kill.
            if key in self.open_calls:
                self.lost[key] = self.lost.get(key, 0) + 1
            self.open_calls[key] = offset
        elif kind == "reply":
            if key in self.replies:
                counts.duplicate_replies += 1
                return
            self.open_calls.pop(key, None)
            self.failures.pop(key, None)
            self.replies[key] = offset
        elif kind == "attempt_failed":
            self.open_calls.pop(key, None)
            if line.get("maybe_paid"):
                self.lost[key] = self.lost.get(key, 0) + 1
        elif kind == "failed":
            self.open_calls.pop(key, None)
            self.failures[key] = offset

    def totals(self) -> LedgerCounts:
        counts = self.counts
        counts.replies = len(self.replies)
        counts.failed = len(self.failures)
        counts.in_flight = len(self.open_calls)
        counts.maybe_paid_twice = sum(self.lost.values()) + len(self.open_calls)
        return counts


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
        usage=Usage(**value["usage"]),
        latency_s=value["latency_s"],
        provider_id=value["provider_id"],
        provider_model=value["provider_model"],
        raw=value["raw"],
    )


class Ledger:
    """A ledger open for appending (by one process) or for reading.

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
    UsageError: another process has the ledger open for writing.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.read_only = read_only
        self._index = _Index()
        self._file = JsonLines(
            path,
            read_only=read_only,
            keys=("kind", "key"),
            entry="a ledger entry",
            note=self._index.note,
            busy="another process is working on this run",
            busy_step="Wait for it to end, or give this one another --out folder.",
            kept="every reply stored so far is kept",
        )

    @property
    def repaired_bytes(self) -> int:
        """Length of the torn last line that was found on opening."""
        return self._file.repaired_bytes

    def _write(self, line: dict[str, Any]) -> None:
        self._file.append(line)

    def started(self, key: str, *, item: str, attempt: int) -> None:
        """Write that a call is about to be made."""
        self._write({"kind": "started", "key": key, "item": item, "attempt": attempt, "at": _now()})

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
            failure = Failure(line["error"], line["message"], line["status"], line["attempts"])
            return None, failure, None
        return None, None, None

    @property
    def counts(self) -> LedgerCounts:
        """Totals over the whole ledger."""
        return self._index.totals()

    def close(self) -> None:
        """Let go of the file; written lines are made durable first."""
        self._file.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
