"""The ``asr`` condition: what a recogniser of speech writes down of each recording, made once and kept.

A transcript is lines of words with the time they were said, divided where nobody speaks for a while; an engine
without times gives the text alone. It is made from the mix, sounds and ambience included. The store is a file of
JSON lines by content of the audio, engine and settings, so that no recording is transcribed twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from earwitness.models.protocols import AudioRef, Transcriber, Transcript
from earwitness.models.transcribers.lines import as_lines
from earwitness.runs.items import digest

if TYPE_CHECKING:
    from earwitness.tasks.scene_items import MixedCorpus


RECOGNISED = (
    "Transcript of the recording by a speech recogniser, times in seconds; there is no audio:"
)
"""What stands before a transcript in a prompt."""


def transcribe_scenes(
    mixed: MixedCorpus,
    transcriber: Transcriber,
    store: Path,
    on_done: Callable[[int, int], None] | None = None,
) -> dict[str, str]:
    """Transcripts of all mixes by the hash of their file; see :func:`transcribe`."""
    refs = [mixed.audio(scene.manifest) for scene in mixed.scenes]
    return transcribe(refs, transcriber, store, on_done)


def transcribe(
    refs: Sequence[AudioRef],
    transcriber: Transcriber,
    store: Path,
    on_done: Callable[[int, int], None] | None = None,
) -> dict[str, str]:
    """Transcripts of recordings by the hash of their file, taken from the store where they are in it.

    Raises
    ------
    AudioFileError: a recording cannot be read.
    """
    known = _read(store)
    settings = {"name": transcriber.name, "settings": dict(transcriber.settings)}
    keys = {ref.sha256: digest([settings, ref.sha256]) for ref in refs}
    todo = {ref.sha256: ref for ref in refs if keys[ref.sha256] not in known}
    for done, ref in enumerate(todo.values(), start=1):
        text = as_lines(_transcribed(transcriber, ref))
        known[keys[ref.sha256]] = text
        store.parent.mkdir(parents=True, exist_ok=True)
        with store.open("a", encoding="utf-8") as file:
            file.write(
                json.dumps({"key": keys[ref.sha256], "text": text}, ensure_ascii=False) + "\n"
            )
        if on_done is not None:
            on_done(done, len(todo))
    return {ref.sha256: known[keys[ref.sha256]] for ref in refs}


def _transcribed(transcriber: Transcriber, ref: AudioRef) -> Transcript:
    from earwitness.audio.io import read_audio

    return transcriber.transcribe(read_audio(ref.path))


def _read(store: Path) -> dict[str, str]:
    known = {}
    if store.exists():
        for line in store.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
                known[entry["key"]] = entry["text"]
            except (ValueError, KeyError, TypeError):
                continue  # a line torn by a kill; its recording is transcribed again
    return known
