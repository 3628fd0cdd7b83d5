"""Is there a sound at this moment, or does the talk only make it likely?

Source: the grounding questions of the CARES implementation (facts restated in our reference), extended by catch times.
The protocol followed: the model is told a moment and asked whether a distinct sound occurs there, over pairs of
scenes that are identical but for that sound.

Conventions:

* For every sound two items: ``present`` (the mix) and ``absent`` (its twin without the sound), both at the loudest
  moment of the sound. For every mix with catch times one item ``catch`` at a moment between utterances with no sound
  near. The truth is ``yes``, ``no``, ``no``.
* *Hits* are ``yes`` on present, *false alarms* ``yes`` on absent or on catch items. An item without a usable
  answer is not a ``yes``; it is counted apart and makes its pair count as ``unreadable``.
* d' and criterion use the log-linear correction (:mod:`earwitness.stats.dprime`), against twins and against catch
  times. Intervals draw whole scenes. The test is the sign-flip over scenes of (hits - false alarms) in pairs;
  McNemar's, which takes pairs as independent, is shown labelled so.
* Conditions: ``audio``; ``asr``, ``oracle`` and ``oracle-tags`` (nothing but the talk: any d' above zero is an error of
  the corpus), ``blind`` and ``silence``. Twins are part of the task, so ``muted`` does not apply.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from earwitness.errors import DataError
from earwitness.runs.items import Item, Moment, Question
from earwitness.runs.outcomes import Outcome
from earwitness.stats.dprime import d_prime
from earwitness.stats.intervals import (
    FEW_CLUSTERS,
    RESAMPLES,
    percentile_interval,
    resample_sums,
    wilson,
)
from earwitness.stats.streams import stream
from earwitness.stats.tests import mcnemar_exact, sign_flip
from earwitness.tasks.choices import Option, read_choice
from earwitness.tasks.label_lexicon import load_lexicon
from earwitness.tasks.reaction import item_id
from earwitness.tasks.records import Estimate
from earwitness.tasks.scene_conditions import (
    Given,
    check_conditions,
    given,
    require_twins,
)
from earwitness.tasks.scene_items import (
    MixedCorpus,
    MixedScene,
    event_groups,
    known_of,
    shown_time,
)
from earwitness.tasks.scene_prompts import ScenePrompt, load_scene_prompt

if TYPE_CHECKING:
    from earwitness.models.protocols import Prompt, Reply
    from earwitness.tasks.records import Decision

TASK = "grounding"
TASK_VERSION = "1"
PARSER_VERSION = "closed-label 1, lexicon presence 1"
DEFAULT_PROMPT = "own"
LABELS = ("yes", "no")
APPLICABLE = ("audio", "asr", "oracle", "oracle-tags", "blind", "silence")
PAIRS = ("correct", "reversed", "always yes", "always no", "unreadable")
FloatArray = NDArray[np.float64]
_STATED = re.compile(r"\b(?:answer|response|result|label)\W{1,6}(yes|no|true|false)\b")


@dataclass(frozen=True, slots=True)
class GroundingScores:
    """What is said of one system.

    ``paired`` counts pairs (present, absent): both right, both wrong, yes to both, no to both, or one without an
    answer. ``hits``, ``false_alarms`` and ``catch_alarms`` are rates over all items of their kind. ``d_prime`` is
    against the twins, ``d_prime_catch`` against catch times (NaN without any); where
    all scenes are alike they have no interval. ``accuracy_paired`` is right on both of a pair, chance 25 %.
    """

    name: str
    n_pairs: int
    n_catch: int
    n_clusters: int
    failed: int
    unlabelled: int
    hits: Estimate
    false_alarms: Estimate
    catch_alarms: Estimate
    d_prime: Estimate
    d_prime_catch: Estimate
    criterion: float
    accuracy_paired: Estimate
    paired: Mapping[str, int]
    p_sign_flip: float
    p_mcnemar: float
    hits_by: Mapping[str, Mapping[str, tuple[int, int]]]
    complete: bool = True

    @property
    def headline(self) -> Estimate:
        """d' against the twins."""
        return self.d_prime

    @property
    def hears(self) -> bool:
        """Whether it says yes significantly more often where the sound is, at 5 %."""
        return self.p_sign_flip < 0.05 and self.hits.value > self.false_alarms.value

    @property
    def smallest_p(self) -> float:
        """The least that the sign-flip test can give for so many scenes, even if all of them say the same."""
        return min(1.0, 2.0 ** (1 - self.n_clusters))


def load_prompt(id_or_path: str | Path) -> ScenePrompt:
    """A packaged prompt (``own``, ``p1``) or a YAML file of one's own."""
    return load_scene_prompt(id_or_path, task=TASK, needed=("t",))


def items(
    mixed: MixedCorpus,
    *,
    prompt_set: str | Path = DEFAULT_PROMPT,
    conditions: Sequence[str] = ("audio",),
    rotations: int = 1,
) -> tuple[Question, ...]:
    """The questions to ask. ``rotations`` has no meaning here: there are no options.

    Raises
    ------
    UsageError: an unknown condition, or twins without the sounds were not made.
    """
    del rotations
    check_conditions(conditions)
    prompt = load_prompt(prompt_set)
    require_twins(
        mixed,
        [(s, e.id) for s in mixed.scenes for e in s.manifest.events],
        ("muted",),
        where=f"task {TASK!r}",
    )
    questions = []
    for condition in conditions:
        for scene in mixed.scenes:
            for event in scene.manifest.events:
                groups = event_groups(scene, event)
                for kind, truth in (("present", "yes"), ("absent", "no")):
                    base = f"{scene.id}/{event.id}/{kind}"
                    # Silence has no twins: it is as long with the sound as without.
                    twin = kind == "absent" and condition == "audio"
                    source = given(mixed, scene, "muted" if twin else condition, event.id)
                    asked = _question(
                        mixed,
                        scene,
                        prompt,
                        base,
                        condition,
                        source,
                        event.salient_s,
                        truth,
                        groups,
                    )
                    questions.append(asked)
            for number, moment in enumerate(scene.manifest.catch_times_s[:1]):
                base = f"{scene.id}/c{number}/catch"
                source = given(mixed, scene, condition, None)
                groups = {"location": scene.scenario.location}
                questions.append(
                    _question(mixed, scene, prompt, base, condition, source, moment, "no", groups)
                )
    return tuple(questions)


def _question(
    mixed: MixedCorpus,
    scene: MixedScene,
    prompt: ScenePrompt,
    base: str,
    condition: str,
    source: Given,
    moment_s: float,
    truth: str,
    groups: Mapping[str, str],
) -> Question:
    return Question(
        item=Item(
            id=item_id(base, 0, condition),
            task=TASK,
            task_version=TASK_VERSION,
            prompt=_filled(prompt, source.preface, moment_s),
            moment=Moment(moment_s, partial(_filled, prompt, source.preface)),
            audio=source.audio,
            condition=condition,
            metadata=known_of(mixed, scene, TASK, moment_s=moment_s),
        ),
        gold=truth,
        cluster=scene.id,
        groups=groups,
    )


def _filled(prompt: ScenePrompt, preface: str, moment_s: float) -> Prompt:
    return prompt.fill(choices=LABELS, preface=preface, t=shown_time(moment_s))


def parse(reply: Reply, groups: Mapping[str, str]) -> Outcome:
    """What a reply amounts to: ``yes``, ``no``, or why it is neither.

    >>> from earwitness.models.protocols import Reply
    >>> parse(Reply(text="Yes, something falls."), {}).label
    'yes'
    """
    del groups
    outcome = read_choice(
        reply, load_lexicon("presence"), [Option(label, label) for label in LABELS], lettered=False
    )
    # Of other labels ": no" is a denial ("anger: no"); of these two it is the answer.
    stated = set(_STATED.findall((reply.text or "").casefold()))
    if outcome.kind == "unmapped" and reply.finish != "length" and len(stated) == 1:
        said = stated.pop()
        label = {"true": "yes", "false": "no"}.get(said, said)
        return Outcome("answered", label, rule="stated answer", native=said)
    return outcome


def score(
    name: str,
    decisions: Sequence[Decision],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    cluster_name: str = "scene",
    accept_failed: bool = False,
) -> GroundingScores:
    """Hits, false alarms, d' and the paired table of one system under one condition.

    Raises
    ------
    DataError: there is no pair, or half of one is missing.
    """
    pairs, catches = _sorted(name, decisions)
    clusters = sorted({d.cluster for d in decisions})
    place = {cluster: k for k, cluster in enumerate(clusters)}
    # Per scene: hits, present, alarms, absent, catch alarms, catch items, both right.
    rows = np.zeros((len(clusters), 7), dtype=np.int64)
    table = Counter(dict.fromkeys(PAIRS, 0))
    for present, absent in pairs:
        row = rows[place[present.cluster]]
        row[:4] += (_yes(present), 1, _yes(absent), 1)
        kind = _kind(present, absent)
        table[kind] += 1
        row[6] += kind == "correct"
    for catch in catches:
        rows[place[catch.cluster]][4:6] += (_yes(catch), 1)
    total = rows.sum(axis=0).astype(np.float64)
    drawn = resample_sums(rows, resamples, stream(seed, "grounding"))
    few = ", few" if len(clusters) < FEW_CLUSTERS else ""
    method = f"bootstrap by {cluster_name} ({len(clusters)}{few})"

    def estimate(
        value: FloatArray, samples: FloatArray, top: int | None = None, n: int | None = None
    ) -> Estimate:
        low, high, _ = percentile_interval(samples, value, len(clusters))
        if low == high and n is not None and value in (0.0, 1.0):
            k = len(clusters)
            found = wilson(round(float(value) * k), k)
            alike = f"wilson over {k} {cluster_name}s, all alike"
            return Estimate(float(value), found.low, found.high, alike, top, n)
        if low == high and n is None:
            return Estimate(float(value), nan, nan, f"no interval: all {cluster_name}s alike")
        return Estimate(float(value), float(low), float(high), method, top, n)

    def rate(k: int, n: int) -> Estimate:
        return estimate(
            _ratio(total[k], total[n]),
            _ratio(drawn[:, k], drawn[:, n]),
            int(total[k]),
            int(total[n]),
        )

    def sensitivity(k: int, n: int) -> Estimate:
        value, samples = _sensitivity(total, k, n), _sensitivity(drawn, k, n)
        return estimate(value, samples)

    wrong_way, right_way = table["reversed"], table["correct"]
    gap = rows[:, 0] - rows[:, 2]
    failed = sum(d.outcome.kind == "failed" for d in decisions)
    return GroundingScores(
        name=name,
        n_pairs=len(pairs),
        n_catch=len(catches),
        n_clusters=len(clusters),
        failed=failed,
        unlabelled=sum(d.outcome.label is None for d in decisions),
        hits=rate(0, 1),
        false_alarms=rate(2, 3),
        catch_alarms=rate(4, 5),
        d_prime=sensitivity(2, 3),
        d_prime_catch=sensitivity(4, 5),
        criterion=float(d_prime(*(int(x) for x in total[:4])).criterion),
        accuracy_paired=rate(6, 1),
        paired=dict(table),
        p_sign_flip=sign_flip(gap, stream(seed, "grounding-flip", name)).p,
        p_mcnemar=mcnemar_exact(right_way, wrong_way),
        hits_by=_hits_by(present for present, _ in pairs),
        complete=accept_failed or failed == 0,
    )


def _sorted(
    name: str, decisions: Sequence[Decision]
) -> tuple[list[tuple[Decision, Decision]], list[Decision]]:
    halves: dict[str, dict[str, Decision]] = {}
    catches = []
    for decision in decisions:
        base, _, kind = decision.item_id.partition("|")[0].rpartition("/")
        if kind == "catch":
            catches.append(decision)
        else:
            halves.setdefault(base, {})[kind] = decision
    for base, found in halves.items():
        if set(found) != {"present", "absent"}:
            raise DataError(
                f"{name}, {base}", f"only the half {', '.join(found)}", "both of a pair"
            )
    if not halves:
        raise DataError(name, "no pairs to score", "scenes with a sound and their twins")
    return [(found["present"], found["absent"]) for _, found in sorted(halves.items())], catches


def _yes(decision: Decision) -> bool:
    return decision.outcome.label == "yes"


def _kind(present: Decision, absent: Decision) -> str:
    said = (present.outcome.label, absent.outcome.label)
    names = {
        ("yes", "no"): "correct",
        ("no", "yes"): "reversed",
        ("yes", "yes"): "always yes",
        ("no", "no"): "always no",
    }
    return names.get((said[0] or "", said[1] or ""), "unreadable")


def _ratio(top: NDArray[np.float64], bottom: NDArray[np.float64]) -> FloatArray:
    from earwitness.stats.confusion import ratio

    return ratio(top, bottom)


def _sensitivity(counts: FloatArray, k: int, n: int) -> FloatArray:
    found = d_prime(counts[..., 0], counts[..., 1], counts[..., k], counts[..., n]).d_prime
    return np.asarray(np.where(counts[..., n] > 0, found, np.nan))


def _hits_by(presents: Iterable[Decision]) -> dict[str, dict[str, tuple[int, int]]]:
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for decision in presents:
        for key, value in decision.groups.items():
            top, n = found.setdefault(key, {}).get(value, (0, 0))
            found[key][value] = (top + _yes(decision), n + 1)
    return found
