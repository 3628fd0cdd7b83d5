"""``hibari/NAME``: a packaged neural voice, 0.02 CPU-seconds per second of speech, with exact word times.

The network of ``hibari-tts`` gives a pitch curve and spectra of what is voiced and what is noise; its
signal processing makes sound of them. Between the two, pitch and formants can be changed without touching
the tempo, which is how one speaker becomes several (:data:`VOICES`), and voice can be replaced by breath.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earwitness.audio.types import Audio
from earwitness.errors import DataError, MissingExtraError, UsageError
from earwitness.models.options import Option, read_options
from earwitness.models.protocols import Gender, Phrase, Spoken, Vocalisation, Word
from earwitness.models.voices.info import EngineInfo, VoiceInfo
from earwitness.models.voices.pieces import PAUSES, PieceVoice
from earwitness.models.voices.shaping import BREATHS, MANNERS, Spectra, breath, reshape
from earwitness.models.voices.words import words_from_phonemes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]

RATE = 24_000
STEP_S = 0.025
"""Of one unit of the network's durations: two frames of 12.5 ms."""
_DURATIONS = "/Clip_output_0"
_STRESS = "ˈˌ"
_BREATH_SOUND = "hə"
"""What the mouth is shaped like for a breath."""
_REFERENCE = "wi kˈOm ˈɔl ðə wˈA."
"""What the level of a breath is measured against."""


@dataclass(frozen=True, slots=True)
class HibariPreset:
    """A voice: a model and factors of pitch, formant frequencies and speed."""

    model: str
    gender: Gender
    language: str
    pitch: float = 1.0
    formant: float = 1.0
    speed: float = 1.0


@lru_cache(maxsize=1)
def presets() -> Mapping[str, HibariPreset]:
    """Voices by name, from ``hibari_voices.yaml``."""
    import yaml

    file = Path(__file__).with_name("hibari_voices.yaml")
    table = yaml.safe_load(file.read_text(encoding="utf-8"))
    return {name: HibariPreset(**fields) for name, fields in table.items()}


OPTIONS = (
    Option("pitch", "number", "factor of the voice's pitch", least=0.3),
    Option("formant", "number", "factor of the voice's formant frequencies", least=0.6),
    Option("speed", "number", "factor of the tempo", least=0.4),
)


def info() -> EngineInfo:
    """What there is."""
    voices = tuple(
        VoiceInfo(name, preset.gender, preset.language, _note(name, preset))
        for name, preset in presets().items()
    )
    return EngineInfo(
        name="hibari",
        form="hibari/NAME",
        summary="Packaged neural voice and voices derived from it; fast, exact word times, whispers",
        options=OPTIONS,
        voices=voices,
        extra="local",
        modules=("hibari", "onnxruntime"),
        licence="Apache-2.0",
    )


def _note(name: str, preset: HibariPreset) -> str:
    if name != preset.model:
        return f"derived from {preset.model}: pitch x{preset.pitch:g}, formants x{preset.formant:g}"
    return "" if name == "heart" else "fetched from a hub on first use"


class HibariVoice(PieceVoice):
    """One voice. Use :func:`open` to make one."""

    def __init__(self, name: str, preset: HibariPreset) -> None:
        self.name = f"hibari/{name}"
        self.gender = preset.gender
        self.language = preset.language
        self.renders = PAUSES | frozenset(MANNERS) | frozenset(BREATHS)
        self._preset = preset

    @property
    def settings(self) -> Mapping[str, Any]:
        """Hash of the weights, the factors, and what renders them."""
        from importlib import metadata

        preset = self._preset
        return {
            "engine": f"hibari-tts {metadata.version('hibari-tts')}",
            "weights": _Network.of(preset.model).sha256,
            "pitch": preset.pitch,
            "formant": preset.formant,
            "speed": preset.speed,
            "shaping": 1,
        }

    def say(self, phrase: Phrase, seed: int) -> Spoken:
        """Say one phrase, in its manner, with its words' times."""
        import numpy as np

        network = _Network.of(self._preset.model)
        manner = MANNERS.get(phrase.manner) if phrase.manner else None
        pace = self._preset.speed * (manner.speed if manner else 1.0)
        rng = np.random.default_rng(seed)
        pieces: list[Floats] = []
        words: list[Word] = []
        timed = True
        at = 0.0
        for text in network.sentences(phrase.text):
            for phonemes in network.phonemize(text):
                spectra, durations = network.run(phonemes, pace)
                shaped = reshape(spectra, self._preset.pitch, self._preset.formant, manner)
                pieces.append(network.sound(shaped, rng))
                # Durations have one step more at each end, for the silence around.
                found = network.words(text, phonemes, durations[1:-1])
                offset = at + float(durations[0]) * STEP_S
                timed &= bool(found)
                words += [Word(w.text, w.start_s + offset, w.end_s + offset) for w in found]
                at += len(pieces[-1]) / RATE
        if not pieces:
            raise DataError(self.name, f"no sounds in {phrase.text!r}", "words")
        audio = Audio(np.concatenate(pieces), RATE)
        return Spoken(audio, tuple(words) if timed else ())

    def vocalise(self, sound: Vocalisation, seed: int) -> Audio:
        """A breath through this voice's mouth."""
        import numpy as np

        network = _Network.of(self._preset.model)
        spectra, _ = network.run(_BREATH_SOUND, self._preset.speed)
        shaped = reshape(spectra, self._preset.pitch, self._preset.formant, None)
        kind = BREATHS[sound.tag]
        rng = np.random.default_rng([seed, *sound.tag.encode()])
        made = network.sound(breath(shaped, kind), rng)
        wanted = self._level * 10 ** (kind.level_db / 20)
        return Audio((made * np.float32(wanted / _rms(made))).astype(np.float32), RATE)

    @cached_property
    def _level(self) -> float:
        """RMS of this voice saying a short sentence."""
        import numpy as np

        network = _Network.of(self._preset.model)
        spectra, _ = network.run(_REFERENCE, self._preset.speed)
        shaped = reshape(spectra, self._preset.pitch, self._preset.formant, None)
        return _rms(network.sound(shaped, np.random.default_rng(0)))


def _rms(samples: Floats) -> float:
    import numpy as np

    return float(np.sqrt(np.mean(samples.astype(np.float64) ** 2))) or 1.0


class _Network:
    """A model of the package, opened once in a process."""

    def __init__(self, model: str) -> None:
        import hibari
        from hibari.voices import VOICES, voice_path

        from earwitness.models.voices.onnx_graph import open_session

        try:
            self.path = Path(voice_path(model))
        except (OSError, RuntimeError) as error:
            raise DataError(
                f"hibari/{model}",
                f"its weights are not here and cannot be fetched ({error})",
                "a network connection once, or the file in the package's cache folder",
                "hibari/heart and the voices derived from it need nothing.",
            ) from None
        data = self.path.read_bytes()
        self.sha256 = hashlib.sha256(data).hexdigest()
        if self.sha256 != VOICES[model]["sha256"]:
            raise DataError(str(self.path), f"has SHA-256 {self.sha256}", VOICES[model]["sha256"])
        self._speech = hibari.Hibari(voice=model)
        self._session = open_session(self.path, _DURATIONS)

    @staticmethod
    @lru_cache(maxsize=5)
    def of(model: str) -> _Network:
        """The model of this name."""
        return _Network(model)

    def sentences(self, text: str) -> list[str]:
        """What the network sees at once."""
        return list(self._speech.split_sentences(text))

    def phonemize(self, text: str) -> list[str]:
        """Phonemes of a sentence, in several pieces if it is long."""
        known = self._speech.vocab
        made = self._speech.phonemize(text)
        return ["".join(c for c in phonemes if c in known) for phonemes in made]

    def run(self, phonemes: str, speed: float) -> tuple[Spectra, Floats]:
        """Spectra of a phoneme string, and the steps each of its characters takes."""
        import numpy as np

        given = {
            "ids": np.asarray([self._speech.ids(phonemes)], np.int64),
            "speed": np.asarray([speed], np.float32),
        }
        lh, theta, ln, lr, phi, f0, durations = self._session.run(None, given)
        return Spectra(lh[0], theta[0], ln[0], lr[0], phi[0], f0[0]), durations.reshape(-1)

    def sound(self, spectra: Spectra, rng: Any) -> Floats:
        """Samples of spectra, by the package's own signal processing."""
        import numpy as np
        from hibari import dsp

        made = dsp.synth(*spectra, rng)
        return np.asarray(made, np.float32)

    def words(self, text: str, phonemes: str, durations: Floats) -> tuple[Word, ...]:
        """Times of the words of one sentence from the start of its first phoneme."""
        if len(phonemes) != len(durations):
            return ()
        return words_from_phonemes(
            text,
            phonemes,
            [float(steps) for steps in durations],
            STEP_S,
            lambda character: character.isalpha() and character not in _STRESS,
            self._groups,
        )

    def _groups(self, word: str) -> int:
        made = " ".join(self._speech.phonemize(word)).split()
        return sum(any(character.isalpha() for character in group) for group in made)


def open(name: str, options: Mapping[str, Any]) -> HibariVoice:  # noqa: A001
    """Open ``hibari/NAME``.

    Raises
    ------
    MissingExtraError: ``hibari-tts`` is not installed.
    UsageError: no such voice or option.
    """
    import dataclasses

    if find_spec("hibari") is None or find_spec("onnxruntime") is None:
        raise MissingExtraError(f"hibari/{name}", "local")
    if name not in presets():
        raise UsageError(f"voice hibari/{name}", "there is no such voice", ", ".join(presets()))
    values = read_options(f"hibari/{name}", options, OPTIONS)
    given = {key: value for key, value in values.items() if value is not None}
    return HibariVoice(name, dataclasses.replace(presets()[name], **given))
