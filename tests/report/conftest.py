"""Data of the report tests, scored once."""

from __future__ import annotations

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
