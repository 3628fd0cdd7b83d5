"""From a vector of native scores to an outcome over a closed set of labels.

Conventions:

* Every native name goes through a label map. Names the map does not have, or leaves out on purpose, stay in
  ``Outcome.detail`` with their mass; they never become a label.
* The scores of several native names of one label are **summed** where the vector is a distribution (all of
  it adds up to at most 1), as for a softmax; otherwise their **largest** counts, because scores of names that
  do not exclude each other (as in services that score hundreds of expressions at once) are not mass, and a sum
  would favour the label with the most names. :func:`pooling` decides once for a whole run.
* The label with the largest mapped score wins. Equal largest scores are ``ambiguous``; no score above
  ``cutoff`` is ``empty``; scores, but none of a mapped name, is ``unmapped`` with the top native name.
* Mapped scores are kept as the model gave them, not re-normalised. A score that is not a finite number does
  not count and is named in ``detail``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal

from earwitness.clips.labels import LabelMap
from earwitness.runs.outcomes import Outcome
from earwitness.tasks.closed_label import argmax

Pooling = Literal["sum", "max"]
_DISTRIBUTION = 1.01
"""Scores that add up to no more than this are a distribution; services round their numbers."""


def pooling(vectors: Iterable[Mapping[str, float]]) -> Pooling:
    """``sum`` if every vector is a distribution, otherwise ``max``.

    >>> pooling([{"calm": 0.4, "neutral": 0.6}])
    'sum'
    >>> pooling([{"calm": 0.9, "joy": 0.8}])
    'max'
    """
    for vector in vectors:
        numbers = [float(score) for score in vector.values() if _is_score(score)]
        if any(number < 0 for number in numbers) or sum(numbers) > _DISTRIBUTION:
            return "max"
    return "sum"


def read_scores(
    scores: Mapping[str, float],
    label_map: LabelMap,
    *,
    pool: Pooling | None = None,
    cutoff: float = 0.0,
) -> Outcome:
    """What a vector of native scores amounts to.

    Parameters
    ----------
    scores: native name -> native number.
    label_map: from native names to labels.
    pool: how several names of one label add up; decided from this vector alone if not given.
    cutoff: scores must be above it to count.

    >>> from earwitness.clips.labels import load_label_map
    >>> read_scores({"calm": 0.4, "joy": 0.35}, load_label_map("vendor-default")).label
    'neutral'
    """
    pool = pool or pooling([scores])
    finite = {name: float(score) for name, score in scores.items() if _is_score(score)}
    dropped = sorted(name for name in scores if name not in finite)
    notes = [f"not a number: {', '.join(dropped)}"] if dropped else []
    if not any(score > cutoff for score in finite.values()):
        return Outcome("empty", rule="no score above the cutoff", detail="; ".join(notes))
    mapped: dict[str, float] = {}
    leading: dict[str, tuple[float, str, str]] = {}
    unmapped: dict[str, float] = {}
    for native in sorted(finite):
        score = finite[native]
        label, rule = label_map.map(native)
        if label is None:
            unmapped[native] = score
            continue
        if score <= cutoff and label in mapped:
            continue
        mapped[label] = (
            mapped.get(label, 0.0) + score
            if pool == "sum"
            else max(score, mapped.get(label, score))
        )
        if label not in leading or score > leading[label][0]:
            leading[label] = (score, native, rule)
    if unmapped and max(unmapped.values()) > cutoff:
        top = max(unmapped, key=lambda name: (unmapped[name], name))
        mass = sum(score for score in unmapped.values() if score > cutoff)
        notes.append(f"unmapped {mass:.3g} in {len(unmapped)} (most: {top} {unmapped[top]:.3g})")
    detail = "; ".join(notes)
    ordered = dict(sorted(mapped.items()))
    best, why = argmax(mapped, cutoff=cutoff)
    if best is not None:
        _, native, rule = leading[best]
        return Outcome("answered", best, f"{pool}: {rule}", native, ordered, detail)
    if why == "tie":
        top_score = max(mapped.values())
        tied = [label for label in ordered if math.isclose(ordered[label], top_score, rel_tol=1e-9)]
        return Outcome("ambiguous", None, "equal scores", ", ".join(tied), ordered, detail)
    native = max(unmapped, key=lambda name: (unmapped[name], name))
    return Outcome("unmapped", None, f"map: {label_map.map(native)[1]}", native, ordered, detail)


def _is_score(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
