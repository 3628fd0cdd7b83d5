from __future__ import annotations

from pathlib import Path

import pytest

from earwitness.clips.corpus import EMOTIONS
from earwitness.errors import DataError
from earwitness.report.priors import read_priors


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.yaml", "neutral: 3\nanger: 1\n"),
        ("p.json", '{"neutral": 0.75, "anger": 0.25}'),
        ("p.csv", "label,weight\nneutral,300\nanger,100\n"),
        ("p.csv", "neutral,300\nanger,100\n"),
    ],
)
def test_weights_become_shares(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    shares = read_priors(tmp_path / name, EMOTIONS)
    assert list(shares) == list(EMOTIONS)
    assert (shares["neutral"], shares["anger"], shares["fear"]) == (0.75, 0.25, 0.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("joy: 1", "unknown label 'joy'; wanted one of anger"),
        ("fear: much", "fear: weight 'much'; wanted a number of 0 or more"),
        ("fear: -1", "weight -1; wanted a number"),
        ("fear: .nan", "weight nan; wanted a number"),
        ("fear: 0", "no label has a weight above 0"),
        ("- fear", "is not a mapping"),
        ("a: [", "cannot be read"),
    ],
)
def test_what_is_no_prior(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_priors(path, EMOTIONS)


def test_missing_file_and_odd_columns(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no such file.*Write one line a label"):
        read_priors(tmp_path / "p.yaml", EMOTIONS)
    (tmp_path / "p.csv").write_text("fear,1,2\n")
    with pytest.raises(DataError, match=r"p\.csv:1: 3 columns; wanted two"):
        read_priors(tmp_path / "p.csv", EMOTIONS)
