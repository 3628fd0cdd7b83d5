"""A clip set's description in Croissant 1.0 (JSON-LD on schema.org), as data set search and loaders read it.

Specification: MLCommons, *Croissant format*, version 1.0, http://mlcommons.org/croissant/1.0. The context is the one the
specification prints; the reference validator (mlcroissant) is run on the result in the tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
_CR = (
    "citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject", "fileSet", "format", "includes",
    "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex",
    "repeated", "replace", "samplingRate", "separator", "source", "subField", "transform",
)  # fmt: skip
CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{name: f"cr:{name}" for name in _CR},
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "sc": "https://schema.org/",
}

_FIELDS: tuple[tuple[str, str, str], ...] = (
    ("id", "sc:Text", "Id of the clip."),
    ("path", "sc:Text", "The file, relative to the folder of its table."),
    ("sha256", "sc:Text", "SHA-256 of the file."),
    ("emotion", "sc:Text", "The emotion that the voice expresses."),
    ("speaker", "sc:Text", "A made-up name of the speaker."),
    ("language", "sc:Text", "Language of the words."),
    ("seconds", "sc:Float", "Duration in seconds."),
    ("rate", "sc:Integer", "Sample rate in Hz."),
)


@dataclass(frozen=True, slots=True)
class SplitFiles:
    """What Croissant says of one split. ``prefix`` is its folder with a slash, or empty."""

    name: str
    prefix: str
    clips_sha256: str
    clips_bytes: int


def croissant(
    *,
    name: str,
    version: str,
    description: str,
    licence: str,
    url: str,
    creator: str,
    citation: str,
    published: str,
    splits: Sequence[SplitFiles],
) -> dict[str, Any]:
    """The description, ready for JSON."""
    distribution: list[dict[str, Any]] = []
    record_sets: list[dict[str, Any]] = []
    for split in splits:
        table, audio = f"{split.name}-clips.jsonl", f"{split.name}-audio"
        distribution += [
            {
                "@type": "cr:FileObject",
                "@id": table,
                "name": table,
                "description": f"One JSON object a line for every clip of the split {split.name}.",
                "contentUrl": f"{split.prefix}clips.jsonl",
                "contentSize": f"{split.clips_bytes} B",
                "encodingFormat": "application/jsonlines",
                "sha256": split.clips_sha256,
            },
            {
                "@type": "cr:FileSet",
                "@id": audio,
                "name": audio,
                "description": f"Recordings of the split {split.name}.",
                "encodingFormat": "audio/wav",
                "includes": f"{split.prefix}audio/*.wav",
            },
        ]
        record_sets += [
            {
                "@type": "cr:RecordSet",
                "@id": split.name,
                "name": split.name,
                "description": f"Clips of the split {split.name}.",
                "key": {"@id": f"{split.name}/id"},
                "field": [
                    {
                        "@type": "cr:Field",
                        "@id": f"{split.name}/{field}",
                        "name": f"{split.name}/{field}",
                        "description": words,
                        "dataType": kind,
                        "source": {"fileObject": {"@id": table}, "extract": {"column": field}},
                    }
                    for field, kind, words in _FIELDS
                ],
            },
        ]
    optional = {
        "url": url,
        "citeAs": citation,
        "datePublished": published,
        "creator": {"@type": "sc:Organization", "name": creator} if creator else "",
    }
    return {
        "@context": dict(CONTEXT),
        "@type": "sc:Dataset",
        "name": name,
        "description": description,
        "conformsTo": CONFORMS_TO,
        "license": licence,
        "version": version,
        **{key: value for key, value in optional.items() if value},
        "rai:dataCollection": "People spoke short texts in assigned emotions and agreed to a consent text first.",
        "rai:personalSensitiveInformation": "Voices of people under made-up names; some with sex as they gave it.",
        "distribution": distribution,
        "recordSet": record_sets,
    }
