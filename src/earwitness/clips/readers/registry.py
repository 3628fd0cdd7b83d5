"""The kinds of source that can be imported."""

from __future__ import annotations

from collections.abc import Mapping

from earwitness.clips.readers import acted, tables, vocal_affect
from earwitness.clips.readers.listing import Reader
from earwitness.errors import UsageError

_ALL = (
    Reader(
        "vocal-affect-bench",
        "the VocalAffectBench release: its folder, or the hub data set by name",
        vocal_affect.TERMS,
        vocal_affect.read_vocal_affect,
    ),
    Reader("ravdess", "RAVDESS speech, WAV or FLAC", acted.RAVDESS, acted.read_ravdess),
    Reader("crema-d", "CREMA-D audio", acted.CREMA_D, acted.read_crema_d),
    Reader("tess", "Toronto emotional speech set", acted.TESS, acted.read_tess),
    Reader("savee", "SAVEE audio", acted.SAVEE, acted.read_savee),
    Reader("emodb", "Berlin database of emotional speech", acted.EMODB, acted.read_emodb),
    Reader("csv", "a CSV table with --map", tables.OWN, tables.read_csv, own=True),
    Reader("jsonl", "a JSONL table with --map", tables.OWN, tables.read_jsonl, own=True),
    Reader(
        "audiofolder",
        "folders named after the emotions, or with a metadata.csv",
        tables.OWN,
        tables.read_audiofolder,
        own=True,
    ),
)

READERS: Mapping[str, Reader] = {reader.kind: reader for reader in _ALL}


def reader_for(kind: str) -> Reader:
    """The reader of a kind.

    Raises
    ------
    UsageError: there is no such kind.
    """
    try:
        return READERS[kind]
    except KeyError:
        raise UsageError(f"kind {kind!r}", "unknown", f"one of {', '.join(READERS)}") from None
