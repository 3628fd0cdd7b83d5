"""The path language of endpoint descriptions."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.models.json_path import PathError, find, first, parse_path

VALUE = {
    "a": {"b.c": [10, 20, 30], "*": 1},
    "w": [{"s": 1}, {"t": 2}, {"s": 3}],
    "files": {"x.wav": {"s": 7}},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("", [VALUE]),
        (".", [VALUE]),
        ("w[*].s", [1, 3]),
        ("w[0].s", [1]),
        ("w[-1].s", [3]),
        ("w[7].s", []),
        ('a["b.c"][1]', [20]),
        ("a['b.c'][*]", [10, 20, 30]),
        ("a.*", [1]),
        ("files[*].s", [7]),
        ("a.none.deeper", []),
        ("w.s", []),
        ("a[0]", []),
    ],
)
def test_paths(path: str, found: list[Any]) -> None:
    assert find(VALUE, path) == found
    assert first(VALUE, path) == (found[0] if found else None)


def test_no_path_is_nothing() -> None:
    assert first(VALUE, None) is None


@pytest.mark.parametrize("path", [".a", "a.", "a..b", "a[", "a[x]", "a]b", 'a["b', "a[0]b"])
def test_paths_that_are_none(path: str) -> None:
    with pytest.raises(PathError, match="path"):
        parse_path(path)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(path=st.text(alphabet="ab.[]*01-\"'", max_size=12))
def test_any_text_is_a_path_or_a_named_error(path: str) -> None:
    with contextlib.suppress(PathError):
        assert isinstance(find(VALUE, path), list)
