"""A plan put into a corpus folder, and made to grow there without changing what exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from earwitness.errors import DataError, UsageError
from earwitness.runs.folder import write_atomically
from earwitness.runs.items import digest
from earwitness.scenes.bank import Bank
from earwitness.scenes.bank_library import SHARED, LibraryContents
from earwitness.scenes.corpus import CONFIG, SCENARIOS, Corpus, locked
from earwitness.scenes.corpus_card import write_card
from earwitness.scenes.corpus_config import (
    BankUsed,
    CastUsed,
    CorpusConfig,
    LibraryUsed,
    read_config,
    versions_in_use,
)
from earwitness.scenes.plan import PlanRequest, Preset, plan
from earwitness.scenes.scenario import SPLITS, Scenario, Split, to_lines


@dataclass(frozen=True, slots=True)
class PlannedCorpus:
    """A corpus after planning: how many scenarios it had before, and all it has now."""

    corpus: Corpus
    before: int
    scenarios: tuple[Scenario, ...]


def library_used(
    library: LibraryContents, min_takes: int = 1, bank: Bank | None = None
) -> LibraryUsed:
    """What a plan depends on of a sound library.

    Takes of no split count in every split. With a bank, locations that have no ambience in some split are left
    out of the plan: their scenes could not be mixed. A library without any ambience leaves out none.
    """
    drawable: dict[Split, tuple[str, ...]] = {}
    for split in SPLITS:
        drawable[split] = tuple(
            sound
            for sound, takes in sorted(library.sounds.items())
            if takes.get(split, 0) + sum(takes.get(name, 0) for name in SHARED) >= min_takes
        )
    contents = {
        kind: {name: dict(sorted(takes.items())) for name, takes in sorted(found.items())}
        for kind, found in (("sounds", library.sounds), ("ambiences", library.ambiences))
    }
    left_out: tuple[str, ...] = ()
    if bank is not None and library.ambiences:
        served = frozenset.intersection(*(library.ambiences_in(split) for split in SPLITS))
        left_out = tuple(place.id for place in bank.locations if place.id not in served)
    return LibraryUsed(
        hash=digest(contents), min_takes=min_takes, drawable=drawable, left_out=left_out
    )


def read_cast(path: Path, bank: Bank) -> CastUsed:
    """Which delivery tags a cast of voices can render.

    A cast is YAML: a list of voices, alone or under ``voices``, or a mapping of names to voices; each may have
    ``tags``, by id or as they are written. One that has none but names its ``voice`` renders what the engine
    declares. A tag counts when **every** voice can render it, since which voice a speaker gets is decided later.

    Raises
    ------
    DataError: no such file, not YAML, not a cast, or a tag the bank does not have.
    EarwitnessError: a voice without tags cannot be opened here to be asked.
    """
    form = "a list of voices, each with its tags"
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(
            str(path), f"cannot be read ({error.strerror})", "a cast of voices"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise DataError(str(path), f"is no valid YAML ({reason})", "a cast of voices") from None
    voices = content.get("voices", content) if isinstance(content, dict) else content
    if isinstance(voices, dict):
        voices = list(voices.values())
    if not isinstance(voices, list) or not voices:
        raise DataError(str(path), "holds no voices", form)
    written = {tag.written.casefold(): tag.id for tag in bank.tags} | {
        t.id: t.id for t in bank.tags
    }
    common: set[str] | None = None
    for number, voice in enumerate(voices):
        where = f"{path}: voices[{number}]"
        if not isinstance(voice, dict) or not isinstance(voice.get("tags") or [], list):
            raise DataError(where, "is no voice with a list of tags", form)
        given = voice.get("tags")
        if given is None and isinstance(voice.get("voice"), str):
            given = _declared(voice["voice"], voice.get("options") or {}, bank)
        tags = [str(tag).strip("[] ").casefold() for tag in given or []]
        unknown = sorted(set(tags) - set(written))
        if unknown:
            known = ", ".join(tag.id for tag in bank.tags)
            raise DataError(where, f"the unknown tags {', '.join(unknown)}", f"of {known}")
        found = {written[tag] for tag in tags}
        common = found if common is None else common & found
    return CastUsed(hash=digest(content), tags=tuple(sorted(common or ())))


def _declared(name: str, options: Mapping[str, Any], bank: Bank) -> list[str]:
    """What of the bank's tags an engine says its voice renders."""
    from earwitness.models.voices.registry import open_voice

    voice = open_voice(name, options)
    try:
        return [tag.id for tag in bank.tags if tag.id in voice.renders]
    finally:
        voice.close()


def request_of(config: CorpusConfig) -> PlanRequest:
    """The request that a corpus was planned by."""
    takes: Mapping[Split, Mapping[str, int]] | None = None
    min_takes = 1
    if config.library is not None:
        # The plan asks only whether there are enough.
        min_takes = config.library.min_takes
        takes = {
            split: dict.fromkeys(sounds, min_takes)
            for split, sounds in config.library.drawable.items()
        }
    return PlanRequest(
        templates=config.templates,
        per_template=config.per_template,
        seed=config.seed,
        preset=config.preset,
        takes=takes,
        min_takes=min_takes,
        tags=None if config.cast is None else frozenset(config.cast.tags),
        without=frozenset() if config.library is None else frozenset(config.library.left_out),
    )


def plan_corpus(
    folder: Path,
    bank: Bank,
    *,
    templates: int,
    per_template: int,
    seed: int,
    preset: Preset,
    library: LibraryUsed | None = None,
    cast: CastUsed | None = None,
) -> PlannedCorpus:
    """Plan a new corpus, or more templates of one that exists.

    Raises
    ------
    UsageError: the corpus there was planned otherwise, or is larger, or another process has it.
    DataError: its scenarios are not what its configuration says.
    InfeasiblePlanError: the bank, library or cast cannot serve the plan.
    """
    library = _as_planned(folder, library)
    config = CorpusConfig(
        seed=seed,
        preset=preset,
        templates=templates,
        per_template=per_template,
        bank=BankUsed(id=bank.id, version=bank.version, language=bank.language, hash=bank.hash),
        library=library,
        cast=cast,
        versions=versions_in_use(),
    )
    scenarios = plan(bank, request_of(config))
    text = to_lines(scenarios)
    with locked(folder):
        before = 0
        if (folder / CONFIG).exists():
            existing = read_config(folder / CONFIG)
            _refuse_another_plan(folder, existing, config)
            before = _verify_prefix(folder / SCENARIOS, text)
            kept: dict[str, Any] = {
                name: getattr(existing, name)
                for name in ("writer", "topic_writer", "templates_writer", "loop", "judge")
            }
            config = config.model_copy(update=kept)
        elif (folder / SCENARIOS).exists():
            # A kill fell between the two files; what is there must still be this plan's.
            before = _verify_prefix(folder / SCENARIOS, text)
        write_atomically(folder / SCENARIOS, text)
        write_atomically(folder / CONFIG, config.to_yaml())
        write_card(Corpus(folder), bank)
    return PlannedCorpus(Corpus(folder), before, scenarios)


def _as_planned(folder: Path, library: LibraryUsed | None) -> LibraryUsed | None:
    """The same library as the corpus has it: plans of before scenes were left out for want of ambiences grow on."""
    if library is None or not (folder / CONFIG).is_file():
        return library
    old = read_config(folder / CONFIG).library
    same = old is not None and old.model_copy(update={"left_out": library.left_out}) == library
    return old if same else library


def _refuse_another_plan(folder: Path, existing: CorpusConfig, wanted: CorpusConfig) -> None:
    """Growing changes the number of templates and nothing else."""
    differences = []
    for name, option in (
        ("seed", "--seed"),
        ("per_template", "--per-template"),
        ("preset", "--preset"),
        ("bank", "--bank"),
        ("library", "--sounds"),
        ("cast", "--voices"),
    ):
        old, new = _planning(getattr(existing, name)), _planning(getattr(wanted, name))
        if old != new:
            differences.append(f"{option} was {_short(old)} and is {_short(new)}")
    if differences:
        raise UsageError(
            str(folder),
            "was planned otherwise: " + "; ".join(differences),
            wanted="the same, with more --templates",
            next_step="Plan into another folder, or repeat the options of the existing plan.",
        )
    if wanted.templates < existing.templates:
        raise UsageError(
            str(folder),
            f"has {existing.templates} templates already",
            wanted=f"--templates {existing.templates} or more",
            next_step="A plan only grows; plan a smaller one into another folder.",
        )


def _planning(value: Any) -> Any:
    """A value without what changes no scenario: floors are for the audit."""
    return value.model_copy(update={"floors": {}}) if isinstance(value, Preset) else value


def _short(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Preset):
        return f"{value.id} {value.version}"
    if isinstance(value, BankUsed):
        return f"{value.id} {value.version} ({value.hash[:12]})"
    if isinstance(value, LibraryUsed | CastUsed):
        return value.hash[:12]
    return str(value)


def _verify_prefix(path: Path, text: str) -> int:
    """Make sure that existing scenarios are the beginning of the new plan; return how many there are."""
    if not path.exists():
        return 0
    old = path.read_text(encoding="utf-8")
    if text.startswith(old):
        return old.count("\n")
    for number, (was, would) in enumerate(
        zip(old.splitlines(), text.splitlines(), strict=False), start=1
    ):
        if was != would:
            raise DataError(
                f"{path}:{number}",
                "differs from what this plan puts there",
                wanted="the beginning of the plan, byte by byte",
                next_step="The file was edited, or planned by another version of Earwitness. "
                "Nothing was changed; plan into another folder.",
            )
    raise DataError(
        str(path),
        f"has {old.count(chr(10))} lines, more than this plan",
        wanted="no more than the plan has",
        next_step="Nothing was changed; ask for more templates or plan into another folder.",
    )
