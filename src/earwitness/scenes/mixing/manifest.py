"""The manifest of a mixed scene: what was done, and what was measured in the result.

``mixes/<scene>.json`` stands beside the audio and is written last: without it the audio does not count. Times are in
seconds from the start of the file, levels in the finished file (after the master gain) unless a name says ``bus``.
Paths are relative to the corpus folder; there are no dates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from earwitness.errors import DataError
from earwitness.scenes.bank_records import Reaction

FORMAT = 1
Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class MixedAudio:
    """The audio file. ``sha256`` is of its bytes."""

    file: str
    sha256: str
    bytes: int
    rate_hz: int
    channels: int
    bits: int
    frames: int
    duration_s: float


@dataclass(frozen=True, slots=True)
class MixedTurn:
    """An utterance. ``start_s`` to ``end_s`` is what is heard; the file lies at ``file_start_s``."""

    index: int
    speaker: str
    voice: str
    start_s: float
    end_s: float
    file_start_s: float
    file: str
    sha256: str
    gain_db: float


@dataclass(frozen=True, slots=True)
class MixedEvent:
    """A sound as it is heard.

    Attributes
    ----------
    id, sound, reaction, register, band, rare: of the plan.
    heard: the sound that is heard; another one where it was swapped, None where it is muted.
    before: number of utterances before it.
    start_s, end_s: of the sound itself; ``tail_end_s``: of its room.
    salient_s: its loudest moment as it is heard (filtered, in its room), in the middle of the clear window.
    loudest_s: the same measured in its finished bus, cut, faded and limited; see docs/mixing.md.
    clear: from when to when nobody speaks.
    loudness_lufs: BS.1770, of the sound with its room from start to end.
    over_ambience_db, over_voice_db: loudness less the level of the bus while it lasts; None: that is silent.
    bus_lufs: loudness before the master gain; ``wanted_bus_lufs``: level and distance alone, before it was raised.
    raised_db: by how much it was raised to stand over the ambience.
    limited_db: most by which the limiter of its bus took a peak down.
    take, take_sha256: the recording; ``take_from_s`` to ``take_to_s`` of it is heard.
    cut_start_s, cut_end_s: what is missing at its ends; ``fade_out_s``: how what was cut fades.
    duck_db, ducked: how far the voice goes down, and when; None where it does not.
    """

    id: str
    sound: str
    reaction: Reaction
    register: str | None
    band: str
    rare: bool
    heard: str | None
    before: int
    start_s: float
    end_s: float
    tail_end_s: float
    salient_s: float
    loudest_s: float
    clear: Span
    loudness_lufs: float
    over_ambience_db: float | None
    over_voice_db: float | None
    bus_lufs: float
    wanted_bus_lufs: float
    raised_db: float
    limited_db: float
    gain_db: float
    set_back: bool
    distance_m: float
    distance_profile: str
    distance_gain_db: float
    wet: float
    lowpass_hz: float | None
    take: str
    take_sha256: str
    take_from_s: float
    take_to_s: float
    cut_start_s: float
    cut_end_s: float
    fade_in_s: float
    fade_out_s: float
    anchor: str
    end_gap_s: float
    duck_db: float
    ducked: Span | None


@dataclass(frozen=True, slots=True)
class MixedAmbience:
    """The bed. ``bus_lufs`` is measured over the whole scene, before the master gain."""

    take: str
    take_sha256: str
    start_s: float
    looped: bool
    gain_db: float
    loudness_lufs: float
    bus_lufs: float
    wanted_bus_lufs: float
    lowpass_hz: float


@dataclass(frozen=True, slots=True)
class MixedRoom:
    """The room: number among the location's, its file, and the share of it in the voices."""

    location: str
    number: int
    file: str
    sha256: str
    voice_wet: float


@dataclass(frozen=True, slots=True)
class MixedLevels:
    """Levels of the whole, measured. ``true_peak_dbtp`` None: over 2 dB under the ceiling."""

    loudness_lufs: float | None
    wanted_lufs: float
    master_gain_db: float
    peak_limited: bool
    sample_peak_dbfs: float | None
    true_peak_dbtp: float | None
    ceiling_dbtp: float
    voice_lufs: float
    voice_bus_lufs: float
    voice_gain_db: float
    voice_limited_db: float
    speakers_lufs: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Manifest:
    """All of it.

    Attributes
    ----------
    variant: ``audible`` for the scene itself; ``mute-<event>``, ``mute-all``, ``swap-<event>`` or
        ``speech-only`` for twins.
    audible_sha256: of the audible version's file, for twins.
    gaps_s: without speech, before the first utterance, between all, and after the last.
    catch_times_s: moments between utterances with no sound near.
    differs: for twins, from when to when they differ from the audible version; identical elsewhere.
    inputs: hash of everything the scene depends on.
    """

    format: int
    scene: str
    variant: str
    split: str
    location: str
    seed: int
    preset: str
    preset_version: str
    preset_hash: str
    audio: MixedAudio
    turns: tuple[MixedTurn, ...]
    gaps_s: tuple[float, ...]
    events: tuple[MixedEvent, ...]
    ambience: MixedAmbience
    room: MixedRoom
    levels: MixedLevels
    fade_s: float
    catch_times_s: tuple[float, ...]
    inputs: str
    audible_sha256: str | None = None
    differs: tuple[Span, ...] = ()
    stems: Mapping[str, str] | None = None

    def event(self, identifier: str) -> MixedEvent:
        """An event by its id; :class:`KeyError` if there is none."""
        for event in self.events:
            if event.id == identifier:
                return event
        raise KeyError(identifier)


def manifest_to_json(manifest: Manifest) -> dict[str, Any]:
    """A manifest as plain JSON values, numbers rounded to 1e-6."""
    value = _rounded(asdict(manifest))
    assert isinstance(value, dict)
    return value


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(each) for each in value]
    return value


def manifest_text(manifest: Manifest) -> str:
    """The file's text."""
    return json.dumps(manifest_to_json(manifest), indent=1, ensure_ascii=False) + "\n"


def manifest_from_json(value: Mapping[str, Any]) -> Manifest:
    """Read what :func:`manifest_to_json` wrote.

    Raises
    ------
    KeyError, TypeError: it is something else.
    """
    if value["format"] != FORMAT:
        raise TypeError(f"format {value['format']}, wanted {FORMAT}")
    return Manifest(
        **{
            **value,
            "audio": MixedAudio(**value["audio"]),
            "turns": tuple(MixedTurn(**turn) for turn in value["turns"]),
            "gaps_s": tuple(value["gaps_s"]),
            "events": tuple(_event(event) for event in value["events"]),
            "ambience": MixedAmbience(**value["ambience"]),
            "room": MixedRoom(**value["room"]),
            "levels": MixedLevels(**value["levels"]),
            "catch_times_s": tuple(value["catch_times_s"]),
            "differs": tuple((start, end) for start, end in value["differs"]),
        }
    )


def _event(value: Mapping[str, Any]) -> MixedEvent:
    ducked = value["ducked"]
    return MixedEvent(
        **{
            **value,
            "clear": tuple(value["clear"]),
            "ducked": None if ducked is None else tuple(ducked),
        }
    )


def read_manifest(path: Path | str) -> Manifest:
    """Read a manifest.

    Raises
    ------
    DataError: it is missing or broken.

    Examples
    --------
    ``read_manifest("corpus/mixes/hosting.01.01.json").event("e1").salient_s``
    """
    path = Path(path)
    try:
        return manifest_from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise DataError(
            str(path), f"cannot be read ({error.strerror})", "the manifest of a mixed scene",
            "Run: earwitness scenes mix",
        ) from None  # fmt: skip
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            str(path), f"is no manifest ({error})", "one as earwitness writes"
        ) from None
