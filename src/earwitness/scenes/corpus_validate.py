"""Every promise of a corpus checked again, from its files alone.

=====  ==========================================================================================
V101   scenarios are byte by byte what seed, preset, bank, library and cast give
V102   refills are those of the places they take, with the same allocation
V103   all scenarios of a template are in one split
V201   every dialogue belongs to a place, one to each, in the order of the plan
V202   every place has a dialogue
V203   dialogues keep the rules
V204   no two dialogues are near-duplicates
V205   no accepted dialogue is of an abandoned scenario
V206   every dialogue was a candidate (``candidates.jsonl``)
V207   the accepted dialogues have the allocation that was planned
V301   every template in use has its text, and no two the same
V401   the corpus was filtered
V402   verdicts bear out what was accepted
V5..   mixed scenes: see :mod:`earwitness.scenes.corpus_audio`
=====  ==========================================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from earwitness.runs.items import digest
from earwitness.runs.jsonlines import read_lines
from earwitness.scenes.bank import Bank
from earwitness.scenes.corpus import (
    ABANDONED,
    CANDIDATES,
    CONFIG,
    DIALOGUES,
    REFILLS,
    SCENARIOS,
    TEMPLATES,
    Corpus,
)
from earwitness.scenes.corpus_audio import AudioChecked, check_audio, is_mixed
from earwitness.scenes.corpus_card import CARD, corpus_card
from earwitness.scenes.corpus_config import versions_in_use
from earwitness.scenes.corpus_plan import request_of
from earwitness.scenes.corpus_prompts import KEPT
from earwitness.scenes.dialogue_records import Dialogue, dialogue_to_json
from earwitness.scenes.plan import plan
from earwitness.scenes.refill import original_of, refill
from earwitness.scenes.rules.corpus import NearDuplicates
from earwitness.scenes.rules.vocabulary import vocabulary_of
from earwitness.scenes.scenario import Scenario, to_lines
from earwitness.scenes.writers.prompts import NAMES, WriterPrompts
from earwitness.scenes.writing_loop import check_all

VerdictCheck = Callable[[Corpus, Bank], Iterable[str]]
"""Says what in ``verdicts.jsonl`` does not bear out what was accepted."""


@dataclass(frozen=True, slots=True)
class BrokenPromise:
    """A promise that does not hold: its code, where, and what was found. ``open`` is work left, not damage."""

    code: str
    where: str
    found: str
    severity: Literal["error", "open"] = "error"


@dataclass(frozen=True, slots=True)
class Validation:
    """What validating a corpus found."""

    scenarios: int
    dialogues: int
    refills: int
    findings: tuple[BrokenPromise, ...]
    audio: AudioChecked | None = None
    """What was checked in the audio; None where nothing is mixed or it was left out."""

    @property
    def errors(self) -> tuple[BrokenPromise, ...]:
        """Promises that are broken."""
        return tuple(found for found in self.findings if found.severity == "error")

    @property
    def unfinished(self) -> tuple[BrokenPromise, ...]:
        """Work that is left."""
        return tuple(found for found in self.findings if found.severity == "open")


def validate_corpus(
    corpus: Corpus,
    bank: Bank,
    *,
    bank_folder: Path | None = None,
    workers: int | None = None,
    verdicts: VerdictCheck | None = None,
    audio: bool = True,
    on_audio: Callable[[int, int], None] | None = None,
) -> Validation:
    """Check a corpus against all it promises.

    Parameters
    ----------
    bank_folder: where ``bank`` was loaded from; None means the one that ships.
    verdicts: checks the judge's log, where there is one.
    audio: listen to what is mixed, too.
    on_audio: told how many mixed scenes of how many are checked.

    Raises
    ------
    DataError: a file cannot be read at all; file and line are named.
    """
    scenarios, refills = corpus.scenarios(), corpus.refills()
    dialogues = corpus.dialogues()
    known = {scenario.id: scenario for scenario in (*scenarios, *refills)}
    findings = [
        *_plan_findings(corpus, bank),
        *_refill_findings(corpus, scenarios, refills, bank),
        *_split_findings(known.values()),
        *_place_findings(corpus, scenarios, dialogues, known),
        *_rule_findings(corpus, dialogues, known, corpus.for_cast(bank), bank_folder, workers),
        *_candidate_findings(corpus, dialogues),
        *_template_findings(corpus, dialogues, known),
        *_prompt_findings(corpus, bank),
        *_judge_findings(corpus, bank, verdicts),
    ]
    if all(found.code == "V401" for found in findings):
        # Of files that are broken or missing, a card cannot be made again.
        findings += _card_findings(corpus, bank)
    heard = None
    if audio and is_mixed(corpus):
        broken, heard = check_audio(corpus, workers=workers, on_done=on_audio)
        findings += [
            BrokenPromise(b.code, b.where, b.found, "open" if b.open else "error") for b in broken
        ]
    return Validation(len(scenarios), len(dialogues), len(refills), tuple(findings), heard)


def _plan_findings(corpus: Corpus, bank: Bank) -> Iterator[BrokenPromise]:
    path = corpus.path(SCENARIOS)
    found = path.read_text(encoding="utf-8").splitlines()
    wanted = to_lines(plan(bank, request_of(corpus.config))).splitlines()
    for number, (is_, should) in enumerate(zip(found, wanted, strict=False), start=1):
        if is_ != should:
            yield BrokenPromise("V101", f"{path}:{number}", "is not what the plan puts there")
            return
    if len(found) != len(wanted):
        yield BrokenPromise("V101", str(path), f"{len(found)} scenarios; planned are {len(wanted)}")


def _refill_findings(
    corpus: Corpus, scenarios: Sequence[Scenario], refills: Sequence[Scenario], bank: Bank
) -> Iterator[BrokenPromise]:
    places = {scenario.id: scenario for scenario in scenarios}
    seed = corpus.config.seed
    for number, taken in enumerate(refills, start=1):
        where = f"{corpus.path(REFILLS)}:{number}"
        place = places.get(original_of(taken.id))
        if place is None or place.id == taken.id:
            yield BrokenPromise("V102", where, f"{taken.id} takes no place of the plan")
            continue
        turn = int(taken.id.rpartition(".r")[2])
        if taken != refill(place, turn, bank, seed):
            yield BrokenPromise("V102", where, f"{taken.id} is not the refill of {place.id}")


def _split_findings(scenarios: Iterable[Scenario]) -> Iterator[BrokenPromise]:
    splits: dict[str, str] = {}
    for scenario in scenarios:
        first = splits.setdefault(scenario.template, scenario.split)
        if first != scenario.split:
            yield BrokenPromise(
                "V103", scenario.id, f"is in {scenario.split}, its template also in {first}"
            )


def _place_findings(
    corpus: Corpus,
    scenarios: Sequence[Scenario],
    dialogues: Sequence[Dialogue],
    known: dict[str, Scenario],
) -> Iterator[BrokenPromise]:
    path = corpus.path(DIALOGUES)
    order = {scenario.id: number for number, scenario in enumerate(scenarios)}
    abandoned = {entry.scenario for entry in corpus.abandoned()}
    taken: dict[str, int] = {}
    last = -1
    for number, dialogue in enumerate(dialogues, start=1):
        where = f"{path}:{number}"
        place = original_of(dialogue.scenario)
        if dialogue.scenario not in known or place not in order:
            yield BrokenPromise("V201", where, f"{dialogue.scenario} is no scenario of this corpus")
            continue
        if place in taken:
            found = f"{dialogue.scenario} has the place of line {taken[place]}"
            yield BrokenPromise("V201", where, found)
        taken[place] = number
        if order[place] < last:
            yield BrokenPromise("V201", where, f"{dialogue.scenario} is not in the plan's order")
        last = max(last, order[place])
        if dialogue.scenario in abandoned:
            found = f"{dialogue.scenario} is also in {ABANDONED}"
            yield BrokenPromise("V205", where, found)
    empty = [scenario.id for scenario in scenarios if scenario.id not in taken]
    if empty:
        shown = ", ".join(empty[:3]) + (", ..." if len(empty) > 3 else "")
        found = f"{len(empty)} of {len(scenarios)} places have no dialogue ({shown})"
        yield BrokenPromise("V202", str(path), found, "open")
    yield from _allocation_findings(path, scenarios, dialogues, known, taken)


def _allocation_findings(
    path: Path,
    scenarios: Sequence[Scenario],
    dialogues: Sequence[Dialogue],
    known: dict[str, Scenario],
    taken: dict[str, int],
) -> Iterator[BrokenPromise]:
    def allocation(scenario: Scenario) -> Scenario:
        return replace(scenario, id="", template="", theme="")

    planned = Counter(allocation(s) for s in scenarios if s.id in taken)
    accepted = Counter(allocation(known[d.scenario]) for d in dialogues if d.scenario in known)
    if planned != accepted:
        found = f"{(accepted - planned).total()} scenes have an allocation nobody planned there"
        yield BrokenPromise("V207", str(path), found)


def _rule_findings(
    corpus: Corpus,
    dialogues: Sequence[Dialogue],
    known: dict[str, Scenario],
    bank: Bank,
    bank_folder: Path | None,
    workers: int | None,
) -> Iterator[BrokenPromise]:
    path = corpus.path(DIALOGUES)
    cases = [(d, known[d.scenario]) for d in dialogues if d.scenario in known]
    numbers = {d.scenario: number for number, d in enumerate(dialogues, start=1)}
    for (dialogue, _), broken in zip(
        cases, check_all(cases, bank, bank_folder, workers), strict=True
    ):
        for violation in broken:
            where = f"{path}:{numbers[dialogue.scenario]}: {violation.where}"
            yield BrokenPromise("V203", where, f"{violation.code}: {violation.message}")
    limits = vocabulary_of(bank).limits
    seen = NearDuplicates(
        max_shared_sentences=limits.max_shared_sentences,
        max_shared_shingles=limits.max_shared_shingles,
    )
    for number, dialogue in enumerate(dialogues, start=1):
        violation_ = seen.add(dialogue)
        if violation_ is not None:
            yield BrokenPromise("V204", f"{path}:{number}", violation_.message)


def _candidate_findings(corpus: Corpus, dialogues: Sequence[Dialogue]) -> Iterator[BrokenPromise]:
    if not dialogues:
        return
    seen = set()
    for log in corpus.logs(CANDIDATES):
        for _, line in read_lines(log, "a candidate"):
            seen.add(digest([line.get("scenario"), line.get("topic"), line.get("timeline")]))
    for number, dialogue in enumerate(dialogues, start=1):
        said = dialogue_to_json(dialogue)
        if digest([said["scenario"], said["topic"], said["timeline"]]) not in seen:
            yield BrokenPromise(
                "V206",
                f"{corpus.path(DIALOGUES)}:{number}",
                f"the dialogue of {dialogue.scenario} is none of its candidates",
            )


def _template_findings(
    corpus: Corpus, dialogues: Sequence[Dialogue], known: dict[str, Scenario]
) -> Iterator[BrokenPromise]:
    path = corpus.path(TEMPLATES)
    texts = {template.id: template for template in corpus.templates()}
    used = {known[d.scenario].template for d in dialogues if d.scenario in known}
    for name in sorted(used - set(texts)):
        yield BrokenPromise("V301", str(path), f"no text of {name}")
    titles: dict[tuple[str, tuple[str, ...]], str] = {}
    for template in texts.values():
        key = (template.title.casefold(), template.facets)
        first = titles.setdefault(key, template.id)
        if first != template.id:
            yield BrokenPromise("V301", str(path), f"{template.id} says the same as {first}")


def _prompt_findings(corpus: Corpus, bank: Bank) -> Iterator[BrokenPromise]:
    """Copies of prompts must be those the words were asked for with."""
    kept = corpus.path(KEPT)
    if not all((kept / f"{name}.yaml").is_file() for name in NAMES):
        return
    found = WriterPrompts(bank, corpus.config.seed, kept).hashes(*NAMES)
    used = (corpus.config.writer, corpus.config.topic_writer, corpus.config.templates_writer)
    for writer in used:
        for name, wanted in (writer.prompts if writer else {}).items():
            if found.get(name) != wanted:
                yield BrokenPromise(
                    "V302",
                    str(kept),
                    f"{writer.name if writer else ''} was asked with another {name}",
                )


def _card_findings(corpus: Corpus, bank: Bank) -> Iterator[BrokenPromise]:
    path = corpus.path(CARD)
    if corpus.config.versions != versions_in_use():
        return  # Another version may word a card otherwise.
    if path.is_file() and path.read_text(encoding="utf-8") != corpus_card(corpus, bank):
        yield BrokenPromise("V303", str(path), "says something else than the files of the corpus")


def _judge_findings(
    corpus: Corpus, bank: Bank, verdicts: VerdictCheck | None
) -> Iterator[BrokenPromise]:
    path = corpus.path(CONFIG)
    if corpus.config.judge is None:
        yield BrokenPromise("V401", str(path), "no judge has filtered this corpus", "open")
    elif verdicts is not None:
        for found in verdicts(corpus, bank):
            yield BrokenPromise("V402", str(corpus.folder), found)
