"""Recordings people send: looked at before they are kept, kept so that a kill loses none.

A recording is decoded whole by :mod:`earwitness.audio.io`, whatever its name or type says, and refused with a reason
when it is no mono PCM WAV, clips, is silent, or is too short or long. The file goes into ``recordings/.incoming`` under
its hash first; then the row is committed; then the file is moved into place. :func:`recover` finishes what a kill
left between the two.

Paths are made of the account, script and emotion of the assignment. Nothing of them comes from the browser.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earwitness.audio.files import atomic_write_text, file_sha256
from earwitness.errors import AudioFileError
from earwitness.review.project import RECORDINGS, Project
from earwitness.review.store import dump, now, opened, rows

LIST = "recordings.jsonl"
INCOMING = ".incoming"
LEAST_RATE_HZ = 16_000
"""The rate clip sets are made at; a recording must not have less."""
MOST_RATE_HZ = 192_000
MOST_TAKES = 100
"""Takes of one script; a thousandth redo is a fault or an attack."""
FULL_SCALE_RUN = 3
"""Samples in a row at full scale: one may be a peak that just fits, three are a cut wave."""
FULL_SCALE = 32_766 / 32_768
LEAST_LEVEL_DBFS = -50.0
"""Louder part of a recording below this: nobody spoke, or far from the microphone."""
WINDOW_S = 0.1
_OFF = ("echoCancellation", "noiseSuppression", "autoGainControl")


class RefusedError(ValueError):
    """A recording that is not kept. The message is for the speaker."""


@dataclass(frozen=True, slots=True)
class Take:
    """A recording that was looked at and may be kept."""

    sha256: str
    seconds: float
    rate: int
    peak: float
    rms_dbfs: float


def most_bytes(project: Project) -> int:
    """The largest upload: the longest recording at the highest rate, 24 bits, and a header."""
    return int(min((project.max_seconds + 1) * 96_000 * 3, 64 * 2**20)) + 4096


def examine(data: bytes, project: Project) -> Take:
    """Decode a recording and look at it.

    Raises
    ------
    RefusedError: it cannot be used; the message says why and what to do.
    """
    import hashlib

    import numpy as np

    from earwitness.audio.io import decode_audio

    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise RefusedError("It is no WAV file. Record it on this page.")
    try:
        audio = decode_audio(data, name="the recording", require_sound=False)
    except AudioFileError as error:
        raise RefusedError(f"It cannot be read: {error.found}. Record it again.") from None
    if audio.channels != 1:
        raise RefusedError(f"It has {audio.channels} channels; one is wanted. Record it again.")
    if not LEAST_RATE_HZ <= audio.rate <= MOST_RATE_HZ:
        raise RefusedError(
            f"Its rate is {audio.rate} Hz; at least {LEAST_RATE_HZ} Hz are wanted. Use another browser or microphone."
        )
    if audio.seconds < project.min_seconds:
        raise RefusedError(
            f"It is too short: {audio.seconds:.2f} s of at least {project.min_seconds:g} s. Speak the whole text."
        )
    if audio.seconds > project.max_seconds:
        raise RefusedError(
            f"It is too long: {audio.seconds:.1f} s of at most {project.max_seconds:g} s. Start later and stop sooner."
        )
    samples = audio.samples
    peak = float(np.abs(samples).max(initial=0.0))
    if longest_run(np.abs(samples) >= FULL_SCALE) >= FULL_SCALE_RUN:
        raise RefusedError(
            "It is too loud: the wave is cut off (clipping). Turn the microphone down or step back, and redo it."
        )
    loudest = loudest_dbfs(samples, audio.rate)
    if loudest < LEAST_LEVEL_DBFS:
        raise RefusedError(
            "Nothing can be heard: it is silent or far too quiet. Check that the right microphone is on, and redo it."
        )
    rms = float(np.sqrt(np.mean(samples.astype(np.float64) ** 2)))
    return Take(
        hashlib.sha256(data).hexdigest(),
        audio.seconds,
        audio.rate,
        peak,
        float(20 * np.log10(max(rms, 1e-9))),
    )


def longest_run(hits: Any) -> int:
    """The most neighbours that are all true.

    >>> import numpy as np
    >>> longest_run(np.array([True, False, True, True]))
    2
    """
    import numpy as np

    edges = np.flatnonzero(np.diff(np.concatenate([[0], hits.astype(np.int8), [0]])))
    return int((edges[1::2] - edges[::2]).max(initial=0))


def loudest_dbfs(samples: Any, rate: int) -> float:
    """Level of the loudest :data:`WINDOW_S` of a mono recording, in dB relative to a full-scale constant."""
    import numpy as np

    window = max(1, int(rate * WINDOW_S))
    power = samples.astype(np.float64) ** 2
    parts = [float(power[i : i + window].mean()) for i in range(0, len(power), window)]
    return float(10 * np.log10(max(parts, default=0.0) + 1e-18))


def check_capture(capture: Mapping[str, Any]) -> dict[str, Any]:
    """What the browser says it did to the sound, which must be nothing.

    Raises
    ------
    RefusedError: something is on, or the browser does not say.
    """
    kept: dict[str, Any] = {}
    for name in _OFF:
        value = capture.get(name)
        if value is not False:
            state = "on" if value is True else "not known"
            raise RefusedError(
                f"The browser's {_WORDS[name]} is {state}; it must be off, or the voice is changed. Use another browser."
            )
        kept[name] = False
    for name in ("sampleRate", "channelCount"):
        value = capture.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1_000_000:
            kept[name] = value
    return kept


_WORDS = {
    "echoCancellation": "echo cancellation",
    "noiseSuppression": "noise suppression",
    "autoGainControl": "automatic gain",
}


def path_of(folder: Path, key: str) -> Path:
    """Where the recording of an item belongs. The key was checked when the folder was made."""
    account, _, name = key.partition("/")
    return folder / RECORDINGS / account / f"{name}.wav"


def receive(folder: Path, data: bytes, take: Take) -> Path:
    """Put an accepted recording on the disk, under its hash, before anything refers to it."""
    from earwitness.audio.files import atomic_write_bytes

    path = folder / RECORDINGS / INCOMING / f"{take.sha256}.wav"
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write_bytes(path, data)
    return path


def save_take(
    db: sqlite3.Connection,
    person: int,
    item: int,
    take: Take,
    consent_version: str,
    capture: Mapping[str, Any],
) -> None:
    """Keep what is known of a recording, and that the item is done; a redo takes the place of the last.

    Raises
    ------
    RefusedError: too many takes.
    """
    from earwitness.review.store import save_answer

    row = db.execute("SELECT takes, sha256 FROM recordings WHERE item=?", (item,)).fetchone()
    takes = row[0] if row and row[1] == take.sha256 else (row[0] if row else 0) + 1
    if takes > MOST_TAKES:
        raise RefusedError(f"There are {MOST_TAKES} takes of this text already.")
    db.execute(
        "INSERT OR REPLACE INTO recordings VALUES(?,?,?,?,?,?,?,?,?,?)",
        (item, take.sha256, take.seconds, take.rate, take.peak, take.rms_dbfs, consent_version, now(), takes,
         dump(dict(capture))),
    )  # fmt: skip
    save_answer(db, person, item, {"recording": take.sha256}, None)


def settle(db: sqlite3.Connection, folder: Path, item: int) -> None:
    """Move the file that an item's committed row names into place. Of two takes sent at once the row decides."""
    row = db.execute(
        "SELECT i.key, r.sha256 FROM recordings r JOIN items i ON i.id=r.item WHERE r.item=?",
        (item,),
    ).fetchone()
    if row is not None:
        _put_in_place(folder, row[0], row[1])


def _put_in_place(folder: Path, key: str, sha256: str) -> None:
    path = path_of(folder, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    incoming = folder / RECORDINGS / INCOMING / f"{sha256}.wav"
    if incoming.is_file():
        incoming.replace(path)


def recover(folder: Path) -> int:
    """Finish what a kill left half done; returns how many files were moved into place."""
    incoming = folder / RECORDINGS / INCOMING
    moved = 0
    if incoming.is_dir():
        with opened(folder) as db:
            wanted = dict(
                rows(db, "SELECT r.sha256, i.key FROM recordings r JOIN items i ON i.id=r.item")
            )
        for path in sorted(incoming.iterdir()):
            key = wanted.get(path.stem)
            if key is not None and path.suffix == ".wav":
                _put_in_place(folder, key, path.stem)
                moved += 1
            elif path.is_file():
                path.unlink()
    return moved


def recordings_of(folder: Path) -> list[dict[str, Any]]:
    """Every recording that is kept, sorted by id.

    Columns: ``id``, ``path`` (in the folder), ``sha256``, ``account``, ``speaker``, ``script_id``, ``text``,
    ``emotion``, ``seconds``, ``consent_version``, ``recorded_at``; then ``rate``, ``takes`` and ``capture``.
    """
    found = []
    with opened(folder) as db:
        table = rows(
            db,
            "SELECT i.key, i.owner, i.shown, r.sha256, r.seconds, r.consent_version, r.at, r.rate, r.takes, r.capture"
            " FROM recordings r JOIN items i ON i.id=r.item ORDER BY i.key",
        )
    for key, account, shown, sha256, seconds, consent, at, rate, takes, capture in table:
        told = json.loads(shown)
        found.append(
            {
                "id": key,
                "path": path_of(Path(), key).as_posix(),
                "sha256": sha256,
                "account": account,
                "speaker": account,
                "script_id": key.partition("/")[2].rpartition("--")[0],
                "text": told["text"],
                "emotion": told["emotion"],
                "seconds": round(seconds, 4),
                "consent_version": consent,
                "recorded_at": at,
                "rate": rate,
                "takes": takes,
                "capture": json.loads(capture),
            }
        )
    return found


def write_list(folder: Path) -> Path:
    """Write ``recordings.jsonl`` anew."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in recordings_of(folder)]
    path = folder / LIST
    atomic_write_text(path, "".join(lines))
    return path


def missing_recordings(folder: Path) -> tuple[str, ...]:
    """Ids whose file is not there or is another one."""
    return tuple(
        row["id"]
        for row in recordings_of(folder)
        if not (folder / row["path"]).is_file()
        or file_sha256(folder / row["path"]) != row["sha256"]
    )
