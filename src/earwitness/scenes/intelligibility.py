"""Can the words be understood? Word error rates of clean voices and of mixes, by scene, location and voice.

A scene's clean speech is its turns in a row with half a second between; its mix is ``mixes/<scene>.wav`` (or
``.flac``), where there is one. Both are transcribed by the same engine and compared with what was to be said,
in one form (:func:`earwitness.models.transcribers.wording.comparable_words`). Intervals draw whole scenes.

Word error rate: (substitutions + deletions + insertions) / words to be said; an inserted word counts for the
voice of the word before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from earwitness.audio.convert import resample, to_mono
from earwitness.audio.files import file_sha256
from earwitness.audio.io import read_audio
from earwitness.audio.types import Audio, samples_at
from earwitness.errors import DataError, MissingExtraError, UsageError
from earwitness.jobs import default_workers, pool_map
from earwitness.models.transcribers.registry import DEFAULT_TRANSCRIBER, open_transcriber
from earwitness.models.transcribers.wording import comparable_words
from earwitness.runs.items import digest
from earwitness.runs.jsonlines import JsonLines
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.voices import SpokenTurn, read_voices
from earwitness.stats.intervals import RESAMPLES, Interval, percentile_interval, resample_sums
from earwitness.stats.streams import stream

if TYPE_CHECKING:
    from earwitness.models.protocols import Transcriber

MIXES = "mixes"
TRANSCRIPTS = "transcripts.jsonl"
GAP_S = 0.5
Condition = Literal["clean", "mix"]
CONDITIONS: tuple[Condition, ...] = ("clean", "mix")


@dataclass(frozen=True, slots=True)
class WordErrors:
    """Errors among words, and the rate with its interval: None for a single scene, rough (``few``) under ten."""

    errors: int
    words: int
    scenes: int
    wer: float
    interval: Interval | None

    @property
    def few(self) -> bool:
        return self.scenes < 10


@dataclass(frozen=True)
class Intelligibility:
    """What was understood.

    Attributes
    ----------
    overall: by condition.
    by_location, by_voice: by condition and name.
    loss: word error rate of mixes less that of clean speech, on the scenes that have both.
    """

    transcriber: str
    settings: Mapping[str, Any]
    scenes: int
    overall: Mapping[str, WordErrors]
    by_location: Mapping[str, Mapping[str, WordErrors]]
    by_voice: Mapping[str, Mapping[str, WordErrors]]
    loss: tuple[float, Interval | None] | None
    worst: tuple[tuple[str, str, float], ...]
    """Condition, scene and rate of the scenes understood worst."""


@dataclass(frozen=True, slots=True)
class _Task:
    """One recording to transcribe: files in a row."""

    key: str
    scenario: str
    condition: Condition
    files: tuple[Path, ...]
    transcriber: str
    options: Mapping[str, Any]


OnDone = Callable[[int, int], None]


def measure(
    corpus: Corpus,
    *,
    transcriber: str = DEFAULT_TRANSCRIBER,
    options: Mapping[str, Any] | None = None,
    conditions: Sequence[Condition] = CONDITIONS,
    sample: int | None = None,
    workers: int | None = None,
    seed: int = 0,
    on_done: OnDone | None = None,
) -> Intelligibility:
    """Transcribe scenes and count word errors. Transcripts are kept in ``transcripts.jsonl`` of the corpus.

    Parameters
    ----------
    conditions: ``clean``, ``mix`` or both; mixes that are missing are left out.
    sample: number of scenes, drawn by seed; None means all.

    Raises
    ------
    DataError: the corpus was not spoken, or holds no mix when only mixes are asked for.
    UsageError: a sample of nothing.
    """
    if find_spec("jiwer") is None:
        raise MissingExtraError("word error rates", "local")
    if sample is not None and sample < 1:
        raise UsageError("--sample", str(sample), "at least 1")
    voices = read_voices(corpus.folder)
    scenes = _sampled(tuple(voices), sample, seed)
    engine = open_transcriber(transcriber, options)
    tasks = _tasks(corpus, voices, scenes, conditions, engine, transcriber, options or {})
    if not tasks:
        raise DataError(
            str(corpus.path(MIXES)),
            "has no mix of these scenes",
            "mixed scenes",
            "Mix them first, or measure clean speech with --condition clean.",
        )
    texts = _transcripts(corpus, tasks, engine, workers or default_workers(), on_done)
    locations = {scenario.id: scenario.location for scenario, _ in corpus.scenes()}
    counts = {
        (task.scenario, task.condition): count_errors(voices[task.scenario], texts[task.key])
        for task in tasks
    }
    return _summary(engine, scenes, counts, locations, seed)


def _sampled(scenes: Sequence[str], sample: int | None, seed: int) -> tuple[str, ...]:
    if sample is None or sample >= len(scenes):
        return tuple(scenes)
    # Each scene has its own draw, so that a larger sample contains the smaller one.
    draws = {scene: float(stream(seed, "intelligibility", scene).random()) for scene in scenes}
    chosen = set(sorted(scenes, key=lambda scene: (draws[scene], scene))[:sample])
    return tuple(scene for scene in scenes if scene in chosen)


def _tasks(
    corpus: Corpus,
    voices: Mapping[str, Sequence[SpokenTurn]],
    scenes: Sequence[str],
    conditions: Sequence[Condition],
    engine: Transcriber,
    name: str,
    options: Mapping[str, Any],
) -> list[_Task]:
    identity = digest({"name": engine.name, "settings": dict(engine.settings)})
    tasks = []
    for scene in scenes:
        for condition in conditions:
            if condition == "clean":
                files = tuple(corpus.path(turn.file) for turn in voices[scene])
                content = ",".join(turn.sha256 for turn in voices[scene])
            else:
                mix = next(
                    (
                        path
                        for suffix in ("wav", "flac")
                        if (path := corpus.path(f"{MIXES}/{scene}.{suffix}")).is_file()
                    ),
                    None,
                )
                if mix is None:
                    continue
                files, content = (mix,), file_sha256(mix)
            key = hashlib.sha256(f"{identity} {condition} {content}".encode()).hexdigest()
            tasks.append(_Task(key, scene, condition, files, name, options))
    return tasks


def _transcripts(
    corpus: Corpus,
    tasks: Sequence[_Task],
    engine: Transcriber,
    workers: int,
    on_done: OnDone | None,
) -> dict[str, str]:
    """Texts by key, from the log where they are there."""
    texts: dict[str, str] = {}

    def note(line: Mapping[str, Any], _: int) -> None:
        texts[line["key"]] = line["text"]

    with JsonLines(
        corpus.path(TRANSCRIPTS), keys=("key", "text"), entry="a transcript", note=note
    ) as log:
        missing = list({task.key: task for task in tasks if task.key not in texts}.values())
        done = len(tasks) - len(missing)
        if on_done:
            on_done(done, len(tasks))
        results: Iterable[tuple[_Task, str]]
        if workers == 1 or len(missing) == 1:
            results = ((task, engine.transcribe(_sound(task.files)).text) for task in missing)
        else:
            results = zip(
                missing, pool_map(_in_worker, missing, workers=workers, chunk=1), strict=True
            )
        for task, text in results:
            log.append(
                {
                    "key": task.key,
                    "scenario": task.scenario,
                    "condition": task.condition,
                    "transcriber": engine.name,
                    "text": text,
                }
            )
            done += 1
            if on_done:
                on_done(done, len(tasks))
    return texts


def _in_worker(task: _Task) -> str:
    engine = _worker_engine(task.transcriber, tuple(sorted(task.options.items())))
    return engine.transcribe(_sound(task.files)).text


@lru_cache(maxsize=1)
def _worker_engine(name: str, options: tuple[tuple[str, Any], ...]) -> Transcriber:
    return open_transcriber(name, dict(options))


def _sound(files: Sequence[Path]) -> Audio:
    """Recordings in a row, half a second between them."""
    sounds = [to_mono(read_audio(path)) for path in files]
    rate = max(sound.rate for sound in sounds)
    gap = np.zeros(samples_at(GAP_S, rate), np.float32)
    pieces = []
    for sound in sounds:
        pieces += [resample(sound, rate).samples, gap]
    return Audio(np.concatenate(pieces[:-1]), rate)


def count_errors(turns: Sequence[SpokenTurn], text: str) -> dict[str, tuple[int, int]]:
    """Errors and words of every voice of a scene, from the transcript of the whole."""
    import jiwer

    reference: list[str] = []
    owners: list[str] = []
    for turn in turns:
        words = comparable_words(turn.text)
        reference += words
        owners += [turn.voice] * len(words)
    if not reference:
        raise DataError(f"scene {turns[0].scenario if turns else '?'}", "has no words", "speech")
    heard = comparable_words(text)
    errors = dict.fromkeys(owners, 0)
    if not heard:
        for owner in owners:
            errors[owner] += 1
    else:
        aligned = jiwer.process_words(" ".join(reference), " ".join(heard))
        for chunk in aligned.alignments[0]:
            if chunk.type == "insert":
                before = owners[max(chunk.ref_start_idx - 1, 0)]
                errors[before] += chunk.hyp_end_idx - chunk.hyp_start_idx
            elif chunk.type != "equal":
                for place in range(chunk.ref_start_idx, chunk.ref_end_idx):
                    errors[owners[place]] += 1
    return {voice: (errors[voice], owners.count(voice)) for voice in errors}


_Counts = Mapping[tuple[str, Condition], Mapping[str, tuple[int, int]]]


def _summary(
    engine: Transcriber,
    scenes: Sequence[str],
    counts: _Counts,
    locations: Mapping[str, str],
    seed: int,
) -> Intelligibility:
    overall: dict[str, WordErrors] = {}
    by_location: dict[str, dict[str, WordErrors]] = {}
    by_voice: dict[str, dict[str, WordErrors]] = {}
    worst: list[tuple[str, str, float]] = []
    for condition in CONDITIONS:
        rows = {scene: per for (scene, found), per in counts.items() if found == condition}
        if not rows:
            continue
        whole = {scene: _total(per.values()) for scene, per in rows.items()}
        overall[condition] = _rate(list(whole.values()), stream(seed, "wer", condition))
        worst += [(condition, scene, errors / words) for scene, (errors, words) in whole.items()]
        places = sorted({locations.get(scene, "?") for scene in rows})
        by_location[condition] = {
            place: _rate(
                [row for scene, row in whole.items() if locations.get(scene, "?") == place],
                stream(seed, "wer", condition, "location", place),
            )
            for place in places
        }
        names = sorted({voice for per in rows.values() for voice in per})
        by_voice[condition] = {
            name: _rate(
                [per[name] for per in rows.values() if name in per],
                stream(seed, "wer", condition, "voice", name),
            )
            for name in names
        }
    worst.sort(key=lambda entry: (-entry[2], entry[1], entry[0]))
    return Intelligibility(
        engine.name,
        dict(engine.settings),
        len(scenes),
        overall,
        by_location,
        by_voice,
        _loss(counts, seed),
        tuple(worst[:5]),
    )


def _total(pairs: Any) -> tuple[int, int]:
    both = list(pairs)
    return sum(errors for errors, _ in both), sum(words for _, words in both)


def _rate(rows: Sequence[tuple[int, int]], rng: np.random.Generator) -> WordErrors:
    table = np.asarray(rows, dtype=np.int64)
    errors, words = (int(total) for total in table.sum(axis=0))
    if len(rows) == 1:
        return WordErrors(errors, words, 1, errors / words, None)
    value = np.asarray(errors / words)
    sums = resample_sums(table, RESAMPLES, rng)
    low, high, _ = percentile_interval(sums[:, 0] / sums[:, 1], value, len(rows))
    return WordErrors(errors, words, len(rows), float(value), Interval(float(low), float(high)))


def _loss(counts: _Counts, seed: int) -> tuple[float, Interval | None] | None:
    """Paired over scenes that have both conditions."""
    both = sorted({s for s, c in counts if c == "mix"} & {s for s, c in counts if c == "clean"})
    if not both:
        return None
    table = np.asarray(
        [
            [*_total(counts[scene, "clean"].values()), *_total(counts[scene, "mix"].values())]
            for scene in both
        ],
        dtype=np.int64,
    )
    sums = np.concatenate(
        [
            table.sum(axis=0)[None].astype(np.float64),
            resample_sums(table, RESAMPLES, stream(seed, "wer", "loss")),
        ]
    )
    losses = sums[:, 2] / sums[:, 3] - sums[:, 0] / sums[:, 1]
    if len(both) == 1:
        return float(losses[0]), None
    low, high, _ = percentile_interval(losses[1:], np.asarray(losses[0]), len(both))
    return float(losses[0]), Interval(float(low), float(high))
