"""The published figures come out of our functions, from counts made to fit them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from earwitness.clips.corpus import EMOTIONS
from earwitness.tasks.records import Leaderboard, Scores, System
from earwitness.tasks.scoring import (
    accuracy_without_failed,
    leaderboard,
    neutral_error_shares,
    score,
    top_confusions,
)
from tests.tasks.scoring_cases import decision, decisions_from_counts

GOLDEN = Path(__file__).parents[1] / "golden" / "published_figures.json"


def percent(value: float) -> float:
    return round(100 * value, 1)


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def board(golden: dict[str, Any]) -> Leaderboard:
    systems = [
        System(name, decisions_from_counts(counts, golden["labels"], speakers=52, turn=turn))
        for turn, (name, counts) in enumerate(golden["systems"].items())
    ]
    return leaderboard(systems, EMOTIONS, task="emotion", condition="audio", resamples=2000)


@pytest.fixture(scope="module")
def pooled(board: Leaderboard) -> Scores:
    assert board.pooled is not None
    return board.pooled


def by_label(scores: Scores) -> dict[str, Any]:
    return {each.label: each for each in scores.per_class}


def test_the_counts_are_of_280_clips_40_a_label(golden: dict[str, Any]) -> None:
    counts = np.array(list(golden["systems"].values()))
    assert counts.shape == (6, 7, 8)
    assert (counts.sum(axis=2) == 40).all()
    assert golden["labels"] == list(EMOTIONS)


def test_accuracy_and_wilson_of_the_first_and_the_last(
    golden: dict[str, Any], board: Leaderboard
) -> None:
    assert board.systems[0].name == "gemini_3_5_flash"
    assert board.systems[-1].name == "openai_realtime"
    for row in (board.systems[0], board.systems[-1]):
        published = golden["published"]["accuracy"][row.name]
        assert (row.right, row.n) == (published["right"], published["n"])
        assert percent(row.accuracy.value) == published["percent"]
        assert [percent(row.accuracy.low), percent(row.accuracy.high)] == published["interval"]
        assert row.accuracy.method == "wilson"
        assert row.n_clusters == 52


def test_six_baselines_together(golden: dict[str, Any], board: Leaderboard, pooled: Scores) -> None:
    published = golden["published"]["pooled"]
    assert (pooled.right, pooled.n) == (published["right"], published["n"])
    assert pooled.outcomes["answered"] == published["labelled"]
    assert pooled.outcomes["unmapped"] == 1
    assert percent(pooled.accuracy.value) == published["percent"]
    mean = np.mean([row.accuracy.value for row in board.systems])
    assert mean == pytest.approx(pooled.accuracy.value, abs=1e-12)
    assert pooled.accuracy.method == "wilson, decisions taken as independent"
    assert pooled.accuracy_clustered.method == "bootstrap by speaker (52)"
    assert pooled.complete


def test_neutral_bias_in_both_readings(golden: dict[str, Any], pooled: Scores) -> None:
    published = golden["published"]["neutral"]
    bias = pooled.neutral
    assert bias is not None
    assert (bias.predicted, bias.wrong, bias.outputs) == (
        published["predicted"],
        published["wrong"],
        1679,
    )
    assert percent(bias.share_of_outputs) == published["share_of_outputs"]
    neutral = by_label(pooled)["neutral"]
    assert (neutral.precision.numerator, neutral.precision.denominator) == (183, 761)
    assert (neutral.recall.numerator, neutral.recall.denominator) == (183, 240)
    assert percent(neutral.precision.value) == published["precision"]
    assert percent(neutral.recall.value) == published["recall"]
    of_all, of_labelled = neutral_error_shares(pooled)
    assert (of_labelled.numerator, of_labelled.denominator) == (578, published["labelled_errors"])
    assert (of_all.numerator, of_all.denominator) == (578, 1090)  # with the reply without a label
    assert bias.errors == 1090


def test_fear_and_surprise(golden: dict[str, Any], pooled: Scores) -> None:
    fear, surprise = by_label(pooled)["fear"], by_label(pooled)["surprise"]
    published = golden["published"]["fear"]
    assert (fear.correct, fear.predicted, fear.support) == (36, 46, 240)
    assert percent(fear.precision.value) == published["precision"]
    assert percent(fear.recall.value) == published["recall"]
    assert (surprise.correct, surprise.support) == (36, 240)
    assert percent(surprise.recall.value) == golden["published"]["surprise"]["recall"]


def test_valence(golden: dict[str, Any], board: Leaderboard, pooled: Scores) -> None:
    published = golden["published"]["valence_accuracy"]
    rows = {row.name: row.valence for row in board.systems}
    for name in ("gemini_3_5_flash", "tr_voxtral_small", "tr_qwen3_5_omni_plus"):
        found = rows[name]
        assert found is not None
        assert found.accuracy.denominator == published["n"]
        assert percent(found.accuracy.value) == published[name]
    assert pooled.valence is not None
    assert percent(pooled.valence.accuracy.value) == published["pooled"]
    assert pooled.valence.accuracy.denominator == 6 * published["n"]
    leanings = [row.leaning for row in rows.values() if row is not None]
    for direction, systems in golden["published"]["valence_leanings"].items():
        assert leanings.count(direction) == systems


def test_largest_confusions(golden: dict[str, Any], pooled: Scores) -> None:
    found = top_confusions(pooled, 3)
    assert [[each.gold, each.predicted] for each in found] == golden["published"][
        "largest_confusions"
    ]
    assert found[0].share == found[0].count / 240


def test_no_order_is_claimed_between_overlapping_neighbours(board: Leaderboard) -> None:
    said = [note for note in board.notes if note.startswith("intervals overlap")]
    assert said
    assert not any("gemini_3_5_flash" in note and "openai_realtime" in note for note in said)


def test_a_failed_request_gives_bounds_and_the_released_reading_beside(
    golden: dict[str, Any],
) -> None:
    """The ninth system of the release: one failed request, dropped by the released scorer."""
    published = golden["published"]["dropped_failed"]
    rows = [
        decision(f"clip{k}", "fear", "fear" if k < published["right"] else "anger")
        for k in range(published["n"] - published["failed"])
    ]
    rows.append(decision("failed", "fear", None, kind="failed"))
    found = score("Hume", rows, EMOTIONS)
    assert not found.complete
    assert found.bounds == (106 / 280, 107 / 280)
    assert percent(found.accuracy.value) == published["percent"]
    dropped = accuracy_without_failed(found)
    assert (dropped.numerator, dropped.denominator) == (106, 279)
    assert percent(dropped.value) == published["released_percent"]
    notes = leaderboard(
        [System("Hume", tuple(rows))], EMOTIONS, task="emotion", condition="audio", resamples=100
    ).notes
    assert notes[0] == (
        "Hume: incomplete run, 1 of 280 items failed: accuracy lies between 37.9% and 38.2%; "
        "a scorer that drops failed items would say 106/279 = 38.0%"
    )
