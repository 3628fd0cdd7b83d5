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


def spilt_text(page: Any, figures: str) -> list[str]:
    """Words of figures, by their selector, that reach out of their frame; everything folded is opened first."""
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    spilt: list[str] = page.evaluate(
        """(figures) => [...document.querySelectorAll(figures)].flatMap((figure) => {
            const frame = figure.getBoundingClientRect();
            if (!frame.width) return [];
            return [...figure.querySelectorAll('text')].filter((text) => {
                const box = text.getBoundingClientRect();
                return box.left < frame.left - 2 || box.right > frame.right + 2 ||
                    box.top < frame.top - 2 || box.bottom > frame.bottom + 2;
            }).map((text) => figure.querySelector('title').textContent + ': ' + text.textContent);
        })""",
        figures,
    )
    return spilt
