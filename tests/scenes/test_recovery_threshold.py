"""Tau: found as scikit-learn finds it, bound to its embedder, refused where it means nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score, roc_curve

from earwitness.errors import UsageError
from earwitness.models.embedders.hashed import HashedEmbedder
from earwitness.models.embedders.registry import open_embedder
from earwitness.scenes.recovery_threshold import (
    Calibration,
    Threshold,
    ThresholdError,
    calibrate,
    parse_tau,
    plot_svg,
    read_threshold,
    require_embedder,
    require_useful,
    write_threshold,
)
from earwitness.scenes.topic_pairs import TopicGroup, TopicPair, TopicPairs, load_topic_pairs


@pytest.fixture(scope="module")
def found() -> Calibration:
    return asyncio.run(calibrate(load_topic_pairs(), open_embedder("local/minilm")))


def test_the_shipped_pairs_with_the_packaged_embedder(found: Calibration) -> None:
    threshold = found.threshold
    assert (threshold.positives, threshold.negatives, threshold.templates) == (180, 270, 45)
    assert threshold.auc == pytest.approx(0.729, abs=0.01)
    assert threshold.auc_low is not None
    assert threshold.auc_high is not None
    assert threshold.auc_low < 0.729 < threshold.auc_high
    assert 0.25 < threshold.tau < 0.4
    require_useful(threshold)


def test_area_and_youden_point_are_those_of_scikit_learn(found: Calibration) -> None:
    threshold = found.threshold
    labels = np.array([1] * 180 + [0] * 270)
    cosines = np.array([*found.positives, *found.negatives])
    assert threshold.auc == pytest.approx(roc_auc_score(labels, cosines), abs=5e-5)
    false, true, cuts = roc_curve(labels, cosines, drop_intermediate=False)
    best = float((true - false).max())
    assert threshold.sensitivity is not None
    assert threshold.specificity is not None
    assert threshold.sensitivity + threshold.specificity - 1 == pytest.approx(best, abs=1e-4)
    wanted = max(cuts[np.isclose(true - false, best)])
    assert threshold.tau == pytest.approx(wanted, abs=1e-4)
    assert threshold.tau <= wanted
    assert found.roc()[0] == pytest.approx(false.tolist())
    assert found.roc()[1] == pytest.approx(true.tolist())


def test_the_same_again(found: Calibration) -> None:
    one, other = (asyncio.run(calibrate(load_topic_pairs(), HashedEmbedder())) for _ in range(2))
    assert one == other
    assert plot_svg(found) == plot_svg(found)
    assert "<svg" in plot_svg(found)
    assert "rewordings" in plot_svg(found)


class Flat:
    """An embedder for which all texts but some are the same."""

    name = "test/flat"
    settings = {"version": 1}  # noqa: RUF012

    def __init__(self, apart: Sequence[str] = ()) -> None:
        self.apart = apart

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.zeros((len(texts), 8), np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[self.apart.index(text) + 1 if text in self.apart else 0] = 1
        return rows

    async def aclose(self) -> None:
        pass


def pairs(groups: int = 3) -> TopicPairs:
    made = []
    for g in range(groups):
        couple = [
            TopicPair(topic=f"topic {g} {n} of six words", rewording=f"as heard {g} {n}")
            for n in range(2)
        ]
        made.append(
            TopicGroup(
                template=f"t{'abc'[g % 3]}-0{g}", category="c", title="t", facets=("f",),
                pairs=tuple(couple),
            )
        )  # fmt: skip
    return TopicPairs(tuple(made), "0" * 64)


def test_an_embedder_that_tells_nothing_apart_gives_no_tau() -> None:
    found = asyncio.run(calibrate(pairs(), Flat()))
    assert found.threshold.auc == 0.5
    with pytest.raises(ThresholdError, match=r"does not tell rewordings from other topics"):
        require_useful(found.threshold)
    hashed = asyncio.run(calibrate(load_topic_pairs(), HashedEmbedder()))
    with pytest.raises(ThresholdError, match=r"embedder offline/hashed: does not tell"):
        require_useful(hashed.threshold)


def test_perfect_pairs_have_the_whole_area() -> None:
    given = pairs()
    second = [group.pairs[1] for group in given.groups]
    texts = [text for pair in second for text in (pair.topic,)]
    flat = Flat(texts)

    class Paired(Flat):
        async def embed(self, asked: Sequence[str]) -> np.ndarray:
            as_topic = {pair.rewording: pair.topic for pair in second}
            return await flat.embed([as_topic.get(text, text) for text in asked])

    found = asyncio.run(calibrate(given, Paired()))
    assert found.threshold.auc == 1.0
    assert (found.threshold.sensitivity, found.threshold.specificity) == (1.0, 1.0)
    assert found.threshold.tau == 1.0


SET = Threshold(0.82, "hub/BAAI/bge-large-en-v1.5", "ab" * 32)


def test_kept_and_read(tmp_path: Path, found: Calibration) -> None:
    for threshold in (SET, found.threshold):
        write_threshold(tmp_path / "tau.json", threshold)
        assert read_threshold(tmp_path / "tau.json") == threshold
    assert found.threshold.calibrated
    assert not SET.calibrated


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (None, r"cannot be read"),
        ("0.8", r"no threshold of format 1"),
        ("{", r"is no JSON"),
        ('{"format": 2, "tau": 0.8}', r"no threshold of format 1"),
        ('{"format": 1, "tau": 0.8}', r"other fields"),
        (
            '{"format": 1, "tau": "high", "embedder": "a/b", "embedder_hash": "c"}',
            r"no number tau",
        ),
    ],
)
def test_files_that_are_no_threshold(text: str | None, match: str, tmp_path: Path) -> None:
    path = tmp_path / "tau.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ThresholdError, match=match + r".*calibrate-topic --out FILE"):
        read_threshold(path)


def test_a_threshold_is_refused_with_another_embedder() -> None:
    require_embedder(SET, SET.embedder, SET.embedder_hash, "tau.json")
    with pytest.raises(
        ThresholdError, match=r"tau.json: a threshold for hub/BAAI.*abababababab; wanted one for x"
    ):
        require_embedder(
            SET, "x/y", replace(SET, embedder_hash="cd" * 32).embedder_hash, "tau.json"
        )


def test_tau_as_a_number() -> None:
    assert parse_tau("0.82") == 0.82
    for text in ("1.5", "nan", "high"):
        with pytest.raises(UsageError, match=r"--tau.*a number from -1 to 1"):
            parse_tau(text)
