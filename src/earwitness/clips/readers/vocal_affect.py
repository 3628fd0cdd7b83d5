"""The VocalAffectBench release: a local copy of its folder, or the hub data set at a pinned revision.

Of ``data/metadata.jsonl`` only ``audio_id``, ``required_emotion``, ``duration_seconds``, ``sample_rate``
and ``channels`` are relied on. Where the WAVs lie is found by ``audio_id``, anywhere under the folder. The
release names no speaker of a clip; should a copy have such a column, ``--map speaker=COLUMN`` reads it.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

from earwitness.clips.readers.listing import Listing, Options, SourceClip, Terms, audio_files
from earwitness.clips.readers.tables import json_rows
from earwitness.errors import DataError, EarwitnessError, MissingExtraError, UsageError

REPOSITORY = "besimple-ai/vocal-affect-bench"
REVISION = "8d4165f514befc282dc20360b2d28522d9523413"
"""The published revision that results are compared at: 280 clips, 40 a label."""

TERMS = Terms(
    name="VocalAffectBench",
    licence="VocalAffectBench audio licence (evaluation only, no voice cloning; see LICENSE)",
    use="evaluation-only",
    label_map="vocal-affect-bench",
    language="en",
    source=f"hub data set {REPOSITORY}",
    citation="VocalAffectBench, arXiv:2608.28932",
)

_COLUMNS = ("audio_id", "required_emotion", "duration_seconds", "sample_rate", "channels")
_HUB = re.compile(r"(?:hf:/{1,2}datasets/|hub:)?([\w.-]+/[\w.-]+)")


def read_vocal_affect(source: Path | str, options: Options) -> Listing:
    """List the release in a folder, or download it first when ``source`` names a hub data set."""
    folder = Path(source)
    if folder.is_dir():
        return read_folder(folder, options)
    match = _HUB.fullmatch(str(source))
    if match is None or (match[1] != REPOSITORY and not re.match(r"hf:/|hub:", str(source))):
        raise UsageError(
            str(source), "no such folder", f"the folder of the release, or {REPOSITORY} for the hub"
        )
    revision = options.revision or REVISION
    folder, commit = download(match[1], revision)
    return read_folder(folder, Options(options.columns, commit, options.audio_root))


def read_folder(folder: Path, options: Options) -> Listing:
    """List a local copy of the release.

    Raises
    ------
    DataError: there is no metadata, a row lacks a known field, or a clip's audio is not there.
    """
    tables = [folder / "data" / "metadata.jsonl", folder / "metadata.jsonl"]
    table = next((path for path in tables if path.is_file()), None)
    if table is None:
        raise DataError(str(folder), "has no data/metadata.jsonl", "the folder of the release")
    by_stem: dict[str, list[Path]] = {}
    for path in audio_files(options.audio_root or folder):
        by_stem.setdefault(path.stem, []).append(path)
    clips: list[SourceClip] = []
    lost: list[str] = []
    speaker_column = options.columns.get("speaker")
    seen: dict[str, int] = {}
    for number, row in json_rows(table):
        where = f"{table}:{number}"
        for column in (*_COLUMNS, *([speaker_column] if speaker_column else [])):
            if not row.get(column):
                raise DataError(where, f"no {column!r}", f"the fields {', '.join(_COLUMNS)}")
        audio_id = row["audio_id"]
        if audio_id in seen:
            raise DataError(
                where, f"{audio_id!r} is already on line {seen[audio_id]}", "one row a clip"
            )
        seen[audio_id] = number
        files = by_stem.get(audio_id, [])
        if len(files) > 1:
            raise DataError(
                where,
                f"{audio_id} is there {len(files)} times: {files[0]}, {files[1]}",
                "one file a clip",
            )
        if not files:
            lost.append(audio_id)
            continue
        known = {*_COLUMNS, speaker_column}
        clips.append(
            SourceClip(
                id=audio_id,
                file=files[0],
                source_label=row["required_emotion"],
                speaker=row[speaker_column] if speaker_column else "",
                seconds=_seconds(row["duration_seconds"], where),
                metadata={key: text for key, text in row.items() if key not in known and text},
            )
        )
    if lost:
        raise DataError(
            str(table),
            f"{len(lost)} of {len(seen)} clips have no audio under {options.audio_root or folder}"
            f" (looked for {lost[0]}.wav)",
            "the WAVs beside the metadata, in any sub-folder",
            "Download the whole data set, or name their folder with --audio-root.",
        )
    if not clips:
        raise DataError(str(table), "no row in it", "one row a clip")
    notices = tuple(
        path for name in ("LICENSE", "DATASET_CARD.md") if (path := folder / name).is_file()
    )
    return Listing(tuple(clips), {}, options.revision, notices)


def download(repository: str, revision: str) -> tuple[Path, str]:
    """Fetch a data set from the hub into the hub's own cache, where nothing is fetched twice.

    ``HF_ENDPOINT``, ``HF_HOME`` and ``HF_TOKEN`` are honoured.

    Returns
    -------
    the folder and the commit it is at.

    Raises
    ------
    MissingExtraError: huggingface_hub is not installed.
    DataError: the hub has no such data set or revision, or could not be reached.
    """
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import (
            GatedRepoError,
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )
    except ImportError as error:
        raise MissingExtraError("downloading from the hub", "hub") from error
    where = f"hub data set {repository}"
    try:
        folder = Path(
            snapshot_download(
                repository,
                repo_type="dataset",
                revision=revision,
                endpoint=os.environ.get("HF_ENDPOINT") or None,
                library_name="earwitness",
            )
        )
    except GatedRepoError as error:
        raise DataError(
            where,
            "asks for its terms to be accepted first",
            next_step="Accept them on its page and set HF_TOKEN.",
        ) from error
    except RepositoryNotFoundError as error:
        raise DataError(
            where, "not found on the hub", "a public data set, or HF_TOKEN set"
        ) from error
    except RevisionNotFoundError as error:
        raise DataError(
            where, f"has no revision {revision}", "a commit, tag or branch of it"
        ) from error
    except EarwitnessError:
        raise
    except (
        Exception
    ) as error:  # the client raises httpx, OS and its own errors: all mean "not fetched"
        reason = " ".join(str(error).split())[:300]
        raise DataError(
            where,
            f"could not be downloaded ({type(error).__name__}: {reason})",
            next_step="Run the same command again: what was fetched is kept.",
        ) from error
    return folder, folder.name


def _seconds(text: str, where: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise DataError(f"{where}: duration_seconds", f"found {text!r}", "a number above 0")
    return seconds
