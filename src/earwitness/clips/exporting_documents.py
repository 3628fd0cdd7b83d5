"""What stands beside the clips of an exported set: data card, licence, Croissant file, tables, hashes.

All of it is made from the clip sets on disk and ``export.json``, so that it can be made anew when clips go.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from earwitness.audio.files import atomic_write_text, file_sha256
from earwitness.clips.corpus import CLIPS_FILE, EMOTIONS, ClipSet, Use, load_clip_set
from earwitness.clips.exporting_croissant import SplitFiles, croissant
from earwitness.errors import DataError

EXPORT = "export.json"
README = "README.md"
LICENCE = "LICENSE.txt"
CROISSANT = "croissant.json"
METADATA = "metadata.jsonl"
SUMS = "SHA256SUMS"
TEMPLATES = Path(__file__).parent / "exporting_templates"
_CANARY_SPACE = uuid.UUID("5c4b42a6-1d0d-5a0e-8f5c-6f0b6d1b4a67")
"""Namespace of canaries; any fixed value will do."""

USE_WORDS: Mapping[Use, str] = {
    "evaluation-only": "Evaluation only: testing and comparing programs. No training, no voice cloning, no search for who a speaker is.",
    "non-commercial": "Any use without commercial advantage, training included. No voice cloning, no search for who a speaker is.",
    "any": "Any use, training included. No voice cloning, no search for who a speaker is.",
}


@dataclass(frozen=True, slots=True)
class ExportInfo:
    """What the documents say and the clips do not. ``licence_text`` is empty for the text that ships."""

    name: str
    version: str
    use: Use = "evaluation-only"
    licence: str = ""
    licence_text: str = ""
    redistribute: bool = True
    url: str = ""
    creator: str = ""
    contact: str = ""
    citation: str = ""
    published: str = ""
    selection: str = ""
    splits: Mapping[str, float] = field(default_factory=lambda: {"test": 1.0})
    with_text: bool = True
    seed: int = 0
    key: str = ""

    @property
    def licence_name(self) -> str:
        """The licence in words."""
        return self.licence or f"{self.name} audio licence ({self.use})"


def split_folder(root: Path, info: ExportInfo, split: str) -> Path:
    """A split's clip set: the folder itself where there is one split, else a folder in it."""
    return root if len(info.splits) == 1 else root / split


def write_info(root: Path, info: ExportInfo) -> None:
    """Put ``export.json`` in place."""
    text = json.dumps(asdict(info), ensure_ascii=False, indent=1)
    atomic_write_text(root / EXPORT, text + "\n")


def read_info(root: Path) -> ExportInfo | None:
    """What ``export.json`` says; None where there is none.

    Raises
    ------
    DataError: it is not what it should be.
    """
    path = root / EXPORT
    if not path.exists():
        return None
    try:
        return ExportInfo(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, OSError) as error:
        raise DataError(str(path), f"is no export's record ({error})") from None


def canary_of(info: ExportInfo, sets: Mapping[str, ClipSet]) -> str:
    """The canary string of a test-only set; empty for others. The same set has the same one."""
    if info.use != "evaluation-only":
        return ""
    content = hashlib.sha256("".join(clip_set.sha256 for clip_set in sets.values()).encode())
    guid = uuid.uuid5(_CANARY_SPACE, f"{info.name} {info.version} {content.hexdigest()}")
    return f"TEST DATA, DO NOT TRAIN ON IT. {info.name} canary GUID {guid}"


def write_documents(root: Path, info: ExportInfo) -> None:
    """Write everything beside the clips; ``SHA256SUMS`` last."""
    sets = {
        name: load_clip_set(split_folder(root, info, name), check_files=False)
        for name in info.splits
        if (split_folder(root, info, name) / CLIPS_FILE).exists()
    }
    canary = canary_of(info, sets)
    for name, clip_set in sets.items():
        _write_metadata(clip_set, name, canary)
    values = _values(root, info, sets, canary)
    atomic_write_text(root / LICENCE, _licence(info))
    atomic_write_text(root / README, _render("README.md.j2", values).rstrip() + "\n")
    described = croissant(
        name=info.name,
        version=info.version,
        description=_description(values, info, canary),
        licence=info.licence_name,
        url=info.url,
        creator=info.creator,
        citation=info.citation or f"{info.name}, version {info.version}",
        published=info.published,
        splits=[
            SplitFiles(
                name,
                "" if clip_set.folder == root else f"{name}/",
                clip_set.sha256,
                (clip_set.folder / CLIPS_FILE).stat().st_size,
            )
            for name, clip_set in sets.items()
        ],
    )
    atomic_write_text(root / CROISSANT, json.dumps(described, ensure_ascii=False, indent=2) + "\n")
    write_info(root, info)
    _write_sums(root)


def remove_documents(root: Path) -> None:
    """Delete what :func:`write_documents` wrote; ``export.json``, which says whose it was, last."""
    for name in (README, LICENCE, CROISSANT, METADATA, SUMS, EXPORT):
        (root / name).unlink(missing_ok=True)


def _description(values: Mapping[str, Any], info: ExportInfo, canary: str) -> str:
    text = (
        f"{values['clips']} recordings of {values['speakers']} speakers who express one of "
        f"{len(values['labels'])} emotions with their voice. {USE_WORDS[info.use]}"
    )
    return f"{text} {canary}" if canary else text


def _write_metadata(clip_set: ClipSet, split: str, canary: str) -> None:
    lines = []
    for clip in clip_set.clips:
        row: dict[str, Any] = {
            "file_name": clip.path,
            "id": clip.id,
            "emotion": clip.emotion,
            "speaker": clip.speaker,
            "language": clip.language,
            "split": split,
            "seconds": clip.seconds,
        }
        row |= {k: clip.metadata[k] for k in ("script", "text", "sex") if k in clip.metadata}
        if canary:
            row["canary"] = canary
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    atomic_write_text(clip_set.folder / METADATA, "".join(lines))


def _values(
    root: Path, info: ExportInfo, sets: Mapping[str, ClipSet], canary: str
) -> dict[str, Any]:
    clips = [clip for clip_set in sets.values() for clip in clip_set.clips]
    labels = [label for label in EMOTIONS if any(clip.emotion == label for clip in clips)]
    splits = []
    for name, clip_set in sets.items():
        counts = Counter(clip.emotion for clip in clip_set.clips)
        splits.append(
            {
                "name": name,
                "prefix": "" if clip_set.folder == root else f"{name}/",
                "folder": root.name if clip_set.folder == root else f"{root.name}/{name}",
                "clips": len(clip_set.clips),
                "speakers": len({clip.speaker for clip in clip_set.clips}),
                "counts": {label: counts[label] for label in labels},
            }
        )
    n = len(clips)
    return {
        "name": info.name,
        "version": info.version,
        "licence": info.licence_name,
        "licence_id": "-".join(info.licence_name.lower().replace("(", "").replace(")", "").split()),
        "languages": sorted({clip.language for clip in clips if clip.language}),
        "size_category": "n<1K" if n < 1000 else "1K<n<10K" if n < 10_000 else "10K<n<100K",
        "evaluation_only": info.use == "evaluation-only",
        "splits": splits,
        "clips": n,
        "labels": labels,
        "speakers": len({clip.speaker for clip in clips}),
        "hours": f"{sum(clip.seconds for clip in clips) / 3600:.2f}",
        "scripts": len({clip.metadata.get("script", clip.id) for clip in clips}),
        "consents": sorted({clip.metadata.get("consent_version", "") for clip in clips} - {""}),
        "selection": info.selection,
        "conversion": next(iter(sets.values())).card.conversion if sets else "",
        "use_words": USE_WORDS[info.use],
        "canary": canary,
        "contact": info.contact,
    }


def _licence(info: ExportInfo) -> str:
    if info.licence_text:
        return info.licence_text
    return _render(f"LICENSE-{info.use}.txt", {"name": info.name, "version": info.version})


def _render(template: str, values: Mapping[str, Any]) -> str:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        keep_trailing_newline=True,
    )
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    return environment.from_string(text).render(values)


def _write_sums(root: Path) -> None:
    lines = []
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        if path.is_file() and path.name != SUMS and not any(p.startswith(".") for p in name.parts):
            lines.append(f"{file_sha256(path)}  {name.as_posix()}\n")
    atomic_write_text(root / SUMS, "".join(lines))
