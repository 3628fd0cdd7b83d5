"""The leak audit: can the reaction be guessed from anything that is not conduct?

Conventions
-----------
One case per event; its class is the reaction. Groups of features are what a reader must not be able to use:

=============  ===========================================================================
``sound``      which sound it is, and whether it is a rare one
``location``   where the scene takes place
``position``   band, place in the order of events, and (with a dialogue) the share of talk before it
``count``      how many events the scene has
``turns``      how many utterances and words the scene has
``people``     relation and genders
``words``      the words said before the first sound of the scene
``together``   all of the above but the words
=============  ===========================================================================

Two classifiers (logistic regression and a small tree ensemble) are cross-validated by template; the better
of the two speaks for a group. A group **leaks** when the lower end of its interval, by template, exceeds its
floor by more than one point. The floor is 25 % (chance), or what the preset says its design gives away. The
interval shown is at 95 %; the one that decides is at 95 % for all groups and both classifiers at once
(Bonferroni), since the best of many guesses at nothing is often a little above chance.

A control with shuffled reactions is made the same way and must not leak; if it does, the audit itself is at
fault.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earwitness.errors import DataError, MissingExtraError, UsageError
from earwitness.scenes.bank_records import REACTIONS
from earwitness.scenes.dialogue import plain_text
from earwitness.scenes.dialogue_records import Dialogue, EventMark, Utterance
from earwitness.scenes.scenario import BANDS, PlannedEvent, Scenario
from earwitness.stats.confusion import by_cluster, macro_recall
from earwitness.stats.intervals import LEVEL, cluster_bootstrap
from earwitness.stats.streams import stream

CHANCE = 1 / len(REACTIONS)
TOLERANCE = 0.01
FOLDS = 5
MAX_WORD_CASES = 6000
"""Cases with words that are used, drawn with the seed; more of them cost minutes and change little."""

Features = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Case:
    """One event of one scene, with what an eavesdropper on everything but conduct would know."""

    scenario: Scenario
    event: PlannedEvent
    place: int
    dialogue: Dialogue | None


@dataclass(frozen=True, slots=True)
class GroupAudit:
    """How well one group of features gives the reaction away.

    ``floor`` is None where the preset promises nothing; ``leaks`` is then always False.
    """

    group: str
    classifier: str
    balanced_accuracy: float
    low: float
    high: float
    floor: float | None
    n: int
    templates: int
    low_for_all: float
    """Lower end of the interval that holds for every group and classifier at once."""

    @property
    def leaks(self) -> bool:
        return self.floor is not None and self.low_for_all > self.floor + TOLERANCE


@dataclass(frozen=True, slots=True)
class Audit:
    """All groups, and the control with shuffled reactions."""

    groups: tuple[GroupAudit, ...]
    control: GroupAudit

    @property
    def leaks(self) -> tuple[GroupAudit, ...]:
        return tuple(group for group in self.groups if group.leaks)

    @property
    def ok(self) -> bool:
        return not self.leaks and not self.control.leaks


def cases_of(scenes: Sequence[tuple[Scenario, Dialogue | None]]) -> tuple[Case, ...]:
    """One case for every event."""
    return tuple(
        Case(scenario, event, place, dialogue)
        for scenario, dialogue in scenes
        for place, event in enumerate(scenario.events)
    )


def _sound(case: Case) -> Features:
    return {f"sound={case.event.sound}": 1.0, "rare": float(case.event.rare)}


def _location(case: Case) -> Features:
    return {f"location={case.scenario.location}": 1.0}


def _position(case: Case) -> Features:
    features = {
        f"band={case.event.band}": 1.0,
        "band": float(BANDS.index(case.event.band)),
        f"place={case.place}": 1.0,
        "last": float(case.place == len(case.scenario.events) - 1),
    }
    if case.dialogue is not None:
        before = case.dialogue.position(case.event.id)
        total = len(case.dialogue.utterances)
        features |= {"before": before / total, "after": float(total - before)}
    return features


def _count(case: Case) -> Features:
    return {f"count={len(case.scenario.events)}": 1.0}


def _turns(case: Case) -> Features:
    if case.dialogue is None:
        return {}
    utterances = case.dialogue.utterances
    words = [len(plain_text(utterance).split()) for utterance in utterances]
    return {
        "turns": float(len(utterances)),
        f"turns={len(utterances)}": 1.0,
        "words": float(sum(words)),
        "turns of A": sum(u.speaker == "A" for u in utterances) / len(utterances),
    }


def _people(case: Case) -> Features:
    scenario = case.scenario
    return {
        f"roles={scenario.roles}": 1.0,
        f"genders={scenario.gender_a}{scenario.gender_b}": 1.0,
    }


def _words(case: Case) -> Features:
    """Words before the first sound: after it, talk is conduct, and conduct may tell."""
    if case.dialogue is None:
        return {}
    features: dict[str, float] = {}
    for part in case.dialogue.timeline:
        if isinstance(part, EventMark):
            break
        if isinstance(part, Utterance):
            for word in plain_text(part).lower().split():
                features[word.strip(".,!?;:'\"")] = 1.0
    return features


GROUPS: Mapping[str, Callable[[Case], Features]] = {
    "sound": _sound,
    "location": _location,
    "position": _position,
    "count": _count,
    "turns": _turns,
    "people": _people,
    "words": _words,
}


def _together(case: Case) -> Features:
    features: dict[str, float] = {}
    for name, make in GROUPS.items():
        if name != "words":
            features |= make(case)
    return features


def _classifiers() -> dict[str, Callable[[], Any]]:
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    return {
        "logistic regression": lambda: make_pipeline(
            MaxAbsScaler(),
            LogisticRegression(C=1.0, tol=1e-3, max_iter=60, class_weight="balanced"),
        ),
        "tree ensemble": lambda: ExtraTreesClassifier(
            n_estimators=24,
            max_depth=10,
            min_samples_leaf=5,
            class_weight="balanced",
            random_state=0,
        ),
    }


def _predictions(
    model: Callable[[], Any], features: Any, reactions: NDArray[Any], templates: NDArray[Any]
) -> NDArray[np.int64]:
    """Every case's reaction as guessed by a model that never saw its template."""
    from sklearn.model_selection import GroupKFold

    guessed = np.full(len(reactions), -1, dtype=np.int64)
    folds = GroupKFold(min(FOLDS, len(np.unique(templates))))
    for train, test in folds.split(features, reactions, templates):
        fitted = model()
        with warnings.catch_warnings():
            # A classifier that has not converged guesses a little worse; its warning is no news here.
            warnings.simplefilter("ignore")
            fitted.fit(features[train], reactions[train])
        guessed[test] = fitted.predict(features[test])
    return guessed


def audit_features(
    name: str,
    rows: Sequence[Features],
    reactions: NDArray[Any],
    templates: NDArray[Any],
    *,
    floor: float | None = CHANCE,
    seed: int = 0,
    tries: int = 2,
) -> GroupAudit:
    """Audit one group of features, whatever they are.

    Parameters
    ----------
    rows: named numbers of each case; names of categories as ``"sound=dog_bark": 1.0``.
    reactions: (n,) codes, places in ``REACTIONS``.
    templates: (n,) codes of each case's template.
    floor: what the group gives away by design; None promises nothing.
    tries: how many groups times classifiers are judged together.

    Raises
    ------
    MissingExtraError: scikit-learn is not installed.
    DataError: fewer than two templates.
    """
    if find_spec("sklearn") is None:
        raise MissingExtraError("scenes audit", "baselines")
    from sklearn.feature_extraction import DictVectorizer

    if len(np.unique(templates)) < 2:
        raise DataError("audit", "one template", wanted="at least two, to hold one out")
    features = DictVectorizer(sparse=True, sort=True).fit_transform(rows).tocsr()
    best: GroupAudit | None = None
    for classifier, model in _classifiers().items():
        guessed = _predictions(model, features, reactions, templates)
        counts = by_cluster(reactions, guessed, templates, len(REACTIONS), int(templates.max()) + 1)
        counts = counts[counts.sum(axis=(1, 2)) > 0]
        names = ("audit", name, classifier)
        found = cluster_bootstrap(counts, macro_recall, stream(seed, *names))
        for_all = cluster_bootstrap(
            counts, macro_recall, stream(seed, *names), level=1 - (1 - LEVEL) / tries
        )
        seen = GroupAudit(
            group=name,
            classifier=classifier,
            balanced_accuracy=float(found.value),
            low=float(found.low),
            high=float(found.high),
            floor=floor,
            n=len(reactions),
            templates=len(np.unique(templates)),
            low_for_all=float(for_all.low),
        )
        if best is None or seen.balanced_accuracy > best.balanced_accuracy:
            best = seen
    assert best is not None
    return best


def audit(
    scenes: Sequence[tuple[Scenario, Dialogue | None]],
    *,
    floors: Mapping[str, float | None] | None = None,
    only: Collection[str] = (),
    seed: int = 0,
    on_group: Callable[[str], None] | None = None,
) -> Audit:
    """Audit a plan, or a corpus with its dialogues.

    Parameters
    ----------
    scenes: scenarios, each with its dialogue where there is one.
    floors: what the preset says its design gives away, group by group.
    only: names of the groups to try; all if empty.
    on_group: called with the name of each group before it is tried.

    Raises
    ------
    DataError: there are no events, or too few templates.
    """
    cases = cases_of(scenes)
    if not cases:
        raise DataError("audit", "no events", wanted="a plan or corpus with events")
    floors = floors or {}
    reactions = np.array([REACTIONS.index(case.event.reaction) for case in cases])
    names = sorted({case.scenario.template for case in cases})
    code = {name: number for number, name in enumerate(names)}
    templates = np.array([code[case.scenario.template] for case in cases])
    makers = {**GROUPS, "together": _together}
    if unknown := set(only) - set(makers):
        raise UsageError("audit", f"no group {min(unknown)!r}", wanted=", ".join(makers))
    makers = {name: make for name, make in makers.items() if not only or name in only}
    tries = 2 * (len(makers) + 1)
    groups = []
    for name, make in makers.items():
        chosen = _chosen(name, cases, seed)
        rows = [make(cases[i]) for i in chosen]
        if not any(rows):
            continue
        if on_group:
            on_group(name)
        floor = floors.get(name, CHANCE)
        groups.append(
            audit_features(
                name, rows, reactions[chosen], templates[chosen],
                floor=floor, seed=seed, tries=tries,
            )
        )  # fmt: skip
    if on_group:
        on_group("shuffled control")
    shuffled = stream(seed, "audit", "shuffle").permutation(reactions)
    control = audit_features(
        "shuffled control",
        [_together(case) for case in cases],
        shuffled,
        templates,
        seed=seed,
        tries=tries,
    )
    return Audit(tuple(groups), control)


def _chosen(name: str, cases: Sequence[Case], seed: int) -> NDArray[np.int64]:
    """Which cases a group is tried on: all, or as many of them as words allow."""
    if name != "words" or len(cases) <= MAX_WORD_CASES:
        return np.arange(len(cases))
    drawn = stream(seed, "audit", "words").choice(len(cases), MAX_WORD_CASES, replace=False)
    return np.sort(drawn)
