"""``pocketsphinx/en-us``: a small recogniser with its model inside the package, for clean close speech only.

It does not serve mixed scenes: its word error rate passes 69 % once sounds are mixed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib.util import find_spec
from typing import Any

from earwitness.audio.convert import resample, to_mono
from earwitness.audio.types import Audio
from earwitness.errors import DataError, UsageError
from earwitness.models.protocols import Transcript, Word
from earwitness.models.voices.info import EngineInfo, VoiceInfo

RATE = 16_000
INFO = EngineInfo(
    name="pocketsphinx",
    form="pocketsphinx/en-us",
    summary="Small recogniser for clean speech; no use for mixed scenes",
    voices=(VoiceInfo("en-us", None, "en-US", "clean speech only"),),
    modules=("pocketsphinx",),
    licence="BSD-2-Clause",
)


class PocketSphinx:
    """The packaged American English model. Use :func:`open` to make one."""

    name = "pocketsphinx/en-us"

    @property
    def settings(self) -> Mapping[str, Any]:
        """The package's version, which is that of its model."""
        from importlib import metadata

        return {"engine": f"pocketsphinx {metadata.version('pocketsphinx')}"}

    @cached_property
    def _decoder(self) -> Any:
        import pocketsphinx

        return pocketsphinx.Decoder(samprate=RATE, loglevel="FATAL")

    def transcribe(self, audio: Audio) -> Transcript:
        """Words of a recording with their times."""
        import numpy as np

        sound = resample(to_mono(audio), RATE)
        decoder = self._decoder
        decoder.start_utt()
        whole = np.clip(np.rint(sound.samples * 32767), -32768, 32767).astype("<i2")
        decoder.process_raw(whole.tobytes(), full_utt=True)
        decoder.end_utt()
        words = tuple(
            Word(part.word.partition("(")[0], part.start_frame / 100, (part.end_frame + 1) / 100)
            for part in decoder.seg()
            if not part.word.startswith(("<", "["))
        )
        return Transcript(" ".join(word.text for word in words), words)


def open(name: str, options: Mapping[str, Any]) -> PocketSphinx:  # noqa: A001
    """Open ``pocketsphinx/en-us``.

    Raises
    ------
    DataError: the package is not installed.
    UsageError: another name, or an option.
    """
    if name != "en-us" or options:
        raise UsageError(
            f"pocketsphinx/{name}", "there is no such model or option", "pocketsphinx/en-us"
        )
    if find_spec("pocketsphinx") is None:
        raise DataError(
            "pocketsphinx/en-us",
            "is not installed",
            next_step="Install it: pip install pocketsphinx",
        )
    return PocketSphinx()
