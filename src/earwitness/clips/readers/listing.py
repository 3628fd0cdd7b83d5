"""What a reader returns, and what readers share: walking a folder in a fixed order, files under two names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from earwitness.clips.corpus import Use
from earwitness.errors import DataError, UsageError

AUDIO_SUFFIXES = (
    ".wav",
    ".flac",
    ".mp3",
    ".ogg",
    ".opus",
    ".aif",
    ".aiff",
    ".au",
    ".w64",
    ".rf64",
    ".caf",
    ".m4a",
)
"""Names that audio files go by. Content decides what a file is; this only finds candidates in folders."""

VIDEO_SUFFIXES = (".mp4", ".avi", ".flv", ".mov", ".mkv", ".webm")

_NO_CLIPS = {"__MACOSX", ".git", ".cache"}


@dataclass(frozen=True, slots=True)
class Terms:
    """What a source is and what may be done with it; becomes the set card."""

    name: str
    licence: str
    use: Use
    label_map: str
    language: str = ""
    redistribute: bool = False
    source: str = ""
    citation: str = ""
    version: str = "1"


@dataclass(frozen=True, slots=True)
class SourceClip:
    """One recording of a source, before label mapping and conversion.

    ``licence`` and ``language`` are empty where the set's own hold. ``seconds`` is what the source
    says of its length, to be compared with the file; None where it says nothing.
    """

    id: str
    file: Path
    source_label: str
    speaker: str = ""
    language: str = ""
    licence: str = ""
    seconds: float | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything a reader found. ``ignored`` counts files that are no clips of this kind, by reason.

    ``notices`` are licence files that must travel with the set.
    """

    clips: tuple[SourceClip, ...]
    ignored: Mapping[str, int] = field(default_factory=dict)
    revision: str = ""
    notices: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may say to a reader: ``columns`` (ours -> theirs) and the revision of the source."""

    columns: Mapping[str, str] = field(default_factory=dict)
    revision: str = ""
    audio_root: Path | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """A kind of source. ``own`` marks the generic kinds, whose terms are the user's to state."""

    kind: str
    what: str
    terms: Terms
    read: Callable[[Path, Options], Listing]
    own: bool = False


def audio_files(folder: Path, suffixes: tuple[str, ...] = AUDIO_SUFFIXES) -> list[Path]:
    """Audio files anywhere under a folder, sorted by relative path; hidden and archive litter left out.

    Raises
    ------
    UsageError: no such folder.
    """
    if not folder.is_dir():
        raise UsageError(str(folder), "no such folder", "the folder of the corpus")
    found = [
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in suffixes
        and not any(
            part.startswith(".") or part in _NO_CLIPS for part in path.relative_to(folder).parts
        )
        and path.is_file()
    ]
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def parse_names(
    folder: Path,
    kind: str,
    example: str,
    parse: Callable[[Path], SourceClip | str],
) -> Listing:
    """List a corpus whose file names carry the labels.

    Parameters
    ----------
    parse: a clip, or the reason why the file is none of this corpus's clips.

    Raises
    ------
    DataError: there is no clip at all, or two different recordings have one name.
    """
    ignored: Counter[str] = Counter()
    clips: list[SourceClip] = []
    files = audio_files(folder, AUDIO_SUFFIXES + VIDEO_SUFFIXES)
    for path in files:
        video = path.suffix.lower() in VIDEO_SUFFIXES
        result = "with video" if video else parse(path)
        if isinstance(result, str):
            ignored[result] += 1
        else:
            clips.append(result)
    if not clips:
        found = f"{len(files)} recordings" if files else "no audio file"
        if ignored:
            found += (
                " (" + ", ".join(f"{reason}: {n}" for reason, n in sorted(ignored.items())) + ")"
            )
        raise DataError(str(folder), f"{found}, and no {kind} clip", f"names such as {example}")
    kept, again = without_copies(clips)
    if again:
        ignored["the same recording under the same name again"] += again
    return Listing(tuple(kept), dict(sorted(ignored.items())))


def without_copies(clips: Iterable[SourceClip]) -> tuple[list[SourceClip], int]:
    """Keep the first of several files with one id when they hold the same sound.

    Published archives of RAVDESS and TESS contain themselves a second time in a sub-folder, and a FLAC may
    lie beside its WAV: both are the same recording twice. Two *different* recordings of one name are an error.

    Returns
    -------
    the clips to keep, in order, and how many were left out.
    """
    first: dict[str, SourceClip] = {}
    again = 0
    for clip in clips:
        kept = first.setdefault(clip.id.casefold(), clip)
        if kept is clip:
            continue
        if not _same_sound(kept.file, clip.file):
            raise DataError(
                str(clip.file),
                f"another recording than {kept.file}, under the same name",
                "one recording a name",
                "Import one of the two folders only.",
            )
        again += 1
    return list(first.values()), again


def _same_sound(one: Path, other: Path) -> bool:
    if one.stat().st_size == other.stat().st_size and one.read_bytes() == other.read_bytes():
        return True
    import numpy as np

    from earwitness.audio import read_audio
    from earwitness.errors import AudioFileError

    try:
        a, b = read_audio(one), read_audio(other)
    except AudioFileError:
        return False
    return a.rate == b.rate and bool(np.array_equal(a.samples, b.samples))
