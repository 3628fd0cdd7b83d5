"""What of a scene's sounds can be measured in the audio itself, from the files alone.

The difference of a scene and its twin without a sound is exactly that sound (but for the rounding of both to 16 bits).
So where there are twins, or stems, an event can be had back out of the mix:

=================  ==========================================================================
``twin``           the mix less ``mute-<event>``
``all``            the mix less ``mute-all``: other sounds are in it where their tails reach
``stem``           ``stems/<scene>/event-<event>.wav``
=================  ==========================================================================

The ambience is had back from its stem, or as ``mute-all`` (the mix, where a scene has no sounds) less
``speech-only``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from earwitness.audio.loudness import integrated_loudness
from earwitness.audio.types import FULL_SCALE_STEP, Audio, samples_at
from earwitness.errors import DataError
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.mixing.levels import PREROLL_S, below_loudest_db, stretch_lufs
from earwitness.scenes.mixing.manifest import Manifest, MixedEvent, read_manifest
from earwitness.scenes.mixing.stage import CARD, STEMS, manifest_file
from earwitness.scenes.mixing.twins import MUTE_ALL, SPEECH_ONLY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from earwitness.audio.types import Samples

    Steps = NDArray[np.int16]

Source = Literal["twin", "all", "stem"]


@dataclass(frozen=True, slots=True, eq=False)
class HeardEvent:
    """A sound as it is in the finished file.

    Attributes
    ----------
    samples: from where it starts to the end of its room, float32.
    length: samples until it ends itself, without the room's tail.
    ambience_lufs: of what stands under it while it lasts; None where there is no version without voices.
    """

    samples: Samples
    length: int
    source: Source
    loudness_lufs: float | None
    ambience_lufs: float | None

    @property
    def over_ambience_db(self) -> float | None:
        """How far it stands over the ambience, measured in the audio."""
        if self.loudness_lufs is None or self.ambience_lufs is None:
            return None
        return self.loudness_lufs - self.ambience_lufs

    def below_loudest_db(self, at_s: float, rate: int) -> float:
        """How far the 100 ms around a moment (in seconds from its start) are under its loudest 100 ms."""
        return below_loudest_db(self.samples[: self.length], samples_at(at_s, rate), rate)


class SceneFiles:
    """The versions of one scene, read once each, for as long as this object is kept.

    Parameters
    ----------
    folder: of the corpus.
    manifest: of the audible version.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self.read = lru_cache(maxsize=8)(self._read)

    def steps(self) -> Steps:
        """The mix itself, in steps of 16 bits."""
        return self.read(self.manifest.audio.file)

    def twin(self, variant: str) -> Steps | None:
        """A twin of this very mix; None where there is none, or of another mix."""
        manifest = self.twin_manifest(variant)
        return None if manifest is None else self.read(manifest.audio.file)

    def twin_manifest(self, variant: str) -> Manifest | None:
        """The manifest of a twin of this very mix."""
        path = manifest_file(self.folder, self.manifest.scene, variant)
        if not path.is_file():
            return None
        found = read_manifest(path)
        return found if found.audible_sha256 == self.manifest.audio.sha256 else None

    def event(self, event: MixedEvent) -> HeardEvent | None:
        """A sound out of the mix; None where there are neither twins nor stems."""
        rate = self.manifest.audio.rate_hz
        start, end = (samples_at(t, rate) for t in (event.start_s, event.end_s))
        tail = max(samples_at(event.tail_end_s, rate), end)
        found = self._difference(event.id, start, tail)
        if found is None:
            return None
        samples, source = found
        length = end - start
        return HeardEvent(
            samples=samples,
            length=length,
            source=source,
            loudness_lufs=integrated_loudness(Audio(samples[:length], rate)).lufs,
            ambience_lufs=self._ambience(start, end),
        )

    def _difference(self, event: str, start: int, end: int) -> tuple[Samples, Source] | None:
        stem = self._stem(f"event-{event}.wav")
        if stem is not None:
            return stem[start:end], "stem"
        choices: tuple[tuple[str, Source], ...] = ((f"mute-{event}", "twin"), (MUTE_ALL, "all"))
        for variant, source in choices:
            twin = self.twin(variant)
            if twin is not None:
                return less(self.steps()[start:end], twin[start:end]), source
        return None

    def _ambience(self, start: int, end: int) -> float | None:
        rate = self.manifest.audio.rate_hz
        first = max(start - samples_at(PREROLL_S, rate), 0)
        stem = self._stem("ambience.wav")
        if stem is not None:
            return stretch_lufs(stem[first:end], start - first, end - first, rate)
        speech = self.twin(SPEECH_ONLY)
        quiet = self.twin(MUTE_ALL) if self.manifest.events else self.steps()
        if speech is None or quiet is None:
            return None
        return stretch_lufs(less(quiet[first:end], speech[first:end]), start - first, end - first, rate)  # fmt: skip

    def _stem(self, name: str) -> Samples | None:
        if self.manifest.stems is None or name not in self.manifest.stems:
            return None
        path = self.folder / STEMS / self.manifest.scene / name
        return _decoded(path)[0] if path.is_file() else None

    def _read(self, file: str) -> Steps:
        return read_steps(self.folder / file, self.manifest.audio.rate_hz)


def read_steps(path: Path, rate: int) -> Steps:
    """A mixed file as it is stored: int16, shape (frames,).

    Raises
    ------
    DataError: missing, unreadable, or of another form than the mixer writes.
    """
    import soundfile

    try:
        samples, found = soundfile.read(path, dtype="int16", always_2d=True)
    except (OSError, soundfile.SoundFileError) as error:
        raise DataError(str(path), f"cannot be read ({error})", "a mixed file") from None
    if found != rate or samples.shape[1] != 1:
        raise DataError(
            str(path), f"has {samples.shape[1]} channels at {found} Hz", f"one at {rate} Hz"
        )
    made: Steps = samples[:, 0]
    return made


@lru_cache(maxsize=4)
def _decoded(path: Path) -> tuple[Samples, int]:
    import soundfile

    samples, rate = soundfile.read(path, dtype="float32")
    return samples, int(rate)


def less(mix: Steps, twin: Steps) -> Samples:
    """The difference of two files in float32; exact, since both are whole steps."""
    made: Samples = (mix.astype(np.int32) - twin.astype(np.int32)).astype(np.float32)
    made *= np.float32(FULL_SCALE_STEP)
    return made


def twin_manifests(folder: Path, scene: str) -> Mapping[str, Manifest]:
    """Every twin of a scene, by variant."""
    from earwitness.scenes.mixing.stage import TWINS

    found = {}
    for path in sorted((folder / TWINS).glob(f"*/{scene}.json")):
        found[path.parent.name] = read_manifest(path)
    return found


def read_card(corpus: Corpus) -> Mapping[str, Any]:
    """What ``mixes.yaml`` says; nothing where it is not there yet.

    Raises
    ------
    DataError: it is damaged.
    """
    import yaml

    path = corpus.path(CARD)
    if not path.is_file():
        return {}
    try:
        card = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise DataError(str(path), f"cannot be read ({reason})", "a mixes.yaml") from None
    if not isinstance(card, dict):
        raise DataError(str(path), "holds no settings", "a mixes.yaml")
    return card
