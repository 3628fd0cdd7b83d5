"""Scores of one system: denominators, bounds, methods, groups, priors, valence, calibration."""

from __future__ import annotations

import math

import numpy as np
import pytest

from earwitness.clips.corpus import EMOTIONS
from earwitness.errors import DataError, UsageError
from earwitness.stats.streams import stream
from earwitness.tasks.records import Decision, Estimate, Scores
from earwitness.tasks.scoring import neutral_error_shares, score, top_confusions
from earwitness.tasks.valence import VALENCE
from tests.tasks.scoring_cases import decision, decisions_of

LABELS = ("anger", "fear", "neutral")
FEW = 400


def every_estimate(found: Scores) -> list[Estimate]:
    estimates = [found.accuracy, found.accuracy_clustered, found.macro_recall]
    for each in found.per_class:
        estimates += [each.precision, each.recall, each.f1]
    estimates += [e for group in found.by_group.values() for e in group.values()]
    if found.valence:
        estimates.append(found.valence.accuracy)
    if found.prior_weighted:
        estimates.append(found.prior_weighted)
    return estimates


def test_every_outcome_without_a_label_stays_in_the_denominator() -> None:
    kinds = ("unmapped", "ambiguous", "refused", "blocked", "truncated", "empty", "failed")
    rows = [decision(f"a{k}", "anger", "anger") for k in range(3)]
    rows += [decision(kind, "anger", None, kind=kind) for kind in kinds]
    found = score("m", rows, LABELS, resamples=FEW)
    assert (found.right, found.n) == (3, 10)
    assert found.accuracy.value == 0.3
    assert found.confusion.columns == (*LABELS, "no label")
    assert found.confusion.counts[0] == (3, 0, 0, 7)
    assert found.per_class[0].recall.value == 0.3
    assert found.per_class[0].precision.value == 1
    assert found.outcomes["answered"] == 3
    assert all(found.outcomes[kind] == 1 for kind in kinds)  # type: ignore[index]
    assert found.rules == {"exact": 3} | {f"{kind} rule": 1 for kind in kinds}
    assert found.neutral is not None
    assert (found.neutral.predicted, found.neutral.outputs, found.neutral.errors) == (0, 3, 7)


def test_failed_items_make_bounds_until_they_are_accepted() -> None:
    rows = [decision(f"a{k}", "anger", "anger" if k < 4 else "fear") for k in range(8)]
    rows += [decision(f"f{k}", "anger", None, kind="failed") for k in range(2)]
    found = score("m", rows, LABELS, resamples=FEW)
    assert not found.complete
    assert found.bounds == (0.4, 0.6)
    accepted = score("m", rows, LABELS, resamples=FEW, accept_failed=True)
    assert accepted.complete
    assert accepted.bounds == (0.4, 0.4)
    assert accepted.accuracy == found.accuracy
    refused = score("m", rows[:8], LABELS, resamples=FEW)
    assert refused.complete
    assert refused.bounds == (0.5, 0.5)


def test_methods_say_what_was_drawn() -> None:
    gold = ["anger", "fear", "neutral"] * 16
    said = ["anger", "anger", "neutral"] * 16
    alone = score("m", decisions_of(gold, said), LABELS, resamples=FEW)
    assert alone.accuracy_clustered.method == "bootstrap by item (48)"
    assert alone.per_class[0].recall.method == "wilson"
    assert alone.per_class[0].f1.method == "bootstrap by item (48)"
    twelve = [f"s{k % 12:02}" for k in range(48)]
    many = score("m", decisions_of(gold, said, twelve), LABELS, resamples=FEW)
    assert many.n_clusters == 12
    assert many.accuracy_clustered.method == "bootstrap by speaker (12)"
    assert many.per_class[0].precision.method == "bootstrap by speaker (12)"
    four = score(
        "m", decisions_of(gold, said, ["s1", "s2", "s3", "s4"] * 12), LABELS, resamples=FEW
    )
    assert four.accuracy_clustered.method == "bootstrap by speaker (4, few)"
    scenes = score(
        "m", decisions_of(gold, said, twelve), LABELS, resamples=FEW, cluster_name="scene"
    )
    assert scenes.macro_recall.method == "bootstrap by scene (12)"
    one = score("m", decisions_of(gold, said, ["s1"] * 48), LABELS, resamples=FEW)
    assert one.accuracy_clustered.method == "bootstrap by item (48; one speaker)"
    assert one.per_class[0].recall.method == "wilson, items of one speaker"


def test_speakers_that_differ_widen_the_interval() -> None:
    gold = ["anger"] * 200
    said = ["anger"] * 100 + ["fear"] * 100
    found = score("m", decisions_of(gold, said, [f"s{k // 10:02}" for k in range(200)]), LABELS)
    wide = found.accuracy_clustered.high - found.accuracy_clustered.low
    assert wide > 2 * (found.accuracy.high - found.accuracy.low)
    assert found.per_class[0].recall.low == found.accuracy_clustered.low


def test_all_right_is_one_with_room_below() -> None:
    gold = list(EMOTIONS) * 8
    clusters = [f"s{k // 7}" for k in range(56)]
    found = score("m", decisions_of(gold, gold, clusters), EMOTIONS, valence=VALENCE, resamples=FEW)
    assert found.accuracy.value == found.macro_recall.value == 1
    assert found.accuracy_clustered.method == "wilson over 8 speakers, all alike"
    assert 0.6 < found.accuracy_clustered.low < 0.7
    assert found.valence is not None
    assert found.valence.accuracy.value == 1
    assert all(e.value == 1 and e.low < 1 and e.high == 1 for e in every_estimate(found))
    assert top_confusions(found) == ()


def test_groups_have_an_estimate_each_and_items_without_the_key_are_in_none() -> None:
    rows = [
        decision(
            f"c{k}",
            "anger",
            "anger" if k % 3 else "fear",
            f"s{k % 5}",
            groups={"sex": "female" if k % 5 < 3 else "male", "language": "en"} if k else {},
        )
        for k in range(60)
    ]
    found = score("m", rows, LABELS, resamples=FEW)
    assert set(found.by_group) == {"sex", "language"}
    female = found.by_group["sex"]["female"]
    assert (female.numerator, female.denominator) == (24, 35)
    assert female.method == "bootstrap by speaker (3, few)"
    assert found.by_group["language"]["en"].denominator == 59


def test_valence_leaves_surprise_clips_out_and_counts_surprise_answers_wrong() -> None:
    rows = [
        decision("1", "anger", "sadness"),  # right direction
        decision("2", "fear", "happiness"),
        decision("3", "happiness", "happiness"),
        decision("4", "neutral", "neutral"),
        decision("5", "sadness", "surprise"),  # an answer without valence is not right
        decision("6", "disgust", None),  # nor is none
        decision("7", "surprise", "surprise"),  # left out
        decision("8", "surprise", "neutral"),  # left out of accuracy, counted as an output
    ]
    found = score("m", rows, EMOTIONS, valence=VALENCE, resamples=FEW).valence
    assert found is not None
    assert (found.accuracy.numerator, found.accuracy.denominator) == (3, 6)
    assert found.output_shares == {
        "negative": 0.125,
        "neutral": 0.25,
        "positive": 0.25,
        "none": 0.25,
        "no label": 0.125,
    }
    assert found.leaning == "tied"
    assert score("m", rows, EMOTIONS, resamples=FEW).valence is None


def test_leaning_is_the_largest_share() -> None:
    def leaning(*said: str | None) -> str:
        rows = decisions_of(["anger"] * len(said), said)
        found = score("m", rows, EMOTIONS, valence=VALENCE, resamples=FEW).valence
        assert found is not None
        return found.leaning

    assert leaning("fear", "anger", "happiness") == "negative"
    assert leaning("neutral", "neutral", "happiness") == "neutral"
    assert leaning("happiness") == "positive"
    assert leaning("surprise", None) == "none"


def test_priors_weigh_recalls_to_the_users_traffic() -> None:
    gold = ["anger"] * 20 + ["fear"] * 20 + ["neutral"] * 20
    said = ["anger"] * 10 + ["fear"] * 10 + ["fear"] * 5 + ["anger"] * 15 + ["neutral"] * 20
    rows = decisions_of(gold, said)
    found = score("m", rows, LABELS, priors={"anger": 1, "fear": 1, "neutral": 8}).prior_weighted
    assert found is not None
    assert found.value == pytest.approx(0.1 * 0.5 + 0.1 * 0.25 + 0.8 * 1.0)
    assert found.method == "stratified bootstrap by item (60)"
    # Only two recalls vary: sd of 0.1 (p1 + p2).
    sd = 0.1 * math.sqrt(0.5 * 0.5 / 20 + 0.25 * 0.75 / 20)
    assert found.high - found.low == pytest.approx(2 * 1.96 * sd, rel=0.1)
    speakers = [f"s{k % 12}" for k in range(60)]
    by_speaker = score("m", decisions_of(gold, said, speakers), LABELS, priors={"fear": 2})
    assert by_speaker.prior_weighted is not None
    assert by_speaker.prior_weighted.value == 0.25
    assert by_speaker.prior_weighted.method == "bootstrap by speaker (12)"
    assert score("m", rows, LABELS, resamples=FEW).prior_weighted is None


def test_priors_that_do_not_fit_are_refused() -> None:
    rows = decisions_of(["anger", "fear"], ["anger", "fear"])
    with pytest.raises(DataError, match=r"priors: label 'joy'; wanted one of anger, fear, neutral"):
        score("m", rows, LABELS, priors={"joy": 1}, resamples=FEW)
    with pytest.raises(DataError, match=r"priors: weight -1 of 'fear'"):
        score("m", rows, LABELS, priors={"fear": -1}, resamples=FEW)
    with pytest.raises(DataError, match=r"priors: weight nan of 'fear'"):
        score("m", rows, LABELS, priors={"fear": math.nan}, resamples=FEW)
    with pytest.raises(DataError, match=r"no label with a weight above 0"):
        score("m", rows, LABELS, priors={"fear": 0}, resamples=FEW)
    with pytest.raises(
        DataError, match=r"priors for m: weight 1.0 of 'neutral', of which the set has no"
    ):
        score("m", rows, LABELS, priors={"neutral": 1}, resamples=FEW)


def test_a_label_without_items_has_no_recall_and_is_not_in_the_mean() -> None:
    found = score(
        "m", decisions_of(["anger"] * 4, ["anger"] * 2 + ["fear"] * 2), LABELS, resamples=FEW
    )
    fear, neutral = found.per_class[1], found.per_class[2]
    assert found.macro_recall.value == 0.5
    assert math.isnan(fear.recall.value)
    assert fear.precision.value == 0
    assert math.isnan(neutral.precision.value)
    assert neutral.precision.method == "nothing counted"
    assert neutral.f1.method == "nothing counted"


def test_calibration_uses_the_share_of_the_mapped_mass() -> None:
    rng = stream(7, "scores")
    rows: list[Decision] = []
    for k in range(4000):
        conf = float(rng.uniform(0.4, 1))
        gold = "anger" if rng.random() < conf else "fear"
        scores = {"anger": 5 * conf, "fear": 5 * (1 - conf)}
        rows.append(decision(f"c{k}", gold, "anger", scores=scores))
    rows.append(decision("gone", "anger", None))
    found = score("m", rows, LABELS, resamples=FEW).calibration
    assert found is not None
    assert found.n == 4000
    assert found.ece < 0.03
    assert sum(n for _, _, n in found.bins) == 4000
    assert found.risk_coverage[-1][0] == pytest.approx(4000 / 4001)
    assert found.aurc < 0.25
    assert score("m", decisions_of(["anger"], ["anger"]), LABELS, resamples=FEW).calibration is None


def test_latency_and_cost_are_of_what_is_known() -> None:
    rows = [
        decision(f"c{k}", "anger", "anger", latency_s=float(k), cost_usd=0.01) for k in range(21)
    ]
    rows.append(decision("table", "anger", "anger"))
    found = score("m", rows, LABELS, resamples=FEW)
    assert found.latency_median_s == 10
    assert found.latency_p95_s == 19
    assert found.cost_usd == pytest.approx(0.21)
    bare = score("m", decisions_of(["anger"], ["anger"]), LABELS, resamples=FEW)
    assert (bare.latency_median_s, bare.latency_p95_s, bare.cost_usd) == (None, None, None)


def test_neutral_bias_needs_a_neutral_label() -> None:
    rows = decisions_of(["pivot", "verbal"], ["verbal", "verbal"])
    found = score("m", rows, ("pivot", "verbal"), resamples=FEW)
    assert found.neutral is None
    with pytest.raises(UsageError, match="no neutral label in these scores"):
        neutral_error_shares(found)


def test_shuffled_labels_bring_every_score_to_chance() -> None:
    """A model that is good and confident, beside labels shuffled over its clips."""
    rng = stream(11, "shuffle")
    gold = np.repeat(np.arange(7), 200)
    said = np.where(rng.random(1400) < 0.6, gold, rng.integers(0, 7, 1400))
    conf = rng.uniform(0.3, 0.9, 1400)
    shuffled = rng.permutation(gold)
    rows = []
    for k in range(1400):
        rest = (1 - conf[k]) / 6
        scores = {
            e: (float(conf[k]) if j == said[k] else float(rest)) for j, e in enumerate(EMOTIONS)
        }
        rows.append(
            decision(f"c{k}", EMOTIONS[shuffled[k]], EMOTIONS[said[k]], f"s{k % 40}", scores=scores)
        )
    equal = dict.fromkeys(EMOTIONS, 1.0)
    found = score("m", rows, EMOTIONS, valence=VALENCE, priors=equal)
    chance = 1 / 7
    assert found.prior_weighted is not None
    for estimate in (
        found.accuracy,
        found.accuracy_clustered,
        found.macro_recall,
        found.prior_weighted,
    ):
        assert estimate.low <= chance <= estimate.high
        assert estimate.high < 0.2
    for k, each in enumerate(found.per_class):
        share = float(np.mean(said == k))
        assert (
            each.recall.low <= share <= each.recall.high
        )  # chance of a label is its share of outputs
        assert each.precision.low <= chance <= each.precision.high
    assert found.valence is not None
    shares = found.valence.output_shares
    by_chance = (4 * shares["negative"] + shares["positive"] + shares["neutral"]) / 6
    assert found.valence.accuracy.low <= by_chance <= found.valence.accuracy.high
    calibration = found.calibration
    assert calibration is not None
    assert calibration.ece == pytest.approx(float(conf.mean()) - found.accuracy.value, abs=0.02)
    assert calibration.aurc == pytest.approx(1 - chance, abs=0.04)
    for _, accuracy, n in calibration.bins:
        assert abs(accuracy - chance) < 4 * math.sqrt(chance * (1 - chance) / n)


def test_what_cannot_be_scored_is_named() -> None:
    with pytest.raises(DataError, match=r"m: no items to score; wanted at least one item"):
        score("m", (), LABELS)
    with pytest.raises(
        DataError, match=r"m, item 'x': gold label 'joy'; wanted one of anger, fear"
    ):
        score("m", [decision("x", "joy", "anger")], LABELS)
    with pytest.raises(DataError, match=r"m, item 'x': predicted label 'joy'; wanted one of anger"):
        score("m", [decision("x", "anger", "joy")], LABELS)
    with pytest.raises(DataError, match=r"m: item 'x' more than once; wanted each item once"):
        score("m", [decision("x", "anger", "anger")] * 2, LABELS)
    with pytest.raises(DataError, match=r"m: labels \['anger', 'anger'\]"):
        score("m", [decision("x", "anger", "anger")], ("anger", "anger"))
    with pytest.raises(DataError, match=r"valence: direction 'up'; wanted one of negative"):
        score("m", [decision("x", "anger", "anger")], LABELS, valence={"anger": "up"})
