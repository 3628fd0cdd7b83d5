"""Vectors of native scores."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.clips.corpus import EMOTIONS
from earwitness.clips.labels import load_label_map
from earwitness.tasks.score_vectors import pooling, read_scores

VENDOR = load_label_map("vendor-default")


def test_several_names_of_one_label_add_up_in_a_distribution():
    outcome = read_scores({"calm": 0.3, "neutral": 0.25, "anger": 0.45}, VENDOR)
    assert outcome.label == "neutral"
    assert outcome.scores == pytest.approx({"neutral": 0.55, "anger": 0.45})
    assert (outcome.native, outcome.rule) == ("calm", "sum: calm -> neutral")


def test_the_largest_counts_where_scores_do_not_exclude_each_other():
    outcome = read_scores({"calm": 0.6, "neutral": 0.5, "joy": 0.7}, VENDOR)
    assert (outcome.label, outcome.rule) == ("happiness", "max: joy -> happiness")
    assert outcome.scores == {"happiness": 0.7, "neutral": 0.6}


def test_what_maps_to_no_label_is_kept_in_the_detail():
    outcome = read_scores({"boredom": 0.6, "zest": 0.2, "anger": 0.1}, VENDOR)
    assert outcome.label == "anger"
    assert outcome.scores == {"anger": 0.1}
    assert outcome.detail == "unmapped 0.8 in 2 (most: boredom 0.6)"


def test_only_unmapped_names():
    outcome = read_scores({"boredom": 0.6, "zest": 0.2}, VENDOR)
    assert (outcome.kind, outcome.native, outcome.rule) == (
        "unmapped",
        "boredom",
        "map: boredom -> none",
    )


def test_ties_are_ambiguous():
    outcome = read_scores({"anger": 0.5, "fear": 0.5}, VENDOR)
    assert (outcome.kind, outcome.native) == ("ambiguous", "anger, fear")
    assert (
        read_scores({"anger": 0.3, "rage": 0.1 + 0.2, "fear": 0.6}, VENDOR, pool="sum").kind
        == "ambiguous"
    )


@pytest.mark.parametrize(
    "scores", [{}, {"anger": 0.0}, {"anger": 0.0, "boredom": 0.0}, {"anger": math.nan}]
)
def test_nothing_above_the_cutoff_is_empty(scores):
    assert read_scores(scores, VENDOR).kind == "empty"


def test_the_cutoff_can_be_raised():
    assert read_scores({"anger": 0.2}, VENDOR, cutoff=0.25).kind == "empty"
    assert read_scores({"anger": 0.2, "boredom": 0.5}, VENDOR, cutoff=0.25).kind == "unmapped"


def test_a_score_that_is_no_number_is_named():
    outcome = read_scores({"anger": math.inf, "fear": 0.2}, VENDOR)
    assert (outcome.label, outcome.detail) == ("fear", "not a number: anger")


def test_pooling_is_decided_for_a_whole_run():
    assert pooling([]) == "sum"
    assert pooling([{"a": 0.333, "b": 0.333, "c": 0.335}]) == "sum"
    assert pooling([{"a": 0.5}, {"a": 0.9, "b": 0.2}]) == "max"
    assert pooling([{"a": -0.5, "b": 0.2}]) == "max"


names = st.sampled_from([*EMOTIONS, "calm", "anxiety", "boredom", "joy", "zest"])


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.dictionaries(names, st.floats(0, 1) | st.just(math.nan), max_size=8))
def test_it_never_raises_and_answers_only_with_a_mapped_name(scores):
    outcome = read_scores(scores, VENDOR)
    if outcome.label:
        assert outcome.native in scores
        assert VENDOR.map(str(outcome.native))[0] == outcome.label
        assert outcome.scores[outcome.label] == max(outcome.scores.values())
    assert sum(outcome.scores.values()) <= sum(s for s in scores.values() if s == s) + 1e-9
