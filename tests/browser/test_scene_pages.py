"""Pages with scenes in a real browser: accessible, at phone width, without a network; listened to and searched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from earwitness.clips.corpus import EMOTIONS
from earwitness.report.boards import build
from earwitness.report.build import write_data
from earwitness.report.listen import listen_page
from earwitness.report.scene_boards import build_boards
from earwitness.report.scene_corpora import Finder
from earwitness.runs.folder import find_runs
from earwitness.tasks.cares_runs import answers_of
from earwitness.tasks.scene_items import load_mixed
from tests.browser.conftest import spilt_text
from tests.browser.test_report_page import BOTH_SCHEMES, DESKTOP, Visit, expect
from tests.report.making import HOSTILE, make_systems
from tests.report.scene_making import ask, make_answers, often

pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def corpus(mixed_folder: Path) -> Path:
    return mixed_folder


@pytest.fixture(scope="session")
def page_path(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both families on one page, with sound by reference and the published rows."""
    out = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "x")
        ask(corpus, out, "perfect", ("audio", "muted"))
        ask(corpus, out, "deaf", ("audio", "muted", "oracle"))
        ask(corpus, out, "echo", ("audio",), ("reaction",))
    boards = build_boards(answers_of(find_runs([out])), finder=Finder(), resamples=200)
    folder = tmp_path_factory.mktemp("page")
    data = build(make_systems()[:2], EMOTIONS)
    return write_data(data, folder, scenes=boards, link_audio=True, published=True).html


@pytest.fixture(scope="session")
def listening(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return listen_page(load_mixed(corpus), tmp_path_factory.mktemp("listen") / "listen.html")


@pytest.fixture
def visit(browser: Any, request: pytest.FixtureRequest) -> Iterator[Visit]:
    options = getattr(request, "param", {})
    context = browser.new_context(
        viewport=options.get("viewport", DESKTOP), color_scheme=options.get("scheme", "light")
    )
    yield Visit(context.new_page())
    context.close()


def go(visit: Visit, path: Path) -> Any:
    visit.page.goto(path.resolve().as_uri())
    visit.page.wait_for_selector("#s-list > li")
    return visit.page


@pytest.mark.parametrize("which", ["page_path", "listening"])
@pytest.mark.parametrize("visit", BOTH_SCHEMES, indirect=True)
def test_accessible_and_within_the_width(
    visit: Visit, which: str, request: pytest.FixtureRequest
) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python"
    )
    page = go(visit, request.getfixturevalue(which))
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    if which == "page_path":
        page.locator("#s-scene .answer").first.click()
    found = axe.Axe().run(page)
    assert not found.response["violations"], found.generate_report()
    width, inner = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert width <= inner
    spilt = page.evaluate(
        """() => [...document.querySelectorAll('body *')].filter((e) => {
            if (e.closest('.scroll, pre, svg, .skip, .timeline, .hidden')) return false;
            const box = e.getBoundingClientRect();
            return box.width && box.right > window.innerWidth + 1;
        }).map((e) => e.tagName + '.' + e.className)"""
    )
    assert spilt == []
    assert visit.complaints == []
    assert all(url.startswith(("file:", "data:")) for url in visit.requests)


def test_text_of_figures_stays_inside_them(visit: Visit, page_path: Path) -> None:
    page = go(visit, page_path)
    assert spilt_text(page, "#scenes-1 svg.figure") == []


def position(page: Any) -> float:
    return float(page.locator("#s-timeline").get_attribute("aria-valuenow"))


def test_a_click_plays_from_there(visit: Visit, listening: Path) -> None:
    page = go(visit, listening)
    seconds = float(page.locator("#s-timeline").get_attribute("aria-valuemax"))
    track = page.locator("#s-timeline .track").bounding_box()
    page.mouse.click(track["x"] + track["width"] / 2, track["y"] + 40)
    expect(page.locator("#s-timeline")).not_to_have_attribute("aria-valuenow", "0.0")
    assert position(page) == pytest.approx(seconds / 2, abs=seconds / 10)
    audio = page.locator("#s-scene audio")
    assert audio.evaluate("(a) => a.duration") == pytest.approx(seconds, abs=0.1)
    assert not audio.evaluate("(a) => a.paused")
    assert audio.evaluate("(a) => a.currentTime") == pytest.approx(seconds / 2, abs=seconds / 10)


def test_the_keyboard_moves_and_plays(visit: Visit, listening: Path) -> None:
    page = go(visit, listening)
    page.focus("#s-timeline")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert position(page) == pytest.approx(3, abs=0.2)
    page.keyboard.press("Shift+ArrowRight")
    assert position(page) == pytest.approx(8, abs=0.2)
    assert page.locator(".transcript li.now").count() <= 2
    page.keyboard.press("Home")
    assert position(page) == pytest.approx(0, abs=0.2)
    page.keyboard.press(" ")
    assert not page.locator("#s-scene audio").evaluate("(a) => a.paused")
    page.keyboard.press(" ")
    assert page.locator("#s-scene audio").evaluate("(a) => a.paused")
    page.keyboard.press("End")
    expect(page.locator("#s-timeline")).to_have_attribute(
        "aria-valuenow", page.locator("#s-timeline").get_attribute("aria-valuemax")
    )


def test_turns_and_sounds_are_buttons_and_marked_in_words(visit: Visit, listening: Path) -> None:
    page = go(visit, listening)
    assert page.locator(".lane .sound b").all_inner_texts() == ["P", "V"]
    assert page.locator(".sounds-table .reaction").all_inner_texts() == ["P pivot", "V verbal"]
    assert page.locator(".transcript li").count() == 10
    turn = page.locator(".transcript li.turn").nth(3)
    start = float(turn.get_attribute("data-start"))
    turn.locator("button").click()
    expect(turn).to_have_class("turn now")
    assert position(page) >= start - 0.1
    assert not page.locator("#s-scene audio").evaluate("(a) => a.paused")


def test_twins_keep_the_position(visit: Visit, listening: Path) -> None:
    page = go(visit, listening)
    options = page.locator("#s-version option").all_inner_texts()
    assert options[0] == "the scene as it is"
    assert "without any sound" in options
    assert "the voices alone" in options
    page.focus("#s-timeline")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.select_option("#s-version", label="the voices alone")
    assert page.locator("#s-scene audio").get_attribute("src").endswith("twins/speech-only/hosting.01.00.wav")  # fmt: skip
    assert page.locator("#s-scene audio").evaluate(
        """(a) => new Promise((done) => a.readyState ? done(a.currentTime)
            : a.addEventListener('loadedmetadata', () => setTimeout(() => done(a.currentTime), 50)))"""
    ) == pytest.approx(4, abs=0.3)


def test_answers_are_filtered(visit: Visit, page_path: Path) -> None:
    page = go(visit, page_path)
    found = page.locator("#s-found")
    expect(found).to_have_text("8 of 8 scenes")
    page.select_option("#s-task", label="location")
    page.select_option("#s-model", label="openai/perfect")
    page.select_option("#s-result", "wrong")
    expect(found).to_have_text("0 of 8 scenes")
    expect(page.locator("#s-scene h3")).to_have_text("No scene fits")
    page.select_option("#s-model", label="openai/deaf")
    page.select_option("#s-condition", label="audio")
    expect(found).to_have_text("6 of 8 scenes")
    assert page.locator("#s-scene .question-box").count() == 1
    assert page.locator("#s-scene .answers tbody tr").count() == 1
    assert page.locator("#s-scene .answer.is-right").count() == 0
    page.click("#s-filters button[type=reset]")
    expect(found).to_have_text("8 of 8 scenes")
    page.select_option("#s-reaction", label="ambient")
    expect(found).to_have_text("4 of 8 scenes")
    assert set(page.locator("#s-scene .question").all_inner_texts())
    page.select_option("#s-reaction", "")
    page.fill("#s-text", "hosting.01.03")
    expect(found).to_have_text("1 of 8 scenes")


def test_a_reply_is_shown_on_demand(visit: Visit, page_path: Path) -> None:
    page = go(visit, page_path)
    page.select_option("#s-model", label="openai/echo")
    expect(page.locator("#s-scene .answers tbody tr").first).to_contain_text("openai/echo")
    button = page.locator("#s-scene .answer").first
    button.focus()
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "true")
    assert "How do the speakers react" in page.inner_text("#s-scene .reply-box pre")


def test_hostile_replies_and_names_are_text(visit: Visit, tmp_path: Path) -> None:
    answers = make_answers(
        HOSTILE, often(0.5), scenes=3, tasks=["location"], reply=lambda _: HOSTILE
    )
    path = write_data(None, tmp_path, scenes=build_boards(answers, resamples=50)).html
    page = go(visit, path)
    page.locator("#s-scene .answer").first.click()
    assert page.inner_text("#s-scene .reply-box pre").startswith("</script><script>")
    assert page.evaluate("window.hacked") is None
    assert visit.complaints == []


def test_a_large_page_stays_quick(visit: Visit, tmp_path: Path) -> None:
    """300 scenes and over 3,000 items a run: searching takes no more than a second, and few nodes are drawn."""
    answers = [
        each
        for name in ("a", "b")
        for condition in ("audio", "blind")
        for each in make_answers(name, often(0.4), condition=condition, scenes=300)
    ]
    assert sum(len(each.decisions) for each in answers if (each.name, each.condition) == ("a", "audio")) > 3000  # fmt: skip
    boards = build_boards(answers, resamples=20)
    path = write_data(None, tmp_path / "page.html", scenes=boards).html
    assert path.stat().st_size < 8_000_000
    page = go(visit, path)
    expect(page.locator("#s-found")).to_have_text("300 of 300 scenes")
    assert page.locator("#listen *").count() < 2_000
    took = page.evaluate(
        """() => { const box = document.getElementById('s-result'); const then = performance.now();
            box.value = 'wrong'; box.dispatchEvent(new Event('input', { bubbles: true }));
            return new Promise((done) => setTimeout(() => done(performance.now() - then - 150), 150)); }"""
    )
    assert took < 1_000
    page.click("#s-next")
    assert page.locator("#s-list > li").count() == 12
