"""The report in a real browser: accessible, at phone width, without a network, usable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from earwitness.report import write_report
from tests.browser.conftest import spilt_text
from tests.report.making import HOSTILE, make_systems, write_clips

pytestmark = pytest.mark.browser

PHONE = {"width": 320, "height": 640}
DESKTOP = {"width": 1280, "height": 900}
N_ITEMS = 140


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("set")
    write_clips(path, N_ITEMS)
    return path


@pytest.fixture(scope="session")
def page_path(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with everything in it, one reply hostile, one long."""
    systems = make_systems(folder, synthetic=True)
    first = systems[0]
    changed = (
        replace(first.decisions[0], reply=HOSTILE),
        replace(first.decisions[1], reply="The voice trembles. " * 90),
        *first.decisions[2:],
    )
    systems[0] = replace(first, decisions=changed)
    return write_report(systems, tmp_path_factory.mktemp("report")).html


def expect(locator: Any) -> Any:
    """Playwright's patient assertions; the page's own policy forbids polling by evaluated strings."""
    from playwright.sync_api import expect as patient

    return patient(locator)


class Visit:
    """A page with all that it asked for and complained of."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def go(self, path: Path) -> Any:
        self.page.goto(path.resolve().as_uri())
        self.page.wait_for_selector("#rows > li")
        return self.page


@pytest.fixture
def visit(browser: Any, request: pytest.FixtureRequest) -> Iterator[Visit]:
    options = getattr(request, "param", {})
    context = browser.new_context(
        viewport=options.get("viewport", DESKTOP), color_scheme=options.get("scheme", "light")
    )
    yield Visit(context.new_page())
    context.close()


BOTH_SCHEMES = [
    pytest.param({"scheme": scheme, "viewport": viewport}, id=f"{scheme}-{viewport['width']}")
    for scheme in ("light", "dark")
    for viewport in (DESKTOP, PHONE)
]


@pytest.mark.parametrize("visit", BOTH_SCHEMES, indirect=True)
def test_no_accessibility_violations(visit: Visit, page_path: Path) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python"
    )
    page = visit.go(page_path)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    found = axe.Axe().run(page)
    assert not found.response["violations"], found.generate_report()
    assert len(found.response["passes"]) > 20


@pytest.mark.parametrize("visit", BOTH_SCHEMES, indirect=True)
def test_no_horizontal_scroll_of_the_page(visit: Visit, page_path: Path) -> None:
    page = visit.go(page_path)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    width, inner = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert width <= inner
    spilt = page.evaluate(
        """() => [...document.querySelectorAll('body *')].filter((e) => {
            if (e.closest('.scroll, pre, svg, .skip')) return false;
            const box = e.getBoundingClientRect();
            return box.width && box.right > window.innerWidth + 1;
        }).map((e) => e.tagName + '.' + e.className)"""
    )
    assert spilt == []


def test_text_of_figures_stays_inside_them(visit: Visit, page_path: Path) -> None:
    page = visit.go(page_path)
    assert spilt_text(page, "svg.figure") == []


def test_nothing_but_the_file_is_asked_for(visit: Visit, page_path: Path) -> None:
    visit.go(page_path)
    assert visit.requests == [page_path.resolve().as_uri()]
    assert visit.complaints == []


def test_hostile_reply_is_shown_as_text(visit: Visit, page_path: Path) -> None:
    page = visit.go(page_path)
    page.select_option("#f-right", "")
    page.fill("#f-text", "window.hacked")
    expect(page.locator("#rows > li")).to_have_count(1)
    assert page.inner_text("#rows pre").startswith("</script><script>window.hacked=1</script>")
    assert page.evaluate("window.hacked") is None
    assert visit.complaints == []


def test_filters(visit: Visit, page_path: Path) -> None:
    page = visit.go(page_path)

    def found(words: str) -> None:
        expect(page.locator("#found")).to_have_text(words)

    page.select_option("#f-right", "")
    found("980 of 980 replies")
    page.select_option("#f-model", label="unlucky")
    found("140 of 980 replies")
    page.select_option("#f-outcome", label="failed")
    found("9 of 980 replies")
    assert page.locator("#rows > li").count() == 9
    assert page.locator("#rows > li", has_text="rate_limit: 429").count() == 9
    page.select_option("#f-gold", label="anger")
    found("2 of 980 replies")
    page.select_option("#f-answer", label="fear")
    found("0 of 980 replies")
    page.click("text=Reset")
    expect(page.locator("#f-right")).to_have_value("wrong")
    expect(page.locator("#rows > li")).to_have_count(25)
    assert page.locator("#rows .verdict", has_text="✓").count() == 0
    page.select_option("#f-board", label="silence · Voices 1.0")
    page.select_option("#f-right", "right")
    page.select_option("#f-model", label="deaf")
    found("18 of 980 replies")
    assert page.locator("#rows .verdict", has_text="✓").count() == 18
    assert (
        page.locator("#rows > li", has_text="sent as: silence").count()
        == page.locator("#rows > li").count()
    )


def test_paging_and_other_answers(visit: Visit, page_path: Path) -> None:
    page = visit.go(page_path)
    page.select_option("#f-right", "")
    expect(page.locator("#page")).to_have_text("Page 1 of 40")
    assert page.is_disabled("#previous")
    first = page.inner_text("#rows > li:first-child")
    page.click("#next")
    expect(page.locator("#page")).to_have_text("Page 2 of 40")
    assert page.inner_text("#rows > li:first-child") != first
    page.locator("#rows > li:first-child details summary").click()
    page.wait_for_selector("#rows > li:first-child details li")
    assert page.locator("#rows > li:first-child details li").count() == 6


def test_keyboard_reaches_skip_link_filters_and_models(visit: Visit, page_path: Path) -> None:
    page = visit.go(page_path)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")
    page.locator("details.model > summary").nth(1).focus()
    page.keyboard.press("Enter")
    assert page.locator("details.model").nth(1).get_attribute("open") is not None
    page.focus("#f-model")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.getElementById('f-model').value") == "0"


@pytest.mark.parametrize("way", ["embed_audio", "bundle"])
def test_players_play(visit: Visit, folder: Path, tmp_path: Path, way: str) -> None:
    paths = write_report(make_systems(folder)[:1], tmp_path, **{way: True})  # type: ignore[arg-type]
    page = visit.go(paths.html)
    players = page.locator("#rows audio")
    assert players.count() == page.locator("#rows > li").count() > 0
    seconds = players.first.evaluate(
        """(audio) => new Promise((done, fail) => {
            audio.addEventListener('loadedmetadata', () => done(audio.duration));
            audio.addEventListener('error', () => fail(audio.error.message));
            audio.load();
            audio.preload = 'auto';
        })"""
    )
    assert seconds == pytest.approx(0.5, abs=0.01)
    assert visit.complaints == []
    assert all(url.startswith(("file:", "data:")) for url in visit.requests)


def test_without_audio_the_path_is_named(visit: Visit, page_path: Path) -> None:
    page = visit.go(page_path)
    assert page.locator("#rows audio").count() == 0
    assert page.locator("#rows > li", has_text="audio/00000.wav").count() > 0
