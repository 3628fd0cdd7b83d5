"""The classifier against scikit-learn, and what it makes of thin data."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from earwitness.errors import DataError, MissingExtraError
from earwitness.models.prosody.classifier import (
    Grid,
    _fit_inverse_temperature,
    _tuning_rows,
    standardise,
    train,
)
from earwitness.models.prosody.evaluation import predict_prosody

LABELS = ("anger", "fear", "neutral")
ONE = Grid(shrinkages=(0.5,), penalties=(1.0,), gammas=(1.0,))


def clips(
    speakers: int = 5, each: int = 6, d: int = 8, labels: tuple[str, ...] = LABELS, seed: int = 0
) -> tuple[np.ndarray, list[str], list[str]]:
    """Labels that differ in the first features, speakers that differ in the last."""
    rng = np.random.default_rng(seed)
    vectors, names, people = [], [], []
    for s in range(speakers):
        own = rng.normal(size=d)
        for i in range(each * len(labels)):
            k = i % len(labels)
            vector = rng.normal(size=d) + 0.5 * own
            vector[k] += 2.5
            vectors.append(vector)
            names.append(labels[k])
            people.append(f"s{s}")
    return np.asarray(vectors), names, people


def test_speakers_it_never_heard_are_answered_well() -> None:
    vectors, labels, speakers = clips()
    held_out = np.asarray([speaker == "s0" for speaker in speakers])
    answers = predict_prosody(vectors, labels, speakers, held_out)
    gold = [label for label, out in zip(labels, held_out, strict=True) if out]
    assert np.mean([a == g for a, g in zip(answers.labels, gold, strict=True)]) > 0.7


def test_the_held_out_clips_have_no_say() -> None:
    vectors, labels, speakers = clips()
    held_out = np.asarray([speaker == "s0" for speaker in speakers])
    poisoned = ["fear" if out else label for label, out in zip(labels, held_out, strict=True)]
    assert predict_prosody(vectors, labels, speakers, held_out) == predict_prosody(
        vectors, poisoned, speakers, held_out
    )


def test_probabilities_are_probabilities() -> None:
    vectors, labels, speakers = clips()
    classifier = train(vectors, labels, speakers)
    found = classifier.probabilities(vectors)
    assert classifier.labels == LABELS
    assert np.allclose(found.sum(axis=1), 1)
    assert (found >= 0).all()
    extreme = classifier.probabilities(np.full((1, vectors.shape[1]), 1e30))
    assert np.isfinite(extreme).all()


def test_arrays_give_what_scikit_learn_gives() -> None:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.svm import SVC

    vectors, labels, speakers = clips()
    classifier = train(vectors, labels, speakers, grid=ONE)
    z = standardise(vectors, classifier.mean, classifier.scale)
    y = np.asarray([LABELS.index(label) for label in labels])
    linear = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.5, priors=np.full(3, 1 / 3))
    assert np.allclose(
        z @ classifier.linear_weights + classifier.linear_bias,
        linear.fit(z, y).decision_function(z),
    )
    kernel = np.stack(
        [
            SVC(C=1.0, gamma=1 / z.shape[1], class_weight="balanced")
            .fit(z, y == k)
            .decision_function(z)
            for k in range(3)
        ],
        axis=1,
    )
    only_kernel = replace(
        classifier,
        linear_weights=np.zeros_like(classifier.linear_weights),
        linear_bias=np.zeros(3),
        kernel_inverse_temperature=1.0,
        inverse_temperature=2.0,  # undoes the halving of the average with a flat partner
    )
    expected = np.exp(kernel) / np.exp(kernel).sum(axis=1, keepdims=True)
    assert np.allclose(only_kernel.probabilities(vectors), expected, atol=2e-3)


def test_two_labels_are_enough() -> None:
    vectors, labels, speakers = clips(labels=("anger", "fear"))
    classifier = train(vectors, labels, speakers)
    best = classifier.probabilities(vectors).argmax(axis=1)
    assert np.mean([classifier.labels[i] == g for i, g in zip(best, labels, strict=True)]) > 0.8


def test_a_label_that_only_one_speaker_has_breaks_nothing() -> None:
    vectors, labels, speakers = clips(speakers=3)
    labels = [
        "surprise" if speaker == "s1" and label == "fear" else label
        for label, speaker in zip(labels, speakers, strict=True)
    ]
    found = train(vectors, labels, speakers).probabilities(vectors)
    assert np.isfinite(found).all()
    assert found.shape[1] == 4


def test_two_speakers_with_one_label_each_break_nothing() -> None:
    vectors, _, _ = clips(speakers=2)
    half = len(vectors) // 2
    found = train(vectors, ["anger"] * half + ["fear"] * half, ["a"] * half + ["b"] * half)
    assert np.isfinite(found.probabilities(vectors)).all()


def test_a_feature_that_never_varies_says_nothing() -> None:
    vectors, labels, speakers = clips()
    constant = np.column_stack([vectors, np.full(len(vectors), 7.0)])
    classifier = train(constant, labels, speakers)
    moved = constant.copy()
    moved[:, -1] = -1e6
    assert np.allclose(classifier.probabilities(constant), classifier.probabilities(moved))


@pytest.mark.parametrize(
    ("labels", "speakers", "found"),
    [
        (["anger", "fear"], ["a", "a"], "1 speakers and 2 labels"),
        (["anger", "anger"], ["a", "b"], "2 speakers and 1 labels"),
    ],
)
def test_too_little_is_refused(labels: list[str], speakers: list[str], found: str) -> None:
    with pytest.raises(DataError, match=f"{found}; wanted at least two speakers"):
        train(np.zeros((2, 3)), labels, speakers)


def test_the_temperature_is_that_of_the_scores() -> None:
    rng = np.random.default_rng(0)
    logits = 2.0 * rng.normal(size=(4000, 3))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = np.asarray([rng.choice(3, p=row) for row in p])
    inverse, _ = _fit_inverse_temperature(logits * 5, y)
    assert inverse == pytest.approx(1 / 5, rel=0.1)


def test_noise_is_answered_without_confidence() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(120, 30))
    labels = [LABELS[i] for i in rng.integers(0, 3, 120)]
    speakers = [f"s{i % 6}" for i in range(120)]
    held_out = np.asarray([s == "s0" for s in speakers])
    answers = predict_prosody(vectors, labels, speakers, held_out)
    assert answers.confidence is not None
    assert np.mean(answers.confidence) < 0.45


def test_choosing_on_part_of_many_clips_takes_from_every_speaker_and_label() -> None:
    speakers = [f"s{i % 10}" for i in range(5000)]
    y = np.asarray([i // 10 % 3 for i in range(5000)], dtype=np.intp)
    rows = _tuning_rows(speakers, y, 600)
    assert len(set(rows.tolist())) == 600
    taken = {(speakers[i], int(y[i])) for i in rows}
    assert len(taken) == 30


def test_the_same_clips_give_the_same_arrays() -> None:
    vectors, labels, speakers = clips()
    one, two = (train(vectors, labels, speakers) for _ in range(2))
    assert one.kernel_weights.tobytes() == two.kernel_weights.tobytes()
    assert one.linear_weights.tobytes() == two.linear_weights.tobytes()


def test_without_scikit_learn_the_install_line_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match=r'pip install "earwitness\[baselines\]"'):
        train(np.zeros((2, 3)), ["a", "b"], ["s", "t"])
