"""What of a scene does a free summary mention?

Source: CARES (arXiv 2610.10208), summaries judged sound by sound. The protocol followed: the model summarises the
recording in about 25, 75 or 200 words of plain prose; a judge of text says of every sound of the scene whether the
summary has it, with a quoted phrase, and never sees the reactions.

Conventions:

* One item per scene with sounds, budget and condition. Verdicts per sound: ``heard`` (said to occur), ``nature``
  (the right kind of sound under another name), ``discussed`` (only the talk is about such a thing), ``absent``.
* A verdict counts only with a quote of at least one word that stands in the summary (case, spacing and punctuation
  aside); otherwise it is ``absent``.
* The *offline judge* finds the bank's words for the sound (``names``: heard; only ``hints``: nature) and quotes the
  sentence around them. It cannot tell a sound from talk about it, so it never says ``discussed``: compare with the
  base rate. It is named ``naming words`` wherever its verdicts are shown. A chat model can judge instead.
* Base rate: three sounds of the same place that are not in the scene are judged as well.
* Recall is heard / all sounds, by reaction and budget. A summary that was refused, empty, cut off or never came
  mentions nothing and stays in the denominator. ``over budget`` is more than a fifth above it.
* ``muted`` is the scene without any sound; ``blind`` does not apply.
"""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from earwitness.errors import DataError
from earwitness.runs.items import Item, Question
from earwitness.runs.outcomes import Outcome
from earwitness.scenes.bank_records import REACTIONS
from earwitness.stats.intervals import RESAMPLES
from earwitness.stats.streams import stream
from earwitness.tasks.reaction import item_id
from earwitness.tasks.records import Decision, Estimate
from earwitness.tasks.scene_conditions import check_conditions, given, require_twins
from earwitness.tasks.scene_items import MixedCorpus, MixedScene, known_of, margin_bucket
from earwitness.tasks.scene_prompts import ScenePrompt, load_scene_prompt
from earwitness.tasks.sound import distractors

if TYPE_CHECKING:
    from earwitness.models.protocols import Reply
    from earwitness.scenes.bank import Bank

TASK = "summary"
TASK_VERSION = "1"
PARSER_VERSION = "summary 1"
DEFAULT_PROMPT = "own"
BUDGETS = (25, 75, 200)
APPLICABLE = ("audio", "muted", "speech-only", "asr", "oracle", "oracle-tags", "silence")
OVER = 1.2
Verdict = Literal["heard", "nature", "discussed", "absent"]
VERDICTS: tuple[Verdict, ...] = ("heard", "nature", "discussed", "absent")
_SAID = "summary"
"""Label of a reply that is a summary."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict on one sound, with the phrase it rests on; ``why`` says why a verdict was not taken."""

    sound: str
    verdict: Verdict
    quote: str = ""
    why: str = ""


class Judge(Protocol):
    """Says of each sound whether a summary has it."""

    @property
    def name(self) -> str: ...

    def judge(self, summary: str, sounds: Sequence[str]) -> tuple[Judged, ...]:
        """One verdict a sound, in their order."""
        ...


@dataclass(frozen=True, slots=True)
class SummaryScores:
    """What is said of one system. Keys of ``recall`` are (budget, reaction or ``all``).

    ``base_rate`` is by budget: how often sounds that are not there are "heard". ``verdicts`` counts by budget over
    the sounds that are there.
    """

    name: str
    judge: str
    n_clusters: int
    failed: int
    recall: Mapping[tuple[str, str], Estimate]
    base_rate: Mapping[str, Estimate]
    verdicts: Mapping[str, Mapping[str, int]]
    median_words: Mapping[str, float]
    over_budget: Mapping[str, float]
    complete: bool = True

    @property
    def headline(self) -> Estimate:
        """Recall over all sounds with the largest budget that was asked."""
        largest = max((budget for budget, _ in self.recall), key=int)
        return self.recall[largest, "all"]


def load_prompt(id_or_path: str | Path) -> ScenePrompt:
    """A packaged prompt (``own``, ``p1``) or a YAML file of one's own."""
    return load_scene_prompt(id_or_path, task=TASK, needed=("words",))


def items(
    mixed: MixedCorpus,
    *,
    prompt_set: str | Path = DEFAULT_PROMPT,
    conditions: Sequence[str] = ("audio",),
    rotations: int = 1,
    budgets: Sequence[int] = BUDGETS,
) -> tuple[Question, ...]:
    """The questions to ask. The truth is a JSON text of the sounds; ``rotations`` has no meaning here."""
    del rotations
    check_conditions(conditions)
    prompt = load_prompt(prompt_set)
    scenes = [scene for scene in mixed.scenes if scene.manifest.events]
    require_twins(mixed, [(scene, None) for scene in scenes], conditions)
    return tuple(
        Question(
            item=Item(
                id=item_id(f"{scene.id}/w{budget}", 0, condition),
                task=TASK,
                task_version=TASK_VERSION,
                prompt=prompt.fill(preface=source.preface, words=str(budget)),
                audio=source.audio,
                condition=condition,
                metadata=known_of(mixed, scene, TASK),
            ),
            gold=_truth(mixed, scene),
            cluster=scene.id,
            groups={"location": scene.scenario.location, "budget": str(budget)},
        )
        for condition in conditions
        for scene in scenes
        for source in (given(mixed, scene, condition, None),)
        for budget in budgets
    )


def _truth(mixed: MixedCorpus, scene: MixedScene) -> str:
    present = [
        {"event": e.id, "sound": e.sound, "reaction": e.reaction, "margin": margin_bucket(e.over_ambience_db)}
        for e in scene.manifest.events
    ]  # fmt: skip
    first = scene.manifest.events[0]
    absent = distractors(mixed, scene, "summary", first.sound)
    return json.dumps({"present": present, "absent": list(absent)}, ensure_ascii=False)


def parse(reply: Reply, groups: Mapping[str, str]) -> Outcome:
    """Whether a reply is a summary at all; what it mentions is for the judge.

    >>> from earwitness.models.protocols import Reply
    >>> parse(Reply(text="Two people talk about a bicycle."), {}).kind
    'answered'
    >>> parse(Reply(text="I'm sorry, but I can't help with that."), {}).kind
    'refused'
    """
    del groups
    from earwitness.tasks.closed_label import read_reply
    from earwitness.tasks.label_lexicon import load_lexicon

    text = (reply.text or "").strip()
    if reply.finish == "content_filter":
        return Outcome("blocked", rule="finish reason", native=text[:120] or None)
    if reply.finish == "refusal":
        return Outcome("refused", rule="finish reason", native=text[:120] or None)
    if reply.finish == "length":
        return Outcome("truncated", rule="length stop", native=text[:120])
    if not re.search(r"\w", text):
        return Outcome("empty", rule="no words")
    if len(text.split()) <= 40:
        short = read_reply(text, load_lexicon("presence")).outcome
        if short.kind == "refused":
            return short
    return Outcome("answered", _SAID, rule="text")


def normalised(text: str) -> str:
    """Words alone, lower-case: what quotes are compared in.

    >>> normalised("A dog — barking,  twice!")
    'a dog barking twice'
    """
    return " ".join(re.findall(r"\w+", text.casefold()))


def checked(found: Judged, summary: str, *, least_words: int = 1) -> Judged:
    """The verdict, or ``absent`` where its quote does not stand in the summary.

    >>> checked(Judged("dog_bark", "heard", "a cat"), "A dog barks.").verdict
    'absent'
    """
    if found.verdict == "absent":
        return found
    quote = normalised(found.quote)
    if len(quote.split()) < least_words:
        return replace(found, verdict="absent", why="no quote")
    if f" {quote} " not in f" {normalised(summary)} ":
        return replace(found, verdict="absent", why="the quote is not in the summary")
    return found


class NamingJudge:
    """The offline judge: the bank's words for a sound in the summary, and the sentence around them as quote.

    >>> from earwitness.scenes.bank import load_bank
    >>> NamingJudge(load_bank()).judge("They talk. A dog barks.", ["dog_bark"])[0].quote
    'A dog barks.'
    """

    name = "naming words"

    def __init__(self, bank: Bank) -> None:
        from earwitness.scenes.bank_names import Namer

        self._namer = Namer(bank)

    def judge(self, summary: str, sounds: Sequence[str]) -> tuple[Judged, ...]:
        """One verdict a sound; a word inside another listed sound's name is about that one."""
        return tuple(self._one(summary, sound, sounds) for sound in sounds)

    def _one(self, summary: str, sound: str, sounds: Sequence[str]) -> Judged:
        mentions = self._namer.mentions(summary, sound, explained_by=sounds)
        if not mentions:
            return Judged(sound, "absent")
        named = next((m for m in mentions if m.tier == "name"), None)
        mention = named or mentions[0]
        start = max(summary.rfind(sign, 0, mention.start) for sign in ".!?\n") + 1
        ends = [place for sign in ".!?\n" if (place := summary.find(sign, mention.end)) >= 0]
        quote = summary[start : min(ends, default=len(summary) - 1) + 1].strip()
        return checked(Judged(sound, "heard" if named else "nature", quote), summary)


def judged(decisions: Iterable[Decision], judge: Judge) -> tuple[Decision, ...]:
    """One decision for every sound of every summary, and for every sound of the base rate.

    The gold label is ``heard`` for a sound of the scene and ``absent`` for one that is not there (group ``kind``);
    the answer is the verdict. Without a usable summary the outcome stays what it was, with no label.

    Raises
    ------
    DataError: a question's truth cannot be read.
    """
    found = []
    for decision in decisions:
        try:
            truth = json.loads(decision.gold)
            present, absent = truth["present"], truth["absent"]
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"item {decision.item_id!r}",
                f"has no list of sounds ({error})",
                "one made by summary",
            ) from None
        base, bar, condition = decision.item_id.partition("|")
        text = decision.reply or ""
        sounds = [each["sound"] for each in present] + list(absent)
        verdicts: tuple[Judged | None, ...] = (None,) * len(sounds)
        if decision.outcome.label == _SAID:
            verdicts = judge.judge(text, sounds)
        for number, (sound, verdict) in enumerate(zip(sounds, verdicts, strict=True)):
            there = present[number] if number < len(present) else None
            outcome = decision.outcome
            if verdict is not None:
                outcome = Outcome(
                    "answered",
                    verdict.verdict,
                    rule=verdict.why or judge.name,
                    native=verdict.quote,
                )
            groups = {
                **decision.groups,
                "kind": "present" if there else "base",
                "sound": sound,
                "_words": str(len(text.split())),
                "_summary": base,
            }
            if there:
                groups |= {"reaction": there["reaction"], "margin": there["margin"]}
            name = there["event"] if there else f"x{number}"
            found.append(
                replace(
                    decision,
                    item_id=f"{base}/{name}{bar}{condition}",
                    gold="heard" if there else "absent",
                    outcome=outcome,
                    groups=groups,
                )
            )
    return tuple(found)


def score(
    name: str,
    decisions: Sequence[Decision],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    cluster_name: str = "scene",
    accept_failed: bool = False,
    judge: str = NamingJudge.name,
) -> SummaryScores:
    """Recall by budget and reaction, base rate and lengths, from what :func:`judged` gives.

    Raises
    ------
    DataError: there is no sound of a scene among the decisions.
    """
    from earwitness.tasks.tally import proportion, tally

    present = [d for d in decisions if d.groups.get("kind") == "present"]
    base = [d for d in decisions if d.groups.get("kind") == "base"]
    if not present:
        raise DataError(name, "no judged sounds", "summaries of scenes with sounds")
    data = tally(name, present, VERDICTS, cluster_name)
    budgets = sorted({d.groups["budget"] for d in present}, key=int)
    heard = np.array([d.outcome.label == "heard" for d in present])
    of_budget = np.array([d.groups["budget"] for d in present])
    reaction = np.array([d.groups["reaction"] for d in present])
    recall = {}
    for budget in budgets:
        for label in ("all", *REACTIONS):
            counted = (of_budget == budget) & ((label == "all") | (reaction == label))
            rng = stream(seed, "summary", budget, label)
            recall[budget, label] = proportion(data, heard, counted, resamples, rng)
    base_rate = {}
    if base:
        others = tally(name, base, VERDICTS, cluster_name)
        false = np.array([d.outcome.label == "heard" for d in base])
        base_budget = np.array([d.groups["budget"] for d in base])
        for budget in budgets:
            rng = stream(seed, "summary", budget, "base")
            base_rate[budget] = proportion(others, false, base_budget == budget, resamples, rng)
    failed = sum(d.outcome.kind == "failed" for d in present)
    lengths = {budget: _lengths(present, budget) for budget in budgets}
    return SummaryScores(
        name=name,
        judge=judge,
        n_clusters=data.n_clusters,
        failed=failed,
        recall=recall,
        base_rate=base_rate,
        verdicts={
            budget: dict(
                Counter(
                    d.outcome.label or d.outcome.kind
                    for d in present
                    if d.groups["budget"] == budget
                )
            )
            for budget in budgets
        },
        median_words={b: statistics.median(w) if w else float("nan") for b, w in lengths.items()},
        over_budget={
            b: sum(n > OVER * int(b) for n in w) / len(w) if w else float("nan")
            for b, w in lengths.items()
        },
        complete=accept_failed or failed == 0,
    )


def _lengths(decisions: Sequence[Decision], budget: str) -> list[int]:
    """Words of each summary of a budget that came."""
    return list(
        {
            d.groups["_summary"]: int(d.groups["_words"])
            for d in decisions
            if d.groups["budget"] == budget and d.outcome.label is not None
        }.values()
    )
