"""The examples in the docstrings run and give what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = (
    "stats.streams",
    "stats.intervals",
    "stats.confusion",
    "stats.tests",
    "stats.calibration",
    "stats.agreement",
    "stats.dprime",
    "tasks.comparing",
    "tasks.scoring",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"earwitness.{name}"))
    assert found.attempted > 0
    assert found.failed == 0
