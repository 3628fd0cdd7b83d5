"""Who speaks what how: balance, growth, and whether words tell the emotion."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from earwitness.clips.assignment import (
    Design,
    _cheapest,
    add_accounts,
    assign,
    balance,
    read_assignments,
)
from earwitness.clips.assignment_audit import (
    RIDGE,
    Spoken,
    _least_squares,
    _naive_bayes,
    _Texts,
    audit_words,
)
from earwitness.clips.corpus import EMOTIONS
from earwitness.errors import DataError, UsageError
from tests.clips.collecting import assigned, names, scripts


def test_emotions_scripts_and_speakers_are_balanced() -> None:
    made = assigned(68, 40)
    found = balance(made)
    assert (found.accounts, found.recordings, found.scripts_used) == (68, 612, 40)
    assert max(found.labels.values()) - min(found.labels.values()) <= 1
    assert found.per_account_label == (1, 2)
    assert found.per_script == (5, 6)
    # Each script goes through the emotions: 5 accounts have 15 of them, so 2 or 3 of each.
    cells = Counter((a.script_id, a.emotion) for a in made)
    assert {cells[s.id, label] for s in scripts(40) for label in EMOTIONS} <= {1, 2, 3}
    for (account, script), count in Counter((a.account, a.script_id) for a in made).items():
        emotions = {a.emotion for a in made if (a.account, a.script_id) == (account, script)}
        assert (count, len(emotions)) == (3, 3)


def test_accounts_can_be_added_and_change_nothing_before_them(tmp_path: Path) -> None:
    every = assigned(12, 10)
    assert assign(names(5), scripts(10), Design()) == every[: 5 * 9]
    add_accounts(tmp_path, names(5), scripts(10), Design())
    add_accounts(tmp_path, names(12)[5:], scripts(10), Design())
    assert read_assignments(tmp_path) == every
    assert assigned(12, 10, seed=1) != every


def test_a_design_is_fixed_once_recordings_were_given_out(tmp_path: Path) -> None:
    add_accounts(tmp_path, ["maple"], scripts(5), Design())
    with pytest.raises(UsageError, match="seed 0, 3 scripts, 3 emotions"):
        add_accounts(tmp_path, ["birch"], scripts(5), Design(emotions=2))
    with pytest.raises(UsageError, match="'Maple' is there already"):
        add_accounts(tmp_path, ["Maple"], scripts(5), Design())


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".a", "a b", "a" * 65, "x."])
def test_names_that_cannot_be_folders_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="1 to 64 letters"):
        assign([name], scripts(5), Design())


def test_impossible_designs_are_refused() -> None:
    with pytest.raises(DataError, match="2 scripts; wanted at least 3"):
        assign(["a"], scripts(2), Design())
    with pytest.raises(UsageError, match="found 8"):
        assign(["a"], scripts(5), Design(emotions=8))


def test_the_cheapest_matrix_is_the_cheapest_of_all() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        costs = rng.random((2, 4))
        found = _cheapest(costs, 2)
        rows = [r for r in product((0, 1), repeat=4) if sum(r) == 2]
        # Even columns come first: with 4 ones in 4 columns, one each.
        best = min(
            (np.array(pair) for pair in product(rows, rows)),
            key=lambda m: ((m.sum(axis=0) ** 2).sum(), (m * costs).sum()),
        )
        assert found.astype(int).tolist() == best.tolist()


def spoken(assignments) -> list[Spoken]:
    return [Spoken(a.text, a.emotion, a.script_id, a.account) for a in assignments]


def test_words_of_an_assignment_do_not_tell_the_emotion() -> None:
    audit = audit_words(spoken(assigned(40, 60)))
    assert audit.ok
    assert {guess.held_out for guess in audit.guesses} == {"script", "speaker"}
    for guess in (*audit.guesses, *audit.controls):
        assert guess.chance == pytest.approx(1 / 7)
        assert guess.recordings == 360
        assert guess.low <= guess.balanced_accuracy <= guess.high


def test_words_that_do_tell_are_found_by_script_and_by_speaker() -> None:
    hints = {label: f"It was quite a {label[:4]}ish thing." for label in EMOTIONS}
    told = [
        Spoken(f"{each.text} {hints[each.emotion]}", each.emotion, f"{each.script}/{each.emotion}", each.speaker)
        for each in spoken(assigned(20, 30))
    ]  # fmt: skip
    audit = audit_words(told)
    assert not audit.ok
    assert [guess.leaks for guess in audit.guesses] == [True, True]
    assert [guess.leaks for guess in audit.controls] == [False, False]


def test_scripts_bound_to_an_emotion_are_found_by_speaker() -> None:
    # Every script is always performed in the same three emotions: no word tells, but the text does.
    bound = [
        Spoken(each.text, EMOTIONS[(int(each.script[1:]) + k) % 7], each.script, each.speaker)
        for k, each in enumerate(spoken(assigned(30, 15)))
        for k in (k % 2,)
    ]
    audit = audit_words(bound)
    by = {guess.held_out: guess.leaks for guess in audit.guesses}
    assert by == {"script": False, "speaker": True}


def test_nothing_to_hold_out_is_an_error() -> None:
    with pytest.raises(DataError, match="1 script; wanted at least two scripts"):
        audit_words([Spoken("a b", "fear", "s", "x"), Spoken("a b", "anger", "s", "y")])


def test_classifiers_are_those_of_an_independent_library() -> None:
    from scipy.special import logsumexp
    from sklearn.linear_model import Ridge
    from sklearn.naive_bayes import MultinomialNB

    made = spoken(assigned(12, 15))
    texts = _Texts.of([each.text for each in made])
    codes = np.array([EMOTIONS.index(each.emotion) for each in made])
    labels = np.eye(7)[codes]
    train, test = np.arange(0, 80), np.arange(80, 108)
    rows = texts.counts.toarray()[texts.of_recording]
    centre = labels[train].mean(axis=0)
    ridge = Ridge(alpha=RIDGE, fit_intercept=False, solver="cholesky").fit(
        rows[train], labels[train] - centre
    )
    ours = _least_squares(texts, labels, train, test)
    assert np.abs(ours - ridge.predict(rows[test])).max() < 1e-9
    bayes = MultinomialNB(class_prior=(labels[train].sum(axis=0) + 1) / 87).fit(
        rows[train], codes[train]
    )
    mine = _naive_bayes(texts, labels, train, test)
    mine -= logsumexp(mine, axis=1, keepdims=True)
    assert np.abs(mine - bayes.predict_log_proba(rows[test])).max() < 1e-9
