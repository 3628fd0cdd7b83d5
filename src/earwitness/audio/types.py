"""Sound as arrays: :class:`Audio`, and what an inspection of a file says."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from earwitness.errors import (
    AudioFileError,
    BrokenHeaderError,
    EmptyAudioError,
    NonFiniteAudioError,
    NotAudioError,
    SilentAudioError,
    TooShortAudioError,
    TruncatedAudioError,
    UnsupportedAudioError,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Samples = npt.NDArray[np.float32]

Severity = Literal["error", "warning"]

MIN_SECONDS = 0.025
"""Shortest audio that is accepted: one 25 ms analysis window, the shortest stretch of speech that features
of a voice (pitch, spectrum) are commonly computed on. Anything shorter is a click."""

FULL_SCALE_STEP = 2.0**-15
"""One step of 16 bits on the scale where full scale is 1."""

OVERSHOOT = 10 ** (3 / 20)
"""Peaks up to 3 dB over full scale are ripple of lossy coding or of resampling, and are clipped where integers
are written; what is louder is flagged and turned down."""

MAX_RATE_HZ = 768_000
"""Highest sample rate any converter in use delivers; above it a header is corrupt."""

MAX_CHANNELS = 256
"""The largest microphone arrays in use; above it a header is corrupt."""

ERROR_CLASSES: dict[str, type[AudioFileError]] = {
    cls.code: cls
    for cls in (
        AudioFileError,
        NotAudioError,
        BrokenHeaderError,
        UnsupportedAudioError,
        TruncatedAudioError,
        EmptyAudioError,
        TooShortAudioError,
        SilentAudioError,
        NonFiniteAudioError,
    )
}
"""The named error for each code an inspection may report with severity ``error``."""


@dataclass(frozen=True, slots=True, eq=False)
class Audio:
    """Samples and their rate.

    Parameters
    ----------
    samples: float32 array, ``(n,)`` for mono or ``(n, channels)``; full scale is 1.
    rate: samples per second in Hz, at least 1.

    Raises
    ------
    TypeError: samples are not float32.
    ValueError: wrong number of dimensions, or a rate below 1.

    Examples
    --------
    >>> import numpy as np
    >>> tone = Audio(np.zeros(8000, np.float32), 16000)
    >>> tone.seconds, tone.channels
    (0.5, 1)
    """

    samples: Samples
    rate: int

    def __post_init__(self) -> None:
        if str(self.samples.dtype) != "float32":
            raise TypeError(f"samples are {self.samples.dtype}; wanted float32")
        if self.samples.ndim not in (1, 2):
            raise ValueError(
                f"samples have shape {self.samples.shape}; wanted (n,) or (n, channels)"
            )
        if self.rate < 1:
            raise ValueError(f"rate is {self.rate} Hz; wanted at least 1")

    @property
    def frames(self) -> int:
        """Number of sample positions."""
        return int(self.samples.shape[0])

    @property
    def channels(self) -> int:
        return 1 if self.samples.ndim == 1 else int(self.samples.shape[1])

    @property
    def seconds(self) -> float:
        return self.frames / self.rate


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, or worth knowing, about a file.

    ``severity`` ``error`` means the file is refused; ``warning`` means it is read.
    """

    code: str
    severity: Severity
    message: str
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a file holds. Fields that could not be found out are 0, empty or minus infinity.

    ``frames`` and ``seconds`` are of the samples that can be decoded, not of what the header promises.
    ``rms_dbfs`` is over all channels, relative to a constant full-scale signal.
    """

    path: str
    container: str
    subtype: str
    rate: int
    channels: int
    frames: int
    seconds: float
    peak: float
    rms_dbfs: float
    bytes: int
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(p for p in self.problems if p.severity == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(p for p in self.problems if p.severity == "warning")

    @property
    def ok(self) -> bool:
        """Whether the file would be read."""
        return not self.errors


def samples_at(seconds: float, rate: int) -> int:
    """The sample position at a time: the one rounding function of the project (half rounds up).

    Parameters
    ----------
    seconds: a time or a duration; may be negative.
    rate: in Hz.

    Examples
    --------
    >>> samples_at(0.5, 16000), samples_at(0.00003125, 16000)
    (8000, 1)
    """
    return math.floor(seconds * rate + 0.5)


def error_from(problem: Problem, where: str) -> AudioFileError:
    """The named error for a problem."""
    return ERROR_CLASSES[problem.code](where, problem.message, next_step=problem.next_step)


def ffmpeg_command(name: str) -> str:
    """A command that turns any file into one that can be read, safe to paste into a shell."""
    import shlex
    from pathlib import PurePath

    path = PurePath(name)
    given = str(path) if not str(path).startswith("-") else f"./{path}"
    out = path.with_name(path.stem + ".converted.wav") if path.name else PurePath("converted.wav")
    made = str(out) if not str(out).startswith("-") else f"./{out}"
    return f"ffmpeg -i {shlex.quote(given)} -c:a pcm_s16le {shlex.quote(made)}"
