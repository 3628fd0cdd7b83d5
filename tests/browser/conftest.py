"""A headless Chromium, or a reason why there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium_path() -> str | None:
    """The browser named by EARWITNESS_CHROMIUM, or the one of the system."""
    named = os.environ.get("EARWITNESS_CHROMIUM")
    if named:
        return named if Path(named).exists() else None
    return (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for all tests."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: pip install 'earwitness[browser]'"
    )
    path = chromium_path()
    if path is None:
        pytest.skip("needs Chromium: apt-get install chromium, or set EARWITNESS_CHROMIUM")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield chromium
        chromium.close()
