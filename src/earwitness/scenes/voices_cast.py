"""The cast: which voices speak the scenes, by gender and split, and what each can render.

A cast is a YAML file::

    name: my-cast
    voices:
      - {voice: hibari/heart, gender: F, tags: [pause, whisper]}
      - {voice: elevenlabs/AbC123, gender: M, splits: [test], options: {stability: "0.5"}}

``splits`` left out means all. ``tags`` are ids of the bank's delivery tags; left out they are what the engine
declares. A tag the engine does not render is refused, so that no plan rests on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from earwitness.errors import DataError, UsageError
from earwitness.models.protocols import Gender, Voice
from earwitness.models.voices.pieces import PAUSES
from earwitness.runs.items import digest
from earwitness.scenes.scenario import SPLITS, Scenario, Split
from earwitness.scenes.voices_text import Need, RenderError
from earwitness.stats.streams import stream

CASTS = Path(__file__).parent / "casts"
DEFAULT_CAST = "default"
SplitPolicy = Literal["disjoint", "shared"]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    voice: str = Field(pattern=r"^[^/]+/.+")
    gender: Gender | None = None
    splits: tuple[Split, ...] = SPLITS
    tags: tuple[str, ...] | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    note: str = ""


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = ""
    note: str = ""
    voices: tuple[_Entry, ...] = Field(min_length=1)


@dataclass(frozen=True)
class CastVoice:
    """One voice of a cast. ``id`` is its name, with its options where it has any."""

    id: str
    voice: str
    gender: Gender
    splits: tuple[Split, ...]
    tags: frozenset[str]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Cast:
    """Who can speak.

    Attributes
    ----------
    hash: of the file's content.
    policy: ``disjoint`` where no voice is in two splits, else ``shared``; reports say so.
    """

    name: str
    hash: str
    voices: tuple[CastVoice, ...]

    @property
    def policy(self) -> SplitPolicy:
        return "disjoint" if all(len(voice.splits) == 1 for voice in self.voices) else "shared"

    @property
    def tags(self) -> frozenset[str]:
        """Tags that every voice renders: what a plan may count on."""
        return frozenset.intersection(*(voice.tags for voice in self.voices))

    def available(self, gender: Gender, split: Split) -> tuple[CastVoice, ...]:
        """Voices of a gender in a split, in the file's order."""
        return tuple(v for v in self.voices if v.gender == gender and split in v.splits)

    @classmethod
    def default(cls, opened: Mapping[str, Voice] | None = None) -> Cast:
        """The cast that ships and needs no network, key or download beyond its packages."""
        return load_cast(DEFAULT_CAST, opened)


def cast_path(name: str) -> Path:
    """A cast that ships, by name, or any file.

    Raises
    ------
    UsageError: neither.
    """
    path = Path(name)
    shipped = CASTS / f"{name}.yaml"
    if path.is_file():
        return path
    if shipped.is_file():
        return shipped
    known = ", ".join(sorted(each.stem for each in CASTS.glob("*.yaml")))
    raise UsageError("--cast", f"{name!r} is no file and no cast that ships", f"a file, or {known}")


def load_cast(name: str = DEFAULT_CAST, opened: Mapping[str, Voice] | None = None) -> Cast:
    """Read a cast and check it.

    Parameters
    ----------
    name: of a cast that ships, or a path.
    opened: voices by :attr:`CastVoice.id`, to check tags and genders against; see :func:`open_cast`.

    Raises
    ------
    DataError: no YAML, not a cast, a voice twice, a voice without a gender, or a tag nobody renders.
    """
    path, content, file = _read(name)
    voices: list[CastVoice] = []
    for number, entry in enumerate(file.voices):
        where = f"{path}: voices.{number} ({entry.voice})"
        voice = _voice(where, entry, opened or {})
        if any(other.id == voice.id for other in voices):
            raise DataError(where, "is in the cast twice", "every voice once, with all its splits")
        voices.append(voice)
    return Cast(file.name or path.stem, digest(content), tuple(voices))


def _voice(where: str, entry: _Entry, opened: Mapping[str, Voice]) -> CastVoice:
    identifier = _identifier(entry)
    voice = opened.get(identifier)
    gender = entry.gender or (voice.gender if voice else None)
    if gender is None:
        raise DataError(where, "has no gender", f"gender: {' or '.join(get_args(Gender))}")
    if voice is not None and voice.gender not in (None, gender):
        raise DataError(where, f"is said to be {gender}", f"{voice.gender}, as the engine says")
    tags = frozenset(entry.tags) if entry.tags is not None else None
    if voice is not None:
        if tags is None:
            tags = voice.renders
        elif not tags <= voice.renders | PAUSES:
            extra = ", ".join(sorted(tags - voice.renders - PAUSES))
            known = ", ".join(sorted(voice.renders))
            raise DataError(where, f"cannot render {extra}", f"of {known}")
    if not entry.splits:
        raise DataError(where, "is in no split", f"some of {', '.join(SPLITS)}")
    return CastVoice(
        identifier, entry.voice, gender, entry.splits, (tags or frozenset()) | PAUSES, entry.options
    )


def _identifier(entry: _Entry) -> str:
    if not entry.options:
        return entry.voice
    shown = ",".join(f"{key}={value}" for key, value in sorted(entry.options.items()))
    return f"{entry.voice}?{shown}"


def open_cast(name: str = DEFAULT_CAST) -> tuple[Cast, dict[str, Voice]]:
    """A cast with its voices opened, tags and genders checked against what the engines declare.

    Raises
    ------
    EarwitnessError: the cast is not in order, or a voice cannot be opened here.
    """
    from earwitness.models.voices.registry import open_voice

    opened: dict[str, Voice] = {}
    try:
        for voice in _read(name)[2].voices:
            opened[_identifier(voice)] = open_voice(voice.voice, voice.options)
        return load_cast(name, opened), opened
    except BaseException:
        for each in opened.values():
            each.close()
        raise


def _read(name: str) -> tuple[Path, Any, _File]:
    import yaml

    path = cast_path(name)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(str(path), f"cannot be read ({error})", "a cast of voices") from None
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise DataError(str(path), f"is no valid YAML ({reason})", "a cast of voices") from None
    try:
        file = _File.model_validate({"voices": content} if isinstance(content, list) else content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise DataError(f"{path}: {where}", first["msg"], "a cast, see docs/voices.md") from None
    return path, content, file


def choose(
    cast: Cast, scenario: Scenario, needs: Sequence[tuple[str, Need]], seed: int
) -> dict[str, CastVoice]:
    """Who speaks a scene: two different voices of the right gender and split.

    Every voice draws a number for every scene and speaker, and the highest that fits is taken: a voice that
    joins the cast changes only the scenes it wins.

    Parameters
    ----------
    needs: speaker (``A`` or ``B``) and what must be rendered in one of its utterances.

    Raises
    ------
    RenderError: voices there are, but none that renders what the scene's label rests on.
    DataError: too few voices.

    Returns
    -------
    Voices of ``A`` and ``B``.
    """
    chosen: dict[str, CastVoice] = {}
    for speaker, gender in (("A", scenario.gender_a), ("B", scenario.gender_b)):
        present = cast.available(gender, scenario.split)
        free = [voice for voice in present if voice not in chosen.values()]
        if not free:
            raise DataError(
                f"cast {cast.name}",
                f"{len(present)} voices of gender {gender} in split {scenario.split}, "
                f"too few for scene {scenario.id}",
                "two different voices for two speakers",
                "Add voices to the cast.",
            )
        wanted = [need for who, need in needs if who == speaker]
        able = [v for v in free if all(need.tags & v.tags for need in wanted)]
        if not able:
            missing = ", ".join(sorted({tag for need in wanted for tag in need.tags}))
            raise RenderError(
                f"scene {scenario.id}, speaker {speaker}",
                f"the reaction rests on [{missing}], which no {gender} voice of cast {cast.name} "
                f"renders in split {scenario.split}",
                "a voice that performs it",
                "Choose another cast, or plan the corpus for this one.",
            )
        draws = {
            v.id: float(stream(seed, scenario.id, "voice", speaker, v.id).random()) for v in able
        }
        chosen[speaker] = max(able, key=lambda v: (draws[v.id], v.id))
    return chosen
