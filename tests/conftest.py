"""Shared fixtures."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session", autouse=True)
def _commands_made_once() -> Iterator[None]:
    """Typer makes the tree of all commands anew at every call, a tenth of a second: one process of tests keeps it."""
    import typer.main
    import typer.testing

    kept = cache(typer.main.get_command)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", kept)
        patch.setattr(typer.testing, "_get_command", kept)
        yield


def real_data_folder() -> Path | None:
    """The folder of real recordings, if there is one; never part of the project."""
    named = os.environ.get("EARWITNESS_TEST_DATA")
    candidates = [Path(named)] if named else [ROOT.parent / "shared" / "data"]
    return next((folder for folder in candidates if folder.is_dir()), None)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Real recordings; tests that need them skip where there are none."""
    folder = real_data_folder()
    if folder is None:
        pytest.skip("no real recordings: set EARWITNESS_TEST_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def mixed_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of eight mixed scenes with all twins; tests only read it."""
    from tests.tasks.cares_corpus import build

    return build(tmp_path_factory.mktemp("cares"))
