"""What holds of every score, whatever the decisions."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.tasks.records import Decision, Scores, System
from earwitness.tasks.scoring import compare, pool, score
from tests.tasks.scoring_cases import decision
from tests.tasks.test_scoring import every_estimate

LABELS = ("happiness", "neutral", "sadness")
VALENCE = {"happiness": "positive", "neutral": "neutral", "sadness": "negative"}
SAID = st.one_of(st.sampled_from(LABELS), st.sampled_from(["!refused", "!failed", "!unmapped"]))


@st.composite
def decisions(draw: st.DrawFn) -> list[Decision]:
    n = draw(st.integers(1, 30))
    speakers = draw(st.integers(0, 6))
    found = []
    for k in range(n):
        said = draw(SAID)
        found.append(
            decision(
                f"c{k:02}",
                draw(st.sampled_from(LABELS)),
                None if said[0] == "!" else said,
                f"s{draw(st.integers(1, speakers))}" if speakers else None,
                kind=said[1:],
                groups={"sex": draw(st.sampled_from(["f", "m"]))},
                scores={label: draw(st.floats(0, 1)) for label in LABELS} if k % 2 else None,
            )
        )
    return found


def scored(rows: list[Decision]) -> Scores:
    return score("m", rows, LABELS, valence=VALENCE, resamples=200)


@given(decisions())
@settings(derandomize=True, deadline=None, max_examples=60)
def test_bounds_counts_and_intervals(rows: list[Decision]) -> None:
    found = scored(rows)
    assert sum(map(sum, found.confusion.counts)) == found.n == len(rows)
    assert sum(found.outcomes.values()) == found.n == sum(found.rules.values())
    assert found.bounds[0] == found.right / found.n <= found.bounds[1] <= 1
    assert (found.bounds[0] < found.bounds[1]) == (not found.complete)
    assert found.complete == (found.outcomes["failed"] == 0)
    assert sum(each.support for each in found.per_class) == found.n
    assert sum(each.predicted for each in found.per_class) == found.outcomes["answered"]
    for estimate in every_estimate(found):
        if math.isnan(estimate.value):
            assert math.isnan(estimate.low)
            assert math.isnan(estimate.high)
            continue
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
        if estimate.denominator is not None:
            assert estimate.numerator is not None
            assert estimate.value == estimate.numerator / estimate.denominator
    assert found.valence is not None
    assert math.isclose(sum(found.valence.output_shares.values()), 1)


@given(decisions(), st.randoms(use_true_random=False))
@settings(derandomize=True, deadline=None, max_examples=30)
def test_order_and_names_change_nothing(rows: list[Decision], random: object) -> None:
    moved = list(rows)
    random.shuffle(moved)  # type: ignore[attr-defined]
    # repr, because NaN is not equal to itself
    assert repr(scored(moved)) == repr(scored(rows))
    other = score("another name", rows, LABELS, valence=VALENCE, resamples=200)
    assert repr(replace(other, name="m")) == repr(scored(rows))


@given(decisions())
@settings(derandomize=True, deadline=None, max_examples=30)
def test_answering_the_truth_is_perfect(rows: list[Decision]) -> None:
    truth = [decision(d.item_id, d.gold, d.gold, d.cluster) for d in rows]
    found = scored(truth)
    assert found.accuracy.value == found.accuracy_clustered.value == found.macro_recall.value == 1
    assert all(each.recall.value == 1 for each in found.per_class if each.support)
    pair = compare([System("truth", tuple(truth)), System("m", tuple(rows))], resamples=200)[0]
    assert pair.difference.value == (len(rows) - scored(rows).right) / len(rows)
    assert pair.difference.low <= pair.difference.value <= pair.difference.high


@given(decisions())
@settings(derandomize=True, deadline=None, max_examples=30)
def test_a_pool_of_one_is_itself_and_a_pool_of_twins_has_the_same_figures(
    rows: list[Decision],
) -> None:
    a, b = System("a", tuple(rows)), System("b", tuple(rows))
    alone = pool([a], LABELS, name="m", valence=VALENCE, resamples=200)
    assert repr(alone) == repr(scored(rows))
    twins = pool([a, b], LABELS, valence=VALENCE, resamples=200)
    assert twins.n == 2 * alone.n
    assert twins.accuracy.value == alone.accuracy.value
    assert twins.n_clusters == alone.n_clusters
    same = compare([a, b], resamples=200)[0]
    assert (same.difference.value, same.p_sign_flip, same.p_holm, same.p_mcnemar) == (0, 1, 1, 1)
