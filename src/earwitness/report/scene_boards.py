"""From runs about scenes to what a report shows of them: one board per corpus, scored once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from earwitness.report.boards import prompts_of
from earwitness.report.numbers import known
from earwitness.tasks.cares_runs import TASKS, CaresAnswers, task_module
from earwitness.tasks.cares_scores import CaresComparison, base_id
from earwitness.tasks.cares_table import CaresTable, TaskScores, build_table
from earwitness.tasks.deafness import DeafnessSigns, losses_of, signs
from earwitness.tasks.records import Decision
from earwitness.tasks.scene_conditions import CONDITIONS, TEXT_CONDITIONS
from earwitness.tasks.summary import Judge, Judged

if TYPE_CHECKING:
    from earwitness.report.scene_corpora import Finder
    from earwitness.tasks.scene_items import MixedCorpus

CONTROL_CONDITIONS = ("asr", "oracle")
"""Conditions a text-only control is looked for under, in this order."""
BREAKDOWNS = ("location", "setting", "sound", "register", "margin", "level", "position")
"""Groups that only the main condition of a system is split by."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a headline may still become while items were never answered, in its own unit."""

    low: float
    high: float
    failed: int


@dataclass(frozen=True, slots=True)
class SceneBoard:
    """Everything about one corpus.

    Attributes
    ----------
    key: unique on a page. ``name``: of the corpus. ``corpus``: what the runs' cards say of it.
    systems: names, best first; ``conditions``: those some run was asked under.
    control: (system, condition) of the text-only control, None where there is none.
    chosen: whether the control was named by the user; else it was found.
    bounds: of incomplete runs, by (task, system, condition).
    origins: where a system's answers come from: ``run``, ``predictions`` or ``people``.
    mixed: the corpus itself, None where it was not found. ``judge``: of summaries.
    """

    key: str
    name: str
    corpus: Mapping[str, Any]
    answers: tuple[CaresAnswers, ...]
    table: CaresTable
    systems: tuple[str, ...]
    conditions: tuple[str, ...]
    control: tuple[str, str] | None
    chosen: bool
    signs: tuple[DeafnessSigns, ...]
    bounds: Mapping[tuple[str, str, str], Bounds]
    origins: Mapping[str, str]
    notes: tuple[str, ...] = ()
    mixed: MixedCorpus | None = None
    judge: Judge | None = None

    @property
    def complete(self) -> bool:
        return not self.bounds

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks that some run has, in their order."""
        have = {task for task, _, _ in self.table.scores}
        return tuple(task for task in TASKS if task in have)

    def scores(self, task: str, system: str, condition: str = "audio") -> TaskScores | None:
        """Scores of one system, None if it was not asked so."""
        return self.table.scores.get((task, system, condition))

    def not_asked(self, task: str, system: str, condition: str) -> str:
        """Why there is no figure: ``not applicable`` or ``not asked``."""
        if condition not in task_module(task).APPLICABLE:
            return "not applicable"
        cards = [each.card for each in self.answers if each.name == system]
        limits = [card.get("limits") for card in cards]
        if condition in TEXT_CONDITIONS and any(
            isinstance(limit, Mapping) and limit.get("needs_audio") for limit in limits
        ):
            return "not applicable"
        return "not asked"

    def against_condition(self, task: str, system: str, condition: str) -> CaresComparison | None:
        """``audio`` minus another condition of the same system."""
        pair = (f"{system} audio", f"{system} {condition}")
        return self._pair(task, *pair, "audio against")

    def against_control(self, task: str, system: str) -> CaresComparison | None:
        """``audio`` of a system minus the text-only control."""
        if self.control is None:
            return None
        return self._pair(task, f"{system} audio", " ".join(self.control), "models against")

    def _pair(self, task: str, a: str, b: str, family: str) -> CaresComparison | None:
        for found in self.table.comparisons:
            if found.task == task and (found.a, found.b) == (a, b) and family in found.family:
                return found
        return None


def build_boards(
    answers: Sequence[CaresAnswers],
    *,
    control: str | None = None,
    cluster: str = "scene",
    accept_failed: bool = False,
    judge: Judge | None = None,
    finder: Finder | None = None,
    seed: int = 0,
    resamples: int = 10_000,
    on_board: Callable[[str], None] | None = None,
) -> tuple[SceneBoard, ...]:
    """Score every run about scenes once, corpus by corpus.

    Parameters
    ----------
    control: ``MODEL`` or ``MODEL:CONDITION``; None looks for one: a system asked under ``asr`` (else ``oracle``) and
        never under ``audio``, or else the one with the best reaction score there, which is the harder to beat.
    judge: of summaries; None is the offline judge with the corpus's bank, or the one that ships.
    finder: where corpora are looked for; None looks for none.
    on_board: called with the name of each corpus before it is scored.

    Raises
    ------
    UsageError: the control was not run on any corpus.
    """
    boards = []
    for number, members in enumerate(_by_corpus(answers), start=1):
        corpus = _corpus_of(members)
        name = str(corpus.get("name") or "scenes")
        if on_board is not None:
            on_board(name)
        named = _named_apart(members)
        chosen = control or _found_control(named)
        mixed, missing = None, ""
        if finder is not None:
            scenes = {d.cluster for each in named for d in each.decisions}
            mixed, missing = finder.find(corpus, scenes)
        named, judging, unjudged = _judged(named, judge, mixed, finder)
        table = build_table(
            _trimmed(named),
            control=chosen,
            cluster=cluster,
            accept_failed=accept_failed,
            judge=judging,
            seed=seed,
            resamples=resamples,
        )
        boards.append(
            SceneBoard(
                key=f"scenes-{number}",
                name=name,
                corpus=corpus,
                answers=named,
                table=table,
                systems=_ordered(named, table),
                conditions=_conditions(named),
                control=_split(chosen, named) if chosen else None,
                chosen=control is not None,
                signs=_all_signs(named),
                bounds=_all_bounds(named, table),
                origins={each.name: _origin(each) for each in named},
                notes=(*_notes(members), *unjudged, *_missing(name, missing), *_of_corpus(mixed)),
                mixed=mixed,
                judge=judging,
            )
        )
    return tuple(boards)


@dataclass(frozen=True, slots=True)
class Remembering:
    """A judge that reads no summary twice, as scoring and the browser both ask."""

    judge_: Judge
    known: dict[tuple[str, tuple[str, ...]], tuple[Judged, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.judge_.name

    def judge(self, summary: str, sounds: Sequence[str]) -> tuple[Judged, ...]:
        """The verdicts of the judge behind it."""
        key = (summary, tuple(sounds))
        if key not in self.known:
            self.known[key] = self.judge_.judge(summary, sounds)
        return self.known[key]


def _trimmed(answers: Sequence[CaresAnswers]) -> list[CaresAnswers]:
    """Answers to score: beside the condition that breakdowns are shown of, without the groups of most breakdowns.

    Each value of each group has an interval of its own, which is most of the work of a large report.
    """
    main = {
        name: min((each.condition for each in answers if each.name == name), key=CONDITIONS.index)
        for name in {each.name for each in answers}
    }
    return [
        each
        if each.condition == main[each.name] or each.task in ("grounding", "summary")
        else replace(
            each,
            decisions=tuple(
                replace(d, groups={k: v for k, v in d.groups.items() if k not in BREAKDOWNS})
                for d in each.decisions
            ),
        )
        for each in answers
    ]


def _judged(
    answers: tuple[CaresAnswers, ...],
    judge: Judge | None,
    mixed: MixedCorpus | None,
    finder: Finder | None,
) -> tuple[tuple[CaresAnswers, ...], Judge | None, tuple[str, ...]]:
    """Answers with the judge of their summaries; summaries the offline judge has no words for are left out, and said."""
    summaries = [each for each in answers if each.task == "summary"]
    if judge is not None or not summaries:
        return answers, Remembering(judge) if judge is not None else None, ()
    from earwitness.scenes.bank import load_bank
    from earwitness.tasks.summary import NamingJudge

    bank = mixed.bank if mixed is not None else load_bank(finder.bank if finder else None)
    wanted = {sound for each in summaries for d in each.decisions for sound in _sounds_of(d)}
    unknown = sorted(wanted - {sound.id for sound in bank.sounds})
    if not unknown:
        return answers, Remembering(NamingJudge(bank)), ()
    rest = tuple(each for each in answers if each.task != "summary")
    note = (
        f"Summaries are left out: the bank {bank.id} {bank.version} has no words for {len(unknown)} of their sounds"
        f" ({', '.join(unknown[:3])}{', ...' if len(unknown) > 3 else ''}). Name the corpus's own with --bank DIR."
    )
    return rest, None, (note,)


def _sounds_of(decision: Decision) -> list[str]:
    truth = json.loads(decision.gold)
    return [*(each["sound"] for each in truth["present"]), *truth["absent"]]


def _missing(name: str, why: str) -> tuple[str, ...]:
    if not why:
        return ()
    return (
        f"The corpus “{name}” was not found ({why}), so scenes have no timeline here. Name its folder with --corpus.",
    )


def _of_corpus(mixed: MixedCorpus | None) -> tuple[str, ...]:
    """Where the sounds come from, and whether their names are those of the corpus's own bank."""
    from earwitness.report.scene_audio import cast_of, library_of
    from earwitness.report.scene_corpora import bank_note

    if mixed is None:
        return ()
    library, cast = library_of(mixed.folder), cast_of(mixed.folder)
    notes = (
        f"Sounds are from the library {library}." if library else "",
        f"Voices are those of the cast {cast}." if cast else "",
        bank_note(mixed),
    )
    return tuple(filter(None, notes))


def _origin(answers: CaresAnswers) -> str:
    return str(answers.card.get("origin") or "run")


def _corpus_of(answers: Sequence[CaresAnswers]) -> Mapping[str, Any]:
    for each in answers:
        clips = each.card.get("clips")
        if isinstance(clips, Mapping):
            return clips
    return {}


def _by_corpus(answers: Sequence[CaresAnswers]) -> list[list[CaresAnswers]]:
    """Answers by the corpus they are about: its name, seed and bank, whatever part of it was asked."""
    groups: dict[tuple[str, str, str], list[CaresAnswers]] = {}
    for each in answers:
        clips = each.card.get("clips")
        clips = clips if isinstance(clips, Mapping) else {}
        bank = clips.get("bank")
        bank_hash = str(bank.get("hash")) if isinstance(bank, Mapping) else ""
        key = (str(clips.get("name")), str(clips.get("seed")), bank_hash)
        groups.setdefault(key, []).append(each)
    return [groups[key] for key in sorted(groups)]


def _named_apart(answers: Sequence[CaresAnswers]) -> tuple[CaresAnswers, ...]:
    """Answers whose (task, name, condition) are unique.

    Runs of one name join where they were asked under different conditions; else the later one gets a number.
    """
    asked: dict[tuple[str, str, int], set[str]] = {}
    for each in answers:
        asked.setdefault((each.task, each.name, id(each.card)), set()).add(each.condition)
    taken: dict[tuple[str, str], set[str]] = {}
    names: dict[tuple[str, str, int], str] = {}
    for (task, name, run), conditions in asked.items():
        shown, number = name, 1
        while taken.get((task, shown), set()) & conditions:
            number += 1
            shown = f"{name} ({number})"
        taken.setdefault((task, shown), set()).update(conditions)
        names[task, name, run] = shown
    return tuple(replace(each, name=names[each.task, each.name, id(each.card)]) for each in answers)


def _found_control(answers: Sequence[CaresAnswers]) -> str | None:
    for condition in CONTROL_CONDITIONS:
        asked = [each for each in answers if each.condition == condition]
        if not asked:
            continue
        hearing = {each.name for each in answers if each.condition == "audio"}
        silent = [each for each in asked if each.name not in hearing]
        best = max(silent or asked, key=lambda each: (each.task == "reaction", _right(each)))
        return f"{best.name}:{condition}"
    return None


def _right(answers: CaresAnswers) -> float:
    """Mean recall over gold labels."""
    by_gold: dict[str, list[bool]] = {}
    for decision in answers.decisions:
        by_gold.setdefault(decision.gold, []).append(decision.outcome.label == decision.gold)
    return sum(sum(row) / len(row) for row in by_gold.values()) / max(len(by_gold), 1)


def _split(control: str, answers: Sequence[CaresAnswers]) -> tuple[str, str]:
    """Model and condition of a control as :func:`build_table` reads it."""
    model, _, condition = control.rpartition(":")
    if condition in CONDITIONS and any(each.name == model for each in answers):
        return model, condition
    return control, "oracle"


def _ordered(answers: Sequence[CaresAnswers], table: CaresTable) -> tuple[str, ...]:
    """Systems by their first task's headline with sound, best first; those without sound after them."""

    def rank(name: str) -> tuple[Any, ...]:
        for place, task in enumerate(TASKS):
            found = table.scores.get((task, name, "audio"))
            if found is not None and known(found.headline.value):
                return (0, place, -found.headline.value, name)
        return (1, 0, 0.0, name)

    return tuple(sorted({each.name for each in answers}, key=rank))


def _conditions(answers: Sequence[CaresAnswers]) -> tuple[str, ...]:
    asked = {each.condition for each in answers}
    return tuple(name for name in CONDITIONS if name in asked)


def _notes(answers: Sequence[CaresAnswers]) -> tuple[str, ...]:
    """What a reader must know before comparing rows."""
    notes = []
    hashes = {
        str(clips.get("sha256")): int(clips.get("n") or 0)
        for each in answers
        if isinstance(clips := each.card.get("clips"), Mapping) and clips.get("sha256")
    }
    if len(hashes) > 1:
        sizes = ", ".join(f"{n:,}" for n in sorted(hashes.values()))
        notes.append(
            f"Not all runs are about the same recordings ({sizes} scenes). Comparisons pair the items both have."
        )
    notes += [str(note) for each in answers for note in each.card.get("notes", ())]
    return tuple(dict.fromkeys(notes))


def _all_signs(answers: Sequence[CaresAnswers]) -> tuple[DeafnessSigns, ...]:
    by_key = {(each.task, each.name, each.condition): each for each in answers}
    found = []
    for (task, name, condition), each in by_key.items():
        if condition != "audio":
            continue
        others = {
            other: by_key[task, name, other].decisions
            for other in losses_of(task)
            if (task, name, other) in by_key
        }
        found.append(
            signs(
                name,
                task,
                each.decisions,
                others,
                prompts=prompts_of(each.card),
                base_id=base_id,
                clip=lambda decision: decision.cluster,
            )
        )
    return tuple(found)


# --- incomplete runs


def _all_bounds(
    answers: Sequence[CaresAnswers], table: CaresTable
) -> dict[tuple[str, str, str], Bounds]:
    found = {}
    for each in answers:
        failed = sum(d.outcome.kind == "failed" for d in each.decisions)
        scores = table.scores[each.task, each.name, each.condition]
        complete = getattr(scores, "complete", None)
        if complete is None:
            complete = scores.scores.complete  # type: ignore[union-attr]
        if failed and not complete:
            low, high = bounds_of(each.task, each.decisions, scores)
            found[each.task, each.name, each.condition] = Bounds(low, high, failed)
    return found


def bounds_of(task: str, decisions: Sequence[Decision], scores: TaskScores) -> tuple[float, float]:
    """What the headline would be if every item that was never answered were wrong, and if it were right.

    Balanced accuracy: of every recall. d': present items wrongly ``no`` and absent ones ``yes``, and the reverse.
    Summary: over the sounds of the largest budget.
    """
    if task == "grounding":
        return _d_prime_bounds(decisions)
    if task == "summary":
        return _summary_bounds(decisions, scores)
    by_gold: dict[str, list[Decision]] = {}
    for decision in decisions:
        by_gold.setdefault(decision.gold if task == "reaction" else "", []).append(decision)
    rows = [
        (
            sum(d.outcome.label == d.gold for d in each) / len(each),
            sum(d.outcome.kind == "failed" for d in each) / len(each),
        )
        for each in by_gold.values()
    ]
    low = sum(right for right, _ in rows) / len(rows)
    return low, low + sum(failed for _, failed in rows) / len(rows)


def _d_prime_bounds(decisions: Sequence[Decision]) -> tuple[float, float]:
    from earwitness.stats.dprime import d_prime

    counts = {kind: [0, 0, 0] for kind in ("present", "absent", "catch")}
    for decision in decisions:
        row = counts[base_id(decision.item_id).rpartition("/")[2]]
        row[0] += decision.outcome.label == "yes"
        row[1] += decision.outcome.kind == "failed"
        row[2] += 1
    (hits, hits_failed, n), (alarms, alarms_failed, m) = counts["present"], counts["absent"]
    low = d_prime(hits, n, alarms + alarms_failed, m).d_prime
    high = d_prime(hits + hits_failed, n, alarms, m).d_prime
    return float(low), float(high)


def _summary_bounds(decisions: Sequence[Decision], scores: TaskScores) -> tuple[float, float]:
    largest = max((d.groups["budget"] for d in decisions), key=int)
    sounds = failed = 0
    for decision in decisions:
        if decision.groups["budget"] == largest:
            n = len(json.loads(decision.gold)["present"])
            sounds += n
            failed += n * (decision.outcome.kind == "failed")
    value = scores.headline.value
    return value, value + failed / sounds if sounds else value
