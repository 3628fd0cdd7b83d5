"""Fixtures of the tasks about scenes."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def mixed_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of eight mixed scenes with all twins; tests only read it."""
    from tests.tasks.cares_corpus import build

    return build(tmp_path_factory.mktemp("cares"))
