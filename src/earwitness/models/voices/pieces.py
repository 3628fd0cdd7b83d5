"""An utterance from pieces: each phrase synthesised alone, pauses and breaths exactly between them.

Engines begin and end every phrase with silence of their own, a quarter of a second for some. It is trimmed
to a fixed margin, so that a pause of 0.8 s is 0.8 s of silence and a turn begins where somebody speaks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from earwitness.audio.convert import resample, to_mono
from earwitness.audio.types import Audio, samples_at
from earwitness.errors import DataError
from earwitness.models.protocols import (
    Gender,
    Mark,
    Pause,
    Phrase,
    Segment,
    Spoken,
    Vocalisation,
    Word,
)

if TYPE_CHECKING:
    from earwitness.audio.types import Samples

PAUSES = frozenset({"pause", "long_pause"})
"""Tags of the default bank that every voice renders; a pause of any name is silence anyway."""
MARGIN_S = 0.03
"""Kept before the first and after the last sound of a phrase: the onset of a fricative is soft."""
QUIET_DB = -45.0
"""Below the level of the phrase (95th percentile of 10 ms frames) this is silence of the engine."""
FADE_S = 0.005
FULL = 0.98
"""Highest peak an utterance leaves with: a shifted voice may otherwise clip when it is written."""


class PieceVoice(ABC):
    """Base of engines that know words only. Subclasses say one phrase; this class joins them."""

    name: str
    gender: Gender | None = None
    language: str = "en"
    renders: frozenset[str] = PAUSES
    deterministic: bool = True
    remote: bool = False

    @property
    @abstractmethod
    def settings(self) -> Mapping[str, Any]:
        """All that changes the sound."""

    @abstractmethod
    def say(self, phrase: Phrase, seed: int) -> Spoken:
        """One phrase; its edges are trimmed by the caller."""

    def vocalise(self, sound: Vocalisation, seed: int) -> Audio:
        """A sigh, a gasp; only asked for tags in :attr:`renders`."""
        del seed
        raise DataError(self.name, f"cannot render [{sound.written}]", "a tag it declares")

    def speak(self, segments: Sequence[Segment], seed: int = 0) -> Spoken:
        """Say one utterance; see :class:`earwitness.models.protocols.Voice`."""
        return join(self.name, segments, self, seed)

    def close(self) -> None:  # noqa: B027 - most engines have nothing to close
        """Let go of what the engine holds."""


def join(name: str, segments: Sequence[Segment], voice: PieceVoice, seed: int) -> Spoken:
    """Say every segment and put them in a row.

    Raises
    ------
    DataError: there are no words, or the engine gave no sound for some.
    """
    parts: list[_Part] = []
    for segment in segments:
        if isinstance(segment, Pause):
            parts.append(_Part("pause", segment.seconds))
        elif isinstance(segment, Vocalisation):
            parts.append(_Part(segment.tag, Spoken(mono(voice.vocalise(segment, seed)))))
        else:
            spoken = voice.say(segment, seed)
            spoken = trimmed(Spoken(mono(spoken.audio), spoken.words, spoken.marks))
            if not spoken.audio.frames:
                raise DataError(name, f"gave no sound for {segment.text!r}", "speech")
            parts.append(_Part(segment.manner or "", spoken, phrase=True))
    if not any(part.phrase for part in parts):
        raise DataError(name, "was given nothing to say", "at least one phrase")
    return limited(_row(parts))


@dataclass(frozen=True, slots=True)
class _Part:
    """``what`` is seconds of silence or a sound."""

    kind: str
    what: Spoken | float
    phrase: bool = False


def _row(parts: Sequence[_Part]) -> Spoken:
    import numpy as np

    rate = max(part.what.audio.rate for part in parts if isinstance(part.what, Spoken))
    pieces: list[Samples] = []
    words: list[Word] = []
    marks: list[Mark] = []
    at = 0
    for part in parts:
        start = at / rate
        if isinstance(part.what, Spoken):
            samples = resample(part.what.audio, rate).samples
            words += [
                Word(w.text, round(w.start_s + start, 4), round(w.end_s + start, 4))
                for w in part.what.words
            ]
        else:
            samples = np.zeros(samples_at(part.what, rate), np.float32)
        pieces.append(samples)
        at += len(samples)
        if part.kind:
            marks.append(Mark(part.kind, round(start, 4), round(at / rate, 4)))
    # Times of some phrases and none of others would pass for times of all.
    timed = all(part.what.words for part in parts if part.phrase and isinstance(part.what, Spoken))
    return Spoken(Audio(np.concatenate(pieces), rate), tuple(words) if timed else (), tuple(marks))


def mono(audio: Audio) -> Audio:
    """One channel of it."""
    return audio if audio.samples.ndim == 1 else to_mono(audio)


def limited(spoken: Spoken) -> Spoken:
    """The same, turned down as a whole where a peak is over full scale."""
    import numpy as np

    peak = float(np.abs(spoken.audio.samples).max()) if spoken.audio.frames else 0.0
    if peak <= FULL:
        return spoken
    quieter = (spoken.audio.samples * np.float32(FULL / peak)).astype(np.float32)
    return Spoken(Audio(quieter, spoken.audio.rate), spoken.words, spoken.marks)


def trimmed(spoken: Spoken) -> Spoken:
    """Without the engine's own silence at both ends; times moved along, edges faded.

    Examples
    --------
    >>> import numpy as np
    >>> tone = np.sin(np.arange(16000) / 4).astype(np.float32)
    >>> padded = np.concatenate([np.zeros(8000, np.float32), tone, np.zeros(4000, np.float32)])
    >>> round(trimmed(Spoken(Audio(padded, 16000))).audio.seconds, 2)
    1.06
    """
    import numpy as np

    audio = spoken.audio
    frame = max(samples_at(0.01, audio.rate), 1)
    count = audio.frames // frame
    if not count:
        return spoken
    framed = audio.samples[: count * frame].reshape(count, frame).astype(np.float64)
    level = np.sqrt((framed**2).mean(axis=1))
    loud = float(np.percentile(level, 95))
    heard = np.flatnonzero(level > loud * 10 ** (QUIET_DB / 20))
    if not loud or not len(heard):
        return Spoken(Audio(np.zeros(0, np.float32), audio.rate))
    margin = samples_at(MARGIN_S, audio.rate)
    first = max(int(heard[0]) * frame - margin, 0)
    last = min((int(heard[-1]) + 1) * frame + margin, audio.frames)
    samples = audio.samples[first:last].copy()
    fade = min(samples_at(FADE_S, audio.rate), len(samples) // 2)
    ramp = np.linspace(0, 1, fade, endpoint=False, dtype=np.float32)
    samples[:fade] *= ramp
    samples[len(samples) - fade :] *= ramp[::-1]
    start, seconds = first / audio.rate, (last - first) / audio.rate

    def moved(time_s: float) -> float:
        return min(max(time_s - start, 0.0), seconds)

    words = tuple(Word(w.text, moved(w.start_s), moved(w.end_s)) for w in spoken.words)
    marks = tuple(Mark(m.kind, moved(m.start_s), moved(m.end_s)) for m in spoken.marks)
    return Spoken(Audio(samples, audio.rate), words, marks)
