"""``scenes build``: from nothing to a mixed, validated and audited corpus, stage by stage.

Every stage is the function that its own command calls, and resumes by itself: a build that was stopped at any moment
goes on where it was when the same command runs again. The corpus holds, beside the files of its stages,

==================  ======================================================================================
``build.yaml``      the settings that decide what comes out; a build with others is refused
``build_run.yaml``  log: how the last command went about it (processes, limits of calls)
``build.jsonl``     log: one line a command with the time every stage took
``library/``        the sound library, where it was synthesised
``audit.json``      figures of the audit
==================  ======================================================================================
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from earwitness.errors import UsageError
from earwitness.runs.folder import write_atomically
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.build_config import (
    STORED,
    BuildConfig,
    BuildConfigError,
    read_build_config,
    require_same,
)
from earwitness.scenes.build_report import BuildReport, StageTime
from earwitness.scenes.corpus import Corpus, dump_lines, locked

if TYPE_CHECKING:
    from earwitness.scenes.mixing.preset import MixPreset
    from earwitness.scenes.mixing.stage import MixReport
    from earwitness.scenes.scenario import Scenario
    from earwitness.scenes.sounds import Kind, SoundLibrary
    from earwitness.scenes.voices import SpeakReport
    from earwitness.scenes.writing_loop import LoopProgress, WritingResult

LIBRARY = "library"
RUN = "build_run.yaml"
LOG = "build.jsonl"
AUDIT = "audit.json"
LOCK = ".build.lock"
LEAST_AUDITED = 10
"""Situations with sounds below which the audit is left out: an interval over so few says nothing."""


class Watcher(Protocol):
    """Who is told how a build goes on."""

    def begins(self, stage: str) -> None:
        """A stage begins."""
        ...

    def progress(self, done: int, total: int | None, detail: str = "") -> None:
        """So much of the stage is done."""
        ...

    def ended(self, stage: StageTime) -> None:
        """A stage has ended."""
        ...


class Unwatched:
    """Nobody is told."""

    def begins(self, stage: str) -> None: ...

    def progress(self, done: int, total: int | None, detail: str = "") -> None: ...

    def ended(self, stage: StageTime) -> None: ...


def stored_config(folder: Path) -> BuildConfig | None:
    """The settings a folder was built with, and how its last command ran; None where nothing was built.

    Raises
    ------
    BuildConfigError: they are damaged.
    """
    if not (folder / STORED).is_file():
        return None
    config = read_build_config(folder / STORED)
    if not (folder / RUN).is_file():
        return config
    from earwitness.scenes.build_config import RunPart
    from earwitness.scenes.yaml_records import read_yaml_record

    run = read_yaml_record(folder / RUN, RunPart, BuildConfigError, "how a build ran")
    return config.model_copy(update={"run": run})


def build_corpus(
    config: BuildConfig, folder: Path, *, watcher: Watcher | None = None
) -> BuildReport:
    """Make a corpus, or go on making it.

    Parameters
    ----------
    config: every setting of every stage.
    folder: of the corpus; made if absent.

    Returns
    -------
    BuildReport: with :attr:`BuildReport.exit_code`; later stages are left out where scenes wait or places are empty.

    Raises
    ------
    UsageError: the folder was built with other settings, holds something else, or another process builds in it.
    EarwitnessError: of the stages, such as a library without a sound that is needed.

    Examples
    --------
    ``build_corpus(BuildConfig(scenes=20), Path("corpus"))``
    """
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, name=LOCK):
        config = _settled(config, folder)
        return _Build(config, folder, watcher or Unwatched()).run()


def _settled(config: BuildConfig, folder: Path) -> BuildConfig:
    """The configuration with what is derived, checked against the folder's own and kept there."""
    stored = stored_config(folder)
    if stored is None:
        if any(entry.name != LOCK for entry in folder.iterdir()):
            raise UsageError(
                str(folder), "has files and was not made by scenes build", "a new or empty folder"
            )
        config = config.resolved()
    else:
        if config.plan.per_template is None:
            plan = config.plan.model_copy(update={"per_template": stored.per_template})
            config = config.model_copy(update={"plan": plan})
        require_same(stored, config, folder)
    check_inputs(config)
    kept = config.model_copy(update={"run": type(config.run)()})
    write_atomically(folder / RUN, _run_text(config))
    write_atomically(folder / STORED, kept.to_yaml())
    return config


def _run_text(config: BuildConfig) -> str:
    import yaml

    return yaml.safe_dump(config.run.model_dump(mode="json"), sort_keys=False)


def check_inputs(config: BuildConfig) -> None:
    """Refuse what a late stage could not use, before the first begins.

    Raises
    ------
    EarwitnessError: a preset, cast, library or price that cannot be read.
    """
    from earwitness.runs.budgets import parse_price
    from earwitness.scenes.mixing.preset import load_mix_preset
    from earwitness.scenes.plan import load_preset
    from earwitness.scenes.sounds import load_library
    from earwitness.scenes.voices_cast import load_cast

    load_preset(config.plan.preset)
    load_mix_preset(config.mix.preset)
    load_cast(config.speak.cast)
    if config.run.price:
        parse_price(config.run.price)
    if config.sounds.library is not None:
        load_library(Path(config.sounds.library))


class _Build:
    """One run over all stages."""

    def __init__(self, config: BuildConfig, folder: Path, watcher: Watcher) -> None:
        self.config = config
        self.folder = folder
        self.watcher = watcher
        self.bank: Bank = load_bank(self.bank_folder)
        self.report = BuildReport(
            corpus=str(folder),
            asked=config.scenes,
            templates=config.templates,
            per_template=config.per_template,
            places=config.places,
        )

    @property
    def bank_folder(self) -> Path | None:
        return _path(self.config.bank)

    @property
    def corpus(self) -> Corpus:
        return Corpus(self.folder)

    def run(self) -> BuildReport:
        try:
            library = self._sounds()
            self._plan(library)
            self._write()
            report = self.report
            if not (report.waiting or report.stopped or report.lost):
                self._speak()
                self._mix(library)
                self._labels()
                self._validate()
                self._audit()
        finally:
            self._log()
        return self.report

    @contextlib.contextmanager
    def _stage(self, name: str) -> Iterator[list[str]]:
        """Time a stage; the list takes what it did, in words."""
        self.watcher.begins(name)
        did: list[str] = []
        wall, cpu = time.monotonic(), cpu_seconds()
        try:
            yield did
        finally:
            ended = StageTime(
                name,
                round(time.monotonic() - wall, 3),
                round(cpu_seconds() - cpu, 3),
                "; ".join(did),
            )
            self.report.stages.append(ended)
        self.watcher.ended(ended)

    def _log(self) -> None:
        """One more line; a kill tears at most the last."""
        stages = [[s.name, s.wall_s, s.cpu_s, s.did] for s in self.report.stages]
        line = {"at": time.time(), "scenes": self.config.scenes, "stages": stages}
        with (self.folder / LOG).open("a", encoding="utf-8") as log:
            log.write(dump_lines([line]))

    def _sounds(self) -> SoundLibrary:
        from earwitness.scenes.sounds import load_library
        from earwitness.scenes.synth.library import synthesise_library

        asked = self.config.sounds
        with self._stage("sounds") as did:
            if asked.library is not None:
                library = load_library(Path(asked.library))
                did.append(f"{library.card.n_takes} takes of {asked.library}")
            else:
                library = synthesise_library(
                    self.folder / LIBRARY,
                    self.bank,
                    seed=asked.seed,
                    takes=asked.takes,
                    ambience_takes=asked.ambience_takes,
                    form=asked.format,
                    workers=self.config.run.workers,
                    on_progress=self.watcher.progress,
                )
                did.append(f"{library.card.n_takes} synthetic takes")
            self.report.library = f"{library.card.name} {library.card.version}"
            self.report.takes_shared = library.shared
        return library

    def _plan(self, library: SoundLibrary) -> None:
        from earwitness.scenes.bank_library import read_library
        from earwitness.scenes.corpus_plan import library_used, plan_corpus, read_cast
        from earwitness.scenes.plan import load_preset
        from earwitness.scenes.voices_cast import cast_path

        config = self.config
        with self._stage("plan") as did:
            planned = plan_corpus(
                self.folder,
                self.bank,
                templates=config.templates,
                per_template=config.per_template,
                seed=config.seed,
                preset=load_preset(config.plan.preset),
                library=library_used(
                    read_library(library.folder), config.plan.min_takes, self.bank
                ),
                cast=read_cast(cast_path(config.speak.cast), self.bank),
            )
            library.require(_needs(planned.scenarios))
            did.append(
                f"{len(planned.scenarios)} scenes, {config.templates} situations by {config.per_template}"
            )

    def _write(self) -> None:
        """Write; with a judge, write and judge in one, since what is turned down is written again."""
        from earwitness.scenes.corpus_writing import write_corpus
        from earwitness.scenes.recovery_filter import JudgeOrder, filter_corpus
        from earwitness.scenes.writers.calls import Meter

        part, judge = self.config.write, self.config.filter
        order = _writing_order(self.config)
        meter = Meter()
        with self._stage("write" if judge.judge is None else "write, filter") as did:
            if judge.judge is None:
                result = asyncio.run(
                    write_corpus(
                        self.corpus, self.bank, order, bank_folder=self.bank_folder,
                        on_progress=self._looped, meter=meter,
                    )
                )  # fmt: skip
                did.append(f"{len(result.dialogues)} dialogues by {part.writer}")
            else:
                by = JudgeOrder(
                    judge=judge.judge,
                    options=judge.options,
                    embedder=judge.embedder,
                    embedder_options=judge.embedder_options,
                    tau=None if judge.tau is None else str(judge.tau),
                    asks=judge.asks,
                    prompts=_path(judge.prompts),
                )
                filtered = asyncio.run(
                    filter_corpus(
                        self.corpus, self.bank, order, by, bank_folder=self.bank_folder,
                        on_progress=self._looped, meter=meter,
                    )
                )  # fmt: skip
                result = filtered.result
                did.append(
                    f"{len(result.dialogues)} dialogues by {part.writer}, {filtered.figures.judged} "
                    f"drafts read by {judge.judge}"
                )
            if result.abandoned:
                did.append(f"{len(result.abandoned)} given up and replaced")
            self._written(result, meter.stopped, meter.cost_usd)

    def _looped(self, progress: LoopProgress) -> None:
        detail = f"{progress.stage}: {progress.accepted} of {progress.places} stand"
        self.watcher.progress(progress.done, progress.of, detail)

    def _written(self, result: WritingResult, stopped: str | None, cost_usd: float) -> None:
        from earwitness.scenes.bank_records import REACTIONS
        from earwitness.scenes.scenario import SPLITS

        report = self.report
        report.judged = self.config.filter.judge is not None
        scenes = self.corpus.scenes()
        splits = Counter(scenario.split for scenario, _ in scenes)
        reactions = Counter(e.reaction for scenario, _ in scenes for e in scenario.events)
        report.accepted = len(scenes)
        report.splits = {split: splits[split] for split in SPLITS}
        report.reactions = {reaction: reactions[reaction] for reaction in REACTIONS}
        report.abandoned, report.refills = len(result.abandoned), len(result.refills)
        report.waiting, report.lost = dict(result.failed), list(result.lost)
        report.stopped, report.cost_usd = stopped, round(cost_usd, 6)

    def _speak(self) -> None:
        from earwitness.scenes.voices import speak_corpus
        from earwitness.scenes.voices_cast import open_cast

        run = self.config.run
        with self._stage("speak") as did:
            cast, voices = open_cast(self.config.speak.cast)
            try:
                spoken: SpeakReport = speak_corpus(
                    self.corpus,
                    cast,
                    voices,
                    self.bank,
                    workers=run.workers,
                    concurrency=run.concurrency,
                    cache=_path(run.cache),
                    max_characters=run.max_characters,
                    on_done=self.watcher.progress,
                )
            finally:
                for voice in voices.values():
                    voice.close()
            self.report.cast = cast.name
            self.report.voices_shared = cast.policy == "shared"
            did.append(f"{spoken.turns} turns, {spoken.seconds / 60:.1f} minutes")
            if spoken.removed:
                did.append(f"{sum(spoken.removed.values())} delivery tags left out")

    def _mix(self, library: SoundLibrary) -> None:
        from earwitness.scenes.mixing.stage import manifests, mix_corpus
        from earwitness.scenes.mixing.twins import TwinRequest

        part = self.config.mix
        with self._stage("mix") as did:
            mixed: MixReport = mix_corpus(
                self.corpus,
                self.bank,
                library,
                mix_preset(self.config),
                twins=TwinRequest(part.mute, part.swap_sound, part.speech_only),
                form=part.format,
                stems=part.stems,
                workers=self.config.run.workers,
                on_done=self.watcher.progress,
            )
            report = self.report
            report.refused, report.twins = dict(mixed.refused), dict(mixed.twins)
            found = list(manifests(self.corpus))
            twins = [m for name in mixed.twins for m in manifests(self.corpus, name)]
            report.mixed = len(found)
            report.audio_s = round(sum(m.audio.duration_s for m in found), 3)
            report.audio_bytes = sum(m.audio.bytes for m in (*found, *twins))
            did.append(f"{len(found)} scenes, {report.audio_s / 60:.1f} minutes")
            if twins:
                did.append(f"{len(twins)} twins")

    def _labels(self) -> None:
        from earwitness.scenes.interchange import write_labels

        formats = self.config.labels.formats
        if not formats:
            return
        with self._stage("labels") as did:
            counts = [write_labels(self.corpus, form, self.folder / "labels") for form in formats]
            did.append(f"{sum(counts)} files ({', '.join(formats)})")

    def _validate(self) -> None:
        from earwitness.scenes.corpus_validate import validate_corpus
        from earwitness.scenes.recovery_gate import check_verdicts

        with self._stage("validate") as did:
            found = validate_corpus(
                self.corpus,
                self.bank,
                bank_folder=self.bank_folder,
                workers=self.config.run.workers,
                verdicts=check_verdicts,
                on_audio=self.watcher.progress,
            )
            self.report.validation = found
            did.append(f"{len(found.errors)} broken promises")
            heard = found.audio
            if heard is not None and heard.least_margin_db is not None:
                did.append(
                    f"{heard.measured + heard.told} sounds, the least audible {heard.least_margin_db:.2f} dB "
                    "over its ambience"
                )

    def _audit(self) -> None:
        from earwitness.scenes.audit_corpus import audit_corpus

        part = self.config.audit
        scenes = self.corpus.scenes()
        situations = len({scenario.template for scenario, _ in scenes if scenario.events})
        with self._stage("audit") as did:
            if situations < LEAST_AUDITED:
                self.report.audit_left_out = f"{situations} situations with sounds are too few; {LEAST_AUDITED} or more tell something"
                did.append("left out: too few situations")
                return
            found = audit_corpus(
                self.corpus,
                strict=part.strict,
                workers=self.config.run.workers,
                seed=part.seed,
                on_stage=lambda what: self.watcher.progress(0, None, what),
            )
            self.report.audit = found
            text = json.dumps(found.to_json(), indent=1) + "\n"
            write_atomically(self.folder / AUDIT, text)
            halves = [half for half in (found.words, found.acoustics) if half is not None]
            groups = [group for half in halves for group in half.groups]
            leaks = [group.group for group in groups if group.leaks]
            did.append(
                f"{len(groups)} groups, "
                + (f"leaks: {', '.join(leaks)}" if leaks else "none leaks")
            )


def _needs(scenarios: Sequence[Scenario]) -> Iterator[tuple[Kind, str, str]]:
    """What of a library the mixer will ask for, known before there are words."""
    for scenario in scenarios:
        yield "ambience", scenario.location, scenario.split
        for event in scenario.events:
            yield "sound", event.sound, scenario.split


def cpu_seconds() -> float:
    """Of this process and of all its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def mix_preset(config: BuildConfig) -> MixPreset:
    """The mixer's preset of a build."""
    from earwitness.scenes.mixing.preset import load_mix_preset

    preset = load_mix_preset(config.mix.preset)
    return preset.model_copy(update={"allow_overlap": True}) if config.mix.allow_overlap else preset


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def _writing_order(config: BuildConfig) -> Any:
    from earwitness.runs.budgets import parse_price
    from earwitness.runs.runner import RunnerSettings
    from earwitness.scenes.corpus_config import LoopUsed
    from earwitness.scenes.corpus_writing import WritingOrder

    part, run = config.write, config.run
    return WritingOrder(
        writer=part.writer,
        options=part.options,
        topic_writer=part.topic_writer,
        templates_writer=part.templates_writer,
        loop=LoopUsed(max_attempts=part.max_attempts, max_refills=part.max_refills),
        workers=run.workers,
        calls=RunnerSettings(
            concurrency=run.concurrency,
            max_retries=run.max_retries,
            calls_per_minute=run.rate,
            call_timeout_s=run.timeout_s,
            max_calls=run.max_calls,
            max_cost_usd=run.max_cost_usd,
            price=parse_price(run.price) if run.price else None,
        ),
        prompts=_path(part.prompts),
        models_file=_path(run.models_file),
    )
