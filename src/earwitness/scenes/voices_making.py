"""Making voice files: engines in processes, services in threads, whatever comes in between.

A call of a service writes ``started`` before and ``done`` or ``failed`` after, so that one in flight at a kill
is seen: it may have been paid for, and is made again.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earwitness.errors import DataError, EarwitnessError, ModelError
from earwitness.jobs import default_workers, pool_map
from earwitness.models.patience import retry_wait_s
from earwitness.models.protocols import Spoken, Voice
from earwitness.runs.jsonlines import JsonLines
from earwitness.scenes.voices_store import VoiceAsset, VoiceStore

if TYPE_CHECKING:
    from earwitness.scenes.voices import Job, OnDone

TRIES = 5
FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
CHUNK = 4
"""Files sent to a process at a time: a few seconds of work, so that a kill loses little."""


def make(
    jobs: Sequence[Job],
    store: VoiceStore,
    opened: Mapping[str, Voice],
    *,
    calls: Path,
    workers: int | None = None,
    concurrency: int = 4,
    on_done: OnDone | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[dict[str, VoiceAsset], int]:
    """Make every file and store it.

    Returns
    -------
    Assets by key, and how many calls of an earlier run were in flight when it ended.

    Raises
    ------
    DataError: a voice failed for good; what was made is stored.
    """
    remote_names = {voice.name for voice in opened.values() if voice.remote}
    local = [job for job in jobs if job.voice not in remote_names]
    remote = [job for job in jobs if job.voice in remote_names]
    made: dict[str, VoiceAsset] = {}
    total = len(jobs)

    def told(asset: VoiceAsset) -> None:
        made[asset.key] = asset
        if on_done:
            on_done(len(made), total)

    _make_here(local, store, workers or default_workers(), told)
    in_flight = 0
    if remote or calls.exists():
        with JsonLines(calls, keys=("event", "key"), entry="a call of a voice") as log:
            in_flight = _open_calls(calls)
            if remote:
                by_name = {(v.name, _frozen(v)): v for v in opened.values()}
                _call_services(remote, store, by_name, log, concurrency, told, sleep)
    return made, in_flight


# -- engines on this machine ------------------------------------------------------------------


def _make_here(
    jobs: Sequence[Job], store: VoiceStore, workers: int, told: Callable[[VoiceAsset], None]
) -> None:
    if not jobs:
        return
    if workers == 1 or len(jobs) <= CHUNK:
        voices = _Voices()
        try:
            for job in jobs:
                told(_made(job, store, voices))
        finally:
            voices.close()
        return
    tasks = [_Task(job, store.folder, store.shared) for job in jobs]
    for outcome in pool_map(_in_worker, tasks, workers=workers, chunk=CHUNK):
        told(outcome)


@dataclass(frozen=True, slots=True)
class _Task:
    job: Job
    folder: Path
    shared: Path | None


def _in_worker(task: _Task) -> VoiceAsset:
    return _made(task.job, VoiceStore(task.folder, task.shared), _worker_voices())


@lru_cache(maxsize=1)
def _worker_voices() -> _Voices:
    """Voices of this process, opened once; they end with it."""
    return _Voices()


class _Voices:
    """Open voices by name and options."""

    def __init__(self) -> None:
        self._open: dict[str, Voice] = {}

    def of(self, job: Job) -> Voice:
        """The voice of a job."""
        from earwitness.models.voices.registry import open_voice

        name = f"{job.voice} {sorted(job.options.items())}"
        if name not in self._open:
            self._open[name] = open_voice(job.voice, job.options)
        return self._open[name]

    def close(self) -> None:
        """Close them all."""
        for voice in self._open.values():
            voice.close()
        self._open = {}


def _made(job: Job, store: VoiceStore, voices: _Voices) -> VoiceAsset:
    # Another run on the same store may have made it meanwhile.
    found = store.get(job.key)
    if found is not None:
        return found
    try:
        spoken = voices.of(job).speak(job.segments, job.seed)
    except EarwitnessError as error:
        raise DataError(
            f"{job.where}: {error.where}", error.found, error.wanted, error.next_step
        ) from None
    return store.put(job.key, spoken)


# -- services ---------------------------------------------------------------------------------


def _frozen(voice: Voice) -> str:
    from earwitness.runs.items import digest

    return digest(dict(voice.settings))


def _open_calls(path: Path) -> int:
    """Calls that were started and of which nothing more was heard."""
    from earwitness.runs.jsonlines import read_lines

    state: dict[str, str] = {}
    for _, line in read_lines(path, "a call of a voice"):
        state[line["key"]] = line["event"]
    return sum(event == "started" for event in state.values())


def _call_services(
    jobs: Sequence[Job],
    store: VoiceStore,
    voices: Mapping[tuple[str, str], Voice],
    log: JsonLines,
    concurrency: int,
    told: Callable[[VoiceAsset], None],
    sleep: Callable[[float], None],
) -> None:
    from earwitness.models.voices.registry import open_voice

    by_job: dict[str, Voice] = {}
    for job in jobs:
        name = f"{job.voice} {sorted(job.options.items())}"
        if name not in by_job:
            fresh = open_voice(job.voice, job.options)
            by_job[name] = voices.get((fresh.name, _frozen(fresh)), fresh)
    lock = threading.Lock()
    stop = threading.Event()

    def note(event: str, job: Job, **more: Any) -> None:
        with lock:
            log.append(
                {"event": event, "key": job.key, "voice": job.voice, "at": time.time(), **more}
            )

    def call(job: Job) -> VoiceAsset | None:
        voice = by_job[f"{job.voice} {sorted(job.options.items())}"]
        for attempt in range(1, TRIES + 1):
            if stop.is_set():
                return None
            note("started", job, attempt=attempt)
            began = time.monotonic()
            try:
                spoken: Spoken = voice.speak(job.segments, job.seed)
            except ModelError as error:
                note(
                    "failed",
                    job,
                    kind=error.kind,
                    message=error.message,
                    maybe_paid=error.maybe_paid,
                )
                wait_s = _wait(attempt, error.retry_after_s)
                if not error.retryable or attempt == TRIES or wait_s is None:
                    stop.set()
                    raise DataError(
                        job.where,
                        error.message,
                        next_step="Everything spoken so far is kept; run the same command again.",
                    ) from error
                sleep(wait_s)
            except EarwitnessError as error:
                note("failed", job, kind="refused", message=str(error), maybe_paid=False)
                stop.set()
                raise
            else:
                asset = store.put(job.key, spoken)
                note("done", job, seconds=round(time.monotonic() - began, 3))
                return asset
        return None

    with ThreadPoolExecutor(max_workers=concurrency) as pool:
        running = [pool.submit(call, job) for job in jobs]
        try:
            for future in as_completed(running):
                asset = future.result()
                if asset is not None:
                    told(asset)
        except BaseException:
            # Calls under way are let end, since they are paid for; no further ones begin.
            stop.set()
            for future in running:
                future.cancel()
            raise


def _wait(attempt: int, asked_s: float | None) -> float | None:
    backoff = FIRST_WAIT_S * 2.0 ** (attempt - 1)
    # Jitter keeps parallel calls from coming back together; it changes no result.
    jittered = backoff * random.uniform(0.5, 1.5)
    wait_s = retry_wait_s(asked_s, jittered, LONGEST_WAIT_S)
    return None if wait_s is None else max(wait_s, min(jittered, LONGEST_WAIT_S))
