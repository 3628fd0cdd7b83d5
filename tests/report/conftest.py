"""Data of the report tests, scored once."""

from __future__ import annotations

from pathlib import Path

import pytest

from earwitness.clips.corpus import EMOTIONS
from earwitness.report.boards import ReportData, build
from earwitness.report.page import render_page
from earwitness.report.players import Players
from tests.report.making import make_systems


@pytest.fixture(scope="session")
def data() -> ReportData:
    """Five systems, one of them incomplete, and two controls."""
    return build(make_systems(), EMOTIONS)


@pytest.fixture(scope="session")
def html(data: ReportData) -> str:
    return render_page(data, Players())


@pytest.fixture(scope="session")
def scene_folder(mixed_folder: Path) -> Path:
    """A corpus of eight mixed scenes with all twins; tests only read it."""
    return mixed_folder


@pytest.fixture(scope="session")
def scene_runs(scene_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of six listeners of known character over that corpus."""
    out = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "x")
        _ask_all(scene_folder, out)
    return out


def _ask_all(scene_folder: Path, out: Path) -> None:
    from tests.report.scene_making import ask

    ask(scene_folder, out, "perfect", ("audio", "muted", "silence"))
    ask(scene_folder, out, "deaf", ("audio", "muted", "oracle"))
    ask(scene_folder, out, "always-pivot", ("audio", "muted"), ("reaction", "sound"))
    ask(scene_folder, out, "random", ("audio",), ("reaction", "sound", "grounding"))
    ask(scene_folder, out, "echo", ("audio",), ("reaction", "location"))
    ask(scene_folder, out, "refuse", ("audio",), ("reaction", "grounding"))
