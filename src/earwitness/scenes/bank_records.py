"""The records of a bank, as its YAML files write them.

One class per kind of entry; the published JSON Schema (:func:`bank_schema`) is made from these classes, so
that the files, the loader and the schema cannot disagree. All records are frozen; lists are tuples.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

Reaction = Literal["pivot", "verbal", "behavioral", "ambient"]
REACTIONS: tuple[Reaction, ...] = ("pivot", "verbal", "behavioral", "ambient")
"""In the order of every table: from the strongest effect on the talk to none."""

ReactedTo = Literal["pivot", "verbal", "behavioral"]
REACTED_TO: tuple[ReactedTo, ...] = ("pivot", "verbal", "behavioral")

Pool = Literal["own", "shared", "general", "rare"]
POOLS: tuple[Pool, ...] = ("own", "shared", "general", "rare")

Loudness = Literal["quiet", "medium", "loud", "very_loud"]
Naming = Literal["forbidden", "allowed", "required"]
RendersIn = Literal["words", "pause", "tag"]
TagKind = Literal["vocalisation", "pause", "emotion"]

Id = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(_[a-z0-9]+)*$", max_length=60)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class Record(BaseModel):
    """Frozen, and refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Header(Record):
    """``bank.yaml``: what this bank is."""

    format: Literal[1] = Field(description="Version of the bank format.")
    id: Id
    version: Text
    language: Text = Field(
        description="BCP 47 tag of the language the texts are in, such as en or de."
    )
    licence: Text
    title: Text


class DistanceProfile(Record):
    """How far from the microphone a sound may be, and the distance at which its level is unchanged."""

    id: Id
    near_m: Positive
    far_m: Positive
    reference_m: Positive

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.near_m <= self.reference_m <= self.far_m:
            raise ValueError("near_m <= reference_m <= far_m")
        return self


class Room(Record):
    """A box that reverberates like the location; outdoors, a large and absorbent one."""

    size_m: tuple[Positive, Positive, Positive] = Field(
        description="Length, width, height in metres."
    )
    absorption: Annotated[float, Field(gt=0, lt=1)] = Field(
        description="Mean absorption coefficient of the walls."
    )
    rt60_s: Positive = Field(description="Reverberation time aimed at, in seconds.")
    voice_wet: Share = Field(description="Share of the room in the voices' sound.")
    mic_distance_m: Positive = Field(
        default=1.0, description="From the speakers to the microphone."
    )
    variations: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=12, description="How many different rooms of this kind are drawn."
    )
    size_jitter: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.1, description="Each horizontal dimension varies by up to this share."
    )
    mic_jitter: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.25, description="The microphone distance varies by up to this share."
    )


class Ambience(Record):
    """The bed under a scene: what it sounds like, and what to look for in a sound library."""

    description: Text
    elements: Annotated[tuple[Text, ...], Field(min_length=1)]


class Location(Record):
    """A place two adults talk in."""

    id: Id
    name: Text = Field(description='As shown in a list of answers, such as "a train station".')
    phrase: Text = Field(description='As said in a sentence, such as "at a train station".')
    setting: Literal["indoor", "outdoor"]
    names: Annotated[tuple[Text, ...], Field(min_length=1)] = Field(
        description="Words that give the place away when somebody says them."
    )
    room: Room
    distance: Id = Field(description="Distance profile of sounds that name none of their own.")
    ambience: Ambience


class Sound(Record):
    """A class of short environmental sound, never a voice.

    ``names`` identify it (no two sounds of one location may share one), ``hints`` give it away without
    identifying it, ``weak`` words do so only when said right after it, because ordinary talk uses them too.
    A trailing ``*`` stands for any ending.
    """

    id: Id
    name: Text = Field(description='As shown in a list of answers, such as "a dog barking".')
    names: Annotated[tuple[Text, ...], Field(min_length=1)]
    hints: tuple[Text, ...] = ()
    weak: tuple[Text, ...] = ()
    duration_s: tuple[Positive, Positive] = Field(
        description="Shortest and longest plausible take."
    )
    loudness: Loudness = Field(description="At its source, not in the mix.")
    at: Annotated[tuple[Id, ...], Field(min_length=1)] | Literal["everywhere"] = Field(
        description="Locations it occurs in: one (its own), several (shared), or everywhere (general)."
    )
    implausible_in: tuple[Id, ...] = Field(
        default=(), description="With at: everywhere, the locations it cannot occur in."
    )
    distance: Id | None = Field(default=None, description="Distance profile; else the location's.")
    rare: bool = Field(default=False, description="An unusual sound that would alarm most people.")
    alarm_natural: bool = Field(default=False, description="Whether alarm is a natural reaction.")
    low_frequency: bool = Field(
        default=False, description="Most of its energy is below 100 Hz or so."
    )
    tags: tuple[Id, ...] = ()

    @property
    def pool(self) -> Pool:
        """The pool it is drawn from."""
        if self.rare:
            return "rare"
        if self.at == "everywhere":
            return "general"
        return "own" if len(self.at) == 1 else "shared"

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.duration_s[0] > self.duration_s[1]:
            raise ValueError("duration_s as [shortest, longest]")
        if self.implausible_in and self.at != "everywhere":
            raise ValueError("implausible_in only beside at: everywhere")
        return self


class RolePair(Record):
    """What the two speakers are to each other: two adults who talk in private, not on duty."""

    id: Id
    name: Text = Field(description='Both together, such as "two neighbours".')
    a: Text
    b: Text
    closeness: Literal["close", "familiar", "distant"]
    bond: Text = Field(description="What ties them, in one line a writer can use.")


class Register(Record):
    """One way to perform a reaction: a move, never a wording."""

    id: Id
    reaction: ReactedTo
    move: str = Field(
        description="What the speaker does, as an instruction of one or two sentences."
    )
    sense: Text = Field(description="Why this would make no sense had the sound not occurred.")
    naming: Naming = Field(description="Whether the words may, must or must not name the sound.")
    renders_in: Annotated[tuple[RendersIn, ...], Field(min_length=1)] = Field(
        description="Where a listener hears it: in the words, in a pause, in a delivery tag."
    )
    tags: tuple[Id, ...] = Field(default=(), description="Delivery tags of which one is required.")


class Tag(Record):
    """A delivery tag: written in square brackets, heard and never read out."""

    id: Id
    written: Text = Field(description="As it stands between the brackets.")
    renders: TagKind
    heard: Text = Field(description="What somebody hears who does not see the tag.")


class Situation(Record):
    """A template: something two adults could talk about."""

    title: Text
    facets: Annotated[tuple[Text, ...], Field(min_length=2, max_length=4)]


class Theme(Record):
    """A theme with the facets that topics are composed from and its situations.

    Situations are numbered by their place, so new ones go to the end.
    """

    id: Id
    name: Text
    facets: Annotated[tuple[Text, ...], Field(min_length=1)]
    situations: Annotated[tuple[Situation, ...], Field(min_length=1)]


class CategoryHead(Record):
    """Id and display name of a category."""

    id: Id
    name: Text


class LocationsFile(Record):
    """``locations.yaml``."""

    distance_profiles: tuple[DistanceProfile, ...]
    locations: tuple[Location, ...]


class SoundsFile(Record):
    """``sounds.yaml``."""

    sounds: tuple[Sound, ...]


class RolesFile(Record):
    """``roles.yaml``."""

    roles: tuple[RolePair, ...]


class RegistersFile(Record):
    """``registers.yaml``."""

    registers: tuple[Register, ...]


class TagsFile(Record):
    """``tags.yaml``."""

    tags: tuple[Tag, ...]


class TopicsFile(Record):
    """One file of ``topics/``: one category with its themes."""

    category: CategoryHead
    themes: tuple[Theme, ...]


class CommonWordsFile(Record):
    """``common_words.yaml`` (optional): words so frequent in talk that they name nothing."""

    words: tuple[Text, ...]


class LimitsPart(Record):
    """Numeric limits of dialogues; what is not given stays as ``scenes/rules/limits.yaml`` has it."""

    min_utterances: Annotated[int, Field(ge=1)] | None = None
    max_utterances: Annotated[int, Field(ge=1)] | None = None
    max_words: Annotated[int, Field(ge=1)] | None = None
    max_turns_in_a_row: Annotated[int, Field(ge=1)] | None = None
    min_share_of_turns: Share | None = None
    min_share_of_words: Share | None = None
    utterances_after_event: Annotated[int, Field(ge=0)] | None = None
    utterances_between_reactions: Annotated[int, Field(ge=0)] | None = None
    min_seconds: Positive | None = None
    max_seconds: Positive | None = None
    words_per_second: Positive | None = None
    seconds_between_turns: Annotated[float, Field(ge=0)] | None = None
    seconds_per_break: Annotated[float, Field(ge=0)] | None = None
    seconds_per_tag: Annotated[float, Field(ge=0)] | None = None
    min_topic_words: Annotated[int, Field(ge=1)] | None = None
    max_topic_words: Annotated[int, Field(ge=1)] | None = None
    max_shared_sentences: Share | None = None
    max_shared_shingles: Share | None = None


class RulesFile(Record):
    """``rules.yaml`` (optional): words and limits that dialogues are checked with.

    Each list that is given replaces the one of the bank's language (``scenes/rules/<language>.yaml``). An
    entry is a word or a phrase, found whatever its case and punctuation; a trailing ``*`` stands for any
    ending of its last word.
    """

    fillers: tuple[Text, ...] | None = Field(
        default=None, description="Sounds of hesitation that voices read out as words."
    )
    phone_call: tuple[Text, ...] | None = Field(
        default=None, description="What is said on the phone and never face to face."
    )
    stock_phrases: tuple[Text, ...] | None = Field(
        default=None, description="Worn wordings that written talk falls back on."
    )
    sound_talk: tuple[Text, ...] | None = Field(
        default=None, description="What is said about a sound without naming it."
    )
    not_sound_talk: tuple[Text, ...] | None = Field(
        default=None, description="Phrases that contain one of sound_talk and mean something else."
    )
    causes: tuple[Text, ...] | None = Field(
        default=None, description="What explains why somebody broke off."
    )
    repairs: tuple[Text, ...] | None = Field(
        default=None, description="What somebody says who corrects or looks for a word."
    )
    harmless_repeats: tuple[Text, ...] | None = Field(
        default=None, description="Words that are doubled in fluent talk."
    )
    label_words: tuple[Text, ...] | None = Field(
        default=None, description="Words a script puts before a colon to say who speaks."
    )
    abbreviations: tuple[Text, ...] | None = Field(
        default=None, description="Words whose full stop ends no sentence."
    )
    limits: LimitsPart | None = None


PARTS: dict[str, type[Record]] = {
    "bank": Header,
    "locations": LocationsFile,
    "sounds": SoundsFile,
    "roles": RolesFile,
    "registers": RegistersFile,
    "tags": TagsFile,
    "topics": TopicsFile,
    "common_words": CommonWordsFile,
    "rules": RulesFile,
}
"""Part of a bank -> the class of its files. A part is ``PART.yaml`` or every ``PART/*.yaml``."""

OPTIONAL_PARTS = ("common_words", "rules")


def bank_schema() -> dict[str, Any]:
    """The JSON Schema of a bank: one property per part, to check YAML files with in an editor or in CI.

    Returns
    -------
    A draft 2020-12 schema. ``$defs`` holds one definition per kind of file and entry; ``properties``
    maps each part (``bank``, ``locations``, ...) to the definition of its files.

    Examples
    --------
    >>> sorted(bank_schema()["properties"])[:3]
    ['bank', 'common_words', 'locations']
    """
    definitions: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    for part, record in PARTS.items():
        schema = record.model_json_schema(ref_template="#/$defs/{model}")
        definitions.update(schema.pop("$defs", {}))
        definitions[record.__name__] = schema
        properties[part] = {"$ref": f"#/$defs/{record.__name__}"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Earwitness bank, format 1",
        "description": "A part is one file PART.yaml or several files PART/*.yaml.",
        "type": "object",
        "properties": properties,
        "required": [part for part in PARTS if part not in OPTIONAL_PARTS],
        "additionalProperties": False,
        "$defs": dict(sorted(definitions.items())),
    }
