"""Leaderboards: order, pools, comparisons, and what the notes say."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from earwitness.errors import DataError, UsageError
from earwitness.stats.streams import stream
from earwitness.tasks.records import Leaderboard, System
from earwitness.tasks.scoring import compare, leaderboard, pool
from tests.tasks.scoring_cases import decision, decisions_of

LABELS = ("anger", "fear", "neutral")
FEW = 500


def system(name: str, accuracy: float, n: int = 240, speakers: int = 24, **more: object) -> System:
    """A system that is right on a seeded share of clips which are the same for every system."""
    rng = stream(1, name)
    gold = [LABELS[k % 3] for k in range(n)]
    said = [g if rng.random() < accuracy else LABELS[(k + 1) % 3] for k, g in enumerate(gold)]
    clusters = [f"s{k % speakers:02}" for k in range(n)]
    return System(name, decisions_of(gold, said, clusters), **more)  # type: ignore[arg-type]


def board(*systems: System, **more: object) -> Leaderboard:
    return leaderboard(systems, LABELS, task="emotion", condition="audio", resamples=FEW, **more)  # type: ignore[arg-type]


def test_best_first_then_by_name_and_in_any_order_of_input() -> None:
    twin = System("a twin", system("good", 0.8).decisions)
    systems = [system("bad", 0.3), system("good", 0.8), twin]
    found = board(*systems)
    assert [row.name for row in found.systems] == ["a twin", "good", "bad"]
    turned = board(*systems[::-1])
    assert repr(turned.systems) == repr(found.systems)
    assert turned.notes == found.notes
    assert {(c.a, c.b) for c in found.comparisons} == {
        ("bad", "good"),
        ("bad", "a twin"),
        ("good", "a twin"),
    }


def test_valence_of_emotions_is_known_and_of_other_labels_is_not() -> None:
    assert board(system("m", 0.5)).systems[0].valence is not None
    rows = decisions_of(["pivot", "verbal"], ["pivot", "pivot"])
    other = leaderboard(
        [System("m", rows)], ("pivot", "verbal"), task="reaction", condition="audio", resamples=FEW
    )
    assert other.systems[0].valence is None
    assert other.pooled is None
    assert other.comparisons == ()


def test_comparisons_find_a_real_difference_and_hold_back_on_none() -> None:
    found = {
        (c.a, c.b): c
        for c in board(system("good", 0.8), system("bad", 0.4), system("same", 0.8)).comparisons
    }
    real = found["good", "bad"]
    assert real.difference.low > 0
    assert real.p_sign_flip < real.p_holm < 0.001
    assert real.p_mcnemar < 0.001
    assert real.n_items == 240
    assert real.n_clusters == 24
    assert real.difference.method == "bootstrap by speaker (24)"
    assert real.family == "all 3 pairs on emotion/audio"
    none = found["good", "same"]
    assert none.difference.low < 0 < none.difference.high
    assert none.p_holm > 0.05


def test_comparisons_equal_independent_libraries() -> None:
    systems = [system("a", 0.7), system("b", 0.6), system("c", 0.5)]
    found = compare(systems, resamples=FEW)
    right = np.array([[d.outcome.label == d.gold for d in s.decisions] for s in systems])
    for pair, (i, j) in zip(found, [(0, 1), (0, 2), (1, 2)], strict=True):
        assert pair.difference.value == pytest.approx(right[i].mean() - right[j].mean(), abs=1e-12)
        table = [[0, int((right[i] & ~right[j]).sum())], [int((~right[i] & right[j]).sum()), 0]]
        assert pair.p_mcnemar == pytest.approx(mcnemar(np.array(table), exact=True).pvalue)
    adjusted = multipletests([pair.p_sign_flip for pair in found], method="holm")[1]
    assert [pair.p_holm for pair in found] == pytest.approx(adjusted)


def test_pairs_by_shared_draws_and_by_their_own_agree() -> None:
    """With an item more in a third system, pairs are drawn one by one; the answers stay."""
    a, b = system("a", 0.7), system("b", 0.6)
    more = System("c", (*system("c", 0.5).decisions, decision("extra", "fear", "fear", "s00")))
    together, apart = compare([a, b], resamples=FEW)[0], compare([a, b, more], resamples=FEW)[0]
    assert apart.difference == together.difference
    assert apart.p_sign_flip == together.p_sign_flip
    assert compare([a, b, more], resamples=FEW)[1].n_items == 240


def test_speaker_pairing_is_narrower_than_unpaired_intervals() -> None:
    """Both systems fail on the same hard speakers: their difference is known better than either."""
    gold = ["anger"] * 240
    clusters = [f"s{k % 24:02}" for k in range(240)]
    hard = [k % 24 < 12 for k in range(240)]
    a = decisions_of(gold, ["fear" if h else "anger" for h in hard], clusters)
    b = decisions_of(
        gold, ["fear" if h or k < 24 else "anger" for k, h in enumerate(hard)], clusters
    )
    found = board(System("a", a), System("b", b))
    pair = found.comparisons[0]
    row = found.systems[0].accuracy_clustered
    assert pair.difference.value == pytest.approx(0.05)
    assert pair.difference.high - pair.difference.low < 0.2 * (row.high - row.low)
    assert pair.p_sign_flip < 0.001


def test_one_speaker_is_compared_by_item_and_said_so() -> None:
    found = board(system("a", 0.9, 60, 1), system("b", 0.5, 60, 1))
    pair = found.comparisons[0]
    assert pair.n_clusters == 1
    assert pair.difference.method == "bootstrap by item (60; one speaker)"
    assert pair.p_sign_flip < 0.001
    assert (
        "only one speaker: intervals are by item and say nothing of other speakers" in found.notes
    )


def test_notes_on_few_speakers_overlap_and_incomplete_runs() -> None:
    good, near, bad = (
        system("good", 0.9, 80, 4),
        system("near", 0.88, 80, 4),
        system("bad", 0.2, 80, 4),
    )
    broken = System(
        "broken",
        tuple(
            decision(d.item_id, d.gold, None, d.cluster, kind="failed") if k < 8 else d
            for k, d in enumerate(bad.decisions)
        ),
    )
    found = board(good, near, broken)
    assert "only 4 speakers: intervals by speaker are rough" in found.notes
    claims = [note for note in found.notes if note.startswith("intervals overlap")]
    names = sorted(row.name for row in found.systems[:2])
    assert names == ["good", "near"]
    assert claims == [
        f"intervals overlap: no order is claimed between {found.systems[0].name} and {found.systems[1].name}"
    ]
    assert found.notes[0].startswith(
        "broken: incomplete run, 8 of 80 items failed: accuracy lies between"
    )
    assert found.pooled is not None
    assert not found.pooled.complete
    assert found.pooled.bounds[1] - found.pooled.bounds[0] == pytest.approx(8 / 240)
    accepted = board(good, near, System("broken", broken.decisions, accept_failed=True))
    assert "broken: 8 of 80 items failed and were accepted as not right" in accepted.notes
    assert accepted.pooled is not None
    assert accepted.pooled.complete
    assert accepted.systems[-1].complete


def test_overlaps_are_named_as_the_largest_groups() -> None:
    found = board(
        *(
            system(name, p, 300, 30)
            for name, p in [("a", 0.72), ("b", 0.70), ("c", 0.71), ("z", 0.2)]
        )
    )
    claims = [note for note in found.notes if note.startswith("intervals overlap")]
    assert len(claims) == 1
    assert "among" in claims[0]
    assert "z" not in claims[0].split("among")[1]


def test_differing_item_sets_are_noted_and_compared_on_common_items() -> None:
    a = system("a", 0.8)
    b = System("b", system("b", 0.5).decisions[:200])
    found = board(a, b)
    assert any(
        note.startswith("item sets differ (") and "200 in common" in note for note in found.notes
    )
    assert found.comparisons[0].n_items == 200
    apart = System("c", tuple(decision(f"other{k}", "anger", "anger") for k in range(30)))
    assert [(c.a, c.b) for c in board(a, b, apart).comparisons] == [("a", "b")]


def test_a_table_without_speakers_takes_them_from_the_run_beside_it() -> None:
    run = system("run", 0.8)
    table = System(
        "table",
        tuple(decision(d.item_id, d.gold, "anger") for d in run.decisions),
        origin="predictions",
    )
    found = board(run, table)
    assert found.comparisons[0].n_clusters == 24
    assert found.comparisons[0].difference.method == "bootstrap by speaker (24)"
    assert found.pooled is not None
    assert found.pooled.n_clusters == 24
    alone = {row.name: row for row in found.systems}["table"]
    assert alone.accuracy_clustered.method == "bootstrap by item (240)"


def test_pooled_interval_draws_speakers_with_all_that_was_said_of_them() -> None:
    one = system("a", 0.6)
    same = [System(name, one.decisions) for name in "bcdef"]
    alone = board(one).systems[0].accuracy_clustered
    pooled = pool([one, *same], LABELS, resamples=FEW).accuracy_clustered
    assert pooled.high - pooled.low == pytest.approx(alone.high - alone.low, abs=1e-9)


def test_what_does_not_fit_together_is_refused() -> None:
    a = system("a", 0.5)
    with pytest.raises(UsageError, match=r"leaderboard: no systems; wanted at least one run"):
        board()
    with pytest.raises(UsageError, match=r"two systems named 'a'.*Name runs of one model apart"):
        board(a, a)
    with pytest.raises(
        UsageError, match=r"condition 'silence': decisions of condition 'audio' in a"
    ):
        leaderboard([a], LABELS, task="emotion", condition="silence")
    wrong = System("b", tuple(decision(d.item_id, "fear", "fear", d.cluster) for d in a.decisions))
    with pytest.raises(
        DataError, match=r"gold label 'anger' in a and 'fear' in b; wanted one truth"
    ):
        compare([a, wrong])
    with pytest.raises(
        DataError, match=r"gold label 'anger' in a and 'fear' in b; wanted one truth"
    ):
        pool([a, wrong], LABELS)
    moved = System("b", tuple(decision(d.item_id, d.gold, d.gold, "s99") for d in a.decisions))
    with pytest.raises(DataError, match=r"different speakers or scenes in different systems"):
        compare([a, moved])
    with pytest.raises(DataError, match=r"cluster 's00' and 's99' in different systems"):
        pool([a, moved], LABELS)
    with pytest.raises(DataError, match=r"b: no items to score"):
        board(a, System("b", ()))
