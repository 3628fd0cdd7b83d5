"""What people answered, as tables: progress, ratings beside the labels, agreement.

The only place where answers and the labels of the data set meet. Everything here is for the organiser.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from earwitness.clips.corpus import EMOTIONS
from earwitness.review.answers import MATCHES, QUALITIES
from earwitness.review.project import Project
from earwitness.review.store import rows
from earwitness.scenes.bank_records import REACTIONS
from earwitness.stats.agreement import (
    Agreement,
    Codes,
    Coefficient,
    Ratings,
    agreement,
    ratings_table,
)
from earwitness.stats.agreement_labels import (
    AgreementWithLabels,
    agreement_with_labels,
    people_confusion,
)
from earwitness.stats.intervals import RESAMPLES

LIVE_RESAMPLES = 200
"""For the page that shows the state of things; the report uses the project's number."""


@dataclass(frozen=True, slots=True)
class PersonProgress:
    """How far somebody is. ``median_seconds`` is the time a page was open, None before the first answer."""

    name: str
    done: int
    given: int
    median_seconds: float | None
    seen_at: str | None
    last_at: str | None
    revoked: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """How far everybody is. ``full`` are items with all their answers."""

    people: tuple[PersonProgress, ...]
    items: int
    full: int
    answers: int
    wanted: int


@dataclass(frozen=True, slots=True)
class Study:
    """Ratings of one question.

    Attributes
    ----------
    question: ``reaction``, ``emotion``, ``match`` or ``audio_quality``.
    reference: the labels of the data set, in the order of the items; None where it has none.
    clusters: of each item.
    """

    question: str
    title: str
    ratings: Ratings
    reference: Codes | None
    clusters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A study with its figures. ``between`` is None while no item has two ratings."""

    study: Study
    counts: Mapping[str, int]
    between: Agreement | None
    confusion: np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None
    with_labels: AgreementWithLabels | None


QUESTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "reaction": ("How do the speakers react?", REACTIONS),
    "emotion": ("Which emotion is heard?", EMOTIONS),
    "match": ("Does the performance fit the asked emotion?", MATCHES),
    "audio_quality": ("Is the sound good enough?", QUALITIES),
}


def progress(db: sqlite3.Connection, project: Project) -> Progress:
    """How far everybody is."""
    times: dict[int, list[float]] = defaultdict(list)
    done: dict[int, int] = defaultdict(int)
    last: dict[int, str] = {}
    per_item: dict[int, int] = defaultdict(int)
    for person, item, at, seconds in rows(db, "SELECT person, item, at, seconds FROM answers"):
        done[person] += 1
        per_item[item] += 1
        last[person] = max(at, last.get(person, ""))
        if seconds is not None:
            times[person].append(seconds)
    given = dict(rows(db, "SELECT person, count(*) FROM assignments GROUP BY person"))
    people = tuple(
        PersonProgress(
            name,
            done[person],
            given.get(person, 0),
            statistics.median(times[person]) if times[person] else None,
            seen,
            last.get(person),
            revoked is not None,
        )
        for person, name, seen, revoked in rows(
            db,
            "SELECT id, name, seen_at, revoked_at FROM people WHERE role='annotator' ORDER BY name",
        )
    )
    (items,) = rows(db, "SELECT count(*) FROM items")[0]
    full = sum(n >= project.per_item for n in per_item.values())
    return Progress(people, items, full, sum(done.values()), items * project.per_item)


def studies(db: sqlite3.Connection, project: Project) -> tuple[Study, ...]:
    """The questions of a folder with what was answered; those without any answer are left out."""
    given: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    gold: dict[str, str] = {}
    cluster: dict[str, str] = {}
    table = rows(
        db,
        "SELECT i.key, i.cluster, i.gold, p.name, s.payload FROM answers s JOIN items i ON i.id=s.item"
        " JOIN people p ON p.id=s.person ORDER BY i.key, p.name",
    )
    if project.kind == "record":
        return ()
    for key, group, labels, person, payload in table:
        known, answer = json.loads(labels), json.loads(payload)
        if project.kind == "label":
            for sound, label in answer["labels"].items():
                unit = f"{key}#{sound}"
                given["reaction"].append((unit, person, label))
                gold[unit], cluster[unit] = known[sound], group
            continue
        cluster[key] = group
        gold[key] = known["clip"]
        given["audio_quality"].append((key, person, answer["audio_quality"]))
        if answer["perceived_emotion"] is not None:
            given["emotion"].append((key, person, answer["perceived_emotion"]))
        if answer["match"] is not None:
            given["match"].append((key, person, answer["match"]))
    return tuple(
        _study(question, given[question], gold, cluster)
        for question in QUESTIONS
        if given[question]
    )


def _study(
    question: str,
    given: Sequence[tuple[str, str, str]],
    gold: Mapping[str, str],
    cluster: Mapping[str, str],
) -> Study:
    title, labels = QUESTIONS[question]
    ratings = ratings_table(given, labels)
    reference = None
    if question in ("reaction", "emotion"):
        reference = np.array([labels.index(gold[item]) for item in ratings.items])
    return Study(
        question, title, ratings, reference, tuple(cluster[item] for item in ratings.items)
    )


def findings(
    study: Study, *, pairs: bool = True, seed: int = 0, resamples: int = RESAMPLES
) -> Finding:
    """The figures of a study; ``pairs`` also of every two people by themselves."""
    codes = study.ratings.codes
    rated = (codes >= 0).sum(axis=1)
    options = {"clusters": study.clusters, "seed": seed, "resamples": resamples}
    several = bool((rated >= 2).any())
    return Finding(
        study,
        {
            "items": len(study.ratings.items),
            "clusters": len(set(study.clusters)),
            "people": len(study.ratings.raters),
            "ratings": int(rated.sum()),
            "shared": int((rated >= 2).sum()),
            "shared_by_pair": _shared_by_pair(codes),
        },
        agreement(study.ratings, pairs=pairs, **options) if several else None,  # type: ignore[arg-type]
        people_confusion(codes, len(study.ratings.labels)) if several else None,
        None
        if study.reference is None
        else agreement_with_labels(study.ratings, study.reference, **options),  # type: ignore[arg-type]
    )


def _shared_by_pair(codes: Codes) -> int:
    """Items that two people who share any have in common, the median over pairs."""
    given = (codes >= 0).astype(np.int64)
    together = (given.T @ given)[np.triu_indices(given.shape[1], 1)]
    return int(np.median(together[together > 0])) if (together > 0).any() else 0


def coefficient_json(value: Coefficient | None) -> dict[str, float | int | None] | None:
    """A coefficient as plain values; what cannot be said is null."""
    if value is None:
        return None

    def known(number: float) -> float | None:
        return round(number, 6) if np.isfinite(number) else None

    return {
        "value": known(value.value),
        "low": known(value.low),
        "high": known(value.high),
        "n": value.n,
    }


def finding_json(finding: Finding) -> dict[str, object]:
    """A finding as plain values."""
    between, beside = finding.between, finding.with_labels
    found: dict[str, object] = {
        "question": finding.study.question,
        "title": finding.study.title,
        "labels": list(finding.study.ratings.labels),
        "counts": dict(finding.counts),
        "between_people": None,
        "with_labels": None,
    }
    if between is not None and finding.confusion is not None:
        found["between_people"] = {
            "percent": coefficient_json(between.percent),
            "mean_cohen": coefficient_json(between.mean_cohen),
            "fleiss": coefficient_json(between.fleiss),
            "krippendorff": coefficient_json(between.krippendorff),
            "per_class": {label: coefficient_json(c) for label, c in between.per_class},
            "pairs": [
                {
                    "a": pair.a,
                    "b": pair.b,
                    "percent": coefficient_json(pair.percent),
                    "cohen": coefficient_json(pair.cohen),
                }
                for pair in between.pairs
            ],
            "confusion": finding.confusion.tolist(),
        }
    if beside is not None:
        found["with_labels"] = {
            "mean_cohen": coefficient_json(beside.mean_cohen),
            "percent": coefficient_json(beside.percent),
            "balanced_accuracy": coefficient_json(beside.balanced),
            "majority_percent": coefficient_json(beside.majority_percent),
            "majority_cohen": coefficient_json(beside.majority_cohen),
            "ties": beside.ties,
            "per_class": {label: coefficient_json(c) for label, c in beside.per_class},
            "raters": [
                {
                    "rater": rater.rater,
                    "n": rater.n,
                    "percent": coefficient_json(rater.percent),
                    "cohen": coefficient_json(rater.cohen),
                    "balanced_accuracy": coefficient_json(rater.balanced),
                }
                for rater in beside.raters
            ],
            "confusion": beside.confusion.tolist(),
        }
    return found
