"""Agreement of people: percent, Cohen, Fleiss and Krippendorff, with item-bootstrap intervals.

Conventions
-----------
* Ratings are an integer array (items, raters) of label codes; :data:`MISSING` marks what was not rated.
* Items are what is drawn in the bootstrap: raters are these raters, items are a sample. Items that belong together
  (the sounds of a scene, the clips of a speaker) are drawn together where ``clusters`` names them.
* A coefficient whose chance agreement is complete (everybody used one label) is NaN: nothing can be said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earwitness.errors import DataError, UsageError
from earwitness.stats.confusion import ratio
from earwitness.stats.intervals import RESAMPLES, percentile_interval, resample_sums
from earwitness.stats.streams import stream

FloatArray = NDArray[np.float64]
Codes = NDArray[np.int64]
MISSING = -1
FULL_PAIRS = 66
"""Pairs of twelve raters; more are resampled less often, or fifty raters would take minutes."""


@dataclass(frozen=True, slots=True)
class Ratings:
    """Who said what: ``codes[i, r]`` is the label of item ``i`` by rater ``r``, or :data:`MISSING`."""

    items: tuple[str, ...]
    raters: tuple[str, ...]
    labels: tuple[str, ...]
    codes: Codes


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient with its 95 % bootstrap interval over ``n`` items, or clusters of items where those are drawn."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Pair:
    """Two raters on the items both rated."""

    a: str
    b: str
    percent: Coefficient
    cohen: Coefficient


@dataclass(frozen=True, slots=True)
class Agreement:
    """All coefficients of a set of ratings. ``fleiss`` is None where items have different numbers of ratings.

    ``per_class`` is specific agreement: of the pairs of ratings with one rating ``c``, the share in which
    both are ``c``. ``mean_cohen`` is the mean of Cohen's kappa over all pairs of raters that share items.
    """

    percent: Coefficient
    fleiss: Coefficient | None
    krippendorff: Coefficient
    per_class: tuple[tuple[str, Coefficient], ...]
    pairs: tuple[Pair, ...]
    mean_cohen: Coefficient


def ratings_table(rows: Iterable[tuple[str, str, str]], labels: Sequence[str]) -> Ratings:
    """Collect (item, rater, label) rows into :class:`Ratings`, items and raters sorted by name.

    Raises
    ------
    DataError: there is no row, a label is unknown, or a rater labelled an item twice.

    Examples
    --------
    >>> ratings_table([("a", "ann", "pivot"), ("b", "bob", "verbal")], ["pivot", "verbal"]).codes.tolist()
    [[0, -1], [-1, 1]]
    """
    listed = list(rows)
    if not listed:
        raise DataError("ratings", "none", "at least one (item, rater, label)")
    code = {label: k for k, label in enumerate(labels)}
    items = tuple(sorted({item for item, _, _ in listed}))
    raters = tuple(sorted({rater for _, rater, _ in listed}))
    row = {item: k for k, item in enumerate(items)}
    column = {rater: k for k, rater in enumerate(raters)}
    codes = np.full((len(items), len(raters)), MISSING, dtype=np.int64)
    for item, rater, label in listed:
        if label not in code:
            raise DataError(
                f"ratings of item {item!r}", f"label {label!r}", "one of " + ", ".join(labels)
            )
        if codes[row[item], column[rater]] != MISSING:
            raise DataError(f"ratings of item {item!r}", f"two by {rater!r}", "one by each rater")
        codes[row[item], column[rater]] = code[label]
    return Ratings(items, raters, tuple(labels), codes)


def percent_agreement(codes: Codes) -> float:
    """Share of pairs of ratings of the same item that agree, over all pairs.

    Examples
    --------
    >>> percent_agreement(np.array([[0, 0, 1], [1, 1, 1]]))
    0.6666666666666666
    """
    return _value(_specific_rows(codes, _width(codes)), _percent_of)


def cohen_kappa(a: Codes, b: Codes) -> float:
    """Cohen's kappa of two raters on the items both rated.

    ``(p_o - p_e) / (1 - p_e)``: J. Cohen, "A coefficient of agreement for nominal scales", Educ. Psychol.
    Meas. 20 (1960).

    Examples
    --------
    >>> round(cohen_kappa(np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 1, 1])), 3)
    0.545
    """
    codes = np.stack([a, b], axis=1)
    return _value(cohen_rows(codes, _width(codes)), cohen_of)


def fleiss_kappa(codes: Codes) -> float:
    """Fleiss' kappa of items that all have the same number of ratings.

    J. L. Fleiss, "Measuring nominal scale agreement among many raters", Psychol. Bull. 76 (1971).

    Raises
    ------
    UsageError: items have different numbers of ratings; Krippendorff's alpha takes those.

    Examples
    --------
    >>> round(fleiss_kappa(np.array([[0, 0, 0], [0, 1, 1], [1, 1, 1]])), 3)
    0.55
    """
    _same_number_of_ratings(codes)
    return _value(_specific_rows(codes, _width(codes)), _fleiss_of)


def krippendorff_alpha(codes: Codes) -> float:
    """Krippendorff's alpha for nominal data; missing ratings are allowed.

    ``1 - (n - 1) sum_{c != k} o_ck / (n^2 - sum_c n_c^2)`` over the coincidences of items with at least two
    ratings: K. Krippendorff, "Computing Krippendorff's alpha-reliability" (2011), section C.

    Examples
    --------
    >>> round(krippendorff_alpha(np.array([[0, 0, -1], [0, 1, 1], [1, 1, 1], [0, -1, -1]])), 3)
    0.533
    """
    return _value(_krippendorff_rows(codes, _width(codes)), _krippendorff_of)


def agreement(
    ratings: Ratings,
    *,
    clusters: Sequence[str] | None = None,
    pairs: bool = True,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Agreement:
    """Every coefficient with its interval.

    Parameters
    ----------
    clusters: of each item, in the order of ``ratings.items``; whole clusters are drawn. None draws items.
    pairs: also every pair of raters by itself. With more than :data:`FULL_PAIRS` of them the figures of pairs, and
        their mean, are resampled less often, in proportion.

    Raises
    ------
    DataError: no item was rated by two raters, or there are more or fewer clusters than items.
    """
    codes, width = ratings.codes, len(ratings.labels)
    group = cluster_codes(ratings, clusters)
    if not ((codes != MISSING).sum(axis=1) >= 2).any():
        raise DataError("agreement", "no item with two ratings", "items rated by several people")
    shared = _specific_rows(codes, width)

    def figure(rows: FloatArray, of: Any, *names: str) -> Coefficient:
        return with_interval(rows, of, group, resamples, stream(seed, "agreement", *names))

    fleiss = figure(shared, _fleiss_of, "fleiss") if _equal_numbers(codes) else None
    per_class = tuple(
        (label, figure(shared, _specific_of(k), "class", label))
        for k, label in enumerate(ratings.labels)
    )
    found: list[Pair] = []
    tables = []
    several = len(ratings.raters) * (len(ratings.raters) - 1) // 2
    fewer = min(resamples, max(200, resamples * FULL_PAIRS // max(several, 1)))
    for i, a in enumerate(ratings.raters):
        for j, b in enumerate(ratings.raters[i + 1 :], start=i + 1):
            rated = (codes[:, [i, j]] != MISSING).all(axis=1)
            if rated.any():
                rows = cohen_rows(codes[:, [i, j]], width)
                tables.append(rows)
                if not pairs:
                    continue
                shared_group = np.where(rated, group, MISSING)
                values = [
                    with_interval(
                        rows, of, shared_group, fewer, stream(seed, "agreement", "pair", a, b)
                    )
                    for of in (_observed_of, cohen_of)
                ]
                found.append(Pair(a, b, *values))
    return Agreement(
        percent=figure(shared, _percent_of, "percent"),
        fleiss=fleiss,
        krippendorff=figure(_krippendorff_rows(codes, width), _krippendorff_of, "krippendorff"),
        per_class=per_class,
        pairs=tuple(found),
        mean_cohen=with_interval(
            np.hstack(tables),
            mean_of(cohen_of, len(tables)),
            group,
            fewer,
            stream(seed, "agreement", "mean pair"),
        ),
    )


def agreement_with_reference(
    ratings: Ratings,
    reference: Codes,
    *,
    clusters: Sequence[str] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Coefficient:
    """Share of all ratings that equal the reference label of their item, items drawn as wholes.

    Parameters
    ----------
    reference: (items,) codes of the data set's own labels, in the order of ``ratings.items``.
    clusters: see :func:`agreement`. More than this share: :mod:`earwitness.stats.agreement_labels`.
    """
    check_reference(ratings, reference)
    given = ratings.codes != MISSING
    same = (ratings.codes == reference[:, None]) & given
    rows = np.stack([same.sum(axis=1), given.sum(axis=1)], axis=1).astype(np.float64)
    rng = stream(seed, "agreement", "reference")
    group = cluster_codes(ratings, clusters)
    return with_interval(rows, lambda s: ratio(s[..., 0], s[..., 1]), group, resamples, rng)


def check_reference(ratings: Ratings, reference: Codes) -> None:
    """Require one label of the data set for every item.

    Raises
    ------
    DataError: there are more or fewer.
    """
    if reference.shape != (len(ratings.items),):
        raise DataError(
            "reference labels", f"shape {reference.shape}", f"({len(ratings.items)},), one an item"
        )


def cluster_codes(ratings: Ratings, clusters: Sequence[str] | None) -> Codes:
    """(items,) number of the cluster each item is in; its own where none are named."""
    n = len(ratings.items)
    if clusters is None:
        return np.arange(n)
    if len(clusters) != n:
        raise DataError("clusters", f"{len(clusters)} of them", f"{n}, one an item")
    numbers = {name: k for k, name in enumerate(sorted(set(clusters)))}
    return np.array([numbers[name] for name in clusters])


# Each coefficient is a function of sums over items: `_*_rows` gives an item's part, `_*_of` the coefficient
# of the summed parts (..., features). The same two serve the figure and all its resamples.


def _value(rows: FloatArray, of: Any) -> float:
    return float(of(rows.sum(axis=0)))


def with_interval(
    rows: FloatArray, of: Any, group: Codes, resamples: int, rng: np.random.Generator
) -> Coefficient:
    """A coefficient ``of`` the sum of ``rows`` (items, features), clusters of items drawn as wholes.

    ``group`` is the cluster of each item; items with :data:`MISSING` are no part of the sample.
    """
    used = group != MISSING
    _, place = np.unique(group[used], return_inverse=True)
    together = np.zeros((place.max(initial=-1) + 1, rows.shape[1]))
    np.add.at(together, place, rows[used])
    rows = together
    value = of(rows.sum(axis=0))
    low, high, _ = percentile_interval(
        of(resample_sums(rows, resamples, rng)), value, rows.shape[0]
    )
    return Coefficient(float(value), float(low), float(high), rows.shape[0])


def _width(codes: Codes) -> int:
    if codes.ndim != 2 or codes.shape[0] == 0:
        raise DataError(
            "agreement", f"ratings of shape {codes.shape}", "(items, raters) with items"
        )
    return int(codes.max(initial=0)) + 1


def _label_counts(codes: Codes, width: int) -> FloatArray:
    """(items, labels): how many raters gave each label."""
    return np.asarray((codes[:, :, None] == np.arange(width)).sum(axis=1), dtype=np.float64)


def _equal_numbers(codes: Codes) -> bool:
    numbers = np.unique((codes != MISSING).sum(axis=1))
    return numbers.size == 1 and bool(numbers[0] >= 2)


def _same_number_of_ratings(codes: Codes) -> None:
    if not _equal_numbers(codes):
        numbers = (codes != MISSING).sum(axis=1)
        raise UsageError(
            "Fleiss' kappa",
            f"items with {numbers.min()} to {numbers.max()} ratings",
            "the same number, at least 2, for every item",
            "Use Krippendorff's alpha, which takes missing ratings.",
        )


def _specific_rows(codes: Codes, width: int) -> FloatArray:
    """Per item: agreeing ordered pairs of each label, ordered pairs with each label first, counts, 1."""
    counts = _label_counts(codes, width)
    rated = counts.sum(axis=1, keepdims=True)
    ones = np.ones((codes.shape[0], 1))
    return np.hstack([counts * (counts - 1), counts * (rated - 1), counts, ones])


def _percent_of(sums: FloatArray) -> FloatArray:
    width = (sums.shape[-1] - 1) // 3
    return ratio(sums[..., :width].sum(axis=-1), sums[..., width : 2 * width].sum(axis=-1))


def _specific_of(label: int) -> Any:
    def of(sums: FloatArray) -> FloatArray:
        width = (sums.shape[-1] - 1) // 3
        return ratio(sums[..., label], sums[..., width + label])

    return of


def _fleiss_of(sums: FloatArray) -> FloatArray:
    width = (sums.shape[-1] - 1) // 3
    counts = sums[..., 2 * width : 3 * width]
    share = counts / counts.sum(axis=-1, keepdims=True)
    return _above_chance(_percent_of(sums), (share**2).sum(axis=-1))


def cohen_rows(codes: Codes, width: int) -> FloatArray:
    """Per item: one cell of the raters' confusion table, flattened; items one of them left out are zero."""
    rated = (codes != MISSING).all(axis=1)
    rows = np.zeros((codes.shape[0], width * width))
    rows[np.flatnonzero(rated), (codes[:, 0] * width + codes[:, 1])[rated]] = 1
    return rows


def _table(sums: FloatArray) -> FloatArray:
    width = int(np.sqrt(sums.shape[-1]))
    return sums.reshape(*sums.shape[:-1], width, width)


def _observed_of(sums: FloatArray) -> FloatArray:
    table = _table(sums)
    return ratio(np.trace(table, axis1=-2, axis2=-1), table.sum(axis=(-2, -1)))


def cohen_of(sums: FloatArray) -> FloatArray:
    table = _table(sums)
    n = table.sum(axis=(-2, -1))
    chance = ratio((table.sum(axis=-1) * table.sum(axis=-2)).sum(axis=-1), n * n)
    return _above_chance(_observed_of(sums), chance)


def mean_of(of: Any, parts: int) -> Any:
    """The mean of a coefficient over ``parts`` sums that stand side by side, those without a value left out."""

    def mean(sums: FloatArray) -> FloatArray:
        each = of(sums.reshape(*sums.shape[:-1], parts, -1))
        known = ~np.isnan(each)
        return ratio(np.where(known, each, 0.0).sum(axis=-1), known.sum(axis=-1))

    return mean


def _krippendorff_rows(codes: Codes, width: int) -> FloatArray:
    """Per item: its disagreeing coincidences, then its ratings of each label; items with one rating are zero."""
    counts = _label_counts(codes, width)
    rated = counts.sum(axis=1)
    paired = rated >= 2
    together = (rated**2 - (counts**2).sum(axis=1)) / np.maximum(rated - 1, 1)
    return np.asarray(np.column_stack([together, counts]) * paired[:, None])


def _krippendorff_of(sums: FloatArray) -> FloatArray:
    disagreeing, counts = sums[..., 0], sums[..., 1:]
    n = counts.sum(axis=-1)
    return 1 - ratio((n - 1) * disagreeing, n * n - (counts**2).sum(axis=-1))


def _above_chance(observed: FloatArray, chance: FloatArray) -> FloatArray:
    # 1 - chance of a single label used by all is 0 up to rounding; then nothing can be said.
    room = np.where(np.isclose(chance, 1.0, rtol=0, atol=1e-12), 0.0, 1 - chance)
    return ratio(observed - chance, room)
