"""Is there a sound: pairs, catch times, hits, false alarms and sensitivity."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from earwitness.errors import DataError, UsageError
from earwitness.models.protocols import Reply
from earwitness.runs.outcomes import Outcome
from earwitness.stats.dprime import d_prime
from earwitness.stats.streams import stream
from earwitness.tasks import grounding
from earwitness.tasks.cares_runs import answers_of
from earwitness.tasks.cares_table import build_table
from earwitness.tasks.records import Decision
from earwitness.tasks.scene_items import load_mixed
from tests.tasks.test_cares_runs import cares, key, listener

__all__ = ["key"]  # the fixture that sets a key


@pytest.fixture(scope="module")
def mixed(mixed_folder):
    return load_mixed(mixed_folder)


def test_every_sound_is_asked_about_with_and_without_it_and_every_scene_at_a_catch_time(mixed):
    questions = grounding.items(mixed)
    kinds = [q.item.id.rpartition("/")[2] for q in questions]
    with_catch = sum(bool(scene.manifest.catch_times_s) for scene in mixed.scenes)
    assert with_catch > 0
    assert (kinds.count("present"), kinds.count("absent"), kinds.count("catch")) == (16, 16, with_catch)  # fmt: skip
    present, absent = questions[0], questions[1]
    assert present.item.prompt == absent.item.prompt
    assert (present.gold, absent.gold) == ("yes", "no")
    assert present.item.audio.path.parent.name == "mixes"
    assert absent.item.audio.path.parent.name == "mute-e1"
    catch = next(q for q in questions if q.item.id.endswith("catch"))
    assert (catch.gold, catch.item.audio.path.parent.name) == ("no", "mixes")


def test_without_audio_both_of_a_pair_are_the_same_question(mixed):
    for condition in ("oracle", "blind", "silence"):
        present, absent, *_ = grounding.items(mixed, conditions=(condition,))
        assert present.item.prompt == absent.item.prompt
        assert present.item.audio == absent.item.audio


def test_moments_of_catch_items_have_no_sound_near(mixed):
    for scene in mixed.scenes:
        for moment in scene.manifest.catch_times_s:
            assert not any(e.start_s <= moment <= e.tail_end_s for e in scene.manifest.events)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Yes", "yes"), ("no.", "no"), ("**No**", "no"), ("Answer: no", "no"), ("Answer: Yes", "yes"),
        ('{"answer": false}', "no"), ('{"answer": "yes"}', "yes"), ("No, only speech.", "no"),
        ("Yes, there is a sound of a door.", "yes"), ("There is no distinct sound at 12.3 seconds.", "no"),
        ("Not sure", None), ("yes or no", None), ("", None), ("A door.", None),
    ],
)  # fmt: skip
def test_yes_and_no_in_their_spellings(text, said):
    assert grounding.parse(Reply(text=text), {}).label == said


def test_a_cut_answer_is_truncated():
    assert grounding.parse(Reply(text="The answer: no", finish="length"), {}).kind == "truncated"


def made(pairs, catches=()):
    """Decisions of (present, absent) answers, one pair a scene, and of catch answers."""
    found = []
    for k, pair in enumerate(pairs):
        for kind, gold, said in zip(("present", "absent"), ("yes", "no"), pair, strict=True):
            outcome = Outcome("answered", said) if said else Outcome("refused")
            groups = {"margin": "6-10 dB" if k % 2 else "10-15 dB"}
            found.append(Decision(f"s{k}/e1/{kind}", gold, outcome, f"s{k}", groups=groups))
    for k, said in enumerate(catches):
        found.append(Decision(f"s{k}/c0/catch", "no", Outcome("answered", said), f"s{k}"))
    return found


def test_figures_by_hand():
    pairs = [("yes", "no")] * 6 + [("yes", "yes")] * 2 + [("no", "no")] + [("no", "yes")] + [(None, "no")] * 2  # fmt: skip
    found = grounding.score("m", made(pairs, ["yes", "no", "no", "no"]), resamples=300)
    assert found.paired == {"correct": 6, "reversed": 1, "always yes": 2, "always no": 1, "unreadable": 2}  # fmt: skip
    assert (found.hits.numerator, found.hits.denominator) == (8, 12)
    assert found.false_alarms.value == 3 / 12
    assert found.catch_alarms.value == 1 / 4
    assert found.d_prime.value == pytest.approx(float(d_prime(8, 12, 3, 12).d_prime))
    assert found.d_prime_catch.value == pytest.approx(float(d_prime(8, 12, 1, 4).d_prime))
    assert found.accuracy_paired.value == 0.5
    assert found.unlabelled == 2
    assert found.hits_by["margin"] == {"10-15 dB": (4, 6), "6-10 dB": (4, 6)}
    # Hits less alarms over scenes: six of +1, one of -1.
    assert found.p_sign_flip == pytest.approx(2 * (1 + 7) / 2**7)
    assert found.p_mcnemar == pytest.approx(found.p_sign_flip)


def test_d_prime_of_a_simulated_listener_is_recovered():
    rng = stream(5, "listener")
    truth, criterion = 1.5, 0.2
    noise = rng.standard_normal((3000, 2))
    said = noise + np.array([truth / 2, -truth / 2]) > criterion
    pairs = [("yes" if a else "no", "yes" if b else "no") for a, b in said]
    found = grounding.score("m", made(pairs), resamples=300)
    assert found.d_prime.value == pytest.approx(truth, abs=0.1)
    assert found.d_prime.low < truth < found.d_prime.high
    assert found.criterion == pytest.approx(criterion, abs=0.06)
    assert found.hears


def test_half_a_pair_or_none_is_an_error():
    with pytest.raises(DataError, match="only the half present"):
        grounding.score("m", made([("yes", "no")])[:1])
    with pytest.raises(DataError, match="no pairs"):
        grounding.score("m", made([], ["no"]))


def test_failed_items_leave_the_run_incomplete():
    decisions = made([("yes", "no")] * 3)
    decisions[0] = Decision(decisions[0].item_id, "yes", Outcome("failed"), "s0")
    assert not grounding.score("m", decisions, resamples=50).complete
    assert grounding.score("m", decisions, resamples=50, accept_failed=True).complete


def test_the_perfect_listener_hears_and_the_deaf_does_not(mixed_folder, tmp_path):
    for character in ("perfect", "deaf"):
        with listener(mixed_folder, character) as (_, model):
            result = cares(mixed_folder, *model, "--tasks", "grounding", "--out", tmp_path)
        assert "hits" in result.output
    table = build_table(answers_of(sorted(tmp_path.iterdir())), resamples=200)
    perfect, deaf = (table.of("grounding", f"openai/{c}") for c in ("perfect", "deaf"))
    assert (perfect.hits.value, perfect.false_alarms.value, perfect.catch_alarms.value) == (1, 0, 0)
    assert perfect.hears
    assert perfect.hits.low == pytest.approx(0.676, abs=0.001)  # Wilson over eight scenes
    assert perfect.d_prime.value > 3
    assert np.isnan(perfect.d_prime.low)
    assert (deaf.hits.value, deaf.d_prime.value, deaf.p_sign_flip) == (0, 0, 1)
    assert deaf.paired["always no"] == 16


def test_without_twins_the_error_names_the_task_and_the_command(mixed_folder, tmp_path):
    shutil.copytree(mixed_folder, tmp_path / "c", ignore=shutil.ignore_patterns("twins"))
    with pytest.raises(UsageError, match=r"task 'grounding': .* has no twin .*--mute each"):
        grounding.items(load_mixed(tmp_path / "c"))


def test_muted_does_not_apply(mixed_folder, tmp_path):
    with pytest.raises(UsageError, match="means nothing for this task"):
        cares(mixed_folder, "--model", "openai/x", "--tasks", "grounding", "--conditions", "muted", "--out", tmp_path)  # fmt: skip
