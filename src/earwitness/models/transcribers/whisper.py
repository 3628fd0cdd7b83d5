"""``whisper/NAME``: Whisper through faster-whisper, on the processor, one thread, words with times.

``whisper/base`` is an asset put together from packages (``earwitness asr install``); any other name is a folder
with a CTranslate2 model or one that faster-whisper fetches from a hub itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from earwitness.audio.convert import resample, to_mono
from earwitness.audio.types import Audio
from earwitness.errors import DataError, MissingExtraError
from earwitness.models.assets import asset_folder, asset_of, checked_file
from earwitness.models.options import Option, read_options
from earwitness.models.protocols import Transcript, Word
from earwitness.models.voices.info import EngineInfo, VoiceInfo

RATE = 16_000
INSTALL = "earwitness asr install"
PACKAGED = "base"
OPTIONS = (
    Option("language", "text", "spoken language", "en"),
    Option("beam", "integer", "width of the search; 1 is greedy", 1, least=1),
    Option("threads", "integer", "threads of one transcription", 1, least=1),
)

INFO = EngineInfo(
    name="whisper",
    form="whisper/NAME",
    summary="Whisper by faster-whisper, int8 on the processor, words with times",
    options=OPTIONS,
    voices=(VoiceInfo(PACKAGED, None, "many", "put together from packages"),),
    extra="local",
    modules=("faster_whisper",),
    asset="whisper-base",
    licence="MIT",
)


class Whisper:
    """A Whisper model, loaded at its first use. Use :func:`open` to make one."""

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        self.name = f"whisper/{name}"
        self._model_name = name
        self._values = values

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """Hash of the weights, versions and search."""
        from importlib import metadata

        weights = self._model_name
        if weights == PACKAGED:
            weights = asset_of("whisper-base").digest
        return {
            "weights": weights,
            "engine": f"faster-whisper {metadata.version('faster-whisper')}",
            "runtime": f"ctranslate2 {metadata.version('ctranslate2')}",
            "compute": "int8",
            "language": self._values["language"],
            "beam": self._values["beam"],
        }

    @cached_property
    def _model(self) -> Any:
        from faster_whisper import WhisperModel

        where = self._model_name
        if where == PACKAGED:
            asset = asset_of("whisper-base")
            for file in asset.files:
                checked_file(asset, file.name, INSTALL)
            where = str(asset_folder(asset))
        elif Path(where).expanduser().is_dir():
            where = str(Path(where).expanduser())
        try:
            return WhisperModel(
                where, device="cpu", compute_type="int8", cpu_threads=self._values["threads"]
            )
        except (RuntimeError, ValueError, OSError) as error:
            raise DataError(
                self.name, f"cannot be loaded ({error})", "a CTranslate2 model"
            ) from None

    def transcribe(self, audio: Audio) -> Transcript:
        """Words of a recording; greedy or beam search at temperature 0, so that it repeats."""
        sound = resample(to_mono(audio), RATE)
        segments, _ = self._model.transcribe(
            sound.samples,
            language=self._values["language"],
            beam_size=self._values["beam"],
            temperature=0.0,
            condition_on_previous_text=False,
            word_timestamps=True,
        )
        words: list[Word] = []
        texts: list[str] = []
        for segment in segments:
            texts.append(segment.text.strip())
            words += [
                Word(word.word.strip(), round(float(word.start), 3), round(float(word.end), 3))
                for word in segment.words or ()
            ]
        return Transcript(" ".join(texts), tuple(words))


def open(name: str, options: Mapping[str, Any]) -> Whisper:  # noqa: A001
    """Open ``whisper/NAME``.

    Raises
    ------
    MissingExtraError: ``faster-whisper`` is not installed.
    UsageError: an unknown option.
    """
    if find_spec("faster_whisper") is None:
        raise MissingExtraError(f"whisper/{name}", "local")
    return Whisper(name, read_options(f"whisper/{name}", options, OPTIONS))
