"""``kokoro/NAME``: Kokoro-82M, 28 English voices, about 1.2 CPU-seconds per second of speech, exact word times.

Weights and styles are an asset (``earwitness voices install kokoro``); phonemes come from ``hibari-tts``,
whose alphabet is the same. A style is one row of a voice's file: the row of the number of phonemes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any

from earwitness.audio.types import Audio
from earwitness.errors import DataError, MissingExtraError, UsageError
from earwitness.models.assets import asset_of, checked_file
from earwitness.models.options import Option, read_options
from earwitness.models.protocols import Gender, Phrase, Spoken, Word
from earwitness.models.voices.info import EngineInfo, VoiceInfo
from earwitness.models.voices.pieces import PieceVoice
from earwitness.models.voices.words import words_from_phonemes

RATE = 24_000
STEP_S = 600 / RATE
"""Samples per frame of the network's durations."""
INSTALL = "earwitness voices install kokoro"
MOST_PHONEMES = 508
_STYLE_ROWS, _STYLE_SIZE = 510, 256
_DURATIONS = "/encoder/Clip_output_0"
_STRESS = "ˈˌ"

NAMES = (
    *("af_alloy", "af_aoede", "af_bella", "af_heart", "af_jessica", "af_kore", "af_nicole"),
    *("af_nova", "af_river", "af_sarah", "af_sky", "am_adam", "am_echo", "am_eric", "am_fenrir"),
    *("am_liam", "am_michael", "am_onyx", "am_puck", "am_santa", "bf_alice", "bf_emma"),
    *("bf_isabella", "bf_lily", "bm_daniel", "bm_fable", "bm_george", "bm_lewis"),
)

OPTIONS = (Option("speed", "number", "factor of the tempo", 1.0, least=0.5),)


def _gender(name: str) -> Gender:
    return "F" if name[1] == "f" else "M"


def _language(name: str) -> str:
    return "en-GB" if name[0] == "b" else "en-US"


INFO = EngineInfo(
    name="kokoro",
    form="kokoro/NAME",
    summary="Kokoro-82M: 28 natural English voices, exact word times; slow without a fast processor",
    options=OPTIONS,
    voices=tuple(VoiceInfo(name, _gender(name), _language(name)) for name in NAMES),
    extra="local",
    modules=("hibari", "onnxruntime"),
    asset="kokoro",
    licence="Apache-2.0",
)


class KokoroVoice(PieceVoice):
    """One voice. Use :func:`open` to make one."""

    def __init__(self, name: str, speed: float) -> None:
        self.name = f"kokoro/{name}"
        self.gender = _gender(name)
        self.language = _language(name)
        self._voice = name
        self._speed = speed

    @property
    def settings(self) -> Mapping[str, Any]:
        """Hashes of weights and style, and what makes phonemes of words."""
        from importlib import metadata

        files = {file.name: file.sha256 for file in asset_of("kokoro").files}
        return {
            "weights": files["model.onnx"],
            "style": files[f"voices/{self._voice}.bin"],
            "phonemes": f"hibari-tts {metadata.version('hibari-tts')}",
            "runtime": f"onnxruntime {metadata.version('onnxruntime')}",
            "speed": self._speed,
        }

    def say(self, phrase: Phrase, seed: int) -> Spoken:
        """Say one phrase, with its words' times."""
        del seed
        import numpy as np

        session = _session()
        styles = _styles(self._voice)
        speech = _phonemizer(self.language == "en-GB")
        pieces = []
        words: list[Word] = []
        timed = True
        at = 0.0
        for text in speech.split_sentences(phrase.text):
            for made in speech.phonemize(text):
                phonemes = "".join(c for c in made if c in speech.vocab)
                if len(phonemes) > MOST_PHONEMES:
                    raise DataError(
                        self.name,
                        f"a sentence of {len(phonemes)} phonemes",
                        f"at most {MOST_PHONEMES} without a comma",
                    )
                given = {
                    "tokens": np.asarray([speech.ids(phonemes)], np.int64),
                    "style": styles[len(phonemes)][None, :],
                    "speed": np.asarray([self._speed], np.float32),
                }
                samples, durations = session.run(None, given)
                steps = [float(step) for step in durations.reshape(-1)]
                found = words_from_phonemes(
                    text,
                    phonemes,
                    steps[1:-1],
                    STEP_S,
                    lambda character: character.isalpha() and character not in _STRESS,
                    lambda word: _groups(speech, word),
                )
                timed &= bool(found)
                offset = at + steps[0] * STEP_S
                words += [Word(w.text, w.start_s + offset, w.end_s + offset) for w in found]
                pieces.append(np.asarray(samples, np.float32).reshape(-1))
                at += len(pieces[-1]) / RATE
        if not pieces:
            raise DataError(self.name, f"no sounds in {phrase.text!r}", "words")
        return Spoken(Audio(np.concatenate(pieces), RATE), tuple(words) if timed else ())


def _groups(speech: Any, word: str) -> int:
    made = " ".join(speech.phonemize(word)).split()
    return sum(any(character.isalpha() for character in group) for group in made)


@lru_cache(maxsize=1)
def _session() -> Any:
    from earwitness.models.voices.onnx_graph import open_session

    return open_session(checked_file(asset_of("kokoro"), "model.onnx", INSTALL), _DURATIONS)


@cache
def _styles(voice: str) -> Any:
    import numpy as np

    path = checked_file(asset_of("kokoro"), f"voices/{voice}.bin", INSTALL)
    return np.fromfile(path, "<f4").reshape(_STYLE_ROWS, _STYLE_SIZE)


@lru_cache(maxsize=2)
def _phonemizer(british: bool) -> Any:
    import hibari
    from hibari.g2p import G2P

    return hibari.Hibari(g2p=G2P(british=british))


def open(name: str, options: Mapping[str, Any]) -> KokoroVoice:  # noqa: A001
    """Open ``kokoro/NAME``.

    Raises
    ------
    MissingExtraError: the runtime is not installed.
    UsageError: no such voice or option.
    """
    if find_spec("hibari") is None or find_spec("onnxruntime") is None:
        raise MissingExtraError(f"kokoro/{name}", "local")
    if name not in NAMES:
        raise UsageError(f"voice kokoro/{name}", "there is no such voice", ", ".join(NAMES))
    values = read_options(f"kokoro/{name}", options, OPTIONS)
    return KokoroVoice(name, values["speed"])
