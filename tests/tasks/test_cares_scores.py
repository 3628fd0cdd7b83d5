"""Scores and comparisons of the tasks about scenes: published figures, known models, paired tests."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.coverage import CORPORA, Setting, coverage, draw_answers
from earwitness.errors import DataError
from earwitness.runs.outcomes import Outcome
from earwitness.stats.confusion import by_cluster, macro_recall
from earwitness.stats.intervals import cluster_bootstrap
from earwitness.stats.streams import stream
from earwitness.tasks.cares_scores import (
    balanced_accuracy_of,
    by_template,
    compare_pairs,
    position_bias,
    score_choices,
    score_positions,
)
from earwitness.tasks.choices import OPTIONS_KEY, Option, options_to_text
from earwitness.tasks.reaction import LABELS
from earwitness.tasks.records import Decision

# arXiv 2610.10208, Table 1: balanced accuracy; recalls of pivot, verbal, behavioral, ambient; classes it calls ignored.
TABLE_1 = {
    "Audio Flamingo Next": (29.7, (0.3, 65.0, 0.7, 52.7), 2),
    "Qwen3-Omni": (39.0, (89.5, 41.7, 24.2, 0.5), 1),
    "Kimi-Audio": (25.6, (1.6, 1.3, 5.4, 94.1), 3),
    "MiMo-Audio": (32.8, (40.0, 91.2, 0.0, 0.0), 2),
    "MOSS-Audio": (31.4, (99.4, 17.9, 7.0, 1.4), 2),
    "MiDashengLM": (24.1, (77.1, 19.2, 0.0, 0.0), 2),
    "Whisper + LLM": (36.5, (23.8, 35.4, 22.9, 64.0), 0),
}


def decision(item, gold, label, scene, **groups):
    outcome = Outcome("answered", label) if label else Outcome("refused")
    return Decision(item, gold, outcome, scene, groups=groups)


def of_model(confusion, n_scenes, seed, per_scene=2, stay=0.0):
    """Decisions of a model with these rows of answer probabilities (the rest is no label).

    ``stay``: chance that a scene repeats one answer for all its items of a class, which makes them correlated.
    """
    rng = stream(seed, "simulated")
    found = []
    for s in range(n_scenes):
        fixed = {}
        for e in range(per_scene):
            gold = LABELS[rng.integers(4)]
            row = confusion[gold]
            drawn = rng.choice(5, p=[*row, 1 - sum(row)])
            if rng.random() < stay:
                drawn = fixed.setdefault(gold, drawn)
            label = LABELS[drawn] if drawn < 4 else None
            found.append(decision(f"s{s}/e{e}", gold, label, f"s{s}"))
    return found


@pytest.mark.parametrize("name", TABLE_1)
def test_published_balanced_accuracies_come_out_of_the_published_recalls(name):
    published, recalls, ignored = TABLE_1[name]
    # Behavioral of MOSS-Audio is rounded to 7.0: a recall of at most 7 % as printed.
    decisions = [
        decision(f"{label}{k}", label, label if k < round(10 * recall) else None, f"{label}{k}")
        for label, recall in zip(LABELS, recalls, strict=True)
        for k in range(1000)
    ]
    found = score_choices(name, "reaction", decisions, LABELS, resamples=200)
    assert 100 * found.scores.macro_recall.value == pytest.approx(published, abs=0.0501)
    assert balanced_accuracy_of(recalls) == pytest.approx(published, abs=0.0501)
    assert len(found.ignored) == ignored


def test_simulated_models_recover_their_parameters():
    truth = {
        "pivot": (0.7, 0.2, 0.05, 0.05), "verbal": (0.1, 0.5, 0.1, 0.2),
        "behavioral": (0.3, 0.3, 0.03, 0.3), "ambient": (0.0, 0.1, 0.2, 0.6),
    }  # fmt: skip
    decisions = of_model(truth, 4000, seed=1)
    found = score_choices("m", "reaction", decisions, LABELS, resamples=500)
    counts = np.array(found.scores.confusion.counts, dtype=float)
    for row, label in zip(counts / counts.sum(axis=1, keepdims=True), LABELS, strict=True):
        assert row[:4] == pytest.approx(truth[label], abs=0.035)
    assert found.scores.macro_recall.value == pytest.approx((0.7 + 0.5 + 0.03 + 0.6) / 4, abs=0.02)
    assert found.ignored == ("behavioral",)
    assert found.scores.macro_recall.low < 0.4575 < found.scores.macro_recall.high


@pytest.mark.parametrize("figure", ["balanced accuracy", "difference of balanced accuracy"])
def test_intervals_hold_the_truth_in_93_to_97_of_100_simulated_corpora(figure):
    """2,000 corpora of 60 scenes whose answers go together; the seed is that of ``python -m benchmarks coverage``."""
    share = coverage(Setting(60), CORPORA, resamples=400, figures=figure)[figure]
    assert CORPORA == 2000
    assert 0.93 <= share <= 0.97


def test_the_simulation_is_of_what_scores_are_made_of():
    """The benchmark's interval is the one of :func:`score_choices` for the same answers."""
    setting = Setting(40)
    gold, said, _, scene = draw_answers(setting, stream(1, "one"))
    decisions = [
        decision(f"s{s}/e{k}", LABELS[g], LABELS[a] if a >= 0 else None, f"s{s:03d}")
        for k, (g, a, s) in enumerate(zip(gold, said, scene, strict=True))
    ]
    found = score_choices("m", "reaction", decisions, LABELS, resamples=400).scores.macro_recall
    counts = by_cluster(gold, said, scene, 4, setting.scenes)
    direct = cluster_bootstrap(counts, macro_recall, stream(0, "score"), resamples=400)
    assert (found.low, found.high) == pytest.approx((float(direct.low), float(direct.high)))
    assert found.method == "bootstrap by scene (40)"


def test_names_of_systems_change_no_figure():
    rng = stream(5, "names")
    a = [decision(f"s{k}/e1", LABELS[k % 4], LABELS[rng.integers(4)], f"s{k}") for k in range(60)]
    b = [decision(f"s{k}/e1", LABELS[k % 4], LABELS[rng.integers(4)], f"s{k}") for k in range(60)]
    one = compare_pairs([("x", a, "y", b)], "reaction", family="f", resamples=200)[0]
    two = compare_pairs([("other", a, "names", b)], "reaction", family="f", resamples=200)[0]
    assert one.p_sign_flip == two.p_sign_flip
    assert one.difference == two.difference


def test_a_model_with_one_answer_ignores_three_classes():
    decisions = [decision(f"s{k}/e1", LABELS[k % 4], "pivot", f"s{k}") for k in range(40)]
    found = score_choices("m", "reaction", decisions, LABELS, resamples=200)
    assert found.ignored == ("verbal", "behavioral", "ambient")
    assert found.scores.macro_recall.value == 0.25


def options(*labels):
    return {OPTIONS_KEY: options_to_text([Option(label, label) for label in labels])}


def test_position_bias_compares_places_chosen_with_places_of_the_truth():
    order = ["abcd", "bacd", "bcad", "bcda"]  # the truth "a" at every place once
    always_first = [
        Decision(f"i{k}", "a", Outcome("answered", o[0]), f"s{k}", groups=options(*o))
        for k, o in enumerate(order)
    ]
    bias = position_bias(always_first)
    assert (bias.truths, bias.chosen, bias.distance) == ((1, 1, 1, 1), (4, 0, 0, 0), 0.75)
    right = [Decision(d.item_id, "a", Outcome("answered", "a"), d.cluster, groups=d.groups) for d in always_first]  # fmt: skip
    assert position_bias(right).distance == 0
    found = score_positions("m", "sound", always_first, resamples=100)
    assert found.scores.accuracy.value == 0.25
    assert found.scores.confusion.counts[1] == (1, 0, 0, 0, 0)


def test_items_without_a_label_stay_in_the_denominator():
    decisions = [
        Decision(f"i{k}", "a", Outcome("answered", "a") if k else Outcome("refused"), f"s{k}",
                 groups={**options("a", "b", "c", "d"), "location": "park"})
        for k in range(4)
    ]  # fmt: skip
    found = score_positions("m", "sound", decisions, resamples=100)
    assert (found.scores.right, found.scores.n) == (3, 4)
    assert found.scores.by_group["location"]["park"].value == 0.75
    assert "_options" not in found.scores.by_group


def test_a_truth_that_is_no_option_is_an_error():
    bad = Decision("i", "x", Outcome("answered", "a"), "s", groups=options("a", "b", "c", "d"))
    with pytest.raises(DataError, match="'x' is no option"):
        score_positions("m", "sound", [bad])


def test_templates_can_be_the_clusters():
    decisions = [decision(f"s{k}/e1", "pivot", "pivot", f"s{k}") for k in range(4)]
    found = by_template(decisions, {f"s{k}": f"t{k // 2}" for k in range(4)})
    assert [d.cluster for d in found] == ["t0", "t0", "t1", "t1"]
    with pytest.raises(DataError, match="'s3': has no template"):
        by_template(decisions, {f"s{k}": "t" for k in range(3)})


# --- comparisons


def test_a_difference_is_in_balanced_accuracy_and_paired_over_conditions():
    # 30 pivots and 10 ambients; the second system loses all ambients: 50 points of balanced accuracy.
    golds = ["pivot"] * 30 + ["ambient"] * 10
    a = [decision(f"s{k}/e1", gold, gold, f"s{k}") for k, gold in enumerate(golds)]
    b = [decision(f"s{k}/e1|muted", gold, "pivot", f"s{k}") for k, gold in enumerate(golds)]
    found = compare_pairs([("m audio", a, "m muted", b)], "reaction", family="f", resamples=500)[0]
    assert found.difference.value == pytest.approx(0.5)
    assert found.metric == "balanced accuracy"
    assert found.p_sign_flip == pytest.approx(2 * 0.5**10, abs=0.002)
    assert found.above
    as_sound = compare_pairs([("a", a, "b", b)], "sound", family="f", resamples=500)[0]
    assert as_sound.difference.value == pytest.approx(0.25)


def test_no_difference_is_none_and_holm_runs_over_the_family():
    same = [decision(f"s{k}/e1", "pivot", "pivot", f"s{k}") for k in range(12)]
    other = [decision(f"s{k}/e1", "pivot", "verbal" if k < 7 else "pivot", f"s{k}") for k in range(12)]  # fmt: skip
    one, two = compare_pairs(
        [("a", same, "b", same), ("a", same, "c", other)], "reaction", family="two", resamples=200
    )
    assert (one.difference.value, one.p_sign_flip, one.above) == (0.0, 1.0, False)
    # No scene differs, and twelve scenes cannot exclude a difference of one in five.
    assert (one.difference.low, one.difference.high) == pytest.approx((-0.2425, 0.2425), abs=0.001)
    assert two.p_sign_flip == 2 * 0.5**7
    assert two.p_holm == 2 * two.p_sign_flip
    assert two.above


def test_under_no_difference_five_in_a_hundred_are_significant():
    row = dict.fromkeys(LABELS, (0.4, 0.3, 0.2, 0.1))
    hits = 0
    for k in range(120):
        a, b = (of_model(row, 40, seed=1000 + k + 5000 * j, stay=0.5) for j in (0, 1))
        golds = {d.item_id: d.gold for d in a}
        b = [Decision(d.item_id, golds[d.item_id], d.outcome, d.cluster) for d in b]
        hits += compare_pairs([("a", a, "b", b)], "sound", family="f", resamples=50)[0].p_sign_flip < 0.05  # fmt: skip
    assert hits / 120 <= 0.12


def test_nothing_in_common_is_an_error():
    a = [decision("s1/e1", "pivot", "pivot", "s1")]
    b = [decision("s2/e1", "pivot", "pivot", "s2")]
    with pytest.raises(DataError, match="a and b: no reaction item in common"):
        compare_pairs([("a", a, "b", b)], "reaction", family="f")


def test_the_test_is_of_balanced_accuracy_and_not_of_accuracy():
    # Ten of thirty pivots lost, eight of ten ambients won: fewer right, but more of the mean recall.
    golds = ["pivot"] * 30 + ["ambient"] * 10
    won = [k >= 32 for k in range(40)]
    lost = [k < 10 for k in range(40)]
    a = [decision(f"s{k}/e1", g, None if lost[k] else g, f"s{k}") for k, g in enumerate(golds)]
    b = [decision(f"s{k}/e1", g, None if won[k] else g, f"s{k}") for k, g in enumerate(golds)]
    found = compare_pairs([("a", a, "b", b)], "reaction", family="f", resamples=500)[0]
    assert found.difference.value == pytest.approx((-10 / 30 + 8 / 10) / 2)
    assert 0.08 < found.p_sign_flip < 0.2
    assert found.detectable == pytest.approx(2.8 * 0.14, abs=0.05)
    plain = compare_pairs([("a", a, "b", b)], "sound", family="f", resamples=500)[0]
    assert plain.difference.value == pytest.approx(-2 / 40)
    assert plain.p_sign_flip > 0.7
