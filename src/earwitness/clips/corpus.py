"""The clip set: a folder with audio files, ``clips.jsonl`` and ``card.yaml``.

``clips.jsonl`` has one JSON object a line, sorted by id; ``path`` is relative to the folder, with forward
slashes, so that a set can be moved. ``card.yaml`` says what the set is and what it may be used for.
``clips.jsonl`` is written last and appears by an atomic rename: where it is, the set is whole.

Everything read is checked, field by field; an error names file and line.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

from earwitness.audio.files import atomic_write_bytes
from earwitness.errors import DataError, LicenceError
from earwitness.models.protocols import AudioRef, Transform

Emotion = Literal["anger", "disgust", "fear", "happiness", "neutral", "sadness", "surprise"]
EMOTIONS: tuple[Emotion, ...] = (
    "anger",
    "disgust",
    "fear",
    "happiness",
    "neutral",
    "sadness",
    "surprise",
)
"""The seven labels, in alphabetical order, which is the order of every table."""

Use = Literal["any", "non-commercial", "evaluation-only"]


@dataclass(frozen=True, slots=True)
class Clip:
    """One single-speaker recording with its label.

    ``speaker`` is empty where the source does not say who speaks; intervals then treat each clip as its
    own cluster (:attr:`cluster`). ``source_label`` is the source's own word, before any label map.
    """

    id: str
    path: str
    sha256: str
    emotion: Emotion
    speaker: str
    language: str
    seconds: float
    rate: int
    channels: int
    source_label: str
    licence: str
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def cluster(self) -> str:
        """What intervals resample: the speaker, or the clip itself where no speaker is known."""
        return self.speaker or self.id


@dataclass(frozen=True, slots=True)
class SetCard:
    """What a clip set is and what may be done with it.

    ``redistribute`` says whether the licence lets a report carry the audio along (``--bundle``,
    ``--embed-audio``). ``synthetic`` marks sets that test plumbing and say nothing of emotion recognition.

    ``revision`` is of the source (a commit, a release). ``label_map`` is ``id@version`` and
    ``label_map_hash`` its content. ``counts`` are clips a label, ``dropped`` clips a native label that the
    map leaves out on purpose, ``unmapped`` clips a native label no rule knows, ``ignored`` files of
    the source that are no clips of this kind (reason -> count), ``skipped`` bad files (file -> error).
    ``selection`` says how a subset was drawn. ``import_key`` is a hash of all that decided the import.
    """

    name: str
    version: str
    licence: str
    use: Use
    revision: str = ""
    redistribute: bool = False
    synthetic: bool = False
    language: str = ""
    source: str = ""
    label_map: str = ""
    conversion: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    label_map_hash: str = ""
    unmapped: Mapping[str, int] = field(default_factory=dict)
    ignored: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    selection: str = ""
    citation: str = ""
    import_key: str = ""


@dataclass(frozen=True, slots=True)
class ClipSet:
    """A set as read from its folder. ``sha256`` is of ``clips.jsonl``."""

    folder: Path
    card: SetCard
    clips: tuple[Clip, ...]
    sha256: str


CLIPS_FILE = "clips.jsonl"
CARD_FILE = "card.yaml"

_SHA256 = re.compile(r"[0-9a-f]{64}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_ID_LIMIT = 200


def load_clip_set(folder: str | Path, *, check_files: bool = True) -> ClipSet:
    """Read a clip set and check every field of it.

    Parameters
    ----------
    check_files: also require that every audio file is there. Whether it can be used is the business of
        ``earwitness clips validate``.

    Raises
    ------
    DataError: names the file and line, what was found and what was wanted.

    >>> clip_set = load_clip_set("sets/ravdess")  # doctest: +SKIP
    >>> clip_set.clips[0].emotion  # doctest: +SKIP
    'neutral'
    """
    folder = Path(folder)
    path = folder / CLIPS_FILE
    if not folder.is_dir():
        raise DataError(str(folder), "no such folder", "a clip set folder")
    if not path.is_file():
        raise DataError(
            str(folder),
            f"has no {CLIPS_FILE}",
            "a clip set (a folder with clips.jsonl and card.yaml)",
            "Make one with: earwitness clips import KIND SRC --out DIR",
        )
    card = _read_card(folder / CARD_FILE)
    data = path.read_bytes()
    clips = _read_clips(data, path)
    _check_unique(clips, str(path))
    if card.counts and dict(card.counts) != label_counts(clips):
        raise DataError(
            str(folder / CARD_FILE),
            f"counts {dict(card.counts)}",
            f"the counts of {CLIPS_FILE}: {label_counts(clips)}",
            "One of the two files was changed by hand; import the set again.",
        )
    clip_set = ClipSet(
        folder=folder,
        card=card,
        clips=tuple(sorted(clips, key=lambda clip: clip.id)),
        sha256=hashlib.sha256(data).hexdigest(),
    )
    if check_files:
        problems = missing_files(clip_set)
        if problems:
            raise DataError(
                str(folder / problems[0]),
                f"{len(problems)} of {len(clips)} audio files are missing or lead out of the folder",
                f"every file named in {CLIPS_FILE}",
            )
    return clip_set


def write_clip_set(folder: str | Path, card: SetCard, clips: Sequence[Clip]) -> ClipSet:
    """Write ``card.yaml`` and then ``clips.jsonl``, each by an atomic rename, and read both back.

    The clips are sorted by id and the card's counts are set from them. The audio files must be in place.

    Raises
    ------
    DataError: a field is not what it should be, or an audio file is missing.
    """
    folder = Path(folder)
    ordered = sorted(clips, key=lambda clip: clip.id)
    lines = [clip_to_json(clip) for clip in ordered]
    path = folder / CLIPS_FILE
    data = "".join(line + "\n" for line in lines).encode("utf-8")
    _check_unique(_read_clips(data, path), str(path))
    card = replace(card, counts=label_counts(ordered))
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write_bytes(folder / CARD_FILE, card_to_yaml(card).encode("utf-8"))
    atomic_write_bytes(path, data)
    return load_clip_set(folder)


def audio_ref(clip_set: ClipSet, clip: Clip, transform: Transform | None = None) -> AudioRef:
    """The clip's audio by reference, for an item; ``transform="silence"`` for the silent control."""
    return AudioRef(
        path=clip_path(clip_set, clip),
        sha256=clip.sha256,
        seconds=clip.seconds,
        rate=clip.rate,
        channels=clip.channels,
        transform=transform,
    )


def clip_path(clip_set: ClipSet, clip: Clip) -> Path:
    """Where the clip's audio file is."""
    return clip_set.folder.joinpath(*PurePosixPath(clip.path).parts)


def missing_files(clip_set: ClipSet) -> tuple[str, ...]:
    """Paths of clips whose file is missing, or is a link that leads out of the folder."""
    root = clip_set.folder.resolve()
    bad = []
    for clip in clip_set.clips:
        path = clip_path(clip_set, clip)
        if not path.is_file() or not path.resolve().is_relative_to(root):
            bad.append(clip.path)
    return tuple(bad)


def label_counts(clips: Sequence[Clip]) -> dict[str, int]:
    """Clips a label, in the order of :data:`EMOTIONS`; labels without clips are left out."""
    found = Counter(clip.emotion for clip in clips)
    return {label: found[label] for label in EMOTIONS if found[label]}


def require_trainable(clip_set: ClipSet) -> None:
    """Refuse to train on a set that is for evaluation only.

    Raises
    ------
    LicenceError: the card's ``use`` is ``evaluation-only``.
    """
    if clip_set.card.use == "evaluation-only":
        raise LicenceError(
            str(clip_set.folder),
            f"{clip_set.card.name} is marked evaluation-only ({clip_set.card.licence})",
            "a set whose card allows training",
            "Train on another corpus and keep this one for scoring.",
        )


def clip_to_json(clip: Clip) -> str:
    """One line of ``clips.jsonl``."""
    row = asdict(clip)
    row["metadata"] = dict(sorted(clip.metadata.items()))
    return json.dumps(row, ensure_ascii=False)


def card_to_yaml(card: SetCard) -> str:
    """``card.yaml`` as text; the same card always gives the same text."""
    import yaml

    text: str = yaml.safe_dump(asdict(card), sort_keys=False, allow_unicode=True, width=100)
    return text


def safe_relative(path: str) -> str | None:
    """None for a path that stays inside its folder; else what is wrong with it."""
    if not path or path != path.strip():
        return "is empty or begins or ends with white space"
    if "\\" in path or "\x00" in path or re.match(r"[A-Za-z]:", path):
        return "is not a relative path with forward slashes"
    if path.startswith("/"):
        return "is an absolute path"
    parts = path.split("/")
    if ".." in parts:
        return "leads out of the folder"
    if "." in parts or "" in parts:
        return "has an empty part"
    return None


def safe_id(clip_id: str) -> str | None:
    """None for a usable clip id (it names a file and a row); else what is wrong with it."""
    if not clip_id or clip_id != clip_id.strip() or clip_id.startswith("."):
        return "is empty or begins with a dot or white space"
    if len(clip_id.encode("utf-8")) > _ID_LIMIT:
        return f"is longer than {_ID_LIMIT} bytes"
    if any(c in '/\\:*?"<>|' or ord(c) < 32 or ord(c) == 127 for c in clip_id):
        return "has a character that file names cannot have"
    return None


def _read_clips(data: bytes, path: Path) -> list[Clip]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DataError(f"{path}:{line}", "not UTF-8 text", "one JSON object a line") from error
    clips = [
        _clip(line, f"{path}:{number}")
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    ]
    if not clips:
        raise DataError(str(path), "no clip in it", "at least one line")
    return clips


def _clip(line: str, where: str) -> Clip:
    try:
        row = json.loads(line)
        json.dumps(row, ensure_ascii=False).encode("utf-8")
    except (json.JSONDecodeError, RecursionError, UnicodeEncodeError) as error:
        raise DataError(where, f"not JSON ({error})", "one JSON object a line") from error
    if not isinstance(row, dict):
        raise DataError(where, f"found {type(row).__name__}", "one JSON object a line")
    names = [entry.name for entry in fields(Clip)]
    for name in names:
        if name not in row and name != "metadata":
            raise DataError(where, f"no field {name!r}", f"the fields {', '.join(names)}")
    extra = sorted(set(row) - set(names))
    if extra:
        raise DataError(
            where,
            f"unknown field {extra[0]!r}",
            f"only {', '.join(names)}",
            "Put it under metadata.",
        )
    for name in (
        "id",
        "path",
        "sha256",
        "emotion",
        "speaker",
        "language",
        "source_label",
        "licence",
    ):
        if not isinstance(row[name], str):
            raise DataError(f"{where}: {name}", f"found {row[name]!r}", "text")
    problem = safe_id(row["id"])
    if problem:
        raise DataError(f"{where}: id", f"{row['id']!r} {problem}", "a short plain name")
    problem = safe_relative(row["path"])
    if problem:
        raise DataError(
            f"{where}: path", f"{row['path']!r} {problem}", "a path inside the set's folder"
        )
    if not _SHA256.fullmatch(row["sha256"]):
        raise DataError(f"{where}: sha256", f"found {row['sha256']!r}", "64 lower-case hex digits")
    if row["emotion"] not in EMOTIONS:
        raise DataError(
            f"{where}: emotion", f"found {row['emotion']!r}", f"one of {', '.join(EMOTIONS)}"
        )
    if not _LANGUAGE.fullmatch(row["language"]) and row["language"]:
        raise DataError(
            f"{where}: language", f"found {row['language']!r}", "a tag such as en or de-AT"
        )
    seconds = row["seconds"]
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not 0 < seconds < math.inf
    ):
        raise DataError(f"{where}: seconds", f"found {seconds!r}", "a number above 0")
    for name in ("rate", "channels"):
        value = row[name]
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            raise DataError(f"{where}: {name}", f"found {value!r}", "a whole number above 0")
    metadata = row.get("metadata", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise DataError(f"{where}: metadata", f"found {metadata!r}", "an object of text values")
    return Clip(**{**row, "seconds": float(seconds), "metadata": metadata})


def _check_unique(clips: Sequence[Clip], where: str) -> None:
    # Case-folded: a set must also survive on file systems that do not tell case apart.
    for what in ("id", "path"):
        seen: dict[str, int] = {}
        for number, clip in enumerate(clips, start=1):
            value = str(getattr(clip, what))
            first = seen.setdefault(value.casefold(), number)
            if first != number:
                raise DataError(
                    f"{where}:{number}: {what}",
                    f"{value!r} is already on line {first}",
                    f"unique {what}s",
                )


def _read_card(path: Path) -> SetCard:
    import yaml

    if not path.is_file():
        raise DataError(str(path), "no such file", "the set card beside clips.jsonl")
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(
            str(path), f"not YAML ({' '.join(str(error).split())})", "a set card"
        ) from error
    if not isinstance(data, dict):
        raise DataError(
            str(path), f"holds {type(data).__name__}", "name, version, licence, use, ..."
        )
    known = {entry.name: entry for entry in fields(SetCard)}
    extra = sorted(str(key) for key in set(data) - set(known))
    if extra:
        raise DataError(str(path), f"unknown field {extra[0]!r}", f"only {', '.join(known)}")
    for name, entry in known.items():
        if name not in data:
            if entry.default is MISSING and entry.default_factory is MISSING:
                raise DataError(str(path), f"no field {name!r}", "name, version, licence and use")
            continue
        data[name] = _card_value(name, data[name], f"{path}: {name}")
    return SetCard(**data)


def _card_value(name: str, value: Any, where: str) -> Any:
    if name == "use":
        if value not in get_args(Use):
            raise DataError(where, f"found {value!r}", f"one of {', '.join(get_args(Use))}")
    elif name in ("redistribute", "synthetic"):
        if not isinstance(value, bool):
            raise DataError(where, f"found {value!r}", "true or false")
    elif name in ("counts", "dropped", "unmapped", "ignored"):
        if not isinstance(value, dict) or not all(
            isinstance(key, str) and isinstance(n, int) and not isinstance(n, bool) and n >= 0
            for key, n in value.items()
        ):
            raise DataError(where, f"found {value!r}", "a mapping of text to counts")
    elif name == "skipped":
        if not isinstance(value, dict) or not all(
            isinstance(key, str) and isinstance(text, str) for key, text in value.items()
        ):
            raise DataError(where, f"found {value!r}", "a mapping of file to error")
    elif not isinstance(value, str):
        raise DataError(where, f"found {value!r}", "text", "Put numbers and dates in quotes.")
    elif name in ("name", "version", "licence") and not value.strip():
        raise DataError(where, "is empty", "some text")
    return value
