"""The record of a run's batch jobs: which were made, what they asked, and which are still open.

``batches.jsonl`` beside the ledger, append-only, flushed line by line. A job's lines, in their order:

``job``        its requests are being gathered
``item``       one of them, with its key in the ledger (no audio: what was made of the clip is described)
``sending``    the file is with the service; from here on a job may exist there, under the name given here
``submitted``  it does, with this id
``closed``     what it brought is in the ledger

A job without its last line is taken up by the next command. Several processes may share the record; each holds a lock on
the jobs it works on, which dies with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from earwitness.runs.filesystems import require_local
from earwitness.runs.jsonlines import JsonLines
from earwitness.runs.locks import ByteLocks, claim_place

BATCHES = "batches.jsonl"
LOCKS_SUFFIX = ".locks"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of a job. ``seconds`` is the length of its audio, ``stimulus`` what was made of the clip."""

    key: str
    item: str
    attempt: int
    seconds: float = 0.0
    estimate_usd: float | None = None
    stimulus: Mapping[str, Any] | None = None


@dataclass(slots=True)
class OpenJob:
    """A job that is not closed. ``id`` is the service's, None until its answer has been seen."""

    name: str
    server: str
    begun: str
    asked: dict[str, Asked] = field(default_factory=dict)
    is_sent: bool = False
    id: str | None = None
    source: str = ""
    uploads: tuple[str, ...] = ()


@dataclass(slots=True)
class BookCounts:
    """Jobs that were closed, by how they ended, and what came of their requests."""

    closed: dict[str, int] = field(default_factory=dict)
    replies: int = 0


_FIELDS: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    "job": {"server": str, "at": str},
    "item": {"key": str, "item": str, "attempt": int, "seconds": (int, float)},
    "sending": {"source": str, "uploads": list},
    "submitted": {"id": str},
    "closed": {"state": str},
}


def _fits(line: Mapping[str, Any]) -> bool:
    kind = line["kind"]
    forms = _FIELDS.get(kind, {}) if isinstance(kind, str) else None
    return (
        forms is not None
        and isinstance(line["job"], str)
        and all(isinstance(line.get(name), form) for name, form in forms.items())
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class JobBook:
    """The record of a run folder, made when the first job is.

    Parameters
    ----------
    folder: of the run.
    read_only: look at it only.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, JobBook(Path(folder)) as book:
    ...     book.begin("job-1", server="s")
    ...     book.ask("job-1", Asked("key", "clip-1", 1))
    ...     book.sending("job-1", "files/1")
    ...     book.submitted("job-1", "batches/1")
    ...     [(job.id, list(job.asked)) for job in book.open_jobs()], book.holder("key")
    ([('batches/1', ['key'])], 'job-1')

    Raises
    ------
    DataError: a line other than the last cannot be read.
    UsageError: the folder lies on a network file system.
    """

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.path = folder / BATCHES
        self.counts = BookCounts()
        self._read_only = read_only
        self._jobs: dict[str, OpenJob] = {}
        self._holders: dict[str, str] = {}
        self._file: JsonLines | None = None
        self._locks: ByteLocks | None = None
        if self.path.exists():
            self._open()

    def _open(self) -> JsonLines:
        if self._file is not None:
            return self._file
        if not self._read_only:
            require_local(self.path)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._locks = ByteLocks(self.path.with_name(self.path.name + LOCKS_SUFFIX))
        self._file = JsonLines(
            self.path,
            read_only=self._read_only,
            keys=("kind", "job"),
            entry="a line about a batch job",
            note=self._note,
            busy="another process is working on this run",
            busy_step="Wait for it to end, or give this one another --out folder.",
            kept="every reply stored so far is kept, and jobs that were made go on",
            locks=self._locks,
            fits=_fits,
        )
        return self._file

    def _note(self, line: Mapping[str, Any], offset: int) -> None:
        del offset
        kind, name = line["kind"], line["job"]
        if kind == "job":
            self._jobs[name] = OpenJob(name, line["server"], line["at"])
            return
        job = self._jobs.get(name)
        if job is None:
            return
        if kind == "item":
            job.asked[line["key"]] = Asked(
                line["key"], line["item"], line["attempt"], line["seconds"],
                line.get("estimate_usd"), line.get("stimulus"),
            )  # fmt: skip
            self._holders[line["key"]] = name
        elif kind == "sending":
            job.is_sent, job.source, job.uploads = True, line["source"], tuple(line["uploads"])
        elif kind == "submitted":
            job.is_sent, job.id = True, line["id"]
        elif kind == "closed":
            for key in job.asked:
                if self._holders.get(key) == name:
                    del self._holders[key]
            del self._jobs[name]
            state = line["state"]
            self.counts.closed[state] = self.counts.closed.get(state, 0) + 1
            self.counts.replies += int(line.get("replies") or 0)

    def sync(self) -> None:
        """Read what other processes have written.

        Raises
        ------
        DataError: it cannot be read.
        """
        if self._file is not None:
            self._file.catch_up()
        elif self.path.exists():
            self._open()

    def open_jobs(self) -> list[OpenJob]:
        """Jobs that are not closed, the oldest first."""
        return list(self._jobs.values())

    def holder(self, key: str) -> str | None:
        """The open job that asks a key, None where none does."""
        return self._holders.get(key)

    def asks(self, key: str) -> bool:
        """Whether an open job asks a key, those of other processes included."""
        self.sync()
        return key in self._holders

    def claim(self, name: str) -> bool:
        """Take a job to work on it; False while another process has it."""
        self._open()
        return self._locks is None or self._locks.take(claim_place(name))

    def release(self, name: str) -> None:
        """Let go of a job."""
        if self._locks is not None:
            self._locks.release(claim_place(name))

    # --- lines -------------------------------------------------------------------------------------

    def begin(self, name: str, *, server: str) -> None:
        """Write that requests for a job are being gathered."""
        self._open().append({"kind": "job", "job": name, "server": server, "at": _now()})

    def ask(self, name: str, asked: Asked) -> None:
        """Write that a job will hold a request."""
        line: dict[str, Any] = {
            "kind": "item", "job": name, "key": asked.key, "item": asked.item, "attempt": asked.attempt,
            "seconds": round(asked.seconds, 6),
        }  # fmt: skip
        if asked.estimate_usd is not None:
            line["estimate_usd"] = round(asked.estimate_usd, 8)
        if asked.stimulus is not None:
            line["stimulus"] = dict(asked.stimulus)
        self._open().append(line)

    def sending(self, name: str, source: str, uploads: Sequence[str] = ()) -> None:
        """Write that the service is about to be told to make a job; it may exist from here on."""
        line = {"kind": "sending", "job": name, "source": source, "uploads": list(uploads)}
        self._open().append({**line, "at": _now()})
        self._open().make_durable()

    def submitted(self, name: str, job_id: str) -> None:
        """Write what the service calls a job, durably."""
        self._open().append({"kind": "submitted", "job": name, "id": job_id, "at": _now()})
        self._open().make_durable()

    def close_job(self, name: str, state: str, **counts: int) -> None:
        """Write that everything a job brought is in the ledger, or that nothing will come of it."""
        self._open().append({"kind": "closed", "job": name, "state": state, **counts, "at": _now()})

    def close(self) -> None:
        """Let go of the file and of every job."""
        if self._file is not None:
            self._file.close()
        if self._locks is not None:
            self._locks.close()

    def __enter__(self) -> JobBook:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
