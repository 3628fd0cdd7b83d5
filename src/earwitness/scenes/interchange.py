"""Labels of mixed scenes for other programs.

============  =======  =============================================================================
``audacity``  .txt     a label track: start, end, text; turns and sounds in order of time
``rttm``      .rttm    NIST Rich Transcription: one SPEAKER line a turn, for diarisation tools
``jams``      .jams    JSON Annotated Music Specification 0.3 (Humphrey et al., ISMIR 2014): turns and
                       sounds as ``segment_open`` and ``tag_open``, the rest in ``sandbox``
============  =======  =============================================================================

Times are in seconds from the start of the audio. Sounds that are muted in a twin are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from earwitness.errors import DataError, UsageError
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.mixing.manifest import Manifest, MixedEvent, manifest_to_json
from earwitness.scenes.mixing.stage import manifests

JAMS_VERSION = "0.3.4"


def _heard(manifest: Manifest) -> Iterable[MixedEvent]:
    return (event for event in manifest.events if event.heard is not None)


def audacity_labels(manifest: Manifest) -> str:
    """A label track: one line a turn or sound, with tabs between; sounds say their reaction.

    Returns
    -------
    str: lines ``start<TAB>end<TAB>text`` in order of time, as *File > Import > Labels* reads them.
    """
    rows = [(t.start_s, t.end_s, f"{t.speaker} {t.index}") for t in manifest.turns]
    rows += [(e.start_s, e.end_s, f"{e.heard} ({e.id}, {e.reaction})") for e in _heard(manifest)]
    return "".join(f"{start:.6f}\t{end:.6f}\t{text}\n" for start, end, text in sorted(rows))


def rttm_lines(manifest: Manifest) -> str:
    """Speaker turns in ten fields: type, file, channel, onset, duration, and the speaker at the eighth place."""
    name = manifest.scene.replace(" ", "_")
    return "".join(
        f"SPEAKER {name} 1 {turn.start_s:.3f} {turn.end_s - turn.start_s:.3f} <NA> <NA> {turn.speaker} <NA> <NA>\n"
        for turn in manifest.turns
    )


def jams_document(manifest: Manifest) -> dict[str, Any]:
    """Turns and sounds as two annotations; levels, takes and reactions in ``sandbox``."""
    plain = manifest_to_json(manifest)
    duration = plain["audio"]["duration_s"]
    turns = [
        _observation(turn["start_s"], turn["end_s"], turn["speaker"]) for turn in plain["turns"]
    ]
    heard = [event for event in plain["events"] if event["heard"] is not None]
    sounds = [_observation(event["start_s"], event["end_s"], event["heard"]) for event in heard]
    return {
        "file_metadata": {
            "title": manifest.scene,
            "artist": "",
            "release": "",
            "duration": duration,
            "identifiers": {"sha256": manifest.audio.sha256},
            "jams_version": JAMS_VERSION,
        },
        "annotations": [
            _annotation("segment_open", "who speaks when", turns, duration, {}),
            _annotation("tag_open", "which sound occurs when", sounds, duration, {"events": heard}),
        ],
        "sandbox": {
            "scene": manifest.scene,
            "variant": manifest.variant,
            "location": manifest.location,
            "split": manifest.split,
            "levels": plain["levels"],
            "ambience": plain["ambience"],
        },
    }


def _observation(start_s: float, end_s: float, value: str) -> dict[str, Any]:
    return {
        "time": start_s,
        "duration": round(end_s - start_s, 6),
        "value": value,
        "confidence": 1.0,
    }


def _annotation(
    namespace: str,
    rules: str,
    data: list[dict[str, Any]],
    duration_s: float,
    sandbox: Mapping[str, Any],
) -> dict[str, Any]:
    return {
        "namespace": namespace,
        "annotation_metadata": {
            "curator": {"name": "", "email": ""},
            "annotator": {},
            "version": "1",
            "corpus": "earwitness",
            "annotation_tools": "earwitness",
            "annotation_rules": rules,
            "validation": "",
            "data_source": "program",
        },
        "data": data,
        "sandbox": dict(sandbox),
        "time": 0,
        "duration": duration_s,
    }


def _jams_text(manifest: Manifest) -> str:
    return json.dumps(jams_document(manifest), indent=1, ensure_ascii=False) + "\n"


LABELS: Mapping[str, tuple[str, Callable[[Manifest], str]]] = MappingProxyType(
    {
        "audacity": (".txt", audacity_labels),
        "rttm": (".rttm", rttm_lines),
        "jams": (".jams", _jams_text),
    }
)
"""Format -> suffix and writer."""


def write_labels(corpus: Corpus, form: str, folder: Path) -> int:
    """Write labels of every mixed scene; returns how many files.

    Raises
    ------
    UsageError: an unknown format.
    DataError: nothing is mixed yet, or a manifest is broken.
    """
    from earwitness.audio.files import atomic_write_text

    if form not in LABELS:
        raise UsageError("--format", repr(form), ", ".join(LABELS))
    suffix, write = LABELS[form]
    count = 0
    for manifest in manifests(corpus):
        atomic_write_text(folder / f"{manifest.scene}{suffix}", write(manifest))
        count += 1
    if not count:
        raise DataError(
            str(corpus.folder), "has no mixed scenes", "mixes",
            f"Run: earwitness scenes mix {corpus.folder}",
        )  # fmt: skip
    return count
