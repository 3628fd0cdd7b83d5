"""The review app as people use it, in headless Chromium: label, review, record, and the organiser's pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from earwitness.audio import Audio, read_audio, write_audio
from earwitness.review import people
from earwitness.review.project import Project, write_project
from earwitness.review.recordings import recordings_of
from earwitness.review.report import write_report
from earwitness.review.results import findings, studies
from earwitness.review.store import Item, add_items, new_organiser, opened, rows, transaction
from earwitness.scenes.bank_records import REACTIONS
from earwitness.stats.streams import stream
from tests.browser.conftest import ARGUMENTS, chromium_path
from tests.review.making import Site, label_folder, record_folder, review_folder, served, wav

pytestmark = [pytest.mark.browser, pytest.mark.timeout(1500)]

PHONE = {"width": 320, "height": 640}
DESKTOP = {"width": 1280, "height": 900}
SCENES = 200
CLIPS = 60
REACTION_KEYS = dict(zip(REACTIONS, "1234", strict=True))


def expect(locator: Any) -> Any:
    """Playwright's patient assertions, more patient: a busy machine takes its time."""
    from playwright.sync_api import expect as patient

    patient.set_options(timeout=30_000)
    return patient(locator)


class Visit:
    """A tab with everything it complained of."""

    PATIENCE_MS = 60_000

    def __init__(self, context: Any, site: Site) -> None:
        self.page = context.new_page()
        self.site = site
        self.page.set_default_timeout(self.PATIENCE_MS)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def go(self, path: str) -> Any:
        self.page.goto(self.site.address + path)
        return self.page

    def moved(self, act: Any) -> None:
        """Do something that leads to another page, and wait until that one can be used."""
        before = self.page.url
        act()
        self.page.wait_for_url(lambda url: url != before, wait_until="domcontentloaded")


@pytest.fixture
def open_tab(browser: Any) -> Iterator[Any]:
    contexts = []

    def open_(site: Site, **options: Any) -> Visit:
        context = browser.new_context(viewport=DESKTOP, **options)
        contexts.append(context)
        return Visit(context, site)

    yield open_
    for context in contexts:
        context.close()


def with_audio(folder: Path) -> Path:
    """A label folder with a transcript and a sound file, made by hand."""
    folder.mkdir(parents=True)
    (folder / "scene.wav").write_bytes(wav(6.0))
    sounds = [
        {"id": "s1", "name": "a dog barking", "at_s": 2.0},
        {"id": "s2", "name": "a door slamming", "at_s": 4.5},
    ]
    talk = {
        "speaker": "A",
        "said": [
            ["speech", "Is it far?"],
            ["heard", " a long breath let out"],
            ["speech", " I mean, on foot."],
        ],
    }
    shown = {
        "sounds": sounds,
        "lines": [talk, {"sound": "s1"}, talk, {"sound": "s2"}, talk],
        "seconds": 6.0,
    }
    write_project(folder, Project("label", "Sounds and talk", show="both"))
    with opened(folder, create=True) as db, transaction(db):
        add_items(db, [Item("x", "x", shown, {"s1": "pivot", "s2": "ambient"}, "scene.wav")])
    return folder


def test_three_annotators_label_two_hundred_scenes(open_tab: Any, tmp_path: Path) -> None:
    folder = label_folder(tmp_path, SCENES * 3 // 2, per_item=3, limit=SCENES)
    tokens = people.add_people(folder, 3)
    with opened(folder) as db:
        gold = {
            (name, position): json.loads(labels)
            for name, position, labels in rows(
                db,
                "SELECT p.name, a.position, i.gold FROM assignments a JOIN items i ON i.id=a.item"
                " JOIN people p ON p.id=a.person",
            )
        }
    given: dict[str, int] = {}
    with served(folder) as site:
        for name, token in tokens.items():
            visit = open_tab(site)
            visit.go(f"/a/{token}")
            page = visit.page
            assert token not in page.url
            visit.moved(lambda: page.click("#go"))  # noqa: B023
            while "/work/item/" in page.url:
                position = int(page.url.rsplit("/", 1)[1])
                rng = stream(1, name, str(position))
                labels = gold[name, position]
                for sound in sorted(labels):
                    said = labels[sound] if rng.random() < 0.85 else REACTIONS[rng.integers(4)]
                    page.keyboard.press(REACTION_KEYS[said])
                visit.moved(lambda: page.keyboard.press("Enter"))  # noqa: B023
                given[name] = given.get(name, 0) + 1
            expect(page.locator("main")).to_contain_text(f"All {SCENES} are done")
            assert visit.complaints == []
            assert all(url.startswith(site.address) for url in visit.requests)
        assert given == dict.fromkeys(tokens, SCENES)
        with opened(folder) as db:
            assert rows(db, "SELECT count(*), count(DISTINCT item) FROM answers") == [
                (3 * SCENES, SCENES)
            ]
            (study,) = studies(db, Project("label", ""))
            new = new_organiser(db)
        found = findings(study, resamples=200)
        assert found.with_labels is not None
        assert found.between is not None
        # Right with 0.85, else one of four: kappa 0.85 with the labels and 0.72 between people.
        assert found.with_labels.mean_cohen.value == pytest.approx(0.85, abs=0.05)
        assert found.between.mean_cohen.value == pytest.approx(0.7225, abs=0.06)
        visit = open_tab(site)
        page = visit.go(f"/o/{new}")
        expect(page.locator(".lead").first).to_contain_text(
            f"{SCENES} of {SCENES} items have all their answers"
        )
        kappa = f"{found.with_labels.mean_cohen.value:.2f}"
        expect(page.locator(".figure", has_text="κ with the labels").locator("b")).to_have_text(
            kappa
        )
        page.click("text=Report with agreement")
        expect(page.locator("h1")).to_have_text("Do people agree?")
        expect(page.locator(".lead").first).to_contain_text(f"κ = {kappa}")


def test_a_reviewer_hears_sixty_clips(open_tab: Any, tmp_path: Path) -> None:
    folder = review_folder(tmp_path, CLIPS)
    token = people.add_people(folder, 1)["ann-01"]
    with served(folder) as site:
        visit = open_tab(site)
        visit.go(f"/a/{token}")
        page = visit.page
        visit.moved(lambda: page.click("#go"))
        for number in range(CLIPS):
            if number == 0:
                page.keyboard.press("r")
                page.wait_for_function("() => document.getElementById('player').ended")
                page.keyboard.press("Enter")
                # Nothing was chosen: the browser itself says so, and the page stays.
                assert page.url.endswith(page.locator("#task").get_attribute("action"))
            page.keyboard.press("p" if number % 10 == 0 else "g")
            page.keyboard.press("123"[number % 3])
            if number == 5:
                page.keyboard.press("n")
                page.keyboard.type("u 1 g: a note")
                page.keyboard.press("Escape")
            visit.moved(lambda: page.keyboard.press("Enter"))
        expect(page.locator("main")).to_contain_text(f"All {CLIPS} are done")
        with opened(folder) as db:
            kept = [json.loads(p) for (p,) in rows(db, "SELECT payload FROM answers")]
        assert [sum(a["match"] == m for a in kept) for m in ("yes", "no", "unclear")] == [
            20,
            20,
            20,
        ]
        assert sum(a["audio_quality"] == "poor" for a in kept) == 6
        assert [a["note"] for a in kept if a["note"]] == ["u 1 g: a note"]
        assert [c for c in visit.complaints if "favicon" not in c] == []


def test_undo_later_and_the_mouse(open_tab: Any, tmp_path: Path) -> None:
    folder = review_folder(tmp_path, 5, blind=True)
    token = people.add_people(folder, 1)["ann-01"]
    with served(folder) as site:
        visit = open_tab(site)
        visit.go(f"/a/{token}")
        page = visit.go("/work/next")
        first = page.url
        visit.moved(lambda: page.keyboard.press("l"))
        second = page.url
        page.click("label:has-text('Good')")
        page.click("label:has-text('sadness')")
        visit.moved(lambda: page.click("#save"))
        visit.moved(lambda: page.keyboard.press("u"))
        assert page.url == second
        assert page.is_checked("input[value=sadness]")
        page.keyboard.press("3")
        visit.moved(lambda: page.keyboard.press("Enter"))
        # Keys can be switched off, and stay off.
        page.click("summary:has-text('Keys')")
        page.uncheck("#keys-on")
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("3")
        assert page.locator("input[name=perceived_emotion]:checked").count() == 0
        page.reload()
        assert not page.is_checked("#keys-on")
        page.goto(first)
        assert page.locator("#task").get_attribute("action") == first.removeprefix(site.address)
        with opened(folder) as db:
            (row,) = rows(db, "SELECT payload FROM answers")
        assert json.loads(row[0])["perceived_emotion"] == "fear"


def test_an_answer_waits_for_the_connection(open_tab: Any, tmp_path: Path) -> None:
    folder = label_folder(tmp_path, 4, per_item=1)
    token = people.add_people(folder, 1)["ann-01"]
    with served(folder) as site:
        visit = open_tab(site)
        visit.go(f"/a/{token}")
        page = visit.go("/work/next")
        for _ in range(page.locator(".sound").count()):
            page.keyboard.press("2")
        page.context.set_offline(True)
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_contain_text(
            "Not saved yet. The server cannot be reached."
        )
        assert page.is_checked("input[value=verbal] >> nth=0")
        visit.moved(lambda: page.context.set_offline(False))
        with opened(folder) as db:
            assert rows(db, "SELECT count(*) FROM answers") == [(1,)]


def test_jumping_to_a_sound(open_tab: Any, tmp_path: Path) -> None:
    folder = with_audio(tmp_path / "work")
    token = people.add_people(folder, 1)["ann-01"]
    with served(folder) as site:
        visit = open_tab(site)
        visit.go(f"/a/{token}")
        page = visit.go("/work/next")
        page.wait_for_function("() => document.getElementById('player').readyState > 0")
        page.keyboard.press("ArrowDown")
        assert page.locator(".current").get_attribute("id") == "sound-s2"
        page.keyboard.press("h")
        page.wait_for_function("() => document.getElementById('player').currentTime > 0.4")
        page.keyboard.press(" ")
        assert page.evaluate("document.getElementById('player').paused")
        assert visit.complaints == []


@pytest.fixture
def microphone(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens a browser whose microphone plays a file."""
    launched = []

    def launch(samples: np.ndarray) -> Any:
        path = tmp_path / f"mic-{len(launched)}.wav"
        write_audio(path, Audio(samples.astype(np.float32), 48_000))
        other = browser.browser_type.launch(
            executable_path=chromium_path(),
            args=[
                *ARGUMENTS, "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
                f"--use-file-for-fake-audio-capture={path}",
            ],
        )  # fmt: skip
        launched.append(other)
        return other

    yield launch
    for other in launched:
        other.close()


def hum(level: float) -> np.ndarray:
    time_s = np.arange(48_000 * 4) / 48_000
    return level * np.sin(2 * np.pi * 440 * time_s)


def begin(browser: Any, site: Site, token: str) -> Visit:
    visit = Visit(browser.new_context(viewport=DESKTOP), site)
    page = visit.go(f"/a/{token}")
    page.check("#agree")
    page.click("text=Go on")
    page.wait_for_selector("#go")
    visit.moved(lambda: page.click("#go"))
    return visit


def test_a_speaker_records_with_a_microphone(microphone: Any, tmp_path: Path) -> None:
    folder = record_folder(tmp_path)
    token = people.add_people(folder, 0)["spk-01"]
    with served(folder) as site:
        visit = begin(microphone(hum(0.4)), site, token)
        page = visit.page
        page.keyboard.press("r")
        expect(page.locator("#record")).to_have_attribute("aria-pressed", "true")
        page.keyboard.press("r")
        expect(page.locator("#status")).to_contain_text("too short")
        assert page.is_disabled("#send")
        for take in range(3):
            page.keyboard.press("r")
            expect(page.locator("#level-words")).to_have_text("good")
            page.wait_for_function("() => parseFloat(document.getElementById('clock').value) > 1.0")
            page.keyboard.press("r")
            expect(page.locator("#status")).to_contain_text("Hear it")
            if take == 0:
                page.keyboard.press("p")
                assert "echo cancellation: off; noise suppression: off; automatic gain: off" in (
                    page.locator("#capture").text_content() or ""
                )
            before = page.url
            page.keyboard.press("Enter")
            page.wait_for_function(f"() => location.href !== {json.dumps(before)}")
        expect(page.locator("main")).to_contain_text("All 3 are done")
        page.goto(f"{site.address}/work/item/1")
        expect(page.locator("#kept audio")).to_have_count(1)
        assert visit.complaints == []
    kept = recordings_of(folder)
    assert len(kept) == 3
    for row in kept:
        audio = read_audio(folder / row["path"])
        assert audio.channels == 1
        assert audio.rate == row["capture"]["sampleRate"] >= 44_100
        assert row["seconds"] > 1.0
        assert row["capture"]["noiseSuppression"] is False
        # What came out of the microphone, untouched: the tone at its level, and nothing beside it.
        spectrum = np.abs(np.fft.rfft(audio.samples * np.hanning(audio.frames)))
        assert np.argmax(spectrum) * audio.rate / audio.frames == pytest.approx(440, abs=2)
        middle = audio.samples[audio.frames // 4 : audio.frames // 2]
        assert np.abs(middle).max() == pytest.approx(0.4, abs=0.05)


@pytest.mark.parametrize(("level", "reason"), [(0.0, "Nothing can be heard"), (1.6, "clipping")])
def test_a_recording_nobody_can_use_is_refused_at_once(
    microphone: Any, tmp_path: Path, level: float, reason: str
) -> None:
    folder = record_folder(tmp_path)
    token = people.add_people(folder, 0)["spk-01"]
    with served(folder) as site:
        visit = begin(microphone(np.clip(hum(level), -1, 1)), site, token)
        page = visit.page
        page.click("#record")
        page.wait_for_function("() => parseFloat(document.getElementById('clock').value) > 0.8")
        page.click("#record")
        expect(page.locator("#status")).to_contain_text(reason)
        assert page.is_disabled("#send")


def test_a_browser_that_changes_the_voice_is_refused(microphone: Any, tmp_path: Path) -> None:
    folder = record_folder(tmp_path)
    token = people.add_people(folder, 0)["spk-01"]
    with served(folder) as site:
        visit = begin(microphone(hum(0.4)), site, token)
        visit.page.add_init_script(
            "const real = MediaStreamTrack.prototype.getSettings;"
            "MediaStreamTrack.prototype.getSettings = function () {"
            "  const found = real.call(this); found.echoCancellation = true; delete found.autoGainControl; return found; };"
        )
        visit.page.reload()
        visit.page.click("#record")
        expect(visit.page.locator("#status")).to_contain_text(
            "does not turn off echo cancellation and automatic gain"
        )
        expect(visit.page.locator("#record")).to_have_attribute("aria-pressed", "false")


@pytest.fixture(scope="module")
def every_page(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[list[tuple[str, Site, str, str]]]:
    """Name, site, link and path of every page there is."""
    from contextlib import ExitStack

    from tests.review.test_results import answer_all

    root = tmp_path_factory.mktemp("pages")
    with ExitStack() as stack:

        def site_of(folder: Path) -> Site:
            return stack.enter_context(served(folder))

        label = label_folder(root / "label", 40, per_item=2)
        answer_all(label, 0.8, 2)
        with opened(label) as db, transaction(db):
            db.execute("DELETE FROM answers WHERE item % 5 = 0")
        folders = {
            "label": label,
            "both": with_audio(root / "both"),
            "review": review_folder(root / "review", 3),
            "blind": review_folder(root / "blind", 3, blind=True),
            "record": record_folder(root / "record"),
        }
        pages = []
        for name, folder in folders.items():
            site = site_of(folder)
            with opened(folder) as db:
                known = [n for (n,) in rows(db, "SELECT name FROM people WHERE role='annotator'")]
                organiser = f"/o/{new_organiser(db)}"
            if known:
                link = f"/a/{people.renew(folder, known[0])}"
            else:
                link = f"/a/{next(iter(people.add_people(folder, 0 if name == 'record' else 1).values()))}"
            pages.append((f"{name} start", site, link, "/work"))
            if name != "record":
                pages.append((f"{name} item", site, link, "/work/next"))
            pages.append((f"{name} organiser", site, organiser, "/organiser"))
            if name == "label":
                pages.append(("report", site, organiser, "/organiser/report"))
                pages.append(("front", site, "", "/"))
                pages.append(("not found", site, "", "/nothing"))
        # A record page needs consent first: a second speaker has agreed.
        site = site_of(record_folder(root / "agreed"))
        token = people.add_people(site.folder, 0)["spk-01"]
        from tests.review.test_recordings import agree

        agree(site.visitor(token))
        pages.append(("record item", site, f"/a/{token}", "/work/next"))
        yield pages


SCHEMES = [
    pytest.param("light", DESKTOP, id="light-1280"),
    pytest.param("dark", PHONE, id="dark-320"),
]


@pytest.mark.parametrize(("scheme", "size"), SCHEMES)
def test_every_page_is_accessible_and_fits(
    browser: Any, every_page: list[tuple[str, Site, str, str]], scheme: str, size: dict[str, int]
) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python"
    )
    for name, site, link, path in every_page:
        context = browser.new_context(viewport=size, color_scheme=scheme)
        visit = Visit(context, site)
        if link:
            visit.go(link)
        page = visit.go(path)
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        found = axe.Axe().run(page)
        assert not found.response["violations"], f"{name}: {found.generate_report()}"
        width, inner = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert width <= inner, name
        spilt = page.evaluate(
            """() => [...document.querySelectorAll('body *')].filter((e) => {
                if (e.closest('.scroll, .skip, .hidden')) return false;
                const box = e.getBoundingClientRect();
                return box.width && box.right > window.innerWidth + 1;
            }).map((e) => e.tagName + '.' + e.className)"""
        )
        assert spilt == [], name
        complaints = [c for c in visit.complaints if "404" not in c]
        assert complaints == [], name
        context.close()


def test_the_report_file_stands_alone(
    browser: Any, every_page: list[tuple[str, Site, str, str]], tmp_path: Path
) -> None:
    page_path, _ = write_report(every_page[0][1].folder, tmp_path)
    context = browser.new_context(viewport=PHONE)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page_path.as_uri())
    assert page.locator("h1").inner_text() == "Do people agree?"
    assert asked == [page_path.as_uri()]
    width, inner = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert width <= inner
    context.close()


def test_the_organisers_page_is_live_and_runs_nothing(open_tab: Any, tmp_path: Path) -> None:
    hostile = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
    folder = label_folder(tmp_path, 4, per_item=1, title=hostile)
    (token,) = people.add_people(folder, 0, [hostile]).values()
    with opened(folder) as db:
        link = f"/o/{new_organiser(db)}"
    with served(folder) as site:
        visit = open_tab(site)
        page = visit.go(link)
        expect(page.locator("tbody th")).to_have_text(hostile)
        visitor = site.visitor(token)
        _, item = visitor.page("/work/next")
        labels = {name.removeprefix("label."): "pivot" for name in item.names}
        assert visitor.post(item.action, labels=labels, note=hostile).status_code == 200
        expect(page.locator("tbody td").first).to_have_text("1", timeout=20_000)
        page.click("text=Report with agreement")
        page.wait_for_load_state()
        assert page.evaluate("window.hacked") is None
        assert [c for c in visit.complaints if not re.search("404|401", c)] == []
