"""The ``speak`` stage: every utterance of a corpus as a voice file, turn by turn.

Turns are synthesised one by one, so where a turn begins and ends is known exactly. Files are assets in
``voices/`` of the corpus (:mod:`earwitness.scenes.voices_store`); ``voices.jsonl`` says which turn is which
file, ``voices.yaml`` who spoke and what was left out. Both are the same for any number of workers, any order
and after any kill, as long as the assets are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from earwitness.errors import DataError, UsageError
from earwitness.models.protocols import Mark, Segment, Voice, Word
from earwitness.runs.folder import write_atomically
from earwitness.runs.jsonlines import read_lines
from earwitness.scenes.bank import Bank
from earwitness.scenes.corpus import Corpus, dump_lines
from earwitness.scenes.corpus_card import write_card
from earwitness.scenes.dialogue_records import Dialogue
from earwitness.scenes.scenario import Scenario
from earwitness.scenes.voices_cast import Cast, CastVoice, choose
from earwitness.scenes.voices_store import VoiceAsset, VoiceStore, key_of
from earwitness.scenes.voices_text import Line, RenderError, line_of, needs_of
from earwitness.stats.streams import stream

FOLDER = "voices"
LINES = "voices.jsonl"
CARD = "voices.yaml"
CALLS = "voice_calls.jsonl"


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance as it will be spoken. ``index`` counts utterances from 0."""

    scenario: str
    index: int
    speaker: str
    voice: CastVoice
    line: Line
    key: str


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """One utterance as it was spoken, as ``voices.jsonl`` has it.

    ``file`` is below the corpus folder; ``seconds`` is exactly ``frames / rate``. ``words`` is empty where the
    engine gives no times. ``marks`` are pauses and performed tags inside the turn. Times are in seconds from
    the start of the file.
    """

    scenario: str
    index: int
    speaker: str
    voice: str
    text: str
    file: str
    sha256: str
    frames: int
    rate: int
    words: tuple[Word, ...]
    marks: tuple[Mark, ...]
    removed: tuple[str, ...]

    @property
    def seconds(self) -> float:
        return self.frames / self.rate


@dataclass(frozen=True)
class SpeakPlan:
    """What speaking a corpus takes: turns in the order of the plan, and scenes refused with their reason."""

    turns: tuple[Turn, ...]
    refused: tuple[tuple[str, RenderError], ...]
    seed: int

    @property
    def removed(self) -> Counter[str]:
        """How often each delivery tag is left out."""
        return Counter(tag for turn in self.turns for tag in turn.line.removed)


@dataclass
class SpeakReport:
    """What became of it."""

    turns: int = 0
    scenes: int = 0
    made: int = 0
    found: int = 0
    seconds: float = 0.0
    characters: int = 0
    in_flight: int = 0
    """Calls of an earlier run of which nobody knows whether they were paid."""
    removed: dict[str, int] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    waiting: int = 0
    """Scenes of which not every turn is there yet, after a run with a limit."""
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Job:
    """One file to make."""

    key: str
    voice: str
    options: Mapping[str, Any]
    segments: tuple[Segment, ...]
    seed: int
    where: str


OnDone = Callable[[int, int], None]
"""Told how many files of how many are done."""


def plan_speech(
    scenes: Sequence[tuple[Scenario, Dialogue]],
    cast: Cast,
    opened: Mapping[str, Voice],
    bank: Bank,
    seed: int,
) -> SpeakPlan:
    """Cast every scene and turn every utterance into segments; nothing is synthesised.

    Raises
    ------
    DataError: the cast is too small, or an utterance cannot be said at all.
    """
    turns: list[Turn] = []
    refused: list[tuple[str, RenderError]] = []
    for scenario, dialogue in scenes:
        try:
            turns += _scene(scenario, dialogue, cast, opened, bank, seed)
        except RenderError as error:
            refused.append((scenario.id, error))
    return SpeakPlan(tuple(turns), tuple(refused), seed)


def _scene(
    scenario: Scenario,
    dialogue: Dialogue,
    cast: Cast,
    opened: Mapping[str, Voice],
    bank: Bank,
    seed: int,
) -> list[Turn]:
    needs = [
        (dialogue.utterances[need.turn].speaker, need)
        for need in needs_of(scenario, dialogue, bank)
    ]
    chosen = choose(cast, scenario, needs, seed)
    turns = []
    for index, utterance in enumerate(dialogue.utterances):
        where = f"scene {scenario.id}, utterance {index}"
        if utterance.speaker not in chosen:
            raise DataError(where, f"is said by {utterance.speaker!r}", "A or B")
        voice = chosen[utterance.speaker]
        rng = stream(seed, scenario.id, "pauses", str(index))
        line = line_of(utterance.text, bank, voice.tags, rng, where)
        key = key_of(opened[voice.id], line.segments, seed)
        turns.append(Turn(scenario.id, index, utterance.speaker, voice, line, key))
    return turns


def speak_corpus(
    corpus: Corpus,
    cast: Cast,
    opened: Mapping[str, Voice],
    bank: Bank,
    *,
    workers: int | None = None,
    concurrency: int = 4,
    cache: Path | None = None,
    leave_out_refused: bool = False,
    max_characters: int | None = None,
    limit: int | None = None,
    shard: tuple[int, int] = (1, 1),
    on_done: OnDone | None = None,
) -> SpeakReport:
    """Speak every scene of a corpus. What is stored already is not made again.

    Parameters
    ----------
    workers: processes for engines on this machine; one thread each.
    concurrency: calls at once of services.
    cache: a folder shared by corpora.
    leave_out_refused: go on without scenes whose label no voice can render, instead of stopping.
    max_characters: most characters sent to paid services.
    limit: make only what the first scenes need; ``voices.jsonl`` has every scene whose turns are all there.
    shard: (i, n) makes the i-th of n parts of the files and no ``voices.jsonl``.

    Raises
    ------
    RenderError: scenes are refused (named, with counts).
    DataError: a voice failed; everything made so far is kept.
    """
    from earwitness.scenes.voices_making import make

    with corpus.lock(shared=shard[1] > 1):
        plan = plan_speech(corpus.scenes(), cast, opened, bank, corpus.config.seed)
        if plan.refused and not leave_out_refused:
            raise refusal(plan, len(corpus.dialogues()))
        store = VoiceStore(corpus.path(FOLDER), cache)
        report = SpeakReport(removed=dict(sorted(plan.removed.items())))
        report.refused = [scene for scene, _ in plan.refused]
        jobs, assets = _jobs(plan, store, shard, limit)
        report.found, report.made = len(assets), len(jobs)
        report.characters = characters_of(jobs, opened)
        if max_characters is not None and report.characters > max_characters:
            raise UsageError(
                "--max-characters",
                f"{report.characters:,} characters would be sent to paid services",
                f"at most {max_characters:,}",
                "Raise the limit, or speak fewer scenes.",
            )
        made, report.in_flight = make(
            jobs,
            store,
            opened,
            calls=corpus.path(CALLS),
            workers=workers,
            concurrency=concurrency,
            on_done=on_done,
        )
        assets |= made
        report.complete = shard[1] == 1
        if report.complete:
            waiting = {turn.scenario for turn in plan.turns if turn.key not in assets}
            report.waiting = len(waiting)
            spoken = [
                _spoken(turn, assets[turn.key])
                for turn in plan.turns
                if turn.scenario not in waiting
            ]
            report.turns = len(spoken)
            report.scenes = len({turn.scenario for turn in spoken})
            report.seconds = sum(turn.seconds for turn in spoken)
            write_atomically(corpus.path(LINES), dump_lines(map(spoken_to_json, spoken)))
            write_atomically(corpus.path(CARD), _card(cast, opened, plan, report))
            write_card(corpus, bank)
    return report


def forecast(
    corpus: Corpus,
    cast: Cast,
    opened: Mapping[str, Voice],
    bank: Bank,
    *,
    cache: Path | None = None,
    limit: int | None = None,
) -> dict[str, Any]:
    """What :func:`speak_corpus` would do, as plain values; nothing is made or paid for."""
    plan = plan_speech(corpus.scenes(), cast, opened, bank, corpus.config.seed)
    jobs, assets = _jobs(plan, VoiceStore(corpus.path(FOLDER), cache), (1, 1), limit)
    remote = {voice.name for voice in opened.values() if voice.remote}
    return {
        "cast": cast.name,
        "split_policy": cast.policy,
        "scenes": len({turn.scenario for turn in plan.turns}),
        "turns": len(plan.turns),
        "stored": len(assets),
        "to_make": len(jobs),
        "paid_files": sum(job.voice in remote for job in jobs),
        "paid_characters": characters_of(jobs, opened),
        "removed_tags": dict(sorted(plan.removed.items())),
        "refused": {scene: str(error) for scene, error in plan.refused},
    }


def refusal(plan: SpeakPlan, scenes: int) -> RenderError:
    """The error of refused scenes: the first one's, and how many there are."""
    scene, first = plan.refused[0]
    more = f" ({len(plan.refused)} of {scenes} scenes are refused, first {scene})"
    step = f"{first.next_step} Or leave them out with --leave-out-refused."
    return RenderError(first.where, first.found + more, first.wanted, step)


def characters_of(jobs: Iterable[Job], opened: Mapping[str, Voice]) -> int:
    """Characters that go to paid services."""
    remote = {voice.name for voice in opened.values() if voice.remote}
    return sum(
        len(getattr(segment, "text", "")) + len(getattr(segment, "written", ""))
        for job in jobs
        if job.voice in remote
        for segment in job.segments
    )


def _jobs(
    plan: SpeakPlan, store: VoiceStore, shard: tuple[int, int], limit: int | None
) -> tuple[list[Job], dict[str, VoiceAsset]]:
    """Files to make, each once, in an order that keeps voices together; and those that are there."""
    chosen = set(list(dict.fromkeys(turn.scenario for turn in plan.turns))[:limit])
    assets: dict[str, VoiceAsset] = {}
    jobs: dict[str, Job] = {}
    number, count = shard
    for turn in plan.turns:
        if turn.key in assets or turn.key in jobs:
            continue
        if count > 1 and int(turn.key[:8], 16) % count != number - 1:
            continue
        found = store.get(turn.key)
        if found is not None:
            assets[turn.key] = found
            continue
        if turn.scenario not in chosen:
            continue
        where = f"scene {turn.scenario}, utterance {turn.index}"
        voice = turn.voice
        jobs[turn.key] = Job(
            turn.key, voice.voice, voice.options, turn.line.segments, plan.seed, where
        )
    return sorted(jobs.values(), key=lambda job: (job.voice, job.key)), assets


def _spoken(turn: Turn, asset: VoiceAsset) -> SpokenTurn:
    return SpokenTurn(
        turn.scenario,
        turn.index,
        turn.speaker,
        turn.voice.id,
        turn.line.text,
        f"{FOLDER}/{asset.file}",
        asset.sha256,
        asset.frames,
        asset.rate,
        asset.words,
        asset.marks,
        turn.line.removed,
    )


def _card(cast: Cast, opened: Mapping[str, Voice], plan: SpeakPlan, report: SpeakReport) -> str:
    import yaml

    used = {turn.voice.id: turn.voice for turn in plan.turns}
    card = {
        "format": 1,
        "cast": {"name": cast.name, "hash": cast.hash, "split_policy": cast.policy},
        "scenes": report.scenes,
        "turns": report.turns,
        "seconds": round(report.seconds, 3),
        "removed_tags": report.removed,
        "refused": {scene: str(error) for scene, error in plan.refused},
        "voices": {
            identifier: {
                "gender": voice.gender,
                "splits": list(voice.splits),
                "tags": sorted(voice.tags),
                "deterministic": opened[identifier].deterministic,
                "settings": dict(opened[identifier].settings),
            }
            for identifier, voice in sorted(used.items())
        },
    }
    return yaml.safe_dump(card, sort_keys=False, allow_unicode=True, width=100)


def spoken_to_json(turn: SpokenTurn) -> dict[str, Any]:
    """A line of ``voices.jsonl``."""
    return {
        "scenario": turn.scenario,
        "turn": turn.index,
        "speaker": turn.speaker,
        "voice": turn.voice,
        "text": turn.text,
        "file": turn.file,
        "sha256": turn.sha256,
        "frames": turn.frames,
        "rate": turn.rate,
        "seconds": round(turn.seconds, 6),
        "words": [[word.text, word.start_s, word.end_s] for word in turn.words],
        "marks": [[mark.kind, mark.start_s, mark.end_s] for mark in turn.marks],
        "removed": list(turn.removed),
    }


def spoken_from_json(value: Mapping[str, Any]) -> SpokenTurn:
    """Read what :func:`spoken_to_json` wrote."""
    return SpokenTurn(
        value["scenario"],
        value["turn"],
        value["speaker"],
        value["voice"],
        value["text"],
        value["file"],
        value["sha256"],
        value["frames"],
        value["rate"],
        tuple(Word(*word) for word in value["words"]),
        tuple(Mark(*mark) for mark in value["marks"]),
        tuple(value["removed"]),
    )


def read_voices(folder: Path) -> dict[str, tuple[SpokenTurn, ...]]:
    """The spoken turns of a corpus, by scene, in order.

    Raises
    ------
    DataError: the corpus was not spoken yet, or the file is broken.
    """
    path = folder / LINES
    if not path.exists():
        raise DataError(str(path), "is missing", "voices", f"Run: earwitness scenes speak {folder}")
    found: dict[str, list[SpokenTurn]] = {}
    for number, line in read_lines(path, "a spoken turn"):
        try:
            turn = spoken_from_json(line)
        except (KeyError, TypeError) as error:
            raise DataError(f"{path}:{number}", f"is no spoken turn ({error})") from None
        found.setdefault(turn.scenario, []).append(turn)
    return {scene: tuple(turns) for scene, turns in found.items()}
