"""The one file that holds every setting of every stage of ``scenes build``.

Whatever is left out keeps its default; the defaults make a corpus offline, from nothing. The settings a corpus was
made with are kept in it as ``build.yaml``. Relative paths are relative to the folder the command runs in, as those
of every other command.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from earwitness.errors import DataError, UsageError

STORED = "build.yaml"
FORMAT: Literal[1] = 1
MOST_PER_TEMPLATE = 10
Count = Annotated[int, Field(ge=1)]


class BuildConfigError(DataError):
    """Settings of a build are not what they should be."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SoundsPart(_Part):
    """The sound library: taken from a folder, or synthesised into the corpus."""

    library: str | None = Field(
        None, description="Folder of a sound library; null: synthesise one into CORPUS/library."
    )
    seed: int = Field(0, description="Seed of the synthesised takes.")
    takes: Count = Field(6, description="Takes of each synthesised sound.")
    ambience_takes: Count = Field(3, description="Takes of each synthesised ambience.")
    format: Literal["flac", "wav"] = Field("flac", description="Files of synthesised takes.")


class PlanPart(_Part):
    """What is planned, before there are words."""

    preset: str = Field("balanced", description="balanced, paper, or a YAML file: reactions.")
    per_template: Count | None = Field(
        None, description="Scenes of each situation; null: 10 from 200 scenes on, fewer below."
    )
    min_takes: Count = Field(1, description="Takes a sound needs in a split to be drawn there.")


class WritePart(_Part):
    """Who writes the dialogues."""

    writer: str = Field(
        "offline/phrasebook", description="offline/phrasebook, adapter/NAME, or of models.yaml."
    )
    options: dict[str, Any] = Field({}, description="Of the models: family, base_url, ...")
    topic_writer: str | None = Field(None, description="Another model for the topics.")
    templates_writer: str | None = Field(None, description="A model for the situations.")
    prompts: str | None = Field(None, description="Folder with prompts of your own.")
    max_attempts: Count = Field(5, description="Drafts of a scene before it is abandoned.")
    max_refills: Annotated[int, Field(ge=0)] = Field(
        20, description="Fresh scenes tried in place of an abandoned one."
    )


class FilterPart(_Part):
    """The independent judge, who must recover topic and reactions from the words."""

    judge: str | None = Field(
        "offline/reader", description="offline/reader, adapter/NAME, or of models.yaml; null: none."
    )
    options: dict[str, Any] = Field({}, description="Of the judge: family, base_url, ...")
    embedder: str | None = Field(None, description="Compares topics; null: local/minilm.")
    embedder_options: dict[str, str] = Field({}, description="Of the embedder.")
    tau: float | str | None = Field(
        None, description="Least cosine of topics: a number, a file, or null: found here."
    )
    asks: Count | None = Field(None, description="Times a judge without a verdict is asked.")
    prompts: str | None = Field(None, description="Folder with a judge.yaml of your own.")


class SpeakPart(_Part):
    """Who speaks."""

    cast: str = Field("default", description="default, kokoro, espeak, or a cast file.")


class MixPart(_Part):
    """How it sounds, and which twins are made beside."""

    preset: str = Field("balanced", description="balanced, paper, or a YAML file: levels, gaps.")
    format: Literal["wav", "flac"] = Field("wav", description="Of scenes and twins; 16 bits.")
    mute: tuple[str, ...] = Field(
        ("each", "all"), description="Twins without a sound: each, all, e1 ...; [] for none."
    )
    swap_sound: tuple[str, ...] = Field((), description="Twins with another sound: each, e1 ...")
    speech_only: bool = Field(False, description="Twins of the voices alone.")
    stems: bool = Field(False, description="Every bus as a file.")
    allow_overlap: bool = Field(False, description="Let two sounds overlap.")


class LabelsPart(_Part):
    """Labels for other programs."""

    formats: tuple[Literal["audacity", "rttm", "jams"], ...] = Field(
        ("audacity",), description="audacity, rttm, jams; [] for none."
    )


class AuditPart(_Part):
    """Can the reaction be guessed without the conduct?"""

    seed: int = Field(0, description="Of the resampling and the shuffled control.")
    strict: bool = Field(False, description="Hold every group to chance, whatever presets allow.")


class RunPart(_Part):
    """How the work is done; nothing here changes what comes out."""

    workers: Count | None = Field(None, description="Processes; null: one a processor.")
    cache: str | None = Field(None, description="Folder of voice files shared by corpora.")
    concurrency: Count = Field(8, description="Calls of services at the same time.")
    max_retries: Annotated[int, Field(ge=0)] = Field(5, description="Of a call that failed.")
    rate: Annotated[float, Field(gt=0)] | None = Field(None, description="Calls a minute at most.")
    timeout_s: Annotated[float, Field(gt=0)] = Field(600.0, description="For one reply.")
    max_calls: Count | None = Field(None, description="Stop before more calls than this.")
    max_cost_usd: Annotated[float, Field(ge=0)] | None = Field(
        None, description="Stop before more US dollars than this."
    )
    price: str | None = Field(None, description="input=2.5,output=10 (USD per million tokens).")
    max_characters: Annotated[int, Field(ge=0)] | None = Field(
        None, description="Most characters sent to paid voices."
    )
    models_file: str | None = Field(None, description="Named models; null: models.yaml.")


class BuildConfig(_Part):
    """All settings of a build."""

    format: Literal[1] = Field(FORMAT, description="Of this file.")
    scenes: Count = Field(100, description="Accepted scenes; whole situations, see per_template.")
    seed: int = Field(0, description="Of every draw of plan, voices, mix.")
    bank: str | None = Field(None, description="Folder of a bank; null: the one that ships.")
    sounds: SoundsPart = SoundsPart()
    plan: PlanPart = PlanPart()
    write: WritePart = WritePart()
    filter: FilterPart = FilterPart()
    speak: SpeakPart = SpeakPart()
    mix: MixPart = MixPart()
    labels: LabelsPart = LabelsPart()
    audit: AuditPart = AuditPart()
    run: RunPart = RunPart()

    @model_validator(mode="after")
    def _known_formats_once(self) -> Self:
        for name, given in (("labels.formats", self.labels.formats), ("mix.mute", self.mix.mute)):
            if len(set(given)) != len(given):
                raise ValueError(f"{name} with each entry once")
        return self

    @property
    def per_template(self) -> int:
        """Scenes of each situation: as said, or by :func:`per_template_for`."""
        return self.plan.per_template or per_template_for(self.scenes)

    @property
    def templates(self) -> int:
        """Situations: enough for all scenes."""
        return -(-self.scenes // self.per_template)

    @property
    def places(self) -> int:
        """Scenes that are planned: the next whole multiple of the scenes of a situation."""
        return self.templates * self.per_template

    def resolved(self) -> BuildConfig:
        """With what is derived written out, as it is kept in the corpus."""
        plan = self.plan.model_copy(update={"per_template": self.per_template})
        return self.model_copy(update={"plan": plan})

    def to_yaml(self, *, comments: bool = True) -> str:
        """As a YAML file, every setting with what it means."""
        return "".join(f"{line}\n" for line in _lines(self, 0, comments=comments))


def per_template_for(scenes: int) -> int:
    """Scenes of each situation where nobody says: so few that there are twenty situations or more.

    Splits are of whole situations, and intervals draw whole situations, so few scenes are spread over many of them.

    Examples
    --------
    >>> [per_template_for(n) for n in (20, 40, 100, 200, 1000)]
    [1, 2, 5, 10, 10]
    """
    return min(max(scenes // 20, 1), MOST_PER_TEMPLATE)


def _lines(part: BaseModel, depth: int, *, comments: bool) -> Iterator[str]:
    """A record as YAML lines; comments stand behind short values and above long ones."""
    import yaml

    pad = "  " * depth
    for name, field in type(part).model_fields.items():
        value = getattr(part, name)
        if isinstance(value, BaseModel):
            yield ""
            what = (type(value).__doc__ or "").split("\n")[0]
            yield f"{pad}{name}:" + (f"  # {what}" if comments and what else "")
            yield from _lines(value, depth + 1, comments=comments)
            continue
        plain = list(value) if isinstance(value, tuple) else value
        text = yaml.safe_dump(plain, default_flow_style=True, allow_unicode=True, width=10_000)
        text = text.removesuffix("\n").removesuffix("\n...")
        said = f"{pad}{name}: {text}"
        yield f"{said:<32} # {field.description}" if comments and field.description else said


def read_build_config(path: Path) -> BuildConfig:
    """Settings from a file; what it does not say keeps its default.

    Raises
    ------
    BuildConfigError: no such file, no YAML, an unknown key or a wrong value; the key is named.
    """
    from earwitness.scenes.yaml_records import read_yaml_record

    if path.is_file() and not path.read_text(encoding="utf-8", errors="replace").strip():
        return BuildConfig()
    return read_yaml_record(path, BuildConfig, BuildConfigError, "settings of scenes build")


def with_settings(config: BuildConfig, settings: Mapping[str, Any], where: str) -> BuildConfig:
    """A configuration with other values, by dotted names such as ``mix.preset``.

    Raises
    ------
    UsageError: a name or value that is none; ``where`` is the option it came from.

    Examples
    --------
    >>> with_settings(BuildConfig(), {"mix.format": "flac"}, "--set").mix.format
    'flac'
    """
    values = config.model_dump()
    for name, value in settings.items():
        part: Any = values
        *above, last = name.split(".")
        for key in above:
            part = part.get(key) if isinstance(part, dict) else None
        if not isinstance(part, dict) or (last not in part and len(above) < 2):
            raise UsageError(f"{where} {name}", "there is no such setting", "a name as --print-config shows")  # fmt: skip
        part[last] = value
    try:
        return BuildConfig.model_validate(values)
    except ValidationError as fault:
        first = fault.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"])) or ", ".join(settings)
        wanted = first["msg"].removeprefix("Value error, ")
        raise UsageError(
            f"{where} {key}", f"found {first['input']!r:.80}", wanted[:1].lower() + wanted[1:]
        ) from None


def parse_settings(given: Iterable[str]) -> dict[str, Any]:
    """``KEY=VALUE`` texts, values read as YAML.

    Raises
    ------
    UsageError: no equals sign, or no YAML.

    Examples
    --------
    >>> parse_settings(["mix.mute=[all]", "seed=3"])
    {'mix.mute': ['all'], 'seed': 3}
    """
    import yaml

    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError("--set", repr(text), "KEY=VALUE, such as mix.format=flac")
        try:
            found[name.strip()] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise UsageError(f"--set {name.strip()}", repr(value), "a value as in YAML") from None
    return found


def flat(config: BuildConfig) -> dict[str, Any]:
    """Every setting by its dotted name."""
    found: dict[str, Any] = {}

    def walk(value: Mapping[str, Any], prefix: str) -> None:
        for key, each in value.items():
            name = f"{prefix}{key}"
            if isinstance(each, dict) and name.count(".") == 0:
                walk(each, f"{name}.")
            else:
                found[name] = each

    walk(config.model_dump(mode="json"), "")
    return found


FREE = ("run.", "labels.", "audit.")
"""Settings by which nothing that was made before would be different."""
GROWING = ("scenes", "write.max_refills", "mix.mute", "mix.swap_sound", "mix.speech_only", "mix.stems")  # fmt: skip
"""Settings that may grow: more is made, and what is there stays as it is."""


def require_same(stored: BuildConfig, wanted: BuildConfig, folder: Path) -> None:
    """Refuse settings other than those a corpus was made with; it may only grow.

    Raises
    ------
    UsageError: names every difference.
    """
    before, now = flat(stored), flat(wanted)
    differences = [
        f"{name} was {_shown(before[name])} and is {_shown(now[name])}"
        for name in before
        if before[name] != now[name]
        and not name.startswith(FREE)
        and not (name in GROWING and _is_more(before[name], now[name]))
    ]
    if differences:
        raise UsageError(
            str(folder),
            "was made with other settings: " + "; ".join(differences),
            "the same settings, or more scenes or twins",
            "Build into another folder, or repeat the settings in "
            f"{folder / STORED} (they are used when nothing else is said).",
        )


def _is_more(before: Any, now: Any) -> bool:
    if isinstance(before, list):
        return set(before) <= set(now)
    return bool(now >= before)


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return "[" + ", ".join(map(str, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)
