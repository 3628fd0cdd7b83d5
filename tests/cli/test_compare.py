"""``earwitness compare``: regressions found, equals passed, what does not fit refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.cli.compare import EXIT_WORSE
from earwitness.errors import DataError, EarwitnessError, IncompleteRunError, UsageError
from earwitness.runs.outcomes import Outcome
from earwitness.tasks.reaction import LABELS
from earwitness.tasks.records import Decision
from earwitness.tasks.regressions import Side, compare_sides
from tests.tasks.run_making import Told, emotion_run, reaction_run, write_run

EVEN = dict.fromkeys(LABELS, 0.7)


def compare(*words, code=0):
    result = CliRunner().invoke(build_app(), ["compare", *map(str, words)])
    if isinstance(result.exception, EarwitnessError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


def flat(text):
    return " ".join(text.split())


def compare_json(*words, code=0):
    return json.loads(compare(*words, "--json", code=code))


# --- the gate


def test_a_true_regression_is_found_and_the_command_fails(tmp_path):
    a = emotion_run(tmp_path / "a", 0.70, n=1400, speakers=70, name="v1")
    b = emotion_run(tmp_path / "b", 0.60, n=1400, speakers=70, name="v2")
    text = compare(a, b, "--fail-if-worse", "2", code=EXIT_WORSE)
    assert "worse: emotion by" in text
    found = compare_json(a, b, "--fail-if-worse", 2, code=EXIT_WORSE)
    task = found["tasks"][0]
    assert found["worse"] == ["emotion"]
    assert found["a"] == "v1"
    assert found["b"] == "v2"
    assert task["difference"]["value"] < -0.05
    assert task["loss_bound"] > 0
    assert task["p_worse"] < 0.01
    assert task["difference"]["method"] == "bootstrap by speaker (70)"
    assert {c["label"] for c in task["classes"]} >= {"anger", "neutral"}


def test_a_model_is_not_worse_than_itself(tmp_path):
    a = emotion_run(tmp_path / "a", 0.7, name="v1")
    found = compare_json(a, a, "--fail-if-worse", 2)
    assert found["worse"] == []
    task = found["tasks"][0]
    assert task["differing"] == 0
    assert task["difference"]["value"] == 0
    assert task["loss_bound"] < 0
    assert task["p_worse"] == 1


def test_the_same_quality_with_other_errors_passes_and_a_gain_is_no_loss(tmp_path):
    a = emotion_run(tmp_path / "a", 0.6, seed=1)
    assert compare_json(a, emotion_run(tmp_path / "b", 0.6, seed=2), "--fail-if-worse", 2)
    better = compare_json(a, emotion_run(tmp_path / "c", 0.8, seed=3), "--fail-if-worse", 0)
    assert better["worse"] == []
    assert better["tasks"][0]["difference"]["low"] > 0


def test_a_loss_within_chance_does_not_fail_however_large(tmp_path):
    a = write_run(
        tmp_path / "a", "emotion", [Told(f"c{k}", "fear", "fear", f"p{k}") for k in range(12)]
    )
    told = [Told(f"c{k}", "fear", "anger" if k < 2 else "fear", f"p{k}") for k in range(12)]
    b = write_run(tmp_path / "b", "emotion", told)
    found = compare_json(a, b, "--fail-if-worse", 2)
    assert found["tasks"][0]["difference"]["value"] == pytest.approx(-2 / 12)
    assert found["tasks"][0]["loss_bound"] <= 0
    assert "may pass unseen" in found["warnings"][0]


def test_a_loss_below_the_threshold_does_not_fail_however_certain(tmp_path):
    a = emotion_run(tmp_path / "a", 0.70, n=1400, speakers=70)
    b = emotion_run(tmp_path / "b", 0.60, n=1400, speakers=70)
    compare(a, b, "--fail-if-worse", "50")
    assert "not worse" not in compare(a, b)


def test_a_loss_of_exactly_the_threshold_fails(tmp_path):
    told = [Told(f"c{k:04d}", "fear", "fear", f"p{k:04d}") for k in range(1000)]
    a = write_run(tmp_path / "a", "emotion", told)
    lost = [
        Told(t.id, t.gold, "anger" if k < 20 else "fear", t.cluster) for k, t in enumerate(told)
    ]
    b = write_run(tmp_path / "b", "emotion", lost)
    compare(a, b, "--fail-if-worse", 2, code=EXIT_WORSE)
    compare(a, b, "--fail-if-worse", 2.1)


def test_few_items_are_warned_of_even_where_nothing_differs(tmp_path):
    a = emotion_run(tmp_path / "a", 0.7, n=70, speakers=7)
    text = flat(compare(a, a, "--fail-if-worse", "2"))
    assert "warning emotion: with 70 items of 7 speakers, only a loss of" in text
    assert "a loss of 2 points may pass unseen" in text
    assert "7 speakers are few" in text
    many = emotion_run(tmp_path / "b", 0.7, n=2800, speakers=100)
    assert compare_json(many, many, "--fail-if-worse", 2)["warnings"] == []


def side(seed, scenes=40):
    """A run over reactions of one quality, as good as any other of another seed."""
    rng = np.random.default_rng([4, seed])
    told = []
    for s in range(scenes):
        hard = rng.normal(0, 0.5)
        for e, gold in enumerate(LABELS):
            right = rng.normal() + hard < 0.4
            outcome = Outcome("answered", gold if right else LABELS[(e + 1) % 4])
            told.append(Decision(f"s{s}/e{e}", gold, outcome, f"s{s}"))
    return [Side("m", "reaction", "time", "audio", tuple(told), {}, "scene")]


def test_of_equals_one_in_twenty_fails_at_most():
    """Even with a gate at zero points: the bound alone holds the level."""
    worse = sum(
        bool(compare_sides(side(2 * k), side(2 * k + 1), fail_if_worse=0, resamples=400).worse)
        for k in range(200)
    )
    assert 1 <= worse <= 19  # 10 expected; three standard errors above


# --- runs about scenes


def test_reaction_is_compared_in_balanced_accuracy_by_scene_and_class(tmp_path):
    a = reaction_run(tmp_path / "a/reaction--m--time", EVEN, name="m")
    b = reaction_run(tmp_path / "b/reaction--n--time", EVEN | {"ambient": 0.05}, seed=1, name="n")
    found = compare_json(tmp_path / "a", tmp_path / "b", "--fail-if-worse", 2, code=EXIT_WORSE)
    task = found["tasks"][0]
    assert task["metric"] == "balanced accuracy"
    assert task["difference"]["method"] == "bootstrap by scene (60)"
    by_class = {c["label"]: c for c in task["classes"]}
    assert by_class["ambient"]["p_holm"] < 0.01
    assert by_class["ambient"]["difference"]["high"] < -0.3
    assert by_class["pivot"]["p_holm"] > 0.05
    text = flat(compare(a, b))
    assert "reaction, ambient:" in text
    assert "(Holm) *" in text


def test_templates_can_be_what_is_drawn(tmp_path):
    a = reaction_run(tmp_path / "a", EVEN)
    found = compare_json(a, a, "--cluster", "template")
    assert found["tasks"][0]["difference"]["method"] == "bootstrap by template (15)"


def test_the_bound_is_shared_by_the_tasks_that_are_compared(tmp_path):
    reaction_run(tmp_path / "a/r", EVEN)
    emotion_run(tmp_path / "a/e", 0.7)
    both = compare_json(tmp_path / "a", tmp_path / "a", "--fail-if-worse", 2)
    assert {t["task"]: t["bound_level"] for t in both["tasks"]} == {
        "emotion": 0.975,
        "reaction": 0.975,
    }
    one = compare_json(tmp_path / "a", tmp_path / "a", "--tasks", "reaction")
    assert [t["task"] for t in one["tasks"]] == ["reaction"]
    assert one["tasks"][0]["bound_level"] == 0.95


# --- what does not fit


def test_other_items_are_refused_and_common_ones_compared_on_request(tmp_path):
    a = emotion_run(tmp_path / "a", 0.7, n=400)
    b = emotion_run(tmp_path / "b", 0.7, n=350)
    with pytest.raises(
        UsageError, match=r"50 only in the reference \(c0350, c0351, c0352, \.\.\.\).*--common"
    ):
        compare(a, b)
    found = compare_json(a, b, "--common")
    assert found["tasks"][0]["n_items"] == 350
    assert "350 common items; 50 only in the reference" in found["notes"][0]


def test_the_same_ids_with_other_audio_or_options_are_other_items(tmp_path):
    told = [Told(f"c{k}", "fear", "fear", f"p{k}") for k in range(20)]
    a = write_run(tmp_path / "a", "emotion", told)
    other = [
        Told(t.id, t.gold, t.reply, t.cluster, audio="again" if k < 5 else "")
        for k, t in enumerate(told)
    ]
    b = write_run(tmp_path / "b", "emotion", other)
    with pytest.raises(UsageError, match="5 of other audio or other options in both"):
        compare(a, b)
    assert compare_json(a, b, "--common")["tasks"][0]["n_items"] == 15
    nothing = [Told(t.id, t.gold, t.reply, t.cluster, audio="again") for t in told]
    c = write_run(tmp_path / "c", "emotion", nothing)
    with pytest.raises(UsageError, match="no item in common"):
        compare(a, c, "--common")


def test_other_tasks_are_refused_and_left_out_on_request(tmp_path):
    reaction_run(tmp_path / "a/r", EVEN)
    emotion_run(tmp_path / "a/e", 0.7)
    emotion_run(tmp_path / "b/e", 0.7)
    with pytest.raises(UsageError, match="only the reference has reaction"):
        compare(tmp_path / "a", tmp_path / "b")
    found = compare_json(tmp_path / "a", tmp_path / "b", "--common")
    assert "tasks left out: only the reference has reaction" in found["notes"]
    with pytest.raises(UsageError, match="a task both were asked"):
        compare(tmp_path / "a/r", tmp_path / "b/e", "--common")
    with pytest.raises(UsageError, match="has no run of sound"):
        compare(tmp_path / "a", tmp_path / "b", "--tasks", "sound")


def test_two_truths_or_clusters_are_an_error(tmp_path):
    a = write_run(tmp_path / "a", "emotion", [Told("c1", "fear", "fear", "p1")])
    b = write_run(tmp_path / "b", "emotion", [Told("c1", "anger", "fear", "p1")])
    with pytest.raises(DataError, match="truth 'fear' in model and 'anger'"):
        compare(a, b)
    c = write_run(tmp_path / "c", "emotion", [Told("c1", "fear", "fear", "p2")])
    with pytest.raises(DataError, match="cluster 'p1' in model and 'p2'"):
        compare(a, c)


def test_several_runs_of_a_task_in_one_folder_are_refused(tmp_path):
    emotion_run(tmp_path / "a/one", 0.7)
    emotion_run(tmp_path / "a/two", 0.7)
    with pytest.raises(UsageError, match="has 2 runs of emotion: one, two"):
        compare(tmp_path / "a", tmp_path / "a/one")


def test_an_incomplete_run_is_not_judged_until_failures_are_accepted(tmp_path):
    told = [Told(f"c{k:02d}", "fear", "fear" if k else None, f"p{k:02d}") for k in range(20)]
    a = write_run(tmp_path / "a", "emotion", told)
    with pytest.raises(IncompleteRunError, match="1 of emotion") as caught:
        compare(a, a)
    assert caught.value.exit_code == 3
    assert compare_json(a, a, "--accept-failed")["tasks"][0]["a"] == 0.95


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--fail-if-worse", "200"), "from 0 to 100"),
        (("--condition", "silence"), "has no item under 'silence'"),
        (("--tasks", "smell"), "found 'smell'"),
        (("--cluster", "day"), "scene or template"),
    ],
)
def test_what_is_unknown_is_refused(tmp_path, words, message):
    a = emotion_run(tmp_path / "a", 0.7, n=70)
    with pytest.raises(UsageError, match=message):
        compare(a, a, *words)


def test_another_prompt_is_said(tmp_path):
    a = emotion_run(tmp_path / "a", 0.7, n=70)
    b = emotion_run(tmp_path / "b", 0.7, n=70, prompt="p1")
    assert "emotion: the prompts differ (vab, p1)" in compare_json(a, b)["notes"]
