"""How scenes are mixed, as data: levels, gaps, filters, and where a sound may stand.

A preset is a YAML file; what it does not say stays as below. Levels are those of the buses before the master
gain. Numbers follow CARES (arXiv 2610.10208) unless a comment says why not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from earwitness.errors import DataError
from earwitness.runs.items import digest
from earwitness.scenes.bank_records import REACTIONS, Reaction
from earwitness.scenes.yaml_records import read_yaml_record

PRESETS = Path(__file__).parent / "presets"

Anchor = Literal["gap", "end", "break"]
"""``gap``: the loudest moment at a drawn place of the gap after the utterance. ``end``: the sound ends a drawn time
before the next utterance begins. ``break``: the same, before speech resumes after the first pause inside the next
utterance, if it has one long enough; otherwise as ``end``."""

Range = tuple[float, float]
Hz = Annotated[float, Field(gt=0, lt=22_050)]
Seconds = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class MixPresetError(DataError):
    """A preset of the mixer is not one."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Bell(_Part):
    """One band of a gentle equaliser."""

    hz: Hz
    db: Annotated[float, Field(ge=-12, le=12)]
    q: Annotated[float, Field(gt=0)] = 0.7


class VoiceChain(_Part):
    """What is done to both voices."""

    lufs: float = -20.0
    highpass_hz: Hz = 80.0
    bells: tuple[Bell, ...] = (Bell(hz=250, db=-1.5), Bell(hz=3000, db=1.5))
    most_balance_db: Annotated[float, Field(ge=0)] = Field(
        default=12.0, description="A speaker further from the other is refused."
    )
    peak_dbfs: float | None = Field(
        default=-0.5,
        description="Limiter of the voice bus, in place of the published compressor: the master gain is about "
        "-3 dB, so that speech alone stays under the ceiling with room for what is added. null: none.",
    )


class Distance(_Part):
    """What distance does to a sound, by its distance profile."""

    level_db: Range = Field(default=(-9.0, 4.0), description="-20 log10(d / reference), clamped.")
    wet_at_reference: Share = Field(
        default=0.10, description="Share of the room at wet_reference_m where voice_wet is 0.06."
    )
    wet_reference_m: Annotated[float, Field(gt=0)] = 2.0
    most_wet: Share = 0.25
    lowpass_hz: Hz = Field(
        default=18_000.0, description="Low-pass at 2 m; falls as (2 / d) ** lowpass_power beyond."
    )
    lowpass_power: Annotated[float, Field(ge=0)] = 0.6
    least_lowpass_hz: Hz = 3500.0


class EventChain(_Part):
    """Levels and filters of sounds."""

    lufs: float = -20.0
    set_back_lufs: float = -23.0
    set_back_share: Share = 0.35
    over_ambience_db: float = Field(default=6.0, description="Least measured margin.")
    most_raise_db: float = Field(
        default=15.0, description="A sound that would have to be raised further is refused."
    )
    highpass_hz: Hz = Field(default=60.0, description="Not for sounds of low frequency.")
    bells: tuple[Bell, ...] = (Bell(hz=300, db=-2.5), Bell(hz=4000, db=1.5))
    peak_dbfs: float | None = Field(
        default=-0.5, description="Limiter of each sound's bus, as that of the voices. null: none."
    )
    most_limited_db: Annotated[float, Field(ge=0)] = Field(
        default=6.0, description="A sound is driven into its limiter by at most this much."
    )
    distance: Distance = Distance()


class AmbienceChain(_Part):
    """The bed. The low-pass keeps it from masking what is said and sounds."""

    lufs: float = -32.0
    jitter_db: Annotated[float, Field(ge=0)] = 3.0
    most_lowered_db: Annotated[float, Field(ge=0)] = Field(
        default=3.0,
        description="Under a sound whose peaks do not let it stand over the bed, the bed makes way so far.",
    )
    lowpass_hz: Hz = 8000.0
    crossfade_s: Seconds = 1.0


class Master(_Part):
    """The whole: one static gain, and fades at both ends."""

    lufs: float = -23.0
    ceiling_dbtp: Annotated[float, Field(le=0)] = -1.0
    fade_s: Seconds = 0.5


class Placing(_Part):
    """Where a sound may stand and what of it is heard."""

    anchors: dict[Anchor, Annotated[float, Field(gt=0)]] = Field(
        min_length=1, description="Anchor -> weight of its draw."
    )
    longest_s: Range | None = Field(default=None, description="Drawn cap on the length, or none.")
    most_lead_s: Seconds | None = Field(
        default=None, description="Most of a take kept before its loudest moment."
    )
    end_gap_s: Range = Field(default=(0.0, 0.0), description="From its end to speech; not for gap.")
    duck_db: Range = Field(
        default=(0.0, 0.0), description="Drawn, how far the voice under it goes down."
    )
    duck_most_over_db: float | None = Field(
        default=None, description="Duck less where the sound would stand further over the voice."
    )


class MixPreset(_Part):
    """A whole preset."""

    id: str
    version: str
    rate_hz: Literal[44_100] = 44_100
    gap_s: Range = Field(description="Drawn for every turn boundary, event or not.")
    clear_window_s: Annotated[float, Field(gt=0)] = Field(
        default=0.35, description="No speech around the loudest moment of a sound."
    )
    separation_s: Seconds = Field(default=0.1, description="Least time between two sounds.")
    allow_overlap: bool = Field(default=False, description="Whether sounds may overlap each other.")
    catch_distance_s: Seconds = Field(
        default=3.0, description="Catch times are at least this far from any sound."
    )
    placing: dict[Literal["any", "pivot", "verbal", "behavioral", "ambient"], Placing]
    voice: VoiceChain = VoiceChain()
    events: EventChain = EventChain()
    ambience: AmbienceChain = AmbienceChain()
    master: Master = Master()
    floors: dict[str, float | None] = Field(
        default={},
        description="What a group of the acoustic audit gives away by design: a balanced accuracy, or null where "
        "nothing is promised; 0.25 for a group that is not named. Changes no scene.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.gap_s[0] < self.clear_window_s or self.gap_s[0] > self.gap_s[1]:
            raise ValueError("gap_s as [shortest, longest], the shortest at least clear_window_s")
        if "any" not in self.placing and set(REACTIONS) - set(self.placing):
            raise ValueError("placing for any, or for each of the four reactions")
        for rule in self.placing.values():
            for name in ("longest_s", "end_gap_s", "duck_db"):
                limits = getattr(rule, name)
                if limits is not None and not 0 <= limits[0] <= limits[1]:
                    raise ValueError(f"{name} as [least, most], 0 or more")
            if rule.longest_s is not None and rule.longest_s[0] < self.clear_window_s:
                raise ValueError("longest_s of at least clear_window_s")
        return self

    def rule_for(self, reaction: Reaction) -> Placing:
        """How sounds of a reaction are placed."""
        return self.placing.get(reaction) or self.placing["any"]

    @property
    def same_for_all(self) -> bool:
        """Whether placement is drawn from one distribution whatever the reaction."""
        return len({self.rule_for(reaction).model_dump_json() for reaction in REACTIONS}) == 1

    @property
    def hash(self) -> str:
        """SHA-256 of everything it says but ``floors``, which are for the audit."""
        return digest(self.model_dump(mode="json", exclude={"floors"}))


def mix_preset_names() -> tuple[str, ...]:
    """The presets that ship with Earwitness."""
    return tuple(sorted(file.stem for file in PRESETS.glob("*.yaml")))


def load_mix_preset(name: str) -> MixPreset:
    """A preset that ships with Earwitness, or a YAML file of the user's.

    Raises
    ------
    MixPresetError: there is no such preset, or the file is not one; the key is named.

    Examples
    --------
    >>> load_mix_preset("balanced").same_for_all, load_mix_preset("paper").same_for_all
    (True, False)
    """
    shipped = PRESETS / f"{name}.yaml"
    path = shipped if name in mix_preset_names() else Path(name)
    if not path.is_file():
        known = ", ".join(mix_preset_names())
        raise MixPresetError("--preset", f"no preset {name!r}", f"{known} or a YAML file")
    return read_yaml_record(path, MixPreset, MixPresetError, "a preset of the mixer")
