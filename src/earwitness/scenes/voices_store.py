"""Voice files as assets: found by what they were made from, never made twice.

``FOLDER/ab/<key>.wav`` with ``<key>.json`` beside it, where the key is a hash of voice, settings, words, seed
and form. The JSON is written last: without it the sound does not count, so a kill leaves nothing half done.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earwitness.audio.convert import encode_audio
from earwitness.audio.files import atomic_write_bytes
from earwitness.models.protocols import Mark, Pause, Phrase, Segment, Spoken, Voice, Word
from earwitness.runs.items import digest

FORM = 1
"""Of how segments become a file; raised when the same segments would sound different."""


@dataclass(frozen=True, slots=True)
class VoiceAsset:
    """A stored utterance. ``sha256`` is of the file's bytes, ``file`` its place below the store."""

    key: str
    sha256: str
    file: str
    bytes: int
    frames: int
    rate: int
    words: tuple[Word, ...]
    marks: tuple[Mark, ...]

    @property
    def seconds(self) -> float:
        return self.frames / self.rate


def voice_key(
    name: str, settings: Mapping[str, Any], segments: Sequence[Segment], seed: int
) -> str:
    """What an utterance is found by: everything its sound depends on."""
    return digest(
        {
            "form": FORM,
            "voice": name,
            "settings": dict(settings),
            "segments": segments_to_json(segments),
            "seed": seed,
        }
    )


def key_of(voice: Voice, segments: Sequence[Segment], seed: int) -> str:
    """:func:`voice_key` of an open voice."""
    return voice_key(voice.name, voice.settings, segments, seed)


def segments_to_json(segments: Sequence[Segment]) -> list[Any]:
    """Segments as plain JSON values.

    Examples
    --------
    >>> segments_to_json([Phrase("Well"), Pause(0.8), Phrase("no.", "whisper")])
    ['Well', 0.8, {'say': 'no.', 'manner': 'whisper'}]
    """
    values: list[Any] = []
    for segment in segments:
        if isinstance(segment, Pause):
            values.append(segment.seconds)
        elif isinstance(segment, Phrase):
            plain = segment.manner is None
            values.append(
                segment.text if plain else {"say": segment.text, "manner": segment.manner}
            )
        else:
            values.append({"tag": segment.tag, "written": segment.written})
    return values


class VoiceStore:
    """A folder of assets, and another one (``shared``) to look in and to give to.

    Files go from one to the other by copy, checked by their hash.
    """

    def __init__(self, folder: Path, shared: Path | None = None) -> None:
        self.folder = folder
        self.shared = shared

    def get(self, key: str) -> VoiceAsset | None:
        """The asset of a key, or None where there is none that is whole."""
        own = _read(self.folder, key)
        if own is not None or self.shared is None:
            return own
        found = _read(self.shared, key)
        if found is None:
            return None
        data = (self.shared / found.file).read_bytes()
        if hashlib.sha256(data).hexdigest() != found.sha256:
            return None
        _write(self.folder, found, data)
        return found

    def put(self, key: str, spoken: Spoken) -> VoiceAsset:
        """Store an utterance as 16-bit WAV at the engine's own rate."""
        data = encode_audio(spoken.audio)
        asset = VoiceAsset(
            key,
            hashlib.sha256(data).hexdigest(),
            f"{key[:2]}/{key}.wav",
            len(data),
            spoken.audio.frames,
            spoken.audio.rate,
            spoken.words,
            spoken.marks,
        )
        _write(self.folder, asset, data)
        if self.shared is not None and _read(self.shared, key) is None:
            _write(self.shared, asset, data)
        return asset


def _write(folder: Path, asset: VoiceAsset, data: bytes) -> None:
    atomic_write_bytes(folder / asset.file, data)
    text = json.dumps(_to_json(asset), ensure_ascii=False)
    atomic_write_bytes((folder / asset.file).with_suffix(".json"), text.encode())


def _read(folder: Path, key: str) -> VoiceAsset | None:
    path = folder / key[:2] / f"{key}.json"
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        asset = _from_json(value)
        whole = path.with_suffix(".wav").stat().st_size == asset.bytes
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return asset if whole and asset.key == key else None


def _to_json(asset: VoiceAsset) -> dict[str, Any]:
    return {
        "key": asset.key,
        "sha256": asset.sha256,
        "file": asset.file,
        "bytes": asset.bytes,
        "frames": asset.frames,
        "rate": asset.rate,
        "words": [[word.text, word.start_s, word.end_s] for word in asset.words],
        "marks": [[mark.kind, mark.start_s, mark.end_s] for mark in asset.marks],
    }


def _from_json(value: Mapping[str, Any]) -> VoiceAsset:
    return VoiceAsset(
        **{
            **value,
            "words": tuple(Word(*word) for word in value["words"]),
            "marks": tuple(Mark(*mark) for mark in value["marks"]),
        }
    )
